"""One stream: text and commands in, events out, and the rules between them."""

import asyncio
import enum
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

import structlog

from intone_server.errors import InternalError, IntoneError
from intone_server.scheduling.admission import Permit
from intone_server.scheduling.scheduler import Scheduler
from intone_server.synthesis.deadlines import Alarm, Deadlines, Due, SessionLimits, Situation
from intone_server.synthesis.events import (
    Event,
    FinishReason,
    Flushed,
    Notice,
    NoticeKind,
    Queued,
    SegmentKind,
    Stats,
)
from intone_server.synthesis.part import Part, Silence
from intone_server.synthesis.segmenter import CommitReason, Segment, SegmentationMode, Segmenter
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.timeline import Timeline
from intone_server.synthesis.transcript import Transcript
from intone_server.transitions import change

log = structlog.stdlib.get_logger("intone.synthesis")

# Events that may wait for a client that sends and does not read; audio has its own bound.
MAX_WAITING_EVENTS = 1000


class SessionState(enum.Enum):
    """CONFIGURING (in `rpc`, before a session exists) -> SPEAKING -> FINISHING -> CLOSED."""

    SPEAKING = "speaking"
    FINISHING = "finishing"  # no more text; what there is will be spoken
    CLOSED = "closed"


_NEXT = {
    SessionState.SPEAKING: frozenset({SessionState.FINISHING, SessionState.CLOSED}),
    SessionState.FINISHING: frozenset({SessionState.CLOSED}),
    SessionState.CLOSED: frozenset({SessionState.CLOSED}),
}


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
        self._finish_reason = FinishReason.END_OF_INPUT
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
        delay = None if waits_for_commands else config.max_text_delay_seconds
        self._deadlines = Deadlines(limits, delay, time.monotonic())
        self._alarm = Alarm(self._deadlines, lambda due: self._guarded(lambda: self._on_due(due)))
        self._advance()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._become(SessionState.CLOSED)
        self._timeline.close()
        self._current = None
        self._alarm.stop()

    @property
    def epoch(self) -> int:
        """The epoch of the event that `next_event` returned last."""
        return self._timeline.epoch

    # Input

    def push_text(self, text: str) -> None:
        """Append a text piece. Empty text is a heartbeat. Raises InvalidRequest."""
        now = time.monotonic()
        self._deadlines.heard(now, text=bool(text))
        if text and self._state is SessionState.SPEAKING:
            self._transcript.push(text)
            self.stats.characters += len(text)
            if not text.isspace():
                self._timeline.text_came(now)
            self._segmenter.push(text)
        self._advance()

    def flush(self, flush_id: str) -> None:
        """Speak what is buffered; answered by Flushed after its audio."""
        self._command(CommitReason.FLUSH, Flushed(flush_id, 0, cleared=False))

    def pause(self, seconds: float) -> None:
        """Exact silence at this point of the text."""
        samples = round(seconds * self.config.sample_rate_hertz)
        self._command(CommitReason.PAUSE, Silence(samples, self._segmenter.position))

    def end_input(self, reason: FinishReason = FinishReason.END_OF_INPUT) -> None:
        """No more text will come: speak the rest, then finish."""
        if self._state is SessionState.SPEAKING:
            self._become(SessionState.FINISHING)
            self._finish_reason = reason
            self._segmenter.commit(CommitReason.END_OF_INPUT)
            self._advance()

    def clear(self, clear_id: str, heard_samples: int | None) -> None:
        """Barge-in. `heard_samples` on the stream's timeline; None takes it from the clock."""
        now = time.monotonic()
        self._deadlines.heard(now)
        if self._state is SessionState.CLOSED:
            return
        if heard_samples is None:
            heard_samples = self._timeline.heard_samples(now)
        split = self._transcript.split(heard_samples)
        flushes, uncut = self._drop_text()
        self._current = None
        self._timeline.clear(clear_id, split, flushes, uncut)
        self._transcript.restart()
        self._advance()

    def fail(self, error: IntoneError) -> None:
        """End the stream with `error`, now; what was not sent is dropped."""
        if self._state is not SessionState.CLOSED:
            self._become(SessionState.CLOSED)
            self._current = None
            self._timeline.fail(error)
            self._advance()

    def drain(self, effective_in_seconds: float) -> None:
        """The server is shutting down: finish the text that is there, then end."""
        self._draining = True
        message = "the server is shutting down; open new streams elsewhere"
        self._timeline.aside(Notice(NoticeKind.DRAINING, message, effective_in_seconds))
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

    @property
    def first_failure(self) -> IntoneError | None:
        """Why the first segment that failed did."""
        return self._timeline.first_failure

    def check_spoken(self) -> None:
        """Raises the first segment's IntoneError if segments failed and nothing was spoken."""
        if self._timeline.failure is not None:
            raise self._timeline.failure

    # Progress

    def _become(self, state: SessionState) -> None:
        self._state = change(self._state, state, _NEXT)

    def _command(self, reason: CommitReason, mark: object) -> None:
        """A command at this point of the text. One that crosses the server's own end of the input
        still finds its place, before `Finished`."""
        self._deadlines.heard(time.monotonic())
        if self._state is not SessionState.CLOSED and not self._timeline.has_finished:
            self._segmenter.commit(reason, mark)
        self._advance()

    def _advance(self) -> None:
        """Move on as far as possible. Called after every change."""
        while self._can_take():
            item = self._segmenter.next()
            match item:
                case Segment():
                    index = self.stats.segments
                    self._speak(Part.speech(item, index, self.config, self._on_part))
                case Silence():
                    self._put(Part.silence(item, self.stats.segments))
                case Flushed():
                    self._timeline.add(item)
                case None:
                    if self._state is SessionState.FINISHING:
                        self._timeline.finish(self._finish_reason)
                    break
        busy = self._current is not None
        waits = self._state is not SessionState.CLOSED and self._segmenter.has_text
        self._permit.talking = busy or waits
        if not (busy or waits or self._timeline.has_audio):
            self._timeline.all_said()
        self._room.set()
        self._wake.set()
        self._alarm.set(
            Situation(
                open=self._state is not SessionState.CLOSED,
                listening=self._state is SessionState.SPEAKING,
                idle=not (busy or self._timeline.has_items),
                starving=waits and self._can_take(),
                draining=self._draining,
            )
        )

    def _can_take(self) -> bool:
        """Whether the next thing to say may go onto the timeline now."""
        return (
            self._state is not SessionState.CLOSED
            and self._current is None
            and self._timeline.unsent_samples < self._most_unsent
            and len(self._timeline) < MAX_WAITING_EVENTS
        )

    def _speak(self, part: Part) -> None:
        self._put(part)
        if part.generation is None:
            return
        self._current = part
        wait_seconds = self._scheduler.load().estimated_wait_seconds
        self._scheduler.submit(part.generation)
        position = self._scheduler.position(part.generation)
        if position is not None and self.config.queue_events:
            self._timeline.aside(Queued(part.segment, position, wait_seconds))

    def _put(self, part: Part) -> None:
        self.stats.segments += 1
        if part.kind is SegmentKind.SPEECH:
            self._transcript.add(part)
        self._timeline.add(part)

    def _on_part(self, part: Part) -> None:
        """The generation of a part has made progress."""
        if part is not self._current or part.outcome is None:
            self._wake.set()
            return
        self._current = None
        made_seconds = part.made_samples / self.config.sample_rate_hertz
        self.stats.queue_wait_seconds += part.queue_seconds
        self.stats.synthesis_seconds += part.run_seconds
        self.stats.made_seconds += made_seconds
        self._scheduler.measured(made_seconds, part.run_seconds)
        self._guarded(self._advance)

    def _guarded(self, action: Callable[[], None]) -> None:
        """The scheduler or the event loop called: others must not suffer from a fault in here."""
        try:
            action()
        except Exception:
            log.exception("stream failed")
            self.fail(InternalError())

    def _drop_text(self) -> tuple[list[Flushed], int]:
        """Forget what is buffered: answers to its flushes, and 1 if there was text."""
        uncut = int(self._segmenter.has_text)
        marks = self._segmenter.drop()
        self.stats.segments += uncut
        return [replace(mark, cleared=True) for mark in marks if isinstance(mark, Flushed)], uncut

    # Time

    def _on_due(self, due: Due) -> None:
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
                # Between segments: the running one is finished, the rest is not begun.
                for flushed in self._drop_text()[0]:
                    self._timeline.add(flushed)
                self._finish_reason = FinishReason.SESSION_LIMIT
                if self._state is SessionState.SPEAKING:
                    self._become(SessionState.FINISHING)
            case Due.SLOW_CLIENT:
                self._deadlines.writing(None)
                self.on_slow_client()
        self._advance()

    def _tell(self, kind: NoticeKind, seconds: float) -> None:
        self._timeline.aside(Notice(kind, f"the stream ends in {seconds:g} s", seconds))
