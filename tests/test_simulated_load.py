"""The scheduler under load, on simulated time: what listeners hear, and what always holds."""

import math
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from benchmarks.simulation import Call, World
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from intone_server.errors import Overloaded
from intone_server.scheduling.admission import Admission, MeasuredLimit
from intone_server.scheduling.credit import QUANTUM_SECONDS
from intone_server.scheduling.deadline import (
    AGEING_SECONDS,
    FIRST_AUDIO_TARGET_SECONDS,
    DeadlinePolicy,
)
from intone_server.scheduling.forecast import UNFINISHED_SHARE
from intone_server.scheduling.generation import GenerationStatus, Priority
from intone_server.scheduling.policy import FifoPolicy, Policy

PolicyMaker = Callable[[Callable[[], float]], Policy]


def fifo(_: Callable[[], float]) -> FifoPolicy:
    return FifoPolicy()


BOTH = pytest.mark.parametrize("policy", [DeadlinePolicy, fifo])
# What a batch of rows makes per second when 1, 2, ... of them are busy.
SPEEDS = [3.6, 5.0, 6.2, 7.2]


def test_two_listeners_on_one_replica_of_twice_real_time_hear_no_gap() -> None:
    world = World(DeadlinePolicy, [2.0])
    calls = [world.call(0.0, [4.0] * 10), world.call(1.0, [4.0] * 10)]
    world.run()
    assert [call.silence_seconds for call in calls] == pytest.approx([0, 0])
    assert world.now == pytest.approx(40.0), "80 s of audio"


def test_short_sentences_beside_long_ones_hear_no_gap_by_deadline_and_many_by_arrival() -> None:
    """On one replica of four times real time two are read sentences of 12 s and one of 2 s, whose
    turn comes by arrival after every two long ones, 6 s later."""
    silence = {}
    for policy in (DeadlinePolicy, fifo):
        world = World(policy, [4.0])
        long = [world.call(0.0, [12.0] * 5, client=client) for client in "ab"]
        short = world.call(1.0, [6.0] + [2.0] * 10, client="c")
        world.run()
        assert [call.silence_seconds for call in long] == [0, 0]
        silence[policy] = short.silence_seconds
    assert silence == {DeadlinePolicy: 0, fifo: pytest.approx(15.0)}


def test_a_file_is_written_as_fast_as_the_replica_can_while_nobody_else_speaks() -> None:
    world = World(DeadlinePolicy, [4.0])
    file = world.call(0.0, [10.0] * 20, priority=Priority.BATCH)
    world.run()
    assert file.silence_seconds == 0
    assert world.now == pytest.approx(50.0)


def test_first_audio_comes_before_what_others_will_hear_later() -> None:
    world = World(DeadlinePolicy, [4.0])
    for client in "abc":
        world.call(0.0, [8.0] * 5, client=client)
    late = world.call(9.0, [2.0], client="d")
    world.run()
    assert late.waits() == pytest.approx([1.0]), "what runs is not interrupted"


def test_a_wait_over_the_limit_expires() -> None:
    world = World(DeadlinePolicy, [2.0])
    world.call(0.0, [10.0])
    impatient = world.call(0.0, [1.0], max_queue_wait_seconds=3.0)
    world.run(until=3.5)
    assert impatient.failed
    assert impatient.generations[0].status is GenerationStatus.EXPIRED


def test_thousands_of_calls_are_all_spoken_and_admission_by_speed_leaves_little_silence() -> None:
    """At 90 % load, with as many calls let in as the replicas can feed."""
    silence = {}
    for policy in (DeadlinePolicy, fifo):
        world = World(policy, SPEEDS)
        _arrive(world, random.Random(5), calls=3000, load=0.9)
        world.run()
        assert 2500 < len(world.calls) < 3000
        generations = [generation for call in world.calls for generation in call.generations]
        assert all(g.status is GenerationStatus.COMPLETED for g in generations)
        heard_seconds = sum(g.estimated_seconds for g in generations)
        silence[policy] = sum(call.silence_seconds for call in world.calls) / heard_seconds
        speeds = [world.scheduler.speed.total(busy) for busy in (1, 2, 3, 4)]
        assert speeds == pytest.approx(SPEEDS, rel=0.01), "measured on the way"
        assert not world.scheduler._timers
    assert silence[DeadlinePolicy] < 0.005
    assert silence[DeadlinePolicy] < silence[fifo]


