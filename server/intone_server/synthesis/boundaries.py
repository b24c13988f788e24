"""Where running text ends a segment by itself: ends of sentences, lines and clauses.

Every decision is a function of the text from the start of the segment up to a look-ahead of
bounded length, never of how much happens to be buffered. With too little text the answer is WAIT.
That is what makes segments independent of how the text was cut into pieces.
"""

# ruff: noqa: RUF001 (the marks of many scripts look alike)

import enum
import re
from dataclasses import dataclass

from intone_server.synthesis.sentences import ends_sentence

# Code points looked at behind a possible end for the next word. A longer run of white space or
# bullets decides without one, so that no input holds a finished sentence back for ever.
LOOKAHEAD_CHARACTERS = 64
# Code points of the shortest clause that is cut off in CLAUSE mode, about four words: models
# garble segments of one or two words.
MIN_CLAUSE_CHARACTERS = 20
# Models garble segments with fewer words, or, of a script without spaces, with fewer characters.
MIN_WORDS = 3
MIN_CJK_CHARACTERS = 4

# Full stops of scripts written without spaces: what follows may follow at once.
WIDE_STOPS = "。！？｡．﹒﹖﹗"
STOPS = ".!?…‼‽⁇⁈⁉։؟۔।॥။።፧" + WIDE_STOPS
WIDE_CLAUSE_MARKS = "、，；："
CLAUSE_MARKS = ",;:—–،؛" + WIDE_CLAUSE_MARKS
CLOSING_BRACKETS = ")]}）】》〉〕］｝」』"
_CLOSING_QUOTES = "\"'”’“»›«‹" + CLOSING_BRACKETS
# These open as well as close, which matters where no white space tells the two apart.
_EITHER_WAY = "\"'“«‹*_~`"
# Emoji, variation selectors, joiners and invisible marks: said by nobody, kept with their sentence.
SILENT = (
    "\u200b-\u200f\u2060\ufeff\ufe0f\u20e3\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff"
    "\U0001f000-\U0001faff"
)
# Letters, digits, and signs that have a name in speech.
SPEAKABLE = re.compile(r"[^\W_]|[%&@§°©®™$¢£¥₩₪₫€₹₽₿]")
# Chinese and Japanese, which are written without spaces.
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ENOUGH_CJK = re.compile(f"(?:[{CJK}][^{CJK}]*?){{{MIN_CJK_CHARACTERS}}}")
CLOSERS = re.escape(_CLOSING_QUOTES + "*_~`")

_STOP_RUN = f"[{re.escape(STOPS)}]+"
LINE_ENDS = "\n\u2029"
SENTENCE_CANDIDATES = re.compile(f"{_STOP_RUN}|[{LINE_ENDS}]")
CLAUSE_CANDIDATES = re.compile(f"{_STOP_RUN}|[{LINE_ENDS}]|[{re.escape(CLAUSE_MARKS)}]+")
_TAIL = re.compile(f"[{re.escape(STOPS)}{CLOSERS}{SILENT}]*")
ONE_WAY = "".join(mark for mark in _CLOSING_QUOTES if mark not in _EITHER_WAY)
_WIDE_TAIL = re.compile(f"[{re.escape(STOPS + ONE_WAY)}{SILENT}]*")
_EITHER_RUN = re.compile(f"[{re.escape(_EITHER_WAY)}]+")
_SILENT_RUN = re.compile(f"[{SILENT}]+")
_SPACE = re.compile(r"\s")
_BLANKS = re.compile(rf"[^\S{LINE_ENDS}]*")
_MARKER = r"(?:[-*+•‣▪–—]|\d{1,3}[.)]|[A-Za-z][.)]|#{1,6})"
_LIST_MARKER = re.compile(rf"{_MARKER}\s")
_PARTIAL_MARKER = re.compile(rf"{_MARKER}|\d{{1,3}}|[A-Za-z]")
_HEADING = re.compile(r"#{1,6}[^\S\n]")
_ITEM_NUMBER = re.compile(r"[-*+•‣▪–—#\s]*(?:\d{1,3}|[A-Za-z])")


