"""The worker process: one inference thread owns the model, a reader and a writer own the pipe.

The main thread is the inference thread. It alone touches the engine, except for
`Engine.load_voice`, which may wait for the network and has a thread of its own.
"""

import faulthandler
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import structlog

from intone_server.engines.base import (
    NOT_FINITE,
    Ending,
    Engine,
    EngineError,
    EngineInfo,
    Job,
    Output,
    Sampling,
    VoiceRef,
)
from intone_server.logs import configure_logging
from intone_server.workers import wire
from intone_server.workers.loading import WorkerSpec, loaded_engine
from intone_server.workers.messages import (
    Audio,
    Cancel,
    Command,
    Failed,
    Finished,
    Generate,
    LoadVoice,
    Ready,
    Released,
    Report,
    Stop,
    Unusable,
    VoiceLoaded,
)

log = structlog.stdlib.get_logger("intone.worker")

# A frame passes from the decoder's thread through this process's two threads to the pipe, beside a
# thread that generates the next one. At Python's 5 ms each of those steps may wait so long.
THREAD_SWITCH_SECONDS = 0.0005

# Spoken once before the first caller: it pages in the weights and fills every lazy cache.
WARM_UP_TEXT = "Ready."


def run(pipe: socket.socket, spec: WorkerSpec) -> None:
    """Entry point of the process. Returns when the front says Stop; exits when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # see workers/preload.py
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if spec.debug_signal:  # in C, so also while Python waits for the model
        faulthandler.register(signal.SIGUSR2, all_threads=True)
    configure_logging(spec.log_format)
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    worker = Worker(pipe)
    try:
        engine, info = _bring_up(spec)
    except EngineError as error:
        worker.close(Unusable(str(error), expected=True))
    except Exception:  # noqa: BLE001 - the front decides what to do, and must hear of it
        worker.close(Unusable(traceback.format_exc(), expected=False))
    else:
        worker.serve(engine, info)


def _bring_up(spec: WorkerSpec) -> tuple[Engine, EngineInfo]:
    """The engine, attached and warmed up."""
    engine = loaded_engine(spec)
    info = engine.attach(spec.replicas)
    job = Job(0, WARM_UP_TEXT, VoiceRef(info.default_voice), Sampling(), seed=0)
    engine.start(job)
    spoken = 0
    while True:
        for output in engine.step():
            spoken += 0 if output.samples is None else len(output.samples)
            if spoken:
                job.stop.set()  # by now everything was used once
            if output.ending is Ending.FAILED or (output.ending and not spoken):
                raise RuntimeError(f"the warm-up segment failed: {output.error or 'no audio'}")
            if output.ending:
                return engine, info


class Worker:
    """The command loop around an engine."""

    def __init__(self, pipe: socket.socket) -> None:
        self._pipe = pipe
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._reports: queue.SimpleQueue[Report | None] = queue.SimpleQueue()
        self._jobs: dict[int, Job] = {}  # made by the reader, so that a Cancel never comes early
        self._running: set[int] = set()
        self._writer = threading.Thread(target=self._write, name="writer", daemon=True)
        self._writer.start()

    def close(self, last: Report | None = None) -> None:
        """Send what is queued, then `last`, and return."""
        if last is not None:
            self._reports.put(last)
        self._reports.put(None)
        self._writer.join()

    def serve(self, engine: Engine, info: EngineInfo) -> None:
        """Run the model for the front until it says Stop."""
        fetcher = ThreadPoolExecutor(1, thread_name_prefix="voice-fetch")
        threading.Thread(
            target=self._read, args=(engine, fetcher), name="reader", daemon=True
        ).start()
        self._reports.put(Ready(info, engine.capacity, dict(engine.speeds)))
        code = 0
        try:
            while self._obey(engine):
                for output in engine.step():
                    self._report(output)
        except Exception:
            # The engine cannot go on: the front replaces this process, which is quick and sure.
            log.exception("worker failed")
            code = 1
        self.close()
        # Not a plain return: threads of the model library may be alive, and ending the
        # interpreter under them aborts the process.
        os._exit(code)

    def _obey(self, engine: Engine) -> bool:
        """Carry out the commands that have come; wait for one if nothing runs. False on Stop."""
        while True:
            try:
                command = self._commands.get(block=not self._running)
            except queue.Empty:
                return True
            match command:
                case Generate(generation_id=generation_id):
                    # The scheduler enforces one generation per replica; this is the last line.
                    assert len(self._running) < engine.capacity, "no free replica"
                    self._running.add(generation_id)
                    engine.start(self._jobs[generation_id])
                case Stop():
                    return False

    def _report(self, output: Output) -> None:
        generation_id = output.generation_id
        job = self._jobs[generation_id]
        if output.samples is not None and not job.stop.is_set():
            samples = np.ascontiguousarray(output.samples, dtype=np.float32)
            if np.isfinite(samples).all():
                self._reports.put(Audio(generation_id, samples.tobytes()))
            else:
                job.stop.set()
                self._reports.put(Failed(generation_id, NOT_FINITE))
        if output.ending is None:
            return
        self._running.discard(generation_id)
        del self._jobs[generation_id]
        if output.ending is Ending.FAILED:
            self._reports.put(Failed(generation_id, output.error))
        else:
            self._reports.put(Finished(generation_id, output.ending))
        self._reports.put(Released(generation_id))

    def _read(self, engine: Engine, fetcher: ThreadPoolExecutor) -> None:
        """Reader thread: a Cancel takes effect here, whatever the inference thread is doing."""
        while (command := wire.receive_command(self._pipe)) is not None:
            match command:
                case Generate():
                    self._jobs[command.generation_id] = Job(
                        command.generation_id,
                        command.text,
                        command.voice,
                        command.sampling,
                        command.seed,
                        command.ahead_seconds,
                    )
                    self._commands.put(command)
                case Cancel(generation_id=generation_id):
                    job = self._jobs.get(generation_id)
                    if job is not None:
                        job.stop.set()
                case LoadVoice(voice=voice):
                    fetcher.submit(self._load_voice, engine, voice)
                case Stop():
                    for job in list(self._jobs.values()):
                        job.stop.set()
                    self._commands.put(command)
        # The front is gone, perhaps killed. Nobody is left to work for or to report to.
        os._exit(0)

    def _load_voice(self, engine: Engine, voice: VoiceRef) -> None:
        try:
            self._reports.put(VoiceLoaded(voice.key, engine.load_voice(voice)))
        except Exception as error:  # noqa: BLE001 - network libraries raise what they like
            self._reports.put(VoiceLoaded(voice.key, None, str(error)))

    def _write(self) -> None:
        """Writer thread: a slow front never holds up the model."""
        while (report := self._reports.get()) is not None:
            try:
                self._pipe.sendall(wire.encode(report))
            except OSError:
                return  # the reader sees the same end and exits the process
