"""Pauses that are written in the text, found while it arrives."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from intone_server.synthesis.mapped import MappedText

# No listener hears less as a pause; for more there is the command, and a text that an LLM writes
# must not silence a stream for minutes.
MIN_PAUSE_SECONDS = 0.01
MAX_PAUSE_SECONDS = 10.0
# A longer mark is text. So much may be held back while it is not known which it is.
MAX_MARK_CHARACTERS = 64

# SSML 1.1 names strengths without a length: these are ours. A break without attributes is medium
# there (section 3.2.3).
_STRENGTHS = {"x-weak": 0.1, "weak": 0.25, "medium": 0.5, "strong": 0.75, "x-strong": 1.0}

_LENGTH = r"(?P<{0}>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(?P<{0}_unit>ms|s)"
_MARK = re.compile(
    r"\[pause:\s*" + _LENGTH.format("pause") + r"\s*\]"
    r"|<break(?:\s+time\s*=\s*(?P<quote>[\"']?)\s*" + _LENGTH.format("time") + r"\s*(?P=quote)"
    rf"|\s+strength\s*=\s*(?P<mark>[\"']?)(?P<strength>{'|'.join(_STRENGTHS)})(?P=mark))?\s*/?>",
    re.IGNORECASE | re.ASCII,  # or the long s would be an s
)
_OPENING = re.compile(r"[\[<]")
# Marks that between them go through every state of the pattern: text is the beginning of a mark if
# the rest of one of these makes it one.
_EXAMPLES = [
    *(f"[pause:{length}]" for length in ("1.1ms", "1.1s", ".1s")),
    *(f"<break time={q}{length}{q}/>" for q in ("", "'", '"') for length in ("1.1ms", "1.1s")),
    *(f"<break strength={q}{name}{q}/>" for q in ("", "'", '"') for name in _STRENGTHS),
]
_ENDINGS = sorted({mark[at:] for mark in _EXAMPLES for at in range(1, len(mark))}, key=len)


@dataclass(frozen=True, slots=True)
class InlinePause:
    """Silence of `seconds` for a mark at the code points `start` up to `end` of the client's text.

    `seconds` is `asked_seconds` within `MIN_PAUSE_SECONDS` and `MAX_PAUSE_SECONDS`.
    """

    seconds: float
    asked_seconds: float
    start: int
    end: int

    @property
    def alteration(self) -> str:
        """What the client is to be told if it is not as long as it says; empty if it is."""
        if self.asked_seconds == self.seconds:
            return ""
        return f"a pause of {self.asked_seconds:g} s in the text lasts {self.seconds:g} s"


class PauseFilter:
    """Takes marks of pauses out of text that may be cut anywhere.

    Marks are `[pause:300ms]` and `[pause: 1.5 s]`, `<break time="0.3s"/>`, `<break
    strength="strong"/>` and `<break/>`, in upper or lower case, the quotes and the slash as one
    likes. Without a unit, with a sign, or with anything else in them they are text. Zero is a pause
    too short.
    """

    def __init__(self) -> None:
        self._held = MappedText()

    @property
    def held(self) -> str:
        """Text that may be the beginning of a mark, at most `MAX_MARK_CHARACTERS`."""
        return self._held.text

    def feed(self, text: MappedText) -> list[MappedText | InlinePause]:
        """What is known now of the text so far, in its order. No text is empty."""
        buffer = self._held + text
        self._held = MappedText()
        return list(self._known(buffer))

    def close(self) -> list[MappedText | InlinePause]:
        """What was held back, as text: nothing follows for now."""
        held, self._held = self._held, MappedText()
        return [held] if held else []

    def _known(self, buffer: MappedText) -> Iterator[MappedText | InlinePause]:
        done = scan = 0
        while opening := _OPENING.search(buffer.text, scan):
            at = opening.start()
            longest = at + MAX_MARK_CHARACTERS
            if mark := _MARK.match(buffer.text, at, longest):
                if at > done:
                    yield buffer[done:at]
                yield _pause(mark, buffer.starts[at], buffer.ends[mark.end() - 1])
                done = scan = mark.end()
            elif len(buffer) < longest and _begins_mark(buffer.text[at:]):
                self._held = buffer[at:]
                buffer = buffer[:at]
                break
            else:
                scan = at + 1
        if len(buffer) > done:
            yield buffer[done:]


def _begins_mark(text: str) -> bool:
    """Whether more text can make a mark of it that is not too long."""
    room = MAX_MARK_CHARACTERS - len(text)
    return any(_MARK.fullmatch(text + ending) for ending in _ENDINGS if len(ending) <= room)


def _pause(mark: re.Match[str], start: int, end: int) -> InlinePause:
    if strength := mark["strength"]:
        asked = _STRENGTHS[strength.lower()]
    elif length := mark["pause"] or mark["time"]:
        unit = mark["pause_unit"] or mark["time_unit"]
        asked = float(length) / (1000 if unit.lower() == "ms" else 1)
    else:
        asked = _STRENGTHS["medium"]
    return InlinePause(min(max(asked, MIN_PAUSE_SECONDS), MAX_PAUSE_SECONDS), asked, start, end)
