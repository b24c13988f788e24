"""Emoji are seen, not said."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re

from intone_server.synthesis.boundaries import CLOSING_BRACKETS, SILENT, STOPS, WIDE_CLAUSE_MARKS
from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.markdown.writer import BREAK, Writer

# https://www.unicode.org/reports/tr51/ : variation selectors, the keycap, the tags of flags. What
# else is invisible has its uses in words (the joiners of Persian and Hindi) and is left to them.
_MODIFIERS = "\ufe0e\ufe0f\u20e3"
_VISIBLE = f"(?![\u200b-\u200f\u2060\ufeff{_MODIFIERS}])[{SILENT}]"
# Signs with a place in text that a variation selector turns into emoji: arrows, shapes and more.
_EITHER = "\u2139\u2190-\u21ff\u24c2\u25a0-\u25ff\u2934\u2935\u3030\u303d\u3297\u3299"
_KEYS = "0-9#*"
_LAST = f"[{SILENT}{_MODIFIERS}\U000e0020-\U000e007f]{{0,64}}"
_ONE = f"(?:[{_KEYS}]\ufe0f?\u20e3|[{_EITHER}]\ufe0f|{_VISIBLE}){_LAST}"
_BEFORE = r"\n?[ \t]{0,8}"
_GROUP = re.compile(
    f"(?P<emoji>(?P<line>\n?)[ \t]{{0,8}}{_ONE}(?:[ \t]{{0,2}}{_ONE}){{0,15}}[ \t]{{0,8}})"
    f"|[{_MODIFIERS}]"
)
_UNFINISHED = re.compile(rf"{_BEFORE}(?:[{_KEYS}{_EITHER}]\ufe0f?)?\Z")
_NO_SPACE_BEFORE = STOPS + WIDE_CLAUSE_MARKS + CLOSING_BRACKETS + ",;:’”»"
_NO_SPACE_AFTER = "([{“«"
_LINE_ENDS = ("\n", "\r", BREAK)


class EmojiFilter:
    """Takes emoji out of text that may be cut anywhere, with the space that they leave behind.

    One that starts a line marks an item of a list: a break comes before it.
    """

    def __init__(self) -> None:
        self._held = MappedText()
        self._before = ""  # the last character given

    @property
    def held(self) -> str:
        """What is held back."""
        return self._held.text

    def feed(self, text: MappedText) -> MappedText:
        """Text that can be given now. A character or a run of emoji may be held back."""
        return self._strip(self._held + text, closed=False)

    def close(self) -> MappedText:
        """What was held back: nothing follows for now."""
        return self._strip(self._held, closed=True)

    def _strip(self, source: MappedText, *, closed: bool) -> MappedText:
        text, out, at = source.text, Writer(), 0
        tail = None if closed else _UNFINISHED.search(text)
        stop = tail.start() if tail else len(text)
        for found in _GROUP.finditer(text):
            start, end = found.span()
            if tail and end >= tail.start() and found["emoji"]:  # it may go on
                stop = min(stop, start)
            if start >= stop:
                break
            self._give(out, source[at:start])
            at = end
            if found["line"]:
                starts_text = self._before in ("", *_LINE_ENDS)
                self._give(out, source[start : start + 1], "\n" if starts_text else BREAK)
            elif found["emoji"] and self._needs_space(text[end : end + 1]):
                self._give(out, source[start:end], " ")
        stop = max(at, stop)
        self._give(out, source[at:stop])
        self._held = source[stop:]
        return out.take(all_but=0)

    def _give(self, out: Writer, source: MappedText, text: str = "") -> None:
        if text:
            out.say(text, source)
        else:
            out.copy(source)
        self._before = (text or source.text or self._before)[-1:]

    def _needs_space(self, after: str) -> bool:
        """Whether words would touch where emoji were."""
        before = self._before
        return not (
            before in ("", *_NO_SPACE_AFTER)
            or before.isspace()
            or after in ("", *_NO_SPACE_BEFORE)
            or after.isspace()
        )
