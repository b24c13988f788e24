"""Words that are said otherwise than they are written: a stream's own lexicon."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

# Bounds of a request, checked where it is read. Characters are code points.
MAX_RULES = 500
MAX_WORD_CHARACTERS = 100
MAX_SPOKEN_CHARACTERS = 500
# A rule that would make a text longer than this is not applied to it. Each rule can multiply the
# text by 250, and the next one what that has added; without a bound a few of them fill the memory.
MAX_RESULT_CHARACTERS = 2_000

# Letters with their combining marks, digits and the underscore.
_IN_WORD = r"[\w\u0300-\u036f]"
# What a word that was dropped leaves no blank before.
_CLOSING = frozenset(".,;:!?…)]}»”")


@dataclass(frozen=True, slots=True)
class Rule:
    """`word` is said as `spoken`, which may be empty; upper and lower case matter on request."""

    word: str
    spoken: str
    match_case: bool


class Replacements:
    """Rules that are applied in order, each to the result of the one before.

    A word is found where no letter, digit or underscore is beside it, with any amount of white
    space where it has some. `spoken` is put there as it is. Raises ValueError for a blank word.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._matchers = [_Matcher(rule) for rule in rules]

    def compile(self) -> None:
        """Make ready for `apply`. 500 rules that are new take a quarter of a second."""
        for rule in self.rules:
            _pattern(rule.word, rule.match_case)

    def apply(self, text: str) -> tuple[str, int]:
        """`text` as it is said, at most `MAX_RESULT_CHARACTERS` if it was no longer before, and how
        many rules were left out for that."""
        folded = text.casefold()
        left_out = 0
        for matcher in self._matchers:
            if not matcher.may_match(text, folded):
                continue
            replaced = matcher.apply(text)
            if len(replaced) > max(len(text), MAX_RESULT_CHARACTERS):
                left_out += 1
            elif replaced != text:
                text, folded = replaced, replaced.casefold()
        return text, left_out


class _Matcher:
    """Finds the word of one rule."""

    def __init__(self, rule: Rule) -> None:
        pieces = rule.word.split()
        if not pieces:
            raise ValueError("the word of a rule is blank")
        self._rule = rule
        self._needed = [p if rule.match_case else p.casefold() for p in pieces]

    def may_match(self, text: str, folded: str) -> bool:
        """Whether all pieces of the word are there: most rules match most texts not."""
        where = text if self._rule.match_case else folded
        return all(piece in where for piece in self._needed)

    def apply(self, text: str) -> str:
        """The text with every word replaced."""
        pattern = _pattern(self._rule.word, self._rule.match_case)
        if self._rule.spoken:
            return pattern.sub(lambda _: self._rule.spoken, text)
        return self._without(pattern, text)

    def _without(self, pattern: re.Pattern[str], text: str) -> str:
        """The text without the words, and without one of the two blanks around each."""
        kept = ""
        position = 0
        for found in pattern.finditer(text):
            kept += text[position : found.start()]
            position = found.end()
            behind = text[position : position + 1]
            if behind.isspace() and (not kept or kept[-1].isspace()):
                position += 1
            elif kept[-1:].isspace() and (not behind or behind in _CLOSING):
                kept = kept[:-1]
        return kept + text[position:]


# The lexicon of one caller comes with each of its calls.
@lru_cache(maxsize=4 * MAX_RULES)
def _pattern(word: str, match_case: bool) -> re.Pattern[str]:
    spelling = r"\s++".join(map(re.escape if match_case else _any_case, word.split()))
    flags = re.NOFLAG if match_case else re.IGNORECASE
    return re.compile(f"(?<!{_IN_WORD})(?:{spelling})(?!{_IN_WORD})", flags)


def _any_case(piece: str) -> str:
    """A pattern for the word in any case, ß and ss being the same."""
    folded = re.escape(piece.casefold()).replace("ss", "(?:ss|ß|ẞ)")
    return f"(?:{re.escape(piece)}|{folded})"
