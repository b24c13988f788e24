"""What `intone bench` plans and what it makes of what it measured: no server, no clock."""

import math
import re
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intone_client import IntoneError
from intone_client._bench.lag import LoopLag
from intone_client._bench.listener import Arrival, Gap, Heard, TextLog, listen
from intone_client._bench.plan import Texts, arrivals, think_times
from intone_client._bench.plot import open_calls, plot_calls
from intone_client._bench.result import CallResult, Outcome
from intone_client._bench.summary import Summary, Thresholds, percentile
from intone_client._bench.texts import SENTENCES, TextLengths, cut_pieces, make_text, read_texts

SEEDS = st.integers(0, 2**32)


# When calls begin


@given(SEEDS, st.floats(0.1, 50), st.floats(0.1, 20))
def test_arrivals_are_in_order_within_the_duration_and_the_seeds_own(
    seed: int, rate: float, duration: float
) -> None:
    times = list(arrivals(seed, rate, duration))
    assert times == sorted(times)
    assert all(0 <= at < duration for at in times)
    assert times == list(arrivals(seed, rate, duration))
    assert list(arrivals(seed, rate, duration * 2))[: len(times)] == times


@pytest.mark.parametrize("seed", range(5))
def test_arrivals_are_a_poisson_process(seed: int) -> None:
    """Of exponential gaps the standard deviation equals the mean: regular calls have none."""
    times = list(arrivals(seed, 50, 200))
    assert len(times) == pytest.approx(10_000, abs=5 * 100)
    gaps = [after - before for before, after in pairwise(times)]
    mean = math.fsum(gaps) / len(gaps)
    deviation = math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert deviation / mean == pytest.approx(1, abs=0.05)


def test_think_times_have_their_mean_and_each_conversation_its_own() -> None:
    times = list(islice(think_times(1, 0, 2.0), 10_000))
    assert math.fsum(times) / len(times) == pytest.approx(2.0, abs=0.1)
    assert times[:5] != list(islice(think_times(1, 1, 2.0), 5))
    assert list(islice(think_times(1, 0, 0.0), 3)) == [0, 0, 0]


# What is said


@given(SEEDS, st.integers(10, 2000))
def test_a_text_is_as_long_as_asked_for_or_a_word_shorter(seed: int, length: int) -> None:
    text = make_text(SENTENCES, length, Random(seed))
    longest = max(len(word) for sentence in SENTENCES for word in sentence.split())
    assert length - longest - 3 < len(text) <= length
    assert text[0].isupper()
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("short", 20, 60), ("long", 300, 800), ("mixed", 20, 800), ("10-10", 10, 10)],
)
def test_lengths_are_drawn_from_their_range(name: str, low: int, high: int) -> None:
    drawn = [TextLengths(name).draw(Random(seed)) for seed in range(500)]
    assert all(low <= length <= high for length in drawn)
    if name == "mixed":
        assert sum(length > 60 for length in drawn) == pytest.approx(150, abs=50)


@pytest.mark.parametrize("name", ["", "tall", "9-20", "30-20", "10-10001", "10", "-10-20"])
def test_other_lengths_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="text lengths are"):
        TextLengths(name)


@given(SEEDS, st.text(max_size=200))
def test_pieces_are_short_and_together_the_text(seed: int, text: str) -> None:
    pieces = cut_pieces(text, Random(seed))
    assert "".join(pieces) == text
    assert all(1 <= len(piece) <= 7 for piece in pieces)


def test_what_a_call_says_depends_on_the_seed_and_its_name_alone() -> None:
    lengths = TextLengths("short")
    texts, again = Texts(1, lengths=lengths), Texts(1, lengths=lengths, tokens_per_second=50)
    said = [texts.utterance(number) for number in range(20)]
    assert len({utterance.text for utterance in said}) > 15
    in_pieces = [again.utterance(number) for number in reversed(range(20))]
    assert [utterance.text for utterance in reversed(in_pieces)] == [each.text for each in said]
    assert said[0].pieces == (said[0].text,)
    assert len(in_pieces[0].pieces) > 1
    assert in_pieces[0].piece_seconds == 0.02
    assert Texts(2, lengths=lengths).utterance(0) != said[0]


