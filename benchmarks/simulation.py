"""The real scheduler on simulated time: pods whose replicas make audio, and listeners who play it.

Audio is a fluid: while some replicas speak, each of them makes an equal part of what all make per
second. It is heard as it is made. Nothing here waits, and no event loop is needed.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.simulated_call import Call
from intone_server.engines.base import Ending
from intone_server.scheduling.generation import Generation, GenerationStatus, Priority
from intone_server.scheduling.policy import Policy
from intone_server.scheduling.replica import Replica, ReplicaState
from intone_server.scheduling.scheduler import Scheduler
from intone_server.workers.messages import Audio, Cancel, Finished, Generate

SAMPLE_RATE_HERTZ = 1_000  # enough for times, and cheap
STEP_SECONDS = 0.08  # a worker stops a cancelled generation after its step
NOTHING_SECONDS = 1e-9  # what is left when differences of times are taken

PolicyMaker = Callable[[Callable[[], float]], Policy]


class Timer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Time:
    """The clock of one or more pods, and what will happen."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Timer, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def clock(self) -> float:
        return self.now

    def at(self, time: float, then: Callable[[], None]) -> Timer:
        """Do this at a time, in the order of times and, at one time, of calls to this."""
        timer = Timer()
        heapq.heappush(self._events, (time, next(self._numbers), timer, then))
        return timer

    def run(self, until: float = float("inf")) -> None:
        """Let time pass up to `until`, or until nothing happens any more."""
        while self._events and self._events[0][0] <= until:
            time, _, timer, then = heapq.heappop(self._events)
            if not timer.cancelled:
                self.now = time
                then()
        if until < float("inf"):
            self.now = until


class Run:
    """What a replica is doing: it reads its text, then speaks."""

    def __init__(self, generation: Generation, unread_seconds: float) -> None:
        self.unread_seconds = _rest(unread_seconds)
        self.left_seconds = generation.estimated_seconds
        self.untold_seconds = 0.0  # less than a sample


class Pod:
    """A server with one worker, which has as many replicas as `speeds` says, where it has the audio
    seconds that so many make per second.

    `first_audio_seconds` pass from the beginning of a generation to its first audio. Texts are read
    one at a time, as the engine does: replicas that begin together wait for each other, and one
    that waits takes nothing of the speed of the others.
    """

    def __init__(
        self,
        time: Time,
        policy: PolicyMaker,
        speeds: Sequence[float],
        first_audio_seconds: float = 0.0,
    ) -> None:
        self.time = time
        self.policy = policy(time.clock)
        self.scheduler = Scheduler(self.policy, time.clock, self.later)
        self.scheduler.sample_rate_hertz = SAMPLE_RATE_HERTZ
        self.speeds = speeds
        self.first_audio_seconds = first_audio_seconds
        self.is_gone = False
        self.replicas = [Replica() for _ in speeds]
        for replica in self.replicas:
            replica.ready(self)  # type: ignore[arg-type]
        self.scheduler.workers.append(self)  # type: ignore[arg-type]
        self.starts: list[Generation] = []  # in the order in which replicas began
        self.calls: list[Call] = []
        self.busy_seconds = 0.0  # of all replicas together
        self._runs: dict[int, Run] = {}  # by the generation's id, in the order of their beginning
        self._passed = time.now  # what happened until then is told
        self._change = Timer()  # the next end of a text or a segment

    @property
    def now(self) -> float:
        return self.time.now

    def later(self, seconds: float, then: Callable[[Generation], None], what: Generation) -> Timer:
        return self.at(self.now + seconds, lambda: then(what))

    def at(self, time: float, then: Callable[[], None]) -> Timer:
        """Do something to this pod at a time; see `Time.at`."""
        return self.time.at(time, lambda: self.do(then))

    def do(self, then: Callable[[], None]) -> None:
        """Do something to this pod now. Whatever its scheduler hears has to come by this way."""
        self.catch_up()
        then()
        self.look_ahead()
        self.check()

    def call(self, at: float, segments: Sequence[float], **values: Any) -> Call:
        """Somebody calls at a time."""
        call = Call(self, segments, **values)
        self.calls.append(call)
        self.at(at, call.speak_next)
        return call

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

    def catch_up(self) -> None:
        """Tell what has happened since the last time."""
        since, self._passed = self._passed, self.now
        if self.now == since:
            return
        running = self._running()
        reading, speed = _reading(running), self._speed_of_each(running)
        self.busy_seconds += (self.now - since) * len(running)
        for replica, generation, run in running:
            if run is reading:
                run.unread_seconds = _rest(run.unread_seconds - (self.now - since))
            if run is reading or run.unread_seconds:
                continue
            seconds = (self.now - since) * speed
            run.left_seconds -= seconds
            run.untold_seconds += seconds
            samples = round(run.untold_seconds * SAMPLE_RATE_HERTZ)
            run.untold_seconds -= samples / SAMPLE_RATE_HERTZ
            assert isinstance(generation.observer, Call)
            generation.observer.hear(since, self.now, seconds)
            self.scheduler.on_report(replica, Audio(generation.id, bytes(4 * samples)))

    def look_ahead(self) -> None:
        """Come back when the next text is read or the next segment is over."""
        self._change.cancel()
        running = self._running()
        reading, speed = _reading(running), self._speed_of_each(running)
        changes = [run.left_seconds / speed for _, _, run in running if not run.unread_seconds]
        if reading is not None:
            changes.append(reading.unread_seconds)
        if changes:
            self._change = self.at(self.now + min(changes), self._end)

    def _running(self) -> list[tuple[Replica, Generation, Run]]:
        """What somebody wants, in the order in which it began."""
        running = []
        for replica in self.replicas:
            if (generation := replica.generation) is not None:
                if generation.id not in self._runs:
                    self._runs[generation.id] = Run(generation, self.first_audio_seconds)
                running.append((replica, generation, self._runs[generation.id]))
        return sorted(running, key=lambda entry: entry[1].started_at)

    def _speed_of_each(self, running: Sequence[tuple[Replica, Generation, Run]]) -> float:
        """Audio seconds per second of each that speaks; 0 if nothing is busy."""
        busy = sum(replica.state is ReplicaState.BUSY for replica in self.replicas)
        unread = sum(run.unread_seconds > 0 for _, _, run in running)
        busy -= max(0, unread - 1)
        return self.speeds[busy - 1] / busy if busy else 0.0

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


class World(Pod):
    """One pod, with a time of its own."""

    def __init__(self, policy: PolicyMaker, speeds: Sequence[float]) -> None:
        super().__init__(Time(), policy, speeds)

    def run(self, until: float = float("inf")) -> None:
        """Let time pass up to `until`, or until nothing happens any more."""
        self.look_ahead()
        self.time.run(until)
        self.catch_up()


def _rest(seconds: float) -> float:
    """What is left, if that is not nothing: time does not move by less."""
    return seconds if seconds > NOTHING_SECONDS else 0.0


def _reading(running: Sequence[tuple[Replica, Generation, Run]]) -> Run | None:
    """The one whose text is being read."""
    return next((run for _, _, run in running if run.unread_seconds), None)
