"""How fast a pod is, by how many of its replicas speak: as given, or measured from calls. Pure."""

import itertools
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contenders import INTONE
from benchmarks.listener import Arrival, Call, Segment, listen
from intone_server.engines.pocket_tuning import chosen_replicas
from intone_server.scheduling.speed import Speed

# A number of replicas that spoke for less than this says nothing: audio comes in chunks.
ENOUGH_SECONDS = 1.0
# The scheduler gives up segments that take four times their audio and some seconds.
LEAST_SPEED_OF_EACH = 0.3


@dataclass(frozen=True, slots=True)
class PodSpeed:
    """`totals` are the audio seconds that 1, 2, ... speaking replicas make per second, all
    together: a pod has as many replicas. `first_audio_seconds` is what a caller waits for the first
    audio of a server that does nothing else."""

    totals: tuple[float, ...]
    first_audio_seconds: float

    @classmethod
    def of(
        cls, speeds: Mapping[int, float], first_audio_seconds: float, replicas: int = 0
    ) -> "PodSpeed":
        """From `speeds` at some numbers of replicas, the others by the server's rule (`Speed`).

        `replicas` 0: as many as `--replicas auto` chooses at these speeds. Raises ValueError if
        one of so many would be slower than LEAST_SPEED_OF_EACH.
        """
        speed = Speed(speeds)
        count = replicas or chosen_replicas(speeds)
        totals = tuple(speed.total(busy) for busy in range(1, count + 1))
        slowest, busy = min((total / busy, busy) for busy, total in enumerate(totals, 1))
        if slowest < LEAST_SPEED_OF_EACH:
            raise ValueError(
                f"each of {busy} replicas has a speed of {slowest:.2f}, "
                f"the least is {LEAST_SPEED_OF_EACH:g}"
            )
        return cls(totals, first_audio_seconds)


def parse_speeds(text: str) -> dict[int, float]:
    """Of "1:3.0,2:3.5": by the number of replicas. Raises ValueError."""
    speeds = {}
    for part in text.split(","):
        count, _, speed = part.partition(":")
        speeds[int(count)] = float(speed)
        if int(count) < 1 or not float(speed) > 0:
            raise ValueError(f"{part}: both numbers must be above 0")
    return speeds


def read_result(path: Path) -> PodSpeed:
    """Of the server "as it chooses" in a result of `python -m benchmarks`. Raises OSError, and
    ValueError if it was not measured there."""
    result = json.loads(path.read_text(encoding="utf-8"))
    turns = [
        tuple(map(_call, turn["calls"]))
        for turn in result.get("turns", ())
        if turn["contender"] == INTONE
    ]
    return measured(turns)


def measured(turns: Sequence[Sequence[Call]]) -> PodSpeed:
    """Of the calls of each turn, which have to tell their segments; replicas: as many as were
    seen. First audio is the median of turns of one call. Raises ValueError if they are too few."""
    made: dict[int, float] = defaultdict(float)
    seconds: dict[int, float] = defaultdict(float)
    for calls in turns:
        for speaking, time, audio in _spans(calls):
            made[speaking] += audio
            seconds[speaking] += time
    speeds = {n: made[n] / seconds[n] for n in made if seconds[n] >= ENOUGH_SECONDS and made[n]}
    first = [listen(calls[0]).first_audio for calls in turns if len(calls) == 1]
    if not speeds or not first:
        raise ValueError("there is no turn with one stream of this server and its segments")
    return PodSpeed.of(speeds, statistics.median(first), replicas=max(speeds))


def _spans(calls: Iterable[Call]) -> Iterator[tuple[int, float, float]]:
    """Times in which the same segments speak: how many, how long, and the audio that came.

    Without those in which a text is read, which are part of the time to first audio.
    """
    changes: list[tuple[float, int, int]] = []  # when; speaking, and reading, so many more
    arrivals: list[Arrival] = []
    for call in calls:
        arrivals += call.arrivals
        for segment in call.segments:
            heard_at = _heard_at(segment, call.arrivals)
            changes.append((segment.began_at, 0, 1))
            changes.append((heard_at, 1, -1))
            changes.append((max(segment.ended_at, heard_at), -1, 0))
    changes.sort()
    speaking = reading = 0
    for (since, more, reads), (until, _, _) in itertools.pairwise(changes):
        speaking += more
        reading += reads
        if speaking and not reading and until > since:
            yield speaking, until - since, sum(a.seconds for a in arrivals if since < a.at <= until)


def _heard_at(segment: Segment, arrivals: Iterable[Arrival]) -> float:
    times = (a.at for a in arrivals if a.at >= segment.began_at)
    return next(times, segment.ended_at)


def _call(call: Mapping[str, Any]) -> Call:
    return Call(
        call["started_at"],
        tuple(Arrival(**arrival) for arrival in call["arrivals"]),
        tuple(Segment(**segment) for segment in call["segments"]),
    )
