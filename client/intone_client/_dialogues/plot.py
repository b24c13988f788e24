"""A picture of a dialogue: who speaks when."""

import io
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intone_client._audio import PartFile, check_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ENDINGS = (".png", ".svg")
_DPI = 120

_NAME_CHARACTERS = 24
_FONT = "DejaVu Sans"  # which matplotlib brings along
_NO_FONT = "Last Resort"  # it does this too, to say what it cannot draw
_NO_GLYPH = "\N{WHITE SQUARE}"

_LEAST_INCHES, _MOST_INCHES = 9.0, 24.0
_INCHES_PER_ITEM = 0.25
_INCHES_PER_ROW = 0.55
_INCHES_PER_TICK = 0.8
_INCHES_PER_DIGIT = 0.07
_BAR_HEIGHT = 0.5  # of that of its row
_TICK_SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)

# Of Okabe and Ito, for colour-blind people too. Everything is said without colour as well.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_INK = "#333333"
_PALE = "#e4e4e4"


def check_plot(path: str | Path) -> Path:
    """`path`, if a picture can be put there; to be asked before a long dialogue is spoken.

    Raises ValueError for another ending than .png or .svg, or without matplotlib, and OSError.
    """
    path = Path(path)
    if path.suffix.lower() not in _ENDINGS:
        raise ValueError(f"{path}: known endings of a plot are {', '.join(_ENDINGS)}")
    try:
        import matplotlib  # noqa: F401 - a moment; what takes a second is not imported here
    except ImportError:
        raise ValueError(
            f"cannot draw {path}: matplotlib is not installed (the extra `plot`)"
        ) from None
    return check_target(path)


def plot_timeline(timeline: dict[str, Any], path: str | Path) -> None:
    """Draw the document of `timeline.json`: a row for each speaker, a bar for each item.

    Silence is left empty, what is reused is hatched, what failed has a cross, and what is missing
    is not there. Raises what `check_plot` raises, and ValueError if no item has a place yet.
    """
    path = check_plot(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    bars = list(_bars(timeline["items"]))
    if not bars:
        raise ValueError(f"cannot draw {path}: nothing of the dialogue is there")
    names = list(dict.fromkeys(bar.name for bar in bars))
    width = min(max(_LEAST_INCHES, len(bars) * _INCHES_PER_ITEM), _MOST_INCHES)
    figure = Figure(figsize=(width, 1.2 + _INCHES_PER_ROW * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    end = max(bar.end for bar in bars)
    _draw_frame(axes, names, end, width)
    for bar in bars:
        has_room = (bar.end - bar.start) * width > end * _INCHES_PER_DIGIT * len(str(bar.number))
        _draw_bar(axes, bar, names.index(bar.name), numbered=has_room or bar.has_failed)
    _draw_legend(axes, bars)
    save_figure(figure, path)


def save_figure(figure: "Figure", path: Path) -> None:
    """Put the picture into the file that `check_plot` has allowed. Raises OSError."""
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix.lower()[1:], dpi=_DPI)
    part = PartFile(path)
    whole = False
    try:
        part.write(picture.getvalue())
        whole = True
    finally:
        part.close(keep=whole)


@dataclass(frozen=True, slots=True)
class _Bar:
    """An item in its row; in seconds."""

    number: int
    name: str
    start: float
    end: float
    is_reuse: bool
    has_failed: bool


def _bars(items: list[dict[str, Any]]) -> Iterator[_Bar]:
    for item in items:
        said = items[item["reuse_of"] - 1] if item["reuse_of"] else item
        has_failed = item["status"] == "failed"
        is_heard = item["sample_count"] > 0 and said["kind"] != "silence"
        if item["start"] is not None and (is_heard or has_failed):
            name = said["kind"]
            if name == "speech":
                name = said["speaker"] or said["voice"] or "voice"
            is_reuse = item["kind"] == "reuse"
            yield _Bar(item["number"], name, item["start"], item["end"], is_reuse, has_failed)


def _draw_frame(axes: "Axes", names: list[str], end: float, width: float) -> None:
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    labels, families = _labels(names)
    axes.set_yticks(range(len(names)), labels, family=families, parse_math=False)
    axes.set_ylim(len(names) - 0.45, -0.65)
    axes.set_xlim(0, end * 1.01 or 1)
    step = next(
        (each for each in _TICK_SECONDS if end * _INCHES_PER_TICK <= each * width),
        _TICK_SECONDS[-1],
    )
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: _clock(at, step)))
    axes.tick_params(length=0, colors=_INK)
    axes.grid(color=_PALE)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_bar(axes: "Axes", bar: _Bar, row: int, *, numbered: bool) -> None:
    colour = _COLOURS[row % len(_COLOURS)]
    middle = (bar.start + bar.end) / 2
    is_plain = not bar.is_reuse and not bar.has_failed
    if bar.end > bar.start:
        axes.barh(
            row,
            bar.end - bar.start,
            left=bar.start,
            height=_BAR_HEIGHT,
            facecolor=colour if is_plain else "white",
            edgecolor="white" if is_plain else colour,
            linewidth=0.4 if is_plain else 1.0,
            hatch="/////" if bar.is_reuse else None,
        )
    if bar.has_failed:
        axes.plot(middle, row, **_CROSS)
    if numbered:
        above = row - _BAR_HEIGHT / 2 - 0.03
        axes.text(middle, above, str(bar.number), size=7, color=_INK, ha="center", va="bottom")


