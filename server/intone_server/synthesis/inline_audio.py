"""From the audio of a caller to samples, in a process of its own."""

import asyncio
import contextlib
import math
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import structlog

from intone_server.audio import Samples
from intone_server.audio.encoding import Encoding
from intone_server.errors import (
    InternalError,
    IntoneError,
    Overloaded,
    Reason,
    TimedOut,
    Unavailable,
)
from intone_server.workers import confinement, reading
from intone_server.workers.launch import WorkerLink
from intone_server.workers.messages import AudioRead, AudioRefused, ReadAudio

log = structlog.stdlib.get_logger("intone.synthesis")

# One process takes up to half a gigabyte.
MAX_READING = 2
# Each of them holds what its caller sent, up to the longest message.
MAX_WAITING = 8
# Of one call: the first, and another after each sound that ended the one before.
MAX_PROCESSES = 4
# Ten minutes of stereo Opus take 10 s of one core, of which busy streams may leave a quarter.
TIMEOUT_SECONDS = 60.0
# What a call takes, roughly: when the next in line will have been served.
RETRY_SECONDS = 1.0
# How long a process may take to exit after it has closed its pipe.
EXIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Sound:
    """A file if `encoding` is None; otherwise mono samples without a header at `rate_hertz`."""

    data: bytes = field(repr=False)
    encoding: Encoding | None = None
    rate_hertz: int = 0


class AudioReader:
    """Reads the sounds of MAX_READING calls at a time; others wait in order, up to MAX_WAITING.

    `launch` starts a process that reads audio. `timeout_seconds` is for all sounds of a call, from
    when its turn has come.
    """

    def __init__(
        self,
        launch: Callable[[], Awaitable[WorkerLink]],
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._launch = launch
        self._timeout_seconds = timeout_seconds
        self._turns = asyncio.Semaphore(MAX_READING)
        self._waiting = 0
        self._running: set[_Processes] = set()
        self._stopped = False

    async def read(
        self, sounds: Sequence[Sound], to_hertz: int, *, max_seconds: float
    ) -> list[Samples | str]:
        """Of each sound its samples at `to_hertz` (see `read_audio`), or what is wrong with it, for
        the caller.

        The list ends early, with what is wrong, at a sound that brings all to more than
        `max_seconds`, and at the one that ends the last of MAX_PROCESSES processes. Raises
        Overloaded, Unavailable, TimedOut or InternalError. A caller that is cancelled ends the
        process at once.
        """
        if not sounds:
            return []
        async with self._turn(), self._processes() as processes:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    return await _read_all(processes, sounds, to_hertz, max_seconds)
            except TimeoutError as error:
                log.warning("reading audio took too long", sounds=len(sounds))
                raise TimedOut(
                    Reason.SEGMENT_TIMEOUT,
                    f"the audio was not read within {self._timeout_seconds:g} s; "
                    "the server may be busy",
                    retry_after=RETRY_SECONDS,
                ) from error

    async def stop(self) -> None:
        """End what runs; whoever waits gets Unavailable."""
        self._stopped = True
        for processes in self._running:
            processes.stop()
        while self._running or self._waiting:
            await asyncio.sleep(0.01)

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= MAX_WAITING:
            raise Overloaded(
                Reason.QUEUE_FULL,
                f"the audio of {self._waiting} other calls is waiting to be read, "
                f"{MAX_WAITING} may wait",
                retry_after=self._waiting * RETRY_SECONDS / MAX_READING,
            )
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            if self._stopped:
                raise _shutting_down()
            yield
        finally:
            self._turns.release()

    @contextlib.asynccontextmanager
    async def _processes(self) -> AsyncIterator["_Processes"]:
        processes = _Processes(self._launch)
        self._running.add(processes)
        try:
            yield processes
        finally:
            try:
                await asyncio.shield(processes.close())
            finally:
                self._running.discard(processes)


class _Processes:
    """The process that reads for one call, and a fresh one when a sound has ended it."""

    def __init__(self, launch: Callable[[], Awaitable[WorkerLink]]) -> None:
        self._launch = launch
        self._link: WorkerLink | None = None
        self._stopped = False
        #: How many have ended on a sound.
        self.ended = 0

    async def read(self, sound: ReadAudio) -> Samples | str:
        """Its samples, or what is wrong with it. Raises Unavailable or InternalError."""
        if self._link is None:
            self._link = await self._start()
        link = self._link
        answer = await _ask(link, sound)
        if answer is not None:
            return answer
        self._link = None
        code = await asyncio.shield(link.close(EXIT_SECONDS))
        if self._stopped:
            raise _shutting_down()
        self.ended += 1
        log.warning("a process that read audio died", pid=link.pid, exit_code=code)
        return _fault(code)

    def stop(self) -> None:
        """The server shuts down: read nothing more."""
        self._stopped = True
        if self._link is not None:
            self._link.kill()

    async def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._link is not None:
            self._link.kill()
            await self._link.close(EXIT_SECONDS)

    async def _start(self) -> WorkerLink:
        try:
            link = await self._launch()
        except (OSError, EOFError) as error:
            log.exception("no process to read audio in")
            raise Unavailable(
                Reason.NO_REPLICA, "audio cannot be read here now", retry_after=RETRY_SECONDS
            ) from error
        if self._stopped:  # meanwhile
            link.kill()
        return link


async def _read_all(
    processes: _Processes, sounds: Sequence[Sound], to_hertz: int, max_seconds: float
) -> list[Samples | str]:
    """See `AudioReader.read`."""
    results: list[Samples | str] = []
    samples = 0
    for sound in sounds:
        result = await processes.read(
            ReadAudio(sound.data, sound.encoding, sound.rate_hertz, to_hertz)
        )
        if not isinstance(result, str):
            samples += len(result)
            if samples > max_seconds * to_hertz:
                seconds = math.ceil(100 * samples / to_hertz) / 100
                results.append(
                    f"brings the audio of this call to {seconds:.2f} s, "
                    f"allowed are up to {max_seconds:g} s"
                )
                break
        results.append(result)
        if processes.ended >= MAX_PROCESSES:
            break
    return results


async def _ask(link: WorkerLink, sound: ReadAudio) -> Samples | str | None:
    """The process's answer; None if it ended without one."""
    try:
        await link.deliver(sound)
    except OSError:
        return None
    samples = bytearray()
    while True:
        match await link.receive():
            case AudioRead(samples=part, more=more):
                samples += part
                if not more:
                    return np.frombuffer(samples, np.float32)
            case AudioRefused(message=message):
                return message
            case _:
                return None


def _fault(code: int | None) -> str:
    """What is wrong with a sound that ended its process. Raises InternalError if nothing is."""
    if code == reading.OUT_OF_MEMORY:
        return confinement.TOO_MUCH_MEMORY
    if code == -signal.SIGXCPU:
        return (
            f"decoding this recording takes more than {reading.CPU_SECONDS} s of a processor, "
            "more than a recording should"
        )
    if code in (reading.GONE, reading.FAULT):
        raise InternalError
    return "the recording cannot be decoded: the decoder crashed on it"


def _shutting_down() -> IntoneError:
    return Unavailable(Reason.DRAINING, "the server is shutting down", retry_after=RETRY_SECONDS)
