"""Loudness: a constant gain, a limiter for what gets too loud, the fade of a sound that is cut."""

import numpy as np

from intone_server.audio import Samples

# What `gain_db` may be. Below, nobody hears anything; above, everything is as loud as the limiter
# lets it be.
GAIN_DB_RANGE = (-40.0, 20.0)

# What the limiter keeps to, 0.2 dB below full scale: lossy encodings overshoot a little.
_CEILING = np.float32(0.98)
# How long before and behind a peak the limiter has turned down. Shorter would be heard as
# distortion of deep voices, whose period is 10 ms; longer as breathing.
_REACH_SECONDS = 0.01

# Short enough not to be heard as a word, long enough not to be heard as a click.
FADE_SECONDS = 0.005


class Level:
    """A gain of `gain_db` decibels (GAIN_DB_RANGE), the same for a whole stream.

    Up to 0 dB each sample is treated alone, and what is beyond full scale is clipped. Above, a
    limiter looks ahead and turns down around each peak, so that nothing is clipped; it works in
    runs like the resampler, and in pieces it gives what it gives for the whole.
    """

    def __init__(self, gain_db: float, sample_rate_hertz: int) -> None:
        # 20 dB are a factor of ten in amplitude.
        self._factor = np.float32(10.0 ** (gain_db / 20.0))
        self._limiter = _Limiter(sample_rate_hertz) if gain_db > 0.0 else None
        #: Samples that were beyond full scale after the gain, so far.
        self.over_samples = 0

    def push(self, samples: Samples) -> Samples:
        """Finite samples of shape (n,) in; those that can be given by now out, shape (m,), within
        full scale."""
        if self._factor != 1.0:
            samples = samples * self._factor
        over = int(np.count_nonzero(np.abs(samples) > 1.0))
        self.over_samples += over
        if self._limiter is not None:
            return self._limiter.push(samples)
        return np.clip(samples, -1.0, 1.0) if over else samples

    def end_run(self) -> Samples:
        """The rest of the run, shape (m,)."""
        return np.zeros(0, np.float32) if self._limiter is None else self._limiter.end_run()

    def drop(self) -> None:
        """Forget what is inside. The next `push` begins a run."""
        if self._limiter is not None:
            self._limiter.drop()


class _Limiter:
    """Turns each sample down by a weighted mean of the least gains that its neighbours allow, so
    that the gain is smooth and never more than any sample allows (a minimum filter of the allowed
    gains, then a convolution with positive weights whose sum is one)."""

    def __init__(self, sample_rate_hertz: int) -> None:
        self._reach = round(_REACH_SECONDS / 2 * sample_rate_hertz)
        weights = np.hanning(2 * self._reach + 3)[1:-1]
        self._weights = (weights / weights.sum()).astype(np.float32)
        self.drop()

    def drop(self) -> None:
        self._held: Samples = np.zeros(0, np.float32)
        # Of the samples that are held, and of as many before them as they depend on.
        self._allowed: Samples = np.ones(2 * self._reach, np.float32)

    def push(self, samples: Samples) -> Samples:
        self._held = np.concatenate([self._held, samples])
        magnitudes = np.abs(samples)
        allowed = _CEILING / np.maximum(magnitudes, _CEILING)
        self._allowed = np.concatenate([self._allowed, allowed.astype(np.float32, copy=False)])
        return self._take(len(self._held) - 2 * self._reach)

    def end_run(self) -> Samples:
        self._allowed = np.concatenate([self._allowed, np.ones(2 * self._reach, np.float32)])
        rest = self._take(len(self._held))
        self.drop()
        return rest

    def _take(self, count: int) -> Samples:
        if count <= 0:
            return np.zeros(0, np.float32)
        taken, self._held = self._held[:count], self._held[count:]
        allowed = self._allowed[: count + 4 * self._reach]
        self._allowed = self._allowed[count:]
        if allowed.min() >= 1.0:
            return taken
        least = _least(allowed, 2 * self._reach + 1)
        # Rounding may leave a sum of weights a little above one.
        gains = np.minimum(np.convolve(least, self._weights, mode="valid"), 1.0)
        limited: Samples = np.clip(taken * gains, -1.0, 1.0)
        return limited


def _least(values: Samples, width: int) -> Samples:
    """The least of every `width` neighbours: shape (n,) to (n - width + 1,).

    By doubling: the minimum of a window is that of two shorter ones that cover it.
    """
    covered = 1
    while covered < width:
        step = min(covered, width - covered)
        values = np.minimum(values[:-step], values[step:])
        covered += step
    return values


def fade_out(samples: Samples, sample_rate_hertz: int) -> Samples:
    """What is still heard of `samples`, shape (n,), when the sound is cut where they begin.

    At most FADE_SECONDS of them, under a raised cosine that ends at exactly 0.
    """
    count = min(len(samples), round(FADE_SECONDS * sample_rate_hertz))
    phases = np.arange(1, count + 1, dtype=np.float32) / max(count, 1)
    ramp = 0.5 * (1.0 + np.cos(np.float32(np.pi) * phases))
    return samples[:count] * ramp.astype(np.float32, copy=False)
