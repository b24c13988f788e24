"""From measurements to a summary: a table and goals on stdout, JSON, and a plot."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.footprint import Cancel, Front, Idle
from benchmarks.launch import Startup
from benchmarks.speed import Turn

MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Row:
    """One contender under one load: medians over turns, and percentiles over all calls.

    First audio in seconds; `speed` in audio seconds per second, all streams together; `cpu` in CPU
    seconds per audio second; `silence` in seconds per listener, on average, `longest_silence` the
    worst; `gaps` per listener.
    """

    contender: str
    load: str
    streams: int
    turns: int
    first_audio_median: float
    first_audio_p95: float
    speed: float
    cpu: float
    gaps: float
    silence: float
    longest_silence: float
    audio: float
    memory_bytes: int
    others_cores: float


@dataclass(frozen=True, slots=True)
class Goal:
    """Something that was promised: what was measured, and whether it holds."""

    name: str
    measured: str
    held: bool


def summarise(turns: Sequence[Turn]) -> list[Row]:
    """A row for each contender and load. Turns that others disturbed are left out, unless all of
    them were."""
    groups: dict[tuple[str, int, str], list[Turn]] = {}
    for turn in sorted(turns, key=lambda turn: turn.streams):
        groups.setdefault((turn.load, turn.streams, turn.contender), []).append(turn)
    return [_row([t for t in group if t.is_quiet] or group) for group in groups.values()]


def _row(turns: Sequence[Turn]) -> Row:
    heard = [heard for turn in turns for heard in turn.heard]
    first = [h.first_audio for h in heard]
    audio = [turn.audio for turn in turns]
    return Row(
        contender=turns[0].contender,
        load=turns[0].load,
        streams=turns[0].streams,
        turns=len(turns),
        first_audio_median=statistics.median(first),
        first_audio_p95=percentile(first, 0.95),
        speed=statistics.median(turn.speed for turn in turns),
        cpu=statistics.median(turn.cpu_seconds / turn.audio for turn in turns),
        gaps=statistics.mean(len(h.gaps) for h in heard),
        silence=statistics.mean(sum(h.gaps) for h in heard),
        longest_silence=max((max(h.gaps, default=0.0) for h in heard), default=0.0),
        audio=statistics.median(audio),
        memory_bytes=max(turn.memory_bytes for turn in turns),
        others_cores=max(turn.others_cores for turn in turns),
    )


def speed_goals(turns: Sequence[Turn], first_audio: Mapping[str, Sequence[float]]) -> list[Goal]:
    """The promises about one stream. Speed is compared turn by turn on a text of one segment (the
    first that was measured); `first_audio` are seconds of each contender."""
    goals = []
    alone = [turn for turn in turns if turn.streams == 1 and turn.load == turns[0].load]
    ours = [turn for turn in alone if turn.contender == "intone"]
    bare = [turn for turn in alone if turn.contender == "library"]
    pairs = list(zip(ours, bare, strict=True))
    quiet = [pair for pair in pairs if all(turn.is_quiet for turn in pair)] or pairs
    if quiet:
        ratio, error = _middle([ours.speed / bare.speed for ours, bare in quiet])
        goals.append(
            Goal(
                "speed at least 0.95 of the library's",
                f"{ratio:.3f} ± {error:.3f} ({len(quiet)} turns)",
                ratio >= 0.95,
            )
        )
    if first_audio:
        seconds = zip(first_audio["intone"], first_audio["library"], strict=True)
        later, error = _middle([(ours - bare) * 1000 for ours, bare in seconds])
        goals.append(
            Goal("first audio at most 15 ms later", f"{later:+.1f} ± {error:.1f} ms", later <= 15)
        )
    return goals


def _middle(values: Sequence[float]) -> tuple[float, float]:
    """Median, and its standard error as for normally distributed noise."""
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return statistics.median(values), 1.25 * spread / len(values) ** 0.5


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
        size = front.resident_bytes / MEGABYTE
        torch = "with torch" if front.has_torch else "no torch"
        goals.append(
            Goal(
                "front under 120 MB, without torch",
                f"{size:.0f} MB, {torch}",
                size < 120 and not front.has_torch,
            )
        )
    if idle is not None:
        more = idle.more_bytes / MEGABYTE
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


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    head = (
        "text | streams | contender | turns | first audio p50 | p95 | speed | CPU s / audio s | "
        "gaps | silence | longest | PSS"
    )
    lines = [f"| {head} |", "| --- | ---: | --- |" + " ---: |" * 9]
    for row in rows:
        cells = [
            row.load,
            str(row.streams),
            row.contender,
            str(row.turns),
            f"{row.first_audio_median * 1000:.0f} ms",
            f"{row.first_audio_p95 * 1000:.0f} ms",
            f"{row.speed:.2f}x",
            f"{row.cpu:.2f}",
            f"{row.gaps:.1f}",
            f"{row.silence:.1f} s",
            f"{row.longest_silence:.1f} s",
            f"{row.memory_bytes / MEGABYTE:.0f} MB",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def first_audio_table(first_audio: Mapping[str, Sequence[float]]) -> str:
    """Percentiles as a Markdown table."""
    lines = ["| first audio, one stream | calls | p50 | p95 |", "| --- | ---: | ---: | ---: |"]
    for name, seconds in first_audio.items():
        p50, p95 = percentile(seconds, 0.5) * 1000, percentile(seconds, 0.95) * 1000
        lines.append(f"| {name} | {len(seconds)} | {p50:.0f} ms | {p95:.0f} ms |")
    return "\n".join(lines)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of them do not exceed; the nearest one there is."""
    return sorted(values)[round(share * (len(values) - 1))]


def goals_table(goals: Sequence[Goal]) -> str:
    """The goals as a Markdown table."""
    lines = ["| goal | measured | held |", "| --- | --- | --- |"]
    lines += [f"| {g.name} | {g.measured} | {'yes' if g.held else 'NO'} |" for g in goals]
    return "\n".join(lines)


def write_json(path: Path, result: dict[str, Any]) -> None:
    """Everything, raw turns included."""
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
