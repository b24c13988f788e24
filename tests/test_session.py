"""A session's protocol in one process, with a scheduler whose worker the test plays."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from intone_server.audio.encoding import Encoding
from intone_server.engines.base import Ending, Sampling, VoiceRef
from intone_server.errors import InternalError, InvalidRequest, SynthesisFailed
from intone_server.scheduling.admission import Admission, FixedLimit
from intone_server.scheduling.policy import Policy
from intone_server.scheduling.scheduler import Scheduler
from intone_server.synthesis import events
from intone_server.synthesis.deadlines import SessionLimits
from intone_server.synthesis.manuscript import TextOptions
from intone_server.synthesis.segmenter import SegmentationMode
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.text_session import TextSession
from intone_server.workers.messages import Audio, Failed, Finished
from test_scheduler import Worker, scheduler_of
from watches import Recorder

FRAME = np.full(1920, 0.5, np.float32).tobytes()
FADE = 120  # samples in which sound ends that a clear cuts short: 5 ms


class Stage:
    """A session, its permit, and the worker behind it."""

    def __init__(
        self,
        *,
        segment_events: bool = True,
        config: dict[str, object] | None = None,
        replicas: int = 1,
        policy: Policy | None = None,
        **limits: float,
    ) -> None:
        self.scheduler: Scheduler
        self.worker: Worker
        self.scheduler, self.worker = scheduler_of(replicas, policy)
        self.admission = Admission(lambda: 4, FixedLimit(4))
        self.admission.started, self.admission.ready = True, lambda: True
        self.permit = self.admission.admit(stream=True)
        defaults = {
            "idle_timeout_seconds": 60.0,
            "session_limit_seconds": 3600.0,
            "slow_client_timeout_seconds": 30.0,
            "max_unsent_seconds": 10.0,
        }
        self.watch = Recorder()
        self.session = TextSession(
            replace(
                self.config(),
                **({"segment_events": segment_events} | (config or {})),  # type: ignore[arg-type]
            ),
            limits=SessionLimits(**(defaults | limits), max_buffered_characters=1000),  # type: ignore[arg-type]
            scheduler=self.scheduler,
            permit=self.permit,
            watch=self.watch,
        )

    @staticmethod
    def config() -> SpeechConfig:
        """All defaults."""
        return SpeechConfig(
            voice="anna",
            voice_ref=VoiceRef("anna"),
            language="en",
            encoding=Encoding.PCM_S16LE,
            sample_rate_hertz=24000,
            model_rate_hertz=24000,
            gain_db=0.0,
            sampling=Sampling(),
            seed=1,
            mode=SegmentationMode.SENTENCE,
            max_characters=200,
            first_max_characters=200,
            max_text_delay_seconds=0.8,
            segment_gap_seconds=0.0,
            paragraph_gap_seconds=0.0,
            text=TextOptions(),
            max_queue_wait_seconds=None,
            segment_events=True,
            queue_events=False,
        )

    def speak(self, frames: int = 1, *, end: bool = True) -> None:
        """The worker makes frames of what runs, and ends it."""
        (replica,) = self.worker.replicas
        assert replica.generation is not None
        number = replica.generation.id
        for _ in range(frames):
            self.scheduler.on_report(replica, Audio(number, FRAME))
        if end:
            self.scheduler.on_report(replica, Finished(number, Ending.COMPLETE))
            self.release()

    def fail(self) -> None:
        """The model fails on what runs."""
        (replica,) = self.worker.replicas
        assert replica.generation is not None
        self.scheduler.on_report(replica, Failed(replica.generation.id, "because"))
        self.release()

    def release(self) -> None:
        """The worker has stopped."""
        (replica,) = self.worker.replicas
        if replica.running_id is not None and replica.generation is None:
            replica.released()
            self.scheduler.on_idle()

    async def heard(self) -> list[events.Event]:
        """All events that are ready now."""
        result: list[events.Event] = []
        while True:
            try:
                async with asyncio.timeout(0.02):
                    result.append(await self.session.next_event())
            except TimeoutError:
                return result


@pytest.fixture
async def stage() -> Iterator[Stage]:  # type: ignore[misc]
    stage = Stage()
    with stage.permit, stage.session:
        yield stage
    assert not stage.scheduler.outlook.load().queue_depth
    assert (stage.admission.open, stage.admission.talking) == (0, 0)


def kinds(heard: list[events.Event]) -> list[str]:
    return [type(event).__name__ for event in heard]


async def test_clear_before_any_audio(stage: Stage) -> None:
    stage.session.push_text("One two. ")
    stage.session.flush("f")
    stage.session.clear("c", None)
    heard = await stage.heard()
    assert kinds(heard) == ["SegmentFinished", "Flushed", "Cleared"]
    finished, flushed, cleared = heard
    assert isinstance(finished, events.SegmentFinished)
    assert finished.outcome is events.Outcome.CLEARED
    assert flushed == events.Flushed("f", 0, cleared=True)
    assert isinstance(cleared, events.Cleared)
    assert (cleared.epoch, cleared.dropped_segments) == (1, 1)
    assert (cleared.text_spoken, cleared.text_unspoken) == ("", "One two. ")


async def test_clear_counts_unsent_samples_and_stops_the_running_segment(stage: Stage) -> None:
    stage.session.push_text("One two three. Four five six. ")
    stage.speak(3, end=False)
    assert kinds([await stage.session.next_event() for _ in range(2)]) == [
        "SegmentStarted",
        "AudioChunk",
    ]
    stage.speak(5, end=False)
    stage.session.clear("c", None)
    cleared = (await stage.heard())[-1]
    assert isinstance(cleared, events.Cleared)
    assert cleared.discarded_samples == 5 * 1920 - FADE
    assert cleared.dropped_segments == 1
    stage.release()
    stage.session.push_text("New. ")
    stage.session.flush("")
    stage.speak()
    chunk = next(e for e in await stage.heard() if isinstance(e, events.AudioChunk))
    assert chunk.sample_offset == 3 * 1920 + FADE


async def test_clear_leaves_the_outcome_of_what_was_over(stage: Stage) -> None:
    """All audio of the text was sent: its flush is not cleared, its segment complete."""
    stage.session.push_text("One two.")
    stage.session.flush("f")
    stage.speak()
    assert kinds([await stage.session.next_event() for _ in range(2)])[-1] == "AudioChunk"
    stage.session.clear("c", None)
    finished, flushed, _ = await stage.heard()
    assert isinstance(finished, events.SegmentFinished)
    assert finished.outcome is events.Outcome.COMPLETE
    assert flushed == events.Flushed("f", 1920, cleared=False)


async def test_clear_does_not_hide_a_failure(stage: Stage) -> None:
    stage.session.push_text("One two.")
    stage.session.flush("f")
    stage.fail()
    stage.session.clear("c", None)
    finished = (await stage.heard())[0]
    assert isinstance(finished, events.SegmentFinished)
    assert finished.outcome is events.Outcome.FAILED
    assert stage.session.stats.failed_segments == 1


async def test_two_clears_in_a_row_are_two_epochs(stage: Stage) -> None:
    stage.session.push_text("One. Two. ")
    stage.session.pause(1)
    stage.session.clear("a", 0)
    stage.session.clear("b", 0)
    cleared = [e for e in await stage.heard() if isinstance(e, events.Cleared)]
    assert [(c.id, c.epoch, c.text_unspoken) for c in cleared] == [
        ("a", 1, "One. Two. "),
        ("b", 2, ""),
    ]


async def test_clear_after_the_servers_own_end_of_input_still_works() -> None:
    stage = Stage(session_limit_seconds=0.1)
    with stage.permit, stage.session:
        stage.session.push_text("One two three. Four. ")
        stage.speak(3, end=False)
        await asyncio.sleep(0.15)
        stage.session.clear("c", 0)
        stage.session.flush("late")
        heard = await stage.heard()
        assert kinds(heard)[-3:] == ["Cleared", "Flushed", "Finished"] or kinds(heard)[-2:] == [
            "Cleared",
            "Finished",
        ]
        finished = heard[-1]
        assert isinstance(finished, events.Finished)
        assert finished.reason is events.FinishReason.SESSION_LIMIT


async def test_a_late_flush_is_answered_before_finished() -> None:
    stage = Stage(session_limit_seconds=0.1)
    with stage.permit, stage.session:
        stage.session.push_text("One two three. Four. ")
        await asyncio.sleep(0.15)
        stage.session.flush("late")
        stage.speak()
        heard = await stage.heard()
        assert kinds(heard)[-2:] == ["Flushed", "Finished"]


async def test_an_idle_stream_is_told_once_and_ends_when_it_said() -> None:
    stage = Stage(idle_timeout_seconds=0.2)
    begun = time.monotonic()
    with stage.permit, stage.session:
        notice = await stage.session.next_event()
        assert isinstance(notice, events.Notice)
        assert (notice.kind, notice.effective_in_seconds) == (events.NoticeKind.IDLE, 0.1)
        finished = await stage.session.next_event()
        assert isinstance(finished, events.Finished)
        assert finished.reason is events.FinishReason.IDLE_TIMEOUT
        assert 0.15 < time.monotonic() - begun < 0.4


async def test_the_session_limit_finishes_the_running_segment_and_no_more() -> None:
    stage = Stage(session_limit_seconds=0.1, segment_events=False)
    with stage.permit, stage.session:
        stage.session.push_text("One two three. Four five six. Seven.")
        await asyncio.sleep(0.15)
        stage.speak(2)
        assert kinds(await stage.heard()) == ["Notice", "AudioChunk", "Finished"]


@pytest.mark.parametrize("then", ["nothing", "half-close", "error"])
async def test_a_client_that_never_reads_is_found_whatever_the_stream_does(then: str) -> None:
    stage = Stage(slow_client_timeout_seconds=0.1)
    found = asyncio.Event()
    stage.session.on_slow_client = found.set
    with stage.permit, stage.session:
        stage.session.pause(1)
        await stage.session.next_event()  # and then the write of it hangs
        if then == "half-close":
            stage.session.end_input()
        elif then == "error":
            stage.session.fail(SynthesisFailed("because"))
            assert not stage.permit.talking
        async with asyncio.timeout(1):
            await found.wait()


async def test_a_fault_in_one_session_ends_that_session_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.session.push_text("One two three. Four. ")
    monkeypatch.setattr(stage.session._speaker._manuscript, "next", lambda: 1 / 0)
    stage.speak()
    (replica,) = stage.worker.replicas
    assert replica.running_id is None
    with pytest.raises(InternalError):
        await stage.heard()


async def test_silence_between_texts_is_no_underrun(stage: Stage) -> None:
    for _ in range(3):
        stage.session.push_text("Hello.")
        stage.session.flush("")
        stage.speak()
        await stage.heard()
        await asyncio.sleep(0.12)
    assert stage.session.stats.underruns == 0


async def test_a_gap_inside_a_text_is_an_underrun(stage: Stage) -> None:
    stage.session.push_text("Hello.")
    stage.session.flush("")
    stage.speak(1, end=False)
    await stage.heard()
    await asyncio.sleep(0.12)
    stage.speak()
    await stage.heard()
    assert stage.session.stats.underruns == 1


async def test_time_to_first_audio_does_not_count_cleared_text(stage: Stage) -> None:
    stage.session.push_text("One two.")
    await asyncio.sleep(0.3)
    stage.session.clear("", None)
    stage.release()
    stage.session.push_text("Three.")
    stage.session.flush("")
    stage.speak()
    await stage.heard()
    first = stage.session.stats.first_audio_seconds
    assert first is not None
    assert first < 0.2


async def test_a_stream_remembers_so_much_text_and_no_more(stage: Stage) -> None:
    for _ in range(100):
        stage.session.push_text(" " * 10_000)
    with pytest.raises(InvalidRequest, match="limit 1,000,000"):
        stage.session.push_text(" ")


async def test_a_flood_of_commands_stops_being_read(stage: Stage) -> None:
    stage.session.push_text("Hello there. ")
    for _ in range(1001):
        stage.session.flush("x")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stage.session.wait_for_room(), 0.05)
    stage.speak()
    await stage.heard()
    await stage.session.wait_for_room()


async def test_what_cannot_be_spoken_is_handled_in_bounded_portions(stage: Stage) -> None:
    stage.session.push_text("---\n\n" * 3000)
    assert len(stage.session._timeline) <= 1000
    stage.session.end_input()
    heard: list[events.Event] = []
    async with asyncio.timeout(20):
        while kinds(heard).count("SegmentFinished") < 3000:  # others have their turn now and then
            heard += await stage.heard()
    assert kinds(heard).count("SegmentFinished") == 3000
    assert kinds(heard)[-1] == "Finished"


async def test_a_client_that_waits_is_no_slow_client() -> None:
    """However long nothing is there to be written."""
    stage = Stage(slow_client_timeout_seconds=0.1)
    slow: list[bool] = []
    with stage.permit, stage.session:
        stage.session.on_slow_client = lambda: slow.append(True)
        stage.session.push_text("One two. ")
        stage.session.flush("a")
        stage.speak()
        await stage.heard()
        await asyncio.sleep(0.3)  # `heard` waits for the next event, as a call does
        await stage.heard()
        await asyncio.sleep(0.3)
    assert not slow
