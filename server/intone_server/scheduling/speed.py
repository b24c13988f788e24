"""How fast the replicas make audio together."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping

# Seconds of audio per second of one replica alone, assumed until one was measured: pocket-tts on
# two cores makes 2 to 4.
FIRST_SPEED = 2.0
# Seconds with a number of busy replicas after which what was measured before counts 1/e.
MEMORY_SECONDS = 30.0
# What the engine measured when it started counts as so many seconds, as it was measured well.
LEARNT_SECONDS = 5.0
# Less than this says nothing: audio comes in chunks.
ENOUGH_SECONDS = 1.0


class Speed:
    """Audio seconds made per second by all busy replicas together, by how many are busy: replicas
    of one worker are rows of one batch, so each is slower in company.

    Exponentially weighted for each number of replicas. Between numbers that were measured it is
    interpolated. Beyond them it is assumed to go with the square root of the number, which lies
    between no gain at all and cores enough for each, until that many are busy and it is measured.
    """

    def __init__(self, first: Mapping[int, float] | None = None) -> None:
        self._made: dict[int, float] = {}  # weighted seconds of audio
        self._time: dict[int, float] = {}  # weighted seconds
        for busy, total_speed in (first or {}).items():
            self.learn(busy, total_speed)

    def learn(self, busy: int, total_speed: float) -> None:
        """Take over what was measured elsewhere; later measurements replace it."""
        self._made[busy] = total_speed * LEARNT_SECONDS
        self._time[busy] = LEARNT_SECONDS

    def observe(self, busy: int, made_seconds: float, seconds: float) -> None:
        """For `seconds`, `busy` replicas together made so much audio."""
        kept = math.exp(-seconds / MEMORY_SECONDS)
        self._made[busy] = self._made.get(busy, 0.0) * kept + made_seconds
        self._time[busy] = self._time.get(busy, 0.0) * kept + seconds

    @property
    def is_known(self) -> bool:
        """Whether any speed was measured."""
        return bool(self._known())

    def total(self, busy: int) -> float:
        """Audio seconds per second when so many replicas are busy; `busy` is 1 or more."""
        known = self._known() or {1: FIRST_SPEED}
        levels = sorted(known)
        place = bisect_left(levels, busy)
        if place == len(levels) or (place == 0 and levels[0] != busy):
            nearest = levels[min(place, len(levels) - 1)]
            return known[nearest] * math.sqrt(busy / nearest)
        if levels[place] == busy:
            return known[busy]
        below, above = levels[place - 1], levels[place]
        share = (busy - below) / (above - below)
        return known[below] + share * (known[above] - known[below])

    def fed(self, replicas: int) -> int:
        """How many of so many replicas can be busy with each of them in real time; at least 1."""
        return max((n for n in range(1, replicas + 1) if self.total(n) >= n), default=1)

    def listeners(self, replicas: int) -> int:
        """How many listeners so many replicas keep fed. Replicas that are faster than real time
        even when all are busy take turns between more."""
        fed = self.fed(replicas)
        return fed if fed < replicas else max(fed, int(self.total(replicas)))

    def _known(self) -> dict[int, float]:
        return {
            busy: made / self._time[busy]
            for busy, made in self._made.items()
            if made > 0 and self._time[busy] >= ENOUGH_SECONDS
        }


class Meter:
    """Measures a Speed as it happens. A span is the time in which as many replicas are busy."""

    def __init__(self, speed: Speed, clock: Callable[[], float]) -> None:
        self._speed = speed
        self._clock = clock
        self._busy = 0
        self._since = clock()
        self._made_seconds = 0.0

    def made(self, seconds: float) -> None:
        """Audio came."""
        self._made_seconds += seconds

    def busy(self, count: int) -> None:
        """So many replicas are busy from now on."""
        seconds = self._clock() - self._since
        if self._busy and seconds > 0:
            self._speed.observe(self._busy, self._made_seconds, seconds)
        self._made_seconds = 0.0
        self._since += seconds
        self._busy = count

    def restart(self, count: int) -> None:
        """So many are busy from now on, and what went before says nothing: a worker was lost."""
        self._busy = 0
        self.busy(count)
