"""A process that turns audio of callers into samples, one sound after the other.

It needs no model. As when a voice is made (workers/making.py), no stream waits for it, and what a
hostile file does to a decoder happens to nobody else. Nothing is written to disk.
"""

import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator

import structlog

from intone_server.audio.containers import BadRecording, wav_around
from intone_server.audio.recording import read_audio
from intone_server.workers import confinement, wire
from intone_server.workers.loading import WorkerSpec
from intone_server.workers.messages import AudioRead, AudioRefused, ReadAudio

log = structlog.stdlib.get_logger("intone.worker")

# Address space on top of what is mapped at the start. The longest recording at the highest rate
# takes 300 MB of it.
MEMORY_BYTES = 512 << 20
# Of one sound. Two minutes take 0.2 s as WAV, 2 s as stereo Opus, and 12 s as Opus of 32 channels.
CPU_SECONDS = 20
# Of samples in one message. The front takes in a longer one at once, and all streams wait for it:
# 30 to 60 ms for two minutes.
PART_BYTES = 1 << 18

# Exit codes.
GONE, FAULT, OUT_OF_MEMORY = 0, 1, 12


def run(pipe: socket.socket, spec: WorkerSpec) -> None:
    """Entry point of the process: answers each ReadAudio in turn.

    Exit code GONE at the end of the stream, at any time; OUT_OF_MEMORY if a sound takes too much of
    it; FAULT after a fault that is in the log.
    """
    confinement.enter(spec.log_format)
    sounds: queue.SimpleQueue[ReadAudio] = queue.SimpleQueue()
    threading.Thread(
        target=_to_the_end, args=(lambda: _receive(pipe, sounds),), name="reader", daemon=True
    ).start()
    _to_the_end(lambda: _serve(pipe, sounds))


def _to_the_end(work: Callable[[], None]) -> None:
    """Do this, on any thread; the process ends with it."""
    code = GONE
    try:
        work()
    except MemoryError:
        code = OUT_OF_MEMORY
    except Exception:
        log.exception("reading audio failed")
        code = FAULT
    # Not a plain return: see workers/process.py.
    os._exit(code)


def _receive(pipe: socket.socket, sounds: queue.SimpleQueue[ReadAudio]) -> None:
    while (command := wire.receive_command(pipe)) is not None:
        assert isinstance(command, ReadAudio)
        sounds.put(command)


def _serve(pipe: socket.socket, sounds: queue.SimpleQueue[ReadAudio]) -> None:
    confinement.limit_memory(MEMORY_BYTES)
    while True:
        sound = sounds.get()
        confinement.limit_cpu(CPU_SECONDS)
        for answer in _read(sound):
            try:
                pipe.sendall(wire.encode(answer))
            except OSError:
                return  # the front is gone


def _read(sound: ReadAudio) -> Iterator[AudioRead | AudioRefused]:
    try:
        with confinement.quiet():
            data = sound.data
            if sound.encoding is not None:
                data = wav_around(data, sound.encoding, sound.from_hertz)
            samples = read_audio(data, sound.to_hertz).data.cast("B")
    except BadRecording as error:
        yield AudioRefused(str(error))
        return
    for start in range(0, len(samples), PART_BYTES):
        part = bytes(samples[start : start + PART_BYTES])
        yield AudioRead(part, more=start + PART_BYTES < len(samples))
