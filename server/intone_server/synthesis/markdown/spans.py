"""What the inline tokens of one block say."""

from collections.abc import Sequence

from markdown_it.token import Token

from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.markdown.marks import spoken_part, spoken_tag
from intone_server.synthesis.markdown.writer import Writer

_OPENING = {"em_open": 1, "strong_open": 1, "s_open": 2}
_CLOSING = {"em_close": 1, "strong_close": 1, "s_close": 2}


def say_spans(
    out: Writer, tokens: Sequence[Token], content: MappedText, first: int = 0, last: int = -1
) -> None:
    """Say `tokens`, which were made of `content` from `first` to `last`, by default all of it."""
    at, last = first, len(content) if last < 0 else last
    for number, token in enumerate(tokens):
        linked = number > 0 and tokens[number - 1]
        if _is_autolink(token, -1) or (linked and _is_autolink(linked, 1)):
            continue  # its text was said where it starts
        after = tokens[number + 1] if number + 1 < len(tokens) else None
        # Marks in a run have the position of the run.
        at = max(at, first + token.meta["at"])
        end = last
        if after:
            end = first + after.meta["at"] - (after.type == "link_open" and not after.markup)
        at = _say(out, token, after, content, first, at, end)


def _say(
    out: Writer,
    token: Token,
    after: Token | None,
    content: MappedText,
    first: int,
    at: int,
    end: int,
) -> int:
    """Say one token, which starts at `at`; returns where it ends, which for links is `end`."""
    kind, width = token.type, len(token.content)
    if kind == "text" and not width:  # a mark of several, or left out
        width = token.meta.get("left_out", 1)
        opens = "left_out" in token.meta or (after and after.type in _OPENING)
        (out.open if opens else out.close)(content[at : at + width])
    elif kind == "text":
        out.copy(content[at : at + width])
    elif kind == "text_special":
        width = len(token.markup)
        if token.content == token.markup:
            out.copy(content[at : at + width])
        else:
            out.say(token.content, content[at : at + width])
    elif kind in _OPENING:
        width = _OPENING[kind]
        out.open(content[at : at + width])
    elif kind in _CLOSING:
        width = _CLOSING[kind]
        out.close(content[at : at + width])
    elif kind in ("softbreak", "hardbreak"):
        at, width = content.text.index("\n", at), 1
        out.copy(content[at : at + 1])
    elif kind == "html_inline":
        spoken = spoken_tag(token.content)
        if spoken == token.content:
            out.copy(content[at : at + width])
        elif spoken:
            out.say(spoken, content[at : at + width])
    elif kind == "code_inline":
        start, mark = at + len(token.markup), token.markup
        # The parser takes a blank off both sides of some.
        if not content.text.startswith(mark, start + width) or _is_trimmed(token, content, start):
            width += 2
        _say_part(out, content, at, start, start + width, start + width + len(mark))
        width += 2 * len(mark)
    elif kind == "address":
        stop, start, host_end = (first + it for it in token.meta["address"])
        _say_part(out, content, at, start, host_end, stop)
        width = stop - at
    elif _is_autolink(token, 1):
        stop = content.text.index(">", at)
        start, part_end = spoken_part(content.text[at + 1 : stop])
        _say_part(out, content, at, at + 1 + start, at + 1 + part_end, stop + 1)
        width = stop + 1 - at
    elif kind == "link_open":
        out.open(content[at - 1 : at])
    elif kind == "link_close":
        out.close(content[at:end])
        width = end - at
    elif kind == "image":
        start = at + len("![")
        out.open(content[at:start])
        say_spans(out, token.children or [], content, start, start + width)
        out.close(content[start + width : end])
        width = end - at
    return at + width


def _is_autolink(token: Token, nesting: int) -> bool:
    return token.markup == "autolink" and token.nesting == nesting


def _is_trimmed(token: Token, content: MappedText, start: int) -> bool:
    said = content.text[start : start + len(token.content)]
    return said.replace("\n", " ") != token.content


def _say_part(out: Writer, content: MappedText, at: int, start: int, stop: int, end: int) -> None:
    if start < stop:
        out.open(content[at:start])
        out.copy(content[start:stop])
        out.close(content[stop:end])
