"""What `intone say` and `intone plan` have in common: a text, and what is done to it."""

import argparse
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

from intone.v1 import tts_pb2

from ._config import Priority, speech_config
from ._terminal import UsageError, read_pieces


def text_parser() -> argparse.ArgumentParser:
    """A parent parser with the text and its options."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="- reads standard input")
    parser.add_argument("-f", "--file", metavar="FILE", help="read the text from FILE")
    parser.add_argument("--voice", metavar="NAME", default="", help="see `intone voices`")
    parser.add_argument("--language", metavar="TAG", default="", help="BCP 47, for example en")
    add_priority(parser)
    group = parser.add_argument_group("how the text is read")
    group.add_argument("--markdown", action="store_true", help="leave out its markdown")
    group.add_argument(
        "--pauses", action="store_true", help='heed [pause:300ms] and <break time="0.3s"/>'
    )
    group.add_argument("--normalize", action="store_true", help="spell out numbers, dates, units")
    group.add_argument(
        "--replace",
        metavar="WORD=SPOKEN",
        type=pair,
        action="append",
        default=[],
        help="say WORD otherwise; repeatable, in this order",
    )
    group.add_argument("--gap", metavar="SECONDS", type=float, help="silence between sentences")
    group.add_argument(
        "--paragraph-gap", metavar="SECONDS", type=float, help="and between paragraphs"
    )
    return parser


def add_priority(parser: argparse.ArgumentParser) -> None:
    """Add `--priority`; None is the server's default."""
    names = get_args(Priority)
    parser.add_argument("--priority", metavar="NAME", choices=names, help=", ".join(names))


def pair(argument: str) -> tuple[str, str]:
    """LEFT=RIGHT as the two sides of the first "="."""
    left, equals, right = argument.partition("=")
    if not left or not equals:
        raise argparse.ArgumentTypeError(f"{argument!r} is not two sides of a '='")
    return left, right


def text_config(options: argparse.Namespace, **more: Any) -> tts_pb2.SpeechConfig:
    """The config of the options of `text_parser`, and `more`. Raises UsageError."""
    try:
        return speech_config(
            voice=options.voice,
            language=options.language,
            strip_markdown=options.markdown,
            inline_pauses=options.pauses,
            normalize=options.normalize,
            replacements=[
                tts_pb2.Replacement(word=word, spoken=spoken) for word, spoken in options.replace
            ],
            segment_gap=options.gap,
            paragraph_gap=options.paragraph_gap,
            priority=options.priority,
            **more,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


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