class Verdict(enum.Enum):
    """An answer that is not a position: no end here, or not enough text to tell."""

    NO = enum.auto()
    WAIT = enum.auto()


@dataclass(frozen=True, slots=True)
class View:
    """Buffered text as a decision may see it.

    The sentence starts at `start` and may end at `limit` at the latest. Text is visible up to
    `stop`; if `closed`, nothing can follow there.
    """

    text: str
    start: int
    stop: int
    limit: int
    closed: bool

    @property
    def at_stop(self) -> Verdict:
        """The answer where visible text ends first. What a commit ends needs no end of its own."""
        return Verdict.NO if self.closed else Verdict.WAIT


def natural_end(
    view: View, scan: int, language: str, *, clauses: bool
) -> tuple[int | Verdict, int, bool]:
    """The first end of a sentence, line or, with `clauses`, clause up to `view.limit`.

    Candidates before `scan` were refused earlier. Returns the end, or WAIT, or NO if there is none
    in what is visible; where to scan from next time; and whether the end is that of a clause.
    """
    text = view.text
    candidates = CLAUSE_CANDIDATES if clauses else SENTENCE_CANDIDATES
    visible = min(view.stop, view.limit + 1)
    voice = SPEAKABLE.search(text, view.start, visible)
    voiced = voice.end() if voice else visible
    while found := candidates.search(text, scan, visible):
        first, after = found.span()
        is_clause = text[first] in CLAUSE_MARKS
        end: int | Verdict
        if text[first] in LINE_ENDS:
            end = line_end(view, first)
        elif after > view.limit:
            end = Verdict.NO
        elif first < voiced:  # bare punctuation makes no segment of its own
            end = Verdict.NO if after < view.stop else view.at_stop
        elif is_clause:
            end = _clause_end(view, first, after)
        else:
            end = sentence_end(view, first, after, language)
        if end is not Verdict.NO:
            return end, first, is_clause
        scan = after
    return Verdict.NO, visible, False


def enough_words(text: str) -> int | None:
    """From where on `text` is long enough to be said well by itself; None: it is too short.

    A word is what stands between white space and holds something speakable. Four Chinese or
    Japanese characters are enough, being at least two words and as long to say as three.
    """
    characters = _ENOUGH_CJK.search(text)
    enough = characters.end() if characters else None
    at = 0
    for _ in range(MIN_WORDS):
        voice = SPEAKABLE.search(text, at)
        if voice is None:
            return enough
        space = _SPACE.search(text, voice.end())
        at = space.start() if space else len(text)
    return at if enough is None else min(at, enough)


def sentence_end(view: View, first: int, after: int, language: str) -> int | Verdict:
    """Where the sentence with the full stops `first` to `after` ends, closing marks included."""
    text = view.text
    wide = text[after - 1] in WIDE_STOPS
    if wide and _between_digits(view, first, after):
        return Verdict.NO
    line = max(text.rfind("\n", view.start, first) + 1, view.start)
    if text[first:after] == "." and _ITEM_NUMBER.fullmatch(text, line, first):
        return Verdict.NO
    closed_at = _skip_closers(view, first, after, wide)
    if isinstance(closed_at, Verdict):
        return closed_at
    end, word = _skip_to_word(view, closed_at, wide)
    if isinstance(end, Verdict) or word is None or wide:
        return end
    if text[word].islower() and any(mark in _CLOSING_QUOTES for mark in text[after:end]):
        return Verdict.NO  # “Go!” she said.
    ends = ends_sentence(language, text, view.start, first, after, word, view.stop, view.closed)
    if ends is None:
        return Verdict.WAIT
    return end if ends else Verdict.NO


