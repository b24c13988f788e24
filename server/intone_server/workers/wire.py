"""Messages on a byte stream: a 4-byte big-endian length, then the pickled message.

Pickle is safe here: both ends are this program, on a socket pair that nobody else holds.
"""

import asyncio
import pickle
import socket
import struct

from intone_server.workers.messages import Command, Report

_LENGTH = struct.Struct(">I")


def encode(message: Command | Report) -> bytes:
    """The message with its length in front."""
    return b"".join(encode_in_parts(message))


def encode_in_parts(message: Command | Report) -> list[bytes]:
    """The same in parts, without a copy of any `bytes` in the message that are over 64 KiB: copying
    tens of megabytes would hold up the caller's whole process."""
    parts = _Parts()
    pickle.dump(message, parts, protocol=pickle.HIGHEST_PROTOCOL)
    return [_LENGTH.pack(sum(map(len, parts))), *parts]


class _Parts(list[bytes]):
    """A file for pickle, which writes long `bytes` as the object that they are."""

    def write(self, part: bytes) -> None:
        self.append(part)


async def read_report(reader: asyncio.StreamReader) -> Report | None:
    """The worker's next message; None at the end of the stream, however it came."""
    try:
        header = await reader.readexactly(_LENGTH.size)
        body = await reader.readexactly(_LENGTH.unpack(header)[0])
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    report: Report = pickle.loads(body)
    return report


def receive_command(pipe: socket.socket) -> Command | None:
    """Block for the front's next message; None at the end of the stream, however it came."""
    header = _receive_exactly(pipe, _LENGTH.size)
    if header is None:
        return None
    body = _receive_exactly(pipe, _LENGTH.unpack(header)[0])
    if body is None:
        return None
    command: Command = pickle.loads(body)
    return command


def _receive_exactly(pipe: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        try:
            part = pipe.recv(count - len(parts))
        except ConnectionError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)
