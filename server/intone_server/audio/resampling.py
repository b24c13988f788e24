"""From the model's sample rate to the stream's, a piece at a time."""

import numpy as np

from intone_server.audio import Samples


class Resampler:
    """A stateful converter that works in runs: sound without a seam, from silence to silence.

    `end_run` gives the rest of a run; the next `push` begins another one. However a run is cut
    into pieces, its output is that of the whole converted at once. Equal rates pass through.
    """

    def __init__(self, from_hertz: int, to_hertz: int) -> None:
        self._from_hertz = from_hertz
        self._to_hertz = to_hertz
        self._stream = None
        if from_hertz != to_hertz:
            import soxr  # here: most streams keep the model's rate

            self._stream = soxr.ResampleStream(
                from_hertz, to_hertz, 1, dtype="float32", quality="HQ"
            )
        self._in_count = 0
        self._out_count = 0

    def total(self, in_count: int) -> int:
        """How many samples a run of `in_count` samples becomes, to the sample.

        Also where, in the output of a longer run, what follows those samples begins.
        """
        return round(in_count * self._to_hertz / self._from_hertz)

    def push(self, samples: Samples) -> Samples:
        """Samples of shape (n,) in; what can be given by now out, shape (m,), maybe none.

        The filter looks ahead, and works in blocks: output is late by up to 39 ms of the run, and
        74 ms from 24 to 8 kHz (measured).
        """
        if self._stream is None:
            return samples
        made: Samples = self._stream.resample_chunk(samples)
        self._in_count += len(samples)
        self._out_count += len(made)
        return made

    def end_run(self) -> Samples:
        """The rest of the run, shape (m,): with it `total` samples were given. Idempotent."""
        if self._stream is None or not self._in_count:
            return np.zeros(0, np.float32)
        rest: Samples = self._stream.resample_chunk(np.zeros(0, np.float32), last=True)
        left = self.total(self._in_count) - self._out_count
        self.drop()
        # soxr rounds an exact half now up, now down: one sample of silence may be missing.
        return np.pad(rest[:left], (0, left - len(rest[:left])))

    def drop(self) -> None:
        """Forget what is inside. The next `push` begins a run."""
        if self._stream is not None and self._in_count:
            self._stream.clear()
        self._in_count = self._out_count = 0
