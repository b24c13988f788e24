"""The small English voice inside the `hibari-tts` package: offline, without torch.

It makes a whole sentence in one call (about 130 times real time), so it stops within one call
rather than one frame.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from intone_server.audio import Samples
from intone_server.engines.base import (
    BadState,
    CloningUnavailable,
    Ending,
    EngineError,
    EngineInfo,
    EngineOptions,
    EngineVoice,
    Job,
    Output,
    VoiceRef,
    VoiceState,
    describe,
)

if TYPE_CHECKING:
    from hibari import Hibari

# The voice inside the wheel. The package's other voices are downloads, which this engine is for
# doing without.
VOICE = EngineVoice(name="heart", language="en", license="Apache-2.0", loaded=True)
MODEL = f"hibari-{VOICE.name}"
# What `--model` holds when nobody set it.
DEFAULT_MODEL = "english"
# The library cuts what is over 400 phonemes at punctuation; a code point of English is at most
# about one phoneme.
MAX_SEGMENT_CHARACTERS = 300


class BuiltinEngine:
    """`Engine` over hibari-tts. Features: seed."""

    capacity = 1
    speeds: Mapping[int, float] = MappingProxyType({})  # it was not measured

    def __init__(self) -> None:
        self._tts: Hibari | None = None
        self._running: tuple[Job, Iterator[Samples]] | None = None

    def load(self, options: EngineOptions) -> None:
        """Check the options. The session of onnxruntime has to wait for `attach`: it may own
        threads, which a fork would lose."""
        if options.model not in (DEFAULT_MODEL, MODEL):
            raise EngineError(
                f"--model: the builtin engine has the model {MODEL} alone, not {options.model!r}; "
                "leave --model away, or use --engine pocket"
            )
        if options.voices:
            raise EngineError(
                "--voice: the builtin engine cannot add voices; use --engine pocket for that"
            )
        if options.quantize:
            raise EngineError("--quantize: the builtin engine has one size of model; leave it out")
        if options.default_voice not in ("", VOICE.name):
            raise EngineError(
                f"--default-voice: the builtin engine has the voice {VOICE.name!r} alone, "
                f"not {options.default_voice!r}"
            )

    def attach(self, replicas: int) -> EngineInfo:
        if replicas > 1:
            raise EngineError(
                f"--replicas={replicas}: the builtin engine runs one in a worker; use --workers"
            )
        try:
            from hibari import Hibari
        except ImportError as error:
            raise EngineError(
                f"--engine builtin: hibari-tts cannot be imported ({error}); "
                "in a clone of intone: pip install '.[builtin]'"
            ) from error
        self._tts = Hibari(voice=VOICE.name)
        return EngineInfo(
            engine="builtin",
            engine_version=version("hibari-tts"),
            model=MODEL,
            languages=("en",),
            features=frozenset({"seed"}),
            sample_rate_hertz=self._tts.sample_rate,
            max_segment_characters=MAX_SEGMENT_CHARACTERS,
            default_voice=VOICE.name,
            voices=(VOICE,),
        )

    def load_voice(self, voice: VoiceRef) -> EngineVoice:
        if voice.key != VOICE.name:
            raise EngineError(f"the builtin engine has no voice {voice.key!r}")
        return VOICE

    def make_state(self, prompt: Samples) -> VoiceState:  # noqa: ARG002 - of the protocol
        raise CloningUnavailable("the builtin engine cannot clone voices")

    def check_state(self, data: bytes) -> VoiceState:  # noqa: ARG002 - of the protocol
        raise BadState("the builtin engine has no voice states")

    def start(self, job: Job) -> None:
        self._running = (job, self._speak(job))

    def step(self) -> Sequence[Output]:
        if self._running is None:
            return ()
        job, parts = self._running
        try:
            samples = None if job.stop.is_set() else next(parts, None)
        except Exception as error:  # noqa: BLE001 - whatever the library raises costs this job alone
            self._running = None
            return (Output(job.generation_id, ending=Ending.FAILED, error=describe(error)),)
        if samples is not None:
            return (Output(job.generation_id, samples),)
        self._running = None
        ending = Ending.STOPPED if job.stop.is_set() else Ending.COMPLETE
        return (Output(job.generation_id, ending=ending),)

    def _speak(self, job: Job) -> Iterator[Samples]:
        """One array of float32 samples per sentence of the segment."""
        assert self._tts is not None
        noise = np.random.default_rng(job.seed)
        # Numbers that were spelt out make a segment longer than it was cut.
        pieces = textwrap.wrap(job.text, MAX_SEGMENT_CHARACTERS) or [job.text]
        for phonemes in chain.from_iterable(map(self._tts.phonemize, pieces)):
            yield self._tts.from_ids(self._tts.ids(phonemes), rng=noise)
