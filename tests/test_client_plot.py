"""Pictures of a dialogue."""

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest
from matplotlib.image import imread

from intone.v1 import tts_pb2
from intone_client._dialogues.folder import DialogueFolder
from intone_client._dialogues.plan import plan_items
from intone_client._dialogues.plot import check_plot, plot_timeline

pytestmark = pytest.mark.timeout(60)

SVG = "{http://www.w3.org/2000/svg}"


def item(number: int, speaker: str, start: float | None, seconds: float, **more: Any) -> Any:
    return {
        "number": number,
        "kind": "speech",
        "speaker": speaker,
        "voice": "alba",
        "reuse_of": None,
        "start": start,
        "end": None if start is None else start + seconds,
        "sample_count": round(seconds * 24000),
        "status": "done",
    } | more


def timeline(*items: Any) -> dict[str, Any]:
    return {"items": list(items)}


def written(path: Path) -> list[str]:
    """All texts of an SVG, in order: matplotlib draws letters and notes each text in a comment."""
    text = path.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    return re.findall(r"<!-- (.*) -->", text)


def grey(path: Path) -> Any:
    """A PNG as lightness from 0 to 1: what is left of it without colour."""
    return imread(path)[:, :, :3].mean(axis=2)


def test_a_png_and_an_svg_come_by_the_ending(tmp_path: Path) -> None:
    document = timeline(item(1, "Anna", 0.0, 1.0), item(2, "Bob", 1.2, 2.0))
    for name in ("a.png", "a.PNG", "a.svg"):
        plot_timeline(document, tmp_path / name)
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG\r\n")
    assert grey(tmp_path / "a.png").shape[1] == 9 * 120
    texts = written(tmp_path / "a.svg")
    assert [each for each in texts if each in ("Anna", "Bob", "1", "2")] == [
        "Anna",
        "Bob",
        "1",
        "2",
    ]
    assert {"0.0 s", "0.5 s", "3.0 s"} < set(texts)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.PNG", "a.png", "a.svg"]