def _arrive(world: World, chance: random.Random, *, calls: int, load: float) -> None:
    """Calls of one to five segments of 1 to 8 s, each of a client of its own, come at random times
    and are let in as a server would."""
    admission = Admission(
        lambda: 10_000,
        MeasuredLimit(lambda: len(world.replicas), world.scheduler.outlook.listeners),
    )
    admission.started = True
    admission.ready = lambda: True

    def arrive(segments: list[float], client: str) -> None:
        with suppress(Overloaded):
            permit = admission.admit(stream=False)
            call = world.call(world.now, segments, client=client)
            call.on_over = lambda: permit.__exit__(None, None, None)

    time = 0.0
    for number in range(calls):
        time += chance.expovariate(load * world.speeds[-1] / 13.5)
        segments = [chance.uniform(1, 8) for _ in range(chance.randint(1, 5))]
        world.at(time, partial(arrive, segments, str(number)))


CALLS = st.lists(
    st.tuples(
        st.floats(0, 20),  # when
        st.lists(st.floats(0.5, 8), min_size=1, max_size=4),  # segments
        st.sampled_from(Priority),
        st.sampled_from("abc"),
        st.one_of(st.none(), st.floats(0, 30)),  # when it hangs up
    ),
    max_size=25,
)


@BOTH
@settings(deadline=None)
@given(replicas=st.integers(1, 4), calls=CALLS)
def test_whatever_happens_replicas_are_used_once_each_and_never_idle_while_somebody_waits(
    policy: PolicyMaker,
    replicas: int,
    calls: list[tuple[float, list[float], Priority, str, float | None]],
) -> None:
    """`World.check` holds after every event, and everything comes to an end."""
    world = World(policy, SPEEDS[:replicas])
    for at, segments, priority, client, hangs_up in calls:
        call = world.call(at, segments, priority=priority, client=client)
        if hangs_up is not None:
            world.at(at + hangs_up, call.cancel)
    world.run()
    load = world.scheduler.outlook.load()
    assert (load.replicas_busy, load.queue_depth, load.queued_work_seconds) == (0, 0, 0)
    assert not world.scheduler._timers
    for call in world.calls:
        ends = {generation.status for generation in call.generations}
        assert ends <= {GenerationStatus.COMPLETED, GenerationStatus.CANCELLED}


@settings(deadline=None)
@given(calls=CALLS)
def test_fifo_begins_in_order_of_arrival(
    calls: list[tuple[float, list[float], Priority, str, float | None]],
) -> None:
    world = World(fifo, SPEEDS[:2])
    for at, segments, priority, client, _ in calls:
        world.call(at, segments, priority=priority, client=client)
    world.run()
    arrivals = [generation.queued_at for generation in world.starts]
    assert arrivals == sorted(arrivals)


@settings(deadline=None, max_examples=25)
@given(
    replicas=st.integers(1, 3),
    streams=st.lists(
        st.tuples(st.sampled_from(Priority), st.sampled_from("abc"), st.floats(1, 6)),
        min_size=4,
        max_size=12,
    ),
)
def test_nothing_starves(replicas: int, streams: list[tuple[Priority, str, float]]) -> None:
    """Everybody speaks without end. A segment then waits no longer than

    max(class * AGEING, target, ahead) + (replicas * longest + own + others) / speed

    where after the first term it is of the highest class, not far ahead, and due before all that
    come later; `own` is one segment for each stream of its client, and `others` what the other
    clients get in the rounds that this takes.
    """
    world = World(DeadlinePolicy, SPEEDS[:replicas])
    for number, (priority, client, seconds) in enumerate(streams):
        world.call(number / 10, [seconds] * 200, priority=priority, client=client)
    world.run(until=300.0)
    longest = max(seconds for _, _, seconds in streams)
    clients = {client for _, client, _ in streams}
    for call in world.calls:
        own = longest * sum(client == call.client for _, client, _ in streams)
        rounds = math.ceil((own + longest) / QUANTUM_SECONDS) + 1
        others = (len(clients) - 1) * (rounds * QUANTUM_SECONDS + QUANTUM_SECONDS + longest)
        work_seconds = (replicas * longest + own + others) / SPEEDS[replicas - 1]
        for generation, ahead_seconds in zip(call.generations, call.ahead_seconds, strict=True):
            alone_seconds = max(
                call.priority * AGEING_SECONDS, FIRST_AUDIO_TARGET_SECONDS, ahead_seconds
            )
            ended_at = generation.started_at if generation.attempts else world.now
            assert ended_at - generation.queued_at <= alone_seconds + work_seconds


