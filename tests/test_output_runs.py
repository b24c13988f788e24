"""However sound comes, none of it is lost, doubled or given to another segment."""

from dataclasses import replace

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from intone_server.audio.encoding import Encoding
from intone_server.synthesis.events import SegmentKind
from intone_server.synthesis.output import Output
from intone_server.synthesis.part import Part, Silence
from intone_server.synthesis.segmenter import CommitReason
from intone_server.synthesis.speech import SpeechConfig
from test_session import Stage

FRAME = 1920
RATES = (8000, 16000, 22050, 24000, 44100, 48000)
PROPERTY = settings(deadline=None)


def config(rate: int, gain_db: float = 0.0) -> SpeechConfig:
    return replace(
        Stage.config(), encoding=Encoding.PCM_F32LE, sample_rate_hertz=rate, gain_db=gain_db
    )


def part() -> Part:
    return Part(
        segment=0,
        kind=SegmentKind.SPEECH,
        start=0,
        end=0,
        text="x",
        seed=0,
        reason=CommitReason.SENTENCE,
        on_change=lambda _: None,
    )


class Listener:
    """Takes what an output gives of parts, in their order."""

    def __init__(self, output: Output, parts: list[Part]) -> None:
        self._output = output
        self._parts = parts
        self.heard: list[list[np.ndarray]] = [[] for _ in parts]
        self.at = 0

    def take_all(self) -> None:
        """What there is now."""
        for _ in range(10_000):
            if self.at == len(self._parts):
                return
            head = self._parts[self.at]
            following = self._parts[self.at + 1] if self.at + 1 < len(self._parts) else None
            encoded = self._output.next_of(head, following)
            if encoded is None:
                return
            self.heard[self.at].append(np.frombuffer(encoded.data, "<f4"))
            if head.closed:
                self.at += 1
        raise AssertionError("it never comes to an end")

    def counts(self) -> list[int]:
        return [sum(map(len, chunks)) for chunks in self.heard]

    def samples(self) -> np.ndarray:
        return np.concatenate([chunk for chunks in self.heard for chunk in chunks])


@PROPERTY
@given(
    rate=st.sampled_from(RATES),
    gain_db=st.sampled_from([0.0, 6.0]),
    frames=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    data=st.data(),
)
def test_every_sample_is_heard_once_as_that_of_its_own_segment(
    rate: int, gain_db: float, frames: list[int], data: st.DataObject
) -> None:
    """The listener may look at any moment, and the end of a segment may have to come early."""
    noise = np.random.default_rng(1).uniform(-0.4, 0.4, sum(frames) * FRAME).astype(np.float32)
    parts = [part() for _ in frames]
    output = Output(config(rate, gain_db))
    listener = Listener(output, parts)
    at, gave_tail = 0, False
    for made, count in zip(parts, frames, strict=True):
        for _ in range(count):
            made.on_audio(noise[at : at + FRAME].tobytes())
            at += FRAME
            if data.draw(st.booleans()):
                listener.take_all()
        made.on_completed(no_end=False)
        if data.draw(st.booleans()):
            listener.take_all()
            if output.keeps_tail and data.draw(st.booleans()):
                output.give_tail()
                gave_tail = True
                listener.take_all()
    listener.take_all()
    assert listener.at == len(parts)
    assert listener.counts() == [count * FRAME * rate // 24000 for count in frames]
    if not gave_tail and not gain_db:
        whole = noise if rate == 24000 else soxr.resample(noise, 24000, rate, quality="HQ")
        # Where a short segment was complete before the end of the one before it had come out, the
        # run ends with it.
        seams = min(frames) == 1 and rate < 24000
        assert seams or np.abs(listener.samples() - whole).max() < 1e-6


@pytest.mark.parametrize("rate", RATES)
def test_short_segments_that_are_complete_at_once_come_to_an_end(rate: int) -> None:
    parts = [part() for _ in range(3)]
    for made in parts:
        made.on_audio(np.full(FRAME, 0.3, np.float32).tobytes())
        made.on_completed(no_end=False)
    listener = Listener(Output(config(rate, 6.0)), parts)
    listener.take_all()
    assert listener.counts() == [FRAME * rate // 24000] * 3


def test_silence_between_segments_is_exact_and_takes_nothing_of_them() -> None:
    pause = Part.silence(Silence(777, 0, 0), 1)
    parts = [part(), pause, part()]
    for made in (parts[0], parts[2]):
        made.on_audio(np.full(FRAME, 0.3, np.float32).tobytes())
        made.on_completed(no_end=False)
    listener = Listener(Output(config(8000)), parts)
    listener.take_all()
    assert listener.counts() == [640, 777, 640]
    assert not np.concatenate(listener.heard[1]).any()
