"""The command `intone`."""

import asyncio
import json
import os
import signal
import subprocess
import time
import wave
from pathlib import Path
from typing import IO

import grpc
import pytest

from client_command import Capture, in_process, intone
from client_double import Call, Double, double_fixture, speak, spoken  # noqa: F401
from intone.v1 import tts_pb2
from intone_client.cli import main

pytestmark = pytest.mark.timeout(30)


@pytest.mark.parametrize(
    ("arguments", "lines"), [([], 24), (["say"], 36), (["voices", "create"], 24)]
)
def test_help_fits_a_screen(
    arguments: list[str],
    lines: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*arguments, "--help"])
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) <= lines
    assert max(map(len, shown)) <= 80


async def test_raw_audio_goes_to_standard_output_and_nothing_else(
    double: Double, capfdbinary: Capture
) -> None:
    arguments = ("say", "hello", "-o", "-", "--server", double.address)
    code, out, err = await in_process(capfdbinary, *arguments)
    assert code == 0
    assert out == spoken("hello")
    assert len(err.splitlines()) == 1
    assert err.startswith("time to first audio 0.")
    assert err.endswith(" s, 0.05 s of audio, 5.6x real time\n")


async def test_quiet_says_nothing_and_options_become_the_config(
    double: Double, capfdbinary: Capture
) -> None:
    options = [
        "--voice",
        "alba",
        "--language",
        "en",
        "--temperature",
        "0.5",
        "--seed",
        "7",
        "--encoding",
        "pcm_f32le",
        "--priority",
        "batch",
        "--max-ahead",
        "2",
    ]
    arguments = ("--server", double.address, "say", "x", "-o", "-", "-q", *options)
    assert await in_process(capfdbinary, *arguments) == (0, spoken("x"), "")
    config = double.requests[0].config
    assert (config.voice, config.language, config.sampling.seed) == ("alba", "en", 7)
    assert config.sampling.temperature == 0.5
    assert config.scheduling.priority == tts_pb2.PRIORITY_BATCH
    assert config.scheduling.max_ahead.seconds == 2
    assert config.format.encoding == tts_pb2.AUDIO_ENCODING_PCM_F32LE


