"""The admission queue and the replicas: who is spoken next, and where.

The one place that enforces one generation per replica.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from intone_server.engines.base import Ending
from intone_server.errors import IntoneError, Reason, SynthesisFailed, TimedOut, Unavailable
from intone_server.metrics import Metrics
from intone_server.scheduling.forecast import waits_for_listeners
from intone_server.scheduling.generation import (
    Generation,
    GenerationStatus,
    Priority,
)
from intone_server.scheduling.outlook import Outlook
from intone_server.scheduling.policy import Policy, order
from intone_server.scheduling.replica import Replica, ReplicaState
from intone_server.scheduling.speed import Meter, Speed
from intone_server.scheduling.worker import SupervisedWorker
from intone_server.workers.messages import Audio, Failed, Finished

# A segment may run four times its estimated audio plus this before it is given up: the slowest
# machine worth using is near real time.
SEGMENT_TIMEOUT_FACTOR = 4.0
SEGMENT_TIMEOUT_SECONDS = 5.0
BYTES_PER_SAMPLE = 4  # float32


class Timer(Protocol):
    """What will happen at a time."""

    def cancel(self) -> None:
        """It will not."""


def _later(seconds: float, then: Callable[[Generation], None], generation: Generation) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, then, generation)


class Scheduler:
    """Hands waiting generations to idle replicas, in the order of `policy`.

    Never waits and never blocks: everything happens in callbacks on the event loop. `clock` and
    `later`, which calls back after so many seconds, are given by those who simulate.
    """

    def __init__(
        self,
        policy: Policy,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[Generation], None], Generation], Timer] = _later,
        metrics: Metrics | None = None,
    ) -> None:
        self._queue = policy
        self._clock = clock
        self._later = later
        self.speed = Speed()
        self._meter = Meter(self.speed, clock)
        self.outlook = Outlook(policy, self.speed, self.replicas, clock)
        self.sample_rate_hertz = 24_000  # of the model
        self.workers: list[SupervisedWorker] = []
        self.on_change: Callable[[], None] = lambda: None
        self._timers: dict[int, Timer] = {}
        self._metrics = metrics or Metrics()
        self.waiting = dict.fromkeys(Priority, 0)  # generations, by class

    def submit(self, generation: Generation) -> None:
        """Queue a generation; it starts at once if a replica is idle."""
        generation.place = self
        self._push(generation)
        if generation.max_queue_wait_seconds is not None:
            self._after(generation, generation.max_queue_wait_seconds, self._expire)
        self._dispatch()

    def forget(self, generation: Generation) -> None:
        """Part of `Generation.cancel`: leave the queue, or stop the replica, now."""
        self._stop_timer(generation)
        replica = self._replica_of(generation)
        if replica is not None:
            replica.drop()
        else:
            self._remove(generation)
        self.on_change()

    def position(self, generation: Generation) -> int | None:
        """How many wait that would be served before this one; None if it does not wait."""
        if generation.status is not GenerationStatus.QUEUED:
            return None
        ahead = order(self._queue, self.outlook.running(), self._clock())
        return next((i for i, other in enumerate(ahead) if other is generation), None)

    def is_ready(self) -> bool:
        """Whether any replica can take generations, now or when it has finished one."""
        return any(worker.is_ready for worker in self.workers)

    def retry_after(self) -> float:
        """When a refused caller should come back: seconds, jittered so that they do not return
        all together."""
        wait_seconds = min(max(self.outlook.load().estimated_wait_seconds, 0.5), 10.0)
        return wait_seconds * random.uniform(0.8, 1.2)  # noqa: S311 - jitter

    def replicas(self) -> Iterator[Replica]:
        """All replicas of all workers."""
        for worker in self.workers:
            yield from worker.replicas

    @property
    def replica_count(self) -> int:
        """How many replicas there are."""
        return sum(len(worker.replicas) for worker in self.workers)

    @property
    def is_full(self) -> bool:
        """Whether no replica is idle now."""
        return all(replica.state is not ReplicaState.IDLE for replica in self.replicas())

    def on_idle(self) -> None:
        """A replica can take a generation."""
        self._meter.busy(self.outlook.busy())
        self._dispatch()
        self.on_change()

    def on_report(self, replica: Replica, report: Audio | Finished | Failed) -> None:
        """Something about the generation that `replica` runs for somebody."""
        generation = replica.generation
        assert generation is not None
        match report:
            case Audio(samples=samples):
                generation.has_audio = True
                seconds = len(samples) / BYTES_PER_SAMPLE / self.sample_rate_hertz
                generation.made_seconds += seconds
                self._meter.made(seconds)
                generation.observer.on_audio(samples)
            case Finished(ending=ending):
                replica.generation = None
                self._finish(generation, GenerationStatus.COMPLETED)
                generation.observer.on_completed(no_end=ending is Ending.NO_END)
            case Failed(message=message):
                replica.drop()
                self._fail(generation, GenerationStatus.FAILED, SynthesisFailed(message))

    def on_lost(self, replicas: list[Replica]) -> None:
        """A worker is gone: what it ran is run once more elsewhere, unless it was heard."""
        # All of them first: none of its replicas may be given anything now, and whoever hears of
        # one may cancel another.
        lost = [generation for replica in replicas if (generation := replica.lost())]
        self._meter.restart(self.outlook.busy())
        failed = [g for g in lost if g.has_audio or g.attempts > 1]
        for generation in lost:
            self._stop_timer(generation)
            if generation in failed:
                self._finish(generation, GenerationStatus.FAILED)
            else:
                self._queue_again(generation)
        for generation in failed:
            error = Unavailable(
                Reason.REPLICA_LOST,
                "the worker that spoke this segment was lost",
                retry_after=self.retry_after(),
            )
            generation.observer.on_failed(error)
        self._dispatch()
        self.on_change()

    def _queue_again(self, generation: Generation) -> None:
        generation.become(GenerationStatus.QUEUED)
        self._push(generation, again=True)
        if generation.max_queue_wait_seconds is not None:
            left = generation.max_queue_wait_seconds - generation.queue_seconds
            self._after(generation, max(0.0, left), self._expire)

    def _dispatch(self) -> None:
        while len(self._queue):
            running = self.outlook.running()
            if waits_for_listeners(self._queue, running, self.replica_count, self.speed):
                return
            free = [w for w in self.workers if any(r.is_free for r in w.replicas)]
            if not free:
                return
            # Where the fewest are busy, as the replicas of one worker share its threads.
            worker = min(free, key=_busy)
            replica = next(r for r in worker.replicas if r.is_free)
            generation = self._queue.pop(running)
            self.waiting[generation.priority] -= 1
            self._run(generation, replica, worker)

    def _push(self, generation: Generation, *, again: bool = False) -> None:
        generation.queued_at = self._clock()
        self._queue.push(generation, again=again)
        self.waiting[generation.priority] += 1

    def _remove(self, generation: Generation) -> None:
        self._queue.remove(generation)
        self.waiting[generation.priority] -= 1

    def _run(self, generation: Generation, replica: Replica, worker: SupervisedWorker) -> None:
        self._stop_timer(generation)
        generation.become(GenerationStatus.RUNNING)
        generation.attempts += 1
        generation.started_at = self._clock()
        waited_seconds = generation.started_at - generation.queued_at
        generation.queue_seconds += waited_seconds
        self._metrics.queue_wait.observe(waited_seconds)
        if generation.predicted_wait_seconds is not None and generation.attempts == 1:
            error_seconds = waited_seconds - generation.predicted_wait_seconds
            self._metrics.wait_prediction_error.observe(error_seconds)
        worker.touch()
        dry_at = generation.listener.dry_at()
        ahead_seconds = 0.0 if dry_at is None else max(0.0, dry_at - generation.started_at)
        replica.start(generation, ahead_seconds)
        self._meter.busy(self.outlook.busy())
        # With all replicas busy each may be slower than real time.
        slowness = max(1.0, self.replica_count / self.speed.total(self.replica_count))
        expected = slowness * generation.estimated_seconds
        timeout = SEGMENT_TIMEOUT_FACTOR * expected + SEGMENT_TIMEOUT_SECONDS
        self._after(generation, timeout, self._time_out)
        generation.observer.on_started()
        self.on_change()

    def _replica_of(self, generation: Generation) -> Replica | None:
        return next((r for r in self.replicas() if r.generation is generation), None)

    def _finish(self, generation: Generation, status: GenerationStatus) -> None:
        self._stop_timer(generation)
        if generation.status is GenerationStatus.RUNNING:
            generation.run_seconds = self._clock() - generation.started_at
        generation.become(status)

    def _fail(self, generation: Generation, status: GenerationStatus, error: IntoneError) -> None:
        self._finish(generation, status)
        generation.observer.on_failed(error)

    def _expire(self, generation: Generation) -> None:
        self._remove(generation)
        error = TimedOut(
            Reason.QUEUE_WAIT_EXCEEDED,
            f"the segment waited {generation.max_queue_wait_seconds:g} s for a replica, "
            "which is scheduling.max_queue_wait",
            retry_after=self.retry_after(),
        )
        self._fail(generation, GenerationStatus.EXPIRED, error)

    def _time_out(self, generation: Generation) -> None:
        replica = self._replica_of(generation)
        assert replica is not None
        replica.drop()
        seconds = self._clock() - generation.started_at
        error = TimedOut(
            Reason.SEGMENT_TIMEOUT,
            f"the segment was not spoken within {seconds:.0f} s",
            retry_after=self.retry_after(),
        )
        self._fail(generation, GenerationStatus.FAILED, error)

    def _after(
        self, generation: Generation, seconds: float, then: Callable[[Generation], None]
    ) -> None:
        self._timers[generation.id] = self._later(seconds, then, generation)

    def _stop_timer(self, generation: Generation) -> None:
        timer = self._timers.pop(generation.id, None)
        if timer is not None:
            timer.cancel()


def _busy(worker: SupervisedWorker) -> int:
    """How many replicas of a worker are busy."""
    return sum(replica.state is ReplicaState.BUSY for replica in worker.replicas)
