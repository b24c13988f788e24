"""What kind of line starts where, in text that is still growing.

Blocks follow https://spec.commonmark.org/0.31.2/#blocks-and-inlines and, for tables,
https://github.github.com/gfm/#tables-extension- with two changes for the ear: indented text is
text, as pasted letters and poems are indented more often than code comes without its fence; and
`[name]: words` is a definition only if an address follows.
"""

import enum
import re
from dataclasses import dataclass, field

from intone_server.synthesis.markdown.marks import MAX_MARK_CHARACTERS

# Code points of the head of a table behind its first pipe, if it does not start with one. No more
# of prose with a pipe in it is held back.
_MAX_HEAD_CHARACTERS = 100
# Marks of list items before the text of a line: more is no list.
_MAX_MARKS = 32

_NEWLINE = re.compile(r"\r\n|\n|\r(?!\Z)")
_LAST_NEWLINE = re.compile(r"\r\n?|\n")
_BLANKS = re.compile(r"[ \t]*")
_QUOTES = re.compile(r">(?:[ \t]*+>)*+")
_RULE = re.compile(r"([-_*])[ \t]*+(?:\1[ \t]*+)*+")
_RULE_MARKS = 3
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*")
_ITEM = re.compile(r"(?:[-+*]|(?P<number>[0-9]{1,9})[.)])(?:[ \t]+|\Z)")
_NUMBER_SO_FAR = re.compile(r"[0-9]{1,9}[.)]?")
_BOX = re.compile(r"\[[ xX]\][ \t]+")
_BOX_SO_FAR = re.compile(r"\[(?:[ xX](?:\][ \t]*)?)?")
_HEADING = re.compile(r"#{1,6}(?:[ \t]+|\Z)")
_CLOSING = re.compile(r"(?<=[ \t])#+[ \t]*\Z")
_FENCE = re.compile(r"(?P<mark>`{3,})[^`]*|(?P<other>~{3,}).*")
_FENCE_SO_FAR = re.compile(r"`{1,2}|~{1,2}")
_COLUMN = r"[ \t]*+:?-++:?[ \t]*+"
_DELIMITERS = re.compile(rf"(?=[^|]*\|)\|?{_COLUMN}(?:\|{_COLUMN})*+\|?[ \t]*+")
_DELIMITERS_SO_FAR = re.compile(r"[|:\- \t]*")
_QUOTED = re.compile(r"[ \t>]*")
DEFINITION = re.compile(
    r"\[(?:[^\[\]\\]|\\.){1,500}+\]:[ \t]*(?:<[^<>]*>|#\S*|(?!<)[^\s:/]*[:/]\S*)"
    r"(?:[ \t]+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?[ \t]*"
)
_DEFINITION_SO_FAR = re.compile(r"\[(?:[^\[\]\\]|\\.){0,500}+(?:\\?|\]|\]:.*)")


class Kind(enum.Enum):
    """What a line is. SILENT lines say nothing: rules, underlines, definitions."""

    TEXT = enum.auto()
    HEADING = enum.auto()
    ROW = enum.auto()
    DELIMITERS = enum.auto()
    BLANK = enum.auto()
    SILENT = enum.auto()
    FENCE = enum.auto()


@dataclass(frozen=True, slots=True)
class Block:
    """What the lines before mean for the next one."""

    in_paragraph: bool = False
    in_item: bool = False  # the paragraph is that of a list item
    in_table: bool = False
    after_pipe: bool = False  # the line before may be the head of a table
    quotes: int = 0


@dataclass(slots=True)
class Line:
    """A line that ends at `end`; what it says goes from `content` to `stop`."""

    kind: Kind
    content: int
    stop: int
    end: int
    quotes: int = 0
    is_item: bool = False
    numbers: list[tuple[int, int]] = field(default_factory=list)  # of list items: they are said
    fence: str = ""

    @property
    def is_marked(self) -> bool:
        """Whether marks of quotes or lists come before the content."""
        return self.is_item or self.quotes > 0

    def may_continue(self, block: Block) -> bool:
        """Whether text here goes on with the paragraph before."""
        return block.in_paragraph and not self.is_item and self.quotes <= block.quotes


def find_newline(text: str, at: int, *, closed: bool) -> re.Match[str] | None:
    """The next newline. The last character of a text that goes on may be half of one."""
    return (_LAST_NEWLINE if closed else _NEWLINE).search(text, at)


def line_end(text: str, at: int, *, closed: bool) -> tuple[int, bool]:
    """Where the line from `at` ends or is not looked at any more, and whether that is final."""
    limit = at + MAX_MARK_CHARACTERS
    newline = find_newline(text, at, closed=closed)
    if newline:
        return min(newline.start(), limit), True
    end = len(text) - (not closed and text.endswith("\r", at))
    return min(end, limit), closed or end > limit


