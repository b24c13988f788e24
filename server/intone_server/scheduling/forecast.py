"""What becomes of a segment that arrives now: the queue played forward at the measured speed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from intone_server.scheduling.generation import Generation, Priority
from intone_server.scheduling.policy import Policy
from intone_server.scheduling.speed import Speed

# Of its estimate, what a running segment is assumed to need at the least.
UNFINISHED_SHARE = 0.1
# Less audio than this is none: what is left when differences of times are taken.
NOTHING_SECONDS = 1e-9


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds from now until a replica begins, and until all audio is made."""

    wait_seconds: float
    done_seconds: float


def waits_for_listeners(
    queue: Policy, running: Sequence[Generation], replicas: int, speed: Speed
) -> bool:
    """Whether what is next in `queue` has to wait although a replica may be idle: BATCH calls do
    not slow others down below real time. They age, so no wait is for ever."""
    return (
        len(running) >= speed.fed(replicas)
        and any(generation.priority is not Priority.BATCH for generation in running)
        and queue.next_class is Priority.BATCH
    )


@dataclass(slots=True)
class _Run:
    generation: Generation
    left_seconds: float


class _Time:
    """The clock of what is played forward."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def remaining_seconds(generation: Generation) -> float:
    """Audio that is probably still to be made: what runs is never estimated to be over."""
    estimate = generation.estimated_seconds
    return max(UNFINISHED_SHARE * estimate, estimate - generation.made_seconds)


def foresee(
    candidate: Generation,
    *,
    policy: Policy,
    running: Iterable[Generation],
    replicas: int,
    speed: Speed,
) -> Forecast:
    """What becomes of `candidate`, which arrives at its `queued_at`, with so many `replicas` (one
    at the least) and nobody coming later. Every segment lasts as estimated, and all that run share
    the speed equally; `policy` is left as it is."""
    time = _Time(candidate.queued_at)
    queue = policy.copy(time)
    queue.push(candidate)
    runs = [_Run(generation, remaining_seconds(generation)) for generation in running]
    begins_at = time.now
    while True:
        while len(queue) and len(runs) < replicas:
            beside = [run.generation for run in runs]
            if waits_for_listeners(queue, beside, replicas, speed):
                break
            first = queue.pop(beside)
            if first is candidate:
                begins_at = time.now
            runs.append(_Run(first, first.estimated_seconds))
        made_seconds = min(run.left_seconds for run in runs)
        time.now += made_seconds * len(runs) / speed.total(len(runs))
        for run in runs:
            run.left_seconds -= made_seconds
            if run.generation is candidate and run.left_seconds <= NOTHING_SECONDS:
                arrived_at = candidate.queued_at
                return Forecast(begins_at - arrived_at, time.now - arrived_at)
        runs = [run for run in runs if run.left_seconds > NOTHING_SECONDS]
