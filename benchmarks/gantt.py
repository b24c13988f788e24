"""A Gantt chart of one turn of each contender: what was spoken when, and what was heard of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.listener import Call, listen
from benchmarks.plot import INK, STYLES, panels, save
from benchmarks.speed import Turn

RED = "#c00000"
PLAYING = "#d0d0d0"

# From, to: seconds since the turn's start.
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One stream: its segments on their replicas (none if the contender does not tell), when its
    audio arrived, and what its listener played and missed."""

    segments: tuple[Span, ...]
    arrivals: tuple[float, ...]
    playing: tuple[Span, ...]
    gaps: tuple[Span, ...]


def choose(turns: Sequence[Turn], streams: int) -> list[Turn]:
    """The quietest turn of each contender with so many streams, or the greatest number below that,
    of the longest text that was spoken by so many."""
    counts = [turn.streams for turn in turns if turn.streams <= streams]
    found = [turn for turn in turns if counts and turn.streams == max(counts)]
    if not found:
        return []
    longest = max(found, key=lambda turn: turn.audio / len(turn.calls)).load
    by_contender: dict[str, Turn] = {}
    for turn in sorted(found, key=lambda turn: turn.others_cores):
        if turn.load == longest:
            by_contender.setdefault(turn.contender, turn)
    return [by_contender[name] for name in STYLES if name in by_contender]


def lines(turn: Turn) -> list[Line]:
    """Its streams, those that were heard first on top."""
    return [_line(call) for call in sorted(turn.calls, key=lambda call: call.arrivals[0].at)]


def _line(call: Call) -> Line:
    heard = listen(call)
    gaps = tuple((gap.at, gap.at + gap.seconds) for gap in heard.gaps)
    begin = call.arrivals[0].at
    end = begin + heard.audio + heard.silence
    starts, ends = [begin, *(gap[1] for gap in gaps)], [*(gap[0] for gap in gaps), end]
    return Line(
        segments=tuple((one.began_at, one.ended_at) for one in call.segments),
        arrivals=tuple(arrival.at for arrival in call.arrivals),
        playing=tuple(zip(starts, ends, strict=True)),
        gaps=gaps,
    )


def write_gantt(path: Path, turns: Sequence[Turn], title: str) -> None:
    """A panel for each turn, all on the same axis of time."""
    from matplotlib.patches import Patch

    streams = turns[0].streams
    height = 0.8 + len(turns) * (0.7 + 0.24 * streams)
    figure, axes = panels(len(turns), 1, (11, height))
    axes = axes if len(turns) > 1 else [axes]
    end = 0.0
    for axis, turn in zip(axes, turns, strict=True):
        colour = STYLES[turn.contender].colour
        for row, line in enumerate(lines(turn)):
            if line.segments:
                axis.broken_barh(
                    _bars(line.segments), (row - 0.42, 0.46), color=colour, edgecolor="white"
                )
            else:
                axis.vlines(line.arrivals, row - 0.42, row + 0.04, color=colour, linewidth=0.5)
            axis.broken_barh(_bars(line.playing), (row + 0.1, 0.24), color=PLAYING, linewidth=0)
            axis.broken_barh(_bars(line.gaps), (row + 0.1, 0.24), color=RED, linewidth=0)
            end = max(end, line.playing[-1][1])
        silence = max(heard.silence for heard in turn.heard)
        told = all(call.segments for call in turn.calls)
        axis.set_title(
            f"{turn.contender}: {turn.speed:.1f} seconds of audio per second, "
            f"worst listener {silence:.1f} s of silence{'' if told else '; marks: audio arrives'}",
            loc="left",
            fontsize=10,
            color=colour,
        )
        axis.set_ylim(streams - 0.5, -0.6)
        axis.set_yticks([])
        axis.set_ylabel(f"{streams} listener{'s' * (streams > 1)}", color=INK)
    for axis in axes:
        axis.set_xlim(0, end * 1.01)
    axes[-1].set_xlabel("seconds", color=INK)
    keys = [
        Patch(color=STYLES[turns[-1].contender].colour, label="above: a segment on its replica"),
        Patch(color=PLAYING, label="below: its listener hears it"),
        Patch(color=RED, label="its listener hears silence"),
    ]
    figure.legend(handles=keys, loc="outside lower left", ncols=len(keys), frameon=False)
    save(figure, path, title)


def _bars(spans: Sequence[Span]) -> list[tuple[float, float]]:
    return [(begin, end - begin) for begin, end in spans]
