"""The Synthesize stream, over the wire, against a server with the fake engine."""

import asyncio
from collections.abc import Iterable

import grpc
import grpc.aio
import numpy as np
import pytest
from google.protobuf.duration_pb2 import Duration

from fake_engine import FRAME, frame_value, frames_of
from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub

Request = tts_pb2.SynthesizeRequest
SEGMENTS = tts_pb2.SpeechConfig(segment_events=True)


def text(value: str) -> Request:
    return Request(text=value)


def flush(flush_id: str = "") -> Request:
    return Request(flush=tts_pb2.Flush(id=flush_id))


async def collect(
    channel: grpc.aio.Channel, requests: Iterable[Request]
) -> list[tts_pb2.SpeechEvent]:
    """All events of a stream that sends `requests` and half-closes."""
    call = TextToSpeechServiceStub(channel).Synthesize(iter(requests))
    return [response.event async for response in call]


def samples(events: Iterable[tts_pb2.SpeechEvent]) -> np.ndarray:
    data = b"".join(e.audio.data for e in events if e.HasField("audio"))
    return np.frombuffer(data, "<i2")


def expected(*texts: str) -> np.ndarray:
    values = [frame_value(t, i) for t in texts for i in range(frames_of(t))]
    return np.repeat(np.rint(np.float32(values) * np.float32(32767)).astype("<i2"), FRAME)


def kinds(events: Iterable[tts_pb2.SpeechEvent]) -> list[str]:
    return [str(event.WhichOneof("event")) for event in events]


def check_order(events: list[tts_pb2.SpeechEvent]) -> None:
    assert [e.sequence for e in events] == list(range(1, len(events) + 1))
    offset = 0
    for event in events:
        if event.HasField("audio"):
            assert event.audio.sample_offset == offset
            assert len(event.audio.data) == 2 * event.audio.sample_count > 0
            offset += event.audio.sample_count


async def test_a_stream_gives_started_audio_finished(channel: grpc.aio.Channel) -> None:
    events = await collect(channel, [text("One two three. "), text("Four five.")])
    check_order(events)
    assert kinds(events)[0] == "started"
    assert kinds(events)[-1] == "finished"
    assert np.array_equal(samples(events), expected("One two three.", "Four five."))
    assert events[-1].finished.reason == tts_pb2.FINISH_REASON_END_OF_INPUT
    assert events[-1].finished.stats.segments == 2


async def test_segment_events_carry_spans_text_and_reasons(channel: grpc.aio.Channel) -> None:
    events = await collect(channel, [Request(config=SEGMENTS), text("Héllo 😀 to you.  And two")])
    started = [e.segment_started for e in events if e.HasField("segment_started")]
    assert [(s.span.start, s.span.end) for s in started] == [(0, 15), (17, 24)]
    assert [s.text for s in started] == ["Héllo 😀 to you.", "And two"]
    finished = [e.segment_finished for e in events if e.HasField("segment_finished")]
    assert [f.outcome for f in finished] == [tts_pb2.SEGMENT_OUTCOME_COMPLETE] * 2


async def test_half_close_at_once_finishes_with_ok(channel: grpc.aio.Channel) -> None:
    events = await collect(channel, [])
    assert kinds(events) == ["started", "finished"]


async def test_a_flush_is_answered_after_its_audio(channel: grpc.aio.Channel) -> None:
    events = await collect(
        channel, [flush("0"), text("Sure"), flush("a"), text("Bye."), flush("b")]
    )
    check_order(events)
    flushed = [e.flushed for e in events if e.HasField("flushed")]
    assert [(f.id, f.sample_offset, f.cleared) for f in flushed] == [
        ("0", 0, False),
        ("a", FRAME, False),
        ("b", 2 * FRAME, False),
    ]


async def test_a_pause_is_exact_silence_at_its_place(channel: grpc.aio.Channel) -> None:
    pause = Request(pause=tts_pb2.Pause(duration=Duration(nanos=12_345_678)))
    events = await collect(channel, [text("One"), pause, text("Two")])
    count = round(0.012345678 * 24000)
    silence = np.zeros(count, "<i2")
    assert np.array_equal(
        samples(events), np.concatenate([expected("One"), silence, expected("Two")])
    )


