"""How many pods some callers need: simulated callers, and the search."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import scaling_report
from benchmarks.callers import Balancing, Callers, Setup, segments
from benchmarks.pod_speed import PodSpeed
from benchmarks.pods import Answer, Limits, least, pods_needed, simulate
from benchmarks.scaling import main
from hypothesis import given, settings
from hypothesis import strategies as st

FIRST_AUDIO_SECONDS = 0.1
SPEED = PodSpeed((3.0, 3.5, 4.1, 4.8), FIRST_AUDIO_SECONDS)
SMALL = Setup(callers=4, pods=1, speed=SPEED, think_seconds=2.0, calls=40)

SETUPS = st.builds(
    Setup,
    callers=st.integers(1, 12),
    pods=st.integers(1, 3),
    speed=st.sampled_from([SPEED, PodSpeed((1.2,), 0.3)]),
    think_seconds=st.floats(0, 5),
    balancing=st.sampled_from(Balancing),
    scheduling=st.sampled_from(["deadline", "fifo"]),
    attempts=st.integers(1, 4),
    calls=st.integers(1, 30),
    seed=st.integers(1, 1000),
)


# Callers


@settings(deadline=None, max_examples=30)
@given(setup=SETUPS)
def test_every_call_ends_served_or_refused(setup: Setup) -> None:
    callers = Callers(setup)
    callers.run()
    assert len(callers.asked) == setup.callers + setup.calls
    assert len(callers.counted()) == setup.calls
    for asked in callers.asked:
        assert asked.is_over
        refused = asked.first_audio_seconds is None
        assert refused == (asked.refusals == setup.attempts)
        if asked.first_audio_seconds is not None:
            assert asked.first_audio_seconds >= setup.speed.first_audio_seconds - 1e-6
    for pod in callers.pods:
        load = pod.scheduler.outlook.load()
        assert (load.replicas_busy, load.queue_depth, pod.admission.open) == (0, 0, 0)
    assert -1e-9 <= callers.busy_share <= 1 + 1e-9


@settings(deadline=None, max_examples=15)
@given(setup=SETUPS)
def test_a_seed_decides_everything(setup: Setup) -> None:
    assert simulate(setup) == simulate(setup)


def test_another_seed_is_another_simulation() -> None:
    assert simulate(SMALL) != replace(simulate(replace(SMALL, seed=2)), seed=1)


def test_one_caller_is_never_refused_and_waits_for_nobody() -> None:
    summary = simulate(replace(SMALL, callers=1))
    assert (summary.refusals, summary.silent) == (0, 0)
    assert summary.first_audio_p99 == pytest.approx(FIRST_AUDIO_SECONDS)


def test_a_full_pod_refuses_and_another_one_serves() -> None:
    """Two callers never pause. A pod takes one of them; the hint of the first refusal leads to the
    other pod."""
    alone = PodSpeed((1.5,), 0.0)
    setup = Setup(callers=2, pods=1, speed=alone, think_seconds=0.0, calls=40, attempts=2)
    assert simulate(setup).refused > 0
    both = simulate(replace(setup, pods=2))
    assert (both.refused, both.refusals) == (0, 0)
    blind = simulate(replace(setup, pods=2, balancing=Balancing.RANDOM))
    assert blind.refusals > 0


def test_what_two_setups_share_is_the_same() -> None:
    few, many = Callers(SMALL), Callers(replace(SMALL, callers=8, pods=3))
    for callers in (few, many):
        callers.run()
    said = {round(asked.audio_seconds, 6) for asked in many.asked}
    assert {round(asked.audio_seconds, 6) for asked in few.asked[:4]} <= said


def test_texts_are_cut_as_the_server_cuts_them() -> None:
    first, second = segments(
        "This is the first sentence of all. This one is a good bit longer than it."
    )
    assert 2 < first < second < 4


# Pods for callers


@given(enough=st.integers(1, 300), guess=st.integers(0, 400), most=st.integers(1, 300))
def test_the_search_finds_the_least_that_suffices(enough: int, guess: int, most: int) -> None:
    asked = []

    def suffices(pods: int) -> bool:
        asked.append(pods)
        return pods >= enough

    assert least(suffices, guess, most) == (enough if enough <= most else None)
    assert len(asked) == len(set(asked)), "nothing is simulated twice"
    assert all(1 <= pods <= most for pods in asked)
    assert len(asked) <= 2 * math.ceil(math.log2(most + 1)) + 2


def test_what_suffices_for_many_callers_suffices_for_fewer() -> None:
    limits = Limits(first_audio_p95=0.5, silent=0.2)
    setup = replace(SMALL, think_seconds=1.0, calls=100)
    counts = [1, 2, 4, 8, 16]
    needed = [pods_needed(replace(setup, callers=n), limits, [1]).pods for n in counts]
    assert None not in needed
    assert needed == sorted(needed)
    assert needed[0] == 1 < needed[-1]
    for callers, pods in zip(counts, needed, strict=True):
        for fewer in (n for n in counts if n <= callers):
            assert limits.hold(simulate(replace(setup, callers=fewer, pods=pods or 0)))


@settings(deadline=None, max_examples=15)
@given(callers=st.integers(1, 8), fewer=st.integers(0, 7), seed=st.integers(1, 99))
def test_a_replica_for_each_caller_is_enough_also_for_fewer(
    callers: int, fewer: int, seed: int
) -> None:
    """Then nobody is ever refused, and waits at most until the texts of all others are read."""
    pods = math.ceil(callers / len(SPEED.totals))
    count = max(1, callers - fewer)
    summary = simulate(replace(SMALL, callers=count, pods=pods, seed=seed, calls=20))
    assert summary.refusals == 0
    assert summary.first_audio_p99 <= len(SPEED.totals) * FIRST_AUDIO_SECONDS + 1e-6


def test_no_number_of_pods_is_faster_than_one_that_does_nothing_else() -> None:
    answer = pods_needed(replace(SMALL, calls=10), Limits(FIRST_AUDIO_SECONDS / 2), [1, 2])
    assert answer == Answer(4, (None, None))
    assert answer.pods is None
    table = scaling_report.answers_table([answer], Limits(FIRST_AUDIO_SECONDS / 2))
    assert "| 4 | none | none, none |" in table


# The command


def test_the_command_tells_what_callers_hear_and_how_many_pods_they_need(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    few = ["--calls", "5", "--seeds", "2", "--callers", "2"]
    assert main([*few, "--pods", "1,2", "--for-each-pod", "--json", str(tmp_path / "a.json")]) == 0
    assert "| 4 | 2 | 100 ms |" in capsys.readouterr().out
    content = json.loads((tmp_path / "a.json").read_text())
    assert [s["seed"] for s in content["simulations"]] == [1, 2, 1, 2]
    assert main([*few, "--max-first-audio-p95", "400", "--max-silent-share", "0.5"]) == 0
    assert "| 2 | 1 | 1, 1 | 100 ms |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "--callers 2",
        "--callers 0 --pods 1",
        "--callers 2 --pods 1 --max-first-audio-p95 400",
        "--callers 2 --pods 1 --speeds 1:0",
        "--callers 2 --pods 1 --speeds no-such-file.json",
        "--callers 2 --pods 1 --text-lengths huge",
    ],
)
def test_a_wrong_command_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(wrong.split())
    assert "error:" in capsys.readouterr().err
