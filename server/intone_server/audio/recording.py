"""Recordings that voices are made from: bytes of a file to samples and a report of them.

soundfile and soxr are imported where they are used: this runs in a short-lived helper process, and
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
_ALLOWED_LENGTHS = f"allowed are {MIN_SECONDS:.0f} to {MAX_SECONDS:.0f} s"


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
    """`samples`: the mean of all channels, shape (n,), the first 30 s at most; `seconds`: length of
    the whole recording."""

    samples: Samples
    rate_hertz: int
    clipped_ratio: float
    seconds: float


def read_recording(
    data: bytes, sample_rate_hertz: int, *, judge: bool = True
) -> tuple[Samples, PromptReport]:
    """A recording to mono samples from -1.0 to 1.0, shape (n,), at the rate that is asked for.

    `data` is a WAV, FLAC, Ogg Vorbis, Ogg Opus or MP3 file, recognised by content, of 1 to 120 s.
    What is over 30 s is cut off, in a pause if there is one. Raises BadRecording for anything else,
    and for what is not speech; with `judge=False` that is a warning in the report.
    """
    import soxr

    kind, data = recognise(data)
    warnings: list[str] = []
    if kind == WAV:
        data = plain_wav(data)
    elif kind == OGG:
        warnings += check_ogg(data)
    decoded = _decode(data, kind)
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


def _decode(data: bytes, kind: str) -> _Decoded:
    import soundfile

    try:
        file = soundfile.SoundFile(io.BytesIO(data))
    except soundfile.SoundFileError as error:
        raise BadRecording(f"the {kind} file cannot be decoded: it is damaged") from error
    with file:
        rate = file.samplerate
        check_stream(rate, file.channels)
        # soundfile seeks to where it is after each block. In MP3 that loses the bits that a frame
        # keeps in the one before it, and in FLAC of unknown length the last block.
        file.seekable = lambda: False
        stated = file.frames if 0 < file.frames < _UNKNOWN_FRAMES else None
        if stated is not None:
            _check_length(stated / rate)
        used = int(MAX_USED_SECONDS * rate)
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
        raise BadRecording(f"the recording is longer than {MAX_SECONDS:.0f} s, {_ALLOWED_LENGTHS}")
    _check_length(done / rate)
    samples = np.concatenate(parts)
    return _Decoded(samples, rate, clipped / len(samples), (stated or done) / rate)


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


def _check_length(seconds: float) -> None:
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise BadRecording(f"the recording is {seconds:.2f} s long, {_ALLOWED_LENGTHS}")
