"""Starts the contenders and stops them again, whatever happens."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.contenders import INTONE, LOAD_SECONDS, Bare, Intone, PocketServe
from benchmarks.model import ModelFiles

STOP_SECONDS = 30.0
VOICE = "noise"


@dataclass(frozen=True, slots=True)
class Startup:
    """How the server came up. Seconds from the start of its process to its first answer to a
    health check, what that was, and to SERVING."""

    first_answer_seconds: float
    first_answer: str
    serving_seconds: float


@contextlib.contextmanager
def running_bare(files: ModelFiles, log: Path, *, int8: bool) -> Iterator[Bare]:
    """The bare library, loaded."""
    command = ["-m", "benchmarks.bare", str(files.config), str(files.voice)]
    with _running([*command, *_quantize(int8)], log) as process:
        bare = Bare(process)
        bare.wait_until_ready()
        yield bare


@contextlib.contextmanager
def running_pocket_serve(files: ModelFiles, log: Path, *, int8: bool) -> Iterator[PocketServe]:
    """`pocket-tts serve`, answering."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = ["-m", "pocket_tts", "serve", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--config", str(files.config), "--default-voice", str(files.voice)]
    with _running([*command, *_quantize(int8)], log, reads_output=False) as process:
        server = PocketServe(process, port)
        server.wait_until_ready()
        yield server


@contextlib.contextmanager
def running_intone(
    files: ModelFiles, log: Path, *, int8: bool, flags: Sequence[str], name: str = INTONE
) -> Iterator[tuple[Intone, Startup]]:
    """The server with more `flags`, ready; `name` is the contender's."""
    command = ["-m", "intone_server", "--listen", "127.0.0.1:0", "--model", str(files.config)]
    command += ["--voice", f"{VOICE}={files.voice}", "--default-voice", VOICE]
    started_at = time.monotonic()
    with _running([*command, *flags, *_quantize(int8)], log) as process:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("listening on ").strip()
        if not address:
            raise RuntimeError(f"the server did not start; see {log}")
        startup = _watch(address, started_at)
        with contextlib.closing(Intone(process, address, name)) as intone:
            yield intone, startup


def _quantize(int8: bool) -> list[str]:
    return ["--quantize"] if int8 else []


def _watch(address: str, started_at: float) -> Startup:
    """Ask for health until it is SERVING. Raises TimeoutError."""
    first_answer, first_answer_seconds = "", 0.0
    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        while (seconds := time.monotonic() - started_at) < LOAD_SECONDS:
            with contextlib.suppress(grpc.RpcError):
                response = stub.Check(health_pb2.HealthCheckRequest(), timeout=2)
                seconds = time.monotonic() - started_at
                status = health_pb2.HealthCheckResponse.ServingStatus.Name(response.status)
                if not first_answer:
                    first_answer, first_answer_seconds = status, seconds
                if status == "SERVING":
                    return Startup(first_answer_seconds, first_answer, seconds)
            time.sleep(0.05)
    raise TimeoutError("the server did not become ready; see its log")


@contextlib.contextmanager
def _running(
    command: list[str], log: Path, *, reads_output: bool = True
) -> Iterator[subprocess.Popen[str]]:
    """A Python process, ended at the end. Its stderr goes to `log`, and so does its stdout unless
    somebody `reads_output`."""
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if reads_output else file,
            stderr=file,
            text=True,
            start_new_session=True,
            env={k: v for k, v in os.environ.items() if not k.startswith("INTONE_")}
            | {"HF_HUB_OFFLINE": "1"},
        )
    with process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
