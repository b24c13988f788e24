"""What holds for any text with marks, and what it costs."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.markdown.parser import strip_markdown
from intone_server.synthesis.markdown.stream import MarkdownFilter
from test_markdown import BOTH, heard, stream

PROPERTY = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# What has made filters of text change their minds, whole and in halves.
ATOMS = [
    *"aB1 \t.,:;!?()[]<>{}|*_~`#+-=>&\\/\"'\n\r\0é你。⚽↔©",
    *"\u2028\u2029\u200d\ufe0f\u20e3\u3000\u00a0",
    *(
        "\n\n",
        "\n- ",
        "\n1. ",
        "\n> ",
        "\n# ",
        "\n```\n",
        "\n~~~",
        "\n---\n",
        "\n===\n",
        "\n|-|-|\n",
    ),
    *("**", "__", "~~", "](", "](u)", "![", "[a]: /b", "[ ] ", "[x](https://y.z)", "[pause:1s]"),
    *(
        "https://a.b/c",
        "www.",
        "http",
        "<b>",
        "</p>",
        "<!--",
        "-->",
        "<break/>",
        "<a@b.c>",
        "&amp;",
    ),
    *("&#", "\\|", "| a | b |", "😀", "👍🏽", "1️⃣", "word ", "Two words. "),
]
JUNK = st.one_of(
    st.lists(st.sampled_from(ATOMS), max_size=40).map("".join),
    st.lists(st.sampled_from([*"a1 *_`[]()<|\n>-"]), max_size=60).map("".join),
    st.text(max_size=60),
)


@st.composite
def _cut(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Junk with a `close` here and there, in few pieces and in more."""
    texts = draw(st.lists(JUNK, min_size=1, max_size=3))
    whole, pieces = [], []
    for text in texts:
        whole += [text, ""]
        while text:
            length = draw(st.integers(1, 8))
            pieces.append(text[:length])
            text = text[length:]
        pieces.append("")
    return whole, pieces


@PROPERTY
@given(cut=_cut())
def test_the_stream_does_not_depend_on_pieces(cut: tuple[list[str], list[str]]) -> None:
    """Text and ranges are the same however the text is cut."""
    whole, pieces = cut
    assert stream(*pieces) == stream(*whole)


@BOTH
@PROPERTY
@given(text=JUNK)
def test_every_character_comes_from_its_range(
    strip: Callable[[str], MappedText], text: str
) -> None:
    """Ranges rise within the text without overlap, and hold what the characters were made of."""
    spoken = strip(text)
    ranges = list(zip(spoken.starts, spoken.ends, strict=True))
    assert len(ranges) == len(spoken.text)
    end = 0
    for number, (character, span) in enumerate(zip(spoken.text, ranges, strict=True)):
        if number and span == ranges[number - 1]:
            continue  # several characters made of one range
        assert end <= span[0] < span[1] <= len(text)
        end = span[1]
        source = text[span[0] : span[1]]
        made = character.isspace() or (character == "," and source == "|")
        assert character in source or made or source.startswith("&") or "\0" in source, (
            character,
            source,
        )


# Every one is well-formed wherever it stands in a line.
SPANS = r"""one two|4 a.m.|it's (well)|Ünder|你好|C#|5%|end.|why?|x_y|2*3|*it*|**bold**|***all***
_a_ __b__|**a *b* c**|*a **b***|~~no~~|**N**o|[text](https://x.org/a_b)|[*a* **b**](<u> 'T')|🎉
**[b](u)**|`a*b`|``x ` y``|![an *image*](u.png)|[![i](j)](k)|<https://x.org>|\* \[a]|👍🏽 1️⃣|it[y]
https://www.x.org/a?b=c,|&lt; &#65;|a<br>b|<b>bold</b>|[pause:1s]|<break time='1s'/>"""
SPAN = st.sampled_from(SPANS.replace("\n", "|").split("|"))
LINE = st.lists(SPAN, min_size=1, max_size=4).map(" ".join)
PARAGRAPH = st.lists(LINE, min_size=1, max_size=3).map("\n".join)
CELL = st.one_of(LINE, st.sampled_from(["", "`a \\| b`"]))
MARKS = [("- ", "  "), ("* ", "  "), ("1. ", "   "), ("12) ", "    "), ("> ", "> ")]
PREFIXES = st.sampled_from(MARKS)


