"""What every call gets: a request id, checked requests, statuses for errors, one log line."""

import asyncio
import inspect
import re
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import structlog

from intone_server.errors import (
    InternalError,
    IntoneError,
    InvalidRequest,
    Overloaded,
    Reason,
    Violation,
)
from intone_server.rpc.peers import address_of
from intone_server.rpc.statuses import code_of, message_of, trailers_of
from intone_server.synthesis.watching import Unwatched, Watch, Watches

log = structlog.stdlib.get_logger("intone.rpc")

REQUEST_ID = "x-request-id"
# What other systems use as ids; anything else is replaced, so that it cannot spoil a log line.
_GOOD_ID = re.compile(r"[\x21-\x7e]{1,128}")
# Longest request: text within its limits, in UTF-8, with room to spare. Uploads have their own.
MAX_REQUEST_BYTES = 1024 * 1024


# Within this an upload has come: 20 MiB at 1.4 Mbit/s. Then the call is given up, and its place is
# free; grpc.aio sends no status for it, so that its own deadline ends it at the client.
UPLOAD_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class _Uploads:
    """Bounds of a method whose requests are large: each is held in memory while it is received.

    `most` at the same time. `until_end`: all of the call counts, and not the receiving alone.
    """

    most: int
    until_end: bool
    retry_seconds: float


_UPLOADS = {
    "/intone.v1.VoiceService/CreateVoice": _Uploads(5, True, 5.0),
    # After it was received, the permit bounds how many there are.
    "/intone.v1.TextToSpeechService/SynthesizeDialogue": _Uploads(32, False, 1.0),
}

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(slots=True)
class Call:
    """The call that this task serves. What is put into `fields` appears in its log line."""

    method: str
    request_id: str
    client: str = ""  # the address of the peer, without its port, if it has one
    subject: str = ""  # whom the caller has proved to be, if anybody
    started_at: float = field(default_factory=time.monotonic)
    fields: dict[str, Any] = field(default_factory=dict)
    watch: Watch = field(default_factory=Unwatched)  # of what it speaks


_current: ContextVar[Call] = ContextVar("call")


