"""Who may call what: tokens of a file, JWTs of an issuer, and what is open to all."""

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import jwt
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from callers import AUDIENCE, ISSUER, Issuer, Metadata, bearer, reason_of, token_entry
from intone.v1 import (
    status_pb2,
    status_pb2_grpc,
    tts_pb2,
    tts_pb2_grpc,
    voices_pb2,
    voices_pb2_grpc,
)
from intone_client import Client, NotAllowedError
from intone_client.cli import main
from intone_server.access.grants import Scope
from intone_server.rpc.access import SCOPES
from processes import ServerProcess, running_server, start_server, wait_for

EVERYTHING = [scope.value for scope in Scope]
SPEECH = tts_pb2.SynthesizeTextRequest(text="One two.")


@dataclass
class Guarded:
    """A server that asks for tokens, and its files."""

    server: ServerProcess
    tokens: Path
    keys: Path
    issuer: Issuer

    @contextmanager
    def channel(self) -> Iterator[grpc.Channel]:
        with grpc.insecure_channel(self.server.address) as channel:
            yield channel

    def say(self, metadata: Metadata) -> None:
        """Raises grpc.RpcError."""
        with self.channel() as channel:
            stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
            list(stub.SynthesizeText(SPEECH, metadata=metadata))

    def refusal(self, metadata: Metadata) -> grpc.Call:
        with pytest.raises(grpc.RpcError) as caught:
            self.say(metadata)
        assert isinstance(caught.value, grpc.Call)
        return caught.value


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("access")
    tokens, keys, issuer = folder / "tokens.toml", folder / "keys.json", Issuer()
    tokens.write_text(
        token_entry("web", "web-token", EVERYTHING)
        + token_entry("reader", "reader-token", ["voices:read", "status"])
    )
    issuer.publish(keys)
    flags = ["--tokens", str(tokens), "--jwt-keys", str(keys)]
    named = ["--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE]
    with running_server("--engine", "fake", *flags, *named) as server:
        yield Guarded(server, tokens, keys, issuer)


def test_a_token_opens_what_its_scopes_say(guarded: Guarded) -> None:
    guarded.say(bearer("web-token"))
    error = guarded.refusal(bearer("reader-token"))
    assert error.code() is grpc.StatusCode.PERMISSION_DENIED
    assert reason_of(error) == "NOT_ALLOWED"  # type: ignore[arg-type]
    assert "reader lacks the scope synthesize" in error.details()
    with guarded.channel() as channel:
        stub = voices_pb2_grpc.VoiceServiceStub(channel)
        stub.ListVoices(voices_pb2.ListVoicesRequest(), metadata=bearer("reader-token"))


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ((), "TOKEN_MISSING"),
        (bearer("wrong"), "TOKEN_INVALID"),
        ((("authorization", "Basic d2ViOndlYg=="),), "TOKEN_INVALID"),
        ((("authorization", "Bearer"),), "TOKEN_INVALID"),
        ((("authorization", ""),), "TOKEN_INVALID"),
        (bearer("web-token") * 2, "TOKEN_INVALID"),
        (bearer("x" * 9000), "TOKEN_INVALID"),
    ],
)
def test_without_a_good_token_nothing_is_said(
    guarded: Guarded, metadata: Metadata, reason: str
) -> None:
    error = guarded.refusal(metadata)
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert reason_of(error) == reason  # type: ignore[arg-type]
    assert dict(error.trailing_metadata())["x-request-id"]


def test_the_scheme_is_read_in_any_case(guarded: Guarded) -> None:
    guarded.say((("authorization", "bearer web-token"),))


def test_a_jwt_opens_what_its_scope_says(guarded: Guarded) -> None:
    guarded.say(bearer(guarded.issuer.token()))
    guarded.say(bearer(guarded.issuer.token(aud=["other", AUDIENCE])))
    error = guarded.refusal(bearer(guarded.issuer.token(scope="status admin")))
    assert error.code() is grpc.StatusCode.PERMISSION_DENIED


