"""A server from its first line of output to its exit code."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pytest

from fake_engine import FRAME
from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from intone_server.rpc.server import SERVICES
from processes import (
    PATHS,
    TESTS,
    ServerProcess,
    running_server,
    start_server,
    wait_for,
)

LONG = "frames@100 delay@20 a long text."


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def speak(address: str, text: str) -> list[tts_pb2.SpeechEvent]:
    """All events of one text."""
    with grpc.insecure_channel(address) as channel:
        request = tts_pb2.SynthesizeTextRequest(text=text)
        return [r.event for r in TextToSpeechServiceStub(channel).SynthesizeText(request)]


def samples(events: list[tts_pb2.SpeechEvent]) -> int:
    return sum(event.audio.sample_count for event in events)


def run_server(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A server that is expected to exit by itself."""
    return subprocess.run(
        [sys.executable, str(TESTS / "fake_server.py"), "--listen=127.0.0.1:0", *flags],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": PATHS, "HF_HUB_OFFLINE": "1", **environment},
        check=False,
    )


def test_health_is_not_serving_until_a_warm_up_segment_was_spoken(directory: Path) -> None:
    server = start_server(
        directory, "--engine", "fake", environment={"FAKE_ENGINE_LOAD_SECONDS": "1.5"}
    )
    try:
        assert server.is_serving("liveness")
        for name in ("startup", "readiness", "", *SERVICES):
            assert not server.is_serving(name), name
        with pytest.raises(grpc.RpcError) as caught:
            speak(server.address, "Too early.")
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        server.wait_until_ready()
        for name in ("liveness", "startup", "readiness", "", *SERVICES):
            wait_for(lambda name=name: server.is_serving(name))
    finally:
        assert server.stop() == 0
        server.process.stdout.close()  # type: ignore[union-attr]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_while_the_model_loads_ends_all_processes(
    directory: Path, number: signal.Signals
) -> None:
    server = start_server(
        directory, "--engine", "fake", environment={"FAKE_ENGINE_LOAD_SECONDS": "60"}
    )
    wait_for(lambda: len(psutil.Process(server.process.pid).children()) == 2)
    family = psutil.Process(server.process.pid).children(recursive=True)
    assert server.stop(number, timeout=10) == (0 if number == signal.SIGTERM else -number)
    wait_for(lambda: not any(p.is_running() for p in family), 5)
    server.process.stdout.close()  # type: ignore[union-attr]


def test_sigterm_to_the_whole_group_lets_a_stream_finish() -> None:
    with running_server("--engine", "fake") as server:
        heard: list[tts_pb2.SpeechEvent] = []
        listener = threading.Thread(target=lambda: heard.extend(speak(server.address, LONG)))
        listener.start()
        wait_for(lambda: server.steps() > 3)
        os.killpg(server.process.pid, signal.SIGTERM)
        wait_for(lambda: not server.is_serving("readiness"))
        assert server.is_serving("liveness")
        with pytest.raises(grpc.RpcError) as caught:
            speak(server.address, "Too late.")
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        listener.join(20)
        assert samples(heard) == 100 * FRAME
        assert any(e.notice.kind == tts_pb2.NOTICE_KIND_DRAINING for e in heard)
        assert server.process.wait(10) == 0


@pytest.mark.parametrize("max_text_delay", [1, 50])
def test_an_idle_stream_ends_with_ok_when_the_server_drains(max_text_delay: int) -> None:
    config = tts_pb2.SpeechConfig()
    config.segmentation.max_text_delay.seconds = max_text_delay
    with running_server("--engine", "fake") as server:
        with grpc.insecure_channel(server.address) as channel:
            stop_writing = threading.Event()

            def requests() -> Iterator[tts_pb2.SynthesizeRequest]:
                yield tts_pb2.SynthesizeRequest(config=config)
                yield tts_pb2.SynthesizeRequest(text="Hello.")
                yield tts_pb2.SynthesizeRequest(flush=tts_pb2.Flush())
                stop_writing.wait(20)

            call = TextToSpeechServiceStub(channel).Synthesize(requests())
            events = []
            for response in call:
                events.append(response.event)
                if response.event.HasField("flushed"):
                    server.process.send_signal(signal.SIGTERM)
            stop_writing.set()
            assert events[-1].finished.reason == tts_pb2.FINISH_REASON_DRAINED
            assert call.code() is grpc.StatusCode.OK
        assert server.process.wait(10) == 0


