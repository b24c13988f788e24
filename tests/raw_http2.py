"""HTTP/2 by hand, for peers that do what no client would."""

import contextlib
import socket
import struct
from typing import Self

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """RFC 9113, section 4.1."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def headers(method: str, *more: tuple[str, str]) -> bytes:
    """The header block of a call."""
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        *more,
    ]
    return bytes(hpack.Encoder().encode(fields))


class Peer:
    """A connection on which anything can be sent; what comes back is thrown away."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._socket = socket.create_connection((host, int(port)), 10)
        self._socket.settimeout(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def greet(self) -> None:
        """What every connection begins with."""
        self.send(PREFACE + frame(SETTINGS, 0, 0))

    def send(self, data: bytes) -> bool:
        """False if the server has closed the connection. Reads what there is, or the server would
        wait for it."""
        try:
            self._socket.sendall(data)
            self._socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    if not self._socket.recv(65536):
                        return False
        except (ConnectionError, TimeoutError):
            return False
        finally:
            with contextlib.suppress(OSError):
                self._socket.settimeout(10)
        return True

    def is_closed_within(self, seconds: float) -> bool:
        """Whether the server closes the connection by itself."""
        self._socket.settimeout(seconds)
        try:
            while self._socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return True
