"""SynthesizeDialogue, and voices inside a stream, as a client sees them."""

import asyncio
import io
import itertools
import random
import wave
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeAlias

import grpc
import numpy as np
import psutil
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest
from grpc_status import rpc_status

from fake_engine import FRAME, frame_value
from intone.v1 import tts_pb2, tts_pb2_grpc
from processes import ServerProcess, running_server, wait_for
from tiny_pocket import TinyPocket

Event = tts_pb2.SpeechEvent
Stub: TypeAlias = Any  # of grpc.aio, which the stubs have no type for at run time


@pytest.fixture(scope="module")
def wide_server() -> Iterator[ServerProcess]:
    """Three replicas."""
    with running_server("--engine", "fake", "--workers", "3") as server:
        yield server


@pytest.fixture
async def stub(wide_server: ServerProcess) -> AsyncIterator[Stub]:
    async with grpc.aio.insecure_channel(wide_server.address) as channel:
        yield tts_pb2_grpc.TextToSpeechServiceStub(channel)


def line(text: str, speaker: str = "", item_id: str = "", **sampling: Any) -> tts_pb2.DialogueItem:
    speech = tts_pb2.SpeechItem(speaker=speaker, text=text)
    if sampling:
        speech.sampling.CopyFrom(tts_pb2.Sampling(**sampling))
    return tts_pb2.DialogueItem(id=item_id, speech=speech)


def silence(seconds: float) -> tts_pb2.DialogueItem:
    duration = Duration(nanos=round(seconds % 1 * 1e9), seconds=int(seconds))
    return tts_pb2.DialogueItem(silence=tts_pb2.SilenceItem(duration=duration))


def reuse(item_id: str) -> tts_pb2.DialogueItem:
    return tts_pb2.DialogueItem(reuse=tts_pb2.ReuseItem(item_id=item_id))


def audio(data: bytes, **audio_format: Any) -> tts_pb2.DialogueItem:
    item = tts_pb2.AudioItem(data=data)
    if audio_format:
        item.format.CopyFrom(tts_pb2.AudioFormat(**audio_format))
    return tts_pb2.DialogueItem(audio=item)


def request(*items: tts_pb2.DialogueItem, **fields: Any) -> tts_pb2.SynthesizeDialogueRequest:
    fields = {"cast": {"anna": "anna", "ben": "bert"}} | fields
    return tts_pb2.SynthesizeDialogueRequest(items=items, **fields)


async def events_of(
    stub: Stub, asked: tts_pb2.SynthesizeDialogueRequest, heard: list[Event] | None = None
) -> list[Event]:
    """All of them, also in `heard` if the call fails."""
    heard = [] if heard is None else heard
    async for response in stub.SynthesizeDialogue(asked, timeout=60):
        heard.append(response.event)
    return heard


def by_item(heard: list[Event]) -> dict[int, bytes]:
    """The audio of each item."""
    item_of = {
        e.segment_started.segment: e.segment_started.item
        for e in heard
        if e.HasField("segment_started") and e.segment_started.HasField("item")
    }
    found: dict[int, bytes] = dict.fromkeys(item_of.values(), b"")
    for event in heard:
        if event.HasField("audio") and event.audio.segment in item_of:
            found[item_of[event.audio.segment]] += event.audio.data
    return found


def timeline(heard: list[Event]) -> bytes:
    """All audio, whose offsets are checked on the way."""
    chunks = [e.audio for e in heard if e.HasField("audio")]
    ends = [0, *itertools.accumulate(c.sample_count for c in chunks)]
    assert [c.sample_offset for c in chunks] == ends[:-1]
    assert [e.sequence for e in heard] == list(range(1, len(heard) + 1))
    return b"".join(c.data for c in chunks)


def spoken(text: str) -> bytes:
    """What the fake engine makes of a text of one segment."""
    values = [round(frame_value(text, i) * 32767) for i in range(len(text.split()))]
    return b"".join(np.full(FRAME, value, "<i2").tobytes() for value in values)


def violations(error: grpc.aio.AioRpcError) -> dict[str, str]:
    status = rpc_status.from_call(error)
    assert status is not None
    bad = BadRequest()
    assert any(detail.Unpack(bad) for detail in status.details)
    return {v.field: v.description for v in bad.field_violations}


def mixed_script(count: int = 50) -> list[tts_pb2.DialogueItem]:
    """Lines of two speakers, of a few to twenty words, with silences and repetitions between."""
    random.seed(4)
    items: list[tts_pb2.DialogueItem] = []
    for number in range(count):
        if number % 10 == 7:
            items.append(silence(0.1 + number / 1000))
        elif number % 10 == 9:
            items.append(reuse(f"line{number - 4}"))
        else:
            words = [f"word{random.randrange(100)}" for _ in range(random.randrange(1, 20))]
            text = f"Number {number} " + " ".join(words) + "."
            items.append(line(text, random.choice(["anna", "ben"]), f"line{number}"))
    return items


