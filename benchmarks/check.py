"""Whether the simulation of a pod is true: the same calls on a real server, and simulated.

All streams begin together and speak `texts.PAIR`. The speed of the simulated pod was measured on
the same server before, with another text: nothing of what is compared goes into it.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc

from benchmarks import machine, texts
from benchmarks.contenders import Intone
from benchmarks.launch import running_intone
from benchmarks.listener import Call
from benchmarks.model import ModelFiles
from benchmarks.plan import Load
from benchmarks.pod_speed import PodSpeed, measured
from benchmarks.simulation import Pod, Time
from benchmarks.speed import Turn, take_turn
from intone.v1 import status_pb2, status_pb2_grpc
from intone_server.scheduling.deadline import DeadlinePolicy

RESULTS = Path(__file__).parent / "results"
BUILD_SECONDS = 300.0
PATIENCE_SECONDS = 120.0
# Admission is not what is checked here: what is too much waits in the queue.
FLAGS = ("--max-talking", "64")
# Calls of one stream from which the time to first audio is taken.
FIRST_AUDIO_CALLS = 5

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream, in seconds: from the beginning of its call to its end and to its first audio, and
    the silence that its listener heard."""

    ended: float
    first_audio: float
    silence: float


@dataclass(frozen=True, slots=True)
class Round:
    """So many streams that began together, in the order of their ends; `audio` is that of each.
    `others_cores` were taken by other programs."""

    streams: tuple[Stream, ...]
    audio: float
    others_cores: float = 0.0

    @property
    def speed(self) -> float:
        """Audio seconds per second of all."""
        return self.audio * len(self.streams) / self.streams[-1].ended


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same streams, simulated and real."""

    simulated: Round
    real: Round

    @property
    def speed_error(self) -> float:
        """Of the total speed, as a share of the real one; above 0: the simulation is too fast."""
        return self.simulated.speed / self.real.speed - 1

    @property
    def end_error(self) -> float:
        """Mean distance of the ends of the streams, in the order of ends, as a share."""
        pairs = zip(self.simulated.streams, self.real.streams, strict=True)
        return statistics.fmean(abs(ours.ended / theirs.ended - 1) for ours, theirs in pairs)


def main(
    streams: Sequence[int], *, turns: int, int8: bool, flags: Sequence[str], tell: Tell
) -> int:
    """Start a server with more `flags`, measure, and print; returns the exit code."""
    directory = RESULTS / "model"
    files = ModelFiles.of(directory)
    if not files.exist():
        tell("building the model, once")
        command = [sys.executable, "-m", "benchmarks.model", str(directory)]
        subprocess.run(command, check=True, timeout=BUILD_SECONDS)
    log = RESULTS / "check.log"
    with running_intone(files, log, int8=int8, flags=[*FLAGS, *flags]) as (intone, _):
        speed, comparisons = check(intone, streams, turns, tell)
    totals = ", ".join(f"{n}: {total:.2f}x" for n, total in enumerate(speed.totals, 1))
    first_ms = speed.first_audio_seconds * 1000
    tell(f"\nspeed by busy replicas {totals}; first audio {first_ms:.0f} ms\n")
    tell(table(comparisons))
    return 0


def check(
    intone: Intone, streams: Sequence[int], turns: int, tell: Tell
) -> tuple[PodSpeed, list[Comparison]]:
    """Measure the speed of a server, then what comes of each number of streams, `turns` times."""
    patience = machine.Patience(PATIENCE_SECONDS)
    replicas = _replicas(intone.address)
    intone.speak(texts.SHORT)  # not measured: fills caches

    def turn(name: str, text: str, count: int) -> Turn:
        found = take_turn(intone, Load(name, text, count, 1), 0, patience)
        tell(f"{name} x{count}: {found.speed:.2f}x, others {found.others_cores:.2f} cores")
        return found

    counts = [1] * FIRST_AUDIO_CALLS + list(range(2, replicas + 1))
    before = [turn("sentence", texts.SENTENCE, count).calls for count in counts]
    speed = measured(before)
    comparisons = []
    for count in streams:
        found = [turn("pair", texts.PAIR, count) for _ in range(turns)]
        segments = segment_seconds(found[0].calls[0])
        comparisons.append(Comparison(simulated(speed, count, segments), real(found)))
    return speed, comparisons


def simulated(speed: PodSpeed, count: int, segments: Sequence[float]) -> Round:
    """So many streams of these segments (seconds of audio) on one pod."""
    time = Time()
    pod = Pod(time, DeadlinePolicy, speed.totals, speed.first_audio_seconds)
    calls = [pod.call(0.0, segments) for _ in range(count)]
    ends = [0.0] * count

    def over(number: int) -> None:
        ends[number] = time.now

    for number, call in enumerate(calls):
        call.on_over = partial(over, number)
    time.run()
    streams = (
        Stream(ended, call.heard_at or 0.0, call.silence_seconds)
        for ended, call in zip(ends, calls, strict=True)
    )
    return Round(_in_order(streams), sum(segments))


def real(turns: Sequence[Turn]) -> Round:
    """The turns as one: of the first stream to end the mean over turns, and so on. Turns that
    others disturbed are left out, unless all were."""
    kept = [turn for turn in turns if turn.is_quiet] or list(turns)
    orders = [
        _in_order(Stream(heard.wall, heard.first_audio, heard.silence) for heard in turn.heard)
        for turn in kept
    ]
    mean = statistics.fmean
    streams = tuple(
        Stream(
            mean(stream.ended for stream in same),
            mean(stream.first_audio for stream in same),
            mean(stream.silence for stream in same),
        )
        for same in zip(*orders, strict=True)
    )
    audio = mean(turn.audio / turn.streams for turn in kept)
    return Round(streams, audio, max(turn.others_cores for turn in kept))


def segment_seconds(call: Call) -> list[float]:
    """Audio of each segment of a call that tells them."""
    return [
        sum(a.seconds for a in call.arrivals if segment.began_at < a.at <= segment.ended_at)
        for segment in call.segments
    ]


def table(comparisons: Sequence[Comparison]) -> str:
    """Markdown; a star where other programs disturbed every turn."""
    head = (
        "streams | | speed | first to end | last | first audio median | worst | silence median | "
        "worst"
    )
    lines = [f"| {head} |", "| ---: | --- |" + " ---: |" * 7]
    for each in comparisons:
        noisy = "*" if each.real.others_cores >= machine.NOISY_CORES else ""
        name = f"{len(each.real.streams)}{noisy}"
        lines.append(f"| {name} | simulated | {_cells(each.simulated)} |")
        lines.append(f"| | measured | {_cells(each.real)} |")
        lines.append(
            f"| | error | {each.speed_error:+.1%} | ends: {each.end_error:.1%} | | "
            + " | ".join(_differences(each))
            + " |"
        )
    speed = max(abs(each.speed_error) for each in comparisons)
    ends = max(each.end_error for each in comparisons)
    return "\n".join([*lines, f"\ngreatest error: speed {speed:.1%}, ends {ends:.1%}"])


def _values(found: Round) -> tuple[float, float, float, float]:
    first = [stream.first_audio for stream in found.streams]
    silence = [stream.silence for stream in found.streams]
    return statistics.median(first), max(first), statistics.median(silence), max(silence)


def _cells(found: Round) -> str:
    first, first_worst, silence, silence_worst = _values(found)
    return (
        f"{found.speed:.2f}x | {found.streams[0].ended:.2f} s | {found.streams[-1].ended:.2f} s | "
        f"{first * 1000:.0f} ms | {first_worst * 1000:.0f} ms | {silence:.2f} s | "
        f"{silence_worst:.2f} s"
    )


def _differences(each: Comparison) -> list[str]:
    ours, theirs = _values(each.simulated), _values(each.real)
    more = [one - other for one, other in zip(ours, theirs, strict=True)]
    return [f"{m * 1000:+.0f} ms" for m in more[:2]] + [f"{m:+.2f} s" for m in more[2:]]


def _in_order(streams: Iterable[Stream]) -> tuple[Stream, ...]:
    return tuple(sorted(streams, key=lambda stream: stream.ended))


def _replicas(address: str) -> int:
    with grpc.insecure_channel(address) as channel:
        stub = status_pb2_grpc.StatusServiceStub(channel)
        answer = stub.GetCapacity(status_pb2.GetCapacityRequest(), timeout=10)
    return int(answer.capacity.replicas_total)
