"""Markdown as people want it heard, of a whole text. See `markdown` for what is said of what."""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.common.utils import MD_TRIM_CHARS
from markdown_it.token import Token

from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.markdown.cells import CELL, unescape_pipes
from intone_server.synthesis.markdown.emoji import EmojiFilter
from intone_server.synthesis.markdown.spans import say_spans
from intone_server.synthesis.markdown.stream import MarkdownFilter
from intone_server.synthesis.markdown.tokens import parser
from intone_server.synthesis.markdown.writer import BREAK, Writer

# Brackets in brackets. The parser looks into each of them from each outside of it, and takes four
# times as long as for other marks; the streaming rule does not.
_MAX_DEPTH = 32

_BRACKET = re.compile(r"[\[\]]")
_NEWLINE = re.compile(r"\r\n?")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_NUMBER = re.compile(r"[0-9]{1,9}[.)][ \t]?")


def strip_markdown(text: str) -> MappedText:
    """What of `text` is said, with where each character of it came from. Any text will do.

    Newlines come out as `\\n`.
    """
    whole = MappedText.verbatim(text, 0)
    if _bracket_depth(text) > _MAX_DEPTH:
        stream = MarkdownFilter()
        return stream.feed(whole) + stream.close()
    lines = _with_plain_newlines(whole)
    emoji = EmojiFilter()
    spoken = emoji.feed(_Speech(lines.text, _parser().parse(lines.text)).spoken) + emoji.close()
    return _trace(spoken, lines)


def _bracket_depth(text: str) -> int:
    """How many brackets are open at most."""
    depth = deepest = 0
    for found in _BRACKET.finditer(text):
        depth = max(depth + (1 if found[0] == "[" else -1), 0)
        deepest = max(deepest, depth)
    return deepest


@cache
def _parser() -> MarkdownIt:
    return parser()


def _with_plain_newlines(text: MappedText) -> MappedText:
    """Lines as the parser counts them."""
    out, at = Writer(), 0
    for found in _NEWLINE.finditer(text.text):
        out.copy(text[at : found.start()])
        out.say("\n", text[found.start() : found.end()])
        at = found.end()
    out.copy(text[at:])
    return out.take(all_but=0)


def _trace(spoken: MappedText, source: MappedText) -> MappedText:
    """Where `spoken`, which refers to the characters of `source`, came from in the end."""
    starts = [source.starts[start] for start in spoken.starts]
    ends = [source.ends[end - 1] for end in spoken.ends]
    return MappedText(spoken.text, starts, ends)


class _Speech:
    """Collects in `spoken` what `tokens` say of `text`, in order."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._source = MappedText.verbatim(text, 0)
        self._text = text.replace("\0", "\ufffd")  # as it is in tokens
        ends = [found.start() for found in re.finditer("\n", text)]
        self._lines = list(zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True))
        self._out = Writer()
        self._at = 0  # what comes before is done
        self._heading = ""  # the mark of the one that is open
        self._cells = -1  # said in the row that is open; -1 outside of rows
        for token in tokens:
            self._take(token)
        rest = self._source[self._at :]
        if rest.text.isspace():
            self._out.copy(rest)
        self.spoken = self._out.take(all_but=0)

    def _take(self, token: Token) -> None:
        match token.type:
            case "heading_open":
                self._heading = token.markup
            case "heading_close":
                self._heading = ""
            case "tr_open":
                self._cells = 0
            case "tr_close":
                self._cells = -1
            case "list_item_open" if token.info:
                self._say_number(token)
            case "inline" if token.content:
                self._say_inline(token)

    def _say_number(self, item: Token) -> None:
        assert item.map is not None
        line = self._lines[item.map[0]][0]
        if number := _NUMBER.search(self._text, max(line, self._at)):
            self._go_to(number.start())
            self._out.copy(self._source[number.start() : number.end()])
            self._at = number.end()

    def _say_inline(self, token: Token) -> None:
        assert token.map is not None
        assert token.children is not None
        if self._cells >= 0:
            first, end, content = self._find_cell(token.content, token.map[0])
        elif self._heading.startswith("#"):
            first, end, content = self._find_heading(token.content, token.map[0])
        else:
            first, end, content = self._find_lines(token.content, token.map[0])
        self._go_to(first)
        say_spans(self._out, token.children, content)
        self._at = end
        self._cells += self._cells >= 0

    def _go_to(self, first: int) -> None:
        """Say what is between the content before and that which starts at `first`."""
        between = self._source[self._at : first]
        newline = between.text.find("\n")
        if self._cells > 0:
            pipe = between.text.rindex("|")
            self._out.say(", ", between[pipe : pipe + 1])
        elif between.text.isspace() and (not self._at or _BLANK_LINE.search(between.text)):
            self._out.copy(between)
        else:
            if self._at and newline >= 0:
                self._out.say(BREAK, between[newline : newline + 1])
            self._out.open(between[between.text.rfind("\n") + 1 :])

    def _find_lines(self, content: str, number: int) -> tuple[int, int, MappedText]:
        """A paragraph. Its lines end lines of the source: marks only come before them."""
        out, first, end = Writer(), -1, 0
        for line in content.split("\n"):
            shown = line.lstrip(" \t")
            visible = shown.rstrip(MD_TRIM_CHARS)
            while not self._line(number).endswith(visible):
                number += 1
            start = self._lines[number][0] + len(self._line(number)) - len(visible)
            if first < 0:
                first = start
            else:
                out.copy(self._source[end : end + 1])
                indent = " " * (len(line) - len(shown))
                out.say(indent, self._source[start - 1 : start])
            out.copy(self._source[start : start + len(shown)])
            end = self._lines[number][1]
            number += 1
        return first, start + len(shown), out.take(all_but=0)

    def _line(self, number: int) -> str:
        start, end = self._lines[number]
        return self._text[start:end].rstrip(MD_TRIM_CHARS)

    def _find_heading(self, content: str, number: int) -> tuple[int, int, MappedText]:
        first = self._text.index(self._heading, self._lines[number][0]) + len(self._heading)
        first = self._text.index(content, first)
        end = first + len(content)
        return first, end, self._source[first:end]

    def _find_cell(self, content: str, number: int) -> tuple[int, int, MappedText]:
        start, stop = self._lines[number]
        cells = CELL.finditer(self._text, max(start, self._at), stop)
        plain = (unescape_pipes(MappedText.verbatim(it[0], it.start())) for it in cells)
        cell = next(it for it in plain if it.text.rstrip(MD_TRIM_CHARS).endswith(content))
        last = len(cell.text.rstrip(MD_TRIM_CHARS))
        found = cell[last - len(content) : last]
        return found.starts[0], found.ends[-1], found
