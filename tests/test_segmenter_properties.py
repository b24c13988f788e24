"""What holds for segments of any text."""


# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intone_server.synthesis.segmenter import (
    CommitReason,
    Segment,
    SegmentationMode,
    Segmenter,
)
from segments import plan

LANGUAGES = ["en", "fr", "de", "it", "es", "pt", "ja", "zh", "xx"]

# Pieces that have made segmenters change their minds.
WORDS = """Dr. e.g. etc. U.S. Hello there. how are you OK. No. M. am 3. Mai The and 3.14 1,234.56
https://a.org/b?c=d.e a.b@example.org 9:30 a.m. ... ?! J. z. B. 😀 👩‍👩‍👧 ❤️ e\u0301 你好。 ？”"""
ATOMS = st.sampled_from(
    [
        *"aBcI .,;:!?…\n\"'“”«»()*_-—#1905\u200b\u00a0\ufeff\x00\t\x85\u2028\u2029\u3000",
        *"。、！「」你é",
        *WORDS.split(),
        *(f" {word} " for word in WORDS.split()),
        *("  ", "\n\n", "\n- ", "\n1. ", "Hello there. ", ". He"),
    ]
)
TEXTS = st.one_of(
    st.lists(ATOMS, max_size=40).map("".join),
    st.lists(st.sampled_from([". ", "a", "B", " ", "\n", '"', "。", ","]), max_size=60).map(
        "".join
    ),
    st.text(max_size=80),
)
SETTINGS = st.builds(
    dict,
    language=st.sampled_from(LANGUAGES),
    mode=st.sampled_from(SegmentationMode),
    max_characters=st.integers(20, 90),
    first_max_characters=st.integers(10, 20),
)
PROPERTY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def drain(segmenter: Segmenter) -> list[object]:
    return [*iter(segmenter.next, None)]


