"""Streams of the client: events in order, barge-in, ends and errors."""

import asyncio
import threading
import time

import grpc
import pytest

from client_double import Call, Double, double_fixture, spoken  # noqa: F401
from intone.v1 import tts_pb2
from intone_client import (
    CallCancelledError,
    Client,
    DeadlineExceededError,
    InvalidArgumentError,
    OverloadedError,
    StreamEndedError,
    SynthesisError,
    UnavailableError,
    speech_config,
)

pytestmark = pytest.mark.timeout(20)


async def test_events_arrive_in_order_from_started_to_finished(double: Double) -> None:
    async with Client(double.address) as client, client.stream(request_id="r-7") as stream:
        await stream.push_text("ab")
        await stream.flush("one")
        await stream.played(240)
        await stream.pause(0.5)
        await stream.end_input()
        events = [event async for event in stream]
    assert double.requests[3] == tts_pb2.SynthesizeRequest(
        playback=tts_pb2.PlaybackReport(played_samples=240)
    )
    kinds = [event.WhichOneof("event") for event in events]
    assert kinds == ["started", "audio", "flushed", "audio", "finished"]
    assert [event.sequence for event in events] == [1, 2, 3, 4, 5]
    assert events[2].flushed.id == "one"
    assert events[3].audio.sample_count == 12000
    assert stream.request_id == "r-7"
    assert stream.finished is not None


async def test_the_config_is_the_first_message_and_is_sent_before_any_text(double: Double) -> None:
    config = speech_config(voice="alba", seed=7)
    async with Client(double.address) as client, client.stream(config) as stream:
        event = await anext(stream)
        assert event.HasField("started")
        await stream.push_text("x")
        await stream.end_input()
        assert [data async for data in stream.audio()] == [spoken("x")]
    assert double.requests[0].config == config
    assert double.requests[1].text == "x"


