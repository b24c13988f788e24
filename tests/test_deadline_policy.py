"""Who is next by deadline: one test for each rule, and the rules under random histories."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intone_server.scheduling.credit import QUANTUM_SECONDS
from intone_server.scheduling.deadline import (
    AGEING_SECONDS,
    FAR_AHEAD_SECONDS,
    FIRST_AUDIO_TARGET_SECONDS,
    DeadlinePolicy,
)
from intone_server.scheduling.generation import NOBODY, Generation, Priority
from intone_server.scheduling.policy import FifoPolicy, Policy, order
from test_scheduler import generation


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Dry:
    """A listener who runs dry at a time."""

    def __init__(self, at: float) -> None:
        self.at = at

    def dry_at(self) -> float:
        return self.at


class Stage:
    """A policy, and what it holds by name."""

    def __init__(self, policy: Callable[[Clock], Policy] = DeadlinePolicy) -> None:
        self.clock = Clock()
        self.policy = policy(self.clock)
        self.names: dict[int, str] = {}

    def push(self, name: str, *, left: float | None = None, **values: Any) -> Generation:
        """`left` seconds until the listener runs dry; None for a first segment."""
        again = values.pop("again", False)
        owner = values.pop("owner", None)
        listener = NOBODY if left is None else Dry(self.clock.now + left)
        pushed = generation(**({"listener": listener} | values))
        pushed.owner = owner or pushed
        pushed.queued_at = self.clock.now
        self.names[pushed.id] = name
        self.policy.push(pushed, again=again)
        return pushed

    def pop(self, *running: Generation) -> str:
        return self.names[self.policy.pop(running).id]

    def rest(self) -> list[str]:
        return [self.pop() for _ in range(len(self.policy))]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_the_listener_who_runs_dry_first_is_served_first(stage: Stage) -> None:
    stage.push("5 s left", left=5)
    stage.push("2 s left", left=2)
    stage.push("3 s left", left=3)
    assert stage.rest() == ["2 s left", "3 s left", "5 s left"]


def test_a_first_segment_goes_before_those_who_have_more_left_than_its_target(
    stage: Stage,
) -> None:
    stage.push("5 s left", left=5)
    stage.push("almost dry", left=FIRST_AUDIO_TARGET_SECONDS / 2)
    stage.push("first")
    assert stage.rest() == ["almost dry", "first", "5 s left"]


def test_equal_deadlines_are_served_in_order_of_arrival(stage: Stage) -> None:
    for name in "abc":
        stage.push(name)
    assert stage.rest() == ["a", "b", "c"]


def test_a_listener_who_was_dry_before_the_text_came_is_late_since_then(stage: Stage) -> None:
    stage.push("dry", left=0)
    stage.clock.now += 0.1
    stage.push("dry for an hour", left=-3600)
    assert stage.rest() == ["dry", "dry for an hour"]


def test_a_listener_may_report_while_the_text_waits(stage: Stage) -> None:
    stage.push("a", left=2)
    paused = stage.push("b", left=1).listener
    assert isinstance(paused, Dry)
    paused.at += 10
    assert stage.rest() == ["a", "b"]


def test_classes_come_before_deadlines(stage: Stage) -> None:
    stage.push("batch", left=0, priority=Priority.BATCH)
    stage.push("standard", left=1)
    stage.push("interactive", left=20, priority=Priority.INTERACTIVE)
    assert stage.rest() == ["interactive", "standard", "batch"]


def test_what_has_waited_long_rises_by_a_class(stage: Stage) -> None:
    stage.push("old batch", priority=Priority.BATCH)
    stage.clock.now += AGEING_SECONDS
    stage.push("standard")
    stage.clock.now += 1
    stage.push("interactive", priority=Priority.INTERACTIVE)
    assert stage.rest() == ["interactive", "old batch", "standard"]


def test_who_is_far_ahead_yields_to_every_class_and_client_but_uses_what_nobody_wants(
    stage: Stage,
) -> None:
    far = {"left": FAR_AHEAD_SECONDS + 1, "priority": Priority.INTERACTIVE, "client": "a"}
    stage.push("far ahead", **far)
    stage.push("batch", priority=Priority.BATCH, client="b")
    assert stage.rest() == ["batch", "far ahead"]
    stage.push("far ahead", **far)
    stage.clock.now += 2
    stage.push("batch", priority=Priority.BATCH, client="b")
    assert stage.rest() == ["far ahead", "batch"], "its listener has caught up"


def test_a_generation_that_lost_its_replica_goes_before_all(stage: Stage) -> None:
    stage.push("interactive", priority=Priority.INTERACTIVE)
    stage.push("lost first", priority=Priority.BATCH, again=True)
    stage.push("lost second", priority=Priority.BATCH, again=True)
    assert stage.rest() == ["lost first", "lost second", "interactive"]


def test_a_call_with_several_segments_at_a_time_gets_its_share_while_others_wait(
    stage: Stage,
) -> None:
    dialogue = object()
    running = [stage.push("line 1", owner=dialogue), stage.push("line 2", owner=dialogue)]
    for _ in running:
        stage.pop()
    stage.push("line 3", owner=dialogue, left=1)
    stage.push("other", left=5)
    assert [stage.pop(*running), stage.pop(*running)] == ["other", "line 3"]


def test_a_client_with_many_streams_gets_no_more_than_one_with_a_single_one(
    stage: Stage,
) -> None:
    """Until a round is over, deadlines decide; then the one has had as much as the many."""
    for number in range(30):
        stage.push("many", client="a", estimated_seconds=2.0, left=number / 100)
    turns = ["one"]
    while len(turns) < 21:
        if turns[-1] == "one":  # its stream has at most one segment waiting
            stage.push("one", client="b", estimated_seconds=2.0, left=1)
        turns.append(stage.pop())
    assert turns[1:] == (["many"] * 5 + ["one"] * 5) * 2


def _all(stage: Stage) -> list[Generation]:
    return list(order(stage.policy, [], stage.clock.now))


@pytest.mark.parametrize("stays", [True, False])
def test_a_debt_is_forgotten_with_the_last_thing_that_a_client_wants(
    stage: Stage, stays: bool
) -> None:
    long = stage.push("long", client="a", estimated_seconds=3 * QUANTUM_SECONDS)
    stage.pop()
    running = [long] if stays else []
    stage.push("c", client="c")
    stage.pop(*running)
    stage.push("a", client="a", left=0)
    stage.push("b", client="b", left=5)
    assert stage.pop(*running) == ("b" if stays else "a")


def test_a_look_ahead_changes_nothing_and_takes_in_more(stage: Stage) -> None:
    stage.push("b", left=2)
    stage.push("c", left=3)
    ahead = stage.policy.copy(stage.clock)
    assert stage.names[ahead.pop([]).id] == "b"
    ahead.push(generation(text="urgent", priority=Priority.INTERACTIVE))
    assert ahead.pop([]).text == "urgent"
    assert stage.rest() == ["b", "c"]


@pytest.mark.parametrize(
    ("left", "priority", "pause"),
    [(None, Priority.BATCH, AGEING_SECONDS - 1), (FAR_AHEAD_SECONDS + 5, Priority.INTERACTIVE, 6)],
    ids=["has risen", "has caught up"],
)
def test_a_look_ahead_sees_what_time_will_change(
    stage: Stage, left: float | None, priority: Priority, pause: float
) -> None:
    stage.push("other", left=left, priority=priority)
    stage.clock.now += 2
    for name in "ab":
        stage.push(name, left=20)
    later = Clock()
    later.now = stage.clock.now
    ahead = stage.policy.copy(later)
    told = [ahead.pop([])]
    later.now += pause
    told += [ahead.pop([]), ahead.pop([])]
    assert [stage.names[g.id] for g in told] == ["a", "other", "b"]


def test_an_empty_queue_has_no_next(stage: Stage) -> None:
    with pytest.raises(ValueError, match="nothing waits"):
        stage.policy.pop([])


ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "left": st.one_of(st.none(), st.floats(-5, FAR_AHEAD_SECONDS + 10)),
            "priority": st.sampled_from(Priority),
            "client": st.sampled_from("abc"),
            "estimated_seconds": st.floats(0.1, 15),
        }
    ),
    max_size=30,
)


@given(ENTRIES, st.lists(st.floats(0, 20), min_size=1, max_size=30))
def test_nobody_is_passed_by_what_comes_later_in_the_order_of_its_class_and_client(
    entries: list[dict[str, Any]], pauses: list[float]
) -> None:
    """Clock, listeners and ages move on between the choices."""
    stage = Stage()
    waiting: dict[str, Generation] = {}

    def rank(entry: Generation) -> tuple[bool, int]:
        dry_at = entry.listener.dry_at()
        waited = stage.clock.now - entry.queued_at
        return (
            dry_at is not None and dry_at > stage.clock.now + FAR_AHEAD_SECONDS,
            max(0, entry.priority - int(waited / AGEING_SECONDS)),
        )

    def deadline(entry: Generation) -> float:
        dry_at = entry.listener.dry_at()
        if dry_at is None:
            return entry.queued_at + FIRST_AUDIO_TARGET_SECONDS
        return max(dry_at, entry.queued_at)

    for number, entry in enumerate(entries):
        waiting[str(number)] = stage.push(str(number), **entry)
        stage.clock.now += pauses[number % len(pauses)] / 10
    while waiting:
        stage.clock.now += pauses[len(waiting) % len(pauses)]
        name = stage.pop()
        first = waiting.pop(name)
        assert all(rank(first) <= rank(other) for other in waiting.values())
        for other_name, other in waiting.items():
            if rank(other) == rank(first) and other.client == first.client:
                assert (deadline(first), int(name)) < (deadline(other), int(other_name))
    assert not len(stage.policy)


@given(
    st.lists(
        st.lists(st.floats(0.1, 15), min_size=40, max_size=40).map(tuple), min_size=2, max_size=4
    ),
    st.lists(st.floats(-10, 10), min_size=1, max_size=20),
    st.integers(1, 40),
)
def test_backlogged_clients_differ_by_less_than_the_quantum_and_the_largest_segment(
    costs: list[tuple[float, ...]], lefts: list[float], count: int
) -> None:
    """Each has always something waiting, whoever's listeners are how dry."""
    stage = Stage()
    for client, segments in enumerate(costs):
        for number, seconds in enumerate(segments):
            left = lefts[(client + number * 7) % len(lefts)] - 10.0 * client
            stage.push("", client=str(client), estimated_seconds=seconds, left=left)
    served = [0.0] * len(costs)
    largest = max(max(segments) for segments in costs)
    for _ in range(count):
        first = stage.policy.pop([])
        served[int(first.client)] += first.estimated_seconds
        assert max(served) - min(served) < QUANTUM_SECONDS + largest + 1e-6


@pytest.mark.parametrize("policy", [DeadlinePolicy, lambda _: FifoPolicy()])
@given(entries=ENTRIES)
def test_the_order_told_is_the_order_served(
    policy: Callable[[Clock], Policy], entries: list[dict[str, Any]]
) -> None:
    stage = Stage(policy)
    for number, entry in enumerate(entries):
        stage.push(str(number), **entry)
    told = [stage.names[g.id] for g in _all(stage)]
    assert len(stage.policy) == len(entries), "looking ahead takes nothing out"
    assert stage.policy.work_seconds == pytest.approx(sum(e["estimated_seconds"] for e in entries))
    assert stage.rest() == told
    if isinstance(stage.policy, FifoPolicy):
        assert told == [str(number) for number in range(len(entries))]
