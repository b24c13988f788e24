"""When a stream runs out of time, and for what."""

import asyncio
import enum
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# How long before its end an idle stream, or a session, is told; half of a shorter limit.
IDLE_NOTICE_SECONDS = 10.0
SESSION_NOTICE_SECONDS = 60.0
# When the server shuts down, a stream with nothing to say ends this long after its last text at the
# latest, whatever pause it allows: more of a sentence would have come by then.
DRAIN_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Bounds of every stream; characters are code points."""

    idle_timeout_seconds: float
    session_limit_seconds: float
    slow_client_timeout_seconds: float
    max_unsent_seconds: float
    max_buffered_characters: int


class Due(enum.Enum):
    """What a stream has to do when its time comes."""

    SESSION_NOTICE = enum.auto()
    SESSION_END = enum.auto()
    IDLE_NOTICE = enum.auto()
    IDLE_END = enum.auto()
    DRAINED = enum.auto()  # the server is shutting down and nothing is left to say
    TEXT_DELAY = enum.auto()  # speak an unfinished sentence
    SLOW_CLIENT = enum.auto()
    TAIL = enum.auto()  # the end of a part cannot wait for the next one any longer
    RESUME = enum.auto()  # the listener is no longer too far ahead


@dataclass(frozen=True, slots=True)
class Situation:
    """What a stream is doing."""

    open: bool  # it has not failed
    listening: bool  # more input may come
    idle: bool  # nothing is being spoken or sent
    starving: bool  # there is text that waits for more text, and nothing else to speak
    draining: bool
    tail_due_at: float | None = None
    paused_until: float | None = None  # the listener is too far ahead for what there is to do


class Deadlines:
    """Pure: told what happens, asked what is due. Times are seconds on one monotonic clock.

    `max_text_delay_seconds` is None when text waits for commands alone.
    """

    def __init__(
        self, limits: SessionLimits, max_text_delay_seconds: float | None, now: float
    ) -> None:
        self._limits = limits
        self._max_text_delay_seconds = max_text_delay_seconds
        self._session_ends_at = now + limits.session_limit_seconds
        self._heard_at = now
        self._text_at = now
        self._busy_at = now
        self._writing_since: float | None = None
        self._done: set[Due] = set()
        self.session_notice_seconds = min(SESSION_NOTICE_SECONDS, limits.session_limit_seconds / 2)
        self.idle_notice_seconds = min(IDLE_NOTICE_SECONDS, limits.idle_timeout_seconds / 2)

    def heard(self, now: float, *, text: bool = False) -> None:
        """A message came from the client."""
        self._heard_at = now
        self._done.discard(Due.IDLE_NOTICE)
        if text:
            self._text_at = now

    def writing(self, since: float | None) -> None:
        """The client is being sent an event since then; None: it waits for one."""
        self._writing_since = since

    @property
    def is_writing(self) -> bool:
        """Whether the client is being sent an event."""
        return self._writing_since is not None

    def done(self, due: Due) -> None:
        """What was due has been done, and is not due again (an idle notice: until a message)."""
        self._done.add(due)

    def first(self, now: float, situation: Situation) -> tuple[float, Due] | None:
        """What is due first, and when; None if nothing will be."""
        if not situation.idle:
            self._busy_at = now
        return min(self._all(situation), key=lambda item: item[0], default=None)

    def _all(self, situation: Situation) -> Iterator[tuple[float, Due]]:
        if self._writing_since is not None:
            # HTTP/2 alone takes over a minute of audio for a client that does not read: a write
            # that still hangs is that of a client that will not.
            slow_at = self._writing_since + self._limits.slow_client_timeout_seconds
            yield slow_at, Due.SLOW_CLIENT
        if not situation.open:
            return
        if situation.paused_until is not None:
            yield situation.paused_until, Due.RESUME
        if situation.tail_due_at is not None:
            yield situation.tail_due_at, Due.TAIL
        ends_at = self._session_ends_at
        if Due.SESSION_END not in self._done:
            yield ends_at, Due.SESSION_END
            if Due.SESSION_NOTICE not in self._done:
                yield ends_at - self.session_notice_seconds, Due.SESSION_NOTICE
        if not situation.listening:
            return
        paused_at = self._text_at + (self._max_text_delay_seconds or 0.0)
        if situation.starving and self._max_text_delay_seconds is not None:
            yield paused_at, Due.TEXT_DELAY
        elif situation.draining and situation.idle:
            yield min(paused_at, self._text_at + DRAIN_PAUSE_SECONDS), Due.DRAINED
        if situation.idle:
            idle_at = max(self._heard_at, self._busy_at) + self._limits.idle_timeout_seconds
            yield idle_at, Due.IDLE_END
            if Due.IDLE_NOTICE not in self._done:
                yield idle_at - self.idle_notice_seconds, Due.IDLE_NOTICE


class Alarm:
    """One timer on the event loop that goes off for whatever is due first."""

    def __init__(self, deadlines: Deadlines, ring: Callable[[Due], None]) -> None:
        self._deadlines = deadlines
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None

    def set(self, situation: Situation) -> None:
        """Look again at what is due."""
        self.stop()
        now = time.monotonic()
        first = self._deadlines.first(now, situation)
        if first is not None:
            at, due = first
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, at - now), self._go_off, due)

    def stop(self) -> None:
        """Never go off, unless set again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_off(self, due: Due) -> None:
        self._deadlines.done(due)
        self._ring(due)