def test_the_drain_timeout_cancels_the_rest() -> None:
    with running_server("--engine", "fake", "--drain-timeout-seconds", "0.5") as server:
        codes: list[grpc.StatusCode] = []

        def listen() -> None:
            with pytest.raises(grpc.RpcError) as caught:
                speak(server.address, LONG + " frames@1000")
            codes.append(caught.value.code())

        listener = threading.Thread(target=listen)
        listener.start()
        wait_for(lambda: server.steps() > 3)
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < 6
        listener.join(5)
        assert codes == [grpc.StatusCode.UNAVAILABLE]


def test_a_second_signal_skips_the_wait() -> None:
    with running_server("--engine", "fake") as server:
        call_over = threading.Event()

        def listen() -> None:
            with pytest.raises(grpc.RpcError):
                speak(server.address, "frames@3000 delay@20 forever.")
            call_over.set()

        listener = threading.Thread(target=listen)
        listener.start()
        wait_for(lambda: server.steps() > 3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert server.stop(signal.SIGINT, timeout=8) == 0
        listener.join(5)
        assert call_over.is_set()


@pytest.mark.parametrize("busy", [False, True])
def test_kill_9_of_the_front_leaves_no_process(directory: Path, busy: bool) -> None:
    server = start_server(directory, "--engine", "fake", "--workers", "2")
    server.wait_until_ready()
    wait_for(lambda: len(server.workers()) == 2)
    family = [p.pid for p in psutil.Process(server.process.pid).children(recursive=True)]
    assert len(family) >= 3
    if busy:
        with grpc.insecure_channel(server.address) as channel:
            request = tts_pb2.SynthesizeTextRequest(text=LONG)
            call = TextToSpeechServiceStub(channel).SynthesizeText(request)
            next(iter(call))
            server.process.kill()
            call.cancel()
    server.process.kill()
    server.process.wait()
    server.process.stdout.close()  # type: ignore[union-attr]
    wait_for(lambda: not any(map(psutil.pid_exists, family)), 5)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--engine", "fake", "--model", "unloadable"], "choose another"),
        (["--engine", "fake", "--model", "broken"], "ZeroDivisionError"),
        (["--engine", "fake", "--model", "dies"], "could not be started"),
        (["--engine", "builtin", "--default-voice", "emma"], "'heart' alone"),
        (["--engine", "builtin", "--model", "german"], "hibari-heart alone"),
        (["--engine", "pocket", "--model", "/no.yaml"], "--model=/no.yaml: no such file"),
        (["--engine", "pocket", "--model", "klingon"], "no model 'klingon'; there are"),
        (["--engine", "pocket", "--model", "english"], "--engine builtin"),
    ],
)
def test_a_server_that_cannot_start_says_why_and_exits_with_1(flags: list[str], said: str) -> None:
    result = run_server(*flags, HF_HOME="/nonexistent")
    assert result.returncode == 1
    last = result.stderr.strip()
    assert said in last
    assert "intone-server: " in last


def test_all_wrong_settings_are_listed_at_once() -> None:
    result = run_server(
        "--engine", "x", "--workers", "0", "--voice", "A=/none", INTONE_MAX_STREAMS="many"
    )
    assert result.returncode == 1
    assert result.stdout == ""
    for fault in ("--engine=x", "--workers=0", "--voice=A=/none", "INTONE_MAX_STREAMS=many"):
        assert fault in result.stderr


def test_an_address_in_use_is_said(fake_server: ServerProcess) -> None:
    result = run_server("--engine", "fake", "--listen", fake_server.address)
    assert result.returncode == 1
    assert f"cannot listen on {fake_server.address}" in result.stderr


def test_a_unix_socket_works(directory: Path) -> None:
    path = f"unix:{directory}/intone.sock"
    with running_server("--engine", "fake", "--listen", path) as server:
        assert server.address == path
        assert samples(speak(path, "One two.")) == 2 * FRAME


def test_a_unix_socket_in_use_is_not_taken_over(directory: Path) -> None:
    path = f"unix:{directory}/intone.sock"
    with running_server("--engine", "fake", "--listen", path):
        result = run_server("--engine", "fake", "--listen", path)
        assert result.returncode == 1
        assert f"cannot listen on {path}" in result.stderr
        assert samples(speak(path, "Still here.")) == 2 * FRAME