async def test_long_text_is_cut_into_pieces_that_the_server_takes(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started(max_piece_characters=7)
        while await call.read() is not None:
            pass
        await call.finished()

    double.script = script
    text = "añ漢" * 1000
    async with Client(double.address) as client, client.stream() as stream:
        await anext(stream)
        await stream.push_text(text)
        await stream.end_input()
        assert [event.WhichOneof("event") async for event in stream] == ["finished"]
    pieces = [request.text for request in double.requests if request.HasField("text")]
    assert "".join(pieces) == text
    assert max(map(len, pieces)) == 7


async def test_empty_text_is_sent_as_a_heartbeat(double: Double) -> None:
    async with Client(double.address) as client, client.stream() as stream:
        await stream.push_text("")
        await stream.end_input()
        assert len([event async for event in stream]) == 2
    assert [request.WhichOneof("input") for request in double.requests] == ["config", "text"]


async def test_audio_from_before_the_own_clear_is_dropped(double: Double) -> None:
    clear_sent = asyncio.Event()

    async def script(call: Call) -> None:
        await call.started()
        await call.audio(b"aa")
        await clear_sent.wait()
        await call.audio(b"bb")  # still under way when the Clear was sent
        await call.segment(0, "CLEARED")
        await call.send(epoch=1, cleared=tts_pb2.Cleared(id="stop", epoch=1))
        await call.audio(b"cc", epoch=1)
        await call.finished()

    double.script = script
    async with Client(double.address) as client, client.stream() as stream:
        assert (await anext(stream)).HasField("started")
        assert (await anext(stream)).audio.data == b"aa"
        await stream.clear("stop", heard_samples=0)
        clear_sent.set()
        events = [event async for event in stream]
    assert [event.WhichOneof("event") for event in events] == [
        "segment_finished",
        "cleared",
        "audio",
        "finished",
    ]
    assert events[2].audio.data == b"cc"


async def test_a_clear_says_how_far_the_listener_was_only_if_that_is_known(double: Double) -> None:
    async with Client(double.address) as client, client.stream() as stream:
        await stream.clear("a")
        await stream.clear("b", heard_samples=0)
        await stream.end_input()
        assert len([event async for event in stream]) == 4
    clears = [request.clear for request in double.requests if request.HasField("clear")]
    assert [clear.HasField("heard_samples") for clear in clears] == [False, True]


async def test_a_failed_segment_is_reported_and_the_rest_is_spoken(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.segment(0, "FAILED", code=13, reason="SYNTHESIS_FAILED", message="no luck")
        while (request := await call.read()) is not None:
            if request.text:
                await call.audio(spoken(request.text), segment=1)
        await call.finished()

    double.script = script
    async with Client(double.address) as client, client.stream() as stream:
        async for event in stream:
            if event.HasField("segment_finished"):
                await stream.push_text("on")
                await stream.end_input()
            if event.HasField("audio"):
                assert event.audio.data == spoken("on")
        assert [each.segment for each in stream.failed_segments] == [0]


async def test_audio_alone_ends_in_an_error_if_a_segment_failed(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.segment(0, "FAILED", code=13, reason="SYNTHESIS_FAILED", message="no luck")
        await call.audio(b"aa", segment=1)
        await call.finished()

    double.script = script
    async with Client(double.address) as client:
        audio = client.synthesize_text("x").audio()
        assert await anext(audio) == b"aa"
        with pytest.raises(SynthesisError, match=r"SYNTHESIS_FAILED.*segment 0 failed: no luck"):
            await anext(audio)


async def test_an_error_notice_stops_the_writer_which_then_raises_the_true_error(
    double: Double,
) -> None:
    status = asyncio.Event()

    async def script(call: Call) -> None:
        await call.started()
        notice = tts_pb2.Notice(kind="NOTICE_KIND_ERROR", message="about to fail")
        await call.send(notice=notice)
        await status.wait()
        await call.fail(grpc.StatusCode.RESOURCE_EXHAUSTED, "SLOW_CLIENT", "read faster")

    double.script = script
    async with Client(double.address) as client, client.stream() as stream:
        assert (await anext(stream)).HasField("started")
        assert (await anext(stream)).notice.message == "about to fail"
        writing = asyncio.create_task(stream.push_text("more"))
        await asyncio.sleep(0.05)
        status.set()
        with pytest.raises(OverloadedError) as caught:
            await writing
        assert caught.value.reason == "SLOW_CLIENT"
        with pytest.raises(OverloadedError):
            await anext(stream)


@pytest.mark.parametrize("reading", [True, False], ids=["while reading", "without reading"])
async def test_the_true_error_is_seen_even_if_the_call_ends_during_writes(
    double: Double, reading: bool
) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.read()
        for _ in range(5):
            await call.audio(bytes(3840))
        await call.fail(grpc.StatusCode.UNAVAILABLE, "REPLICA_LOST", "gone", retry_seconds=2)

    async def write(stream: object) -> None:
        while True:
            await stream.push_text("more " * 20)  # type: ignore[attr-defined]

    double.script = script
    async with Client(double.address) as client:
        for _ in range(40):
            async with client.stream() as stream:
                if reading:
                    writer = asyncio.create_task(write(stream))
                else:
                    with pytest.raises(UnavailableError, match="REPLICA_LOST"):
                        await write(stream)
                events = [(await anext(stream)).WhichOneof("event") for _ in range(6)]
                assert events == ["started"] + ["audio"] * 5
                with pytest.raises(UnavailableError) as caught:
                    await anext(stream)
                assert caught.value.reason == "REPLICA_LOST"
                assert caught.value.retry_delay == 2.0
                assert caught.value.request_id == "made-by-server"
                if reading:
                    with pytest.raises(UnavailableError, match="REPLICA_LOST"):
                        await writer


async def test_a_blocked_writer_is_released_when_the_call_ends(double: Double) -> None:
    end = asyncio.Event()

    async def script(call: Call) -> None:
        await call.started()
        await end.wait()  # reads nothing: the writer runs into flow control
        await call.fail(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", "full")

    double.script = script
    async with Client(double.address) as client, client.stream() as stream:
        sent = 0

        async def write() -> None:
            nonlocal sent
            while True:
                await stream.push_text("x" * 1000)
                sent += 1

        writer = asyncio.create_task(write())
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(0.1)
        assert not writer.done()
        end.set()
        with pytest.raises(OverloadedError, match="QUEUE_FULL"):
            async with asyncio.timeout(2):
                await writer


async def test_text_after_an_orderly_end_says_why_the_stream_ended(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.finished("IDLE_TIMEOUT")

    double.script = script
    async with Client(double.address) as client, client.stream() as stream:
        assert len([event async for event in stream]) == 2
        with pytest.raises(StreamEndedError, match="IDLE_TIMEOUT") as caught:
            await stream.push_text("too late")
        assert caught.value.code is grpc.StatusCode.OK
        await stream.end_input()


async def test_text_after_end_of_input_is_misuse(double: Double) -> None:
    async with Client(double.address) as client, client.stream() as stream:
        await stream.end_input()
        await stream.end_input()
        with pytest.raises(RuntimeError, match="end_input"):
            await stream.push_text("x")
        await stream.aclose()
        assert [event async for event in stream] == []


async def test_a_refusal_reaches_the_reader_and_the_writer(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.read()
        await call.fail(
            grpc.StatusCode.INVALID_ARGUMENT,
            "BAD_CONFIG",
            "1 field is wrong",
            violations=[("config.voice", "no such")],
        )

    double.script = script
    async with Client(double.address) as client, client.stream() as stream:
        with pytest.raises(InvalidArgumentError) as caught:
            await anext(stream)
        assert caught.value.violations == [("config.voice", "no such")]
        with pytest.raises(InvalidArgumentError):
            await stream.push_text("x")


async def test_a_timeout_around_one_event_loses_nothing_and_ends_nothing(double: Double) -> None:
    async with Client(double.address) as client, client.stream() as stream:
        assert (await anext(stream)).HasField("started")
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0.02)
        await stream.push_text("a")
        assert (await anext(stream)).audio.data == spoken("a")


async def test_leaving_a_stream_half_way_cancels_the_call(double: Double) -> None:
    async with Client(double.address) as client:
        async with client.stream() as stream:
            await stream.push_text("a")
            assert (await anext(stream)).HasField("started")
        await double.until(lambda: double.ended == 1)
        async with client.stream() as other:
            await other.end_input()
            assert [event.WhichOneof("event") async for event in other] == ["started", "finished"]


async def test_a_dropped_iteration_over_a_whole_text_cancels_the_call(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await asyncio.sleep(30)

    double.script = script
    async with Client(double.address) as client:
        async for event in client.synthesize_text("hello"):
            assert event.HasField("started")
            break
        del event
        await double.until(lambda: double.ended == 1)


async def test_closing_the_client_ends_iteration_with_an_error(double: Double) -> None:
    async with Client(double.address) as client:
        stream = await client.stream().__aenter__()
        assert (await anext(stream)).HasField("started")
        reading = asyncio.create_task(anext(stream))
        await asyncio.sleep(0.05)
        await client.aclose()
        with pytest.raises(CallCancelledError):
            await reading
        await stream.aclose()


async def test_two_hundred_aborted_calls_leave_no_thread_and_no_task(double: Double) -> None:
    async with Client(double.address) as client:

        async def abort(index: int) -> None:
            async with client.stream() as stream:
                await stream.push_text("a" * 100)
                if index % 2:
                    await anext(stream)
                if index % 3 == 0:
                    raise ZeroDivisionError

        await asyncio.gather(*map(abort, range(10)), return_exceptions=True)
        threads = threading.active_count()
        for start in range(0, 200, 20):
            calls = map(abort, range(start, start + 20))
            await asyncio.gather(*calls, return_exceptions=True)
        assert threading.active_count() <= threads
        await double.until(lambda: double.ended == double.calls)
        own = asyncio.current_task()
        await double.until(lambda: not _client_tasks(own))


def _client_tasks(own: object) -> list[object]:
    return [t for t in asyncio.all_tasks() if t is not own and "intone_client" in repr(t)]


async def test_the_deadline_of_a_stream_ends_it(double: Double) -> None:
    began = time.monotonic()
    async with Client(double.address) as client, client.stream(timeout=0.3) as stream:
        assert (await anext(stream)).HasField("started")
        with pytest.raises(DeadlineExceededError):
            await anext(stream)
    assert time.monotonic() - began < 2
