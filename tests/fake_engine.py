"""An engine whose behaviour is written into the text it speaks.

A text gives one frame of 80 ms for each word; all samples of a frame are one value, which tells
the text and the frame: see `frame_value`. Words with an @ are orders and give no frame:

    frames@N   N frames instead          delay@MS   every step takes that long
    fail@N     frame N raises            crash@N    the process dies at frame N
    stall@N    frame N never comes       nan@N      frame N holds a NaN
    loud@N     frame N is twice full scale           noend@1  ends like a length cap
    once@PATH  orders above hold only until the file PATH exists, which this makes

What happens is appended to the file named by FAKE_ENGINE_LOG: "start ID PID", "step ID
PID", "end ID PID", the last of the worker.

A voice state is STATE_PREFIX and anything. Among its words there may be orders too, carried out
when it is checked:

    sleep@MS   takes that long               dies@CODE  the process ends with this exit code
    raise@1    a fault in the engine         grow@MB    takes that much memory
    warn@WORD  comes with this warning
    level@N    all samples that are spoken with it are N thousandths

FAKE_ENGINE_FEATURES replaces the engine's features, a list with spaces between.
"""

import hashlib
import os
import select
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

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
    Sampling,
    VoiceRef,
    VoiceState,
)

# FAKE_ENGINE_SLOWNESS: how much longer than its texts say a step takes.
SLOWNESS = float(os.environ.get("FAKE_ENGINE_SLOWNESS", "1"))
FRAME = 1920
RATE = 24000
STATE_PREFIX = b"fake: "
FEATURES = "temperature seed voice_cloning voice_import"


def frame_value(text: str, frame: int) -> float:
    """The value of all samples of one frame: from 0.1 to 0.9."""
    return 0.1 + (zlib.crc32(f"{text}/{frame}".encode()) % 1000) / 1250


def features() -> frozenset[str]:
    """What the engine says it can do."""
    return frozenset(os.environ.get("FAKE_ENGINE_FEATURES", FEATURES).split())


def frames_of(text: str) -> int:
    """How many frames a text gives."""
    orders = dict(word.split("@", 1) for word in text.split() if "@" in word)
    words = [word for word in text.split() if "@" not in word]
    return int(orders.get("frames", len(words)).rstrip(".") if "frames" in orders else len(words))


