"""The client of one server."""

import json
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from intone.v1 import (
    status_pb2,
    status_pb2_grpc,
    tts_pb2,
    tts_pb2_grpc,
    voices_pb2,
    voices_pb2_grpc,
)

from ._errors import error_from_rpc
from ._speech import Speech
from ._stream import SpeechStream

DEFAULT_ADDRESS = "localhost:50051"

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
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
            },
        }
    ]
}
_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    ("grpc.enable_retries", 1),
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

_Response = TypeVar("_Response")


class Client:
    """Speaks through the server at `address`; an async context manager.

    `address` is HOST:PORT or `unix:PATH`. `credentials` makes it TLS. Connects on first use, in
    the event loop that is running then, and belongs to that loop.

    In every call, `timeout` is its deadline in seconds (None: no limit of the client's own),
    `request_id` goes to the server's log as `x-request-id` (None: the server makes one), and
    `config` None means all defaults. All of them raise `IntoneError`.
    """

    def __init__(
        self, address: str = DEFAULT_ADDRESS, *, credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        self.address = address
        self._credentials = credentials
        self._opened: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection and cancel what still runs on it."""
        channel, self._opened = self._opened, None
        if channel is not None:
            await channel.close()

    def stream(
        self,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> SpeechStream:
        """Text pieces in, events with audio out, at the same time: `async with` it."""
        call = tts_pb2_grpc.TextToSpeechServiceStub(self._channel).Synthesize(
            timeout=timeout, metadata=_metadata(request_id)
        )
        return SpeechStream(call, self.address, config or tts_pb2.SpeechConfig())

    def synthesize_text(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Speech:
        """A whole text in, the same events out. Iterate it, or its `audio()`."""
        call = tts_pb2_grpc.TextToSpeechServiceStub(self._channel).SynthesizeText(
            tts_pb2.SynthesizeTextRequest(text=text, config=config),
            timeout=timeout,
            metadata=_metadata(request_id),
        )
        return Speech(call, self.address)

    async def synthesize_file(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> tts_pb2.SynthesizeFileResponse:
        """A whole text in, one complete WAV file of up to 3.9 MiB out, in `audio`."""
        return await self._answer(
            tts_pb2_grpc.TextToSpeechServiceStub(self._channel).SynthesizeFile(
                tts_pb2.SynthesizeFileRequest(text=text, config=config),
                timeout=timeout,
                metadata=_metadata(request_id),
            )
        )

    async def plan(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> tts_pb2.PlanTextResponse:
        """What would be spoken: segments, estimated audio and wait. Nothing is synthesized."""
        return await self._answer(
            tts_pb2_grpc.TextToSpeechServiceStub(self._channel).PlanText(
                tts_pb2.PlanTextRequest(text=text, config=config),
                timeout=timeout,
                metadata=_metadata(request_id),
            )
        )

    async def voices(
        self, *, language: str = "", timeout: float | None = None
    ) -> list[voices_pb2.Voice]:
        """All voices, or those of one language, ordered by name. `timeout` is for each page."""
        stub = voices_pb2_grpc.VoiceServiceStub(self._channel)
        voices: list[voices_pb2.Voice] = []
        token = ""
        while True:
            request = voices_pb2.ListVoicesRequest(page_token=token, language=language)
            page = await self._answer(stub.ListVoices(request, timeout=timeout))
            voices.extend(page.voices)
            token = page.next_page_token
            if not token:
                return voices

    async def info(self, *, timeout: float | None = None) -> status_pb2.GetServerInfoResponse:
        """What the server is: versions, model, features and limits."""
        stub = status_pb2_grpc.StatusServiceStub(self._channel)
        return await self._answer(
            stub.GetServerInfo(status_pb2.GetServerInfoRequest(), timeout=timeout)
        )

    async def capacity(self, *, timeout: float | None = None) -> status_pb2.Capacity:
        """How busy the server is now."""
        stub = status_pb2_grpc.StatusServiceStub(self._channel)
        answer = await self._answer(
            stub.GetCapacity(status_pb2.GetCapacityRequest(), timeout=timeout)
        )
        return answer.capacity

    @property
    def _channel(self) -> grpc.aio.Channel:
        # Not in the constructor: a channel belongs to the loop that runs when it is made.
        if self._opened is None:
            if self._credentials is None:
                self._opened = grpc.aio.insecure_channel(self.address, options=_OPTIONS)
            else:
                self._opened = grpc.aio.secure_channel(
                    self.address, self._credentials, options=_OPTIONS
                )
        return self._opened

    async def _answer(self, call: grpc.aio.UnaryUnaryCall[Any, _Response]) -> _Response:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise error_from_rpc(error, self.address) from error


def _metadata(request_id: str | None) -> grpc.aio.Metadata | None:
    return None if request_id is None else grpc.aio.Metadata(("x-request-id", request_id))
