"""SIGUSR2: where everything is, into the log, without stopping anything."""

import asyncio
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable

import structlog

from intone_server.rpc.calls import Call
from intone_server.scheduling.scheduler import Scheduler

log = structlog.stdlib.get_logger("intone.debug")

MAX_CALLS = 200  # that are listed


class Debugging:
    """Answers the signal with the state of the front; workers write their stacks to standard error
    by themselves (`workers/process.py`), also while the model steps."""

    def __init__(
        self,
        state: Callable[[], str],
        scheduler: Scheduler,
        open_calls: Callable[[], Iterable[Call]],
    ) -> None:
        self._state = state
        self._scheduler = scheduler
        self._open_calls = open_calls

    def listen(self) -> None:
        """From now on."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, self._on_signal)

    def _on_signal(self) -> None:
        now = time.monotonic()
        calls = list(self._open_calls())
        log.info(
            "where everything is",
            state=self._state(),
            calls=[_of_call(call, now) for call in calls[:MAX_CALLS]],
            more_calls=max(0, len(calls) - MAX_CALLS),
            waiting={p.name.lower(): count for p, count in self._scheduler.waiting.items()},
            workers=[
                {
                    "pid": worker.pid,
                    "silent_seconds": round(worker.silent_seconds, 2),
                    "replicas": [
                        {
                            "state": replica.state.value,
                            "generation": replica.running_id,
                            "seconds": None
                            if replica.generation is None
                            else round(now - replica.generation.started_at, 2),
                        }
                        for replica in worker.replicas
                    ],
                }
                for worker in self._scheduler.workers
            ],
            tasks=Counter(_name(task) for task in asyncio.all_tasks()),
            threads=[
                "".join(traceback.format_stack(frame)) for frame in sys._current_frames().values()
            ],
        )
        for worker in self._scheduler.workers:
            if worker.pid is not None:
                os.kill(worker.pid, signal.SIGUSR2)


def _of_call(call: Call, now: float) -> dict[str, object]:
    return {
        "request_id": call.request_id,
        "rpc": call.method,
        "seconds": round(now - call.started_at, 2),
        "speaks": call.speaks,
    }


def _name(task: "asyncio.Task[object]") -> str:
    """By what it runs, not which one it is."""
    coroutine = task.get_coro()
    return getattr(coroutine, "__qualname__", None) or type(coroutine).__name__
