"""The options of `intone bench`, and what they mean."""

import argparse
import math
import secrets
from collections.abc import Callable
from pathlib import Path

from intone_client._terminal import UsageError

from .plan import Plan, Texts
from .summary import Thresholds
from .texts import TextLengths, read_texts

_CALL_SECONDS = 60.0
_SEED_BITS = 32


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what only `bench` has to its parser."""
    group = parser.add_argument_group("when calls begin")
    how = group.add_mutually_exclusive_group()
    how.add_argument(
        "--rate",
        metavar="NUMBER",
        type=number(positive=True),
        help="calls per second at random times, whatever the server does (default: 1)",
    )
    how.add_argument(
        "--streams",
        metavar="N",
        type=whole(1),
        help="N people instead, who talk, listen, think and talk again",
    )
    group.add_argument(
        "--think", metavar="SECONDS", type=number(), default=2.0, help="on average (default: 2)"
    )
    group.add_argument(
        "--duration",
        metavar="SECONDS",
        type=number(positive=True),
        default=30.0,
        help="default: 30",
    )
    group.add_argument("--seed", metavar="NUMBER", type=int, help="the same calls and texts again")
    group.add_argument("--max-calls", metavar="N", type=whole(1), default=10_000)
    group.add_argument(
        "--concurrency-limit",
        metavar="N",
        type=whole(1),
        default=1000,
        help="with so many open, a call is counted as not sent",
    )
    group.add_argument(
        "--connections", metavar="N", type=whole(1), default=1, help="that the calls share"
    )
    group = parser.add_argument_group("what they say")
    group.add_argument("--voice", metavar="NAME", default="", help="see `intone voices`")
    group.add_argument(
        "--text-lengths",
        metavar="WHICH",
        type=lengths,
        help="short, long, mixed, or MIN-MAX characters",
    )
    group.add_argument("--text-file", metavar="FILE", help="texts of your own, a line each")
    group.add_argument("--pieces", action="store_true", help="text comes as an LLM writes it")
    group.add_argument(
        "--tokens-per-second",
        metavar="NUMBER",
        type=number(),
        default=50.0,
        help="of --pieces (default: 50; 0: all at once)",
    )
    group = parser.add_argument_group("what comes out")
    group.add_argument("--json", dest="json_file", metavar="FILE", help="every call")
    group.add_argument("--plot", metavar="FILE", help=".png or .svg")
    group = parser.add_argument_group("exit with 3 if there is more than that")
    group.add_argument("--max-first-audio-p95", metavar="MS", type=number())
    group.add_argument("--max-silence", metavar="SECONDS", type=number(), help="of all listeners")
    group.add_argument("--max-refused", metavar="SHARE", type=number(most=1), help="0 to 1")
    group.add_argument("--max-failed", metavar="SHARE", type=number(most=1), help="0 to 1")


def load_plan(options: argparse.Namespace) -> Plan:
    """What load the options ask for."""
    return Plan(
        rate=None if options.streams else options.rate or 1.0,
        streams=options.streams,
        think=options.think,
        duration=options.duration,
        seed=secrets.randbits(_SEED_BITS) if options.seed is None else options.seed,
        tokens_per_second=options.tokens_per_second if options.pieces else None,
        max_calls=options.max_calls,
        concurrency_limit=options.concurrency_limit,
        timeout=options.timeout or _CALL_SECONDS,
    )


def load_texts(options: argparse.Namespace, plan: Plan) -> Texts:
    """What is said. Raises UsageError for a file that cannot be read."""
    own: list[str] = []
    if options.text_file:
        try:
            own = read_texts(Path(options.text_file).read_text(encoding="utf-8-sig"))
        except UnicodeDecodeError:
            raise UsageError(f"{options.text_file} is not UTF-8 text") from None
        except ValueError as error:
            raise UsageError(f"{options.text_file}: {error}") from None
        except OSError as error:
            raise UsageError(f"cannot read {options.text_file}: {error.strerror}") from None
    chosen = options.text_lengths or (None if own else TextLengths("mixed"))
    return Texts(plan.seed, own=own, lengths=chosen, tokens_per_second=plan.tokens_per_second)


def thresholds(options: argparse.Namespace) -> Thresholds:
    """What the measurement must keep to."""
    return Thresholds(
        max_first_audio_p95_milliseconds=options.max_first_audio_p95,
        max_silence_seconds=options.max_silence,
        max_refused_share=options.max_refused,
        max_failed_share=options.max_failed,
    )


def number(*, positive: bool = False, most: float = math.inf) -> Callable[[str], float]:
    """A type of argument: a number from 0, or if `positive` above 0, to `most`."""

    def parse(argument: str) -> float:
        value = float(argument)
        if not (math.isfinite(value) and 0 <= value <= most) or (positive and not value):
            least = "above 0" if positive else "from 0"
            greatest = "" if math.isinf(most) else f" to {most:g}"
            raise argparse.ArgumentTypeError(f"{argument} is not a number {least}{greatest}")
        return value

    parse.__name__ = "number"  # by which argparse names it
    return parse


def whole(least: int) -> Callable[[str], int]:
    """A type of argument: a whole number of `least` or more."""

    def parse(argument: str) -> int:
        value = int(argument)
        if value < least:
            raise argparse.ArgumentTypeError(f"{argument} is below {least}")
        return value

    parse.__name__ = "whole number"
    return parse


def lengths(argument: str) -> TextLengths:
    """A type of argument."""
    try:
        return TextLengths(argument)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
