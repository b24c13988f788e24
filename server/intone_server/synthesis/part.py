"""A piece of a stream's timeline: one segment, spoken or silent, on its way to the client."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from intone_server.audio import Samples
from intone_server.audio.buffer import MAX_CHUNK_SECONDS, SampleBuffer
from intone_server.engines.base import VoiceRef
from intone_server.errors import IntoneError
from intone_server.scheduling.generation import Generation
from intone_server.synthesis.events import Outcome, SegmentKind
from intone_server.synthesis.segmenter import CommitReason, Segment
from intone_server.synthesis.speech import SpeechConfig, estimated_seconds, segment_seed


@dataclass(frozen=True, slots=True)
class Silence:
    """A pause of so many samples at code point `position` of the stream's text."""

    samples: int
    position: int


class Part:
    """Audio arrives from a generation (or is silence that is counted, not stored) and leaves in
    chunks. Sample counts are at the stream's rate; `start` and `end` are code points.

    `outcome` is set when no more audio will be made; what is buffered then is still to be sent.
    """

    def __init__(
        self,
        *,
        segment: int,
        kind: SegmentKind,
        start: int,
        end: int,
        text: str,
        seed: int,
        reason: CommitReason,
        on_change: Callable[["Part"], None],
    ) -> None:
        self.segment = segment
        self.kind = kind
        self.start = start
        self.end = end
        self.text = text
        self.seed = seed
        self.reason = reason
        self._on_change = on_change
        self.generation: Generation | None = None
        self.started = False  # a replica has begun
        self.announced = False  # the client has heard of it
        self.sample_offset = 0  # of its first sample, once it is announced
        self.made_samples = 0
        self.sent_samples = 0
        self.outcome: Outcome | None = None
        self.error: IntoneError | None = None
        self._buffer = SampleBuffer()
        self._silence = 0

    @classmethod
    def speech(
        cls,
        segment: Segment,
        index: int,
        config: SpeechConfig,
        on_change: Callable[["Part"], None],
    ) -> "Part":
        """A segment with its generation, not yet submitted; SKIPPED if it cannot be spoken."""
        part = cls(
            segment=index,
            kind=SegmentKind.SPEECH,
            start=segment.start,
            end=segment.end,
            text=segment.spoken_text,
            seed=segment_seed(config.seed, index),
            reason=segment.reason,
            on_change=on_change,
        )
        if not segment.speakable:
            part.end_with(Outcome.SKIPPED)
            return part
        part.generation = Generation(
            text=part.text,
            voice=VoiceRef(config.voice),
            sampling=config.sampling,
            seed=part.seed,
            estimated_seconds=estimated_seconds(part.text),
            observer=part,
            max_queue_wait_seconds=config.max_queue_wait_seconds,
        )
        return part

    @classmethod
    def silence(cls, silence: Silence, index: int) -> "Part":
        """Exact silence; complete from the start."""
        part = cls(
            segment=index,
            kind=SegmentKind.SILENCE,
            start=silence.position,
            end=silence.position,
            text="",
            seed=0,
            reason=CommitReason.PAUSE,
            on_change=lambda _: None,
        )
        part.started = True
        part._silence = part.made_samples = silence.samples
        part.outcome = Outcome.COMPLETE
        return part

    @property
    def unsent_samples(self) -> int:
        """Samples that are held in memory."""
        return len(self._buffer)

    @property
    def has_audio(self) -> bool:
        """Whether a chunk can be taken now."""
        return bool(self._silence or len(self._buffer))

    def take_chunk(self, sample_rate_hertz: int) -> Samples:
        """The next chunk, shape (n,), which counts as sent."""
        if self._silence:
            samples = np.zeros(
                min(self._silence, int(MAX_CHUNK_SECONDS * sample_rate_hertz)), np.float32
            )
            self._silence -= len(samples)
        else:
            samples = self._buffer.take_chunk(sample_rate_hertz)
        self.sent_samples += len(samples)
        return samples

    def end_with(self, outcome: Outcome, error: IntoneError | None = None) -> None:
        """No more audio will be made."""
        self.outcome = outcome
        self.error = error

    @property
    def queue_seconds(self) -> float:
        """How long it waited for a replica."""
        return self.generation.queue_seconds if self.generation else 0.0

    @property
    def run_seconds(self) -> float:
        """How long it ran on one."""
        return self.generation.run_seconds if self.generation else 0.0

    def drop(self, outcome: Outcome, error: IntoneError | None = None) -> int:
        """Stop the generation and forget unsent audio; returns how many samples that was.

        A part that was over already, and of which nothing is lost, keeps its outcome.
        """
        if self.generation is not None:
            self.generation.cancel()
        dropped = self._buffer.drop() + self._silence
        self._silence = 0
        if self.outcome is None or (dropped and self.outcome is not Outcome.FAILED):
            self.end_with(outcome, error)
        return dropped

    # Observer of the generation.

    def on_started(self) -> None:
        self.started = True
        self._on_change(self)

    def on_audio(self, samples: bytes) -> None:
        array = np.frombuffer(samples, np.float32)
        self.made_samples += len(array)
        self._buffer.append(array)
        self._on_change(self)

    def on_completed(self, *, no_end: bool) -> None:
        if not self.made_samples:
            self.end_with(Outcome.SKIPPED)
        else:
            self.end_with(Outcome.NO_END if no_end else Outcome.COMPLETE)
        self._on_change(self)

    def on_failed(self, error: IntoneError) -> None:
        self.end_with(Outcome.FAILED, error)
        self._on_change(self)