@BOTH
@settings(deadline=None)
@given(
    replicas=st.integers(1, 4),
    before=st.lists(
        st.tuples(
            st.floats(0, 5),
            st.floats(0.5, 15),
            st.sampled_from(Priority),
            st.sampled_from("abc"),
        ),
        max_size=20,
    ),
    now=st.floats(0, 60),
    own=st.tuples(st.floats(0.5, 15), st.sampled_from(Priority), st.sampled_from("abcd")),
)
def test_without_later_arrivals_and_surprises_the_forecast_comes_true(
    policy: PolicyMaker,
    replicas: int,
    before: list[tuple[float, float, Priority, str]],
    now: float,
    own: tuple[float, Priority, str],
) -> None:
    world = World(policy, SPEEDS[:replicas])
    for busy, total_speed in enumerate(SPEEDS, 1):
        world.scheduler.speed.learn(busy, total_speed)
    for at, seconds, priority, client in before:
        world.call(at, [seconds], priority=priority, client=client)
    world.run(until=5.0 + now)
    running = [g for r in world.replicas if (g := r.generation) is not None]
    # Of what is almost over, a forecast assumes that more is left.
    assume(all(g.made_seconds < (1 - UNFINISHED_SHARE) * g.estimated_seconds for g in running))
    seconds, priority, client = own
    told = world.scheduler.outlook.forecast(
        priority=priority, client=client, estimated_seconds=seconds
    )
    call = Call(world, [seconds], priority=priority, client=client)
    call.speak_next()
    arrived_at = world.now
    world.run()
    (generation,) = call.generations
    assert generation.queue_seconds == pytest.approx(told.wait_seconds, abs=0.01)
    done_seconds = generation.started_at + generation.run_seconds - arrived_at
    assert done_seconds == pytest.approx(told.done_seconds, abs=0.02)


def test_the_load_tells_what_a_newcomer_waits_and_how_fast_all_are() -> None:
    world = World(DeadlinePolicy, [2.0])
    assert world.scheduler.outlook.load().speed == world.scheduler.outlook.listeners() == 0
    world.call(0.0, [10.0])
    world.run(until=2.0)
    world.call(2.0, [5.0], priority=Priority.BATCH)
    world.run(until=2.0)
    load = world.scheduler.outlook.load()
    assert load.estimated_wait_seconds == pytest.approx(3.0, abs=0.01), "what waits is of BATCH"
    assert load.queued_work_seconds == pytest.approx(11.0, abs=0.01)
    assert load.queue_depth == 1
    world.run()
    load = world.scheduler.outlook.load()
    assert (load.speed, load.total_speed) == pytest.approx((2.0, 2.0))
    assert load.estimated_wait_seconds == 0


def test_batch_calls_do_not_slow_listeners_down_below_real_time() -> None:
    """Four replicas are worth three listeners: the fourth is for BATCH when nobody listens."""
    speeds = [2.0, 2.6, 3.1, 3.6]
    world = World(DeadlinePolicy, speeds)
    for busy, total_speed in enumerate(speeds, 1):
        world.scheduler.speed.learn(busy, total_speed)
    listeners = [world.call(0.0, [9.0]) for _ in range(2)]
    batch = [world.call(0.0, [9.0], priority=Priority.BATCH) for _ in range(4)]
    world.run(until=1.0)
    assert world.scheduler.outlook.load().replicas_busy == 3
    assert world.scheduler.outlook.listeners() == 3
    world.run(until=12.0)
    assert all(call.silence_seconds == 0 for call in listeners)
    assert world.scheduler.outlook.load().replicas_busy >= 3
    world.run()
    assert all(g.status is GenerationStatus.COMPLETED for call in batch for g in call.generations)


def test_a_batch_call_is_told_that_it_waits_for_listeners() -> None:
    speeds = [2.0, 1.9]  # two replicas, worth one listener
    world = World(DeadlinePolicy, speeds)
    for busy, total_speed in enumerate(speeds, 1):
        world.scheduler.speed.learn(busy, total_speed)
    world.call(0.0, [8.0])
    world.run(until=0.0)
    told = world.scheduler.outlook.forecast(
        priority=Priority.BATCH, client="", estimated_seconds=4.0
    )
    batch = world.call(0.0, [4.0], priority=Priority.BATCH)
    world.run()
    (generation,) = batch.generations
    assert told.wait_seconds == pytest.approx(4.0, abs=0.01)
    assert generation.queue_seconds == pytest.approx(told.wait_seconds, abs=0.01)
