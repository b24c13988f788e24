"""What metrics and traces are told of a call: each moment once, and every second of audio."""

from collections.abc import AsyncIterator

import pytest

from intone_server.synthesis.events import Outcome
from intone_server.synthesis.watching import WasteCause
from test_dialogue import Stage as DialogueStage
from test_session import Stage

FRAME_SECONDS = 0.08


@pytest.fixture(name="stage")
async def opened() -> AsyncIterator[Stage]:
    stage = Stage()
    with stage.permit, stage.session:
        yield stage


async def test_a_segment_is_told_when_its_audio_was_sent(stage: Stage) -> None:
    stage.session.push_text("One two. ")
    stage.session.flush("f")
    stage.speak(frames=3)
    assert stage.watch.segments == []
    await stage.heard()
    (segment,) = stage.watch.segments
    assert segment.outcome is Outcome.COMPLETE
    assert segment.characters == len("One two.")
    assert segment.made_seconds == pytest.approx(3 * FRAME_SECONDS)
    assert segment.sent_seconds == pytest.approx(3 * FRAME_SECONDS)
    assert segment.wasted_seconds == 0
    moments = [segment.queued_at, segment.started_at, segment.first_audio_at, segment.ended_at]
    assert moments == sorted(moments)  # type: ignore[type-var]


async def test_each_text_has_its_own_first_audio(stage: Stage) -> None:
    for _ in range(2):
        stage.session.push_text("One two. ")
        stage.session.flush("f")
        stage.speak()
        await stage.heard()
        stage.session.played(1 << 40)
    assert len(stage.watch.first_audios) == 2
    assert stage.watch.first_audios[0] == stage.session.stats.first_audio_seconds
    assert [gap is None for _, gap in stage.watch.chunks] == [True, True]


async def test_chunks_of_one_text_have_gaps(stage: Stage) -> None:
    stage.session.push_text("One two. ")
    stage.session.flush("f")
    stage.speak(end=False)
    await stage.heard()
    stage.speak()
    await stage.heard()
    first, *others = stage.watch.chunks
    assert first[1] is None
    assert others
    assert all(gap is not None and gap >= 0 for _, gap in others)
    assert stage.watch.sent_seconds == pytest.approx(2 * FRAME_SECONDS)


async def test_a_clear_is_told_with_what_it_wasted(stage: Stage) -> None:
    stage.session.push_text("One two. Three four. ")
    stage.session.flush("f")
    stage.speak(frames=10, end=False)
    stage.session.clear("c", None)
    stage.release()
    assert stage.watch.clears == []
    await stage.heard()
    assert len(stage.watch.clears) == 1
    (segment,) = stage.watch.segments
    assert (segment.outcome, segment.waste_cause) == (Outcome.CLEARED, WasteCause.CLEAR)
    assert segment.sent_seconds + segment.wasted_seconds == pytest.approx(10 * FRAME_SECONDS)


async def test_a_client_that_leaves_wastes_what_it_was_not_sent() -> None:
    stage = Stage()
    with stage.permit, stage.session:
        stage.session.push_text("One two. ")
        stage.session.flush("f")
        stage.speak(frames=10, end=False)
    (segment,) = stage.watch.segments
    assert (segment.outcome, segment.waste_cause) == (Outcome.CLEARED, WasteCause.CANCEL)
    assert segment.wasted_seconds == pytest.approx(10 * FRAME_SECONDS)


async def test_a_failure_is_told_with_its_reason(stage: Stage) -> None:
    stage.session.push_text("One two. ")
    stage.session.flush("f")
    stage.fail()
    await stage.heard()
    (segment,) = stage.watch.segments
    assert segment.outcome is Outcome.FAILED
    assert segment.reason == "SYNTHESIS_FAILED"
    assert segment.waste_cause is WasteCause.FAILURE


async def test_a_first_attempt_that_nobody_heard_is_waste() -> None:
    async with DialogueStage("One.", "Two.") as stage:
        stage.speak("Two.", frames=4, end=False)
        stage.lose("Two.")
        stage.speak("One.")
        stage.speak("Two.", frames=2)
        await stage.heard()
        _, second = stage.watch.segments
        assert second.outcome is Outcome.COMPLETE
        assert second.wasted_seconds == pytest.approx(4 * FRAME_SECONDS)
        assert second.made_seconds == pytest.approx(6 * FRAME_SECONDS)


async def test_what_was_not_begun_is_told_too() -> None:
    async with DialogueStage("One.", "Two.", max_concurrency=1) as stage:
        stage.speak("One.")
        await stage.heard()
    one, two = stage.watch.segments
    assert (one.outcome, two.outcome) == (Outcome.COMPLETE, Outcome.CLEARED)
