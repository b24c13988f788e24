"""What comes back from a call that speaks, without asyncio."""

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from intone.v1 import tts_pb2

from ._speech import Speech
from ._stream import SpeechStream

if TYPE_CHECKING:
    from ._blocking import BlockingClient

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

    def played(self, samples: int) -> None:
        """The listener has played the timeline up to there."""
        self._run(self._stream.played(samples))

    def change_voice(self, name: str) -> None:
        """Let another voice speak the text that follows."""
        self._run(self._stream.change_voice(name))

    def pause(self, seconds: float) -> None:
        """Exact silence at this point of the text."""
        self._run(self._stream.pause(seconds))

    def end_input(self) -> None:
        """No more text."""
        self._run(self._stream.end_input())


async def _next(iterator: AsyncIterator[_T]) -> _T | None:
    """The next item; None after the last."""
    return await anext(iterator, None)
