"""Three servers, two ways to spread calls over them, and callers who check every sample."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import grpc.aio
import numpy as np
import yaml
from dnslib import QTYPE, RR, A
from dnslib.server import BaseResolver, DNSServer

from intone.v1 import tts_pb2, tts_pb2_grpc
from processes import ServerProcess, start_server, wait_for
from test_synthesize import expected, samples

ENVOY_CONFIG = Path(__file__).parent.parent / "examples" / "envoy.yaml"
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
NAME = "intone-headless.voice.svc.cluster.local"
# As docs/clients.md publishes it, with health checks and a lid on the time between attempts.
SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "healthCheckConfig": {"serviceName": "readiness"},
    "methodConfig": [
        {
            "name": [{"service": "intone.v1.TextToSpeechService"}],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.2s",
                "maxBackoff": "5s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
            },
        }
    ],
}


def free_port() -> int:
    """One that nobody listens on, on any of the hosts."""
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))
        return int(probe.getsockname()[1])


class Fleet:
    """Three servers, each at an address that it keeps when it is started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = 0
        self.port = free_port()
        self._servers: dict[int, ServerProcess] = {}

    def __getitem__(self, index: int) -> ServerProcess:
        return self._servers[index]

    def address(self, index: int) -> str:
        return f"{HOSTS[index]}:{self.port}"

    def start(self, index: int, *flags: str, slowness: float = 1.0) -> None:
        """Start a server and wait until it serves."""
        self._starts += 1
        folder = self._folder / f"{self._starts}"
        folder.mkdir()
        environment = {"FAKE_ENGINE_SLOWNESS": str(slowness), "FAKE_ENGINE_CAPACITY": "8"}
        # Overload has tests of its own: here nobody is refused by a server that is not full.
        usual = ("--engine", "fake", "--replicas", "8", "--max-talking", "200")
        flags = (*usual, "--listen", self.address(index), *flags)
        self._servers[index] = start_server(folder, *flags, environment=environment)
        self._servers[index].wait_until_ready()

    def stop(self, index: int, number: int = signal.SIGTERM) -> int:
        """Stop a server; its exit code."""
        server = self._servers.pop(index)
        code = server.stop(number)
        assert server.process.stdout is not None
        server.process.stdout.close()
        return code

    def calls_of(self, index: int) -> int:
        """How many calls a server has answered with OK."""
        logs = self[index].logs()
        return sum(line["event"] == "call ended" and line["code"] == "OK" for line in logs)

    def close(self) -> None:
        for index in list(self._servers):
            self.stop(index, signal.SIGKILL)


@contextlib.contextmanager
def fleet() -> Iterator[Fleet]:
    with tempfile.TemporaryDirectory() as folder:
        found = Fleet(Path(folder))
        try:
            for index in range(len(HOSTS)):
                found.start(index)
            yield found
        finally:
            found.close()


class _Resolver(BaseResolver):
    """Gives the addresses of a headless Service."""

    def resolve(self, request, handler):  # type: ignore[no-untyped-def]
        reply = request.reply()
        if request.q.qtype == QTYPE.A:
            for host in HOSTS:
                reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(host), ttl=1))
        return reply


@contextlib.contextmanager
def headless_name(fleet: Fleet) -> Iterator[str]:
    """A target of gRPC's own balancing: a name that stands for all three servers."""
    server = DNSServer(_Resolver(), address="127.0.0.1", port=0)
    server.start_thread()
    try:
        port = server.server.server_address[1]
        yield f"dns://127.0.0.1:{port}/{NAME}:{fleet.port}"
    finally:
        server.stop()
        server.server.server_close()


@contextlib.contextmanager
def envoy(fleet: Fleet) -> Iterator[str]:
    """The address of Envoy in front of the servers, with the published configuration."""
    config = yaml.safe_load(ENVOY_CONFIG.read_text())
    resources = config["static_resources"]
    port = free_port()
    resources["listeners"][0]["address"]["socket_address"]["port_value"] = port
    (endpoints,) = resources["clusters"][0]["load_assignment"]["endpoints"]
    assert len(endpoints["lb_endpoints"]) == len(HOSTS)
    for entry, host in zip(endpoints["lb_endpoints"], HOSTS, strict=True):
        address = entry["endpoint"]["address"]["socket_address"]
        address |= {"address": host, "port_value": fleet.port}
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder, "envoy.yaml"), Path(folder, "log")
        path.write_text(yaml.safe_dump(config))
        with log.open("w") as file:
            process = subprocess.Popen(
                [
                    str(Path(sys.executable).parent / "envoy"),
                    *("-c", str(path), "--concurrency", "1", "--disable-hot-restart"),
                ],
                stdout=file,
                stderr=file,
            )
        try:
            wait_for(lambda: process.poll() is not None or _answers(port), 30)
            assert process.poll() is None, log.read_text()
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def _answers(port: int) -> bool:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        try:
            stub.PlanText(tts_pb2.PlanTextRequest(text="Hi."), timeout=2)
        except grpc.RpcError:
            return False
        return True


@dataclass
class Result:
    """What came of one call, of which every chunk was checked."""

    code: grpc.StatusCode = grpc.StatusCode.OK
    samples: int = 0
    whole: bool = False  # all samples came, and the right ones
    between_segments: bool = True  # it ended when no segment was half sent
    details: str = ""


@dataclass
class Tally:
    """Of many calls."""

    results: list[Result] = field(default_factory=list)

    @property
    def codes(self) -> Counter[str]:
        return Counter(result.code.name for result in self.results)

    @property
    def lost(self) -> list[Result]:
        """Those that neither ended well nor may be repeated without anything heard twice."""
        return [r for r in self.results if not r.whole and not r.between_segments]


@contextlib.asynccontextmanager
async def channel_to(target: str) -> AsyncIterator[grpc.aio.Channel]:
    """A client with the published service config."""
    options = [
        ("grpc.service_config", json.dumps(SERVICE_CONFIG)),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.dns_min_time_between_resolutions_ms", 500),
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]
    async with grpc.aio.insecure_channel(target, options) as channel:
        yield channel


async def speak(channel: grpc.aio.Channel, *sentences: str) -> Result:
    """One call, and what came of it. Raises AssertionError for a chunk in a wrong place."""
    result, events = Result(), []
    config = tts_pb2.SpeechConfig(segment_events=True)
    request = tts_pb2.SynthesizeTextRequest(text=" ".join(sentences), config=config)
    open_segments = 0
    try:
        async for response in tts_pb2_grpc.TextToSpeechServiceStub(channel).SynthesizeText(request):
            event = response.event
            events.append(event)
            assert event.sequence == len(events)
            open_segments += event.HasField("segment_started")
            open_segments -= event.HasField("segment_finished")
            if event.HasField("audio"):
                assert event.audio.sample_offset == result.samples
                result.samples += event.audio.sample_count
    except grpc.aio.AioRpcError as error:
        result.code = error.code()
        result.details = str(error.details())
    result.between_segments = open_segments == 0
    result.whole = bool(np.array_equal(samples(events), expected(*sentences)))
    return result


@contextlib.asynccontextmanager
async def load(channel: grpc.aio.Channel, callers: int, *sentences: str) -> AsyncIterator[Tally]:
    """So many callers who call again and again meanwhile; none is cut off at the end."""
    tally, stop = Tally(), asyncio.Event()

    async def call() -> None:
        while not stop.is_set():
            tally.results.append(await speak(channel, *sentences))

    tasks = [asyncio.create_task(call()) for _ in range(callers)]
    try:
        yield tally
    finally:
        stop.set()
        await asyncio.gather(*tasks)