@pytest.mark.parametrize("name", ["a.jpg", "a", "png", "a.svg.gz"])
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    for put in (check_plot, lambda path: plot_timeline(timeline(item(1, "a", 0.0, 1.0)), path)):
        with pytest.raises(ValueError, match=rf"{name}: known endings of a plot are \.png, \.svg"):
            put(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told_before_it_is_needed(tmp_path: Path) -> None:
    assert check_plot(tmp_path / "a.png") == tmp_path / "a.png"
    with pytest.raises(NotADirectoryError, match="no is not a directory"):
        check_plot(tmp_path / "no/a.png")
    (tmp_path / "b.png").mkdir()
    with pytest.raises(OSError, match="is not a plain file"):
        plot_timeline(timeline(item(1, "a", 0.0, 1.0)), tmp_path / "b.png")


def test_without_matplotlib_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for put in (check_plot, lambda path: plot_timeline(timeline(item(1, "a", 0.0, 1.0)), path)):
        with pytest.raises(ValueError, match=r"matplotlib is not installed \(the extra `plot`\)"):
            put(tmp_path / "a.png")


def test_matplotlib_is_imported_when_it_is_needed_and_pyplot_never(tmp_path: Path) -> None:
    program = f"""
import sys
from intone_client._dialogues.plot import plot_timeline
print("matplotlib" in sys.modules)
plot_timeline({timeline(item(1, "a", 0.0, 1.0))}, {str(tmp_path / "a.png")!r})
print("matplotlib" in sys.modules, "matplotlib.pyplot" in sys.modules)
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


def test_a_row_is_a_speaker_and_silence_has_none(tmp_path: Path) -> None:
    document = timeline(
        item(1, "Bob", 0.0, 1.0),
        item(2, "", 1.0, 1.0, kind="silence", voice=""),
        item(3, "Anna", 2.0, 1.0),
        item(4, "", 3.0, 1.0),  # in the voice of the config
        item(5, "", 4.0, 1.0, voice=""),  # in that of the server
        item(6, "", 5.0, 1.0, kind="audio", voice=""),
        item(7, "", 6.0, 1.0, kind="reuse", voice="", reuse_of=2),
        item(8, "", 7.0, 1.0, kind="reuse", voice="", reuse_of=6),
        item(9, "Bob", 8.0, 1.0),
        item(10, "Eve", 9.0, 0.0, status="skipped"),
        item(11, "Zoe", None, 0.0, status="missing"),
    )
    plot_timeline(document, tmp_path / "a.svg")
    texts = written(tmp_path / "a.svg")
    names = [each for each in texts if not re.fullmatch(r"\d+( s)?", each)]
    assert names == ["Bob", "Anna", "alba", "voice", "audio", "reused"]
    numbers = [each for each in texts if each.isdecimal()]
    assert numbers == ["1", "3", "4", "5", "6", "8", "9"]


def test_what_is_reused_is_hatched(tmp_path: Path) -> None:
    said = item(1, "Anna", 0.0, 1.0)
    plot_timeline(timeline(said, item(2, "Anna", 1.0, 1.0)), tmp_path / "plain.svg")
    repeated = item(2, "Anna", 1.0, 1.0, kind="reuse", reuse_of=1)
    plot_timeline(timeline(said, repeated), tmp_path / "reused.svg")
    assert "<pattern" not in (tmp_path / "plain.svg").read_text()
    assert "<pattern" in (tmp_path / "reused.svg").read_text()
    assert "reused" in written(tmp_path / "reused.svg")


@pytest.mark.parametrize("seconds", [0.0, 2.0], ids=["nothing heard", "heard in part"])
def test_what_failed_can_be_told_without_colour(tmp_path: Path, seconds: float) -> None:
    said = item(1, "Anna", 0.0, 1.0), item(3, "Anna", 4.0, 1.0)
    for status in ("done", "failed", "skipped"):
        document = timeline(said[0], item(2, "Anna", 1.5, seconds, status=status), said[1])
        plot_timeline(document, tmp_path / f"{status}.png")
    failed = grey(tmp_path / "failed.png")
    done = grey(tmp_path / ("done.png" if seconds else "skipped.png"))
    # Below the legend, which only the one has.
    height = min(len(failed), len(done)) // 2
    difference = numpy.abs(failed[-height:] - done[-height:]) > 0.3
    assert difference.sum() > 60


def test_only_failures_are_told_of_in_the_legend(tmp_path: Path) -> None:
    plot_timeline(timeline(item(1, "Anna", 0.0, 1.0)), tmp_path / "a.svg")
    assert "failed" not in written(tmp_path / "a.svg")
    failed = item(1, "Anna", 0.0, 0.0, status="failed")
    plot_timeline(timeline(failed), tmp_path / "a.svg")
    assert {"Anna", "1", "failed"} < set(written(tmp_path / "a.svg"))


def test_a_dialogue_of_which_nothing_is_there_has_no_picture(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing of the dialogue is there"):
        plot_timeline(timeline(item(1, "Anna", None, 0.0, status="missing")), tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["png", "svg"])
@pytest.mark.parametrize(
    "speaker",
    [
        "あかり",
        "محمد",
        "हिन्दी",
        "한국어",
        "Ελένη",
        "🎤 Eve",
        "a\tb\n",
        "\u202eabc",
        "$x_1$ $",
        "\U000e0001",
        "<&>",
    ],
)
def test_names_of_any_script_are_drawn_as_well_as_can_be(
    tmp_path: Path, ending: str, speaker: str
) -> None:
    """Without a warning of matplotlib's about missing glyphs, and never as a formula."""
    path = tmp_path / f"a.{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_timeline(timeline(item(1, speaker, 0.0, 1.0), item(2, "Bob", 1.0, 1.0)), path)
    assert path.stat().st_size > 1000


def test_names_that_no_font_has_can_still_be_told_apart(tmp_path: Path) -> None:
    """A computer may have a font for Linear A, but hardly for what is no letter at all."""
    names = ["\U00010600", "\U00010601", "\u202e", "A\U000e0001"]
    items = [item(n, name, n * 30.0, 20.0) for n, name in enumerate(names, 1)]
    plot_timeline(timeline(*items), tmp_path / "a.svg")
    shown = [each for each in written(tmp_path / "a.svg") if not each[:1].isdecimal()]
    assert shown[0] in (names[0], "□ (speaker 1)")
    assert shown[1] in (names[1], "□ (speaker 2)")
    assert shown[2:] == ["(speaker 3)", "A"]


def test_long_names_are_cut(tmp_path: Path) -> None:
    plot_timeline(timeline(item(1, "N" * 128, 0.0, 1.0)), tmp_path / "a.svg")
    assert "N" * 23 + "…" in written(tmp_path / "a.svg")


@pytest.mark.parametrize("speakers", [1, 12])
@pytest.mark.parametrize("count", [2, 200])
def test_a_picture_grows_with_the_dialogue(tmp_path: Path, count: int, speakers: int) -> None:
    """So that there is room for each bar and name, up to a size that programs can show."""
    items = [item(n + 1, f"S{n % speakers}", n * 4.0, 3.5) for n in range(count)]
    plot_timeline(timeline(*items), tmp_path / "a.png")
    height, width = grey(tmp_path / "a.png").shape
    assert width == (9 * 120 if count == 2 else 24 * 120)
    rows = min(count, speakers)
    assert 130 + 60 * rows < height < 250 + 70 * rows


@pytest.mark.parametrize(
    ("seconds", "marks"),
    [
        (0.4, ["0.0 s", "0.1 s", "0.4 s"]),
        (20.0, ["0 s", "2 s", "20 s"]),
        (130.0, ["0 s", "15 s", "1:00", "2:00"]),
        (7200.0, ["0 s", "15:00", "1:00:00", "2:00:00"]),
    ],
)
def test_times_are_marked_as_people_write_them(
    tmp_path: Path, seconds: float, marks: list[str]
) -> None:
    plot_timeline(timeline(item(1, "Anna", 0.0, seconds)), tmp_path / "a.svg")
    assert set(marks) < set(written(tmp_path / "a.svg"))


def test_the_timeline_of_a_folder_can_be_drawn(tmp_path: Path) -> None:
    script = [
        tts_pb2.DialogueItem(id="a", speech={"speaker": "Anna", "text": "Hello."}),
        tts_pb2.DialogueItem(silence={"duration": {"seconds": 1}}),
        tts_pb2.DialogueItem(reuse={"item_id": "a"}),
        tts_pb2.DialogueItem(speech={"speaker": "Bob", "text": "Hi."}),
    ]
    folder = DialogueFolder(tmp_path / "out")
    folder.plan(plan_items(script, {}, tts_pb2.SpeechConfig()), gap=0.2, seed=1)
    folder.begin(8000)
    folder.save_item(1, bytes(16_000))
    folder.save_item(2, bytes(16_000))
    # Also while it is not complete.
    plot_timeline(json.loads((tmp_path / "out/timeline.json").read_bytes()), tmp_path / "a.svg")
    assert "Anna" in written(tmp_path / "a.svg")
    folder.copy_item(3)
    folder.save_item(4, b"", error="it broke")
    plot_timeline(folder.finish(), tmp_path / "b.svg")
    assert {"Anna", "Bob", "1", "3", "4", "reused", "failed"} < set(written(tmp_path / "b.svg"))
