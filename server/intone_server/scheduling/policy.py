"""Who is next: what an order of the admission queue has to offer, and the order of arrival."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from intone_server.scheduling.generation import Generation, Priority


class Policy(Protocol):
    """A collection of waiting generations that knows which one is next.

    `Generation.queued_at`, on the policy's clock, is set before one is pushed.
    """

    def push(self, generation: Generation, *, again: bool = False) -> None:
        """Take in a generation. `again`: it had a replica, which was lost, so it goes first."""

    def pop(self, running: Iterable[Generation]) -> Generation:
        """Take out the one that is next, beside those that are running. Raises ValueError if there
        is none."""

    def remove(self, generation: Generation) -> None:
        """Take out this one. Raises ValueError if it is not there."""

    @property
    def next_class(self) -> Priority:
        """Of the one that is next, if any waits."""

    @property
    def work_seconds(self) -> float:
        """Estimated audio of all that wait."""

    def copy(self, clock: Callable[[], float]) -> "Policy":
        """One that decides the same and shares no state, on another clock: to look ahead with."""

    def __len__(self) -> int: ...


def order(policy: Policy, running: Iterable[Generation], now: float) -> Iterator[Generation]:
    """All that wait, in the order in which they would be served if nothing changed."""
    ahead = policy.copy(lambda: now)
    beside = list(running)
    while len(ahead):
        yield ahead.pop(beside)


class FifoPolicy:
    """Order of arrival among calls; a call that speaks several segments at the same time gets no
    more than its share of the replicas while others wait."""

    def __init__(self, waiting: Iterable[Generation] = ()) -> None:
        self._waiting = deque(waiting)

    def push(self, generation: Generation, *, again: bool = False) -> None:
        if again:
            self._waiting.appendleft(generation)
        else:
            self._waiting.append(generation)

    def pop(self, running: Iterable[Generation]) -> Generation:
        shares = Counter(id(generation.owner) for generation in running)
        # The first of those whose owner has the least.
        first = min(self._waiting, key=lambda generation: shares[id(generation.owner)])
        self._waiting.remove(first)
        return first

    def remove(self, generation: Generation) -> None:
        self._waiting.remove(generation)

    @property
    def next_class(self) -> Priority:
        return Priority.STANDARD  # it knows no classes

    @property
    def work_seconds(self) -> float:
        return sum(generation.estimated_seconds for generation in self._waiting)

    def copy(self, clock: Callable[[], float]) -> "FifoPolicy":  # noqa: ARG002 - it needs none
        return FifoPolicy(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)
