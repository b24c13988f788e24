"""`intone say`: text goes in as it is read, audio comes out as it arrives."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from intone.v1 import tts_pb2

from ._client import Client
from ._config import speech_config
from ._errors import CODES, IntoneError, StreamEndedError
from ._output import PcmSink, PlayerSink, Sink, WavSink
from ._stream import SpeechStream
from ._terminal import Progress, UsageError, read_pieces


async def say(options: argparse.Namespace) -> int:
    """Speak; the exit code. Raises UsageError, IntoneError, OSError."""
    pieces = text_pieces(options)
    sinks = _sinks(options)
    config = speech_config(
        voice=options.voice,
        language=options.language,
        temperature=options.temperature,
        seed=options.seed,
        encoding=options.encoding,
    )
    progress = Progress(quiet=options.quiet)
    stats = None
    drain = True
    try:
        async with (
            Client(options.server) as client,
            client.stream(config, timeout=options.timeout) as stream,
        ):
            await _converse(stream, pieces, sinks, progress)
            stats = stream.finished.stats if stream.finished else None
            failed = bool(stream.failed_segments)
    except asyncio.CancelledError:
        drain = False
        raise
    finally:
        await _finish(sinks, progress, stats, drain=drain)
    if not progress.sample_count and not failed:
        progress.tell("nothing was spoken: there was no text that can be")
    return 0 if progress.sample_count and not failed else 1


def text_pieces(options: argparse.Namespace) -> AsyncIterator[str]:
    """The text that the options name, as it arrives. Raises UsageError."""
    if options.file is not None:
        if options.text is not None:
            raise UsageError("give TEXT or -f FILE, not both")
        try:
            return _once(Path(options.file).read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError:
            raise UsageError(f"{options.file} is not UTF-8 text") from None
        except OSError as error:
            raise UsageError(f"cannot read {options.file}: {error.strerror}") from None
    if options.text == "-":
        return read_pieces(sys.stdin.fileno())
    if options.text is None or not options.text.strip():
        raise UsageError("no text: give TEXT, - for standard input, or -f FILE")
    try:
        options.text.encode()
    except UnicodeEncodeError:
        raise UsageError("TEXT is not UTF-8") from None
    return _once(options.text)


async def _once(text: str) -> AsyncIterator[str]:
    yield text


def _sinks(options: argparse.Namespace) -> list[Sink]:
    if options.encoding == "pcm_f32le" and (options.output != "-" or options.play):
        raise UsageError("--encoding pcm_f32le goes with -o - only")
    sinks: list[Sink] = []
    if options.output == "-":
        if sys.stdout.isatty():
            raise UsageError("raw audio would go to the terminal: pipe it, or give -o hello.wav")
        sinks.append(PcmSink())
    elif options.output is not None:
        sinks.append(WavSink(Path(options.output)))
    if options.play or options.output is None:
        sinks.append(PlayerSink())
    return sinks


async def _converse(
    stream: SpeechStream, pieces: AsyncIterator[str], sinks: list[Sink], progress: Progress
) -> None:
    """Write and read at the same time until the stream has finished."""
    feeding = asyncio.create_task(_feed(stream, pieces, progress))
    listening = asyncio.create_task(_listen(stream, sinks, progress))
    try:
        await asyncio.wait({feeding, listening}, return_when=asyncio.FIRST_COMPLETED)
        if feeding.done() and not isinstance(feeding.exception(), IntoneError):
            feeding.result()
        # If it was the call that failed, what had arrived before is still to be heard.
        await listening
        if not stream.input_ended and not feeding.done():
            raise StreamEndedError.after(stream.finished, stream.request_id)
        await feeding
    finally:
        feeding.cancel()
        listening.cancel()
        await asyncio.gather(feeding, listening, return_exceptions=True)


async def _feed(stream: SpeechStream, pieces: AsyncIterator[str], progress: Progress) -> None:
    async for piece in pieces:
        progress.on_text()
        await stream.push_text(piece)
    await stream.end_input()


async def _listen(stream: SpeechStream, sinks: list[Sink], progress: Progress) -> None:
    async for event in stream:
        match event.WhichOneof("event"):
            case "started":
                progress.sample_rate_hertz = event.started.format.sample_rate_hertz
                for sink in sinks:
                    sink.start(progress.sample_rate_hertz)
            case "audio":
                progress.on_audio(event.audio.sample_count)
                for sink in sinks:
                    sink.put(event.audio.data)
            case "segment_finished":
                _report(event.segment_finished, progress)
            case "notice":
                await _heed(event.notice, stream, progress)


def _report(segment: tts_pb2.SegmentFinished, progress: Progress) -> None:
    name = f"segment {segment.segment}"
    if segment.outcome == tts_pb2.SEGMENT_OUTCOME_FAILED:
        error = segment.error
        code = CODES[error.code].name if error.code in CODES else str(error.code)
        progress.tell(f"{name} failed: {code} ({error.reason}): {error.message}")
    elif segment.outcome == tts_pb2.SEGMENT_OUTCOME_NO_END:
        progress.tell(f"{name} reached the model's length cap: its audio is suspect")


async def _heed(notice: tts_pb2.Notice, stream: SpeechStream, progress: Progress) -> None:
    if notice.kind == tts_pb2.NOTICE_KIND_IDLE:
        # Whoever writes to standard input still thinks. That is no reason to hang up.
        if not stream.input_ended:
            await stream.push_text("")
    elif notice.kind != tts_pb2.NOTICE_KIND_ERROR:
        kind = tts_pb2.NoticeKind.Name(notice.kind).removeprefix("NOTICE_KIND_")
        progress.tell(f"{kind}: {notice.message}")


async def _finish(
    sinks: list[Sink], progress: Progress, stats: tts_pb2.Stats | None, *, drain: bool
) -> None:
    try:
        async with contextlib.AsyncExitStack() as every:
            for sink in reversed(sinks):
                every.push_async_callback(sink.finish, drain=drain)
    finally:
        if stats is not None or progress.sample_count:
            progress.summary(stats)
        for sink in sinks:
            if isinstance(sink, WavSink) and stats is None and progress.sample_count:
                progress.tell(f"ended early: {sink.path} holds what had arrived")
