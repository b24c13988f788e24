"""One worker under supervision: started, listened to, watched, and replaced when it is lost."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import structlog

from intone_server.engines.base import EngineInfo, EngineVoice, VoiceRef
from intone_server.metrics import Metrics
from intone_server.scheduling.replica import Replica, ReplicaState
from intone_server.workers.launch import WorkerLink
from intone_server.workers.messages import (
    Audio,
    Failed,
    Finished,
    LoadVoice,
    Ready,
    Released,
    Report,
    Stop,
    Unusable,
    VoiceLoaded,
)

log = structlog.stdlib.get_logger("intone.scheduling")

# A worker that keeps dying before it is ready is restarted ever more slowly, so that a broken
# machine is not busy with nothing but restarts.
FIRST_RESTART_SECONDS = 0.05
LAST_RESTART_SECONDS = 10.0
# How long a worker may take to stop a generation (one step) and exit.
STOP_SECONDS = 2.0
# How long a replacement may take until it is ready: the model is in memory already, so that is a
# warm-up segment and the operator's voices.
REPLACE_SECONDS = 60.0


class WorkerUnusable(Exception):
    """A worker could not start. `expected`: the operator can mend it, and the message says how."""

    def __init__(self, message: str, *, expected: bool) -> None:
        super().__init__(message)
        self.expected = expected


class WorkerEvents(Protocol):
    """Who is told what happens in a worker."""

    def on_report(self, replica: Replica, report: Audio | Finished | Failed) -> None:
        """About the generation of this replica."""

    def on_idle(self) -> None:
        """A replica can take a generation."""

    def on_lost(self, replicas: list[Replica]) -> None:
        """The worker of these replicas is gone; `lost()` has not been called on them yet."""


class SupervisedWorker:
    """Keeps one worker process alive until `stop`."""

    def __init__(
        self,
        launch: Callable[[], Awaitable[WorkerLink]],
        events: WorkerEvents,
        *,
        stall_seconds: float,
        metrics: Metrics | None = None,
    ) -> None:
        self._launch = launch
        self._events = events
        self._stall_seconds = stall_seconds
        self.replicas = [Replica()]
        self.speeds: Mapping[int, float] = {}  # as its engine measured them at start
        self._metrics = metrics or Metrics()
        self._was_ready = False  # the present process
        self._stalled = False
        self._link: WorkerLink | None = None
        self._heard_at = 0.0
        self._voices: dict[str, asyncio.Future[EngineVoice]] = {}
        self._first: asyncio.Future[EngineInfo] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._supervise(), name="worker-supervisor")

    async def first_ready(self) -> EngineInfo:
        """Wait until the first process is ready. Raises WorkerUnusable if it cannot start."""
        return await asyncio.shield(self._first)

    @property
    def is_ready(self) -> bool:
        """Whether generations can run here now."""
        return any(r.state in (ReplicaState.IDLE, ReplicaState.BUSY) for r in self.replicas)

    @property
    def pid(self) -> int | None:
        """Of the process; None while it is being replaced."""
        return self._link.pid if self._link else None

    @property
    def silent_seconds(self) -> float:
        """Since anything was heard of it."""
        return time.monotonic() - self._heard_at

    async def load_voice(self, voice: VoiceRef) -> EngineVoice:
        """Make a voice ready here, and its files on this machine.

        Callers at the same time share one load. Raises LookupError with the worker's reason.
        """
        if self._link is None:
            raise LookupError("the worker is being replaced")
        if voice.key not in self._voices:
            self._voices[voice.key] = asyncio.get_running_loop().create_future()
            self._link.send(LoadVoice(voice))
        return await asyncio.shield(self._voices[voice.key])

    def check(self) -> None:
        """Kill the process if a busy replica has been silent for too long. Called every second."""
        if self._link is None or not self._first.done():
            return
        busy = any(r.state is ReplicaState.BUSY for r in self.replicas)
        allowed = self._stall_seconds if busy else REPLACE_SECONDS
        silent_seconds = time.monotonic() - self._heard_at
        if (busy or not self._was_ready) and silent_seconds > allowed:
            log.error("worker stalled", pid=self._link.pid, silent_seconds=round(silent_seconds, 1))
            self._stalled = True
            self._link.kill()

    def touch(self) -> None:
        """Silence counts from now: a generation was sent, or nobody could listen."""
        self._heard_at = time.monotonic()

    async def stop(self) -> None:
        """End the process: nicely, then not."""
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._first.done():
            self._first.cancel()
        for voice in self._voices.values():
            voice.cancel()
        for replica in self.replicas:
            replica.stopped()
        if self._link is not None:
            self._link.send(Stop())
            await self._link.close(STOP_SECONDS)

    async def _supervise(self) -> None:
        pause = FIRST_RESTART_SECONDS
        while True:
            try:
                self._link = await self._launch()
                self._heard_at = time.monotonic()
                await self._listen(self._link)
            except (OSError, EOFError) as error:
                self._give_up(f"a worker process could not be started: {error!r}", expected=False)
            except Exception:
                # A fault on our side of the pipe: a new process is the way back to a known state.
                log.exception("supervision failed")
            try:
                self._events.on_lost(self.replicas)
            except Exception:
                log.exception("supervision failed")
            for voice in self._voices.values():
                voice.set_exception(LookupError("the worker was lost"))
                voice.exception()  # seen here: its callers may all have left
            self._voices.clear()
            link, self._link = self._link, None
            if link is not None:
                link.kill()
                code = await link.close(STOP_SECONDS)
                if self._was_ready:
                    log.error("worker lost", pid=link.pid, exit_code=code)
                if self._first.done():  # else the server ends, for it cannot start
                    reason = "stalled" if self._stalled else "exited"
                    self._metrics.worker_restarts.labels(reason).inc()
            self._give_up("the worker process died while it was starting", expected=False)
            pause = FIRST_RESTART_SECONDS if self._was_ready else 2 * pause
            self._was_ready = self._stalled = False
            await asyncio.sleep(min(pause, LAST_RESTART_SECONDS))
            for replica in self.replicas:
                replica.replaced()

    async def _listen(self, link: WorkerLink) -> None:
        """Handle the worker's reports until it is gone."""
        while (report := await link.receive()) is not None:
            self._heard_at = time.monotonic()
            match report:
                case Ready():
                    self._on_ready(link, report)
                case Unusable():
                    if self._first.done():  # else the app says it, and exits
                        log.error("worker cannot start", error=report.message)
                    self._give_up(report.message, expected=report.expected)
                case VoiceLoaded():
                    self._on_voice(link, report)
                case Released():
                    self._on_released(report)
                case Audio() | Finished() | Failed():
                    self._on_generation(report)

    def _give_up(self, message: str, *, expected: bool) -> None:
        """Fail `first_ready`. Without effect once the worker has been ready."""
        if not self._first.done():
            self._first.set_exception(WorkerUnusable(message, expected=expected))

    def _on_ready(self, link: WorkerLink, ready: Ready) -> None:
        self._was_ready = True
        self.replicas += [Replica() for _ in range(ready.replicas - len(self.replicas))]
        self.speeds = self.speeds or ready.speeds
        log.info("worker ready", pid=link.pid, replicas=ready.replicas)
        if not self._first.done():
            self._first.set_result(ready.info)
        for replica in self.replicas:
            replica.ready(link)
            self._events.on_idle()

    def _on_voice(self, link: WorkerLink, loaded: VoiceLoaded) -> None:
        waiting = self._voices.pop(loaded.key)
        if loaded.voice is None:
            log.warning("voice not loaded", pid=link.pid, voice=loaded.key, error=loaded.message)
            waiting.set_exception(LookupError(loaded.message))
            waiting.exception()  # seen here: its callers may all have left
        else:
            waiting.set_result(loaded.voice)

    def _replica_of(self, report: Report) -> Replica | None:
        generation_id = getattr(report, "generation_id", None)
        return next((r for r in self.replicas if r.running_id == generation_id), None)

    def _on_released(self, report: Released) -> None:
        replica = self._replica_of(report)
        if replica is not None:
            replica.released()
            self._events.on_idle()

    def _on_generation(self, report: Audio | Finished | Failed) -> None:
        replica = self._replica_of(report)
        if replica is not None and replica.generation is not None:
            self._events.on_report(replica, report)
        elif isinstance(report, Audio):
            self._metrics.stale_audio.inc()
