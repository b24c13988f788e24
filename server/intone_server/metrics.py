"""Everything that Prometheus is told, in one place.

No label ever holds what a user said, a client, an id, or the name of a voice: each has a few values
that are known beforehand.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    start_http_server,
)
from prometheus_client.core import GaugeMetricFamily, Metric

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
# What people notice lies between 0.1 and 1 s.
FIRST_AUDIO = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1, 2, 5, 10)
ERRORS = (-10, -5, -2, -1, -0.5, -0.2, -0.1, 0, 0.1, 0.2, 0.5, 1, 2, 5, 10)
SPEEDS = (0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4, 6, 8, 12)
SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)
CALLS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
RPC = ("grpc_type", "grpc_service", "grpc_method")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What gauges show: the state of the server at one moment. Seconds are of audio."""

    streams: dict[str, int]  # by state: talking, quiet
    waiting: dict[str, int]  # segments, by priority
    work_seconds: float
    replicas: dict[str, int]  # by state: loading, idle, busy, dead
    buffered_seconds: float
    voice_states: int
    voice_state_bytes: int
    draining: bool
    build: dict[str, str]  # version, engine, engine_version, model; empty while it loads


NOTHING = Snapshot(
    streams={},
    waiting={},
    work_seconds=0,
    replicas={},
    buffered_seconds=0,
    voice_states=0,
    voice_state_bytes=0,
    draining=False,
    build={},
)


class Metrics:
    """Counters and histograms, to be moved by whoever knows, in a registry of their own."""

    def __init__(self) -> None:
        # Else each counter and histogram brings a gauge of when it was made, which nobody reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str, values: tuple[str, ...] = ()) -> Counter:
            made = Counter(name, text, labels, registry=self.registry)
            for value in values:
                made.labels(value)  # 0 from the start: Prometheus sees no growth from nothing
            return made

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

        # Calls that ask to speak.
        self.admission = counter(
            "intone_admission_total",
            "Calls that ask to speak, by what became of that",
            *("rpc", "decision", "reason"),
        )
        self.input_characters = counter(
            "intone_input_characters_total", "Code points of text that were taken to be spoken"
        )
        self.first_audio = histogram(
            "intone_first_audio_seconds",
            "From a text's arrival to its first audio, as it is sent",
            FIRST_AUDIO,
            *("rpc", "priority"),
        )
        self.chunk_gap = histogram(
            "intone_chunk_gap_seconds", "Between two chunks of audio of one text", SECONDS
        )
        self.underruns = counter(
            "intone_underruns_total", "Times that a listener had nothing left to hear inside a text"
        )
        self.audio_seconds = counter("intone_audio_seconds_total", "Audio that was sent")
        self.wasted_audio_seconds = counter(
            "intone_wasted_audio_seconds_total",
            "Audio that was made and never sent",
            "cause",
            values=("clear", "cancel", "failure"),
        )
        self.clears = counter("intone_clears_total", "Barge-ins that were carried out")
        self.clear_stop = histogram(
            "intone_clear_stop_seconds", "From a Clear's arrival to its answer", SHORT
        )
        # Segments and replicas.
        self.segments = counter(
            "intone_segments_total", "Segments of speech that ended", "outcome", "reason"
        )
        self.segment_audio = histogram(
            "intone_segment_audio_seconds", "Audio of a complete segment", SECONDS
        )
        self.synthesis = histogram(
            "intone_synthesis_seconds", "Time of a complete segment on its replica", SECONDS
        )
        self.speed_ratio = histogram(
            "intone_speed_ratio",
            "Audio seconds of a complete segment for each second on its replica",
            SPEEDS,
        )
        self.queue_wait = histogram(
            "intone_queue_wait_seconds", "A segment's wait for a replica", SECONDS
        )
        self.wait_prediction_error = histogram(
            "intone_wait_prediction_error_seconds",
            "That wait less what was predicted when the segment came",
            ERRORS,
        )
        self.worker_restarts = counter(
            "intone_worker_restarts_total",
            "Workers that were lost and replaced",
            "reason",
            values=("exited", "stalled"),
        )
        self.stale_audio = counter(
            "intone_stale_audio_total", "Frames that came from a worker when nobody wanted them"
        )
        self.voice_requests = counter(
            "intone_voice_requests_total",
            "Voices that calls asked for",
            "result",
            values=("loaded", "load", "not_found", "failed"),
        )
        self.event_loop_lag = histogram(
            "intone_event_loop_lag_seconds", "How much too late the event loop was", SHORT
        )
        # Every call, in the names that gRPC's middlewares use.
        self.started = counter("grpc_server_started_total", "Calls that began", *RPC)
        self.handled = counter(
            "grpc_server_handled_total", "Calls that ended, by status", *RPC, "grpc_code"
        )
        self.received = counter(
            "grpc_server_msg_received_total", "Messages that were received", *RPC
        )
        self.sent = counter("grpc_server_msg_sent_total", "Messages that were sent", *RPC)
        self.handling = histogram(
            "grpc_server_handling_seconds", "From a call's beginning to its end", CALLS, *RPC
        )

    def show(self, snapshot: Callable[[], Snapshot]) -> None:
        """Show the server's state, which `snapshot` gives, asked at every scrape in its thread."""
        self.registry.register(_Gauges(snapshot))

    def serve(self, address: str) -> "Endpoint":
        """Answer `GET /metrics` at HOST:PORT. Raises OSError."""
        return Endpoint(address, self.registry)


class Endpoint:
    """The port for Prometheus, with a thread of its own."""

    def __init__(self, address: str, registry: CollectorRegistry) -> None:
        host, _, port = address.rpartition(":")
        self._server, self._thread = start_http_server(int(port), host.strip("[]"), registry)
        self.address = f"{host}:{self._server.server_port}"

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Gauges:
    """A collector, of prometheus_client's protocol."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterator[Metric]:
        """What it will give, without asking for it."""
        return self._families(NOTHING)

    def collect(self) -> Iterator[Metric]:
        return self._families(self._snapshot())

    def _families(self, now: Snapshot) -> Iterator[Metric]:
        def by(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
            family = GaugeMetricFamily(name, text, labels=[label])
            for value, count in values.items():
                family.add_metric([value], count)
            return family

        yield by("intone_streams_open", "Open calls that speak", "state", now.streams)
        yield by("intone_queue_segments", "Segments that wait", "priority", now.waiting)
        yield by("intone_replicas", "Places to speak", "state", now.replicas)
        yield GaugeMetricFamily(
            "intone_queue_work_seconds",
            "Audio to be made: all that waits, and what is left of the running, as estimated",
            now.work_seconds,
        )
        yield GaugeMetricFamily(
            "intone_audio_buffered_seconds",
            "Audio that was made and waits for its client",
            now.buffered_seconds,
        )
        yield GaugeMetricFamily(
            "intone_voice_states",
            "Created voices that this server holds in memory",
            now.voice_states,
        )
        yield GaugeMetricFamily("intone_voice_state_bytes", "Their size", now.voice_state_bytes)
        yield GaugeMetricFamily(
            "intone_draining", "1 while the server shuts down", int(now.draining)
        )
        labels = ("version", "engine", "engine_version", "model")
        build = GaugeMetricFamily("intone_build_info", "1, with what is running", labels=labels)
        if now.build:
            build.add_metric([now.build[label] for label in labels], 1)
        yield build
