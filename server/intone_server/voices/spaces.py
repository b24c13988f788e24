"""A directory of voices with a space for each client that has some.

The common voices are in the directory itself, where servers that know no owners see them too. Those
that a client keeps for itself are in `owner-<SHA-256 of the client>`, which such servers pass over.
"""

import contextlib
import hashlib
import os
import re
from pathlib import Path

from intone_server.voices.record import COMMON, StoredVoice, VoiceRecord
from intone_server.voices.store import DIRECTORY_MODE, VoiceStore, sync

_OWNER = re.compile("owner-[0-9a-f]{64}")


class VoiceSpaces:
    """A `VoiceStore` for each space, with its promises. Which spaces there are is asked of the
    disk, as other servers make some too."""

    def __init__(self, directory: Path) -> None:
        """As `VoiceStore`."""
        self._directory = directory
        self._common = VoiceStore(directory)
        self._owners: dict[str, VoiceStore] = {}  # by the name of their directory

    def create(self, voice: VoiceRecord, state: bytes) -> StoredVoice:
        """Keep a voice, as `VoiceStore.create` does."""
        store = self._space(voice.space)
        if store is None:
            store = self._make(self._directory / _directory_name(voice.space))
        return store.create(voice, state)

    def get(self, name: str, space: str = COMMON) -> StoredVoice | None:
        """The voice as it is on the disk now. Raises OSError if that cannot be told."""
        store = self._space(space)
        voice = store.get(name) if store else None
        return voice if voice and voice.space == space else None

    def all(self, space: str = COMMON) -> list[StoredVoice]:
        """All voices of a space, ordered by name. Raises OSError."""
        store = self._space(space)
        return [voice for voice in store.all() if voice.space == space] if store else []

    def count(self) -> int:
        """How many names are taken in all spaces. Raises OSError."""
        with os.scandir(self._directory) as entries:
            names = [each.name for each in entries if _OWNER.fullmatch(each.name)]
        return self._common.count() + sum(
            store.count() for store in map(self._owned, names) if store is not None
        )

    @property
    def in_memory(self) -> tuple[int, int]:
        """None: they are files."""
        return 0, 0

    def delete(self, name: str, space: str = COMMON) -> bool:
        """Remove a voice, as `VoiceStore.delete` does."""
        store = self._space(space)
        return store is not None and self.get(name, space) is not None and store.delete(name)

    def _space(self, space: str) -> VoiceStore | None:
        """The store of a space; None if nobody has made it."""
        return self._common if space == COMMON else self._owned(_directory_name(space))

    def _owned(self, directory_name: str) -> VoiceStore | None:
        directory = self._directory / directory_name
        if not directory.is_dir():
            return None
        if directory_name not in self._owners:
            self._owners[directory_name] = VoiceStore(directory)
        return self._owners[directory_name]

    def _make(self, directory: Path) -> VoiceStore:
        """Make the directory of an owner, for every server that can write in ours."""
        directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        with contextlib.suppress(OSError):  # some network file systems have no modes
            directory.chmod(self._directory.stat().st_mode & 0o7777)
        sync(self._directory)
        return VoiceStore(directory)


def _directory_name(owner: str) -> str:
    """Whatever an owner is called, this is a name like all others, and no path."""
    return f"owner-{hashlib.sha256(owner.encode()).hexdigest()}"
