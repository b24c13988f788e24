"""`intone say`: text goes in as it is read, audio comes out as it arrives."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

from intone.v1 import tts_pb2

from ._access import client_of
from ._config import Encoding
from ._errors import CODES, IntoneError, StreamEndedError
from ._formats import EXTENSIONS, output_encoding, usual_rate
from ._output import FileSink, PlayerSink, Sink, StdoutSink, WavSink
from ._show import short_name
from ._stream import SpeechStream
from ._terminal import Progress, UsageError
from ._text_options import text_config, text_pieces


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what only `say` has to its parser."""
    parser.set_defaults(command=_say)
    group = parser.add_argument_group("where the audio goes, and what it is")
    group.add_argument(
        "-o", "--output", metavar="FILE", help=f"- is standard output; else {', '.join(EXTENSIONS)}"
    )
    group.add_argument("--play", action="store_true", help="play it (the default without -o)")
    group.add_argument(
        "--encoding",
        metavar="NAME",
        choices=get_args(Encoding),
        help=f"if FILE does not tell: {', '.join(get_args(Encoding))}",
    )
    group.add_argument(
        "--rate", metavar="HERTZ", type=int, default=0, help="8000 to 48000 (telephone: 8000)"
    )
    group.add_argument(
        "--gain", metavar="DB", type=float, default=0.0, help="louder or softer, -40 to 20"
    )
    group = parser.add_argument_group("how it is spoken")
    group.add_argument(
        "--temperature", metavar="NUMBER", type=float, help="0.0 (the same every time) to 2.0"
    )
    group.add_argument(
        "--seed", metavar="NUMBER", type=int, help="repeats what was said with it before"
    )
    group.add_argument(
        "--max-ahead",
        metavar="SECONDS",
        type=float,
        help="most audio ahead of its listener, 0.1 to 600",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")


async def _say(options: argparse.Namespace) -> int:
    """Speak; the exit code. Raises UsageError, IntoneError, OSError."""
    pieces = text_pieces(options)
    play = options.play or options.output is None
    encoding = output_encoding(options.output, options.encoding, play=play)
    config = text_config(
        options,
        # The header of a WAV file is made here, around samples.
        encoding="pcm_s16le" if encoding == "wav" else encoding,
        sample_rate_hertz=options.rate or usual_rate(encoding),
        gain_db=options.gain,
        temperature=options.temperature,
        seed=options.seed,
        max_ahead=options.max_ahead,
    )
    sinks = _sinks(options.output, encoding, play=play)
    progress = Progress(quiet=options.quiet)
    stats = None
    drain = True
    try:
        async with (
            client_of(options) as client,
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


def _sinks(output: str | None, encoding: Encoding, *, play: bool) -> list[Sink]:
    sinks: list[Sink] = []
    if output == "-":
        if sys.stdout.isatty():
            raise UsageError("audio would go to the terminal: pipe it, or give -o hello.wav")
        sinks.append(StdoutSink())
    elif output is not None:
        path = Path(output)
        sinks.append(WavSink(path) if encoding == "wav" else FileSink(path))
    if play:
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
                    sink.put(event.audio)
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
        kind = short_name(tts_pb2.NoticeKind, notice.kind).replace("_", " ")
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
            if isinstance(sink, WavSink | FileSink) and stats is None and progress.sample_count:
                progress.tell(f"ended early: {sink.path} holds what had arrived")
