"""Where a sentence is cut that is longer than a segment may be, or that does not go on for now."""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import re
from collections.abc import Iterator
from enum import IntEnum

from intone_server.synthesis.boundaries import (
    CJK,
    CLAUSE_MARKS,
    CLOSERS,
    CLOSING_BRACKETS,
    LINE_ENDS,
    ONE_WAY,
    SILENT,
    STOPS,
    WIDE_CLAUSE_MARKS,
    WIDE_STOPS,
    View,
    enough_words,
    line_end,
    sentence_end,
)

# Code points seen behind the longest possible segment: enough for most last two words with their
# full stop, and for the word behind a cut.
CUT_LOOKAHEAD_CHARACTERS = 32

_CONJUNCTIONS = {
    "de": "aber als bis da dass denn der die das doch nachdem ob obwohl oder sondern sowie und "
    "während weil wenn wo",
    "en": "after although and as because before but if nor or since than that though unless "
    "until when where whereas which while who whose yet",
    "es": "aunque como cuando donde e ni o pero porque pues que si sino u y",
    "fr": "afin car comme donc dont et lorsque mais ni où ou parce puis puisque quand que qui si",
    "it": "anche che come dove e ed ma mentre o oppure perché però poiché quando se",
    "nl": "als dan dat die en maar of omdat terwijl toen want wanneer waar zodat",
    "pt": "como e embora mas nem onde ou pois porque porém quando que se",
}
_WORDS = {language: frozenset(words.split()) for language, words in _CONJUNCTIONS.items()}

_SPACE = re.compile(r"\s+")
# Clause ends, brackets, and (in MANUAL mode) sentence ends; short words with a full stop were found
# to be abbreviations.
_END_AT_SPACE = re.compile(
    rf"(?:[{re.escape(CLAUSE_MARKS)}!?…][{CLOSERS}]*|[{re.escape(CLOSING_BRACKETS)}]|\w{{5}}\.[{CLOSERS}]*)$"
)
_WORD = re.compile(r"[^\W\d_]+")
# Clause ends without white space behind them.
_WIDE_CLAUSE_END = re.compile(f"[{WIDE_CLAUSE_MARKS}。！？—]+[」』）】》”’]*")
# Between two of these lines break anywhere, but for small kana and marks.
_CJK_PAIR = re.compile(
    f"(?<=[{CJK}])(?=[{CJK}])(?![ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮーヽヾゝゞ])"
)
_ASCII_TOKEN = re.compile(r"[!-~]+")
_DOTTED = re.compile(r"\w\.\w")
_NUMBER = re.compile(r"[$€£¥+\-]?\d(?:[\d.,:/'’\-]*\d)?[%°]?")
_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)")
_SENTENCE_REST = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s)|[。！？]|\n")
# A character that cannot start a segment: it belongs to the one before.
_JOINED = re.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0903\u093a-\u094d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200d\u20d0-\u20ff\u3099\u309a\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]"
)
_MAX_JOINED = 8  # code points of one cluster that are respected

_LAST_END = re.compile(
    rf"([{re.escape(STOPS + CLAUSE_MARKS)}]+)[{CLOSERS}{SILENT}]*(?=\s|$)"
    rf"|([{re.escape(WIDE_STOPS + WIDE_CLAUSE_MARKS)}]+)[{re.escape(ONE_WAY)}]*"
    rf"|([{LINE_ENDS}])"
)
# Code points from the end in which the last end is looked for.
_LAST_END_CHARACTERS = 500


class _Grade(IntEnum):
    """How good a place is; better ones win if they are far enough along."""

    POOR = 0  # inside a date or behind an abbreviation
    WORD = 1
    CONJUNCTION = 2
    CLAUSE = 3


# What is looked for first: the last place of at least this grade in the last half, or but the first
# quarter, of what is allowed.
_WISHES = (
    (_Grade.CLAUSE, 2),
    (_Grade.CONJUNCTION, 2),
    (_Grade.CLAUSE, 4),
    (_Grade.WORD, 4),
    (_Grade.POOR, 4),
)


