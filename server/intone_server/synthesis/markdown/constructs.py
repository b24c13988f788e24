"""Where code, links, tags and the like end in text that is still growing.

The answer does not depend on how much text is there: it is a position, or NEVER, or None while more
text could make it either. Text ends at `stop`; if `closed`, nothing follows there.
"""

import re

from intone_server.synthesis.markdown.marks import MAX_MARK_CHARACTERS

NEVER = -1
# Code points of the longest text of a link, which is held back until the mark behind it is known.
MAX_LABEL_CHARACTERS = 500
# Brackets in the brackets of a link: an image is one.
_MAX_NESTING = 3

# Every part of a pattern also matches if the text ends in it. Its only group is set if it is whole.
_TITLE = (
    r'(?:"(?:[^"\\]|\\(?:.|\Z))*+(?:"|\Z)'
    r"|'(?:[^'\\]|\\(?:.|\Z))*+(?:'|\Z)"
    r"|\((?:[^()\\]|\\(?:.|\Z))*+(?:\)|\Z))"
)
_PATH = r"(?:[^\s()\\]|\\(?:.|\Z)|\((?:[^\s()\\]|\\(?:.|\Z))*+(?:\)|\Z))*+"
TARGET = re.compile(
    rf"\(\s*+(?:<(?:[^<>\n\\]|\\(?:.|\Z))*+(?:>|\Z)|(?!<){_PATH})(?:\s++{_TITLE})?+\s*+(?:(\))|\Z)",
    re.DOTALL,
)
REFERENCE = re.compile(
    rf"\[(?:[^\[\]\\]|\\(?:.|\Z)){{0,{MAX_LABEL_CHARACTERS}}}+(?:(\])|\Z)", re.DOTALL
)
# A later stage makes silence of it: it comes through character for character.
PAUSE = re.compile(
    r"\[(?:\Z|p(?:\Z|a(?:\Z|u(?:\Z|s(?:\Z|e(?:\Z|:[^\[\]\n]{0,32}(?:(\])|\Z)))))))", re.IGNORECASE
)
_ATTRIBUTE = (
    r"\s++[A-Za-z_:][A-Za-z0-9:._-]*+"
    r"(?:\s*+=\s*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^\x00-\x20\"'=<>`]++|\Z))?+"
)
TAG = re.compile(
    rf"<(?:[A-Za-z][A-Za-z0-9-]*+(?:{_ATTRIBUTE})*+\s*+/?|/(?:[A-Za-z][A-Za-z0-9-]*+\s*+|\Z)|\Z)"
    r"(?:(>)|\Z)"
)
COMMENT = re.compile(r"<!(?:\Z|-(?:\Z|-(?:[^-]++|-(?!->))*+(?:(-->)|\Z)))")
AUTOLINK = re.compile(r"<[A-Za-z](?:[A-Za-z0-9+.-]{1,31}+(?::[^<>\x00-\x20]*+(?:(>)|\Z)|\Z)|\Z)")
MAIL = re.compile(r"<[\w.!#$%&'*+/=?^`{|}~-]++(?:@[A-Za-z0-9.-]*+(?:(>)|\Z)|\Z)", re.ASCII)
ENTITY = re.compile(
    r"&(?:#(?:[xX][0-9a-fA-F]{0,6}+|[0-9]{0,7}+)|[A-Za-z][A-Za-z0-9]{0,31}+)?+(?:(;)|\Z)"
)
_LABEL_MARK = re.compile(r"\\.|`+|[\[\]]", re.DOTALL)


def construct_end(
    pattern: re.Pattern[str], text: str, at: int, stop: int, *, closed: bool
) -> int | None:
    """Behind what starts at `at` and is described by one of the patterns of this module."""
    limit = at + MAX_MARK_CHARACTERS
    found = pattern.match(text, at, min(stop, limit))
    if found and found.lastindex:
        return found.end()
    return None if found and not closed and stop < limit else NEVER


def code_end(text: str, at: int, inside: int, stop: int, *, closed: bool) -> int | None:
    """Behind the backticks that close those from `at` to `inside`."""
    limit = at + MAX_MARK_CHARACTERS
    undecided = not closed and stop < limit
    if undecided and inside == stop:
        return None
    closer = re.compile(rf"(?<!`)`{{{inside - at}}}(?!`)").search(text, inside, min(stop, limit))
    if closer and not (undecided and closer.end() == stop):
        return closer.end()
    return None if undecided else NEVER


def label_end(text: str, at: int, stop: int, *, closed: bool) -> int | None:
    """The `]` that closes the bracket before `at`."""
    limit, depth = at + MAX_LABEL_CHARACTERS, 0
    while found := _LABEL_MARK.search(text, at, min(stop, limit)):
        at = found.end()
        if found[0][0] == "`":
            end = code_end(text, found.start(), at, stop, closed=closed)
            if end is None:
                return None
            at = max(at, end)
        elif found[0] == "[":
            depth += 1
            if depth > _MAX_NESTING:
                return NEVER
        elif found[0] == "]":
            if not depth:
                return found.start()
            depth -= 1
    return None if not closed and stop < limit else NEVER
