"""From parts of a timeline to bytes in the format of a stream."""

import numpy as np

from intone_server.audio import Samples
from intone_server.audio.buffer import MAX_CHUNK_SECONDS, SampleBuffer
from intone_server.audio.encoding import NOTHING, Encoded, Encoder, encoder
from intone_server.audio.level import FADE_SECONDS, Level, fade_out
from intone_server.audio.resampling import Resampler
from intone_server.synthesis.events import Finished, SegmentKind
from intone_server.synthesis.part import Part
from intone_server.synthesis.speech import SpeechConfig

# Longest chunk for a client that sets `max_ahead`, which is exact to one chunk: a frame.
PACED_CHUNK_SECONDS = 0.08


class Output:
    """Converts, levels and encodes the sound of parts, in *runs*: sound without a pause in it, over
    any number of parts.

    The resampler, the limiter and the encoder keep some of the sound back until they are given what
    follows, or the run is over. So the end of one part may come out only when the next one goes on;
    each sample is still told as that of its own part.
    """

    def __init__(self, config: SpeechConfig) -> None:
        self._rate = config.sample_rate_hertz
        self._model_rate = config.model_rate_hertz
        self._resampler = Resampler(config.model_rate_hertz, self._rate)
        self._level = Level(config.gain_db, self._rate)
        self._encoding = config.encoding
        self._paced = config.max_ahead_seconds is not None
        most_seconds = PACED_CHUNK_SECONDS if self._paced else MAX_CHUNK_SECONDS
        self._most = int(most_seconds * self._rate)
        self._encoder: Encoder | None = None  # made at the first sound: it holds up to 7 MB
        self._ready = SampleBuffer()  # converted, not yet encoded
        self._pushed = 0  # of this run, at the model's rate
        self._due = 0  # what that becomes, at the stream's rate
        self._taken = 0  # of that
        self._last = 0.0  # the sample that was encoded last
        self._tail_is_due = False
        self._run_is_over = False
        self._finished = False
        self.keeps_tail = False  # the end of a part waits for the next one

    @property
    def position(self) -> int:
        """Where on the stream's timeline the next sample lies that is encoded."""
        return self._encoder.position if self._encoder else 0

    @property
    def over_samples(self) -> int:
        """Samples that were beyond full scale, so far."""
        return self._level.over_samples

    def next_of(self, part: Part, following: object) -> Encoded | None:
        """More of `part`, which `following` comes after on the timeline. None: it has to be made
        yet. What closes the part may be empty."""
        self.keeps_tail = False
        while True:
            if part.kind is SegmentKind.SILENCE:
                count = part.take_silence(self._most)
                if not count:
                    return self._end_of(part, following) if part.is_over else None
                encoded = self._encode(np.zeros(count, np.float32))
            elif (most := self._ready_of(part)) > 0:
                most = min(most, self._most) if self._paced else most
                samples = self._ready.take_chunk(self._rate, most)
                self._taken += len(samples)
                encoded = self._encode(samples)
            elif part.has_audio:
                self._push(part)
                continue
            elif not part.is_over:
                return None
            elif part.ends_at is None:
                part.ends_at = self._due
                continue
            elif self._taken >= part.ends_at or self._run_is_over:
                return self._end_of(part, following)
            elif (
                not isinstance(following, Part)
                or not _goes_on(part, following)
                or self._tail_is_due
            ):
                self._end_run()
                continue
            elif following.has_audio:
                self._push(following)
                continue
            elif following.is_over:  # all of it is in the resampler already
                self._end_run()
                continue
            else:
                self.keeps_tail = True
                return None
            if encoded.data:
                return encoded

    def has_all_of(self, part: Part) -> bool:
        """Whether every sample of `part`, the first thing on the timeline, was taken."""
        end = self._due if part.ends_at is None else part.ends_at
        silent = part.kind is SegmentKind.SILENCE
        return part.is_over and (part.closed or silent or self._taken >= end)

    def give_tail(self) -> None:
        """Do not wait for the next part any longer: the run is over where this one ends."""
        self._tail_is_due = True
        self.keeps_tail = False

    def finish(self) -> Encoded:
        """Nothing will follow: what the encoder keeps, and what ends the file. Once."""
        if self._encoder is None or self._finished:
            return NOTHING
        self._finished = True
        return self._encoder.finish()

    def cut(self, part: Part) -> Encoded:
        """Drop what was not taken, but for a few milliseconds in which the sound of `part` fades
        out."""
        if not len(self._ready) and part.has_audio:
            self._push(part)
        count = int(FADE_SECONDS * self._rate)
        samples = self._ready.take(min(count, len(self._ready)))
        if not len(samples):  # not made yet
            samples = np.full(count, self._last, np.float32)
        faded = self._encode(fade_out(samples, self._rate))
        rest = self.settle()
        return Encoded(faded.data + rest.data, faded.sample_count + rest.sample_count)

    def settle(self) -> Encoded:
        """Bring out what the encoder holds, drop all else, and begin a new run."""
        rest = self._encoder.end_run() if self._encoder else NOTHING
        self.drop()
        return rest

    def drop(self) -> None:
        """Forget what was not encoded, and begin a new run."""
        if self._encoder is not None:
            self._encoder.drop()
        self._ready.drop()
        self._start_run()
        self.keeps_tail = False

    def restart(self) -> None:
        """Forget everything: no byte has left yet."""
        self.drop()
        if self._encoder is not None:
            self._encoder.close()
            self._encoder = None

    def close(self) -> None:
        """Nothing more will be asked."""
        if self._encoder is not None:
            self._encoder.close()

    def _ready_of(self, part: Part) -> int:
        """Samples of `part` that are converted; what is behind its end is the next one's."""
        ready = len(self._ready)
        return ready if part.ends_at is None else min(ready, part.ends_at - self._taken)

    def _push(self, part: Part) -> None:
        if self._run_is_over:  # its end came out before this
            self._start_run()
        part.in_output = True
        if part.at_stream_rate:
            samples = part.take_samples(self._rate)
            self._due += len(samples)
        else:
            samples = part.take_samples(self._model_rate)
            self._pushed += len(samples)
            self._due = self._resampler.total(self._pushed)
            samples = self._resampler.push(samples)
        self._ready.append(self._level.push(samples))

    def _end_of(self, part: Part, following: object) -> Encoded:
        part.all_sent = part.closed = True
        if len(self._ready):
            return NOTHING  # the next part's, which went the same way
        goes_on = _goes_on(part, following)
        if self._run_is_over or not goes_on:
            self._start_run()
        if goes_on:
            return NOTHING
        if isinstance(following, Finished):
            return self.finish()
        # Between sound and a pause that was asked for no other silence is put.
        if isinstance(following, Part) or self._encoder is None:
            return NOTHING
        return self._encoder.end_run()

    def _end_run(self) -> None:
        """What the resampler and the limiter keep is ready now."""
        self._ready.append(self._level.push(self._resampler.end_run()))
        self._ready.append(self._level.end_run())
        self._run_is_over = True

    def _start_run(self) -> None:
        self._resampler.drop()
        self._level.drop()
        self._pushed = self._due = self._taken = 0
        self._run_is_over = self._tail_is_due = False

    def _encode(self, samples: Samples) -> Encoded:
        if self._encoder is None:
            self._encoder = encoder(self._encoding, self._rate)
        self._last = float(samples[-1])
        return self._encoder.encode(samples)


def _goes_on(part: Part, following: object) -> bool:
    """Whether sound follows that belongs to the same run. Each item of a script is its own, so
    that its samples do not depend on its neighbours."""
    return (
        isinstance(following, Part)
        and following.kind is not SegmentKind.SILENCE
        and following.item == part.item
        and (following.has_audio or following.in_output or not following.is_over)
    )
