"""One stream: its protocol and its time. What it says is `speaker`'s."""

import asyncio
import enum
import time
from collections.abc import Callable
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
    Stats,
)
from intone_server.synthesis.manuscript import WholeText
from intone_server.synthesis.segmenter import CommitReason, SegmentationMode
from intone_server.synthesis.speaker import MAX_WAITING_EVENTS, Speaker
from intone_server.synthesis.speech import SpeechConfig
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


class Session:
    """Input methods are synchronous and take effect at once; `next_event` gives the output.

    A context manager: leaving it cancels whatever is left.
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
        self._permit = permit
        self._state = SessionState.SPEAKING
        self._finish_reason = FinishReason.END_OF_INPUT
        self._draining = False
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        # Called when the client has not taken an event for too long: whoever writes to it hangs.
        self.on_slow_client: Callable[[], None] = lambda: None
        self._speaker = Speaker(
            config,
            self.stats,
            max_unsent_seconds=limits.max_unsent_seconds,
            scheduler=scheduler,
            on_audio=self._wake.set,
            on_ended=lambda: self._guarded(self._advance),
        )
        self._timeline = self._speaker.timeline
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
        self._speaker.close()
        self._alarm.stop()

    @property
    def epoch(self) -> int:
        """The epoch of the event that `next_event` returned last."""
        return self._timeline.epoch

    @property
    def first_failure(self) -> IntoneError | None:
        """Why the first segment that failed did."""
        return self._timeline.first_failure

    # Input

    def speak_whole(self, text: WholeText) -> None:
        """Speak this text, then finish. Raises InvalidRequest."""
        self._speaker.push_whole(text, time.monotonic())
        self.end_input()

    def push_text(self, text: str) -> None:
        """Append a text piece. Empty text is a heartbeat. Raises InvalidRequest."""
        now = time.monotonic()
        self._deadlines.heard(now, text=bool(text))
        if text and self._state is SessionState.SPEAKING:
            self._speaker.push(text, now)
        self._advance()

    def flush(self, flush_id: str) -> None:
        """Speak what is buffered; answered by Flushed after its audio."""
        if self._takes_commands():
            self._speaker.commit(CommitReason.FLUSH, Flushed(flush_id, 0, cleared=False))
        self._advance()

    def pause(self, seconds: float) -> None:
        """Exact silence at this point of the text."""
        if self._takes_commands():
            self._speaker.pause(round(seconds * self.config.sample_rate_hertz))
        self._advance()

    def clear(self, clear_id: str, heard_samples: int | None) -> None:
        """Barge-in. `heard_samples` on the stream's timeline; None takes it from the clock."""
        now = time.monotonic()
        self._deadlines.heard(now)
        if self._state is not SessionState.CLOSED:
            self._speaker.clear(clear_id, heard_samples, now)
            self._advance()

    def end_input(self, reason: FinishReason = FinishReason.END_OF_INPUT) -> None:
        """No more text will come: speak the rest, then finish."""
        if self._state is SessionState.SPEAKING:
            self._become(SessionState.FINISHING)
            self._finish_reason = reason
            self._speaker.commit(CommitReason.END_OF_INPUT)
            self._advance()

    def fail(self, error: IntoneError) -> None:
        """End the stream with `error`, now; what was not sent is dropped."""
        if self._state is not SessionState.CLOSED:
            self._become(SessionState.CLOSED)
            self._speaker.fail(error)
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
            self._speaker.buffered_characters > self._max_buffered
            or self._speaker.waiting_events > MAX_WAITING_EVENTS
        ):
            self._room.clear()
            await self._room.wait()

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

    def _takes_commands(self) -> bool:
        """A command that crosses the server's own end of the input still finds its place, before
        `Finished`."""
        self._deadlines.heard(time.monotonic())
        return self._state is not SessionState.CLOSED and not self._timeline.has_finished

    def _advance(self) -> None:
        """Move on as far as possible. Called after every change."""
        speaker, is_open = self._speaker, self._state is not SessionState.CLOSED
        if is_open and speaker.advance() and self._state is SessionState.FINISHING:
            self._timeline.finish(self._finish_reason)
        waits = is_open and speaker.has_text
        self._permit.talking = speaker.busy or waits
        if not (speaker.busy or waits or self._timeline.has_audio):
            self._timeline.all_said()
        self._room.set()
        self._wake.set()
        self._set_alarm()

    def _set_alarm(self) -> None:
        speaker, is_open = self._speaker, self._state is not SessionState.CLOSED
        self._alarm.set(
            Situation(
                open=is_open,
                listening=self._state is SessionState.SPEAKING,
                idle=not (speaker.busy or self._timeline.has_items),
                starving=is_open and speaker.has_text and speaker.can_take,
                draining=self._draining,
                tail_due_at=self._timeline.tail_due_at,
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
                self._speaker.commit_at_boundary()
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
                for flushed in self._speaker.drop_text()[0]:
                    self._timeline.add(flushed)
                self._finish_reason = FinishReason.SESSION_LIMIT
                if self._state is SessionState.SPEAKING:
                    self._become(SessionState.FINISHING)
            case Due.SLOW_CLIENT:
                self._deadlines.writing(None)
                self.on_slow_client()
            case Due.TAIL:
                self._timeline.give_tail()
        self._advance()

    def _tell(self, kind: NoticeKind, seconds: float) -> None:
        self._timeline.aside(Notice(kind, f"the stream ends in {seconds:g} s", seconds))
