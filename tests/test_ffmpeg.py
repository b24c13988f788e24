"""Each format, piped as it arrives into the ffmpeg that other people have."""

import subprocess
import sys
from pathlib import Path

import pytest

from processes import ServerProcess
from test_formats import PARAGRAPH

INTONE = str(Path(sys.executable).parent / "intone")
FORMATS = [
    ("ogg_opus", 0, "ogg"),
    ("flac", 0, "flac"),
    ("mp3", 0, "mp3"),
    ("mulaw", 8000, "mulaw"),
    ("alaw", 8000, "alaw"),
    ("pcm_s16le", 16000, "s16le"),
    ("pcm_f32le", 44100, "f32le"),
]


@pytest.mark.system
@pytest.mark.parametrize(("encoding", "rate", "demuxer"), FORMATS)
def test_ffmpeg_decodes_a_streamed_paragraph_to_the_length_of_the_speech(
    builtin_server: ServerProcess, encoding: str, rate: int, demuxer: str
) -> None:
    heard = seconds_of(say(builtin_server, encoding, rate), demuxer, rate)
    said = len(say(builtin_server, "pcm_s16le", 0)) / 2 / 24000
    # MP3 has the codec's delay before, and the rest of a frame behind.
    slack = 0.15 if encoding == "mp3" else 0.002
    assert said - 0.002 <= heard <= said + slack


def say(server: ServerProcess, encoding: str, rate: int) -> bytes:
    command = [INTONE, "--server", server.address, "say", PARAGRAPH, "--seed", "3", "-q", "-o", "-"]
    command += ["--encoding", encoding, *(["--rate", str(rate)] if rate else [])]
    return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout


def seconds_of(data: bytes, demuxer: str, rate: int) -> float:
    """Through a pipe: ffmpeg cannot look at the end first."""
    raw = ["-ar", str(rate), "-ac", "1"] if rate else []
    command = ["ffmpeg", "-v", "error", "-xerror", "-f", demuxer, *raw, "-i", "-"]
    command += ["-f", "s16le", "-ar", "48000", "-ac", "1", "-"]
    result = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return len(result.stdout) / 2 / 48000
