"""Curves of a run: speed, silence and first audio against the number of streams."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contenders import FIFO, INTONE, LIBRARY, POCKET_SERVE
from benchmarks.report import Row

INK = "#333333"
FAINT = "#999999"
# Least distance of two labels, as a share of the panel's height.
LABEL_SHARE = 0.07
# Beyond the first and the last value of a logarithmic axis, as a factor.
MARGIN = 1.25


@dataclass(frozen=True, slots=True)
class Style:
    """How a contender looks in every plot; also told apart without colours."""

    colour: str
    line: str
    marker: str
    width: float


STYLES = {
    LIBRARY: Style("#8a8a8a", ":", "x", 1.0),
    POCKET_SERVE: Style("#d9822b", "--", "s", 1.6),
    FIFO: Style("#6fa8d6", "-.", "^", 1.6),
    INTONE: Style("#17406d", "-", "o", 2.4),
}


def write_plot(path: Path, rows: Sequence[Row], title: str) -> None:
    """Three panels, one line for each contender; `rows` are of one text."""
    figure, axes = panels(1, 3, (13.5, 4.2))
    (speed, silence, first) = axes
    streams = sorted({row.streams for row in rows})
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.set_xlim(streams[0] / MARGIN, streams[-1] * MARGIN)
        axis.set_xticks(streams, [str(count) for count in streams])
        axis.minorticks_off()
        axis.set_xlabel("streams at the same time", color=INK)

    speed.set_title("Total speed: seconds of audio per second", loc="left", fontsize=11, color=INK)
    speed.set_yscale("log", base=2)
    speed.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    values = [row.speed for row in rows]
    speed.set_ylim(min([*values, *streams]) / MARGIN, max([*values, *streams]) * MARGIN)
    speed.plot(streams, streams, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    labels = _lines(speed, rows, streams, lambda row: row.speed)
    labels.append((streams[-1], "real time for all", INK))
    _label(speed, streams[-1], labels)

    silence.set_title(
        "Silence a listener hears: median, and up to the worst",
        loc="left",
        fontsize=11,
        color=INK,
    )
    silence.yaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    served = [row for row in rows if row.contender != LIBRARY]
    labels = _lines(silence, served, streams, lambda row: row.silence_median)
    for row in served:
        ends = (row.silence_median, row.silence_worst)
        silence.vlines(row.streams, *ends, color=STYLES[row.contender].colour, linewidth=1)
    silence.set_ylim(0, max([1.0, *(row.silence_worst * 1.05 for row in served)]))
    _label(silence, streams[-1], labels)

    first.set_title("First audio: median, and up to p95", loc="left", fontsize=11, color=INK)
    first.set_yscale("log")
    first.yaxis.set_major_formatter(lambda value, _: _tick(value))
    first.yaxis.set_minor_formatter(lambda value, _: _tick(value) if _leads(value) else "")
    values = [value for row in rows for value in (row.first_audio_median, row.first_audio_p95)]
    first.set_ylim(min(values) / MARGIN, max(values) * MARGIN)
    labels = _lines(first, rows, streams, lambda row: row.first_audio_median)
    for row in rows:
        ends = (row.first_audio_median, row.first_audio_p95)
        first.vlines(row.streams, *ends, color=STYLES[row.contender].colour, linewidth=1)
    _label(first, streams[-1], labels)
    save(figure, path, title)


def _tick(value: float) -> str:
    return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"


def _leads(value: float) -> bool:
    """Whether a tick of a logarithmic axis has a label: 2 and 5 times a power of ten."""
    return f"{value:.0e}"[0] in "25"


def _lines(
    axis: Any, rows: Sequence[Row], streams: Sequence[int], value: Callable[[Row], float]
) -> list[tuple[float, str, str]]:
    """One line for each contender; returns where each ends, with its label and colour.

    What has one stream only goes on as a thin line: there to be compared with.
    """
    labels = []
    for contender, style in STYLES.items():
        own = [row for row in rows if row.contender == contender]
        if not own:
            continue
        at, values = [row.streams for row in own], [value(row) for row in own]
        look = {"color": style.colour, "marker": style.marker, "markersize": 5}
        axis.plot(at, values, linestyle=style.line, linewidth=style.width, **look)
        name = contender
        if len(own) == 1 and len(streams) > 1:
            axis.plot(
                [at[0], streams[-1]], values * 2, color=style.colour, linestyle=":", linewidth=1
            )
            name = f"{contender}, {at[0]} stream"
        labels.append((values[-1], name, style.colour))
    return labels


def _label(axis: Any, at: float, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write each label beside the end of its line, moved up where two would meet."""
    to_share = axis.transData + axis.transAxes.inverted()
    heights = [float(to_share.transform((at, value))[1]) for value, _, _ in labels]
    for (value, text, colour), height in zip(labels, spread(heights, LABEL_SHARE), strict=True):
        axis.annotate(
            text,
            xy=(at, value),
            xytext=(1.03, height),
            textcoords="axes fraction",
            color=colour,
            fontsize=9,
            va="center",
            annotation_clip=False,
        )


def spread(heights: Sequence[float], least: float) -> list[float]:
    """The heights, in the same order, moved up as little as keeps any two `least` apart."""
    moved = list(heights)
    above = float("-inf")
    for index in sorted(range(len(heights)), key=heights.__getitem__):
        moved[index] = max(heights[index], above + least)
        above = moved[index]
    return moved


def panels(down: int, across: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure of `size` inches and its axes, without frames."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(down, across, figsize=size, layout="constrained")
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.spines[["left", "bottom"]].set_color(FAINT)
        axis.tick_params(colors=INK, length=3)
        axis.tick_params(which="minor", colors=INK, length=2)
    return figure, axes


def save(figure: Any, path: Path, title: str) -> None:
    """Write the figure and forget it."""
    from matplotlib import pyplot as plt

    figure.suptitle(title, fontsize=12, x=0.01, ha="left", color=INK)
    figure.savefig(path, dpi=110)
    plt.close(figure)
