"""Full load for a long time: no lost sample, no leak. `make soak`, or `python tests/soak.py`.

The server speaks with a tiny real pocket-tts model at temperature 0, so that each segment has to
sound as it did when it was spoken alone. Prints the figures as JSON, and exits with 1 if anything
was wrong.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import psutil

from intone.v1 import status_pb2
from intone.v1.status_pb2_grpc import StatusServiceStub
from processes import ServerProcess, running_server, wait_for
from soak_callers import Caller, Tally, options, speak_alone
from tiny_pocket import make_tiny_pocket

# Callers without pauses: twice as many as there are replicas, so that segments always wait.
REPLICAS, CALLERS = 4, 8
EVERY_SECONDS = 1.0
# Before that, allocators and caches grow to what the load needs.
WARM_UP_SHARE = 0.25
# Flat, after warm-up: half of what is measured against the other half.
MOST_GROWTH = 0.05
MEBIBYTE = 1 << 20


@dataclass
class Samples:
    """Of the server's processes, once in EVERY_SECONDS."""

    seconds: list[float] = field(default_factory=list)
    bytes: dict[str, list[int]] = field(default_factory=dict)  # by process
    busy: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)

    def figures(self, process: str) -> dict[str, float]:
        """Memory of a process after warm-up: its level, its trend, and its growth."""
        first = int(len(self.seconds) * WARM_UP_SHARE)
        at, level = np.array(self.seconds[first:]), np.array(self.bytes[process][first:])
        slope = np.polyfit(at, level, 1)[0]
        early, late = (float(np.median(half)) for half in np.array_split(level, 2))
        return {
            "median_mib": round(float(np.median(level)) / MEBIBYTE, 1),
            "slope_mib_per_hour": round(slope * 3600 / MEBIBYTE, 2),
            "growth_between_halves": round(late / early - 1, 4),
        }


def watch(server: ServerProcess, over: threading.Event) -> Samples:
    """Sample until `over` is set."""
    samples, began_at = Samples(), time.monotonic()
    front = psutil.Process(server.process.pid)
    (worker,) = server.workers()
    processes = {"front": front, "worker": worker}
    with grpc.insecure_channel(server.address, options()) as channel:
        status = StatusServiceStub(channel)
        while not over.wait(EVERY_SECONDS):
            samples.seconds.append(time.monotonic() - began_at)
            for name, process in processes.items():
                samples.bytes.setdefault(name, []).append(process.memory_info().rss)
            samples.descriptors.append(front.num_fds())
            samples.threads.append(front.num_threads())
            now = status.GetCapacity(status_pb2.GetCapacityRequest()).capacity
            samples.busy.append(now.replicas_busy)
    return samples


def load(server: ServerProcess, minutes: float) -> tuple[Tally, Samples]:
    """Callers at full load, for so long."""
    reference = speak_alone(server.address)
    tally, over = Tally(), threading.Event()
    callers = [
        threading.Thread(target=Caller(server.address, reference, tally, over, seed).run)
        for seed in range(CALLERS)
    ]
    for caller in callers:
        caller.start()
    timer = threading.Timer(minutes * 60, over.set)
    timer.start()
    samples = watch(server, over)
    for caller in callers:
        caller.join()
    return tally, samples


def left_open(server: ServerProcess) -> int:
    """Streams, busy replicas and waiting segments that nobody has a use for."""
    with grpc.insecure_channel(server.address, options()) as channel:
        status = StatusServiceStub(channel)

        def left() -> int:
            now = status.GetCapacity(status_pb2.GetCapacityRequest()).capacity
            return now.open_streams + now.replicas_busy + now.queue_depth

        wait_for(lambda: not left(), 30)
        return left()


def soak(minutes: float) -> dict[str, Any]:
    """The figures; `faults` is empty if all is well."""
    with tempfile.TemporaryDirectory() as folder:
        flags = [*make_tiny_pocket(Path(folder)).flags(), "--replicas", str(REPLICAS)]
        with running_server(*flags, "--max-talking", str(4 * CALLERS)) as server:
            tally, samples = load(server, minutes)
            left = left_open(server)
            errors = [x["event"] for x in server.logs() if x["level"] in ("error", "critical")]
    memory = {name: samples.figures(name) for name in samples.bytes}
    faults = tally.faults[:20] + [f"logged: {each}" for each in errors[:20]]
    for name, figures in memory.items():
        if figures["growth_between_halves"] > MOST_GROWTH:
            faults.append(f"the {name} grew by {figures['growth_between_halves']:.1%}")
    return {
        "minutes": minutes,
        "callers": CALLERS,
        "replicas": REPLICAS,
        "calls": dict(sorted(tally.calls.items())),
        "segments_checked": tally.segments_checked,
        "audio_hours_checked": round(tally.samples_checked / 24_000 / 3600, 2),
        "largest_difference": tally.largest_difference,
        "mean_busy_replicas": round(float(np.mean(samples.busy)), 2),
        "memory": memory,
        "memory_mib_each_minute": {
            name: [round(b / MEBIBYTE, 1) for b in taken[:: int(60 / EVERY_SECONDS)]]
            for name, taken in samples.bytes.items()
        },
        "descriptors_first_and_last": [samples.descriptors[0], samples.descriptors[-1]],
        "threads_first_and_last": [samples.threads[0], samples.threads[-1]],
        "left_open": left,
        "faults": faults,
    }


def main() -> int:
    """Exit code: 0 if all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--output", type=Path, help="write the figures there too")
    arguments = parser.parse_args()
    figures = soak(arguments.minutes)
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text + "\n")
    return int(bool(figures["faults"]))


if __name__ == "__main__":
    sys.exit(main())
