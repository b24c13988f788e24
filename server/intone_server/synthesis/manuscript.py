"""The text of one stream on its way to segments: options applied, spans kept."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from intone_server.synthesis.boundaries import SPEAKABLE
from intone_server.synthesis.inline_pauses import InlinePause, PauseFilter
from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.markdown.stream import MarkdownFilter
from intone_server.synthesis.replacements import MAX_RESULT_CHARACTERS, Replacements
from intone_server.synthesis.segmenter import CommitReason, Segment, Segmenter


@dataclass(frozen=True, slots=True)
class TextOptions:
    """What is done to the text before it is spoken; see the proto."""

    strip_markdown: bool = False
    inline_pauses: bool = False
    normalize: bool = False
    replacements: Replacements | None = None


@dataclass(frozen=True, slots=True)
class WholeText:
    """A text that is complete; `stripped` is what is left of it without markdown, if that is asked
    for."""

    text: str
    stripped: MappedText | None

    @classmethod
    def of(cls, text: str, options: TextOptions) -> "WholeText":
        """Takes up to half a second for 10,000 characters: not for the event loop."""
        if not options.strip_markdown:
            return cls(text, None)
        from intone_server.synthesis.markdown.parser import strip_markdown  # takes 0.2 s to load

        return cls(text, strip_markdown(text))


class Manuscript:
    """A segmenter behind the text options. Positions and spans are those of the client's text.

    Marks (markdown, pauses) are taken out before the text is cut, so that they may lie on both
    sides of a cut; words are replaced and numbers spelt out in each segment.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        options: TextOptions,
        language: str,
        *,
        on_pause: Callable[[InlinePause], object],
        on_altered: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_pause` gives the mark that `next` returns for a pause in the text. `on_altered` hears
        of what was not done as it was asked for."""
        self._segmenter = segmenter
        self._options = options
        self._language = language
        self._on_pause = on_pause
        self._on_altered = on_altered
        self._filters = options.strip_markdown or options.inline_pauses
        self._position = 0
        self._reset()

    def _reset(self) -> None:
        self._markdown = MarkdownFilter() if self._options.strip_markdown else None
        self._pauses = PauseFilter() if self._options.inline_pauses else None
        self._last_end = self._position  # of the segment that was returned last
        self._mapped_start = self._segmenter.position  # of `_starts[0]` and `_ends[0]`
        self._starts: list[int] = []
        self._ends: list[int] = []

    @property
    def position(self) -> int:
        """Code points pushed so far."""
        return self._position

    @property
    def buffered_characters(self) -> int:
        """Code points that wait to be returned in segments."""
        return self._segmenter.buffered_characters

    @property
    def pending_commits(self) -> int:
        """Commits that `next` has not reached."""
        return self._segmenter.pending_commits

    @property
    def has_text(self) -> bool:
        """Whether something else than white space waits to be returned."""
        held = (self._markdown.held if self._markdown else "") + (
            self._pauses.held if self._pauses else ""
        )
        return self._segmenter.has_text or bool(held.strip())

    def push(self, text: str) -> None:
        """Append text, which may be cut anywhere."""
        mapped = self._push_raw(text)
        if mapped is None:
            self._segmenter.push(text)
        else:
            self._give(self._markdown.feed(mapped) if self._markdown else mapped)

    def push_whole(self, text: WholeText) -> None:
        """Give all the text that there will be."""
        if text.stripped is None:
            self.push(text.text)
        else:
            self._push_raw(text.text)
            self._give(text.stripped)

    def commit(self, reason: CommitReason, mark: object = None) -> None:
        """Make segments of all text pushed so far; `next` returns `mark` after the last one."""
        self._close_filters()
        self._segmenter.commit(reason, mark)

    def commit_at_boundary(self) -> None:
        """Commit what can be spoken although more may follow."""
        if not self._segmenter.commit_at_boundary():
            self._close_filters()  # half a mark that nobody finishes is text
            self._segmenter.commit_at_boundary()

    def drop(self) -> list[object]:
        """Forget all text that was not yet returned, and return the marks that were not."""
        marks = self._segmenter.drop()
        self._reset()
        return marks

    def next(self) -> Segment | object | None:
        """The next segment or mark. None: more text is needed."""
        item = self._segmenter.next()
        if not isinstance(item, Segment):
            return item
        segment = self._translated(item) if self._filters else item
        if not segment.speakable:
            return segment
        spoken = segment.spoken_text
        if self._options.replacements is not None:
            spoken, left_out = self._options.replacements.apply(spoken)
            if left_out:
                self._on_altered(
                    f"{left_out} replacements were not made: the segment would be longer than "
                    f"{MAX_RESULT_CHARACTERS:,} characters"
                )
        if self._options.normalize:
            from intone_server.synthesis.normalizing import normalize  # here: few streams need it

            spoken = normalize(spoken, self._language)
        if spoken == segment.spoken_text:
            return segment
        return replace(segment, spoken_text=spoken, speakable=SPEAKABLE.search(spoken) is not None)

    def _push_raw(self, text: str) -> MappedText | None:
        """Count the client's text; None if it is passed on as it is."""
        start = self._position
        self._position += len(text)
        return MappedText.verbatim(text, start) if self._filters else None

    def _close_filters(self) -> None:
        if self._markdown is not None:
            self._give(self._markdown.close())
        if self._pauses is not None:
            self._take(self._pauses.close())

    def _give(self, text: MappedText) -> None:
        self._take(self._pauses.feed(text) if self._pauses else [text])

    def _take(self, items: list[MappedText | InlinePause]) -> None:
        for item in items:
            if isinstance(item, InlinePause):
                self._segmenter.commit(CommitReason.PAUSE, self._on_pause(item))
            else:
                self._segmenter.push(item.text)
                self._starts += item.starts
                self._ends += item.ends

    def _translated(self, segment: Segment) -> Segment:
        """The segment with the span that the client knows."""
        first = segment.start - self._mapped_start
        after = segment.end - self._mapped_start
        # Two segments may come of one thing, such as a URL that is said as its host.
        start = max(self._starts[first], self._last_end)
        end = self._last_end = max(self._ends[after - 1], start)
        cleaned = MappedText(segment.text, self._starts[first:after], self._ends[first:after])
        del self._starts[:after], self._ends[:after]
        self._mapped_start = segment.end
        return replace(segment, start=start, end=end, cleaned=cleaned)


def load_what_is_slow(options: TextOptions, language: str) -> None:
    """Load what the options need, which takes a part of a second the first time: not for the event
    loop. Any thread may."""
    if options.normalize:
        from intone_server.synthesis.normalizing import normalize

        normalize("1", language)
    if options.replacements is not None:
        options.replacements.compile()
