"""What a measurement says: a table for people, a document for programs."""

import datetime
import json
from pathlib import Path
from typing import Any

from intone.v1 import status_pb2
from intone_client._audio import PartFile
from intone_client._show import print_line, print_table

from .lag import MAX_LAG_SECONDS
from .load import Load
from .plan import Plan
from .result import Outcome
from .summary import Percentiles, Summary, percentile

_FORMAT = 1  # of the document; a new number where a reader of the old one would go wrong
_LAG_PERCENT = 99

_NAMES = {
    Outcome.SPOKEN: "spoken",
    Outcome.REFUSED: "refused",
    Outcome.FAILED: "failed",
    Outcome.NOT_SENT: "not sent",
    Outcome.UNFINISHED: "unfinished",
}


class Server:
    """What the server said of itself before the load."""

    def __init__(
        self, address: str, info: status_pb2.GetServerInfoResponse, capacity: status_pb2.Capacity
    ) -> None:
        self._address = address
        self._info = info
        self._capacity = capacity

    def line(self) -> str:
        """For people."""
        info, capacity = self._info, self._capacity
        replicas = _count(capacity.replicas_total, "replica")
        model = " ".join(filter(None, (info.engine, info.engine_version, info.model)))
        open_before = _count(capacity.open_streams, "call")
        busy = f", {open_before} open before" if capacity.open_streams else ""
        return f"intone {info.server_version} at {self._address}: {model}, {replicas}{busy}"

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "address": self._address,
            "server_version": self._info.server_version,
            "engine": self._info.engine,
            "engine_version": self._info.engine_version,
            "model": self._info.model,
            "replicas": self._capacity.replicas_total,
            "open_streams_before": self._capacity.open_streams,
        }


def describe(plan: Plan, texts: str, connections: int) -> str:
    """What will be done, in one line. `texts` says which."""
    if plan.rate is not None:
        what = f"{_count(plan.rate, 'call')} per second"
    else:
        what = (
            f"{_count(plan.streams or 0, 'conversation')} "
            f"with {plan.think:g} s of thought between turns"
        )
    pace = ""
    if plan.tokens_per_second is not None:
        pace = (
            f" at {plan.tokens_per_second:g} tokens per second"
            if plan.tokens_per_second
            else " in one piece"
        )
    lines = "" if connections == 1 else f", {connections} connections"
    return f"{what} for {plan.duration:g} s, {texts} texts{pace}{lines}, seed {plan.seed}"


def print_report(server: Server, load: Load, summary: Summary) -> None:
    """The table, on standard output."""
    print_line(server.line())
    rows: list[tuple[str, ...]] = [("", "p50", "p95", "p99", "of")]
    rows.append(_percentile_row("first audio", summary.first_audio))
    if load.plan.tokens_per_second:
        rows.append(_percentile_row("  after its text", summary.answer))
    rows.append(_percentile_row("  by the server", summary.server_first_audio))
    rows.append(_percentile_row("queue wait", summary.server_queue_wait))
    print_table(rows)
    counts = ", ".join(
        f"{summary.calls[outcome.value]} {name}"
        for outcome, name in _NAMES.items()
        if summary.calls[outcome.value]
    )
    rest: list[tuple[str, ...]] = [
        ("calls", f"{sum(summary.calls.values())}: {counts or 'none'}"),
    ]
    for outcome, status, reason, count in summary.problems:
        rest.append((f"  {outcome}", f"{count} {status}" + (f" ({reason})" if reason else "")))
    rest.append(
        ("audio", f"{summary.audio_seconds:.1f} s, {summary.speed:.2f}x real time all together")
    )
    rest.append(("listeners", _listeners(summary)))
    rest.append(("silence", _silence(summary)))
    print_table(rest)


def warnings(load: Load) -> list[str]:
    """Why the numbers may not mean what they seem to."""
    lines = []
    lag = percentile(load.lag.lags, _LAG_PERCENT) if load.lag.lags else 0.0
    if lag > MAX_LAG_SECONDS:
        lines.append(
            f"this machine could not send fast enough: {_LAG_PERCENT} % of what it did was up to "
            f"{lag * 1000:.0f} ms late; measure from another one, or from several"
        )
    not_sent = sum(result.outcome is Outcome.NOT_SENT for result in load.results)
    if not_sent:
        lines.append(
            f"{_count(not_sent, 'call')} not sent: {load.plan.concurrency_limit} were open "
            "(--concurrency-limit)"
        )
    if load.truncated:
        lines.append(f"ended early, after {_count(load.plan.max_calls, 'call')} (--max-calls)")
    return lines


def document(server: Server, load: Load, summary: Summary, settings: dict[str, Any]) -> Any:
    """Everything, for JSON. `settings` are those that the load does not know."""
    plan = load.plan
    began = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=load.elapsed)
    lags = load.lag.lags
    return {
        "format": _FORMAT,
        "began_at": began.isoformat(timespec="milliseconds"),
        "server": server.document(),
        "load": {
            "rate": plan.rate,
            "streams": plan.streams,
            "think_seconds": plan.think,
            "duration_seconds": plan.duration,
            "seed": plan.seed,
            "tokens_per_second": plan.tokens_per_second,
            "max_calls": plan.max_calls,
            "concurrency_limit": plan.concurrency_limit,
            "timeout_seconds": plan.timeout,
            **settings,
        },
        "this_machine": {
            "lag_p99_seconds": percentile(lags, _LAG_PERCENT) if lags else None,
            "lag_max_seconds": max(lags, default=None),
            "warnings": warnings(load),
        },
        "summary": summary.document(),
        "calls": [result.document() for result in load.results],
    }


def write_json(path: str | Path, content: Any) -> None:
    """Put `content` into the file. Raises OSError."""
    part = PartFile(path)
    whole = False
    try:
        part.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
        whole = True
    finally:
        part.close(keep=whole)


def _percentile_row(name: str, values: Percentiles) -> tuple[str, ...]:
    return (name, *map(_milliseconds, (values.p50, values.p95, values.p99)), str(values.count))


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"


def _listeners(summary: Summary) -> str:
    nothing = f"; {summary.heard_nothing} heard nothing" if summary.heard_nothing else ""
    if not summary.listeners:
        return f"none{nothing}"
    share = summary.listeners_without_gap / summary.listeners
    return f"{share:.1%} of {summary.listeners} without any gap{nothing}"


def _silence(summary: Summary) -> str:
    line = f"{summary.silence_seconds:.2f} s in {_count(summary.gaps, 'gap')}"
    if summary.gaps:
        line += f", longest {summary.longest_silence_seconds:.2f} s"
    line += f"; {_count(summary.deadline_misses, 'chunk')} late"
    if summary.text_silence_seconds:
        line += f"; {summary.text_silence_seconds:.2f} s more for want of text"
    return line


def _count(number: float, noun: str) -> str:
    return f"{number:.10g} {noun}" + ("" if number == 1 else "s")
