"""Clients that freeze, vanish or flood: each is ended within its limit, memory stays bounded, and
others are served."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import grpc
import grpc.aio
import psutil
import pytest

from faults import PATIENCE_SECONDS, capacity, heard, open_stream, own_channel, rest
from intone.v1 import tts_pb2
from processes import ServerProcess, running_server
from silent_proxy import silent_proxy
from test_synthesize import Request, collect, expected, flush, samples, text

ENDLESS = "frames@100 of audio. "
# What a front may grow by for reasons of its own while it is busy.
ROOM_BYTES = 32 << 20

READER = """
import sys, grpc
from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
stub = TextToSpeechServiceStub(grpc.insecure_channel(sys.argv[1]))
requests = [tts_pb2.SynthesizeRequest(text=500 * sys.argv[2])]
for response in stub.Synthesize(iter(requests)):
    if response.event.HasField("audio"):
        print("audio", flush=True)
        sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """A server that gives up a client who reads nothing for two seconds."""
    flags = ("--slow-client-timeout-seconds", "2", "--replicas", "4")
    with running_server("--engine", "fake", *flags) as server:
        yield server


def memory(server: ServerProcess) -> int:
    """Of the front, in bytes."""
    return int(psutil.Process(server.process.pid).memory_info().rss)


def endings(server: ServerProcess) -> list[str]:
    """The reasons of the streams that have ended."""
    return [str(x.get("reason")) for x in server.logs() if x.get("rpc") == "Synthesize"]


@contextlib.asynccontextmanager
async def undisturbed(server: ServerProcess) -> AsyncIterator[None]:
    """Beside what happens here another caller is served, memory is bounded, and nothing is left."""
    async with own_channel(server) as channel:
        words = "delay@20 frames@100 to the end."
        call = open_stream(channel)
        await call.write(text(words))
        await call.done_writing()
        events = await heard(call, 1)
        before = memory(server)
        yield
        events += await rest(call)
        assert (samples(events) == expected(words)).all()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await capacity(channel)).open_streams:
                await asyncio.sleep(0.05)
        assert memory(server) - before < ROOM_BYTES
        events = await collect(channel, [text("The next one.")])
        assert (samples(events) == expected("The next one.")).all()


async def test_a_frozen_client_is_ended(server: ServerProcess) -> None:
    """Its system takes what fits its buffers, and no more."""
    before = len(endings(server))
    with subprocess.Popen(
        [sys.executable, "-c", READER, server.address, ENDLESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as client:
        assert client.stdout is not None
        async with undisturbed(server):
            await asyncio.to_thread(client.stdout.readline)
            client.send_signal(signal.SIGSTOP)
        client.kill()
    assert endings(server)[before:].count("SLOW_CLIENT") == 1


async def test_a_client_behind_a_silent_network_is_ended(server: ServerProcess) -> None:
    """Nothing is lost for the server's system; flow control of HTTP/2 tells that nobody reads."""
    before = len(endings(server))
    with silent_proxy(server.address) as proxy:
        async with undisturbed(server), grpc.aio.insecure_channel(proxy.address) as channel:
            call = open_stream(channel)
            for _ in range(100):
                await call.write(text(ENDLESS))
            await heard(call, 1)
            proxy.be_silent()
            async with own_channel(server) as other, asyncio.timeout(PATIENCE_SECONDS):
                while (await capacity(other)).open_streams > 1:
                    await asyncio.sleep(0.05)
        call.cancel()
    assert "SLOW_CLIENT" in endings(server)[before:]


FLOODS = {
    "flushes": lambda n: flush(str(n)),
    "clears": lambda n: Request(clear=tts_pb2.Clear(id=str(n))),
    "pauses": lambda n: Request(pause=tts_pb2.Pause(duration={"nanos": 1_000_000})),
    "reports": lambda n: Request(playback=tts_pb2.PlaybackReport(played_samples=n)),
    "heartbeats": lambda n: text(""),
    "voices": lambda n: Request(voice=("anna", "bert")[n % 2]),
    "words": lambda n: text("word "),
    "marks": lambda n: text("…---…"),
}


@pytest.mark.parametrize("kind", FLOODS)
async def test_a_flood_from_a_client_that_does_not_read_is_bounded(
    server: ServerProcess, kind: str
) -> None:
    async with undisturbed(server), own_channel(server) as channel:
        call = open_stream(channel)
        await call.write(text("frames@100000 delay@1 of audio. "))
        with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError, TimeoutError):
            async with asyncio.timeout(5):
                for number in range(50_000):
                    await call.write(FLOODS[kind](number))
        call.cancel()


async def test_many_streams_of_which_each_sends_little_are_bounded(server: ServerProcess) -> None:
    """Up to the limit on streams; the others are refused, with a delay."""
    async with undisturbed(server), own_channel(server) as channel:
        calls = [open_stream(channel) for _ in range(400)]
        codes = []
        for call in calls:
            with contextlib.suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):
                await call.write(Request(config=tts_pb2.SpeechConfig()))
        for call in calls:
            try:
                response = await call.read()
                assert response.event.HasField("started")
            except grpc.aio.AioRpcError as error:
                codes.append(error.code())
        assert set(codes) <= {grpc.StatusCode.RESOURCE_EXHAUSTED}
        for call in calls:
            call.cancel()
