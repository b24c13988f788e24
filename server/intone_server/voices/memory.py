"""Created and imported voices of one server, in its memory: gone when it ends, however it ends."""

import dataclasses
import errno
import os
import threading
from pathlib import Path

from intone_server.voices.record import StoredVoice, StoreFull, VoiceRecord

# All states together. One of thirty seconds takes 19 MB.
MAX_BYTES = 256 * 1024 * 1024


class MemoryFile:
    """A file without a name (memfd_create(2)), which other processes of this server open through
    this one's entry in /proc. Linux only."""

    def __init__(self, name: str, data: bytes) -> None:
        self._descriptor = os.memfd_create(name)
        with os.fdopen(os.dup(self._descriptor), "wb") as file:
            file.write(data)
        self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        self.size = len(data)

    def close(self) -> None:
        """Give the memory back; who has the file open can read on."""
        os.close(self._descriptor)


class MemoryStore:
    """Like `VoiceStore`, for a server without a directory of its own. Linux only."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._voices: dict[str, tuple[StoredVoice, MemoryFile]] = {}
        self._lock = threading.Lock()

    def create(self, voice: VoiceRecord, state: bytes) -> StoredVoice:
        """Keep a voice. Raises FileExistsError or StoreFull."""
        with self._lock:
            if voice.name in self._voices:
                raise FileExistsError(errno.EEXIST, "a voice of this name exists", voice.name)
            kept = sum(file.size for _, file in self._voices.values())
            if kept + len(state) > self._max_bytes:
                raise StoreFull(
                    f"the voices in memory take {kept:,} bytes, and this one {len(state):,}, limit "
                    f"{self._max_bytes:,}; a server with a --voice-dir keeps more"
                )
            file = MemoryFile(f"voice-{voice.name}", state)
            fields = {f.name: getattr(voice, f.name) for f in dataclasses.fields(VoiceRecord)}
            stored = StoredVoice(**fields, file=Path(file.path))
            self._voices[voice.name] = (stored, file)
            return stored

    def get(self, name: str) -> StoredVoice | None:
        """The voice of this name."""
        found = self._voices.get(name)
        return found[0] if found else None

    def all(self) -> list[StoredVoice]:
        """All voices, ordered by name."""
        with self._lock:
            return [stored for _, (stored, _) in sorted(self._voices.items())]

    def count(self) -> int:
        """How many voices there are."""
        return len(self._voices)

    @property
    def in_memory(self) -> tuple[int, int]:
        """How many there are, and their bytes."""
        with self._lock:
            return len(self._voices), sum(file.size for _, file in self._voices.values())

    def delete(self, name: str) -> bool:
        """Forget a voice; False if there is none."""
        found = self._voices.pop(name, None)
        if found is None:
            return False
        found[1].close()
        return True

    def close(self) -> None:
        """Forget all."""
        for name in list(self._voices):
            self.delete(name)
