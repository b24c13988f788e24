"""What happens on a stream: the domain's side of the `SpeechEvent` messages."""

import enum
from dataclasses import dataclass, field

from intone_server.errors import IntoneError
from intone_server.synthesis.segmenter import CommitReason


class SegmentKind(enum.Enum):
    SPEECH = "speech"
    SILENCE = "silence"


class Outcome(enum.Enum):
    COMPLETE = "complete"
    CLEARED = "cleared"
    NO_END = "no_end"
    FAILED = "failed"
    SKIPPED = "skipped"


class NoticeKind(enum.Enum):
    IDLE = "idle"
    DRAINING = "draining"
    SESSION_LIMIT = "session_limit"
    ERROR = "error"


class FinishReason(enum.Enum):
    END_OF_INPUT = "end_of_input"
    IDLE_TIMEOUT = "idle_timeout"
    DRAINED = "drained"
    SESSION_LIMIT = "session_limit"


@dataclass(slots=True)
class Stats:
    """Totals of a stream. Seconds; `first_audio_seconds` is None before any audio."""

    characters: int = 0
    segments: int = 0
    failed_segments: int = 0
    audio_seconds: float = 0.0
    first_audio_seconds: float | None = None
    queue_wait_seconds: float = 0.0
    synthesis_seconds: float = 0.0
    made_seconds: float = 0.0
    underruns: int = 0
    clipped_samples: int = 0

    @property
    def speed(self) -> float:
        """Seconds of audio made per second of synthesis; 0 before any."""
        return self.made_seconds / self.synthesis_seconds if self.synthesis_seconds else 0.0


@dataclass(frozen=True, slots=True)
class Queued:
    segment: int
    position: int
    estimated_wait: float


@dataclass(frozen=True, slots=True)
class SegmentStarted:
    segment: int
    kind: SegmentKind
    start: int
    end: int
    text: str
    voice: str
    sample_offset: int
    seed: int
    reason: CommitReason
    queue_wait: float


@dataclass(frozen=True, slots=True)
class AudioChunk:
    data: bytes
    segment: int
    sample_offset: int
    sample_count: int


@dataclass(frozen=True, slots=True)
class SegmentFinished:
    segment: int
    outcome: Outcome
    sample_count: int
    synthesis_time: float
    error: IntoneError | None = None


@dataclass(frozen=True, slots=True)
class Flushed:
    """`sample_offset` is set when it leaves the timeline."""

    id: str
    sample_offset: int
    cleared: bool


@dataclass(frozen=True, slots=True)
class Cleared:
    id: str
    epoch: int
    dropped_segments: int
    discarded_samples: int
    text_spoken: str
    text_unspoken: str
    text_split_estimated: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """`effective_in` is in seconds from now."""

    kind: NoticeKind
    message: str
    effective_in: float


@dataclass(frozen=True, slots=True)
class Finished:
    reason: FinishReason
    stats: Stats = field(repr=False)


Event = (
    Queued | SegmentStarted | AudioChunk | SegmentFinished | Flushed | Cleared | Notice | Finished
)
