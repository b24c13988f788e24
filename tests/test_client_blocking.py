"""The client without asyncio."""

import asyncio
import threading

import grpc
import pytest

from client_double import Call, Double, double_fixture, spoken  # noqa: F401
from intone_client import BlockingClient, UnavailableError

pytestmark = pytest.mark.timeout(20)


def _threads() -> int:
    return sum(each.name == "intone-client" for each in threading.enumerate())


async def test_a_blocking_stream_speaks_while_text_arrives(double: Double) -> None:
    def use() -> list[str]:
        with BlockingClient(double.address) as client, client.stream() as stream:
            stream.push_text("a")
            stream.flush("one")
            kinds = [next(stream).WhichOneof("event") for _ in range(3)]
            stream.clear("two", heard_samples=0)
            stream.played(7)
            stream.pause(0.1)
            stream.end_input()
            kinds += [event.WhichOneof("event") for event in stream]
            assert stream.finished is not None
            assert stream.started is not None
            assert stream.request_id == "made-by-server"
            assert stream.failed_segments == []
            return kinds

    kinds = await asyncio.to_thread(use)
    assert kinds == ["started", "audio", "flushed", "cleared", "audio", "finished"]
    reports = [each.playback for each in double.requests if each.HasField("playback")]
    assert [each.played_samples for each in reports] == [7]


async def test_a_blocking_stream_is_written_by_one_thread_and_read_by_another(
    double: Double,
) -> None:
    def use() -> bytes:
        with BlockingClient(double.address) as client, client.stream() as stream:

            def write() -> None:
                for letter in "abcdef":
                    stream.push_text(letter)
                stream.end_input()

            writer = threading.Thread(target=write)
            writer.start()
            audio = b"".join(stream.audio())
            writer.join()
            return audio

    assert await asyncio.to_thread(use) == spoken("abcdef")


async def test_blocking_calls_answer_like_the_others(double: Double) -> None:
    def use() -> None:
        with BlockingClient(double.address) as client:
            assert b"".join(client.synthesize_text("ab").audio()) == spoken("ab")
            assert client.synthesize_file("hi").audio == b"RIFF"
            assert client.plan("hi").segments[0].text == "hi"
            assert len(client.voices()) == 5
            assert client.info().engine == "builtin"
            assert client.capacity().replicas_total == 3

    await asyncio.to_thread(use)


async def test_blocking_calls_raise_the_same_errors(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.fail(grpc.StatusCode.UNAVAILABLE, "DRAINING", "later", retry_seconds=1)

    double.script = script

    def use() -> None:
        with BlockingClient(double.address) as client, client.synthesize_text("x") as speech:
            next(speech)
            with pytest.raises(UnavailableError, match="DRAINING"):
                next(speech)

    await asyncio.to_thread(use)


async def test_a_blocking_iterator_that_is_left_half_way_cancels_its_call(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await asyncio.sleep(30)

    double.script = script
    client = BlockingClient(double.address)

    def leave() -> None:
        with client.synthesize_text("x") as speech:
            for _ in speech:
                break

    def drop() -> None:
        for _ in client.synthesize_text("x"):
            break

    await asyncio.to_thread(leave)
    await double.until(lambda: double.ended == 1)
    await asyncio.to_thread(drop)
    await double.until(lambda: double.ended == 2)
    await asyncio.to_thread(client.close)


async def test_closing_a_blocking_client_ends_its_calls_and_its_thread(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await asyncio.sleep(30)

    double.script = script
    client = BlockingClient(double.address)
    speech = await asyncio.to_thread(client.synthesize_text, "x")
    await asyncio.to_thread(next, speech)
    assert _threads() == 1
    await asyncio.to_thread(client.close)
    assert _threads() == 0
    await double.until(lambda: double.ended == 1)
    client.close()
    speech.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        client.info()


def test_a_blocking_client_that_is_dropped_ends_its_thread() -> None:
    client = BlockingClient("localhost:1")
    assert _threads() == 1
    del client
    assert _threads() == 0
