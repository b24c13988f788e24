"""Counts where calls go wrong: refused, cut off before their message, failed as a whole, foretold
to wait; and scrapes of a server that cannot answer."""

import asyncio
import itertools
import re
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from callers import token_entry
from fake_engine import FakeEngine
from intone.v1 import tts_pb2
from intone_server import observing
from intone_server.metrics import NOTHING, Metrics
from intone_server.observing import Scrapes
from intone_server.scheduling.deadline import DeadlinePolicy
from intone_server.scheduling.generation import Priority
from intone_server.scheduling.policy import FifoPolicy
from intone_server.scheduling.scheduler import Scheduler
from intone_server.scheduling.worker import SupervisedWorker
from intone_server.synthesis.events import Queued
from intone_server.workers.messages import Ready
from metric_names import COUNTER, METRICS
from processes import wait_for
from test_metrics import PAGE, TTS, Growth, Measured, measured_server
from test_scheduler import generation
from test_session import Stage

FILE = {"grpc_type": "unary", "grpc_service": TTS, "grpc_method": "SynthesizeFile"}
STATUS = {"grpc_type": "unary", "grpc_service": "intone.v1.StatusService"}
CHECK = {"grpc_type": "unary", "grpc_service": "grpc.health.v1.Health", "grpc_method": "Check"}


@pytest.fixture(scope="module", name="busy")
def served() -> Iterator[Measured]:
    with measured_server("--workers", "2", "--health-listen", "127.0.0.1:0") as measured:
        yield measured


def test_a_scrape_holds_what_is_pinned_and_nothing_else(busy: Measured) -> None:
    with busy.stub() as stub:
        list(stub.SynthesizeText(tts_pb2.SynthesizeTextRequest(text="One two.")))
    told = re.findall(r"^# TYPE (\S+) (\S+)$", busy.text(), re.MULTILINE)
    assert dict(told) == {name: kind for name, (kind, _) in METRICS.items()}


def test_what_may_happen_is_0_from_the_start() -> None:
    """The first restart of a worker would not be growth, if there were nothing before it."""
    registry = Metrics().registry
    for name, (kind, labels) in METRICS.items():
        [(label, values)] = labels.items() if len(labels) == 1 else [("", None)]
        if kind == COUNTER:
            for value in values or ():
                assert registry.get_sample_value(name, {label: value}) == 0


def test_a_refused_call_keeps_its_kind(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(token_entry("anna", "secret", ["synthesize"]))
    with measured_server("--tokens", str(tokens)) as measured:
        grown = Growth(measured)
        with measured.stub() as stub, pytest.raises(grpc.RpcError):
            stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text="One."))
        ended = FILE | {"grpc_code": "UNAUTHENTICATED"}
        wait_for(lambda: grown("grpc_server_handled_total", **ended) == 1)
        refused = {"rpc": "SynthesizeFile", "decision": "refused", "reason": "TOKEN_MISSING"}
        assert grown("intone_admission_total", **refused) == 1


def test_a_call_that_ends_before_its_message_came_is_counted(busy: Measured) -> None:
    grown = Growth(busy)
    capacity = STATUS | {"grpc_method": "GetCapacity"}
    never = threading.Event()
    with grpc.insecure_channel(busy.server.address) as channel:
        ask = channel.stream_unary("/intone.v1.StatusService/GetCapacity")
        call = ask.future(iter(never.wait, True))
        wait_for(lambda: grown("grpc_server_started_total", **capacity) == 1)
        call.cancel()
        never.set()
        ended = {**capacity, "grpc_code": "CANCELLED"}
        wait_for(lambda: grown("grpc_server_handled_total", **ended) == 1)
    assert grown("grpc_server_msg_received_total", **capacity) == 0
    assert grown("grpc_server_handling_seconds_count", **capacity) == 1


def test_every_call_that_began_ends_however_it_is_cut_off(busy: Measured) -> None:
    def cut_off(number: int) -> None:
        words = tts_pb2.SynthesizeTextRequest(text=f"frames@{number} delay@5 one. Two.")
        with busy.stub() as stub:
            call = stub.SynthesizeText(words, timeout=None if number % 2 else number / 100)
            try:
                list(itertools.islice(call, number % 5))
            except grpc.RpcError:
                assert not number % 2
            call.cancel()

    def total(name: str, *, method: str) -> float:
        found = busy.scrape().items()
        return sum(v for (n, labels), v in found if n == name and f"method={method}," in labels)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(cut_off, range(1, 41)))
    began = total("grpc_server_started_total", method="SynthesizeText")
    assert began >= 20  # a call may be cut off before the server hears of it
    wait_for(lambda: total("grpc_server_handled_total", method="SynthesizeText") == began)
    wait_for(lambda: busy.scrape()["intone_streams_open", "state=talking"] == 0)
    assert busy.scrape()["intone_audio_buffered_seconds", ""] == 0


def test_calls_on_the_port_for_probes_are_counted(busy: Measured) -> None:
    (started,) = [line for line in busy.server.logs() if line["event"] == "starting"]
    grown = Growth(busy)
    with grpc.insecure_channel(started["health"]) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        stub.Check(health_pb2.HealthCheckRequest())
        watching = stub.Watch(health_pb2.HealthCheckRequest())
        next(watching)
        watching.cancel()
    wait_for(lambda: grown("grpc_server_handled_total", **CHECK, grpc_code="OK") == 1)
    watch = CHECK | {"grpc_type": "server_stream", "grpc_method": "Watch"}
    wait_for(lambda: grown("grpc_server_handled_total", **watch, grpc_code="CANCELLED") == 1)


