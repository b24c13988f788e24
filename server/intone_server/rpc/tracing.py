"""A trace of each call, for OpenTelemetry: the extra `otel`.

Our own few lines rather than the gRPC instrumentation, which is beta and knows nothing of what
happens to a segment on its way. The protocol, the batching and the export are OpenTelemetry's.
"""

import time
from typing import Any

import grpc
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from intone_server import __version__
from intone_server.errors import Reason
from intone_server.rpc.calls import Call
from intone_server.scheduling.generation import Priority
from intone_server.synthesis.events import Outcome
from intone_server.synthesis.watching import EndedSegment, Unwatched

EXPORT_SECONDS = 5.0  # that one attempt may take
# Statuses that are the server's fault, as OpenTelemetry's conventions for gRPC list them.
FAULTS = frozenset(
    {
        "UNKNOWN",
        "DEADLINE_EXCEEDED",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
    }
)


_NUMBERS = {code.name: code.value[0] for code in grpc.StatusCode}


class Tracing:
    """Makes a watch for each call, and sends what it tells in the background. OpenTelemetry's own
    environment variables hold: OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER, ..."""

    def __init__(self, endpoint: str) -> None:
        """`endpoint` is a URL; https: with the certificates that gRPC trusts."""
        resource = Resource.create({"service.name": "intone", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(
            endpoint, insecure=endpoint.startswith("http://"), timeout=EXPORT_SECONDS
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("intone", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def watch(self, call: Call) -> "CallTrace":
        """The span of a call, which begins now: a child of what its metadata names."""
        carrier = {key: value for key, value in call.metadata if isinstance(value, str)}
        span = self._tracer.start_span(
            f"{call.service}/{call.method}",
            self._propagator.extract(carrier),
            SpanKind.SERVER,
            {
                "rpc.system": "grpc",
                "rpc.service": call.service,
                "rpc.method": call.method,
                "intone.request_id": call.request_id,
            },
        )
        call.fields["trace_id"] = trace.format_trace_id(span.get_span_context().trace_id)
        return CallTrace(self._tracer, span)

    def close(self) -> None:
        """Send what is left, and stop. Blocks, for no longer than an attempt or two take."""
        self._provider.shutdown()


class CallTrace(Unwatched):
    """A `Watch` of one call. Moments of the monotonic clock are told as time of day."""

    def __init__(self, tracer: trace.Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span
        self._context = trace.set_span_in_context(span)
        self._offset = time.time() - time.monotonic()

    def refused(self, reason: Reason) -> None:
        self._span.set_attribute("intone.reason", reason)

    def voice_ready(self, began_at: float) -> None:
        self._child("voice", self._context, began_at, time.monotonic(), {})

    def first_audio(self, seconds: float, priority: Priority) -> None:
        self._span.add_event(
            "first audio",
            {"intone.first_audio_seconds": seconds, "intone.priority": priority.name.lower()},
        )

    def underrun(self) -> None:
        self._span.add_event("underrun")

    def cleared(self, stop_seconds: float) -> None:
        self._span.add_event("cleared", {"intone.stop_seconds": stop_seconds})

    def segment_ended(self, segment: EndedSegment) -> None:
        began_at = segment.queued_at or segment.started_at or segment.ended_at
        attributes = {
            "intone.segment": segment.segment,
            "intone.outcome": segment.outcome.value,
            "intone.characters": segment.characters,
            "intone.audio_seconds": segment.sent_seconds,
            "intone.wasted_audio_seconds": segment.wasted_seconds,
        }
        if segment.reason is not None:
            attributes["intone.reason"] = segment.reason
        failed = segment.outcome is Outcome.FAILED
        span = self._child(
            "segment", self._context, began_at, segment.ended_at, attributes, failed=failed
        )
        inside = trace.set_span_in_context(span)
        if segment.queued_at is not None:
            until = segment.started_at or segment.ended_at
            self._child("queue", inside, segment.queued_at, until, {})
        if segment.started_at is not None:
            self._child(
                "synthesis",
                inside,
                segment.started_at,
                segment.ended_at,
                {"intone.audio_seconds": segment.made_seconds},
            )

    def ended(self, code: str) -> None:
        self._span.set_attribute("rpc.grpc.status_code", _NUMBERS[code])
        if code in FAULTS:
            self._span.set_status(Status(StatusCode.ERROR, code))
        self._span.end()

    def _child(
        self,
        name: str,
        context: Any,
        began_at: float,
        ended_at: float,
        attributes: dict[str, str | int | float],
        *,
        failed: bool = False,
    ) -> Span:
        span = self._tracer.start_span(
            name, context, attributes=attributes, start_time=self._moment(began_at)
        )
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(self._moment(max(began_at, ended_at)))
        return span

    def _moment(self, at: float) -> int:
        return round((at + self._offset) * 1e9)
