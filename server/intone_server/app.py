"""Builds the server from its settings and takes it through its life.

STARTING -> SERVING -> DRAINING -> STOPPED
"""

import asyncio
import contextlib
import enum
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import structlog

from intone_server import __version__, assembly
from intone_server.debugging import Debugging
from intone_server.engines.base import EngineInfo, EngineVoice, VoiceRef
from intone_server.errors import Reason, Unavailable
from intone_server.metrics import Metrics, Snapshot
from intone_server.observing import snapshot_of, watch_loop
from intone_server.ports import CannotListen, Ports
from intone_server.rpc.requests import ConfigReader
from intone_server.rpc.runtime import Runtime, Service
from intone_server.rpc.server import READY_NAMES, STARTUP, RpcServer
from intone_server.scheduling.admission import Admission, FixedLimit, MeasuredLimit
from intone_server.scheduling.deadline import DeadlinePolicy
from intone_server.scheduling.policy import FifoPolicy
from intone_server.scheduling.scheduler import Scheduler
from intone_server.scheduling.worker import SupervisedWorker, WorkerUnusable
from intone_server.settings import Settings
from intone_server.synthesis.inline_audio import AudioReader
from intone_server.transitions import change
from intone_server.voices.catalogue import Catalogue
from intone_server.voices.creation import VoiceCreator
from intone_server.voices.making import VoiceMaker
from intone_server.voices.memory import MemoryStore
from intone_server.workers.launch import Launcher
from intone_server.workers.loading import WorkerSpec

log = structlog.stdlib.get_logger("intone.app")

STREAMS_PER_REPLICA = 64  # most agents are silent most of the time
WATCHDOG_SECONDS = 1.0
# For the last events and statuses to leave after streams have been ended.
LAST_WORDS_SECONDS = 1.0


