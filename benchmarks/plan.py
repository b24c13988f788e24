"""What is measured, how often, and about how long that takes. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks import texts
from benchmarks.contenders import FIFO, INTONE, LIBRARY, POCKET_SERVE

# Seconds of audio; see benchmarks/texts.py.
AUDIO_SECONDS = {"sentence": 8.72, "pair": 21.76}
# More streams than this speak only the short text: `pocket-tts serve` would take ten minutes.
LONG_TEXT_STREAMS = 8

# Turns of each contender by number of streams (others: one). More where the goals are, and where a
# turn is short; float32 takes twice as long.
TURNS = {
    ("int8", "sentence"): {1: 5, 2: 3, 4: 3, 8: 2},
    ("float32", "sentence"): {1: 3},
}
FIRST_AUDIO_ROUNDS = 15
FIRST_AUDIO_ROUNDS_QUICK = 4

# Audio seconds per second, all streams together, with so many streams or more; seen on two cores.
# Only the estimate of a run's time is made of these.
Speeds = Mapping[int, float]
EXPECTED: Mapping[str, Mapping[str, Speeds]] = {
    "int8": {
        LIBRARY: {1: 2.2},
        POCKET_SERVE: {1: 2.2, 2: 2.1, 4: 1.8, 8: 1.2, 16: 1.0},
        INTONE: {1: 2.5, 2: 4.0, 4: 6.5, 8: 8.0},
        FIFO: {1: 2.2},
    },
    "float32": {
        LIBRARY: {1: 1.4},
        POCKET_SERVE: {1: 1.4, 4: 1.15, 8: 1.1, 16: 1.0},
        INTONE: {1: 1.5, 2: 2.2, 4: 3.3, 8: 4.5},
        FIFO: {1: 1.4},
    },
}
# Loading four models and the first call of each.
START_SECONDS = 60.0
# The other parts, whole and quick.
PART_SECONDS = {
    "front": (1.0, 1.0),
    "idle": (20.0, 20.0),
    "cancel": (80.0, 25.0),
    "encoding": (25.0, 25.0),
    "voices": (40.0, 40.0),
    "variants": (150.0, 60.0),
    "dialogue": (700.0, 150.0),
}


@dataclass(frozen=True, slots=True)
class Load:
    """So many streams speak `text` at the same time, `turns` times for each contender."""

    name: str
    text: str
    streams: int
    turns: int


def loads(weights: str, streams: Sequence[int], *, quick: bool) -> list[Load]:
    """What is measured for these numbers of streams: the short text first, then the long one.

    Quick: one turn of the short text each.
    """
    if quick:
        return [Load("sentence", texts.SENTENCE, count, 1) for count in streams]
    return [
        Load(name, text, count, TURNS.get((weights, name), {}).get(count, 1))
        for name, text in (("sentence", texts.SENTENCE), ("pair", texts.PAIR))
        for count in streams
        if name == "sentence" or count <= LONG_TEXT_STREAMS
    ]


def turn_seconds(weights: str, contender: str, load: Load) -> float:
    """About how long one turn of a contender takes."""
    speeds = EXPECTED[weights][contender]
    speed = speeds[max(count for count in speeds if count <= load.streams)]
    return load.streams * AUDIO_SECONDS[load.name] / speed


def speed_seconds(weights: str, chosen: Sequence[Load]) -> float:
    """About how long the turns of all contenders take."""
    return sum(
        load.turns * turn_seconds(weights, contender, load)
        for load in chosen
        for contender in EXPECTED[weights]
        if contender != LIBRARY or load.streams == 1
    )


def first_audio_rounds(*, quick: bool) -> int:
    """How often first audio is measured alone."""
    return FIRST_AUDIO_ROUNDS_QUICK if quick else FIRST_AUDIO_ROUNDS


def run_seconds(
    weights: str, chosen: Sequence[Load], parts: Sequence[str], *, quick: bool
) -> float:
    """About how long a whole run takes on two cores."""
    seconds = START_SECONDS
    if "speed" in parts:
        alone = Load("sentence", texts.SENTENCE, 1, 1)
        # `pocket-tts serve` speaks to the end; a second for each of the others.
        one_round = turn_seconds(weights, POCKET_SERVE, alone) + 3.0
        seconds += first_audio_rounds(quick=quick) * one_round + speed_seconds(weights, chosen)
    return seconds + sum(PART_SECONDS[part][quick] for part in parts if part != "speed")
