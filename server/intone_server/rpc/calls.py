"""What every call gets: a request id, checked requests, statuses for errors, one log line."""

import asyncio
import inspect
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import structlog

from intone_server.access.authentication import TokenRefused
from intone_server.access.quotas import Account
from intone_server.errors import InternalError, IntoneError, Reason
from intone_server.rpc.access import SPEAKING, Access, Metadata, counted
from intone_server.rpc.certificates import subject_of
from intone_server.rpc.malformed import CheckedStream, checked, tolerant
from intone_server.rpc.peers import address_of
from intone_server.rpc.statuses import code_of, message_of, trailers_of
from intone_server.rpc.uploads import UPLOADS, Receiving, Upload, no_room
from intone_server.synthesis.watching import Unwatched, Watch, Watches

log = structlog.stdlib.get_logger("intone.rpc")

REQUEST_ID = "x-request-id"
# What other systems use as ids; anything else is replaced, so that it cannot spoil a log line.
_GOOD_ID = re.compile(r"[\x21-\x7e]{1,128}")
# Longest request: text within its limits, in UTF-8, with room to spare. Uploads have their own.
MAX_REQUEST_BYTES = 1024 * 1024

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(slots=True, eq=False)
class Call:
    """The call that this task serves. What is put into `fields` appears in its log line."""

    service: str
    method: str
    request_id: str
    metadata: Metadata = ()
    client: str = ""  # by which it is told from others
    subject: str = ""  # whom the caller has proved to be, if anybody
    account: Account = field(default_factory=Account)
    started_at: float = field(default_factory=time.monotonic)
    fields: dict[str, Any] = field(default_factory=dict)
    watch: Watch = field(default_factory=Unwatched)  # of what it speaks
    may_speak: bool = False  # its method asks to
    speaks: bool = False  # it was let in


_current: ContextVar[Call] = ContextVar("call")


def current_call() -> Call:
    """The call that is being served here."""
    return _current.get()


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every method: ours with an id, an account and a log line, gRPC's own without.

    A call that is not allowed, or for whose upload there is no room, is refused unread.
    """

    def __init__(self, access: Access, watches: Sequence[Callable[[Call], Watch]] = ()) -> None:
        """Each of `watches` is asked for one that hears of what a call speaks."""
        self._access = access
        self._watches = watches
        self._uploads: Counter[str] = Counter()
        self.open_calls: set[Call] = set()  # those of ours that are being served

    # grpc's handlers are untyped tuples: what they hold depends on the kind of method.
    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        handler = await continuation(handler_call_details)
        method: str = handler_call_details.method
        if handler is None:
            return None
        metadata = handler_call_details.invocation_metadata
        if not method.startswith("/intone."):
            try:
                self._access.grant(method, metadata)
            except IntoneError as error:
                handler = _refusing(handler, error)
            return _quiet(handler)
        asked_id = dict(metadata).get(REQUEST_ID, "")
        request_id = asked_id if _GOOD_ID.fullmatch(str(asked_id)) else uuid.uuid4().hex
        service, _, name = method.strip("/").partition("/")
        call = Call(service, name, str(request_id), metadata, may_speak=method in SPEAKING)
        call.watch = Watches([Sent(call), *(make(call) for make in self._watches)])
        receiving: Receiving | None = None
        grant = None
        try:
            grant = self._access.grant(method, metadata)
            if (uploads := UPLOADS.get(method)) is not None:
                if self._uploads[method] >= uploads.most:
                    raise no_room(uploads)
                receiving = Upload(method, self._uploads, until_end=uploads.until_end)
            elif not handler.request_streaming:
                receiving = Receiving()
        except IntoneError as error:
            if isinstance(error, TokenRefused):
                call.fields["fault"] = error.fault
            handler = _refusing(handler, error)

        @contextmanager
        def admitted(context: Context) -> Iterator[None]:
            if receiving is not None:
                receiving.received()
            if grant is None:
                yield  # it is being refused
                return
            call.subject = grant.subject or subject_of(context.auth_context())
            self._access.check_named(call.subject)
            call.client = self._access.client(call.subject, metadata, address_of(context.peer()))
            call.account = self._access.account(call.client, grant)
            if call.subject:
                call.fields["client"] = call.subject
            with counted(method, call.account):
                yield

        return _spoken_of(
            handler,
            call,
            None if method in UPLOADS else MAX_REQUEST_BYTES,
            admitted,
            self.open_calls,
        )


class Sent(Unwatched):
    """Counts audio in the account of a call's client."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def audio_sent(self, seconds: float, gap_seconds: float | None) -> None:
        self._call.account.add_audio(seconds)


