"""Pauses that are written in the text."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intone_server.synthesis.inline_pauses import (
    MAX_MARK_CHARACTERS,
    MAX_PAUSE_SECONDS,
    MIN_PAUSE_SECONDS,
    InlinePause,
    PauseFilter,
)
from intone_server.synthesis.mapped import MappedText

PROPERTY = settings(deadline=None)

Item = MappedText | InlinePause


def filtered(text: str, *cuts: int) -> list[Item]:
    """What comes of the text in pieces, neighbouring texts joined."""
    target = PauseFilter()
    items: list[Item] = []
    for start, end in pairwise([0, *sorted(cuts), len(text)]):
        items += target.feed(MappedText.verbatim(text[start:end], start))
        assert len(target.held) < MAX_MARK_CHARACTERS
    joined: list[Item] = []
    for item in items + target.close():
        if isinstance(item, MappedText) and joined and isinstance(joined[-1], MappedText):
            item = joined.pop() + item  # type: ignore[operator]
        joined.append(item)
    return joined


def asked(mark: str) -> list[float]:
    """The seconds of the pauses in a text of nothing else."""
    items = filtered(mark)
    assert all(isinstance(item, InlinePause) for item in items), items
    return [item.asked_seconds for item in items if isinstance(item, InlinePause)]


@pytest.mark.parametrize(
    ("mark", "seconds"),
    [
        ("[pause:300ms]", 0.3),
        ("[pause:1.5s]", 1.5),
        ("[pause: 2 s]", 2.0),
        ("[pause:.5s]", 0.5),
        ("[PAUSE:250MS]", 0.25),
        ("[Pause: 0.25 S ]", 0.25),
        ('<break time="0.3s"/>', 0.3),
        ("<break time='300ms' />", 0.3),
        ("<break time=300ms>", 0.3),
        ('<break  time = " 1 s " />', 1.0),
        ('<BREAK TIME="2s"/>', 2.0),
        ('<break strength="x-weak"/>', 0.1),
        ('<break strength="weak"/>', 0.25),
        ('<break strength="medium"/>', 0.5),
        ("<break strength='strong'/>", 0.75),
        ("<break strength=X-Strong>", 1.0),
        ("<break/>", 0.5),
        ("<break />", 0.5),
        ("<break>", 0.5),
    ],
)
def test_a_mark_becomes_a_pause_of_its_length(mark: str, seconds: float) -> None:
    """Reported case 112."""
    assert asked(mark) == [seconds]


def test_a_pause_knows_where_its_mark_is_in_the_text_of_the_client() -> None:
    before, pause, after = filtered("Wait [pause:500ms] go.")
    assert isinstance(before, MappedText)
    assert isinstance(after, MappedText)
    assert (before.text, after.text) == ("Wait ", " go.")
    assert (after.starts[0], after.ends[-1]) == (18, 22)
    assert pause == InlinePause(0.5, 0.5, 5, 18)


def test_a_pause_in_text_that_was_changed_before_has_the_place_in_the_original() -> None:
    text = MappedText.verbatim("[pause:", 100) + MappedText.verbatim("1s]", 120)
    assert PauseFilter().feed(text) == [InlinePause(1.0, 1.0, 100, 123)]


@pytest.mark.parametrize(
    ("mark", "seconds"),
    [
        ("[pause:0s]", MIN_PAUSE_SECONDS),
        ("[pause:1ms]", MIN_PAUSE_SECONDS),
        ("[pause:10ms]", 0.01),
        ("[pause:10s]", 10.0),
        ("[pause:10.5s]", MAX_PAUSE_SECONDS),
        ("[pause:60000ms]", MAX_PAUSE_SECONDS),
        (f"[pause:{'9' * 50}s]", MAX_PAUSE_SECONDS),
    ],
)
def test_a_length_out_of_bounds_is_brought_within_and_what_was_asked_is_told(
    mark: str, seconds: float
) -> None:
    (item,) = filtered(mark)
    assert isinstance(item, InlinePause)
    assert item.seconds == seconds
    assert item.asked_seconds == asked(mark)[0]


@pytest.mark.parametrize(
    "text",
    [
        "[pause]",
        "[pause:]",
        "[pause:5]",
        "[pause:-1s]",
        "[pause:+1s]",
        "[pause:nans]",
        "[pause:1e3s]",
        "[pause:1,5s]",
        "[pause:1.s]",
        "[pause:1m]",
        "[pause:1\u017f]",
        "[pause 1s]",
        "[pause:1s",
        "[music]",
        "a < b and b > a",
        "<b>bold</b>",
        "<breakfast>",
        "<break time='1s\"/>",
        '<break time="soon"/>',
        '<break strength="none"/>',
        '<break strength="\u017ftrong"/>',
        "<break time=\"1s\" strength='weak'/>",
        f"[pause:{' ' * MAX_MARK_CHARACTERS}1s]",
    ],
)
def test_anything_else_is_text(text: str) -> None:
    assert filtered(text) == [MappedText.verbatim(text, 0)]


def test_a_mark_inside_of_half_a_mark_is_found() -> None:
    assert [item for item in filtered("[pause:[pause:1s]") if isinstance(item, InlinePause)] == [
        InlinePause(1.0, 1.0, 7, 17)
    ]


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Hello.", ""),
        ("Hello. [", "["),
        ("Hello. [pa", "[pa"),
        ("Hello. [pau]", ""),
        ("5 < 6", ""),
        ("5 <", "<"),
        ("<break time=", "<break time="),
        ("<brea ", ""),
        ("[pause:1s]", ""),
        ("[" * 10, "["),
        (
            f"[pause:{' ' * (MAX_MARK_CHARACTERS - 10)}",
            f"[pause:{' ' * (MAX_MARK_CHARACTERS - 10)}",
        ),
        (f"[pause:{' ' * (MAX_MARK_CHARACTERS - 9)}", ""),
    ],
)
def test_only_what_can_still_become_a_mark_is_held_back(text: str, held: str) -> None:
    target = PauseFilter()
    target.feed(MappedText.verbatim(text, 0))
    assert target.held == held


def test_what_is_held_back_is_text_when_nothing_follows_for_now() -> None:
    target = PauseFilter()
    assert target.feed(MappedText.verbatim("[pause:1", 0)) == []
    assert target.close() == [MappedText.verbatim("[pause:1", 0)]
    assert target.held == ""
    assert target.close() == []
    assert target.feed(MappedText.verbatim("s]", 8)) == [MappedText.verbatim("s]", 8)]


SPACES = st.sampled_from(["", " ", "\t", "  "])
NUMBERS = st.sampled_from(["1", "0.3", ".5", "300", "12.345", "0"])
UNITS = st.sampled_from(["s", "ms", "S", "mS"])
QUOTES = st.sampled_from(["", "'", '"'])
STRENGTHS = st.sampled_from(["x-weak", "weak", "medium", "strong", "x-strong", "STRONG"])
ENDS = st.sampled_from([">", "/>", " />", " >"])
MARKS = st.one_of(
    st.builds("[pause:{0}{1}{2}{3}{0}]".format, SPACES, NUMBERS, SPACES, UNITS),
    st.builds("<break {0}time{0}={1}{0}{2}{3}{1}{4}".format, SPACES, QUOTES, NUMBERS, UNITS, ENDS),
    st.builds("<break {0}strength={1}{2}{1}{3}".format, SPACES, QUOTES, STRENGTHS, ENDS),
    st.builds("<break{0}".format, ENDS),
)
PIECES = st.one_of(
    MARKS,
    MARKS.flatmap(lambda mark: st.integers(0, len(mark)).map(lambda end: mark[:end])),
    MARKS.flatmap(lambda mark: st.integers(0, len(mark)).map(lambda start: mark[start:])),
    st.sampled_from(["[", "<", "]", ">", " ", "a", "[music]", "1s]", "\u017f"]),
    st.text(max_size=5),
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@PROPERTY
@given(MARKS.flatmap(lambda mark: st.tuples(st.just(mark), st.integers(1, len(mark) - 1))))
def test_every_beginning_of_a_mark_is_held_back(case: tuple[str, int]) -> None:
    mark, cut = case
    target = PauseFilter()
    assert target.feed(MappedText.verbatim(mark[:cut], 0)) == []
    (pause,) = target.feed(MappedText.verbatim(mark[cut:], cut))
    assert isinstance(pause, InlinePause)
    assert (pause.start, pause.end) == (0, len(mark))


@PROPERTY
@given(st.data(), TEXTS)
def test_however_the_text_is_cut_the_same_comes_of_it(data: st.DataObject, text: str) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=12))
    assert filtered(text, *cuts) == filtered(text)


@PROPERTY
@given(TEXTS)
def test_text_outside_of_marks_stays_as_it_is_and_where_it_was(text: str) -> None:
    at = 0
    for item in filtered(text):
        if isinstance(item, InlinePause):
            assert item.start == at
            at = item.end
        else:
            assert item == MappedText.verbatim(text[at : at + len(item)], at)
            at += len(item)
    assert at == len(text)
