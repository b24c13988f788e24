"""Float samples to the encodings of the contract."""

import enum
import importlib
import importlib.util
import io
import wave
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from intone_server.audio import Samples

# 32767, not 32768: full scale is the same in both directions and never wraps.
_FULL_SCALE = 32767.0


class Encoding(enum.Enum):
    """What the bytes of a stream are. All are mono."""

    PCM_S16LE = "pcm_s16le"
    PCM_F32LE = "pcm_f32le"
    MULAW = "mulaw"  # G.711, 8 bits
    ALAW = "alaw"  # G.711, 8 bits
    WAV = "wav"  # a file of PCM_S16LE
    OGG_OPUS = "ogg_opus"
    FLAC = "flac"  # 16 bits
    MP3 = "mp3"


# Of one sample, without the header. Compressed encodings have no such number.
BYTES_PER_SAMPLE = {
    Encoding.PCM_S16LE: 2,
    Encoding.PCM_F32LE: 4,
    Encoding.MULAW: 1,
    Encoding.ALAW: 1,
    Encoding.WAV: 2,
}
WAV_HEADER_BYTES = 44

# These need the extra `codecs`.
COMPRESSED = frozenset({Encoding.OGG_OPUS, Encoding.FLAC, Encoding.MP3})

_RATES = {
    # libopus takes these and 12000, which no stream has. Players decode at 48000.
    Encoding.OGG_OPUS: (8000, 16000, 24000, 48000),
    # Of MPEG-1, MPEG-2 and their extension to low rates.
    Encoding.MP3: (8000, 16000, 22050, 24000, 44100, 48000),
}


def supported_rates(encoding: Encoding) -> tuple[int, ...] | None:
    """The sample rates, in hertz, that an encoding can have; None if any."""
    return _RATES.get(encoding)


def codecs_available() -> bool:
    """Whether what COMPRESSED needs is installed. Does not import it."""
    return importlib.util.find_spec("av") is not None


class Encoded(NamedTuple):
    """Bytes that are complete, and how many samples of the stream they carry: `data` is empty if
    and only if `sample_count` is 0."""

    data: bytes
    sample_count: int


NOTHING = Encoded(b"", 0)


class Encoder(Protocol):
    """One stream's samples to bytes, in order.

    Positions and counts are samples at the stream's rate, from its start. All `data` in a row is
    valid from the first byte on, which brings the header along; each further `data` adds sound.
    """

    @property
    def position(self) -> int:
        """Where the next sample that is given will lie: all that were given and not dropped, and
        the silence that was filled in."""

    def encode(self, samples: Samples) -> Encoded:
        """Take samples of shape (n,) within full scale, -1.0 to 1.0 (`Level` sees to that), and
        return what is complete now, which may be of samples given before."""

    def end_run(self) -> Encoded:
        """The sound pauses here: all that was given can be decoded now. Encodings in frames fill
        up with silence, which counts as given."""

    def drop(self) -> int:
        """Forget samples that no frame is made of yet; returns how many. For a cut, `end_run`
        after it brings out what the codec still holds, so that none of it is heard later."""

    def finish(self) -> Encoded:
        """The end of the stream: the rest, and the trailer. With it every sample up to `position`
        was counted. Nothing may be called after it but `close`."""

    def close(self) -> None:
        """Free what is held, at any time. Idempotent."""


def load_codecs() -> None:
    """Load what COMPRESSED encodings need: a tenth of a second of work, once. Any thread may."""
    importlib.import_module("intone_server.audio.codecs")


def encoder(encoding: Encoding, sample_rate_hertz: int) -> Encoder:
    """An encoder for a new stream; WAV gives PCM_S16LE samples, and the header is `wav_file`'s.

    `sample_rate_hertz` is one of `supported_rates`. Raises ImportError for COMPRESSED encodings
    unless `codecs_available`. Until it is closed, FLAC holds 7.5 MB of memory, MP3 and OGG_OPUS
    about 0.5 MB.
    """
    if encoding in COMPRESSED:
        from intone_server.audio.codecs import CodecEncoder  # here: FFmpeg takes 20 MB

        return CodecEncoder(encoding, sample_rate_hertz)
    return _SampleEncoder(_TO_BYTES[encoding])


class _SampleEncoder:
    """An `Encoder` for encodings in which each sample stands alone."""

    def __init__(self, to_bytes: Callable[[Samples], bytes]) -> None:
        self._to_bytes = to_bytes
        self.position = 0

    def encode(self, samples: Samples) -> Encoded:
        self.position += len(samples)
        return Encoded(self._to_bytes(samples), len(samples))

    def end_run(self) -> Encoded:
        return NOTHING

    def drop(self) -> int:
        return 0

    def finish(self) -> Encoded:
        return NOTHING

    def close(self) -> None:
        pass


def to_s16(samples: Samples) -> npt.NDArray[np.int16]:
    """Samples within full scale to 16-bit integers, the nearest ones; shape (n,) both."""
    integers: npt.NDArray[np.int16] = np.rint(samples * _FULL_SCALE).astype(np.int16)
    return integers


def _s16le(samples: Samples) -> bytes:
    return to_s16(samples).astype("<i2", copy=False).tobytes()


def _f32le(samples: Samples) -> bytes:
    return samples.astype("<f4", copy=False).tobytes()


def _companded(samples: Samples, subtype: str) -> bytes:
    """G.711 of the 16-bit samples, a byte each."""
    import soundfile  # here: it takes 50 ms to load, and few streams are for telephones

    file = io.BytesIO()
    # Raw samples have no header, so that the rate does not matter.
    soundfile.write(file, to_s16(samples), 8000, format="RAW", subtype=subtype)
    return file.getvalue()


_TO_BYTES: dict[Encoding, Callable[[Samples], bytes]] = {
    Encoding.PCM_S16LE: _s16le,
    Encoding.PCM_F32LE: _f32le,
    Encoding.MULAW: lambda samples: _companded(samples, "ULAW"),
    Encoding.ALAW: lambda samples: _companded(samples, "ALAW"),
    Encoding.WAV: _s16le,
}


def flac_file(stream: bytes, sample_count: int) -> bytes:
    """A complete stream of FLAC with its length in its head, where a stream has 0 for unknown and
    some readers then see hours."""
    # STREAMINFO is the first block: 36 bits from the last half of byte 21 on (RFC 9639, 8.2).
    head = bytearray(stream[:26])
    head[21] = head[21] & 0xF0 | sample_count >> 32
    head[22:26] = (sample_count & 0xFFFFFFFF).to_bytes(4, "big")
    return bytes(head) + stream[26:]


def wav_file(pcm: bytes, sample_rate_hertz: int) -> bytes:
    """A complete mono WAV file around PCM_S16LE samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate_hertz)
        writer.writeframes(pcm)
    return file.getvalue()
