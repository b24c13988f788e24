"""The wall clock may jump: nothing that lasts is measured with it."""

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from fake_engine import FRAME
from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from processes import ServerProcess, running_server, wait_for

SERVER = Path(__file__).parent.parent / "server" / "intone_server"
# What is a moment for people or other machines, and no duration: when a voice was made, when a
# certificate ends, when a notice takes effect, and when a call began.
MOMENTS = {"voices/creation.py", "rpc/certificates.py", "rpc/responses.py", "rpc/tracing.py"}
HOUR_SECONDS = 3600


def test_the_wall_clock_is_read_for_moments_alone() -> None:
    wall = re.compile(r"\btime\.time(_ns)?\(|\bdatetime\.now\(|\butcnow\(|\bdate\.today\(")
    found = {
        str(path.relative_to(SERVER))
        for path in SERVER.rglob("*.py")
        if wall.search(path.read_text())
    }
    assert found == MOMENTS


@pytest.mark.system
@pytest.mark.parametrize("jump_seconds", [HOUR_SECONDS, -HOUR_SECONDS])
def test_a_stream_goes_on_when_the_clock_jumps(tmp_path: Path, jump_seconds: int) -> None:
    """Of a front and its workers, by Debian's faketime. No timeout comes early or never."""
    (library,) = Path("/usr/lib").glob("*-linux-gnu/faketime/libfaketimeMT.so.1")
    clock = tmp_path / "clock"
    clock.write_text("+0")
    environment = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    flags = ("--idle-timeout-seconds", "3", "--stall-timeout-seconds", "5")
    with running_server("--engine", "fake", *flags, environment=environment) as server:
        (worker,) = server.workers()
        with grpc.insecure_channel(server.address) as channel:
            request = tts_pb2.SynthesizeTextRequest(text="frames@60 delay@20 to the end.")
            samples = 0
            for response in TextToSpeechServiceStub(channel).SynthesizeText(request, timeout=60):
                if not samples:
                    clock.write_text(f"{jump_seconds:+}")
                samples += response.event.audio.sample_count
            assert samples == 60 * FRAME, server.stderr.read_text()
        assert has_jumped(server, jump_seconds)
        assert [w.pid for w in server.workers()] == [worker.pid]
        assert ends_when_idle(server) == tts_pb2.FINISH_REASON_IDLE_TIMEOUT


def has_jumped(server: ServerProcess, jump_seconds: int) -> bool:
    """Whether the log of the call has the new time."""
    wait_for(lambda: any(line["event"] == "call ended" for line in server.logs()))
    (line,) = [line for line in server.logs() if line["event"] == "call ended"]
    ended_at = time.mktime(time.strptime(line["timestamp"][:19], "%Y-%m-%dT%H:%M:%S"))
    away_seconds = ended_at - time.mktime(time.gmtime())
    return abs(away_seconds - jump_seconds) < HOUR_SECONDS / 2


def ends_when_idle(server: ServerProcess) -> int:
    """The reason for which a stream that says nothing, and does not half-close, ends."""
    over = threading.Event()

    def requests() -> Iterator[tts_pb2.SynthesizeRequest]:
        yield tts_pb2.SynthesizeRequest(config=tts_pb2.SpeechConfig())
        over.wait(60)

    with grpc.insecure_channel(server.address) as channel:
        *_, last = TextToSpeechServiceStub(channel).Synthesize(requests(), timeout=60)
        over.set()
    return int(last.event.finished.reason)
