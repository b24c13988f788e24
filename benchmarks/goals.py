"""What was promised, and whether a run holds it. The thresholds are the project's own."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.contenders import INTONE, LIBRARY, POCKET_SERVE
from benchmarks.footprint import Cancel, Front, Idle
from benchmarks.launch import Startup
from benchmarks.medians import Middle
from benchmarks.speed import Turn

# Number of streams, and how many times the speed of `pocket-tts serve` at the same number.
TIMES_POCKET_SERVE = ((1, 1.15), (2, 1.8), (4, 3.5), (8, 5.5))
FED_STREAMS = 4
FIRST_AUDIO_SECONDS = 0.4  # of every listener at FED_STREAMS
FAST_STREAMS, TOTAL_SPEED = 8, 8.0
FRONT_SHARE = 0.02

Pair = tuple[Turn, Turn]


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that was promised: what was measured, and whether it holds; None if nothing was
    promised for these weights."""

    name: str
    measured: str
    held: bool | None


def speed_goals(
    turns: Sequence[Turn], first_audio: Mapping[str, Sequence[float]], *, promised: bool
) -> list[Goal]:
    """The goals about speed, silence and first audio, as far as they were measured, in int8
    (`promised`) or only for comparison. `first_audio` are seconds of each contender, alone, round
    by round."""
    loads = list(dict.fromkeys(turn.load for turn in turns))
    goals = []
    for streams, least in TIMES_POCKET_SERVE:
        for load in loads:
            goals += _ratio(
                f"{_streams(streams)}, {load}: ≥ {least:g} times the speed of pocket-tts serve",
                _pairs(turns, POCKET_SERVE, load, streams),
                least,
            )
        if streams == 1:
            goals += _later(first_audio, POCKET_SERVE)
    for load in loads:
        goals += _listeners(turns, load)
        goals += _total(turns, load)
    goals += _front(turns)
    for load in loads:
        goals += _ratio(
            f"1 stream, {load}: no slower than the library", _pairs(turns, LIBRARY, load, 1), 1.0
        )
    goals += _later(first_audio, LIBRARY)
    return goals if promised else [Goal(goal.name, goal.measured, None) for goal in goals]


def _pairs(turns: Sequence[Turn], other: str, load: str, streams: int) -> list[Pair]:
    """Turns of intone and of another contender in the same round."""
    at = [turn for turn in turns if turn.load == load and turn.streams == streams]
    others = {turn.round: turn for turn in at if turn.contender == other}
    return [
        (turn, others[turn.round])
        for turn in at
        if turn.contender == INTONE and turn.round in others
    ]


def _ratio(name: str, pairs: Sequence[Pair], least: float) -> list[Goal]:
    quiet = [pair for pair in pairs if all(turn.is_quiet for turn in pair)]
    if not pairs:
        return []
    ratio = Middle.of([ours.speed / other.speed for ours, other in quiet or pairs])
    refused = any(ours.refused for ours, _ in quiet or pairs)
    shown = f"{ratio.shown('.2f')} ({_turns(ratio.count, not quiet)})"
    if refused:
        shown += ", calls refused"
    return [Goal(name, shown, ratio.value >= least and not refused)]


def _later(first_audio: Mapping[str, Sequence[float]], other: str) -> list[Goal]:
    if not {INTONE, other} <= set(first_audio):
        return []
    pairs = zip(first_audio[INTONE], first_audio[other], strict=True)
    later = Middle.of([ours - theirs for ours, theirs in pairs])
    shown = later.shown("+.0f", " ms", 1000)
    return [
        Goal(
            f"1 stream: first audio no later than {other}",
            f"{shown} ({later.count} calls each)",
            later.value <= 0,
        )
    ]


def _of_intone(turns: Sequence[Turn], load: str, streams: int) -> tuple[list[Turn], bool]:
    """Its turns, and whether all were disturbed; without disturbed ones if others are there."""
    ours = [t for t in turns if (t.contender, t.load, t.streams) == (INTONE, load, streams)]
    quiet = [turn for turn in ours if turn.is_quiet]
    return quiet or ours, not quiet


