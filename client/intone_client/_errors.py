"""What goes wrong on a call.

IntoneError
├── InvalidArgumentError      INVALID_ARGUMENT: see `violations`
├── OutOfRangeError           OUT_OF_RANGE: too long for one file, stream it instead
├── FailedPreconditionError   FAILED_PRECONDITION
├── NotFoundError             NOT_FOUND: no such voice
├── AlreadyExistsError        ALREADY_EXISTS: the name of a new voice is taken
├── OverloadedError           RESOURCE_EXHAUSTED: try again after `retry_delay`
├── UnavailableError          UNAVAILABLE: not reachable, starting or draining; try again
├── NotAllowedError           UNAUTHENTICATED, PERMISSION_DENIED: the token, or what it opens
├── DeadlineExceededError     DEADLINE_EXCEEDED
├── SynthesisError            INTERNAL, or segments that failed while the call went on
├── CallCancelledError        CANCELLED: by closing the client, or by the server
└── StreamEndedError          the stream ended in good order while there was more to say

Other codes arrive as `IntoneError` itself. Misuse (text after `end_input()`, a negative seed) is
not a failure of the call: it raises `RuntimeError`, `ValueError` or `TypeError`.
"""

from collections.abc import Iterable, Sequence
from typing import Self

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import (
    BadRequest,
    ErrorInfo,
    RetryInfo,
)
from google.rpc.status_pb2 import Status

from intone.v1 import tts_pb2

CODES = {code.value[0]: code for code in grpc.StatusCode}


class IntoneError(Exception):
    """A call or a part of it failed. `str()` is one line for people."""

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode,
        reason: str = "",
        retry_delay: float | None = None,
        request_id: str = "",
        violations: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        #: Status of the call.
        self.code = code
        #: `ErrorInfo.reason`, for example "QUEUE_FULL"; empty if the server gave none.
        self.reason = reason
        #: Seconds after which the server wants to be asked again; None: a retry does not help or
        #: the server does not know.
        self.retry_delay = retry_delay
        #: Of the call, as in the server's log; empty if the server was not reached.
        self.request_id = request_id
        #: Pairs of field path and description.
        self.violations = list(violations)

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        retry = "" if self.retry_delay is None else f"; retry in {self.retry_delay:.1f} s"
        return f"{self.code.name}{reason}: {self.message}{retry}"


class InvalidArgumentError(IntoneError):
    """The request breaks a rule of the contract; `violations` lists every field at once."""


class OutOfRangeError(IntoneError):
    """The text is too long for `synthesize_file`; `synthesize_text` has no such limit."""


class FailedPreconditionError(IntoneError):
    """The request does not fit the state of the stream or the server's policy."""


class NotFoundError(IntoneError):
    """There is no voice of that name."""


class AlreadyExistsError(IntoneError):
    """There is a voice of that name."""


class OverloadedError(IntoneError):
    """The server has too much to do, or the client reads too slowly (SLOW_CLIENT)."""


class UnavailableError(IntoneError):
    """The server cannot be reached, is starting, is draining, or lost what it was running."""


class NotAllowedError(IntoneError):
    """The server wants a token, or another one than was sent."""


class DeadlineExceededError(IntoneError):
    """The call's `timeout` or a limit of the server has passed."""


class SynthesisError(IntoneError):
    """Speech could not be made, in the whole call or in some of its segments."""


class CallCancelledError(IntoneError):
    """The call was cancelled by closing the client, or by the server."""


class StreamEndedError(IntoneError):
    """The stream has finished with status OK and takes no more text.

    `code` is OK and `reason` the name of the `FinishReason`, for example "IDLE_TIMEOUT".
    """

    @classmethod
    def after(cls, finished: tts_pb2.Finished | None, request_id: str) -> Self:
        """The error for writing to a stream that ended with `finished`."""
        reason = tts_pb2.FinishReason.Name(finished.reason if finished else 0)
        return cls(
            "the stream has ended and takes no more text",
            code=grpc.StatusCode.OK,
            reason=reason.removeprefix("FINISH_REASON_"),
            request_id=request_id,
        )

    def __str__(self) -> str:
        return f"{self.message} ({self.reason})"


_CLASSES: dict[grpc.StatusCode, type[IntoneError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.OUT_OF_RANGE: OutOfRangeError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.UNAUTHENTICATED: NotAllowedError,
    grpc.StatusCode.PERMISSION_DENIED: NotAllowedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.INTERNAL: SynthesisError,
    grpc.StatusCode.CANCELLED: CallCancelledError,
}

Metadata = Iterable[tuple[str, str | bytes]]


def error_from_status(
    code: grpc.StatusCode, message: str, trailers: Metadata, address: str
) -> IntoneError:
    """The exception for the final status of a call to `address`, with the details in `trailers`."""
    known = dict(trailers)
    reason = ""
    retry_delay = None
    violations: list[tuple[str, str]] = []
    for detail in _details(known.get("grpc-status-details-bin")):
        if isinstance(detail, ErrorInfo):
            reason = detail.reason
        elif isinstance(detail, RetryInfo):
            retry_delay = detail.retry_delay.ToNanoseconds() / 1e9
        else:
            violations = [(each.field, each.description) for each in detail.field_violations]
    request_id = known.get("x-request-id", "")
    if code is grpc.StatusCode.UNAVAILABLE and not reason:
        # Every refusal by an intone server has a reason: this one was made by the transport.
        message = _transport_failure(message, address)
    return _CLASSES.get(code, IntoneError)(
        message,
        code=code,
        reason=reason,
        retry_delay=retry_delay,
        request_id=request_id if isinstance(request_id, str) else "",
        violations=violations,
    )


def error_from_rpc(error: grpc.aio.AioRpcError, address: str) -> IntoneError:
    """The exception for an error raised by grpc."""
    trailers = error.trailing_metadata() or ()
    return error_from_status(error.code(), error.details() or "", trailers, address)


def error_from_segments(
    failed: Sequence[tts_pb2.SegmentFinished], request_id: str
) -> SynthesisError:
    """The exception for segments that failed in a call that itself went on; at least one."""
    first = failed[0]
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return SynthesisError(
        f"segment {first.segment}{more} failed: {first.error.message}",
        code=CODES.get(first.error.code, grpc.StatusCode.UNKNOWN),
        reason=first.error.reason,
        request_id=request_id,
    )


def _transport_failure(message: str, address: str) -> str:
    """What grpc says, after where it wanted to go and in words that people know."""
    if message.startswith(("failed to connect", "errors resolving", "DNS resolution failed")):
        # What went before was tried inside grpc; the cause is in the last words.
        return f"no server answers at {address}: {message.rpartition(':')[2].strip(' ]')}"
    return f"the connection to {address} failed: {message}"


def _details(packed: str | bytes | None) -> list[ErrorInfo | RetryInfo | BadRequest]:
    if not isinstance(packed, bytes):
        return []
    found: list[ErrorInfo | RetryInfo | BadRequest] = []
    try:
        for detail in Status.FromString(packed).details:
            known = (ErrorInfo(), RetryInfo(), BadRequest())
            found.extend(message for message in known if detail.Unpack(message))
    except DecodeError:
        # Details of something between client and server: the status itself is still right.
        return []
    return found
