"""Two settings of the library, in its own process: how many frames its decoder takes in a call
(0: all that wait), and how many threads torch may use for one operation (the library sets 1)."""

import statistics
from collections.abc import Callable
from dataclasses import astuple, dataclass

from benchmarks import texts
from benchmarks.contenders import Bare
from benchmarks.listener import Call, listen
from benchmarks.machine import Patience, quietest

# (decoder_frames, threads); the first is the library's own.
VARIANTS = ((0, 1), (1, 1), (0, 2))


@dataclass(frozen=True, slots=True)
class Variant:
    """Medians over turns with one stream. `first_audio` and `largest_chunk` are seconds (of time
    and of audio), `speed` audio seconds per second, `cpu` CPU seconds per audio second."""

    decoder_frames: int
    threads: int
    first_audio: float
    speed: float
    cpu: float
    largest_chunk: float


def measure_variants(
    bare: Bare, turns: int, patience: Patience, tell: Callable[[str], None]
) -> list[Variant]:
    """All variants, interleaved, in alternating order."""
    found: dict[int, list[Variant]] = {index: [] for index in range(len(VARIANTS))}
    for frames, threads in VARIANTS:
        bare.speak(texts.SHORT, decoder_frames=frames, threads=threads)
    for number in range(turns):
        order = list(enumerate(VARIANTS))
        for index, variant in order if number % 2 == 0 else reversed(order):
            turn = _turn(bare, *variant, patience)
            found[index].append(turn)
            tell(str(turn))
    return [_median(turns) for turns in found.values()]


def _turn(bare: Bare, frames: int, threads: int, patience: Patience) -> Variant:
    def speak() -> Call:
        return bare.speak(texts.SENTENCE, decoder_frames=frames, threads=threads)

    call, meter = quietest(bare.process, patience, speak)
    heard = listen(call)
    return Variant(
        decoder_frames=frames,
        threads=threads,
        first_audio=heard.first_audio,
        speed=heard.audio / heard.wall,
        cpu=meter.cpu / heard.audio,
        largest_chunk=max(arrival.seconds for arrival in call.arrivals),
    )


def _median(turns: list[Variant]) -> Variant:
    columns = zip(*map(astuple, turns), strict=True)
    decoder_frames, threads, *rest = map(statistics.median, columns)
    return Variant(int(decoder_frames), int(threads), *rest)
