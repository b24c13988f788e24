"""Starting worker processes: forked from a process that has the model loaded, where possible."""

import asyncio
import multiprocessing
import os
import socket
import sys
from multiprocessing.context import BaseContext
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess

from intone_server.workers import process, wire
from intone_server.workers.loading import PRELOAD_VARIABLE, WorkerSpec
from intone_server.workers.messages import Command, Report

# Longest message of a worker is one output of an engine: a sentence of tens of seconds at most.
_READ_LIMIT_BYTES = 1 << 20


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

    async def receive(self) -> Report | None:
        """The next report; None once the worker has gone."""
        return await wire.read_report(self._reader)

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
    """Starts workers of one kind.

    On Linux they are forked from a fork server, which is exec'd (so it may start after gRPC) and
    loads the model once: workers share its memory and start in well under a second. Elsewhere each
    worker loads its own.
    """

    def __init__(self, spec: WorkerSpec) -> None:
        self._spec = spec
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
        ours, theirs = socket.socketpair()
        try:
            async with self._one_at_a_time:
                child = await asyncio.to_thread(self._start, theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=_READ_LIMIT_BYTES)
        return WorkerLink(child, reader, writer)

    def _start(self, pipe: socket.socket) -> BaseProcess:
        if self._forks:
            os.environ[PRELOAD_VARIABLE] = self._spec.to_json()
            try:
                ensure_running()
            finally:
                del os.environ[PRELOAD_VARIABLE]
        child: BaseProcess = self._context.Process(  # type: ignore[attr-defined]
            target=process.run, args=(pipe, self._spec), name="intone-worker", daemon=True
        )
        child.start()
        return child
