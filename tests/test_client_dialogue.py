"""Dialogues of the client: items in order, gaps, failures, ends; changes of voice."""

import asyncio
import gc
import threading
import tracemalloc

import grpc
import pytest

from client_double import RATE, Call, Double, double_fixture, spoken  # noqa: F401
from client_double_dialogue import Stage, performing, silent
from intone.v1 import tts_pb2
from intone_client import (
    BlockingClient,
    CallCancelledError,
    Client,
    DeadlineExceededError,
    InvalidArgumentError,
    Script,
    SpeechEvent,
    SpokenItem,
    StreamEndedError,
    SynthesisError,
    UnavailableError,
    audio,
    line,
    reuse,
    silence,
    speech_config,
)

pytestmark = pytest.mark.timeout(20)

TWO = Script([line("anna", "ab", id="x"), line("ben", "cd")])


def scripted(double: Double, *steps: str) -> asyncio.Event:
    """Let the double send `steps`, waiting at "wait" for the event that is returned.

    A letter is an item that says it, "half" the first segment of one, "gap" a gap of 0.1 s.
    """
    go_on = asyncio.Event()

    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        item = 0
        for step in steps:
            if step == "wait":
                await go_on.wait()
            elif step == "gap":
                await stage.gap(0.1)
            else:
                await stage.segment(item, spoken(step[0]), ends=len(step) == 1)
                item += len(step) == 1
        await call.finished()

    double.script = script
    return go_on


