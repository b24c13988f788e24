"""What the metrics show of a running server, read where it may be read."""

import asyncio
import concurrent.futures
import contextlib
import time
from collections.abc import Callable

from intone_server import __version__
from intone_server.engines.base import EngineInfo
from intone_server.metrics import Metrics, Snapshot
from intone_server.scheduling.admission import Admission
from intone_server.scheduling.replica import ReplicaState
from intone_server.scheduling.scheduler import Scheduler

LAG_EVERY_SECONDS = 0.5
# A scrape waits no longer than that for the event loop; then it shows what was so before.
SCRAPE_SECONDS = 2.0


class Scrapes:
    """Takes snapshots on the event loop, for a thread that scrapes."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._loop = asyncio.get_running_loop()
        self._last = snapshot()

    def take(self) -> Snapshot:
        """The state now, or the last that could be had."""
        taken: concurrent.futures.Future[Snapshot] = concurrent.futures.Future()

        def take_on_loop() -> None:
            try:
                taken.set_result(self._snapshot())
            except Exception as error:  # noqa: BLE001 - the scrape is to say so
                taken.set_exception(error)

        try:
            self._loop.call_soon_threadsafe(take_on_loop)
        except RuntimeError:  # the loop has ended
            return self._last
        with contextlib.suppress(TimeoutError):
            self._last = taken.result(SCRAPE_SECONDS)
        return self._last


def snapshot_of(
    scheduler: Scheduler,
    admission: Admission,
    *,
    buffered_seconds: float,
    voices: tuple[int, int],
    info: EngineInfo | None,
) -> Snapshot:
    """The state of a server. `voices` are the created ones in memory and their bytes; `info` is of
    its engine, if that is known."""
    states = [replica.state for replica in scheduler.replicas()]
    build = {}
    if info is not None:
        build = {
            "version": __version__,
            "engine": info.engine,
            "engine_version": info.engine_version,
            "model": info.model,
        }
    return Snapshot(
        streams={"talking": admission.talking, "quiet": admission.open - admission.talking},
        waiting={priority.name.lower(): count for priority, count in scheduler.waiting.items()},
        work_seconds=scheduler.outlook.work_seconds(),
        replicas={
            state.value: states.count(state)
            for state in ReplicaState
            if state is not ReplicaState.STOPPED
        },
        buffered_seconds=buffered_seconds,
        voice_states=voices[0],
        voice_state_bytes=voices[1],
        draining=admission.draining,
        build=build,
    )


async def watch_loop(metrics: Metrics) -> None:
    """Measure how much too late the event loop is, for ever."""
    while True:
        due_at = time.monotonic() + LAG_EVERY_SECONDS
        await asyncio.sleep(LAG_EVERY_SECONDS)
        metrics.event_loop_lag.observe(max(0.0, time.monotonic() - due_at))
