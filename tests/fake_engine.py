"""An engine whose behaviour is written into the text it speaks.

A text gives one frame of 80 ms for each word; all samples of a frame are one value, which tells
the text and the frame: see `frame_value`. Words with an @ are orders and give no frame:

    frames@N   N frames instead          delay@MS   every step takes that long
    fail@N     frame N raises            crash@N    the process dies at frame N
    stall@N    frame N never comes       nan@N      frame N holds a NaN
    loud@N     frame N is twice full scale           noend@1  ends like a length cap
    once@PATH  orders above hold only until the file PATH exists, which this makes

What happens is appended to the file named by FAKE_ENGINE_LOG: "start ID", "step ID", "end ID".
"""

import os
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from intone_server.engines.base import (
    Ending,
    EngineError,
    EngineInfo,
    EngineOptions,
    EngineVoice,
    Job,
    Output,
    Sampling,
    VoiceRef,
)

FRAME = 1920
RATE = 24000


def frame_value(text: str, frame: int) -> float:
    """The value of all samples of one frame: from 0.1 to 0.9."""
    return 0.1 + (zlib.crc32(f"{text}/{frame}".encode()) % 1000) / 1250


def frames_of(text: str) -> int:
    """How many frames a text gives."""
    orders = dict(word.split("@", 1) for word in text.split() if "@" in word)
    words = [word for word in text.split() if "@" not in word]
    return int(orders.get("frames", len(words)).rstrip(".") if "frames" in orders else len(words))


class FakeEngine:
    """`Engine` without a model."""

    def __init__(self) -> None:
        self.capacity = int(os.environ.get("FAKE_ENGINE_CAPACITY", "1"))
        self._running: dict[int, tuple[Job, dict[str, str], int]] = {}

    def load(self, options: EngineOptions) -> None:
        if options.model == "unloadable":
            raise EngineError("--model: unloadable cannot be loaded; choose another")
        if options.model == "broken":
            raise ZeroDivisionError("a fault in the engine")
        if options.model == "dies":
            os._exit(7)
        time.sleep(float(os.environ.get("FAKE_ENGINE_LOAD_SECONDS", "0")))

    def attach(self) -> EngineInfo:
        return EngineInfo(
            engine="fake",
            engine_version="1",
            model="fake",
            languages=("en",),
            features=frozenset({"temperature", "seed"}),
            sample_rate_hertz=RATE,
            max_segment_characters=200,
            default_voice="anna",
            voices=(
                EngineVoice("anna", "en", loaded=True),
                EngineVoice("bert", "en"),
                EngineVoice("unfetchable", "en"),
            ),
            sampling=Sampling(temperature=0.5),
        )

    def load_voice(self, voice: VoiceRef) -> EngineVoice:
        if voice.key == "unfetchable":
            raise EngineError("no network")
        return EngineVoice(voice.key, "en", loaded=True, digest="d" * 64)

    def start(self, job: Job) -> None:
        orders = dict(word.rstrip(".").split("@", 1) for word in job.text.split() if "@" in word)
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
        if frame >= frames_of(job.text):
            return self._end(job, Ending.NO_END if "noend" in orders else Ending.COMPLETE)
        self._log("step", job)
        time.sleep(float(orders.get("delay", "0")) / 1000)

        def ordered(what: str) -> bool:
            return what in orders and int(orders[what]) == frame

        if ordered("fail"):
            return self._end(job, Ending.FAILED, "scripted failure")
        if ordered("crash"):
            os._exit(9)
        if ordered("stall"):
            time.sleep(3600)
        samples = np.full(FRAME, frame_value(job.text, frame), np.float32)
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
                file.write(f"{what} {job.generation_id}\n")
