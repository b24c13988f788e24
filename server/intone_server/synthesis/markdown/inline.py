"""Marks inside one block, in text that is still growing."""

import re

from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.markdown.constructs import (
    AUTOLINK,
    COMMENT,
    ENTITY,
    MAIL,
    NEVER,
    PAUSE,
    REFERENCE,
    TAG,
    TARGET,
    code_end,
    construct_end,
    label_end,
)
from intone_server.synthesis.markdown.marks import (
    ADDRESS,
    ESCAPED,
    MAX_MARK_CHARACTERS,
    find_address,
    flanks,
    is_index,
    spoken_entity,
    spoken_part,
    spoken_tag,
)
from intone_server.synthesis.markdown.open import OpenMarks
from intone_server.synthesis.markdown.writer import Writer

# Marks in a run: more is no text that anybody wrote.
_MAX_RUN = 64

_MARK = re.compile(
    rf"\\|`{{1,{_MAX_RUN}}}|\*{{1,{_MAX_RUN}}}|_{{1,{_MAX_RUN}}}|~{{1,{_MAX_RUN}}}|!?\[|!\Z|<|&"
    r"|(?<![A-Za-z0-9])(?:https?://|www\.|h(?:t(?:t(?:ps?:?/?)?)?)?\Z|w{1,3}\Z)",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[^\W\d_]")


class InlineRule:
    """Takes the marks out of one block after another.

    Text is given to `out` as soon as nothing that follows can change it.
    """

    def __init__(self, out: Writer) -> None:
        self._out = out
        self._text = MappedText()  # the last character that was read, if any, and the rest
        self._at = 0  # the rest
        self._open = OpenMarks()

    @property
    def is_open(self) -> bool:
        """Whether a mark may follow that belongs to the last character given."""
        return bool(self._open.marks)

    @property
    def held(self) -> str:
        """What is held back."""
        return self._text.text[self._at :]

    def feed(self, text: MappedText) -> None:
        """Go on with the block."""
        self._text += text
        self._advance(closed=False)

    def close(self) -> None:
        """Give what is held back: nothing follows for now."""
        self._advance(closed=True)

    def end(self) -> None:
        """The block ends here."""
        self.close()
        self._open = OpenMarks()
        self._text, self._at = MappedText(), 0

    def _advance(self, *, closed: bool) -> None:
        at = self._read(self._at, len(self._text), closed)
        kept = max(at - 1, 0)
        self._text, self._at = self._text[kept:], at - kept

    def _read(self, at: int, stop: int, closed: bool) -> int:
        """Give the text from `at` up to `stop`; returns where it is held back."""
        text = self._text.text
        while found := _MARK.search(text, at, stop):
            start, inside = found.span()
            self._copy(at, start)
            match found[0][0]:
                case "\\":
                    end = self._escape(start, stop, closed)
                case "`":
                    end = self._code(start, inside, stop, closed)
                case "*" | "_" | "~":
                    end = self._emphasis(start, inside, stop, closed)
                case "[" | "!":
                    end = self._link(start, inside, stop, closed)
                case "<":
                    end = self._tag(start, stop, closed)
                case "&":
                    end = self._entity(start, stop, closed)
                case _:
                    end = self._address(start, inside, stop, closed)
            if end is None:
                return start
            at = end
        return self._copy(at, stop)

    def _copy(self, at: int, end: int) -> int:
        self._out.copy(self._text[at:end])
        return end

    def _copy_part(self, at: int, first: int, last: int, end: int) -> int:
        """Give what is between the marks `at` to `first` and `last` to `end`."""
        if first < last:
            self._out.open(self._text[at:first])
            self._out.copy(self._text[first:last])
            self._out.close(self._text[last:end])
        return end

    def _escape(self, at: int, stop: int, closed: bool) -> int | None:
        if at + 1 == stop:
            return self._copy(at, stop) if closed else None
        character = self._text.text[at + 1]
        if character in ESCAPED:
            self._out.say(character, self._text[at : at + 2])
            return at + 2
        return at + 1 if character in "\r\n" else self._copy(at, at + 1)

    def _code(self, at: int, inside: int, stop: int, closed: bool) -> int | None:
        end = code_end(self._text.text, at, inside, stop, closed=closed)
        if end is None:
            return None
        if end == NEVER:
            return self._copy(at, inside)
        return self._copy_part(at, inside, end - (inside - at), end)

    def _emphasis(self, at: int, end: int, stop: int, closed: bool) -> int | None:
        text, length = self._text.text, end - at
        if end == stop and not closed and length < _MAX_RUN:
            return None
        mark = text[at]
        if mark == "~" and length != 2:
            return self._copy(at, end)
        may = flanks(mark, length, text[at - 1 : at] if at else "", text[end : min(end + 1, stop)])
        closing = self._open.close(mark, length, may.opens) if may.closes else 0
        if closing:
            self._out.close(self._text[at : at + closing])
        if closing < length and not may.silent(length):
            return self._copy(at + closing, end)
        if closing < length and may.opens:
            self._open.add(mark, length, length - closing, may.closes)
            self._out.open(self._text[at + closing : end])
        return end

    def _link(self, at: int, inside: int, stop: int, closed: bool) -> int | None:
        text, is_image = self._text.text, self._text.text[at] == "!"
        if is_image and inside == at + 1:
            return self._copy(at, inside) if closed else None
        if not is_image and (end := construct_end(PAUSE, text, at, stop, closed=closed)) != NEVER:
            return self._copy(at, end) if end else None
        close = label_end(text, inside, stop, closed=closed)
        if close is None or (close + 1 == stop and not closed):
            return None
        if close == NEVER:
            return self._copy(at, inside)
        target, end = text[close + 1 : min(close + 2, stop)], NEVER
        if target == "(":
            end = construct_end(TARGET, text, close + 1, stop, closed=closed)
        elif target == "[" and _LETTER.search(text, inside, close):
            end = construct_end(REFERENCE, text, close + 1, stop, closed=closed)
        if end is None:
            return None
        before = text[at - 1 : at] if at else ""
        if end == NEVER or (not is_image and is_index(before, text, close + 1)):
            return self._copy(at, inside)
        self._out.open(self._text[at:inside])
        outside, self._open = self._open, OpenMarks()
        self._read(inside, close, closed=True)
        self._open = outside
        self._out.close(self._text[close:end])
        return end

    def _tag(self, at: int, stop: int, closed: bool) -> int | None:
        text, undecided = self._text.text, False
        for pattern in (AUTOLINK, MAIL, TAG, COMMENT):
            end = construct_end(pattern, text, at, stop, closed=closed)
            if end is None:
                undecided = True
            elif end != NEVER and pattern in (AUTOLINK, MAIL):
                first, last = spoken_part(text[at + 1 : end - 1])
                return self._copy_part(at, at + 1 + first, at + 1 + last, end)
            elif end != NEVER:
                spoken = spoken_tag(text[at:end])
                if spoken == text[at:end]:
                    return self._copy(at, end)
                if spoken:
                    self._out.say(spoken, self._text[at:end])
                return end
        return None if undecided else self._copy(at, at + 1)

    def _entity(self, at: int, stop: int, closed: bool) -> int | None:
        text = self._text.text
        end = construct_end(ENTITY, text, at, stop, closed=closed)
        if end is None:
            return None
        spoken = spoken_entity(text[at:end]) if end != NEVER else None
        if spoken is None:
            return self._copy(at, at + 1)
        self._out.say(spoken, self._text[at:end])
        return end

    def _address(self, at: int, inside: int, stop: int, closed: bool) -> int | None:
        text = self._text.text
        whole = ADDRESS.match(text, at, stop)
        end = whole.end() if whole else inside
        if end == stop and not closed and end - at < MAX_MARK_CHARACTERS:
            return None
        address = find_address(text, at, stop)
        if address is None:
            return self._copy(at, inside)
        end, first, last = address
        return self._copy_part(at, first, last, end)
