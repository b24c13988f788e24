"""What a listener hears of audio that arrives bit by bit. Pure: no clock, no I/O."""

from dataclasses import dataclass

# Shorter silence is jitter of the measurement.
AUDIBLE_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Arrival:
    """Audio that arrived at `at` (seconds on the call's clock): `seconds` of it."""

    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment on its replica, from its start to its last sample (seconds, as above)."""

    began_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class Call:
    """One call: when it began and what came, in order of time; `segments` if the contender tells.

    All times are on one clock, whose zero is free: the monotonic clock, or the turn's start.
    """

    started_at: float
    arrivals: tuple[Arrival, ...]
    segments: tuple[Segment, ...] = ()

    def since(self, zero: float) -> "Call":
        """The same call on the clock that starts at `zero`, in tenths of a millisecond."""

        def shifted(at: float) -> float:
            return round(at - zero, 4)

        return Call(
            shifted(self.started_at),
            tuple(Arrival(shifted(one.at), round(one.seconds, 4)) for one in self.arrivals),
            tuple(Segment(shifted(one.began_at), shifted(one.ended_at)) for one in self.segments),
        )


@dataclass(frozen=True, slots=True)
class Gap:
    """Silence of `seconds` that began at `at` (seconds on the call's clock)."""

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
    gaps: tuple[Gap, ...]

    @property
    def silence(self) -> float:
        """Seconds of all gaps."""
        return sum(gap.seconds for gap in self.gaps)


def listen(call: Call) -> Heard:
    """Play what arrived. Raises ValueError if nothing did."""
    if not call.arrivals:
        raise ValueError("no audio arrived")
    first = call.arrivals[0].at
    gaps = []
    runs_dry_at = first
    for arrival in call.arrivals:
        silence = arrival.at - runs_dry_at
        if silence > AUDIBLE_SECONDS:
            gaps.append(Gap(runs_dry_at, silence))
        runs_dry_at = max(runs_dry_at, arrival.at) + arrival.seconds
    return Heard(
        first_audio=first - call.started_at,
        wall=call.arrivals[-1].at - call.started_at,
        audio=sum(arrival.seconds for arrival in call.arrivals),
        gaps=tuple(gaps),
    )
