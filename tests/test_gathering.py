"""Fewer, longer messages for a listener who has something left to hear."""

from dataclasses import replace

import numpy as np
import pytest

from intone_server.audio.encoding import Encoding
from intone_server.synthesis import events
from intone_server.synthesis.events import SegmentKind, Stats
from intone_server.synthesis.part import Part
from intone_server.synthesis.segmenter import CommitReason
from intone_server.synthesis.timeline import Timeline
from intone_server.synthesis.watching import Unwatched
from test_max_ahead import Clock
from test_session import Stage

FRAME = 1920
FRAME_SECONDS = 0.08


class Stream:
    """A timeline with one part that is being spoken."""

    def __init__(self, max_ahead: float | None = None) -> None:
        self.clock = Clock()
        config = replace(Stage.config(), encoding=Encoding.PCM_F32LE, max_ahead_seconds=max_ahead)
        self.timeline = Timeline(config, Stats(), watch=Unwatched(), clock=self.clock)
        self.part = Part(
            segment=0,
            kind=SegmentKind.SPEECH,
            start=0,
            end=0,
            text="x",
            seed=0,
            reason=CommitReason.SENTENCE,
        )
        self.part.on_started()
        self.timeline.add(self.part)

    def make(self, frames: int) -> list[int]:
        """So many frames are made, one after the other; returns the frames of each message."""
        sent = []
        for _ in range(frames):
            self.part.on_audio(np.ones(FRAME, np.float32).tobytes())
            sent += self.take()
        return sent

    def take(self) -> list[int]:
        told = iter(self.timeline.take, None)
        return [e.sample_count // FRAME for e in told if isinstance(e, events.AudioChunk)]


def test_the_first_frames_are_sent_at_once() -> None:
    assert Stream().make(4) == [1, 1, 1, 1]


def test_the_more_is_left_to_hear_the_more_is_gathered() -> None:
    """After n frames without a pause, the least number that is a quarter of that, up to four."""
    assert Stream().make(30) == [1] * 4 + [2] * 2 + [3] * 2 + [4] * 4


def test_a_listener_who_has_heard_nearly_all_is_sent_every_frame() -> None:
    stream = Stream()
    sent = sum(stream.make(20))
    stream.clock.now += sent * FRAME_SECONDS - 0.1
    assert stream.make(1) == [20 - sent + 1]


def test_nothing_is_held_back_at_the_end() -> None:
    stream = Stream()
    sent = stream.make(31)
    assert sum(sent) < 31
    stream.part.on_completed(no_end=False)
    assert sum(sent + stream.take()) == 31


@pytest.mark.parametrize("frames", [1, 12])
def test_a_client_that_sets_max_ahead_gets_frames(frames: int) -> None:
    assert Stream(max_ahead=5.0).make(frames) == [1] * frames
