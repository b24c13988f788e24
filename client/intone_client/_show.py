"""What commands print on standard output: lines, tables, JSON."""

import json
import re
import sys
from collections.abc import Sequence

from google.protobuf.duration_pb2 import Duration
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def print_line(line: str) -> None:
    """One line for people."""
    # Names and labels come from other users: they must not steer the terminal.
    sys.stdout.write(_CONTROL.sub("?", line) + "\n")


def print_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Rows of equal length, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print_line("  ".join(cells).rstrip())


def print_json(message: Message) -> None:
    """For programs: names as in the proto, defaults too."""
    fields = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    sys.stdout.write(json.dumps(fields, indent=2, ensure_ascii=False) + "\n")


def seconds(duration: Duration) -> float:
    """`duration` in seconds."""
    return duration.ToNanoseconds() / 1e9


def short_name(enum: EnumTypeWrapper, number: int) -> str:
    """A value's name in lower case without the enum's; its number if it is newer than this."""
    if number not in enum.values():
        return str(number)
    prefix = enum.Name(0).removesuffix("UNSPECIFIED")
    return enum.Name(number).removeprefix(prefix).lower()
