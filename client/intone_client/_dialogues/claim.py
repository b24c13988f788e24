"""The folder of a dialogue belongs to one command at a time."""

import contextlib
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from .timeline import FILE_NAME

if sys.platform != "win32":
    import fcntl


def make_folder(path: Path) -> bool:
    """Create the folder; whether it was not there. Raises OSError if it cannot be one."""
    if not path.parent.is_dir():
        raise NotADirectoryError(f"{path.parent} is not a directory")
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{path} is not a directory")
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


class FolderClaim:
    """A lock on a folder, which is created if need be: a context manager.

    The lock is the system's (`flock` on the folder itself): it ends with the process, however that
    ends, and leaves nothing behind. Where there is none, on Windows and some network drives, the
    claim holds nobody back. At its end a folder that it has made is removed if nothing was put
    there but a timeline: then the script, or all of its items, were refused.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._descriptor: int | None = None
        self._is_new = False

    def __enter__(self) -> Self:
        """Raises BlockingIOError if another process has the folder, and other OSErrors if it
        cannot be made."""
        while True:
            self._is_new = make_folder(self._path) or self._is_new
            if sys.platform == "win32":
                return self
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:  # whoever had it has just removed it
                continue
            self._lock()
            if self._is_there():
                return self
            os.close(self._descriptor)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_new:
            self._remove_unused()
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _lock(self) -> None:
        if sys.platform == "win32" or self._descriptor is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise BlockingIOError(
                f"another command is at work in {self._path}: wait for it, or name another folder"
            ) from None
        except OSError:
            pass  # this file system has no locks for folders

    def _is_there(self) -> bool:
        """Whether what is locked still has the name of the folder."""
        assert self._descriptor is not None
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except FileNotFoundError:
            return False

    def _remove_unused(self) -> None:
        with contextlib.suppress(OSError):
            if {each.name for each in self._path.iterdir()} <= {FILE_NAME, f"{FILE_NAME}.part"}:
                for each in self._path.iterdir():
                    each.unlink()
                self._path.rmdir()
