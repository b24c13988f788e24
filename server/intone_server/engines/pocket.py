"""Kyutai's pocket-tts. With the other `pocket` modules, the only importer of torch and pocket_tts.

"Fact" numbers below are properties of pocket-tts 4.0.1 that `tests/test_pocket_server.py` checks.
"""

import logging
from collections.abc import Mapping, Sequence
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
    Job,
    Output,
    Sampling,
    VoiceRef,
    VoiceState,
)
from intone_server.engines.pocket_files import ADVICE, check_files, check_voice, is_config_file
from intone_server.engines.pocket_tuning import available_cores, chosen_replicas, measured_speeds

if TYPE_CHECKING:
    from intone_server.engines.pocket_batch import DecoderRows
    from intone_server.engines.pocket_private import FlowParts
    from intone_server.engines.pocket_rows import Rows
    from intone_server.engines.pocket_state import StateFormat
    from intone_server.engines.pocket_voices import PocketVoices

log = structlog.stdlib.get_logger("intone.engine")

# Twice the rows that are chosen at most when nobody says how many.
MAX_ROWS = 16
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


class PocketEngine:
    """`Engine` over `pocket_tts.TTSModel`, many generations at a time on one set of weights."""

    def __init__(self) -> None:
        self._model: Any = None
        self._format: StateFormat
        self._voices: PocketVoices
        self._options = EngineOptions()
        self._flow_parts: FlowParts
        self._decoder: DecoderRows
        self._rows: Rows
        self.speeds: Mapping[int, float] = {}

    @property
    def capacity(self) -> int:
        return self._rows.count

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
        from intone_server.engines.pocket_batch import DecoderRows
        from intone_server.engines.pocket_private import DecoderParts, FlowParts, check
        from intone_server.engines.pocket_state import StateFormat

        self._format = StateFormat(self._model, _model_name(options))
        check(self._model)
        self._flow_parts = FlowParts(self._model)
        # Here, so that all workers share what it makes of the weights.
        self._decoder = DecoderRows(DecoderParts(self._model), MAX_ROWS)

    def attach(self, replicas: int) -> EngineInfo:
        import torch

        from intone_server.engines.pocket_voices import PocketVoices

        if replicas > MAX_ROWS:
            raise EngineError(f"--replicas={replicas}: the pocket engine runs up to {MAX_ROWS}")
        model, options = self._model, self._options
        threads = options.threads or min(2, available_cores())
        torch.set_num_threads(max(1, threads // 2))
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
        defaults = Sampling(
            temperature=model.temp,
            decode_steps=model.sampler_decode_steps,
            eos_threshold=model.eos_threshold,
            noise_clamp=model.noise_clamp,
            frames_after_eos=model.model_recommended_frames_after_eos,
        )
        info = EngineInfo(
            engine="pocket",
            engine_version=version("pocket-tts"),
            model=_model_name(options),
            languages=(language,) if language else (),
            features=self._features(),
            sample_rate_hertz=model.sample_rate,
            max_segment_characters=MAX_SEGMENT_CHARACTERS,
            default_voice=self._voices.default,
            voices=self._voices.load_first(),
            sampling=defaults,
            fingerprint=self._format.fingerprint,
        )
        self._rows = self._new_rows(defaults, replicas or MAX_ROWS, own_thread=threads > 1)
        if not replicas:
            # What all workers together need of the cores, each gets its share of.
            share = min(1.0, available_cores() / (threads * options.workers))
            alone = measured_speeds(self._rows, self._voices.default)
            self.speeds = {rows: share * speed for rows, speed in alone.items()}
            self._rows.use(chosen_replicas(self.speeds))
            log.info(
                "replicas chosen",
                replicas=self.capacity,
                speeds={rows: round(speed, 2) for rows, speed in self.speeds.items()},
            )
        return info

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

    def start(self, job: Job) -> None:
        self._rows.start(job)

    def step(self) -> Sequence[Output]:
        return self._rows.step()

    def _new_rows(self, defaults: Sampling, count: int, *, own_thread: bool) -> "Rows":
        from intone_server.engines.pocket_batch import FlowRows
        from intone_server.engines.pocket_decoding import Decoding
        from intone_server.engines.pocket_making import MAX_POSITIONS
        from intone_server.engines.pocket_private import longest_speech, voice_length
        from intone_server.engines.pocket_rows import MAX_PROMPT_TOKENS, Rows

        positions = MAX_POSITIONS
        for name, _ in self._options.voices:
            with self._voices.use(VoiceRef(name)) as voice:
                positions = max(positions, voice_length(voice.state))
        positions += MAX_PROMPT_TOKENS + longest_speech(self._model, MAX_PROMPT_TOKENS)
        return Rows(
            self._model,
            FlowRows(self._flow_parts, count, positions),
            Decoding(self._decoder, own_thread=own_thread),
            self._voices,
            defaults,
            count=count,
            # In int8 the library scales a text as a whole: parts of it would come out differently.
            whole_texts=self._options.quantize,
        )

    def _features(self) -> frozenset[str]:
        features = {"temperature", "eos_threshold", "noise_clamp", "frames_after_eos", "seed"}
        features.add("voice_import")
        # Other heads make their sample in one step, whatever is asked (fact 29).
        if self._model.config.flow_lm.flow.type in ("lsd", "flow_matching"):
            features.add("decode_steps")
        if self._model.has_voice_cloning:
            features.add("voice_cloning")
        return frozenset(features)


def _model_name(options: EngineOptions) -> str:
    return Path(options.model).stem
