"""What Prometheus is told: names that are pinned, and numbers that are exact."""

import re
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from intone.v1 import tts_pb2, tts_pb2_grpc, voices_pb2, voices_pb2_grpc
from intone_server.metrics import NOTHING, Metrics
from metric_names import METRICS
from processes import ServerProcess, running_server, start_server, wait_for

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
PINNED = {name: (kind, ",".join(labels)) for name, (kind, labels) in METRICS.items()}


def declared() -> dict[str, tuple[str, str]]:
    """Name, kind and labels of everything in the code."""
    metrics = Metrics()
    metrics.show(lambda: NOTHING)
    found = {}
    for collector in metrics.registry._collector_to_names:
        labels = {m.name: m for m in collector.describe()}
        for name, family in labels.items():
            of_family = getattr(collector, "_labelnames", getattr(family, "_labelnames", ()))
            full = f"{name}_total" if family.type == "counter" else name
            found[full] = (family.type, ",".join(of_family))
    return found


def test_names_kinds_and_labels_are_pinned() -> None:
    assert declared() == PINNED


def test_the_page_lists_them_all() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w`, ]*?) ?\|", PAGE.read_text(), re.MULTILINE)
    told = {name: (kind, labels.replace("`", "").replace(" ", "")) for name, kind, labels in rows}
    assert told == PINNED


@dataclass
class Measured:
    """A server whose metrics are scraped, and calls to it."""

    server: ServerProcess
    url: str

    def scrape(self) -> dict[tuple[str, str], float]:
        """Values by name and labels: ("intone_clears_total", "")."""
        with urllib.request.urlopen(self.url, timeout=10) as answer:
            text = answer.read().decode()
        return {
            (sample.name, ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))): (
                sample.value
            )
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def text(self) -> str:
        with urllib.request.urlopen(self.url, timeout=10) as answer:
            return str(answer.read().decode())

    @contextmanager
    def stub(self) -> Iterator[tts_pb2_grpc.TextToSpeechServiceStub]:
        with grpc.insecure_channel(self.server.address) as channel:
            yield tts_pb2_grpc.TextToSpeechServiceStub(channel)


@contextmanager
def measured_server(*flags: str) -> Iterator[Measured]:
    with running_server("--engine", "fake", "--metrics-listen", "127.0.0.1:0", *flags) as server:
        (started,) = [line for line in server.logs() if line["event"] == "starting"]
        yield Measured(server, f"http://{started['metrics']}/metrics")


@pytest.fixture(scope="module")
def measured() -> Iterator[Measured]:
    with measured_server() as measured:
        yield measured


