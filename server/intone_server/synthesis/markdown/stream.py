"""Markdown as people want it heard, while it arrives.

Said are: the text of headings, emphasis, links and quotes; the alternative text of images; inline
code; list items, with the numbers of those that have one, because answers refer to them; the cells
of tables with commas between them; and of an address its host. Not said are marks, code blocks,
rules, link targets, HTML tags and emoji. What makes a pause (`[pause:300ms]`, `<break time="1s"/>`)
stays for a later stage.
"""

import enum
import re
from dataclasses import replace

from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.markdown.cells import CELL, unescape_pipes
from intone_server.synthesis.markdown.emoji import EmojiFilter
from intone_server.synthesis.markdown.inline import InlineRule
from intone_server.synthesis.markdown.lines import (
    Block,
    Kind,
    Line,
    find_newline,
    heads_table,
    line_end,
    read_line,
)
from intone_server.synthesis.markdown.writer import BREAK, Writer

_PIPE = re.compile(r"[ \t]{0,8}(?<!\\)\|")
_BEFORE_PIPE = re.compile(r"(?:[ \t]{1,8}|\\)\Z")


class _Rest(enum.Enum):
    """What becomes of a line whose start is known, and of its end."""

    PARAGRAPH = enum.auto()
    LINE = enum.auto()  # a block of its own
    SILENT = enum.auto()
    CODE = enum.auto()


