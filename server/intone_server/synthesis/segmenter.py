"""Growing text to segments."""

import enum
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from intone_server.synthesis.boundaries import SPEAKABLE, Verdict, View, natural_end
from intone_server.synthesis.cuts import CUT_LOOKAHEAD_CHARACTERS, choose_cut, last_end
from intone_server.synthesis.sentences import base_language

# Code points that may lie before the buffered text. They are dropped when there are more, and more
# than half of the string, so that many short segments of a long text cost linear time.
_COMPACT_CHARACTERS = 4096

_WHITE_SPACE = re.compile(r"\s*")
_TEXT = re.compile(r"\S")
# Control, byte order and direction marks, soft hyphens, halves of surrogate pairs. Controls that
# are white space stay: they become plain spaces.
_UNSPOKEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff]"
)


class CommitReason(enum.Enum):
    """Why a segment ends where it does."""

    SENTENCE = enum.auto()
    CLAUSE = enum.auto()
    MAX_CHARACTERS = enum.auto()
    FLUSH = enum.auto()
    PAUSE = enum.auto()
    TEXT_DELAY = enum.auto()
    END_OF_INPUT = enum.auto()


class SegmentationMode(enum.Enum):
    """Where segments end by themselves: after sentences, also after clauses, or nowhere."""

    SENTENCE = enum.auto()
    CLAUSE = enum.auto()
    MANUAL = enum.auto()


@dataclass(frozen=True, slots=True)
class Segment:
    """Text that is spoken in one go.

    `start` and `end` count code points over all text of the stream; spans are in order and never
    overlap, and white space between segments belongs to none. `text` is what the client sent there,
    `spoken_text` what the model is given. `speakable` is False if no voice can say any of it
    ("---", emoji).
    """

    start: int
    end: int
    text: str
    spoken_text: str
    reason: CommitReason
    speakable: bool


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
        self._scan = 0  # in `_text`: what comes before holds no end of the segment at `_start`
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

        That is the text up to its last sentence or clause end, failing that its last complete word,
        failing that all of it. Returns whether there was any; the rest stays buffered.
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
        self._start = self._scan = 0
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
        closed = commit is not None
        if self._mode is not SegmentationMode.MANUAL:
            view = View(text, start, stop, limit, closed)
            clauses = self._mode is SegmentationMode.CLAUSE
            end, self._scan, is_clause = natural_end(
                view, self._scan, self._language, clauses=clauses
            )
            if end is Verdict.WAIT:
                return None
            if isinstance(end, int):
                reason = CommitReason.CLAUSE if is_clause else CommitReason.SENTENCE
                return self._take(end, reason)
        enough = stop - start >= self._limit + CUT_LOOKAHEAD_CHARACTERS
        if commit and not enough and len(text[start:stop].rstrip()) <= self._limit:
            return self._take(stop, commit.reason)
        if not commit and not enough:
            return None
        window = text[start : min(stop, limit + CUT_LOOKAHEAD_CHARACTERS)]
        cut = choose_cut(window, self._limit, complete=not enough, language=self._language)
        return self._take(start + cut, CommitReason.MAX_CHARACTERS)

    def _take(self, end: int, reason: CommitReason) -> Segment:
        text = self._text[self._start : end].rstrip()
        start = self._base + self._start
        self._start = self._scan = end
        self._limit = self._max_characters
        spoken_text = " ".join(_UNSPOKEN.sub("", text).split())
        return Segment(
            start=start,
            end=start + len(text),
            text=text,
            spoken_text=spoken_text,
            reason=reason,
            speakable=SPEAKABLE.search(spoken_text) is not None,
        )

    def _join(self) -> None:
        """Make one string of what is buffered."""
        if self._start > max(_COMPACT_CHARACTERS, len(self._text) // 2):
            self._text = self._text[self._start :]
            self._base += self._start
            self._scan -= self._start
            self._start = 0
        if self._pieces:
            self._text += "".join(self._pieces)
            self._pieces.clear()

    def _skip_white_space(self, stop: int) -> None:
        found = _WHITE_SPACE.match(self._text, self._start, stop)
        if found and found.end() > self._start:
            self._start = found.end()
            self._scan = max(self._scan, self._start)


def plan(
    text: str,
    *,
    language: str,
    mode: SegmentationMode,
    max_characters: int,
    first_max_characters: int,
) -> Iterator[Segment]:
    """The segments of a whole text, one at a time."""
    segmenter = Segmenter(
        language=language,
        mode=mode,
        max_characters=max_characters,
        first_max_characters=first_max_characters,
    )
    segmenter.push(text)
    segmenter.commit(CommitReason.END_OF_INPUT)
    return (found for found in iter(segmenter.next, None) if isinstance(found, Segment))
