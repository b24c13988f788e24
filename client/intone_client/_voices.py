"""`intone voices`: list, show, create, export and delete voices."""

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from intone.v1 import voices_pb2

from ._access import client_of
from ._audio import PartFile, check_target
from ._errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
)
from ._show import print_json, print_line, print_table, short_name
from ._terminal import UsageError, read_bytes, tell, tell_error, write_bytes
from ._text_options import pair

_TIMEOUT_SECONDS = 10.0  # of calls that only ask; those that move a voice take what they need

# A safetensors file begins with the length of its JSON header, 8 bytes little-endian, and the
# library refuses headers of more than 100 MB.
_STATE_HEADER_BYTES = 100_000_000


def configure(parser: argparse.ArgumentParser, parents: Sequence[argparse.ArgumentParser]) -> None:
    """Add the subcommands of `voices` to its parser; `parents` are --server and --json."""
    parser.set_defaults(command=_list)
    commands = parser.add_subparsers(metavar="COMMAND")
    where, _ = parents

    each = commands.add_parser("list", parents=parents, help="list the voices (the default)")
    each.set_defaults(command=_list)

    each = commands.add_parser("show", parents=parents, help="all that is known of a voice")
    each.add_argument("name", metavar="NAME")
    each.set_defaults(command=_show)

    each = commands.add_parser(
        "create",
        parents=parents,
        usage="%(prog)s [options] NAME FILE",
        help="make a voice from a recording or an exported voice",
        description="Make a voice from FILE: a recording of 1 to 120 s of one speaker (WAV, FLAC, "
        "Ogg, MP3), or a voice from `intone voices export` or `pocket-tts export-voice`.",
    )
    each.add_argument("name", metavar="NAME", help="lowercase letters, digits, - and _")
    each.add_argument("file", metavar="FILE", help="- reads standard input")
    each.add_argument("--language", metavar="TAG", default="", help="BCP 47, for example en")
    each.add_argument(
        "--label", metavar="KEY=VALUE", type=pair, action="append", default=[], help="repeatable"
    )
    each.add_argument(
        "--consent", metavar="TEXT", default="", help="how the speaker agreed to this; is stored"
    )
    each.add_argument(
        "--shared", action="store_true", help="let all clients of the server speak with it"
    )
    each.add_argument("--dry-run", action="store_true", help="do everything but keep the voice")
    each.set_defaults(command=_create)

    each = commands.add_parser("export", parents=[where], help="write a voice to a file")
    each.add_argument("name", metavar="NAME")
    each.add_argument(
        "-o", "--output", metavar="FILE", help="default: NAME.safetensors; - is standard output"
    )
    each.add_argument("--force", action="store_true", help="replace FILE if it exists")
    each.set_defaults(command=_export)

    each = commands.add_parser("delete", parents=[where], help="delete voices that were created")
    each.add_argument("names", metavar="NAME", nargs="+")
    each.add_argument("--missing-ok", action="store_true", help="no error if there is none")
    each.set_defaults(command=_delete)


async def _list(options: argparse.Namespace) -> int:
    async with client_of(options) as client:
        voices = await client.voices(timeout=options.timeout or _TIMEOUT_SECONDS)
    if options.json:
        print_json(voices_pb2.ListVoicesResponse(voices=voices))
        return 0
    rows = [("VOICE", "LANGUAGE", "ORIGIN", "ACCESS", "LICENSE", "")]
    rows += [
        (each.name, each.language, _origin(each), _access(each), each.license, _marks(each))
        for each in voices
    ]
    print_table(rows)
    return 0


async def _show(options: argparse.Namespace) -> int:
    async with client_of(options) as client:
        voice = await client.get_voice(options.name, timeout=options.timeout or _TIMEOUT_SECONDS)
    _describe(voice, options)
    return 0


async def _create(options: argparse.Namespace) -> int:
    async with client_of(options) as client:
        info = await client.info(timeout=options.timeout or _TIMEOUT_SECONDS)
        if "consent_required" in info.features and not options.consent:
            raise UsageError("this server asks how the speaker agreed: give --consent TEXT")
        source = await _read_source(options.file, info.limits.max_prompt_bytes)
        is_state = _is_state(source)
        try:
            voice = await client.create_voice(
                options.name,
                prompt=None if is_state else source,
                state=source if is_state else None,
                language=options.language,
                labels=dict(options.label),
                consent_statement=options.consent,
                shared=options.shared,
                validate_only=options.dry_run,
                timeout=options.timeout,
            )
        except (UnavailableError, DeadlineExceededError) as error:
            if error.reason or options.dry_run:
                raise
            tell_error(error)
            tell(f"the voice may have been made; `intone voices show {options.name}` tells")
            return 1
    if not options.json:
        kept = "would be made; nothing was kept" if options.dry_run else "was made"
        print_line(f"the voice {voice.name} {kept}")
    _describe(voice, options)
    return 0


