"""One stream: text and commands in, events out, and the rules between them.

CONFIGURING (in `rpc`, before a session exists) -> SPEAKING -> FINISHING -> CLOSED
"""

import asyncio
import enum
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from intone_server.errors import IntoneError
from intone_server.scheduling.admission import Permit
from intone_server.scheduling.scheduler import Scheduler
from intone_server.synthesis.deadlines import Deadlines, Due, SessionLimits, Situation
from intone_server.synthesis.events import (
    Event,
    Finished,
    FinishReason,
    Flushed,
    Notice,
    NoticeKind,
    Queued,
    Stats,
)
from intone_server.synthesis.part import Part, Silence
from intone_server.synthesis.segmenter import CommitReason, Segment, SegmentationMode, Segmenter
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.timeline import Timeline
from intone_server.synthesis.transcript import Transcript

# Answers that may wait for a client that sends commands and does not read; text has its own bound.
MAX_WAITING_EVENTS = 1000


class SessionState(enum.Enum):
    """Where a stream is in its life."""

    SPEAKING = "speaking"
    FINISHING = "finishing"  # no more input; what there is will be spoken
    CLOSED = "closed"


class Session:
    """Input methods are synchronous and take effect at once; `next_event` gives the output.

    At most one generation of a session waits or runs. A context manager: leaving it cancels
    whatever is left.
    """

    def __init__(
        self,
        config: SpeechConfig,
        *,
        limits: SessionLimits,
        scheduler: Scheduler,
        permit: Permit,
    ) -> None:
        self.config = config
        self.stats = Stats()
        self._max_buffered = limits.max_buffered_characters
        self._most_unsent = limits.max_unsent_seconds * config.sample_rate_hertz
        self._scheduler = scheduler
        self._permit = permit
        self._state = SessionState.SPEAKING
        self._segmenter = Segmenter(
            language=config.language,
            mode=config.mode,
            max_characters=config.max_characters,
            first_max_characters=config.first_max_characters,
        )
        self._transcript = Transcript(config.sample_rate_hertz)
        self._timeline = Timeline(config, self.stats)
        self._current: Part | None = None
        self._draining = False
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        # Called when the client has not taken an event for too long: whoever writes to it hangs.
        self.on_slow_client: Callable[[], None] = lambda: None
        waits_for_commands = config.mode is SegmentationMode.MANUAL
        self._deadlines = Deadlines(
            limits, None if waits_for_commands else config.max_text_delay, time.monotonic()
        )
        self._timer: asyncio.TimerHandle | None = None
        self._advance()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._state = SessionState.CLOSED
        self._timeline.close()
        self._current = None
        if self._timer is not None:
            self._timer.cancel()
        self._permit.talking = False

    @property
    def epoch(self) -> int:
        """The epoch of the event that `next_event` returned last."""
        return self._timeline.epoch

    # Input

    def push_text(self, text: str) -> None:
        """Append a text piece. Empty text is a heartbeat."""
        now = time.monotonic()
        self._deadlines.heard(now, text=bool(text))
        if not text or self._state is not SessionState.SPEAKING:
            self._arm()
            return
        self.stats.characters += len(text)
        if self._timeline.first_text_at is None and not text.isspace():
            self._timeline.first_text_at = now
        self._transcript.push(text)
        self._segmenter.push(text)
        self._advance()

    def flush(self, flush_id: str) -> None:
        """Speak what is buffered; answered by Flushed after its audio."""
        self._deadlines.heard(time.monotonic())
        self._commit(CommitReason.FLUSH, Flushed(flush_id, 0, cleared=False))

    def pause(self, seconds: float) -> None:
        """Exact silence at this point of the text."""
        self._deadlines.heard(time.monotonic())
        samples = round(seconds * self.config.sample_rate_hertz)
        self._commit(CommitReason.PAUSE, Silence(samples, self._segmenter.position))

    def end_input(self, reason: FinishReason = FinishReason.END_OF_INPUT) -> None:
        """No more text will come: speak the rest, then finish."""
        if self._state is SessionState.SPEAKING:
            self._state = SessionState.FINISHING
            self._segmenter.commit(CommitReason.END_OF_INPUT, Finished(reason, self.stats))
            self._advance()

    def clear(self, clear_id: str, heard_samples: int | None) -> None:
        """Barge-in. `heard_samples` on the stream's timeline; None takes it from the clock."""
        now = time.monotonic()
        self._deadlines.heard(now)
        if self._state is not SessionState.SPEAKING:
            return
        timeline = self._timeline
        if heard_samples is None:
            ahead = timeline.playout.ahead(now) * self.config.sample_rate_hertz
            heard_samples = timeline.sample_offset - round(ahead)
        split = self._transcript.split(heard_samples)
        flushes, queued = self._drop_text()
        self._current = None
        timeline.clear(clear_id, split, flushes, queued)
        self._transcript.restart()
        self._advance()

    def fail(self, error: IntoneError) -> None:
        """End the stream with `error`, now; what was not sent is dropped."""
        if self._state is not SessionState.CLOSED:
            self._state = SessionState.CLOSED
            self._current = None
            self._timeline.fail(error)
            self._room.set()
            self._wake.set()

    def drain(self) -> None:
        """The server is shutting down: finish the text that is there, then end."""
        self._draining = True
        self._timeline.aside(
            Notice(NoticeKind.DRAINING, "the server is shutting down; reconnect elsewhere", 0.0)
        )
        self._advance()

    async def wait_for_room(self) -> None:
        """Return when the session can hold more. Until then the client's messages are not read."""
        while self._state is not SessionState.CLOSED and (
            self._segmenter.buffered_characters > self._max_buffered
            or self._segmenter.pending_commits + len(self._timeline) > MAX_WAITING_EVENTS
        ):
            self._room.clear()
            await self._room.wait()

    # Output

    async def next_event(self) -> Event:
        """The next event; `Finished` is the last. Raises the IntoneError that ends the call."""
        self._deadlines.writing(None)
        while (event := self._timeline.take()) is None:
            self._wake.clear()
            await self._wake.wait()
        self._deadlines.writing(time.monotonic())
        self._advance()
        return event

    def check_spoken(self) -> None:
        """Raises the first segment's IntoneError if segments failed and nothing was spoken."""
        if self._timeline.failure is not None:
            raise self._timeline.failure

    # Progress

    def _commit(self, reason: CommitReason, mark: object) -> None:
        if self._state is SessionState.SPEAKING:
            self._segmenter.commit(reason, mark)
            self._advance()

    def _advance(self) -> None:
        """Move on as far as possible. Called after every change."""
        while (
            self._state is not SessionState.CLOSED and self._current is None and not self._is_full
        ):
            match self._segmenter.next():
                case None:
                    break
                case Segment() as segment:
                    self._speak(
                        Part.speech(segment, self.stats.segments, self.config, self._on_part)
                    )
                case Silence() as silence:
                    self._put(Part.silence(silence, self.stats.segments))
                case Flushed() | Finished() as event:
                    self._timeline.add(event)
        self._permit.talking = self._current is not None or self._segmenter.has_text
        self._room.set()
        self._wake.set()
        self._arm()

    @property
    def _is_full(self) -> bool:
        """Whether the client has so much audio to take that no more is made for it."""
        return self._timeline.unsent_samples >= self._most_unsent

    def _speak(self, part: Part) -> None:
        self._put(part)
        if part.generation is None:
            return
        self._current = part
        self._scheduler.submit(part.generation)
        position = self._scheduler.position(part.generation)
        if position is not None and self.config.queue_events:
            wait = self._scheduler.load().estimated_wait_seconds
            self._timeline.aside(Queued(part.segment, position, wait))

    def _put(self, part: Part) -> None:
        self.stats.segments += 1
        self._transcript.add(part)
        self._timeline.add(part)

    def _on_part(self, part: Part) -> None:
        """The generation of a part has made progress."""
        if part is self._current and part.outcome is not None:
            self._current = None
            assert part.generation is not None
            seconds = part.made_samples / self.config.sample_rate_hertz
            self.stats.queue_wait_seconds += part.generation.queue_seconds
            self.stats.synthesis_seconds += part.generation.run_seconds
            self.stats.made_seconds += seconds
            self._scheduler.measured(seconds, part.generation.run_seconds)
            self._advance()
        else:
            self._wake.set()

    # Time

    def _arm(self) -> None:
        """Set the timer to what is due first."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._state is SessionState.CLOSED:
            return
        now = time.monotonic()
        full = self._is_full
        situation = Situation(
            listening=self._state is SessionState.SPEAKING,
            idle=self._current is None and not len(self._timeline),
            starving=self._current is None and not full and self._segmenter.has_text,
            full=full,
            draining=self._draining,
        )
        first = self._deadlines.first(now, situation)
        if first is not None:
            at, due = first
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, at - now), self._on_due, due)

    def _on_due(self, due: Due) -> None:
        self._deadlines.done(due)
        match due:
            case Due.TEXT_DELAY:
                self._segmenter.commit_at_boundary()
            case Due.IDLE_NOTICE:
                self._tell(NoticeKind.IDLE, self._deadlines.idle_notice_seconds)
            case Due.IDLE_END:
                self.end_input(FinishReason.IDLE_TIMEOUT)
            case Due.DRAINED:
                self.end_input(FinishReason.DRAINED)
            case Due.SESSION_NOTICE:
                self._tell(NoticeKind.SESSION_LIMIT, self._deadlines.session_notice_seconds)
            case Due.SESSION_END:
                self._end_now()
            case Due.SLOW_CLIENT:
                self.on_slow_client()
                return
        self._advance()

    def _tell(self, kind: NoticeKind, seconds: float) -> None:
        self._timeline.aside(Notice(kind, f"the stream ends in {seconds:g} s", seconds))

    def _end_now(self) -> None:
        """The session limit: finish the running segment and no more."""
        self._state = SessionState.FINISHING
        for flushed in self._drop_text()[0]:
            self._timeline.add(flushed)
        self._timeline.add(Finished(FinishReason.SESSION_LIMIT, self.stats))

    def _drop_text(self) -> tuple[list[Flushed], int]:
        """Take what is buffered: answers to its flushes, and the number of its segments."""
        self._segmenter.commit(CommitReason.FLUSH)
        rest = list(iter(self._segmenter.next, None))
        segments = sum(isinstance(item, Segment) for item in rest)
        self.stats.segments += segments
        return [replace(i, cleared=True) for i in rest if isinstance(i, Flushed)], segments
