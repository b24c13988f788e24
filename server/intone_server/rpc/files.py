"""A whole answer in one file."""

import asyncio

from intone_server.audio.encoding import (
    BYTES_PER_SAMPLE,
    WAV_HEADER_BYTES,
    Encoding,
    flac_file,
    wav_file,
)
from intone_server.errors import FileTooLong, InvalidRequest, Reason, TimedOut, Violation
from intone_server.rpc.runtime import MAX_FILE_BYTES
from intone_server.synthesis import events
from intone_server.synthesis.session import Session
from intone_server.synthesis.speech import SpeechConfig, estimated_seconds

# Nobody speaks so much faster than estimated; a text that is this much over is refused unspoken.
SURELY_TOO_LONG = 2.0
# Silence takes next to no bytes in a compressed file.
MAX_SECONDS = 600.0
MAX_AUDIO_BYTES = MAX_FILE_BYTES - WAV_HEADER_BYTES


def check_length(text: str, config: SpeechConfig) -> None:
    """Raises FileTooLong if the audio will surely not fit."""
    if estimated_seconds(text) > SURELY_TOO_LONG * _most_seconds(config):
        raise _too_long(config)


async def collect(session: Session) -> tuple[bytes, list[events.SegmentFinished]]:
    """The file, and how each segment ended. Raises IntoneError."""
    audio = bytearray()
    samples = 0
    finished: list[events.SegmentFinished] = []
    while not isinstance(event := await session.next_event(), events.Finished):
        if isinstance(event, events.AudioChunk):
            audio += event.data
            samples += event.sample_count
            if len(audio) > MAX_AUDIO_BYTES or session.stats.audio_seconds > MAX_SECONDS:
                raise _too_long(session.config)
            await asyncio.sleep(0)  # silence is there at once, however long it is
        elif isinstance(event, events.SegmentFinished):
            if event.error is not None:
                raise event.error  # a file with a hole in it would look whole
            finished.append(event)
    if event.reason is not events.FinishReason.END_OF_INPUT:
        raise TimedOut(Reason.SEGMENT_TIMEOUT, "the text was not spoken before the session limit")
    if not audio:
        raise InvalidRequest(
            Reason.BAD_CONFIG, [Violation("text", "has nothing that can be spoken")]
        )
    data = bytes(audio)
    if session.config.encoding is Encoding.WAV:
        data = wav_file(data, session.config.sample_rate_hertz)
    elif session.config.encoding is Encoding.FLAC:
        data = flac_file(data, samples)
    return data, finished


def _most_seconds(config: SpeechConfig) -> float:
    sample_bytes = BYTES_PER_SAMPLE.get(config.encoding)
    if sample_bytes is None:
        return MAX_SECONDS  # at the most: how well it compresses is known when it is made
    return min(MAX_SECONDS, MAX_AUDIO_BYTES / sample_bytes / config.sample_rate_hertz)


def _too_long(config: SpeechConfig) -> FileTooLong:
    return FileTooLong(
        Reason.FILE_TOO_LONG,
        f"the audio is longer than {MAX_FILE_BYTES:,} bytes or {_most_seconds(config):.0f} s, the "
        "most that one answer holds; use SynthesizeText, which streams",
    )
