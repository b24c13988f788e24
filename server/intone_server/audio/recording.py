"""Recordings that callers send: bytes of a file to samples, with a report for a voice prompt.

soundfile and soxr are imported where they are used: this runs in short-lived helper processes, and
the front imports this module for its types alone.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from intone_server.audio import Samples, judging
from intone_server.audio.containers import (
    MP3,
    OGG,
    WAV,
    BadRecording,
    check_ogg,
    check_stream,
    plain_wav,
    recognise,
)

# What the model takes: encoding takes memory that grows with the square of the length, 800 MB for
# this much.
MAX_USED_SECONDS = 30.0
# Longer is a mistake rather than a voice prompt, and decoding has to end somewhere: a few kB of
# FLAC or Ogg can hold hours.
MAX_SECONDS = 120.0
# Less holds too few sounds of a voice.
MIN_SECONDS = 1.0
# What is not for a voice may be a click.
MIN_AUDIO_SECONDS = 0.01
# Full scale is 1. A float file may pass it a little and is clipped; beyond this its samples are
# integers or garbage.
MAX_PEAK = 8.0
# Full scale of mu-law is 0.9803, of the other encodings nearer to 1.
CLIPPED_FROM = 0.98
# Speech driven 3.5 dB over full scale has 0.0002, driven 6 dB over it 0.003; speech that just
# reaches it 0.00001.
MUCH_CLIPPED_RATIO = 0.001

# soundfile says 2^63 - 1 for a length that is not known.
_UNKNOWN_FRAMES = 1 << 62
# An MP3 states its length in whole frames of up to 1152 samples and with the encoder's padding.
_MP3_SLACK_FRAMES = 5 * 1152
# Of files; those of the others are floats already when they are decoded.
_INTEGERS = frozenset({"PCM_U8", "PCM_S8", "PCM_16", "PCM_24", "PCM_32", "ULAW", "ALAW"})


@dataclass(frozen=True, slots=True)
class PromptReport:
    """What was heard.

    `seconds_used`: length of the samples, 1 to 30. `level_dbfs`: RMS of the speech, or of
    everything if there is none; 0 is a full-scale square wave. `clipped_ratio`: share of the
    recording's samples at full scale, 0 to 1. `speech_ratio`: share of the time that is speech,
    0 to 1. `warnings`: sentences for the caller about what is doubtful.
    """

    seconds_used: float
    level_dbfs: float
    clipped_ratio: float
    speech_ratio: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Decoded:
    """`samples`: the mean of all channels, shape (n,), no more of them than are used; `seconds`:
    length of the whole recording; `of_integers`: 1.0 is what 2^15 would be in 16 bits."""

    samples: Samples
    rate_hertz: int
    clipped_ratio: float
    seconds: float
    of_integers: bool


def read_recording(
    data: bytes, sample_rate_hertz: int, *, judge: bool = True
) -> tuple[Samples, PromptReport]:
    """A recording to mono samples from -1.0 to 1.0, shape (n,), at the rate that is asked for.

    `data` is a WAV, FLAC, Ogg Vorbis, Ogg Opus or MP3 file, recognised by content, of 1 to 120 s.
    What is over 30 s is cut off, in a pause if there is one. Raises BadRecording for anything else,
    and for what is not speech; with `judge=False` that is a warning in the report.
    """
    import soxr

    decoded, warnings = _decode(data, MIN_SECONDS, MAX_USED_SECONDS)
    samples = decoded.samples
    if decoded.seconds > MAX_USED_SECONDS:
        samples = judging.end_in_pause(samples, decoded.rate_hertz)
        warnings.append(
            f"longer than {MAX_USED_SECONDS:.0f} s: of its {decoded.seconds:.1f} s "
            f"the first {len(samples) / decoded.rate_hertz:.1f} s are used"
        )
    samples = soxr.resample(samples, decoded.rate_hertz, sample_rate_hertz)
    samples = np.clip(samples, -1, 1)
    findings = judging.judge(samples, sample_rate_hertz)
    if findings.refusal:
        if judge:
            raise BadRecording(findings.refusal)
        warnings.append(findings.refusal)
    if decoded.clipped_ratio > MUCH_CLIPPED_RATIO:
        warnings.append(
            f"clipped: {decoded.clipped_ratio:.1%} of its samples are at full scale, "
            f"better are less than {MUCH_CLIPPED_RATIO:.1%}"
        )
    return samples, PromptReport(
        seconds_used=len(samples) / sample_rate_hertz,
        level_dbfs=findings.level_dbfs,
        clipped_ratio=decoded.clipped_ratio,
        speech_ratio=findings.speech_ratio,
        warnings=(*warnings, *findings.warnings),
    )


def read_audio(data: bytes, sample_rate_hertz: int) -> Samples:
    """A recording to mono samples, shape (n,), at the rate that is asked for: of n at its own rate
    round(n * asked / own).

    `data` is a file as for `read_recording`, of 10 ms to 120 s, all of which is used. Nothing is
    clipped: samples may be beyond full scale, up to MAX_PEAK and a little more.

    Integers are divided by 32767, on the scale of 16 bits, as the encodings of a stream multiply:
    each 16-bit sample leaves as it came if the rate is the same. -32768 is beyond full scale there,
    and is for `Level` to clip. Raises BadRecording.
    """
    import soxr

    decoded, _ = _decode(data, MIN_AUDIO_SECONDS, MAX_SECONDS)
    samples, rate = decoded.samples, decoded.rate_hertz
    if decoded.of_integers:
        # In two steps, the first of them exact: rounded once, as the quotient of two integers is.
        samples *= np.float32(32768)
        samples /= np.float32(32767)
    if rate == sample_rate_hertz:
        return samples
    count = round(len(samples) * sample_rate_hertz / rate)
    samples = soxr.resample(samples, rate, sample_rate_hertz)[:count]
    # soxr rounds an exact half now up, now down: one sample of silence may be missing.
    return np.pad(samples, (0, count - len(samples)))


def _decode(data: bytes, min_seconds: float, used_seconds: float) -> tuple[_Decoded, list[str]]:
    """The start of a recording, up to `used_seconds`, and warnings about the whole."""
    import soundfile

    kind, data = recognise(data)
    warnings: list[str] = []
    if kind == WAV:
        data = plain_wav(data)
    elif kind == OGG:
        warnings += check_ogg(data)
    try:
        file = soundfile.SoundFile(io.BytesIO(data))
    except soundfile.SoundFileError as error:
        raise BadRecording(f"the {kind} file cannot be decoded: it is damaged") from error
    with file:
        rate = file.samplerate
        check_stream(rate, file.channels)
        of_integers = file.subtype in _INTEGERS
        # soundfile seeks to where it is after each block. In MP3 that loses the bits that a frame
        # keeps in the one before it, and in FLAC of unknown length the last block.
        file.seekable = lambda: False
        stated = file.frames if 0 < file.frames < _UNKNOWN_FRAMES else None
        if stated is not None:
            _check_length(stated / rate, min_seconds)
        used = int(used_seconds * rate)
        # The end of FLAC and MP3 has to be heard to know that it is there.
        until = used if kind in (WAV, OGG) and stated else int(MAX_SECONDS * rate) + 1
        until = min(until, stated or until)
        parts, clipped, done = [], 0, 0
        for block in _blocks(file, rate, until):
            if done < used:
                heard = block[: used - done]
                clipped += _count_clipped(heard)
                parts.append(heard.mean(axis=1))
            done += len(block)
    if stated and done < until - (_MP3_SLACK_FRAMES if kind == MP3 else 0):
        raise BadRecording(
            f"the recording is cut off: it states {stated / rate:.1f} s "
            f"and ends after {done / rate:.1f} s"
        )
    if not stated and done == until:
        raise BadRecording(
            f"the recording is longer than {MAX_SECONDS:.0f} s, {_allowed(min_seconds)}"
        )
    _check_length(done / rate, min_seconds)
    samples = np.concatenate(parts)
    seconds = (stated or done) / rate
    return _Decoded(samples, rate, clipped / len(samples), seconds, of_integers), warnings


def _blocks(file: Any, rate: int, until: int) -> Iterator[Samples]:
    """At most `until` samples of each channel, in blocks of shape (n, channels)."""
    import soundfile

    done = 0
    while done < until:
        try:
            block = file.read(min(rate // 4, until - done), dtype="float32", always_2d=True)
        except soundfile.SoundFileError as error:
            raise BadRecording(
                f"the recording is damaged or cut off after {done / rate:.1f} s"
            ) from error
        if not len(block):
            return
        done += len(block)
        yield block


def _count_clipped(block: Samples) -> int:
    """How many samples are at full scale in any channel. Raises BadRecording for what is no
    sound."""
    peaks = np.abs(block).max(axis=1)
    if not np.isfinite(peaks).all():
        raise BadRecording("the recording holds NaN or infinity, allowed are -1.0 to 1.0")
    if peaks.max() > MAX_PEAK:
        raise BadRecording(
            f"the recording's samples reach {peaks.max():.6g}, allowed are -1.0 to 1.0"
        )
    return int(np.count_nonzero(peaks >= CLIPPED_FROM))


def _check_length(seconds: float, least: float) -> None:
    if not least <= seconds <= MAX_SECONDS:
        shown = f"{seconds:.2f} s" if least >= 1 or seconds > least else f"{1000 * seconds:.2f} ms"
        raise BadRecording(f"the recording is {shown} long, {_allowed(least)}")


def _allowed(least: float) -> str:
    shown = f"{least:.0f}" if least >= 1 else f"{1000 * least:.0f} ms"
    return f"allowed are {shown} to {MAX_SECONDS:.0f} s"
