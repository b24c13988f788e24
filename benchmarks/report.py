"""From turns to tables and JSON."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS
from benchmarks.goals import Goal
from benchmarks.machine import NOISY_CORES
from benchmarks.medians import percentile
from benchmarks.speed import Turn

MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Row:
    """One contender under one load: medians over turns, and over all listeners.

    First audio in seconds; `speed` in audio seconds per second, all streams together; `cpu` in CPU
    seconds per audio second; silence in seconds that the median and the worst listener heard;
    `front` is the front's CPU as a share of the model's (None without a front); `refused` calls of
    one turn, the most.
    """

    contender: str
    load: str
    streams: int
    turns: int
    first_audio_median: float
    first_audio_p95: float
    speed: float
    silence_median: float
    silence_worst: float
    cpu: float
    front: float | None
    memory_bytes: int
    refused: int
    others_cores: float


def summarise(turns: Sequence[Turn]) -> list[Row]:
    """A row for each text, number of streams and contender. Turns that others disturbed are left
    out, unless all of them were."""
    groups: dict[tuple[str, int, str], list[Turn]] = {}
    for turn in turns:
        groups.setdefault((turn.load, turn.streams, turn.contender), []).append(turn)
    rows = [_row([t for t in group if t.is_quiet] or group) for group in groups.values()]
    texts = list(dict.fromkeys(row.load for row in rows))
    return sorted(
        rows,
        key=lambda row: (texts.index(row.load), row.streams, CONTENDERS.index(row.contender)),
    )


def _row(turns: Sequence[Turn]) -> Row:
    heard = [heard for turn in turns for heard in turn.heard]
    first = [one.first_audio for one in heard]
    silence = [one.silence for one in heard]
    front = [turn.front_share for turn in turns if turn.front_share is not None]
    return Row(
        contender=turns[0].contender,
        load=turns[0].load,
        streams=turns[0].streams,
        turns=len(turns),
        first_audio_median=statistics.median(first),
        first_audio_p95=percentile(first, 0.95),
        speed=statistics.median(turn.speed for turn in turns),
        silence_median=statistics.median(silence),
        silence_worst=max(silence),
        cpu=statistics.median(turn.cpu_seconds / turn.audio for turn in turns),
        front=statistics.median(front) if front else None,
        memory_bytes=max(turn.memory_bytes for turn in turns),
        refused=max(turn.refused for turn in turns),
        others_cores=max(turn.others_cores for turn in turns),
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table; a star where other programs disturbed every turn."""
    head = (
        "text | streams | contender | turns | speed | first audio p50 | p95 | silence median | "
        "worst | CPU s / audio s | front | PSS | refused"
    )
    lines = [f"| {head} |", "| --- | ---: | --- |" + " ---: |" * 10]
    for row in rows:
        cells = [
            row.load,
            str(row.streams),
            row.contender,
            f"{row.turns}{'*' if row.others_cores >= NOISY_CORES else ''}",
            f"{row.speed:.2f}x",
            seconds(row.first_audio_median),
            seconds(row.first_audio_p95),
            f"{row.silence_median:.1f} s",
            f"{row.silence_worst:.1f} s",
            f"{row.cpu:.2f}",
            "" if row.front is None else f"{row.front:.1%}",
            f"{row.memory_bytes / MEGABYTE:.0f} MB",
            str(row.refused or ""),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def first_audio_table(first_audio: Mapping[str, Sequence[float]]) -> str:
    """Percentiles as a Markdown table."""
    lines = ["| first audio, one stream | calls | p50 | p95 |", "| --- | ---: | ---: | ---: |"]
    lines += [
        f"| {name} | {len(each)} | {seconds(percentile(each, 0.5))} | "
        f"{seconds(percentile(each, 0.95))} |"
        for name, each in first_audio.items()
    ]
    return "\n".join(lines)


def goals_table(goals: Sequence[Goal]) -> str:
    """The goals as a Markdown table."""
    verdict = {True: "held", False: "NOT held", None: "no goal"}
    lines = ["| goal | measured | |", "| --- | --- | --- |"]
    lines += [f"| {goal.name} | {goal.measured} | {verdict[goal.held]} |" for goal in goals]
    return "\n".join(lines)


def seconds(value: float) -> str:
    """For people: milliseconds below a second."""
    return f"{value * 1000:.0f} ms" if value < 0.9995 else f"{value:.1f} s"


def write_json(path: Path, result: dict[str, Any]) -> None:
    """Everything, raw turns included."""
    path.write_text(json.dumps(result) + "\n", encoding="utf-8")
