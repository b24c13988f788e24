"""What it takes to make a voice of a recording: time and memory of the process that does it."""

import asyncio
import io
import tempfile
import time
import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import psutil

from benchmarks.model import SAMPLE_RATE_HERTZ, ModelFiles
from intone_server.engines.base import EngineOptions
from intone_server.voices.making import VoiceMaker
from intone_server.workers.launch import Launcher, WorkerLink
from intone_server.workers.loading import WorkerSpec

PROMPT_SECONDS = (5, 15, 30)
# Between two looks at the process.
LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class VoiceCost:
    """One voice. `seconds` from the request to the answer, `cpu_seconds` of the process;
    `peak_bytes` resident, of which `shared_bytes` were there at its start: the model, shared with
    the workers."""

    prompt_seconds: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    shared_bytes: int


def measure(files: ModelFiles, *, int8: bool, tell: Callable[[str], None]) -> list[VoiceCost]:
    """Make a voice of each length, one after the other, with nothing else running."""
    with tempfile.TemporaryDirectory() as directory:
        options = EngineOptions(
            model=str(files.config),
            quantize=int8,
            voices=(("noise", str(files.voice)),),
            default_voice="noise",
            state_directory=directory,
        )
        spec = WorkerSpec("intone_server.engines.pocket:PocketEngine", options, "text")
        return asyncio.run(_measure(spec, files.voice.read_bytes(), tell))


def table(costs: Sequence[VoiceCost]) -> str:
    """Markdown."""
    rows = [
        f"| {cost.prompt_seconds} s | {cost.seconds:.1f} s | {cost.cpu_seconds:.1f} s | "
        f"{cost.peak_bytes / 1e6:,.0f} MB | {(cost.peak_bytes - cost.shared_bytes) / 1e6:,.0f} MB |"
        for cost in costs
    ]
    head = "| recording | time | CPU | peak memory | not shared |\n| --- | --- | --- | --- | --- |"
    return "\n".join([head, *rows])


async def _measure(spec: WorkerSpec, state: bytes, tell: Callable[[str], None]) -> list[VoiceCost]:
    launcher = Launcher(spec)
    running: list[psutil.Process] = []

    async def launch() -> WorkerLink:
        link = await launcher.launch_maker()
        running[:] = [psutil.Process(link.pid)]
        return link

    maker = VoiceMaker(launch, SAMPLE_RATE_HERTZ, timeout_seconds=600.0)
    await maker.make(state=state)  # the fork server loads the model
    costs = []
    for seconds in PROMPT_SECONDS:
        tell(f"a voice of {seconds} s")
        running.clear()
        upload = _recording(seconds)
        started_at = time.monotonic()
        making = asyncio.create_task(maker.make(prompt=upload))
        peak, shared, cpu = 0, 0, 0.0
        while not making.done():
            try:
                for process in running:
                    now = process.memory_info().rss
                    shared, peak = shared or now, max(peak, now)
                    cpu = sum(process.cpu_times()[:2])
            except psutil.NoSuchProcess:
                pass
            await asyncio.sleep(LOOK_SECONDS)
        await making
        costs.append(VoiceCost(seconds, time.monotonic() - started_at, cpu, peak, shared))
    return costs


def _recording(seconds: int) -> bytes:
    """A WAV file that changes as speech does: four syllables a second, of harmonics and noise."""
    count = seconds * SAMPLE_RATE_HERTZ
    at = np.arange(count) / SAMPLE_RATE_HERTZ
    syllable = (at * 4).astype(int)
    pitch = 110 + 30 * (syllable % 3)
    voiced = np.sum([np.sin(2 * np.pi * pitch * n * at) / n for n in range(1, 12)], axis=0)
    noise = np.random.default_rng(1).normal(0, 1, count)
    samples = np.where(syllable % 2, noise, voiced) * np.abs(np.sin(np.pi * 4 * at)) * 5000
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(SAMPLE_RATE_HERTZ)
        writer.writeframes(samples.clip(-32768, 32767).astype("<i2").tobytes())
    return file.getvalue()
