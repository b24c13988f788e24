"""The command `intone`, run by a test."""

import asyncio
import os
import subprocess
import sys
from typing import Any, TypeAlias

import pytest

from intone_client.cli import main
from processes import PATHS

COMMAND = (sys.executable, "-m", "intone_client.cli")

Capture: TypeAlias = pytest.CaptureFixture[bytes]


class Command:
    """`intone` in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def result(self, stdin: bytes | None = None) -> tuple[int, bytes, str]:
        """Exit code, standard output, standard error."""
        async with asyncio.timeout(15):
            out, err = await self.process.communicate(stdin)
        assert self.process.returncode is not None
        assert b"Traceback" not in err, err.decode()
        return self.process.returncode, out, err.decode()


async def in_process(capture: Capture, *arguments: str) -> tuple[int, bytes, str]:
    """Exit code, standard output, standard error of `intone`, without the time to start it."""
    code = await asyncio.to_thread(main, arguments)
    out, err = capture.readouterr()
    return code, out, err.decode()


async def intone(*arguments: str, server: str | None = None, **options: Any) -> Command:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    environment.pop("INTONE_SERVER", None)
    environment["PYTHONPATH"] = PATHS
    if server is not None:
        environment["INTONE_SERVER"] = server
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE} | options
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, *arguments),
        stderr=subprocess.PIPE,
        env=environment,
        **options,
    )
    return Command(process)
