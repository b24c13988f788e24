"""How busy the replicas are, and what would become of a segment that arrived now."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from intone_server.engines.base import Sampling, VoiceRef
from intone_server.scheduling.forecast import Forecast, foresee, remaining_seconds
from intone_server.scheduling.generation import (
    NOBODY,
    Generation,
    Listener,
    Priority,
    Unobserved,
)
from intone_server.scheduling.policy import Policy
from intone_server.scheduling.replica import Replica, ReplicaState
from intone_server.scheduling.speed import Speed


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the replicas are.

    Seconds of `queued_work` are of audio. Speeds are audio seconds made per second, 0 until one was
    measured: `speed` what a call gets that has the server to itself, `total_speed` what all
    replicas make together when all are busy. The estimated wait is that of a first segment of class
    STANDARD that came now, from a client who has nothing else here.
    """

    replicas_total: int
    replicas_busy: int
    replicas_unhealthy: int
    queue_depth: int
    queued_work_seconds: float
    estimated_wait_seconds: float
    speed: float
    total_speed: float


class Outlook:
    """Reads the queue and the replicas, and changes nothing."""

    def __init__(
        self,
        policy: Policy,
        speed: Speed,
        replicas: Callable[[], Iterable[Replica]],
        clock: Callable[[], float],
    ) -> None:
        self._queue = policy
        self._speed = speed
        self._replicas = replicas
        self._clock = clock

    def running(self) -> list[Generation]:
        """What replicas run for somebody."""
        return [r.generation for r in self._replicas() if r.generation is not None]

    def busy(self) -> int:
        """How many replicas are busy, also with what nobody wants any more."""
        return sum(r.state is ReplicaState.BUSY for r in self._replicas())

    def load(self) -> Load:
        """The state now."""
        total, busy = len(list(self._replicas())), self.busy()
        healthy = self._healthy()
        return Load(
            replicas_total=total,
            replicas_busy=busy,
            replicas_unhealthy=total - healthy,
            queue_depth=len(self._queue),
            queued_work_seconds=self.work_seconds(),
            estimated_wait_seconds=self._wait_seconds() if busy >= healthy else 0.0,
            speed=self._speed.total(1) if self._speed.is_known else 0.0,
            total_speed=self.total_speed(),
        )

    def work_seconds(self) -> float:
        """Audio to be made: all that waits, and what is left of the running, as estimated."""
        return self._queue.work_seconds + sum(map(remaining_seconds, self.running()))

    def total_speed(self) -> float:
        """Audio seconds that all replicas make per second when all are busy, 0 until a speed was
        measured."""
        replicas = len(list(self._replicas()))
        return self._speed.total(replicas) if replicas and self._speed.is_known else 0.0

    def listeners(self) -> int:
        """How many listeners the replicas keep fed, 0 until a speed was measured."""
        replicas = len(list(self._replicas()))
        return self._speed.listeners(replicas) if replicas and self._speed.is_known else 0

    def forecast(
        self,
        *,
        priority: Priority,
        client: str,
        estimated_seconds: float,
        listener: Listener = NOBODY,
    ) -> Forecast:
        """What would become of a segment of so much audio that arrived now, spoken in one go;
        without a `listener` it is a call's first."""
        candidate = Generation(
            text="",
            voice=VoiceRef(""),
            sampling=Sampling(),
            seed=0,
            estimated_seconds=estimated_seconds,
            observer=Unobserved(),
            priority=priority,
            client=client,
            listener=listener,
        )
        candidate.queued_at = self._clock()
        return foresee(
            candidate,
            policy=self._queue,
            running=self.running(),
            replicas=max(1, self._healthy()),
            speed=self._speed,
        )

    def _wait_seconds(self) -> float:
        return self.forecast(
            priority=Priority.STANDARD, client="", estimated_seconds=0.0
        ).wait_seconds

    def _healthy(self) -> int:
        return self.busy() + sum(r.state is ReplicaState.IDLE for r in self._replicas())
