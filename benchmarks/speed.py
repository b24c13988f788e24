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
from benchmarks.contenders import CALL_SECONDS, Contender, Refused
from benchmarks.listener import Call, Heard, listen
from benchmarks.plan import Load, speed_seconds, turn_seconds

# After a call that was cancelled at its first audio: the model has stopped by then.
SETTLE_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of one contender. Times in seconds; `round` counts the turns in which it met the
    others, with one load or another. `calls` are on a clock that starts with the first of them;
    `refused` calls are not among them. `cpu_seconds` are of all processes, `front_cpu_seconds` of
    the one without a model (None if the contender has none), `memory_bytes` their PSS after it;
    `others_cores` is what the rest of the machine took meanwhile."""

    contender: str
    load: str
    streams: int
    round: int
    calls: tuple[Call, ...]
    refused: int
    cpu_seconds: float
    front_cpu_seconds: float | None
    memory_bytes: int
    others_cores: float

    @property
    def heard(self) -> tuple[Heard, ...]:
        """What each listener heard."""
        return tuple(map(listen, self.calls))

    @property
    def wall(self) -> float:
        """Seconds from the first call to the last audio."""
        return max(call.arrivals[-1].at for call in self.calls)

    @property
    def audio(self) -> float:
        """Seconds of audio, all streams together."""
        return sum(arrival.seconds for call in self.calls for arrival in call.arrivals)

    @property
    def speed(self) -> float:
        """Audio seconds per second, all streams together."""
        return self.audio / self.wall

    @property
    def front_share(self) -> float | None:
        """CPU of the front as a share of that of the model's processes."""
        if self.front_cpu_seconds is None:
            return None
        return self.front_cpu_seconds / (self.cpu_seconds - self.front_cpu_seconds)

    @property
    def is_quiet(self) -> bool:
        """Whether others did not disturb it."""
        return self.others_cores < machine.NOISY_CORES


def compare(
    contenders: Sequence[Contender],
    chosen: Sequence[Load],
    weights: str,
    patience: machine.Patience,
    tell: Callable[[str], None],
) -> list[Turn]:
    """Every load for every contender that can serve it. `tell` gets a line about each turn."""
    for contender in contenders:
        contender.speak(texts.SHORT)  # not measured: fills caches
    turns: list[Turn] = []
    expected, done = speed_seconds(weights, chosen), 0.0
    started_at, number = time.monotonic(), 0
    for load in chosen:
        able = [c for c in contenders if c.serves_many or load.streams == 1]
        for _ in range(load.turns):
            for contender in able if number % 2 == 0 else reversed(able):
                turn = take_turn(contender, load, number, patience)
                turns.append(turn)
                done += turn_seconds(weights, contender.name, load)
                left = (time.monotonic() - started_at) * (expected - done) / done
                tell(f"{_line(turn)}   {max(0.0, left) / 60:4.1f} min left")
            number += 1
    return turns


def first_audio(
    contenders: Sequence[Contender], rounds: int, patience: machine.Patience
) -> dict[str, list[float]]:
    """Seconds to the first audio of SENTENCE when nothing else runs, `rounds` times for each.

    Calls are cancelled then, which allows enough of them to tell milliseconds. Rounds that others
    disturbed are left out, unless all were.
    """
    found: list[tuple[dict[str, float], bool]] = []
    for number in range(rounds):
        seconds, quiet = {}, True
        for contender in contenders if number % 2 == 0 else reversed(contenders):

            def call(contender: Contender = contender) -> Heard:
                heard = listen(contender.speak(texts.SENTENCE, first_only=True))
                time.sleep(SETTLE_SECONDS)
                return heard

            heard, meter = machine.quietest(contender.process, patience, call)
            seconds[contender.name] = heard.first_audio
            quiet = quiet and meter.is_quiet
        found.append((seconds, quiet))
    kept = [seconds for seconds, quiet in found if quiet] or [seconds for seconds, _ in found]
    return {c.name: [seconds[c.name] for seconds in kept] for c in contenders}


def take_turn(contender: Contender, load: Load, number: int, patience: machine.Patience) -> Turn:
    """One turn: all streams of `load` begin together. `number` is that of its round."""

    def speak() -> list[Call | None]:
        barrier = threading.Barrier(load.streams)

        def call(_: int) -> Call | None:
            barrier.wait(CALL_SECONDS)
            try:
                return contender.speak(load.text)
            except Refused:
                return None

        with ThreadPoolExecutor(load.streams) as pool:
            return list(pool.map(call, range(load.streams)))

    answers, meter = machine.quietest(contender.process, patience, speak)
    calls = [call for call in answers if call is not None]
    if not calls:
        raise RuntimeError(f"{contender.name} refused all {load.streams} streams")
    zero = min(call.started_at for call in calls)
    return Turn(
        contender=contender.name,
        load=load.name,
        streams=load.streams,
        round=number,
        calls=tuple(call.since(zero) for call in calls),
        refused=len(answers) - len(calls),
        cpu_seconds=meter.cpu,
        front_cpu_seconds=meter.first_cpu if contender.has_front else None,
        memory_bytes=machine.proportional_bytes(contender.process),
        others_cores=meter.others_cores,
    )


def _line(turn: Turn) -> str:
    heard = turn.heard
    refused = f"  {turn.refused} refused" if turn.refused else ""
    return (
        f"{turn.contender:17} {turn.load:8} x{turn.streams:<2}  "
        f"speed {turn.speed:5.2f}x  first audio {max(h.first_audio for h in heard):6.2f} s  "
        f"silence {max(h.silence for h in heard):6.2f} s  "
        f"others {turn.others_cores:4.2f} cores{refused}"
    )
