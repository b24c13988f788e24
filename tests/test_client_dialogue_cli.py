"""`intone dialogue` as a person calls it, against a real server with the fake engine."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import termios
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_command import COMMAND
from fake_engine import FRAME, frame_value
from processes import ServerProcess, running_server, wait_for

SCRIPT = """\
cast: {anna: anna, ben: bert}
gap: 100ms
items:
  - speaker: anna
    text: The first line is mine.
    id: first
  - ben: And the second one is mine.
  - silence: 0.5
  - reuse: first
  - anna: Here ends the script.
"""


def intone(server: ServerProcess, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "--server", server.address, "dialogue", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def samples(path: Path) -> np.ndarray[Any, Any]:
    with wave.open(str(path)) as reader:
        assert (reader.getnchannels(), reader.getsampwidth()) == (1, 2)
        return np.frombuffer(reader.readframes(reader.getnframes()), "<i2")


def spoken(text: str) -> np.ndarray[Any, Any]:
    """What the fake engine makes of a text."""
    values = [round(frame_value(text, i) * 32767) for i in range(len(text.split()))]
    return np.repeat(np.array(values, "<i2"), FRAME)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    return path


def test_every_item_is_a_file_and_all_of_them_are_dialogue_wav(
    fake_server: ServerProcess, script: Path, tmp_path: Path
) -> None:
    result = intone(
        fake_server, "script.yaml", "-o", "out", "--zip", "--plot", "out.svg", cwd=tmp_path
    )
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr == "intone: out: 5 items, 2.30 s of audio\n"
    out = tmp_path / "out"
    names = ["0001-anna.wav", "0002-ben.wav", "0003-silence.wav", "0004-reuse.wav", "0005-anna.wav"]
    others = ["captions.srt", "captions.vtt", "dialogue.wav", "timeline.json"]
    assert sorted(path.name for path in out.iterdir()) == names + others
    first, second, pause, again, last = (samples(out / name) for name in names)
    assert np.array_equal(first, spoken("The first line is mine."))
    assert np.array_equal(second, spoken("And the second one is mine."))
    assert np.array_equal(again, first)
    assert len(pause) == 12_000
    assert not pause.any()
    gap = np.zeros(2400, "<i2")
    whole = np.concatenate([first, gap, second, pause, again, gap, last])
    assert np.array_equal(samples(out / "dialogue.wav"), whole)
    timeline = json.loads((out / "timeline.json").read_text())
    assert [item["speaker"] for item in timeline["items"]] == ["anna", "ben", "", "anna", "anna"]
    assert timeline["items"][1]["start"] == pytest.approx(len(first) / 24000 + 0.1)
    assert "And the second one is mine." in (out / "captions.srt").read_text()
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert sorted(archive.namelist()) == sorted(names + others)
    assert (tmp_path / "out.svg").read_text().startswith("<?xml")


def test_what_the_server_joins_is_what_the_folder_joins(
    fake_server: ServerProcess, script: Path, tmp_path: Path
) -> None:
    """One rule for gaps, in two places."""
    from intone_client import BlockingClient, Script

    intone(fake_server, "script.yaml", "-o", "out", cwd=tmp_path)
    with BlockingClient(fake_server.address) as client:
        rendered = client.dialogue(Script.load(script)).render()
    assert samples(tmp_path / "out" / "dialogue.wav").tobytes() == rendered.audio


def test_a_line_that_fails_is_named_and_costs_no_other(
    fake_server: ServerProcess, script: Path, tmp_path: Path
) -> None:
    script.write_text(SCRIPT.replace("And the second", "fail@0 And the second"))
    result = intone(fake_server, "script.yaml", "-o", "out", cwd=tmp_path)
    assert result.returncode == 1
    told = result.stderr.splitlines()
    assert told[0] == "intone: out: 4 of 5 items, 1.72 s of audio"
    (failed,) = told[1:]
    assert failed.startswith("intone: script.yaml:7: item 2 (ben) failed: INTERNAL")
    first, last = spoken("The first line is mine."), spoken("Here ends the script.")
    joined = [first, np.zeros(12_000), first, np.zeros(2400), last]
    assert np.array_equal(samples(tmp_path / "out" / "dialogue.wav"), np.concatenate(joined))
    assert not (tmp_path / "out" / "0002-ben.wav").exists()
    script.write_text(SCRIPT)
    result = intone(fake_server, "script.yaml", "-o", "out", "--resume", cwd=tmp_path)
    assert result.returncode == 0
    assert "4 of 5 items are there already" in result.stderr
    assert (tmp_path / "out" / "0002-ben.wav").exists()


def test_resume_makes_what_is_missing_and_what_was_edited_and_nothing_else(
    script: Path, tmp_path: Path
) -> None:
    with running_server("--engine", "fake") as server:
        intone(server, "script.yaml", "-o", "out", cwd=tmp_path)
        assert server.starts() == 3
        (tmp_path / "out" / "0005-anna.wav").unlink()
        script.write_text(SCRIPT.replace("is mine.\n  - silence", "is not mine.\n  - silence"))
        result = intone(server, "script.yaml", "-o", "out", "--resume", cwd=tmp_path)
        assert result.returncode == 0
        assert server.starts() == 5
    whole = samples(tmp_path / "out" / "dialogue.wav")
    last = spoken("Here ends the script.")
    assert np.array_equal(whole[-len(last) :], last)
    assert np.array_equal(
        samples(tmp_path / "out" / "0002-ben.wav"), spoken("And the second one is not mine.")
    )


def test_interrupted_and_resumed_it_does_only_what_is_missing(tmp_path: Path) -> None:
    lines = [f"  - anna: frames@20 delay@20 line number {i}." for i in range(12)]
    script = tmp_path / "script.yaml"
    script.write_text("cast: {anna: anna}\nitems:\n" + "\n".join(lines) + "\n")
    with running_server("--engine", "fake") as server:
        process = subprocess.Popen(
            [*COMMAND, "--server", server.address, "dialogue", "script.yaml", "-o", "out"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: len(list((tmp_path / "out").glob("0*.wav"))) >= 3)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
        assert process.returncode == 130
        assert "items are missing; go on with --resume" in told
        made = len(list((tmp_path / "out").glob("0*.wav")))
        assert 3 <= made < 12
        begun = server.starts()
        result = intone(server, "script.yaml", "-o", "out", "--resume", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert server.starts() == begun + 12 - made
    assert len(samples(tmp_path / "out" / "dialogue.wav")) == 12 * 20 * FRAME


def test_mistakes_are_told_with_their_lines(
    fake_server: ServerProcess, script: Path, tmp_path: Path
) -> None:
    """Those that the client sees at once, and those that the server knows."""
    script.write_text(SCRIPT.replace("reuse: first", "reuse: fist"))
    result = intone(fake_server, "script.yaml", "-o", "out", cwd=tmp_path)
    assert result.returncode == 2
    assert "script.yaml:9: " in result.stderr
    assert "'fist'" in result.stderr
    script.write_text(SCRIPT.replace("silence: 0.5", "silence: 90").replace("ben: bert", "ben: x"))
    result = intone(fake_server, "script.yaml", "-o", "out", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr == (
        "intone: script.yaml:1: cast.ben: no voice 'x'; see `intone voices`\n"
        "script.yaml:8: items[2].silence: is 90, allowed is 1e-09 to 60\n"
    )
    assert not (tmp_path / "out").exists()
    assert "Traceback" not in result.stderr


def test_a_folder_of_somebody_else_is_left_alone(
    fake_server: ServerProcess, script: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    result = intone(fake_server, "script.yaml", "-o", "out", cwd=tmp_path)
    assert result.returncode == 2
    assert "not empty" in result.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_plain_text_is_a_script(fake_server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "play.txt").write_text("anna: Hello there.\n\nbert: Hello to you.\n")
    result = intone(fake_server, "play.txt", "-o", "out", "-q", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    names = sorted(path.name for path in (tmp_path / "out").glob("0*.wav"))
    assert names == ["0001-anna.wav", "0002-bert.wav"]


def test_on_a_terminal_it_shows_how_far_it_is(fake_server: ServerProcess, tmp_path: Path) -> None:
    lines = "".join(f"anna: frames@10 delay@20 number {i}.\n\n" for i in range(8))
    (tmp_path / "play.txt").write_text(lines)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        [*COMMAND, "--server", fake_server.address, "dialogue", "play.txt", "-o", "out"],
        cwd=tmp_path,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
    )
    os.close(theirs)
    shown = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        # An error is how Linux says that the other end is closed.
        while data := terminal.read(4096):
            shown += data
    assert process.wait(20) == 0
    assert b" %|" in shown
    assert b"left" in shown
    assert b"8 items" in shown