def unsigned(issuer: Issuer) -> str:
    _, claims, _ = issuer.token().split(".")
    head = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "one"}).encode())
    return f"{head.decode().rstrip('=')}.{claims}."


def signed_with_the_public_key(issuer: Issuer) -> str:
    """HMAC whose secret is the public key, which everybody knows."""
    import hashlib
    import hmac

    _, claims, _ = issuer.token().split(".")
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "one"}).encode())
    signed = f"{head.decode().rstrip('=')}.{claims}"
    mac = hmac.new(issuer.pem, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


@pytest.mark.parametrize(
    "make",
    [
        lambda issuer: issuer.token(exp=int(time.time()) - 3600),
        lambda issuer: issuer.token(exp=None),
        lambda issuer: issuer.token(nbf=int(time.time()) + 3600),
        lambda issuer: issuer.token(iss="https://elsewhere.example.org/"),
        lambda issuer: issuer.token(aud="other"),
        lambda issuer: issuer.token(sub=None),
        lambda issuer: issuer.token(sub="x" * 200),
        lambda _: Issuer().token(),  # a key that nobody published
        lambda issuer: Issuer(kid="two").token(),
        unsigned,
        signed_with_the_public_key,
        lambda issuer: issuer.token()[:-4] + "AAAA",
        lambda _: "a.b.c",
    ],
)
def test_a_jwt_that_is_not_the_issuers_opens_nothing(
    guarded: Guarded, make: Callable[[Issuer], str]
) -> None:
    error = guarded.refusal(bearer(make(guarded.issuer)))
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert reason_of(error) == "TOKEN_INVALID"  # type: ignore[arg-type]


def test_every_kind_of_call_is_refused_unread(guarded: Guarded) -> None:
    """Also one whose message is large: nothing of it is waited for."""
    with guarded.channel() as channel:
        tts = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        voices = voices_pb2_grpc.VoiceServiceStub(channel)
        upload = voices_pb2.CreateVoiceRequest(name="mine", prompt=bytes(10_000_000))
        calls: list[Callable[[], Any]] = [
            lambda: list(tts.Synthesize(iter([tts_pb2.SynthesizeRequest(text="Hi.")]))),
            lambda: list(tts.SynthesizeText(SPEECH)),
            lambda: tts.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text="Hi.")),
            lambda: voices.CreateVoice(upload),
        ]
        for call in calls:
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED  # type: ignore[attr-defined]


def test_health_is_open_and_reflection_asks_for_any_token(guarded: Guarded) -> None:
    with guarded.channel() as channel:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        ask = [reflection_pb2.ServerReflectionRequest(list_services="")]
        assert list(stub.ServerReflectionInfo(iter(ask), metadata=bearer("reader-token")))
        with pytest.raises(grpc.RpcError) as caught:
            list(stub.ServerReflectionInfo(iter(ask)))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED  # type: ignore[attr-defined]


def test_a_token_that_is_struck_out_opens_nothing_any_more(guarded: Guarded) -> None:
    before = guarded.tokens.read_text()
    guarded.tokens.write_text(before + token_entry("new", "new-token", ["synthesize"]))
    wait_for(lambda: _opens(guarded, "new-token"))
    guarded.tokens.write_text(before)
    wait_for(lambda: not _opens(guarded, "new-token"))
    guarded.say(bearer("web-token"))


def test_a_file_that_was_spoiled_keeps_its_old_content(guarded: Guarded) -> None:
    before = guarded.tokens.read_text()
    guarded.tokens.write_text("[[token]]\nname = 'web'\n")
    fault = "files changed, and are wrong: the old content holds"
    wait_for(lambda: _opens(guarded, "web-token") and _logged(guarded, fault))
    assert _logged(guarded, fault)[-1]["fault"].startswith("token 1: sha256: must be the 64")
    guarded.tokens.write_text(before)
    guarded.say(bearer("web-token"))