async def test_fifty_mixed_lines_come_in_order_and_none_is_missing(stub: Stub) -> None:
    items = mixed_script()
    heard = await events_of(stub, request(*items, gap=Duration(nanos=10_000_000)))
    audio_of = by_item(heard)
    assert list(audio_of) == list(range(50))
    for index, item in enumerate(items):
        if item.HasField("speech"):
            assert audio_of[index] == spoken(item.speech.text)
        elif item.HasField("silence"):
            assert audio_of[index] == bytes(2 * round((0.1 + index / 1000) * 24000))
        else:
            assert audio_of[index] == audio_of[index - 4]
    whole, gap = b"", bytes(2 * 240)
    for index, item in enumerate(items):
        follows_pause = index and items[index - 1].HasField("silence")
        if index and not item.HasField("silence") and not follows_pause:
            whole += gap
        whole += audio_of[index]
    assert timeline(heard) == whole
    starts = [e.segment_started for e in heard if e.HasField("segment_started")]
    voices = {start.item: start.voice for start in starts if start.HasField("item")}
    cast = {"anna": "anna", "ben": "bert"}
    assert all(
        voices[i] == cast[item.speech.speaker]
        for i, item in enumerate(items)
        if item.HasField("speech")
    )
    assert heard[-1].finished.stats.max_in_flight == 3


async def test_every_mistake_of_a_script_is_told_at_once(stub: Stub) -> None:
    bad = request(
        line("Hello.", "anna", "a"),
        line(" ", "zoë", "a"),
        reuse("later"),
        reuse("nowhere"),
        reuse(""),
        silence(61),
        tts_pb2.DialogueItem(id="i" * 129),
        audio(b"junk", encoding="AUDIO_ENCODING_FLAC"),
        audio(b"junk"),
        line("Hello.", "anna", "later", temperature=9.0),
        cast={"anna": "anna", "ben": "nobody"},
        gap=Duration(seconds=11),
        max_concurrency=65,
        on_item_failure=9,
        config=tts_pb2.SpeechConfig(gain_db=99.0, voice="no one"),
    )
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await events_of(stub, bad)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    found = violations(caught.value)
    assert set(found) == {
        "items[1].id",
        "items[1].speech.text",
        "items[1].speech.speaker",
        "items[2].reuse.item_id",
        "items[3].reuse.item_id",
        "items[4].reuse.item_id",
        "items[5].silence.duration",
        "items[6].id",
        "items[6]",
        "items[7].audio.format.encoding",
        "items[8].audio.data",
        "items[9].speech.sampling.temperature",
        "cast['ben']",
        "gap",
        "max_concurrency",
        "on_item_failure",
        "config.gain_db",
        "config.voice",
    }
    assert found["items[1].speech.speaker"] == "'zoë' is not in the cast"
    assert found["items[2].reuse.item_id"] == "'later' is not before this item"
    assert found["items[3].reuse.item_id"] == "no item has the id 'nowhere'"
    assert found["gap"] == "is 11, allowed is 0 to 10"


