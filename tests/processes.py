"""Servers as processes, for tests."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psutil
from grpc_health.v1 import health_pb2, health_pb2_grpc

TESTS = Path(__file__).parent
# What these tests import, wherever it is from.
PATHS = os.pathsep.join([str(TESTS), *(str(Path(each).resolve()) for each in sys.path)])
START_SECONDS = 60.0


@dataclass
class ServerProcess:
    """A running server: its address, its process, and what it wrote."""

    address: str
    process: subprocess.Popen[str]
    stderr: Path
    engine_log: Path

    def logs(self) -> list[dict[str, Any]]:
        """Its log lines."""
        lines = self.stderr.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def steps(self) -> int:
        """How many steps its fake engine has made."""
        text = self.engine_log.read_text() if self.engine_log.exists() else ""
        return text.count("step ")

    def starts(self) -> int:
        """How many generations its fake engine has begun."""
        text = self.engine_log.read_text() if self.engine_log.exists() else ""
        return text.count("start ")

    def workers(self) -> list[psutil.Process]:
        """Its worker processes: children of the fork server, which is a child of the front."""
        front = psutil.Process(self.process.pid)
        return [
            child for parent in front.children() for child in parent.children() if is_alive(child)
        ]

    def is_serving(self, name: str = "readiness") -> bool:
        """Its health under one name."""
        with grpc.insecure_channel(self.address) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            try:
                response = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=2)
            except grpc.RpcError:
                return False
            return bool(response.status == health_pb2.HealthCheckResponse.SERVING)

    def wait_until_ready(self) -> None:
        """Return when it is ready; fails if it is not in a minute."""
        wait_for(lambda: self.process.poll() is not None or self.is_serving(), START_SECONDS)
        assert self.process.poll() is None, self.stderr.read_text()

    def stop(self, number: int = signal.SIGTERM, timeout: float = 40.0) -> int:
        """Signal it and wait for its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout)


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; it may end while one looks."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Any, seconds: float = 10.0, every: float = 0.02) -> None:
    """Return when `condition()` is true; fails if it does not become so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "condition not met in time"
        time.sleep(every)


@contextlib.contextmanager
def running_server(
    *flags: str, ready: bool = True, environment: dict[str, str] | None = None
) -> Iterator[ServerProcess]:
    """A server with these flags on a free port. It is stopped at the end, and must leave no
    process behind."""
    with tempfile.TemporaryDirectory() as directory:
        server = start_server(Path(directory), *flags, environment=environment)
        try:
            family = [server.process.pid]
            if ready:
                server.wait_until_ready()
                family += [
                    p.pid for p in psutil.Process(server.process.pid).children(recursive=True)
                ]
            yield server
            if server.process.poll() is None:
                assert server.stop() == 0, server.stderr.read_text()
            wait_for(lambda: not any(map(psutil.pid_exists, family)))
        finally:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
            assert server.process.stdout is not None
            server.process.stdout.close()


def start_server(
    directory: Path, *flags: str, environment: dict[str, str] | None = None
) -> ServerProcess:
    """Start a server and return once it has said where it listens."""
    stderr = directory / "stderr.log"
    engine_log = directory / "engine.log"
    with stderr.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, str(TESTS / "fake_server.py"), "--listen", "127.0.0.1:0", *flags],
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            start_new_session=True,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("INTONE_")},
                "PYTHONPATH": PATHS,
                "FAKE_ENGINE_LOG": str(engine_log),
                "HF_HUB_OFFLINE": "1",
                **(environment or {}),
            },
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    address = line.removeprefix("listening on ").strip()
    return ServerProcess(address, process, stderr, engine_log)
