"""What a listener hears of audio that arrives bit by bit. Pure: no clock, no I/O."""

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

# Shorter silence is jitter of the measurement.
AUDIBLE_SECONDS = 0.001

# A sentence is known to have ended once its next word begins: white space, and one character.
_LOOKAHEAD_CHARACTERS = 2


@dataclass(frozen=True, slots=True)
class Arrival:
    """Audio that arrived at `at` (seconds on any clock): `seconds` of it.

    `text_at` is when the text that was needed for it had been written, on the same clock.
    """

    at: float
    seconds: float
    text_at: float


@dataclass(frozen=True, slots=True)
class Gap:
    """Silence after the listener ran dry at `at`: `text_seconds` of it until the text that was
    waited for had been written, then `server_seconds`. Either may be 0."""

    at: float
    text_seconds: float
    server_seconds: float


@dataclass(frozen=True, slots=True)
class Heard:
    """One call, as its listener heard it. `first_at` and `last_at` are when the first and the last
    audio arrived, and `ends_at` when the listener has played all of it, on the clock of the
    arrivals. `deadline_misses` counts chunks, see `listen`."""

    first_at: float
    first_text_at: float
    last_at: float
    ends_at: float
    audio_seconds: float
    gaps: tuple[Gap, ...]
    deadline_misses: int


def listen(arrivals: Sequence[Arrival]) -> Heard | None:
    """Play `arrivals`, in order of time, from the first one on; None if there are none.

    Silence is split by whom the listener waits for: until the text of the next audio had been
    written it is the text's, from then on the server's. So a server is never blamed for an LLM
    that is slower than speech. What the rule gets wrong: after late text the time in which any
    server would answer, its time to first audio, counts as the server's silence. With text that is
    written faster than it is spoken, as LLMs do, there are hardly any such gaps.

    A deadline miss is a chunk that came later than a listener needs it who never pauses but for
    missing text: after one long silence of the server's every chunk misses its deadline until the
    server has caught up. They tell how much a player's buffer would have to hold back.
    """
    if not arrivals:
        return None
    first = arrivals[0]
    gaps = []
    misses = 0
    dry_at = first.at  # when the listener has played everything
    due_at = first.at  # the same for one who never waits for the server
    for arrival in arrivals:
        silence = arrival.at - dry_at
        if silence > AUDIBLE_SECONDS:
            text_seconds = min(max(arrival.text_at - dry_at, 0.0), silence)
            gaps.append(Gap(dry_at, text_seconds, silence - text_seconds))
        # Up to now, but never back: text that was late moves what is due.
        due_at = max(due_at, min(arrival.text_at, arrival.at))
        if arrival.at - due_at > AUDIBLE_SECONDS:
            misses += 1
        dry_at = max(dry_at, arrival.at) + arrival.seconds
        due_at += arrival.seconds
    return Heard(
        first_at=first.at,
        first_text_at=first.text_at,
        last_at=arrivals[-1].at,
        ends_at=dry_at,
        audio_seconds=math.fsum(arrival.seconds for arrival in arrivals),
        gaps=tuple(gaps),
        deadline_misses=misses,
    )


class TextLog:
    """When the text of a call was written."""

    def __init__(self) -> None:
        self._ends: list[int] = []  # characters after each piece
        self._times: list[float] = []
        self._characters = 0

    def wrote(self, text: str, at: float) -> None:
        """A piece was written at `at`."""
        self._characters += len(text)
        self._ends.append(self._characters)
        self._times.append(at)

    def written_at(self, span_end: int) -> float:
        """When the text was there that the segment ending at character `span_end` needed.

        That is the piece which begins the word after it, since a full stop alone may be part of a
        number; for the end of the text, the last piece. Off by a piece or two where the server
        needs to see less or more.
        """
        index = bisect.bisect_left(self._ends, span_end + _LOOKAHEAD_CHARACTERS)
        return self._times[min(index, len(self._times) - 1)]
