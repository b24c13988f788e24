"""Calls of the client beside streams: answers, retries, errors, addresses, public names."""

import asyncio
import socket
import struct
import time
import wave
from pathlib import Path

import grpc
import pytest

import intone_client
from client_double import Call, Double, double_fixture, serving, speak, spoken  # noqa: F401
from intone_client import (
    Client,
    DeadlineExceededError,
    IntoneError,
    InvalidArgumentError,
    OutOfRangeError,
    UnavailableError,
    WavWriter,
    speech_config,
)

pytestmark = pytest.mark.timeout(20)


def test_the_public_names_are_these() -> None:
    assert sorted(intone_client.__all__) == [
        "AlreadyExistsError",
        "BlockingClient",
        "BlockingDialogue",
        "BlockingSpeech",
        "BlockingStream",
        "CallCancelledError",
        "Client",
        "DeadlineExceededError",
        "Dialogue",
        "FailedPreconditionError",
        "IntoneError",
        "InvalidArgumentError",
        "NotAllowedError",
        "NotFoundError",
        "OutOfRangeError",
        "OverloadedError",
        "RenderedDialogue",
        "Replacement",
        "Script",
        "ScriptError",
        "Speech",
        "SpeechConfig",
        "SpeechEvent",
        "SpeechStream",
        "SpokenItem",
        "SpokenSegment",
        "StreamEndedError",
        "SynthesisError",
        "UnavailableError",
        "WavWriter",
        "audio",
        "line",
        "reuse",
        "silence",
        "speech_config",
        "tls",
    ]
    public = {name for name in vars(intone_client) if not name.startswith("_")}
    assert public - {"cli"} == set(intone_client.__all__)


async def test_a_whole_text_comes_back_as_events(double: Double) -> None:
    async with Client(double.address) as client:
        speech = client.synthesize_text("ab", speech_config(voice="alba"))
        kinds = [event.WhichOneof("event") async for event in speech]
        assert kinds == ["started", "audio", "finished"]
        audio = [data async for data in client.synthesize_text("ab").audio()]
        assert b"".join(audio) == spoken("ab")
    assert double.requests[0].config.voice == "alba"


async def test_unary_calls_answer_with_the_messages_of_the_contract(double: Double) -> None:
    async with Client(double.address) as client:
        assert (await client.synthesize_file("hi")).audio == b"RIFF"
        assert (await client.plan("hi")).segments[0].text == "hi"
        assert (await client.info()).limits.max_text_characters == 7
        assert (await client.capacity()).replicas_total == 3


async def test_voices_are_collected_over_all_pages(double: Double) -> None:
    async with Client(double.address) as client:
        assert [voice.name for voice in await client.voices()] == list("abcde")


async def test_unix_addresses_work(tmp_path: Path) -> None:
    async with serving(f"unix:{tmp_path}/socket") as there, Client(there.address) as client:
        assert (await client.info()).engine == "builtin"


@pytest.mark.parametrize("method", ["stream", "synthesize_text"])
async def test_a_refusal_before_any_event_is_retried_after_the_pushback(
    double: Double, method: str
) -> None:
    async def script(call: Call) -> None:
        if double.calls < 3:
            await call.fail(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", "full", retry_seconds=0.3
            )
        await speak(call)

    double.script = script
    began = time.monotonic()
    async with Client(double.address) as client:
        if method == "stream":
            async with client.stream() as stream:
                await stream.push_text("ab")
                await stream.end_input()
                audio = [data async for data in stream.audio()]
        else:
            audio = [data async for data in client.synthesize_text("ab").audio()]
    assert audio == [spoken("ab")]
    assert double.calls == 3
    assert 0.6 <= time.monotonic() - began < 2


