"""How much sooner a script is done when its lines are spoken at the same time."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine
from benchmarks.contenders import CALL_SECONDS, Intone
from benchmarks.launch import running_intone
from benchmarks.model import ModelFiles
from benchmarks.texts import PAIR, SENTENCE, SHORT
from intone.v1 import tts_pb2

# Words of a line and its neighbours differ, as in a play: two sentences, one, a few words.
LINES = (SENTENCE, SHORT, SENTENCE, PAIR)
# Random weights end by chance, or never: here each segment lasts 2 s, as a short sentence does.
SAMPLING = tts_pb2.Sampling(seed=1, eos_threshold=-100.0, frames_after_eos=24)
CONCURRENCIES = (1, 2, 3, 4)
WORKERS = (1, 2)


@dataclass(frozen=True, slots=True)
class DialogueRun:
    """One script at one concurrency: medians over `turns`. `ratio` is the wall time of concurrency
    1 on the same server divided by this one's; `in_flight` the most segments at the same time."""

    workers: int
    lines: int
    concurrency: int
    turns: int
    audio_seconds: float
    wall_seconds: float
    ratio: float
    in_flight: int
    others_cores: float


def measure(
    files: ModelFiles,
    directory: Path,
    patience: machine.Patience,
    *,
    int8: bool,
    quick: bool,
    tell: Callable[[str], None],
) -> list[DialogueRun]:
    """Scripts on a server with one worker, then on one with two."""
    runs = []
    for workers in WORKERS:
        log = directory / f"dialogue-{workers}.log"
        flags = ["--workers", str(workers)]
        with running_intone(files, log, int8=int8, flags=flags) as (intone, _):
            for lines, turns in ((8, 1),) if quick else ((20, 1), (50, 1)):
                runs += _measure(intone, workers, lines, patience, turns, tell)
    return runs


def table(runs: Sequence[DialogueRun]) -> str:
    """Markdown."""
    rows = [
        f"| {run.workers} | {run.lines} | {run.concurrency} | {run.in_flight} | "
        f"{run.audio_seconds:.1f} s | {run.wall_seconds:.1f} s | {run.ratio:.2f} |"
        for run in runs
    ]
    head = (
        "| workers | lines | concurrency | in flight | audio | wall time | times sequential |\n"
        "| --- | --- | --- | --- | --- | --- | --- |"
    )
    return "\n".join([head, *rows])


def _measure(
    intone: Intone,
    workers: int,
    lines: int,
    patience: machine.Patience,
    turns: int,
    tell: Callable[[str], None],
) -> list[DialogueRun]:
    """All concurrencies in turn, so that what disturbs one disturbs the others as much."""
    found: dict[int, list[tuple[tts_pb2.Stats, float, float]]] = {c: [] for c in CONCURRENCIES}
    for turn in range(turns):
        for concurrency in CONCURRENCIES:
            tell(f"{lines} lines, {workers} workers, concurrency {concurrency}, turn {turn + 1}")

            def speak(concurrency: int = concurrency) -> tuple[tts_pb2.Stats, float]:
                return _speak(intone, lines, concurrency)

            (stats, seconds), meter = machine.quietest(intone.process, patience, speak)
            found[concurrency].append((stats, seconds, meter.others_cores))
    alone = statistics.median(seconds for _, seconds, _ in found[1])
    runs = []
    for concurrency, each in found.items():
        wall = statistics.median(seconds for _, seconds, _ in each)
        runs.append(
            DialogueRun(
                workers=workers,
                lines=lines,
                concurrency=concurrency,
                turns=turns,
                audio_seconds=statistics.median(stats.audio_seconds for stats, _, _ in each),
                wall_seconds=wall,
                ratio=alone / wall,
                in_flight=max(stats.max_in_flight for stats, _, _ in each),
                others_cores=max(others for _, _, others in each),
            )
        )
    return runs


def _speak(intone: Intone, lines: int, concurrency: int) -> tuple[tts_pb2.Stats, float]:
    """The same script each time, to its end: its totals, and the seconds that it took."""
    config = tts_pb2.SpeechConfig(sampling=SAMPLING)
    request = tts_pb2.SynthesizeDialogueRequest(config=config, max_concurrency=concurrency)
    for number in range(lines):
        request.items.add().speech.text = LINES[number % len(LINES)]
    started_at = time.monotonic()
    stats = tts_pb2.Stats()
    for response in intone.stub.SynthesizeDialogue(request, timeout=CALL_SECONDS):
        if response.event.HasField("finished"):
            stats = response.event.finished.stats
    return stats, time.monotonic() - started_at
