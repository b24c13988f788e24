"""Voices of the pocket engine: from a name to a voice state."""

import hashlib
import os
from pathlib import Path
from typing import Any

import torch
from pocket_tts.data.audio import audio_read
from pocket_tts.data.audio_utils import convert_audio
from pocket_tts.default_parameters import get_default_voice_for_language
from pocket_tts.models.model_state import export_model_state
from pocket_tts.modules.stateful_module import init_states
from pocket_tts.utils.utils import (
    _ORIGINS_OF_PREDEFINED_VOICES,
    download_if_necessary,
    get_predefined_voice,
)

from intone_server.engines.base import EngineError, EngineOptions, EngineVoice
from intone_server.engines.pocket_files import check_reference, is_voice_state

# Encoding a recording takes memory that grows with the square of its length (fact 11).
MAX_PROMPT_SECONDS = 30

State = dict[str, dict[str, torch.Tensor]]


class PocketVoices:
    """Voice states by name. Only names that are listed here ever reach the library: its own prompt
    argument would open any path or address (fact 13)."""

    def __init__(
        self, model: Any, options: EngineOptions, language: str, *, predefined: bool
    ) -> None:
        self._model: Any = model
        self._language = language
        self._directory = options.state_directory
        self._files = {name: Path(path) for name, path in options.voices}
        self._model_name = options.model
        self._predefined = set(_ORIGINS_OF_PREDEFINED_VOICES) if predefined else set()
        self._states: dict[str, State] = {}
        self.default = options.default_voice or (
            get_default_voice_for_language(options.model) if predefined else ""
        )

    def load_first(self) -> tuple[EngineVoice, ...]:
        """Load the operator's voices and the default; returns all voices. Raises EngineError."""
        if self.default not in self._files and self.default not in self._predefined:
            names = ", ".join(sorted({*self._files, *self._predefined})) or "none"
            raise EngineError(f"--default-voice: no voice {self.default!r}; there are: {names}")
        self.fetch(self.default)
        loaded = {name: self.load(name) for name in {*self._files, self.default}}
        names_in_order = sorted({*self._files, *self._predefined})
        return tuple(loaded.get(name) or self._describe(name) for name in names_in_order)

    def fetch(self, name: str) -> None:
        """Download the state of a predefined voice, unless it is cached. Raises EngineError."""
        if name in self._predefined and name not in self._files:
            reference = get_predefined_voice(self._model.origin.stem, name)
            check_reference(f"voice {name}", reference)
            try:
                download_if_necessary(reference)
            except Exception as error:
                raise EngineError(f"voice {name!r} cannot be downloaded: {error}") from error

    def load(self, name: str) -> EngineVoice:
        """Make a voice ready. Raises EngineError."""
        self._states[name] = self._read(name)
        return self._describe(name)

    def state(self, name: str) -> State:
        """The state of a voice, loading it if this worker has not had it yet."""
        if name not in self._states:
            self.load(name)
        return self._states[name]

    def _describe(self, name: str) -> EngineVoice:
        state = self._states.get(name)
        return EngineVoice(
            name=name,
            language=self._language,
            operator=name in self._files,
            digest=digest(state) if state else "",
            loaded=state is not None,
        )

    def _read(self, name: str) -> State:
        file = self._files.get(name)
        if file is None:  # `fetch` has brought it: no network here, on the model's thread
            try:
                state: State = self._model.get_state_for_audio_prompt(name)
            except Exception as error:
                raise EngineError(f"voice {name!r} cannot be loaded: {error}") from error
            return state
        if is_voice_state(file):
            return self._read_state(name, file)
        kept = Path(self._directory) / f"{name}.safetensors"
        if not kept.exists():
            self._keep(self._encode(name, file), kept)
        return self._read_state(name, kept)

    def _read_state(self, name: str, file: Path) -> State:
        try:
            state: State = self._model.get_state_for_audio_prompt(file)
        except Exception as error:
            raise EngineError(f"--voice {name}: {file} is not a voice state: {error}") from error
        expected = init_states(self._model.flow_lm, batch_size=1, sequence_length=1)
        if _layout(state) != _layout(expected):
            raise EngineError(
                f"--voice {name}: {file} is a voice state of another model than {self._model_name}"
            )
        return state

    def _encode(self, name: str, file: Path) -> State:
        if not self._model.has_voice_cloning:
            raise EngineError(
                f"--voice {name}: {file} is a recording, and this model cannot clone voices: "
                "its weights are gated. Accept the terms of kyutai/pocket-tts on the hub and set "
                "HF_TOKEN, or give an exported voice state (.safetensors)."
            )
        try:
            samples, rate = audio_read(file)
        except Exception as error:
            raise EngineError(
                f"--voice {name}: {file} cannot be read as a recording ({error}); "
                "give a 16-bit PCM WAV file or an exported voice state (.safetensors)"
            ) from error
        samples = samples[..., : MAX_PROMPT_SECONDS * rate]
        try:
            prompt = convert_audio(samples, rate, self._model.sample_rate, 1)
            state: State = self._model.get_state_for_audio_prompt(prompt)
        except Exception as error:
            raise EngineError(
                f"--voice {name}: no voice can be made from {file}: {error}"
            ) from error
        return state

    def _keep(self, state: State, file: Path) -> None:
        """Leave a state for the other workers, whole or not at all."""
        partial = file.with_suffix(f".{os.getpid()}.partial")
        export_model_state(state, partial)
        partial.replace(file)


def digest(state: State) -> str:
    """SHA-256 in hexadecimal over the names, types, shapes and bytes of the tensors, in order of
    their names."""
    result = hashlib.sha256()
    for module in sorted(state):
        for key in sorted(state[module]):
            tensor = state[module][key].contiguous()
            result.update(f"{module}/{key} {tensor.dtype} {list(tensor.shape)}".encode())
            result.update(tensor.numpy().tobytes())
    return result.hexdigest()


def _layout(state: State) -> dict[str, tuple[int, ...]]:
    """Names and shapes, without the number of positions, in which states of one model differ."""
    return {
        f"{module}/{key}": tuple(
            0 if key == "cache" and axis == 2 else size for axis, size in enumerate(tensor.shape)
        )
        for module, tensors in state.items()
        for key, tensor in tensors.items()
    }