async def test_clear_drops_what_is_not_heard(channel: grpc.aio.Channel) -> None:
    call = TextToSpeechServiceStub(channel).Synthesize()
    await call.write(text("frames@500 delay@10 one two three four."))
    await call.write(flush("f"))
    events = []
    async for response in call:
        events.append(response.event)
        if response.event.HasField("audio") and len(events) < 6:
            break
    await call.write(Request(clear=tts_pb2.Clear(id="c", heard_samples=FRAME)))
    await call.write(text("New words."))
    await call.done_writing()
    events += [response.event async for response in call]
    check_order(events)
    order = [k for k in kinds(events) if k in ("segment_finished", "flushed", "cleared")]
    assert order == ["segment_finished", "flushed", "cleared"]
    cleared = next(e for e in events if e.HasField("cleared"))
    assert cleared.epoch == cleared.cleared.epoch == 1
    assert cleared.cleared.id == "c"
    spoken = cleared.cleared.text_spoken + cleared.cleared.text_unspoken
    assert spoken == "frames@500 delay@10 one two three four."
    after = [e for e in events if e.epoch == 1]
    assert after[0] is cleared
    assert np.array_equal(samples(after), expected("New words."))


async def test_text_is_spoken_after_a_pause_of_the_writer(channel: grpc.aio.Channel) -> None:
    config = tts_pb2.SpeechConfig(
        segment_events=True,
        segmentation=tts_pb2.Segmentation(max_text_delay=Duration(nanos=100_000_000)),
    )
    call = TextToSpeechServiceStub(channel).Synthesize()
    await call.write(Request(config=config))
    await call.write(text("Hello there."))
    async with asyncio.timeout(5):
        async for response in call:
            if response.event.HasField("segment_finished"):
                break
    await call.done_writing()
    events = [response.event async for response in call]
    assert kinds(events) == ["finished"]


@pytest.mark.parametrize("order", ["fail@0", "nan@0"])
async def test_a_failed_segment_does_not_end_the_stream(
    channel: grpc.aio.Channel, order: str
) -> None:
    events = await collect(channel, [text(f"{order} bad one. "), text("Good one.")])
    outcome = next(e.segment_finished for e in events if e.HasField("segment_finished"))
    assert outcome.outcome == tts_pb2.SEGMENT_OUTCOME_FAILED
    assert outcome.error.reason == "SYNTHESIS_FAILED"
    assert np.array_equal(samples(events), expected("Good one."))


async def test_nothing_spoken_ends_with_the_segments_error(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await collect(channel, [text("fail@0 bad one.")])
    assert caught.value.code() is grpc.StatusCode.INTERNAL


async def test_a_second_config_ends_the_stream(channel: grpc.aio.Channel) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await collect(channel, [text("Hello."), Request(config=SEGMENTS)])
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_speech_begins_before_the_text_has_ended(channel: grpc.aio.Channel) -> None:
    """An LLM writes 40 tokens, 50 a second."""
    tokens = ["Sure. ", *(f"word{n} " for n in range(38)), "end."]
    call = TextToSpeechServiceStub(channel).Synthesize()
    order: list[str] = []

    async def write() -> None:
        for token in tokens:
            await call.write(text(token))
            await asyncio.sleep(0.02)
        order.append("last token")
        await call.done_writing()

    writing = asyncio.create_task(write())
    async for response in call:
        order += ["audio"] * response.event.HasField("audio")
    await writing
    assert order[0] == "audio"
    assert order.count("audio") >= 2


async def test_five_paragraphs_of_three_sentences_are_fifteen_segments(
    channel: grpc.aio.Channel,
) -> None:
    sentences = [f"Paragraph {p} has sentence {s}." for p in range(5) for s in range(3)]
    whole = "\n\n".join(" ".join(sentences[i : i + 3]) for i in range(0, 15, 3))
    events = await collect(channel, [Request(config=SEGMENTS), text(whole)])
    assert [e.segment_started.text for e in events if e.HasField("segment_started")] == sentences
    assert np.array_equal(samples(events), expected(*sentences))


async def test_a_client_that_reads_slowly_gets_every_sample(channel: grpc.aio.Channel) -> None:
    words = "frames@60 for a patient listener."
    call = TextToSpeechServiceStub(channel).Synthesize(iter([text(words)]))
    events = []
    async for response in call:
        events.append(response.event)
        await asyncio.sleep(0.03)
    check_order(events)
    assert np.array_equal(samples(events), expected(words))
