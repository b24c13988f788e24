"""Growing text to segments."""

import enum
import re
from collections import deque
from dataclasses import dataclass

from intone_server.synthesis.boundaries import (
    SPEAKABLE,
    Verdict,
    View,
    enough_words,
    natural_end,
)
from intone_server.synthesis.cuts import CUT_LOOKAHEAD_CHARACTERS, choose_cut, last_end
from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.sentences import base_language
from intone_server.synthesis.spoken import spoken

# Code points that may lie before the buffered text. They are dropped when there are more, and more
# than half of the string, so that many short segments of a long text cost linear time.
_COMPACT_CHARACTERS = 4096

_WHITE_SPACE = re.compile(r"\s*")
_TEXT = re.compile(r"\S")


class CommitReason(enum.Enum):
    """Why a segment ends where it does."""

    SENTENCE = enum.auto()
    CLAUSE = enum.auto()
    MAX_CHARACTERS = enum.auto()
    FLUSH = enum.auto()
    PAUSE = enum.auto()
    TEXT_DELAY = enum.auto()
    END_OF_INPUT = enum.auto()
    VOICE = enum.auto()


class SegmentationMode(enum.Enum):
    """Where segments end by themselves: after sentences, also after clauses, or nowhere."""

    SENTENCE = enum.auto()
    CLAUSE = enum.auto()
    MANUAL = enum.auto()


@dataclass(frozen=True, slots=True)
class Segment:
    """Text that is spoken in one go.

    `start` and `end` count code points over all text of the stream; spans are in order and never
    overlap, and white space between segments belongs to none. `text` is what was cut there,
    `spoken_text` what the model is given: a heading or list item that others follow has a full stop
    there. `speakable` is False if no voice can say any of it ("---", emoji). `paragraph` is True if
    a blank line or U+2029 lies between it and the segment before it; the first one of a stream, or
    after `drop`, has none before it. `cleaned` is the text without its marks, if marks were taken
    out of it before it came here.
    """

    start: int
    end: int
    text: str
    spoken_text: str
    reason: CommitReason
    speakable: bool
    paragraph: bool
    cleaned: MappedText | None = None


@dataclass(frozen=True, slots=True)
class _Commit:
    position: int
    reason: CommitReason
    mark: object


