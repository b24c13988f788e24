"""Command line: builds the model if it is not there, measures, reports. See docs/performance.md."""

import argparse
import datetime
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import dialogue, encoding, gantt, goals, machine, plot, report, voices
from benchmarks.model import ModelFiles
from benchmarks.run import LONG_PARTS, OTHER_PARTS, PARTS, Measured, Options, measure

RESULTS = Path(__file__).parent / "results"
BUILD_SECONDS = 300.0
MOST_STREAMS = 32
# All calls are let in, so that all contenders speak the same. By itself the server would refuse
# those whose listeners it cannot keep fed.
INTONE_FLAGS = "--max-talking 64"
FIFO_FLAGS = f"--replicas 1 --scheduling fifo {INTONE_FLAGS}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; returns the exit code: 0, also if a goal was missed."""
    asked = _parse(arguments)
    # As with Ctrl-C: leave every `with` block, so that nothing stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    runs = [_options(asked, int8=int8) for int8 in _int8_or_not(asked)]
    for options in runs:
        _tell(f"{options.weights}: about {options.expected_seconds() / 60:.0f} minutes")
    files = _model()
    for options in runs:
        _run(options, files, asked)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--int8", action="store_true", help="int8 weights only")
    parser.add_argument(
        "--float32", action="store_true", help="float32 weights only (default: int8, then float32)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="about 5 minutes: streams 1, 4, 8, the short text, one turn each",
    )
    parser.add_argument(
        "--streams",
        type=lambda text: tuple(int(part) for part in text.split(",")),
        help="numbers of streams at the same time (default 1,2,4,8,16)",
    )
    parser.add_argument(
        "--gantt", default=8, type=int, metavar="STREAMS", help="in the Gantt chart (default 8)"
    )
    parser.add_argument(
        "--intone-flags",
        default=INTONE_FLAGS,
        help="more flags of the server as it chooses (default %(default)r)",
    )
    parser.add_argument(
        "--fifo-flags",
        default=FIFO_FLAGS,
        help="flags of the server that is compared with it (default %(default)r)",
    )
    parser.add_argument(
        "--only",
        choices=PARTS,
        action="append",
        help=f"measure only this; repeatable (default: all but {' and '.join(LONG_PARTS)})",
    )
    parser.add_argument(
        "--patience",
        type=float,
        help="most seconds to spend on noise of other programs (default 180, quick 10)",
    )
    asked = parser.parse_args(arguments)
    if asked.streams is None:
        asked.streams = (1, 4, 8) if asked.quick else (1, 2, 4, 8, 16)
    if not all(1 <= count <= MOST_STREAMS for count in asked.streams):
        parser.error(f"--streams must be from 1 to {MOST_STREAMS}")
    return asked


def _int8_or_not(asked: argparse.Namespace) -> list[bool]:
    """int8 first: the goals are about it."""
    if asked.int8 == asked.float32:
        return [True, False]
    return [asked.int8]


def _options(asked: argparse.Namespace, *, int8: bool) -> Options:
    left_out = {*LONG_PARTS, *(OTHER_PARTS if asked.quick else ())}
    patience = asked.patience
    if patience is None:
        patience = 10.0 if asked.quick else 180.0
    return Options(
        int8=int8,
        quick=asked.quick,
        parts=tuple(asked.only or [part for part in PARTS if part not in left_out]),
        streams=asked.streams,
        intone_flags=tuple(shlex.split(asked.intone_flags)),
        fifo_flags=tuple(shlex.split(asked.fifo_flags)),
        patience_seconds=patience,
    )


def _model() -> ModelFiles:
    """In a process of its own: this one stays without torch."""
    directory = RESULTS / "model"
    files = ModelFiles.of(directory)
    if not files.exist():
        _tell("building the model, once")
        command = [sys.executable, "-m", "benchmarks.model", str(directory)]
        subprocess.run(command, check=True, timeout=BUILD_SECONDS)
    return files


def _run(options: Options, files: ModelFiles, asked: argparse.Namespace) -> None:
    """Measure, print, and write JSON and plots."""
    name = "-".join([options.weights, *(asked.only or ()), *(["quick"] * options.quick)])
    date, started_at = datetime.datetime.now(datetime.UTC), time.monotonic()
    about = machine.describe()
    found = measure(options, files, RESULTS, _tell)
    rows = report.summarise(found.turns)
    reached = goals.speed_goals(found.turns, found.first_audio, promised=options.int8)
    reached += goals.footprint_goals(found.startup, found.front, found.idle, found.cancel)
    took = round(time.monotonic() - started_at)
    path = RESULTS / f"{name}.json"
    report.write_json(
        path,
        {
            "date": date.isoformat(timespec="seconds"),
            "seconds": took,
            "machine": about,
            "options": asdict(options),
            "goals": [*map(asdict, reached)],
            "rows": [*map(asdict, rows)],
            **asdict(found),
        },
    )
    _tell(f"\n{options.weights} weights, {about}\n")
    _print(found, rows, reached)
    for load in dict.fromkeys(row.load for row in rows):
        title = f"{options.weights}, text: {load}, {about['cores']} cores"
        of_load = [row for row in rows if row.load == load]
        plot.write_plot(RESULTS / f"{name}-{load}.png", of_load, title)
    if chosen := gantt.choose(found.turns, asked.gantt):
        title = f"{options.weights}, text: {chosen[0].load}, {about['cores']} cores"
        gantt.write_gantt(RESULTS / f"{name}-gantt.png", chosen, title)
    _tell(f"{took} s; written to {path} and plots beside it")


def _print(found: Measured, rows: Sequence[report.Row], reached: Sequence[goals.Goal]) -> None:
    if rows:
        _tell(report.table(rows) + "\n")
    if any(row.others_cores >= machine.NOISY_CORES for row in rows):
        _tell("* Not to be trusted: other programs disturbed every such turn.\n")
    if found.first_audio:
        _tell(report.first_audio_table(found.first_audio) + "\n")
    if reached:
        _tell(report.goals_table(reached) + "\n")
    for variant in found.variants:
        _tell(str(variant))
    if found.encoding:
        _tell(encoding.table(found.encoding) + "\n")
    if found.voices:
        _tell(voices.table(found.voices) + "\n")
    if found.dialogue:
        _tell(dialogue.table(found.dialogue) + "\n")


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
