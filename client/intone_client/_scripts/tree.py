"""YAML and JSON as they are written: what they say, and where."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import yaml

# Marks and words. A server takes no dialogue of more than 5,000 segments, and an item has about ten
# of them. PyYAML reads 30,000 a second.
_MAX_TOKENS = 100_000

# A script has four. What is nested without end would exhaust the stack.
_MAX_DEPTH = 20

# The numbers of YAML 1.2: no 12:30, no 0x10, no 1_000.
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_JSON_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
_NO_CHARACTER = re.compile(r"\\U(?!000|0010)[0-9a-fA-F]{8}")

# People put a space into their comments.
_LOOKS_LIKE_TEXT = re.compile(r"[ \t]+#[^\s#]")

# A question mark at the beginning of a node and before white space marks a key that is no text.
# PyYAML, which reads YAML 1.1, takes each one in { } and [ ] for that; YAML 1.2 and editors do not.
_QUESTION = re.compile(r"(?P<mark>(?:^|[\[{,]|-[ \t])[ \t]*\?(?=\s))|\?", re.MULTILINE)
_PRIVATE = range(0xE000, 0xF900)

_TOO_MANY = f"there are more than {_MAX_TOKENS:,} marks and words in it: cut the script in two"
_TOO_DEEP = "this is nested too deeply for a script"
_SECOND = "a second document begins here, but a script is one: remove the '---'"
_SHARED = (
    "text that begins with & * or ! needs quotes (anchors, aliases and tags are not for scripts; "
    "to hear an item once more, 'reuse' its id)"
)
QUOTES = (
    "text needs quotes if there is ': ' or ' #' in it, or if it begins with - and a space, or with "
    "one of [ ] { } * & ! | > % @ ` \" '"
)
_FLOW_QUOTES = "inside { } and [ ], text needs quotes if one of , [ ] { } or a ': ' is in it"


class Unreadable(Exception):
    """The text is not what it should be: `what`, at the character `index`."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(what)
        self.index = index
        self.what = what


@dataclass(frozen=True, slots=True)
class Node:
    """A scalar, a list of nodes, or pairs of them, which begins at the character `index`."""

    index: int
    value: "str | float | bool | list[Node] | Pairs | None"
    #: Without quotes in YAML: what it is depends on its place, see `plain_value`.
    plain: bool = False
    #: Where it ends, if it is a scalar of YAML.
    end: int = 0
    #: A key in braces without any value, such as the end of a text with a comma.
    is_bare: bool = False
    #: What may have been meant as the rest of it is a comment, such as "#1".
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Pairs:
    """The keys of a mapping and their values, keys that are twice in it too."""

    pairs: list[tuple[Node, Node]]


def yaml_tree(text: str) -> Node:
    """What is in YAML `text`, as text. Raises Unreadable."""
    root: Node | None = None
    stand_in = next((chr(each) for each in _PRIVATE if chr(each) not in text), "?")
    written = _QUESTION.sub(lambda found: found[0] if found["mark"] else stand_in, text)
    try:
        # Events alone: nothing is constructed, and no alias is ever expanded.
        events = _yaml_events(written, stand_in)
        for event in events:
            index = event.start_mark.index
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise Unreadable(index, _SECOND)
                root = _yaml_node(next(events), events, text, 0)
    except yaml.MarkedYAMLError as error:
        raise _yaml_problem(error, stand_in) from None
    except yaml.reader.ReaderError as error:
        # Of text, it is the number of the character.
        what = f"the character U+{int(error.character):04X} is not allowed in YAML"
        raise Unreadable(error.position, what) from None
    except (ValueError, OverflowError):
        # PyYAML makes characters and numbers without a look at them.
        found = _NO_CHARACTER.search(text)
        what = f"there is no character {found[0]}" if found else "this is not YAML: %YAML is wrong"
        raise Unreadable(found.start() if found else 0, what) from None
    if root is None:
        raise Unreadable(0, "there is nothing in it but comments")
    return root


class _Loader(yaml.SafeLoader):
    """Reads up to `_MAX_TOKENS` tokens. Raises Unreadable for more."""

    def fetch_more_tokens(self) -> None:
        if self.tokens_taken > _MAX_TOKENS:
            raise Unreadable(self.index, _TOO_MANY)
        super().fetch_more_tokens()


def _yaml_events(text: str, stand_in: str) -> Iterator[Any]:
    """What is in YAML `text`, which has `stand_in` for its question marks."""
    events: Iterator[Any] = yaml.parse(text, Loader=_Loader)
    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            event.value = event.value.replace(stand_in, "?")
        yield event


