"""Who calls a simulated pod, and what the listener hears."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from intone_server.engines.base import Sampling, VoiceRef
from intone_server.errors import IntoneError
from intone_server.scheduling.generation import Generation, Priority

if TYPE_CHECKING:
    from benchmarks.simulation import Pod


class Call:
    """One caller of a pod: its segments, each submitted when the one before is over, and its
    listener, who plays audio as it comes. `segments` are seconds of audio; estimates are exact."""

    def __init__(
        self,
        pod: "Pod",
        segments: Sequence[float],
        *,
        priority: Priority = Priority.STANDARD,
        client: str = "",
        max_queue_wait_seconds: float | None = None,
    ) -> None:
        self.pod = pod
        self.segments = list(segments)
        self.priority = priority
        self.client = client
        self.max_queue_wait_seconds = max_queue_wait_seconds
        self.generations: list[Generation] = []
        self.ahead_seconds: list[float] = []  # of each generation when it arrived
        self.heard_at: float | None = None  # the first audio
        self.silence_seconds = 0.0
        self.failed = False
        self.on_over: Callable[[], None] = lambda: None  # all is spoken
        self._dry_at = 0.0

    def dry_at(self) -> float | None:
        return None if self.heard_at is None else self._dry_at

    def speak_next(self) -> None:
        if len(self.generations) == len(self.segments):
            self.on_over()
            return
        generation = Generation(
            text="",
            voice=VoiceRef(""),
            sampling=Sampling(),
            seed=0,
            estimated_seconds=self.segments[len(self.generations)],
            observer=self,
            max_queue_wait_seconds=self.max_queue_wait_seconds,
            priority=self.priority,
            client=self.client,
            listener=self,
        )
        self.generations.append(generation)
        self.ahead_seconds.append(max(0.0, self._dry_at - self.pod.now))
        self.pod.scheduler.submit(generation)

    def cancel(self) -> None:
        del self.segments[len(self.generations) :]
        for generation in self.generations:
            generation.cancel()

    def hear(self, since: float, until: float, seconds: float) -> None:
        """So much audio came evenly in this time."""
        if self.heard_at is None:
            self.heard_at = self._dry_at = since
        self.silence_seconds += max(0.0, since - self._dry_at)
        self._dry_at = max(self._dry_at, since) + seconds
        self.silence_seconds += max(0.0, until - self._dry_at)
        self._dry_at = max(self._dry_at, until)

    def waits(self) -> list[float]:
        """Seconds in the queue of each generation that had a replica."""
        return [g.queue_seconds for g in self.generations if g.attempts]

    def on_started(self) -> None:
        self.pod.starts.append(self.generations[-1])

    def on_audio(self, samples: bytes) -> None: ...

    def on_completed(self, *, no_end: bool) -> None:  # noqa: ARG002 - of the protocol
        self.speak_next()

    def on_failed(self, error: IntoneError) -> None:  # noqa: ARG002 - of the protocol
        self.failed = True
