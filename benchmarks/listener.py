"""What a listener hears of audio that arrives bit by bit. Pure: no clock, no I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

# Shorter silence is jitter of the measurement.
AUDIBLE_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Arrival:
    """Audio that arrived at `at` (seconds on the monotonic clock): `seconds` of it."""

    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Heard:
    """One call, as its listener heard it. All times are in seconds.

    `first_audio` and `wall` count from the start of the call to its first and last audio; `gaps`
    are the silences of a player that starts at the first audio and plays whatever has arrived.
    """

    first_audio: float
    wall: float
    audio: float
    gaps: tuple[float, ...]


def listen(started_at: float, arrivals: Sequence[Arrival]) -> Heard:
    """Play `arrivals` (in order of time) of a call that began at `started_at`.

    Raises ValueError if nothing arrived.
    """
    if not arrivals:
        raise ValueError("no audio arrived")
    gaps = []
    runs_dry_at = arrivals[0].at
    for arrival in arrivals:
        silence = arrival.at - runs_dry_at
        if silence > AUDIBLE_SECONDS:
            gaps.append(silence)
        runs_dry_at = max(runs_dry_at, arrival.at) + arrival.seconds
    return Heard(
        first_audio=arrivals[0].at - started_at,
        wall=arrivals[-1].at - started_at,
        audio=sum(arrival.seconds for arrival in arrivals),
        gaps=tuple(gaps),
    )
