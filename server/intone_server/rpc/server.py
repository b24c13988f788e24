"""The gRPC server: services, health, reflection, and options with their reasons."""

import errno
import socket
from collections.abc import Callable, Collection, Sequence
from typing import Any

import grpc
import grpc.aio
from grpc_channelz.v1.channelz import add_channelz_servicer
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from intone.v1 import (
    status_pb2,
    status_pb2_grpc,
    tts_pb2,
    tts_pb2_grpc,
    voices_pb2,
    voices_pb2_grpc,
)
from intone_server.rpc.access import CHANNELZ, Access
from intone_server.rpc.calls import Call, CallInterceptor
from intone_server.rpc.counting import CountingInterceptor, watch_of
from intone_server.rpc.health import HealthServicer
from intone_server.rpc.runtime import Service
from intone_server.rpc.status import StatusServicer
from intone_server.rpc.tts import TextToSpeechServicer
from intone_server.rpc.voices import VoiceServicer
from intone_server.synthesis.watching import Watch

SERVICES = tuple(
    module.DESCRIPTOR.services_by_name[name].full_name
    for module, name in (
        (tts_pb2, "TextToSpeechService"),
        (voices_pb2, "VoiceService"),
        (status_pb2, "StatusService"),
    )
)
# Names for probes, beside the services'. "" is what balancers and tools ask for by default.
LIVENESS, STARTUP, READINESS = "liveness", "startup", "readiness"
READY_NAMES = (READINESS, "", *SERVICES)

# A peer that opens connections and says nothing costs no more than these; the process must be
# allowed as many files.
MAX_CONNECTIONS = 1000
HANDSHAKE_SECONDS = 10
# For each connection. A proxy carries many callers over one, and opens another beyond it.
MAX_STREAMS_PER_CONNECTION = 1000
# All keys and values of a call, with 32 bytes for each: room for a long JWT.
MAX_METADATA_BYTES = 16_384

_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_SECONDS * 1000),
    ("grpc.max_concurrent_streams", MAX_STREAMS_PER_CONNECTION),
    # Below the first limit all is taken, above the second nothing; between them by chance.
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
    # Ping silent clients, so that one which vanished is noticed within 80 s.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Let clients ping every 20 s, also between calls; the default answers with too_many_pings.
    ("grpc.http2.min_ping_interval_without_data_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 2),
    # Bound the text that a client can push to a stream that does not read it.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 16_384),
    # Two servers must not share one address unnoticed.
    ("grpc.so_reuseport", 0),
]


# Beyond the longest upload, so that one which is a little longer is told the limit in our words.
UPLOAD_ROOM_BYTES = 4 * 1024 * 1024

# Connections are renewed now and then, so that long-lived clients find new pods. Open streams keep
# the old connection as long as they live.
MAX_CONNECTION_AGE_SECONDS = 1800
CONNECTION_GRACE_SECONDS = 60  # beyond the longest stream


def _refuse_to_take_over(path: str) -> None:
    """Raises OSError if a server listens on this socket. gRPC would replace it silently."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return
    raise OSError(errno.EADDRINUSE, "another server listens there")


class RpcServer:
    """The gRPC server around the servicers. Ready to be started; not serving yet."""

    def __init__(
        self,
        service: Service,
        access: Access,
        watches: Sequence[Callable[[Call], Watch]] = (),
        *,
        describes_itself: bool = True,
        channelz: bool = False,
    ) -> None:
        """`describes_itself`: by reflection; `channelz`: by what its connections do."""
        self.tts = TextToSpeechServicer(service)
        self.voices = VoiceServicer(service)
        self.status = StatusServicer(service)
        self._health = HealthServicer()
        self._counting = CountingInterceptor(service.metrics)
        self._health_server: grpc.aio.Server | None = None
        grace = service.session_limits.session_limit_seconds + CONNECTION_GRACE_SECONDS
        longest = service.request_limits.max_prompt_bytes + UPLOAD_ROOM_BYTES
        options = [
            ("grpc.max_receive_message_length", longest),
            ("grpc.max_connection_age_ms", MAX_CONNECTION_AGE_SECONDS * 1000),
            ("grpc.max_connection_age_grace_ms", int(grace * 1000)),
        ]
        self._calls = CallInterceptor(
            access, [lambda call: watch_of(call, service.metrics), *watches]
        )
        self._server = grpc.aio.server(
            interceptors=[self._counting, self._calls], options=[*_OPTIONS, *options]
        )
        tts_pb2_grpc.add_TextToSpeechServiceServicer_to_server(self.tts, self._server)
        voices_pb2_grpc.add_VoiceServiceServicer_to_server(self.voices, self._server)
        status_pb2_grpc.add_StatusServiceServicer_to_server(self.status, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        described = [*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME]
        if channelz:
            add_channelz_servicer(self._server)
            described.append(CHANNELZ)
        if describes_itself:
            reflection.enable_server_reflection(described, self._server)

    @property
    def open_calls(self) -> Collection[Call]:
        """Those that are being served."""
        return self._calls.open_calls

    async def start(self, address: str, credentials: grpc.ServerCredentials | None = None) -> str:
        """Bind and serve, with TLS if there are `credentials`; returns the address with its real
        port. Raises RuntimeError or OSError if it cannot be bound."""
        await self.set_health(serving=True, names=(LIVENESS,))
        await self.set_health(serving=False, names=(STARTUP, *READY_NAMES))
        if address.startswith("unix:"):
            _refuse_to_take_over(address.removeprefix("unix:"))
        if credentials is None:
            port = self._server.add_insecure_port(address)
        else:
            port = self._server.add_secure_port(address, credentials)
        await self._server.start()
        if address.startswith("unix:"):
            return address
        return f"{address.rpartition(':')[0]}:{port}"

    async def start_health(self, address: str) -> str:
        """A second port, in plaintext, that answers health alone; as `start`."""
        self._health_server = grpc.aio.server(interceptors=[self._counting], options=_OPTIONS)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._health_server)
        port = self._health_server.add_insecure_port(address)
        await self._health_server.start()
        return f"{address.rpartition(':')[0]}:{port}"

    async def set_health(self, *, serving: bool, names: tuple[str, ...]) -> None:
        """Set the status of health names. Not `enter_graceful_shutdown`, which would flip liveness
        too and get a draining pod killed."""
        status = (
            health_pb2.HealthCheckResponse.SERVING
            if serving
            else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for name in names:
            self._health.set(name, status)

    async def stop(self, grace_seconds: float) -> None:
        """Refuse new calls, give open ones the grace, then cancel them."""
        await self._server.stop(grace_seconds)
        if self._health_server is not None:
            await self._health_server.stop(0)
