"""From the model's samples to the audio of a stream, with a worker that the test plays."""

import asyncio
import time
from collections.abc import Iterator

import numpy as np
import pytest

from intone_server.audio.encoding import Encoding
from intone_server.engines.base import Ending
from intone_server.errors import SynthesisFailed
from intone_server.synthesis import events, speaker
from intone_server.synthesis.speech import second_seed
from intone_server.workers.messages import Audio, Finished
from test_formats import decode
from test_session import Stage, kinds

FLOATS = {"encoding": Encoding.PCM_F32LE}
TELEPHONE = {"encoding": Encoding.PCM_F32LE, "sample_rate_hertz": 8000}
SENTENCE = "One two three. "


@pytest.fixture
def staged() -> Iterator[list[Stage]]:
    """Stages that are closed at the end."""
    stages: list[Stage] = []
    yield stages
    for stage in stages:
        stage.session.__exit__(None, None, None)
        stage.permit.__exit__(None, None, None)


def open_stage(staged: list[Stage], **config: object) -> Stage:
    stage = Stage(config=config)
    staged.append(stage)
    return stage


def chunks(heard: list[events.Event]) -> list[events.AudioChunk]:
    return [event for event in heard if isinstance(event, events.AudioChunk)]


def samples(heard: list[events.Event]) -> np.ndarray:
    return np.frombuffer(b"".join(chunk.data for chunk in chunks(heard)), "<f4")


async def test_a_clear_fades_out_what_is_being_heard(staged: list[Stage]) -> None:
    """Reported case 73."""
    stage = open_stage(staged, **FLOATS)
    stage.session.push_text(SENTENCE)
    stage.session.flush("")
    stage.speak(1, end=False)
    before = samples(await stage.heard())
    stage.speak(1, end=False)
    stage.session.clear("c", None)
    heard = await stage.heard()
    assert kinds(heard) == ["AudioChunk", "SegmentFinished", "Flushed", "Cleared"]
    fade = samples(heard)
    assert len(fade) == 120
    assert fade[-1] == 0.0
    assert np.abs(np.diff(np.concatenate([before, fade]))).max() < 0.02
    finished = heard[1]
    assert isinstance(finished, events.SegmentFinished)
    assert finished.sample_count == 1920 + 120


async def test_a_clear_fades_out_before_the_next_frame_is_made(staged: list[Stage]) -> None:
    """Then from the last sample that was heard."""
    stage = open_stage(staged, **FLOATS)
    stage.session.push_text(SENTENCE)
    stage.session.flush("")
    stage.speak(1, end=False)
    last = samples(await stage.heard())[-1]
    stage.session.clear("c", None)
    fade = samples(await stage.heard())
    assert fade[0] == pytest.approx(last, abs=0.01)
    assert fade[-1] == 0.0


async def test_a_clear_before_any_sound_says_nothing_more(staged: list[Stage]) -> None:
    stage = open_stage(staged, **FLOATS)
    stage.session.push_text(SENTENCE)
    stage.session.flush("")
    stage.speak(1, end=False)
    stage.session.clear("c", None)
    assert not chunks(await stage.heard())


async def test_the_end_of_a_segment_is_not_kept_for_a_turn_that_has_not_come(
    staged: list[Stage],
) -> None:
    """Although a resampler looks ahead: before Flushed, all is sent."""
    stage = open_stage(staged, **TELEPHONE)
    stage.session.push_text(SENTENCE)
    stage.session.flush("f")
    stage.speak(3)
    heard = await stage.heard()
    assert kinds(heard)[-2:] == ["SegmentFinished", "Flushed"]
    assert sum(chunk.sample_count for chunk in chunks(heard)) == 3 * 640


async def test_the_end_of_a_segment_waits_for_the_next_only_while_the_listener_can(
    staged: list[Stage],
) -> None:
    stage = open_stage(staged, **TELEPHONE)
    stage.session.push_text(SENTENCE + SENTENCE + SENTENCE)
    stage.speak(25)  # 2 s; the next segment is not made
    heard = await stage.heard()
    assert kinds(heard)[-1] == "AudioChunk"
    missing = 25 * 640 - sum(chunk.sample_count for chunk in chunks(heard))
    assert 0 < missing < 400
    await asyncio.sleep(2.0)
    heard = await stage.heard()
    assert kinds(heard)[:2] == ["AudioChunk", "SegmentFinished"]
    assert chunks(heard)[0].sample_count == missing


async def test_a_pause_is_exact_to_the_sample_at_any_rate(staged: list[Stage]) -> None:
    stage = open_stage(staged, **TELEPHONE)
    stage.session.push_text(SENTENCE)
    stage.session.pause(0.1)
    stage.session.push_text(SENTENCE)
    stage.session.end_input()
    stage.speak(3)
    stage.speak(3)
    heard = await stage.heard()
    found = samples(heard)
    assert len(found) == 2 * 3 * 640 + 800
    assert not found[3 * 640 : 3 * 640 + 800].any()
    assert found[3 * 640 - 1] != 0.0
    assert found[3 * 640 + 800] != 0.0


