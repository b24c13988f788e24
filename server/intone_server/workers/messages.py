"""What crosses the pipe between the front and a worker: flat, frozen, one message each."""

from dataclasses import dataclass

from intone_server.engines.base import Ending, EngineInfo, EngineVoice, Sampling


@dataclass(frozen=True, slots=True)
class Generate:
    """To the worker: speak `text` on a free replica. Sent by the scheduler at dispatch."""

    generation_id: int
    text: str
    voice: str
    sampling: Sampling
    seed: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """To the worker: stop this generation within a step. Sent at any time, also after its end."""

    generation_id: int


@dataclass(frozen=True, slots=True)
class LoadVoice:
    """To the worker: make a voice ready. Sent before its first use; answered by VoiceLoaded."""

    name: str


@dataclass(frozen=True, slots=True)
class Stop:
    """To the worker: stop what runs and exit. Sent at shutdown."""


@dataclass(frozen=True, slots=True)
class Ready:
    """From the worker, once: model loaded, warm-up spoken, `replicas` generations may run."""

    info: EngineInfo
    replicas: int


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

    name: str
    voice: EngineVoice | None
    message: str = ""


Command = Generate | Cancel | LoadVoice | Stop
Report = Ready | Unusable | Audio | Finished | Failed | Released | VoiceLoaded
