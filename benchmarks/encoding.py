"""What the way out costs: resampling to each rate, and encoding in each format, of real speech.

python -m benchmarks.encoding
"""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import texts
from intone_server.audio import Samples
from intone_server.audio.encoding import Encoding, encoder, supported_rates
from intone_server.audio.level import Level
from intone_server.audio.resampling import Resampler

FRAME_SECONDS = 0.08  # as the model gives them
RATES = (8000, 16000, 22050, 24000, 44100, 48000)
# Of each step. The least of them is reported: what others do can only add to it.
REPEATS = 5


@dataclass(frozen=True, slots=True)
class Cost:
    """One step at one rate: CPU seconds per audio second, the greatest of a single frame in
    seconds (median over repeats), and for encodings kilobits per audio second."""

    step: str
    sample_rate_hertz: int
    cpu: float
    worst_frame: float
    kilobits: float | None = None


def measure_encoding(repeats: int = REPEATS) -> list[Cost]:
    """All steps at all rates that they have, on fourteen seconds of speech."""
    speech, model_hertz = _speech()
    costs = []
    for rate in RATES:
        converter = Resampler(model_hertz, rate)
        at_rate = [*map(converter.push, _frames(speech, model_hertz)), converter.end_run()]
        at_rate = _frames(np.concatenate(at_rate), rate)
        seconds = len(speech) / model_hertz
        if rate != model_hertz:
            push = Resampler(model_hertz, rate).push
            costs.append(
                _cost("resample", rate, seconds, repeats, push, _frames(speech, model_hertz))
            )
        level = Level(6.0, rate)
        costs.append(_cost("gain +6 dB", rate, seconds, repeats, level.push, at_rate))
        costs += [
            _encoding(encoding, rate, seconds, repeats, at_rate)
            for encoding in Encoding
            if encoding is not Encoding.WAV  # the same samples as PCM_S16LE
            and rate in (supported_rates(encoding) or RATES)
        ]
    return costs


def table(costs: Sequence[Cost]) -> str:
    """CPU milliseconds per audio second as a Markdown table: a line for a step, a column for a
    rate; then size and worst frame of encodings at the rate that most streams have."""
    lines = [
        "| CPU ms / audio s | " + " | ".join(f"{rate / 1000:g} kHz" for rate in RATES) + " |",
        "| --- |" + " ---: |" * len(RATES),
    ]
    found = {(cost.step, cost.sample_rate_hertz): cost for cost in costs}
    for step in dict.fromkeys(cost.step for cost in costs):
        cells = [found.get((step, rate)) for rate in RATES]
        values = [f"{cost.cpu * 1000:.2f}" if cost else "" for cost in cells]
        lines.append("| " + " | ".join([step, *values]) + " |")
    lines += ["", "| at 24 kHz | kbit/s | worst frame |", "| --- | ---: | ---: |"]
    lines += [
        f"| {cost.step} | {cost.kilobits:.0f} | {cost.worst_frame * 1000:.2f} ms |"
        for cost in costs
        if cost.sample_rate_hertz == 24000 and cost.kilobits is not None
    ]
    return "\n".join(lines)


def _encoding(
    encoding: Encoding, rate: int, seconds: float, repeats: int, frames: Sequence[Samples]
) -> Cost:
    stream = encoder(encoding, rate)
    try:
        size = sum(len(stream.encode(frame).data) for frame in frames)
        return _cost(
            encoding.name, rate, seconds, repeats, stream.encode, frames, size * 8 / 1000 / seconds
        )
    finally:
        stream.close()


def _cost(
    step: str,
    rate: int,
    seconds: float,
    repeats: int,
    take: Callable[[Samples], object],
    frames: Iterable[Samples],
    kilobits: float | None = None,
) -> Cost:
    totals, worst = [], []
    frames = list(frames)
    for _ in range(repeats):
        each = []
        for frame in frames:
            started_at = time.process_time()
            take(frame)
            each.append(time.process_time() - started_at)
        totals.append(sum(each))
        worst.append(max(each))
    return Cost(step, rate, min(totals) / seconds, statistics.median(worst), kilobits)


def _speech() -> tuple[Samples, int]:
    """The small offline voice, and its sample rate in hertz."""
    from hibari import Hibari

    voice = Hibari(voice="heart")
    spoken = [voice(text, seed=0) for text in (texts.SENTENCE, texts.PAIR)]
    return np.concatenate(spoken).astype(np.float32), voice.sample_rate


def _frames(samples: Samples, rate: int) -> list[Samples]:
    size = round(FRAME_SECONDS * rate)
    return [samples[at : at + size] for at in range(0, len(samples), size)]


if __name__ == "__main__":
    print(table(measure_encoding()))