async def test_retries_end_with_the_servers_own_error(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.fail(grpc.StatusCode.UNAVAILABLE, "STARTING", "loading", retry_seconds=0.01)

    double.script = script
    async with Client(double.address) as client:
        with pytest.raises(UnavailableError) as caught:
            await anext(client.synthesize_text("x", request_id="r-1"))
    assert double.calls == 4
    assert str(caught.value) == "UNAVAILABLE (STARTING): loading; retry in 0.0 s"
    assert caught.value.request_id == "r-1"


async def test_nothing_is_retried_after_the_first_event(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.audio(b"aa")
        await call.fail(grpc.StatusCode.UNAVAILABLE, "REPLICA_LOST", "lost", retry_seconds=0.01)

    double.script = script
    async with Client(double.address) as client:
        audio = client.synthesize_text("x").audio()
        assert await anext(audio) == b"aa"
        with pytest.raises(UnavailableError, match="REPLICA_LOST"):
            await anext(audio)
        await asyncio.sleep(0.1)
    assert double.calls == 1


async def test_an_error_carries_code_reason_delay_request_id_and_violations(
    double: Double,
) -> None:
    async def script(call: Call) -> None:
        await call.fail(
            grpc.StatusCode.INVALID_ARGUMENT,
            "BAD_CONFIG",
            "2 fields are wrong",
            retry_seconds=1.25,
            violations=[("config.voice", "no such voice"), ("text", "empty")],
        )

    double.script = script
    async with Client(double.address) as client:
        with pytest.raises(InvalidArgumentError) as caught:
            await anext(client.synthesize_text("x", request_id="r-9"))
    error = caught.value
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert (error.reason, error.retry_delay, error.request_id) == ("BAD_CONFIG", 1.25, "r-9")
    assert error.violations == [("config.voice", "no such voice"), ("text", "empty")]
    assert str(error) == "INVALID_ARGUMENT (BAD_CONFIG): 2 fields are wrong; retry in 1.2 s"


async def test_unary_calls_raise_the_same_errors(double: Double) -> None:
    async with Client(double.address) as client:
        with pytest.raises(OutOfRangeError, match="FILE_TOO_LONG"):
            await client.synthesize_file("x" * 101)


async def test_an_error_without_details_is_still_an_intone_error(double: Double) -> None:
    async def script(call: Call) -> None:
        junk = (("grpc-status-details-bin", b"\xff\xff\xff"),)
        await call.context.abort(grpc.StatusCode.DATA_LOSS, "odd", junk)

    double.script = script
    async with Client(double.address) as client:
        with pytest.raises(IntoneError) as caught:
            await anext(client.synthesize_text("x"))
    assert caught.value.code is grpc.StatusCode.DATA_LOSS
    assert (caught.value.reason, caught.value.retry_delay) == ("", None)
    assert type(caught.value) is IntoneError


async def test_a_server_that_is_not_there_is_named() -> None:
    began = time.monotonic()
    async with Client("localhost:1") as client:
        with pytest.raises(UnavailableError, match="no server answers at localhost:1"):
            await client.info()
        with pytest.raises(UnavailableError, match="no server answers at localhost:1"):
            await anext(client.stream())
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("speech", "speech:50051"),
        ("10.0.0.7", "10.0.0.7:50051"),
        ("[::1]", "[::1]:50051"),
        ("speech:1", "speech:1"),
        ("[::1]:1", "[::1]:1"),
        ("unix:socket", "unix:socket"),
        ("dns:///speech:1", "dns:///speech:1"),
    ],
)
def test_a_host_without_a_port_means_port_50051(given: str, used: str) -> None:
    assert Client(given).address == used


async def test_a_connection_that_is_lost_says_so(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    double.script = script
    async with Client(double.address) as client:
        speech = client.synthesize_text("x")
        await anext(speech)
        with pytest.raises(UnavailableError) as caught:
            await anext(speech)
    lost = f"UNAVAILABLE: the connection to {double.address} failed: Socket closed"
    assert str(caught.value) == lost


async def test_a_port_that_does_not_speak_grpc_is_given_up_after_five_seconds() -> None:
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        async with Client(f"localhost:{port}") as client:
            with pytest.raises(UnavailableError, match=f"no server answers at localhost:{port}"):
                await client.info()
    assert time.monotonic() - began < 6.5


async def test_the_timeout_is_the_deadline_of_the_call(double: Double) -> None:
    async def script(call: Call) -> None:
        await asyncio.sleep(30)

    double.script = script
    async with Client(double.address) as client:
        with pytest.raises(DeadlineExceededError):
            await anext(client.synthesize_text("x", timeout=0.2))
        await double.until(lambda: double.ended == 1)


def test_a_wav_file_is_right_after_every_write_and_in_place_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "hello.wav"
    with WavWriter(path, 24000) as writer:
        for count in (1, 2, 3):
            writer.write(struct.pack("<2h", 1, -1))
            with wave.open(str(tmp_path / "hello.wav.part")) as growing:
                assert growing.getnframes() == 2 * count
        assert not path.exists()
    with wave.open(str(path)) as done:
        assert done.getparams()[:4] == (1, 2, 24000, 6)
        assert done.readframes(6) == struct.pack("<6h", 1, -1, 1, -1, 1, -1)
    assert [each.name for each in tmp_path.iterdir()] == ["hello.wav"]


def test_a_wav_file_without_samples_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "hello.wav"
    path.write_bytes(b"old")
    WavWriter(path, 24000).close()
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["hello.wav"]


def test_a_wav_file_never_replaces_a_device(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a plain file"):
        WavWriter("/dev/null", 24000)
    with pytest.raises(NotADirectoryError, match="missing is not a directory"):
        WavWriter(tmp_path / "missing" / "hello.wav", 24000)
