"""Starting worker processes: forked from a process that has the model loaded, where possible."""

import asyncio
import contextlib
import multiprocessing
import os
import select
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.context import BaseContext
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from typing import TypeVar

from intone_server.workers import making, process, reading, wire
from intone_server.workers.loading import FRONT_PID_VARIABLE, PRELOAD_VARIABLE, WorkerSpec
from intone_server.workers.messages import Command, Report

T = TypeVar("T")

# Most that waits unread here. A message may be longer: it is taken out of the pipe in pieces.
_READ_LIMIT_BYTES = 1 << 20
# What the pipe does not take at once is copied; so much takes far less than a millisecond.
_WRITE_BYTES = 1 << 18


class WorkerLink:
    """The front's end of a running worker process."""

    def __init__(
        self, child: BaseProcess, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._child = child
        self._reader = reader
        self._writer = writer
        self.pid = child.pid

    def send(self, command: Command) -> None:
        """Queue a command. Never blocks; a dead worker's are lost, and `receive` tells of it."""
        if not self._writer.is_closing():
            self._writer.write(wire.encode(command))

    async def deliver(self, command: Command) -> None:
        """Send a command of many megabytes without holding up the event loop.

        Raises OSError if the worker has gone.
        """
        for part in wire.encode_in_parts(command):
            for start in range(0, len(part), _WRITE_BYTES):
                self._writer.write(memoryview(part)[start : start + _WRITE_BYTES])
                await self._writer.drain()

    async def receive(self) -> Report | None:
        """The next report; None once the worker has gone."""
        return await wire.read_report(self._reader)

    @property
    def is_gone(self) -> bool:
        """Whether the worker's end is closed, of which `receive` tells a moment later."""
        if self._writer.is_closing():
            return True
        poll = select.poll()
        poll.register(self._writer.get_extra_info("socket").fileno(), 0)
        return bool(poll.poll(0))  # a hang-up needs not be asked for

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self._child.kill()

    async def close(self, grace_seconds: float) -> int | None:
        """Wait for the process to end, killing it after the grace, and return its exit code."""
        await asyncio.to_thread(self._child.join, grace_seconds)
        if self._child.is_alive():
            self._child.kill()
            await asyncio.to_thread(self._child.join)
        code = self._child.exitcode
        self._child.close()
        self._writer.close()
        return code


class Launcher:
    """Starts workers of one kind, and processes that decode what callers send.

    On Linux they are forked from a fork server, which is exec'd (so it may start after gRPC) and
    loads the model once: workers share its memory and start in well under a second. Elsewhere each
    worker loads its own.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
        self.replicas = spec.replicas  # of workers that are still to be started
        self._forks = sys.platform == "linux"
        self._context: BaseContext = multiprocessing.get_context(
            "forkserver" if self._forks else "spawn"
        )
        if self._forks:
            self._context.set_forkserver_preload(["intone_server.workers.preload"])
        self._one_at_a_time = asyncio.Lock()

    async def launch(self) -> WorkerLink:
        """Start a worker. The first call waits until the model is loaded.

        Raises OSError or EOFError if the process could not be started.
        """
        return await self._launch(process.run, "intone-worker")

    async def launch_maker(self) -> WorkerLink:
        """Start a process that makes one voice. Raises OSError or EOFError as `launch` does."""
        return await self._launch(making.run, "intone-voice")

    async def launch_reader(self) -> WorkerLink:
        """Start a process that reads audio. Raises OSError or EOFError as `launch` does."""
        return await self._launch(reading.run, "intone-audio")

    async def _launch(
        self, target: Callable[[socket.socket, WorkerSpec], None], name: str
    ) -> WorkerLink:
        if self._forks:
            self._ensure_fork_server()
        async with self._one_at_a_time:
            ours, theirs = socket.socketpair()
            try:
                child = await _in_daemon_thread(lambda: self._start(theirs, target, name))
                reader, writer = await asyncio.open_connection(sock=ours, limit=_READ_LIMIT_BYTES)
            except BaseException:
                ours.close()
                raise
        return WorkerLink(child, reader, writer)

    def _ensure_fork_server(self) -> None:
        """On this thread, which lives as long as the process: the kernel ends the fork server with
        the thread that started it (see workers/preload.py)."""
        os.environ[PRELOAD_VARIABLE] = self._spec.to_json()
        os.environ[FRONT_PID_VARIABLE] = str(os.getpid())
        try:
            ensure_running()
        finally:
            del os.environ[PRELOAD_VARIABLE], os.environ[FRONT_PID_VARIABLE]

    def _start(
        self, pipe: socket.socket, target: Callable[[socket.socket, WorkerSpec], None], name: str
    ) -> BaseProcess:
        with pipe:
            child: BaseProcess = self._context.Process(  # type: ignore[attr-defined]
                target=target,
                args=(pipe, replace(self._spec, replicas=self.replicas)),
                name=name,
                daemon=True,
            )
            child.start()
        return child


async def _in_daemon_thread(function: Callable[[], T]) -> T:
    """Like asyncio.to_thread, but does not hold up the exit of the program: starting the first
    worker waits for the model, which may be minutes of download."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            outcome: tuple[T | None, BaseException | None] = (function(), None)
        except Exception as error:  # noqa: BLE001 - handed on to the caller
            outcome = (None, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is waiting
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="launch", daemon=True).start()
    return await future
