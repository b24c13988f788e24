"""How many generations at a time make the most audio, measured at start."""

import math
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from intone_server.engines.base import EngineError, Job, Sampling, VoiceRef

if TYPE_CHECKING:
    from intone_server.engines.pocket_rows import Rows

# Numbers of rows that are measured, up to the first that gains too little. On two cores 16 gain a
# tenth over eight, and measuring them takes longer than all others together.
ROWS = (1, 2, 4, 8)
# Twice the rows are worth it if all together make so many times the audio.
WORTH = 1.1
# The steps of each that are timed, after some that are not: they fill caches.
STEPS = 5
WARM_UP_STEPS = 2
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
TEXT = "It takes so long to speak this sentence that all of the others are under way by then."


def available_cores() -> int:
    """Cores that this process may use: by its affinity, and by the quota of its container, rounded
    up (https://docs.kernel.org/admin-guide/cgroup-v2.html, cpu.max)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = CPU_MAX.read_text().split()
        return min(cores or 1, max(1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # none, or "max"
        return cores or 1


def measured_speeds(running: "Rows", voice: str) -> Mapping[int, float]:
    """Seconds of audio per second of all rows together, by how many there are."""
    jobs: list[Job] = []
    speeds: dict[int, float] = {}
    for rows in ROWS:
        while len(jobs) < rows:
            # Nothing ends by itself meanwhile: the end of speech is out of reach.
            sampling = Sampling(eos_threshold=float("inf"))
            job = Job(-1 - len(jobs), TEXT, VoiceRef(voice), sampling, seed=0)
            jobs.append(job)
            running.start(job)
        while running.speaking < rows:
            if any(output.ending for output in running.step()):
                raise EngineError(f"--replicas: {rows} generations at a time do not run here")
        for _ in range(WARM_UP_STEPS):
            running.step()
        times = []
        for _ in range(STEPS):
            started_at = time.perf_counter()
            running.step()
            times.append(time.perf_counter() - started_at)
        speeds[rows] = rows * running.frame_seconds / statistics.median(times)
        if speeds[rows] < WORTH * speeds.get(rows // 2, 0.0):
            break
    for job in jobs:
        job.stop.set()
    running.step()
    return speeds


def chosen_replicas(speeds: Mapping[int, float]) -> int:
    """The most rows that were worth it. Whether listeners are kept fed is for admission to see to:
    rows that are not used cost nothing."""
    chosen = 1
    for rows in sorted(speeds):
        if speeds[rows] >= WORTH * speeds[chosen]:
            chosen = rows
    return chosen
