"""What the server costs beside the model: memory of the front, idle streams, health, cancel."""

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc.aio
import psutil
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks import texts
from benchmarks.contenders import CALL_SECONDS, Intone
from benchmarks.machine import has_mapped, resident_bytes
from benchmarks.model import SAMPLE_RATE_HERTZ
from intone.v1 import tts_pb2, tts_pb2_grpc

STREAMS_PER_CONNECTION = 100
HEALTH_CHECKS = 200
HEALTH_EVERY_SECONDS = 0.01
FRAME_SECONDS = 0.08
# Enough for the server to have noticed that streams have gone, and for the model to have stopped.
SETTLE_SECONDS = 1.0
# Frames that are heard before a call is cancelled: the model is in full swing then.
HEARD_FRAMES = 10


@dataclass(frozen=True, slots=True)
class Front:
    """The front process: resident memory, and whether torch is loaded in it."""

    resident_bytes: int
    has_torch: bool


@dataclass(frozen=True, slots=True)
class Latency:
    """Of health checks: median and greatest, in seconds."""

    median: float
    greatest: float


@dataclass(frozen=True, slots=True)
class Idle:
    """So many open streams that say nothing: what they add to the front's resident memory, and how
    health answers meanwhile, also while one more stream speaks."""

    streams: int
    more_bytes: int
    opening_seconds: float
    health: Latency
    health_while_speaking: Latency


@dataclass(frozen=True, slots=True)
class Cancel:
    """How soon a replica is free after a cancel. All in seconds.

    `step` is the model's time for one frame; `idle_first_audio` is that of a call that finds the
    replica idle; `first_audio` is from the client's cancel of one call, with the next one sent at
    once, to the first audio of that one.
    """

    step: float
    idle_first_audio: tuple[float, ...]
    first_audio: tuple[float, ...]

    def steps(self) -> tuple[float, ...]:
        """By how much a call after a cancel is later than on an idle replica, in model steps."""
        idle = statistics.median(self.idle_first_audio)
        return tuple((seconds - idle) / self.step for seconds in self.first_audio)


def measure_front(process: psutil.Process) -> Front:
    """The front as it is now."""
    return Front(resident_bytes(process), has_mapped(process, "torch"))


def measure_idle(intone: Intone, streams: int) -> Idle:
    """Open `streams` streams, measure, and end them."""
    return asyncio.run(_measure_idle(intone, streams))


async def _measure_idle(intone: Intone, streams: int) -> Idle:
    # Without this, all channels would share one connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    count = -(-streams // STREAMS_PER_CONNECTION)
    channels = [grpc.aio.insecure_channel(intone.address, options=options) for _ in range(count)]
    async with grpc.aio.insecure_channel(intone.address, options=options) as health_channel:
        health = health_pb2_grpc.HealthStub(health_channel)
        await _check(health)
        before, started_at = resident_bytes(intone.process), time.monotonic()
        calls = await asyncio.gather(
            *(_open(channels[number % count]) for number in range(streams))
        )
        opening_seconds = time.monotonic() - started_at
        await asyncio.sleep(SETTLE_SECONDS)
        more_bytes = resident_bytes(intone.process) - before
        quiet = await _check(health)
        stop = threading.Event()
        speaking = asyncio.create_task(asyncio.to_thread(_speak_until, intone, stop))
        busy = await _check(health)
        stop.set()
        await speaking
        for call in calls:
            call.cancel()
    await asyncio.gather(*(channel.close() for channel in channels))
    return Idle(streams, more_bytes, opening_seconds, quiet, busy)


async def _open(channel: grpc.aio.Channel) -> Any:
    """A stream that is admitted and has said nothing."""
    call: Any = tts_pb2_grpc.TextToSpeechServiceStub(channel).Synthesize(timeout=CALL_SECONDS)
    await call.write(tts_pb2.SynthesizeRequest(config=tts_pb2.SpeechConfig()))
    response = await call.read()
    assert response.event.WhichOneof("event") == "started"
    return call


async def _check(health: health_pb2_grpc.HealthStub) -> Latency:
    seconds = []
    for _ in range(HEALTH_CHECKS):
        started_at = time.monotonic()
        await health.Check(health_pb2.HealthCheckRequest(service="liveness"), timeout=10)
        seconds.append(time.monotonic() - started_at)
        await asyncio.sleep(HEALTH_EVERY_SECONDS)
    return Latency(statistics.median(seconds), max(seconds))


def _speak_until(intone: Intone, stop: threading.Event) -> None:
    with _speaking(intone, texts.PAIR) as call:
        for _ in _frames(call):
            if stop.is_set():
                return


def measure_cancel(intone: Intone, turns: int) -> Cancel:
    """Cancel a running call and start another, `turns` times; in between, on an idle replica."""
    steps, idle, after = [], [], []
    for _ in range(turns):
        idle.append(_first_audio(intone, time.monotonic()))
        time.sleep(SETTLE_SECONDS)
        with _speaking(intone, texts.PAIR) as call:
            frames = _frames(call)
            first_at, _ = next(frames)
            heard = 0
            for at, count in frames:
                heard += count
                if heard >= HEARD_FRAMES:
                    steps.append((at - first_at) / heard)
                    break
            cancelled_at = time.monotonic()
        after.append(_first_audio(intone, cancelled_at))
        time.sleep(SETTLE_SECONDS)
    return Cancel(statistics.median(steps), tuple(idle), tuple(after))


@contextmanager
def _speaking(intone: Intone, text: str) -> Iterator[Any]:
    """A call, cancelled at the end."""
    request = tts_pb2.SynthesizeTextRequest(text=text)
    call = intone.stub.SynthesizeText(request, timeout=CALL_SECONDS)
    try:
        yield call
    finally:
        call.cancel()


def _frames(call: Any) -> Iterator[tuple[float, int]]:
    """When audio came, and how many frames."""
    for response in call:
        if response.event.WhichOneof("event") == "audio":
            seconds = response.event.audio.sample_count / SAMPLE_RATE_HERTZ
            yield time.monotonic(), round(seconds / FRAME_SECONDS)


def _first_audio(intone: Intone, since: float) -> float:
    """Seconds from `since` to the first audio of a new call, which is then cancelled."""
    with _speaking(intone, texts.SENTENCE) as call:
        at, _ = next(_frames(call))
    return at - since
