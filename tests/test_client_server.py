"""The command `intone` against a real server."""

from pathlib import Path

import pytest
import soundfile

from client_command import Capture, in_process
from processes import ServerProcess

pytestmark = pytest.mark.timeout(60)

TEXT = "Hello there. It works."


async def seconds_said(
    capture: Capture, server: ServerProcess, path: Path, *options: str
) -> tuple[float, float]:
    """How long the audio in `path` is, and how long the command says it is."""
    arguments = ("say", TEXT, "--seed", "7", "-o", str(path), "--server", server.address)
    code, _, err = await in_process(capture, *arguments, *options)
    assert code == 0, err
    told = float(err.split(" s of audio")[0].rpartition(" ")[2])
    if path.suffix == ".ulaw":
        return path.stat().st_size / 8000, told
    return soundfile.info(str(path)).duration, told


@pytest.mark.parametrize("name", ["x.wav", "x.flac", "x.ogg", "x.opus", "x.mp3"])
async def test_each_kind_of_file_plays_as_long_as_the_command_says(
    builtin_server: ServerProcess, capfdbinary: Capture, tmp_path: Path, name: str
) -> None:
    held, told = await seconds_said(capfdbinary, builtin_server, tmp_path / name)
    assert told > 1
    # MP3 decoders add up to two frames (48 ms each at 24 kHz) of the codec's own.
    assert held == pytest.approx(told, abs=0.1 if name == "x.mp3" else 0.006)


async def test_a_telephone_file_has_8000_bytes_for_each_second(
    builtin_server: ServerProcess, capfdbinary: Capture, tmp_path: Path
) -> None:
    held, told = await seconds_said(
        capfdbinary, builtin_server, tmp_path / "x.ulaw", "--rate", "8000"
    )
    assert held == pytest.approx(told, abs=0.006)


async def test_a_server_that_cannot_clone_says_so(
    builtin_server: ServerProcess, capfdbinary: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(b"RIFF")
    at = ("--server", builtin_server.address)
    code, out, err = await in_process(capfdbinary, "voices", "create", "bob", str(path), *at)
    assert (code, out) == (1, b"")
    assert "CLONING_UNAVAILABLE" in err
