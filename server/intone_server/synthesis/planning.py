"""How a whole text will be spoken, without speaking it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from intone_server.synthesis.inline_pauses import InlinePause
from intone_server.synthesis.manuscript import Manuscript, WholeText
from intone_server.synthesis.segmenter import CommitReason, Segment
from intone_server.synthesis.spacing import Spacing
from intone_server.synthesis.speech import SpeechConfig, estimated_seconds


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """Speech, or with an empty `spoken_text` silence or what cannot be spoken.

    `start` and `end` are code points of the text. `seconds` are estimated for speech and exact for
    silence.
    """

    start: int
    end: int
    spoken_text: str
    reason: CommitReason
    seconds: float


def pieces(
    text: WholeText, config: SpeechConfig, tell: Callable[[str], None] = lambda _: None
) -> Iterator[Segment | InlinePause]:
    """The segments of a whole text and the silence between them, one at a time.

    `tell` hears of what is not done as it was asked for.
    """

    def pause(found: InlinePause) -> InlinePause:
        if found.alteration:
            tell(found.alteration)
        return found

    manuscript = Manuscript(
        config.segmenter(), config.text, config.language, on_pause=pause, on_altered=tell
    )
    manuscript.push_whole(text)
    manuscript.commit(CommitReason.END_OF_INPUT)
    spacing = Spacing(config)
    for item in iter(manuscript.next, None):
        gap = spacing.before(item)
        if isinstance(item, Segment) and gap:
            yield InlinePause(gap, gap, item.start, item.start)
        if isinstance(item, Segment | InlinePause):
            yield item


def plan(text: WholeText, config: SpeechConfig) -> Iterator[PlannedSegment]:
    """The segments of a whole text with their estimates, one at a time."""
    for piece in pieces(text, config):
        if isinstance(piece, InlinePause):
            yield PlannedSegment(piece.start, piece.end, "", CommitReason.PAUSE, piece.seconds)
        else:
            spoken = piece.spoken_text if piece.speakable else ""
            seconds = estimated_seconds(spoken)
            yield PlannedSegment(piece.start, piece.end, spoken, piece.reason, seconds)
