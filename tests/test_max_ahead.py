"""`max_ahead`: how far a stream may be ahead of its listener, on a clock that the test controls."""

import asyncio
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from intone_server.audio.encoding import Encoding
from intone_server.scheduling.generation import Priority
from intone_server.synthesis import events
from intone_server.synthesis.events import FinishReason, SegmentKind, Stats
from intone_server.synthesis.output import PACED_CHUNK_SECONDS
from intone_server.synthesis.part import Part, Silence
from intone_server.synthesis.segmenter import CommitReason
from intone_server.synthesis.timeline import Timeline
from intone_server.synthesis.watching import Unwatched
from test_session import FRAME, Stage, kinds

MODEL_RATE = 24000
ROUNDING = 1e-6  # seconds; far below a sample


class Clock:
    """Stands still unless the test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def timeline_of(
    clock: Clock, rate: int, max_ahead: float | None, lengths: list[int]
) -> tuple[Timeline, Stats]:
    """All of it made: speech of so many frames, or silence of so many tenths of a second if below
    0."""
    config = replace(
        Stage.config(),
        encoding=Encoding.PCM_F32LE,
        sample_rate_hertz=rate,
        max_ahead_seconds=max_ahead,
    )
    stats = Stats()
    # Tails depend on the clock, and this compares two of them.
    timeline = Timeline(config, stats, watch=Unwatched(), gives_tails=False, clock=clock)
    noise = np.random.default_rng(0)
    for index, length in enumerate(lengths):
        if length < 0:
            timeline.add(Part.silence(Silence(-length * rate // 10, 0, 0), index))
            continue
        part = Part(
            segment=index,
            kind=SegmentKind.SPEECH,
            start=0,
            end=0,
            text="x",
            seed=0,
            reason=CommitReason.SENTENCE,
        )
        part.on_started()
        for _ in range(length):
            part.on_audio(noise.uniform(-0.5, 0.5, 1920).astype(np.float32).tobytes())
        part.on_completed(no_end=False)
        timeline.add(part)
    timeline.finish(FinishReason.END_OF_INPUT)
    return timeline, stats


def take(timeline: Timeline) -> list[events.Event]:
    """All that there is now."""
    return list(iter(timeline.take, None))


def sound(told: list[events.Event]) -> bytes:
    return b"".join(e.data for e in told if isinstance(e, events.AudioChunk))


@settings(deadline=None)
@given(
    rate=st.sampled_from([8000, 22050, 24000, 48000]),
    max_ahead=st.sampled_from([0.1, 0.25, 1.0, 3.0]),
    lengths=st.lists(st.sampled_from([-30, -1, 1, 2, 7, 40]), min_size=1, max_size=5),
    history=st.lists(st.tuples(st.floats(0, 1.5), st.none() | st.floats(0, 1.2)), max_size=30),
)
def test_it_is_exact_to_a_frame_and_no_sample_is_lost_or_moved(
    rate: int,
    max_ahead: float,
    lengths: list[int],
    history: list[tuple[float, float | None]],
) -> None:
    """Whatever the listener does: time goes by, and now and then it says how much of all that was
    sent it has played."""
    clock = Clock()
    whole = take(timeline_of(clock, rate, None, lengths)[0])
    timeline, _ = timeline_of(clock, rate, max_ahead, lengths)
    told: list[events.Event] = []
    frame = Fraction(int(PACED_CHUNK_SECONDS * rate), rate)
    steps = iter(history)
    while not told or not isinstance(told[-1], events.Finished):
        ahead = timeline.playout.ahead(clock.now)
        event = timeline.take()
        if event is not None:
            if isinstance(event, events.AudioChunk):
                assert ahead <= max_ahead + ROUNDING
                assert timeline.playout.ahead(clock.now) <= max_ahead + frame + ROUNDING
            told.append(event)
            continue
        assert ahead >= max_ahead - ROUNDING
        until = timeline.paused_until
        assert until is not None
        seconds, played = next(steps, (None, None))
        clock.now = until if seconds is None else clock.now + seconds
        if played is not None:
            timeline.playout.reported(clock.now, int(played * timeline.playout.sent_samples))
    assert sound(told) == sound(whole)
    chunks = [e for e in told if isinstance(e, events.AudioChunk)]
    ends = np.cumsum([0, *(e.sample_count for e in chunks)])
    assert [e.sample_offset for e in chunks] == list(ends[:-1])
    others = [type(e) for e in told if not isinstance(e, events.AudioChunk)]
    assert others == [type(e) for e in whole if not isinstance(e, events.AudioChunk)]


def test_without_it_nothing_waits_for_the_listener() -> None:
    timeline, _ = timeline_of(Clock(), 24000, None, [100, -300, 100])
    assert isinstance(take(timeline)[-1], events.Finished)
    assert timeline.paused_until is None
    assert not timeline.is_full()


def test_what_is_made_and_not_sent_counts_before_a_segment_is_begun() -> None:
    """Silence too; what lies behind the segment does not."""
    clock = Clock()
    timeline, _ = timeline_of(clock, 24000, 1.0, [5, -5, 5])
    assert timeline.is_full()  # 0.4, 0.5 and 0.4 s
    behind = list(timeline._items)[2]
    assert isinstance(behind, Part)
    assert not timeline.is_full(behind)
    take(timeline)
    assert timeline.is_full()
    until = timeline.paused_until
    assert until is not None
    clock.now = until
    assert timeline.paused_until is None
    assert timeline.is_full()  # 0.2 s or more that are not sent
    take(timeline)
    clock.now += 0.5
    take(timeline)
    clock.now += 0.5
    assert not timeline.is_full()


def test_an_underrun_is_what_the_listener_says() -> None:
    clock = Clock()
    timeline, stats = timeline_of(clock, 24000, 0.5, [20])
    take(timeline)
    clock.now += 10
    timeline.playout.reported(clock.now, 4800)  # its player had stopped
    clock.now = timeline.paused_until or clock.now
    take(timeline)
    assert stats.underruns == 0
    clock.now += 0.1
    timeline.playout.reported(clock.now, 10**9)
    take(timeline)
    assert stats.underruns == 1


def sent_seconds(heard: list[events.Event]) -> float:
    return sum(e.sample_count for e in heard if isinstance(e, events.AudioChunk)) / MODEL_RATE


async def test_no_segment_is_begun_while_the_listener_is_too_far_ahead() -> None:
    stage = Stage(config={"max_ahead_seconds": 2.0})
    (replica,) = stage.worker.replicas
    with stage.permit, stage.session:
        began_at = time.monotonic()
        stage.session.push_text("One two three. Four five six.")
        stage.session.flush("")
        stage.speak(100)  # 8 s
        heard = await stage.heard()
        gone = time.monotonic() - began_at
        assert 2.0 <= sent_seconds(heard) <= 2.0 + PACED_CHUNK_SECONDS + gone
        assert replica.generation is None
        assert not stage.permit.talking, "it needs no replica now"
        for _ in range(4):  # a listener who is faster than the clock
            stage.session.played(10**9)
            heard += await stage.heard()
        assert sent_seconds(heard) == 8
        assert replica.generation is not None
        assert replica.generation.text == "Four five six."
        stage.speak(1)
        await stage.heard()


async def test_a_paused_stream_is_neither_idle_nor_its_client_slow() -> None:
    stage = Stage(
        config={"max_ahead_seconds": 0.1, "segment_events": False},
        idle_timeout_seconds=0.2,
        slow_client_timeout_seconds=0.1,
    )
    slow: list[bool] = []
    stage.session.on_slow_client = lambda: slow.append(True)
    with stage.permit, stage.session:
        stage.session.push_text("One two three.")
        stage.session.flush("")
        stage.speak(8)  # 0.64 s, which go out by the clock alone
        told = [await stage.session.next_event() for _ in range(9)]
        assert set(kinds(told[:8])) == {"AudioChunk"}
        assert kinds(told[8:]) == ["Flushed"]
        assert isinstance(await stage.session.next_event(), events.Notice)
    assert not slow


async def test_text_that_waits_for_the_listener_is_not_idle() -> None:
    """Though nothing is on the timeline."""
    stage = Stage(config={"max_ahead_seconds": 1.0}, idle_timeout_seconds=0.4)
    (replica,) = stage.worker.replicas
    with stage.permit, stage.session:
        stage.session.push_text("One two three.")
        stage.session.flush("")
        stage.speak(25)  # 2 s
        told: list[events.Event] = []
        while "Flushed" not in kinds(told):
            told.append(await stage.session.next_event())
        stage.session.played(0)  # though all of it was sent: its player has only just begun
        stage.session.push_text("Four.")
        stage.session.flush("")
        assert replica.generation is None
        while replica.generation is None:
            told += await stage.heard()
        assert "Notice" not in kinds(told)
        stage.speak(1)
        await stage.heard()


async def test_half_close_and_pauses_keep_every_sample() -> None:
    stage = Stage(config={"max_ahead_seconds": 0.2, "segment_events": False})
    with stage.permit, stage.session:
        stage.session.push_text("One two three.")
        stage.session.pause(0.3)
        stage.session.end_input()
        stage.speak(4)
        told = []
        while not told or not isinstance(told[-1], events.Finished):
            told.append(await stage.session.next_event())
    voice = (np.frombuffer(FRAME, np.float32) * 32767).round().astype("<i2").tobytes()
    assert sound(told) == voice * 4 + bytes(2 * 7200)


async def test_a_clear_takes_effect_at_once_and_what_follows_is_sent_at_once() -> None:
    stage = Stage(config={"max_ahead_seconds": 60.0})
    with stage.permit, stage.session:
        stage.session.push_text("One two three. Four. ")
        stage.speak(1000)  # 80 s
        await stage.heard()
        stage.session.played(0)  # for ever, by the clock
        stage.session.clear("c", None)
        cleared = (await stage.heard())[-1]
        assert isinstance(cleared, events.Cleared)
        assert (cleared.text_spoken, cleared.text_unspoken) == ("", "One two three. Four. ")
        stage.session.push_text("New words.")
        stage.session.flush("")
        stage.speak(1)
        assert "AudioChunk" in kinds(await stage.heard())


async def test_a_clear_takes_what_was_heard_from_the_last_report() -> None:
    stage = Stage()
    with stage.permit, stage.session:
        stage.session.push_text("One two three.")
        stage.session.flush("")
        stage.speak(100)
        await stage.heard()
        stage.session.played(96_000)  # half of it, sooner than the clock would have it
        stage.session.clear("c", None)
        cleared = (await stage.heard())[-1]
        assert isinstance(cleared, events.Cleared)
        assert (cleared.text_spoken, cleared.text_split_estimated) == ("One two", True)


async def test_a_report_is_a_heartbeat() -> None:
    stage = Stage(idle_timeout_seconds=0.2)
    with stage.permit, stage.session:
        for _ in range(6):
            await asyncio.sleep(0.05)
            stage.session.played(0)
        assert await stage.heard() == []


async def test_generations_know_who_waits_for_them() -> None:
    config = {"priority": Priority.BATCH, "client": "192.0.2.7"}
    stage = Stage(config=config)
    with stage.permit, stage.session:
        stage.session.push_text("One two three. ")
        stage.session.flush("")
        generation = stage.worker.replicas[0].generation
        assert generation is not None
        assert (generation.priority, generation.client) == (Priority.BATCH, "192.0.2.7")
        assert generation.listener.dry_at() is None
        stage.speak(2, end=False)
        await stage.heard()
        assert generation.listener.dry_at() is not None
        stage.session.clear("", 0)
        assert generation.listener.dry_at() is None
        stage.release()
        await stage.heard()