class MarkdownFilter:
    """Cleans the text of one stream.

    What comes out depends on the text and on where `close` was called, not on the pieces that the
    text came in. Where a block ends whose mark is gone, the newline becomes `BREAK`.

    It cannot know what comes later as `strip_markdown` does: `[text][name]` is a link whether or
    not the name is defined, `[name]` alone never is; and the columns of a table are not counted.
    """

    def __init__(self) -> None:
        self._out = Writer()
        self._inline = InlineRule(self._out)
        self._emoji = EmojiFilter()
        self._text = MappedText()  # not yet read
        self._block = Block()
        self._rest: _Rest | None = None  # None: a line starts
        self._newline = MappedText()  # of a paragraph that may go on
        self._has_pipe = False  # the line has a pipe, and is no head of a table as far as is known
        self._fence = ""
        self._fence_quotes = 0

    @property
    def held(self) -> str:
        """What was taken and may still be given, without what is given already or left out."""
        unread = "" if self._fence else self._text.text
        return self._emoji.held + self._out.text + self._inline.held + self._newline.text + unread

    def feed(self, text: MappedText) -> MappedText:
        """Take text, which may be cut anywhere; returns what can be given already."""
        self._text += text
        self._advance(closed=False)
        return self._emoji.feed(self._out.take(all_but=int(self._inline.is_open)))

    def close(self) -> MappedText:
        """What was held back: nothing follows for now. Text may go on later where it stopped."""
        self._advance(closed=True)
        self._inline.feed(self._newline)
        self._newline = MappedText()
        self._inline.close()
        return self._emoji.feed(self._out.take(all_but=0)) + self._emoji.close()

    def _advance(self, *, closed: bool) -> None:
        at: int | None = 0
        done = 0
        while at is not None and at < len(self._text):
            done = at
            if self._rest is not None:
                at = self._go_on(at, closed)
            elif self._fence:
                at = self._start_code(at)
            else:
                at = self._start_line(at, closed)
        self._text = self._text[done if at is None else at :]

    def _start_line(self, at: int, closed: bool) -> int | None:
        line = read_line(self._text.text, at, self._block, closed=closed)
        if line is None:
            return None
        goes_on = line.kind is Kind.TEXT and line.may_continue(self._block)
        if goes_on:
            self._inline.feed(self._newline)
        else:
            self._inline.end()
            if line.kind is Kind.BLANK:
                self._out.copy(self._newline)
            elif self._newline.text:
                self._out.say(BREAK, self._newline)
            self._leave_out_marks(at, line)
        self._newline = MappedText()
        newline = find_newline(self._text.text, line.end, closed=closed)
        return self._start(line, goes_on, newline is not None and newline.start() == line.end)

    def _leave_out_marks(self, at: int, line: Line) -> None:
        for start, end in line.numbers:
            self._out.open(self._text[at:start])
            self._out.copy(self._text[start:end])
            at = end
        if line.kind is Kind.BLANK and not line.is_marked:
            self._out.copy(self._text[at : line.end])
        else:
            self._out.open(self._text[at : line.content])

    def _start(self, line: Line, goes_on: bool, is_whole: bool) -> int:
        """Go on behind the start of `line`. Unless it `is_whole`, more of it may follow."""
        quotes, block = line.quotes, self._block
        self._rest = _Rest.SILENT if is_whole else _Rest.LINE
        self._block = Block(quotes=quotes)
        match line.kind:
            case Kind.TEXT:
                self._rest = _Rest.PARAGRAPH
                is_item = block.in_item if goes_on else line.is_item
                quotes = block.quotes if goes_on else quotes
                self._block = Block(in_paragraph=True, in_item=is_item, quotes=quotes)
                self._has_pipe = False
                return line.content
            case Kind.HEADING:
                self._rest = _Rest.LINE
                self._inline.feed(self._text[line.content : line.stop])
            case Kind.ROW:
                self._rest = _Rest.LINE
                self._say_cells(line.content, line.end, is_first=True)
                self._block = Block(in_table=True, after_pipe=not block.in_table, quotes=quotes)
            case Kind.DELIMITERS:
                self._block = Block(in_table=True, quotes=quotes)
            case Kind.FENCE:
                self._rest = _Rest.CODE
                self._fence, self._fence_quotes = line.fence, quotes
            case Kind.BLANK if not is_whole:
                self._rest = None
        return line.end

    def _go_on(self, at: int, closed: bool) -> int | None:
        text = self._text.text
        newline = find_newline(text, at, closed=closed)
        stop = newline.start() if newline else len(text)
        if not newline and not closed and text.endswith("\r"):
            stop -= 1
        if self._rest is _Rest.PARAGRAPH and not self._has_pipe:
            if pipe := _PIPE.search(text, at, stop):
                return self._at_pipe(at, pipe.start(), closed)
            if not newline and not closed and (last := _BEFORE_PIPE.search(text, at, stop)):
                stop = last.start()
        if self._rest in (_Rest.PARAGRAPH, _Rest.LINE):
            self._inline.feed(self._text[at:stop])
        if newline is None:
            return stop if stop > at else None
        self._end_line(self._text[stop : newline.end()])
        return newline.end()

    def _at_pipe(self, at: int, pipe: int, closed: bool) -> int | None:
        """Go on with a paragraph up to its first pipe, which may make it the head of a table."""
        self._inline.feed(self._text[at:pipe])
        heads = heads_table(self._text.text, pipe, closed=closed)
        if heads is None:
            return pipe if pipe > at else None
        if not heads:
            self._has_pipe = True
            return pipe
        self._inline.end()
        end, _ = line_end(self._text.text, pipe, closed=closed)
        self._say_cells(pipe, end, is_first=False)
        self._rest = _Rest.LINE
        self._block = Block(in_table=True, after_pipe=True, quotes=self._block.quotes)
        return end

    def _end_line(self, newline: MappedText) -> None:
        match self._rest:
            case _Rest.PARAGRAPH:
                self._newline = newline
                self._block = replace(self._block, after_pipe=self._has_pipe)
            case _Rest.LINE:
                self._inline.end()
                self._out.say(BREAK, newline)
            case _Rest.SILENT:
                self._out.copy(newline)
        self._rest = None

    def _say_cells(self, at: int, end: int, *, is_first: bool) -> None:
        """Say a row of a table. Without `is_first` its first cell was said."""
        text = self._text.text
        for found in CELL.finditer(text, at, end):
            cell = found[0].strip(" \t")
            if not cell:
                continue
            start = text.index(cell, found.start())
            if is_first:
                self._out.open(self._text[at:start])
            else:
                self._out.say(", ", self._text[found.start() - 1 : found.start()])
            self._inline.feed(unescape_pipes(self._text[start : start + len(cell)]))
            self._inline.end()
            is_first = False

    def _start_code(self, at: int) -> int | None:
        """Start a line in a code block. Nothing of it is said: `close` needs not hurry."""
        text, quotes = self._text.text, self._fence_quotes
        end, whole = line_end(text, at, closed=False)
        marks = re.compile(rf"(?:[ \t]*+>){{0,{quotes}}}[ \t]*").match(text, at, end)
        content = marks.end() if marks else at
        if content == end and not whole:
            return None
        if text.count(">", at, content) < quotes:  # the quote ends, and the code with it
            self._fence = ""
            return at
        fence = re.escape(self._fence[0])
        if whole and re.compile(rf"{self._fence}{fence}*[ \t]*").fullmatch(text, content, end):
            self._fence = ""
            self._rest = _Rest.SILENT
            return end
        if not whole and re.compile(rf"{fence}*[ \t]*").fullmatch(text, content, end):
            return None
        self._rest = _Rest.CODE
        return content
