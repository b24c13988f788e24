"""Captions: SubRip (.srt) and WebVTT (.vtt).

Written here because no library that was found writes them right: pysubs2 1.8 neither escapes the
text of WebVTT nor knows its voices, and takes braces for markup; webvtt-py 0.6 leaves both to its
caller.
"""

import html
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

_LINE_CHARACTERS = 42  # what subtitles of films keep to
_CUE_LINES = 2
_SPEAKER_CHARACTERS = 30  # the rest of a SubRip line is for the text

# No-break spaces stay: in French they hold a word and its punctuation together.
_SPACE = re.compile(r"(?:[^\S\u00a0\u202f]|[\x00-\x1f\x7f-\x9f])+")


@dataclass(frozen=True, slots=True)
class Cue:
    """Something that was said, in seconds from the start. `speaker` may be empty."""

    start: float
    end: float
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class _Caption:
    """What is shown at one time, in milliseconds."""

    start: int
    end: int
    speaker: str
    lines: tuple[str, ...]


def to_srt(cues: Iterable[Cue]) -> str:
    """A SubRip file; a speaker is named where another one begins.

    Times and line lengths are as in `to_vtt`. The format has no escapes: what looks like a tag in
    the text may be taken for one.
    """
    blocks = []
    for number, caption in enumerate(_captions(cues, named=True), 1):
        times = f"{_clock(caption.start)} --> {_clock(caption.end)}".replace(".", ",")
        blocks.append("\n".join([str(number), times, *caption.lines]) + "\n")
    return "\n".join(blocks)


def to_vtt(cues: Iterable[Cue]) -> str:
    """A WebVTT file, with the speakers as its voices.

    Captions have up to two lines of 42 characters: a longer cue is cut at words, and its time
    divided by characters. They come in the order of their starts, last 1 ms or longer, and never
    overlap: one that would is cut short. A cue without text is left out.
    """
    blocks = ["WEBVTT\n"]
    for caption in _captions(cues, named=False):
        text = html.escape("\n".join(caption.lines), quote=False)
        if caption.speaker:
            text = f"<v {html.escape(caption.speaker, quote=False)}>{text}"
        blocks.append(f"{_clock(caption.start)} --> {_clock(caption.end)}\n{text}\n")
    return "\n".join(blocks)


def _captions(cues: Iterable[Cue], *, named: bool) -> Iterator[_Caption]:
    """What is shown, in order; with `named` the lines tell where another speaker begins."""
    parts: list[_Caption] = []
    last_speaker = ""
    for cue in sorted(cues, key=lambda cue: cue.start):
        text, speaker = _one_line(cue.text), _one_line(cue.speaker)
        if text:
            prefix = ""
            if named and speaker and speaker != last_speaker:
                prefix = f"{_short(speaker)}: "
            last_speaker = speaker
            parts.extend(_split(cue, speaker, text, prefix))
    end = 0
    for index, part in enumerate(parts):
        start = max(part.start, end)
        next_start = parts[index + 1].start if index + 1 < len(parts) else part.end
        end = max(start + 1, min(part.end, next_start))
        yield _Caption(start, end, part.speaker, part.lines)


def _split(cue: Cue, speaker: str, text: str, prefix: str) -> Iterator[_Caption]:
    lines = _wrap(prefix + text)
    shown = [tuple(lines[at : at + _CUE_LINES]) for at in range(0, len(lines), _CUE_LINES)]
    spoken = [sum(map(len, each)) for each in shown]
    spoken[0] = max(1, spoken[0] - len(prefix))  # the name is read, not said
    start, end = round(cue.start * 1000), round(cue.end * 1000)
    total = sum(spoken)
    places = [start + (end - start) * n // total for n in accumulate(spoken, initial=0)]
    for (begins, ends), each in zip(pairwise(places), shown, strict=True):
        yield _Caption(begins, ends, speaker, each)


def _wrap(text: str) -> list[str]:
    """Lines of about the same length, as few as there can be."""
    words = [
        word[at : at + _LINE_CHARACTERS]
        for word in text.split(" ")
        for at in range(0, len(word), _LINE_CHARACTERS)
    ]
    fewest = _lines(words, _LINE_CHARACTERS)
    for width in range(len(text) // len(fewest), _LINE_CHARACTERS):
        lines = _lines(words, width)
        if len(lines) == len(fewest) and max(map(len, lines)) <= width:
            return lines
    return fewest


def _lines(words: list[str], width: int) -> list[str]:
    return textwrap.wrap(" ".join(words), width, break_long_words=False, break_on_hyphens=False)


def _short(name: str) -> str:
    if len(name) <= _SPEAKER_CHARACTERS:
        return name
    return f"{name[: _SPEAKER_CHARACTERS - 1].rstrip()}…"


def _one_line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def _clock(milliseconds: int) -> str:
    minutes, milliseconds = divmod(milliseconds, 60_000)
    seconds, milliseconds = divmod(milliseconds, 1000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}"
