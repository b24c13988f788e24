"""People who talk with some pods: they think, ask, hear the answer to its end, and think again.

Everything of a pod is the server's own: its scheduler, its order, its admission, its retry hints,
its cutting of texts. What is said, and how long people think, is drawn as `intone bench` does.
"""

import enum
import random
from dataclasses import dataclass
from functools import partial

from benchmarks.pod_speed import PodSpeed
from benchmarks.simulation import Call, Pod, PolicyMaker, Time
from intone_client._bench.plan import Texts, random_for, think_times
from intone_client._bench.texts import TextLengths
from intone_server.engines.pocket import MAX_SEGMENT_CHARACTERS
from intone_server.errors import Overloaded
from intone_server.scheduling.admission import Admission, MeasuredLimit
from intone_server.scheduling.deadline import DeadlinePolicy
from intone_server.scheduling.policy import FifoPolicy
from intone_server.synthesis.segmenter import CommitReason, SegmentationMode, Segmenter
from intone_server.synthesis.speech import estimated_seconds

POLICIES: dict[str, PolicyMaker] = {"deadline": DeadlinePolicy, "fifo": lambda _: FifoPolicy()}


class Balancing(enum.Enum):
    """Which pod is asked: the one with the fewest open calls, the next one, or any."""

    LEAST_LOADED = "least-loaded"
    ROUND_ROBIN = "round-robin"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Setup:
    """What is simulated. `lengths` are those of `intone bench --text-lengths`; `attempts` how often
    a call is made before its caller gives up. `calls` are counted, after as many as there are
    callers."""

    callers: int
    pods: int
    speed: PodSpeed
    think_seconds: float = 5.0
    lengths: str = "20-180"
    balancing: Balancing = Balancing.LEAST_LOADED
    scheduling: str = "deadline"
    attempts: int = 4
    calls: int = 2000
    seed: int = 1


@dataclass(slots=True)
class Asked:
    """A call that somebody made: refused for good if `first_audio_seconds`, which count from its
    first attempt, are None in the end. `silence_seconds` are of its listener."""

    at: float
    audio_seconds: float
    refusals: int = 0
    first_audio_seconds: float | None = None
    silence_seconds: float = 0.0
    is_over: bool = False


class Server(Pod):
    """A pod that says no when it is full."""

    def __init__(self, time: Time, setup: Setup) -> None:
        speed = setup.speed
        policy = POLICIES[setup.scheduling]
        super().__init__(time, policy, speed.totals, speed.first_audio_seconds)
        for busy, total_speed in enumerate(speed.totals, 1):
            self.scheduler.speed.learn(busy, total_speed)  # as it measures it at start
        limit = MeasuredLimit(lambda: len(self.replicas), self.scheduler.outlook.listeners)
        self.admission = Admission(lambda: setup.callers, limit)
        self.admission.started = True
        self.admission.ready = lambda: True
        self.admission.retry_after = self.scheduler.retry_after


