"""Who is next: the order of the admission queue."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Protocol

from intone_server.scheduling.generation import Generation


class Policy(Protocol):
    """An ordered collection of waiting generations."""

    def push(self, generation: Generation, *, again: bool = False) -> None:
        """Take in a generation. `again`: it had a replica, which was lost, so it goes first."""

    def pop(self, running: Iterable[Generation]) -> Generation:
        """Take out the one that is next, beside those that are running. Raises ValueError if there
        is none."""

    def remove(self, generation: Generation) -> None:
        """Take out this one. Raises ValueError if it is not there."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Generation]:
        """In the order of arrival, which is that of service between calls with equal shares."""


class FifoPolicy:
    """Order of arrival among calls; a call that speaks several segments at the same time gets no
    more than its share of the replicas while others wait."""

    def __init__(self) -> None:
        self._waiting: deque[Generation] = deque()

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

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Generation]:
        return iter(self._waiting)
