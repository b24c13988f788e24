"""What many calls come to, and what is asked of that. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .result import CallResult, Outcome

PERCENTILES = (50, 95, 99)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of `values` that at least `percent` (above 0, up to 100) of them do not exceed.

    The nearest-rank method: always one that was measured. Raises ValueError for no values.
    """
    if not values:
        raise ValueError("there is no percentile of nothing")
    # Before the division: 0.07 * 100 is above 7.
    return sorted(values)[math.ceil(percent * len(values) / 100) - 1]


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of `count` values in seconds; None of none."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Percentiles":
        """Of those that are not None."""
        known = [value for value in values if value is not None]
        return cls(
            len(known), *(percentile(known, each) if known else None for each in PERCENTILES)
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """What the calls come to; times and audio in seconds.

    `calls` counts by outcome, `problems` by outcome, status and reason. `speed` is audio per second
    from the first call's begin to the last audio. Listeners are calls with audio; `heard_nothing`
    are calls that were not refused and that gave none. Silence is the server's, `text_silence` that
    of missing text.
    """

    calls: dict[str, int]
    problems: list[tuple[str, str, str, int]]
    first_audio: Percentiles
    answer: Percentiles
    server_first_audio: Percentiles
    server_queue_wait: Percentiles
    audio_seconds: float
    speed: float
    listeners: int
    listeners_without_gap: int
    heard_nothing: int
    gaps: int
    silence_seconds: float
    longest_silence_seconds: float
    text_silence_seconds: float
    deadline_misses: int

    @classmethod
    def of(cls, results: Sequence[CallResult]) -> "Summary":
        """Of calls that have ended."""
        outcomes = Counter(result.outcome for result in results)
        problems = Counter(
            (result.outcome.value, result.status, result.reason)
            for result in results
            if result.outcome in (Outcome.REFUSED, Outcome.FAILED)
        )
        heard = [result for result in results if result.heard is not None]
        gaps = [gap for result in heard for gap in result.server_gaps]
        audio = math.fsum(result.audio_seconds for result in heard)
        begins = [result.started_at for result in results if result.started_at is not None]
        ends = [result.heard.last_at for result in results if result.heard is not None]
        return cls(
            calls={outcome.value: outcomes[outcome] for outcome in Outcome},
            problems=[(*what, count) for what, count in problems.most_common()],
            first_audio=Percentiles.of(result.first_audio_seconds for result in results),
            answer=Percentiles.of(result.answer_seconds for result in results),
            server_first_audio=Percentiles.of(r.server_first_audio_seconds for r in results),
            server_queue_wait=Percentiles.of(r.server_queue_wait_seconds for r in results),
            audio_seconds=audio,
            speed=audio / max(max(ends) - min(begins), 1e-9) if heard else 0.0,
            listeners=len(heard),
            listeners_without_gap=sum(not result.server_gaps for result in heard),
            heard_nothing=sum(
                result.heard is None and result.outcome in (Outcome.SPOKEN, Outcome.FAILED)
                for result in results
            ),
            gaps=len(gaps),
            silence_seconds=math.fsum(gap.server_seconds for gap in gaps),
            longest_silence_seconds=max((gap.server_seconds for gap in gaps), default=0.0),
            text_silence_seconds=math.fsum(result.text_silence_seconds for result in heard),
            deadline_misses=sum(r.heard.deadline_misses for r in heard if r.heard is not None),
        )

    def share(self, *outcomes: Outcome) -> float:
        """Of all calls, those that ended so: 0.0 to 1.0."""
        total = sum(self.calls.values())
        return sum(self.calls[outcome.value] for outcome in outcomes) / total if total else 0.0

    def document(self) -> dict[str, Any]:
        """For JSON."""
        document = asdict(self)
        document["problems"] = [
            dict(zip(("outcome", "status", "reason", "calls"), problem, strict=True))
            for problem in self.problems
        ]
        return document


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a measurement must keep to; None: anything. Equal to a limit is within it.

    Shares are of all calls. A call that was not sent counts as refused: a caller would have got
    nothing of a server so far behind.
    """

    max_first_audio_p95_milliseconds: float | None = None
    max_silence_seconds: float | None = None
    max_refused_share: float | None = None
    max_failed_share: float | None = None

    def failures(self, summary: Summary) -> list[str]:
        """A line for each limit that was not kept."""
        p95 = summary.first_audio.p95
        checks = [
            (
                "first audio p95 in ms",
                None if p95 is None else p95 * 1000,
                self.max_first_audio_p95_milliseconds,
            ),
            ("silence in s", summary.silence_seconds, self.max_silence_seconds),
            (
                "share of calls refused or not sent",
                summary.share(Outcome.REFUSED, Outcome.NOT_SENT),
                self.max_refused_share,
            ),
            ("share of calls failed", summary.share(Outcome.FAILED), self.max_failed_share),
        ]
        lines = []
        for name, value, limit in checks:
            if limit is None or (value is not None and value <= limit):
                continue
            shown = "unknown" if value is None else f"{value:.4g}"
            lines.append(f"{name} is {shown}, allowed is {limit:g}")
        return lines