@PROPERTY
@given(TEXTS, SETTINGS, st.data())
def test_the_same_text_gives_the_same_segments_however_it_is_cut_into_pieces(
    text: str, config: dict, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    calls = data.draw(st.lists(st.integers(0, 3), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    segmenter = Segmenter(**config)
    found: list[object] = []
    for start, end, count in zip([0, *cuts], [*cuts, len(text)], calls, strict=True):
        segmenter.push(text[start:end])
        found += [item for _ in range(count) if (item := segmenter.next()) is not None]
    segmenter.commit(CommitReason.END_OF_INPUT)
    assert [*found, *drain(segmenter)] == plan(text, **config)


@PROPERTY
@given(TEXTS, SETTINGS)
def test_text_that_comes_one_character_at_a_time_gives_the_same_segments(
    text: str, config: dict
) -> None:
    segmenter = Segmenter(**config)
    found: list[object] = []
    for character in text:
        segmenter.push(character)
        found += drain(segmenter)
    segmenter.commit(CommitReason.END_OF_INPUT)
    assert found + drain(segmenter) == plan(text, **config)


@PROPERTY
@given(TEXTS, SETTINGS)
def test_spans_are_exact_in_order_and_hold_everything_but_white_space(
    text: str, config: dict
) -> None:
    at = 0
    for segment in plan(text, **config):
        assert not text[at : segment.start].strip()
        assert segment.start < segment.end
        assert segment.text == text[segment.start : segment.end] == segment.text.strip()
        at = segment.end
    assert not text[at:].strip()


@PROPERTY
@given(TEXTS, SETTINGS)
def test_no_segment_is_longer_than_its_limit(text: str, config: dict) -> None:
    limit = config["first_max_characters"]
    for segment in plan(text, **config):
        assert len(segment.text) <= limit
        limit = config["max_characters"]


@PROPERTY
@given(TEXTS, SETTINGS)
def test_spoken_text_holds_no_control_characters_and_single_spaces(text: str, config: dict) -> None:
    for segment in plan(text, **config):
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]|\s\s|^\s|\s$", segment.spoken_text)
        assert segment.speakable or not re.search(r"[^\W_]", segment.text)


@PROPERTY
@given(TEXTS, SETTINGS)
def test_with_room_for_all_no_segment_is_short_but_what_a_commit_ends(
    text: str, config: dict
) -> None:
    room = {"max_characters": 10_000, "first_max_characters": 10_000}
    for segment in plan(text, **config | room)[:-1]:
        words = [word for word in segment.text.split() if re.search(r"[^\W_]", word)]
        characters = re.findall("[\u3040-\u30ff\u4e00-\u9fff]", segment.text)
        assert len(words) >= 3 or len(characters) >= 4 or not segment.speakable


@PROPERTY
@given(TEXTS, SETTINGS)
def test_what_is_spoken_is_what_was_sent_but_for_marks(text: str, config: dict) -> None:
    for segment in plan(text, **config):
        sent, spoken = (
            "".join(re.findall(r"[^\W_]", part)) for part in (segment.text, segment.spoken_text)
        )
        assert sent == spoken


@PROPERTY
@given(TEXTS, SETTINGS)
def test_a_paragraph_begins_behind_a_blank_line(text: str, config: dict) -> None:
    found = plan(text, **config)
    assert not any(segment.paragraph for segment in found[:1])
    for before, segment in pairwise(found):
        between = text[before.end : segment.start]
        assert segment.paragraph == bool(re.search(r"\n\s*\n|\u2029", between))


@PROPERTY
@given(st.lists(st.one_of(TEXTS, st.sampled_from(CommitReason)), max_size=8), SETTINGS)
def test_marks_come_once_in_order_and_after_all_text_before_them(
    inputs: list[str | CommitReason], config: dict
) -> None:
    early, late = Segmenter(**config), Segmenter(**config)
    found: list[object] = []
    for number, item in enumerate(inputs):
        for segmenter in (early, late):
            if isinstance(item, str):
                segmenter.push(item)
            else:
                segmenter.commit(item, (number, segmenter.position))
        found += drain(early)
    for segmenter in (early, late):
        segmenter.commit(CommitReason.END_OF_INPUT)
    found += drain(early)
    assert found == drain(late)
    marks = [item for item in found if not isinstance(item, Segment)]
    assert [number for number, _ in marks] == [
        number for number, item in enumerate(inputs) if not isinstance(item, str)
    ]
    for at, item in enumerate(found):
        if not isinstance(item, Segment):
            before = [other for other in found[:at] if isinstance(other, Segment)]
            after = [other for other in found[at:] if isinstance(other, Segment)]
            assert all(segment.end <= item[1] for segment in before)
            assert all(segment.start >= item[1] for segment in after)


@PROPERTY
@given(st.lists(st.one_of(TEXTS, st.none()), max_size=6), SETTINGS, st.booleans())
def test_a_text_pause_loses_nothing(inputs: list[str | None], config: dict, drained: bool) -> None:
    segmenter = Segmenter(**config)
    found: list[object] = []
    for item in inputs:
        if item is not None:
            segmenter.push(item)
            continue
        had_text = segmenter.has_text
        committed = segmenter.commit_at_boundary()
        assert had_text or not committed
        if drained:
            found += drain(segmenter)
    segmenter.commit(CommitReason.END_OF_INPUT)
    found += drain(segmenter)
    text, at = "".join(item or "" for item in inputs), 0
    for segment in found:
        assert isinstance(segment, Segment)
        assert not text[at : segment.start].strip()
        assert segment.text == text[segment.start : segment.end]
        at = segment.end
    assert not text[at:].strip()
    assert not segmenter.has_text


WHOLE = st.sampled_from(
    ["1,234.56", "37,0", "3.14159", "https://example.org/a,b", "a.b@example.org", "v2.1.0", "9:30"]
)
PROSE = st.lists(
    st.one_of(
        WHOLE, st.sampled_from(["one", "and", "two,", "thing", "end.", "(so)", "Go!", "très"])
    ),
    min_size=1,
    max_size=60,
)


@PROPERTY
@given(PROSE, st.integers(25, 60), st.sampled_from(SegmentationMode))
def test_no_cut_is_inside_a_number_url_or_address(
    words: list[str], most: int, mode: SegmentationMode
) -> None:
    found = plan(
        " ".join(words), language="en", mode=mode, max_characters=most, first_max_characters=most
    )
    assert [word for segment in found for word in segment.text.split()] == words


@PROPERTY
@given(st.lists(st.one_of(WHOLE, st.sampled_from(["字", "x—", "漢字", "、"])), max_size=40))
def test_no_cut_is_inside_a_number_among_text_without_spaces(words: list[str]) -> None:
    text = "".join(words)
    inside: set[int] = set()
    for number in re.finditer(r"\d[\d.,:]*\d", text):
        if number.end() - number.start() < 25:
            inside |= set(range(number.start() + 1, number.end()))
    found = plan(
        text,
        language="zh",
        mode=SegmentationMode.SENTENCE,
        max_characters=25,
        first_max_characters=25,
    )
    for segment in found:
        assert segment.end not in inside


@PROPERTY
@given(st.lists(ATOMS, max_size=12).map("".join), st.sampled_from([*LANGUAGES, "pl", "ru", "ar"]))
def test_no_text_makes_the_library_fail(text: str, language: str) -> None:
    plan(
        text,
        language=language,
        mode=SegmentationMode.SENTENCE,
        max_characters=200,
        first_max_characters=200,
    )
