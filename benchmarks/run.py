"""One run with one kind of weights: starts the contenders, and measures what is asked for."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import dialogue, encoding, footprint, machine, plan, speed, voices
from benchmarks.contenders import FIFO, Intone
from benchmarks.dialogue import DialogueRun
from benchmarks.encoding import Cost
from benchmarks.launch import Startup, running_bare, running_intone, running_pocket_serve
from benchmarks.model import ModelFiles
from benchmarks.variants import Variant, measure_variants
from benchmarks.voices import VoiceCost

PARTS = ("speed", "front", "idle", "cancel", "encoding", "voices", "variants", "dialogue")
# Measured only if they are asked for: they take long.
LONG_PARTS = ("variants", "dialogue")
# Not measured in a quick run unless they are asked for: they are about no contender.
OTHER_PARTS = ("encoding", "voices")
IDLE_STREAMS = 1000
# What the idle streams need; it says nothing about how speech is scheduled.
ROOM = ("--max-streams", str(IDLE_STREAMS + 100), "--idle-timeout-seconds", "600")


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured. `streams` at the same time; flags of the two servers of this project;
    `patience_seconds` may be lost to the noise of other programs."""

    int8: bool
    quick: bool
    parts: tuple[str, ...]
    streams: tuple[int, ...]
    intone_flags: tuple[str, ...]
    fifo_flags: tuple[str, ...]
    patience_seconds: float

    @property
    def weights(self) -> str:
        """float32 or int8."""
        return "int8" if self.int8 else "float32"

    def loads(self) -> list[plan.Load]:
        """Texts, streams and turns."""
        return plan.loads(self.weights, self.streams, quick=self.quick)

    def expected_seconds(self) -> float:
        """About how long it takes, if nobody disturbs it."""
        return plan.run_seconds(self.weights, self.loads(), self.parts, quick=self.quick)


@dataclass(slots=True)
class Measured:
    """What was found; a part that was not measured is None or empty."""

    turns: list[speed.Turn] = field(default_factory=list)
    first_audio: dict[str, list[float]] = field(default_factory=dict)
    startup: Startup | None = None
    front: footprint.Front | None = None
    idle: footprint.Idle | None = None
    cancel: footprint.Cancel | None = None
    variants: list[Variant] = field(default_factory=list)
    encoding: list[Cost] = field(default_factory=list)
    voices: list[VoiceCost] = field(default_factory=list)
    dialogue: list[DialogueRun] = field(default_factory=list)
    patience_spent_seconds: float = 0.0


def measure(
    options: Options, files: ModelFiles, directory: Path, tell: Callable[[str], None]
) -> Measured:
    """Everything that is asked for; logs go to `directory`, progress to `tell`."""
    patience = machine.Patience(options.patience_seconds)
    found = Measured()
    with contextlib.ExitStack() as stack:
        # The server first, alone, so that nothing disturbs its start.
        patience.wait()
        flags = [*ROOM, *options.intone_flags]
        intone, came_up = stack.enter_context(
            running_intone(files, directory / "intone.log", int8=options.int8, flags=flags)
        )
        if "front" in options.parts:
            found.startup, found.front = came_up, footprint.measure_front(intone.process)
        _contenders(options, files, directory, patience, intone, found, tell)
        if "cancel" in options.parts:
            count = 3 if options.quick else 10
            found.cancel, _ = machine.quietest(
                intone.process, patience, lambda: footprint.measure_cancel(intone, count)
            )
        if "idle" in options.parts:
            found.idle, _ = machine.quietest(
                intone.process, patience, lambda: footprint.measure_idle(intone, IDLE_STREAMS)
            )
    # After the servers, which would only disturb.
    if "encoding" in options.parts:
        found.encoding = encoding.measure_encoding()
    if "voices" in options.parts:
        found.voices = voices.measure(files, int8=options.int8, tell=tell)
    if "dialogue" in options.parts:
        quick = options.quick
        found.dialogue = dialogue.measure(
            files, directory, patience, int8=options.int8, quick=quick, tell=tell
        )
    found.patience_spent_seconds = round(patience.spent_seconds, 1)
    return found


def _contenders(
    options: Options,
    files: ModelFiles,
    directory: Path,
    patience: machine.Patience,
    intone: Intone,
    found: Measured,
    tell: Callable[[str], None],
) -> None:
    """The parts that need others beside the server."""
    int8 = options.int8
    with contextlib.ExitStack() as stack:
        if {"speed", "variants"} & set(options.parts):
            bare = stack.enter_context(running_bare(files, directory / "library.log", int8=int8))
        if "speed" in options.parts:
            serve = stack.enter_context(
                running_pocket_serve(files, directory / "serve.log", int8=int8)
            )
            fifo, _ = stack.enter_context(
                running_intone(
                    files, directory / "fifo.log", int8=int8, flags=options.fifo_flags, name=FIFO
                )
            )
            # intone beside pocket-tts serve: what is compared most is measured closest in time.
            every = (bare, fifo, serve, intone)
            found.turns = speed.compare(every, options.loads(), options.weights, patience, tell)
            tell("first audio, one stream")
            rounds = plan.first_audio_rounds(quick=options.quick)
            found.first_audio = speed.first_audio(every, rounds, patience)
        if "variants" in options.parts:
            count = 3 if options.quick else 8
            found.variants = measure_variants(bare, count, patience, tell)
