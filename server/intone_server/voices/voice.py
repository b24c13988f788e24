"""A voice as streams see it, whatever it comes from."""

import enum
from dataclasses import dataclass, field

from intone_server.audio.recording import PromptReport
from intone_server.engines.base import EngineVoice, VoiceRef
from intone_server.voices.record import COMMON, VoiceRecord


class Origin(enum.Enum):
    """Where a voice comes from."""

    BUILT_IN = "built_in"
    OPERATOR = "operator"
    CREATED = "created"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """A voice that streams can use.

    `ref` is what the engine is asked for. `file` holds the voice state and `digest` is its SHA-256
    (hexadecimal); for an engine's own voice both are known once it is `loaded`, if it has a state.
    `create_time` is in seconds since 1970, None for voices that were not created.
    """

    name: str
    language: str
    origin: Origin
    ref: VoiceRef
    file: str = ""
    digest: str = ""
    license: str = ""
    loaded: bool = False
    create_time: float | None = None
    labels: dict[str, str] = field(default_factory=dict)
    report: PromptReport | None = None
    owner: str = ""
    space: str = COMMON

    @property
    def id(self) -> tuple[str, str]:
        """What tells it from all others: two clients may have voices of one name."""
        return self.space, self.name

    @property
    def shared(self) -> bool:
        """Whether it was created, and all clients can use it."""
        return self.create_time is not None and self.space == COMMON

    def is_owned_by(self, subject: str) -> bool:
        """Whether a caller may delete and export it as a voice of its own. Where callers are not
        told apart, all of them own what was made there, and no voice of a client with a name."""
        return self.create_time is not None and subject == self.owner


def of_record(voice: VoiceRecord, file: str, *, loaded: bool) -> Voice:
    """A created or imported voice as streams see it."""
    report = None
    if voice.report is not None:
        report = PromptReport(**voice.report | {"warnings": tuple(voice.report["warnings"])})
    return Voice(
        name=voice.name,
        language=voice.language,
        origin=Origin(voice.origin),
        ref=VoiceRef(voice.digest, file),
        file=file,
        digest=voice.digest,
        loaded=loaded,
        create_time=voice.create_time,
        labels=voice.labels,
        report=report,
        owner=voice.owner,
        space=voice.space,
    )


def of_engine(voice: EngineVoice) -> Voice:
    return Voice(
        name=voice.name,
        language=voice.language,
        origin=Origin.OPERATOR if voice.operator else Origin.BUILT_IN,
        ref=VoiceRef(voice.name),
        file=voice.file,
        digest=voice.digest,
        license=voice.license,
        loaded=voice.loaded,
    )