def test_the_log_names_the_client_and_never_the_token(guarded: Guarded) -> None:
    guarded.say(bearer("web-token"))
    guarded.refusal(bearer("very-secret"))
    token = guarded.issuer.token()
    guarded.say(bearer(token))
    wait_for(
        lambda: (
            {"web", "anna"} <= {line.get("client") for line in _logged(guarded, "call ended")}
            and any(line.get("fault") == "unknown" for line in _logged(guarded, "call ended"))
        )
    )
    log = guarded.server.stderr.read_text()
    assert not any(secret in log for secret in ("web-token", "very-secret", token))


async def test_the_python_client_sends_its_token(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = guarded.server.address
    async with Client(address, token="web-token") as client:
        assert (await client.info()).engine == "fake"
        assert await client.voices()
        assert (await client.synthesize_file("One two.")).audio
    async with Client(address) as client:
        with pytest.raises(NotAllowedError, match="TOKEN_MISSING"):
            await client.capacity()
    with pytest.raises(ValueError, match="visible ASCII"):
        Client(address, token="two words")
    (tmp_path / "token").write_text("reader-token\n")
    named = ["--server", address, "--token-file", str(tmp_path / "token")]
    assert await asyncio.to_thread(main, ["info", *named]) == 0
    monkeypatch.setenv("INTONE_TOKEN", "wrong")
    assert await asyncio.to_thread(main, ["--server", address, "info"]) == 1


def test_every_method_has_a_scope() -> None:
    methods = {
        f"/{service.full_name}/{method.name}"
        for module in (tts_pb2, voices_pb2, status_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    assert set(SCOPES) == methods


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("name = 1", "the file may have tables [[token]] and nothing else"),
        ("[[token]]\nname = 'a b'", "token 1: name: must be"),
        ("[[token]]\nname = 'a'\nsha256 = 'ABC'", "token 1: sha256: must be the 64 lowercase"),
        (token_entry("a", "t", ["speak"]), "token 1: scopes: must be a list of some of"),
        (token_entry("a", "t", ["status"]) * 2, "token 2: sha256: another token has the same"),
        (token_entry("a", "t", ["status"], max_streams=-1), "token 1: max_streams: must be"),
        (token_entry("a", "t", ["status"], streams=1), "token 1: streams: is not known"),
        ("[[token]", "not TOML"),
    ],
)
def test_a_wrong_file_ends_the_start(tmp_path: Path, content: str, fault: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(content)
    server = start_server(tmp_path, "--engine", "fake", "--tokens", str(path))
    assert server.process.wait(30) == 1
    assert f"intone-server: --tokens: {fault}" in server.stderr.read_text()
    assert server.process.stdout is not None
    server.process.stdout.close()


def test_without_reflection_nothing_is_described() -> None:
    with (
        running_server("--engine", "fake", "--reflection", "false") as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            list(stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest()])))
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined]
        status_pb2_grpc.StatusServiceStub(channel).GetCapacity(status_pb2.GetCapacityRequest())


def test_keys_that_are_not_public_are_refused(tmp_path: Path) -> None:
    from intone_server.access.jwts import parse_keys

    secret = {"kty": "oct", "k": base64.urlsafe_b64encode(b"x" * 32).decode()}
    with pytest.raises(ValueError, match="symmetric"):
        parse_keys([json.dumps({"keys": [secret]}).encode()])
    private = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(Issuer().key))
    with pytest.raises(ValueError, match="private"):
        parse_keys([json.dumps({"keys": [private]}).encode()])
    with pytest.raises(ValueError, match="JWKS"):
        parse_keys([b"[]"])


def _opens(guarded: Guarded, token: str) -> bool:
    try:
        guarded.say(bearer(token))
    except grpc.RpcError:
        return False
    return True


def _logged(guarded: Guarded, event: str) -> list[dict[str, Any]]:
    return [line for line in guarded.server.logs() if line["event"] == event]
