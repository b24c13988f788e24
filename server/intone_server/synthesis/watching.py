"""What is told of a call as it speaks, for metrics and traces."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from intone_server.errors import Reason
from intone_server.scheduling.generation import Priority
from intone_server.synthesis.events import Outcome


class WasteCause(enum.Enum):
    """Why audio that was made was not sent."""

    CLEAR = "clear"
    CANCEL = "cancel"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSegment:
    """A segment of speech that is over. No text.

    Moments are seconds of `time.monotonic`, None if it did not come to that: a segment that was
    begun again has those of its last attempt. `queue_seconds`, `synthesis_seconds` and
    `made_seconds` of audio are of all attempts, `sent_seconds` what the client was sent,
    `wasted_seconds` what it will never be sent, for the `waste_cause`.
    """

    segment: int
    voice: str
    characters: int
    outcome: Outcome
    reason: Reason | None
    queued_at: float | None
    started_at: float | None
    first_audio_at: float | None
    ended_at: float
    queue_seconds: float
    synthesis_seconds: float
    made_seconds: float
    sent_seconds: float
    wasted_seconds: float
    waste_cause: WasteCause


class Watch(Protocol):
    """Hears of one call, on the event loop; must not raise."""

    def admitted(self) -> None:
        """The call is let in, and will speak."""

    def refused(self, reason: Reason) -> None:
        """It is not."""

    def voice_ready(self, began_at: float) -> None:
        """A voice can be spoken with, for which the call has waited since then."""

    def first_audio(self, seconds: float, priority: Priority) -> None:
        """The first audio of a text is sent, so long after the text came."""

    def audio_sent(self, seconds: float, gap_seconds: float | None) -> None:
        """So much audio is sent; `gap_seconds` after the chunk before it in the same text."""

    def underrun(self) -> None:
        """The listener had nothing left to play inside a text."""

    def segment_ended(self, segment: EndedSegment) -> None:
        """A segment of speech is over, and what is sent of it was sent."""

    def cleared(self, stop_seconds: float) -> None:
        """A `Clear` was carried out: its answer was taken `stop_seconds` after it came."""

    def ended(self, code: str) -> None:
        """The call is over, with the status of this name."""


class Unwatched:
    """Nobody asks."""

    def admitted(self) -> None: ...

    def refused(self, reason: Reason) -> None: ...

    def voice_ready(self, began_at: float) -> None: ...

    def first_audio(self, seconds: float, priority: Priority) -> None: ...

    def audio_sent(self, seconds: float, gap_seconds: float | None) -> None: ...

    def underrun(self) -> None: ...

    def segment_ended(self, segment: EndedSegment) -> None: ...

    def cleared(self, stop_seconds: float) -> None: ...

    def ended(self, code: str) -> None: ...


class Watches:
    """Several that hear of the same call."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches

    def admitted(self) -> None:
        for watch in self._watches:
            watch.admitted()

    def refused(self, reason: Reason) -> None:
        for watch in self._watches:
            watch.refused(reason)

    def voice_ready(self, began_at: float) -> None:
        for watch in self._watches:
            watch.voice_ready(began_at)

    def first_audio(self, seconds: float, priority: Priority) -> None:
        for watch in self._watches:
            watch.first_audio(seconds, priority)

    def audio_sent(self, seconds: float, gap_seconds: float | None) -> None:
        for watch in self._watches:
            watch.audio_sent(seconds, gap_seconds)

    def underrun(self) -> None:
        for watch in self._watches:
            watch.underrun()

    def segment_ended(self, segment: EndedSegment) -> None:
        for watch in self._watches:
            watch.segment_ended(segment)

    def cleared(self, stop_seconds: float) -> None:
        for watch in self._watches:
            watch.cleared(stop_seconds)

    def ended(self, code: str) -> None:
        for watch in self._watches:
            watch.ended(code)
