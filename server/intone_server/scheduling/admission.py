"""The decision to let a call in, made before anything is written to it."""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from intone_server.errors import Overloaded, Reason, Unavailable
from intone_server.scheduling.generation import Priority

# Calls with text for each replica, of those that may wait; of all, until the speed is known.
TALKING_PER_REPLICA = 8


class TalkingLimit(Protocol):
    """How many calls may talk. Asked at every admission."""

    def limit(self, priority: Priority) -> int:
        """The greatest number for a call of this class to be let in."""

    def counts(self, priority: Priority, other: Priority) -> bool:
        """Whether talking calls of the class `other` count for one of `priority`."""


class FixedLimit:
    """Exactly so many calls, whatever their class."""

    def __init__(self, calls: int) -> None:
        self._calls = calls

    def limit(self, priority: Priority) -> int:  # noqa: ARG002 - part of the protocol
        return self._calls

    def counts(self, priority: Priority, other: Priority) -> bool:  # noqa: ARG002
        return True


class MeasuredLimit:
    """As many as the `replicas` keep fed: `listeners`, 0 while that is unknown.

    BATCH calls may wait: they do not keep listeners out, and are let in up to TALKING_PER_REPLICA
    calls of any class.
    """

    def __init__(self, replicas: Callable[[], int], listeners: Callable[[], int]) -> None:
        self._replicas = replicas
        self._listeners = listeners

    def limit(self, priority: Priority) -> int:
        if priority is Priority.BATCH:
            return TALKING_PER_REPLICA * self._replicas()
        return self._listeners() or TALKING_PER_REPLICA * self._replicas()

    def counts(self, priority: Priority, other: Priority) -> bool:
        return priority is Priority.BATCH or other is not Priority.BATCH


class Permit:
    """A call's right to stay. A context manager: leaving it gives the place back."""

    def __init__(self, admission: "Admission", priority: Priority) -> None:
        self._admission = admission
        self._priority = priority
        self._talking = False
        self._held = True

    @property
    def talking(self) -> bool:
        """Whether the call has text that is not yet spoken."""
        return self._talking

    @talking.setter
    def talking(self, talking: bool) -> None:
        if self._held and talking != self._talking:
            self._talking = talking
            self._admission.talking_by_class[self._priority] += 1 if talking else -1
            self._admission.on_change()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._held:
            self.talking = False
            self._held = False
            self._admission.open -= 1
            self._admission.on_change()


class Admission:
    """Counts calls: `open` ones, and `talking` ones, which have text not yet spoken.

    `stream_limit` bounds the first, `talking_limit` the second; both may change.
    `retry_after` gives the seconds after which a refused caller should come back.
    """

    def __init__(self, stream_limit: Callable[[], int], talking_limit: TalkingLimit) -> None:
        self._stream_limit = stream_limit
        self._talking_limit = talking_limit
        self.open = 0
        self.talking_by_class = dict.fromkeys(Priority, 0)
        self.draining = False
        self.ready: Callable[[], bool] = lambda: False
        self.retry_after: Callable[[], float] = lambda: 1.0
        self.on_change: Callable[[], None] = lambda: None
        self.started = False  # the model has been loaded

    @property
    def stream_limit(self) -> int:
        """How many calls may be open."""
        return self._stream_limit()

    @property
    def talking(self) -> int:
        """Calls that have text not yet spoken."""
        return sum(self.talking_by_class.values())

    @property
    def queue_limit(self) -> int:
        """How many may have, for a call that somebody listens to; it follows the speed."""
        return self._talking_limit.limit(Priority.STANDARD)

    def admit(self, *, stream: bool, priority: Priority = Priority.STANDARD) -> Permit:
        """A permit, or the reason why not.

        `stream`: a bidirectional call, which talks later if at all; other calls talk from the
        start. Raises Unavailable or Overloaded.
        """
        self.check_available()
        limit = Reason.STREAM_LIMIT if stream else Reason.QUEUE_FULL
        if self.open >= self.stream_limit:
            raise Overloaded(
                limit,
                f"{self.open} calls are open, limit {self.stream_limit}",
                retry_after=self.retry_after(),
            )
        most = self._talking_limit.limit(priority)
        talking = sum(
            count
            for other, count in self.talking_by_class.items()
            if self._talking_limit.counts(priority, other)
        )
        if talking >= most:
            raise Overloaded(
                limit,
                f"{talking} calls have text waiting or being spoken, limit {most}",
                retry_after=self.retry_after(),
            )
        self.open += 1
        permit = Permit(self, priority)
        permit.talking = not stream
        self.on_change()
        return permit

    def check_available(self) -> None:
        """Raises Unavailable while the server starts, drains, or has no healthy replica."""
        if self.draining:
            raise Unavailable(
                Reason.DRAINING, "the server is shutting down", retry_after=self.retry_after()
            )
        if not self.started:
            raise Unavailable(
                Reason.STARTING, "the model is still loading", retry_after=self.retry_after()
            )
        if not self.ready():
            raise Unavailable(
                Reason.NO_REPLICA, "no healthy replica now", retry_after=self.retry_after()
            )
