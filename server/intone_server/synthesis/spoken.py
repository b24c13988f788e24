"""What the model is given for a segment of text."""

import re
import unicodedata
from itertools import pairwise

from intone_server.synthesis.boundaries import CLAUSE_MARKS, CLOSERS, SILENT, SPEAKABLE, STOPS

# Control, byte order and direction marks, soft hyphens, halves of surrogate pairs. Controls that
# are white space stay: they become plain spaces.
_UNSPOKEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff]"
)
# What ends so needs no full stop before the next sentence.
_MARKED = re.compile(rf"[{re.escape(STOPS + CLAUSE_MARKS)}][\s{CLOSERS}{SILENT}]*$")
# By the first word of a letter's Unicode name.
_FULL_STOPS = {"CJK": "。", "HIRAGANA": "。", "KATAKANA": "。", "DEVANAGARI": "।", "BENGALI": "।"}


def spoken(text: str, inner_ends: list[int]) -> str:
    """What the model is given for `text`, in which sentences end at `inner_ends`.

    A heading or list item gets a full stop there, lest the model run it into what follows, and
    what cannot be said ("---") is left out. Sentences without white space between them stay so.
    """
    ends = [at for at in inner_ends if text[at].isspace()]
    lines = [
        " ".join(_UNSPOKEN.sub("", text[start:end]).split())
        for start, end in pairwise([0, *ends, len(text)])
    ]
    if ends:
        lines = [line for line in lines if SPEAKABLE.search(line)]
    return " ".join([*map(_with_full_stop, lines[:-1]), *lines[-1:]])


def _with_full_stop(line: str) -> str:
    """`line` with the full stop of its script, if it has no mark at its end."""
    if _MARKED.search(line):
        return line
    letter = next((character for character in reversed(line) if character.isalnum()), "a")
    script = unicodedata.name(letter, "").partition(" ")[0]
    return line + _FULL_STOPS.get(script, ".")
