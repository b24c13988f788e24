"""Counts every call, gRPC's own too, by service, method and status."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf import descriptor_pool

from intone_server.errors import Reason
from intone_server.metrics import Metrics
from intone_server.rpc.calls import Call, Context
from intone_server.scheduling.generation import Priority
from intone_server.synthesis.events import Outcome
from intone_server.synthesis.watching import EndedSegment, Unwatched, WasteCause, Watch


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
        # Not the handler's kind: who is refused gets one that takes any.
        described = descriptor_pool.Default().FindMethodByName(f"{service}.{method}")
        kind = _KINDS[described.client_streaming, described.server_streaming]
        return _counted(handler, _Counted(self._metrics, (kind, service, method)))


_KINDS = {
    (False, False): "unary",
    (False, True): "server_stream",
    (True, False): "client_stream",
    (True, True): "bidi_stream",
}


class _Counted:
    """One call, from its headers to its end: that of its task at the latest, for the handler is
    never called if the client leaves before its message has come."""

    def __init__(self, metrics: Metrics, labels: tuple[str, str, str]) -> None:
        self._metrics = metrics
        self._labels = labels
        self._began_at = time.monotonic()
        self._ended = False
        metrics.started.labels(*labels).inc()
        self.received, self.sent = metrics.received.labels(*labels), metrics.sent.labels(*labels)
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: self.end(grpc.StatusCode.CANCELLED.name))

    def end(self, code: str) -> None:
        """It is over, with the status of this name. Once."""
        if not self._ended:
            self._ended = True
            self._metrics.handled.labels(*self._labels, code).inc()
            self._metrics.handling.labels(*self._labels).observe(time.monotonic() - self._began_at)


def _counted(handler: Any, call: _Counted) -> Any:
    if handler.stream_stream:
        make, inner = grpc.stream_stream_rpc_method_handler, handler.stream_stream
    elif handler.unary_stream:
        make, inner = grpc.unary_stream_rpc_method_handler, handler.unary_stream
    else:
        make, inner = grpc.unary_unary_rpc_method_handler, handler.unary_unary

    async def serve(request: Any, context: Context) -> Any:
        ended = False
        try:
            response = await inner(request, context)
            ended = True
            return response
        finally:
            call.end(_code(context, ended=ended))

    def counting(convert: Callable[[Any], Any], count: Any) -> Callable[[Any], Any]:
        def converted(message: Any) -> Any:
            count.inc()
            return convert(message)

        return converted

    return make(
        serve,
        request_deserializer=counting(handler.request_deserializer, call.received),
        response_serializer=counting(handler.response_serializer, call.sent),
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


class FileMetrics(CallMetrics):
    """Of a call whose answer is one file: all of its audio is sent, or none. Nobody listens
    meanwhile, so no gap is heard and nobody runs dry."""

    def __init__(self, metrics: Metrics, call: Call) -> None:
        super().__init__(metrics, call)
        self._held_seconds = 0.0

    def audio_sent(self, seconds: float, gap_seconds: float | None) -> None:
        self._held_seconds += seconds

    def underrun(self) -> None: ...

    def ended(self, code: str) -> None:
        if code == grpc.StatusCode.OK.name:
            self._metrics.audio_seconds.inc(self._held_seconds)
            return
        left = code == grpc.StatusCode.CANCELLED.name
        cause = WasteCause.CANCEL if left else WasteCause.FAILURE
        self._metrics.wasted_audio_seconds.labels(cause.value).inc(self._held_seconds)


def watch_of(call: Call, metrics: Metrics) -> Watch:
    """The `Watch` that counts what `call` speaks."""
    return (
        FileMetrics(metrics, call)
        if call.method == "SynthesizeFile"
        else CallMetrics(metrics, call)
    )
