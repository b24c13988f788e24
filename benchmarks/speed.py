"""First audio, speed and silence of the contenders, measured in turns.

Turns are interleaved and their order alternates, so that whatever else the machine does hits all
contenders alike. A turn during which others took much CPU is repeated, a bounded number of times.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks import machine, texts
from benchmarks.contenders import CALL_SECONDS, Contender
from benchmarks.listener import Arrival, Heard, listen

# After a call that was cancelled at its first audio: the model has stopped by then.
SETTLE_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class Load:
    """So many streams speak `text` at the same time, `turns` times for each contender."""

    name: str
    text: str
    streams: int
    turns: int


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of one contender. Times in seconds; `wall` is from the first call to the last audio;
    `cpu_seconds` are of all its processes, `memory_bytes` their PSS after it; `others_cores` is
    what the rest of the machine took meanwhile."""

    contender: str
    load: str
    streams: int
    heard: tuple[Heard, ...]
    wall: float
    cpu_seconds: float
    memory_bytes: int
    others_cores: float

    @property
    def audio(self) -> float:
        """Seconds of audio, all streams together."""
        return sum(heard.audio for heard in self.heard)

    @property
    def speed(self) -> float:
        """Audio seconds per second, all streams together."""
        return self.audio / self.wall

    @property
    def is_quiet(self) -> bool:
        """Whether others did not disturb it."""
        return self.others_cores < machine.NOISY_CORES


def loads(streams: Sequence[int], *, quick: bool) -> list[Load]:
    """What is measured for these numbers of streams."""
    if quick:
        return [Load("short", texts.SHORT, count, 3 if count == 1 else 1) for count in streams]
    chosen = []
    for count in streams:
        if count == 1:
            chosen += [
                Load("sentence", texts.SENTENCE, 1, 10),
                Load("paragraph", texts.PARAGRAPH, 1, 1),
            ]
        else:
            chosen.append(Load("pair", texts.PAIR, count, 1))
    return chosen


def compare(
    contenders: Sequence[Contender],
    chosen: Sequence[Load],
    patience: machine.Patience,
    tell: Callable[[str], None],
) -> list[Turn]:
    """Every load for every contender that can serve it. `tell` gets a line about each turn."""
    for contender in contenders:
        contender.speak(texts.SHORT)  # not measured: fills caches
    turns = []
    for load in chosen:
        able = [c for c in contenders if c.serves_many or load.streams == 1]
        for number in range(load.turns):
            for contender in able if number % 2 == 0 else reversed(able):
                turn = _turn(contender, load, patience)
                turns.append(turn)
                tell(_line(turn))
    return turns


def first_audio(
    contenders: Sequence[Contender], turns: int, patience: machine.Patience
) -> dict[str, list[float]]:
    """Seconds to the first audio of SENTENCE when nothing else runs, `turns` times for each.

    Calls are cancelled then, which allows enough of them to tell milliseconds. Rounds that others
    disturbed are left out, unless all were. Not for
    `pocket-tts serve`, which goes on speaking to nobody.
    """
    rounds: list[tuple[dict[str, float], bool]] = []
    for number in range(turns):
        seconds, quiet = {}, True
        for contender in contenders if number % 2 == 0 else reversed(contenders):

            def call(contender: Contender = contender) -> Heard:
                heard = listen(*contender.speak(texts.SENTENCE, first_only=True))
                time.sleep(SETTLE_SECONDS)
                return heard

            heard, meter = machine.quietest(contender.process, patience, call)
            seconds[contender.name] = heard.first_audio
            quiet = quiet and meter.is_quiet
        rounds.append((seconds, quiet))
    chosen = [seconds for seconds, quiet in rounds if quiet] or [seconds for seconds, _ in rounds]
    return {c.name: [seconds[c.name] for seconds in chosen] for c in contenders}


def _turn(contender: Contender, load: Load, patience: machine.Patience) -> Turn:
    def speak() -> list[tuple[float, list[Arrival]]]:
        barrier = threading.Barrier(load.streams)

        def call(_: int) -> tuple[float, list[Arrival]]:
            barrier.wait(CALL_SECONDS)
            return contender.speak(load.text)

        with ThreadPoolExecutor(load.streams) as pool:
            return list(pool.map(call, range(load.streams)))

    calls, meter = machine.quietest(contender.process, patience, speak)
    first = min(started_at for started_at, _ in calls)
    last = max(arrivals[-1].at for _, arrivals in calls)
    return Turn(
        contender=contender.name,
        load=load.name,
        streams=load.streams,
        heard=tuple(listen(*call) for call in calls),
        wall=last - first,
        cpu_seconds=meter.cpu,
        memory_bytes=machine.proportional_bytes(contender.process),
        others_cores=meter.others_cores,
    )


def _line(turn: Turn) -> str:
    return (
        f"{turn.contender:17} {turn.load:9} x{turn.streams}  first audio "
        f"{max(heard.first_audio for heard in turn.heard) * 1000:6.0f} ms  speed "
        f"{turn.speed:4.2f}x  others {turn.others_cores:4.2f} cores"
    )
