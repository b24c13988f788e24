"""What happens on a stream: the domain's side of the `SpeechEvent` messages."""

import enum
from dataclasses import dataclass, field

from intone_server.errors import IntoneError
from intone_server.synthesis.segmenter import CommitReason


class SegmentKind(enum.Enum):
    """What a segment is made of."""

    SPEECH = "speech"
    SILENCE = "silence"
    AUDIO = "audio"
    REUSE = "reuse"


class Outcome(enum.Enum):
    """How a segment ended."""

    COMPLETE = "complete"
    CLEARED = "cleared"
    NO_END = "no_end"
    FAILED = "failed"
    SKIPPED = "skipped"


class NoticeKind(enum.Enum):
    """What a notice is about."""

    IDLE = "idle"
    DRAINING = "draining"
    SESSION_LIMIT = "session_limit"
    TEXT_ALTERED = "text_altered"
    ERROR = "error"


class FinishReason(enum.Enum):
    """Why a stream ended."""

    END_OF_INPUT = "end_of_input"
    IDLE_TIMEOUT = "idle_timeout"
    DRAINED = "drained"
    SESSION_LIMIT = "session_limit"


@dataclass(frozen=True, slots=True)
class ItemRef:
    """An item of a script: its place, from 0, and the id that the client gave it, if any."""

    index: int
    id: str


@dataclass(slots=True)
class Stats:
    """Totals of a stream. Seconds; `first_audio_seconds` is None before any audio.

    `max_in_flight`: greatest number of segments that ran at the same time.
    """

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
    max_in_flight: int = 0
    wall_seconds: float = 0.0

    @property
    def speed(self) -> float:
        """Seconds of audio made per second of synthesis; 0 before any."""
        return self.made_seconds / self.synthesis_seconds if self.synthesis_seconds else 0.0


@dataclass(frozen=True, slots=True)
class Queued:
    """A segment waits for a replica, behind `position` others; or an item of a script, whose first
    segment it is, was planned. `at_seconds` is on the stream's clock."""

    segment: int
    position: int
    estimated_wait_seconds: float
    estimated_audio_seconds: float
    at_seconds: float
    item: ItemRef | None = None
    planned: bool = False


@dataclass(frozen=True, slots=True)
class SegmentStarted:
    """A segment is being spoken. `start` and `end` are code points over all text of the stream."""

    segment: int
    kind: SegmentKind
    start: int
    end: int
    text: str
    voice: str
    sample_offset: int
    seed: int
    reason: CommitReason
    queue_wait_seconds: float
    at_seconds: float
    item: ItemRef | None = None


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """Samples in the stream's encoding; offset and count are samples on its timeline."""

    data: bytes
    segment: int
    sample_offset: int
    sample_count: int


@dataclass(frozen=True, slots=True)
class SegmentFinished:
    """A segment has ended; `sample_count` of it were sent."""

    segment: int
    outcome: Outcome
    sample_count: int
    synthesis_seconds: float
    at_seconds: float
    error: IntoneError | None = None
    item: ItemRef | None = None
    ends_item: bool = False


@dataclass(frozen=True, slots=True)
class Flushed:
    """`sample_offset` is set when it leaves the timeline."""

    id: str
    sample_offset: int
    cleared: bool


@dataclass(frozen=True, slots=True)
class Cleared:
    """A barge-in took effect. Samples were made and never sent; texts are those of the epoch."""

    id: str
    epoch: int
    dropped_segments: int
    discarded_samples: int
    text_spoken: str
    text_unspoken: str
    text_split_estimated: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the client may want to act on; it takes effect so long from now."""

    kind: NoticeKind
    message: str
    effective_in_seconds: float


@dataclass(frozen=True, slots=True)
class Finished:
    """The stream has ended."""

    reason: FinishReason
    stats: Stats = field(repr=False)


Event = (
    Queued | SegmentStarted | AudioChunk | SegmentFinished | Flushed | Cleared | Notice | Finished
)
