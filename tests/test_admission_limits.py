"""Limits on calls: refusals come at once, say why, and when to come back."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2, status_pb2

from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from processes import ServerProcess, running_server
from test_cancellation import until_idle
from test_synthesize import collect, expected, samples, text

LONG = "frames@300 delay@10 a long text."


@pytest.fixture(scope="module")
def small_server() -> Iterator[ServerProcess]:
    flags = ["--max-streams", "4", "--max-talking", "2", "--first-message-timeout-seconds", "1"]
    with running_server("--engine", "fake", *flags) as server:
        yield server


@pytest.fixture
async def channel(small_server: ServerProcess) -> AsyncIterator[grpc.aio.Channel]:
    options = [("grpc.enable_retries", 0)]
    async with grpc.aio.insecure_channel(small_server.address, options=options) as channel:
        yield channel
        await until_idle(channel)


def refusal(error: grpc.aio.AioRpcError) -> tuple[str, float, float]:
    """Reason, and the two retry delays in seconds."""
    metadata = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    for detail in status.details:
        detail.Unpack(info)
        detail.Unpack(retry)
    pushback = int(metadata["grpc-retry-pushback-ms"]) / 1000
    return info.reason, retry.retry_delay.ToNanoseconds() / 1e9, pushback


async def open_stream(channel: grpc.aio.Channel, words: str = "") -> grpc.aio.StreamStreamCall:  # type: ignore[type-arg]
    call = TextToSpeechServiceStub(channel).Synthesize()
    await call.write(text(words))
    await call.read()
    return call


async def test_streams_over_the_limit_are_refused_with_a_delay(channel: grpc.aio.Channel) -> None:
    calls = [await open_stream(channel) for _ in range(4)]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await collect(channel, [text("Hello.")])
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    reason, delay, pushback = refusal(caught.value)
    assert reason == "STREAM_LIMIT"
    assert delay == pushback > 0
    assert "limit 4" in (caught.value.details() or "")
    for call in calls:
        await call.done_writing()
        while await call.read() is not grpc.aio.EOF:
            pass
    assert len(samples(await collect(channel, [text("Hello.")])))


async def test_unary_calls_over_the_limit_meet_a_full_queue(channel: grpc.aio.Channel) -> None:
    calls = [await open_stream(channel, LONG) for _ in range(2)]
    stub = TextToSpeechServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text="Hello."))
    assert refusal(caught.value)[0] == "QUEUE_FULL"
    for call in calls:
        call.cancel()


async def test_silent_streams_do_not_count_as_talking(channel: grpc.aio.Channel) -> None:
    calls = [await open_stream(channel) for _ in range(3)]
    assert len(samples(await collect(channel, [text("Hello.")])))
    for call in calls:
        call.cancel()


async def test_an_admitted_stream_is_never_refused_later(channel: grpc.aio.Channel) -> None:
    silent = await open_stream(channel)
    loud = [await open_stream(channel, "delay@5 frames@20 talk.") for _ in range(2)]
    await silent.write(text("Still welcome."))
    await silent.done_writing()
    data = b""
    while (response := await silent.read()) is not grpc.aio.EOF:
        data += response.event.audio.data
    assert data == expected("Still welcome.").tobytes()
    for call in loud:
        call.cancel()


async def test_ten_streams_at_once_are_never_mixed(fake_server: ServerProcess) -> None:
    texts = [f"Stream number {n} has {'very ' * n}many words." for n in range(8)]
    async with grpc.aio.insecure_channel(fake_server.address) as channel:
        for _ in range(3):
            results = await asyncio.gather(*(collect(channel, [text(t)]) for t in texts))
            for words, events in zip(texts, results, strict=True):
                assert (samples(events) == expected(words)).all()
                assert [e.sequence for e in events] == list(range(1, len(events) + 1))


async def test_two_talkers_share_one_replica_segment_by_segment(
    fake_server: ServerProcess,
) -> None:
    async with grpc.aio.insecure_channel(fake_server.address) as channel:
        long = asyncio.create_task(collect(channel, [text("delay@10 frames@20 a b c. " * 20)]))
        await asyncio.sleep(0.2)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await collect(channel, [text("Three short words.")])
        assert loop.time() - begun < 1.5
        assert not long.done()
        await long


async def test_a_stream_without_a_first_message_is_ended(channel: grpc.aio.Channel) -> None:
    call = TextToSpeechServiceStub(channel).Synthesize()
    async with asyncio.timeout(5):
        assert await call.code() is grpc.StatusCode.ABORTED