class TestFiles:
    """Nobody listens while a file is made, and all of it is sent or none."""

    def test_audio_of_a_file_is_sent_with_it(self, busy: Measured) -> None:
        grown = Growth(busy)
        with busy.stub() as stub:
            file = stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text="One two. Three."))
        assert grown("intone_audio_seconds_total") == pytest.approx(file.stats.audio_seconds)
        assert grown("intone_chunk_gap_seconds_count") == 0

    def test_nobody_runs_dry(self, busy: Measured) -> None:
        grown = Growth(busy)
        text = "frames@2 one two three. delay@100 frames@5 four five six."
        with busy.stub() as stub:
            file = stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text=text))
        assert file.stats.underruns == 1  # had somebody listened
        assert grown("intone_underruns_total") == 0

    def test_audio_of_a_file_that_fails_is_wasted(self, busy: Measured) -> None:
        grown = Growth(busy)
        text = "frames@20 one two three. fail@1 frames@5 four five six."
        with busy.stub() as stub, pytest.raises(grpc.RpcError):
            stub.SynthesizeFile(tts_pb2.SynthesizeFileRequest(text=text))
        wasted = grown("intone_wasted_audio_seconds_total", cause="failure")
        assert wasted == pytest.approx(21 * 0.08)
        assert grown("intone_audio_seconds_total") == 0


async def test_a_batch_segment_that_gives_way_to_listeners_is_foretold_its_wait() -> None:
    """Though a replica is idle."""
    batch = {"priority": Priority.BATCH, "queue_events": True}
    stage = Stage(config=batch, replicas=2, policy=DeadlinePolicy())
    stage.scheduler.speed.learn(1, 1.5)
    stage.scheduler.speed.learn(2, 1.6)  # two at once are slower than real time
    listened = generation(priority=Priority.STANDARD, estimated_seconds=6.0)
    stage.scheduler.submit(listened)
    with stage.permit, stage.session:
        stage.session.push_text("One two. ")
        stage.session.flush("f")
        queued = await stage.session.next_event()
        assert isinstance(queued, Queued)
        assert queued.estimated_wait_seconds == pytest.approx(6.0 / 1.5)
    listened.cancel()


class Ended:
    """The front's end of a worker that says one thing, or nothing, and is gone."""

    pid = 1

    def __init__(self, *reports: Ready) -> None:
        self._reports = [*reports]

    async def receive(self) -> Ready | None:
        return self._reports.pop() if self._reports else None

    def send(self, command: object) -> None: ...

    def kill(self) -> None: ...

    async def close(self, _: float) -> int:
        return 9


async def test_a_worker_that_dies_again_and_again_before_it_is_ready_is_counted_each_time() -> None:
    metrics = Metrics()
    info = FakeEngine().attach(1)
    links = itertools.chain([Ended(Ready(info, 1, {}))], iter(Ended, None))

    async def launch() -> Ended:
        return next(links)

    worker = SupervisedWorker(
        launch,  # type: ignore[arg-type]
        Scheduler(FifoPolicy()),
        stall_seconds=10,
        metrics=metrics,
    )
    try:
        await worker.first_ready()
        async with asyncio.timeout(30):
            while metrics.worker_restarts.labels("exited")._value.get() < 3:
                await asyncio.sleep(0.02)
    finally:
        await worker.stop()


class TestScrapes:
    """A scrape waits for the event loop, and not for ever."""

    async def test_a_blocked_loop_is_shown_as_it_was(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(observing, "SCRAPE_SECONDS", 0.05)
        counts = itertools.count()
        scrapes = Scrapes(lambda: replace(NOTHING, voice_states=next(counts)))
        with ThreadPoolExecutor(1) as pool:
            # To wait for it here is to block the loop.
            assert pool.submit(scrapes.take).result(30).voice_states == 0
        monkeypatch.setattr(observing, "SCRAPE_SECONDS", 30)
        assert (await asyncio.to_thread(scrapes.take)).voice_states == 2  # 1 came too late

    async def test_the_loop_takes_them_itself(self) -> None:
        threads: list[threading.Thread] = []

        def snapshot() -> object:
            threads.append(threading.current_thread())
            return NOTHING

        taking: Callable[[], object] = snapshot
        scrapes = Scrapes(taking)  # type: ignore[arg-type]
        await asyncio.to_thread(scrapes.take)
        assert threads == [threading.main_thread()] * 2

    def test_a_loop_that_has_ended_is_shown_as_it_was(self) -> None:
        async def made() -> Scrapes:
            return Scrapes(lambda: replace(NOTHING, voice_states=7))

        assert asyncio.run(made()).take().voice_states == 7


def test_an_address_of_ipv6_is_served_and_told_in_brackets() -> None:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 on this machine")
    endpoint = Metrics().serve("[::1]:0")
    try:
        assert re.fullmatch(r"\[::1\]:[1-9]\d*", endpoint.address)
        with urllib.request.urlopen(f"http://{endpoint.address}/metrics", timeout=10) as answer:
            assert b"intone_clears_total" in answer.read()
    finally:
        endpoint.close()


@pytest.mark.system
def test_the_questions_of_the_page_are_promql(tmp_path: Path) -> None:
    (block,) = re.findall(r"```promql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    questions = [line for line in block.splitlines() if not line.startswith("#")]
    rules = "".join(f"  - {{record: 'q:{n}', expr: '{q}'}}\n" for n, q in enumerate(questions))
    file = tmp_path / "rules.yaml"
    file.write_text(f"groups:\n- name: page\n  rules:\n{rules}")
    run = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(questions) == 5
