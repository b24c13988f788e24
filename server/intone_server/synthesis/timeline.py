"""What a stream still has to tell its client: audio and events, in the order they are sent."""

import time
from collections import deque
from dataclasses import replace

from intone_server.audio.encoding import Encoded
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
from intone_server.synthesis.output import Output
from intone_server.synthesis.part import Part
from intone_server.synthesis.playout import Playout
from intone_server.synthesis.speech import SpeechConfig

# How long before the listener runs dry the end of a part is sent at the latest.
TAIL_SECONDS = 0.1


class Timeline:
    """Parts give audio while they are being spoken; plain events keep their place between them.

    Offsets are given to audio as it leaves, so what is dropped is never counted. An error stands
    for the end of the call.
    """

    def __init__(self, config: SpeechConfig, stats: Stats, *, gives_tails: bool = True) -> None:
        """`gives_tails`: rather than let the listener miss the end of a part, end its run early."""
        self._config = config
        self._gives_tails = gives_tails
        self._rate = config.sample_rate_hertz
        self._stats = stats
        self.began_at = time.monotonic()
        self._output = Output(config)
        self._sounding: Part | None = None  # that of the last chunk
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

    def elapsed(self, at: float | None = None) -> float:
        """Seconds from the beginning of the stream to `at`, or now."""
        return (time.monotonic() if at is None else at) - self.began_at

    def text_came(self, now: float) -> None:
        """Text that will be spoken came at `now`."""
        if self._first_text_at is None:
            self._first_text_at = now

    def all_said(self) -> None:
        """There is no more text now: what the listener hears of it next is silence as it should
        be."""
        self._in_text = False

    def look_at_head(self) -> None:
        """Note whether the part that is being sent was sent to its end just now."""
        head = self._items[0] if self._items else None
        if isinstance(head, Part):
            head.all_sent = self._output.has_all_of(head)
            self._count(head)

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
        """Samples of the model that are held in memory."""
        return sum(item.unsent_samples for item in self._items if isinstance(item, Part))

    @property
    def tail_due_at(self) -> float | None:
        """When the end of a part that is kept back until the next one goes on has to be sent, or
        the listener would miss it; None if there is no such end."""
        waits = self._gives_tails and self._output.keeps_tail
        return self._playout.dry_at - TAIL_SECONDS if waits else None

    def give_tail(self) -> None:
        """Send it now."""
        self._output.give_tail()

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
            if isinstance(head, Finished) and (rest := self._output.finish()).data:
                assert self._sounding is not None
                return self._chunk(rest, self._sounding)
            self._items.popleft()
            if isinstance(head, IntoneError):
                raise head
            if isinstance(head, Flushed):
                return replace(head, sample_offset=self._output.position)
            if isinstance(head, Cleared):
                self.epoch = head.epoch
            if isinstance(head, Finished):
                self._stats.wall_seconds = self.elapsed()
            return head
        return None

    def clear(
        self, clear_id: str, split: tuple[str, str, bool], flushes: list[Flushed], uncut: int
    ) -> None:
        """Drop all that is unsent, and say so in the order of the contract.

        `split` is the text heard and not heard and whether that is an estimate; `flushes` are
        answers that were not yet here; `uncut` is 1 if there was text that never got this far.
        """
        fade = self._fade_out()
        finished, answered, discarded, dropped = self._drop(Outcome.CLEARED, None)
        self._epochs += 1
        cleared = Cleared(clear_id, self._epochs, dropped + uncut, discarded, *split)
        self._items.extend([*fade, *finished, *answered, *flushes, cleared])
        self._playout.stopped()
        if self._stats.first_audio_seconds is None:
            self._first_text_at = None

    def fail(self, error: IntoneError) -> None:
        """Drop all that is unsent and end the call with `error`.

        A notice goes first: a client that reacts to it by writing no more sees the true status.
        """
        finished, answered, _, _ = self._drop(Outcome.FAILED, error)
        self._items.extend([*finished, *answered, _error_notice(error), error])

    def cut_behind(self, part: Part | None) -> None:
        """Drop all that comes after this part; None or one that was told already: all there is."""
        items = list(self._items)
        place = next((i for i, item in enumerate(items) if item is part), -1) + 1
        for item in items[place:]:
            if isinstance(item, Part):
                item.drop(Outcome.CLEARED, lost=False)
        self._items = deque(items[:place])
        self.has_finished = False

    def end_behind(self, part: Part, error: IntoneError) -> None:
        """Deliver up to this part, then end the call with `error`."""
        self.cut_behind(part)
        self.has_finished = True
        self._items.extend([_error_notice(error), error])

    def close(self) -> None:
        """Nobody is left to tell."""
        self._drop(Outcome.CLEARED, None)
        self._output.close()

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
                lost = 0 if item.all_sent else max(0, self._made(item) - item.sent_samples)
                discarded += lost
                lost_audio = lost_audio or bool(lost) or item.outcome is None
                item.drop(outcome, error, lost=bool(lost))
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
        self._output.drop()
        return finished, others, discarded, dropped

    def _made(self, part: Part) -> int:
        """Samples of a part, at the stream's rate."""
        if part.at_stream_rate:
            return part.made_samples
        return round(part.made_samples * self._rate / self._config.model_rate_hertz)

    def _take_from(self, part: Part) -> Event | None:
        if part.started and not part.announced:
            part.announced = True
            part.sample_offset = self._output.position
            if self._config.segment_events:
                return self._started(part)
        if not part.closed:
            following = self._items[1] if len(self._items) > 1 else None
            encoded = self._output.next_of(part, following)
            if encoded is None:
                return None
            if encoded.data:
                return self._heard(encoded, part)
            self._count(part)
        self._items.popleft()
        return next(iter(self._report(part)), None)

    def _heard(self, encoded: Encoded, part: Part) -> AudioChunk:
        """A chunk that the listener hears as speech goes on."""
        now = time.monotonic()
        if self._first_text_at is not None and self._stats.first_audio_seconds is None:
            self._stats.first_audio_seconds = now - self._first_text_at
        if self._in_text and self._playout.is_dry(now):
            self._stats.underruns += 1
        self._in_text = True
        # Not by a part of nothing, which may bring out what an encoder held of the one before.
        spoken = part.kind is not SegmentKind.SILENCE and part.made_samples > 0
        self._spoke = self._spoke or spoken
        return self._chunk(encoded, part)

    def _chunk(self, encoded: Encoded, part: Part) -> AudioChunk:
        seconds = encoded.sample_count / self._rate
        self._stats.audio_seconds += seconds
        self._stats.clipped_samples = self._output.over_samples
        self._playout.sent(time.monotonic(), seconds)
        chunk = AudioChunk(encoded.data, part.segment, self._sample_offset, encoded.sample_count)
        self._sample_offset += encoded.sample_count
        self._count(part)
        self._sounding = part
        return chunk

    def _count(self, part: Part) -> None:
        """How much of a part was encoded. The codecs' frames lie across parts, and their bytes come
        out later: positions tell, not chunks."""
        if part.announced:
            part.sent_samples = self._output.position - part.sample_offset

    def _fade_out(self) -> list[AudioChunk]:
        """What is still heard before a `Clear` takes effect: nothing clicks, and nothing that the
        encoder holds comes up after it."""
        head = self._items[0] if self._items else None
        if self._sounding is None:  # whatever the encoder holds, nobody has heard a byte of it
            self._output.restart()
            if isinstance(head, Part):
                head.sent_samples = 0
            return []
        if not isinstance(head, Part) or not head.announced:
            head = self._sounding
        cuts = head.kind is not SegmentKind.SILENCE and head.sent_samples and not head.all_sent
        rest = self._output.cut(head) if cuts else self._output.settle()
        return [self._chunk(rest, head)] if rest.data else []

    def _started(self, part: Part) -> SegmentStarted:
        return SegmentStarted(
            segment=part.segment,
            kind=part.kind,
            start=part.start,
            end=part.end,
            text=part.text,
            voice=part.voice,
            sample_offset=part.sample_offset,
            seed=part.seed,
            reason=part.reason,
            queue_wait_seconds=part.queue_seconds,
            at_seconds=self.elapsed(part.started_at),
            item=part.item,
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
                at_seconds=self.elapsed(part.ended_at if part.generation else None),
                error=part.error,
                item=part.item,
                ends_item=part.ends_item,
            )
        ]


def _error_notice(error: IntoneError) -> Notice:
    return Notice(NoticeKind.ERROR, f"{error.reason}: {error.message}", 0.0)