def test_a_text_that_the_library_cannot_speak_fails_alone() -> None:
    """hibari-tts 0.2.1 raises on numbers of more than about 36 digits."""
    with running_server("--engine", "builtin") as server:
        (worker,) = server.workers()
        with pytest.raises(grpc.RpcError) as caught:
            speak(server.address, f"Order {'1' * 60}.")
        assert caught.value.code() is grpc.StatusCode.INTERNAL
        assert samples(speak(server.address, "Fine.")) > 0
        assert [w.pid for w in server.workers()] == [worker.pid]
        with pytest.raises(grpc.RpcError):
            speak(server.address, "\u2460Secretname is here.")

        def lines() -> list[str]:
            return [line["first_failure"] for line in server.logs() if "first_failure" in line]

        wait_for(lambda: len(lines()) == 2)
        assert all(re.fullmatch(r"\w+ at \w+\.py:\d+", line) for line in lines())
        assert "Secret" not in server.stderr.read_text()


def test_a_server_without_standard_output_and_error_serves() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = f"exec {sys.executable} {TESTS / 'fake_server.py'} --engine fake --listen {address}"
    server = subprocess.Popen(
        ["sh", "-c", f"{command} >&- 2>&-"], env={**os.environ, "PYTHONPATH": PATHS}
    )
    try:
        wait_for(lambda: heard(address), 20)
        server.terminate()
        assert server.wait(10) == 0
    finally:
        server.kill()


def heard(address: str) -> bool:
    """Whether a server speaks at this address by now."""
    try:
        return samples(speak(address, "One two.")) == 2 * FRAME
    except grpc.RpcError:
        return False


def test_no_user_text_reaches_the_logs(fake_server: ServerProcess) -> None:
    speak(fake_server.address, "Password hunter2 fail@1 nothing.")
    wait_for(lambda: any(line.get("characters") == 32 for line in fake_server.logs()))
    assert "hunter2" not in fake_server.stderr.read_text()
    line = next(line for line in fake_server.logs() if line.get("characters") == 32)
    assert line["rpc"] == "SynthesizeText"
    assert line["request_id"]


def test_a_request_id_comes_back_in_started_trailers_and_log(fake_server: ServerProcess) -> None:
    with grpc.insecure_channel(fake_server.address) as channel:
        request = tts_pb2.SynthesizeTextRequest(text="Hello.")
        call = TextToSpeechServiceStub(channel).SynthesizeText(
            request, metadata=(("x-request-id", "turn-17"),)
        )
        events = [response.event for response in call]
        assert events[0].started.request_id == "turn-17"
        assert ("x-request-id", "turn-17") in call.trailing_metadata()
    wait_for(lambda: any(line.get("request_id") == "turn-17" for line in fake_server.logs()))


@pytest.mark.parametrize("asked", ["two words", "x" * 129, ""])
def test_a_request_id_that_would_spoil_a_log_line_is_replaced(
    fake_server: ServerProcess, asked: str
) -> None:
    with grpc.insecure_channel(fake_server.address) as channel:
        call = TextToSpeechServiceStub(channel).SynthesizeText(
            tts_pb2.SynthesizeTextRequest(text="Hello."), metadata=(("x-request-id", asked),)
        )
        assert len(next(call).event.started.request_id) == 32


def test_the_builtin_engine_starts_without_any_network() -> None:
    """In a network namespace that holds loopback alone, where there are namespaces."""
    with running_server("--engine", "builtin") as server:
        front = psutil.Process(server.process.pid)
        family = [front, *front.children(recursive=True)]
        peers = {c.raddr.ip for p in family for c in p.net_connections("inet") if c.raddr}
        # An IPv6 socket tells the address of IPv4 in this form.
        assert peers <= {"127.0.0.1", "::ffff:127.0.0.1"}


def test_memory_stays_flat_over_many_calls(fake_server: ServerProcess) -> None:
    def resident() -> int:
        front = psutil.Process(fake_server.process.pid)
        return front.memory_info().rss + sum(w.memory_info().rss for w in fake_server.workers())

    for number in range(300):
        speak(fake_server.address, "word " * (1 + number % 40) + ".")
        if number == 50:
            early = resident()
    assert resident() < 1.05 * early


def test_a_port_in_use_is_not_shared(fake_server: ServerProcess) -> None:
    host, port = fake_server.address.rsplit(":", 1)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((host, int(port)))