async def test_gaps_lie_between_segments_and_longer_ones_between_paragraphs(
    staged: list[Stage],
) -> None:
    stage = open_stage(staged, **FLOATS, segment_gap_seconds=0.1, paragraph_gap_seconds=0.3)
    stage.session.push_text("One two three. Four five six.\n\nSeven eight nine.")
    stage.session.end_input()
    for _ in range(3):
        stage.speak(1)
    heard = await stage.heard()
    starts = [event for event in heard if isinstance(event, events.SegmentStarted)]
    assert [start.kind.value for start in starts] == [
        "speech",
        "silence",
        "speech",
        "silence",
        "speech",
    ]
    assert [start.sample_offset for start in starts] == [0, 1920, 4320, 6240, 13440]
    assert len(samples(heard)) == 3 * 1920 + 2400 + 7200


async def test_no_gap_before_a_turn_or_beside_a_pause(staged: list[Stage]) -> None:
    stage = open_stage(staged, **FLOATS, segment_gap_seconds=0.1)
    for _ in range(2):
        stage.session.push_text(SENTENCE)
        stage.session.flush("")
        stage.speak(1)
    stage.session.pause(0.2)
    stage.session.push_text(SENTENCE)
    stage.session.flush("")
    stage.speak(1)
    assert len(samples(await stage.heard())) == 3 * 1920 + 4800


async def test_a_segment_without_an_end_is_spoken_once_more_for_a_file(
    staged: list[Stage],
) -> None:
    """With another seed, and nothing of the first attempt is heard."""
    stage = open_stage(staged, **FLOATS, retry_no_end=True)
    stage.session.push_text(SENTENCE)
    stage.session.end_input()
    (replica,) = stage.worker.replicas
    first = replica.generation
    assert first is not None
    stage.scheduler.on_report(replica, Audio(first.id, bytes(4 * 1920)))
    assert not chunks(await stage.heard())
    stage.scheduler.on_report(replica, Finished(first.id, Ending.NO_END))
    stage.release()
    second = replica.generation
    assert second is not None
    assert (second.text, second.seed) == (first.text, second_seed(first.seed))
    stage.speak(2)
    heard = await stage.heard()
    assert np.allclose(samples(heard), 0.5)
    assert len(samples(heard)) == 2 * 1920
    (finished,) = (e for e in heard if isinstance(e, events.SegmentFinished))
    assert finished.outcome is events.Outcome.COMPLETE


async def test_a_second_attempt_without_an_end_says_so(staged: list[Stage]) -> None:
    stage = open_stage(staged, **FLOATS, retry_no_end=True)
    stage.session.push_text(SENTENCE)
    stage.session.end_input()
    (replica,) = stage.worker.replicas
    for _ in range(2):
        assert replica.generation is not None
        number = replica.generation.id
        stage.scheduler.on_report(replica, Audio(number, bytes(4 * 1920)))
        stage.scheduler.on_report(replica, Finished(number, Ending.NO_END))
        stage.release()
    heard = await stage.heard()
    (finished,) = (e for e in heard if isinstance(e, events.SegmentFinished))
    assert (finished.outcome, finished.sample_count) == (events.Outcome.NO_END, 1920)
    assert replica.generation is None


@pytest.mark.parametrize("frames", [0, 2])
async def test_a_segment_that_fails_ends_a_file_whenever_it_fails(
    staged: list[Stage], frames: int
) -> None:
    """Also with audio that was kept back until the segment would be whole."""
    stage = open_stage(staged, **FLOATS, retry_no_end=True)
    stage.session.push_text(SENTENCE)
    stage.session.end_input()
    (replica,) = stage.worker.replicas
    assert replica.generation is not None
    for _ in range(frames):
        stage.scheduler.on_report(replica, Audio(replica.generation.id, bytes(4 * 1920)))
    stage.fail()
    heard = await stage.heard()
    assert kinds(heard)[-1] == "Finished"
    (finished,) = (e for e in heard if isinstance(e, events.SegmentFinished))
    assert finished.outcome is events.Outcome.FAILED


async def test_a_failure_after_silence_alone_fails_the_call_in_any_format(
    staged: list[Stage],
) -> None:
    """Although the encoder brings out the rest of the silence with the segment that failed."""
    stage = open_stage(staged, encoding=Encoding.MP3, sample_rate_hertz=8000)
    stage.session.pause(0.3)
    stage.session.push_text(SENTENCE)
    stage.session.end_input()
    stage.fail()
    assert chunks(await stage.heard())
    with pytest.raises(SynthesisFailed):
        stage.session.check_spoken()


