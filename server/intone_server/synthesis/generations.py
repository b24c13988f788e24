"""The way of one stream's parts through the scheduler."""

import time

from intone_server.scheduling.generation import Generation, Later, Listener, Priority
from intone_server.scheduling.scheduler import Scheduler
from intone_server.synthesis.events import Queued, Stats
from intone_server.synthesis.part import Part
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.timeline import Timeline

# Where nobody listens, a segment yields to those whose listeners have less than this left.
UNHEARD_SECONDS = 10.0
# A forecast plays the queue forward: with more segments waiting none is made for the metrics alone.
MAX_PREDICTED = 32


class Generations:
    """Submits what is to be spoken, tells the client that it waits, and counts what came of it."""

    def __init__(
        self, config: SpeechConfig, stats: Stats, timeline: Timeline, scheduler: Scheduler
    ) -> None:
        self._config = config
        self._stats = stats
        self._timeline = timeline
        self._scheduler = scheduler

    @property
    def would_wait(self) -> bool:
        """Whether no replica is free now."""
        return self._scheduler.is_full

    def submit(self, part: Part) -> None:
        """Queue the generation of a part. It may start, and tell the part so, before this
        returns."""
        generation = part.generation
        assert generation is not None
        generation.owner = self
        generation.priority, generation.client = self._config.priority, self._config.client
        listener: Listener = self._timeline.playout
        if not self._config.has_listener:
            listener = Later(time.monotonic() + UNHEARD_SECONDS)
        generation.listener = listener
        generation.predicted_wait_seconds = self._predict(generation)
        self._scheduler.submit(generation)
        if not self._config.queue_events:
            return
        position = self._scheduler.position(generation)
        if position is not None:
            self._timeline.aside(
                Queued(
                    part.segment,
                    position,
                    generation.predicted_wait_seconds or 0.0,
                    generation.estimated_seconds,
                    self._timeline.elapsed(),
                    part.item,
                )
            )

    def submit_again(self, part: Part) -> None:
        """Speak a part once more whose worker was lost. No more often: it may be the text that
        brings workers down."""
        part.begin_again(attempts=1)
        self.submit(part)

    def _predict(self, generation: Generation) -> float | None:
        """How long it will wait, if the client wants to know, or it costs little to find out."""
        # BATCH may have to wait for listeners even if a replica is idle.
        if not self._scheduler.is_full and generation.priority is not Priority.BATCH:
            return 0.0
        waiting = sum(self._scheduler.waiting.values())
        if not self._config.queue_events and waiting >= MAX_PREDICTED:
            return None
        return self._scheduler.outlook.forecast(
            priority=generation.priority,
            client=generation.client,
            estimated_seconds=generation.estimated_seconds,
            listener=generation.listener,
        ).wait_seconds

    def count(self, part: Part) -> None:
        """Take a part into the totals whose generation is over."""
        self._stats.queue_wait_seconds += part.queue_seconds
        self._stats.synthesis_seconds += part.run_seconds
        self._stats.made_seconds += part.made_samples / self._config.model_rate_hertz
