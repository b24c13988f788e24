"""The one list of voices: what ListVoices shows is exactly what a stream can use."""

import asyncio
import contextlib
import enum
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import structlog

from intone_server.audio.recording import PromptReport
from intone_server.engines.base import EngineInfo, EngineVoice, VoiceRef
from intone_server.errors import (
    InvalidRequest,
    NotPossible,
    Reason,
    Unavailable,
    Violation,
    VoiceExists,
    VoiceNotFound,
)
from intone_server.metrics import Metrics
from intone_server.voices.memory import MemoryFile
from intone_server.voices.record import Store, StoredVoice, VoiceRecord
from intone_server.voices.store import VoiceStore

log = structlog.stdlib.get_logger("intone.voices")

# A voice that could not be brought here may be there in a moment; no sooner than this.
RETRY_SECONDS = 5.0
# How long a call may wait for a voice: a few megabytes of download, once.
LOAD_SECONDS = 60.0


class Origin(enum.Enum):
    """Where a voice comes from."""

    BUILT_IN = "built_in"
    OPERATOR = "operator"
    CREATED = "created"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """A voice that streams can use.

    `ref` is what the engine is asked for. `file` holds the voice state and `digest` is its SHA-256
    (hexadecimal); for an engine's own voice both are known once it is `loaded`, if it has a state.
    `create_time` is in seconds since 1970, None for voices that were not created.
    """

    name: str
    language: str
    origin: Origin
    ref: VoiceRef
    file: str = ""
    digest: str = ""
    license: str = ""
    loaded: bool = False
    create_time: float | None = None
    labels: dict[str, str] = field(default_factory=dict)
    report: PromptReport | None = None


class Catalogue:
    """Voices by name: the engine's, and those in the store. A name is only ever looked up: it is
    never a path or an address.

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
        self._engine_voices = {voice.name: _of_engine(voice) for voice in info.voices}
        self._fingerprint = info.fingerprint
        self._store = store
        self._load = load
        self._loaded: set[str] = set()  # keys of created voices
        self._uses: Counter[str] = Counter()
        self._leaving: set[str] = set()  # being deleted
        # Other servers may delete what is in use here. Elsewhere than on Linux that is so.
        self._is_shared = isinstance(store, VoiceStore) and sys.platform == "linux"
        self._states: dict[str, MemoryFile] = {}  # in use, by key
        self._holders: Counter[str] = Counter()
        self.default = info.default_voice

    @property
    def in_memory(self) -> tuple[int, int]:
        """How many created voices this process holds in memory, and their bytes."""
        count, size = self._store.in_memory
        return count + len(self._states), size + sum(s.size for s in self._states.values())

    async def voices(self, language: str = "") -> list[Voice]:
        """All voices, or those of one language, ordered by name. Raises Unavailable."""
        with storage():
            stored = await asyncio.to_thread(self._store.all)
        found = {v.name: self._of_store(v) for v in stored if self._fits(v)} | self._engine_voices
        return sorted(
            (v for v in found.values() if language in ("", v.language)),
            key=lambda voice: voice.name,
        )

    async def get(self, name: str) -> Voice:
        """One voice. Raises VoiceNotFound or Unavailable."""
        if name in self._engine_voices:
            return self._engine_voices[name]
        with storage():
            stored = await asyncio.to_thread(self._store.get, name)
        if stored is None or not self._fits(stored):
            self._metrics.voice_requests.labels("not_found").inc()
            raise VoiceNotFound(name)
        return self._of_store(stored)

    @contextlib.asynccontextmanager
    async def in_use(self, voice: Voice) -> AsyncIterator[VoiceRef]:
        """Make the voice ready to speak, and keep it from being deleted here meanwhile. What the
        engine is to be asked for stays there also if another server deletes the voice.

        Raises Unavailable if its files cannot be had now.
        """
        if voice.name in self._leaving:
            raise VoiceNotFound(voice.name)
        self._uses[voice.name] += 1
        try:
            async with self._held(voice) as held:
                await self._make_ready(held)
                yield held.ref
        finally:
            self._uses[voice.name] -= 1
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

    async def export(self, name: str) -> tuple[bytes, Voice]:
        """The state of a voice as a safetensors file. Raises IntoneError."""
        voice = await self.get(name)
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

    async def delete(self, name: str) -> bool:
        """Delete a created voice; False if there is none. Raises IntoneError."""
        if name in self._engine_voices:
            description = f"{name!r} is part of the server; only created voices can be deleted"
            raise InvalidRequest(Reason.BAD_CONFIG, [Violation("name", description)])
        if self._uses[name]:
            raise NotPossible(
                Reason.VOICE_IN_USE, f"{self._uses[name]} calls speak with this voice now"
            )
        self._leaving.add(name)
        try:
            with storage():
                stored = await asyncio.to_thread(self._store.get, name)
                if stored is not None and not self._fits(stored):
                    return False  # nobody sees it here
                return await asyncio.to_thread(self._store.delete, name)
        finally:
            self._leaving.discard(name)

    async def check_free(self, name: str) -> None:
        """Raises VoiceExists if the name is taken, if only by a voice for another model."""
        with storage():
            stored = await asyncio.to_thread(self._store.get, name)
        if name in self._engine_voices or stored is not None:
            raise VoiceExists(name)

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
        ready = self._engine_voices[voice.name] = _of_engine(loaded)
        return ready

    def _fits(self, voice: StoredVoice) -> bool:
        """Whether a stored voice is one of this model's, and not hidden by one of its own."""
        return (
            voice.model_fingerprint == self._fingerprint and voice.name not in self._engine_voices
        )

    def _of_store(self, voice: StoredVoice) -> Voice:
        return of_record(voice, str(voice.file), loaded=voice.digest in self._loaded)


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


def of_record(voice: VoiceRecord, file: str, *, loaded: bool) -> Voice:
    """A created or imported voice as streams see it."""
    report = None
    if voice.report is not None:
        report = PromptReport(**voice.report | {"warnings": tuple(voice.report["warnings"])})
    return Voice(
        name=voice.name,
        language=voice.language,
        origin=Origin(voice.origin),
        ref=VoiceRef(voice.digest, file),
        file=file,
        digest=voice.digest,
        loaded=loaded,
        create_time=voice.create_time,
        labels=voice.labels,
        report=report,
    )


def _of_engine(voice: EngineVoice) -> Voice:
    return Voice(
        name=voice.name,
        language=voice.language,
        origin=Origin.OPERATOR if voice.operator else Origin.BUILT_IN,
        ref=VoiceRef(voice.name),
        file=voice.file,
        digest=voice.digest,
        license=voice.license,
        loaded=voice.loaded,
    )
