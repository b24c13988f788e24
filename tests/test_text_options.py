"""`SpeechConfig.text` through a server."""

import grpc
import grpc.aio
import pytest

from intone.v1 import tts_pb2, tts_pb2_grpc

TEXT = "**Wait a moment** [pause:300ms] and then pay $5 to the LLM."
OPTIONS = tts_pb2.TextOptions(
    strip_markdown=True,
    inline_pauses=True,
    normalize=True,
    replacements=[tts_pb2.Replacement(word="llm", spoken="language model")],
)
SPOKEN = ["Wait a moment", "", "and then pay five dollars to the language model."]


def config(options: tts_pb2.TextOptions = OPTIONS) -> tts_pb2.SpeechConfig:
    return tts_pb2.SpeechConfig(text=options, segment_events=True)


async def events_of(channel: grpc.aio.Channel, text: str) -> list[tts_pb2.SpeechEvent]:
    stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
    request = tts_pb2.SynthesizeTextRequest(text=text, config=config())
    return [response.event async for response in stub.SynthesizeText(request, timeout=20)]


async def test_what_is_spoken_is_told_and_spans_are_of_what_was_sent(
    channel: grpc.aio.Channel,
) -> None:
    events = await events_of(channel, TEXT)
    started = [e.segment_started for e in events if e.HasField("segment_started")]
    assert [s.text for s in started] == SPOKEN
    assert TEXT[started[0].span.start : started[0].span.end] == "**Wait a moment**"
    assert TEXT[started[2].span.start :] == "and then pay $5 to the LLM."
    assert events[0].started.effective_config.text == OPTIONS


async def test_a_pause_in_the_text_is_exact_silence(channel: grpc.aio.Channel) -> None:
    events = await events_of(channel, TEXT)
    silence = [e for e in events if e.HasField("segment_finished")][1].segment_finished
    assert silence.sample_count == 7200
    data = b"".join(e.audio.data for e in events if e.audio.segment == 1)
    assert data == bytes(2 * 7200)


async def test_a_stream_in_pieces_does_the_same(channel: grpc.aio.Channel) -> None:
    call = tts_pb2_grpc.TextToSpeechServiceStub(channel).Synthesize(timeout=20)
    await call.write(tts_pb2.SynthesizeRequest(config=config()))
    for at in range(0, len(TEXT), 3):
        await call.write(tts_pb2.SynthesizeRequest(text=TEXT[at : at + 3]))
    await call.done_writing()
    events = [response.event async for response in call]
    assert [e.segment_started.text for e in events if e.HasField("segment_started")] == SPOKEN


async def test_a_pause_that_is_clamped_is_told(channel: grpc.aio.Channel) -> None:
    """Reported case 79: silence before and after a text is written in it."""
    events = await events_of(channel, "[pause:200ms] One two three. [pause:1h] [pause:99s]")
    (notice,) = (e.notice for e in events if e.HasField("notice"))
    assert notice.kind == tts_pb2.NOTICE_KIND_TEXT_ALTERED
    assert notice.message == "a pause of 99 s in the text lasts 10 s"
    counts = [e.segment_finished.sample_count for e in events if e.HasField("segment_finished")]
    assert (counts[0], counts[-1]) == (4800, 240_000)


async def test_a_plan_shows_what_was_sent_and_what_would_be_spoken(
    channel: grpc.aio.Channel,
) -> None:
    stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
    plan = await stub.PlanText(tts_pb2.PlanTextRequest(text=TEXT, config=config()))
    assert [(s.text, s.spoken_text) for s in plan.segments] == [
        ("**Wait a moment**", SPOKEN[0]),
        ("[pause:300ms]", ""),
        ("and then pay $5 to the LLM.", SPOKEN[2]),
    ]
    assert plan.segments[1].estimated_audio.ToMilliseconds() == 300
    total = sum(s.estimated_audio.ToMicroseconds() for s in plan.segments)
    assert plan.estimated_audio.ToMicroseconds() == pytest.approx(total, abs=3)


async def test_a_clear_gives_back_the_text_that_was_sent(channel: grpc.aio.Channel) -> None:
    call = tts_pb2_grpc.TextToSpeechServiceStub(channel).Synthesize(timeout=20)
    await call.write(tts_pb2.SynthesizeRequest(config=config()))
    text = "**frames@2 is said.** [Nobody hears](http://x.org) frames@100 delay@50 of this."
    await call.write(tts_pb2.SynthesizeRequest(text=text))
    await call.write(tts_pb2.SynthesizeRequest(flush=tts_pb2.Flush()))
    cleared = None
    async for response in call:
        event = response.event
        if event.segment_started.segment == 1 and event.HasField("segment_started"):
            clear = tts_pb2.Clear(heard_samples=event.segment_started.sample_offset)
            await call.write(tts_pb2.SynthesizeRequest(clear=clear))
            await call.done_writing()
        if event.HasField("cleared"):
            cleared = event.cleared
    assert cleared is not None
    assert cleared.text_spoken + cleared.text_unspoken == text
    assert cleared.text_spoken == "**frames@2 is said.**"


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (tts_pb2.Replacement(word=" "), "config.text.replacements[0].word"),
        (tts_pb2.Replacement(word="x" * 101), "config.text.replacements[0].word"),
        (tts_pb2.Replacement(word="x", spoken="y" * 501), "config.text.replacements[0].spoken"),
    ],
)
async def test_a_rule_outside_its_limits_is_refused_by_name(
    channel: grpc.aio.Channel, rule: tts_pb2.Replacement, field: str
) -> None:
    stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
    options = tts_pb2.TextOptions(replacements=[rule])
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.PlanText(tts_pb2.PlanTextRequest(text="x", config=config(options)))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details().startswith(field)


async def test_too_many_rules_are_refused(channel: grpc.aio.Channel) -> None:
    stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
    options = tts_pb2.TextOptions(replacements=[tts_pb2.Replacement(word="x")] * 501)
    with pytest.raises(grpc.aio.AioRpcError, match="limit 500"):
        await stub.PlanText(tts_pb2.PlanTextRequest(text="x", config=config(options)))
