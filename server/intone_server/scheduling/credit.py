"""Fair shares of the replicas for the clients of one class."""

import math
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

# Audio that a client may have in one round. About a long segment: with less, clients take turns
# segment by segment whoever's listener needs it; with more, one that asks for much holds up others.
QUANTUM_SECONDS = 10.0


class Credit:
    """Deficit round robin (Shreedhar and Varghese 1996), with debts in the place of deficits.

    In a round each client may begin segments while it has credit, a quantum at the start; what the
    last one costs beyond that is a debt, worked off in the next rounds. Who comes first inside a
    round is left to the caller. While two clients both wait, from the moment they came, the seconds
    they were served differ by less than the quantum and the largest segment together: the credit of
    each is at most the quantum and above minus that segment, and both are given the same.
    """

    def __init__(self) -> None:
        self._left: dict[str, float] = {}  # seconds; clients who are not here have a full quantum

    def has(self, client: str) -> bool:
        """Whether it may begin a segment in this round."""
        return self._left.get(client, QUANTUM_SECONDS) > 0

    def charge(self, client: str, seconds: float) -> None:
        """It begins a segment of `seconds` of audio."""
        self._left[client] = self._left.get(client, QUANTUM_SECONDS) - seconds

    def begin_rounds(self, clients: Iterable[str]) -> None:
        """None of these `clients` has credit: as many new rounds as it takes until one has."""
        least_debt = min(-self._left[client] for client in clients)
        granted = QUANTUM_SECONDS * (math.floor(least_debt / QUANTUM_SECONDS) + 1)
        for client, left in list(self._left.items()):
            if left + granted < QUANTUM_SECONDS:
                self._left[client] = left + granted
            else:
                del self._left[client]

    def keep(self, clients: AbstractSet[str]) -> None:
        """Forget all but these, so that what is remembered is bounded."""
        for client in self._left.keys() - clients:
            del self._left[client]

    def copy(self) -> "Credit":
        """The same, apart."""
        copy = Credit()
        copy._left = dict(self._left)
        return copy
