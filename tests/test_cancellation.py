"""A caller that leaves, however and whenever, frees the replica at once and disturbs nobody.

After a cancel each test looks at three things: it ended, others were untouched, the next works.
"""

import asyncio
import gc
import socket
import subprocess
import sys
from collections.abc import Iterator

import grpc
import grpc.aio
import pytest

from intone.v1 import status_pb2, tts_pb2
from intone.v1.status_pb2_grpc import StatusServiceStub
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from processes import ServerProcess, running_server
from test_synthesize import collect, expected, flush, samples, text

OWN_CONNECTION = [("grpc.use_local_subchannel_pool", 1)]
LONG = "frames@400 delay@10 a long text."


async def capacity(channel: grpc.aio.Channel) -> status_pb2.Capacity:
    response = await StatusServiceStub(channel).GetCapacity(status_pb2.GetCapacityRequest())
    return response.capacity


async def until_idle(channel: grpc.aio.Channel) -> None:
    async with asyncio.timeout(3):
        while True:
            now = await capacity(channel)
            if not (now.open_streams or now.replicas_busy or now.queue_depth):
                return
            await asyncio.sleep(0.01)


async def first_audio(call: grpc.aio.StreamStreamCall) -> None:  # type: ignore[type-arg]
    async for response in call:
        if response.event.HasField("audio"):
            return


async def test_cancel_stops_the_model_within_two_steps(
    channel: grpc.aio.Channel, fake_server: ServerProcess
) -> None:
    call = TextToSpeechServiceStub(channel).Synthesize(iter([text(LONG)]))
    await first_audio(call)
    call.cancel()
    await until_idle(channel)
    steps = fake_server.steps()
    await asyncio.sleep(0.2)
    assert fake_server.steps() == steps
    events = await collect(channel, [text("The next one.")])
    assert (samples(events) == expected("The next one.")).all()


async def test_a_deadline_stops_the_model(
    channel: grpc.aio.Channel, fake_server: ServerProcess
) -> None:
    stub = TextToSpeechServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in stub.SynthesizeText(tts_pb2.SynthesizeTextRequest(text=LONG), timeout=0.5):
            pass
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await until_idle(channel)


async def test_a_queued_call_that_leaves_never_reaches_the_model(
    channel: grpc.aio.Channel, fake_server: ServerProcess
) -> None:
    running = TextToSpeechServiceStub(channel).Synthesize(iter([text(LONG)]))
    await first_audio(running)
    started = fake_server.starts()
    waiting = [TextToSpeechServiceStub(channel).Synthesize(iter([text(LONG)])) for _ in range(5)]
    async with asyncio.timeout(3):
        while (await capacity(channel)).queue_depth < 5:
            await asyncio.sleep(0.01)
    for call in waiting:
        call.cancel()
    async with asyncio.timeout(3):
        while (await capacity(channel)).queue_depth:
            await asyncio.sleep(0.01)
    running.cancel()
    events = await collect(channel, [text("OK.")])
    assert (samples(events) == expected("OK.")).all()
    assert fake_server.starts() == started + 1


@pytest.mark.parametrize("stage", ["connected", "text", "audio", "flushed", "half-closed"])
async def test_nothing_is_left_of_a_stream_cancelled_at_any_stage(
    channel: grpc.aio.Channel, stage: str
) -> None:
    other = asyncio.create_task(collect(channel, [text("delay@20 heard to the very end.")]))
    for _ in range(10):
        call = TextToSpeechServiceStub(channel).Synthesize()
        if stage != "connected":
            await call.write(text(LONG))
        if stage == "flushed":
            await call.write(flush("x"))
        if stage == "half-closed":
            await call.done_writing()
        if stage == "audio":
            async with asyncio.timeout(5):
                await first_audio(call)
        call.cancel()
    assert (samples(await other) == expected("delay@20 heard to the very end.")).all()
    await until_idle(channel)


async def test_a_loop_that_is_only_left_ends_the_call(
    channel: grpc.aio.Channel, fake_server: ServerProcess
) -> None:
    def listen() -> None:
        with grpc.insecure_channel(fake_server.address) as own:
            request = tts_pb2.SynthesizeTextRequest(text=LONG)
            for response in TextToSpeechServiceStub(own).SynthesizeText(request):
                if response.event.HasField("audio"):
                    break
            gc.collect()

    await asyncio.to_thread(listen)
    await until_idle(channel)


CLIENT = """
import sys, grpc
from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
stub = TextToSpeechServiceStub(grpc.insecure_channel(sys.argv[1]))
for response in stub.SynthesizeText(tts_pb2.SynthesizeTextRequest(text=sys.argv[2])):
    if response.event.HasField("audio"):
        print("audio", flush=True)
"""


async def test_a_killed_client_costs_one_log_line(
    channel: grpc.aio.Channel, fake_server: ServerProcess
) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, fake_server.address, LONG], stdout=subprocess.PIPE
    )
    assert client.stdout is not None
    await asyncio.to_thread(client.stdout.readline)
    before = len(fake_server.logs())
    client.kill()
    client.wait()
    client.stdout.close()
    await until_idle(channel)
    await asyncio.sleep(0.1)
    lines = [line for line in fake_server.logs()[before:] if line["rpc"] == "SynthesizeText"]
    assert [line["code"] for line in lines] == ["CANCELLED"]


async def test_an_abandoned_stream_does_not_delay_the_next(channel: grpc.aio.Channel) -> None:
    for _ in range(20):
        call = TextToSpeechServiceStub(channel).Synthesize(iter([text(LONG)]))
        await first_audio(call)
        call.cancel()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    events = await collect(channel, [text("Normal.")])
    assert len(samples(events))
    # Twenty dead ones at 4 s each would take over a minute.
    assert loop.time() - begun < 3


@pytest.fixture
def impatient_server() -> Iterator[ServerProcess]:
    with running_server("--engine", "fake", "--slow-client-timeout-seconds", "1") as server:
        yield server


async def test_a_client_that_never_reads_is_ended_and_memory_stays_bounded(
    impatient_server: ServerProcess,
) -> None:
    options = [("grpc.http2.lookahead_bytes", 65_536), ("grpc.http2.bdp_probe", 0)]
    address = impatient_server.address
    async with (
        grpc.aio.insecure_channel(address, options=options) as channel,
        grpc.aio.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1)]
        ) as other,
    ):
        call = TextToSpeechServiceStub(channel).Synthesize(
            iter([text("frames@100 of silence to nobody. ") for _ in range(200)])
        )
        await first_audio(call)
        async with asyncio.timeout(30):
            while (await capacity(other)).open_streams:
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.1)
        line = [line for line in impatient_server.logs() if line.get("rpc") == "Synthesize"][-1]
        assert line["reason"] == "SLOW_CLIENT"
        assert line["made_seconds"] < line["audio_seconds"] + 20
        events = await collect(other, [text("The next one.")])
        assert (samples(events) == expected("The next one.")).all()
        call.cancel()


def test_a_half_open_connection_is_noticed_by_nobody_else(fake_server: ServerProcess) -> None:
    host, port = fake_server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert fake_server.is_serving()
