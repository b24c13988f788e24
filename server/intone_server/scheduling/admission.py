"""The decision to let a call in, made before anything is written to it."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from intone_server.errors import Overloaded, Reason, Unavailable


class Permit:
    """A call's right to stay. A context manager: leaving it gives the place back."""

    def __init__(self, admission: "Admission") -> None:
        self._admission = admission
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
            self._admission.talking += 1 if talking else -1
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

    `stream_limit` bounds the first, `queue_limit` the second. `retry_after` gives the seconds
    after which a refused caller should come back.
    """

    def __init__(self, stream_limit: int, queue_limit: int) -> None:
        self.stream_limit = stream_limit
        self.queue_limit = queue_limit
        self.open = 0
        self.talking = 0
        self.draining = False
        self.ready: Callable[[], bool] = lambda: False
        self.retry_after: Callable[[], float] = lambda: 1.0
        self.on_change: Callable[[], None] = lambda: None
        self.started = False  # the model has been loaded

    def admit(self, *, stream: bool) -> Permit:
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
        if self.talking >= self.queue_limit:
            raise Overloaded(
                limit,
                f"{self.talking} calls have text waiting or being spoken, limit {self.queue_limit}",
                retry_after=self.retry_after(),
            )
        self.open += 1
        permit = Permit(self)
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
