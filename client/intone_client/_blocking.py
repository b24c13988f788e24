"""The client without asyncio: one event loop in one thread behind every `BlockingClient`."""

import weakref
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Self, TypeVar

import grpc

from intone.v1 import status_pb2, tts_pb2, voices_pb2

from ._client import DEFAULT_ADDRESS, Client
from ._loop import LoopThread
from ._speech import Speech
from ._stream import SpeechStream

_T = TypeVar("_T")


class BlockingSpeech:
    """The events of one call: an iterator and a context manager. See `Speech`.

    Leave it by `with` or `close()`; a call that was left half-way otherwise ends with its client.
    """

    def __init__(self, client: "BlockingClient", speech: Speech) -> None:
        self._client = client
        self._run = client._thread.run
        self._speech = speech

    @property
    def started(self) -> tts_pb2.Started | None:
        """The first event; None until it has arrived."""
        return self._speech.started

    @property
    def finished(self) -> tts_pb2.Finished | None:
        """The last event; None until it has arrived."""
        return self._speech.finished

    @property
    def failed_segments(self) -> list[tts_pb2.SegmentFinished]:
        """Those that failed so far."""
        return self._speech.failed_segments

    @property
    def request_id(self) -> str:
        """Of the call; empty until the server has told it."""
        return self._speech.request_id

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tts_pb2.SpeechEvent:
        event = self._run(_next(self._speech))
        if event is None:
            raise StopIteration
        return event

    def audio(self) -> Iterator[bytes]:
        """The audio alone, as `Speech.audio()`."""
        audio = self._speech.audio()
        while (data := self._run(_next(audio))) is not None:
            yield data

    def close(self) -> None:
        """Cancel the call if it still runs."""
        if not self._client.closed:
            self._run(self._speech.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class BlockingStream(BlockingSpeech):
    """One `Synthesize` call. See `SpeechStream`. Write in one thread and iterate in another."""

    def __init__(self, client: "BlockingClient", stream: SpeechStream) -> None:
        super().__init__(client, stream)
        self._stream = stream

    def __enter__(self) -> Self:
        self._run(self._stream.__aenter__())
        return self

    def push_text(self, text: str) -> None:
        """Append `text` verbatim."""
        self._run(self._stream.push_text(text))

    def flush(self, flush_id: str = "") -> None:
        """Speak what is buffered now."""
        self._run(self._stream.flush(flush_id))

    def clear(self, clear_id: str = "", *, heard_samples: int | None = None) -> None:
        """Barge-in: drop what is not yet heard."""
        self._run(self._stream.clear(clear_id, heard_samples=heard_samples))

    def pause(self, seconds: float) -> None:
        """Exact silence at this point of the text."""
        self._run(self._stream.pause(seconds))

    def end_input(self) -> None:
        """No more text."""
        self._run(self._stream.end_input())


class BlockingClient:
    """`Client` for code without asyncio; a context manager. Methods are those of `Client`."""

    def __init__(
        self, address: str = DEFAULT_ADDRESS, *, credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        self.address = address
        self._client = Client(address, credentials=credentials)
        self._thread = LoopThread()
        self._stop = weakref.finalize(self, self._thread.stop)

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return not self._stop.alive

    def close(self) -> None:
        """Cancel what still runs, close the connection, end the thread."""
        if not self.closed:
            self._thread.run(self._client.aclose())
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def stream(
        self,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> BlockingStream:
        """Text pieces in, events with audio out, at the same time: `with` it."""

        async def start() -> SpeechStream:
            return self._client.stream(config, timeout=timeout, request_id=request_id)

        return BlockingStream(self, self._thread.run(start()))

    def synthesize_text(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> BlockingSpeech:
        """A whole text in, the same events out."""

        async def start() -> Speech:
            return self._client.synthesize_text(
                text, config, timeout=timeout, request_id=request_id
            )

        return BlockingSpeech(self, self._thread.run(start()))

    def synthesize_file(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> tts_pb2.SynthesizeFileResponse:
        """A whole text in, one complete WAV file out, in `audio`."""
        return self._thread.run(
            self._client.synthesize_file(text, config, timeout=timeout, request_id=request_id)
        )

    def plan(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> tts_pb2.PlanTextResponse:
        """What would be spoken."""
        return self._thread.run(
            self._client.plan(text, config, timeout=timeout, request_id=request_id)
        )

    def voices(self, *, language: str = "", timeout: float | None = None) -> list[voices_pb2.Voice]:
        """All voices, or those of one language."""
        return self._thread.run(self._client.voices(language=language, timeout=timeout))

    def info(self, *, timeout: float | None = None) -> status_pb2.GetServerInfoResponse:
        """What the server is."""
        return self._thread.run(self._client.info(timeout=timeout))

    def capacity(self, *, timeout: float | None = None) -> status_pb2.Capacity:
        """How busy the server is now."""
        return self._thread.run(self._client.capacity(timeout=timeout))


async def _next(iterator: AsyncIterator[_T]) -> _T | None:
    """The next item; None after the last."""
    return await anext(iterator, None)
