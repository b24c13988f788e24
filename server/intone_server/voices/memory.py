"""Created and imported voices of one server, in its memory: gone when it ends, however it ends."""

import dataclasses
import errno
import os
import threading
from pathlib import Path

from intone_server.voices.record import (
    COMMON,
    OWNER_SHARE,
    StoredVoice,
    StoreFull,
    VoiceRecord,
)

# All states together. One of thirty seconds takes 19 MB.
MAX_BYTES = 256 * 1024 * 1024


class MemoryFile:
    """A file without a name (memfd_create(2)), which other processes of this server open through
    this one's entry in /proc. Linux only."""

    def __init__(self, name: str, data: bytes) -> None:
        self._descriptor = os.memfd_create(name)
        try:
            with os.fdopen(os.dup(self._descriptor), "wb") as file:
                file.write(data)
        except OSError:
            self.close()
            raise
        self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        self.size = len(data)

    def close(self) -> None:
        """Give the memory back; who has the file open can read on."""
        os.close(self._descriptor)


class MemoryStore:
    """Like `VoiceSpaces`, for a server without a directory of its own. Linux only."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        # By space and name.
        self._voices: dict[tuple[str, str], tuple[StoredVoice, MemoryFile]] = {}
        self._lock = threading.Lock()

    def create(self, voice: VoiceRecord, state: bytes) -> StoredVoice:
        """Keep a voice. Raises FileExistsError or StoreFull."""
        key = (voice.space, voice.name)
        with self._lock:
            if key in self._voices:
                raise FileExistsError(errno.EEXIST, "a voice of this name exists", voice.name)
            self._check_room(voice.owner, len(state))
            file = MemoryFile(f"voice-{voice.name}", state)
            fields = {f.name: getattr(voice, f.name) for f in dataclasses.fields(VoiceRecord)}
            stored = StoredVoice(**fields, file=Path(file.path))
            self._voices[key] = (stored, file)
            return stored

    def get(self, name: str, space: str = COMMON) -> StoredVoice | None:
        """The voice of this name."""
        found = self._voices.get((space, name))
        return found[0] if found else None

    def all(self, space: str = COMMON) -> list[StoredVoice]:
        """All voices of a space, ordered by name."""
        with self._lock:
            return [stored for (of, _), (stored, _) in sorted(self._voices.items()) if of == space]

    def count(self) -> int:
        """How many voices there are in all spaces."""
        return len(self._voices)

    @property
    def in_memory(self) -> tuple[int, int]:
        """How many there are, and their bytes."""
        with self._lock:
            return len(self._voices), sum(file.size for _, file in self._voices.values())

    def delete(self, name: str, space: str = COMMON) -> bool:
        """Forget a voice; False if there is none."""
        found = self._voices.pop((space, name), None)
        if found is None:
            return False
        found[1].close()
        return True

    def close(self) -> None:
        """Forget all."""
        for space, name in list(self._voices):
            self.delete(name, space)

    def _check_room(self, owner: str, size: int) -> None:
        """Raises StoreFull if a state of `size` bytes is too much, for all or for its owner."""
        kept = sum(file.size for _, file in self._voices.values())
        whose, limit = "the voices in memory", self._max_bytes
        if owner and kept + size <= limit:
            kept = sum(file.size for stored, file in self._voices.values() if stored.owner == owner)
            whose, limit = "the client's voices in memory", int(limit * OWNER_SHARE)
        if kept + size > limit:
            raise StoreFull(
                f"{whose} take {kept:,} bytes, and this one {size:,}, limit {limit:,}; "
                "a server with a --voice-dir keeps more"
            )
