"""How markdown that arrives in pieces is given on, and what its characters stand for."""

from collections.abc import Callable

import pytest

from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.markdown.parser import strip_markdown
from intone_server.synthesis.markdown.stream import MarkdownFilter
from intone_server.synthesis.segmenter import SegmentationMode
from segments import plan
from test_markdown import BOTH, DOCUMENT, heard, stream


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_marks_may_be_cut_anywhere(size: int) -> None:
    """A document in pieces is heard like the whole, with the same ranges."""
    pieces = [DOCUMENT[at : at + size] for at in range(0, len(DOCUMENT), size)]
    assert stream(*pieces) == stream(DOCUMENT)


def test_one_cut_anywhere_changes_nothing() -> None:
    """Two pieces of a document are heard like the whole, wherever the cut is."""
    whole = stream(DOCUMENT)
    for at in range(1, len(DOCUMENT)):
        assert stream(DOCUMENT[:at], DOCUMENT[at:]) == whole


def test_emoji_may_be_cut_anywhere() -> None:
    """A digit behind an emoji may be the next emoji: no blank is given before that."""
    assert stream("a⚽", "1", "\ufe0f", "\u20e3") == stream("a⚽1\ufe0f\u20e3") == stream("a")


@BOTH
@pytest.mark.parametrize(
    ("source", "word", "marked"),
    [
        ("so **bold**!", "bold", "**bold**"),
        ("- ***all*** of", "all", "- ***all***"),
        ("a `co de` b", "co de", "`co de`"),
        ("see **[text](u 't')**.", "text", "**[text](u 't')**"),
        ("at https://www.x.org/a?b.", "x.org", "https://www.x.org/a?b"),
        ("## Title", "Title", "## Title"),
        ("> quote", "quote", "> quote"),
        ("one\n\n> - two", "two", "> - two"),
        ("![alt](u)", "alt", "![alt](u)"),
        ("~~gone~~", "gone", "~~gone~~"),
        ("a <me@x.org>", "me@x.org", "<me@x.org>"),
    ],
)
def test_ranges_cover_the_marks_around_words(
    strip: Callable[[str], MappedText], source: str, word: str, marked: str
) -> None:
    """The range of a marked word holds its marks, so that spans of segments do."""
    spoken = strip(source)
    first = spoken.text.index(word)
    last = first + len(word) - 1
    assert source[spoken.starts[first] : spoken.ends[last]] == marked


@pytest.mark.parametrize(
    ("piece", "given", "held"),
    [
        ("Hello there. ", "Hello there.", " "),
        ("Hello the", "Hello the", ""),
        ("some **bold te", "some bold t", "e"),  # a closing mark would belong to the last letter
        ("some **bold** te", "some bold te", ""),
        ("see [the doc", "see", " [the doc"),
        ("see [the doc](u) n", "see the doc n", ""),
        ("5 * x", "5 * x", ""),
        ("costs 5", "costs", " 5"),  # it may become 5️⃣
        ("a < b", "a < b", ""),
        ("a <b", "a", " <b"),
        ("R&D", "R", "&D"),
        ("R&D is", "R&D is", ""),
        ("see https://x.org/a", "see", " https://x.org/a"),
        ("a | b", "a", " | b"),
        ("# Titl", "", "# Titl"),
        ("| a | b |\n", "", "| a | b |\n"),
        ("- item", "item", ""),
        ("1", "", "1"),
        ("```py\nx = 1\n``", "", ""),
        ("one\n", "one", "\n"),
        ("one\n- two", "one\u2029two", ""),
        ("one\ntwo", "one\ntwo", ""),
    ],
)
def test_only_what_is_ambiguous_waits(piece: str, given: str, held: str) -> None:
    """What no later text can change is given at once; `held` says what waits for `close`."""
    markdown = MarkdownFilter()
    assert (markdown.feed(MappedText.verbatim(piece, 0)).text, markdown.held) == (given, held)
    markdown.close()
    assert markdown.held == ""


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (("**bold", "", " and** more"), "bold and more"),
        (("[text", "", "](u) *more*"), "[text](u) more"),
        (("# Ti", "", "tle\nText"), "Title / Text"),
        (("one\n", "", "# Title"), "one Title"),
        (("```py", "", "thon\ncode", "", "\n```\nText"), "Text"),
        (("```\ncode\n``", "", "`\nText"), "Text"),
        (("- ", "", "item\n-", "", " two"), "item / two"),
        (("| a | b |\n", "", "|---|---|\n| 1 | 2 |\n"), "| a | b | / 1, 2"),
        (("a | b", "", " | c\n"), "a | b | c"),
        (("---", "", " no rule\nText"), "no rule / Text"),
        (("  ", "", "text"), "text"),
    ],
)
def test_text_goes_on_after_a_flush(pieces: tuple[str, ...], said: str) -> None:
    """`close` gives half a mark as text; what was open before it is open after it."""
    assert heard(stream(*pieces).text) == said


def test_blocks_end_segments() -> None:
    """Headings, items, rows and quotes are segments of their own, although their marks are gone."""
    said = ["A title of four", "Some text goes here", "one item of it", "two items of it"]
    said += ["a head, of a table", "one row, of it", "quoted text follows here", "That is all"]
    source = (
        "# {}\n{}\n- {}\n- {}\n\n| {} |\n|---|---|\n| {} |\n> {}\n\n{}".format(*said)
        .replace("head, of", "head | of")
        .replace("row, of", "row | of")
    )
    segments = plan(
        strip_markdown(source).text,
        language="en",
        mode=SegmentationMode.SENTENCE,
        max_characters=400,
        first_max_characters=400,
    )
    assert [segment.text for segment in segments] == said
