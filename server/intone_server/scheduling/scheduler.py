"""The admission queue and the replicas: who is spoken next, and where.

The one place that enforces one generation per replica.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from intone_server.engines.base import Ending
from intone_server.errors import IntoneError, Reason, SynthesisFailed, TimedOut, Unavailable
from intone_server.scheduling.generation import Generation, GenerationStatus
from intone_server.scheduling.policy import Policy
from intone_server.scheduling.replica import Replica, ReplicaState
from intone_server.scheduling.worker import SupervisedWorker
from intone_server.workers.messages import Audio, Failed, Finished

# Weight of the newest segment in the moving average of speed.
SPEED_WEIGHT = 0.2
# Assumed until the first segment has been measured: pocket-tts on two cores makes 2 to 4.
FIRST_SPEED = 2.0
# Of its estimate, what a running segment is assumed to need at the least.
UNFINISHED_SHARE = 0.1
# A segment may run four times its estimated audio plus this before it is given up: the slowest
# machine worth using is near real time.
SEGMENT_TIMEOUT_FACTOR = 4.0
SEGMENT_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the replicas are. Seconds of `queued_work` are of audio; `speed` is 0 if unknown."""

    replicas_total: int
    replicas_busy: int
    replicas_unhealthy: int
    queue_depth: int
    queued_work_seconds: float
    estimated_wait_seconds: float
    speed: float


class Scheduler:
    """Hands waiting generations to idle replicas, in the order of `policy`.

    Never waits and never blocks: everything happens in callbacks on the event loop.
    """

    def __init__(self, policy: Policy) -> None:
        self._queue = policy
        self.workers: list[SupervisedWorker] = []
        self.on_change: Callable[[], None] = lambda: None
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._speed = 0.0

    def submit(self, generation: Generation) -> None:
        """Queue a generation; it starts at once if a replica is idle."""
        generation.place = self
        generation.queued_at = time.monotonic()
        self._queue.push(generation)
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
            self._queue.remove(generation)
        self.on_change()

    def position(self, generation: Generation) -> int | None:
        """How many wait before this one; None if it does not wait."""
        return next((i for i, other in enumerate(self._queue) if other is generation), None)

    def load(self) -> Load:
        """The state now."""
        replicas = list(self.replicas())
        busy = [r for r in replicas if r.state is ReplicaState.BUSY]
        healthy = len(busy) + sum(r.state is ReplicaState.IDLE for r in replicas)
        waiting = sum(g.estimated_seconds for g in self._queue)
        now = time.monotonic()
        speed = self._speed or FIRST_SPEED
        running = sum(
            _remaining_seconds(r.generation, now, speed) for r in busy if r.generation is not None
        )
        all_busy = len(busy) >= healthy
        wait = (waiting + running) / speed / max(1, healthy) if all_busy else 0.0
        return Load(
            replicas_total=len(replicas),
            replicas_busy=len(busy),
            replicas_unhealthy=len(replicas) - healthy,
            queue_depth=len(self._queue),
            queued_work_seconds=waiting + running,
            estimated_wait_seconds=wait,
            speed=self._speed,
        )

    def is_ready(self) -> bool:
        """Whether any replica can take generations, now or when it has finished one."""
        return any(worker.is_ready for worker in self.workers)

    def retry_after(self) -> float:
        """When a refused caller should come back: seconds, jittered so that they do not return
        all together."""
        return min(max(self.load().estimated_wait_seconds, 0.5), 10.0) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter

    def replicas(self) -> Iterator[Replica]:
        """All replicas of all workers."""
        for worker in self.workers:
            yield from worker.replicas

    def on_idle(self) -> None:
        """A replica can take a generation."""
        self._dispatch()
        self.on_change()

    def on_report(self, replica: Replica, report: Audio | Finished | Failed) -> None:
        """Something about the generation that `replica` runs for somebody."""
        generation = replica.generation
        assert generation is not None
        match report:
            case Audio(samples=samples):
                generation.has_audio = True
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
        # All of them first: none of its replicas may be given anything now.
        lost = [generation for replica in replicas if (generation := replica.lost())]
        for generation in lost:
            self._stop_timer(generation)
            if generation.has_audio or generation.attempts > 1:
                error = Unavailable(
                    Reason.REPLICA_LOST,
                    "the worker that spoke this segment was lost",
                    retry_after=self.retry_after(),
                )
                self._fail(generation, GenerationStatus.FAILED, error)
            else:
                generation.become(GenerationStatus.QUEUED)
                generation.queued_at = time.monotonic()
                self._queue.push(generation, again=True)
                if generation.max_queue_wait_seconds is not None:
                    left = generation.max_queue_wait_seconds - generation.queue_seconds
                    self._after(generation, max(0.0, left), self._expire)
        self._dispatch()
        self.on_change()

    def measured(self, audio_seconds: float, run_seconds: float) -> None:
        """Take a finished segment into the moving average of speed."""
        if run_seconds > 0.0 and audio_seconds > 0.0:
            speed = audio_seconds / run_seconds
            self._speed += (speed - self._speed) * (SPEED_WEIGHT if self._speed else 1.0)

    def _dispatch(self) -> None:
        for worker in self.workers:
            for replica in worker.replicas:
                if replica.state is not ReplicaState.IDLE:
                    continue
                if not len(self._queue):
                    return
                running = [r.generation for r in self.replicas() if r.generation is not None]
                self._run(self._queue.pop(running), replica, worker)

    def _run(self, generation: Generation, replica: Replica, worker: SupervisedWorker) -> None:
        self._stop_timer(generation)
        generation.become(GenerationStatus.RUNNING)
        generation.attempts += 1
        generation.started_at = time.monotonic()
        generation.queue_seconds += generation.started_at - generation.queued_at
        worker.touch()
        replica.start(generation)
        timeout = SEGMENT_TIMEOUT_FACTOR * generation.estimated_seconds + SEGMENT_TIMEOUT_SECONDS
        self._after(generation, timeout, self._time_out)
        generation.observer.on_started()
        self.on_change()

    def _replica_of(self, generation: Generation) -> Replica | None:
        return next((r for r in self.replicas() if r.generation is generation), None)

    def _finish(self, generation: Generation, status: GenerationStatus) -> None:
        self._stop_timer(generation)
        if generation.status is GenerationStatus.RUNNING:
            generation.run_seconds = time.monotonic() - generation.started_at
        generation.become(status)

    def _fail(self, generation: Generation, status: GenerationStatus, error: IntoneError) -> None:
        self._finish(generation, status)
        generation.observer.on_failed(error)

    def _expire(self, generation: Generation) -> None:
        self._queue.remove(generation)
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
        seconds = time.monotonic() - generation.started_at
        error = TimedOut(
            Reason.SEGMENT_TIMEOUT,
            f"the segment was not spoken within {seconds:.0f} s",
            retry_after=self.retry_after(),
        )
        self._fail(generation, GenerationStatus.FAILED, error)

    def _after(
        self, generation: Generation, seconds: float, then: Callable[[Generation], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        self._timers[generation.id] = loop.call_later(seconds, then, generation)

    def _stop_timer(self, generation: Generation) -> None:
        timer = self._timers.pop(generation.id, None)
        if timer is not None:
            timer.cancel()


def _remaining_seconds(generation: Generation, now: float, speed: float) -> float:
    """Audio that is probably still to be made: what runs is never estimated to be over."""
    estimate = generation.estimated_seconds
    return max(UNFINISHED_SHARE * estimate, estimate - (now - generation.started_at) * speed)
