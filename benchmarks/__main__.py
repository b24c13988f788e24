"""Command line: builds the model if it is not there, measures, reports. See docs/performance.md."""

import argparse
import contextlib
import datetime
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import dialogue, encoding, footprint, machine, report, speed, variants, voices
from benchmarks.launch import running_bare, running_intone, running_pocket_serve
from benchmarks.model import ModelFiles
from benchmarks.plot import write_plot

RESULTS = Path(__file__).parent / "results"
PARTS = ("speed", "front", "idle", "cancel", "encoding", "voices", "variants", "dialogue")
# Measured only if they are asked for: they take long.
LONG_PARTS = ("variants", "dialogue")
IDLE_STREAMS = 1000
BUILD_SECONDS = 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; returns the exit code: 0, also if a goal was missed."""
    options = _parse(arguments)
    # As with Ctrl-C: leave every `with` block, so that nothing stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    files = _model()
    parts = ["int8" if options.int8 else "float32", *(options.only or ())]
    name = "-".join([*parts, *(["quick"] if options.quick else [])])
    started_at = time.monotonic()
    result: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "weights": "int8" if options.int8 else "float32",
        "workers": options.workers,
        "machine": machine.describe(),
        **_measure(options, files),
        "seconds": round(time.monotonic() - started_at),
    }
    rows, goals = result["rows"], result["goals"]
    tables = result.pop("tables")
    path = RESULTS / f"{name}.json"
    report.write_json(
        path, {**result, "rows": [*map(asdict, rows)], "goals": [*map(asdict, goals)]}
    )
    print(f"\n{result['weights']} weights, {result['machine']}\n")
    disturbed = max((row.others_cores for row in rows), default=0.0)
    if disturbed >= machine.NOISY_CORES:
        print(f"Not to be trusted: other programs took up to {disturbed:.2f} cores.\n")
    if rows:
        print(report.table(rows), "\n")
        print(report.first_audio_table(result["first_audio"]), "\n")
        write_plot(path.with_suffix(".png"), rows, f"intone and pocket-tts, {name}")
    if goals:
        print(report.goals_table(goals), "\n")
    for variant in result["variants"]:
        print(variant)
    for table in tables:
        print(table, "\n")
    print(f"{result['seconds']} s; written to {path}")
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less than 2 minutes, less exact")
    parser.add_argument("--int8", action="store_true", help="int8 weights; default: float32")
    parser.add_argument(
        "--streams",
        default="1,2,4",
        type=lambda text: [int(part) for part in text.split(",")],
        help="numbers of streams at the same time (default 1,2,4)",
    )
    parser.add_argument("--workers", default=1, type=int, help="of the server (default 1)")
    parser.add_argument(
        "--only",
        choices=PARTS,
        action="append",
        help="measure only this; repeatable (default: all but variants and dialogue)",
    )
    parser.add_argument(
        "--patience",
        type=float,
        help="most seconds to spend on noise of other programs (default 45, quick 5)",
    )
    options = parser.parse_args(arguments)
    if not all(1 <= count <= 8 for count in [*options.streams, options.workers]):
        parser.error("--streams and --workers must be from 1 to 8")
    if options.patience is None:
        options.patience = 5.0 if options.quick else 45.0
    return options


def _model() -> ModelFiles:
    """In a process of its own: this one stays without torch."""
    directory = RESULTS / "model"
    files = ModelFiles.of(directory)
    if not files.exist():
        print("building the model, once", flush=True)
        command = [sys.executable, "-m", "benchmarks.model", str(directory)]
        subprocess.run(command, check=True, timeout=BUILD_SECONDS)
    return files


def _measure(options: argparse.Namespace, files: ModelFiles) -> dict[str, Any]:
    patience = machine.Patience(options.patience)
    turns: list[speed.Turn] = []
    first: dict[str, list[float]] = {}
    found: list[variants.Variant] = []
    startup = front = idle = cancel = None
    only = options.only or [part for part in PARTS if part not in LONG_PARTS]
    with contextlib.ExitStack() as stack:
        # The server first, alone, so that nothing disturbs its start.
        patience.wait()
        flags = ["--max-streams", str(IDLE_STREAMS + 100), "--idle-timeout-seconds", "600"]
        flags += ["--workers", str(options.workers)]
        intone, came_up = stack.enter_context(
            running_intone(files, RESULTS / "intone.log", int8=options.int8, flags=flags)
        )
        if "front" in only:
            startup, front = came_up, footprint.measure_front(intone.process)
        if {"speed", "variants"} & set(only):
            bare = stack.enter_context(
                running_bare(files, RESULTS / "library.log", int8=options.int8)
            )
        if "speed" in only:
            serve = stack.enter_context(
                running_pocket_serve(files, RESULTS / "serve.log", int8=options.int8)
            )
            chosen = speed.loads(options.streams, quick=options.quick)
            turns = speed.compare((bare, serve, intone), chosen, patience, _tell)
            first = speed.first_audio((bare, intone), 10 if options.quick else 40, patience)
        if "variants" in only:
            found = variants.measure_variants(bare, 3 if options.quick else 8, patience, _tell)
        if "cancel" in only:
            count = 3 if options.quick else 10
            cancel, _ = machine.quietest(
                intone.process, patience, lambda: footprint.measure_cancel(intone, count)
            )
        if "idle" in only:
            idle, _ = machine.quietest(
                intone.process, patience, lambda: footprint.measure_idle(intone, IDLE_STREAMS)
            )
    # After the servers, which would only disturb.
    formats = encoding.measure_encoding() if "encoding" in only else []
    made = voices.measure(files, int8=options.int8, tell=_tell) if "voices" in only else []
    scripts = (
        dialogue.measure(
            files, RESULTS, patience, int8=options.int8, quick=options.quick, tell=_tell
        )
        if "dialogue" in only
        else []
    )
    rows = report.summarise(turns)
    return {
        "rows": rows,
        "goals": report.speed_goals(turns, first)
        + report.footprint_goals(startup, front, idle, cancel),
        "startup": startup and asdict(startup),
        "front": front and asdict(front),
        "idle": idle and asdict(idle),
        "cancel": cancel and asdict(cancel),
        "variants": [*map(asdict, found)],
        "encoding": [*map(asdict, formats)],
        "voices": [*map(asdict, made)],
        "dialogue": [*map(asdict, scripts)],
        "tables": [
            *([encoding.table(formats)] if formats else []),
            *([voices.table(made)] if made else []),
            *([dialogue.table(scripts)] if scripts else []),
        ],
        "turns": [*map(asdict, turns)],
        "first_audio": first,
        "patience_spent_seconds": round(patience.spent_seconds, 1),
    }


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
