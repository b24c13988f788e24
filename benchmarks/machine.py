"""What processes use of this machine, and whether it is quiet enough to measure."""

import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import psutil

# Above this, in cores, what others do is more than noise.
QUIET_CORES = 0.15
# A measurement with more than this for others is tried again, up to TRIES times in all.
NOISY_CORES = 0.25
TRIES = 3

Result = TypeVar("Result")


def family(process: psutil.Process) -> list[psutil.Process]:
    """A process and all its descendants that are alive."""
    return [process, *process.children(recursive=True)]


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time of a process and all its descendants."""
    return sum(map(own_cpu_seconds, family(process)))


def own_cpu_seconds(process: psutil.Process) -> float:
    """User and system time of one process."""
    times = process.cpu_times()
    return float(times.user + times.system)


def resident_bytes(process: psutil.Process) -> int:
    """Resident memory of one process."""
    return int(process.memory_info().rss)


def proportional_bytes(process: psutil.Process) -> int:
    """Proportional memory (PSS) of a process and its descendants: shared pages count once."""
    total = 0
    for member in family(process):
        for line in Path(f"/proc/{member.pid}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def has_mapped(process: psutil.Process, library: str) -> bool:
    """Whether a shared library whose path contains `library` is loaded in this process."""
    return library in Path(f"/proc/{process.pid}/maps").read_text("utf-8")


def _busy_and_stolen() -> tuple[float, float]:
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq, times.steal


class Meter:
    """A context manager that measures CPU while it is open.

    Afterwards: `seconds` of wall time; `cpu` seconds of the contender and its descendants, of which
    `first_cpu` are those of its first process alone; `others_cores`, the mean number of cores taken
    by processes that are neither the contender nor this benchmark, time stolen by the hypervisor
    included.
    """

    def __init__(self, contender: psutil.Process) -> None:
        self._contender = contender
        self.seconds = self.cpu = self.first_cpu = self.others_cores = 0.0

    @property
    def is_quiet(self) -> bool:
        """Whether others did not disturb it."""
        return self.others_cores < NOISY_CORES

    def _read(self) -> tuple[float, float, float, float, float]:
        own = time.process_time()
        cpu, first = cpu_seconds(self._contender), own_cpu_seconds(self._contender)
        return (time.monotonic(), cpu, first, own, sum(_busy_and_stolen()))

    def __enter__(self) -> Self:
        self._before = self._read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        seconds, cpu, first, own, busy = (
            after - before for after, before in zip(self._read(), self._before, strict=True)
        )
        self.seconds, self.cpu, self.first_cpu = seconds, cpu, first
        self.others_cores = max(0.0, busy - cpu - own) / seconds


class Patience:
    """Time, `seconds` in total, that may be spent on other people's noise: on waiting for it to
    end, and on turns that it spoiled."""

    def __init__(self, seconds: float) -> None:
        self.left_seconds = seconds
        self.spent_seconds = 0.0

    def wait(self) -> None:
        """Return when others use less than QUIET_CORES, or when patience has run out."""
        while self.left_seconds > 0:
            started_at = time.monotonic()
            busy = psutil.cpu_percent(interval=0.5) / 100 * (psutil.cpu_count() or 1)
            if busy < QUIET_CORES:
                return
            if not self.spend(time.monotonic() - started_at):
                self.left_seconds = 0.0

    def spend(self, seconds: float) -> bool:
        """Take `seconds`; False, and nothing is taken, if there are not so many."""
        if seconds > self.left_seconds:
            return False
        self.left_seconds -= seconds
        self.spent_seconds += seconds
        return True


def quietest(
    process: psutil.Process, patience: Patience, measure: Callable[[], Result]
) -> tuple[Result, Meter]:
    """Measure, again if others disturb it, and return the quietest of up to TRIES results with the
    meter of `process` that ran meanwhile."""
    found: list[tuple[Result, Meter]] = []
    while True:
        patience.wait()
        with Meter(process) as meter:
            result = measure()
        found.append((result, meter))
        if meter.is_quiet or len(found) == TRIES or not patience.spend(meter.seconds):
            return min(found, key=lambda pair: pair[1].others_cores)


def describe() -> dict[str, Any]:
    """The machine and the versions that a result belongs to."""
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        if line.startswith("model name")
    ]
    packages = ("intone", "pocket-tts", "torch", "grpcio", "numpy")
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": psutil.cpu_count(),
        "memory_gigabytes": round(psutil.virtual_memory().total / 1e9, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }
