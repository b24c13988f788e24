"""What tests of faults share: servers to break, calls to them, and that all is well again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
import psutil

from intone.v1 import status_pb2, tts_pb2
from intone.v1.status_pb2_grpc import StatusServiceStub
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from processes import ServerProcess, running_server, wait_for
from test_synthesize import collect, expected, samples, text

# Machines under test may be slow: this bounds a hang, it is no promise.
PATIENCE_SECONDS = 30.0


@contextlib.contextmanager
def two_workers(*flags: str, environment: dict[str, str] | None = None) -> Iterator[ServerProcess]:
    """A server with two workers of one replica each, which notices a stall after a second."""
    flags = ("--engine", "fake", "--workers", "2", "--stall-timeout-seconds", "1", *flags)
    with running_server(*flags, environment=environment) as server:
        wait_for(lambda: len(workers(server)) == 2, PATIENCE_SECONDS)
        yield server


def workers(server: ServerProcess) -> list[psutil.Process]:
    """Its workers, as long as they are alive; none while the fork server is being replaced."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return server.workers()
    return []


async def speaking_worker(server: ServerProcess, starts: int) -> psutil.Process:
    """The one that has begun the segment after the first `starts` of the server."""
    await asyncio.to_thread(wait_for, lambda: server.starts() > starts, PATIENCE_SECONDS)
    begun = [line for line in server.engine_log.read_text().splitlines() if "start" in line]
    return psutil.Process(int(begun[starts].split()[2]))


def kill(processes: list[psutil.Process]) -> None:
    """With a signal that none of them can answer; returns when they are gone."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, PATIENCE_SECONDS)


@contextlib.asynccontextmanager
async def own_channel(server: ServerProcess) -> AsyncIterator[grpc.aio.Channel]:
    """A connection that no other call uses."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    async with grpc.aio.insecure_channel(server.address, options=options) as channel:
        yield channel


async def capacity(channel: grpc.aio.Channel) -> status_pb2.Capacity:
    """How busy the server says it is."""
    response = await StatusServiceStub(channel).GetCapacity(status_pb2.GetCapacityRequest())
    return response.capacity


async def until(condition: "Condition", channel: grpc.aio.Channel) -> status_pb2.Capacity:
    """Return when the capacity is like that; fails if it does not become so."""
    now = await capacity(channel)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition.holds(now):
                await asyncio.sleep(0.02)
                now = await capacity(channel)
    except TimeoutError:
        raise AssertionError(f"never {condition}: {now}") from None
    return now


@dataclass(frozen=True, slots=True)
class Condition:
    """Of a server: so many healthy replicas, and nothing open, busy or waiting."""

    replicas: int

    def holds(self, now: status_pb2.Capacity) -> bool:
        """Whether that is so."""
        left = now.open_streams or now.replicas_busy or now.queue_depth or now.replicas_unhealthy
        return not left and now.replicas_total == self.replicas


async def assert_well(server: ServerProcess, replicas: int = 2) -> None:
    """No permit and no replica was lost: all of them speak at the same time, and are idle after."""
    async with own_channel(server) as channel:
        await until(Condition(replicas), channel)
        words = [f"delay@20 number {number} is well." for number in range(replicas)]
        for said, events in zip(
            words,
            await asyncio.gather(*(collect(channel, [text(each)]) for each in words)),
            strict=True,
        ):
            assert (samples(events) == expected(said)).all()
        await until(Condition(replicas), channel)


async def heard(call: "grpc.aio.StreamStreamCall", chunks: int) -> list[tts_pb2.SpeechEvent]:  # type: ignore[type-arg]
    """The events of a call up to so many chunks of audio."""
    events: list[tts_pb2.SpeechEvent] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while chunks:
            response = await call.read()
            assert response is not grpc.aio.EOF, "the call ended early"
            events.append(response.event)
            chunks -= response.event.HasField("audio")
    return events


async def rest(call: "grpc.aio.StreamStreamCall") -> list[tts_pb2.SpeechEvent]:  # type: ignore[type-arg]
    """What is left of it."""
    events = []
    while (response := await call.read()) is not grpc.aio.EOF:
        events.append(response.event)
    return events


def open_stream(channel: grpc.aio.Channel) -> "grpc.aio.StreamStreamCall":  # type: ignore[type-arg]
    """A stream that is written and read by hand."""
    return TextToSpeechServiceStub(channel).Synthesize()


def failures(events: list[tts_pb2.SpeechEvent]) -> list[str]:
    """The reasons of the segments that failed."""
    ended = [e.segment_finished for e in events if e.HasField("segment_finished")]
    return [e.error.reason for e in ended if e.outcome == tts_pb2.SEGMENT_OUTCOME_FAILED]


def once(folder: Path, orders: str) -> str:
    """Orders that hold for the first attempt alone."""
    return f"{orders} once@{folder}/flag"
