"""A stream: text pieces in, events with audio out, at the same time."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn, Self, TypeVar

import grpc

from intone.v1 import tts_pb2

from ._errors import IntoneError, Metadata, StreamEndedError, error_from_status
from ._speech import BidiCall, Speech

# Code points. Text is sent in pieces that any sensible server takes; the server's own limit is
# not known before its first event, and to wait for that would cost a round trip.
_PIECE_CHARACTERS = 1000

# What grpc says in the place of the true status when a write was under way as the call ended.
_WRITE_FAILED = "Internal error from Core"
_STATUS_WAIT_SECONDS = 1.0

_T = TypeVar("_T")


class SpeechStream(Speech):
    """One `Synthesize` call. Use it as an async context manager; leaving it ends the call.

    Write and iterate in tasks of their own: a server whose client does not read stops reading
    itself. The methods that write return when the transport has taken the message, which is
    later if the server is behind. If the call has failed or fails meanwhile, they raise the
    `IntoneError` of the call; if it ended in good order, `StreamEndedError`; after
    `end_input()`, RuntimeError.
    """

    def __init__(self, call: BidiCall, address: str, config: tts_pb2.SpeechConfig) -> None:
        super().__init__(call, address)
        self._bidi = call
        self._config: tts_pb2.SpeechConfig | None = config
        self._write_lock = asyncio.Lock()
        self._writing: asyncio.Task[None] | None = None
        self._stop_writing = False
        self._input_ended = False
        self._first = _FirstStatus()
        call.add_done_callback(self._first.keep)

    @property
    def input_ended(self) -> bool:
        """Whether `end_input()` was called."""
        return self._input_ended

    async def __aenter__(self) -> Self:
        try:
            async with self._write_lock:
                sent = await self._send_config()
            if not sent:
                await self._raise_end()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def push_text(self, text: str) -> None:
        """Append `text` verbatim. It may end anywhere, even inside a word.

        Empty text is a heartbeat: it resets the server's idle clock. If the call is cancelled by
        a timeout here, the piece may or may not have been sent.
        """
        start = 0
        while True:
            limit = _PIECE_CHARACTERS
            if self.started is not None and self.started.limits.max_piece_characters:
                limit = min(limit, self.started.limits.max_piece_characters)
            await self._send(tts_pb2.SynthesizeRequest(text=text[start : start + limit]))
            start += limit
            if start >= len(text):
                return

    async def flush(self, flush_id: str = "") -> None:
        """Speak what is buffered now. Answered by one `Flushed` with this id."""
        await self._send(tts_pb2.SynthesizeRequest(flush=tts_pb2.Flush(id=flush_id)))

    async def clear(self, clear_id: str = "", *, heard_samples: int | None = None) -> None:
        """Barge-in: drop what is not yet heard. Answered by one `Cleared` with this id.

        `heard_samples`: how far the listener was, in terms of `AudioChunk.sample_offset`; None:
        unknown, see `played()`. From this call on, iteration yields no audio from before it.
        """
        request = tts_pb2.SynthesizeRequest(
            clear=tts_pb2.Clear(id=clear_id, heard_samples=heard_samples)
        )
        self._epoch += 1
        await self._send(request)

    async def played(self, samples: int) -> None:
        """The listener has played the timeline up to `samples`, in terms of
        `AudioChunk.sample_offset`. Say so about once a second, if you know it.

        Without it the server takes the clock since the first audio. It decides what is urgent,
        when more is sent to a stream with `max_ahead`, and what a `clear()` without
        `heard_samples` takes as heard. It is a heartbeat too.
        """
        report = tts_pb2.PlaybackReport(played_samples=samples)
        await self._send(tts_pb2.SynthesizeRequest(playback=report))

    async def change_voice(self, name: str) -> None:
        """Let another voice speak the text that follows; empty: that of the config.

        Ends the segment before it. A stream has up to 32 different voices.
        """
        await self._send(tts_pb2.SynthesizeRequest(voice=name))

    async def pause(self, seconds: float) -> None:
        """Exact silence at this point of the text, above 0 and up to 60 s."""
        duration = timedelta(seconds=seconds)
        await self._send(tts_pb2.SynthesizeRequest(pause=tts_pb2.Pause(duration=duration)))

    async def end_input(self) -> None:
        """No more text: the rest is spoken, then the stream finishes. Twice is once.

        Does nothing if the call has already ended: iteration says how.
        """
        async with self._write_lock:
            if self._input_ended:
                return
            self._input_ended = True
            if await self._send_config():
                await self._write(self._bidi.done_writing)

    async def aclose(self) -> None:
        """Cancel the call if it still runs, and wait until nothing of it is left."""
        await super().aclose()
        await self._settle()

    async def _send(self, request: tts_pb2.SynthesizeRequest) -> None:
        async with self._write_lock:
            if self._closed:
                raise RuntimeError("the stream is closed")
            if self._input_ended:
                raise RuntimeError("end_input() was called: the stream takes no more text")
            if await self._send_config() and await self._write(partial(self._bidi.write, request)):
                return
        await self._raise_end()

    async def _send_config(self) -> bool:
        """Send the config if that is still to do. False: the call has ended."""
        if self._config is None:
            return True
        first = tts_pb2.SynthesizeRequest(config=self._config)
        self._config = None
        return await self._write(partial(self._bidi.write, first))

    async def _write(self, operation: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run one write. False: the call has ended or is about to. Under `_write_lock`."""
        if not await self._settle() or self._stop_writing or self._ended or self._bidi.done():
            return False
        # A task of its own, because grpc cancels the call when a write is cancelled.
        self._writing = asyncio.create_task(operation())
        await asyncio.wait({self._writing})
        return await self._settle()

    async def _settle(self) -> bool:
        """Wait for the write under way, left by a cancelled caller too. False: it failed."""
        writing = self._writing
        if writing is None:
            return True
        await asyncio.wait({writing})
        self._writing = None
        if writing.cancelled():
            return False
        error = writing.exception()
        if isinstance(
            error, grpc.aio.AioRpcError | grpc.aio.InternalError | asyncio.InvalidStateError
        ):
            # Three ways to say that the call has ended; none of them says how.
            return False
        if error is not None:
            raise error
        return True

    async def _raise_end(self) -> NoReturn:
        """Raise what ended the call. Reads up to its status; the events are kept for iteration."""
        while not self._ended:
            async with self._read_lock:
                event = await self._receive()
                if event is not None:
                    self._kept.append(event)
        raise self._error or StreamEndedError.after(self.finished, self.request_id)

    def _note(self, event: tts_pb2.SpeechEvent) -> None:
        super()._note(event)
        if event.HasField("finished") or event.notice.kind == tts_pb2.NOTICE_KIND_ERROR:
            self._stop_writing = True

    async def _true_error(self, error: grpc.aio.AioRpcError) -> IntoneError | None:
        if not _is_write_failure(error.code(), error.details()):
            return await super()._true_error(error)
        # Measured with grpcio 1.85: of 120 calls that the server ended during writes, 41 were
        # reported as this INTERNAL. The true status came either before it (then `_first`
        # has it) or comes now, once all events have been read.
        deadline = time.monotonic() + _STATUS_WAIT_SECONDS
        while self._first.status is None and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
            self._first.keep(self._bidi)
        if self._first.status is None:
            return await super()._true_error(error)
        code, details, trailers = self._first.status
        if code is grpc.StatusCode.OK:
            return None
        return error_from_status(code, details, trailers, self._address)


class _FirstStatus:
    """The first status of a call: in grpc a write that fails later overwrites it."""

    def __init__(self) -> None:
        self.status: tuple[grpc.StatusCode, str, Metadata] | None = None

    def keep(self, call: BidiCall) -> None:
        """Called when the call has a status, true or not."""
        code, details = _now(call.code()), _now(call.details())
        if not _is_write_failure(code, details):
            self.status = (code, details, _now(call.trailing_metadata()))


def _is_write_failure(code: grpc.StatusCode, details: str | None) -> bool:
    return code is grpc.StatusCode.INTERNAL and details == _WRITE_FAILED


def _now(answer: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that has nothing to wait for, such as those of a done call."""
    try:
        answer.send(None)
    except StopIteration as stop:
        result: _T = stop.value
        return result
    answer.close()
    raise RuntimeError("the call is not done")
