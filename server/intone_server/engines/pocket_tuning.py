"""How many generations at a time a machine can keep in real time, measured at start."""

import itertools
import os
import statistics
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from intone_server.engines.base import EngineInfo, Job, Sampling, VoiceRef

if TYPE_CHECKING:
    from intone_server.engines.pocket import PocketEngine

# Numbers of rows that are measured, up to the first that is too slow for real time.
ROWS = (1, 2, 4, 8, 16)
# The steps of each that are timed, after some that are not: they fill caches.
STEPS = 5
WARM_UP_STEPS = 2
# Texts are read, listeners come and go, other programs run: what is left over for that.
HEADROOM = 1.05
TEXT = "It takes so long to speak this sentence that all of the others are under way by then."


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measured_speeds(engine: "PocketEngine", info: EngineInfo) -> Mapping[int, float]:
    """Seconds of audio per second of all rows together, by how many there are."""
    jobs: list[Job] = []
    speeds: dict[int, float] = {}
    frame_seconds = engine.frame_samples / info.sample_rate_hertz
    for rows in ROWS:
        while len(jobs) < rows:
            # Nothing ends by itself meanwhile: the end of speech is out of reach.
            sampling = Sampling(eos_threshold=float("inf"))
            job = Job(-1 - len(jobs), TEXT, VoiceRef(info.default_voice), sampling, seed=0)
            jobs.append(job)
            engine.start(job)
            engine.step()
        for _ in range(WARM_UP_STEPS):
            engine.step()
        times = []
        for _ in range(STEPS):
            started_at = time.perf_counter()
            engine.step()
            times.append(time.perf_counter() - started_at)
        speeds[rows] = rows * frame_seconds / statistics.median(times)
        if speeds[rows] < rows * HEADROOM:
            break
    for job in jobs:
        job.stop.set()
    engine.step()
    return speeds


def chosen_replicas(speeds: Mapping[int, float]) -> int:
    """The most rows that are each spoken in real time, between the numbers that were measured."""
    chosen = 1
    known = sorted(speeds)
    for low, high in itertools.pairwise(known):
        for rows in range(low, high + 1):
            share = (rows - low) / (high - low)
            speed = speeds[low] + share * (speeds[high] - speeds[low])
            if speed >= rows * HEADROOM:
                chosen = rows
    return chosen