def heads_table(text: str, at: int, *, closed: bool, with_pipe: bool = False) -> bool | None:
    """Whether the rest of the line from `at` is the head of a table; None: more text is needed.

    `with_pipe`: the line starts with a pipe at `at`.
    """
    end, whole = line_end(text, at, closed=closed)
    if not with_pipe and end - at > _MAX_HEAD_CHARACTERS:
        return False
    newline = find_newline(text, end, closed=closed)
    if newline is None or newline.start() > end:
        return False if whole else None
    end, whole = line_end(text, newline.end(), closed=closed)
    quoted = _QUOTED.match(text, newline.end(), end)
    at = quoted.end() if quoted else newline.end()
    if whole:
        return _DELIMITERS.fullmatch(text, at, end) is not None
    return None if _DELIMITERS_SO_FAR.fullmatch(text, at, end) else False


def read_line(text: str, at: int, block: Block, *, closed: bool) -> Line | None:
    """What the line is that starts at `at`; None while more text could change it."""
    end, whole = line_end(text, at, closed=closed)
    line = Line(Kind.TEXT, at, end, end)
    if not _read_marks(text, line, block, whole=whole):
        return None
    first = _skip_blanks(text, line.content, end)
    if first == end:
        line.kind = Kind.BLANK
        return line if whole else None
    decided = _read_kind(text, first, line, block, whole=whole, closed=closed)
    if decided and line.is_marked and line.kind is Kind.TEXT:
        line.content = first
    return line if decided else None


def _skip_blanks(text: str, at: int, end: int) -> int:
    found = _BLANKS.match(text, at, end)
    return found.end() if found else at


def _read_marks(text: str, line: Line, block: Block, *, whole: bool) -> bool:
    """Step over the marks of quotes and list items. False: more text is needed."""
    end = line.end
    for _ in range(_MAX_MARKS):
        at = _skip_blanks(text, line.content, end)
        if at == end:
            return True
        if quotes := _QUOTES.match(text, at, end):
            line.quotes += quotes[0].count(">")
            line.content = quotes.end()
            continue
        if _RULE.fullmatch(text, at, end) or _NUMBER_SO_FAR.fullmatch(text, at, end):
            if not whole:
                return False
            if _is_silent(text, at, line, block):
                return True
        item = _ITEM.match(text, at, end)
        if not item:
            return True
        if item.end() == end and not whole:
            return False
        starts_late = item.end() == end or (item["number"] and int(item["number"]) != 1)
        if starts_late and line.may_continue(block) and not block.in_item:
            return True
        line.is_item = True
        line.content = item.end()
        if item["number"]:
            line.numbers.append(item.span())
        if not whole and _BOX_SO_FAR.fullmatch(text, line.content, end):
            return False
        if box := _BOX.match(text, line.content, end):
            line.content = box.end()
    return True


def _is_silent(text: str, at: int, line: Line, block: Block) -> bool:
    """Whether the whole line from `at` on is a rule, or makes a heading of the one before."""
    rule = _RULE.fullmatch(text, at, line.end)
    if rule and text.count(rule[1], at, line.end) >= _RULE_MARKS:
        return True
    under = line.may_continue(block) and line.quotes == block.quotes
    return under and _UNDERLINE.fullmatch(text, at, line.end) is not None


def _read_kind(text: str, at: int, line: Line, block: Block, *, whole: bool, closed: bool) -> bool:
    """Set the kind of a line whose content starts at `at`. False: more text is needed."""
    end, first = line.end, text[at]
    same = line.quotes == block.quotes and not line.is_item
    decided = whole
    if _is_silent(text, at, line, block):
        line.kind = Kind.SILENT
    elif heading := _HEADING.match(text, at, end):
        line.kind, line.content = Kind.HEADING, heading.end()
        closing = _CLOSING.search(text, heading.end(), end)
        line.stop = closing.start() if closing else end
    elif fence := _FENCE.fullmatch(text, at, end):
        line.kind, line.fence = Kind.FENCE, fence["mark"] or fence["other"]
    elif block.after_pipe and same and _DELIMITERS.fullmatch(text, at, end):
        line.kind = Kind.DELIMITERS
    elif block.in_table and same:
        line.kind, line.content = Kind.ROW, at
    elif first == "[" and not line.may_continue(block) and DEFINITION.fullmatch(text, at, end):
        line.kind = Kind.SILENT
    elif first == "|":
        heads = heads_table(text, at, closed=closed, with_pipe=True)
        decided = heads is not None
        if heads:
            line.kind, line.content = Kind.ROW, at
    elif not whole:
        decided = not (
            _FENCE_SO_FAR.fullmatch(text, at, end)
            or (block.after_pipe and same and _DELIMITERS_SO_FAR.fullmatch(text, at, end))
            or (not line.may_continue(block) and _DEFINITION_SO_FAR.fullmatch(text, at, end))
        )
    return decided
