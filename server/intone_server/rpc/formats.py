"""Which audio formats can be asked for."""

from intone.v1 import tts_pb2
from intone_server.audio.encoding import COMPRESSED, Encoding, codecs_available, supported_rates
from intone_server.errors import Reason
from intone_server.rpc.faults import Faults
from intone_server.rpc.methods import Method

ENCODINGS = {
    tts_pb2.AUDIO_ENCODING_PCM_S16LE: Encoding.PCM_S16LE,
    tts_pb2.AUDIO_ENCODING_PCM_F32LE: Encoding.PCM_F32LE,
    tts_pb2.AUDIO_ENCODING_MULAW: Encoding.MULAW,
    tts_pb2.AUDIO_ENCODING_ALAW: Encoding.ALAW,
    tts_pb2.AUDIO_ENCODING_WAV: Encoding.WAV,
    tts_pb2.AUDIO_ENCODING_OGG_OPUS: Encoding.OGG_OPUS,
    tts_pb2.AUDIO_ENCODING_FLAC: Encoding.FLAC,
    tts_pb2.AUDIO_ENCODING_MP3: Encoding.MP3,
}
# Those that callers ask for: telephony, wideband, and what players and browsers know.
RATES = (8000, 16000, 22050, 24000, 44100, 48000)


def available_encodings() -> list[tts_pb2.AudioEncoding]:
    """What this server can make, in the order of the contract."""
    return [
        value
        for value, encoding in sorted(ENCODINGS.items())
        if encoding not in COMPRESSED or codecs_available()
    ]


def read_format(
    audio: tts_pb2.AudioFormat,
    method: Method,
    model_rate_hertz: int,
    faults: Faults,
) -> tuple[Encoding, int]:
    """The encoding and rate that are asked for, or the defaults. Faults are noted."""
    encoding = ENCODINGS.get(audio.encoding)
    if audio.encoding == tts_pb2.AUDIO_ENCODING_UNSPECIFIED:
        encoding = method.encoding
    if encoding is None or encoding not in method.encodings:
        asked = encoding.name if encoding else str(audio.encoding)
        names = ", ".join(e.name for e in method.encodings)
        faults.add(
            "config.format.encoding",
            f"is {asked}, allowed here: {names}",
            Reason.UNSUPPORTED_FORMAT,
        )
        encoding = method.encoding
    elif encoding in COMPRESSED and not codecs_available():
        faults.add(
            "config.format.encoding",
            f'is {encoding.name}, which needs the extra "codecs" on the server: '
            "pip install 'intone[codecs]'",
            Reason.UNSUPPORTED_FORMAT,
        )
    rate = audio.sample_rate_hertz or model_rate_hertz
    rates = supported_rates(encoding) or (*RATES, model_rate_hertz)
    if rate not in rates:
        faults.add(
            "config.format.sample_rate_hertz",
            f"is {rate}, allowed with {encoding.name}: {', '.join(map(str, sorted(set(rates))))}",
            Reason.UNSUPPORTED_FORMAT,
        )
    return encoding, rate
