"""How a whole text would be spoken, without speaking it."""

from collections.abc import Iterator
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


def plan(text: WholeText, config: SpeechConfig) -> Iterator[PlannedSegment]:
    """The segments of a whole text, one at a time."""
    manuscript = Manuscript(
        config.segmenter(), config.text, config.language, on_pause=lambda pause: pause
    )
    manuscript.push_whole(text)
    manuscript.commit(CommitReason.END_OF_INPUT)
    spacing = Spacing(config)
    for item in iter(manuscript.next, None):
        gap = spacing.before(item)
        if isinstance(item, InlinePause):
            yield PlannedSegment(item.start, item.end, "", CommitReason.PAUSE, item.seconds)
        elif isinstance(item, Segment):
            if gap:
                yield PlannedSegment(item.start, item.start, "", CommitReason.PAUSE, gap)
            spoken = item.spoken_text if item.speakable else ""
            seconds = estimated_seconds(spoken)
            yield PlannedSegment(item.start, item.end, spoken, item.reason, seconds)
