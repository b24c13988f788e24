"""One call that speaks: its events and its time. What it says is its source's."""

import asyncio
import enum
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import structlog

from intone_server.errors import InternalError, IntoneError
from intone_server.scheduling.admission import Permit
from intone_server.synthesis.announcing import error_notice
from intone_server.synthesis.deadlines import Alarm, Deadlines, Due, SessionLimits, Situation
from intone_server.synthesis.events import (
    Event,
    FinishReason,
    Notice,
    NoticeKind,
    Stats,
)
from intone_server.synthesis.segmenter import SegmentationMode
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.timeline import Timeline
from intone_server.transitions import change

log = structlog.stdlib.get_logger("intone.synthesis")


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


class Source(Protocol):
    """Where the parts of a timeline come from. Everything takes effect at once.

    `on_audio` is to be called when the timeline has more to give, `on_ended` when `advance` would
    go on.
    """

    timeline: Timeline
    on_audio: Callable[[], None]
    on_ended: Callable[[], None]

    @property
    def busy(self) -> bool:
        """Whether a segment waits for a replica or runs."""

    @property
    def has_text(self) -> bool:
        """Whether there is text that was not yet given to a replica."""

    @property
    def can_take(self) -> bool:
        """Whether the next thing to say may be begun now."""

    def advance(self) -> bool:
        """Move on as far as possible. Returns whether everything is on the timeline."""

    def hurry(self) -> None:
        """No more text came for a while: speak what makes sense without it."""

    def end(self) -> None:
        """No more text will come."""

    def stop(self) -> None:
        """Begin nothing new: what is running is finished."""

    def fail(self, error: IntoneError) -> None:
        """Say nothing more but that."""

    def close(self) -> None:
        """Cancel what runs; nobody is left to tell."""


class Session:
    """Input methods are synchronous and take effect at once; `next_event` gives the output.

    A context manager: leaving it cancels whatever is left.
    """

    def __init__(
        self,
        config: SpeechConfig,
        source: Source,
        stats: Stats,
        *,
        limits: SessionLimits,
        permit: Permit,
    ) -> None:
        self.config = config
        self.stats = stats
        self._permit = permit
        self._state = SessionState.SPEAKING
        self._finish_reason = FinishReason.END_OF_INPUT
        self._end_error: IntoneError | None = None
        self._draining = False
        self._wake = asyncio.Event()
        self._room = asyncio.Event()  # of interest to those who read input
        # Called when the client has not taken an event for too long: whoever writes to it hangs.
        self.on_slow_client: Callable[[], None] = lambda: None
        self._source = source
        source.on_audio = self._wake.set
        source.on_ended = lambda: self._guarded(self._advance)
        self._timeline = source.timeline
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
        self._source.close()
        self._alarm.stop()

    @property
    def epoch(self) -> int:
        """The epoch of the event that `next_event` returned last."""
        return self._timeline.epoch

    @property
    def first_failure(self) -> IntoneError | None:
        """Why the first segment that failed did."""
        return self._timeline.first_failure

    @property
    def buffered_seconds(self) -> float:
        """Audio that was made and waits for its client."""
        return self._timeline.unsent_samples / self.config.model_rate_hertz

    def end_input(self, reason: FinishReason = FinishReason.END_OF_INPUT) -> None:
        """No more text will come: speak the rest, then finish."""
        if self._state is SessionState.SPEAKING:
            self._become(SessionState.FINISHING)
            self._finish_reason = reason
            self._source.end()
            self._advance()

    def end_with(self, error: IntoneError) -> None:
        """No more text is taken, which the client is told now: speak the rest, then end the stream
        with `error`."""
        if self._state is SessionState.SPEAKING:
            self._end_error = error
            self._timeline.aside(error_notice(error))
            self.end_input()

    def fail(self, error: IntoneError) -> None:
        """End the stream with `error`, now; what was not sent is dropped."""
        if self._state is not SessionState.CLOSED:
            self._become(SessionState.CLOSED)
            self._source.fail(error)
            self._advance()

    def drain(self, effective_in_seconds: float) -> None:
        """The server is shutting down: finish the text that is there, then end."""
        self._draining = True
        message = "the server is shutting down; open new streams elsewhere"
        self._timeline.aside(Notice(NoticeKind.DRAINING, message, effective_in_seconds))
        self._advance()

    # Output

    async def next_event(self) -> Event:
        """The next event; `Finished` is the last. Raises the IntoneError that ends the call."""
        self._deadlines.writing(None)
        while (event := self._timeline.take()) is None:
            if self._timeline.tail_due_at is not None:
                self._set_alarm()
            self._wake.clear()
            await self._wake.wait()
        self._deadlines.writing(time.monotonic())
        self._advance()
        return event

    def check_spoken(self) -> None:
        """Raises the first segment's IntoneError if segments failed and nothing was spoken."""
        if self._timeline.failure is not None:
            raise self._timeline.failure

    # Progress and time

    def _become(self, state: SessionState) -> None:
        self._state = change(self._state, state, _NEXT)

    def _advance(self) -> None:
        """Move on as far as possible. Called after every change."""
        source, is_open = self._source, self._state is not SessionState.CLOSED
        if is_open and source.advance() and self._state is SessionState.FINISHING:
            if self._end_error is not None:
                self._timeline.finish_with(self._end_error)
            else:
                self._timeline.finish(self._finish_reason)
        waits = is_open and source.has_text
        # Who waits for its listener, by its own `max_ahead`, needs no replica meanwhile.
        self._permit.talking = source.busy or (waits and not self._timeline.paused_until)
        if not (source.busy or waits or self._timeline.has_audio):
            self._timeline.playout.all_said()
        self._room.set()
        self._wake.set()
        self._set_alarm()

    def _set_alarm(self) -> None:
        source, is_open = self._source, self._state is not SessionState.CLOSED
        waits = source.has_text or self._timeline.has_items
        paused_until = self._timeline.paused_until if waits else None
        self._alarm.set(
            Situation(
                open=is_open,
                listening=self._state is SessionState.SPEAKING,
                idle=not (source.busy or self._timeline.has_items or paused_until),
                starving=is_open and source.has_text and source.can_take,
                draining=self._draining,
                tail_due_at=self._timeline.tail_due_at,
                paused_until=paused_until,
            )
        )

    def _guarded(self, action: Callable[[], None]) -> None:
        """The scheduler or the event loop called: others must not suffer from a fault in here."""
        try:
            action()
        except Exception:
            log.exception("stream failed")
            self.fail(InternalError())

    def _on_due(self, due: Due) -> None:
        match due:
            case Due.TEXT_DELAY:
                self._source.hurry()
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
                self._source.stop()
                self._finish_reason = FinishReason.SESSION_LIMIT
                if self._state is SessionState.SPEAKING:
                    self._become(SessionState.FINISHING)
            case Due.SLOW_CLIENT:
                # The alarm may have been set for a write that is over.
                if self._deadlines.is_writing:
                    self._deadlines.writing(None)
                    self.on_slow_client()
            case Due.TAIL:
                self._timeline.give_tail()
            case Due.RESUME:
                pass  # `_advance` goes on
        self._advance()

    def _tell(self, kind: NoticeKind, seconds: float) -> None:
        self._timeline.aside(Notice(kind, f"the stream ends in {seconds:g} s", seconds))