async def test_both_waits_of_a_segment_that_is_spoken_twice_are_counted(
    staged: list[Stage],
) -> None:
    stage = open_stage(staged, **FLOATS, retry_no_end=True)
    stage.session.push_text(SENTENCE)
    stage.session.end_input()
    (replica,) = stage.worker.replicas
    assert replica.generation is not None
    replica.generation.queue_seconds = 3.0
    stage.scheduler.on_report(replica, Audio(replica.generation.id, bytes(4 * 1920)))
    stage.scheduler.on_report(replica, Finished(replica.generation.id, Ending.NO_END))
    stage.release()
    stage.speak(2)
    await stage.heard()
    assert stage.session.stats.queue_wait_seconds >= 3.0


async def test_a_kept_end_does_not_hide_a_client_that_reads_nothing() -> None:
    stage = Stage(config=dict(TELEPHONE), slow_client_timeout_seconds=0.3)
    found = asyncio.Event()
    stage.session.on_slow_client = found.set
    with stage.permit, stage.session:
        stage.session.push_text(SENTENCE + SENTENCE)
        stage.session.end_input()
        stage.speak(1)
        await stage.heard()
        stage.session.drain(10.0)
        assert kinds([await stage.session.next_event()]) == ["Notice"]  # its write hangs
        before = time.process_time()
        async with asyncio.timeout(2):
            await found.wait()
        assert time.process_time() - before < 0.2


@pytest.mark.parametrize("encoding", [Encoding.PCM_F32LE, Encoding.OGG_OPUS, Encoding.MP3])
async def test_each_segment_is_told_as_long_as_its_sound_in_any_format(
    staged: list[Stage], encoding: Encoding
) -> None:
    """Although a codec's frame may lie across two of them."""
    stage = open_stage(staged, encoding=encoding)
    stage.session.push_text(SENTENCE * 3)
    stage.session.end_input()
    for _ in range(3):
        stage.speak(3)
    heard = await stage.heard()
    starts = [e.sample_offset for e in heard if isinstance(e, events.SegmentStarted)]
    counts = [e.sample_count for e in heard if isinstance(e, events.SegmentFinished)]
    assert starts == [0, 5760, 11520]
    assert counts[:2] == [5760, 5760]
    assert counts[2] >= 5760
    told = sum(chunk.sample_count for chunk in chunks(heard))
    assert told == sum(counts)


@pytest.mark.parametrize("encoding", [Encoding.MP3, Encoding.OGG_OPUS, Encoding.FLAC])
async def test_a_clear_before_the_first_byte_leaves_nothing_of_the_old_sound(
    staged: list[Stage], encoding: Encoding
) -> None:
    """An encoder may hold two frames of the model before it gives any byte."""
    stage = open_stage(staged, encoding=encoding, sample_rate_hertz=8000)
    stage.session.push_text(SENTENCE)
    stage.session.flush("")
    stage.speak(1, end=False)
    before = chunks(await stage.heard())
    stage.session.clear("c", None)
    stage.release()
    stage.session.pause(0.5)
    stage.session.end_input()
    heard = await stage.heard()
    assert kinds(heard)[-1] == "Finished"
    if not before:
        finished = next(e for e in heard if isinstance(e, events.SegmentFinished))
        cleared = next(e for e in heard if isinstance(e, events.Cleared))
        assert (finished.sample_count, cleared.discarded_samples) == (0, 640)
        assert chunks(heard)[0].sample_offset == 0
        data = b"".join(chunk.data for chunk in chunks(heard))
        assert np.abs(decode(data)[0]).max() < 1e-3


async def test_text_that_cannot_be_spoken_lets_others_have_their_turn(
    staged: list[Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = open_stage(staged, **FLOATS)
    monkeypatch.setattr(speaker, "TURN_SECONDS", 0.001)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    stage.session.push_text("---\n\n" * 900)
    stage.session.end_input()
    while len(stage.session._timeline) < 901:  # Finished is the last
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert turns > 10  # 900 segments take tens of milliseconds


async def test_what_nobody_hears_is_kept_apart_from_nothing(staged: list[Stage]) -> None:
    stage = open_stage(staged, **FLOATS, segment_gap_seconds=0.5, paragraph_gap_seconds=0.5)
    stage.session.push_text("One two three.\n\n---\n\nFive six seven.\n\n---")
    stage.session.end_input()
    stage.speak(1)
    stage.speak(1)
    assert len(samples(await stage.heard())) == 2 * 1920 + 12000


async def test_nothing_that_an_encoder_holds_is_heard_after_a_clear(staged: list[Stage]) -> None:
    """A frame of Opus is 20 ms. What is left in it is the silence that filled the last ones."""
    stage = open_stage(staged, encoding=Encoding.OGG_OPUS)
    stage.session.push_text(SENTENCE)
    stage.session.flush("")
    stage.speak(1, end=False)
    told = sum(c.sample_count for c in chunks(await stage.heard()))
    stage.session.clear("c", None)
    old = chunks(await stage.heard())
    told += sum(c.sample_count for c in old)
    stage.release()
    stage.session.push_text(SENTENCE)
    stage.session.end_input()
    stage.speak(1)
    new = chunks(await stage.heard())
    assert new[0].sample_offset == told
    assert 1920 <= sum(c.sample_count for c in new) < 1920 + 2 * 480
