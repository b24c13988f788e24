"""What crosses the pipe between the front and a worker: flat, frozen, one message each."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from intone_server.audio.encoding import Encoding
from intone_server.audio.recording import PromptReport
from intone_server.engines.base import (
    Ending,
    EngineInfo,
    EngineVoice,
    Sampling,
    VoiceRef,
    VoiceState,
)


@dataclass(frozen=True, slots=True)
class Generate:
    """To the worker: speak `text` on a free replica. Sent by the scheduler at dispatch.

    `ahead_seconds` is how much the listener has left to hear before it.
    """

    generation_id: int
    text: str
    voice: VoiceRef
    sampling: Sampling
    seed: int
    ahead_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Cancel:
    """To the worker: stop this generation within a step. Sent at any time, also after its end."""

    generation_id: int


@dataclass(frozen=True, slots=True)
class LoadVoice:
    """To the worker: make a voice ready. Sent before its first use; answered by VoiceLoaded."""

    voice: VoiceRef


@dataclass(frozen=True, slots=True)
class Stop:
    """To the worker: stop what runs and exit. Sent at shutdown."""


@dataclass(frozen=True, slots=True)
class Ready:
    """From the worker, once: model loaded, warm-up spoken, `replicas` generations may run.

    `speeds` is what the engine measured: see `Engine.speeds`.
    """

    info: EngineInfo
    replicas: int
    speeds: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Unusable:
    """From the worker, instead of Ready: it cannot start, and why. The worker then exits.

    `expected` tells a fault that the operator can mend from one in the program.
    """

    message: str
    expected: bool


@dataclass(frozen=True, slots=True)
class Audio:
    """From the worker: more of a generation, float32 native-endian mono samples."""

    generation_id: int
    samples: bytes


@dataclass(frozen=True, slots=True)
class Finished:
    """From the worker: no more audio of this generation. `ending` is not FAILED."""

    generation_id: int
    ending: Ending


@dataclass(frozen=True, slots=True)
class Failed:
    """From the worker: this generation failed; `message` is for the log, not for clients."""

    generation_id: int
    message: str


@dataclass(frozen=True, slots=True)
class Released:
    """From the worker, after Finished or Failed: the replica may take another generation."""

    generation_id: int


@dataclass(frozen=True, slots=True)
class VoiceLoaded:
    """From the worker: the answer to LoadVoice; `voice` is None if it failed with `message`."""

    key: str
    voice: EngineVoice | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class MakeVoice:
    """To a process that makes one voice: what was uploaded, a recording or a voice state.

    `sample_rate_hertz` is the model's, at which it wants the recording.
    """

    sample_rate_hertz: int
    prompt: bytes = b""
    state: bytes = b""


@dataclass(frozen=True, slots=True)
class VoiceMade:
    """From it: the voice, and what was heard in the recording if it was one. It then exits."""

    state: VoiceState
    report: PromptReport | None


class Refusal(enum.Enum):
    """Why no voice was made of an upload."""

    BAD_AUDIO = enum.auto()
    BAD_STATE = enum.auto()
    CLONING_UNAVAILABLE = enum.auto()


@dataclass(frozen=True, slots=True)
class VoiceRefused:
    """From it, instead of VoiceMade; `message` is for the caller."""

    refusal: Refusal
    message: str


@dataclass(frozen=True, slots=True)
class ReadAudio:
    """To a process that reads audio: a file if `encoding` is None, or else mono samples without a
    header at `from_hertz`. Sent once the sound before is answered."""

    data: bytes
    encoding: Encoding | None
    from_hertz: int
    to_hertz: int


@dataclass(frozen=True, slots=True)
class AudioRead:
    """From it: samples of that sound, float32 native-endian; the last of them unless `more`."""

    samples: bytes
    more: bool


@dataclass(frozen=True, slots=True)
class AudioRefused:
    """From it, instead of AudioRead; `message` is for the caller."""

    message: str


Command = Generate | Cancel | LoadVoice | Stop | MakeVoice | ReadAudio
Report = (
    Ready
    | Unusable
    | Audio
    | Finished
    | Failed
    | Released
    | VoiceLoaded
    | VoiceMade
    | VoiceRefused
    | AudioRead
    | AudioRefused
)
