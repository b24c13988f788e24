"""A dialogue's protocol in one process, with a scheduler whose worker the test plays."""

import asyncio
import itertools
from dataclasses import replace
from typing import Self

import numpy as np
import pytest

from intone_server.audio.encoding import Encoding
from intone_server.engines.base import Ending
from intone_server.errors import IntoneError, Reason, SynthesisFailed
from intone_server.scheduling.admission import Admission, FixedLimit
from intone_server.scheduling.replica import Replica
from intone_server.synthesis import events
from intone_server.synthesis.deadlines import SessionLimits
from intone_server.synthesis.dialogue import DialogueSession
from intone_server.synthesis.events import ItemRef, Outcome, SegmentKind
from intone_server.synthesis.manuscript import TextOptions, WholeText
from intone_server.synthesis.script import (
    AudioItem,
    Item,
    OnItemFailure,
    ReuseItem,
    Script,
    SilenceItem,
    SpeechItem,
    plan_script,
)
from intone_server.synthesis.speech import item_seed, segment_seed
from intone_server.workers.messages import Audio, Failed, Finished
from test_scheduler import generation, scheduler_of
from test_session import Stage as TextStage
from watches import Recorder

RATE = 24000
FRAME = 1920


def frame(value: float, count: int = 1) -> bytes:
    return np.full(FRAME * count, value, np.float32).tobytes()


class Stage:
    """A dialogue, its permit, and the worker behind it."""

    def __init__(self, *contents: object, replicas: int = 3, **script: object) -> None:
        self.scheduler, self.worker = scheduler_of(replicas)
        self.admission = Admission(lambda: 4, FixedLimit(4))
        self.admission.started, self.admission.ready = True, lambda: True
        self.permit = self.admission.admit(stream=False)
        self.contents = contents
        self.buffer_seconds = float(script.pop("buffer_seconds", 30.0))  # type: ignore[arg-type]
        self.session_seconds = float(script.pop("session_seconds", 3600.0))  # type: ignore[arg-type]
        config: dict[str, object] = script.pop("config", {})  # type: ignore[assignment]
        self.config = replace(TextStage.config(), **config)  # type: ignore[arg-type]
        self.options = {
            "gap_samples": 0,
            "on_item_failure": OnItemFailure.SKIP,
            "max_concurrency": 3,
        } | script
        self.notices: list[str] = []

    async def __aenter__(self) -> Self:
        items = []
        for index, content in enumerate(self.contents):
            ref = ItemRef(index, f"id{index}")
            if isinstance(content, str):
                own = replace(self.config, seed=item_seed(self.config.seed, ref.id))
                content = SpeechItem(WholeText.of(content, own.text), own)
            items.append(Item(ref, content))  # type: ignore[arg-type]
        script = Script(self.config, tuple(items), **self.options)  # type: ignore[arg-type]
        pieces = await plan_script(script, self.notices.append, max_reused_seconds=300.0)
        self.watch = Recorder()
        self.session = DialogueSession(
            script,
            pieces,
            self.notices,
            max_buffer_seconds=self.buffer_seconds,
            limits=SessionLimits(60.0, self.session_seconds, 30.0, 10.0, 1000),
            scheduler=self.scheduler,
            permit=self.permit,
            watch=self.watch,
        )
        self.session.__enter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.session.__exit__(None, None, None)
        self.permit.__exit__(None, None, None)
        for replica in self.worker.replicas:
            self._release(replica)
        assert not self.scheduler.outlook.load().queue_depth
        assert (self.admission.open, self.admission.talking) == (0, 0)

    @property
    def running(self) -> list[str]:
        """The texts that run."""
        return [r.generation.text for r in self.worker.replicas if r.generation is not None]

    def speak(self, text: str, frames: int = 1, value: float = 0.5, *, end: bool = True) -> None:
        """The worker makes frames of the generation of this text, and ends it."""
        replica, number = self._of(text)
        self.scheduler.on_report(replica, Audio(number, frame(value, frames)))
        if end:
            self.scheduler.on_report(replica, Finished(number, Ending.COMPLETE))
            self._release(replica)

    def fail(self, text: str) -> None:
        replica, number = self._of(text)
        self.scheduler.on_report(replica, Failed(number, "because"))
        self._release(replica)

    def lose(self, text: str) -> None:
        """The worker is gone that ran it."""
        self.scheduler.on_lost([self._of(text)[0]])

    async def heard(self) -> list[events.Event]:
        """All events that are ready now."""
        result: list[events.Event] = []
        while True:
            try:
                async with asyncio.timeout(0.02):
                    result.append(await self.session.next_event())
            except TimeoutError:
                return result
            if isinstance(result[-1], events.Finished):
                return result

    def _of(self, text: str) -> tuple[Replica, int]:
        for replica in self.worker.replicas:
            if replica.generation is not None and replica.generation.text == text:
                return replica, replica.generation.id
        raise AssertionError(f"{text!r} does not run, but {self.running}")

    def _release(self, replica: Replica) -> None:
        if replica.running_id is not None and replica.generation is None:
            replica.released()
            self.scheduler.on_idle()


