"""The command `intone`."""

import argparse
import asyncio
import importlib.metadata
import json
import os
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from intone.v1 import tts_pb2, voices_pb2

from ._client import DEFAULT_ADDRESS, Client
from ._config import speech_config
from ._errors import IntoneError
from ._say import say, text_pieces
from ._terminal import UsageError, tell, tell_error

_TIMEOUT_SECONDS = 10.0  # of calls that only ask; `say` takes as long as the text is

_EXIT_ERROR = 1
_EXIT_USAGE = 2
_EXIT_INTERRUPTED = 130  # what a shell reports for SIGINT
_EXIT_BROKEN_PIPE = 141  # and for SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default that of the process; the exit code.

    0 success, 1 the server or the network failed, 2 usage, 130 Ctrl-C, 141 the reader of standard
    output has gone.
    """
    options = _parser().parse_args(argv)
    # What grpc logs by itself, a GOAWAY of a server that drains for example, is not for our users.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    command: Coroutine[Any, Any, int] = options.command(options)
    try:
        code = asyncio.run(command)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except UsageError as error:
        tell(str(error))
        return _EXIT_USAGE
    except IntoneError as error:
        tell_error(error)
        return _EXIT_ERROR
    except BrokenPipeError:
        # Or Python complains when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_BROKEN_PIPE
    except OSError as error:
        tell(str(error))
        return _EXIT_ERROR
    return code


def _parser() -> argparse.ArgumentParser:
    server = os.environ.get("INTONE_SERVER") or DEFAULT_ADDRESS
    parser = argparse.ArgumentParser(
        prog="intone", description="Text to speech by an intone server."
    )
    parser.add_argument("--version", action="version", version=f"intone {_version()}")
    parser.add_argument(
        "--server",
        metavar="HOST:PORT",
        default=server,
        help="default: $INTONE_SERVER, else localhost:50051; unix:PATH works too",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    # `--server` after the command as well; without a default, or it would undo the one before.
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--server", metavar="HOST:PORT", default=argparse.SUPPRESS)
    where.add_argument("--timeout", metavar="SECONDS", type=float, help="give up after this long")
    text = argparse.ArgumentParser(add_help=False)
    text.add_argument("text", metavar="TEXT", nargs="?", help="- reads standard input")
    text.add_argument("-f", "--file", metavar="FILE", help="read the text from FILE")
    text.add_argument("--voice", default="", help="see `intone voices`")
    text.add_argument("--language", default="", help="BCP 47, for example en")
    as_json = argparse.ArgumentParser(add_help=False)
    as_json.add_argument("--json", action="store_true", help="for programs")

    speak = commands.add_parser("say", parents=[text, where], help="speak TEXT")
    speak.add_argument(
        "-o", "--output", metavar="FILE", help="write a WAV file; - writes raw PCM to stdout"
    )
    speak.add_argument("--play", action="store_true", help="play it (the default without -o)")
    speak.add_argument("--temperature", type=float, help="0.0 (the same every time) to 2.0")
    speak.add_argument("--seed", type=int, help="repeats what was said with it before")
    speak.add_argument("--encoding", choices=["pcm_s16le", "pcm_f32le"], help="of -o -")
    speak.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    speak.set_defaults(command=say)
    voices = commands.add_parser("voices", parents=[where, as_json], help="list the voices")
    voices.set_defaults(command=_voices)
    info = commands.add_parser("info", parents=[where, as_json], help="say what the server is")
    info.set_defaults(command=_info)
    plan = commands.add_parser(
        "plan", parents=[text, where, as_json], help="show how TEXT would be cut and how long it is"
    )
    plan.set_defaults(command=_plan)
    return parser


def _version() -> str:
    try:
        return importlib.metadata.version("intone")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


async def _voices(options: argparse.Namespace) -> int:
    async with Client(options.server) as client:
        voices = await client.voices(timeout=options.timeout or _TIMEOUT_SECONDS)
    if options.json:
        _print_json(voices_pb2.ListVoicesResponse(voices=voices))
        return 0
    rows = [("VOICE", "LANGUAGE", "ORIGIN", "LICENSE", "")]
    for voice in voices:
        origin = voices_pb2.VoiceOrigin.Name(voice.origin).removeprefix("VOICE_ORIGIN_").lower()
        marks = [mark for mark in ("default", "loaded") if getattr(voice, mark)]
        rows.append((voice.name, voice.language, origin, voice.license, ", ".join(marks)))
    _print_table(rows)
    return 0


async def _info(options: argparse.Namespace) -> int:
    async with Client(options.server) as client:
        info = await client.info(timeout=options.timeout or _TIMEOUT_SECONDS)
    if options.json:
        _print_json(info)
        return 0
    encodings = [tts_pb2.AudioEncoding.Name(each) for each in info.encodings]
    names = [each.removeprefix("AUDIO_ENCODING_").lower() for each in encodings]
    rows = [
        ("server", f"intone {info.server_version} at {options.server}"),
        ("engine", f"{info.engine} {info.engine_version}"),
        ("model", info.model),
        ("languages", ", ".join(info.languages)),
        ("features", ", ".join(info.features)),
        ("default voice", info.default_voice),
        ("audio", f"{info.native_format.sample_rate_hertz} Hz; {', '.join(names)}"),
    ]
    for field, value in info.limits.ListFields():
        shown = f"{_seconds(value):g} s" if isinstance(value, Duration) else str(value)
        rows.append((field.name, shown))
    _print_table(rows)
    return 0


async def _plan(options: argparse.Namespace) -> int:
    pieces = text_pieces(options)
    text = "".join([piece async for piece in pieces])
    config = speech_config(voice=options.voice, language=options.language)
    async with Client(options.server) as client:
        plan = await client.plan(text, config, timeout=options.timeout or _TIMEOUT_SECONDS)
    if options.json:
        _print_json(plan)
        return 0
    rows = [("SPAN", "AUDIO", "CUT BY", "SPOKEN TEXT")]
    for segment in plan.segments:
        reason = tts_pb2.CommitReason.Name(segment.reason).removeprefix("COMMIT_REASON_").lower()
        span = f"{segment.span.start}-{segment.span.end}"
        audio = f"{_seconds(segment.estimated_audio):.2f} s"
        rows.append((span, audio, reason, " ".join(segment.spoken_text.split())))
    _print_table(rows)
    print(
        f"about {_seconds(plan.estimated_audio):.2f} s of audio, "
        f"after a wait of {_seconds(plan.estimated_wait):.2f} s"
    )
    return 0


def _seconds(duration: Duration) -> float:
    return duration.ToNanoseconds() / 1e9


def _print_json(message: Message) -> None:
    fields = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    print(json.dumps(fields, indent=2, ensure_ascii=False))


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())


if __name__ == "__main__":
    sys.exit(main())
