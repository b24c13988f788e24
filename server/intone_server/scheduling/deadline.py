"""The order that keeps listeners fed: class, fair shares, earliest playout deadline."""

import time
from collections import Counter
from collections.abc import Callable, Iterable

from intone_server.scheduling.credit import Credit
from intone_server.scheduling.generation import Generation, Priority

# A first segment should be heard this soon: it goes before those whose listeners have more left.
FIRST_AUDIO_TARGET_SECONDS = 0.4
# A stream whose listener has more than this left to hear yields to every other.
FAR_AHEAD_SECONDS = 30.0
# After each of these a waiting generation counts as one class higher. Long enough that what is
# meant to wait leaves the replicas to listeners; no segment of a BATCH call is left out for longer
# than a minute, unless its listener is far ahead.
AGEING_SECONDS = 30.0


class DeadlinePolicy:
    """Of those who are not far ahead of their listeners, if there are any:

    1. the highest class, with ageing;
    2. of that, clients that have credit in this round of deficit round robin;
    3. of those, calls with the fewest running generations: a call that speaks several segments at
       the same time gets no more than its share while others wait;
    4. of those, the earliest playout deadline, then the first that arrived.

    A generation that lost its replica goes before all of them. The deadline of a first segment is
    its arrival and FIRST_AUDIO_TARGET_SECONDS; of a later one the moment its listener runs dry, but
    not before its arrival: silence before that was not the queue's, and nobody who came later and
    is dry goes first. Listeners are asked when somebody is next, as they hear on while text waits.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._again: list[Generation] = []
        self._waiting: list[Generation] = []  # in order of arrival
        self._clients: Counter[str] = Counter()  # of those
        self._credit = {priority: Credit() for priority in Priority}

    def push(self, generation: Generation, *, again: bool = False) -> None:
        if again:
            self._again.append(generation)
        else:
            self._waiting.append(generation)
            self._clients[generation.client] += 1

    def pop(self, running: Iterable[Generation]) -> Generation:
        if self._again:
            return self._again.pop(0)
        if not self._waiting:
            raise ValueError("nothing waits")
        runs = list(running)
        priority, entries = self._first_class(self._clock())
        credit = self._credit[priority]
        credit.keep(self._clients.keys() | {generation.client for generation in runs})
        shares = Counter(id(generation.owner) for generation in runs)
        first = _next(entries, credit, shares)
        if first is None:
            credit.begin_rounds({generation.client for generation in entries})
            first = _next(entries, credit, shares)
        assert first is not None
        credit.charge(first.client, first.estimated_seconds)
        self.remove(first)
        return first

    def _first_class(self, now: float) -> tuple[Priority, list[Generation]]:
        """The class that is served now, and those of it that are not far ahead, by deadline; those
        that are, if all are."""
        best = (True, Priority.BATCH)
        entries: list[tuple[float, int, Generation]] = []
        for place, generation in enumerate(self._waiting):
            dry_at = generation.listener.dry_at()
            far_ahead = dry_at is not None and dry_at - now > FAR_AHEAD_SECONDS
            risen = int((now - generation.queued_at) / AGEING_SECONDS)
            rank = (far_ahead, Priority(max(0, generation.priority - risen)))
            if rank < best:
                best = rank
                entries.clear()
            if rank == best:
                arrival = generation.queued_at
                soon = arrival + FIRST_AUDIO_TARGET_SECONDS
                deadline = soon if dry_at is None else max(dry_at, arrival)
                entries.append((deadline, place, generation))
        return best[1], [generation for _, _, generation in sorted(entries)]

    def remove(self, generation: Generation) -> None:
        if generation in self._again:
            self._again.remove(generation)
            return
        self._waiting.remove(generation)
        self._clients[generation.client] -= 1
        if not self._clients[generation.client]:
            del self._clients[generation.client]

    @property
    def next_class(self) -> Priority:
        if self._again or not self._waiting:
            return Priority.INTERACTIVE
        return self._first_class(self._clock())[0]

    @property
    def work_seconds(self) -> float:
        return sum(generation.estimated_seconds for generation in self._again + self._waiting)

    def copy(self, clock: Callable[[], float]) -> "DeadlinePolicy":
        copy = _Ahead(clock)
        copy._again = self._again.copy()
        copy._waiting = self._waiting.copy()
        copy._clients = self._clients.copy()
        copy._credit = {priority: credit.copy() for priority, credit in self._credit.items()}
        return copy

    def __len__(self) -> int:
        return len(self._again) + len(self._waiting)


class _Ahead(DeadlinePolicy):
    """Looks ahead, with listeners who hear what they have and are sent nothing: their order stands
    until a moment that is known, so it need not be found anew for each that is next."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self._class = Priority.BATCH
        self._entries: list[Generation] = []
        self._stands_until = 0.0

    def push(self, generation: Generation, *, again: bool = False) -> None:
        super().push(generation, again=again)
        self._entries = []

    def remove(self, generation: Generation) -> None:
        super().remove(generation)
        if generation in self._entries:
            self._entries.remove(generation)

    def _first_class(self, now: float) -> tuple[Priority, list[Generation]]:
        if not self._entries or now >= self._stands_until:
            self._class, self._entries = super()._first_class(now)
            self._stands_until = min(_next_change(entry, now) for entry in self._waiting)
        return self._class, self._entries


def _next(entries: Iterable[Generation], credit: Credit, shares: Counter[int]) -> Generation | None:
    """The first of those whose client has credit and whose owner has the least running."""
    best, least = None, 0
    for generation in entries:
        share = shares[id(generation.owner)]
        if (best is None or share < least) and credit.has(generation.client):
            best, least = generation, share
            if not share:
                break
    return best


def _next_change(generation: Generation, now: float) -> float:
    """When it rises by a class, or is no longer far ahead of its listener."""
    waited_seconds = now - generation.queued_at
    rises_at = now + AGEING_SECONDS - waited_seconds % AGEING_SECONDS
    dry_at = generation.listener.dry_at()
    if dry_at is None or dry_at - now <= FAR_AHEAD_SECONDS:
        return rises_at
    return min(rises_at, dry_at - FAR_AHEAD_SECONDS)
