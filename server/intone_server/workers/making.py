"""A process that makes one voice out of an upload, and ends.

It is not one of the workers, so no stream waits for it, and what a hostile file does to a decoder
happens to nobody else. Nothing is written to disk.
"""

import os
import socket
import threading

import structlog

from intone_server.audio import Samples
from intone_server.audio.containers import BadRecording
from intone_server.audio.recording import PromptReport, read_recording
from intone_server.engines.base import BadState, CloningUnavailable, Engine
from intone_server.workers import confinement, wire
from intone_server.workers.loading import WorkerSpec, loaded_engine
from intone_server.workers.messages import MakeVoice, Refusal, VoiceMade, VoiceRefused

log = structlog.stdlib.get_logger("intone.worker")

# Address space on top of what is mapped at the start. The full-size model takes 1.3 GB of it for a
# recording of 30 s.
MEMORY_BYTES = 2 << 30
# The same takes 10 to 20; what takes so long is stuck.
CPU_SECONDS = 60


def run(pipe: socket.socket, spec: WorkerSpec) -> None:
    """Entry point of the process: answers one MakeVoice and exits.

    Exit code 0, or 1 after a fault that is in the log.
    """
    confinement.enter(spec.log_format)
    code = 0
    try:
        engine = loaded_engine(spec)
        command = wire.receive_command(pipe)
        if isinstance(command, MakeVoice):
            threading.Thread(target=_end_with, args=(pipe,), name="reader", daemon=True).start()
            confinement.limit_memory(MEMORY_BYTES)
            confinement.limit_cpu(CPU_SECONDS)
            pipe.sendall(wire.encode(_make(engine, command)))
    except Exception:
        log.exception("making a voice failed")
        code = 1
    # Not a plain return: see workers/process.py.
    os._exit(code)


def _make(engine: Engine, upload: MakeVoice) -> VoiceMade | VoiceRefused:
    try:
        if upload.state:
            return VoiceMade(engine.check_state(upload.state), None)
        prompt, report = _read(upload)
        return VoiceMade(engine.make_state(prompt), report)
    except BadRecording as error:
        return VoiceRefused(Refusal.BAD_AUDIO, str(error))
    except BadState as error:
        return VoiceRefused(Refusal.BAD_STATE, str(error))
    except CloningUnavailable as error:
        return VoiceRefused(Refusal.CLONING_UNAVAILABLE, str(error))


def _read(upload: MakeVoice) -> tuple[Samples, PromptReport]:
    try:
        with confinement.quiet():
            return read_recording(upload.prompt, upload.sample_rate_hertz)
    except MemoryError as error:
        raise BadRecording(confinement.TOO_MUCH_MEMORY) from error


def _end_with(pipe: socket.socket) -> None:
    """Thread: the front sends no second message, so whatever comes is the end of the stream."""
    wire.receive_command(pipe)
    os._exit(0)
