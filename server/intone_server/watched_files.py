"""Files that are read again when they change, as secrets in a cluster do."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import structlog

log = structlog.stdlib.get_logger("intone.files")

# How often the files are looked at, while somebody asks.
CHECK_SECONDS = 1.0
MAX_BYTES = 4 * 1024 * 1024

Value = TypeVar("Value")
_State = tuple[tuple[int, ...] | None, ...]


class WatchedFiles(Generic[Value]):
    """What some files say together. While they are wrong, what they said before holds.

    They are looked at when `value` is asked for, through links: a mounted secret is replaced by
    turning one. `parse` is given the bytes of each and raises ValueError, without secrets in it.
    """

    def __init__(
        self,
        setting: str,
        paths: Sequence[str],
        parse: Callable[[Sequence[bytes]], Value],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`setting` is the flag that named them. Raises OSError or ValueError if they are wrong
        now."""
        self._setting = setting
        self._paths = [Path(path) for path in paths]
        self._parse = parse
        self._clock = clock
        self._state = self._look()
        self._value = self._read()
        self._looked_at = clock()

    @property
    def value(self) -> Value:
        """What the files say now."""
        now = self._clock()
        if now - self._looked_at >= CHECK_SECONDS:
            self._looked_at = now
            state = self._look()
            if state != self._state:
                self._state = state
                self._read_again()
        return self._value

    def _read_again(self) -> None:
        try:
            self._value = self._read()
        except (OSError, ValueError) as error:
            if isinstance(error, OSError):
                self._state = ()  # it may pass without a change: read again
            log.error(  # noqa: TRY400 - a traceback says nothing more
                "files changed, and are wrong: the old content holds",
                setting=self._setting,
                fault=fault_of(error),
            )
        else:
            log.info("files changed, and are read again", setting=self._setting)

    def _read(self) -> Value:
        contents = []
        for path in self._paths:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise ValueError(f"{path}: more than {MAX_BYTES:,} bytes")
            contents.append(content)
        return self._parse(contents)

    def _look(self) -> _State:
        return tuple(self._state_of(path) for path in self._paths)

    @staticmethod
    def _state_of(path: Path) -> tuple[int, ...] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def fault_of(error: OSError | ValueError) -> str:
    """What is wrong, for a person."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return str(error)