class Callers:
    """One simulation. The same seed gives the same; callers and turns that two setups share say
    the same, and think as long, in both."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.time = Time()
        self.pods = [Server(self.time, setup) for _ in range(setup.pods)]
        self.asked: list[Asked] = []  # also those that are not counted
        self.busy_share = 0.0  # of all replicas, while calls were counted
        self._texts = Texts(setup.seed, lengths=TextLengths(setup.lengths))
        self._thinking = [
            think_times(setup.seed, caller, setup.think_seconds) for caller in range(setup.callers)
        ]
        self._turns = [0] * setup.callers
        self._left = setup.callers + setup.calls
        self._next_pod = 0
        self._chance = random_for(setup.seed, "balancing")
        self._busy_before = (0.0, 0.0)

    def run(self) -> None:
        """To the end of the last call."""
        # The scheduler's jitter of retry hints is drawn from here.
        random.seed(self.setup.seed)
        chance = random_for(self.setup.seed, "phases")
        for caller in range(self.setup.callers):
            # Anywhere between two calls, so that they do not all begin together.
            cycle = self.setup.think_seconds + sum(self._segments(caller))
            self.time.at(chance.uniform(0, cycle), partial(self._begin, caller))
        self.time.run()

    def counted(self) -> list[Asked]:
        """The calls that are."""
        return self.asked[self.setup.callers :]

    def _segments(self, caller: int) -> list[float]:
        """Seconds of audio of each segment that the caller hears next."""
        return segments(self._texts.utterance(caller, self._turns[caller]).text)

    def _begin(self, caller: int) -> None:
        if not self._left:
            return
        self._left -= 1
        if self._left + 1 == self.setup.calls:
            self._busy_before = self._busy_seconds()
        if not self._left:
            self._measure()
        spoken = self._segments(caller)
        self._turns[caller] += 1
        asked = Asked(self.time.now, sum(spoken))
        self.asked.append(asked)
        self._ask(caller, asked, spoken, None)

    def _busy_seconds(self) -> tuple[float, float]:
        """The time, and that of all busy replicas until then."""
        for pod in self.pods:
            pod.catch_up()
        return self.time.now, sum(pod.busy_seconds for pod in self.pods)

    def _measure(self) -> None:
        began_at, before = self._busy_before
        now, busy_seconds = self._busy_seconds()
        replicas = sum(len(pod.replicas) for pod in self.pods)
        if now > began_at:
            self.busy_share = (busy_seconds - before) / (now - began_at) / replicas

    def _ask(self, caller: int, asked: Asked, spoken: list[float], refused: Server | None) -> None:
        pod = self._choose(refused)
        pod.do(lambda: self._admit(caller, asked, spoken, pod))

    def _choose(self, refused: Server | None) -> Server:
        """The pod that is asked: not the one that has just refused, if there are others."""
        pods = self.pods
        match self.setup.balancing:
            case Balancing.LEAST_LOADED:
                others = [pod for pod in pods if pod is not refused] or pods
                # Of those that are equal, any: or the first one would get most.
                start = self._chance.randrange(len(others))
                return min(others[start:] + others[:start], key=lambda pod: pod.admission.open)
            case Balancing.ROUND_ROBIN:
                if pods[self._next_pod] is refused:
                    self._next_pod = (self._next_pod + 1) % len(pods)
                pod = pods[self._next_pod]
                self._next_pod = (self._next_pod + 1) % len(pods)
                return pod
            case Balancing.RANDOM:
                return self._chance.choice([pod for pod in pods if pod is not refused] or pods)

    def _admit(self, caller: int, asked: Asked, spoken: list[float], pod: Server) -> None:
        try:
            permit = pod.admission.admit(stream=False)
        except Overloaded as error:
            asked.refusals += 1
            wait_seconds = error.retry_after or 0.0
            if asked.refusals < self.setup.attempts:
                again = partial(self._ask, caller, asked, spoken, pod)
                self.time.at(self.time.now + wait_seconds, again)
            else:
                asked.is_over = True
                self._think(caller, self.time.now + wait_seconds)
            return
        call = Call(pod, spoken, client=str(caller))

        def over() -> None:
            permit.__exit__(None, None, None)
            assert call.heard_at is not None
            asked.first_audio_seconds = call.heard_at - asked.at
            asked.silence_seconds = call.silence_seconds
            asked.is_over = True
            self._think(caller, call.dry_at() or 0.0)

        call.on_over = over
        call.speak_next()

    def _think(self, caller: int, since: float) -> None:
        """From then on, and ask again."""
        self.time.at(since + next(self._thinking[caller]), partial(self._begin, caller))


def segments(text: str) -> list[float]:
    """Estimated seconds of audio of each segment of an English text, as the server cuts it."""
    segmenter = Segmenter(
        language="en",
        mode=SegmentationMode.SENTENCE,
        max_characters=MAX_SEGMENT_CHARACTERS,
        first_max_characters=MAX_SEGMENT_CHARACTERS,
    )
    segmenter.push(text)
    segmenter.commit(CommitReason.END_OF_INPUT)
    return [
        estimated_seconds(segment.spoken_text)
        for segment in iter(segmenter.next, None)
        if segment.speakable
    ]