async def test_a_wav_file_has_true_sizes(
    double: Double, tmp_path: Path, capfdbinary: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTONE_SERVER", double.address)
    (tmp_path / "text").write_text("héllo", encoding="utf-8")
    path = tmp_path / "hello.wav"
    arguments = ("say", "-f", f"{tmp_path}/text", "-o", f"{path}")
    code, out, _ = await in_process(capfdbinary, *arguments)
    assert (code, out) == (0, b"")
    with wave.open(str(path)) as file:
        assert file.getframerate() == 24000
        assert file.readframes(10**6) == spoken("héllo")
    assert _size(path) == 44 + len(spoken("héllo"))
    assert _names(tmp_path) == ["hello.wav", "text"]


def _opened(path: Path) -> IO[str]:
    return path.open()


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def _size(path: Path) -> int:
    return path.stat().st_size


async def test_standard_input_is_spoken_as_it_arrives(double: Double) -> None:
    command = await intone("say", "-", "-o", "-", "--server", double.address, stdin=subprocess.PIPE)
    stdin, stdout = command.process.stdin, command.process.stdout
    assert stdin is not None
    assert stdout is not None
    async with asyncio.timeout(10):
        stdin.write(b"a")
        assert await stdout.readexactly(480) == spoken("a")
        stdin.write("é".encode()[:1])  # half a character is kept for the other half
        await asyncio.sleep(0.1)
        stdin.write("é".encode()[1:])
        assert await stdout.readexactly(480) == spoken("é")
        stdin.close()
        assert await stdout.read() == b""
    assert await command.process.wait() == 0


async def test_standard_input_may_be_a_plain_file(double: Double, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("from a file")
    with _opened(path) as file:
        command = await intone("say", "-", "-o", "-", "-q", server=double.address, stdin=file)
        assert await command.result() == (0, spoken("from a file"), "")


async def test_standard_input_that_is_not_utf8_is_refused(double: Double) -> None:
    command = await intone("say", "-", "-o", "-", server=double.address, stdin=subprocess.PIPE)
    code, _, err = await command.result(b"\xff\xfe")
    assert code == 2
    assert err == "intone: standard input is not UTF-8 text\n"


async def test_a_slow_writer_on_standard_input_keeps_the_stream_alive(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.send(notice=tts_pb2.Notice(kind="NOTICE_KIND_IDLE"))
        while (request := await call.read()) is not None:
            if request.HasField("text") and not request.text:
                await call.audio(spoken("!"))
                await call.finished("IDLE_TIMEOUT")
                return

    double.script = script
    command = await intone("say", "-", "-o", "-", server=double.address, stdin=subprocess.PIPE)
    stdout = command.process.stdout
    assert stdout is not None
    assert await stdout.readexactly(480) == spoken("!")
    # The server hangs up all the same: that is not success, there was more to come.
    code, _, err = await command.result()
    assert code == 1
    assert "intone: the stream has ended and takes no more text (IDLE_TIMEOUT)" in err


async def test_ctrl_c_cancels_the_call_and_keeps_what_had_arrived(
    double: Double, tmp_path: Path
) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.audio(spoken("ab"))
        await asyncio.sleep(30)

    double.script = script
    path = tmp_path / "hello.wav"
    command = await intone("say", "hello", "-o", str(path), server=double.address)
    part = tmp_path / "hello.wav.part"
    await double.until(lambda: part.exists() and _size(part) > 44, seconds=10)
    command.process.send_signal(signal.SIGINT)
    code, _, err = await command.result()
    assert code == 130
    assert f"ended early: {path} holds what had arrived" in err
    await double.until(lambda: double.ended == 1)
    with wave.open(str(path)) as file:
        assert file.readframes(10**6) == spoken("ab")


async def test_ctrl_c_works_while_standard_input_and_output_block(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.audio(bytes(10**6))  # more than a pipe holds, and nobody reads it
        await asyncio.sleep(30)

    double.script = script
    command = await intone("say", "-", "-o", "-", server=double.address, stdin=subprocess.PIPE)
    await double.until(lambda: double.calls == 1, seconds=10)
    await asyncio.sleep(0.3)
    command.process.send_signal(signal.SIGINT)
    await double.until(lambda: double.ended == 1)
    code, _, _ = await command.result()
    assert code == 130


async def test_a_reader_that_goes_away_ends_the_command_quietly(double: Double) -> None:
    async def script(call: Call) -> None:
        await call.started()
        while True:
            await call.audio(bytes(48000))
            await asyncio.sleep(0.01)

    double.script = script
    read, write = os.pipe()
    command = await intone("say", "x", "-o", "-", "-q", server=double.address, stdout=write)
    os.close(write)
    await asyncio.to_thread(os.read, read, 100)
    os.close(read)
    code, _, err = await command.result()
    assert (code, err) == (141, "")
    await double.until(lambda: double.ended == 1)


async def test_an_error_is_one_line_with_its_violations_below(
    double: Double, capfdbinary: Capture
) -> None:
    async def script(call: Call) -> None:
        await call.fail(
            grpc.StatusCode.INVALID_ARGUMENT,
            "BAD_CONFIG",
            "1 field is wrong",
            retry_seconds=1.2,
            violations=[("config.voice", "no such voice")],
        )

    double.script = script
    code, out, err = await in_process(
        capfdbinary, "say", "x", "-o", "-", "--server", double.address
    )
    assert (code, out) == (1, b"")
    assert err == (
        "intone: INVALID_ARGUMENT (BAD_CONFIG): 1 field is wrong; retry in 1.2 s\n"
        "  config.voice: no such voice\n"
    )


async def test_what_the_message_of_an_error_says_is_not_said_again(
    double: Double, capfdbinary: Capture
) -> None:
    async def script(call: Call) -> None:
        await call.fail(
            grpc.StatusCode.INVALID_ARGUMENT,
            "BAD_CONFIG",
            "config.voice: no such voice",
            violations=[("config.voice", "no such voice")],
        )

    double.script = script
    _, _, err = await in_process(capfdbinary, "say", "x", "-o", "-", "--server", double.address)
    assert err == "intone: INVALID_ARGUMENT (BAD_CONFIG): config.voice: no such voice\n"


async def test_segments_that_fail_or_have_no_end_are_reported(
    double: Double, capfdbinary: Capture
) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.audio(spoken("a"))
        await call.segment(0, "NO_END")
        await call.segment(1, "FAILED", code=13, reason="SYNTHESIS_FAILED", message="no luck")
        await call.read_all()
        await call.finished()

    double.script = script
    code, out, err = await in_process(
        capfdbinary, "say", "x", "-o", "-", "--server", double.address
    )
    assert (code, out) == (1, spoken("a"))
    assert "intone: segment 0 reached the model's length cap: its audio is suspect\n" in err
    assert "intone: segment 1 failed: INTERNAL (SYNTHESIS_FAILED): no luck\n" in err


async def test_without_an_audio_device_the_way_out_is_told_before_any_call(
    double: Double, tmp_path: Path
) -> None:
    # In the place of sounddevice, which may or may not be installed here.
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')")
    code, _, err = await (await intone("say", "x", server=double.address, cwd=tmp_path)).result()
    assert code == 2
    assert "PortAudio library not found" in err
    assert "-o hello.wav" in err
    assert double.calls == 0


async def test_play_hands_every_sample_to_the_audio_device(double: Double, tmp_path: Path) -> None:
    (tmp_path / "sounddevice.py").write_text(
        "class RawOutputStream:\n"
        "    def __init__(self, **options): self.file = open('played', 'wb')\n"
        "    def start(self): pass\n"
        "    def write(self, data): self.file.write(data)\n"
        "    def stop(self): self.file.flush()\n"
        "    def close(self): self.file.close()\n"
        "def query_devices(kind): pass\n"
    )
    code, _, _ = await (await intone("say", "ab", server=double.address, cwd=tmp_path)).result()
    assert code == 0
    assert (tmp_path / "played").read_bytes() == spoken("ab")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["say", "-o", "-"], "no text"),
        (["say", "", "-o", "-"], "no text"),
        (["say", "x", "-f", "y", "-o", "-"], "not both"),
        (["say", "-f", "/no/such/file", "-o", "-"], "cannot read /no/such/file"),
        (["say", "x", "-o", "/dev/null"], "not a plain file"),
        (["say", "x", "-o", "/no/such/dir/x.wav"], "/no/such/dir is not a directory"),
        (["say", "x", "-o", "-", "--seed", "-1"], "out of range"),
        (["shout"], "invalid choice"),
    ],
)
def test_what_cannot_work_is_refused_with_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main([*arguments, "--server", "localhost:1"][:9])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert complaint in capsys.readouterr().err


async def test_voices_info_and_plan_print_tables_or_json(
    double: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(*arguments: str) -> str:
        assert await asyncio.to_thread(main, [*arguments, "--server", double.address]) == 0
        return capsys.readouterr().out

    double.voices[0].default = True
    double.voices[0].origin = 1
    table = (await run("voices")).splitlines()
    assert table[0].split() == ["VOICE", "LANGUAGE", "ORIGIN", "ACCESS", "LICENSE"]
    assert table[1].split() == ["a", "en", "built_in", "default"]
    assert len(table) == 6
    voices = json.loads(await run("voices", "--json"))["voices"]
    assert voices[0]["origin"] == "VOICE_ORIGIN_BUILT_IN"
    assert "server" in await run("info")
    info = json.loads(await run("info", "--json"))
    assert (info["server_version"], info["limits"]["max_text_characters"]) == ("0.1.0", 7)
    plan = (await run("plan", "Hello there.")).splitlines()
    assert plan[1].split() == ["0-12", "1.50", "s", "sentence", "Hello", "there."]
    assert plan[2] == "about 2.00 s of audio, after a wait of 0.00 s"
    plan = (await run("plan", "*Hello* there.")).splitlines()
    assert plan[1].split() == ["0-14", "1.50", "s", "sentence", "*Hello*", "there."]
    assert plan[2].split() == ["said", "as", "Hello", "there."]
    assert plan[1].index("*Hello*") == plan[2].index("Hello")
    segments = json.loads(await run("plan", "Hello there.", "--json"))["segments"]
    assert segments[0]["estimated_audio"] == "1.500s"


def test_a_server_that_cannot_be_reached_is_named_within_five_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    began = time.monotonic()
    assert main(["say", "x", "-o", "unreachable.wav", "--server", "localhost:1"]) == 1
    assert time.monotonic() - began < 5
    assert (
        "intone: UNAVAILABLE: no server answers at localhost:1: Connection refused"
        in capsys.readouterr().err
    )
    assert not Path("unreachable.wav").exists()
