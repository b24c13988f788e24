"""Silence that a stream asks for between its segments."""

from intone_server.synthesis.segmenter import Segment
from intone_server.synthesis.speech import SpeechConfig


class Spacing:
    """Told of what a stream says, in order; knows what is to be kept apart from it."""

    def __init__(self, config: SpeechConfig) -> None:
        self._config = config
        self._follows_speech = False

    def before(self, item: object) -> float:
        """Seconds of silence that go before `item`: a segment that speech comes before at once.

        Anything else (a pause, the end of a turn) is apart as it is.
        """
        if isinstance(item, Segment) and not item.speakable:
            return 0.0  # nobody hears it
        followed, self._follows_speech = self._follows_speech, isinstance(item, Segment)
        if not (followed and isinstance(item, Segment)):
            return 0.0
        config = self._config
        return config.paragraph_gap_seconds if item.paragraph else config.segment_gap_seconds

    def restart(self) -> None:
        """What was said does not count any more."""
        self._follows_speech = False
