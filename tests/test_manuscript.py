"""Text options on the way to segments: what is spoken, and the spans of what the client sent."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intone_server.synthesis.inline_pauses import InlinePause
from intone_server.synthesis.manuscript import Manuscript, TextOptions, WholeText
from intone_server.synthesis.replacements import Replacements, Rule
from intone_server.synthesis.segmenter import CommitReason, Segment, SegmentationMode, Segmenter

ALL = TextOptions(
    strip_markdown=True,
    inline_pauses=True,
    normalize=True,
    replacements=Replacements([Rule("LLM", "language model", match_case=True)]),
)
MARKDOWN = TextOptions(strip_markdown=True)
PAUSES = TextOptions(inline_pauses=True)
ANSWER = (
    "# The short answer\n\nAn **LLM is** a [model](https://example.org/x) of text. "
    "It has 3 parts:\n\n- the _first one_ is big,\n- the second one is small.\n\n"
    "```python\nprint(1)\n```\n\nWait [pause:300ms] and then go on. 🙂 That is all of it.\n"
)


def segmenter() -> Segmenter:
    return Segmenter(
        language="en",
        mode=SegmentationMode.SENTENCE,
        max_characters=200,
        first_max_characters=200,
    )


def read_whole(text: str, options: TextOptions) -> list[Segment | InlinePause]:
    """What comes of a whole text."""
    manuscript = Manuscript(segmenter(), options, "en", on_pause=lambda pause: pause)
    manuscript.push_whole(WholeText.of(text, options))
    manuscript.commit(CommitReason.END_OF_INPUT)
    return list(iter(manuscript.next, None))  # type: ignore[arg-type]


def read(pieces: Iterable[str], options: TextOptions) -> list[Segment | InlinePause]:
    """What comes of a text that comes in pieces and then ends."""
    manuscript = Manuscript(segmenter(), options, "en", on_pause=lambda pause: pause)
    items: list[object] = []
    for piece in pieces:
        manuscript.push(piece)
        items += iter(manuscript.next, None)
    manuscript.commit(CommitReason.END_OF_INPUT)
    items += iter(manuscript.next, None)
    assert not manuscript.has_text
    return items  # type: ignore[return-value]


def spoken(items: list[Segment | InlinePause]) -> list[str | float]:
    return [i.spoken_text if isinstance(i, Segment) else i.seconds for i in items]


def test_an_answer_is_spoken_as_people_want_it_heard() -> None:
    assert spoken(read([ANSWER], ALL)) == [
        "The short answer",
        "An language model is a model of text.",
        "It has three parts:",
        "the first one is big,",
        "the second one is small.",
        "Wait",
        0.3,
        "and then go on.",
        "That is all of it.",
    ]


def test_each_span_holds_the_text_that_the_client_sent_there() -> None:
    items = read([ANSWER], ALL)
    segments = [item for item in items if isinstance(item, Segment)]
    sent = [ANSWER[segment.start : segment.end] for segment in segments]
    assert sent[1] == "An **LLM is** a [model](https://example.org/x) of text."
    assert sent[5] == "Wait"
    (pause,) = (item for item in items if isinstance(item, InlinePause))
    assert ANSWER[pause.start : pause.end] == "[pause:300ms]"


@pytest.mark.parametrize("options", [TextOptions(), MARKDOWN, PAUSES, ALL])
def test_pieces_make_no_difference(options: TextOptions) -> None:
    whole = read([ANSWER], options)
    for size in (1, 2, 3, 7):
        pieces = [ANSWER[at : at + size] for at in range(0, len(ANSWER), size)]
        assert read(pieces, options) == whole


def test_the_parser_of_the_whole_text_says_the_same() -> None:
    found = read_whole(ANSWER, ALL)
    assert spoken(found) == spoken(read([ANSWER], ALL))
    assert [(s.start, s.end) for s in found] == [(s.start, s.end) for s in read([ANSWER], ALL)]


@given(st.text(st.sampled_from("ab .,!\n*_`#[]()<>-|0123🙂&;pause:ms/"), max_size=80), st.data())
def test_spans_are_in_order_and_inside_the_text(text: str, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=4).map(sorted))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for items in (read(pieces, ALL), read_whole(text, ALL)):
        position = 0
        for item in items:
            assert position <= item.start <= item.end <= len(text)
            position = item.end


def test_half_a_mark_that_nobody_finishes_is_text() -> None:
    manuscript = Manuscript(segmenter(), ALL, "en", on_pause=lambda pause: pause)
    manuscript.push("Say it now [pause:3")
    assert manuscript.has_text
    manuscript.commit_at_boundary()
    first = manuscript.next()
    assert isinstance(first, Segment)
    manuscript.commit(CommitReason.FLUSH)
    rest = manuscript.next()
    assert "pause" in first.text + (rest.text if isinstance(rest, Segment) else "")


def test_text_that_is_all_marks_leaves_nothing_waiting() -> None:
    manuscript = Manuscript(segmenter(), MARKDOWN, "en", on_pause=lambda pause: pause)
    manuscript.push("```\n" + "x = 1\n" * 1000 + "```\n\n")
    manuscript.commit(CommitReason.FLUSH, "mark")
    assert manuscript.next() == "mark"
    assert not manuscript.has_text
    assert manuscript.buffered_characters < 10


def test_after_a_drop_positions_go_on() -> None:
    manuscript = Manuscript(segmenter(), MARKDOWN, "en", on_pause=lambda pause: pause)
    manuscript.push("**One two three.** Four")
    manuscript.drop()
    manuscript.push("*Five six seven.*")
    manuscript.commit(CommitReason.FLUSH)
    segment = manuscript.next()
    assert isinstance(segment, Segment)
    assert (segment.start, segment.spoken_text) == (23, "Five six seven.")


def test_a_word_that_is_replaced_by_nothing_may_leave_nothing_to_say() -> None:
    options = TextOptions(replacements=Replacements([Rule("um", "", match_case=False)]))
    (segment,) = read(["Um."], options)
    assert isinstance(segment, Segment)
    assert (segment.text, segment.speakable) == ("Um.", False)
