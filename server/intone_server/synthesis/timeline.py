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
    Finished,
    FinishReason,
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
        self.first_failure: IntoneError | None = None
        self._epochs = 0
        self._playout = Playout()
        self._in_text = False  # the listener has begun a text that goes on
        self._spoke = False
        self._first_text_at: float | None = None
        self._sample_offset = 0
        self.epoch = 0  # of the event that was taken last
        self.has_finished = False

    def __len__(self) -> int:
        """Items that wait, parts that are being spoken among them."""
        return len(self._items) + len(self._asides)

    @property
    def has_items(self) -> bool:
        """Whether anything waits in order; notices and the like do not."""
        return bool(self._items)

    @property
    def has_audio(self) -> bool:
        """Whether a part is unfinished or not wholly sent."""
        return any(isinstance(item, Part) for item in self._items)

    def text_came(self, now: float) -> None:
        """Text that will be spoken came at `now`."""
        if self._first_text_at is None:
            self._first_text_at = now

    def all_said(self) -> None:
        """There is no more text now: what the listener hears of it next is silence as it should
        be."""
        self._in_text = False

    def heard_samples(self, now: float) -> int:
        """Where on the timeline a listener is who plays as audio arrives."""
        ahead = self._playout.ahead(now) * self._rate
        return self._sample_offset - round(ahead)

    def finish(self, reason: FinishReason) -> None:
        """Nothing more will come. Idempotent, and undone by `clear`."""
        if not self.has_finished:
            self.has_finished = True
            self._items.append(Finished(reason, self._stats))

    @property
    def unsent_samples(self) -> int:
        """Samples held in memory."""
        return sum(item.unsent_samples for item in self._items if isinstance(item, Part))

    @property
    def failure(self) -> IntoneError | None:
        """Why nothing at all was spoken, if so: the error of the first segment that failed."""
        return None if self._spoke else self.first_failure

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
                return replace(head, sample_offset=self._sample_offset)
            if isinstance(head, Cleared):
                self.epoch = head.epoch
            return head
        return None

    def clear(
        self, clear_id: str, split: tuple[str, str, bool], flushes: list[Flushed], uncut: int
    ) -> None:
        """Drop all that is unsent, and say so in the order of the contract.

        `split` is the text heard and not heard and whether that is an estimate; `flushes` are
        answers that were not yet here; `uncut` is 1 if there was text that never got this far.
        """
        finished, answered, discarded, dropped = self._drop(Outcome.CLEARED, None)
        self._epochs += 1
        cleared = Cleared(clear_id, self._epochs, dropped + uncut, discarded, *split)
        self._items.extend([*finished, *answered, *flushes, cleared])
        self._playout.stopped()
        if self._stats.first_audio_seconds is None:
            self._first_text_at = None

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
                was_over = item.outcome is not None
                samples = item.drop(outcome, error)
                discarded += samples
                lost_audio = lost_audio or bool(samples) or not was_over
                if not item.sent_samples and item.outcome is outcome:
                    dropped += 1
                if item.started or item.outcome is not outcome:
                    finished += self._report(item)
            elif isinstance(item, Finished):
                self.has_finished = False
            elif isinstance(item, Flushed):
                others.append(Flushed(item.id, 0, cleared=lost_audio or item.cleared))
            elif not isinstance(item, IntoneError):
                others.append(item)
        self._items.clear()
        return finished, others, discarded, dropped

    def _take_from(self, part: Part) -> Event | None:
        if part.started and not part.announced:
            part.announced = True
            part.sample_offset = self._sample_offset
            if self._config.segment_events:
                return self._started(part)
        if part.has_audio:
            return self._chunk(part)
        if part.outcome is None:
            return None
        self._items.popleft()
        return next(iter(self._report(part)), None)

    def _chunk(self, part: Part) -> AudioChunk:
        now = time.monotonic()
        if self._first_text_at is not None and self._stats.first_audio_seconds is None:
            self._stats.first_audio_seconds = now - self._first_text_at
        if self._in_text and self._playout.is_dry(now):
            self._stats.underruns += 1
        self._in_text = True
        self._spoke = self._spoke or part.kind is SegmentKind.SPEECH
        samples = part.take_chunk(self._rate)
        data, clipped = encode(samples, self._config.encoding)
        self._stats.clipped_samples += clipped
        seconds = len(samples) / self._rate
        self._stats.audio_seconds += seconds
        self._playout.sent(now, seconds)
        chunk = AudioChunk(data, part.segment, self._sample_offset, len(samples))
        self._sample_offset += len(samples)
        return chunk

    def _started(self, part: Part) -> SegmentStarted:
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
            queue_wait_seconds=part.queue_seconds,
        )

    def _report(self, part: Part) -> list[SegmentFinished]:
        """Count a part that is over, and its event if the client wants one."""
        outcome = part.outcome
        assert outcome is not None
        if outcome is Outcome.FAILED:
            self._stats.failed_segments += 1
            self.first_failure = self.first_failure or part.error
        if outcome is Outcome.COMPLETE and not self._config.segment_events:
            return []
        return [
            SegmentFinished(
                segment=part.segment,
                outcome=outcome,
                sample_count=part.sent_samples,
                synthesis_seconds=part.run_seconds,
                error=part.error,
            )
        ]
