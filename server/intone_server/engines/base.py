"""What a model library has to offer: the `Engine` protocol and the values that cross it."""

import enum
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from intone_server.audio import Samples


class EngineError(Exception):
    """An engine cannot do what the operator asked. The message says why and what to do."""


class BadState(Exception):
    """A voice state cannot be used with this model. The message, for callers, says why."""


class CloningUnavailable(Exception):
    """The model cannot make voices from recordings. The message, for callers, says why."""


# Why a job failed. Silence instead of such samples would be a wrong one that nobody hears of.
NOT_FINITE = "the model made samples that are no number"


def describe(error: BaseException) -> str:
    """What a library raised and where, without its message, which may quote the user's text."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What the operator chose. `voices` are (name, file) pairs of recordings or voice states.

    `state_directory` is where the first worker leaves the voice states that it computed from
    recordings, so that the other workers and later replacements need not compute them again.
    `voice_cache_bytes` bounds the voice states that a worker keeps in memory, beside those in use.
    `threads` is how many threads a worker computes with; 0 leaves it to the engine. `workers` is
    how many share the machine.
    """

    model: str = ""
    quantize: bool = False
    voices: tuple[tuple[str, str], ...] = ()
    default_voice: str = ""
    state_directory: str = ""
    voice_cache_bytes: int = 1 << 28
    threads: int = 0
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the model draws. None means the engine's own default; units are in the proto."""

    temperature: float | None = None
    decode_steps: int | None = None
    eos_threshold: float | None = None
    noise_clamp: float | None = None
    frames_after_eos: int | None = None


@dataclass(frozen=True, slots=True)
class VoiceRef:
    """A voice, as an engine is asked for it.

    Voices of the model and of the operator go by their name as `key`, without a `file`. Any other
    has its state in `file` and the state's digest as `key`: a name that is deleted and given to
    another voice never brings back the old one.
    """

    key: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class VoiceState:
    """A voice state as a safetensors file, and the SHA-256 (hexadecimal) of its tensors.

    `warnings`, for people, say what may be wrong with the voice.
    """

    data: bytes
    digest: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineVoice:
    """A voice that an engine offers.

    `digest` is the SHA-256 (hexadecimal) of the voice state, empty while it is not `loaded` or
    where the engine has no voice states; `file` then holds the state. `operator` tells a voice
    given at start from a voice of the model.
    """

    name: str
    language: str
    operator: bool = False
    digest: str = ""
    license: str = ""
    loaded: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine is and can do, known once its model is loaded.

    `features` are the `Sampling` fields that it honours, plus "seed", "voice_cloning" (recordings)
    and "voice_import" (voice states). `fingerprint` tells models whose voice states fit from
    others; empty where there are no voice states. A segment of up to `max_segment_characters` code
    points is surely spoken well in one go.
    """

    engine: str
    engine_version: str
    model: str
    languages: tuple[str, ...]
    features: frozenset[str]
    sample_rate_hertz: int
    max_segment_characters: int
    default_voice: str
    voices: tuple[EngineVoice, ...]
    sampling: Sampling = field(default_factory=Sampling)
    fingerprint: str = ""


@dataclass(slots=True)
class Job:
    """One generation, as the engine sees it.

    `ahead_seconds` is how much its listener has left to hear before it. `stop` may be set by any
    thread at any time; the engine looks at it at every step and then ends the job as STOPPED.
    """

    generation_id: int
    text: str
    voice: VoiceRef
    sampling: Sampling
    seed: int
    ahead_seconds: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)


class Ending(enum.Enum):
    """How a job ended."""

    COMPLETE = "complete"
    NO_END = "no_end"  # the model reached its own length cap
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Output:
    """What one step made for one job: float32 mono `samples` of shape (n,), its end, or both.

    After an output with an `ending`, the engine holds nothing of the job any more: no thread of
    the model runs for it.
    """

    generation_id: int
    samples: Samples | None = None
    ending: Ending | None = None
    error: str = ""


class Engine(Protocol):
    """A model library behind a few methods, called by one thread but for `load_voice`.

    A worker calls `load` once, then `attach` once, then the rest. `load` may run in a process
    that is forked later, so it leaves no thread behind that later work needs, and runs no forward
    pass. A process that makes a voice calls `load`, then `make_state` or `check_state`, and ends.
    """

    def load(self, options: EngineOptions) -> None:
        """Check the options, then load the weights. Raises EngineError."""

    def attach(self, replicas: int) -> EngineInfo:
        """Prepare this process to run the model, so many generations at a time (0: as many as the
        engine finds best); load the operator's voices and the default.

        Raises EngineError.
        """

    def load_voice(self, voice: VoiceRef) -> EngineVoice:
        """Make a voice ready to speak, so that `start` need not read or fetch anything for it.

        The one method that another thread calls, while the engine's own thread steps: it may wait
        for the network or a disk, and does not run the model. Raises EngineError.
        """

    def make_state(self, prompt: Samples) -> VoiceState:
        """The voice of a recording: float32 mono samples at the model's rate, at most 30 s.

        Raises CloningUnavailable.
        """

    def check_state(self, data: bytes) -> VoiceState:
        """A voice state from elsewhere (a safetensors file), if it is one of this model.

        Raises BadState.
        """

    def start(self, job: Job) -> None:
        """Begin a job. The caller keeps to `capacity` jobs at a time."""

    def step(self) -> Sequence[Output]:
        """Advance all running jobs by one step (for most engines a frame of 80 ms).

        What goes wrong with one job ends it as FAILED; an exception says that the engine as a
        whole is not fit to go on."""

    @property
    def capacity(self) -> int:
        """How many jobs can run at the same time: the number of replicas. Known after `attach`."""

    @property
    def speeds(self) -> Mapping[int, float]:
        """Seconds of audio per second of all jobs together, by how many run at the same time, as
        far as the engine has measured it in `attach`."""
