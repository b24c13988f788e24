"""Files that recordings come in: which one it is, and whether it is whole."""

import struct

from intone_server.audio.encoding import Encoding

# The telephone's rate to the highest that recorders offer. Beyond, a few bytes would buy a large
# resampling filter.
MIN_RATE_HERTZ, MAX_RATE_HERTZ = 8_000, 192_000
# More than any recorder has. Vorbis and Opus have up to 255, which would take minutes to decode.
MAX_CHANNELS = 32
# Data sizes from here on are those of programs that write to a pipe and do not know: ffmpeg writes
# 0xFFFFFFFF, arecord 0x80000000, sox 0x7FFFF000.
_UNKNOWN_SIZE_FROM = 0x7FFF_F000


_ALLOWED = "allowed are WAV, FLAC, Ogg Vorbis, Ogg Opus and MP3"
WAV, FLAC, MP3, OGG = "WAV", "FLAC", "MP3", "Ogg"
# What people send instead: place and bytes, name.
_OTHERS = (
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"\x89PNG", "a PNG image"),
    (0, b"GIF8", "a GIF image"),
    (0, b"%PDF", "a PDF document"),
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (4, b"ftyp", "an MP4 or M4A file"),
    (0, b"\x1a\x45\xdf\xa3", "a WebM or Matroska file"),
    (0, b"\x30\x26\xb2\x75", "a WMA file"),
    (0, b"FORM", "an AIFF file"),
    (0, b"caff", "a CAF file"),
    (0, b".snd", "an AU file"),
    (0, b"#!AMR", "an AMR file"),
    (0, b"RF64", "an RF64 file"),
    (0, b"RIFX", "a big-endian WAV file"),
    (0, b"RIFF", "a RIFF file other than WAV"),
    (8, b'{"', "a voice state"),
)
_WAV_BITS = {1: (8, 16, 24, 32), 3: (32, 64), 6: (8,), 7: (8,)}
_EXTENSIBLE = 0xFFFE
# What may come without a header: format and bits in a WAV file.
HEADERLESS = {
    Encoding.PCM_S16LE: (1, 16),
    Encoding.PCM_F32LE: (3, 32),
    Encoding.MULAW: (7, 8),
    Encoding.ALAW: (6, 8),
}


class BadRecording(Exception):
    """Bytes that no voice can be made from. The message is a sentence for a caller: what was
    found and what is allowed."""


def recognise(data: bytes) -> tuple[str, bytes]:
    """The kind of a recording, and its bytes without the tags that precede them."""
    place = 0
    while (tag := data[place : place + 10])[:3] == b"ID3" and len(tag) == 10:
        # Sizes in ID3v2 tags have seven bits in each byte; bit 4 of the flags: a footer follows.
        size = sum((byte & 0x7F) << 7 * (3 - i) for i, byte in enumerate(tag[6:]))
        place += 10 + size + (10 if tag[5] & 0x10 else 0)
    data = data[place:]
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return WAV, data
    if data[:4] == b"fLaC":
        return FLAC, data
    if data[:4] == b"OggS" and len(data) > 27:
        first = 27 + data[26]
        if data.startswith((b"\x01vorbis", b"OpusHead"), first):
            return OGG, data
        raise BadRecording(f"an Ogg file of neither Vorbis nor Opus; {_ALLOWED}")
    if len(data) >= 2 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0:
        # Bits 1 and 2 of the second byte of an MPEG frame are its layer: 1 is the third.
        if data[1] & 0x06 == 0x02:
            return MP3, data
        raise BadRecording(f"MPEG audio that is not MP3, such as AAC or MP2; {_ALLOWED}")
    for place, magic, name in _OTHERS:
        if data[place : place + len(magic)] == magic:
            raise BadRecording(f"not a recording: it begins like {name}; {_ALLOWED}")
    begins = f"begins with the bytes {data[:4].hex(' ')}" if data else "is empty"
    raise BadRecording(f"not a recording: it {begins}; {_ALLOWED}")


