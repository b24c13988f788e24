"""Ogg Opus, FLAC and MP3 through PyAV. Importing this module loads FFmpeg's libraries."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
import numpy as np

from intone_server.audio import Samples
from intone_server.audio.encoding import NOTHING, Encoded, Encoding, to_s16


@dataclass(frozen=True, slots=True)
class _Codec:
    """How FFmpeg is to write an encoding. `options` depend on the sample rate; `held_packets` is
    how many the container keeps back until it knows that another one follows."""

    name: str
    container: str
    sample_format: str
    options: Callable[[int], dict[str, str]]
    container_options: dict[str, str]
    held_packets: int = 0


# By sample rate, in bit/s: the upper ends of what RFC 7587, 3.1.1 recommends for speech in frames
# of 20 ms (narrowband, wideband, fullband), and for 24 kHz a value between the latter two.
_OPUS_BITRATES = {8000: 12_000, 16000: 20_000, 24000: 32_000, 48000: 40_000}

# In bit/s, measured on speech: the step of the format from which more bits bring little, at 20 dB
# of signal to noise or more.
_MP3_BITRATES = {8000: 32_000, 16000: 48_000}
_MP3_BITRATE = 64_000

# Bytes come out with every packet, and the same samples always give the same bytes.
_STREAMED = {"flush_packets": "1", "fflags": "bitexact"}

_CODECS = {
    Encoding.OGG_OPUS: _Codec(
        name="libopus",
        container="ogg",
        sample_format="flt",
        # "audio" stays closest to the input; "voip" filters the lowest part of a voice away.
        options=lambda rate: {"b": str(_OPUS_BITRATES[rate]), "application": "audio"},
        # In microseconds: a page for every frame, not one a second.
        container_options={**_STREAMED, "page_duration": "20000"},
        # The last page is to be marked as such.
        held_packets=1,
    ),
    Encoding.FLAC: _Codec(
        name="flac",
        container="flac",
        sample_format="s16",
        # Blocks of 40 ms; FFmpeg's own choice of 100 ms is late, and with speech not smaller.
        options=lambda rate: {"frame_size": str(rate // 25)},
        # Nothing will be put into the header later.
        container_options={**_STREAMED, "metadata_header_padding": "0"},
    ),
    Encoding.MP3: _Codec(
        name="libmp3lame",
        container="mp3",
        sample_format="fltp",
        # Without the reservoir a frame holds all of its own data, and is out a frame earlier.
        options=lambda rate: {"b": str(_MP3_BITRATES.get(rate, _MP3_BITRATE)), "reservoir": "0"},
        # A Xing header would have to be filled in at the end.
        container_options={**_STREAMED, "write_xing": "0", "id3v2_version": "0"},
    ),
}


class _Sink:
    """What FFmpeg writes to. It can neither seek nor tell, so that nothing is patched later."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def write(self, data: bytes) -> int:
        self._bytes += data
        return len(data)

    def take(self) -> bytes:
        data = bytes(self._bytes)
        self._bytes.clear()
        return data


class CodecEncoder:
    """`Encoder` for COMPRESSED encodings.

    The codec is given whole frames only: 20 ms (Opus), 40 ms (FLAC), or 576 samples, 1,152 from
    44.1 kHz on (MP3). What is less than a frame waits here, where it can be dropped.

    MP3 cannot say where its sound begins: decoders put 1,105 samples of silence (576 of the
    encoder and 529 of their own) before the stream, and a part of a frame after it. Neither is
    counted.
    """

    def __init__(self, encoding: Encoding, sample_rate_hertz: int) -> None:
        settings = _CODECS[encoding]
        self._rate = sample_rate_hertz
        self._sink = _Sink()
        self._container = av.open(
            self._sink,
            "w",
            format=settings.container,
            container_options=settings.container_options,
        )
        stream = self._container.add_stream(settings.name, rate=sample_rate_hertz)
        self._codec = stream.codec_context
        self._codec.layout = "mono"
        self._codec.format = self._sample_format = settings.sample_format
        self._codec.options = settings.options(sample_rate_hertz)
        self._container.start_encoding()
        self._frame: int = self._codec.frame_size
        self._waiting: Samples = np.zeros(0, np.float32)
        # Positions: of what the codec was given; of the end of what is not filled in; of the ends
        # of packets that the container holds; of what is in bytes; of what the caller was told.
        self._fed = 0
        self._sound_end = 0
        self._held = [0] * settings.held_packets
        self._written = 0
        self._told = 0

    @property
    def position(self) -> int:
        """See `Encoder`."""
        return self._fed + len(self._waiting)

    def encode(self, samples: Samples) -> Encoded:
        """See `Encoder`."""
        waiting = np.concatenate([self._waiting, samples])
        whole = len(waiting) // self._frame * self._frame
        self._feed(waiting[:whole])
        self._waiting = waiting[whole:]
        if len(samples):
            self._sound_end = self.position
        return self._take()

    def end_run(self) -> Encoded:
        """See `Encoder`. Fills up to the next frame, and then frames of silence until all sound
        has passed the codec's look-ahead: in all at most 47 ms (Opus), 40 ms (FLAC), 94 ms (MP3 at
        24 kHz; 282 ms at 8 kHz)."""
        if len(self._waiting):
            self._feed(np.pad(self._waiting, (0, self._frame - len(self._waiting))))
            self._waiting = self._waiting[:0]
        while self._written < self._sound_end:
            self._feed(np.zeros(self._frame, np.float32))
        return self._take()

    def drop(self) -> int:
        """See `Encoder`."""
        dropped = len(self._waiting)
        self._waiting = self._waiting[:0]
        self._sound_end = min(self._sound_end, self._fed)
        return dropped

    def finish(self) -> Encoded:
        """See `Encoder`."""
        if self.position:
            self._feed(self._waiting)
            self._waiting = self._waiting[:0]
            self._mux(self._codec.encode(None))
        self._container.close()
        self._written = self._fed
        return self._take()

    def close(self) -> None:
        """See `Encoder`."""
        self._container.close()

    def _feed(self, samples: Samples) -> None:
        """Give the codec whole frames, or the last part of one."""
        if not len(samples):
            return
        array: Any = to_s16(samples) if self._sample_format == "s16" else samples
        frame = av.AudioFrame.from_ndarray(
            array[np.newaxis], format=self._sample_format, layout="mono"
        )
        frame.sample_rate = self._rate
        frame.time_base = Fraction(1, self._rate)
        frame.pts = self._fed
        self._fed += len(samples)
        self._mux(self._codec.encode(frame))

    def _mux(self, packets: Iterable[Any]) -> None:
        for packet in packets:
            # In samples as given: packets begin before 0 by the codec's look-ahead. The container
            # changes both numbers to its own unit.
            self._held.append(packet.pts + packet.duration)
            self._container.mux(packet)
            self._written = self._held.pop(0)

    def _take(self) -> Encoded:
        """What was written since the last time, once it adds sound."""
        count = self._written - self._told
        if count <= 0:
            return NOTHING
        self._told = self._written
        return Encoded(self._sink.take(), count)
