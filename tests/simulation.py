"""The real scheduler on simulated time: replicas that make audio, and listeners who play it.

Audio is a fluid: while some replicas are busy, each of them makes an equal part of what all make
per second. It is heard as it is made. Nothing here waits, and no event loop is needed.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from intone_server.engines.base import Ending, Sampling, VoiceRef
from intone_server.errors import IntoneError
from intone_server.scheduling.generation import Generation, GenerationStatus, Priority
from intone_server.scheduling.policy import Policy
from intone_server.scheduling.replica import Replica, ReplicaState
from intone_server.scheduling.scheduler import Scheduler
from intone_server.workers.messages import Audio, Cancel, Finished, Generate

SAMPLE_RATE_HERTZ = 1_000  # enough for times, and cheap
STEP_SECONDS = 0.08  # a worker stops a cancelled generation after its step
NOTHING_SECONDS = 1e-9


class Timer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Call:
    """One caller: its segments, each submitted when the one before is over, and its listener, who
    plays audio as it comes. `segments` are seconds of audio; estimates are exact."""

    def __init__(
        self,
        world: "World",
        segments: Sequence[float],
        *,
        priority: Priority = Priority.STANDARD,
        client: str = "",
        max_queue_wait_seconds: float | None = None,
    ) -> None:
        self.world = world
        self.segments = list(segments)
        self.priority = priority
        self.client = client
        self.max_queue_wait_seconds = max_queue_wait_seconds
        self.generations: list[Generation] = []
        self.ahead_seconds: list[float] = []  # of each generation when it arrived
        self.heard_at: float | None = None  # the first audio
        self.silence_seconds = 0.0
        self.failed = False
        self.on_over: Callable[[], None] = lambda: None  # all is spoken
        self._dry_at = 0.0

    def dry_at(self) -> float | None:
        return None if self.heard_at is None else self._dry_at

    def speak_next(self) -> None:
        if len(self.generations) == len(self.segments):
            self.on_over()
            return
        generation = Generation(
            text="",
            voice=VoiceRef(""),
            sampling=Sampling(),
            seed=0,
            estimated_seconds=self.segments[len(self.generations)],
            observer=self,
            max_queue_wait_seconds=self.max_queue_wait_seconds,
            priority=self.priority,
            client=self.client,
            listener=self,
        )
        self.generations.append(generation)
        self.ahead_seconds.append(max(0.0, self._dry_at - self.world.now))
        self.world.scheduler.submit(generation)

    def cancel(self) -> None:
        del self.segments[len(self.generations) :]
        for generation in self.generations:
            generation.cancel()

    def hear(self, since: float, until: float, seconds: float) -> None:
        """So much audio came evenly in this time."""
        if self.heard_at is None:
            self.heard_at = self._dry_at = since
        self.silence_seconds += max(0.0, since - self._dry_at)
        self._dry_at = max(self._dry_at, since) + seconds
        self.silence_seconds += max(0.0, until - self._dry_at)
        self._dry_at = max(self._dry_at, until)

    def waits(self) -> list[float]:
        """Seconds in the queue of each generation that had a replica."""
        return [g.queue_seconds for g in self.generations if g.attempts]

    def on_started(self) -> None:
        self.world.starts.append(self.generations[-1])

    def on_audio(self, samples: bytes) -> None: ...

    def on_completed(self, *, no_end: bool) -> None:
        self.speak_next()

    def on_failed(self, error: IntoneError) -> None:
        self.failed = True


class Run:
    """What a replica is doing."""

    def __init__(self, generation: Generation) -> None:
        self.left_seconds = generation.estimated_seconds
        self.untold_seconds = 0.0  # less than a sample


class World:
    """A worker with as many replicas as `speeds` says, where it has the audio seconds that so many
    busy ones make per second."""

    def __init__(
        self, policy: Callable[[Callable[[], float]], Policy], speeds: list[float]
    ) -> None:
        self.now = 0.0
        self.policy = policy(self.clock)
        self.scheduler = Scheduler(self.policy, self.clock, self.later)
        self.scheduler.sample_rate_hertz = SAMPLE_RATE_HERTZ
        self.speeds = speeds
        self.replicas = [Replica() for _ in speeds]
        for replica in self.replicas:
            replica.ready(self)  # type: ignore[arg-type]
        self.scheduler.workers.append(self)  # type: ignore[arg-type]
        self.starts: list[Generation] = []  # in the order in which replicas began
        self.calls: list[Call] = []
        self._runs: dict[int, Run] = {}  # by the generation's id
        self._events: list[tuple[float, int, Timer, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def clock(self) -> float:
        return self.now

    def later(self, seconds: float, then: Callable[[Generation], None], what: Generation) -> Timer:
        return self.at(self.now + seconds, lambda: then(what))

    def at(self, time: float, then: Callable[[], None]) -> Timer:
        """Do this at a time, in the order of times and, at one time, of calls to this."""
        timer = Timer()
        heapq.heappush(self._events, (time, next(self._numbers), timer, then))
        return timer

    def call(self, at: float, segments: Sequence[float], **values: Any) -> Call:
        """Somebody calls at a time."""
        call = Call(self, segments, **values)
        self.calls.append(call)
        self.at(at, call.speak_next)
        return call

    def run(self, until: float = float("inf")) -> None:
        """Let time pass up to `until`, or until nothing happens any more."""
        while True:
            while self._events and self._events[0][2].cancelled:
                heapq.heappop(self._events)
            event_at = self._events[0][0] if self._events else float("inf")
            ends_at = self._next_end()
            if min(event_at, ends_at) > until or event_at == ends_at == float("inf"):
                if until < float("inf"):
                    self._pass_to(until)
                return
            if ends_at <= event_at:
                self._pass_to(ends_at)
                self._end()
            else:
                self._pass_to(event_at)
                heapq.heappop(self._events)[3]()
            self.check()

    def check(self) -> None:
        """What holds after every event."""
        running = [r.generation for r in self.replicas if r.generation is not None]
        assert len({g.id for g in running}) == len(running) <= len(self.replicas)
        assert all(g.status is GenerationStatus.RUNNING for g in running)
        if any(replica.state is ReplicaState.IDLE for replica in self.replicas):
            listeners = [g for g in running if g.priority is not Priority.BATCH]
            full = len(running) >= self.scheduler.speed.fed(len(self.replicas))
            may_wait = listeners and full and self.policy.next_class is Priority.BATCH
            assert may_wait or not len(self.policy), "a replica is idle while somebody waits"

    # The worker, and its link.

    def touch(self) -> None: ...

    def send(self, command: Generate | Cancel) -> None:
        if isinstance(command, Cancel):
            number = command.generation_id
            self.at(self.now + STEP_SECONDS, lambda: self._release(number))

    def _running(self) -> list[tuple[Replica, Generation, Run]]:
        return [
            (replica, generation, self._runs.setdefault(generation.id, Run(generation)))
            for replica in self.replicas
            if (generation := replica.generation) is not None
        ]

    def _next_end(self) -> float:
        running = self._running()
        if not running:
            return float("inf")
        return self.now + min(run.left_seconds for _, _, run in running) / self._speed_of_each()

    def _speed_of_each(self) -> float:
        busy = sum(replica.state is ReplicaState.BUSY for replica in self.replicas)
        return self.speeds[busy - 1] / busy

    def _pass_to(self, time: float) -> None:
        since, self.now = self.now, time
        for replica, generation, run in self._running() if time > since else ():
            seconds = (time - since) * self._speed_of_each()
            run.left_seconds -= seconds
            run.untold_seconds += seconds
            samples = round(run.untold_seconds * SAMPLE_RATE_HERTZ)
            run.untold_seconds -= samples / SAMPLE_RATE_HERTZ
            assert isinstance(generation.observer, Call)
            generation.observer.hear(since, time, seconds)
            self.scheduler.on_report(replica, Audio(generation.id, bytes(4 * samples)))

    def _end(self) -> None:
        """The runs that are over."""
        over = [entry for entry in self._running() if entry[2].left_seconds <= NOTHING_SECONDS]
        for replica, generation, _ in over:
            self.scheduler.on_report(replica, Finished(generation.id, Ending.COMPLETE))
            self._release(generation.id)

    def _release(self, generation_id: int) -> None:
        self._runs.pop(generation_id, None)
        for replica in self.replicas:
            if replica.running_id == generation_id:
                replica.released()
                self.scheduler.on_idle()
                return
