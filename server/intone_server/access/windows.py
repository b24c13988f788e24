"""How much in a while: a sum over a window of time that moves."""

import math
from collections import deque

SLOTS = 60


class Window:
    """Amounts of the last `seconds`, in SLOTS slots of time.

    What was added in a slot counts until the whole slot is older than the window: never less than
    the true sum, and for at most a slot longer.
    """

    def __init__(self, seconds: float) -> None:
        self._slot_seconds = seconds / SLOTS
        self._slots: deque[tuple[int, float]] = deque()  # (slot, amount), oldest first
        self._sum = 0.0

    def used(self, now: float) -> float:
        """The sum at `now`, which never goes back."""
        oldest = self._slot(now) - SLOTS
        while self._slots and self._slots[0][0] < oldest:
            self._slots.popleft()
            self._sum = math.fsum(amount for _, amount in self._slots)
        return self._sum

    def add(self, now: float, amount: float) -> None:
        """Count so much."""
        slot = self._slot(now)
        if self._slots and self._slots[-1][0] >= slot:
            slot, before = self._slots.pop()
            self._slots.append((slot, before + amount))
        else:
            self._slots.append((slot, amount))
        self._sum += amount

    def wait(self, now: float, room: float) -> float:
        """Seconds until the sum is no more than `room`, if nothing is added; 0: it is."""
        left = self.used(now)
        for slot, amount in self._slots:
            if left <= room:
                break
            left -= amount
            if left <= room + 1e-9:
                return max(0.0, (slot + SLOTS + 1) * self._slot_seconds - now)
        return 0.0

    def _slot(self, now: float) -> int:
        return math.floor(now / self._slot_seconds)
