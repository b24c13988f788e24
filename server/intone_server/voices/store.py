"""Created and imported voices in a directory that several servers may share, without locks.

A voice is two files: `NAME.<random>.safetensors`, its state, and `NAME.json`, which tells the rest
and names the state. The voice is there exactly while `NAME.json` is: that file appears whole, by a
hard link from a temporary name, after everything else is on the disk, and disappears by a rename.
All other files are invisible, and whoever works in the directory removes them once they are old.

A file system without hard links gets an empty `NAME.json` as a claim, which the whole one then
replaces. The claim is no voice either, but if a server dies between the two calls its name is taken
until the claim is old. An NFS client may see a change as late as its `acdirmax` allows.
"""

import contextlib
import errno
import math
import os
import re
import secrets
import stat
import threading
import time
from pathlib import Path

import structlog

from intone_server.setting_values import VOICE_NAME
from intone_server.voices.record import (
    MAX_JSON_BYTES,
    STATE_FILE,
    StoredVoice,
    VoiceRecord,
    from_json,
    to_json,
)

log = structlog.stdlib.get_logger("intone.voices")

# A voice tells who somebody is by their sound: nothing for other users. The group may read, for
# servers that share a directory and not a user; the umask can take that away too.
FILE_MODE = 0o640
DIRECTORY_MODE = 0o770
# A file that nothing names and that has not changed for this long is left over from a crash.
LEFTOVER_SECONDS = 3600.0
# A slower creation gives up: another server could take its files for leftovers.
GIVE_UP_SECONDS = LEFTOVER_SECONDS / 2
# link(2): how file systems say that they have no hard links.
NO_HARD_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP)

_JSON = re.compile(rf"({VOICE_NAME.pattern})\.json")
_TEMPORARY = re.compile(rf"\.{VOICE_NAME.pattern}\.[0-9a-f]{{16}}\.partial")


