"""Admission and scheduling without processes: invariants under random histories."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intone_server.engines.base import Ending, Sampling
from intone_server.errors import IntoneError, Overloaded, Reason, Unavailable
from intone_server.scheduling.admission import (
    TALKING_PER_REPLICA,
    Admission,
    FixedLimit,
    MeasuredLimit,
)
from intone_server.scheduling.generation import Generation, GenerationStatus, Priority
from intone_server.scheduling.policy import FifoPolicy, Policy
from intone_server.scheduling.replica import Replica, ReplicaState
from intone_server.scheduling.scheduler import Scheduler
from intone_server.workers.messages import Audio, Cancel, Failed, Finished, Generate


class Link:
    """Takes down what a worker is sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.is_gone = False

    def send(self, command: Any) -> None:
        self.sent.append(command)


class Worker:
    """As much of a supervised worker as the scheduler sees."""

    def __init__(self, replicas: int) -> None:
        self.link = Link()
        self.replicas = [Replica() for _ in range(replicas)]
        for replica in self.replicas:
            replica.ready(self.link)  # type: ignore[arg-type]
        self.is_ready = True

    def touch(self) -> None:
        pass


class Observer:
    """Takes down what a generation tells."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_started(self) -> None:
        self.heard.append("started")

    def on_audio(self, samples: bytes) -> None:
        self.heard.append("audio")

    def on_completed(self, *, no_end: bool) -> None:
        self.heard.append("completed")

    def on_failed(self, error: IntoneError) -> None:
        self.heard.append(error.reason)


def generation(**values: Any) -> Generation:
    defaults = {
        "text": "x",
        "voice": "anna",
        "sampling": Sampling(),
        "seed": 0,
        "estimated_seconds": 1.0,
        "observer": Observer(),
    }
    return Generation(**(defaults | values))


def heard(of: Generation) -> list[str]:
    assert isinstance(of.observer, Observer)
    return of.observer.heard


def scheduler_of(replicas: int, policy: Policy | None = None) -> tuple[Scheduler, Worker]:
    # An empty queue is false.
    scheduler = Scheduler(FifoPolicy() if policy is None else policy)
    worker = Worker(replicas)
    scheduler.workers.append(worker)  # type: ignore[arg-type]
    return scheduler, worker


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(
            st.sampled_from(["submit", "audio", "finish", "release", "fail", "cancel", "lose"]),
            st.integers(0, 5),
        ),
        max_size=60,
    ),
)
async def test_whatever_happens_a_replica_runs_one_generation_and_none_is_forgotten(
    replicas: int, history: list[tuple[str, int]]
) -> None:
    scheduler, worker = scheduler_of(replicas)
    everything: list[Generation] = []
    for action, number in history:
        replica = worker.replicas[number % replicas]
        current = replica.generation
        if action == "submit":
            everything.append(generation())
            scheduler.submit(everything[-1])
        elif action == "cancel" and everything:
            everything[number % len(everything)].cancel()
        elif action == "lose" and replica.state is not ReplicaState.DEAD:
            scheduler.on_lost([replica])
            replica.replaced()
            replica.ready(worker.link)  # type: ignore[arg-type]
            scheduler.on_idle()
        elif action == "release" and replica.running_id is not None and current is None:
            replica.released()
            scheduler.on_idle()
        elif current is not None:
            if action == "audio":
                scheduler.on_report(replica, Audio(current.id, b"\0\0\0\0"))
            elif action == "finish":
                scheduler.on_report(replica, Finished(current.id, Ending.COMPLETE))
            elif action == "fail":
                scheduler.on_report(replica, Failed(current.id, "because"))
        running = [g for g in everything if g.status is GenerationStatus.RUNNING]
        assert len(running) <= replicas
        idle = [r for r in worker.replicas if r.state is ReplicaState.IDLE]
        waiting = [g for g in everything if g.status is GenerationStatus.QUEUED]
        assert not (idle and waiting), "work conserving"
        assert scheduler.outlook.load().queue_depth == len(waiting)
    # Let everything end: nothing may be left over.
    for _ in range(len(everything) + replicas):
        for replica in worker.replicas:
            if replica.generation is not None:
                scheduler.on_report(replica, Finished(replica.generation.id, Ending.COMPLETE))
            if replica.running_id is not None:
                replica.released()
                scheduler.on_idle()
    assert all(g.is_over for g in everything)
    for each in everything:
        ends = [word for word in heard(each) if word not in ("started", "audio")]
        assert len(ends) == (0 if each.status is GenerationStatus.CANCELLED else 1)
    assert not scheduler._timers


async def test_generations_run_in_order_of_arrival() -> None:
    scheduler, worker = scheduler_of(1)
    three = [generation() for _ in range(3)]
    for each in three:
        scheduler.submit(each)
    for _ in three:
        (replica,) = worker.replicas
        assert replica.generation is not None
        scheduler.on_report(replica, Finished(replica.generation.id, Ending.COMPLETE))
        replica.released()
        scheduler.on_idle()
    started = [c.generation_id for c in worker.link.sent if isinstance(c, Generate)]
    assert started == [g.id for g in three]


async def test_a_cancelled_generation_holds_its_replica_until_it_is_released() -> None:
    scheduler, worker = scheduler_of(1)
    first, second = generation(), generation()
    scheduler.submit(first)
    scheduler.submit(second)
    first.cancel()
    first.cancel()
    assert [c for c in worker.link.sent if isinstance(c, Cancel)] == [Cancel(first.id)]
    assert second.status is GenerationStatus.QUEUED
    worker.replicas[0].released()
    scheduler.on_idle()
    assert second.status is GenerationStatus.RUNNING
    second.cancel()


async def test_a_wait_over_the_limit_expires() -> None:
    scheduler, _ = scheduler_of(1)
    first, second = generation(), generation(max_queue_wait_seconds=0.01)
    scheduler.submit(first)
    scheduler.submit(second)
    await asyncio.sleep(0.05)
    assert second.status is GenerationStatus.EXPIRED
    assert heard(second) == [Reason.QUEUE_WAIT_EXCEEDED]
    first.cancel()


async def test_a_lost_generation_goes_first_once_and_then_fails() -> None:
    scheduler, worker = scheduler_of(1)
    first, second = generation(), generation()
    scheduler.submit(first)
    scheduler.submit(second)
    for _ in range(2):
        assert worker.replicas[0].generation is first
        scheduler.on_lost(worker.replicas)
        worker.replicas[0].replaced()
        worker.replicas[0].ready(worker.link)  # type: ignore[arg-type]
        scheduler.on_idle()
    assert heard(first) == ["started", "started", Reason.REPLICA_LOST]
    assert worker.replicas[0].generation is second
    second.cancel()


async def test_a_lost_generation_is_not_given_to_a_worker_that_is_gone_too() -> None:
    scheduler, worker = scheduler_of(1)
    other = Worker(1)
    scheduler.workers.append(other)  # type: ignore[arg-type]
    other.link.is_gone = True  # its loss is not told yet
    lost = generation()
    scheduler.submit(lost)
    scheduler.on_lost(worker.replicas)
    assert lost.status is GenerationStatus.QUEUED
    assert not other.link.sent
    scheduler.on_lost(other.replicas)
    assert heard(lost) == ["started"]


async def test_a_lost_generation_keeps_to_its_longest_wait() -> None:
    scheduler, worker = scheduler_of(1)
    only = generation(max_queue_wait_seconds=0.02)
    scheduler.submit(only)
    scheduler.on_lost(worker.replicas)
    await asyncio.sleep(0.06)
    assert heard(only) == ["started", Reason.QUEUE_WAIT_EXCEEDED]


async def test_who_hears_of_a_lost_generation_may_cancel_its_peers() -> None:
    """A dialogue with ABORT has several on one worker; nobody else's may hang."""
    scheduler, worker = scheduler_of(4)
    spoken, peer, heard_peer, other = (generation() for _ in range(4))

    class Abort(Observer):
        def on_failed(self, error: IntoneError) -> None:
            super().on_failed(error)
            peer.cancel()
            heard_peer.cancel()

    spoken.observer = Abort()
    for each in (spoken, peer, heard_peer, other):
        scheduler.submit(each)
    spoken.has_audio = heard_peer.has_audio = True
    scheduler.on_lost(worker.replicas)
    assert heard(spoken) == ["started", Reason.REPLICA_LOST]
    assert peer.status is GenerationStatus.CANCELLED
    assert heard_peer.status is GenerationStatus.FAILED
    assert other.status is GenerationStatus.QUEUED
    for replica in worker.replicas:
        replica.replaced()
        replica.ready(worker.link)  # type: ignore[arg-type]
    scheduler.on_idle()
    assert other.status is GenerationStatus.RUNNING
    assert not len(scheduler._queue)
    other.cancel()


