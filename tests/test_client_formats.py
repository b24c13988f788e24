"""What `intone say` writes: formats by name, options of audio and text."""

import asyncio
import io
import signal
import struct
import wave
from pathlib import Path

import numpy
import pytest
import soundfile

from client_command import Capture, in_process, intone
from client_double import Call, Double, double_fixture, spoken  # noqa: F401
from intone.v1 import tts_pb2
from intone_client.cli import main

pytestmark = pytest.mark.timeout(30)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "forced", "encoding"),
    [
        ("x.ogg", None, "OGG_OPUS"),
        ("x.opus", None, "OGG_OPUS"),
        ("x.flac", None, "FLAC"),
        ("x.MP3", None, "MP3"),
        ("x.pcm", None, "PCM_S16LE"),
        ("x.raw", "pcm_f32le", "PCM_F32LE"),
        ("x.ulaw", None, "MULAW"),
        ("x.alaw", "alaw", "ALAW"),
        ("x.sound", "mp3", "MP3"),
    ],
)
async def test_the_name_of_the_file_chooses_the_format(
    double: Double,
    capfdbinary: Capture,
    tmp_path: Path,
    name: str,
    forced: str | None,
    encoding: str,
) -> None:
    """The bytes go into the file as they come."""
    more = [] if forced is None else ["--encoding", forced]
    arguments = ("say", "ab", "-o", f"{tmp_path}/{name}", "--server", double.address, *more)
    assert (await in_process(capfdbinary, *arguments))[:2] == (0, b"")
    asked = double.requests[0].config.format.encoding
    assert asked == tts_pb2.AudioEncoding.Value(f"AUDIO_ENCODING_{encoding}")
    assert (tmp_path / name).read_bytes() == spoken("ab")
    assert names(tmp_path) == [name]


@pytest.mark.parametrize(
    ("name", "forced"), [("x.wav", None), ("x.wav", "pcm_s16le"), ("x", "wav")]
)
async def test_a_wav_file_is_made_around_16_bit_samples(
    double: Double, capfdbinary: Capture, tmp_path: Path, name: str, forced: str | None
) -> None:
    more = [] if forced is None else ["--encoding", forced]
    arguments = ("say", "ab", "-o", f"{tmp_path}/{name}", "--server", double.address, *more)
    assert (await in_process(capfdbinary, *arguments))[0] == 0
    assert double.requests[0].config.format.encoding == tts_pb2.AUDIO_ENCODING_PCM_S16LE
    with wave.open(str(tmp_path / name)) as file:
        assert file.readframes(10**6) == spoken("ab")


