"""The plot of a run."""

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.report import Row

COLOURS = {"library": "#888888", "pocket-tts serve": "#d98c3f", "intone": "#3f7fbf"}
BAR_WIDTH = 0.27


def write_plot(path: Path, rows: Sequence[Row], title: str) -> None:
    """Three panels over the number of streams: first audio, total speed, silence."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    # At one stream the first text that was measured, which is one segment for all.
    chosen = [row for row in rows if row.streams > 1 or row.load == rows[0].load]
    panels: list[tuple[str, Callable[[Row], float]]] = [
        ("first audio, median (s)", lambda row: row.first_audio_median),
        ("total speed (audio s / s)", lambda row: row.speed),
        ("silence per listener (s)", lambda row: row.silence),
    ]
    streams = sorted({row.streams for row in chosen})
    figure, axes = plt.subplots(1, len(panels), figsize=(12, 3.6), layout="constrained")
    for axis, (label, value) in zip(axes, panels, strict=True):
        for place, (contender, colour) in enumerate(COLOURS.items()):
            own = [row for row in chosen if row.contender == contender]
            axis.bar(
                [streams.index(row.streams) + (place - 1) * BAR_WIDTH for row in own],
                [value(row) for row in own],
                BAR_WIDTH,
                label=contender,
                color=colour,
            )
        axis.set_xticks(range(len(streams)), [str(count) for count in streams])
        axis.set_xlabel("streams")
        axis.set_title(label, fontsize=10)
        axis.grid(axis="y", alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=110)
    plt.close(figure)