def _clause_end(view: View, first: int, after: int) -> int | Verdict:
    """Where the clause with the marks `first` to `after` ends."""
    wide = view.text[after - 1] in WIDE_CLAUSE_MARKS
    if wide and _between_digits(view, first, after):
        return Verdict.NO
    closed_at = _skip_closers(view, first, after, wide)
    if isinstance(closed_at, Verdict):
        return closed_at
    if closed_at - view.start < MIN_CLAUSE_CHARACTERS:
        return Verdict.NO
    return _skip_to_word(view, closed_at, wide)[0]


def _between_digits(view: View, first: int, after: int) -> bool:
    """Whether the mark is part of a number. Text that ends here is left to the later checks."""
    digit_follows = after < view.stop and view.text[after].isdigit()
    return digit_follows and view.text[first - 1].isdigit()


def _skip_closers(view: View, first: int, after: int, wide: bool) -> int | Verdict:
    """The position behind the quotes, brackets, emphasis and emoji that follow at once."""
    text, visible = view.text, min(view.stop, view.limit + 1)
    tail = (_WIDE_TAIL if wide else _TAIL).match(text, after, visible)
    end = tail.end() if tail else after
    if wide and (run := _EITHER_RUN.match(text, end, visible)):
        if run.end() == view.stop and not view.closed:
            return Verdict.WAIT
        if text.count(run[0], view.start, first) % 2:  # it was opened in this sentence
            end = run.end()
    if end > view.limit:
        return Verdict.NO
    return view.at_stop if end >= view.stop else end


def _skip_to_word(view: View, end: int, wide: bool) -> tuple[int | Verdict, int | None]:
    """The end with what trails it (emoji, `»`), and the first speakable character behind it.

    No end is confirmed before something speakable follows: an emoji or a dash that nothing follows
    stays with its sentence instead of becoming a segment that cannot be spoken.
    """
    text, at, spaced, lines = view.text, end, wide, 0
    while at < view.stop:
        character = text[at]
        if at - end >= LOOKAHEAD_CHARACTERS:
            return (end if spaced else Verdict.NO), None
        if character.isspace():
            spaced = True
            at += 1
            lines += character in LINE_ENDS
            if lines > 1 or character == "\u2029":  # a blank line: nothing more to know
                return (Verdict.NO if text[end:at].strip() else end), None
        elif not spaced or character in STOPS or character in ",;:،؛" + WIDE_CLAUSE_MARKS:
            return Verdict.NO, None
        elif SPEAKABLE.match(character):
            return end, at
        elif run := _SILENT_RUN.match(text, at, min(view.stop, view.limit + 1)):
            if run.end() > view.limit:
                return end, None
            end = at = run.end()
            lines = 0
        elif character in "»›”" and at == end + 1:
            if at + 1 >= view.stop:
                break
            at += 1
            if text[at].isspace() and at <= view.limit:  # « Bonjour ! », but not »Komm!«
                end = at
        else:
            lines = 0
            at += 1
    return view.at_stop, None


def line_end(view: View, at: int) -> int | Verdict:
    """`at` if its line break ends the segment: a blank line, a heading or a list item."""
    text = view.text
    if text[at] == "\u2029":
        return at
    blanks = _BLANKS.match(text, at + 1, min(view.stop, at + 1 + LOOKAHEAD_CHARACTERS))
    next_line = blanks.end() if blanks else at + 1
    if next_line - at > LOOKAHEAD_CHARACTERS:
        return at
    if next_line >= view.stop:
        return view.at_stop
    if text[next_line] in LINE_ENDS:
        return at
    if not SPEAKABLE.search(text, view.start, at):
        return Verdict.NO
    line = max(text.rfind("\n", view.start, at) + 1, view.start)
    if _HEADING.match(text, line, at) or _LIST_MARKER.match(text, next_line, view.stop):
        return at
    return view.at_stop if _PARTIAL_MARKER.fullmatch(text, next_line, view.stop) else Verdict.NO