def choose_cut(window: str, limit: int, *, complete: bool, language: str) -> tuple[int, bool]:
    """Where to end a segment of at most `limit` code points at the head of `window`.

    `window` is the text from the start of the segment to `CUT_LOOKAHEAD_CHARACTERS` behind the
    limit or, if `complete`, to a commit before that. The cut is at the last clause end in the later
    half, else before a conjunction there, else at an earlier clause end or a word, and inside a
    word only if that is longer than the limit. Never inside a number, address or URL that could be
    kept whole, and, if possible, with three words on either side.

    Also returns whether a speaker could pause there: at a clause end or before a conjunction.
    """
    whole = [span for span in _whole_spans(window) if span[1] - span[0] <= limit]
    places = sorted(
        (at, grade)
        for at, grade in _places(window, limit, _WORDS.get(language, frozenset()))
        if not any(start < at < end for start, end in whole)
    )
    rest = _SENTENCE_REST.search(window, limit - 1)
    sentence = rest.end() if rest else len(window) if complete else None
    first = enough_words(window) or limit + 1
    last = limit
    if sentence is not None:
        last = next((at for at, _ in reversed(places) if enough_words(window[at:sentence])), 0)
    long_tail = [(at, grade) for at, grade in places if at <= last or at == sentence]
    long_both = [(at, grade) for at, grade in long_tail if first <= at]
    anywhere = ((_Grade.WORD, limit), (_Grade.POOR, limit))
    for candidates, wishes in ((long_both, _WISHES), (long_tail, _WISHES), (places, anywhere)):
        for wanted, share in wishes:
            found = [
                (at, grade) for at, grade in candidates if grade >= wanted and at * share >= limit
            ]
            if found:
                at, grade = found[-1]
                return at, grade >= _Grade.CONJUNCTION
    return _hard_cut(window, limit), False


def _places(window: str, limit: int, words: frozenset[str]) -> Iterator[tuple[int, _Grade]]:
    """Possible cuts and how good they are."""
    for space in _SPACE.finditer(window, 1):
        at, after = space.span()
        if at > limit:
            break
        before = window[at - 1]
        end = _END_AT_SPACE.search(window, max(0, at - 12), at)
        word = _WORD.match(window, after)
        if end is not None:
            yield at, _Grade.CLAUSE
        elif word and word[0].lower() in words:
            yield at, _Grade.CONJUNCTION
        elif before == "." or (before.isdigit() and window[after : after + 1].isdigit()):
            yield at, _Grade.POOR
        else:
            yield at, _Grade.WORD
    for mark in _WIDE_CLAUSE_END.finditer(window, 1, limit):
        follows = window[mark.end() : mark.end() + 1]
        if not (window[mark.start() - 1].isdigit() and follows.isdigit()):
            yield mark.end(), _Grade.CLAUSE
    for pair in _CJK_PAIR.finditer(window, 1, limit + 1):
        if pair.start() <= limit:
            yield pair.start(), _Grade.WORD


def _whole_spans(window: str) -> Iterator[tuple[int, int]]:
    """Numbers, e-mail addresses and URLs."""
    for pattern in (_NUMBER, _GROUPED_NUMBER):
        for number in pattern.finditer(window):
            yield number.span()
    for token in _ASCII_TOKEN.finditer(window):
        word = token[0]
        if "://" in word or "@" in word[1:-1] or ("/" in word and _DOTTED.search(word)):
            yield token.span()


def _hard_cut(window: str, limit: int) -> int:
    """A cut inside text without a better place: before a number or URL, not inside a cluster."""
    cut = limit
    for start, end in _whole_spans(window):
        if 0 < start < cut < end:
            cut = start
    for at in range(cut, max(0, cut - _MAX_JOINED), -1):
        joins = at < len(window) and _JOINED.match(window, at)
        if not joins and window[at - 1] != "\u200d":
            return at
    return cut


def last_end(view: View, language: str) -> int:
    """How much of the text can be spoken when no more comes for a while.

    Up to its last sentence, line or clause end, failing that its last complete word, failing that
    all of it. The view holds something else than white space.
    """
    text = view.text
    end = view.start + len(text[view.start : view.stop].rstrip())
    begin = max(view.start, end - _LAST_END_CHARACTERS)
    visible = View(text, begin, end, end, closed=True)
    for found in reversed([*_LAST_END.finditer(text, begin + 1, end)]):
        first, after = found.span(found.lastindex or 0)
        if text[first] in LINE_ENDS:
            if isinstance(line_end(visible, first), int):
                return first
        elif found.end() == end:
            # `1,` and `9:` may be the first half of a number.
            if end < view.stop or text[first] not in ",:" or not text[first - 1].isdigit():
                return end
        elif text[first:after] != "." or isinstance(
            sentence_end(visible, first, after, language), int
        ):
            return found.end()
    if end < view.stop:
        return end
    for space in reversed([*_SPACE.finditer(text, begin + 1, end)]):
        if not (text[space.start() - 1].isdigit() and text[space.end()].isdigit()):
            return space.start()
    return end
