"""What comes back from a call that speaks: its events, in order, and how it ended."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, TypeAlias

import grpc

from intone.v1 import tts_pb2

from ._errors import CallCancelledError, IntoneError, error_from_rpc, error_from_segments

TextCall: TypeAlias = grpc.aio.UnaryStreamCall[
    tts_pb2.SynthesizeTextRequest, tts_pb2.SynthesizeTextResponse
]
DialogueCall: TypeAlias = grpc.aio.UnaryStreamCall[
    tts_pb2.SynthesizeDialogueRequest, tts_pb2.SynthesizeDialogueResponse
]
BidiCall: TypeAlias = grpc.aio.StreamStreamCall[
    tts_pb2.SynthesizeRequest, tts_pb2.SynthesizeResponse
]


class Speech:
    """The events of one call: an async iterator and an async context manager.

    Iteration yields `SpeechEvent` messages, without audio that a `Clear` made stale, and raises
    `IntoneError` after the last one if the call failed. It ends at once after `aclose()`.
    A timeout around one `anext()` is safe: it loses no event and does not end the call.
    """

    def __init__(self, call: TextCall | DialogueCall | BidiCall, address: str) -> None:
        #: The first event: format, limits and request id. None until it has arrived.
        self.started: tts_pb2.Started | None = None
        #: The last event: reason and totals. None until it has arrived.
        self.finished: tts_pb2.Finished | None = None
        #: `SegmentFinished` of each segment that failed so far.
        self.failed_segments: list[tts_pb2.SegmentFinished] = []
        self._call = call
        self._address = address
        # A response of any of them is one event.
        self._responses: AsyncIterator[
            tts_pb2.SynthesizeTextResponse
            | tts_pb2.SynthesizeDialogueResponse
            | tts_pb2.SynthesizeResponse
        ] = aiter(call)
        self._reading: asyncio.Task[tts_pb2.SpeechEvent | None] | None = None
        self._read_lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        # Events read while looking for the status, not yet yielded.
        self._kept: deque[tts_pb2.SpeechEvent] = deque()
        self._epoch = 0
        self._ended = False
        self._closed = False
        self._error: IntoneError | None = None

    @property
    def request_id(self) -> str:
        """Of the call, as in the server's log; empty until the server has told it."""
        if self.started is not None:
            return self.started.request_id
        return self._error.request_id if self._error is not None else ""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tts_pb2.SpeechEvent:
        while True:
            async with self._read_lock:
                event = self._kept.popleft() if self._kept else await self._receive()
            if self._closed:
                raise StopAsyncIteration
            if event is None:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            if event.HasField("audio") and event.epoch < self._epoch:
                # Made before the server knew of the Clear: nobody wants to hear it.
                continue
            return event

    async def audio(self) -> AsyncIterator[bytes]:
        """The audio alone: whole samples in the format of `started`.

        Raises `SynthesisError` after the last audio if segments failed while the call went on:
        who sees no events would never learn that something is missing.
        """
        async for event in self:
            if event.HasField("audio"):
                yield event.audio.data
        if self.failed_segments and not self._closed:
            raise error_from_segments(self.failed_segments, self.request_id)

    async def aclose(self) -> None:
        """Cancel the call if it still runs, and wait until nothing of it is left."""
        self._closed = True
        self._call.cancel()
        reading = self._reading
        if reading is not None:
            await asyncio.wait({reading})
        self._ended = True

    def __del__(self) -> None:
        # Dropped half-way. grpc would cancel the call too, but only when the cyclic garbage
        # collector comes by; until then the server speaks to nobody. From any thread.
        if not self._ended:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and the call with it
                self._loop.call_soon_threadsafe(self._call.cancel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _receive(self) -> tts_pb2.SpeechEvent | None:
        """The next event; None at the end, when `_error` tells how. Under `_read_lock`."""
        if self._ended:
            return None
        # A task of its own, because grpc cancels the call when a read is cancelled.
        self._reading = self._reading or asyncio.create_task(self._read())
        reading = self._reading
        await asyncio.wait({reading})
        self._reading = None
        if reading.cancelled():
            # Not this task was cancelled but the call, by `aclose()` here or of the client.
            self._error = CallCancelledError(
                "the call was closed", code=grpc.StatusCode.CANCELLED, request_id=self.request_id
            )
            event = None
        else:
            event = reading.result()
        if event is None:
            self._ended = True
        else:
            self._note(event)
        return event

    async def _read(self) -> tts_pb2.SpeechEvent | None:
        try:
            response = await anext(self._responses, None)
        except grpc.aio.AioRpcError as error:
            self._error = await self._true_error(error)
            return None
        return None if response is None else response.event

    def _note(self, event: tts_pb2.SpeechEvent) -> None:
        """Remember what later questions are about."""
        match event.WhichOneof("event"):
            case "started":
                self.started = event.started
            case "finished":
                self.finished = event.finished
            case "segment_finished":
                if event.segment_finished.outcome == tts_pb2.SEGMENT_OUTCOME_FAILED:
                    self.failed_segments.append(event.segment_finished)

    async def _true_error(self, error: grpc.aio.AioRpcError) -> IntoneError | None:
        """How the call ended, given what grpc says; None: status OK."""
        return error_from_rpc(error, self._address)
