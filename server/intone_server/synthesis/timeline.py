"""What a stream still has to tell its client: audio and events, in the order they are sent."""

import time
from collections import deque
from dataclasses import replace

from intone_server.audio.encoding import encode
from intone_server.errors import IntoneError
from intone_server.synthesis.events import (
    AudioChunk,
    Cleared,
    Event,
    Flushed,
    Notice,
    NoticeKind,
    Outcome,
    SegmentFinished,
    SegmentKind,
    SegmentStarted,
    Stats,
)
from intone_server.synthesis.part import Part
from intone_server.synthesis.playout import Playout
from intone_server.synthesis.speech import SpeechConfig


class Timeline:
    """Parts give audio while they are being spoken; plain events keep their place between them.

    Offsets are given to audio as it leaves, so what is dropped is never counted. An error stands
    for the end of the call.
    """

    def __init__(self, config: SpeechConfig, stats: Stats) -> None:
        self._config = config
        self._rate = config.sample_rate_hertz
        self._stats = stats
        self._items: deque[Part | Event | IntoneError] = deque()
        self._asides: deque[Event] = deque()
        self._failure: IntoneError | None = None
        self._epochs = 0
        self.epoch = 0  # of the event that was taken last
        self.sample_offset = 0
        self.playout = Playout()
        self.first_text_at: float | None = None

    def __len__(self) -> int:
        """Items that wait, parts that are being spoken among them."""
        return len(self._items) + len(self._asides)

    @property
    def unsent_samples(self) -> int:
        """Samples held in memory."""
        return sum(item.unsent_samples for item in self._items if isinstance(item, Part))

    @property
    def failure(self) -> IntoneError | None:
        """Why nothing at all was spoken, if so: the error of the first segment that failed."""
        return None if self._stats.audio_seconds else self._failure

    def add(self, item: Part | Event) -> None:
        """Put something at the end."""
        self._items.append(item)

    def aside(self, event: Event) -> None:
        """Tell the client as soon as possible, before what waits in order."""
        self._asides.append(event)

    def take(self) -> Event | None:
        """The next event, if there is one now. Raises the IntoneError that ends the call."""
        if self._asides:
            return self._asides.popleft()
        while self._items:
            head = self._items[0]
            if isinstance(head, Part):
                event = self._take_from(head)
                if event is not None:
                    return event
                if self._items and self._items[0] is head:
                    return None  # it is still being spoken
                continue
            self._items.popleft()
            if isinstance(head, IntoneError):
                raise head
            if isinstance(head, Flushed):
                return replace(head, sample_offset=self.sample_offset)
            if isinstance(head, Cleared):
                self.epoch = head.epoch
            return head
        return None

    def clear(
        self, clear_id: str, split: tuple[str, str, bool], flushes: list[Flushed], queued: int
    ) -> None:
        """Drop all that is unsent, and say so in the order of the contract.

        `split` is the text heard and not heard and whether that is an estimate; `flushes` are
        answers that were not yet here; `queued` counts the segments that never got this far.
        """
        finished, answered, discarded, dropped = self._drop(Outcome.CLEARED, None)
        self._epochs += 1
        cleared = Cleared(clear_id, self._epochs, dropped + queued, discarded, *split)
        self._items.extend([*finished, *answered, *flushes, cleared])
        self.playout.stopped()

    def fail(self, error: IntoneError) -> None:
        """Drop all that is unsent and end the call with `error`.

        A notice goes first: a client that reacts to it by writing no more sees the true status.
        """
        finished, answered, _, _ = self._drop(Outcome.FAILED, error)
        notice = Notice(NoticeKind.ERROR, f"{error.reason}: {error.message}", 0.0)
        self._items.extend([*finished, *answered, notice, error])

    def close(self) -> None:
        """Nobody is left to tell."""
        self._drop(Outcome.CLEARED, None)

    def _drop(
        self, outcome: Outcome, error: IntoneError | None
    ) -> tuple[list[SegmentFinished], list[Event], int, int]:
        """Empty the timeline: events that end announced parts, other events that must still be
        sent, samples discarded, and parts of which nothing was sent."""
        finished: list[SegmentFinished] = []
        others: list[Event] = []
        discarded = dropped = 0
        lost_audio = False
        for item in self._items:
            if isinstance(item, Part):
                lost_audio = True
                discarded += item.drop(outcome, error)
                if item.announced:
                    finished.append(self._finished(item))
                else:
                    dropped += 1
            elif isinstance(item, Flushed):
                others.append(Flushed(item.id, 0, cleared=lost_audio or item.cleared))
            elif not isinstance(item, IntoneError):
                others.append(item)
        self._items.clear()
        return finished, others, discarded, dropped

    def _take_from(self, part: Part) -> Event | None:
        if part.started and not part.announced:
            part.announced = True
            part.sample_offset = self.sample_offset
            if self._config.segment_events:
                return self._started(part)
        if part.has_audio:
            return self._chunk(part)
        if part.outcome is None:
            return None
        self._items.popleft()
        finished = self._finished(part)
        if self._config.segment_events or part.outcome is not Outcome.COMPLETE:
            return finished
        return None

    def _chunk(self, part: Part) -> AudioChunk:
        now = time.monotonic()
        if self.first_text_at is not None and self._stats.first_audio_seconds is None:
            self._stats.first_audio_seconds = now - self.first_text_at
        if self.playout.is_dry(now):
            self._stats.underruns += 1
        samples = part.take_chunk(self._rate)
        data, clipped = encode(samples, self._config.encoding)
        self._stats.clipped_samples += clipped
        seconds = len(samples) / self._rate
        self._stats.audio_seconds += seconds
        self.playout.sent(now, seconds)
        chunk = AudioChunk(data, part.segment, self.sample_offset, len(samples))
        self.sample_offset += len(samples)
        return chunk

    def _started(self, part: Part) -> SegmentStarted:
        generation = part.generation
        return SegmentStarted(
            segment=part.segment,
            kind=part.kind,
            start=part.start,
            end=part.end,
            text=part.text,
            voice=self._config.voice if part.kind is SegmentKind.SPEECH else "",
            sample_offset=part.sample_offset,
            seed=part.seed,
            reason=part.reason,
            queue_wait=generation.queue_seconds if generation else 0.0,
        )

    def _finished(self, part: Part) -> SegmentFinished:
        outcome, generation = part.outcome, part.generation
        assert outcome is not None
        if outcome is Outcome.FAILED:
            self._stats.failed_segments += 1
            self._failure = self._failure or part.error
        return SegmentFinished(
            segment=part.segment,
            outcome=outcome,
            sample_count=part.sent_samples,
            synthesis_time=generation.run_seconds if generation else 0.0,
            error=part.error,
        )