class Segmenter:
    """Cuts the text of one stream into segments. Pure: no clock, no I/O.

    Segments depend on the text and on where commits are in it, not on the pieces it came in nor on
    when `next` is called. A segment is returned once no later text can change it.

    The end of a commit's text ends a segment with the commit's reason, also where a sentence ends.
    Of the text between two commits: a blank line, a list item and the end of a heading end a
    segment like a sentence does (SENTENCE), in every mode but MANUAL.

    Models garble segments of one or two words. Where one would end by itself it goes on with the
    next sentence instead, in every mode but MANUAL. Only where the two do not fit a segment, and
    the second could not be cut where a speaker pauses, the short one is spoken alone.
    """

    def __init__(
        self,
        *,
        language: str,
        mode: SegmentationMode,
        max_characters: int,
        first_max_characters: int,
    ) -> None:
        """`max_characters` and, for the first segment, `first_max_characters` are code points."""
        self._language = base_language(language)
        self._mode = mode
        self._max_characters = max_characters
        self._limit = first_max_characters  # of the next segment
        self._pieces: list[str] = []  # pushed, not yet part of `_text`
        self._position = 0
        self._text = ""
        self._base = 0  # position of `_text[0]`
        self._start = 0  # in `_text`: what comes before was returned
        self._sentence = 0  # in `_text`: start of the last sentence of the segment at `_start`
        self._scan = 0  # in `_text`: what comes before holds no end of that sentence
        self._inner_ends: list[int] = []  # in the segment: ends of the sentences before that
        self._follows = False  # whether a segment came before
        self._lines_before = 0  # line breaks since then
        self._commits: deque[_Commit] = deque()

    @property
    def position(self) -> int:
        """Code points pushed so far."""
        return self._position

    @property
    def buffered_characters(self) -> int:
        """Code points pushed and not yet returned in segments, white space among them included."""
        return self._position - self._base - self._start

    @property
    def pending_commits(self) -> int:
        """Commits that `next` has not reached."""
        return len(self._commits)

    @property
    def has_text(self) -> bool:
        """Whether something else than white space waits to be returned."""
        waiting = _TEXT.search(self._text, self._start) is not None
        return waiting or any(not piece.isspace() for piece in self._pieces)

    def push(self, text: str) -> None:
        """Append text, which may be cut anywhere."""
        if text:
            self._pieces.append(text)
            self._position += len(text)

    def commit(self, reason: CommitReason, mark: object = None) -> None:
        """Make segments of all text pushed so far; what follows starts a new one.

        `mark`, unless None, is returned by `next` after the last of these segments.
        """
        self._commits.append(_Commit(self._position, reason, mark))

    def commit_at_boundary(self) -> bool:
        """Commit with TEXT_DELAY what can be spoken although more may follow.

        That is the text up to its last sentence, line or clause end, failing that its last complete
        word, failing that all of it. Returns whether there was any; the rest stays buffered.
        """
        self._join()
        start = self._start
        if self._commits:
            start = max(start, self._commits[-1].position - self._base)
        found = _TEXT.search(self._text, start)
        if found is None:
            return False
        stop = len(self._text)
        view = View(self._text, found.start(), stop, stop, closed=True)
        end = last_end(view, self._language)
        self._commits.append(_Commit(self._base + end, CommitReason.TEXT_DELAY, None))
        return True

    def drop(self) -> list[object]:
        """Forget all text that was not yet returned, and return the marks that were not."""
        marks = [commit.mark for commit in self._commits if commit.mark is not None]
        self._pieces.clear()
        self._commits.clear()
        self._text = ""
        self._base = self._position
        self._start = self._sentence = self._scan = 0
        self._inner_ends = []
        self._follows = False
        return marks

    def next(self) -> Segment | object | None:
        """The next segment or, where a commit's text ends, its mark. None: more text is needed.

        Does work for one segment, however much text waits.
        """
        self._join()
        while True:
            commit = self._commits[0] if self._commits else None
            stop = commit.position - self._base if commit else len(self._text)
            self._skip_white_space(stop)
            if self._start < stop:
                return self._next_segment(stop, commit)
            if commit is None:
                return None
            self._commits.popleft()
            if commit.mark is not None:
                return commit.mark

    def _next_segment(self, stop: int, commit: _Commit | None) -> Segment | None:
        text, start, limit = self._text, self._start, self._start + self._limit
        if self._mode is not SegmentationMode.MANUAL:
            end = self._own_end(stop, limit, commit is not None)
            if end is Verdict.WAIT:
                return None
            if isinstance(end, tuple):
                return self._take(*end)
        enough = stop - start >= self._limit + CUT_LOOKAHEAD_CHARACTERS
        if commit and not enough and len(text[start:stop].rstrip()) <= self._limit:
            return self._take(stop, commit.reason)
        if not commit and not enough:
            return None
        window = text[start : min(stop, limit + CUT_LOOKAHEAD_CHARACTERS)]
        cut, is_pause = choose_cut(
            window, self._limit, complete=not enough, language=self._language
        )
        if start < self._sentence and not (is_pause and start + cut > self._sentence):
            return self._take(self._sentence, CommitReason.SENTENCE)
        return self._take(start + cut, CommitReason.MAX_CHARACTERS)

    def _own_end(self, stop: int, limit: int, closed: bool) -> tuple[int, CommitReason] | Verdict:
        """Where and why the segment ends by itself."""
        text, clauses = self._text, self._mode is SegmentationMode.CLAUSE
        while True:
            self._sentence = self._skip(self._sentence, stop)
            self._scan = max(self._scan, self._sentence)
            view = View(text, self._sentence, stop, limit, closed)
            end, self._scan, is_clause = natural_end(
                view, self._scan, self._language, clauses=clauses
            )
            if isinstance(end, Verdict):
                return end
            segment = text[self._start : end]
            if enough_words(segment) is not None or not SPEAKABLE.search(segment):
                return end, CommitReason.CLAUSE if is_clause else CommitReason.SENTENCE
            self._scan = end
            if not is_clause:
                self._sentence = end
                self._inner_ends.append(end - self._start)

    def _take(self, end: int, reason: CommitReason) -> Segment:
        whole = self._text[self._start : end]
        text = whole.rstrip()
        start = self._base + self._start
        spoken_text = spoken(text, [at for at in self._inner_ends if at < len(text)])
        segment = Segment(
            start=start,
            end=start + len(text),
            text=text,
            spoken_text=spoken_text,
            reason=reason,
            speakable=SPEAKABLE.search(spoken_text) is not None,
            paragraph=self._follows and self._lines_before > 1,
        )
        self._start = self._sentence = self._scan = end
        self._inner_ends = []
        self._limit = self._max_characters
        self._follows = True
        self._lines_before = _lines(whole[len(text) :])
        return segment

    def _join(self) -> None:
        """Make one string of what is buffered."""
        if self._start > max(_COMPACT_CHARACTERS, len(self._text) // 2):
            self._text = self._text[self._start :]
            self._base += self._start
            self._sentence -= self._start
            self._scan -= self._start
            self._start = 0
        if self._pieces:
            self._text += "".join(self._pieces)
            self._pieces.clear()

    def _skip(self, at: int, stop: int) -> int:
        """Where the white space at `at` ends."""
        found = _WHITE_SPACE.match(self._text, at, stop)
        return found.end() if found else at

    def _skip_white_space(self, stop: int) -> None:
        after = self._skip(self._start, stop)
        if after > self._start:
            self._lines_before += _lines(self._text[self._start : after])
            self._start = after
            self._sentence = max(self._sentence, after)
            self._scan = max(self._scan, after)


def _lines(white_space: str) -> int:
    """Line breaks; more than one make a blank line, and U+2029 is as good as one."""
    return white_space.count("\n") + 2 * white_space.count("\u2029")
