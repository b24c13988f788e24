"""The command `intone`."""

import argparse
import asyncio
import functools
import importlib.metadata
import os
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

from google.protobuf.duration_pb2 import Duration

from intone.v1 import tts_pb2

from ._access import DEFAULTS as ACCESS_DEFAULTS
from ._access import client_of
from ._access import configure as configure_access
from ._bench.command import configure as configure_bench
from ._connection import DEFAULT_ADDRESS, DEFAULT_PORT
from ._dialogues.command import configure as configure_dialogue
from ._errors import IntoneError
from ._say import configure as configure_say
from ._show import print_json, print_line, print_table, seconds, short_name
from ._terminal import UsageError, tell, tell_error
from ._text_options import text_config, text_parser, text_pieces
from ._voices import configure as configure_voices

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
    narrow = functools.partial(argparse.HelpFormatter, max_help_position=28)
    parser = argparse.ArgumentParser(
        prog="intone",
        usage="%(prog)s [options] COMMAND ...",
        description="Text to speech by an intone server.",
        formatter_class=narrow,
    )
    parser.add_argument("--version", action="version", version=f"intone {_version()}")
    parser.add_argument(
        "--server",
        metavar="HOST:PORT",
        default=server,
        help=f"default: $INTONE_SERVER, else {DEFAULT_ADDRESS}; HOST alone means port "
        f"{DEFAULT_PORT}, unix:PATH works too",
    )
    configure_access(parser, described=True)
    parser.set_defaults(timeout=None, json=False, **ACCESS_DEFAULTS)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", prog="intone")

    # Options that may stand behind any word of a command have no default of their own, or it would
    # undo what stood before.
    where = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    where.add_argument("--server", metavar="HOST:PORT")
    configure_access(where, described=False)
    where.add_argument("--timeout", metavar="SECONDS", type=float, help="give up after this long")
    as_json = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    as_json.add_argument("--json", action="store_true", help="for programs")
    text = text_parser()

    usage = "%(prog)s [options] TEXT"

    speak = commands.add_parser(
        "say", parents=[text, where], help="speak TEXT", usage=usage, formatter_class=narrow
    )
    configure_say(speak)
    dialogue = commands.add_parser(
        "dialogue",
        parents=[where],
        help="speak a script of many lines into a folder",
        formatter_class=narrow,
    )
    configure_dialogue(dialogue)
    voices = commands.add_parser(
        "voices", parents=[where, as_json], help="list, make, show, export and delete voices"
    )
    configure_voices(voices, [where, as_json])
    info = commands.add_parser("info", parents=[where, as_json], help="say what the server is")
    info.set_defaults(command=_info)
    plan = commands.add_parser(
        "plan",
        parents=[text, where, as_json],
        help="show how TEXT would be cut and how long it is",
        usage=usage,
        formatter_class=narrow,
    )
    plan.set_defaults(command=_plan)
    bench = commands.add_parser(
        "bench",
        parents=[where],
        help="put load on a server and measure what its callers hear",
        formatter_class=narrow,
    )
    configure_bench(bench)
    return parser


def _version() -> str:
    try:
        return importlib.metadata.version("intone")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


async def _info(options: argparse.Namespace) -> int:
    async with client_of(options) as client:
        info = await client.info(timeout=options.timeout or _TIMEOUT_SECONDS)
        address = client.address
    if options.json:
        print_json(info)
        return 0
    encodings = [short_name(tts_pb2.AudioEncoding, each) for each in info.encodings]
    rows = [
        ("server", f"intone {info.server_version} at {address}"),
        ("engine", f"{info.engine} {info.engine_version}"),
        ("model", info.model),
        ("languages", ", ".join(info.languages)),
        ("features", ", ".join(info.features)),
        ("default voice", info.default_voice),
        ("audio", f"{info.native_format.sample_rate_hertz} Hz; {', '.join(encodings)}"),
    ]
    for field, value in info.limits.ListFields():
        shown = f"{seconds(value):g} s" if isinstance(value, Duration) else str(value)
        rows.append((field.name, shown))
    print_table(rows)
    return 0


async def _plan(options: argparse.Namespace) -> int:
    pieces = text_pieces(options)
    config = text_config(options)
    text = "".join([piece async for piece in pieces])
    async with client_of(options) as client:
        plan = await client.plan(text, config, timeout=options.timeout or _TIMEOUT_SECONDS)
    if options.json:
        print_json(plan)
        return 0
    rows = [("SPAN", "AUDIO", "CUT BY", "TEXT")]
    for segment in plan.segments:
        reason = short_name(tts_pb2.CommitReason, segment.reason)
        span = f"{segment.span.start}-{segment.span.end}"
        audio = f"{seconds(segment.estimated_audio):.2f} s"
        sent, spoken = (" ".join(each.split()) for each in (segment.text, segment.spoken_text))
        rows.append((span, audio, reason, sent or spoken or "(silence)"))
        if sent and sent != spoken:
            rows.append(("", "", "said as", spoken or "(silence)"))
    print_table(rows)
    print_line(
        f"about {seconds(plan.estimated_audio):.2f} s of audio, "
        f"after a wait of {seconds(plan.estimated_wait):.2f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
