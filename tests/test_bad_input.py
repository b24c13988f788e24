"""Bad input gets a clear status naming field, limit and value, and disturbs nobody else."""

import asyncio
import math
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from test_synthesize import Request, collect, expected, kinds, samples, text

Config = tts_pb2.SpeechConfig


def details(error: grpc.aio.AioRpcError) -> tuple[str, dict[str, str]]:
    """The reason and the violations of a status."""
    metadata = dict(error.trailing_metadata() or ())
    assert metadata["x-request-id"]
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    info, request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details:
        detail.Unpack(info)
        detail.Unpack(request)
    return info.reason, {v.field: v.description for v in request.field_violations}


async def refusal(channel: grpc.aio.Channel, config: Config) -> grpc.aio.AioRpcError:
    """The error that a stream with this config ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await collect(channel, [Request(config=config), text("Hello.")])
    return caught.value


def sampling(**values: Any) -> Config:
    return Config(sampling=tts_pb2.Sampling(**values))


@pytest.mark.parametrize(
    ("config", "field", "reason"),
    [
        (sampling(temperature=-1), "config.sampling.temperature", "BAD_CONFIG"),
        (sampling(temperature=math.nan), "config.sampling.temperature", "BAD_CONFIG"),
        (sampling(temperature=math.inf), "config.sampling.temperature", "BAD_CONFIG"),
        (sampling(temperature=1e9), "config.sampling.temperature", "BAD_CONFIG"),
        (sampling(noise_clamp=1), "config.sampling.noise_clamp", "UNSUPPORTED_OPTION"),
        (
            Config(format=tts_pb2.AudioFormat(encoding=77)),  # type: ignore[arg-type]
            "config.format.encoding",
            "UNSUPPORTED_FORMAT",
        ),
        (
            Config(format=tts_pb2.AudioFormat(encoding=tts_pb2.AUDIO_ENCODING_WAV)),
            "config.format.encoding",
            "UNSUPPORTED_FORMAT",
        ),
        (
            Config(format=tts_pb2.AudioFormat(sample_rate_hertz=11025)),
            "config.format.sample_rate_hertz",
            "UNSUPPORTED_FORMAT",
        ),
        (
            Config(segmentation=tts_pb2.Segmentation(mode=9)),  # type: ignore[arg-type]
            "config.segmentation.mode",
            "BAD_CONFIG",
        ),
        (
            Config(segmentation=tts_pb2.Segmentation(max_characters=1)),
            "config.segmentation.max_characters",
            "BAD_CONFIG",
        ),
        (
            Config(segmentation=tts_pb2.Segmentation(max_characters=100_000)),
            "config.segmentation.max_characters",
            "BAD_CONFIG",
        ),
        (
            Config(segmentation=tts_pb2.Segmentation(max_text_delay=Duration())),
            "config.segmentation.max_text_delay",
            "BAD_CONFIG",
        ),
        (
            Config(segmentation=tts_pb2.Segmentation(max_text_delay=Duration(seconds=-5))),
            "config.segmentation.max_text_delay",
            "BAD_CONFIG",
        ),
        (
            Config(scheduling=tts_pb2.Scheduling(max_queue_wait=Duration(seconds=10**11))),
            "config.scheduling.max_queue_wait",
            "BAD_CONFIG",
        ),
        (
            Config(scheduling=tts_pb2.Scheduling(max_ahead=Duration(nanos=99_999_999))),
            "config.scheduling.max_ahead",
            "BAD_CONFIG",
        ),
        (
            Config(scheduling=tts_pb2.Scheduling(max_ahead=Duration(seconds=601))),
            "config.scheduling.max_ahead",
            "BAD_CONFIG",
        ),
        (
            Config(scheduling=tts_pb2.Scheduling(priority=9)),  # type: ignore[arg-type]
            "config.scheduling.priority",
            "BAD_CONFIG",
        ),
        (Config(language="xx"), "config.language", "UNSUPPORTED_OPTION"),
    ],
)
async def test_a_bad_setting_is_named(
    channel: grpc.aio.Channel, config: Config, field: str, reason: str
) -> None:
    error = await refusal(channel, config)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    found, violations = details(error)
    assert (found, list(violations)) == (reason, [field])


async def test_all_violations_come_at_once(channel: grpc.aio.Channel) -> None:
    config = sampling(temperature=-1, decode_steps=0)
    config.language = "xx"
    error = await refusal(channel, config)
    assert set(details(error)[1]) == {
        "config.language",
        "config.sampling.temperature",
        "config.sampling.decode_steps",
    }


@pytest.mark.parametrize(
    "voice",
    ["nobody", "/etc/passwd", "../x.wav", "http://127.0.0.1:1/v.wav", "hf://a/b/c", "Zoë", "a\0b"],
)
async def test_an_unknown_voice_is_not_found_whatever_it_looks_like(
    channel: grpc.aio.Channel, voice: str
) -> None:
    error = await refusal(channel, Config(voice=voice))
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert details(error)[0] == "VOICE_NOT_FOUND"
    assert repr(voice) in (error.details() or "")


async def test_a_long_wrong_name_is_not_repeated_whole(channel: grpc.aio.Channel) -> None:
    error = await refusal(channel, Config(voice="v" * 10_000))
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert len(error.details() or "") < 200


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u00a0"])
async def test_blank_text_is_refused_where_it_is_all_there_is(
    channel: grpc.aio.Channel, blank: str
) -> None:
    stub = TextToSpeechServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text=blank))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert list(details(caught.value)[1]) == ["text"]


async def test_blank_pieces_of_a_stream_do_nothing(channel: grpc.aio.Channel) -> None:
    events = await collect(channel, map(text, ["", " ", "\n", "Hello.", "", "  "]))
    assert "segment_finished" not in kinds(events)
    assert (samples(events) == expected("Hello.")).all()


@pytest.mark.parametrize("silent", ["---", "😀", "...", "?!", "\0\x07"])
async def test_what_cannot_be_spoken_is_reported_as_skipped(
    channel: grpc.aio.Channel, silent: str
) -> None:
    events = await collect(channel, [text(silent)])
    outcomes = [e.segment_finished.outcome for e in events if e.HasField("segment_finished")]
    assert outcomes == [tts_pb2.SEGMENT_OUTCOME_SKIPPED]
    stub = TextToSpeechServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text=silent))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_control_characters_do_not_reach_the_model(channel: grpc.aio.Channel) -> None:
    events = await collect(channel, [text("Hel\0lo\x07 there.")])
    assert (samples(events) == expected("Hello there.")).all()


async def test_twenty_thousand_letters_without_a_space_are_spoken(
    channel: grpc.aio.Channel,
) -> None:
    events = await collect(channel, [text("a" * 10_000), text("a" * 10_000)])
    assert len(samples(events)) == 100 * 1920


async def test_a_piece_over_the_limit_names_both_numbers(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await collect(channel, [text("x" * 20_000)])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value)[0] == "TEXT_TOO_LONG"
    assert "20,000" in (caught.value.details() or "")
    assert "16,384" in (caught.value.details() or "")


async def test_a_text_over_the_limit_names_both_numbers(channel: grpc.aio.Channel) -> None:
    stub = TextToSpeechServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.SynthesizeText(tts_pb2.SynthesizeTextRequest(text="x" * 10_001)).read()
    assert details(caught.value)[1] == {"text": "text has 10,001 characters, limit 10,000"}


async def test_a_text_too_long_for_a_file_is_refused_before_it_is_spoken(
    channel: grpc.aio.Channel,
) -> None:
    stub = TextToSpeechServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text="word " * 1900))
    assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE
    assert details(caught.value)[0] == "FILE_TOO_LONG"
    assert "SynthesizeText" in (caught.value.details() or "")


async def test_audio_too_long_for_a_file_stops_the_model(channel: grpc.aio.Channel) -> None:
    stub = TextToSpeechServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text="frames@5000 long."))
    assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE


@pytest.mark.parametrize(
    "pause", [Duration(), Duration(seconds=-1), Duration(seconds=61), Duration(seconds=10**12)]
)
async def test_an_absurd_pause_is_refused(channel: grpc.aio.Channel, pause: Duration) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await collect(channel, [Request(pause=tts_pb2.Pause(duration=pause))])
    assert list(details(caught.value)[1]) == ["pause.duration"]


async def test_a_message_without_input_is_refused(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await collect(channel, [Request()])
    assert list(details(caught.value)[1]) == ["input"]


async def test_config_after_text_is_a_failed_precondition(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await collect(channel, [text("Hello."), Request(config=Config())])
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert details(caught.value)[0] == "CONFIG_NOT_FIRST"


# Field 2 (text) of type bytes, two bytes long, which are not UTF-8.
INVALID_UTF8 = b"\x12\x02\xff\xfe"


@pytest.mark.parametrize("good_first", [False, True])
async def test_invalid_utf8_is_an_invalid_argument_without_class_names(
    channel: grpc.aio.Channel, good_first: bool
) -> None:
    raw = channel.stream_stream("/intone.v1.TextToSpeechService/Synthesize")
    call = raw(iter([b"\x12\x03Hi.", INVALID_UTF8] if good_first else [INVALID_UTF8]))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in call:
            pass
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value)[0] == "BAD_MESSAGE"
    assert "_pb2" not in (caught.value.details() or "")


async def test_invalid_utf8_in_a_unary_call_is_an_invalid_argument(
    channel: grpc.aio.Channel,
) -> None:
    raw = channel.unary_unary("/intone.v1.TextToSpeechService/SynthesizeFile")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await raw(b"\x0a\x02\xff\xfe")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "method",
    [
        "grpc.health.v1.Health/Check",
        "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ],
)
async def test_bytes_that_are_no_message_are_an_invalid_argument_everywhere(
    channel: grpc.aio.Channel, method: str
) -> None:
    kind = channel.unary_unary if "Check" in method else channel.stream_stream
    garbage = b"\xff\xff\xff\xff"
    call = kind(f"/{method}")(garbage if "Check" in method else iter([garbage]))
    assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "google" not in (await call.details() or "")


async def test_a_message_over_the_size_limit_is_refused(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await collect(channel, [text("x" * 2_000_000)])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "limit 1,048,576" in (caught.value.details() or "")


async def test_page_sizes_outside_the_range_are_refused(channel: grpc.aio.Channel) -> None:
    from intone.v1 import voices_pb2
    from intone.v1.voices_pb2_grpc import VoiceServiceStub

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await VoiceServiceStub(channel).ListVoices(voices_pb2.ListVoicesRequest(page_size=-1))
    assert details(caught.value)[1] == {"page_size": "is -1, allowed is 0 to 1000"}


async def test_a_bad_stream_disturbs_no_other(channel: grpc.aio.Channel) -> None:
    async def bad() -> None:
        with pytest.raises(grpc.aio.AioRpcError):
            await collect(channel, [text("Hello."), Request(config=Config())])

    good = collect(channel, [text("delay@5 this one is heard to its end.")])
    events, *_ = await asyncio.gather(good, *(bad() for _ in range(5)))
    assert (samples(events) == expected("delay@5 this one is heard to its end.")).all()


async def test_the_true_status_reaches_a_client_that_is_still_writing(
    channel: grpc.aio.Channel,
) -> None:
    """... if it stops on the notice that comes first."""
    for _ in range(20):
        call = TextToSpeechServiceStub(channel).Synthesize()
        told = asyncio.Event()

        async def write(call: Any = call, told: asyncio.Event = told) -> None:
            await call.write(text("Hello."))
            await call.write(Request(config=Config()))
            while not told.is_set():
                try:
                    await call.write(text("more "))
                except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
                    return
                await asyncio.sleep(0)

        writing = asyncio.create_task(write())
        codes: list[Any] = []
        try:
            async for response in call:
                if response.event.HasField("notice"):
                    assert response.event.notice.kind == tts_pb2.NOTICE_KIND_ERROR
                    told.set()
        except grpc.aio.AioRpcError as error:
            codes.append(error.code())
        await writing
        assert codes == [grpc.StatusCode.FAILED_PRECONDITION]