async def test_no_replica_of_a_lost_worker_is_given_anything() -> None:
    scheduler, worker = scheduler_of(2)
    only = generation()
    scheduler.submit(only)
    scheduler.on_lost(worker.replicas)
    assert only.status is GenerationStatus.QUEUED
    assert {r.state for r in worker.replicas} == {ReplicaState.DEAD}
    only.cancel()


def test_an_illegal_transition_raises() -> None:
    done = generation()
    done.become(GenerationStatus.CANCELLED)
    with pytest.raises(RuntimeError, match="CANCELLED -> RUNNING"):
        done.become(GenerationStatus.RUNNING)


class TestAdmission:
    def admission(self) -> Admission:
        admission = Admission(lambda: 2, FixedLimit(1))
        admission.started = True
        admission.ready = lambda: True
        return admission

    def test_permits_come_back_exactly_once(self) -> None:
        admission = self.admission()
        with admission.admit(stream=True) as permit:
            permit.talking = True
            assert (admission.open, admission.talking) == (1, 1)
        permit.talking = True
        permit.__exit__(None, None, None)
        assert (admission.open, admission.talking) == (0, 0)

    def test_a_unary_call_talks_from_the_start(self) -> None:
        admission = self.admission()
        admission.admit(stream=False)
        with pytest.raises(Overloaded) as caught:
            admission.admit(stream=False)
        assert caught.value.reason is Reason.QUEUE_FULL

    def test_before_the_model_is_loaded_it_is_starting_and_later_without_a_replica(self) -> None:
        admission = Admission(lambda: 1, FixedLimit(1))
        with pytest.raises(Unavailable) as caught:
            admission.check_available()
        assert caught.value.reason is Reason.STARTING
        admission.started = True
        with pytest.raises(Unavailable) as caught:
            admission.check_available()
        assert caught.value.reason is Reason.NO_REPLICA

    def test_a_draining_server_says_so(self) -> None:
        admission = self.admission()
        admission.draining = True
        with pytest.raises(Unavailable) as caught:
            admission.admit(stream=True)
        assert caught.value.reason is Reason.DRAINING

    def measured(self, *, replicas: int, listeners: int) -> Admission:
        self.listeners = listeners
        admission = Admission(lambda: 100, MeasuredLimit(lambda: replicas, lambda: self.listeners))
        admission.started = True
        admission.ready = lambda: True
        return admission

    def test_by_measured_speed_it_lets_in_as_many_listeners_as_can_be_fed(self) -> None:
        admission = self.measured(replicas=2, listeners=5)
        for _ in range(5):
            admission.admit(stream=False)
        with pytest.raises(Overloaded, match="5 calls have text waiting or being spoken, limit 5"):
            admission.admit(stream=True)
        self.listeners = 6
        assert admission.queue_limit == 6
        admission.admit(stream=True)

    def test_until_a_speed_is_known_each_replica_has_a_number_of_calls(self) -> None:
        assert self.measured(replicas=3, listeners=0).queue_limit == 3 * TALKING_PER_REPLICA

    def test_calls_that_may_wait_are_let_in_whatever_the_speed_and_keep_no_listener_out(
        self,
    ) -> None:
        admission = self.measured(replicas=1, listeners=2)
        admission.admit(stream=False)
        for _ in range(TALKING_PER_REPLICA - 1):
            admission.admit(stream=False, priority=Priority.BATCH)
        with pytest.raises(Overloaded, match="limit 8"):
            admission.admit(stream=False, priority=Priority.BATCH)
        admission.admit(stream=False, priority=Priority.INTERACTIVE)
        with pytest.raises(Overloaded, match="2 calls"):
            admission.admit(stream=False)

    def test_a_number_that_was_set_is_exact_for_every_class(self) -> None:
        admission = self.admission()
        assert admission.queue_limit == 1
        admission.admit(stream=False, priority=Priority.BATCH)
        for priority in Priority:
            with pytest.raises(Overloaded, match="limit 1"):
                admission.admit(stream=False, priority=priority)
