"""First audio and silence against the callers of each pod."""

import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.plot import INK, panels, save
from benchmarks.pods import Summary
from benchmarks.scaling_report import grouped

# From few pods to many.
COLOURS = ("#d9822b", "#6fa8d6", "#17406d", "#333333")
MARKERS = ("s", "^", "o", "x")


def write_plot(path: Path, summaries: Sequence[Summary], title: str) -> None:
    """Two panels, a line for each number of pods: medians over seeds, and from the least to the
    most. Where first audio never comes a line ends. `title` is broken at its first semicolon."""
    figure, (first, silent) = panels(1, 2, (11.0, 4.2))
    first.set_title("First audio, p95", loc="left", fontsize=11, color=INK)
    first.set_yscale("log")
    first.yaxis.set_major_formatter(
        lambda value, _: f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"
    )
    silent.set_title("Listeners who hear any silence", loc="left", fontsize=11, color=INK)
    silent.yaxis.set_major_formatter(lambda value, _: f"{value:.1%}")
    counts = sorted({summary.pods for summary in summaries})
    for place, pods in enumerate(counts):
        groups = [g for g in grouped(summaries) if g[0].pods == pods]
        groups.sort(key=lambda group: group[0].callers)
        look = {
            "color": COLOURS[place % len(COLOURS)],
            "marker": MARKERS[place % len(MARKERS)],
            "label": f"{pods} pod{'s' if pods > 1 else ''}",
        }
        _line(first, groups, lambda summary: summary.first_audio_p95, look)
        _line(silent, groups, lambda summary: summary.silent, look)
    for axis in (first, silent):
        axis.set_xlabel("callers for each pod", color=INK)
        axis.legend(frameon=False, labelcolor=INK)
    save(figure, path, title.replace("; ", "\n", 1))


def _line(
    axis: Any, groups: Sequence[list[Summary]], value: Callable[[Summary], float], look: Any
) -> None:
    points = []
    for group in groups:
        values = sorted(map(value, group))
        if math.isfinite(values[-1]):
            at = group[0].callers / group[0].pods
            points.append((at, statistics.median(values), values[0], values[-1]))
    if points:
        at, middle, least, most = zip(*points, strict=True)
        axis.plot(at, middle, linewidth=1.6, markersize=5, **look)
        axis.vlines(at, least, most, color=look["color"], linewidth=1)