class Growth:
    """What has been added since it was made."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self._before = measured.scrape()

    def __call__(self, name: str, **labels: str) -> float:
        key = (name, ",".join(f"{k}={v}" for k, v in sorted(labels.items())))
        return self._measured.scrape().get(key, 0.0) - self._before.get(key, 0.0)


TTS = "intone.v1.TextToSpeechService"


def test_a_stream_is_counted_to_the_sample(measured: Measured) -> None:
    grown = Growth(measured)
    text = "One two three. Four five six."
    with measured.stub() as stub:
        requests = [tts_pb2.SynthesizeRequest(text=text)]
        events = [response.event for response in stub.Synthesize(iter(requests))]
    samples = sum(event.audio.sample_count for event in events)
    rpc = {"grpc_type": "bidi_stream", "grpc_service": TTS, "grpc_method": "Synthesize"}
    wait_for(lambda: grown("grpc_server_handled_total", **rpc, grpc_code="OK") == 1)
    assert grown("grpc_server_started_total", **rpc) == 1
    assert grown("grpc_server_msg_received_total", **rpc) == 1
    assert grown("grpc_server_msg_sent_total", **rpc) == len(events)
    assert grown("grpc_server_handling_seconds_count", **rpc) == 1
    assert grown("intone_audio_seconds_total") == pytest.approx(samples / 24000)
    assert grown("intone_input_characters_total") == len(text)
    assert grown("intone_segments_total", outcome="complete", reason="") == 2
    assert grown("intone_segment_audio_seconds_sum") == pytest.approx(samples / 24000)
    assert grown("intone_synthesis_seconds_count") == grown("intone_speed_ratio_count") == 2
    assert grown("intone_queue_wait_seconds_count") == 2
    assert grown("intone_wait_prediction_error_seconds_count") == 2
    assert grown("intone_first_audio_seconds_count", rpc="Synthesize", priority="interactive") == 1
    admitted = {"rpc": "Synthesize", "decision": "admitted", "reason": ""}
    assert grown("intone_admission_total", **admitted) == 1
    assert grown("intone_wasted_audio_seconds_total", cause="cancel") == 0


def test_a_refusal_is_counted_with_its_reason(measured: Measured) -> None:
    grown = Growth(measured)
    config = tts_pb2.SpeechConfig(voice="nobody")
    with measured.stub() as stub, pytest.raises(grpc.RpcError):
        list(stub.SynthesizeText(tts_pb2.SynthesizeTextRequest(text="Hi.", config=config)))
    refused = {"rpc": "SynthesizeText", "decision": "refused", "reason": "VOICE_NOT_FOUND"}
    wait_for(lambda: grown("intone_admission_total", **refused) == 1)
    assert grown("intone_voice_requests_total", result="not_found") == 1
    rpc = {"grpc_type": "server_stream", "grpc_service": TTS, "grpc_method": "SynthesizeText"}
    wait_for(lambda: grown("grpc_server_handled_total", **rpc, grpc_code="NOT_FOUND") == 1)


def test_a_cancel_tells_what_was_made_for_nothing(measured: Measured) -> None:
    grown = Growth(measured)
    with measured.stub() as stub:
        call = stub.SynthesizeText(tts_pb2.SynthesizeTextRequest(text="frames@200 delay@5 one."))
        next(response for response in call if response.event.HasField("audio"))
        call.cancel()
    rpc = {"grpc_type": "server_stream", "grpc_service": TTS, "grpc_method": "SynthesizeText"}
    wait_for(lambda: grown("grpc_server_handled_total", **rpc, grpc_code="CANCELLED") == 1)
    wait_for(lambda: grown("intone_segments_total", outcome="cleared", reason="") == 1)
    assert grown("intone_wasted_audio_seconds_total", cause="clear") == 0


def test_a_clear_tells_how_soon_it_was_silent_and_what_was_lost(measured: Measured) -> None:
    grown = Growth(measured)
    speaking = threading.Event()

    def requests() -> Iterator[tts_pb2.SynthesizeRequest]:
        yield tts_pb2.SynthesizeRequest(text="frames@100 one two. ")
        yield tts_pb2.SynthesizeRequest(flush=tts_pb2.Flush(id="f"))
        speaking.wait(10)
        yield tts_pb2.SynthesizeRequest(clear=tts_pb2.Clear(id="c"))

    sent = discarded = 0
    with measured.stub() as stub:
        for response in stub.Synthesize(requests()):
            sent += response.event.audio.sample_count
            discarded += response.event.cleared.discarded_samples
            if sent:
                speaking.set()
    assert grown("intone_clears_total") == grown("intone_clear_stop_seconds_count") == 1
    wasted = grown("intone_wasted_audio_seconds_total", cause="clear")
    assert wasted == pytest.approx(discarded / 24000, abs=0.01)
    assert grown("intone_audio_seconds_total") == pytest.approx(sent / 24000)


def test_the_deadline_of_a_call_is_counted_as_such(measured: Measured) -> None:
    grown = Growth(measured)
    text = tts_pb2.SynthesizeTextRequest(text="frames@1000 delay@20 one.")
    with measured.stub() as stub, pytest.raises(grpc.RpcError):
        list(stub.SynthesizeText(text, timeout=0.5))
    rpc = {"grpc_type": "server_stream", "grpc_service": TTS, "grpc_method": "SynthesizeText"}
    wait_for(lambda: grown("grpc_server_handled_total", **rpc, grpc_code="DEADLINE_EXCEEDED") == 1)


def test_grpcs_own_methods_are_counted_and_unknown_names_are_not_labels(
    measured: Measured,
) -> None:
    grown = Growth(measured)
    with grpc.insecure_channel(measured.server.address) as channel:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        for name in ("/a.B/Secret", "/intone.v1.TextToSpeechService/Secret"):
            with pytest.raises(grpc.RpcError):
                channel.unary_unary(name)(b"")
    health = {"grpc_type": "unary", "grpc_service": "grpc.health.v1.Health", "grpc_method": "Check"}
    assert grown("grpc_server_handled_total", **health, grpc_code="OK") == 1
    unknown = {"grpc_type": "unary", "grpc_service": "unknown", "grpc_method": "unknown"}
    assert grown("grpc_server_handled_total", **unknown, grpc_code="UNIMPLEMENTED") == 2
    assert "Secret" not in measured.text()


def test_gauges_show_what_is_open_now(measured: Measured) -> None:
    with measured.stub() as stub:
        text = tts_pb2.SynthesizeTextRequest(text="frames@500 delay@20 one.")
        running, waiting = stub.SynthesizeText(text), stub.SynthesizeText(text)
        next(running)
        next(waiting)
        wait_for(lambda: measured.scrape()["intone_queue_segments", "priority=standard"] == 1)
        now = measured.scrape()
        assert now["intone_streams_open", "state=talking"] == 2
        assert now["intone_replicas", "state=busy"] == 1
        assert now["intone_queue_work_seconds", ""] > 0
        assert now["intone_draining", ""] == 0
        running.cancel()
        waiting.cancel()
    wait_for(lambda: measured.scrape()["intone_streams_open", "state=talking"] == 0)
    assert measured.scrape()["intone_queue_work_seconds", ""] == 0
    wait_for(lambda: measured.scrape()["intone_replicas", "state=idle"] == 1)
    (build,) = [labels for name, labels in measured.scrape() if name == "intone_build_info"]
    assert "engine=fake" in build


def test_a_worker_that_was_lost_is_counted(measured: Measured) -> None:
    grown = Growth(measured)
    (worker,) = measured.server.workers()
    worker.kill()
    wait_for(lambda: grown("intone_worker_restarts_total", reason="exited") == 1)
    measured.server.wait_until_ready()


def test_nothing_of_a_user_is_told(measured: Measured) -> None:
    with measured.stub() as stub, grpc.insecure_channel(measured.server.address) as channel:
        voices = voices_pb2_grpc.VoiceServiceStub(channel)
        voices.CreateVoice(voices_pb2.CreateVoiceRequest(name="marigold", state=b"fake: 1"))
        config = tts_pb2.SpeechConfig(voice="marigold")
        text = tts_pb2.SynthesizeTextRequest(text="Xylophone music.", config=config)
        list(stub.SynthesizeText(text, metadata=(("x-request-id", "hyacinth"),)))
    told = measured.text()
    for secret in ("marigold", "ylophone", "hyacinth", "127.0.0.1"):
        assert secret not in told
    assert measured.scrape()["intone_voice_states", ""] == 1
    assert measured.scrape()["intone_voice_state_bytes", ""] == len(b"fake: 1")


def test_a_port_in_use_ends_the_start(measured: Measured, tmp_path: Path) -> None:
    taken = measured.url.removeprefix("http://").removesuffix("/metrics")
    server = start_server(tmp_path, "--engine", "fake", "--metrics-listen", taken)
    assert server.process.wait(30) == 1
    assert f"--metrics-listen: cannot listen on {taken}" in server.stderr.read_text()
    assert server.process.stdout is not None
    server.process.stdout.close()
