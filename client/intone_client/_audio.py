"""WAV files that grow."""

import stat
import wave
from pathlib import Path
from types import TracebackType
from typing import Self

_BYTES_PER_SAMPLE = 2


class WavWriter:
    """A WAV file of mono 16-bit little-endian samples, made as they arrive.

    Grows in `path` + ".part", whose header is right after every `write()`, also if the process is
    killed. `close()` puts it in the place of `path`; without any sample it leaves `path` alone.
    A context manager; leaving it by an exception keeps what was written.
    """

    def __init__(self, path: str | Path, sample_rate_hertz: int) -> None:
        """Create the file. Raises OSError if that is not possible, or `path` is no plain file."""
        # A link stays a link: what it points to is replaced.
        self.path = check_target(Path(path)).resolve()
        self.sample_rate_hertz = sample_rate_hertz
        #: Samples written.
        self.sample_count = 0
        self._part = self.path.with_name(self.path.name + ".part")
        self._file = self._part.open("wb")
        self._wave = wave.Wave_write(self._file)
        self._wave.setnchannels(1)
        self._wave.setsampwidth(_BYTES_PER_SAMPLE)
        self._wave.setframerate(sample_rate_hertz)

    def write(self, data: bytes) -> None:
        """Append whole samples. Raises OSError, for example if the disk is full."""
        self._wave.writeframes(data)
        self._file.flush()
        self.sample_count += len(data) // _BYTES_PER_SAMPLE

    def close(self) -> None:
        """Finish the file. Calling it again does nothing."""
        if self._file.closed:
            return
        self._wave.close()
        self._file.close()
        if self.sample_count:
            self._part.replace(self.path)
        else:
            self._part.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


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
