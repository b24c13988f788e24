"""Which methods are open to whom."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from intone_server.access.authentication import Authentication
from intone_server.access.grants import EVERYTHING, NO_LIMITS, ClientLimits, Grant, Scope
from intone_server.access.quotas import Account, Quotas
from intone_server.errors import NotAllowed, Reason

_TTS = "/intone.v1.TextToSpeechService/"
_VOICES = "/intone.v1.VoiceService/"
_STATUS = "/intone.v1.StatusService/"
# Every method of ours, and the scope that opens it. To export a voice is to hand out what it is
# made of, which is more than to read that there is one.
SCOPES = {
    f"{_TTS}Synthesize": Scope.SYNTHESIZE,
    f"{_TTS}SynthesizeText": Scope.SYNTHESIZE,
    f"{_TTS}SynthesizeFile": Scope.SYNTHESIZE,
    f"{_TTS}SynthesizeDialogue": Scope.SYNTHESIZE,
    f"{_TTS}PlanText": Scope.SYNTHESIZE,
    f"{_VOICES}ListVoices": Scope.VOICES_READ,
    f"{_VOICES}GetVoice": Scope.VOICES_READ,
    f"{_VOICES}ExportVoice": Scope.VOICES_WRITE,
    f"{_VOICES}CreateVoice": Scope.VOICES_WRITE,
    f"{_VOICES}DeleteVoice": Scope.VOICES_WRITE,
    f"{_STATUS}GetServerInfo": Scope.STATUS,
    f"{_STATUS}GetCapacity": Scope.STATUS,
    f"{_STATUS}WatchCapacity": Scope.STATUS,
}
# Services of gRPC's own: open to all, open with any token, or by scope.
HEALTH = "grpc.health.v1.Health"
REFLECTION = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
CHANNELZ = "grpc.channelz.v1.Channelz"

SPEAKING = frozenset(method for method in SCOPES if method.startswith(f"{_TTS}Synthesize"))
HEAVY = frozenset({f"{_VOICES}CreateVoice", f"{_VOICES}ExportVoice", f"{_TTS}PlanText"})

MAX_CLIENT_CHARACTERS = 128
_ANYBODY = Grant("", EVERYTHING)
Metadata = Sequence[tuple[str, Any]]


class Access:
    """Who may call what, and how much of it. By default anybody everything."""

    def __init__(
        self,
        authentication: Authentication | None = None,
        *,
        limits: ClientLimits = NO_LIMITS,
        client_header: str = "",
        names_all: bool = False,
    ) -> None:
        """`limits` are those of clients for whom no others are known; `client_header` is the
        metadata key by whose last value clients without a token are told apart, or "".
        `names_all`: nobody is served who has no name."""
        self._authentication = authentication
        self._limits = limits
        self._client_header = client_header
        self._names_all = names_all
        self._quotas = Quotas()

    def grant(self, method: str, metadata: Metadata) -> Grant:
        """Of a call that may open `method`. Raises NotAllowed."""
        service = method.strip("/").partition("/")[0]
        if self._authentication is None or service == HEALTH:
            return _ANYBODY
        shown = [str(value) for key, value in metadata if key == "authorization"]
        grant = self._authentication.grant(shown)
        if service in REFLECTION:
            return grant
        needed = Scope.STATUS if service == CHANNELZ else SCOPES[method]
        if needed not in grant.scopes:
            raise NotAllowed(
                Reason.NOT_ALLOWED,
                f"the token of {grant.subject} lacks the scope {needed}, which this method needs",
            )
        return grant

    def check_named(self, subject: str) -> None:
        """Raises NotAllowed for a certificate that names nobody: its voices would be for all."""
        if self._names_all and not subject:
            raise NotAllowed(
                Reason.TOKEN_INVALID, "the client certificate has no URI, DNS or common name"
            )

    def client(self, subject: str, metadata: Metadata, address: str) -> str:
        """By what a client is told from others: whom it has proved to be, what a trusted proxy says
        it is, or where it calls from."""
        if subject or not self._client_header:
            return subject or address
        said = [str(value) for key, value in metadata if key == self._client_header]
        # A list in one value grows at its end: that one the nearest proxy has added.
        last = said[-1].rpartition(",")[2].strip() if said else ""
        return last[:MAX_CLIENT_CHARACTERS] or address

    def account(self, client: str, grant: Grant) -> Account:
        """What the client has in use."""
        return self._quotas.account(client, grant.limits or self._limits)


def counted(method: str, account: Account) -> AbstractContextManager[None]:
    """While a call of this method is open, in the account of its client. Raises Overloaded."""
    if method in SPEAKING:
        return account.stream()
    if method in HEAVY:
        return account.heavy_call()
    return nullcontext()