@pytest.mark.parametrize(
    ("asked", "field", "description"),
    [
        (request(), "items", "are none: a script needs at least one"),
        (request(*[silence(1)] * 1001), "items", "are 1,001, limit 1,000"),
        (request(line("Hi.", "anna"), config={"voice": "x"}), "config.voice", "no voice 'x'"),
        (
            request(*[line("a" * 9000, "anna")] * 23),
            "items",
            "have 207,000 characters in their texts, limit 200,000",
        ),
        (
            request(line("word " * 1900, "anna", "a"), reuse("a")),
            "items",
            "reuse about 634 s of speech, limit 300 s",
        ),
        (
            request(line("Hi.", ""), cast={str(i): "anna" for i in range(101)}),
            "cast",
            "has 101 speakers, limit 100",
        ),
    ],
)
async def test_a_limit_is_told_with_the_value(
    stub: Stub, asked: tts_pb2.SynthesizeDialogueRequest, field: str, description: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await events_of(stub, asked)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert violations(caught.value)[field].startswith(description)


async def test_more_mistakes_than_fit_are_counted(stub: Stub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await events_of(stub, request(*[reuse("x")] * 100))
    assert violations(caught.value)[""] == "and 80 more"


async def test_a_line_that_fails_in_the_middle_costs_no_other(stub: Stub) -> None:
    texts = ["One two.", "fail@0 Three.", "Four five.", "Six."]
    heard = await events_of(stub, request(*[line(text, "anna") for text in texts]))
    assert timeline(heard) == spoken(texts[0]) + spoken(texts[2]) + spoken(texts[3])
    failed = [e.segment_finished for e in heard if e.segment_finished.error.code]
    assert [(f.item, f.error.reason) for f in failed] == [(1, "SYNTHESIS_FAILED")]
    assert heard[-1].finished.stats.failed_segments == 1


async def test_a_worker_that_dies_costs_its_line_alone() -> None:
    """It is tried on one more worker and on no third."""
    texts = ["One two.", "crash@1 Three four.", "Five six.", "Seven."]
    with running_server("--engine", "fake", "--workers", "3") as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
            heard = await events_of(stub, request(*[line(text, "anna") for text in texts]))
        wait_for(lambda: "worker lost" in server.stderr.read_text())
    audio_of = by_item(heard)
    assert [audio_of[i] for i in (0, 2, 3)] == [spoken(texts[i]) for i in (0, 2, 3)]
    failed = [e.segment_finished for e in heard if e.segment_finished.error.code]
    assert [(f.item, f.error.reason) for f in failed] == [(1, "REPLICA_LOST")]


async def test_nothing_heard_is_the_first_error(stub: Stub) -> None:
    heard: list[Event] = []
    script = request(silence(0.1), line("fail@0 x.", "anna"))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await events_of(stub, script, heard)
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert heard[-1].HasField("finished")


async def test_abort_ends_the_call_behind_what_comes_before(stub: Stub) -> None:
    heard: list[Event] = []
    script = request(
        line("One.", "anna"), line("fail@0 x.", "anna"), line("Two.", "anna"), on_item_failure=3
    )
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await events_of(stub, script, heard)
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert timeline(heard) == spoken("One.")
    assert heard[-1].notice.kind == tts_pb2.NOTICE_KIND_ERROR


async def test_the_same_seed_gives_the_same_samples_at_any_concurrency(
    tiny_pocket: TinyPocket,
) -> None:
    """Also at another rate, whose filter looks across segments."""
    long = "The first sentence of it. The second sentence is longer. And then a third one comes."
    items = [line(long, item_id="a"), line("Short one here."), reuse("a"), line(long)]
    fixed: dict[str, Any] = {
        "sampling": tts_pb2.Sampling(
            seed=7, temperature=0.7, eos_threshold=-100.0, frames_after_eos=8
        )
    }
    with running_server(*tiny_pocket.flags(), "--workers", "2") as server:
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub: Stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)

            async def render(concurrency: int, **config: Any) -> tuple[bytes, list[int]]:
                config_message = tts_pb2.SpeechConfig(**fixed, **config)
                asked = request(*items, cast={}, max_concurrency=concurrency, config=config_message)
                heard = await events_of(stub, asked)
                seeds = [e.segment_started.seed for e in heard if e.HasField("segment_started")]
                return timeline(heard), seeds

            pcm = {"encoding": tts_pb2.AUDIO_ENCODING_PCM_F32LE, "sample_rate_hertz": 16000}
            alone, seeds = await render(1, format=pcm)
            together, same = await render(3, format=pcm)
            assert seeds == same
            first, second = (np.frombuffer(data, "<f4") for data in (alone, together))
            assert len(first) == len(second) > 16000
            # The library's own bits differ from run to run.
            assert np.allclose(first, second, atol=1e-6)


async def test_a_line_keeps_its_seed_when_others_are_put_before_it(stub: Stub) -> None:
    fixed = tts_pb2.SpeechConfig(sampling=tts_pb2.Sampling(seed=5))

    async def seed_of(item_id: str, *items: tts_pb2.DialogueItem) -> int:
        heard = await events_of(stub, request(*items, config=fixed))
        return next(e.segment_started.seed for e in heard if e.segment_started.item_id == item_id)

    wanted = line("Hello there.", "anna", "x")
    alone = await seed_of("x", wanted)
    assert await seed_of("x", line("Before.", "ben", "y"), wanted) == alone
    own = line("Hello there.", "anna", "x", seed=2**63)
    assert await seed_of("x", own) == 2**63


def wav(samples: np.ndarray[Any, Any], rate: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


async def test_audio_of_the_client_is_bit_for_bit_what_it_sent(stub: Stub) -> None:
    noise = np.random.default_rng(1).integers(-32767, 32767, 30_000, endpoint=True)
    raw = noise.astype("<i2").tobytes()
    pcm = {"encoding": tts_pb2.AUDIO_ENCODING_PCM_S16LE, "sample_rate_hertz": 24000}
    script = request(audio(wav(noise, 24000)), line("One.", "anna"), audio(raw, **pcm))
    audio_of = by_item(await events_of(stub, script))
    assert audio_of == {0: raw, 1: spoken("One."), 2: raw}


async def test_audio_at_another_rate_lasts_as_long(stub: Stub) -> None:
    tone = (np.sin(np.arange(44_100) / 10) * 9000).astype(np.int16)
    heard = await events_of(stub, request(audio(wav(tone, 44_100))))
    assert len(timeline(heard)) == 2 * 24000


async def test_a_large_script_with_audio_is_taken(stub: Stub) -> None:
    """Larger than gRPC's own limit, and than that of other methods."""
    minute = np.zeros(48_000 * 60, np.int16)
    heard = await events_of(stub, request(audio(wav(minute, 48_000))))
    assert len(timeline(heard)) == 2 * 24000 * 60


async def test_leaving_stops_everything_that_runs(wide_server: ServerProcess, stub: Stub) -> None:
    call = stub.SynthesizeDialogue(
        request(*[line("frames@1000 delay@20 x.", "anna") for _ in range(6)])
    )
    async for response in call:
        if response.event.HasField("audio"):
            break
    call.cancel()
    heard = await events_of(stub, request(line("One.", "anna")))
    assert timeline(heard) == spoken("One.")


async def test_a_client_that_sleeps_holds_the_work_up_and_not_the_memory(
    wide_server: ServerProcess, stub: Stub
) -> None:
    """Half an hour of audio; HTTP/2 takes a minute and a half of it."""
    lines = [line(f"frames@250 number {i}.", "anna") for i in range(90)]
    call = stub.SynthesizeDialogue(request(*lines))
    await asyncio.sleep(3.0)
    front = psutil.Process(wide_server.process.pid)
    before = front.memory_info().rss
    count = 0
    async for response in call:
        event = response.event
        count += event.audio.sample_count
        if event.HasField("finished"):
            wall = event.finished.stats.wall_time
    assert count == 90 * 250 * FRAME
    assert wall.seconds >= 2, "it waited for the client"
    assert before < 400 * 1024 * 1024


class TestVoicesInAStream:
    """The `voice` input of Synthesize."""

    async def voices_of(
        self, stub: Stub, *inputs: tts_pb2.SynthesizeRequest
    ) -> list[tuple[str, str]]:
        call = stub.Synthesize(iter(inputs), timeout=20)
        return [
            (r.event.segment_started.text, r.event.segment_started.voice)
            async for r in call
            if r.event.HasField("segment_started")
        ]

    async def test_it_speaks_what_follows_and_ends_the_segment(self, stub: Stub) -> None:
        say = tts_pb2.SynthesizeRequest
        heard = await self.voices_of(
            stub,
            say(config=tts_pb2.SpeechConfig(voice="anna", segment_events=True)),
            say(text="This is Anna and"),
            say(voice="bert"),
            say(text="this is Bert. Bert goes on."),
            say(voice=""),
            say(text=" Anna again."),
        )
        assert heard == [
            ("This is Anna and", "anna"),
            ("this is Bert.", "bert"),
            ("Bert goes on.", "bert"),
            ("Anna again.", "anna"),
        ]

    async def test_after_a_clear_the_last_one_speaks(self, stub: Stub) -> None:
        say = tts_pb2.SynthesizeRequest
        heard = await self.voices_of(
            stub,
            say(config=tts_pb2.SpeechConfig(voice="anna", segment_events=True)),
            say(text="frames@200 delay@20 Anna is talking here. "),
            say(voice="bert"),
            say(text="Bert waits."),
            say(clear=tts_pb2.Clear(id="c")),
            say(text="And who is this?"),
        )
        assert heard[-1] == ("And who is this?", "bert")

    async def test_an_unknown_one_ends_the_stream_with_not_found(self, stub: Stub) -> None:
        say = tts_pb2.SynthesizeRequest
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.voices_of(stub, say(text="Hello. "), say(voice="nobody"), say(text="x"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_segments_are_bounded_also_those_that_are_repeated(stub: Stub) -> None:
    sixty = "This is a sentence of it. " * 60
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await events_of(stub, request(line(sixty, "anna", "a"), *[reuse("a")] * 99))
    assert violations(caught.value) == {"items": "make 6,000 segments, limit 5,000"}


async def test_what_is_reused_may_be_a_reuse(stub: Stub) -> None:
    def again(item_id: str, original: str) -> tts_pb2.DialogueItem:
        return tts_pb2.DialogueItem(id=item_id, reuse=tts_pb2.ReuseItem(item_id=original))

    items = [silence(0.1), line("One.", "anna", "a"), line("Two.", "ben", "b")]
    items += [again("c", "a"), again("d", "c"), again("e", "b"), again("f", "d")]
    audio_of = by_item(await events_of(stub, request(*items)))
    assert audio_of[3] == audio_of[4] == audio_of[6] == audio_of[1] == spoken("One.")
    assert audio_of[5] == audio_of[2] == spoken("Two.")
