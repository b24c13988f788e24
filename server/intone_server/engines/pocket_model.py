"""Kyutai's pocket-tts. With the other `pocket` modules, the only importer of torch and pocket_tts.

"Fact" numbers below are properties of pocket-tts 4.0.1 that `tests/test_pocket_server.py` checks.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from intone_server.audio import Samples
from intone_server.engines.base import (
    CloningUnavailable,
    Ending,
    EngineError,
    EngineInfo,
    EngineOptions,
    EngineVoice,
    Job,
    Output,
    Sampling,
    VoiceRef,
    VoiceState,
    describe,
)
from intone_server.engines.pocket_files import ADVICE, check_files, check_voice, is_config_file
from intone_server.engines.pocket_text import pieces

if TYPE_CHECKING:
    from intone_server.engines.pocket_state import StateFormat
    from intone_server.engines.pocket_voices import PocketVoices

log = structlog.stdlib.get_logger("intone.engine")

# The model is trained on sentences; past 50 tokens it may skip words (the library's own limit).
MAX_TOKENS = 50
# About four characters of English are one token.
MAX_SEGMENT_CHARACTERS = 200
# How long the model's threads may outlive an error before the process is given up.
THREAD_END_SECONDS = 2.0

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
    """`Engine` over `pocket_tts.TTSModel`, one generation at a time.

    A step gives one item of `generate_audio_stream`: usually one frame. After a stop the generator
    is drained to its end, which is when the library's own threads have ended; only then is the
    job over.
    """

    capacity = 1

    def __init__(self) -> None:
        self._model: Any = None
        self._format: StateFormat
        self._voices: PocketVoices
        self._options = EngineOptions()
        self._defaults = Sampling()
        self._running: tuple[Job, Iterator[Samples]] | None = None
        self._cap_frames = 0
        self._reached_cap = False

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

    def attach(self) -> EngineInfo:
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
        self._watch_length_cap()
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

    def start(self, job: Job) -> None:
        """No thread of the model is alive here, so its attributes can be set (fact 29)."""
        import torch

        model, wanted, default = self._model, job.sampling, self._defaults
        model.temp = _first(wanted.temperature, default.temperature)
        model.sampler_decode_steps = _first(wanted.decode_steps, default.decode_steps)
        model.eos_threshold = _first(wanted.eos_threshold, default.eos_threshold)
        model.noise_clamp = _first(wanted.noise_clamp, default.noise_clamp)
        torch.manual_seed(job.seed)
        self._running = (job, self._speak(job))

    def step(self) -> Sequence[Output]:
        if self._running is None:
            return ()
        job, frames = self._running
        try:
            samples = next(frames, None)
        except Exception as error:  # noqa: BLE001 - whatever the library raises costs this job alone
            job.stop.set()
            self._running = None
            self._wait_for_threads()
            message = str(error) if isinstance(error, EngineError) else describe(error)
            return (Output(job.generation_id, ending=Ending.FAILED, error=message),)
        if samples is not None:
            return (Output(job.generation_id, samples),)
        self._running = None
        ending = Ending.NO_END if self._reached_cap else Ending.COMPLETE
        return (Output(job.generation_id, ending=Ending.STOPPED if job.stop.is_set() else ending),)

    @property
    def _frame_samples(self) -> int:
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

    def _speak(self, job: Job) -> Iterator[Samples]:
        """float32 samples of shape (k * frame,), k >= 1, as they are decoded."""
        after_eos = _first(job.sampling.frames_after_eos, self._defaults.frames_after_eos)
        self._reached_cap = False
        with self._voices.use(job.voice) as voice:
            for text in pieces(job.text, self._tokens, MAX_TOKENS):
                made = 0
                stream = self._model.generate_audio_stream(
                    voice.state,
                    text,
                    # The text is cut already; cutting it again could only lose what was counted.
                    max_tokens=len(text) + MAX_TOKENS,
                    frames_after_eos=after_eos,
                    stop=job.stop,
                )
                for frame in stream:
                    made += frame.shape[-1]
                    yield frame.numpy()
                if made >= self._cap_frames * self._frame_samples:
                    self._reached_cap = True
                if job.stop.is_set():
                    return

    def _tokens(self, text: str) -> int:
        tokens: int = self._model.flow_lm.conditioner.prepare(text).shape[1]
        return tokens

    def _watch_length_cap(self) -> None:
        """Learn the model's own length cap of each text: reaching it is the only sign of a segment
        without an end, which the library merely logs (fact 27)."""
        estimate = self._model._estimate_max_gen_len

        def remember(token_count: int) -> int:
            self._cap_frames = estimate(token_count)
            return self._cap_frames

        self._model._estimate_max_gen_len = remember

    def _wait_for_threads(self) -> None:
        """After an error the library leaves threads behind (facts 4, 6, 7). If they do not end,
        this process is not fit to speak again."""
        for thread in threading.enumerate():
            if thread.name.endswith(("(run_generation)", "(_decode_audio_worker)")):
                thread.join(THREAD_END_SECONDS)
                if thread.is_alive():
                    raise RuntimeError(f"the model's thread {thread.name} did not end")


def _model_name(options: EngineOptions) -> str:
    return Path(options.model).stem


def _first(value: Any, default: Any) -> Any:
    return default if value is None else value