def _yaml_node(event: Any, events: Iterator[Any], text: str, depth: int) -> Node:
    """What begins with `event`, up to its end."""
    index, end = event.start_mark.index, event.end_mark.index
    if depth > _MAX_DEPTH:
        raise Unreadable(index, _TOO_DEEP)
    if isinstance(event, yaml.AliasEvent) or event.anchor or event.tag:
        raise Unreadable(index, _SHARED)
    if isinstance(event, yaml.ScalarEvent):
        plain = event.style is None
        is_cut = plain and bool(_LOOKS_LIKE_TEXT.match(text, end))
        return Node(index, event.value, plain, end, is_cut=is_cut)
    children: list[Node] = []
    while not isinstance(child := next(events), yaml.CollectionEndEvent):
        children.append(_yaml_node(child, events, text, depth + 1))
    if isinstance(event, yaml.SequenceStartEvent):
        return Node(index, children)
    pairs = list(zip(children[::2], children[1::2], strict=True))
    if event.flow_style:
        pairs = [(_marked(key, value, text), value) for key, value in pairs]
    return Node(index, Pairs(pairs))


def _marked(key: Node, value: Node, text: str) -> Node:
    """A key in braces, which tells whether it is there alone."""
    is_empty = value.plain and value.value == ""
    return replace(key, is_bare=is_empty and ":" not in text[key.end : value.index])


def _yaml_problem(error: yaml.MarkedYAMLError, stand_in: str) -> Unreadable:
    problem = (error.problem or "").replace(repr(stand_in), "'?'")
    context = error.context or ""
    mark = error.problem_mark or error.context_mark
    if "end of stream" in problem or "stream end" in problem:
        # What is wrong is where the bracket or the quote was opened.
        mark = error.context_mark or mark
    index = mark.index if mark else 0
    if context.endswith((" alias", " anchor", " tag")):
        return Unreadable(index, _SHARED)
    hint = "indent with spaces, not with tabs" if r"'\t'" in problem else QUOTES
    if context.startswith("while parsing a flow"):
        hint = _FLOW_QUOTES
    where = f" ({context})" if context else ""
    return Unreadable(index, f"this is not YAML: {problem}{where}; {hint}")


def json_tree(text: str) -> Node:
    """What is in JSON `text`. Raises Unreadable."""
    try:
        # Python's own judgement; numbers that are too long for it stay as they are.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise _json_problem(text, error) from None
    except RecursionError:
        raise Unreadable(0, _TOO_DEEP) from None
    tokens = _json_tokens(text)
    return _json_node(next(tokens), tokens, 0)


def _json_problem(text: str, error: json.JSONDecodeError) -> Unreadable:
    hint = ""
    before, found = text[: error.pos].rstrip()[-1:], text[error.pos :].lstrip()[:1]
    if before == "," and found in ("}", "]"):
        hint = "; the comma before it is one too many"
    elif found in ("#", "/"):
        hint = "; JSON has no comments"
    return Unreadable(error.pos, f"this is not JSON: {error.msg}{hint}")


def _json_tokens(text: str) -> Iterator[re.Match[str]]:
    """Of a text that is known to be JSON: commas and colons tell nothing more."""
    for count, token in enumerate(_JSON_TOKEN.finditer(text)):
        if count > _MAX_TOKENS:
            raise Unreadable(token.start(), _TOO_MANY)
        if token[0] not in (",", ":"):
            yield token


def _json_node(token: re.Match[str], tokens: Iterator[re.Match[str]], depth: int) -> Node:
    """What begins with `token`, up to its end."""
    index, first = token.start(), token[0]
    if depth > _MAX_DEPTH:
        raise Unreadable(index, _TOO_DEEP)
    if first in _JSON_NO_NUMBERS:
        raise Unreadable(index, f"this is not JSON: {first} is no number")
    if first not in ("{", "["):
        return Node(index, json.loads(first, parse_int=_number, parse_float=_number))
    children: list[Node] = []
    while (child := next(tokens))[0] not in ("}", "]"):
        children.append(_json_node(child, tokens, depth + 1))
    if first == "[":
        return Node(index, children)
    return Node(index, Pairs(list(zip(children[::2], children[1::2], strict=True))))


def _number(text: str) -> int | float | str:
    """A number; what Python has none for stays text, which no place for numbers takes."""
    try:
        number = float(text) if set(text) & set(".eE") else int(text)
        return number if math.isfinite(number) else text
    except (ValueError, OverflowError):
        return text


def plain_value(text: str) -> str | float | bool | None:
    """What YAML `text` without quotes is where it may be a number, true or false, or nothing."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return _number(text) if _NUMBER.fullmatch(text) else text
