"""One segment being spoken."""

import enum
import itertools
from dataclasses import dataclass
from typing import Protocol

from intone_server.engines.base import Sampling, VoiceRef
from intone_server.errors import IntoneError
from intone_server.transitions import change


class GenerationStatus(enum.Enum):
    """QUEUED -> RUNNING -> COMPLETED | CANCELLED | FAILED, and QUEUED -> CANCELLED | EXPIRED.

    A generation whose worker is lost before its first audio goes back from RUNNING to QUEUED.
    """

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    EXPIRED = "expired"


_NEXT = {
    GenerationStatus.QUEUED: frozenset(
        {
            GenerationStatus.RUNNING,
            GenerationStatus.CANCELLED,
            GenerationStatus.EXPIRED,
            GenerationStatus.FAILED,
        }
    ),
    GenerationStatus.RUNNING: frozenset(
        {
            GenerationStatus.QUEUED,
            GenerationStatus.COMPLETED,
            GenerationStatus.CANCELLED,
            GenerationStatus.FAILED,
        }
    ),
}


class Priority(enum.IntEnum):
    """Order of service: lower first."""

    INTERACTIVE = 0
    STANDARD = 1
    BATCH = 2


class Listener(Protocol):
    """Who hears a call. Times are those of the scheduler's clock, `time.monotonic`."""

    def dry_at(self) -> float | None:
        """When all that was sent will have been heard; None while nothing was heard of the text
        that is being spoken."""


class Nobody:
    """A listener who has heard nothing yet."""

    def dry_at(self) -> float | None:
        return None


NOBODY = Nobody()


@dataclass(frozen=True, slots=True)
class Later:
    """The listener of audio that nobody hears while it is made, who wants it `at` some time."""

    at: float

    def dry_at(self) -> float | None:
        return self.at


class Observer(Protocol):
    """Hears of one generation; called on the event loop, never after `Generation.cancel`."""

    def on_started(self) -> None:
        """A replica has begun. Called a second time if that replica was lost."""

    def on_audio(self, samples: bytes) -> None:
        """More audio: float32 native-endian mono samples at the model's rate."""

    def on_completed(self, *, no_end: bool) -> None:
        """All audio has come; `no_end`: the model reached its own length cap."""

    def on_failed(self, error: IntoneError) -> None:
        """No more audio will come."""


class Unobserved:
    """Of a generation that is only thought of."""

    def on_started(self) -> None: ...

    def on_audio(self, samples: bytes) -> None: ...

    def on_completed(self, *, no_end: bool) -> None: ...

    def on_failed(self, error: IntoneError) -> None: ...


class Canceller(Protocol):
    """Where a live generation is: the queue or a replica."""

    def forget(self, generation: "Generation") -> None:
        """Take it out, now."""


class Generation:
    """One segment on its way through the queue and a replica.

    `estimated_seconds` of audio, from the text; `max_queue_wait_seconds` or None. The
    two waits, `queue_seconds` and `run_seconds`, are known when they are over. `owner` is one for
    all generations of a call that has several at the same time. `priority`, `client` (whoever is to
    get a fair share) and `listener` decide who is next. `made_seconds` of audio have come so far.
    """

    _ids = itertools.count(1)

    def __init__(
        self,
        *,
        text: str,
        voice: VoiceRef,
        sampling: Sampling,
        seed: int,
        estimated_seconds: float,
        observer: Observer,
        max_queue_wait_seconds: float | None = None,
        priority: Priority = Priority.STANDARD,
        client: str = "",
        listener: Listener = NOBODY,
    ) -> None:
        self.id = next(self._ids)
        self.text = text
        self.voice = voice
        self.sampling = sampling
        self.seed = seed
        self.estimated_seconds = estimated_seconds
        self.max_queue_wait_seconds = max_queue_wait_seconds
        self.observer = observer
        self.priority = priority
        self.client = client
        self.listener = listener
        self.owner: object = self
        self.status = GenerationStatus.QUEUED
        self.has_audio = False
        self.made_seconds = 0.0
        self.attempts = 0
        self.queued_at = 0.0
        self.started_at = 0.0
        self.predicted_wait_seconds: float | None = None  # when it came, if anybody asked
        self.queue_seconds = 0.0
        self.run_seconds = 0.0
        self.place: Canceller | None = None

    @property
    def is_over(self) -> bool:
        """Whether the status is final."""
        return self.status not in _NEXT

    def become(self, status: GenerationStatus) -> None:
        """Change the status. An illegal transition is a fault in the program and raises."""
        self.status = change(self.status, status, _NEXT)

    def cancel(self) -> None:
        """End it now, whatever its state; the observer hears nothing more. Idempotent."""
        if self.is_over:
            return
        self.become(GenerationStatus.CANCELLED)
        if self.place is not None:
            self.place.forget(self)