class FakeEngine:
    """`Engine` without a model."""

    def __init__(self) -> None:
        self.capacity = int(os.environ.get("FAKE_ENGINE_CAPACITY", "1"))
        self.speeds: dict[int, float] = {}
        self._running: dict[int, tuple[Job, dict[str, str], int]] = {}
        self._levels: dict[str, float | None] = {}  # as in a real engine, kept by the key

    def load(self, options: EngineOptions) -> None:
        if options.model == "unloadable":
            raise EngineError("--model: unloadable cannot be loaded; choose another")
        if options.model == "broken":
            raise ZeroDivisionError("a fault in the engine")
        if options.model == "dies":
            os._exit(7)
        _sleep(os.environ.get("FAKE_ENGINE_LOAD_SECONDS", "0"))

    def attach(self, replicas: int) -> EngineInfo:
        _sleep(os.environ.get("FAKE_ENGINE_ATTACH_SECONDS", "0"))
        self.capacity = replicas or self.capacity
        return EngineInfo(
            engine="fake",
            engine_version="1",
            model="fake",
            languages=("en",),
            features=features(),
            sample_rate_hertz=RATE,
            max_segment_characters=200,
            default_voice="anna",
            voices=(
                EngineVoice("anna", "en", loaded=True),
                EngineVoice("bert", "en"),
                EngineVoice("unfetchable", "en"),
            ),
            sampling=Sampling(temperature=0.5),
            fingerprint="f" * 64,
        )

    def load_voice(self, voice: VoiceRef) -> EngineVoice:
        if voice.key == "unfetchable":
            raise EngineError("no network")
        if not voice.file:
            return EngineVoice(voice.key, "en", loaded=True, digest="d" * 64)
        self._levels[voice.key] = _level(_read(voice))
        return EngineVoice(voice.key, "en", loaded=True, digest=voice.key, file=voice.file)

    def make_state(self, prompt: Samples) -> VoiceState:
        if "voice_cloning" not in features():
            raise CloningUnavailable("the fake engine cannot clone voices")
        return _state(STATE_PREFIX + hashlib.sha256(prompt.tobytes()).hexdigest().encode())

    def check_state(self, data: bytes) -> VoiceState:
        if not data.startswith(STATE_PREFIX):
            raise BadState("this is not a voice state of the fake engine")
        orders = _orders(data.decode(errors="replace"))
        _sleep(orders.get("sleep", "0"), 1000)
        if "dies" in orders:
            os._exit(int(orders["dies"]))
        if "raise" in orders:
            raise ZeroDivisionError("a fault in the engine")
        _ = b"1" * (int(orders.get("grow", "0")) << 20)
        return _state(data, *([orders["warn"]] if "warn" in orders else []))

    def start(self, job: Job) -> None:
        orders = _orders(job.text)
        if "once" in orders:
            flag = Path(orders["once"])
            if flag.exists():
                orders = {}
            flag.touch()
        self._log("start", job)
        self._running[job.generation_id] = (job, orders, 0)

    def step(self) -> Sequence[Output]:
        return [self._step(*running) for running in list(self._running.values())]

    def _step(self, job: Job, orders: dict[str, str], frame: int) -> Output:
        if job.stop.is_set():
            return self._end(job, Ending.STOPPED)
        if job.voice.file and not frame:
            try:
                state = _read(job.voice)
                self._levels.setdefault(job.voice.key, _level(state))
            except EngineError as error:
                return self._end(job, Ending.FAILED, str(error))
        if frame >= frames_of(job.text):
            return self._end(job, Ending.NO_END if "noend" in orders else Ending.COMPLETE)
        self._log("step", job)
        _sleep(float(orders.get("delay", "0")) * SLOWNESS, 1000)

        def ordered(what: str) -> bool:
            return what in orders and int(orders[what]) == frame

        if ordered("fail"):
            return self._end(job, Ending.FAILED, "scripted failure")
        if ordered("crash"):
            os._exit(9)
        if ordered("stall"):
            time.sleep(3600)
        level = self._levels.get(job.voice.key)
        value = frame_value(job.text, frame) if level is None else level
        samples = np.full(FRAME, value, np.float32)
        if ordered("nan"):
            samples[7] = np.nan
        if ordered("loud"):
            samples[:] = 2.0
        self._running[job.generation_id] = (job, orders, frame + 1)
        return Output(job.generation_id, samples)

    def _end(self, job: Job, ending: Ending, error: str = "") -> Output:
        del self._running[job.generation_id]
        self._log("end", job)
        return Output(job.generation_id, ending=ending, error=error)

    def _log(self, what: str, job: Job) -> None:
        path = os.environ.get("FAKE_ENGINE_LOG")
        if path and job.generation_id:
            with Path(path).open("a") as file:
                file.write(f"{what} {job.generation_id} {os.getpid()}\n")


def _sleep(number: str | float, per_second: int = 1) -> None:
    """Not by time.sleep, whose deadlines libfaketime 0.9.10 spoils when the clock jumps."""
    select.select([], [], [], float(number) / per_second)


def _orders(text: str) -> dict[str, str]:
    return dict(word.rstrip(".").split("@", 1) for word in text.split() if "@" in word)


def _state(data: bytes, *warnings: str) -> VoiceState:
    return VoiceState(data, hashlib.sha256(data).hexdigest(), warnings)


def _level(state: bytes) -> float | None:
    """What is spoken with a state, if that says it."""
    orders = _orders(state.decode(errors="replace"))
    return int(orders["level"]) / 1000 if "level" in orders else None


def _read(voice: VoiceRef) -> bytes:
    """Fails if the file of a voice does not hold its state."""
    path = Path(voice.file)
    data = path.read_bytes() if path.exists() else b""
    if _state(data).digest != voice.key:
        raise EngineError(f"{path} is not the state of this voice")
    return data
