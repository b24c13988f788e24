"""`intone bench` as a person calls it, against the client's double and the fake engine."""

import asyncio
import contextlib
import json
import os
import pty
import signal
import subprocess
import termios
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest

from client_command import COMMAND, Capture, in_process, intone
from client_double import Call, Double, double_fixture, spoken  # noqa: F401
from intone_client._bench.plan import Texts, arrivals
from intone_client._bench.texts import TextLengths
from intone_client.cli import main
from processes import ServerProcess

pytestmark = pytest.mark.timeout(60)

#: About ten calls in half a second.
FAST = ("--rate", "20", "--duration", "0.5", "--seed", "1", "--text-lengths", "10-20")
CALLS = len(list(arrivals(1, 20, 0.5)))


async def bench(
    capture: Capture, server: str, *arguments: str, folder: Path
) -> tuple[int, str, str, Any]:
    """Exit code, standard output, standard error and the JSON."""
    path = folder / "bench.json"
    code, out, err = await in_process(
        capture, "bench", "--server", server, "--json", str(path), *arguments
    )
    return code, out.decode(), err, json.loads(path.read_text())


async def test_calls_begin_whatever_the_server_does(
    double: Double, tmp_path: Path, capfdbinary: Capture
) -> None:
    """No call is answered before the last one has come."""

    async def script(call: Call) -> None:
        await call.started()
        await double.until(lambda: double.calls == CALLS)
        await call.read_all()
        await call.audio(spoken("ab"))
        await call.finished()

    double.script = script
    code, out, err, found = await bench(capfdbinary, double.address, *FAST, folder=tmp_path)
    assert code == 0
    assert err == "intone: 20 calls per second for 0.5 s, 10-20 texts, seed 1\n"
    assert out.startswith(f"intone 0.1.0 at {double.address}: builtin, 3 replicas\n")
    assert f"calls      {CALLS}: {CALLS} spoken\n" in out
    assert found["summary"]["calls"]["spoken"] == CALLS
    assert [call["planned_at"] for call in found["calls"]] == list(arrivals(1, 20, 0.5))
    assert all(call["started_at"] >= call["planned_at"] for call in found["calls"])


async def test_the_same_seed_says_the_same(
    double: Double, tmp_path: Path, capfdbinary: Capture
) -> None:
    await bench(capfdbinary, double.address, *FAST, folder=tmp_path)
    texts = Texts(1, lengths=TextLengths("10-20"))
    expected = {texts.utterance(number).text for number in range(CALLS)}
    assert {request.text for request in double.requests} == expected


async def test_refusals_are_counted_by_reason_and_never_repeated(
    double: Double, tmp_path: Path, capfdbinary: Capture
) -> None:
    async def script(call: Call) -> None:
        await call.fail(
            grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", "full", retry_seconds=0.001
        )

    double.script = script
    code, out, err, found = await bench(capfdbinary, double.address, *FAST, folder=tmp_path)
    assert code == 1
    assert double.calls == CALLS
    assert f"  refused  {CALLS} RESOURCE_EXHAUSTED (QUEUE_FULL)\n" in out
    assert err.endswith("intone: no call succeeded\n")
    assert found["summary"]["problems"] == [
        {
            "outcome": "refused",
            "status": "RESOURCE_EXHAUSTED",
            "reason": "QUEUE_FULL",
            "calls": CALLS,
        }
    ]
    assert found["summary"]["heard_nothing"] == 0
    assert found["calls"][0]["retry_delay_seconds"] == 0.001


async def test_failures_are_told_apart_and_thresholds_fail_the_run(
    double: Double, tmp_path: Path, capfdbinary: Capture
) -> None:
    """One call is spoken, one is refused, one has a segment that failed, one is silent, and the
    others are given up."""

    async def script(call: Call) -> None:
        number = double.calls
        if number == 2:
            await call.fail(grpc.StatusCode.UNAVAILABLE, "DRAINING", "going")
        await call.started()
        if number > 4:
            await asyncio.sleep(30)
        if number == 3:
            await call.segment(0, "FAILED", code=13, reason="SYNTHESIS_FAILED", message="no luck")
        if number != 4:
            await call.audio(spoken("ab"))
        await call.read_all()
        await call.finished()

    double.script = script
    limits = ["--max-first-audio-p95", "0", "--max-silence", "9", "--max-refused", "0.01"]
    code, out, err, found = await bench(
        capfdbinary, double.address, *FAST, "--timeout", "1", *limits, folder=tmp_path
    )
    assert code == 3
    lines = err.splitlines()[1:]
    assert lines[0].startswith("intone: first audio p95 in ms is ")
    assert lines[1].startswith("intone: share of calls refused or not sent is ")
    assert len(lines) == 2
    assert found["summary"]["calls"] == {
        "spoken": 1,
        "refused": 1,
        "failed": CALLS - 2,
        "not_sent": 0,
        "unfinished": 0,
    }
    assert "  refused  1 UNAVAILABLE (DRAINING)\n" in out
    assert "  failed   1 INTERNAL (SYNTHESIS_FAILED)\n" in out
    assert f"  failed   {CALLS - 4} DEADLINE_EXCEEDED\n" in out
    assert "100.0% of 2 without any gap; " in out
    assert found["summary"]["heard_nothing"] == CALLS - 3


