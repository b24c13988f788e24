"""The parts of the benchmarks that are arithmetic: listeners, medians, plans, goals, pictures."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks import gantt, plan, report
from benchmarks.contenders import FIFO, INTONE, LIBRARY, POCKET_SERVE
from benchmarks.goals import Goal, speed_goals
from benchmarks.listener import Arrival, Call, Gap, Segment, listen
from benchmarks.medians import Middle, percentile
from benchmarks.plot import spread, write_plot
from benchmarks.speed import Turn
from matplotlib.image import imread


def call(*arrivals: tuple[float, float], segments: Sequence[tuple[float, float]] = ()) -> Call:
    """A call that began at 0, of (at, seconds) each."""
    return Call(
        0.0, tuple(Arrival(*one) for one in arrivals), tuple(Segment(*one) for one in segments)
    )


def turn(
    contender: str = INTONE,
    *,
    speed: float = 2.0,
    streams: int = 1,
    round_: int = 0,
    load: str = "sentence",
    others: float = 0.0,
    refused: int = 0,
    calls: Sequence[Call] = (),
    front: float | None = None,
) -> Turn:
    """A turn in which every stream gets two seconds of audio, the last at the same time."""
    calls = calls or [call((0.1, 1.0), (2.0 * streams / speed, 1.0))] * streams
    return Turn(
        contender=contender,
        load=load,
        streams=streams,
        round=round_,
        calls=tuple(calls),
        refused=refused,
        cpu_seconds=1.0,
        front_cpu_seconds=front,
        memory_bytes=10**9,
        others_cores=others,
    )


def verdicts(turns: Sequence[Turn], **first_audio: Sequence[float]) -> dict[str, Goal]:
    names = {"ours": INTONE, "serve": POCKET_SERVE, "library": LIBRARY}
    first = {names[key]: seconds for key, seconds in first_audio.items()}
    return {goal.name: goal for goal in speed_goals(turns, first, promised=True)}


# Listeners


def test_a_listener_hears_silence_whenever_nothing_has_arrived_in_time() -> None:
    heard = listen(call((1.0, 0.5), (1.2, 0.5), (2.5, 1.0), (4.0, 0.1)))
    assert heard.first_audio == 1.0
    assert heard.wall == 4.0
    assert heard.audio == pytest.approx(2.1)
    assert heard.gaps == (Gap(2.0, 0.5), Gap(3.5, 0.5))
    assert heard.silence == 1.0


def test_less_than_a_millisecond_of_silence_does_not_count() -> None:
    assert listen(call((0.0, 1.0), (1.0009, 1.0))).gaps == ()
    assert len(listen(call((0.0, 1.0), (1.0011, 1.0))).gaps) == 1


def test_a_call_without_audio_has_no_listener() -> None:
    with pytest.raises(ValueError, match="no audio"):
        listen(call())


def test_a_call_can_be_told_on_the_turns_clock() -> None:
    moved = Call(100.0, (Arrival(100.5, 1.0),), (Segment(100.25, 101.0),)).since(99.0)
    assert moved == Call(1.0, (Arrival(1.5, 1.0),), (Segment(1.25, 2.0),))


# Medians


def test_a_single_value_has_no_known_error() -> None:
    assert Middle.of([3.0]) == Middle(3.0, None, 1)
    assert Middle.of([3.0]).shown(".1f", "x") == "3.0x"


def test_the_error_of_a_median_shrinks_with_the_number_of_values() -> None:
    few, many = Middle.of([1.0, 2.0, 3.0]), Middle.of([1.0, 2.0, 3.0] * 100)
    assert few.value == many.value == 2.0
    assert few.error == pytest.approx(1.25 / 3**0.5)
    assert few.error is not None
    assert many.error is not None
    assert many.error < few.error / 5
    assert few.shown("+.0f", " ms", 1000) == "+2000 ± 722 ms"


def test_percentiles_are_values_that_were_measured() -> None:
    assert [percentile([3, 1, 2], share) for share in (0.0, 0.5, 0.95, 1.0)] == [1, 2, 3, 3]


# Plans


@pytest.mark.parametrize("weights", ["int8", "float32"])
def test_a_whole_run_takes_less_than_half_an_hour_and_a_quick_one_a_few_minutes(
    weights: str,
) -> None:
    parts = ["speed", "front", "idle", "cancel", "encoding", "voices"]
    whole = plan.loads(weights, (1, 2, 4, 8, 16), quick=False)
    assert plan.run_seconds(weights, whole, parts, quick=False) < 27 * 60
    quick = plan.loads(weights, (1, 4, 8), quick=True)
    assert plan.run_seconds(weights, quick, parts[:4], quick=True) < 6.5 * 60
    assert [load.turns for load in quick] == [1, 1, 1]


def test_the_long_text_is_not_spoken_by_so_many_that_it_never_ends() -> None:
    found = {(load.name, load.streams) for load in plan.loads("int8", (8, 16), quick=False)}
    assert found == {("sentence", 8), ("sentence", 16), ("pair", 8)}


# Tables


def test_disturbed_turns_are_left_out_unless_there_are_no_others() -> None:
    quiet, loud = turn(speed=2.0), turn(speed=9.0, others=1.0)
    (row,) = report.summarise([quiet, loud])
    assert row.turns == 1
    assert row.speed == pytest.approx(2.0)
    (row,) = report.summarise([loud])
    assert row.speed == pytest.approx(9.0)
    assert "| 1* |" in report.table([row])


def test_a_row_tells_the_median_and_the_worst_listener() -> None:
    calls = [call((0.1, 1.0), (1.1 + silence, 1.0)) for silence in (0.0, 0.5, 1.5, 4.0)]
    (row,) = report.summarise([turn(streams=4, calls=calls, refused=2, front=0.2)])
    assert row.silence_median == pytest.approx(1.0)
    assert row.silence_worst == pytest.approx(4.0)
    assert row.refused == 2
    assert row.front == pytest.approx(0.2 / 0.8)


def test_rows_are_in_the_same_order_whatever_that_of_the_turns() -> None:
    turns = [turn(name) for name in (INTONE, FIFO, LIBRARY, POCKET_SERVE)]
    turns.append(turn(INTONE, load="pair"))
    rows = report.summarise(turns)
    assert [row.contender for row in rows] == [LIBRARY, POCKET_SERVE, FIFO, INTONE, INTONE]


# Goals


def ratio_at(streams: int, least: str) -> str:
    plural = "s" if streams > 1 else ""
    return f"{streams} stream{plural}, sentence: ≥ {least} times the speed of pocket-tts serve"


def test_speeds_are_compared_within_a_round() -> None:
    turns = []
    # The machine is twice as fast in the second round: the ratio is 4 in both.
    for number, factor in enumerate((1.0, 2.0)):
        turns.append(turn(POCKET_SERVE, speed=1.0 * factor, streams=4, round_=number))
        turns.append(turn(INTONE, speed=4.0 * factor, streams=4, round_=number))
    goal = verdicts(turns)[ratio_at(4, "3.5")]
    assert goal.held
    assert goal.measured == "4.00 ± 0.00 (2 turns)"


def test_a_ratio_below_its_goal_is_not_held() -> None:
    turns = [turn(POCKET_SERVE, speed=1.0, streams=8), turn(speed=5.4, streams=8)]
    goal = verdicts(turns)[ratio_at(8, "5.5")]
    assert goal.held is False
    assert goal.measured == "5.40 (1 turn, error unknown)"
    assert verdicts(turns)["8 streams, sentence: total speed ≥ 8 times real time"].held is False


def test_disturbed_pairs_do_not_count_beside_quiet_ones() -> None:
    turns = [
        turn(POCKET_SERVE, speed=1.0, round_=0, others=1.0),
        turn(speed=9.0, round_=0),
        turn(POCKET_SERVE, speed=1.0, round_=1),
        turn(speed=1.0, round_=1),
    ]
    assert verdicts(turns)[ratio_at(1, "1.15")].held is False
    assert verdicts(turns[:2])[ratio_at(1, "1.15")].measured.endswith("disturbed)")


def test_speed_does_not_count_if_calls_were_refused() -> None:
    turns = [turn(POCKET_SERVE, speed=1.0, streams=2), turn(speed=9.0, streams=2, refused=1)]
    goal = verdicts(turns)[ratio_at(2, "1.8")]
    assert goal.held is False
    assert "refused" in goal.measured


def test_one_listener_of_four_who_hears_silence_is_one_too_many() -> None:
    smooth, late = call((0.3, 1.0), (0.9, 1.0)), call((0.3, 1.0), (1.31, 1.0))
    silence, first = (
        "4 streams, sentence: no listener hears silence",
        "4 streams, sentence: first audio < 400 ms",
    )
    fed = verdicts([turn(streams=4, calls=[smooth] * 4)])
    assert fed[silence].held
    assert fed[first].held
    starved = verdicts([turn(streams=4, calls=[*[smooth] * 3, late])])
    assert starved[silence].held is False
    assert "worst listener 10 ms" in starved[silence].measured
    kept_waiting = verdicts([turn(streams=4, calls=[*[smooth] * 3, call((0.41, 1.0))])])
    assert kept_waiting[first].held is False


def test_first_audio_is_compared_call_by_call() -> None:
    found = verdicts([], ours=[0.10, 0.20], serve=[0.11, 0.21], library=[0.09, 0.19])
    assert found["1 stream: first audio no later than pocket-tts serve"].held
    goal = found["1 stream: first audio no later than library"]
    assert goal.held is False
    assert goal.measured == "+10 ± 0 ms (2 calls each)"


def test_the_front_is_judged_where_it_takes_most() -> None:
    turns = [turn(front=0.01), turn(front=0.03, streams=8), turn(FIFO, front=0.5)]
    (goal,) = [goal for name, goal in verdicts(turns).items() if "front" in name]
    assert goal.held is False
    assert goal.measured == "3.1 % with 8 streams, its most"


def test_nothing_was_promised_for_float32() -> None:
    turns = [turn(POCKET_SERVE, speed=1.0), turn(speed=9.0)]
    found = speed_goals(turns, {}, promised=False)
    assert found
    assert {goal.held for goal in found} == {None}
    assert "no goal" in report.goals_table(found)


# Pictures


def test_a_gantt_line_shows_segments_arrivals_and_what_was_heard() -> None:
    late = call((2.0, 1.0), segments=[(1.5, 2.5)])
    early = call((0.5, 1.0), (2.0, 1.0), segments=[(0.2, 0.9), (1.8, 2.4)])
    first, second = gantt.lines(turn(streams=2, calls=[late, early]))
    assert first.segments == ((0.2, 0.9), (1.8, 2.4))
    assert first.arrivals == (0.5, 2.0)
    assert first.playing == ((0.5, 1.5), (2.0, 3.0))
    assert first.gaps == ((1.5, 2.0),)
    assert second.playing == ((2.0, 3.0),)


def test_the_gantt_chart_is_of_the_quietest_turn_of_the_long_text() -> None:
    long = [call((0.1, 20.0))] * 8
    turns = [
        turn(streams=8),
        turn(streams=8, load="pair", calls=long, others=0.1, round_=1),
        turn(streams=8, load="pair", calls=long, others=0.0, round_=2),
        turn(POCKET_SERVE, streams=8, load="pair", calls=long, round_=1),
        turn(streams=16),
    ]
    chosen = gantt.choose(turns, 8)
    assert [(one.contender, one.round) for one in chosen] == [(POCKET_SERVE, 1), (INTONE, 2)]
    assert gantt.choose(turns, 12) == chosen
    assert gantt.choose(turns, 4) == []


def test_labels_that_would_meet_are_moved_apart() -> None:
    assert spread([0.5, 0.0, 0.51], 0.1) == [0.5, 0.0, 0.6]


@pytest.mark.parametrize("streams", [(1,), (1, 2, 16)])
def test_plots_are_pictures(streams: Sequence[int], tmp_path: Path) -> None:
    turns = [
        turn(contender, streams=count)
        for count in streams
        for contender in (LIBRARY, POCKET_SERVE, FIFO, INTONE)
        if count == 1 or contender != LIBRARY
    ]
    write_plot(tmp_path / "curves.png", report.summarise(turns), "curves")
    gantt.write_gantt(tmp_path / "gantt.png", gantt.choose(turns, 16), "who when")
    for name in ("curves.png", "gantt.png"):
        assert imread(tmp_path / name).std() > 0
