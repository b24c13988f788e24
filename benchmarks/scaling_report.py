"""Tables of simulations: medians over seeds, and how far seeds differ. Pure."""

import math
import statistics
from collections.abc import Callable, Sequence

from benchmarks.pods import Answer, Limits, Summary
from benchmarks.report import seconds

_HEAD = (
    "p50 | p95 | p99 | refused | refusals per call | silent listeners | silence | replicas busy | "
    "speed"
)
_RIGHT = " ---: |"


def grouped(summaries: Sequence[Summary]) -> list[list[Summary]]:
    """Those that differ by their seed alone, in the order in which they came."""
    groups: dict[tuple[int, int], list[Summary]] = {}
    for summary in summaries:
        groups.setdefault((summary.callers, summary.pods), []).append(summary)
    return list(groups.values())


def summaries_table(summaries: Sequence[Summary]) -> str:
    """A row for each number of callers and pods, as Markdown."""
    lines = [f"| callers | pods | {_HEAD} |", "|" + _RIGHT * 11]
    lines += [
        f"| {group[0].callers} | {group[0].pods} | {_cells(group)} |"
        for group in grouped(summaries)
    ]
    return "\n".join(lines)


def answers_table(answers: Sequence[Answer], limits: Limits) -> str:
    """A row for each number of callers, as Markdown. What is heard is of the seeds' own answers."""
    silent = "" if limits.silent >= 1 else f", silent listeners ≤ {limits.silent:.1%}"
    asked = f"pods for p95 ≤ {seconds(limits.first_audio_p95)}{silent}"
    lines = [f"| callers | {asked} | by seed | {_HEAD} |", "|" + _RIGHT * 12]
    for answer in answers:
        by_seed = ", ".join("none" if s is None else str(s.pods) for s in answer.by_seed)
        found = [summary for summary in answer.by_seed if summary is not None]
        cells = _cells(found) if answer.pods else " | ".join([""] * 9)
        lines.append(f"| {answer.callers} | {answer.pods or 'none'} | {by_seed} | {cells} |")
    return "\n".join(lines)


def _cells(group: Sequence[Summary]) -> str:
    def median(value: Callable[[Summary], float]) -> float:
        return statistics.median(map(value, group))

    p95 = sorted(summary.first_audio_p95 for summary in group)
    spread = "" if p95[0] == p95[-1] else f" ({_wait(p95[0])} to {_wait(p95[-1])})"
    return " | ".join(
        [
            _wait(median(lambda s: s.first_audio_p50)),
            _wait(median(lambda s: s.first_audio_p95)) + spread,
            _wait(median(lambda s: s.first_audio_p99)),
            f"{median(lambda s: s.refused):.1%}",
            f"{median(lambda s: s.refusals):.3f}",
            f"{median(lambda s: s.silent):.1%}",
            f"{median(lambda s: s.silence) * 1000:.0f} ms",
            f"{median(lambda s: s.busy):.0%}",
            f"{median(lambda s: s.speed):.1f}x",
        ]
    )


def _wait(value: float) -> str:
    return "never" if math.isinf(value) else seconds(value)
