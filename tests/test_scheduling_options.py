"""`SpeechConfig.scheduling` and `PlaybackReport`, over the wire, with the fake engine."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest
from google.protobuf.duration_pb2 import Duration

from fake_engine import FRAME
from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from intone_server.rpc.peers import address_of
from processes import ServerProcess, running_server
from test_admission_limits import refusal
from test_bad_input import details
from test_cancellation import until_idle
from test_synthesize import Request, check_order, collect, expected, flush, kinds, samples, text

RATE = 24000


def config(**scheduling: Any) -> tts_pb2.SpeechConfig:
    return tts_pb2.SpeechConfig(scheduling=tts_pb2.Scheduling(**scheduling))


def seconds(value: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(value * 1e9))
    return duration


def played(count: int) -> Request:
    return Request(playback=tts_pb2.PlaybackReport(played_samples=count))


def line(words: str) -> tts_pb2.DialogueItem:
    return tts_pb2.DialogueItem(speech=tts_pb2.SpeechItem(text=words))


class TestMaxAhead:
    async def test_audio_comes_by_the_clock(self, channel: grpc.aio.Channel) -> None:
        words = "frames@10 one two."
        began_at = time.monotonic()
        ahead = config(max_ahead=seconds(0.3))
        events = await collect(channel, [Request(config=ahead), text(words)])
        # The last chunk is sent when all but the one before it and 0.3 s was heard.
        assert time.monotonic() - began_at >= 0.8 - 0.08 - 0.3
        check_order(events)
        assert all(e.audio.sample_count <= FRAME for e in events)
        assert np.array_equal(samples(events), expected(words))
        assert kinds(events)[-1] == "finished"

    async def test_a_listener_who_is_faster_than_the_clock_gets_it_faster(
        self, channel: grpc.aio.Channel
    ) -> None:
        words = "frames@500 forty seconds long."
        call = TextToSpeechServiceStub(channel).Synthesize()
        await call.write(Request(config=config(max_ahead=seconds(1))))
        await call.write(text(words))
        await call.write(flush("end"))
        events = []
        async with asyncio.timeout(20):
            async for response in call:
                events.append(response.event)
                if response.event.HasField("audio"):
                    audio = response.event.audio
                    await call.write(played(audio.sample_offset + audio.sample_count))
                if response.event.HasField("flushed"):
                    await call.done_writing()
        assert np.array_equal(samples(events), expected(words))

    async def test_a_segment_is_begun_when_its_time_has_come(
        self, channel: grpc.aio.Channel, fake_server: ServerProcess
    ) -> None:
        before = fake_server.starts()
        ahead = config(max_ahead=seconds(0.5))
        call = TextToSpeechServiceStub(channel).Synthesize()
        await call.write(Request(config=ahead))
        await call.write(text("frames@300 this has 24 seconds. And this waits for it."))
        await call.write(flush())
        async for response in call:
            if response.event.audio.sample_offset >= RATE // 2:
                break
        assert fake_server.starts() == before + 1
        call.cancel()
        await until_idle(channel)

    async def test_a_barge_in_does_not_wait(self, channel: grpc.aio.Channel) -> None:
        call = TextToSpeechServiceStub(channel).Synthesize()
        await call.write(Request(config=config(max_ahead=seconds(600))))
        await call.write(text("frames@9000 this has 12 minutes."))
        await call.write(flush())
        count = 0
        async for response in call:
            count += response.event.audio.sample_count
            if count >= 600 * RATE:
                break
        await call.write(Request(clear=tts_pb2.Clear(id="c")))
        await call.write(text("New words."))
        await call.done_writing()
        events = [response.event async for response in call]
        after = [e for e in events if e.epoch == 1]
        assert after[0].HasField("cleared")
        assert np.array_equal(samples(after), expected("New words."))

    async def test_dialogues_keep_to_it_too(self, channel: grpc.aio.Channel) -> None:
        pause = tts_pb2.DialogueItem(silence=tts_pb2.SilenceItem(duration=seconds(0.5)))
        items = [line("One two three."), pause, line("Four five.")]
        began_at = time.monotonic()
        call = TextToSpeechServiceStub(channel).SynthesizeDialogue(
            tts_pb2.SynthesizeDialogueRequest(items=items, config=config(max_ahead=seconds(0.2)))
        )
        events = [response.event async for response in call]
        assert time.monotonic() - began_at >= 0.9 - 0.08 - 0.2
        check_order(events)
        silence = np.zeros(RATE // 2, "<i2")
        parts = [expected("One two three."), silence, expected("Four five.")]
        assert np.array_equal(samples(events), np.concatenate(parts))

    @pytest.mark.parametrize("method", ["SynthesizeFile", "PlanText"])
    async def test_it_is_refused_where_nobody_listens(
        self, channel: grpc.aio.Channel, method: str
    ) -> None:
        ask = getattr(TextToSpeechServiceStub(channel), method)
        request = getattr(tts_pb2, f"{method}Request")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask(request(text="Hello.", config=config(max_ahead=seconds(1))))
        reason, violations = details(caught.value)
        assert (reason, list(violations)) == ("UNSUPPORTED_OPTION", ["config.scheduling.max_ahead"])
        await ask(request(text="Hello.", config=config(max_ahead=Duration())))


async def test_what_was_played_beyond_the_end_is_all_of_it(channel: grpc.aio.Channel) -> None:
    """As with `Clear.heard_samples`: no mistake, and nothing else happens."""
    requests = [played(7), text("One two three."), played(2**64 - 1), played(0)]
    events = await collect(channel, requests)
    assert np.array_equal(samples(events), expected("One two three."))
    assert kinds(events)[-1] == "finished"


@pytest.mark.parametrize("name", ["PRIORITY_BATCH", "PRIORITY_STANDARD", "PRIORITY_INTERACTIVE"])
async def test_started_tells_the_scheduling_that_was_asked_for(
    channel: grpc.aio.Channel, name: str
) -> None:
    asked = config(priority=name, max_ahead=seconds(2.5), max_queue_wait=seconds(60))
    events = await collect(channel, [Request(config=asked)])
    assert events[0].started.effective_config.scheduling == asked.scheduling


async def test_started_tells_the_priority_of_the_method(channel: grpc.aio.Channel) -> None:
    stub = TextToSpeechServiceStub(channel)
    calls = [
        (stub.Synthesize(iter([])), tts_pb2.PRIORITY_INTERACTIVE),
        (
            stub.SynthesizeText(tts_pb2.SynthesizeTextRequest(text="Hello.")),
            tts_pb2.PRIORITY_STANDARD,
        ),
        (
            stub.SynthesizeDialogue(tts_pb2.SynthesizeDialogueRequest(items=[line("Hello.")])),
            tts_pb2.PRIORITY_STANDARD,
        ),
    ]
    for call, priority in calls:
        events = [response.event async for response in call]
        scheduling = events[0].started.effective_config.scheduling
        assert scheduling == tts_pb2.Scheduling(priority=priority)


class TestUnreachable:
    """Every segment on this server takes much longer than it may."""

    LONG = "delay@40 frames@250 " + "word " * 35
    WAIT = config(max_queue_wait=seconds(0.05))

    @pytest.fixture(scope="class")
    @classmethod
    def slow_server(cls) -> Iterator[ServerProcess]:
        with running_server("--engine", "fake") as server:
            yield server

    @pytest.fixture
    async def stub(self, slow_server: ServerProcess) -> AsyncIterator[TextToSpeechServiceStub]:
        """Of a server whose speed is about two times real time."""
        options = [("grpc.enable_retries", 0)]
        async with grpc.aio.insecure_channel(slow_server.address, options=options) as channel:
            await collect(channel, [text("delay@40 frames@5 measured.")])
            yield TextToSpeechServiceStub(channel)
            await until_idle(channel)

    @pytest.fixture
    async def busy(self, stub: TextToSpeechServiceStub) -> AsyncIterator[None]:
        """Its replica is taken, for ten seconds."""
        call = stub.SynthesizeText(tts_pb2.SynthesizeTextRequest(text=self.LONG))
        async for response in call:
            if response.event.HasField("audio"):
                break
        yield
        call.cancel()

    async def refused(self, call: Any) -> str:
        """The message of the status, which comes before any event."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await (call if isinstance(call, grpc.aio.UnaryUnaryCall) else call.read())
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        reason, delay, pushback = refusal(caught.value)
        assert reason == "DEADLINE_UNREACHABLE"
        assert delay == pushback > 0
        return caught.value.details() or ""

    @pytest.mark.usefixtures("busy")
    async def test_a_call_that_would_wait_longer_than_it_may_is_refused(
        self, stub: TextToSpeechServiceStub
    ) -> None:
        items = [line("Hello.")]
        calls = [
            stub.Synthesize(iter([Request(config=self.WAIT), text("Hello.")])),
            stub.SynthesizeText(
                tts_pb2.SynthesizeTextRequest(text="Hello.", config=self.WAIT),
            ),
            stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text="Hello.", config=self.WAIT)),
            stub.SynthesizeDialogue(
                tts_pb2.SynthesizeDialogueRequest(items=items, config=self.WAIT)
            ),
        ]
        for call in calls:
            message = await self.refused(call)
            assert "a replica would begin this in " in message
            assert message.endswith("scheduling.max_queue_wait is 0.05 s")

    @pytest.mark.usefixtures("busy")
    async def test_a_deadline_before_it_would_begin_is_refused(
        self, stub: TextToSpeechServiceStub
    ) -> None:
        request = tts_pb2.SynthesizeTextRequest(text="Hello.")
        assert "the deadline is in 0." in await self.refused(
            stub.SynthesizeText(request, timeout=0.4)
        )
        dialogue = tts_pb2.SynthesizeDialogueRequest(items=[line("Hello.")])
        await self.refused(stub.SynthesizeDialogue(dialogue, timeout=0.4))

    @pytest.mark.usefixtures("busy")
    async def test_the_deadline_of_a_stream_is_its_lifetime(
        self, stub: TextToSpeechServiceStub
    ) -> None:
        call = stub.Synthesize(timeout=0.4)
        await call.write(text("Hello."))
        assert (await call.read()).event.HasField("started")
        call.cancel()

    @pytest.mark.usefixtures("busy")
    async def test_the_wait_is_told(self, stub: TextToSpeechServiceStub) -> None:
        plan = await stub.PlanText(tts_pb2.PlanTextRequest(text="Hello."))
        assert plan.estimated_wait.ToNanoseconds() > 0

    async def test_a_file_that_would_not_be_done_is_refused(
        self, stub: TextToSpeechServiceStub
    ) -> None:
        """Though a replica is free."""
        request = tts_pb2.SynthesizeFileRequest(text=self.LONG)
        message = await self.refused(stub.SynthesizeFile(request, timeout=1))
        assert "all of this would be spoken in " in message
        short = tts_pb2.SynthesizeFileRequest(text="delay@40 frames@5 Hello.")
        assert (await stub.SynthesizeFile(short, timeout=20)).audio


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:192.0.2.7:51324", "192.0.2.7"),
        ("ipv6:[2001:db8::1]:51324", "2001:db8::1"),
        ("ipv6:%5B::1%5D:51324", "::1"),
        ("unix:/run/intone.sock", ""),
        ("unix:", ""),
        ("", ""),
    ],
)
def test_a_client_is_an_address_without_its_port(peer: str, address: str) -> None:
    assert address_of(peer) == address
