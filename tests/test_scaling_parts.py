"""The parts of the simulation of pods: one pod, its speed, what is read from real calls, tables."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from benchmarks import check, scaling_plot, scaling_report
from benchmarks.listener import Arrival, Call, Segment
from benchmarks.pod_speed import LEAST_SPEED_OF_EACH, PodSpeed, measured, parse_speeds, read_result
from benchmarks.pods import Summary
from benchmarks.simulation import Pod, Time
from benchmarks.speed import Turn
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from intone_server.scheduling.deadline import DeadlinePolicy

SPEED = PodSpeed((3.0, 3.5, 4.1, 4.8), 0.1)


def speak(speed: PodSpeed, streams: int, texts: Sequence[float]) -> check.Round:
    return check.simulated(speed, streams, texts)


# Pods


@given(
    speed=st.floats(LEAST_SPEED_OF_EACH, 10),
    first=st.floats(0, 1),
    texts=st.lists(st.floats(0.5, 10), min_size=1, max_size=5),
)
def test_one_pod_with_one_row_equals_the_arithmetic(
    speed: float, first: float, texts: list[float]
) -> None:
    """Each segment takes its first audio and then its audio at that speed; a listener hears
    silence wherever that is slower than what was heard before."""
    (stream,) = speak(PodSpeed((speed,), first), 1, texts).streams
    assert stream.ended == pytest.approx(len(texts) * first + sum(texts) / speed)
    assert stream.first_audio == pytest.approx(first, abs=1e-6)
    silence, now, dry_at = 0.0, first, first
    for seconds in texts:
        silence += max(0.0, now - dry_at)
        dry_at = max(dry_at, now) + seconds
        now += seconds / speed
        silence += max(0.0, now - dry_at)
        dry_at = max(dry_at, now)
        now += first
    assert stream.silence == pytest.approx(silence, abs=1e-6)


def test_texts_are_read_one_after_the_other() -> None:
    streams = speak(SPEED, 4, [5.0]).streams
    assert sorted(s.first_audio for s in streams) == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_more_calls_than_replicas_wait_for_one() -> None:
    """Two replicas make 2.0 s of audio per second, alone or together."""
    streams = speak(PodSpeed((2.0, 2.0), 0.0), 3, [4.0]).streams
    assert [stream.ended for stream in streams] == pytest.approx([4.0, 4.0, 6.0])
    assert max(stream.first_audio for stream in streams) == pytest.approx(4.0)


def test_pods_do_not_slow_each_other_down() -> None:
    time = Time()
    pods = [Pod(time, DeadlinePolicy, [2.0]) for _ in range(3)]
    for pod in pods:
        pod.call(0.0, [4.0])
    time.run()
    assert time.now == pytest.approx(2.0)
    assert [pod.busy_seconds for pod in pods] == pytest.approx([2.0] * 3)


# Speeds, from flags and from real calls


def test_speeds_between_those_given_follow_the_servers_rule() -> None:
    speed = PodSpeed.of(parse_speeds("1:3,2:3.5,4:4.8,8:7.4"), 0.1)
    assert speed.totals == pytest.approx((3.0, 3.5, 4.15, 4.8, 5.45, 6.1, 6.75, 7.4))
    assert len(PodSpeed.of({1: 3.0}, 0.1, replicas=2).totals) == 2


def test_a_pod_on_which_segments_would_time_out_is_refused() -> None:
    with pytest.raises(ValueError, match=r"each of 4 replicas has a speed of 0\.25"):
        PodSpeed.of({1: 1.0, 4: 1.0}, 0.1, replicas=4)


@pytest.mark.parametrize("text", ["", "3", "0:1", "1:0", "1:nan", "a:1", "1:2,"])
def test_wrong_speeds_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_speeds(text)


def steady(began_at: float, first: float, speed: float, seconds: float) -> Call:
    """A call of one segment whose audio comes every tenth of a second."""
    count = round(seconds / speed / 0.1)
    heard_at = began_at + first
    arrivals = [Arrival(heard_at + n * 0.1, speed * 0.1) for n in range(count + 1)]
    return Call(began_at, tuple(arrivals), (Segment(began_at, arrivals[-1].at),))


def test_the_speed_of_each_number_of_replicas_is_measured_without_the_time_of_reading() -> None:
    alone = [steady(0.0, 0.25, 3.0, 9.0)]
    # The second is heard from 1.4 s on. Both make 4 s per second until the first is over.
    both = [steady(0.0, 0.2, 2.0, 8.0), steady(1.0, 0.4, 2.0, 8.0)]
    speed = measured([alone, both])
    assert speed.first_audio_seconds == pytest.approx(0.25)
    assert len(speed.totals) == 2
    assert speed.totals[1] == pytest.approx(4.0, rel=0.05)
    assert 2.0 < speed.totals[0] < 3.0, "of the one alone, and of each while it was alone"


def test_speeds_are_read_from_a_result_of_the_benchmarks(tmp_path: Path) -> None:
    path = tmp_path / "int8.json"
    turns = [
        {"contender": "intone", "calls": [asdict(steady(0.0, 0.25, 3.0, 9.0))]},
        {"contender": "library", "calls": [asdict(steady(0.0, 0.25, 1.0, 9.0))]},
    ]
    path.write_text(json.dumps({"turns": turns}))
    assert read_result(path).totals == pytest.approx((3.0,), rel=0.01)
    path.write_text(json.dumps({"turns": turns[1:]}))
    with pytest.raises(ValueError, match="no turn"):
        read_result(path)


# Reports


def turn(*calls: Call, others: float = 0.0) -> Turn:
    return Turn(
        contender="intone",
        load="pair",
        streams=len(calls),
        round=0,
        calls=calls,
        refused=0,
        cpu_seconds=1.0,
        front_cpu_seconds=None,
        memory_bytes=1,
        others_cores=others,
    )


def test_the_streams_of_several_turns_are_compared_in_the_order_of_their_ends() -> None:
    fast, slow = steady(0.0, 0.2, 3.0, 9.0), steady(0.0, 0.4, 2.0, 8.0)
    slower = steady(0.0, 0.6, 2.0, 8.0)
    turns = [turn(fast, slow), turn(slower, fast), turn(slow, slow, others=1.0)]
    real = check.real(turns)
    assert [s.first_audio for s in real.streams] == pytest.approx([0.2, 0.5])
    assert real.streams[1].ended == pytest.approx((4.4 + 4.6) / 2)
    assert real.others_cores == 0, "the disturbed one is left out"


def test_the_audio_of_each_segment_is_told_by_a_call() -> None:
    arrivals = (Arrival(0.5, 1.0), Arrival(1.0, 2.0), Arrival(2.5, 4.0))
    told = Call(0.0, arrivals, (Segment(0.2, 1.0), Segment(1.0, 2.5)))
    assert check.segment_seconds(told) == [3.0, 4.0]


def test_a_comparison_tells_how_wrong_the_simulation_is() -> None:
    simulated = check.Round((check.Stream(4.0, 0.1, 0.0), check.Stream(5.0, 0.2, 0.5)), 10.0)
    real = check.Round((check.Stream(4.4, 0.1, 0.0), check.Stream(5.0, 0.25, 0.0)), 10.0)
    comparison = check.Comparison(simulated, real)
    assert comparison.speed_error == 0
    assert comparison.end_error == pytest.approx((0.4 / 4.4) / 2)
    table = check.table([comparison])
    assert "| | error | +0.0% | ends: 4.5% | | -25 ms | -50 ms | +0.25 s | +0.50 s |" in table
    assert table.endswith("greatest error: speed 0.0%, ends 4.5%")


def test_a_table_has_the_median_over_seeds_and_their_spread(tmp_path: Path) -> None:
    summaries = [
        Summary(10, 2, seed, 100, 0.1, p95, 1.0, 0.0, 0.1, 0.05, 0.01, 0.5, 3.0)
        for seed, p95 in enumerate((0.2, 0.4, 0.3), 1)
    ]
    table = scaling_report.summaries_table(summaries)
    assert "| 10 | 2 | 100 ms | 300 ms (200 ms to 400 ms) | 1.0 s | 0.0% |" in table
    never = replace(summaries[0], callers=20, first_audio_p95=math.inf)
    assert "never" in scaling_report.summaries_table([never])
    scaling_plot.write_plot(tmp_path / "scaling.png", [*summaries, never], "a title")
    assert imread(tmp_path / "scaling.png").shape[1] > 800
