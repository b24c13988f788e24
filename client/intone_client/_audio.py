"""Audio files that grow."""

import contextlib
import stat
import wave
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

_BYTES_PER_SAMPLE = 2


class PartFile:
    """A file that grows in `path` + ".part" and takes the place of `path` at the end."""

    def __init__(self, path: str | Path) -> None:
        """Create the file. Raises OSError if that is not possible, or `path` is no plain file."""
        # A link stays a link: what it points to is replaced.
        self.path = check_target(Path(path)).resolve()
        self._part = self.path.with_name(self.path.name + ".part")
        self.file = self._part.open("w+b")

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return self.file.closed

    def write(self, data: bytes) -> None:
        """Append. What was written is there also if the process is killed. Raises OSError."""
        self.file.write(data)
        self.file.flush()

    def close(self, *, keep: bool) -> None:
        """Put the file in place, or remove it. Raises OSError."""
        if keep:
            self.file.close()
            self._part.replace(self.path)
        else:
            with contextlib.suppress(OSError):  # of a full disk, once more
                self.file.close()
            self._part.unlink()


class WavWriter:
    """A WAV file of mono 16-bit little-endian samples, made as they arrive.

    Grows in `path` + ".part", whose header is right after every `write()`, also if the process is
    killed. `close()` puts it in the place of `path`; without any sample it leaves `path` alone.
    A context manager; leaving it by an exception keeps what was written.
    """

    def __init__(self, path: str | Path, sample_rate_hertz: int) -> None:
        """Create the file. Raises OSError if that is not possible, or `path` is no plain file."""
        self._part = PartFile(path)
        self.path = self._part.path
        self.sample_rate_hertz = sample_rate_hertz
        #: Samples written.
        self.sample_count = 0
        self._wave = wave.Wave_write(self._part.file)
        self._wave.setnchannels(1)
        self._wave.setsampwidth(_BYTES_PER_SAMPLE)
        self._wave.setframerate(sample_rate_hertz)

    def write(self, data: bytes) -> None:
        """Append whole samples. Raises OSError, for example if the disk is full."""
        self._wave.writeframes(data)
        self._part.file.flush()
        self.sample_count += len(data) // _BYTES_PER_SAMPLE

    def close(self) -> None:
        """Finish the file. Calling it again does nothing."""
        if self._part.closed:
            return
        self._wave.close()
        self._part.close(keep=bool(self.sample_count))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def set_flac_length(file: BinaryIO, sample_count: int) -> None:
    """Write the length into a FLAC file that was streamed, where it could not be known before.

    Some readers refuse a file without it. Does nothing to other files. Raises OSError.
    """
    # RFC 9639, 8.2: after the marker, a block header of 4 bytes and four sizes, 64 bits hold rate,
    # channels, depth and, in the last 36 of them, the samples; 0 is unknown.
    file.seek(0)
    head = file.read(26)
    fields = int.from_bytes(head[18:], "big")
    if head.startswith(b"fLaC") and not fields % 2**36:
        file.seek(18)
        file.write((fields + sample_count).to_bytes(8, "big"))


def check_target(path: Path) -> Path:
    """`path`, if a file can be put there: a device or pipe would be replaced, not written to.

    Raises OSError that says what is wrong.
    """
    if not path.parent.is_dir():
        raise NotADirectoryError(f"{path.parent} is not a directory")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return path
    if not stat.S_ISREG(mode):
        raise OSError(f"{path} is not a plain file")
    return path
