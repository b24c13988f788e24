"""What the streaming rule and the parser agree on: marks, addresses and tags as they are heard.

Emphasis follows https://spec.commonmark.org/0.31.2/#emphasis-and-strong-emphasis with three changes
for the ear: `2*3*4` and `2**8` are arithmetic, a mark that could open emphasis is left out although
nothing closes it, and so are marks of two or more that touch a word.
"""

import re
from dataclasses import dataclass

from markdown_it.common.entities import entities
from markdown_it.common.utils import (
    fromCodePoint,
    isMdAsciiPunct,
    isPunctChar,
    isValidEntityCode,
    isWhiteSpace,
)

# Code points of the longest address that is looked at, and of what may wait for its closing mark.
MAX_MARK_CHARACTERS = 2000
ESCAPED = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

_WORD = re.compile(r"[A-Za-z0-9]")
# Latin, Greek and Cyrillic: in other scripts an address without space behind it has no certain end.
_LETTERS = "A-Za-z0-9\u00c0-\u024f\u0370-\u052f"
ADDRESS_START = re.compile(r"(?<![A-Za-z0-9])(?:https?://|www\.)", re.IGNORECASE)
ADDRESS = re.compile(
    rf"(?:https?://|www\.)[{_LETTERS}/?#:@!$&'()+,;=%._~-]{{1,{MAX_MARK_CHARACTERS}}}",
    re.IGNORECASE,
)
_HOST = re.compile(
    r"(?:[a-z]+://)?(?:[^/?#@]*@)?(?:www\.)?"
    rf"(?P<host>[{_LETTERS}]+(?:[-._]+[{_LETTERS}]+)*)(?::\d*)?(?=[/?#]|\Z)",
    re.IGNORECASE,
)
_SILENT_SCHEME = re.compile(r"(?:mailto|tel|sms):", re.IGNORECASE)
_LOOKS_LIKE_ADDRESS = re.compile(r"\(\s*<?[^\s)]*[/:.#]")
_PAUSE_TAG = re.compile(r"</?break\b", re.IGNORECASE)
_BLOCK_TAG = re.compile(
    r"</?(?:article|blockquote|br|d[dlt]|details|div|footer|h[1-6]|header|hr|li|[ou]l|p|pre"
    r"|section|summary|table|t[dhr])\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Flanks:
    """What a run of `*`, `_` or `~` may do where it stands."""

    opens: bool
    closes: bool
    arithmetic: bool

    def silent(self, length: int) -> bool:
        """Whether a run of `length` marks that emphasises nothing is left out all the same."""
        return self.opens or (self.closes and length > 1 and not self.arithmetic)


def flanks(mark: str, length: int, before: str, after: str) -> Flanks:
    """`before` and `after` are the characters around the run, empty at the ends of its block."""
    left, right = _kind(before), _kind(after)
    is_left = right == "word" or (right == "mark" and left != "word")
    is_right = left == "word" or (left == "mark" and right != "word")
    opens, closes = is_left, is_right
    if mark == "_":
        opens = is_left and (not is_right or left == "mark")
        closes = is_right and (not is_left or right == "mark")
    inside = bool(_WORD.match(before) and _WORD.match(after))
    digits = before.isdigit() or after.isdigit()
    arithmetic = mark == "*" and inside and (length == 1 or digits)
    return Flanks(opens and not arithmetic, closes, arithmetic)


def _kind(character: str) -> str:
    if not character or isWhiteSpace(ord(character)):
        return "space"
    return "mark" if isMdAsciiPunct(ord(character)) or isPunctChar(character) else "word"


def is_index(before: str, text: str, target: int) -> bool:
    """Whether a bracket after `before` is code as in `f(x)[0](y)`, and no link.

    `target` is where the bracket behind it starts.
    """
    follows = _WORD.match(before) or before in (")", "]", "_")
    return bool(follows) and not _LOOKS_LIKE_ADDRESS.match(text, target)


def find_address(text: str, at: int, stop: int) -> tuple[int, int, int] | None:
    """Where the address at `at` ends, and the start and end of its host, which is what is said."""
    found = ADDRESS.match(text, at, stop)
    if not found:
        return None
    end = found.end()
    while text[end - 1] in "?!.,:;_~'" or (
        text[end - 1] == ")" and text.count(")", at, end) > text.count("(", at, end)
    ):
        end -= 1
    host = _HOST.match(text, at, end)
    return (end, host.start("host"), host.end("host")) if host else None


def spoken_part(target: str) -> tuple[int, int]:
    """Which part of the address in `<target>` is said: its host, or what follows `mailto:`."""
    if "://" in target and (host := _HOST.match(target)):
        return host.span("host")
    scheme = _SILENT_SCHEME.match(target)
    return (scheme.end() if scheme else 0), len(target)


def spoken_tag(tag: str) -> str:
    """What an HTML tag becomes: a line break, nothing, or itself if it is a pause."""
    if _PAUSE_TAG.match(tag):
        return "" if tag.startswith("</") else tag
    return "\n" if _BLOCK_TAG.match(tag) else ""


def spoken_entity(entity: str) -> str | None:
    """What `&name;`, `&#1;` or `&#x1;` stands for, None if it is not one."""
    name = entity[1:-1]
    if not name.startswith("#"):
        return entities.get(name)
    digits, base = (name[2:], 16) if name[1:2] in ("x", "X") else (name[1:], 10)
    if not digits:
        return None
    code = int(digits, base)
    return fromCodePoint(code if isValidEntityCode(code) else 0xFFFD)
