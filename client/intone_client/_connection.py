"""The connection to one server: its address, its channel, and calls with one answer."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

import grpc

from ._errors import OverloadedError, UnavailableError, error_from_rpc

DEFAULT_PORT = 50051
DEFAULT_ADDRESS = f"localhost:{DEFAULT_PORT}"

# What `ExportVoice` answers is up to 20 MB; the stock limit is 4 MiB. Sending has no limit of its
# own: the server's is told by `Limits`, and by its refusal.
_MAX_RECEIVED_BYTES = 32 * 1024 * 1024

_ATTEMPTS = 4
_CHANGES = ("CreateVoice", "DeleteVoice")
# gRPC retries a call only before its first event has arrived, so nothing is ever heard twice, and
# it waits as long as the server's `grpc-retry-pushback-ms` says.
_SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [
                {"service": "intone.v1.TextToSpeechService"},
                {"service": "intone.v1.VoiceService"},
                {"service": "intone.v1.StatusService"},
            ],
            "retryPolicy": {
                "maxAttempts": _ATTEMPTS,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
            },
        },
        # No policy: see `Connection.change`.
        {"name": [{"service": "intone.v1.VoiceService", "method": each} for each in _CHANGES]},
    ]
}
_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    ("grpc.enable_retries", 1),
    ("grpc.max_receive_message_length", _MAX_RECEIVED_BYTES),
    # The server allows a ping every 20 s. They find out that the other side of a quiet stream,
    # such as one that waits for an LLM, is gone.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
    # How long one attempt to connect may take: 20 s, the default, is long to look at.
    ("grpc.min_reconnect_backoff_ms", 4_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.dns_ares_query_timeout", 5_000),
]
# The pool is for a connection of its own: channels with the same options share one in a process.
_OPTIONS_OF_ONE_ATTEMPT: list[tuple[str, Any]] = [
    *(option for option in _OPTIONS if option[0] != "grpc.enable_retries"),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
]

# Reasons of refusals that come before anything was begun. Not REPLICA_LOST: if a recording brings
# a worker down, sending it again brings the next one down.
_REFUSALS = frozenset({"STARTING", "DRAINING", "NO_REPLICA", "QUEUE_FULL", "STREAM_LIMIT"})

_TOKEN = re.compile(r"[\x21-\x7e]+")

_Response = TypeVar("_Response")


class Connection:
    """Connects on first use, in the event loop that is running then, and belongs to that loop."""

    def __init__(
        self,
        address: str,
        credentials: grpc.ChannelCredentials | None,
        token: str | None = None,
        *,
        retry: bool = True,
    ) -> None:
        """Raises ValueError for a token that cannot be sent."""
        if token is not None and not _TOKEN.fullmatch(token):
            raise ValueError("a token has visible ASCII characters and no spaces")
        self._token = token
        self.address = complete_address(address)
        self._credentials = credentials
        self._options = _OPTIONS if retry else _OPTIONS_OF_ONE_ATTEMPT
        self._opened: grpc.aio.Channel | None = None

    @property
    def channel(self) -> grpc.aio.Channel:
        """The open channel."""
        # Not in the constructor: a channel belongs to the loop that runs when it is made.
        if self._opened is None:
            if self._credentials is None:
                self._opened = grpc.aio.insecure_channel(self.address, options=self._options)
            else:
                self._opened = grpc.aio.secure_channel(
                    self.address, self._credentials, options=self._options
                )
        return self._opened

    def metadata(self, request_id: str | None = None) -> grpc.aio.Metadata:
        """What goes with a call."""
        metadata = grpc.aio.Metadata()
        if request_id is not None:
            metadata.add("x-request-id", request_id)
        if self._token is not None:
            metadata.add("authorization", f"Bearer {self._token}")
        return metadata

    async def aclose(self) -> None:
        """Close the channel and cancel what still runs on it."""
        channel, self._opened = self._opened, None
        if channel is not None:
            await channel.close()

    async def answer(self, call: grpc.aio.UnaryUnaryCall[Any, _Response]) -> _Response:
        """The answer to a call that changes nothing. Raises `IntoneError`."""
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise error_from_rpc(error, self.address) from error

    async def change(
        self,
        begin: Callable[[float | None], grpc.aio.UnaryUnaryCall[Any, _Response]],
        timeout: float | None,
    ) -> _Response:
        """The answer to a call that changes the server, asked for up to four times.

        `begin` starts one attempt, given its time limit in seconds. Raises `IntoneError`.

        gRPC would also repeat a call whose answer was lost on the way, and the change of the first
        attempt would then come back as the failure of the second (ALREADY_EXISTS, NOT_FOUND). And
        it repeats only requests of up to 256 KiB. Here only a refusal by the server itself, from
        before anything was begun, leads to another attempt.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        for attempt in range(1, _ATTEMPTS + 1):
            left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            try:
                return await self.answer(begin(left))
            except (UnavailableError, OverloadedError) as error:
                delay = error.retry_delay
                if error.reason not in _REFUSALS or delay is None or attempt == _ATTEMPTS:
                    raise
                if left is not None and delay > left:
                    raise
            await asyncio.sleep(delay)
        raise AssertionError("the last attempt answers or raises")


def complete_address(address: str) -> str:
    """`address`, with port 50051 if it is a bare host; gRPC itself would take 443."""
    if re.fullmatch(r"[^:/\[\]]+|\[[^\]]+\]", address):
        return f"{address}:{DEFAULT_PORT}"
    return address
