"""Traces of calls, as a real collector receives them."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import (
    trace_service_pb2,
    trace_service_pb2_grpc,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from intone.v1 import tts_pb2, tts_pb2_grpc
from processes import ServerProcess, running_server, start_server, wait_for

TEXT = "Xylophone music plays. Marigolds grow here."
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.raw = b""

    def Export(
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        self.raw += request.SerializeToString()
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        return trace_service_pb2.ExportTraceServiceResponse()

    def of(self, request_id: str) -> Span | None:
        """The span of a call."""
        return next((s for s in self.spans if value(s, "intone.request_id") == request_id), None)

    def children(self, parent: Span) -> list[Span]:
        found = [s for s in self.spans if s.parent_span_id == parent.span_id]
        return sorted(found, key=lambda span: span.start_time_unix_nano)


def value(span: Span, key: str) -> object:
    for attribute in span.attributes:
        if attribute.key == key:
            return getattr(attribute.value, str(attribute.value.WhichOneof("value")))
    return None


def seconds(span: Span) -> float:
    return (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9


@pytest.fixture(scope="module")
def collector() -> Iterator[tuple[Collector, str]]:
    servicer, server = Collector(), grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield servicer, f"http://127.0.0.1:{port}"
    server.stop(0).wait()


@pytest.fixture(scope="module")
def traced(collector: tuple[Collector, str]) -> Iterator[ServerProcess]:
    environment = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
    flags = ["--engine", "fake", "--otlp-endpoint", collector[1]]
    with running_server(*flags, environment=environment) as server:
        yield server


def speak(
    server: ServerProcess, text: str, request_id: str, *more: tuple[str, str]
) -> tuple[list[tts_pb2.SpeechEvent], dict[str, str | bytes]]:
    """The events of a call, and its trailers."""
    with grpc.insecure_channel(server.address) as channel:
        call = tts_pb2_grpc.TextToSpeechServiceStub(channel).SynthesizeText(
            tts_pb2.SynthesizeTextRequest(text=text),
            metadata=(("x-request-id", request_id), *more),
        )
        return [response.event for response in call], dict(call.trailing_metadata())


def test_a_call_is_a_tree_of_spans(traced: ServerProcess, collector: tuple[Collector, str]) -> None:
    traceparent = ("traceparent", f"00-{TRACE}-{PARENT}-01")
    before = time.time()
    events, trailers = speak(traced, TEXT, "call-1", traceparent)
    wait_for(lambda: collector[0].of("call-1") is not None)
    span = collector[0].of("call-1")
    assert span is not None
    assert span.name == "intone.v1.TextToSpeechService/SynthesizeText"
    assert span.kind == Span.SPAN_KIND_SERVER
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert value(span, "rpc.grpc.status_code") == 0
    children = collector[0].children(span)
    assert [child.name for child in children] == ["voice", "segment", "segment"]
    for segment in children[1:]:
        queue, synthesis = collector[0].children(segment)
        assert (queue.name, synthesis.name) == ("queue", "synthesis")
        assert seconds(queue) + seconds(synthesis) == pytest.approx(seconds(segment), abs=0.001)
        assert value(segment, "intone.outcome") == "complete"
        assert span.start_time_unix_nano <= segment.start_time_unix_nano
    sent = sum(value(segment, "intone.audio_seconds") for segment in children[1:])  # type: ignore[misc]
    assert sent == pytest.approx(sum(e.audio.sample_count for e in events) / 24000)
    assert before - 1 <= span.start_time_unix_nano / 1e9 <= time.time() + 1
    # One id finds the call everywhere.
    assert events[0].started.request_id == trailers["x-request-id"] == "call-1"
    ended = [line for line in traced.logs() if line.get("request_id") == "call-1"]
    assert [line["trace_id"] for line in ended] == [TRACE]


def test_without_a_parent_a_call_begins_a_trace(
    traced: ServerProcess, collector: tuple[Collector, str]
) -> None:
    for number, header in enumerate([(), (("traceparent", "no such thing"),)]):
        speak(traced, "One two.", f"call-2-{number}", *header)
        wait_for(lambda number=number: collector[0].of(f"call-2-{number}") is not None)
        span = collector[0].of(f"call-2-{number}")
        assert span is not None
        assert span.parent_span_id == b""


def test_a_call_that_fails_says_why(
    traced: ServerProcess, collector: tuple[Collector, str]
) -> None:
    speak(traced, "Three good words here. fail@0 one two three.", "call-3")
    wait_for(lambda: collector[0].of("call-3") is not None)
    span = collector[0].of("call-3")
    assert span is not None
    failed = collector[0].children(span)[2]
    assert value(failed, "intone.reason") == "SYNTHESIS_FAILED"
    assert failed.status.code == failed.status.STATUS_CODE_ERROR


def test_nothing_that_was_said_is_exported(
    traced: ServerProcess, collector: tuple[Collector, str]
) -> None:
    speak(traced, TEXT, "call-4")
    wait_for(lambda: collector[0].of("call-4") is not None)
    assert not re.search(rb"ylophone|arigold", collector[0].raw)


def test_a_collector_that_is_gone_costs_the_callers_nothing() -> None:
    flags = ["--engine", "fake", "--otlp-endpoint", "http://127.0.0.1:1"]
    with running_server(*flags) as server:
        events, _ = speak(server, "One two.", "call-5")
        assert events[-1].HasField("finished")


def test_an_endpoint_must_be_a_url(tmp_path) -> None:  # type: ignore[no-untyped-def]
    server = start_server(tmp_path, "--engine", "fake", "--otlp-endpoint", "collector:4317")
    assert server.process.wait(30) == 1
    assert "--otlp-endpoint=collector:4317: must be http://HOST:PORT" in server.stderr.read_text()
    assert server.process.stdout is not None
    server.process.stdout.close()