#: What failed. It may stand at the very edge.
_CROSS: dict[str, Any] = {
    "marker": "X",
    "markersize": 9,
    "color": "#b00020",
    "markeredgecolor": "white",
    "linestyle": "none",
    "clip_on": False,
}


def _draw_legend(axes: "Axes", bars: list[_Bar]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Patch | Line2D] = []
    if any(bar.is_reuse for bar in bars):
        keys.append(Patch(facecolor="white", edgecolor=_INK, hatch="/////", label="reused"))
    if any(bar.has_failed for bar in bars):
        keys.append(Line2D([], [], **_CROSS, label="failed"))
    if keys:
        axes.legend(
            handles=keys,
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=len(keys),
            frameon=False,
            labelcolor=_INK,
        )


def _labels(names: list[str]) -> tuple[list[str], list[str]]:
    """Names as they can be drawn, and the font families for it.

    Where no font on this computer has a character, there is a square, and which speaker it is.
    """
    shown = [_printable(name) for name in names]
    families, unknown = _families("".join(shown))
    labels = []
    for number, label in enumerate(shown, 1):
        known = "".join(_NO_GLYPH if each in unknown else each for each in label)
        is_readable = label and known == label
        labels.append(label if is_readable else f"{known} (speaker {number})".lstrip())
    return labels, families


def _printable(name: str) -> str:
    """One line without what has no glyph, and not too long."""
    kept = "".join(" " if unicodedata.category(each)[0] in "CZ" else each for each in name)
    name = " ".join(kept.split())
    return name if len(name) <= _NAME_CHARACTERS else f"{name[: _NAME_CHARACTERS - 1].rstrip()}…"


def _families(text: str) -> tuple[list[str], set[str]]:
    """Font families that can draw `text` together, and the characters that none can."""
    from matplotlib import font_manager

    families = [_FONT]
    unknown = set(text)
    fonts = [
        font for font in font_manager.fontManager.ttflist if not font.name.startswith(_NO_FONT)
    ]
    for font in sorted(fonts, key=lambda font: (font.name != _FONT, font.name, font.fname)):
        if not unknown:
            break
        try:
            glyphs = font_manager.get_font(font.fname).get_charmap()
        except (OSError, RuntimeError):
            continue  # removed since they were listed, or of a kind that cannot be drawn
        found = {each for each in unknown if ord(each) in glyphs}
        if found:
            families.append(font.name)
            unknown -= found
    return list(dict.fromkeys(families)), unknown


def _clock(seconds: float, step: float) -> str:
    """A time on an axis with a mark every `step` seconds."""
    if step < 1:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