def pcm(heard: list[events.Event]) -> bytes:
    return b"".join(e.data for e in heard if isinstance(e, events.AudioChunk))


def ended(heard: list[events.Event]) -> list[tuple[int | None, Outcome]]:
    """Item and outcome of what ended."""
    return [
        (e.item.index if e.item else None, e.outcome)
        for e in heard
        if isinstance(e, events.SegmentFinished)
    ]


def samples(value: float, count: int) -> bytes:
    return np.full(count, round(value * 32767), "<i2").tobytes()


async def test_lines_are_spoken_at_the_same_time_and_delivered_in_order() -> None:
    async with Stage("One.", "Two.", "Three.", "Four.") as stage:
        assert stage.running == ["One.", "Two.", "Three."]
        stage.speak("Three.", value=0.3)
        assert stage.running == ["One.", "Two.", "Four."]
        stage.speak("Two.", value=0.2)
        heard = await stage.heard()
        assert not pcm(heard), "the first line is not there yet"
        stage.speak("One.", value=0.1)
        stage.speak("Four.", value=0.4)
        heard += await stage.heard()
    values = [0.1, 0.2, 0.3, 0.4]
    assert pcm(heard) == b"".join(samples(value, FRAME) for value in values)
    assert ended(heard) == [(i, Outcome.COMPLETE) for i in range(4)]
    assert [e.item for e in heard if isinstance(e, events.SegmentStarted)] == [
        ItemRef(i, f"id{i}") for i in range(4)
    ]
    finished = heard[-1]
    assert isinstance(finished, events.Finished)
    assert finished.stats.max_in_flight == 3
    assert finished.stats.segments == 4
    assert finished.stats.wall_seconds > 0.0
    offsets = [(e.sample_offset, e.sample_count) for e in heard if isinstance(e, events.AudioChunk)]
    assert [o for o, _ in offsets] == list(itertools.accumulate([0] + [n for _, n in offsets]))[:-1]


async def test_a_concurrency_of_one_is_strictly_sequential() -> None:
    async with Stage("One.", "Two.", max_concurrency=1) as stage:
        assert stage.running == ["One."]
        stage.speak("One.", end=False)
        assert stage.running == ["One."]
        stage.speak("One.")
        assert stage.running == ["Two."]


async def test_the_segments_of_a_long_line_are_spoken_at_the_same_time() -> None:
    text = "This is the first sentence. This is the second one. This is the third."
    async with Stage(text) as stage:
        assert len(stage.running) == 3
        for sentence in list(stage.running):
            stage.speak(sentence)
        heard = await stage.heard()
    finished = [e for e in heard if isinstance(e, events.SegmentFinished)]
    assert [e.ends_item for e in finished] == [False, False, True]
    starts = [e for e in heard if isinstance(e, events.SegmentStarted)]
    assert [text[e.start : e.end] for e in starts] == [e.text for e in starts]


async def test_seeds_depend_on_the_item_and_the_segment_alone() -> None:
    async def seeds(*contents: object, **more: object) -> list[int]:
        async with Stage(*contents, **more) as stage:  # type: ignore[arg-type]
            for _ in range(10):
                for text in list(stage.running):
                    stage.speak(text)
            heard = await stage.heard()
        return [e.seed for e in heard if isinstance(e, events.SegmentStarted) and e.seed]

    lines = ("This is one sentence. This is two.", "And here is three.")
    own = item_seed(1, "id0")
    expected = [own, segment_seed(own, 1), item_seed(1, "id1")]
    assert await seeds(*lines) == expected
    assert await seeds(*lines, max_concurrency=1, replicas=1) == expected
    assert len(set(expected)) == 3


