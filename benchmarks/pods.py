"""How many pods some callers need, and what they hear with so many. Simulated; see callers.py."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from benchmarks.callers import Callers, Setup
from benchmarks.listener import AUDIBLE_SECONDS
from benchmarks.medians import percentile


@dataclass(frozen=True, slots=True)
class Summary:
    """What the counted calls of one simulation come to.

    First audio in seconds from the first attempt; infinite if it never came, as with a call that
    was `refused` for good. `refused` and `silent` are shares of the calls and of the listeners,
    `refusals` are per call, `silence` are seconds per listener, `busy` is a share of the replicas,
    `speed` are the seconds of audio that all pods made per second.
    """

    callers: int
    pods: int
    seed: int
    calls: int
    first_audio_p50: float
    first_audio_p95: float
    first_audio_p99: float
    refused: float
    refusals: float
    silent: float
    silence: float
    busy: float
    speed: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What is promised to callers: seconds, and the share of listeners who may hear silence."""

    first_audio_p95: float
    silent: float = 1.0

    def hold(self, summary: Summary) -> bool:
        """Whether it is kept. Equal to a limit is within it."""
        return summary.first_audio_p95 <= self.first_audio_p95 and summary.silent <= self.silent


@dataclass(frozen=True, slots=True)
class Answer:
    """The least number of pods that hold the limits, for each seed, and what callers hear then;
    None where even a pod for each caller is too few."""

    callers: int
    by_seed: tuple[Summary | None, ...]

    @property
    def pods(self) -> int | None:
        """Enough for every seed."""
        found = [summary.pods for summary in self.by_seed if summary is not None]
        return max(found) if len(found) == len(self.by_seed) else None

    @property
    def fewest(self) -> int | None:
        """Enough for one seed: from here to `pods` the answer is not certain."""
        return min((each.pods for each in self.by_seed if each is not None), default=None)


def simulate(setup: Setup) -> Summary:
    """One simulation to its end."""
    callers = Callers(setup)
    callers.run()
    calls = callers.counted()
    served = [call for call in calls if call.first_audio_seconds is not None]
    first = [math.inf if c.first_audio_seconds is None else c.first_audio_seconds for c in calls]
    silence = [call.silence_seconds for call in served]
    listeners = max(1, len(served))
    seconds = calls[-1].at - calls[0].at
    return Summary(
        callers=setup.callers,
        pods=setup.pods,
        seed=setup.seed,
        calls=len(calls),
        first_audio_p50=percentile(first, 0.5),
        first_audio_p95=percentile(first, 0.95),
        first_audio_p99=percentile(first, 0.99),
        refused=1 - len(served) / len(calls),
        refusals=sum(call.refusals for call in calls) / len(calls),
        silent=sum(seconds > AUDIBLE_SECONDS for seconds in silence) / listeners,
        silence=sum(silence) / listeners,
        busy=callers.busy_share,
        speed=sum(call.audio_seconds for call in served) / seconds if seconds else 0.0,
    )


def least(suffices: Callable[[int], bool], guess: int, most: int) -> int | None:
    """The least number from 1 to `most` that suffices, if more than enough suffices as well; None
    if not even `most` does. Looks around `guess` first."""
    low, high, step = 0, min(max(1, guess), most), 1  # `low` does not suffice
    if suffices(high):
        while high > 1 and not low:
            below = max(1, high - step)
            if suffices(below):
                high, step = below, 2 * step
            else:
                low = below
    else:
        found = False
        while not found:
            if high == most:
                return None
            low, high, step = high, min(high + step, most), 2 * step
            found = suffices(high)
    while high - low > 1:
        middle = (low + high) // 2
        if suffices(middle):
            high = middle
        else:
            low = middle
    return high


def pods_needed(setup: Setup, limits: Limits, seeds: Sequence[int]) -> Answer:
    """For the callers of `setup`, whose own pods and seed do not matter."""
    found: list[Summary | None] = []
    # A pod for all that it can feed is about right where people listen for half of the time.
    guess = math.ceil(setup.callers / setup.speed.totals[-1] / 2)
    for seed in seeds:
        summaries: dict[int, Summary] = {}

        def suffices(pods: int, seed: int = seed, known: dict[int, Summary] = summaries) -> bool:
            known[pods] = simulate(replace(setup, pods=pods, seed=seed))
            return limits.hold(known[pods])

        pods = least(suffices, guess, setup.callers)
        found.append(None if pods is None else summaries[pods])
        guess = pods or guess
    return Answer(setup.callers, tuple(found))