async def _export(options: argparse.Namespace) -> int:
    path = _export_path(options)
    async with client_of(options) as client:
        exported = await client.export_voice(options.name, timeout=options.timeout)
    if path is None:
        await write_bytes(sys.stdout.fileno(), exported.state)
        return 0
    file = PartFile(path)
    whole = False
    try:
        file.write(exported.state)
        whole = True
    finally:
        file.close(keep=whole)
    print_line(f"{path}: {len(exported.state):,} bytes, digest {exported.voice.digest}")
    return 0


async def _delete(options: argparse.Namespace) -> int:
    code = 0
    async with client_of(options) as client:
        for name in options.names:
            try:
                await client.delete_voice(
                    name,
                    allow_missing=options.missing_ok,
                    timeout=options.timeout or _TIMEOUT_SECONDS,
                )
            except (
                NotFoundError,
                FailedPreconditionError,
                InvalidArgumentError,
                NotAllowedError,  # another client's
            ) as error:
                # That is about this voice; the others can still be deleted.
                tell_error(error)
                code = 1
    return code


def _export_path(options: argparse.Namespace) -> Path | None:
    """Where the voice goes; None: to standard output. Raises UsageError."""
    if options.output == "-":
        if sys.stdout.isatty():
            raise UsageError("a voice would go to the terminal: pipe it, or give -o FILE")
        return None
    try:
        path = check_target(Path(options.output or f"{options.name}.safetensors"))
    except OSError as error:
        raise UsageError(str(error)) from None
    if path.exists() and not options.force:
        raise UsageError(f"{path} exists: --force replaces it")
    return path


def _describe(voice: voices_pb2.Voice, options: argparse.Namespace) -> None:
    if options.json:
        print_json(voice)
        return
    rows = [("voice", voice.name), ("language", voice.language), ("origin", _origin(voice))]
    rows.append(("access", _access(voice)))
    if voice.HasField("report"):
        report = voice.report
        rows.append(("used", f"{report.seconds_used:.1f} s of the recording"))
        rows.append(("speech", f"{report.speech_ratio:.0%} of the time"))
        rows.append(("level", f"{report.level_dbfs:.1f} dB, 0 being full scale"))
        rows.append(("clipped", f"{report.clipped_ratio:.2%} of the samples"))
        rows += [("warning", warning) for warning in report.warnings]
    if voice.HasField("create_time"):
        rows.append(("created", f"{voice.create_time.ToDatetime():%Y-%m-%d %H:%M:%S} UTC"))
    labels = ", ".join(f"{key}={value}" for key, value in sorted(voice.labels.items()))
    rows += [("labels", labels), ("license", voice.license), ("digest", voice.digest)]
    rows.append(("", _marks(voice)))
    print_table([row for row in rows if row[1]])


def _origin(voice: voices_pb2.Voice) -> str:
    return short_name(voices_pb2.VoiceOrigin, voice.origin)


def _access(voice: voices_pb2.Voice) -> str:
    """Of a created voice, whose it is and for whom; "" for all others."""
    return ", ".join(word for word in ("owned", "shared") if getattr(voice, word))


def _marks(voice: voices_pb2.Voice) -> str:
    return ", ".join(mark for mark in ("default", "loaded") if getattr(voice, mark))


async def _read_source(file: str, limit: int) -> bytes:
    """The bytes of FILE, of which the server takes up to `limit` (0: any). Raises UsageError."""
    name = "standard input" if file == "-" else file
    descriptor = -1
    try:
        descriptor = os.dup(sys.stdin.fileno()) if file == "-" else os.open(file, os.O_RDONLY)
        found = os.fstat(descriptor)
        source = await read_bytes(descriptor, limit + 1 if limit else sys.maxsize)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    if not source:
        raise UsageError(f"{name} is empty")
    if limit and len(source) > limit:
        size = f"{found.st_size:,}" if stat.S_ISREG(found.st_mode) else f"at least {limit + 1:,}"
        raise UsageError(f"{name} has {size} bytes; the server takes up to {limit:,}")
    return source


def _is_state(source: bytes) -> bool:
    """Whether it is an exported voice: anything else is a recording, or the server says what."""
    return source[8:9] == b"{" and int.from_bytes(source[:8], "little") <= _STATE_HEADER_BYTES