def test_own_texts_are_said_whole_unless_a_length_is_asked_for() -> None:
    own = read_texts("\nEin Satz.\n\n  Noch einer. \n")
    assert own == ["Ein Satz.", "Noch einer."]
    assert {Texts(1, own=own).utterance(n).text for n in range(20)} == set(own)
    assert len(Texts(1, own=own, lengths=TextLengths("90-100")).utterance(0).text) > 80
    with pytest.raises(ValueError, match="no text"):
        read_texts(" \n")


# What a listener hears


def test_audio_that_comes_in_time_is_heard_without_a_gap() -> None:
    heard = listen([Arrival(1.0, 0.5, 0.0), Arrival(1.2, 0.5, 0.0), Arrival(1.9, 0.5, 0.0)])
    assert heard == Heard(1.0, 0.0, 1.9, 2.5, 1.5, (), 0)
    assert listen([]) is None


def test_a_gap_is_the_servers_where_the_text_was_there() -> None:
    heard = listen([Arrival(1.0, 0.5, 0.0), Arrival(2.5, 0.5, 1.5), Arrival(2.6, 0.5, 1.5)])
    assert heard is not None
    assert heard.gaps == (Gap(1.5, 0.0, 1.0),)
    # The last chunk is in time for the listener, who had to wait, but was due long ago.
    assert heard.deadline_misses == 2
    assert heard.ends_at == 3.5


def test_a_gap_is_the_texts_until_the_text_is_there() -> None:
    heard = listen([Arrival(1.0, 0.5, 0.0), Arrival(2.5, 0.5, 2.25), Arrival(3.0, 0.5, 2.25)])
    assert heard is not None
    assert heard.gaps == (Gap(1.5, 0.75, 0.25),)
    # Both are late for the text of 2.25 by a quarter of a second.
    assert heard.deadline_misses == 2
    in_time = listen([Arrival(1.0, 0.5, 0.0), Arrival(2.25, 0.5, 2.25)])
    assert in_time is not None
    assert in_time.deadline_misses == 0


def test_jitter_is_no_gap() -> None:
    heard = listen([Arrival(0.0, 0.5, 0.0), Arrival(0.5009, 0.5, 0.0)])
    assert heard is not None
    assert heard.gaps == ()
    assert heard.deadline_misses == 0


CHUNKS = st.lists(
    st.tuples(st.floats(0, 2), st.floats(0.01, 1), st.floats(0, 3)), min_size=1, max_size=30
)


@given(CHUNKS)
def test_silence_and_audio_fill_the_time_that_somebody_listens(
    chunks: list[tuple[float, float, float]],
) -> None:
    """From the first audio to the end there is nothing else, and text is waited for only while
    there is silence."""
    at = 0.0
    taken = []
    for pause, seconds, text_delay in chunks:
        at += pause
        taken.append(Arrival(at, seconds, max(at - text_delay, 0.0)))
    heard = listen(taken)
    assert heard is not None
    silence = math.fsum(gap.server_seconds + gap.text_seconds for gap in heard.gaps)
    jitter = 0.001 * len(taken)
    assert heard.ends_at - heard.first_at == pytest.approx(
        heard.audio_seconds + silence, abs=jitter
    )
    assert all(gap.server_seconds >= 0 and gap.text_seconds >= 0 for gap in heard.gaps)
    # Whoever waited for the server was sent a chunk too late.
    assert heard.deadline_misses >= sum(gap.server_seconds > 0.001 for gap in heard.gaps)


def test_text_is_there_once_the_word_after_it_begins() -> None:
    log = TextLog()
    for at, piece in enumerate(["It is 3.", "5 km. ", "Then", " go", "."]):
        log.wrote(piece, at)
    assert log.written_at(13) == 2  # "It is 3.5 km.", then a space and a T
    assert log.written_at(4) == 0
    assert log.written_at(22) == 4  # the end of the text


# What it all comes to


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.sampled_from([1, 50, 95, 99, 100]))
def test_a_percentile_is_the_least_value_that_covers_so_many(
    values: list[float], percent: int
) -> None:
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)
    assert percentile([float(n) for n in range(1, 101)], 7) == 7


def spoken(number: int, started: float, *taken: Arrival) -> CallResult:
    result = CallResult(number, None, started, 40, Outcome.SPOKEN)
    result.started_at = started
    result.heard = listen(taken)
    result.ended_at = taken[-1].at
    return result


