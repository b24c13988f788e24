"""Float samples to the encodings of the contract."""

import enum
import io
import wave

import numpy as np

from intone_server.audio import Samples

# 32767, not 32768: full scale is the same in both directions and never wraps.
_FULL_SCALE = 32767.0


class Encoding(enum.Enum):
    """`value` is the bytes of one sample."""

    PCM_S16LE = "pcm_s16le"
    PCM_F32LE = "pcm_f32le"
    WAV = "wav"


BYTES_PER_SAMPLE = {Encoding.PCM_S16LE: 2, Encoding.PCM_F32LE: 4, Encoding.WAV: 2}
WAV_HEADER_BYTES = 44


def encode(samples: Samples, encoding: Encoding) -> tuple[bytes, int]:
    """Finite float32 samples of shape (n,) to n samples in bytes, and how many were clipped.

    What is beyond full scale (-1.0 to 1.0) is clipped to it. WAV gives its 16-bit samples; the
    header is `wav_file`'s.
    """
    clipped = int(np.count_nonzero(np.abs(samples) > 1.0))
    if clipped:
        samples = np.clip(samples, -1.0, 1.0)
    if encoding is Encoding.PCM_F32LE:
        return samples.astype("<f4").tobytes(), clipped
    return np.rint(samples * _FULL_SCALE).astype("<i2").tobytes(), clipped


def wav_file(pcm: bytes, sample_rate_hertz: int) -> bytes:
    """A complete mono WAV file around PCM_S16LE samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate_hertz)
        writer.writeframes(pcm)
    return file.getvalue()