def current_call() -> Call:
    """The call that is being served here."""
    return _current.get()


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every method: ours with an id and a log line, health and reflection without."""

    def __init__(self, watches: Sequence[Callable[[Call], Watch]] = ()) -> None:
        """Each of `watches` is asked for one that hears of what a call speaks."""
        self._watches = watches
        self._uploads: Counter[str] = Counter()

    # grpc's handlers are untyped tuples: what they hold depends on the kind of method.
    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        handler = await continuation(handler_call_details)
        method: str = handler_call_details.method
        if handler is None:
            return None
        if not method.startswith("/intone."):
            return _wrap(handler, None, MAX_REQUEST_BYTES)
        limit: int | None = MAX_REQUEST_BYTES
        upload: _Upload | None = None
        if (uploads := _UPLOADS.get(method)) is not None:
            limit = None
            if self._uploads[method] >= uploads.most:
                handler = _refused(handler, uploads)
            else:
                upload = _Upload(method, self._uploads, until_end=uploads.until_end)
        asked_id = dict(handler_call_details.invocation_metadata).get(REQUEST_ID, "")
        request_id = asked_id if _GOOD_ID.fullmatch(str(asked_id)) else uuid.uuid4().hex
        call = Call(method.rpartition("/")[2], str(request_id))
        call.watch = Watches([make(call) for make in self._watches])
        return _wrap(handler, call, limit, upload)


class _Upload:
    """The receiving of one large request, counted under `method` in `counts`.

    At the longest for as long as the task of the call lives: the handler may never be called, if
    the client leaves before its message has come.
    """

    def __init__(self, method: str, counts: Counter[str], *, until_end: bool) -> None:
        self._method = method
        self._counts = counts
        self._counted = True
        self._until_end = until_end
        counts[method] += 1
        task = asyncio.current_task()
        assert task is not None
        # Or calls that never send anything would keep all others out.
        self._timer = asyncio.get_running_loop().call_later(UPLOAD_SECONDS, task.cancel)
        task.add_done_callback(self._end)

    def received(self) -> None:
        """All of it is there."""
        self._timer.cancel()
        if not self._until_end:
            self._end()

    def _end(self, _: object = None) -> None:
        self._timer.cancel()
        if self._counted:
            self._counted = False
            self._counts[self._method] -= 1


def _refused(handler: Any, uploads: _Uploads) -> Any:
    """The same method, which throws its message away unread: there is no room."""

    async def refuse(_request: Any, _context: Context) -> Any:
        raise Overloaded(
            Reason.QUEUE_FULL,
            f"{uploads.most} other uploads are being received"
            + (" or worked on" if uploads.until_end else ""),
            retry_after=uploads.retry_seconds,
        )

    make = (
        grpc.unary_stream_rpc_method_handler
        if handler.unary_stream
        else grpc.unary_unary_rpc_method_handler
    )
    return make(
        refuse,
        request_deserializer=lambda _: None,
        response_serializer=handler.response_serializer,
    )


def _wrap(
    handler: Any, call: Call | None, max_bytes: int | None, upload: _Upload | None = None
) -> Any:
    checked: Callable[[Any], Any] = _checked
    if handler.stream_stream:
        make, inner, checked = (
            grpc.stream_stream_rpc_method_handler,
            handler.stream_stream,
            _CheckedStream,
        )
    elif handler.unary_stream:
        make, inner = grpc.unary_stream_rpc_method_handler, handler.unary_stream
    else:
        make, inner = grpc.unary_unary_rpc_method_handler, handler.unary_unary

    async def run(request: Any, context: Context) -> Any:
        if not inspect.isasyncgenfunction(inner):
            return await inner(checked(request), context)
        async for response in inner(checked(request), context):
            await context.write(response)
        return None

    async def serve_quietly(request: Any, context: Context) -> Any:
        try:
            return await run(request, context)
        except InvalidRequest as error:
            await context.abort(code_of(error), message_of(error), trailers_of(error))

    async def serve(request: Any, context: Context) -> Any:
        assert call is not None
        if upload is not None:
            upload.received()
        _current.set(call)
        call.client = address_of(context.peer())
        context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
        try:
            response = await run(request, context)
        except IntoneError as error:
            _log(call, code_of(error).name, reason=error.reason)
            await _abort(context, call, error)
        except BaseException as error:
            # A client that has left shows itself as one of several exceptions, some of them
            # private to grpc: the state of the call tells, not the type.
            if context.done() or not isinstance(error, Exception):
                _log(call, "CANCELLED")
                raise
            log.exception("call failed", rpc=call.method, request_id=call.request_id)
            await _abort(context, call, InternalError())
        else:
            _log(call, "OK")
            return response

    return make(
        serve if call else serve_quietly,
        request_deserializer=_tolerant(handler.request_deserializer, max_bytes),
        response_serializer=handler.response_serializer,
    )


@dataclass(frozen=True, slots=True)
class _Malformed:
    """In the place of a message: what is wrong with it."""

    description: str


def _tolerant(
    deserialize: Callable[[bytes], Any] | None, max_bytes: int | None
) -> Callable[[bytes], Any]:
    """grpc answers a message that does not parse with UNKNOWN and names of Python classes, and has
    one limit on length for all methods."""
    assert deserialize is not None

    def parse(data: bytes) -> Any:
        if max_bytes is not None and len(data) > max_bytes:
            return _Malformed(f"the message has {len(data):,} bytes, limit {max_bytes:,}")
        try:
            return deserialize(data)
        except Exception:  # noqa: BLE001 - protobuf implementations differ in what they raise
            return _Malformed("not a valid message of this method (text must be UTF-8)")

    return parse


def _checked(request: Any) -> Any:
    if isinstance(request, _Malformed):
        raise InvalidRequest(Reason.BAD_MESSAGE, [Violation("", request.description)])
    return request


class _CheckedStream:
    """An iterator that can go on after a malformed message, as a generator could not."""

    def __init__(self, requests: AsyncIterator[Any]) -> None:
        self._requests = aiter(requests)

    def __aiter__(self) -> "_CheckedStream":
        return self

    async def __anext__(self) -> Any:
        return _checked(await anext(self._requests))


async def _abort(context: Context, call: Call, error: IntoneError) -> None:
    trailers = ((REQUEST_ID, call.request_id), *trailers_of(error))
    try:
        await context.abort(code_of(error), message_of(error), trailers)
    except grpc.aio.AbortError:
        raise  # how grpc ends a handler whose status was sent
    except Exception as gone:
        # The client has left before it could be told: nothing that a traceback would help with.
        raise asyncio.CancelledError from gone


def _log(call: Call, code: str, **fields: Any) -> None:
    log.info(
        "call ended",
        rpc=call.method,
        request_id=call.request_id,
        code=code,
        seconds=round(time.monotonic() - call.started_at, 3),
        **fields,
        **call.fields,
    )
