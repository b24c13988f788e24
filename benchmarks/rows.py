"""Several generations at a time on one set of weights: milliseconds per step, and total speed.

The bare library speaks a sentence alone, then 1, 2, 4, 8 rows speak it at once, all in this
process. A turn is a whole sentence for every row, begun together; one that other programs disturb
is done again, up to TRIES times.

    python -m benchmarks.rows CONFIG VOICE [--quantize] [--rows 1,2,4,8] [--turns 3] [--threads 1]
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil
import torch

from benchmarks.machine import QUIET_CORES, TRIES, Patience
from benchmarks.texts import SENTENCE
from intone_server.engines.base import EngineOptions, Job, Sampling, VoiceRef
from intone_server.engines.pocket import PocketEngine
from intone_server.workers.process import THREAD_SWITCH_SECONDS

# Steps at the beginning of a turn that do not count: texts are read in them.
FIRST_STEPS = 10
PATIENCE_SECONDS = 240.0


@dataclass
class Turn:
    """What one turn took; times of steps in milliseconds of wall time and of the thread's CPU."""

    audio: list[Any]
    rate: int
    first_ms: float
    seconds: float = 0.0
    cpu: float = 0.0
    others_cores: float = 0.0
    times: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    @property
    def audio_seconds(self) -> float:
        return sum(map(len, self.audio)) / self.rate


class Watch:
    """Times the calls of a function."""

    def __init__(self, owner: Any, name: str) -> None:
        self.times: list[tuple[float, float]] = []
        self._function: Callable[..., Any] = getattr(owner, name)
        setattr(owner, name, self)

    def __call__(self, *arguments: Any) -> Any:
        started, cpu = time.perf_counter(), time.thread_time()
        result = self._function(*arguments)
        took = time.perf_counter() - started, time.thread_time() - cpu
        self.times.append((took[0] * 1000, took[1] * 1000))
        return result


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("voice")
    parser.add_argument("--quantize", action="store_true")
    parser.add_argument("--rows", default="1,2,4,8")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-library", action="store_true")
    arguments = parser.parse_args()
    rows = [int(number) for number in arguments.rows.split(",")]
    engine = PocketEngine()
    engine.load(
        EngineOptions(
            model=arguments.config,
            voices=(("noise", arguments.voice),),
            default_voice="noise",
            quantize=arguments.quantize,
        )
    )
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    engine.attach(max(rows))
    torch.set_num_threads(arguments.threads)
    watches = {
        "flow": Watch(engine._rows._flow, "step"),
        "begin": Watch(engine._rows._decoding._rows, "begin"),
        "finish": Watch(engine._rows._decoding._rows, "finish"),
        "step": Watch(engine, "step"),
    }
    patience = Patience(PATIENCE_SECONDS)
    print(
        "| rows | flow (CPU) | decoder, all rows | one row | step "
        "| CPU / audio | first audio | speed |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    if not arguments.no_library:
        _library(engine)
        alone = [_measured(lambda: _library(engine), {}, patience) for _ in range(arguments.turns)]
        _tell("library", alone)
    for number in rows:
        _rows(engine, number)
        turns = [
            _measured(lambda number=number: _rows(engine, number), watches, patience)
            for _ in range(arguments.turns)
        ]
        _tell(str(number), turns)
        if not arguments.no_library:
            difference = max(np.abs(one - alone[0].audio[0]).max() for one in turns[0].audio)
            print(f"greatest difference of a sample: {difference:.1e}", file=sys.stderr)


def _tell(name: str, turns: list[Turn]) -> None:
    quiet = [turn for turn in turns if turn.others_cores < QUIET_CORES] or turns
    median = statistics.median
    cells = [name]
    for watched in ("flow", "begin", "finish", "step"):
        times = [pair for turn in quiet for pair in turn.times.get(watched, [])[FIRST_STEPS:]]
        wall, cpu = zip(*times, strict=True) if times else ((0.0,), (0.0,))
        cells.append(f"{median(wall):.1f} ({median(cpu):.1f}) ms")
    cells.append(f"{median(turn.cpu / turn.audio_seconds for turn in quiet):.2f}")
    cells.append(f"{median(turn.first_ms for turn in quiet):.0f} ms")
    cells.append(f"{median(turn.audio_seconds / turn.seconds for turn in quiet):.2f}x")
    others = max(turn.others_cores for turn in quiet)
    print(f"| {' | '.join(cells)} | others: {others:.2f} cores, {len(quiet)} turns", flush=True)


def _measured(speak: Callable[[], Turn], watches: dict[str, Watch], patience: Patience) -> Turn:
    """The quietest of up to TRIES turns."""
    found: list[Turn] = []
    while True:
        patience.wait()
        for watch in watches.values():
            watch.times = []
        busy, cpu, started = _busy_seconds(), time.process_time(), time.perf_counter()
        turn = speak()
        turn.seconds = time.perf_counter() - started
        turn.cpu = time.process_time() - cpu
        turn.others_cores = (_busy_seconds() - busy - turn.cpu) / turn.seconds
        turn.times = {name: watch.times for name, watch in watches.items()}
        found.append(turn)
        if (
            turn.others_cores < QUIET_CORES
            or len(found) == TRIES
            or not patience.spend(turn.seconds)
        ):
            return min(found, key=lambda one: one.others_cores)


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)


def _library(engine: PocketEngine) -> Turn:
    """One turn of `generate_audio_stream`."""
    model = engine._model
    model.temp = 0.0
    with engine._voices.use(VoiceRef("noise")) as voice:
        started = time.perf_counter()
        stream = model.generate_audio_stream(voice.state, SENTENCE)
        audio = [next(stream)]
        first_ms = (time.perf_counter() - started) * 1000
        samples = torch.cat([*audio, *stream]).numpy()
    return Turn([samples], model.sample_rate, first_ms)


def _rows(engine: PocketEngine, rows: int) -> Turn:
    """One turn of so many rows; the first audio is that of the first."""
    started = time.perf_counter()
    for number in range(rows):
        engine.start(Job(number, SENTENCE, VoiceRef("noise"), Sampling(temperature=0.0), 0))
    audio: list[list[Any]] = [[] for _ in range(rows)]
    running, first_ms = rows, 0.0
    while running:
        for output in engine.step():
            if output.samples is not None:
                audio[output.generation_id].append(output.samples)
                first_ms = first_ms or (time.perf_counter() - started) * 1000
            running -= output.ending is not None
    return Turn([np.concatenate(one) for one in audio], engine._model.sample_rate, first_ms)


if __name__ == "__main__":
    main()
