"""The one list of voices: what ListVoices shows is exactly what a stream can use."""

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import structlog

from intone_server.engines.base import EngineInfo, EngineVoice, VoiceRef
from intone_server.errors import (
    InvalidRequest,
    NotAllowed,
    NotPossible,
    Reason,
    Unavailable,
    Violation,
    VoiceExists,
    VoiceNotFound,
)
from intone_server.metrics import Metrics
from intone_server.voices.memory import MemoryFile
from intone_server.voices.record import COMMON, Store, StoredVoice
from intone_server.voices.spaces import VoiceSpaces
from intone_server.voices.voice import Voice, of_engine, of_record

log = structlog.stdlib.get_logger("intone.voices")

# A voice that could not be brought here may be there in a moment; no sooner than this.
RETRY_SECONDS = 5.0
# How long a call may wait for a voice: a few megabytes of download, once.
LOAD_SECONDS = 60.0


class Catalogue:
    """Voices by name: the engine's, and those in the store. A name is only ever looked up: it is
    never a path or an address.

    `subject` is whom a caller has proved to be, "" where access is not controlled. A name means the
    engine's voice, else the caller's own, else one that all can use; what others keep for
    themselves is not there.

    `load` makes the engine ready for a voice; it raises LookupError with the reason if it cannot.
    """

    def __init__(
        self,
        info: EngineInfo,
        store: Store,
        load: Callable[[VoiceRef], Awaitable[EngineVoice]],
        metrics: Metrics | None = None,
    ) -> None:
        self._metrics = metrics or Metrics()
        self._engine_voices = {voice.name: of_engine(voice) for voice in info.voices}
        self._fingerprint = info.fingerprint
        self._store = store
        self._load = load
        self._loaded: set[str] = set()  # keys of created voices
        self._uses: Counter[tuple[str, str]] = Counter()  # by id
        self._leaving: set[tuple[str, str]] = set()  # being deleted
        # Other servers may delete what is in use here. Elsewhere than on Linux that is so.
        self._is_shared = isinstance(store, VoiceSpaces) and sys.platform == "linux"
        self._states: dict[str, MemoryFile] = {}  # in use, by key
        self._holders: Counter[str] = Counter()
        self.default = info.default_voice

    @property
    def in_memory(self) -> tuple[int, int]:
        """How many created voices this process holds in memory, and their bytes."""
        count, size = self._store.in_memory
        return count + len(self._states), size + sum(s.size for s in self._states.values())

    async def voices(self, subject: str, language: str = "") -> list[Voice]:
        """All voices that a caller can use, or those of one language, ordered by name. Raises
        Unavailable."""
        stored: list[StoredVoice] = []
        with storage():
            for space in reversed(_spaces(subject)):  # the later hide the earlier
                stored += await asyncio.to_thread(self._store.all, space)
        found = {v.name: self._of_store(v) for v in stored if self._fits(v)} | self._engine_voices
        return sorted(
            (v for v in found.values() if language in ("", v.language)),
            key=lambda voice: voice.name,
        )

    async def get(self, name: str, subject: str) -> Voice:
        """One voice. Raises VoiceNotFound or Unavailable."""
        if name in self._engine_voices:
            return self._engine_voices[name]
        with storage():
            for space in _spaces(subject):
                stored = await asyncio.to_thread(self._store.get, name, space)
                if stored is not None and self._fits(stored):
                    return self._of_store(stored)
        self._metrics.voice_requests.labels("not_found").inc()
        raise VoiceNotFound(name)

    @contextlib.asynccontextmanager
    async def in_use(self, voice: Voice) -> AsyncIterator[VoiceRef]:
        """Make the voice ready to speak, and keep it from being deleted here meanwhile. What the
        engine is to be asked for stays there also if another server deletes the voice.

        Raises Unavailable if its files cannot be had now.
        """
        if voice.id in self._leaving:
            raise VoiceNotFound(voice.name)
        self._uses[voice.id] += 1
        try:
            async with self._held(voice) as held:
                await self._make_ready(held)
                yield held.ref
        finally:
            self._uses[voice.id] -= 1
            self._uses += Counter()  # forget the zeros

    @contextlib.asynccontextmanager
    async def _held(self, voice: Voice) -> AsyncIterator[Voice]:
        """The voice with its state in memory, if its file is in a directory that others share."""
        if not (voice.ref.file and self._is_shared):
            yield voice
            return
        key = voice.ref.key
        if key not in self._states:
            with storage():
                try:
                    data = await asyncio.to_thread(Path(voice.ref.file).read_bytes)
                except FileNotFoundError:  # deleted meanwhile
                    raise VoiceNotFound(voice.name) from None
            if key not in self._states:  # another call may have been faster
                self._states[key] = MemoryFile(f"voice-{voice.name}", data)
        self._holders[key] += 1
        try:
            yield replace(voice, ref=VoiceRef(key, self._states[key].path))
        finally:
            self._holders[key] -= 1
            if not self._holders[key]:
                del self._holders[key]
                self._states.pop(key).close()

    async def export(self, name: str, subject: str) -> tuple[bytes, Voice]:
        """The state of a voice as a safetensors file. Raises IntoneError.

        Who has the state has the voice, on any server and for ever. To share a voice is to let
        others speak with it here, while it is here: its state is the owner's alone.
        """
        voice = await self.get(name, subject)
        if voice.create_time is not None:
            _check_owned(voice, subject, "export")
        if not voice.file:
            voice = await self._make_ready(voice)
        if not voice.file:
            raise NotPossible(
                Reason.CLONING_UNAVAILABLE, "voices of this engine have no state to export"
            )
        with storage():
            try:
                return await asyncio.to_thread(Path(voice.file).read_bytes), voice
            except FileNotFoundError:  # deleted meanwhile
                raise VoiceNotFound(name) from None

    async def delete(self, name: str, subject: str) -> bool:
        """Delete a created voice; False if there is none. Raises IntoneError."""
        if name in self._engine_voices:
            description = f"{name!r} is part of the server; only created voices can be deleted"
            raise InvalidRequest(Reason.BAD_CONFIG, [Violation("name", description)])
        try:
            voice = await self.get(name, subject)
        except VoiceNotFound:
            return False
        _check_owned(voice, subject, "delete")
        if self._uses[voice.id]:
            raise NotPossible(
                Reason.VOICE_IN_USE, f"{self._uses[voice.id]} calls speak with this voice now"
            )
        self._leaving.add(voice.id)
        try:
            with storage():
                return await asyncio.to_thread(self._store.delete, name, voice.space)
        finally:
            self._leaving.discard(voice.id)

    async def check_free(self, name: str, subject: str, *, shared: bool) -> None:
        """Raises VoiceExists if a caller cannot give the name to a voice: it is taken by the
        engine, by a voice of the caller, or, for one to be shared, by one that all can use. A voice
        for another model counts too. What others keep for themselves takes no name."""
        if name in self._engine_voices:
            raise VoiceExists(name)
        for space in _spaces(subject):
            with storage():
                stored = await asyncio.to_thread(self._store.get, name, space)
            if stored is not None and (shared or stored.owner == subject):
                raise VoiceExists(name)

    async def count_of(self, subject: str) -> int:
        """How many voices a caller has made, shared or not."""
        with storage():
            spaces = [await asyncio.to_thread(self._store.all, s) for s in _spaces(subject)]
        return sum(voice.owner == subject for voices in spaces for voice in voices)

    async def _make_ready(self, voice: Voice) -> Voice:
        if voice.loaded or voice.ref.key in self._loaded:
            self._metrics.voice_requests.labels("loaded").inc()
            return voice
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                loaded = await self._load(voice.ref)
            self._metrics.voice_requests.labels("load").inc()
        except (LookupError, TimeoutError) as error:
            self._metrics.voice_requests.labels("failed").inc()
            raise Unavailable(
                Reason.VOICE_UNAVAILABLE,
                "the files of this voice cannot be brought here now",
                retry_after=RETRY_SECONDS,
            ) from error
        if voice.name not in self._engine_voices:
            self._loaded.add(voice.ref.key)
            return replace(voice, loaded=True)
        ready = self._engine_voices[voice.name] = of_engine(loaded)
        return ready

    def _fits(self, voice: StoredVoice) -> bool:
        """Whether a stored voice is one of this model's, and not hidden by one of its own."""
        return (
            voice.model_fingerprint == self._fingerprint and voice.name not in self._engine_voices
        )

    def _of_store(self, voice: StoredVoice) -> Voice:
        return of_record(voice, str(voice.file), loaded=voice.digest in self._loaded)


def _spaces(subject: str) -> tuple[str, ...]:
    """Where a caller's names are looked up, in this order."""
    return (subject, COMMON) if subject != COMMON else (COMMON,)


def _check_owned(voice: Voice, subject: str, what: str) -> None:
    if not voice.is_owned_by(subject):
        raise NotAllowed(
            Reason.NOT_ALLOWED,
            f"{voice.name!r} is not yours: only the client that made a voice can {what} it",
        )


@contextlib.contextmanager
def storage() -> Iterator[None]:
    """Work with the voice directory. Raises Unavailable for its OSErrors, FileExistsError apart."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        log.error("voice directory", error=str(error))  # noqa: TRY400 - the reason is all there is
        raise Unavailable(
            Reason.VOICE_UNAVAILABLE,
            f"the voice directory cannot be used now: {error.strerror}",
            retry_after=RETRY_SECONDS,
        ) from error