def plain_wav(data: bytes) -> bytes:
    """The same samples after the plainest header, with a true size.

    Headers of the wild (unknown sizes, WAVE_FORMAT_EXTENSIBLE, chunks of all kinds) end here.
    """
    place, form = 12, b""
    while (chunk := data[place : place + 8])[:4] != b"data":
        if len(chunk) < 8:
            raise BadRecording(f"a WAV file without samples; {_ALLOWED}")
        size = int.from_bytes(chunk[4:], "little")
        if chunk[:4] == b"fmt ":
            form = data[place + 8 : place + 8 + min(size, 40)]
        place += 8 + size + size % 2
    if len(form) < 16:
        raise BadRecording(f"a WAV file that does not state its format; {_ALLOWED}")
    coding, channels, rate, _, _, bits = struct.unpack("<HHIIHH", form[:16])
    if coding == _EXTENSIBLE:  # the format proper is the start of the GUID
        coding = int.from_bytes(form[24:26], "little")
    if bits not in _WAV_BITS.get(coding, ()):
        raise BadRecording(
            f"a WAV file of format {coding} with {bits} bits, allowed are integers of 8, 16, 24 "
            "or 32 bits, floats of 32 or 64 bits, A-law and mu-law"
        )
    check_stream(rate, channels)
    body = memoryview(data)[place + 8 :]
    size = int.from_bytes(chunk[4:], "little")
    if 0 < size < _UNKNOWN_SIZE_FROM:
        if size > len(body):
            raise BadRecording(
                f"the recording is cut off: its header states {size} bytes of samples, "
                f"the file holds {len(body)}"
            )
        body = body[:size]
    width = channels * bits // 8
    body = body[: len(body) // width * width]
    return _wav_header(coding, channels, rate, bits, len(body)) + body


def wav_around(samples: bytes, encoding: Encoding, rate: int) -> bytes:
    """A WAV file of mono samples that came without a header. Raises BadRecording."""
    if encoding not in HEADERLESS:
        names = ", ".join(allowed.name for allowed in HEADERLESS)
        raise BadRecording(f"samples without a header are {encoding.name}, allowed are {names}")
    check_stream(rate, 1)
    coding, bits = HEADERLESS[encoding]
    if len(samples) % (bits // 8):
        raise BadRecording(
            f"the recording is cut off: {len(samples)} bytes are not whole samples of "
            f"{bits // 8} bytes"
        )
    return _wav_header(coding, 1, rate, bits, len(samples)) + samples


def _wav_header(coding: int, channels: int, rate: int, bits: int, size: int) -> bytes:
    width = channels * bits // 8
    return struct.pack(
        "<4sI4s4sIHHIIHHH4sI",
        *(b"RIFF", 38 + size, b"WAVE"),
        *(b"fmt ", 18, coding, channels, rate, rate * width, width, bits, 0),
        *(b"data", size),
    )


def check_ogg(data: bytes) -> list[str]:
    """Warnings about the end. Raises BadRecording if the last page is not all there."""
    page = data[data.rfind(b"OggS") :]
    segments = page[27 : 27 + page[26]] if len(page) > 26 else b""
    length = 27 + len(segments) + sum(segments)
    if len(page) >= length and page[5] & 4:  # end of stream; after it anything may follow
        return []
    if len(page) != length:
        raise BadRecording("the recording is cut off: its last Ogg page is incomplete")
    return ["without an end mark: it may be cut off"]


def check_stream(rate: int, channels: int) -> None:
    if not MIN_RATE_HERTZ <= rate <= MAX_RATE_HERTZ:
        raise BadRecording(
            f"sample rate is {rate} Hz, allowed are {MIN_RATE_HERTZ} to {MAX_RATE_HERTZ} Hz"
        )
    if not 1 <= channels <= MAX_CHANNELS:
        raise BadRecording(
            f"the recording has {channels} channels, allowed are 1 to {MAX_CHANNELS}"
        )
