"""A picture of a measurement."""

from collections.abc import Sequence
from pathlib import Path

from intone_client._dialogues.plot import check_plot, save_figure

from .result import CallResult, Outcome

_INCHES = (10.0, 6.0)

# Of Okabe and Ito, for colour-blind people too. Everything is said without colour as well.
_BLUE = "#0072b2"
_ORANGE = "#d55e00"
_INK = "#333333"
_PALE = "#e4e4e4"


def plot_calls(results: Sequence[CallResult], path: str | Path) -> None:
    """Draw first audio over time, and below it the calls that were open, with silences marked.

    Raises what `check_plot` raises.
    """
    path = check_plot(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=_INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, sharex=True, height_ratios=(3, 2))
    heard = [result for result in results if result.heard is not None]
    above.plot(
        [result.started_at for result in heard],
        [1000 * (result.first_audio_seconds or 0.0) for result in heard],
        "o",
        color=_BLUE,
        markersize=4,
        label="first audio",
    )
    for outcome, marker in ((Outcome.REFUSED, "x"), (Outcome.FAILED, "X"), (Outcome.NOT_SENT, "v")):
        times = [result.planned_at for result in results if result.outcome is outcome]
        if times:
            name = outcome.value.replace("_", " ")
            above.plot(times, [0] * len(times), marker, color=_ORANGE, label=name, clip_on=False)
    above.set_ylabel("first audio in ms")
    times, counts = open_calls(results)
    below.step(times, counts, where="post", color=_INK, label="open calls")
    gaps = [gap for result in results for gap in result.server_gaps]
    if gaps:
        starts = [gap.at + gap.text_seconds for gap in gaps]
        ends = [gap.at + gap.text_seconds + gap.server_seconds for gap in gaps]
        # One over the other: the darker, the more listeners wait.
        below.hlines([0] * len(gaps), starts, ends, color=_ORANGE, alpha=0.4, linewidth=6)
        below.plot([], [], "-", color=_ORANGE, linewidth=6, label="a listener hears silence")
    below.set_ylabel("open calls")
    below.set_xlabel("seconds")
    below.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    above.set_ylim(bottom=0)
    for axes in (above, below):
        axes.grid(color=_PALE)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, colors=_INK)
        axes.legend(
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=4,
            frameon=False,
            labelcolor=_INK,
        )
        for spine in axes.spines.values():
            spine.set_visible(False)
    save_figure(figure, path)


def open_calls(results: Sequence[CallResult]) -> tuple[list[float], list[int]]:
    """When the number of open calls changes, and what it is from then on. It begins with 0."""
    changes = []
    for result in results:
        if result.started_at is not None and result.ended_at is not None:
            changes += [(result.started_at, 1), (result.ended_at, -1)]
    times, counts = [0.0], [0]
    for at, change in sorted(changes):
        times.append(at)
        counts.append(counts[-1] + change)
    return times, counts