def _listeners(turns: Sequence[Turn], load: str) -> list[Goal]:
    """Nobody hears silence, nobody waits."""
    ours, disturbed = _of_intone(turns, load, FED_STREAMS)
    if not ours:
        return []
    where, complete = f"{_streams(FED_STREAMS)}, {load}", not any(turn.refused for turn in ours)

    def worst(value: Callable[[Turn], float]) -> tuple[float, str]:
        each = [value(turn) for turn in ours]
        shown = f"worst listener {max(each) * 1000:.0f} ms"
        if len(each) > 1:
            shown += f", of a turn {Middle.of(each).shown('.0f', ' ms', 1000)}"
        return max(each), f"{shown} ({_turns(len(each), disturbed)})"

    silence, silence_shown = worst(lambda turn: max(heard.silence for heard in turn.heard))
    first, first_shown = worst(lambda turn: max(heard.first_audio for heard in turn.heard))
    limit = FIRST_AUDIO_SECONDS
    return [
        Goal(f"{where}: no listener hears silence", silence_shown, complete and silence == 0),
        Goal(
            f"{where}: first audio < {limit * 1000:.0f} ms", first_shown, complete and first < limit
        ),
    ]


def _total(turns: Sequence[Turn], load: str) -> list[Goal]:
    ours, disturbed = _of_intone(turns, load, FAST_STREAMS)
    if not ours:
        return []
    speed = Middle.of([turn.speed for turn in ours])
    complete = not any(turn.refused for turn in ours)
    return [
        Goal(
            f"{_streams(FAST_STREAMS)}, {load}: total speed ≥ {TOTAL_SPEED:g} times real time",
            f"{speed.shown('.2f')} ({_turns(speed.count, disturbed)})",
            complete and speed.value >= TOTAL_SPEED,
        )
    ]


def _front(turns: Sequence[Turn]) -> list[Goal]:
    """At the number of streams where the front takes most."""
    ours = [t for t in turns if t.contender == INTONE and t.front_share is not None]
    ours = [turn for turn in ours if turn.is_quiet] or ours
    by_streams: dict[int, list[float]] = {}
    for turn in ours:
        by_streams.setdefault(turn.streams, []).append(turn.front_share or 0.0)
    if not by_streams:
        return []
    found = {streams: Middle.of(shares) for streams, shares in by_streams.items()}
    streams, most = max(found.items(), key=lambda item: item[1].value)
    return [
        Goal(
            f"CPU of the front ≤ {FRONT_SHARE:.0%} of the model's",
            f"{most.shown('.1f', ' %', 100)} with {_streams(streams)}, its most",
            most.value <= FRONT_SHARE,
        )
    ]


def _turns(count: int, disturbed: bool) -> str:
    known = "" if count > 1 else ", error unknown"
    return f"{count} turn{'s' * (count > 1)}{known}{', disturbed' * disturbed}"


def _streams(count: int) -> str:
    return f"{count} stream{'s' * (count > 1)}"


def footprint_goals(
    startup: Startup | None, front: Front | None, idle: Idle | None, cancel: Cancel | None
) -> list[Goal]:
    """The promises about the server itself, as far as they were measured."""
    goals = []
    if startup is not None:
        goals.append(
            Goal(
                "health NOT_SERVING within 1 s of start",
                f"{startup.first_answer} after {startup.first_answer_seconds:.2f} s",
                startup.first_answer == "NOT_SERVING" and startup.first_answer_seconds <= 1.0,
            )
        )
    if front is not None:
        size = front.resident_bytes / 1e6
        torch = "with torch" if front.has_torch else "no torch"
        goals.append(
            Goal(
                "front under 120 MB, without torch",
                f"{size:.0f} MB, {torch}",
                size < 120 and not front.has_torch,
            )
        )
    if idle is not None:
        more = idle.more_bytes / 1e6
        worst = max(idle.health.greatest, idle.health_while_speaking.greatest)
        goals += [
            Goal(f"{idle.streams:,} idle streams under 100 MB", f"{more:.0f} MB", more < 100),
            Goal(
                "health answers within 50 ms meanwhile",
                f"median {idle.health.median * 1000:.1f} ms, greatest {worst * 1000:.1f} ms",
                worst <= 0.05,
            ),
        ]
    if cancel is not None:
        steps = cancel.steps()
        goals.append(
            Goal(
                "next generation within two steps of a cancel",
                f"median {statistics.median(steps):.2f}, greatest {max(steps):.2f} steps "
                f"of {cancel.step * 1000:.0f} ms",
                statistics.median(steps) <= 2,
            )
        )
    return goals
