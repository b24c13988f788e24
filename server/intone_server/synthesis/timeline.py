"""What a stream still has to tell its client: audio and events, in the order they are sent."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from intone_server.audio.buffer import MAX_CHUNK_SECONDS
from intone_server.audio.encoding import Encoded
from intone_server.errors import IntoneError
from intone_server.synthesis.announcing import error_notice, segment_finished, segment_started
from intone_server.synthesis.clearing import Dropped, drop, last_sound
from intone_server.synthesis.events import (
    AudioChunk,
    Cleared,
    Event,
    Finished,
    FinishReason,
    Flushed,
    Outcome,
    SegmentFinished,
    SegmentKind,
    Stats,
)
from intone_server.synthesis.output import Output
from intone_server.synthesis.part import Part
from intone_server.synthesis.playout import Playout
from intone_server.synthesis.progress import Progress
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.watching import WasteCause, Watch

# How long before the listener runs dry the end of a part is sent at the latest.
TAIL_SECONDS = 0.1
# Audio is gathered into one message up to this share of what the listener has left to hear.
GATHERED_SHARE = 0.25


class Timeline:
    """Parts give audio while they are being spoken; plain events keep their place between them.

    Offsets are given to audio as it leaves, so what is dropped is never counted. An error stands
    for the end of the call. No audio leaves while the listener is `max_ahead_seconds` ahead.
    """

    def __init__(
        self,
        config: SpeechConfig,
        stats: Stats,
        *,
        watch: Watch,
        gives_tails: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`gives_tails`: rather than let the listener miss the end of a part, end its run early."""
        self._config = config
        self._gives_tails = gives_tails
        self._rate = config.sample_rate_hertz
        self._stats = stats
        self._clock = clock
        self.began_at = clock()
        self._output = Output(config)
        self._sounding: Part | None = None  # that of the last chunk
        self._items: deque[Part | Event | IntoneError] = deque()
        self._asides: deque[Event] = deque()
        self.first_failure: IntoneError | None = None
        self._end_error: IntoneError | None = None  # behind all that was delivered
        self._epochs = 0
        self.playout = Playout(self._rate)
        self._progress = Progress(config, stats, self.playout, watch)
        self._spoke = False
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
        return (self._clock() if at is None else at) - self.began_at

    def text_came(self, now: float) -> None:
        """Text that will be spoken came at `now`."""
        self._progress.text_came(now)

    def look_at_head(self) -> None:
        """Note whether the part that is being sent was sent to its end just now."""
        head = self._items[0] if self._items else None
        if isinstance(head, Part):
            head.all_sent = self._output.has_all_of(head)
            self._count(head)

    def finish(self, reason: FinishReason) -> None:
        """Nothing more will come. Idempotent, and undone by `clear`."""
        if not self.has_finished:
            self.has_finished = True
            self._items.append(Finished(reason, self._stats))

    def finish_with(self, error: IntoneError) -> None:
        """The same, but the call ends with `error` once all there is was delivered."""
        if not self.has_finished:
            self.has_finished = True
            self._end_error = error
            self._items.append(error)

    @property
    def unsent_samples(self) -> int:
        """Samples of the model that are held in memory."""
        return sum(item.unsent_samples for item in self._items if isinstance(item, Part))

    @property
    def tail_due_at(self) -> float | None:
        """When sound that is kept back has to be sent, or the listener would miss it: the end of a
        part that waits for the next one, or what is gathered. None if there is none."""
        dry_at = self.playout.dry_at() or 0.0
        if self._gives_tails and self._output.keeps_tail:
            return dry_at - TAIL_SECONDS
        head = self._items[0] if self._items else None
        if isinstance(head, Part) and self._gathers(head) and head.unsent_samples:
            unsent = head.unsent_samples / self._config.model_rate_hertz
            return dry_at - unsent / GATHERED_SHARE
        return None

    def give_tail(self) -> None:
        """Send it now."""
        if self._output.keeps_tail:
            self._output.give_tail()

    @property
    def paused_until(self) -> float | None:
        """When the listener will be less than `max_ahead_seconds` ahead; None: that is so now."""
        at = self._resumes_at()
        return at if self._clock() < at else None

    def is_full(self, before: Part | None = None) -> bool:
        """Whether what is on its way to the listener, up to the part `before` or all of it, is
        `max_ahead_seconds` or more, so that nothing is to be begun behind it."""
        most = self._config.max_ahead_seconds
        if most is None:
            return False
        now = self._clock()
        until = max(self._resumes_at(), now - most)
        rates = self._config.model_rate_hertz, self._rate
        for item in self._items:
            if item is before or now < until:
                break
            if isinstance(item, Part):
                until += item.unsent_seconds(*rates)
        return now < until

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
            delivered = isinstance(head, Finished) or head is self._end_error
            if delivered and (rest := self._output.finish()).data:
                assert self._sounding is not None
                return self._chunk(rest, self._sounding)
            self._items.popleft()
            if isinstance(head, IntoneError):
                raise head
            if isinstance(head, Flushed):
                return replace(head, sample_offset=self._output.position)
            if isinstance(head, Cleared):
                self.epoch = head.epoch
                self._progress.clear_answered(self._clock())
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
        dropped = self._drop(Outcome.CLEARED, None, WasteCause.CLEAR)
        self._epochs += 1
        count = dropped.untouched + uncut
        cleared = Cleared(clear_id, self._epochs, count, dropped.discarded_samples, *split)
        finished = self._report_all(dropped)
        self._items.extend([*fade, *finished, *dropped.events, *flushes, cleared])
        self._progress.clear_came(self._clock())

    def fail(self, error: IntoneError) -> None:
        """Drop all that is unsent and end the call with `error`."""
        dropped = self._drop(Outcome.FAILED, error, WasteCause.FAILURE)
        finished = self._report_all(dropped)
        self._items.extend([*finished, *dropped.events, error_notice(error), error])

    def cut_behind(self, part: Part | None) -> None:
        """Drop all that comes after this part; None or one that was told already: all there is."""
        items = list(self._items)
        place = next((i for i, item in enumerate(items) if item is part), -1) + 1
        for item in items[place:]:
            if isinstance(item, Part):
                item.drop(Outcome.CLEARED, lost=False)
                self._over(item, WasteCause.FAILURE)
        self._items = deque(items[:place])
        self.has_finished = False

    def end_behind(self, part: Part, error: IntoneError) -> None:
        """Deliver up to this part, then end the call with `error`."""
        self.cut_behind(part)
        self.has_finished = True
        self._items.extend([error_notice(error), error])

    def close(self) -> None:
        """Nobody is left to tell."""
        self._drop(Outcome.CLEARED, None, WasteCause.CANCEL)
        self._output.close()

    def _resumes_at(self) -> float:
        """Nothing is sent before; 0.0: there is no reason to wait."""
        dry_at, most = self.playout.dry_at(), self._config.max_ahead_seconds
        return 0.0 if dry_at is None or most is None else dry_at - most

    def _drop(self, outcome: Outcome, error: IntoneError | None, cause: WasteCause) -> Dropped:
        """Empty the timeline."""
        if any(isinstance(item, Finished | IntoneError) for item in self._items):
            self.has_finished = False
        dropped = drop(self._items, outcome, error, self._made)
        for item in self._items:
            if isinstance(item, Part):
                self._over(item, cause)
        self._items.clear()
        self._output.drop()
        return dropped

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
                return segment_started(part, self.elapsed(part.started_at))
        if not part.closed:
            if self.paused_until is not None or self._gathers(part):
                return None
            following = self._items[1] if len(self._items) > 1 else None
            encoded = self._output.next_of(part, following)
            if encoded is None:
                return None
            if encoded.data:
                return self._heard(encoded, part)
            self._count(part)
        self._items.popleft()
        self._over(part, WasteCause.FAILURE)
        return next(iter(self._report(part)), None)

    def _gathers(self, part: Part) -> bool:
        """Whether to wait for more of what is being spoken: fewer messages cost less, and the
        listener has a multiple of it still to hear."""
        if part.outcome is not None or self._config.max_ahead_seconds is not None:
            return False
        enough = self.playout.ahead(self._clock()) * GATHERED_SHARE
        unsent = part.unsent_samples / self._config.model_rate_hertz
        return unsent < min(enough, MAX_CHUNK_SECONDS)

    def _heard(self, encoded: Encoded, part: Part) -> AudioChunk:
        """A chunk that the listener hears as speech goes on."""
        self._progress.heard(self._clock())
        # Not by a part of nothing, which may bring out what an encoder held of the one before.
        spoken = part.kind is not SegmentKind.SILENCE and part.made_samples > 0
        self._spoke = self._spoke or spoken
        return self._chunk(encoded, part)

    def _chunk(self, encoded: Encoded, part: Part) -> AudioChunk:
        count = encoded.sample_count
        self._stats.clipped_samples = self._output.over_samples
        chunk = AudioChunk(encoded.data, part.segment, self.playout.sent_samples, count)
        self._progress.sent(self._clock(), count)
        self._count(part)
        self._sounding = part
        return chunk

    def _count(self, part: Part) -> None:
        """How much of a part was encoded. The codecs' frames lie across parts, and their bytes come
        out later: positions tell, not chunks."""
        if part.announced:
            part.sent_samples = self._output.position - part.sample_offset

    def _fade_out(self) -> list[AudioChunk]:
        """What is still heard before a `Clear` takes effect."""
        head = self._items[0] if self._items else None
        rest, part = last_sound(self._output, head, self._sounding)
        return [self._chunk(rest, part)] if rest.data and part is not None else []

    def _report_all(self, dropped: Dropped) -> list[SegmentFinished]:
        return [event for part in dropped.parts for event in self._report(part)]

    def _over(self, part: Part, waste_cause: WasteCause) -> None:
        """Count a part of which nothing more will be sent."""
        self._progress.over(part, waste_cause)
        if part.outcome is Outcome.FAILED:
            self.first_failure = self.first_failure or part.error

    def _report(self, part: Part) -> list[SegmentFinished]:
        """The event of a part that is over, if the client wants one."""
        if part.outcome is Outcome.COMPLETE and not self._config.segment_events:
            return []
        return [segment_finished(part, self.elapsed(part.ended_at if part.generation else None))]