async def test_silence_is_exact_and_takes_the_place_of_gaps() -> None:
    async with Stage("One.", "Two.", SilenceItem(1000), "Three.", gap_samples=77) as stage:
        for text in ("One.", "Two.", "Three."):
            stage.speak(text)
        heard = await stage.heard()
    tone = samples(0.5, FRAME)
    assert pcm(heard) == tone + samples(0, 77) + tone + samples(0, 1000) + tone
    assert ended(heard)[1] == (None, Outcome.COMPLETE), "a gap belongs to no item"


async def test_repeated_items_are_the_same_samples_and_are_not_spoken_again() -> None:
    long = "This is the first sentence. [pause:50ms] This is the second one."
    config = {"text": TextOptions(inline_pauses=True), "sample_rate_hertz": 16000}
    async with Stage(long, ReuseItem(0), "Two.", ReuseItem(0), config=config) as stage:
        first, second, two = stage.running
        stage.speak(first, value=0.1)
        stage.speak(two, value=0.3)
        stage.speak(second, value=0.2)
        assert not stage.running
        heard = await stage.heard()
    spoken: dict[int, bytes] = {}
    item_of = {
        e.segment: e.item.index for e in heard if isinstance(e, events.SegmentStarted) and e.item
    }
    for event in heard:
        if isinstance(event, events.AudioChunk):
            item = item_of[event.segment]
            spoken[item] = spoken.get(item, b"") + event.data
    assert spoken[0] == spoken[1] == spoken[3]
    assert len(spoken[0]) == 2 * (2 * 1280 + 800)
    kinds = [e.kind for e in heard if isinstance(e, events.SegmentStarted)]
    again = [SegmentKind.REUSE, SegmentKind.SILENCE, SegmentKind.REUSE]
    assert kinds[3:6] == kinds[7:] == again


async def test_audio_of_the_client_comes_out_as_it_went_in() -> None:
    sound = np.linspace(-0.9, 0.9, 5000, dtype=np.float32)
    config = {"sample_rate_hertz": 48000, "encoding": Encoding.PCM_F32LE}
    async with Stage(AudioItem(sound), "One.", ReuseItem(0), config=config) as stage:
        stage.speak("One.")
        heard = await stage.heard()
    data = np.frombuffer(pcm(heard), "<f4")
    assert np.array_equal(data[:5000], sound)
    assert np.array_equal(data[-5000:], sound)
    assert len(data) == 5000 + 2 * FRAME + 5000


class TestFailures:
    async def test_skip_leaves_it_out_and_the_others_unharmed(self) -> None:
        async with Stage("One.", "Two.", "Three.", ReuseItem(1), gap_samples=10) as stage:
            stage.speak("One.", value=0.1)
            stage.speak("Three.", value=0.3)
            stage.fail("Two.")
            heard = await stage.heard()
            stage.session.check_spoken()
        tone = samples(0.1, FRAME) + samples(0, 10) + samples(0.3, FRAME)
        assert pcm(heard) == tone, "one gap, not two"
        assert ended(heard) == [
            (0, Outcome.COMPLETE),
            (None, Outcome.SKIPPED),
            (1, Outcome.FAILED),
            (None, Outcome.COMPLETE),
            (2, Outcome.COMPLETE),
            (None, Outcome.SKIPPED),
            (3, Outcome.SKIPPED),
        ]
        failed = next(e for e in heard if isinstance(e, events.SegmentFinished) and e.error)
        assert failed.item == ItemRef(1, "id1")
        assert isinstance(failed.error, SynthesisFailed)

    async def test_silence_takes_as_long_as_was_estimated(self) -> None:
        async with Stage("One.", "Two.", on_item_failure=OnItemFailure.SILENCE) as stage:
            stage.speak("One.", end=False)
            stage.fail("One.")
            stage.speak("Two.", value=0.2)
            heard = await stage.heard()
        estimate = round((len("One.") / 15 + 0.3) * RATE)
        silence = samples(0, estimate - FRAME)
        assert pcm(heard) == samples(0.5, FRAME) + silence + samples(0.2, FRAME)

    async def test_abort_delivers_what_comes_before(self) -> None:
        async with Stage("One.", "Two.", "Three.", on_item_failure=OnItemFailure.ABORT) as stage:
            stage.fail("Two.")
            assert stage.running == ["One."]
            stage.speak("One.", value=0.1)
            heard = [await stage.session.next_event() for _ in range(6)]
            with pytest.raises(SynthesisFailed):
                await stage.session.next_event()
        assert pcm(heard) == samples(0.1, FRAME)
        assert ended(heard) == [(0, Outcome.COMPLETE), (1, Outcome.FAILED)]
        assert isinstance(heard[-1], events.Notice)

    async def test_if_nothing_was_heard_the_first_error_is_that_of_the_call(self) -> None:
        async with Stage("One.", SilenceItem(10), "Two.") as stage:
            stage.fail("Two.")
            stage.fail("One.")
            await stage.heard()
            with pytest.raises(IntoneError) as caught:
                stage.session.check_spoken()
        assert caught.value.reason is Reason.SYNTHESIS_FAILED

    async def test_what_was_lost_with_a_worker_before_its_turn_is_spoken_again(self) -> None:
        async with Stage("One.", "Two.", replicas=3) as stage:
            stage.speak("Two.", value=0.9, end=False)
            stage.lose("Two.")
            assert sorted(stage.running) == ["One.", "Two."]
            stage.speak("One.", value=0.1)
            stage.speak("Two.", value=0.2)
            heard = await stage.heard()
        assert pcm(heard) == samples(0.1, FRAME) + samples(0.2, FRAME)