@pytest.mark.parametrize("encoding", ["pcm_f32le", "mulaw", "alaw", "ogg_opus", "flac", "mp3"])
async def test_standard_output_takes_every_stream(
    double: Double, capfdbinary: Capture, encoding: str
) -> None:
    arguments = ("say", "ab", "-o", "-", "-q", "--encoding", encoding, "--server", double.address)
    assert await in_process(capfdbinary, *arguments) == (0, spoken("ab"), "")
    asked = double.requests[0].config.format.encoding
    assert asked == tts_pb2.AudioEncoding.Value(f"AUDIO_ENCODING_{encoding.upper()}")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-o", "x.aac"], "x.aac: known endings are .wav, .ogg, .opus, .flac, .mp3, "),
        (["-o", "x"], "x: known endings are "),
        (["-o", "x.mp3", "--encoding", "flac"], "x.mp3: .mp3 files hold mp3, not flac"),
        (["-o", "x.wav", "--encoding", "mulaw"], "x.wav: .wav files hold wav, not mulaw"),
        (["-o", "x.raw", "--encoding", "mp3"], "x.raw: .raw files hold pcm_s16le, not mp3"),
        (["-o", "-", "--encoding", "wav"], "give -o hello.wav"),
        (["-o", "x.mp3", "--play"], "cannot play mp3"),
        (["--encoding", "mulaw"], "cannot play mulaw"),
        (["-o", "/dev/null", "--encoding", "mp3"], "/dev/null is not a plain file"),
        (["-o", "-", "--replace", "dB"], "'dB' is not two sides of a '='"),
        (["-o", "-", "--replace", "=x"], "'=x' is not two sides of a '='"),
        (["-o", "-", "--gap", "nan"], "segment_gap is nan"),
        (["-o", "-", "--rate", "-1"], "out of range"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_call(
    arguments: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code: object = main(["say", "x", "--server", "localhost:1", *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert complaint in capsys.readouterr().err
    assert names(tmp_path) == []


async def test_a_stream_without_a_sample_leaves_the_old_file(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    """Its header alone is nothing to listen to."""

    async def script(call: Call) -> None:
        await call.started()
        await call.send(audio=tts_pb2.AudioChunk(data=b"fLaC"))
        await call.read_all()
        await call.finished()

    double.script = script
    path = tmp_path / "x.flac"
    path.write_bytes(b"old")
    arguments = ("say", "...", "-o", str(path), "--server", double.address)
    code, _, err = await in_process(capfdbinary, *arguments)
    assert code == 1
    assert "nothing was spoken" in err
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["x.flac"])


async def test_a_flac_file_learns_its_length_at_the_end(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    """A stream cannot know it; readers that trust the header want it."""
    samples = numpy.arange(-3000, 3000, dtype=numpy.int16)
    whole = io.BytesIO()
    soundfile.write(whole, samples, 24000, format="FLAC")
    streamed = bytearray(whole.getvalue())
    streamed[22:26] = bytes(4)
    assert soundfile.info(io.BytesIO(bytes(streamed))).frames != 6000

    async def script(call: Call) -> None:
        await call.started()
        await call.send(audio=tts_pb2.AudioChunk(data=bytes(streamed), sample_count=6000))
        await call.read_all()
        await call.finished()

    double.script = script
    path = tmp_path / "x.flac"
    arguments = ("say", "x", "-o", str(path), "--server", double.address)
    assert (await in_process(capfdbinary, *arguments))[0] == 0
    assert path.read_bytes() == whole.getvalue()


async def test_ctrl_c_keeps_what_had_arrived_of_any_format(double: Double, tmp_path: Path) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.audio(spoken("ab"))
        await asyncio.sleep(30)

    double.script = script
    path, part = tmp_path / "x.ogg", tmp_path / "x.ogg.part"
    command = await intone("say", "hello", "-o", str(path), server=double.address)
    await double.until(lambda: part.exists() and part.stat().st_size > 0, seconds=10)
    assert part.read_bytes() == spoken("ab")
    command.process.send_signal(signal.SIGINT)
    code, _, err = await command.result()
    assert code == 130
    assert f"ended early: {path} holds what had arrived" in err
    assert (path.read_bytes(), names(tmp_path)) == (spoken("ab"), ["x.ogg"])


async def test_a_telephone_rate_reaches_server_and_file(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    async def script(call: Call) -> None:
        first = await call.read()
        assert first is not None
        await call.send(started=tts_pb2.Started(format=first.config.format))
        await call.audio(struct.pack("<4h", 1, 2, 3, 4))
        await call.read_all()
        await call.finished()

    double.script = script
    path = str(tmp_path / "x.wav")
    options = ("--rate", "8000", "--gain", "-6", "--server", double.address)
    assert (await in_process(capfdbinary, "say", "x", "-o", path, *options))[0] == 0
    assert double.requests[0].config.gain_db == -6
    with wave.open(path) as file:
        assert (file.getframerate(), file.getnframes()) == (8000, 4)


async def test_say_and_plan_treat_text_alike(double: Double, capfdbinary: Capture) -> None:
    options = ["--voice", "alba", "--language", "en", "--markdown", "--pauses", "--normalize"]
    options += ["--replace", "dB=decibel", "--replace", "x=", "--gap", "0.25"]
    options += ["--paragraph-gap", "1", "--server", double.address]
    assert (await in_process(capfdbinary, "say", "x", "-o", "-", *options))[0] == 0
    assert (await in_process(capfdbinary, "plan", "x", *options))[0] == 0
    said = double.requests[0].config
    planned = double.requests[-1].config
    assert said.text == tts_pb2.TextOptions(
        strip_markdown=True,
        inline_pauses=True,
        normalize=True,
        replacements=[
            tts_pb2.Replacement(word="dB", spoken="decibel"),
            tts_pb2.Replacement(word="x"),
        ],
    )
    assert said.segmentation.segment_gap.nanos == 250_000_000
    assert said.segmentation.paragraph_gap.seconds == 1
    said.ClearField("format")
    assert said == planned
