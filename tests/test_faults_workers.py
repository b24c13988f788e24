"""Workers killed at every stage: the status is the documented one, others go on, and what was lost
is back."""

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio
import psutil
import pytest

from callers import delay_of, reason_of
from fake_engine import FRAME
from faults import (
    PATIENCE_SECONDS,
    assert_well,
    failures,
    heard,
    kill,
    once,
    open_stream,
    own_channel,
    rest,
    speaking_worker,
    two_workers,
    workers,
)
from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from processes import ServerProcess, running_server, wait_for
from test_synthesize import check_order, collect, expected, flush, samples, text

LONG = "frames@100 delay@20 a long text."


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with two_workers() as server:
        yield server


@pytest.fixture(autouse=True)
async def well(server: ServerProcess) -> Iterator[None]:  # type: ignore[misc]
    """Before each test and after it."""
    await assert_well(server)
    yield
    await assert_well(server)


async def test_idle_workers_are_back_and_readiness_follows(server: ServerProcess) -> None:
    killed = workers(server)
    kill(killed)
    wait_for(lambda: not {w.pid for w in workers(server)} & {w.pid for w in killed})
    server.wait_until_ready()


async def test_text_that_was_being_read_is_spoken_by_another(
    server: ServerProcess, tmp_path: Path
) -> None:
    words = once(tmp_path, "delay@60000") + " and is spoken all the same."
    async with own_channel(server) as channel:
        started = server.starts()
        call = open_stream(channel)
        await call.write(text(words))
        await call.done_writing()
        kill([await speaking_worker(server, started)])
        events = await rest(call)
    check_order(events)
    assert (samples(events) == expected(words)).all()


@pytest.mark.parametrize("chunks", [1, 5])
async def test_a_segment_that_was_heard_fails_and_the_next_is_spoken(
    server: ServerProcess, chunks: int
) -> None:
    async with own_channel(server) as channel:
        call = open_stream(channel)
        await call.write(text(LONG))
        await call.write(flush())
        events = await heard(call, chunks)
        kill(workers(server))
        await call.write(text("Go on."))
        await call.done_writing()
        events += await rest(call)
    check_order(events)
    assert failures(events) == ["REPLICA_LOST"]
    assert (samples(events)[-2 * FRAME :] == expected("Go on.")).all()
    assert events[-1].finished.stats.failed_segments == 1


async def test_a_stream_between_segments_does_not_notice(server: ServerProcess) -> None:
    async with own_channel(server) as channel:
        call = open_stream(channel)
        await call.write(text("Before it."))
        await call.write(flush())
        events = await heard(call, 1)
        while not events[-1].HasField("flushed"):
            events.append((await call.read()).event)
        kill(workers(server))
        await call.write(text("And after."))
        await call.done_writing()
        events += await rest(call)
    check_order(events)
    assert (samples(events) == expected("Before it.", "And after.")).all()


async def test_one_of_two_takes_its_own_stream_alone(server: ServerProcess) -> None:
    async with own_channel(server) as channel:
        calls = [open_stream(channel) for _ in range(2)]
        for call in calls:
            await call.write(text(LONG))
            await call.done_writing()
        begun = await asyncio.gather(*(heard(call, 2) for call in calls))
        kill(workers(server)[:1])
        ends = await asyncio.gather(*(rest(call) for call in calls))
    failed, spoken = sorted(
        ([*a, *b] for a, b in zip(begun, ends, strict=True)), key=lambda e: len(failures(e)) == 0
    )
    assert failures(failed) == ["REPLICA_LOST"]
    assert failures(spoken) == []
    check_order(spoken)
    assert (samples(spoken) == expected(LONG)).all()


