"""Workers that die, hang or fail, over the wire, and the replicas they carry."""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from intone.v1 import status_pb2, tts_pb2, voices_pb2
from intone.v1.status_pb2_grpc import StatusServiceStub
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from intone.v1.voices_pb2_grpc import VoiceServiceStub
from processes import ServerProcess, running_server, wait_for
from test_synthesize import Request, collect, expected, kinds, samples, text


@pytest.fixture(scope="module")
def watched_server() -> Iterator[ServerProcess]:
    """A server that gives up a silent worker after a second."""
    with running_server("--engine", "fake", "--stall-timeout-seconds", "1") as server:
        yield server


@pytest.fixture
def channel(watched_server: ServerProcess) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(watched_server.address)


@pytest.fixture(autouse=True)
def ready(watched_server: ServerProcess) -> None:
    watched_server.wait_until_ready()


@pytest.mark.parametrize("fault", ["crash@0", "stall@0"])
async def test_a_segment_without_audio_is_spoken_by_another_worker(
    channel: grpc.aio.Channel, tmp_path: Path, fault: str
) -> None:
    words = f"{fault} once@{tmp_path}/flag is spoken all the same."
    async with channel:
        events = await collect(channel, [text(words)])
    assert (samples(events) == expected(words)).all()
    assert events[-1].finished.stats.failed_segments == 0


@pytest.mark.parametrize("fault", ["crash@0", "stall@0"])
async def test_a_segment_that_kills_two_workers_fails(
    channel: grpc.aio.Channel, fault: str
) -> None:
    async with channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await collect(channel, [text(f"{fault} poison.")])
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("fault", ["crash@2", "stall@2"])
async def test_a_segment_that_was_heard_fails_with_a_retryable_error(
    channel: grpc.aio.Channel, fault: str
) -> None:
    async with channel:
        words = f"{fault} delay@100 one two three four. "  # time for what was made to be sent
        events = await collect(channel, [text(words), text("Go on.")])
    outcome = next(e.segment_finished for e in events if e.HasField("segment_finished"))
    assert outcome.outcome == tts_pb2.SEGMENT_OUTCOME_FAILED
    assert outcome.error.reason == "REPLICA_LOST"
    assert outcome.error.code == grpc.StatusCode.UNAVAILABLE.value[0]
    assert len(samples(events)) == 4 * 1920
    assert (samples(events)[2 * 1920 :] == expected("Go on.")).all()


async def test_a_stopped_worker_is_replaced_while_health_answers(
    channel: grpc.aio.Channel, watched_server: ServerProcess
) -> None:
    (worker,) = watched_server.workers()
    async with channel:
        speaking = asyncio.create_task(collect(channel, [text("delay@50 frames@40 go on.")]))
        await asyncio.sleep(0.3)
        worker.send_signal(signal.SIGSTOP)
        for _ in range(10):
            begun = time.monotonic()
            assert await asyncio.to_thread(watched_server.is_serving, "liveness")
            assert time.monotonic() - begun < 1
            await asyncio.sleep(0.1)
        events = await speaking
        outcome = next(e.segment_finished for e in events if e.HasField("segment_finished"))
        assert outcome.error.reason == "REPLICA_LOST"
        wait_for(lambda: [w.pid for w in watched_server.workers()] not in ([], [worker.pid]))
        await asyncio.to_thread(watched_server.wait_until_ready)
        events = await collect(channel, [text("Back again.")])
    assert (samples(events) == expected("Back again.")).all()


async def test_a_killed_idle_worker_is_replaced_and_readiness_follows(
    channel: grpc.aio.Channel, watched_server: ServerProcess
) -> None:
    (worker,) = watched_server.workers()
    worker.kill()
    wait_for(lambda: [w.pid for w in watched_server.workers()] not in ([], [worker.pid]))
    watched_server.wait_until_ready()
    async with channel:
        events = await collect(channel, [text("Back again.")])
    assert (samples(events) == expected("Back again.")).all()


async def test_a_model_that_fails_fails_its_segment_alone(
    channel: grpc.aio.Channel, watched_server: ServerProcess
) -> None:
    (worker,) = watched_server.workers()
    async with channel:
        events = await collect(channel, [text("fail@1 one two. "), text("Fine.")])
    assert (samples(events)[1920:] == expected("Fine.")).all()
    assert [w.pid for w in watched_server.workers()] == [worker.pid]