async def test_items_come_in_the_order_of_the_script_with_what_it_says_of_them(
    double: Double,
) -> None:
    double.script = performing(double)
    script = Script(
        [line("anna", "Hé!", id="x"), silence(0.25), audio(silent(0.5)), line("", "b")],
        cast={"anna": "alba"},
    )
    async with Client(double.address) as client, client.dialogue(script) as dialogue:
        items = [item async for item in dialogue]
    assert [(item.index, item.id, item.kind) for item in items] == [
        (0, "x", "speech"),
        (1, "", "silence"),
        (2, "", "audio"),
        (3, "", "speech"),
    ]
    assert [(item.speaker, item.text) for item in items] == [
        ("anna", "Hé!"),
        ("", ""),
        ("", ""),
        ("", "b"),
    ]
    assert items[1].audio == silent(0.25)
    assert items[2].audio == silent(0.5)
    assert items[3].audio == spoken("b")
    assert all(item.sample_count == len(item.audio) // 2 for item in items)
    assert all(item.error is None and not item.skipped for item in items)


async def test_a_script_and_its_request_are_the_same_call(double: Double) -> None:
    double.script = performing(double)
    script = Script([line("anna", "a")], cast={"anna": "alba"}, gap=0.5)
    async with Client(double.address) as client:
        first = await client.dialogue(script).render()
        second = await client.dialogue(script.request()).render()
    assert double.requests == [script.request(), script.request()]
    assert first.audio == second.audio == spoken("a")


async def test_an_item_is_there_as_soon_as_its_last_segment_has_come(double: Double) -> None:
    go_on = scripted(double, "a", "wait", "b")
    async with Client(double.address) as client, client.dialogue(TWO) as dialogue:
        assert (await anext(dialogue)).audio == spoken("a")
        assert dialogue.finished is None
        go_on.set()
        assert (await anext(dialogue)).audio == spoken("b")


async def test_a_segment_says_which_part_of_its_item_it_is_and_how_it_was_made(
    double: Double,
) -> None:
    text = "Oh 😀 yes. 12!"

    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        await stage.segment(0, spoken("z"))
        await stage.segment(
            1, spoken("a"), spoken("b"), span=(0, 9), ends=False, seed=2**53, times=(0.5, 1.25, 0.7)
        )
        await stage.segment(1, silent(0.1), kind="SILENCE", span=(9, 9), ends=False)
        await stage.segment(
            1, spoken("c"), text="twelve!", span=(10, 13), outcome="NO_END", times=(61, 62, 1)
        )
        await call.finished()

    double.script = script
    async with Client(double.address) as client:
        dialogue = client.dialogue(Script([line("", "z"), line("", text)]))
        item = [item async for item in dialogue][1]
    assert item.sample_offset == 240
    one, two, three = item.segments
    assert (one.kind, one.text, one.outcome, one.seed) == (
        "speech",
        "Oh 😀 yes.",
        "complete",
        2**53,
    )
    assert (one.sample_offset, one.sample_count) == (0, 480)
    assert (one.started_at, one.finished_at, one.synthesis_time) == (0.5, 1.25, 0.7)
    assert (two.kind, two.text, two.sample_offset) == ("silence", "", 480)
    assert (three.text, three.outcome) == ("12!", "no_end")
    assert three.sample_offset == 480 + RATE // 10
    assert (three.started_at, three.finished_at) == (61, 62)
    assert item.audio == spoken("ab") + silent(0.1) + spoken("c")


async def test_gaps_belong_to_no_item_and_nothing_of_the_timeline_is_lost(double: Double) -> None:
    double.script = performing(double)
    script = Script([line("", "ab"), line("", "c"), silence(0.2), line("", "d")], gap=0.1)
    async with Client(double.address) as client:
        items = [item async for item in client.dialogue(script)]
        whole = await client.dialogue(script).render()
    assert [item.gap_before_samples for item in items] == [0, RATE // 10, 0, 0]
    assert [item.audio for item in items] == [
        spoken("ab"),
        spoken("c"),
        silent(0.2),
        spoken("d"),
    ]
    end = 0
    for item in items:
        assert item.sample_offset == end + item.gap_before_samples
        end = item.sample_offset + item.sample_count
        assert whole.audio[2 * item.sample_offset : 2 * end] == item.audio
    assert len(whole.audio) == 2 * end


async def test_a_reuse_is_told_with_the_speaker_and_the_text_that_it_repeats(
    double: Double,
) -> None:
    double.script = performing(double)
    script = Script(
        [line("anna", "no", id="n"), line("ben", "b"), reuse("n", id="again"), reuse("again")]
    )
    async with Client(double.address) as client:
        dialogue = client.dialogue(script)
        items = [await anext(dialogue) for _ in range(3)]
    assert items[2].kind == "reuse"
    assert (items[2].id, items[2].speaker, items[2].text) == ("again", "anna", "no")
    assert items[2].audio == items[0].audio == spoken("no")
    assert [(each.kind, each.text) for each in items[2].segments] == [("reuse", "no")]


async def test_a_reuse_of_a_reuse_goes_back_to_the_first(double: Double) -> None:
    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        await stage.segment(0, spoken("a"), text="twelve", span=(0, 2))
        for index in (1, 2):
            await stage.segment(index, spoken("a"), kind="REUSE", text="twelve", span=(0, 2))
        await call.finished()

    double.script = script
    items = [line("anna", "12", id="x"), reuse("x", id="y"), reuse("y")]
    async with Client(double.address) as client:
        heard = [item async for item in client.dialogue(Script(items))]
    assert [(item.speaker, item.text) for item in heard] == [("anna", "12")] * 3
    assert [item.segments[0].text for item in heard] == ["12", "twelve", "twelve"]


async def test_an_item_that_failed_comes_with_what_was_heard_and_does_not_cost_the_others(
    double: Double,
) -> None:
    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        await stage.segment(0, spoken("a"), ends=False)
        error = {"code": 13, "reason": "SYNTHESIS_FAILED", "message": "no luck"}
        await stage.segment(0, spoken("b"), outcome="FAILED", **error)
        await stage.segment(1, spoken("c"))
        await call.finished()

    double.script = script
    async with Client(double.address) as client:
        dialogue = client.dialogue(TWO, request_id="r-3")
        failed, other = [item async for item in dialogue]
    assert isinstance(failed.error, SynthesisError)
    assert str(failed.error) == "INTERNAL (SYNTHESIS_FAILED): segment 1 failed: no luck"
    assert failed.error.request_id == "r-3"
    assert failed.audio == spoken("ab")
    assert not failed.skipped
    assert [each.outcome for each in failed.segments] == ["complete", "failed"]
    assert (other.error, other.audio) == (None, spoken("c"))
    assert dialogue.failed_items == {0: failed.error}


async def test_an_item_that_failed_before_it_was_begun_is_told_too(double: Double) -> None:
    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        await stage.segment(0, spoken("a"))
        error = {"code": 4, "reason": "QUEUE_WAIT_EXCEEDED", "message": "waited"}
        await stage.segment(1, outcome="FAILED", begun=False, times=(0, 2.5, 0), **error)
        await call.finished()

    double.script = script
    async with Client(double.address) as client:
        _, failed = [item async for item in client.dialogue(TWO)]
    assert failed.error is not None
    assert failed.error.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert (failed.sample_offset, failed.sample_count, failed.audio) == (240, 0, b"")
    (segment,) = failed.segments
    assert (segment.kind, segment.outcome, segment.sample_offset) == ("speech", "failed", 0)
    assert (segment.started_at, segment.finished_at) == (2.5, 2.5)


async def test_an_item_is_skipped_if_all_of_it_was(double: Double) -> None:
    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        await stage.segment(0, outcome="SKIPPED")
        await stage.segment(1, outcome="SKIPPED", ends=False)
        await stage.segment(1, spoken("a"))
        await call.finished()

    double.script = script
    async with Client(double.address) as client:
        items = [item async for item in client.dialogue(TWO)]
    assert [item.skipped for item in items] == [True, False]
    assert [item.error for item in items] == [None, None]


async def test_a_call_that_fails_raises_after_the_items_that_were_complete(double: Double) -> None:
    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        await stage.segment(0, spoken("a"))
        await stage.segment(1, spoken("b"), ends=False)
        await call.fail(grpc.StatusCode.UNAVAILABLE, "REPLICA_LOST", "lost")

    double.script = script
    async with Client(double.address) as client:
        dialogue = client.dialogue(TWO)
        assert (await anext(dialogue)).audio == spoken("a")
        for _ in range(2):
            with pytest.raises(UnavailableError, match="REPLICA_LOST"):
                await anext(dialogue)
        with pytest.raises(UnavailableError, match="REPLICA_LOST"):
            await client.dialogue(TWO).render()


async def test_all_mistakes_of_a_script_are_told_at_once(double: Double) -> None:
    mistakes = [("items[0].speech.text", "empty"), ("items[1]", "no content")]

    async def script(call: Call) -> None:
        await call.fail(
            grpc.StatusCode.INVALID_ARGUMENT, "BAD_CONFIG", "2 fields", violations=mistakes
        )

    double.script = script
    async with Client(double.address) as client:
        script_ = Script([line("", ""), tts_pb2.DialogueItem()])
        with pytest.raises(InvalidArgumentError) as caught:
            await anext(client.dialogue(script_))
    assert caught.value.violations == mistakes


async def test_a_call_that_ends_well_before_the_last_item_is_an_error(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await Stage(call).segment(0, spoken("a"))
        await call.finished("SESSION_LIMIT")

    double.script = script
    ended = r"the dialogue has ended after 1 of 2 items \(SESSION_LIMIT\)"
    async with Client(double.address) as client:
        dialogue = client.dialogue(TWO)
        assert (await anext(dialogue)).audio == spoken("a")
        with pytest.raises(StreamEndedError, match=ended):
            await anext(dialogue)
        with pytest.raises(StreamEndedError, match=ended):
            await client.dialogue(TWO).render()


async def test_a_refusal_before_any_event_is_retried_unless_the_request_is_large(
    double: Double,
) -> None:
    perform = performing(double)

    async def script(call: Call) -> None:
        if double.calls % 2:
            await call.fail(grpc.StatusCode.UNAVAILABLE, "STARTING", "loading", retry_seconds=0.01)
        await perform(call)

    double.script = script
    async with Client(double.address) as client:
        assert (await client.dialogue(Script([audio(bytes(2000))])).render()).audio == bytes(2000)
        assert double.calls == 2
        with pytest.raises(UnavailableError, match="STARTING"):
            await client.dialogue(Script([audio(bytes(300_000))])).render()
    assert double.calls == 3


async def test_every_event_is_handed_on_as_it_is_taken(double: Double) -> None:
    double.script = performing(double)
    events: list[SpeechEvent] = []
    kinds: list[str | None] = []
    async with Client(double.address) as client:
        async for _ in client.dialogue(TWO, on_event=events.append):
            kinds += [event.WhichOneof("event") for event in events]
            kinds.append("item")
            events.clear()
    kinds += [event.WhichOneof("event") for event in events]
    segment = ["segment_started", "audio", "audio", "segment_finished", "item"]
    assert kinds == ["started", "queued", "queued", *segment, *segment, "finished"]


async def test_what_the_callback_raises_loses_no_item(double: Double) -> None:
    scripted(double, "a", "b")

    def refuse(event: SpeechEvent) -> None:
        if event.HasField("segment_finished"):
            raise LookupError

    async with Client(double.address) as client, client.dialogue(TWO, on_event=refuse) as dialogue:
        for said in "ab":
            with pytest.raises(LookupError):
                await anext(dialogue)
            assert (await anext(dialogue)).audio == spoken(said)
        assert [item async for item in dialogue] == []


async def test_a_timeout_around_one_item_loses_nothing(double: Double) -> None:
    go_on = scripted(double, "a+", "wait", "b", "c")
    async with Client(double.address) as client, client.dialogue(TWO) as dialogue:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(dialogue), 0.05)
        go_on.set()
        assert [item.audio async for item in dialogue] == [spoken("ab"), spoken("c")]


async def test_a_dialogue_has_the_id_the_format_and_the_totals_of_its_call(double: Double) -> None:
    double.script = performing(double)
    async with Client(double.address) as client:
        dialogue = client.dialogue(TWO, request_id="r-8")
        assert (dialogue.started, dialogue.finished, dialogue.request_id) == (None, None, "")
        assert len([item async for item in dialogue]) == 2
    assert dialogue.started is not None
    assert dialogue.started.format.sample_rate_hertz == RATE
    assert dialogue.finished is not None
    assert dialogue.finished.stats.speed == 5.6
    assert dialogue.request_id == "r-8"
    assert dialogue.failed_items == {}


async def test_the_request_may_be_changed_once_the_call_runs(double: Double) -> None:
    scripted(double, "a", "b")
    request = TWO.request()
    async with Client(double.address) as client:
        dialogue = client.dialogue(request)
        assert (await anext(dialogue)).text == "ab"
        request.Clear()
        assert (await anext(dialogue)).text == "cd"
        assert [item async for item in dialogue] == []


async def test_the_timeout_is_the_deadline_of_the_call(double: Double) -> None:
    scripted(double, "a", "wait")
    async with Client(double.address) as client:
        dialogue = client.dialogue(TWO, timeout=0.3)
        assert (await anext(dialogue)).audio == spoken("a")
        with pytest.raises(DeadlineExceededError):
            await anext(dialogue)
        await double.until(lambda: double.ended == 1)


@pytest.mark.parametrize("way", ["close", "leave", "drop"])
async def test_a_dialogue_that_is_left_half_way_ends_its_call_and_no_other(
    double: Double, way: str
) -> None:
    scripted(double, "a", "wait")
    async with Client(double.address) as client:
        match way:
            case "close":
                dialogue = client.dialogue(TWO)
                await anext(dialogue)
                await dialogue.aclose()
                assert [item async for item in dialogue] == []
            case "leave":
                async with client.dialogue(TWO) as dialogue:
                    async for _ in dialogue:
                        break
            case "drop":
                gc.disable()  # or it could come to help
                try:
                    async for _ in client.dialogue(TWO):
                        break
                    await double.until(lambda: double.ended == 1)
                finally:
                    gc.enable()
        await double.until(lambda: double.ended == 1)
        double.script = performing(double)
        assert len([item async for item in client.dialogue(TWO)]) == 2


async def test_closing_the_dialogue_ends_an_iteration_that_waits(double: Double) -> None:
    scripted(double, "a", "wait")
    async with Client(double.address) as client:
        dialogue = client.dialogue(TWO)
        await anext(dialogue)
        waiting = asyncio.create_task(anext(dialogue, None))
        await asyncio.sleep(0.05)
        await dialogue.aclose()
        assert await waiting is None


async def test_closing_the_client_fails_its_dialogues(double: Double) -> None:
    scripted(double, "a", "wait")
    client = Client(double.address)
    dialogue = client.dialogue(TWO)
    await anext(dialogue)
    await client.aclose()
    with pytest.raises(CallCancelledError):
        await anext(dialogue)


async def test_a_caller_that_is_slow_with_an_item_holds_back_the_server_and_loses_nothing(
    double: Double,
) -> None:
    count, mebibyte = 40, bytes(2**20)
    sent = 0

    async def script(call: Call) -> None:
        nonlocal sent
        stage = Stage(call)
        await call.started()
        for index in range(count):
            await stage.segment(index, mebibyte)
            sent += 1
        await call.finished()

    double.script = script
    async with (
        Client(double.address) as client,
        client.dialogue(Script([line("", "a")] * count)) as dialogue,
    ):
        assert (await anext(dialogue)).sample_count == 2**19
        before = -1
        while before < sent:  # until the server stands still
            before = sent
            await asyncio.sleep(0.3)
        assert sent < 15
        assert sum([len(item.audio) async for item in dialogue]) == (count - 1) * 2**20
    assert sent == count


async def test_no_more_than_one_item_is_held_in_memory(double: Double) -> None:
    count, mebibyte = 30, bytes(2**20)

    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        for index in range(count):
            await stage.segment(index, mebibyte)
        await call.finished()

    double.script = script
    async with Client(double.address) as client:
        dialogue = client.dialogue(Script([line("", "a")] * count))
        await anext(dialogue)
        tracemalloc.start()
        try:
            async for item in dialogue:
                assert len(item.audio) == 2**20
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # Two of an item that is put together, and what is between the double and the client.
    assert peak < 8 * 2**20


async def test_a_rendered_dialogue_is_the_whole_of_it(double: Double) -> None:
    double.script = performing(double)
    events: list[SpeechEvent] = []
    async with Client(double.address) as client:
        script = Script([line("", "ab"), line("", "c")], gap=0.1)
        whole = await client.dialogue(script, on_event=events.append).render()
    assert whole.audio == spoken("ab") + silent(0.1) + spoken("c")
    assert whole.format.sample_rate_hertz == RATE
    assert [item.audio for item in whole.items] == [spoken("ab"), spoken("c")]
    assert whole.stats.audio_seconds == len(whole.audio) / 2 / RATE
    assert events[0].HasField("started")
    assert events[-1].HasField("finished")


async def test_a_dialogue_is_rendered_from_its_start_or_not_at_all(double: Double) -> None:
    double.script = performing(double)
    async with Client(double.address) as client:
        dialogue = client.dialogue(TWO)
        await anext(dialogue)
        with pytest.raises(RuntimeError, match="this one has begun"):
            await dialogue.render()
        closed = client.dialogue(TWO)
        await closed.aclose()
        with pytest.raises(StreamEndedError, match="after 0 of 2 items"):
            await closed.render()


async def test_a_render_that_is_cancelled_ends_the_call(double: Double) -> None:
    scripted(double, "a", "wait")
    async with Client(double.address) as client:
        dialogue = client.dialogue(TWO)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(dialogue.render(), 0.2)
        await double.until(lambda: double.ended == 1)


@pytest.mark.parametrize("encoding", ["ogg_opus", "flac", "mp3"])
async def test_compressed_audio_is_not_cut_into_items_but_rendered(
    double: Double, encoding: str
) -> None:
    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        await stage.segment(0, b"head", b"er")
        await call.audio(b"filled", segment=0)  # the last codec frame, with silence
        await stage.gap(0.5)
        await stage.segment(1, b"body")
        await call.finished()

    double.script = script
    config = speech_config(encoding=encoding)  # type: ignore[arg-type]
    compressed = Script(TWO.items, config=config)
    async with Client(double.address) as client:
        with pytest.raises(ValueError, match=f"{encoding} audio cannot be cut into items"):
            await anext(client.dialogue(compressed))
        whole = await client.dialogue(compressed).render()
    assert whole.audio == b"headerfilled" + silent(0.5) + b"body"
    assert [item.audio for item in whole.items] == [b"", b""]
    assert [item.sample_count for item in whole.items] == [3, 2]
    assert [item.gap_before_samples for item in whole.items] == [0, 3 + RATE // 2]


async def test_an_item_prints_without_its_audio(double: Double) -> None:
    scripted(double, "a")
    async with Client(double.address) as client:
        item: SpokenItem = await anext(client.dialogue(Script([line("anna", "a")])))
    assert "audio" not in repr(item)
    assert "speaker='anna'" in repr(item)


async def test_a_stream_changes_its_voice_between_texts(double: Double) -> None:
    async with Client(double.address) as client, client.stream() as stream:
        await stream.push_text("a")
        await stream.change_voice("heart")
        await stream.push_text("b")
        await stream.change_voice("")
        await stream.end_input()
        assert b"".join([data async for data in stream.audio()]) == spoken("ab")
    inputs = [request.WhichOneof("input") for request in double.requests]
    assert inputs == ["config", "text", "voice", "text", "voice"]
    assert [each.voice for each in double.requests if each.HasField("voice")] == ["heart", ""]


async def test_a_blocking_dialogue_is_the_same_without_asyncio(double: Double) -> None:
    double.script = performing(double)
    script = Script([line("", "ab"), line("", "c")], gap=0.1)

    def use() -> None:
        with BlockingClient(double.address) as client:
            with client.dialogue(script, request_id="r-2") as dialogue:
                items = list(dialogue)
            assert [item.audio for item in items] == [spoken("ab"), spoken("c")]
            assert [item.gap_before_samples for item in items] == [0, RATE // 10]
            assert dialogue.started is not None
            assert dialogue.finished is not None
            assert dialogue.request_id == "r-2"
            assert dialogue.failed_items == {}
            whole = client.dialogue(script.request()).render()
            assert whole.audio == spoken("ab") + silent(0.1) + spoken("c")
            assert whole.items == items

    await asyncio.to_thread(use)


async def test_a_blocking_dialogue_gives_an_item_and_its_events_at_once_in_the_callers_thread(
    double: Double,
) -> None:
    go_on = scripted(double, "a", "wait", "b")
    loop = asyncio.get_running_loop()
    threads: set[int] = set()
    kinds: list[str | None] = []

    def on_event(event: SpeechEvent) -> None:
        threads.add(threading.get_ident())
        kinds.append(event.WhichOneof("event"))

    def use() -> int:
        with (
            BlockingClient(double.address) as client,
            client.dialogue(TWO, on_event=on_event) as dialogue,
        ):
            assert next(dialogue).audio == spoken("a")
            assert kinds == ["started", "segment_started", "audio", "segment_finished"]
            loop.call_soon_threadsafe(go_on.set)
            assert next(dialogue).audio == spoken("b")
            return threading.get_ident()

    assert {await asyncio.to_thread(use)} == threads


async def test_a_blocking_dialogue_raises_the_same_errors(double: Double) -> None:
    async def script(call: Call) -> None:
        stage = Stage(call)
        await call.started()
        await stage.segment(0, outcome="FAILED", code=13, message="no luck")
        if double.calls == 1:
            await call.fail(grpc.StatusCode.UNAVAILABLE, "REPLICA_LOST", "lost")
        await call.finished()

    double.script = script

    def use() -> None:
        with BlockingClient(double.address) as client:
            dialogue = client.dialogue(TWO)
            failed = next(dialogue)
            assert dialogue.failed_items == {0: failed.error}
            with pytest.raises(RuntimeError, match="this one has begun"):
                dialogue.render()
            with pytest.raises(UnavailableError, match="REPLICA_LOST"):
                next(dialogue)
            with pytest.raises(StreamEndedError, match="after 1 of 2 items"):
                client.dialogue(TWO).render()
            compressed = Script(TWO.items, config=speech_config(encoding="flac"))
            with pytest.raises(ValueError, match="cannot be cut into items"):
                next(client.dialogue(compressed))
            with pytest.raises(ValueError, match="on_item_failure"):
                client.dialogue(Script(TWO.items, on_item_failure="oops"))  # type: ignore[arg-type]

    await asyncio.to_thread(use)


async def test_a_blocking_dialogue_that_is_left_half_way_ends_its_call(double: Double) -> None:
    scripted(double, "a", "wait")
    client = BlockingClient(double.address)

    def leave() -> None:
        with client.dialogue(TWO) as dialogue:
            for _ in dialogue:
                break
        assert list(dialogue) == []

    def drop() -> None:
        for _ in client.dialogue(TWO):
            break

    await asyncio.to_thread(leave)
    await double.until(lambda: double.ended == 1)
    await asyncio.to_thread(drop)
    await double.until(lambda: double.ended == 2)
    await asyncio.to_thread(client.close)


async def test_a_blocking_stream_changes_its_voice(double: Double) -> None:
    def use() -> None:
        with BlockingClient(double.address) as client, client.stream() as stream:
            stream.change_voice("heart")
            stream.push_text("a")
            stream.end_input()
            assert b"".join(stream.audio()) == spoken("a")

    await asyncio.to_thread(use)
    assert [request.WhichOneof("input") for request in double.requests] == [
        "config",
        "voice",
        "text",
    ]
    assert double.requests[1].voice == "heart"