class ServerState(enum.Enum):
    """Where the server is in its life."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"
    STOPPED = "stopped"


_NEXT = {
    ServerState.STARTING: frozenset({ServerState.SERVING, ServerState.STOPPED}),
    ServerState.SERVING: frozenset({ServerState.DRAINING}),
    ServerState.DRAINING: frozenset({ServerState.STOPPED}),
}


class App:
    """The composition root: everything is built here and handed what it needs."""

    def __init__(self, settings: Settings, engines: Mapping[str, str]) -> None:
        self._settings = settings
        self._state = ServerState.STARTING
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._states = tempfile.TemporaryDirectory(prefix="intone-")
        self._metrics = Metrics()
        self._scheduler = Scheduler(
            FifoPolicy() if settings.scheduling == "fifo" else DeadlinePolicy(),
            metrics=self._metrics,
        )
        self._admission = Admission(
            lambda: settings.max_streams or STREAMS_PER_REPLICA * self._scheduler.replica_count,
            FixedLimit(settings.max_talking)
            if settings.max_talking
            else MeasuredLimit(
                lambda: self._scheduler.replica_count, self._scheduler.outlook.listeners
            ),
        )
        self._service = Service(
            scheduler=self._scheduler,
            admission=self._admission,
            session_limits=assembly.session_limits(settings),
            request_limits=assembly.request_limits(settings),
            metrics=self._metrics,
        )
        self._tracing = assembly.tracing(settings)
        self._server = RpcServer(
            self._service,
            assembly.access(settings),
            [self._tracing.watch] if self._tracing else [],
            describes_itself=settings.reflection,
            channelz=settings.channelz,
        )
        self._ports = Ports(
            settings,
            self._server,
            assembly.credentials(settings),
            self._metrics,
            self._snapshot,
        )
        self._admission.ready = self._is_ready
        self._admission.retry_after = self._scheduler.retry_after
        self._admission.on_change = self._changed
        self._scheduler.on_change = self._changed
        options = assembly.engine_options(settings, self._states.name)
        self._launcher = Launcher(
            WorkerSpec(
                engines[settings.engine],
                options,
                settings.log_format,
                settings.replicas,
                settings.debug_signal,
            )
        )
        self._capacity_changed = asyncio.Event()
        self._store = assembly.open_store(settings, Path(self._states.name))
        self._maker: VoiceMaker | None = None
        self._audio_reader = AudioReader(self._launcher.launch_reader)

    async def run(self) -> int:
        """Serve until a signal says stop. Returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        if self._settings.debug_signal:
            Debugging(
                lambda: self._state.value, self._scheduler, lambda: self._server.open_calls
            ).listen()
        helpers = [
            asyncio.create_task(self._watch_workers()),
            asyncio.create_task(self._keep_health()),
            asyncio.create_task(watch_loop(self._metrics)),
        ]
        try:
            try:
                told = await self._ports.open()
                with contextlib.suppress(OSError):  # nobody reads it, which is no reason to stop
                    print(f"listening on {told['address']}", flush=True)
                log.info("starting", version=__version__, engine=self._settings.engine, **told)
                if not await self._load():
                    return 0
            except (CannotListen, WorkerUnusable) as error:
                print(f"intone-server: {error}", file=sys.stderr)
                return 1
            await self._stop.wait()
            await self._drain()
            return 0
        finally:
            for helper in helpers:
                helper.cancel()
            await self._shut_down()

    async def _load(self) -> bool:
        """Start the workers and open for business. False if a signal came first."""
        started_at = time.monotonic()
        loading = asyncio.create_task(self._start_workers())
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not loading.done():
            loading.cancel()
            await asyncio.wait({loading})
            return False
        info = loading.result()
        self._service.runtime = self._runtime(info)
        self._become(ServerState.SERVING)
        self._admission.started = True
        await self._server.set_health(serving=True, names=(STARTUP,))
        self._changed()
        log.info(
            "serving",
            engine=info.engine,
            model=info.model,
            voice=info.default_voice,
            features=sorted(info.features),
            seconds=round(time.monotonic() - started_at, 2),
        )
        return True

    async def _start_workers(self) -> EngineInfo:
        """Start the first worker, which leaves its voice states for the others and finds out how
        many replicas are best, then those."""
        settings = self._settings
        for _ in range(settings.workers):
            worker = SupervisedWorker(
                self._launcher.launch,
                self._scheduler,
                stall_seconds=settings.stall_timeout_seconds,
                metrics=self._metrics,
            )
            self._scheduler.workers.append(worker)
            info = await worker.first_ready()
            self._launcher.replicas = len(worker.replicas)
        self._scheduler.sample_rate_hertz = info.sample_rate_hertz
        for busy, speed in self._scheduler.workers[0].speeds.items():
            self._scheduler.speed.learn(busy * settings.workers, speed * settings.workers)
        return info

    def _runtime(self, info: EngineInfo) -> Runtime:
        """What calls need of the loaded model."""
        settings = self._settings
        features = assembly.features(settings, info)
        if "voice_import" in features and not settings.voice_dir:
            log.info("created voices live in memory", hint="--voice-dir keeps and shares them")
        catalogue = Catalogue(info, self._store, self._load_voice, self._metrics)
        self._maker = VoiceMaker(self._launcher.launch_maker, info.sample_rate_hertz)
        return Runtime(
            info=info,
            features=features,
            config_reader=ConfigReader(
                info, max_text_delay_seconds=settings.max_text_delay_seconds
            ),
            audio_reader=self._audio_reader,
            catalogue=catalogue,
            creator=VoiceCreator(info, catalogue, self._store, self._maker, settings.max_voices),
        )

    async def _load_voice(self, voice: VoiceRef) -> EngineVoice:
        """By one worker: its files are then on this machine, and the others read them on use."""
        worker = next((w for w in self._scheduler.workers if w.is_ready), None)
        if worker is None:
            raise LookupError("no healthy worker")
        return await worker.load_voice(voice)

    def _snapshot(self) -> Snapshot:
        """What gauges show now."""
        runtime = self._service.runtime
        return snapshot_of(
            self._scheduler,
            self._admission,
            buffered_seconds=self._server.tts.buffered_seconds,
            voices=runtime.catalogue.in_memory if runtime else (0, 0),
            info=runtime.info if runtime else None,
        )

    def _become(self, state: ServerState) -> None:
        self._state = change(self._state, state, _NEXT)

    def _on_signal(self) -> None:
        """The first signal drains; a second one skips the wait."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    def _is_ready(self) -> bool:
        return self._state is ServerState.SERVING and self._scheduler.is_ready()

    def _changed(self) -> None:
        """The capacity, and readiness with it, may have changed."""
        self._server.status.changed()
        self._capacity_changed.set()

    async def _keep_health(self) -> None:
        """Tell health whenever readiness has changed."""
        told = False
        while True:
            await self._capacity_changed.wait()
            self._capacity_changed.clear()
            if self._is_ready() != told:
                told = not told
                await self._server.set_health(serving=told, names=READY_NAMES)

    async def _watch_workers(self) -> None:
        """Replace workers that are stuck."""
        while True:
            asleep_at = time.monotonic()
            await asyncio.sleep(WATCHDOG_SECONDS)
            # This process itself may have been frozen: what the workers said meanwhile waits.
            was_frozen = time.monotonic() - asleep_at > 2 * WATCHDOG_SECONDS
            for worker in self._scheduler.workers:
                worker.touch() if was_frozen else worker.check()

    async def _drain(self) -> None:
        """Readiness down, new calls refused, open streams finish; after the timeout, end them."""
        self._become(ServerState.DRAINING)
        self._admission.draining = True
        self._changed()
        timeout = self._settings.drain_timeout_seconds
        log.info("draining", open_streams=self._admission.open, timeout_seconds=timeout)
        self._server.tts.drain(timeout)
        await self._wait_for_calls(timeout)
        if self._open_calls:
            log.warning("drain timeout", open_streams=self._admission.open)
            await self._audio_reader.stop()
            if self._maker is not None:
                await self._maker.stop()
            self._server.tts.end_all(
                Unavailable(Reason.DRAINING, "the server is shutting down", retry_after=1.0)
            )
            self._hurry.clear()
            await self._wait_for_calls(LAST_WORDS_SECONDS)

    @property
    def _open_calls(self) -> int:
        """Streams, and voices that are being made."""
        return self._admission.open + self._server.voices.open_creations

    async def _wait_for_calls(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while self._open_calls and not self._hurry.is_set() and time.monotonic() < deadline:
            await asyncio.sleep(0.02)

    async def _shut_down(self) -> None:
        """Stop in the order in which things depend on each other."""
        self._become(ServerState.STOPPED)
        self._admission.draining = True
        await self._ports.close()
        await asyncio.gather(*(worker.stop() for worker in self._scheduler.workers))
        await self._audio_reader.stop()
        if self._maker is not None:
            await self._maker.stop()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)
        if isinstance(self._store, MemoryStore):
            self._store.close()
        self._states.cleanup()
        log.info("stopped")


async def serve(settings: Settings, engines: Mapping[str, str]) -> int:
    """Run a server until a signal stops it. `engines` maps names to "package.module:Class".

    Returns the exit code: 0 after a drain, 1 if it could not start.
    """
    try:
        app = App(settings, engines)
    except assembly.Unusable as error:
        print(f"intone-server: {error}", file=sys.stderr)
        return 1
    return await app.run()