def ended(number: int, outcome: Outcome) -> CallResult:
    return CallResult(number, None, float(number), 40, outcome)


RESULTS = [
    spoken(0, 0.0, Arrival(0.2, 1.0, 0.0), Arrival(1.0, 1.0, 0.0)),
    spoken(1, 1.0, Arrival(1.4, 1.0, 1.0), Arrival(3.4, 1.0, 1.0)),
    ended(2, Outcome.REFUSED),
    ended(3, Outcome.FAILED),
    ended(4, Outcome.NOT_SENT),
]


def test_the_summary_counts_calls_listeners_and_silence() -> None:
    summary = Summary.of(RESULTS)
    assert summary.calls == {
        "spoken": 2,
        "refused": 1,
        "failed": 1,
        "not_sent": 1,
        "unfinished": 0,
    }
    assert (summary.first_audio.p50, summary.first_audio.count) == (pytest.approx(0.2), 2)
    assert summary.first_audio.p95 == pytest.approx(0.4)
    assert summary.audio_seconds == 4
    assert summary.speed == pytest.approx(4 / 3.4)
    assert (summary.listeners, summary.listeners_without_gap, summary.heard_nothing) == (2, 1, 1)
    assert (summary.gaps, summary.silence_seconds) == (1, pytest.approx(1.0))
    assert summary.deadline_misses == 1


def test_nothing_at_all_has_a_summary() -> None:
    summary = Summary.of([])
    assert (summary.first_audio.p95, summary.speed, summary.listeners) == (None, 0.0, 0)
    assert Thresholds(max_silence_seconds=0, max_refused_share=0).failures(summary) == []


def test_each_limit_that_is_not_kept_is_one_line() -> None:
    summary = Summary.of(RESULTS)
    assert Thresholds().failures(summary) == []
    assert Thresholds(400.1, 1.001, 0.4, 0.2).failures(summary) == []
    assert Thresholds(399, 0.9, 0.3, 0.1).failures(summary) == [
        "first audio p95 in ms is 400, allowed is 399",
        "silence in s is 1, allowed is 0.9",
        "share of calls refused or not sent is 0.4, allowed is 0.3",
        "share of calls failed is 0.2, allowed is 0.1",
    ]
    nothing = Summary.of([ended(0, Outcome.REFUSED)])
    assert Thresholds(400).failures(nothing) == ["first audio p95 in ms is unknown, allowed is 400"]


@pytest.mark.parametrize(
    ("code", "reason", "started", "outcome"),
    [
        ("RESOURCE_EXHAUSTED", "QUEUE_FULL", False, Outcome.REFUSED),
        ("RESOURCE_EXHAUSTED", "", False, Outcome.REFUSED),  # a proxy
        ("UNAVAILABLE", "DRAINING", False, Outcome.REFUSED),
        ("UNAVAILABLE", "", False, Outcome.FAILED),  # not reached
        ("DEADLINE_EXCEEDED", "", False, Outcome.FAILED),
        ("DEADLINE_EXCEEDED", "SEGMENT_TIMEOUT", True, Outcome.FAILED),
    ],
)
def test_a_refusal_comes_before_anything_was_begun(
    code: str, reason: str, started: bool, outcome: Outcome
) -> None:
    result = ended(0, Outcome.UNFINISHED)
    result.fail(IntoneError("no", code=grpc.StatusCode[code], reason=reason), started=started)
    assert (result.outcome, result.status, result.reason) == (outcome, code, reason)


def test_open_calls_are_counted_over_time() -> None:
    assert open_calls(RESULTS) == ([0.0, 0.0, 1.0, 1.0, 3.4], [0, 1, 0, 1, 0])


def test_the_plot_says_what_is_in_it(tmp_path: Path) -> None:
    plot_calls(RESULTS, tmp_path / "a.svg")
    texts = set(re.findall(r"<!-- (.*) -->", (tmp_path / "a.svg").read_text()))
    legend = {"first audio", "refused", "failed", "not sent", "open calls"}
    assert legend | {"a listener hears silence"} < texts
    plot_calls([], tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_a_loop_that_hung_delayed_more_than_the_one_probe_that_saw_it() -> None:
    lag = LoopLag()
    lag.note(-0.001)
    lag.note(0.025)
    assert lag.lags == pytest.approx([0, 0.025, 0.015, 0.005])
