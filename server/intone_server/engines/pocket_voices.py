"""Voices of the pocket engine: from a name or a file to a voice state in memory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from pocket_tts.default_parameters import get_default_voice_for_language
from pocket_tts.utils.utils import (
    _ORIGINS_OF_PREDEFINED_VOICES,
    download_if_necessary,
    get_predefined_voice,
)

from intone_server.audio.containers import BadRecording
from intone_server.audio.recording import read_recording
from intone_server.engines.base import (
    BadState,
    EngineError,
    EngineOptions,
    EngineVoice,
    VoiceRef,
)
from intone_server.engines.pocket_cache import ByteCache
from intone_server.engines.pocket_files import check_reference, is_voice_state
from intone_server.engines.pocket_making import encode
from intone_server.engines.pocket_state import State, StateFormat, digest, size_bytes

log = structlog.stdlib.get_logger("intone.engine")


@dataclass(frozen=True, slots=True)
class LoadedVoice:
    """A voice state in memory. Generation works on a copy of it."""

    state: State
    digest: str
    bytes: int
    file: Path


class PocketVoices:
    """Voice states by reference. Only names that are listed here ever reach the library: its own
    prompt argument would open any path or address (fact 13)."""

    def __init__(
        self,
        model: Any,
        state_format: StateFormat,
        options: EngineOptions,
        language: str,
        *,
        predefined: bool,
    ) -> None:
        self._model = model
        self._format = state_format
        self._language = language
        self._directory = Path(options.state_directory)
        self._files = {name: Path(path) for name, path in options.voices}
        self._predefined = set(_ORIGINS_OF_PREDEFINED_VOICES) if predefined else set()
        self._cache: ByteCache[LoadedVoice] = ByteCache(options.voice_cache_bytes)
        self.default = options.default_voice or (
            get_default_voice_for_language(options.model) if predefined else ""
        )

    def load_first(self) -> tuple[EngineVoice, ...]:
        """Load the operator's voices and the default; returns all voices. Raises EngineError.

        The one method that runs the model: it makes voice states of the operator's recordings.
        """
        if self.default not in self._files and self.default not in self._predefined:
            names = ", ".join(sorted({*self._files, *self._predefined})) or "none"
            raise EngineError(f"--default-voice: no voice {self.default!r}; there are: {names}")
        for name, file in self._files.items():
            if not is_voice_state(file) and not self._kept(name).exists():
                self._keep(name, self._encode(name, file))
        return tuple(
            self.load(VoiceRef(name))
            if name in self._files or name == self.default
            else EngineVoice(name, self._language)
            for name in sorted({*self._files, *self._predefined})
        )

    def load(self, voice: VoiceRef) -> EngineVoice:
        """Make a voice ready. May wait for the network. Raises EngineError."""
        with self.use(voice) as loaded:
            return EngineVoice(
                name=voice.key,
                language=self._language,
                operator=voice.key in self._files,
                digest=loaded.digest,
                loaded=True,
                file=voice.file or str(loaded.file),
            )

    @contextmanager
    def use(self, voice: VoiceRef) -> Iterator[LoadedVoice]:
        """Hold a voice in memory for the time of a `with` block, loading it if this worker does
        not have it, or not any more. Raises EngineError."""
        with self._cache.use(voice.key, lambda: self._read(voice)) as loaded:
            yield loaded

    def _read(self, voice: VoiceRef) -> LoadedVoice:
        file = Path(voice.file) if voice.file else self._file_of(voice.key)
        source = f"--voice {voice.key}" if voice.key in self._files else f"voice {voice.key}"
        try:
            state = self._format.read(file.read_bytes())
        except OSError as error:
            raise EngineError(f"{source}: {file} cannot be read: {error}") from error
        except BadState as error:
            raise EngineError(f"{source}: {file}: {error}") from error
        found = digest(state)
        if voice.file and found != voice.key:
            raise EngineError(f"{source}: {file} holds another voice state, {found}")
        return LoadedVoice(state, found, size_bytes(state), file)

    def _file_of(self, name: str) -> Path:
        """The voice state of a voice of the operator or of the model, which is downloaded if it is
        not on this machine yet. Raises EngineError."""
        if name in self._files:
            return self._files[name] if is_voice_state(self._files[name]) else self._kept(name)
        if name not in self._predefined:
            raise EngineError(f"there is no voice {name!r}")
        reference = get_predefined_voice(self._model.origin.stem, name)
        check_reference(f"voice {name}", reference)
        try:
            return Path(download_if_necessary(reference))
        except Exception as error:
            raise EngineError(f"voice {name!r} cannot be downloaded: {error}") from error

    def _encode(self, name: str, file: Path) -> State:
        source = f"--voice {name}: {file}"
        if not self._model.has_voice_cloning:
            raise EngineError(
                f"{source} is a recording, and this model cannot clone voices: "
                "its weights are gated. Accept the terms of kyutai/pocket-tts on the hub and set "
                "HF_TOKEN, or give an exported voice state (.safetensors)."
            )
        try:
            prompt, report = read_recording(file.read_bytes(), self._model.sample_rate, judge=False)
        except (OSError, BadRecording) as error:
            raise EngineError(f"{source} cannot be read as a recording: {error}") from error
        for warning in report.warnings:
            log.warning("recording may make a bad voice", voice=name, reason=warning)
        try:
            return encode(self._model, prompt)
        except Exception as error:
            raise EngineError(f"{source}: no voice can be made from it: {error}") from error

    def _kept(self, name: str) -> Path:
        """Where the voice state of an operator's recording is."""
        return self._directory / f"{name}.safetensors"

    def _keep(self, name: str, state: State) -> None:
        """Leave a state for the other workers, whole or not at all."""
        file = self._kept(name)
        partial = file.with_suffix(f".{os.getpid()}.partial")
        partial.write_bytes(self._format.write(state))
        partial.replace(file)
