"""The command `intone voices`."""

import asyncio
import hashlib
import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest

from client_command import Capture, in_process, intone
from client_double import Call, Double, double_fixture  # noqa: F401
from intone.v1 import voices_pb2

pytestmark = pytest.mark.timeout(30)

RECORDING = b"RIFF\x24\x00\x00\x00WAVE"
STATE = struct.pack("<Q", 2) + b"{}"


def put(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


async def test_list_is_what_voices_does_by_itself(double: Double, capfdbinary: Capture) -> None:
    at = ("--server", double.address)
    alone = await in_process(capfdbinary, "voices", *at)
    assert alone[0] == 0
    assert await in_process(capfdbinary, "voices", "list", *at) == alone
    options = ("--json", "--timeout", "5", *at)
    as_json = await in_process(capfdbinary, "voices", *options)
    assert len(json.loads(as_json[1])["voices"]) == 5
    assert await in_process(capfdbinary, "voices", "list", *options) == as_json
    # Options that stand before the word count too.
    assert await in_process(capfdbinary, "voices", *options, "list") == as_json


async def test_list_says_whose_voices_are(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    arguments = ["create", "ours", put(tmp_path / "ours.wav", RECORDING), "--shared"]
    at = ("--server", double.address)
    assert (await in_process(capfdbinary, "voices", *arguments, *at))[0] == 0
    assert double.voice_requests[0].shared
    double.voices.append(voices_pb2.Voice(name="theirs", language="en", shared=True))
    _, out, _ = await in_process(capfdbinary, "voices", *at)
    rows = {line.split()[0]: line for line in out.decode().splitlines()}
    column = rows["VOICE"].index("ACCESS")
    shown = {name: rows[name][column:].strip() for name in ("a", "ours", "theirs")}
    assert shown == {"a": "", "ours": "owned, shared", "theirs": "shared"}


async def test_create_says_what_was_heard_and_the_digest(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    arguments = ["voices", "create", "bob", put(tmp_path / "bob.wav", RECORDING)]
    arguments += ["--language", "en", "--label", "team=a", "--label", "note=x=y"]
    arguments += ["--consent", "he said so", "--server", double.address]
    code, out, err = await in_process(capfdbinary, *arguments)
    assert (code, err) == (0, "")
    assert out.decode().splitlines() == [
        "the voice bob was made",
        "voice     bob",
        "language  en",
        "origin    created",
        "access    owned",
        "used      12.3 s of the recording",
        "speech    86% of the time",
        "level     -21.3 dB, 0 being full scale",
        "clipped   0.12% of the samples",
        "warning   there is music",
        "created   2026-01-02 03:04:05 UTC",
        "labels    note=x=y, team=a",
        f"digest    {hashlib.sha256(RECORDING).hexdigest()}",
    ]
    request = double.voice_requests[0]
    assert (request.prompt, request.consent_statement) == (RECORDING, "he said so")


async def test_a_dry_run_keeps_nothing_and_says_so(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    path = put(tmp_path / "bob.wav", RECORDING)
    arguments = ("voices", "create", "bob", path, "--dry-run", "--server", double.address)
    code, out, _ = await in_process(capfdbinary, *arguments)
    assert code == 0
    assert out.startswith(b"the voice bob would be made; nothing was kept\n")
    assert double.voice_requests[0].validate_only
    assert "bob" not in {voice.name for voice in double.voices}


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (RECORDING, "prompt"),
        (STATE, "state"),
        (struct.pack("<Q", 5000) + b'{"cut short', "state"),
        # The ninth byte of a recording may well be a brace: its first eight are no length.
        (b"\xff\xfb\x90\x64\x00\x00\x00\x00{", "prompt"),
        (b"{}", "prompt"),
    ],
)
async def test_an_exported_voice_is_told_from_a_recording_by_content(
    double: Double, capfdbinary: Capture, tmp_path: Path, content: bytes, source: str
) -> None:
    path = put(tmp_path / "bob.safetensors", content)
    arguments = ("voices", "create", "bob", path, "--json", "--server", double.address)
    code, out, _ = await in_process(capfdbinary, *arguments)
    assert code == 0
    assert json.loads(out)["name"] == "bob"
    assert double.voice_requests[0].WhichOneof("source") == source


async def test_a_recording_may_come_from_standard_input(double: Double) -> None:
    recording = RECORDING + bytes(200_000)
    arguments = ("voices", "create", "bob", "-")
    command = await intone(*arguments, server=double.address, stdin=subprocess.PIPE)
    code, _, err = await command.result(recording)
    assert (code, err) == (0, "")
    assert double.voice_requests[0].prompt == recording


async def test_a_file_beyond_the_servers_limit_is_not_sent(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    double.limits.max_prompt_bytes = 100_000
    path = put(tmp_path / "bob.wav", bytes(123_456))
    at = ("--server", double.address)
    code, _, err = await in_process(capfdbinary, "voices", "create", "bob", path, *at)
    assert code == 2
    assert err == f"intone: {path} has 123,456 bytes; the server takes up to 100,000\n"
    assert double.voice_requests == []
    put(Path(path), bytes(100_000))
    assert (await in_process(capfdbinary, "voices", "create", "bob", path, *at))[0] == 0


async def test_standard_input_without_an_end_is_read_up_to_the_limit(double: Double) -> None:
    double.limits.max_prompt_bytes = 100_000
    with Path("/dev/zero").open("rb") as endless:
        command = await intone("voices", "create", "b", "-", server=double.address, stdin=endless)
        code, _, err = await command.result()
    assert code == 2
    told = "standard input has at least 100,001 bytes; the server takes up to 100,000"
    assert err == f"intone: {told}\n"


async def test_what_cannot_be_read_is_refused(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    async def complaint(*arguments: str) -> str:
        code, _, err = await in_process(
            capfdbinary, "voices", "create", "bob", *arguments, "--server", double.address
        )
        assert code == 2
        return err

    missing = await complaint("/no/such.wav")
    assert missing == "intone: cannot read /no/such.wav: No such file or directory\n"
    assert "Is a directory" in await complaint(str(tmp_path))
    assert "is empty" in await complaint(put(tmp_path / "empty.wav", b""))
    double.features = ["consent_required"]
    assert "--consent TEXT" in await complaint(put(tmp_path / "bob.wav", RECORDING))
    assert double.voice_requests == []


async def test_a_lost_answer_says_how_to_find_out(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    async def lost(context: Any) -> None:
        await context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    double.voice_scripts = [lost]
    path = put(tmp_path / "bob.wav", RECORDING)
    arguments = ("voices", "create", "bob", path, "--server", double.address)
    code, _, err = await in_process(capfdbinary, *arguments)
    assert code == 1
    assert "Socket closed\nintone: the voice may have been made; `intone voices show bob`" in err


async def test_show_prints_what_is_known_of_a_voice(double: Double, capfdbinary: Capture) -> None:
    voice = voices_pb2.Voice(name="mine", language="en", loaded=True, license="CC0-1.0")
    voice.labels["note"] = "\x1b[2Jgone"
    double.voices.append(voice)
    arguments = ("voices", "show", "mine", "--server", double.address)
    code, out, _ = await in_process(capfdbinary, *arguments)
    assert code == 0
    # Labels are other people's: they do not steer the terminal.
    assert out.decode().splitlines()[3:] == [
        "labels    note=?[2Jgone",
        "license   CC0-1.0",
        "          loaded",
    ]
    as_json = json.loads((await in_process(capfdbinary, *arguments, "--json"))[1])
    assert as_json["labels"]["note"] == "\x1b[2Jgone"
    code, _, err = await in_process(capfdbinary, "voices", "show", "x", *arguments[3:])
    assert (code, err) == (1, "intone: NOT_FOUND: there is no voice x\n")


async def test_export_writes_a_file_that_create_takes(
    double: Double, capfdbinary: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTONE_SERVER", double.address)
    put(tmp_path / "state", STATE)
    assert (await in_process(capfdbinary, "voices", "create", "bob", "state"))[0] == 0
    code, out, _ = await in_process(capfdbinary, "voices", "export", "bob")
    assert (code, out) == (
        0,
        f"bob.safetensors: 10 bytes, digest {hashlib.sha256(STATE).hexdigest()}\n".encode(),
    )
    assert Path("bob.safetensors").read_bytes() == STATE
    code, _, _ = await in_process(capfdbinary, "voices", "create", "bob2", "bob.safetensors")
    assert (code, double.states["bob2"]) == (0, STATE)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bob.safetensors", "state"]
    piped = await in_process(capfdbinary, "voices", "export", "bob", "-o", "-")
    assert piped == (0, STATE, "")


async def test_export_replaces_a_file_only_when_forced(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    double.states["a"] = STATE
    path = put(tmp_path / "a.safetensors", b"precious")
    arguments = ("voices", "export", "a", "-o", path, "--server", double.address)
    code, _, err = await in_process(capfdbinary, *arguments)
    assert (code, err) == (2, f"intone: {path} exists: --force replaces it\n")
    assert Path(path).read_bytes() == b"precious"
    code, _, _ = await in_process(capfdbinary, *arguments, "--force")
    assert (code, Path(path).read_bytes()) == (0, STATE)


async def test_an_export_that_fails_leaves_no_file(
    double: Double, capfdbinary: Capture, tmp_path: Path
) -> None:
    arguments = ("voices", "export", "x", "-o", f"{tmp_path}/x", "--server", double.address)
    assert (await in_process(capfdbinary, *arguments))[0] == 1
    assert list(tmp_path.iterdir()) == []


async def test_delete_goes_on_after_a_voice_that_cannot_be(
    double: Double, capfdbinary: Capture
) -> None:
    async def in_use(context: Any) -> None:
        await Call(context, None, "r-1").fail(
            grpc.StatusCode.FAILED_PRECONDITION, "VOICE_IN_USE", "b is speaking"
        )

    async def nothing(context: Any) -> None:
        await asyncio.sleep(0)

    double.voice_scripts = [nothing, in_use]
    at = ("--server", double.address)
    code, out, err = await in_process(capfdbinary, "voices", "delete", "a", "b", "x", "c", *at)
    assert (code, out) == (1, b"")
    assert err == (
        "intone: FAILED_PRECONDITION (VOICE_IN_USE): b is speaking\n"
        "intone: NOT_FOUND: there is no voice x\n"
    )
    assert [voice.name for voice in double.voices] == ["b", "d", "e"]
    missing = await in_process(capfdbinary, "voices", "delete", "a", "d", "--missing-ok", *at)
    assert missing == (0, b"", "")