class VoiceStore:
    """The voices of one directory. Every call reads the disk, and blocks meanwhile; calls may come
    from any thread. A directory that cannot be written serves for reading."""

    def __init__(self, directory: Path) -> None:
        """Make the directory if only it is missing. Raises OSError that says what is wrong."""
        if not directory.exists():
            directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        if not directory.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "is not a directory", str(directory))
        if not os.access(directory, os.R_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "directory is not readable", str(directory))
        self._directory = directory
        self._lock = threading.Lock()
        self._reported: set[Path] = set()
        self._next_sweep = -math.inf

    def create(self, voice: VoiceRecord, state: bytes) -> StoredVoice:
        """Keep a voice; when this returns, it is on the disk.

        Raises FileExistsError if the name is taken, also when another server takes it meanwhile;
        ValueError if the record is not as VoiceRecord says or longer than MAX_JSON_BYTES; OSError
        if the voice cannot be written, and then there is none or, rarely, a whole one.
        """
        started = time.monotonic()
        file = self._directory / f"{voice.name}.{secrets.token_hex(8)}.safetensors"
        data = to_json(voice, file.name)
        stored = from_json(voice.name, data, self._directory)
        published = self._json(voice.name)
        if published.exists():
            raise FileExistsError(errno.EEXIST, "a voice of this name exists", voice.name)
        temporary = self._temporary(voice.name)
        try:
            _write(file, state)
            _write(temporary, data)
            self._sync()
            _give_up_if_late(started)
        except BaseException:
            _remove(file, temporary)
            raise
        try:
            _publish(temporary, published)
        except FileExistsError:
            _remove(file, temporary)
            raise
        # After any other fault the voice may be there, or may come to be: both files stay then.
        _remove(temporary)
        self._sync()
        self._sweep()
        return stored

    def get(self, name: str) -> StoredVoice | None:
        """The voice as it is on the disk now. Raises OSError if that cannot be told."""
        if not VOICE_NAME.fullmatch(name):
            return None
        voice = self._described(name, self._json(name))
        return voice if voice is not None and self._has_state(voice) else None

    def all(self) -> list[StoredVoice]:
        """All voices, ordered by name. Files that tell of no voice are skipped, and logged once.
        Raises OSError if the directory cannot be listed."""
        with os.scandir(self._directory) as entries:
            names = {entry.name for entry in entries}
        voices = []
        for file_name in sorted(names):
            if file_name.startswith(".") or not file_name.endswith(".json"):
                continue
            match = _JSON.fullmatch(file_name)
            if match is None:
                self._skip(self._directory / file_name, "its name is not that of a voice")
                continue
            try:
                voice = self._described(match[1], self._directory / file_name)
                # A listing is no snapshot: a state that came during it may be missing in it.
                if voice and (voice.file.name in names or self._has_state(voice)):
                    voices.append(voice)
            except OSError as error:
                self._skip(self._directory / file_name, f"cannot be read: {error.strerror}")
        self._sweep()
        return sorted(voices, key=lambda voice: voice.name)

    def count(self) -> int:
        """How many names are taken. Unlike `all` this opens no file, and counts those too whose
        file this server cannot read."""
        with os.scandir(self._directory) as entries:
            taken = sum(_JSON.fullmatch(entry.name) is not None for entry in entries)
        self._sweep()  # an owner may never come back to a directory
        return taken

    def delete(self, name: str) -> bool:
        """Remove a voice, from the disk too; False if there is none, or another server was first.
        Who has its state open can read on. Raises OSError if it cannot be removed."""
        if not VOICE_NAME.fullmatch(name) or self._described(name, self._json(name)) is None:
            return False
        # A rename takes exactly one voice away, so the state removed after it is that voice's:
        # unlinking could meet a voice that another server has just made under the name.
        doomed = self._temporary(name)
        try:
            self._json(name).rename(doomed)
        except FileNotFoundError:
            if not doomed.exists():  # else NFS, as in `_publish`
                return False
        self._sync()
        voice = self._described(name, doomed)
        if voice is not None:
            _remove(voice.file)
        _remove(doomed)
        self._sync()
        self._sweep()
        return True

    def _json(self, name: str) -> Path:
        return self._directory / f"{name}.json"

    def _temporary(self, name: str) -> Path:
        return self._directory / f".{name}.{secrets.token_hex(8)}.partial"

    def _described(self, name: str, file: Path) -> StoredVoice | None:
        """The voice that a JSON file tells of, or None; whether its state is there is not asked."""
        try:
            return from_json(name, _read(file), self._directory)
        except ValueError as error:
            self._skip(file, str(error))
        except OSError as error:
            # ESTALE: another machine has deleted it while it was open here.
            if error.errno not in (errno.ENOENT, errno.ESTALE):
                raise
        return None

    def _has_state(self, voice: StoredVoice) -> bool:
        if voice.file.exists():
            return True
        if self._json(voice.name).exists():  # else it was deleted just now
            self._skip(self._json(voice.name), f"its state {voice.file.name} is missing")
        return False

    def _skip(self, file: Path, reason: str) -> None:
        with self._lock:
            if file in self._reported:
                return
            self._reported.add(file)
        log.warning("file in the voice directory skipped", file=str(file), reason=reason)

    def _sync(self) -> None:
        sync(self._directory)

    def _sweep(self) -> None:
        """Remove what crashes have left over, at most once in LEFTOVER_SECONDS. Never raises."""
        with self._lock:
            if time.monotonic() < self._next_sweep:
                return
            self._next_sweep = time.monotonic() + LEFTOVER_SECONDS
        removed = 0
        with contextlib.suppress(OSError):  # a directory for reading only, or a deletion meanwhile
            before = self._now() - LEFTOVER_SECONDS
            for file in self._directory.iterdir():
                with contextlib.suppress(OSError):
                    if self._is_leftover(file, before):
                        file.unlink()
                        removed += 1
        if removed:
            log.info("leftovers in the voice directory removed", files=removed)

    def _now(self) -> float:
        """The time by the clock that stamps the files: a file server's may differ from ours."""
        probe = self._temporary("now")
        _write(probe, b"")
        now = probe.stat().st_ctime
        probe.unlink()
        return now

    def _is_leftover(self, file: Path, before: float) -> bool:
        status = file.lstat()
        # Not st_mtime: a backup that is being restored sets it back, states before their JSON.
        if status.st_ctime > before:
            return False
        if _TEMPORARY.fullmatch(file.name):
            return True
        if _JSON.fullmatch(file.name):
            return status.st_size == 0  # a claim
        match = STATE_FILE.fullmatch(file.name)
        if match is None:
            return False
        try:
            voice = from_json(match[1], _read(self._json(match[1])), self._directory)
        except FileNotFoundError:
            return True
        except ValueError:  # a newer server may have written it
            return False
        return voice.file.name != file.name


def sync(directory: Path) -> None:
    """Return when the names in a directory are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems do it unasked
            raise
    finally:
        os.close(descriptor)


def _write(file: Path, data: bytes) -> None:
    """Return when a new file with this content is on the disk."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(descriptor)


def _read(file: Path) -> bytes:
    """The bytes of a JSON file. Raises OSError, or ValueError if it cannot be one."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)  # a pipe must not hold us up
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("is not a file")
        if status.st_size > MAX_JSON_BYTES:
            raise ValueError(f"has {status.st_size:,} bytes, limit {MAX_JSON_BYTES:,}")
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def _remove(*files: Path) -> None:
    """Remove files; one that cannot be removed now is invisible, and swept later."""
    for file in files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            log.warning("voice file not removed yet", file=str(file), error=error.strerror)


def _give_up_if_late(started: float) -> None:
    if time.monotonic() - started > GIVE_UP_SECONDS:
        raise TimeoutError(errno.ETIMEDOUT, "the voice directory is too slow")


def _publish(temporary: Path, published: Path) -> None:
    """Give a file its final name. Raises FileExistsError if that is taken."""
    try:
        published.hardlink_to(temporary)
    except FileExistsError:
        # An NFS client that repeats a lost request is told of its own success as a failure;
        # the number of links tells the truth: open(2), O_EXCL.
        if temporary.stat().st_nlink < 2:
            raise
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
        os.close(os.open(published, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
        temporary.replace(published)