def _prefixed(marks: tuple[str, str], blocks: list[str]) -> str:
    lines = "\n\n".join(blocks).split("\n")
    return "\n".join((marks[bool(number)] + line).rstrip() for number, line in enumerate(lines))


@st.composite
def _table(draw: st.DrawFn) -> str:
    columns = draw(st.integers(1, 3))
    row = st.lists(CELL, min_size=columns, max_size=columns).map(" | ".join).map("| {} |".format)
    head = draw(
        st.lists(LINE, min_size=columns, max_size=columns).map(" | ".join).map("| {} |".format)
    )
    rows = draw(st.lists(row, max_size=3))
    return "\n".join([head, "|" + " --- |" * columns, *rows])


BLOCK = st.recursive(
    st.one_of(
        PARAGRAPH,
        st.builds("{} {}".format, st.sampled_from(["#", "##", "######"]), LINE),
        st.builds("{}\n{}".format, LINE, st.sampled_from(["===", "---"])),
        st.sampled_from(["---", "* * *", "```py\nx = [1](2)\n\n# no\n```", "~~~\n```\n~~~"]),
        _table(),
    ),
    lambda inner: st.builds(_prefixed, PREFIXES, st.lists(inner, min_size=1, max_size=3)),
    max_leaves=4,
)
DOCUMENTS = st.lists(BLOCK, min_size=1, max_size=4).map("\n\n".join)


@PROPERTY
@given(document=DOCUMENTS)
def test_the_stream_agrees_with_the_parser(document: str) -> None:
    """Of well-formed documents both say the same words, with the same ends of blocks."""
    assert heard(stream(document).text) == heard(strip_markdown(document).text)


def _calls(work: Callable[[], object]) -> int:
    """Functions called by `work`, those in C included."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


HARD = [
    *("*", "a*", "**a *b ", "*_", "[", "[a", "[a](", "![", "]", "`", "`a``", "[`", "<a ", "<!-- "),
    *("> ", "- ", "1. ", "# ", "|", "a|b\n", "|a|\n", "~~a", "\\", "😀a", "😀 ", " ", "\n", "a\n"),
    *("https://a.b/", "w", "(", '<a b="', "[a]: /u\n", "```\n", "- > ", "*[a](b)* `c` ", "[a][b] "),
    *("&", "\r", "]]]] [[[[ "),
]


@pytest.mark.parametrize("hard", HARD)
def test_work_grows_with_the_text_alone(hard: str) -> None:
    """Twice the text is at most about twice the work, for the parser and for pieces.

    In numbers: some 90 calls for a character, mostly the parser's own, with the hardest of marks.
    """
    short, long = hard * (500 // len(hard)), hard * (1000 // len(hard))
    strip_markdown(short)  # makes the parser
    work = _calls(lambda: strip_markdown(long))
    assert work < 2.5 * _calls(lambda: strip_markdown(short)) + 500
    assert work < 150 * len(long)

    def in_pieces(text: str) -> Callable[[], MappedText]:
        return lambda: stream(*(text[at : at + 100] for at in range(0, len(text), 100)))

    assert _calls(in_pieces(long)) < 2.5 * _calls(in_pieces(short)) + 500


@pytest.mark.parametrize("hard", HARD)
def test_what_waits_is_bounded(hard: str) -> None:
    """However long a mark is not closed, no more than some 2,000 characters are held back."""
    markdown = MarkdownFilter()
    for at in range(0, 10_000, 500):
        piece = (hard * 500)[:500]
        markdown.feed(MappedText.verbatim(piece, at))
        assert len(markdown.held) < 2600


@BOTH
@pytest.mark.parametrize(
    "marks", [("![", "](u)"), ("[", "](u)"), ("> ", ""), ("- ", ""), ("**", "**")]
)
def test_deep_nesting_is_no_error(
    strip: Callable[[str], MappedText], marks: tuple[str, str]
) -> None:
    """However deep marks are nested, there is an answer."""
    strip(marks[0] * 1500 + "word" + marks[1] * 1500)
