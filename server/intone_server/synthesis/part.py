"""A piece of a stream's timeline: one segment, spoken or silent, on its way to the client."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from intone_server.audio import Samples
from intone_server.audio.buffer import SampleBuffer
from intone_server.engines.base import Sampling, VoiceRef
from intone_server.errors import IntoneError, Reason
from intone_server.scheduling.generation import Generation
from intone_server.synthesis.events import ItemRef, Outcome, SegmentKind
from intone_server.synthesis.mapped import MappedText
from intone_server.synthesis.segmenter import CommitReason, Segment
from intone_server.synthesis.speech import (
    SpeechConfig,
    estimated_seconds,
    second_seed,
    segment_seed,
)


@dataclass(frozen=True, slots=True)
class Silence:
    """A pause of so many samples, at code points `start` up to `end` of the stream's text."""

    samples: int
    start: int
    end: int


class Part:
    """Audio arrives from a generation (or is silence that is counted, not stored) and leaves in
    chunks. `made_samples` are at the model's rate, or the stream's if `at_stream_rate`;
    `sample_offset` and `sent_samples` are at the stream's. `start` and `end` are code points.

    `outcome` is set when no more audio will be made; what is buffered then is still to be sent.
    Times are those of the monotonic clock.
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
        voice: str = "",
        on_change: Callable[["Part"], None] = lambda _: None,
    ) -> None:
        self.segment = segment
        self.kind = kind
        self.start = start
        self.end = end
        self.text = text
        self.seed = seed
        self.reason = reason
        self.voice = voice
        self._on_change = on_change
        self.item: ItemRef | None = None  # of a script
        self.ends_item = False
        self.generation: Generation | None = None
        self.started = False  # a replica has begun
        self.started_at: float | None = None
        self.first_audio_at: float | None = None
        self.ended_at: float | None = None  # no more audio will be made
        self.announced = False  # the client has heard of it
        self.sample_offset = 0  # of its first sample, once it is announced
        self.made_samples = 0
        self.earlier_made_samples = 0  # by a first attempt, which nobody heard
        self.sent_samples = 0
        self.outcome: Outcome | None = None
        self.error: IntoneError | None = None
        self.ends_at: int | None = None  # in the output's run, once all of it was given to that
        self.cleaned: MappedText | None = None  # the client's text without marks, if it had some
        self.in_output = False  # samples of it were given to that
        self.all_sent = False
        self.kept: list[Samples] | None = None  # all of it, if it will be repeated
        self.closed = False  # so is what the end of its run brings out
        self.at_stream_rate = kind is SegmentKind.SILENCE
        self._buffer = SampleBuffer()
        self._silence = 0
        self._waits_for_end = False  # nothing of it is given away before
        self._earlier_run_seconds = self._earlier_queue_seconds = 0.0  # of a first attempt

    @classmethod
    def speech(
        cls,
        segment: Segment,
        index: int,
        config: SpeechConfig,
        on_change: Callable[["Part"], None],
        *,
        seed: int | None = None,
    ) -> "Part":
        """A segment with its generation, not yet submitted; SKIPPED if it cannot be spoken.

        `index` is its place in the stream, from which its seed is made unless that is given.
        """
        part = cls(
            segment=index,
            kind=SegmentKind.SPEECH,
            start=segment.start,
            end=segment.end,
            text=segment.spoken_text,
            seed=segment_seed(config.seed, index) if seed is None else seed,
            reason=segment.reason,
            voice=config.voice,
            on_change=on_change,
        )
        if not segment.speakable:
            part.end_with(Outcome.SKIPPED)
            return part
        part.generation = part._generation(config.voice_ref, config.sampling)
        part.generation.max_queue_wait_seconds = config.max_queue_wait_seconds
        part.cleaned = segment.cleaned
        part._waits_for_end = config.retry_no_end
        return part

    def _generation(self, voice: VoiceRef, sampling: Sampling) -> Generation:
        return Generation(
            text=self.text,
            voice=voice,
            sampling=sampling,
            seed=self.seed,
            estimated_seconds=estimated_seconds(self.text),
            observer=self,
        )

    @classmethod
    def silence(cls, silence: Silence, index: int) -> "Part":
        """Exact silence; complete from the start."""
        part = cls(
            segment=index,
            kind=SegmentKind.SILENCE,
            start=silence.start,
            end=silence.end,
            text="",
            seed=0,
            reason=CommitReason.PAUSE,
        )
        part.be_silent(silence.samples)
        return part

    def be_silent(self, samples: int) -> None:
        """Be so much silence, complete."""
        self.started = True
        self._silence = self.made_samples = samples
        self.outcome = Outcome.COMPLETE

    @classmethod
    def sound(cls, samples: Samples, index: int, *, keep: bool) -> "Part":
        """Audio from the client, shape (n,), at the stream's rate; complete from the start. `keep`:
        it will be repeated."""
        part = cls(
            segment=index,
            kind=SegmentKind.AUDIO,
            start=0,
            end=0,
            text="",
            seed=0,
            reason=CommitReason.END_OF_INPUT,
        )
        part.at_stream_rate = part.started = True
        part.kept = [] if keep else None
        part._take(samples)
        part.outcome = Outcome.COMPLETE
        return part

    @classmethod
    def repeated(cls, original: "Part", index: int) -> "Part":
        """Will be the same audio as another part, which keeps it until then."""
        silent = original.kind is SegmentKind.SILENCE
        part = cls(
            segment=index,
            kind=SegmentKind.SILENCE if silent else SegmentKind.REUSE,
            start=original.start,
            end=original.end,
            text=original.text,
            seed=original.seed,
            reason=original.reason,
            voice=original.voice,
        )
        part.at_stream_rate = original.at_stream_rate
        return part

    def repeat(self, original: "Part") -> None:
        """Be that audio; all of it was made."""
        if self.kind is SegmentKind.SILENCE:
            self.be_silent(original.made_samples)
            return
        self.started = original.started
        for samples in original.kept or ():
            self._take(samples)
        assert original.outcome is not None
        self.end_with(original.outcome)

    def stand_in(self, samples: int) -> None:
        """Be silent for so many samples of the model, in the place of what failed."""
        self.started = True
        self._buffer.append(np.zeros(samples, np.float32))

    @property
    def unsent_samples(self) -> int:
        """Samples that are held in memory."""
        return len(self._buffer)

    def unsent_seconds(self, model_rate_hertz: int, sample_rate_hertz: int) -> float:
        """How long what is held is, silence included."""
        rate = sample_rate_hertz if self.at_stream_rate else model_rate_hertz
        return len(self._buffer) / rate + self._silence / sample_rate_hertz

    @property
    def has_audio(self) -> bool:
        """Whether samples can be taken now."""
        return bool(len(self._buffer)) and not self._waits_for_end

    @property
    def is_over(self) -> bool:
        """Whether no more samples can be taken, now or later."""
        return self.outcome is not None and not len(self._buffer) and not self._silence

    def take_samples(self, model_rate_hertz: int) -> Samples:
        """The next chunk of the model's samples, shape (n,)."""
        return self._buffer.take_chunk(model_rate_hertz)

    def take_silence(self, most: int) -> int:
        """How many samples of silence are next, up to `most`."""
        count = min(self._silence, most)
        self._silence -= count
        return count

    def end_with(self, outcome: Outcome, error: IntoneError | None = None) -> None:
        """No more audio will be made."""
        self._waits_for_end = False
        self.outcome = outcome
        self.error = error
        self.ended_at = time.monotonic()

    @property
    def queue_seconds(self) -> float:
        """How long it waited for a replica."""
        last = self.generation.queue_seconds if self.generation else 0.0
        return self._earlier_queue_seconds + last

    @property
    def run_seconds(self) -> float:
        """How long it ran on one."""
        last = self.generation.run_seconds if self.generation else 0.0
        return self._earlier_run_seconds + last

    def drop(self, outcome: Outcome, error: IntoneError | None = None, *, lost: bool) -> None:
        """Stop the generation and forget unsent audio.

        A part that was over already, and of which nothing is `lost`, keeps its outcome.
        """
        if self.generation is not None:
            self.generation.cancel()
        self._buffer.drop()
        self._silence = 0
        if self.outcome is None or (lost and self.outcome is not Outcome.FAILED):
            self.end_with(outcome, error)

    @property
    def wants_replica(self) -> bool:
        """Whether its generation was not submitted yet."""
        return self.generation is not None and self.generation.place is None

    @property
    def was_lost_unheard(self) -> bool:
        """Whether its worker was lost, for the first time, before anything was given away: audio
        that waits here for its turn is no reason not to speak it once more."""
        return (
            self.error is not None
            and self.error.reason is Reason.REPLICA_LOST
            and not self.in_output
            and self.generation is not None
            and self.generation.attempts == 1
        )

    def begin_again(self, *, attempts: int = 0) -> None:
        """Once more from the start, after so many attempts that count; nothing of the first was
        given away."""
        first = self.generation
        assert first is not None
        self._buffer.drop()
        self.kept = None if self.kept is None else []
        self.earlier_made_samples = self.made_samples
        self.made_samples = 0
        self.first_audio_at = None
        self.outcome = self.error = None
        self._waits_for_end = False
        self._earlier_run_seconds = first.run_seconds
        self._earlier_queue_seconds = first.queue_seconds
        self.generation = self._generation(first.voice, first.sampling)
        self.generation.attempts = attempts
        if first.max_queue_wait_seconds is not None:
            left = first.max_queue_wait_seconds - first.queue_seconds
            self.generation.max_queue_wait_seconds = max(0.0, left)

    # Observer of the generation.

    def on_started(self) -> None:
        self.started = True
        self.started_at = time.monotonic()
        self._on_change(self)

    def on_audio(self, samples: bytes) -> None:
        if self.first_audio_at is None:
            self.first_audio_at = time.monotonic()
        self._take(np.frombuffer(samples, np.float32))
        self._on_change(self)

    def _take(self, samples: Samples) -> None:
        self.made_samples += len(samples)
        self._buffer.append(samples)
        if self.kept is not None:
            self.kept.append(samples)

    def on_completed(self, *, no_end: bool) -> None:
        if not self.made_samples:
            self.end_with(Outcome.SKIPPED)
        elif no_end and self._waits_for_end:
            self.seed = second_seed(self.seed)  # the first attempt had no end
            self.begin_again()
        else:
            self.end_with(Outcome.NO_END if no_end else Outcome.COMPLETE)
        self._on_change(self)

    def on_failed(self, error: IntoneError) -> None:
        self.end_with(Outcome.FAILED, error)
        self._on_change(self)