async def test_both_at_once_fail_what_was_heard_of_each(server: ServerProcess) -> None:
    async with own_channel(server) as channel:
        calls = [open_stream(channel) for _ in range(2)]
        for call in calls:
            await call.write(text(LONG))
            await call.write(flush())
        begun = await asyncio.gather(*(heard(call, 1) for call in calls))
        kill(workers(server))
        for call in calls:
            await call.write(text("Go on."))
            await call.done_writing()
        for events, call in zip(begun, calls, strict=True):
            events += await rest(call)
            assert failures(events) == ["REPLICA_LOST"]
            assert (samples(events)[-2 * FRAME :] == expected("Go on.")).all()


async def test_a_call_of_which_nothing_else_is_left_ends_unavailable(
    server: ServerProcess,
) -> None:
    async with own_channel(server) as channel:
        started = server.starts()
        call = open_stream(channel)
        await call.write(text("delay@60000 never."))
        await call.done_writing()
        for attempt in (0, 1):
            kill([await speaking_worker(server, started + attempt)])
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rest(call)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert reason_of(caught.value) == "REPLICA_LOST"
    assert delay_of(caught.value) > 0


async def test_a_file_loses_nothing(server: ServerProcess) -> None:
    """Nothing of it was given away, however much of it was made."""
    words = "frames@40 delay@20 a file."
    async with own_channel(server) as channel:
        started, steps = server.starts(), server.steps()
        request = tts_pb2.SynthesizeFileRequest(text=words)
        request.config.format.encoding = tts_pb2.AUDIO_ENCODING_PCM_S16LE
        call = TextToSpeechServiceStub(channel).SynthesizeFile(request)
        asking = asyncio.ensure_future(call)
        await asyncio.to_thread(wait_for, lambda: server.steps() > steps + 10, PATIENCE_SECONDS)
        kill([await speaking_worker(server, started)])
        answer = await asking
    assert answer.audio == expected(words).tobytes()
    assert answer.stats.failed_segments == 0


async def test_a_frozen_idle_worker_is_found_by_its_next_segment(server: ServerProcess) -> None:
    frozen = workers(server)[0]
    frozen.send_signal(signal.SIGSTOP)
    said = ["delay@100 frames@9 one.", "delay@100 frames@9 the other."]
    async with own_channel(server) as channel:
        spoken = await asyncio.gather(*(collect(channel, [text(each)]) for each in said))
    for each, events in zip(said, spoken, strict=True):
        assert (samples(events) == expected(each)).all()
    wait_for(lambda: frozen.pid not in {w.pid for w in workers(server)}, PATIENCE_SECONDS)


async def test_workers_outlive_the_process_they_were_forked_from(server: ServerProcess) -> None:
    before = workers(server)
    psutil.Process(before[0].ppid()).kill()
    async with own_channel(server) as channel:
        events = await collect(channel, [text("It goes on.")])
        assert (samples(events) == expected("It goes on.")).all()
        kill(before)
        wait_for(lambda: len(workers(server)) == 2, PATIENCE_SECONDS)


def test_workers_that_are_killed_as_soon_as_they_come_slow_down_and_the_server_stays_up() -> None:
    environment = {"FAKE_ENGINE_ATTACH_SECONDS": "0.5"}
    with running_server("--engine", "fake", environment=environment) as server:
        killed_at: dict[int, float] = {}

        def pursue() -> bool:
            """Kill whatever there is; whether that were six of them."""
            for worker in workers(server):
                killed_at.setdefault(worker.pid, time.monotonic())
                kill([worker])
            return len(killed_at) == 6

        wait_for(pursue, PATIENCE_SECONDS)
        *_, before_last, last = killed_at.values()
        assert last - before_last > 0.8  # four times doubled
        assert not server.is_serving("readiness")
        assert server.is_serving("liveness")
        with grpc.insecure_channel(server.address, [("grpc.enable_retries", 0)]) as channel:
            request = tts_pb2.SynthesizeTextRequest(text="Nobody is there.")
            with pytest.raises(grpc.RpcError) as caught:
                list(TextToSpeechServiceStub(channel).SynthesizeText(request))
        assert reason_of(caught.value) == "NO_REPLICA"
        assert delay_of(caught.value) > 0
        server.wait_until_ready()