async def test_audio_that_waits_for_its_turn_is_bounded() -> None:
    """A client that does not read pauses the work ahead."""
    lines = [f"Line number {i:02}." for i in range(50)]
    async with Stage(*lines, buffer_seconds=5.0) as stage:
        spoken = 0
        while stage.running:
            stage.speak(stage.running[0], frames=13)  # a second, about as estimated
            spoken += 1
        assert 4 <= spoken <= 6
        read = 0
        while spoken < len(lines):
            event = await stage.session.next_event()
            read += isinstance(event, events.SegmentFinished)
            while stage.running:
                stage.speak(stage.running[0], frames=13)
                spoken += 1
            assert spoken - read <= 7


async def test_a_dialogue_gets_no_more_than_its_share_while_others_wait() -> None:
    async with Stage(*[f"Line {i}." for i in range(12)], replicas=3, max_concurrency=6) as stage:
        assert len(stage.running) == 3
        others = [generation(), generation()]
        for each in others:
            stage.scheduler.submit(each)
        turns: list[bool] = []
        for _ in range(2):
            stage.speak(next(text for text in stage.running if text.startswith("Line")))
            turns.append(sum(text.startswith("Line") for text in stage.running) == 1)
        assert turns == [False, True], "each of the others has a replica now"
        for each in others:
            each.cancel()
        for replica in stage.worker.replicas:
            stage._release(replica)


async def test_at_most_one_of_its_segments_waits() -> None:
    async with Stage("One.", "Two.", "Three.", "Four.", replicas=1, max_concurrency=4) as stage:
        assert stage.running == ["One."]
        assert stage.scheduler.outlook.load().queue_depth == 1
        stage.speak("One.")
        assert stage.running == ["Two."]
        assert stage.scheduler.outlook.load().queue_depth == 1


async def test_every_item_is_planned_before_anything_runs() -> None:
    config = {"queue_events": True}
    script = ("One two three.", SilenceItem(2400), ReuseItem(0), "Four.")
    async with Stage(*script, config=config, gap_samples=10) as stage:
        heard = await stage.heard()
        plans = [e for e in heard if isinstance(e, events.Queued) and e.planned]
        places = [(e.item.index, e.segment) for e in plans if e.item]
        assert places == [(0, 0), (1, 1), (2, 2), (3, 4)]
        estimates = [e.estimated_audio_seconds for e in plans]
        assert estimates[1] == pytest.approx(0.1)
        assert estimates[0] == estimates[2] > estimates[3] > 0.3


async def test_a_line_of_nothing_that_can_be_spoken_is_skipped() -> None:
    async with Stage("---", "One.", ReuseItem(0)) as stage:
        stage.speak("One.")
        heard = await stage.heard()
    outcomes = [Outcome.SKIPPED, Outcome.COMPLETE, Outcome.SKIPPED]
    assert ended(heard) == list(enumerate(outcomes))


