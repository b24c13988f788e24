"""Counts every call, gRPC's own too, by service, method and status."""

import time
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio

from intone_server.errors import Reason
from intone_server.metrics import Metrics
from intone_server.rpc.calls import Call, Context
from intone_server.scheduling.generation import Priority
from intone_server.synthesis.events import Outcome
from intone_server.synthesis.watching import EndedSegment, Unwatched


class CountingInterceptor(grpc.aio.ServerInterceptor):
    """The outermost: it sees what the client sees."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    # grpc's handlers are untyped tuples: what they hold depends on the kind of method.
    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:
            # The name of what does not exist is the caller's, and may be anything.
            labels = ("unary", "unknown", "unknown")
            self._metrics.started.labels(*labels).inc()
            self._metrics.handled.labels(*labels, grpc.StatusCode.UNIMPLEMENTED.name).inc()
            return None
        service, _, method = handler_call_details.method.strip("/").partition("/")
        kind = _KINDS[handler.request_streaming, handler.response_streaming]
        return _counted(handler, self._metrics, (kind, service, method))


_KINDS = {
    (False, False): "unary",
    (False, True): "server_stream",
    (True, False): "client_stream",
    (True, True): "bidi_stream",
}


def _counted(handler: Any, metrics: Metrics, labels: tuple[str, str, str]) -> Any:
    if handler.stream_stream:
        make, inner = grpc.stream_stream_rpc_method_handler, handler.stream_stream
    elif handler.unary_stream:
        make, inner = grpc.unary_stream_rpc_method_handler, handler.unary_stream
    else:
        make, inner = grpc.unary_unary_rpc_method_handler, handler.unary_unary
    received, sent = metrics.received.labels(*labels), metrics.sent.labels(*labels)

    async def serve(request: Any, context: Context) -> Any:
        metrics.started.labels(*labels).inc()
        began_at = time.monotonic()
        ended = False
        try:
            response = await inner(request, context)
            ended = True
            return response
        finally:
            metrics.handled.labels(*labels, _code(context, ended=ended)).inc()
            metrics.handling.labels(*labels).observe(time.monotonic() - began_at)

    def counting(convert: Callable[[Any], Any], count: Any) -> Callable[[Any], Any]:
        def converted(message: Any) -> Any:
            count.inc()
            return convert(message)

        return converted

    return make(
        serve,
        request_deserializer=counting(handler.request_deserializer, received),
        response_serializer=counting(handler.response_serializer, sent),
    )


def _code(context: Context, *, ended: bool) -> str:
    """The name of a call's status."""
    told: Any = context.code()  # a number, whatever the stubs say
    code: grpc.StatusCode | None = _CODES.get(told, told)
    if ended:
        return code.name if code else grpc.StatusCode.OK.name
    if code and code is not grpc.StatusCode.OK:
        return code.name
    remaining = context.time_remaining()
    late = remaining is not None and remaining <= 0
    return (grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.CANCELLED).name


_CODES = {code.value[0]: code for code in grpc.StatusCode}


class CallMetrics(Unwatched):
    """A `Watch` of one call."""

    def __init__(self, metrics: Metrics, call: Call) -> None:
        self._metrics = metrics
        self._rpc = call.method

    def admitted(self) -> None:
        self._metrics.admission.labels(self._rpc, "admitted", "").inc()

    def refused(self, reason: Reason) -> None:
        self._metrics.admission.labels(self._rpc, "refused", reason).inc()

    def first_audio(self, seconds: float, priority: Priority) -> None:
        self._metrics.first_audio.labels(self._rpc, priority.name.lower()).observe(seconds)

    def audio_sent(self, seconds: float, gap_seconds: float | None) -> None:
        self._metrics.audio_seconds.inc(seconds)
        if gap_seconds is not None:
            self._metrics.chunk_gap.observe(gap_seconds)

    def underrun(self) -> None:
        self._metrics.underruns.inc()

    def segment_ended(self, segment: EndedSegment) -> None:
        metrics = self._metrics
        metrics.segments.labels(segment.outcome.value, segment.reason or "").inc()
        if segment.wasted_seconds:
            cause = segment.waste_cause.value
            metrics.wasted_audio_seconds.labels(cause).inc(segment.wasted_seconds)
        if segment.outcome is Outcome.COMPLETE and segment.synthesis_seconds:
            metrics.segment_audio.observe(segment.made_seconds)
            metrics.synthesis.observe(segment.synthesis_seconds)
            metrics.speed_ratio.observe(segment.made_seconds / segment.synthesis_seconds)

    def cleared(self, stop_seconds: float) -> None:
        self._metrics.clears.inc()
        self._metrics.clear_stop.observe(stop_seconds)
