"""What a recording sounds like: whether a voice can be made from it, and what is doubtful.

Everything is measured on frames of 30 ms, in the telephone's part of the spectrum, so that a
recording is judged alike whether it came from a studio or over a telephone.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from intone_server.audio import Samples

_FRAME_SECONDS = 0.03  # two periods of a low voice; speech stands still for about as long
_STEP_SECONDS = 0.015
_BAND_HERTZ = (80, 4000)
_PITCH_HERTZ = (70, 400)
# Third octaves: narrow enough to tell vowels apart.
_BANDS = 16
# Half the width of a pure tone as the window shows it.
_TONE_HERTZ = 50
# A frame is voiced if it repeats itself after one period of a pitch: its autocorrelation there,
# as a share of that at lag 0, with the window's own taken out (Boersma 1993, "Accurate short-term
# analysis of the fundamental frequency"). Of white noise no frame reaches this.
_VOICED = 0.7
# Consonants and the ends of words are speech too: what is loud and this near to a voiced frame.
_NEAR_SECONDS = 0.15
# Frames this far below the loudest 0.2 s are pauses, whatever the background.
_LOUD_RANGE_DB = 30
_ABOVE_BACKGROUND_DB = 6

# Limits that refuse, and what was measured. Speech is that of one voice at -6 to -40 dBFS, slowed
# and sped up by half, through mu-law and MP3, in a hall; and any 2 s of it as it is, over a
# telephone, and in white and pink noise of 15 dB less. The rest is white, pink and brown noise, any
# 1 s, steady and in bursts, tones, hum and clicks.
# Of the loudest 0.2 s. Speech of -40 dBFS: -31; an empty room: -70.
MIN_LEVEL_DBFS = -60.0
# Of the energy within _TONE_HERTZ of a frame's peak. Speech at most 0.71; tones from 0.98.
MAX_TONE_SHARE = 0.9
# How much the bands differ over time. Speech from 4.5, whole sentences from 6; the rest at most
# 3.6.
MIN_CHANGE_DB = 4.0
# Of the frames that are not pauses. Speech from 0.29; a whisper 0.03. Pink noise has
# up to 0.25 and tones 1: those are what the change is for.
MIN_VOICED_SHARE = 0.2
# About one syllable. Speech from 0.32; clicks 0.
MIN_VOICED_SECONDS = 0.2

# Limits that warn.
QUIET_DBFS = -40.0
NOISY_GAP_DB = 20.0  # speech in noise of 5 dB less: 19; of 15 dB less: 28
LOW_SPEECH_RATIO = 0.3
_END_SECONDS = 0.03
_END_RANGE_DB = 15

# Where a recording that is too long may end, and what counts as a pause there.
_PAUSE_SEARCH_SECONDS = 3.0
_PAUSE_SECONDS = 0.06


@dataclass(frozen=True, slots=True)
class Findings:
    """`level_dbfs`: RMS of the speech, of everything if there is none; 0 is a full-scale square
    wave. `speech_ratio`: share of the time that is speech, 0 to 1. `refusal`: why no voice can be
    made from it, or None. `warnings`: what is doubtful. Both are sentences for a caller."""

    level_dbfs: float
    speech_ratio: float
    refusal: str | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Frames:
    """Measures of n frames. `level_db` (n,), `tone_share` (n,), `bands_db` (n, 16), and `voiced`,
    a mask of shape (n,)."""

    level_db: Samples
    tone_share: Samples
    bands_db: Samples
    voiced: npt.NDArray[np.bool_]


def judge(samples: Samples, sample_rate_hertz: int) -> Findings:
    """Listen to finite samples, shape (n,), at least 1 s at 8000 Hz or more."""
    length, step = (int(s * sample_rate_hertz) for s in (_FRAME_SECONDS, _STEP_SECONDS))
    cut = np.lib.stride_tricks.sliding_window_view(samples, length)[::step]
    frames = _measure(cut, sample_rate_hertz)
    loudest = int(MIN_VOICED_SECONDS / _STEP_SECONDS)
    loud = np.partition(frames.level_db, -loudest)[-loudest]
    background = np.percentile(frames.level_db, 10)
    # The middle between both is for sound without pauses, which has no frame far above the rest.
    over_background = min(background + _ABOVE_BACKGROUND_DB, (loud + background) / 2)
    sounding = frames.level_db >= max(loud - _LOUD_RANGE_DB, over_background)
    voiced = frames.voiced & sounding
    near = np.ones(2 * int(_NEAR_SECONDS / _STEP_SECONDS) + 1)
    speech = sounding & (np.convolve(voiced, near, "same") > 0)
    heard = cut[speech] if speech.any() else samples
    level = 10 * np.log10(np.mean(np.square(heard), dtype=np.float64) + 1e-12)
    refusal = _refusal(frames, sounding, voiced, loud)
    warnings = [] if refusal else _warnings(frames, speech, level, loud - background)
    return Findings(float(level), float(speech.mean()), refusal, tuple(warnings))


def end_in_pause(samples: Samples, sample_rate_hertz: int) -> Samples:
    """Samples of shape (n,), at least 3 s, without what follows the quietest spot of their last
    3 s: a voice prompt that ends inside a word makes the model go on with that word."""
    length = int(_PAUSE_SECONDS * sample_rate_hertz)
    count = int(_PAUSE_SEARCH_SECONDS / _PAUSE_SECONDS)
    spots = samples[-count * length :].reshape(count, length)
    after = int(np.argmin(np.square(spots).sum(axis=1)[::-1]))
    return samples[: len(samples) - after * length - length // 2]


def _measure(cut: Samples, sample_rate_hertz: int) -> _Frames:
    """Measure frames of shape (n, length)."""
    length = cut.shape[1]
    window = np.hanning(length).astype(np.float32)
    # Twice the length, so that the autocorrelation does not wrap around.
    size = 1 << (2 * length - 1).bit_length()
    low, high = (int(edge * size / sample_rate_hertz) for edge in _BAND_HERTZ)
    power = np.square(np.abs(np.fft.rfft(cut * window, size)[:, : high + 1]))
    power[:, :low] = 0
    total = power.sum(axis=1) + 1e-9

    shortest, longest = (int(sample_rate_hertz / pitch) for pitch in _PITCH_HERTZ[::-1])
    of_window = np.fft.irfft(np.square(np.abs(np.fft.rfft(window, size))))[: longest + 1]
    repeats = np.fft.irfft(power, size)[:, : longest + 1] / of_window
    voiced = repeats[:, shortest:].max(axis=1) > _VOICED * repeats[:, 0] + 1e-12

    edges = np.geomspace(low, high, _BANDS + 1).astype(int)
    bands = np.add.reduceat(power, edges[:-1], axis=1) / total[:, None]
    width = int(np.ceil(_TONE_HERTZ * size / sample_rate_hertz))
    sums = np.pad(np.cumsum(power, axis=1), ((0, 0), (width + 1, width)), "edge")
    sums[:, : width + 1] = 0
    peak = power.argmax(axis=1)
    row = np.arange(len(power))
    return _Frames(
        level_db=10 * np.log10(total * 2 / (size * np.square(window).sum())),
        tone_share=(sums[row, peak + 2 * width + 1] - sums[row, peak]) / total,
        # Bands below -40 dB of the frame hold what is left of its noise, which says nothing.
        bands_db=10 * np.log10(bands + 1e-4),
        voiced=voiced,
    )


def _refusal(
    frames: _Frames,
    sounding: npt.NDArray[np.bool_],
    voiced: npt.NDArray[np.bool_],
    loud: float,
) -> str | None:
    if loud < MIN_LEVEL_DBFS:
        return (
            f"the recording is silent: its loudest parts are at {max(loud, -120):.0f} dBFS "
            f"(from {_BAND_HERTZ[0]} to {_BAND_HERTZ[1]} Hz), "
            f"allowed are {MIN_LEVEL_DBFS:.0f} dBFS and more"
        )
    share = frames.tone_share[sounding].mean()
    if share > MAX_TONE_SHARE:
        return (
            f"the recording is a pure tone: {share:.0%} of its energy is at one frequency, "
            f"allowed are at most {MAX_TONE_SHARE:.0%}"
        )
    change = frames.bands_db[sounding].std(axis=0).mean()
    if change < MIN_CHANGE_DB:
        return (
            f"the recording is steady noise or a steady tone, not speech: its spectrum changes by "
            f"{change:.1f} dB, allowed are {MIN_CHANGE_DB:.1f} dB and more"
        )
    seconds, voiced_share = voiced.sum() * _STEP_SECONDS, voiced.sum() / sounding.sum()
    if seconds < MIN_VOICED_SECONDS or voiced_share < MIN_VOICED_SHARE:
        return (
            f"the recording has no voice in it: {seconds:.2f} s or {voiced_share:.0%} of its sound "
            f"are voiced, allowed are {MIN_VOICED_SECONDS} s and {MIN_VOICED_SHARE:.0%} and more"
        )
    return None


def _warnings(
    frames: _Frames, speech: npt.NDArray[np.bool_], level: float, gap: float
) -> list[str]:
    warnings = []
    if level < QUIET_DBFS:
        warnings.append(
            f"very quiet: speech is at {level:.0f} dBFS, better are {QUIET_DBFS:.0f} dBFS and more"
        )
    if gap < NOISY_GAP_DB:
        warnings.append(
            f"noisy: speech is {gap:.0f} dB above the background, "
            f"better are {NOISY_GAP_DB:.0f} dB and more"
        )
    if speech.mean() < LOW_SPEECH_RATIO:
        warnings.append(
            f"little speech: {speech.mean():.0%} of the time, "
            f"better are {LOW_SPEECH_RATIO:.0%} and more"
        )
    last = slice(-int(_END_SECONDS / _STEP_SECONDS), None)
    if frames.voiced[last].all() and frames.level_db[last].min() > level - _END_RANGE_DB:
        warnings.append("ends in the middle of a word: a pause at the end is better")
    return warnings