async def test_cancelling_stops_all_that_runs() -> None:
    async with Stage("One.", "Two.", "Three.", "Four.", replicas=2) as stage:
        assert len(stage.running) == 2
    assert not stage.running


class TestSessionLimit:
    """Nothing new is begun; what is there is delivered, and then the end is told."""

    async def reason(self, stage: Stage) -> events.FinishReason:
        """Past the limit."""
        await asyncio.sleep(0.2)
        heard = await stage.heard()
        assert isinstance(heard[-1], events.Finished)
        return heard[-1].reason

    async def test_with_a_gap_that_nobody_decided(self) -> None:
        async with Stage(
            "One.", "Two.", gap_samples=2400, buffer_seconds=0.6, session_seconds=0.15
        ) as stage:
            stage.speak("One.", frames=20)
            assert not stage.running
            assert await self.reason(stage) is events.FinishReason.SESSION_LIMIT

    async def test_while_a_line_is_spoken(self) -> None:
        async with Stage("One.", "Two.", max_concurrency=1, session_seconds=0.15) as stage:
            await asyncio.sleep(0.2)
            assert stage.running == ["One."]
            stage.speak("One.")
            heard = await stage.heard()
        assert pcm(heard) == samples(0.5, FRAME)
        assert isinstance(heard[-1], events.Finished)
        assert heard[-1].reason is events.FinishReason.SESSION_LIMIT

    async def test_an_error_that_ends_the_call_is_not_lost(self) -> None:
        async with Stage(
            "One.", "Two.", on_item_failure=OnItemFailure.ABORT, session_seconds=0.15
        ) as stage:
            stage.speak("One.")
            stage.fail("Two.")
            await asyncio.sleep(0.2)
            heard: list[events.Event] = []
            with pytest.raises(SynthesisFailed):
                await _all(stage, heard)
        assert pcm(heard) == samples(0.5, FRAME)


async def _all(stage: Stage, heard: list[events.Event]) -> None:
    while True:
        heard.append(await stage.session.next_event())


async def test_a_gap_is_not_beside_a_line_whose_audio_was_lost() -> None:
    async with Stage("One.", "Two.", "Three.", gap_samples=10, replicas=5) as stage:
        stage.speak("Two.", value=0.9, end=False)
        stage.lose("Two.")
        stage.lose("Two.")
        stage.speak("One.", value=0.1)
        stage.speak("Three.", value=0.3)
        heard = await stage.heard()
    assert pcm(heard) == samples(0.1, FRAME) + samples(0, 10) + samples(0.3, FRAME)


async def test_what_is_spoken_again_may_wait_no_longer_than_was_asked() -> None:
    config = {"max_queue_wait_seconds": 0.1}
    async with Stage("One.", "Two.", replicas=2, config=config) as stage:
        stage.speak("Two.", end=False)
        stage.lose("Two.")
        assert stage.scheduler.outlook.load().queue_depth == 1, "the other replica is busy"
        await asyncio.sleep(0.15)
        stage.speak("One.", value=0.1)
        heard = await stage.heard()
    errors = [e.error for e in heard if isinstance(e, events.SegmentFinished) and e.error]
    assert [error.reason for error in errors] == [Reason.QUEUE_WAIT_EXCEEDED]


async def test_audio_of_the_client_leaves_the_buffer_to_speech() -> None:
    sound = AudioItem(np.zeros(40 * RATE, np.float32))
    async with Stage("One.", sound, "Two.", sound, "Three.") as stage:
        assert stage.running == ["One.", "Two.", "Three."]


async def test_a_line_does_not_wait_for_the_dialogues_own() -> None:
    """`max_queue_wait` is for the wait for others."""
    config = {"max_queue_wait_seconds": 0.05}
    async with Stage("One.", "Two.", "Three.", replicas=2, config=config) as stage:
        assert stage.running == ["One.", "Two."]
        await asyncio.sleep(0.1)
        stage.speak("One.", value=0.1)
        stage.speak("Two.", value=0.2)
        stage.speak("Three.", value=0.3)
        heard = await stage.heard()
    assert ended(heard) == [(i, Outcome.COMPLETE) for i in range(3)]
