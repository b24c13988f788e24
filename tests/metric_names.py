"""The metrics that alerts, dashboards and autoscalers may name, with their labels: pinned here, and
compared with what the server declares in test_metrics.py."""

from typing import Any

import prometheus_client

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"
# Values of a label that are a fixed set; None: free.
Labels = dict[str, tuple[str, ...] | None]

_METHOD: Labels = {"grpc_type": None, "grpc_service": None, "grpc_method": None}
_PRIORITY = ("interactive", "standard", "batch")
METRICS: dict[str, tuple[str, Labels]] = {
    "intone_streams_open": (GAUGE, {"state": ("talking", "quiet")}),
    "intone_queue_segments": (GAUGE, {"priority": _PRIORITY}),
    "intone_queue_work_seconds": (GAUGE, {}),
    "intone_replicas": (GAUGE, {"state": ("loading", "idle", "busy", "dead")}),
    "intone_audio_buffered_seconds": (GAUGE, {}),
    "intone_voice_states": (GAUGE, {}),
    "intone_voice_state_bytes": (GAUGE, {}),
    "intone_draining": (GAUGE, {}),
    "intone_build_info": (
        GAUGE,
        {"version": None, "engine": None, "engine_version": None, "model": None},
    ),
    "intone_admission_total": (
        COUNTER,
        {"rpc": None, "decision": ("admitted", "refused"), "reason": None},
    ),
    "intone_worker_restarts_total": (COUNTER, {"reason": ("exited", "stalled")}),
    "intone_segments_total": (
        COUNTER,
        {"outcome": ("complete", "cleared", "no_end", "failed", "skipped"), "reason": None},
    ),
    "intone_underruns_total": (COUNTER, {}),
    "intone_audio_seconds_total": (COUNTER, {}),
    "intone_input_characters_total": (COUNTER, {}),
    "intone_clears_total": (COUNTER, {}),
    "intone_wasted_audio_seconds_total": (COUNTER, {"cause": ("clear", "cancel", "failure")}),
    "intone_voice_requests_total": (COUNTER, {"result": ("loaded", "load", "not_found", "failed")}),
    "intone_stale_audio_total": (COUNTER, {}),
    "intone_queue_wait_seconds": (HISTOGRAM, {}),
    "intone_wait_prediction_error_seconds": (HISTOGRAM, {}),
    "intone_first_audio_seconds": (HISTOGRAM, {"rpc": None, "priority": _PRIORITY}),
    "intone_segment_audio_seconds": (HISTOGRAM, {}),
    "intone_synthesis_seconds": (HISTOGRAM, {}),
    "intone_speed_ratio": (HISTOGRAM, {}),
    "intone_chunk_gap_seconds": (HISTOGRAM, {}),
    "intone_clear_stop_seconds": (HISTOGRAM, {}),
    "intone_event_loop_lag_seconds": (HISTOGRAM, {}),
    "grpc_server_started_total": (COUNTER, _METHOD),
    "grpc_server_msg_received_total": (COUNTER, _METHOD),
    "grpc_server_msg_sent_total": (COUNTER, _METHOD),
    "grpc_server_handled_total": (COUNTER, {**_METHOD, "grpc_code": None}),
    "grpc_server_handling_seconds": (HISTOGRAM, _METHOD),
}


def series() -> set[str]:
    """The names that PromQL sees."""
    found = set()
    for name, (kind, _) in METRICS.items():
        found |= {f"{name}_{part}" for part in ("bucket", "sum", "count")}
        if kind != HISTOGRAM:
            found -= {f"{name}_{part}" for part in ("bucket", "sum", "count")}
            found.add(name)
    # Its values may be negative: a sum that goes down is no counter, and is not told.
    return found - {"intone_wait_prediction_error_seconds_sum"}


def labels_of(name: str) -> Labels:
    """The labels of a series."""
    if name in METRICS:
        return METRICS[name][1]
    return {**METRICS[name.rpartition("_")[0]][1], "le": None}


def registry_with_everything() -> prometheus_client.CollectorRegistry:
    """A registry in which each metric has one value for each fixed value of its labels."""
    registry = prometheus_client.CollectorRegistry()
    for name, (kind, labels) in METRICS.items():
        made: Any
        if kind == GAUGE:
            made = prometheus_client.Gauge(name, name, list(labels), registry=registry)
        elif kind == COUNTER:
            made = prometheus_client.Counter(name, name, list(labels), registry=registry)
        else:
            made = prometheus_client.Histogram(name, name, list(labels), registry=registry)
        longest = max((len(values or ()) for values in labels.values()), default=1) or 1
        for index in range(longest):
            values = [
                allowed[index % len(allowed)] if allowed else "intone.v1.Any"
                for allowed in labels.values()
            ]
            child = made.labels(*values) if labels else made
            child.observe(1) if kind == HISTOGRAM else child.inc()
    return registry