async def test_what_would_be_too_much_at_once_is_not_sent_and_told(
    double: Double, tmp_path: Path, capfdbinary: Capture
) -> None:
    begun = 0

    async def script(call: Call) -> None:
        nonlocal begun
        begun += 1
        await call.started()
        await asyncio.sleep(30)

    double.script = script
    arguments = [*FAST, "--concurrency-limit", "2", "--timeout", "1"]
    code, out, err, found = await bench(capfdbinary, double.address, *arguments, folder=tmp_path)
    assert (code, begun) == (1, 2)
    assert f"{CALLS - 2} not sent" in out
    assert f"intone: {CALLS - 2} calls not sent: 2 were open (--concurrency-limit)\n" in err
    assert [call["outcome"] for call in found["calls"]] == ["failed"] * 2 + ["not_sent"] * (
        CALLS - 2
    )


async def test_max_calls_ends_it_and_is_told(
    double: Double, tmp_path: Path, capfdbinary: Capture
) -> None:
    arguments = [*FAST, "--max-calls", "3", "--connections", "2"]
    code, _, err, found = await bench(capfdbinary, double.address, *arguments, folder=tmp_path)
    assert (code, double.calls, len(found["calls"])) == (0, 3, 3)
    assert "intone: ended early, after 3 calls (--max-calls)\n" in err


async def test_people_listen_to_the_end_before_they_talk_again(
    double: Double, tmp_path: Path, capfdbinary: Capture
) -> None:
    arguments = ["--streams", "2", "--think", "0", "--duration", "0.5", "--text-lengths", "10-20"]
    code, _, err, found = await bench(capfdbinary, double.address, *arguments, folder=tmp_path)
    assert code == 0
    assert "2 conversations with 0 s of thought between turns" in err
    for stream in (0, 1):
        turns = [call for call in found["calls"] if call["stream"] == stream]
        assert len(turns) > 1
        for before, after in pairwise(turns):
            assert after["started_at"] >= before["first_audio_at"] + before["audio_seconds"]


async def test_ctrl_c_ends_it_with_what_there_is(double: Double, tmp_path: Path) -> None:
    async def script(call: Call) -> None:
        await call.started()
        await call.audio(spoken("ab"))
        if double.calls > 1:
            await asyncio.sleep(30)
        await call.read_all()
        await call.finished()

    double.script = script
    path = tmp_path / "bench.json"
    arguments = ["--rate", "20", "--duration", "600", "--json", str(path)]
    command = await intone("bench", *arguments, server=double.address)
    await double.until(lambda: double.calls > 3, seconds=20)
    command.process.send_signal(signal.SIGINT)
    code, out, _ = await command.result()
    assert code == 130
    assert b" unfinished\n" in out
    assert json.loads(path.read_text())["summary"]["calls"]["unfinished"] > 1
    await double.until(lambda: double.ended == double.calls)


async def test_pieces_go_into_a_stream_as_they_come(
    double: Double, tmp_path: Path, capfdbinary: Capture
) -> None:
    lengths = TextLengths("10-20")
    for tokens_per_second in (0, 500):
        said = Texts(1, lengths=lengths, tokens_per_second=tokens_per_second).utterance(0)
        double.requests.clear()
        arguments = [*FAST, "--max-calls", "1", "--voice", "alba", "--pieces"]
        pace = ["--tokens-per-second", str(tokens_per_second)]
        await bench(capfdbinary, double.address, *arguments, *pace, folder=tmp_path)
        config, *pieces = double.requests
        assert (config.config.voice, config.config.segment_events) == ("alba", True)
        assert [request.text for request in pieces] == list(said.pieces)


def test_on_a_terminal_it_shows_how_far_it_is(fake_server: ServerProcess) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        [*COMMAND, "--server", fake_server.address, "bench", *FAST],
        stdout=subprocess.DEVNULL,
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
    assert b" of 0.5 s: " in shown
    assert b" open, " in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rate", "0"], "0 is not a number above 0"),
        (["--rate", "1", "--streams", "1"], "not allowed with"),
        (["--streams", "0"], "0 is below 1"),
        (["--duration", "inf"], "inf is not a number above 0"),
        (["--max-refused", "2"], "2 is not a number from 0 to 1"),
        (["--think", "long"], "invalid number value: 'long'"),
        (["--text-lengths", "tall"], "text lengths are 'tall', known are short, long"),
        (["--text-file", "/no/such/file"], "cannot read /no/such/file"),
        (["--json", "/no/such/dir/x"], "/no/such/dir is not a directory"),
        (["--plot", "x.jpg"], "known endings of a plot are .png, .svg"),
    ],
)
def test_what_cannot_work_is_refused_with_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(["bench", "--server", "localhost:1", *arguments])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert complaint in capsys.readouterr().err


def test_a_machine_that_is_too_slow_itself_is_told() -> None:
    from intone_client._bench.load import Load
    from intone_client._bench.plan import Plan
    from intone_client._bench.report import warnings

    load = Load(Plan(1.0, None, 0.0, 1.0, 1, None, 10, 10, 10.0), Texts(1))
    load.lag.lags = [0.001] * 98 + [0.021] * 2
    (line,) = warnings(load)
    assert line.startswith("this machine could not send fast enough: ")
    load.lag.lags = [0.001] * 99 + [0.5]
    assert warnings(load) == []
