"""The model of pocket-tts and its voices. With the other `pocket` modules, the only importer of
torch and pocket_tts.

"Fact" numbers below are properties of pocket-tts 4.0.1 that `tests/test_pocket_server.py` checks.
"""

import logging
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from intone_server.audio import Samples
from intone_server.engines.base import (
    CloningUnavailable,
    EngineError,
    EngineInfo,
    EngineOptions,
    EngineVoice,
    Sampling,
    VoiceRef,
    VoiceState,
)
from intone_server.engines.pocket_files import ADVICE, check_files, check_voice, is_config_file

if TYPE_CHECKING:
    from intone_server.engines.pocket_state import StateFormat
    from intone_server.engines.pocket_voices import PocketVoices

log = structlog.stdlib.get_logger("intone.engine")

# The model is trained on sentences; past 50 tokens it may skip words (the library's own limit).
MAX_TOKENS = 50
# About four characters of English are one token.
MAX_SEGMENT_CHARACTERS = 200

_LANGUAGES = {
    "english": "en",
    "french": "fr",
    "german": "de",
    "portuguese": "pt",
    "italian": "it",
    "spanish": "es",
    "dutch": "nl",
}


class PocketModel:
    """What `PocketEngine` does beside speaking: it loads the model, its voices, and makes some."""

    def __init__(self) -> None:
        self._model: Any = None
        self._format: StateFormat
        self._voices: PocketVoices
        self._options = EngineOptions()
        self._defaults = Sampling()

    def load(self, options: EngineOptions) -> None:
        check_files(options.model)
        for name, file in options.voices:
            check_voice(name, Path(file))
        # The library logs timings of every call, and in one warning the user's text.
        logging.getLogger("pocket_tts").setLevel(logging.ERROR)
        # It says which int8 kernels it found, which decides whether int8 is worth having.
        logging.getLogger("pocket_tts.quantization").setLevel(logging.INFO)
        try:
            from pocket_tts import TTSModel
        except ImportError as error:
            raise EngineError(
                f"--engine pocket: pocket-tts cannot be imported ({error}); "
                "in a clone of intone: pip install '.[server]' -c constraints.txt"
            ) from error
        self._options = options
        source = "config" if is_config_file(options.model) else "language"
        try:
            self._model = TTSModel.load_model(**{source: options.model}, quantize=options.quantize)
        except Exception as error:
            raise EngineError(
                f"--model: {options.model} cannot be loaded: {error}. {ADVICE}"
            ) from error
        from intone_server.engines.pocket_state import StateFormat

        self._format = StateFormat(self._model, _model_name(options))

    def attach(self, replicas: int) -> EngineInfo:  # noqa: ARG002 - of the protocol
        from intone_server.engines.pocket_voices import PocketVoices

        model, options = self._model, self._options
        by_config = is_config_file(options.model)
        language = "" if by_config else _LANGUAGES.get(options.model.split("_")[0], "")
        self._voices = PocketVoices(
            model, self._format, options, language, predefined=not by_config
        )
        if not model.has_voice_cloning:
            log.warning(
                "this model cannot clone voices: its weights are gated",
                hint="accept the terms of kyutai/pocket-tts on the hub and set HF_TOKEN",
            )
        self._defaults = Sampling(
            temperature=model.temp,
            decode_steps=model.sampler_decode_steps,
            eos_threshold=model.eos_threshold,
            noise_clamp=model.noise_clamp,
            frames_after_eos=model.model_recommended_frames_after_eos,
        )
        return EngineInfo(
            engine="pocket",
            engine_version=version("pocket-tts"),
            model=_model_name(options),
            languages=(language,) if language else (),
            features=self._features(),
            sample_rate_hertz=model.sample_rate,
            max_segment_characters=MAX_SEGMENT_CHARACTERS,
            default_voice=self._voices.default,
            voices=self._voices.load_first(),
            sampling=self._defaults,
            fingerprint=self._format.fingerprint,
        )

    def load_voice(self, voice: VoiceRef) -> EngineVoice:
        return self._voices.load(voice)

    def make_state(self, prompt: Samples) -> VoiceState:
        from intone_server.engines.pocket_making import encode, try_out

        if not self._model.has_voice_cloning:
            raise CloningUnavailable(
                "the weights of this server cannot make voices from recordings; give a voice state "
                "that was exported elsewhere"
            )
        state = encode(self._model, prompt)
        return self._format.pack(state, try_out(self._model, state))

    def check_state(self, data: bytes) -> VoiceState:
        from intone_server.engines.pocket_making import MAX_POSITIONS

        return self._format.pack(self._format.read(data, max_positions=MAX_POSITIONS))

    @property
    def frame_samples(self) -> int:
        samples: int = round(self._model.sample_rate / self._model.config.mimi.frame_rate)
        return samples

    def _features(self) -> frozenset[str]:
        features = {"temperature", "eos_threshold", "noise_clamp", "frames_after_eos", "seed"}
        features.add("voice_import")
        # Other heads make their sample in one step, whatever is asked (fact 29).
        if self._model.config.flow_lm.flow.type in ("lsd", "flow_matching"):
            features.add("decode_steps")
        if self._model.has_voice_cloning:
            features.add("voice_cloning")
        return frozenset(features)

    def _tokens(self, text: str) -> int:
        tokens: int = self._model.flow_lm.conditioner.prepare(text).shape[1]
        return tokens


def _model_name(options: EngineOptions) -> str:
    return Path(options.model).stem
