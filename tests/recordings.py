"""Makers of recordings: speech and what is not speech, as samples and as the bytes of files."""

import functools
import io
import struct

import av
import numpy as np
import numpy.typing as npt
import soundfile
import soxr
from hibari import Hibari

from intone_server.audio import Samples

RATE = 24000
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000"  # start of image, JFIF header
    "ffdb004300" + 64 * "10" + "ffd9"  # a quantisation table, end of image
)


@functools.cache
def speech() -> Samples:
    """Four sentences of the builtin engine's voice, with pauses between them: 17 s."""
    voice = Hibari(voice="heart")
    noise = np.random.default_rng(1)
    sentences = (
        "Hello there, this is a recording of my voice.",
        "The quick brown fox jumps over the lazy dog, and then it sleeps for a while.",
        "She sells sea shells by the sea shore, and nobody knows why.",
        "One, two, three, four, five. What happened on that evening in the harbour?",
    )
    spoken = [
        voice.from_ids(voice.ids(phonemes), rng=noise)
        for sentence in sentences
        for phonemes in voice.phonemize(sentence)
    ]
    samples = np.concatenate(spoken)
    return np.pad(samples, (0, 17 * RATE - len(samples)))


def sentence() -> Samples:
    """The first 3 s of the speech, which end in a pause."""
    return speech()[: 3 * RATE]


def at_level(samples: Samples, dbfs: float) -> Samples:
    """With this RMS."""
    return samples * np.float32(10 ** (dbfs / 20) / np.sqrt(np.mean(np.square(samples))))


def at_rate(samples: Samples, rate: int) -> Samples:
    return np.asarray(soxr.resample(samples, RATE, rate), np.float32)


def noise(seconds: float, slope: float = 0, seed: int = 0) -> Samples:
    """At -20 dBFS; its power falls with the frequency to the power of `slope`: 0 is white, 1 pink,
    2 brown."""
    count = int(seconds * RATE)
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(count))
    spectrum[1:] /= np.arange(1, len(spectrum)) ** (slope / 2)
    spectrum[0] = 0
    return at_level(np.fft.irfft(spectrum, count).astype(np.float32), -20)


def tone(hertz: float, seconds: float = 3) -> Samples:
    """At -9 dBFS."""
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE)).astype("f4")


def bursts(samples: Samples) -> Samples:
    """Half a second on, half a second off."""
    return samples * (np.arange(len(samples)) % RATE < RATE // 2).astype(np.float32)


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * RATE), np.float32)


def encoded(samples: npt.NDArray[np.generic], form: str, coding: str, rate: int = RATE) -> bytes:
    """A file by libsndfile of samples of shape (n,) or (n, channels)."""
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", rate, channels, coding, format=form) as writer:
        for start in range(0, len(samples), RATE):  # Vorbis crashes on more at a time
            writer.write(samples[start : start + RATE])
    return file.getvalue()


def wav(
    samples: Samples,
    *,
    rate: int = RATE,
    coding: int = 1,
    channels: int = 1,
    bits: int = 16,
    size: int | None = None,
) -> bytes:
    """A WAV file by hand whose header may lie; its samples are always 16-bit integers."""
    body = np.rint(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
    width = channels * bits // 8
    form = struct.pack(
        "<HHIIHH", coding, channels & 0xFFFF, rate, rate * width & 0xFFFFFFFF, width & 0xFFFF, bits
    )
    if coding == 0xFFFE:
        form += struct.pack("<HHIH", 22, bits, 0, 1) + GUID_TAIL
    chunk = struct.pack("<4sI", b"fmt ", len(form)) + form
    size = len(body) if size is None else size
    return b"RIFF\xff\xff\xff\xffWAVE" + chunk + struct.pack("<4sI", b"data", size) + body


def streamed(samples: Samples, container: str, codec: str, **options: str) -> bytes:
    """A file by ffmpeg that was written to a pipe: its header does not know the length."""

    class Pipe:
        def __init__(self) -> None:
            self.written = bytearray()

        def write(self, data: bytes) -> int:
            self.written += data
            return len(data)

    pipe = Pipe()
    with av.open(pipe, "w", format=container, options=options) as file:
        stream = file.add_stream(codec, rate=RATE, layout="mono")
        pcm = np.rint(samples * 32767).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(pcm, format="s16", layout="mono")
        frame.sample_rate = RATE
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return bytes(pipe.written)


def flac_of_length(samples: int, data: bytes) -> bytes:
    """A FLAC file whose header states another number of samples; 0 is an unknown one."""
    # The last 36 bits of the 18 bytes of STREAMINFO that follow 4 of magic and 4 of block header.
    head = bytes([data[21] & 0xF0 | samples >> 32]) + (samples & 0xFFFFFFFF).to_bytes(4, "big")
    return data[:21] + head + data[26:]


@functools.cache
def silent_bomb(form: str, coding: str, rate: int, channels: int, seconds: int) -> bytes:
    """Much silence in a small file."""
    return encoded(np.zeros((rate * seconds, channels), np.float32), form, coding, rate)