async def test_reaching_the_length_cap_is_reported_and_ends_ok(channel: grpc.aio.Channel) -> None:
    async with channel:
        events = await collect(channel, [text("noend@1 one two. "), text("Fine.")])
    outcomes = [e.segment_finished.outcome for e in events if e.HasField("segment_finished")]
    assert outcomes == [tts_pb2.SEGMENT_OUTCOME_NO_END]
    assert len(samples(events)) == 3 * 1920


async def test_samples_beyond_full_scale_are_clipped_and_counted(
    channel: grpc.aio.Channel,
) -> None:
    async with channel:
        events = await collect(channel, [text("loud@0 one two.")])
    assert samples(events)[:1920].max() == samples(events)[:1920].min() == 32767
    assert events[-1].finished.stats.clipped_samples == 1920


async def test_a_voice_is_loaded_at_its_first_use(channel: grpc.aio.Channel) -> None:
    async with channel:
        voices = VoiceServiceStub(channel)
        before = await voices.GetVoice(voices_pb2.GetVoiceRequest(name="bert"))
        assert not before.voice.loaded
        config = tts_pb2.SpeechConfig(voice="bert")
        both = [collect(channel, [Request(config=config), text("Hello.")]) for _ in range(2)]
        for events in await asyncio.gather(*both):
            assert (samples(events) == expected("Hello.")).all()
        after = await voices.GetVoice(voices_pb2.GetVoiceRequest(name="bert"))
        assert after.voice.loaded
        assert len(after.voice.digest) == 64


async def test_a_voice_that_cannot_be_fetched_is_unavailable_and_never_another(
    channel: grpc.aio.Channel,
) -> None:
    config = tts_pb2.SpeechConfig(voice="unfetchable")
    async with channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await collect(channel, [Request(config=config), text("Hello.")])
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_voices_are_listed_in_pages(channel: grpc.aio.Channel) -> None:
    async with channel:
        voices = VoiceServiceStub(channel)
        names, token = [], ""
        while True:
            page = await voices.ListVoices(
                voices_pb2.ListVoicesRequest(page_size=2, page_token=token)
            )
            names += [v.name for v in page.voices]
            token = page.next_page_token
            if not token:
                break
    assert names == ["anna", "bert", "unfetchable"]


async def test_capacity_is_told_when_it_changes(channel: grpc.aio.Channel) -> None:
    async with channel:
        request = status_pb2.WatchCapacityRequest()
        request.min_interval.FromMilliseconds(100)
        watch = StatusServiceStub(channel).WatchCapacity(request)
        first = await watch.read()
        assert first.capacity.replicas_total == 1
        assert first.capacity.open_streams == 0
        speaking = asyncio.create_task(collect(channel, [text("delay@100 frames@5 go.")]))
        second = await watch.read()
        assert second.capacity.open_streams == 1
        await speaking
        async with asyncio.timeout(5):
            while (await watch.read()).capacity.replicas_busy:
                pass
        watch.cancel()


async def test_queue_events_tell_position_and_wait(channel: grpc.aio.Channel) -> None:
    config = tts_pb2.SpeechConfig(queue_events=True)
    async with channel:
        first = asyncio.create_task(collect(channel, [text("delay@50 frames@20 long.")]))
        await asyncio.sleep(0.3)
        events = await collect(channel, [Request(config=config), text("Hello.")])
        await first
    queued = next(e.queued for e in events if e.HasField("queued"))
    assert (queued.segment, queued.position) == (0, 0)
    assert queued.estimated_wait.ToNanoseconds() > 0
    assert kinds(events)[0] == "started"


async def test_a_wait_over_the_limit_fails_the_segment(channel: grpc.aio.Channel) -> None:
    config = tts_pb2.SpeechConfig()
    config.scheduling.max_queue_wait.FromMilliseconds(100)
    async with channel:
        call = TextToSpeechServiceStub(channel).Synthesize()  # while there is nobody to wait for
        await call.write(Request(config=config))
        answers = aiter(call)
        await anext(answers)
        first = asyncio.create_task(collect(channel, [text("delay@50 frames@30 long.")]))
        await asyncio.sleep(0.3)
        await call.write(text("Hello."))
        await call.done_writing()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            _ = [response async for response in answers]
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await first
