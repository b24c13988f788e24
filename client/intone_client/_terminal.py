"""What the command line reads from and says to the terminal, without blocking the event loop."""

import asyncio
import codecs
import os
import sys
import time
from collections.abc import AsyncIterator, Callable

from intone.v1 import tts_pb2

from ._errors import IntoneError
from ._visible import visible

_READ_BYTES = 65536
# A pipe that is ready for writing takes this much without blocking (PIPE_BUF on Linux).
_PIPE_BYTES = 4096
_PROGRESS_INTERVAL_SECONDS = 0.1


class UsageError(Exception):
    """What was asked for cannot work, whatever the server says."""


async def readable(descriptor: int) -> None:
    """Return when a read of `descriptor` does not block."""
    loop = asyncio.get_running_loop()
    await _ready(descriptor, loop.add_reader, loop.remove_reader)


async def writable(descriptor: int) -> None:
    """Return when a write of a few bytes to `descriptor` does not block."""
    loop = asyncio.get_running_loop()
    await _ready(descriptor, loop.add_writer, loop.remove_writer)


async def _ready(descriptor: int, add: Callable[..., None], remove: Callable[[int], bool]) -> None:
    event = asyncio.Event()
    try:
        add(descriptor, event.set)
    except PermissionError:
        # epoll refuses plain files and /dev/null: they are always ready.
        return
    try:
        await event.wait()
    finally:
        remove(descriptor)


async def read_pieces(descriptor: int) -> AsyncIterator[str]:
    """UTF-8 text from `descriptor` as it arrives, cut anywhere between characters.

    Raises UsageError if it is not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    while True:
        data = await _read(descriptor, _READ_BYTES)
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError:
            raise UsageError("standard input is not UTF-8 text") from None
        if text:
            yield text
        if not data:
            return


async def read_bytes(descriptor: int, most: int) -> bytes:
    """Everything from `descriptor`, but no more than `most` bytes. Raises OSError."""
    found = bytearray()
    while data := await _read(descriptor, min(_READ_BYTES, most - len(found))):
        found += data
    return bytes(found)


async def _read(descriptor: int, most: int) -> bytes:
    """What is there; empty at the end."""
    while True:
        await readable(descriptor)
        try:
            return os.read(descriptor, most)
        except BlockingIOError:
            continue


async def write_bytes(descriptor: int, data: bytes) -> None:
    """Write all of `data`. Raises BrokenPipeError when nobody reads any more."""
    view = memoryview(data)
    while view:
        # Not a file object: a reader that plays in real time would block the loop, and with it
        # Ctrl-C.
        await writable(descriptor)
        try:
            view = view[os.write(descriptor, view[:_PIPE_BYTES]) :]
        except BlockingIOError:
            continue


def tell(line: str) -> None:
    """What people are to know, on standard error: a line as a rule."""
    lines = (visible(each) for each in line.split("\n"))
    sys.stderr.write("intone: " + "\n".join(lines) + "\n")


def tell_error(error: IntoneError) -> None:
    """The error, and on lines of their own the wrong fields that its message does not tell."""
    tell(str(error))
    for field, description in error.violations:
        line = f"{field}: {description}"
        if line not in error.message:
            sys.stderr.write(f"  {visible(line)}\n")


class Progress:
    """Times one stream and shows how it goes, if standard error is a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.sample_rate_hertz = 0
        self.sample_count = 0
        self._quiet = quiet
        self._live = sys.stderr.isatty() and not quiet
        self._first_text: float | None = None
        self._first_audio: float | None = None
        self._shown = 0.0

    @property
    def audio_seconds(self) -> float:
        """Audio received so far."""
        return self.sample_count / self.sample_rate_hertz if self.sample_rate_hertz else 0.0

    def on_text(self) -> None:
        """Text is about to be sent."""
        if self._first_text is None:
            self._first_text = time.monotonic()

    def on_audio(self, sample_count: int) -> None:
        """Audio has arrived."""
        now = time.monotonic()
        if self._first_audio is None:
            self._first_audio = now
        self.sample_count += sample_count
        if self._live and now - self._shown >= _PROGRESS_INTERVAL_SECONDS:
            self._shown = now
            sys.stderr.write(f"\r\x1b[K{self._line(None)}")
            sys.stderr.flush()

    def tell(self, line: str) -> None:
        """One line for people, clear of the progress line."""
        self._erase()
        tell(line)

    def summary(self, stats: tts_pb2.Stats | None) -> None:
        """The last line; `stats` are the server's, if the stream came to its end."""
        self._erase()
        if not self._quiet:
            sys.stderr.write(f"{self._line(stats)}\n")

    def _erase(self) -> None:
        if self._live and self._shown:
            sys.stderr.write("\r\x1b[K")

    def _line(self, stats: tts_pb2.Stats | None) -> str:
        if self._first_audio is None or self._first_text is None:
            return "no audio"
        # The server's figure counts only the time in which it spoke; ours also that in which it
        # waited for text.
        elapsed = max(time.monotonic() - self._first_text, 1e-9)
        speed = stats.speed if stats and stats.speed else self.audio_seconds / elapsed
        return (
            f"time to first audio {self._first_audio - self._first_text:.3f} s, "
            f"{self.audio_seconds:.2f} s of audio, {speed:.1f}x real time"
        )