def _refusing(handler: Any, error: IntoneError) -> Any:
    """The same method, which reads nothing and says why: whatever it takes, a client of it is
    content with the status of a stream."""

    async def refuse(_requests: Any, _context: Context) -> Any:
        raise error

    return grpc.stream_stream_rpc_method_handler(
        refuse,
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )


def _wrapped(handler: Any, serve: Callable[[Any], Any], max_bytes: int | None) -> Any:
    """The same kind of handler around what `serve` makes of a function that runs the method."""
    check: Callable[[Any], Any] = checked
    if handler.stream_stream:
        make, inner, check = (
            grpc.stream_stream_rpc_method_handler,
            handler.stream_stream,
            CheckedStream,
        )
    elif handler.unary_stream:
        make, inner = grpc.unary_stream_rpc_method_handler, handler.unary_stream
    else:
        make, inner = grpc.unary_unary_rpc_method_handler, handler.unary_unary

    async def run(request: Any, context: Context) -> Any:
        if not inspect.isasyncgenfunction(inner):
            return await inner(check(request), context)
        async for response in inner(check(request), context):
            await context.write(response)
        return None

    return make(
        serve(run),
        request_deserializer=tolerant(handler.request_deserializer, max_bytes),
        response_serializer=handler.response_serializer,
    )


Run = Callable[[Any, Context], Any]


def _quiet(handler: Any) -> Any:
    """For methods that are gRPC's own."""

    def around(run: Run) -> Run:
        async def serve(request: Any, context: Context) -> Any:
            try:
                return await run(request, context)
            except IntoneError as error:
                await context.abort(code_of(error), message_of(error), trailers_of(error))

        return serve

    return _wrapped(handler, around, MAX_REQUEST_BYTES)


def _spoken_of(
    handler: Any,
    call: Call,
    max_bytes: int | None,
    admitted: Callable[[Context], AbstractContextManager[None]],
    open_calls: set[Call],
) -> Any:
    """For ours: with statuses for errors, and one log line."""

    def around(run: Run) -> Run:
        async def serve(request: Any, context: Context) -> Any:
            _current.set(call)
            open_calls.add(call)
            context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
            try:
                with admitted(context):
                    response = await run(request, context)
            except IntoneError as error:
                if call.may_speak and not call.speaks:
                    call.watch.refused(error.reason)
                _end(call, code_of(error).name, reason=error.reason)
                await _abort(context, call, error)
            except BaseException as error:
                # A client that has left shows itself as one of several exceptions, some of them
                # private to grpc: the state of the call tells, not the type.
                if context.done() or not isinstance(error, Exception):
                    _end(call, "CANCELLED")
                    raise
                log.exception("call failed", rpc=call.method, request_id=call.request_id)
                _end(call, "INTERNAL", reason=Reason.INTERNAL)
                await _abort(context, call, InternalError())
            else:
                _end(call, "OK")
                return response
            finally:
                open_calls.discard(call)

        return serve

    return _wrapped(handler, around, max_bytes)


async def _abort(context: Context, call: Call, error: IntoneError) -> None:
    trailers = ((REQUEST_ID, call.request_id), *trailers_of(error))
    try:
        await context.abort(code_of(error), message_of(error), trailers)
    except grpc.aio.AbortError:
        raise  # how grpc ends a handler whose status was sent
    except Exception as gone:
        # The client has left before it could be told: nothing that a traceback would help with.
        raise asyncio.CancelledError from gone


def _end(call: Call, code: str, **fields: Any) -> None:
    call.watch.ended(code)
    log.info(
        "call ended",
        rpc=call.method,
        request_id=call.request_id,
        code=code,
        seconds=round(time.monotonic() - call.started_at, 3),
        **fields,
        **call.fields,
    )
