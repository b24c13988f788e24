"""From domain errors to gRPC statuses: one table, and the details that go with a status."""

import math

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from intone_server.errors import IntoneError, InvalidRequest, Reason

# `ErrorInfo.domain`: reasons are unique within it.
DOMAIN = "intone"
# Details ride in HTTP/2 trailers, for which 8 KiB is a common limit.
MAX_MESSAGE_CHARACTERS = 1000
MAX_VIOLATIONS = 20
# What gRPC libraries do with it: wait so many milliseconds and repeat the call, or not at all.
PUSHBACK, NEVER = "grpc-retry-pushback-ms", "-1"
# Nobody wants a library to sit silently for longer than that: the caller is told instead.
MAX_PUSHBACK_SECONDS = 60.0
# Codes on which clients repeat a call by our service config, unless they are told otherwise.
RETRIED = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED})

CODES = {
    Reason.BAD_CONFIG: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.BAD_MESSAGE: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.TEXT_TOO_LONG: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.UNSUPPORTED_OPTION: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.UNSUPPORTED_FORMAT: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.CONFIG_NOT_FIRST: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.BAD_AUDIO: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.BAD_STATE: grpc.StatusCode.INVALID_ARGUMENT,
    Reason.CLONING_UNAVAILABLE: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.VOICE_IN_USE: grpc.StatusCode.FAILED_PRECONDITION,
    Reason.VOICE_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    Reason.VOICE_LIMIT: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.VOICE_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Reason.FILE_TOO_LONG: grpc.StatusCode.OUT_OF_RANGE,
    Reason.QUEUE_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.STREAM_LIMIT: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.CLIENT_LIMIT: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.DEADLINE_UNREACHABLE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.SLOW_CLIENT: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Reason.STARTING: grpc.StatusCode.UNAVAILABLE,
    Reason.DRAINING: grpc.StatusCode.UNAVAILABLE,
    Reason.NO_REPLICA: grpc.StatusCode.UNAVAILABLE,
    Reason.REPLICA_LOST: grpc.StatusCode.UNAVAILABLE,
    Reason.VOICE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Reason.QUEUE_WAIT_EXCEEDED: grpc.StatusCode.DEADLINE_EXCEEDED,
    Reason.SEGMENT_TIMEOUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    Reason.FIRST_MESSAGE_TIMEOUT: grpc.StatusCode.ABORTED,
    Reason.TOKEN_MISSING: grpc.StatusCode.UNAUTHENTICATED,
    Reason.TOKEN_INVALID: grpc.StatusCode.UNAUTHENTICATED,
    Reason.NOT_ALLOWED: grpc.StatusCode.PERMISSION_DENIED,
    Reason.SYNTHESIS_FAILED: grpc.StatusCode.INTERNAL,
    Reason.INTERNAL: grpc.StatusCode.INTERNAL,
}

Metadata = tuple[tuple[str, str | bytes], ...]


def code_of(error: IntoneError) -> grpc.StatusCode:
    """The status code that `error` becomes."""
    return CODES[error.reason]


def message_of(error: IntoneError) -> str:
    """The status message, bounded."""
    return error.message[:MAX_MESSAGE_CHARACTERS]


def trailers_of(error: IntoneError) -> Metadata:
    """Trailing metadata: the rich status for programs, and for gRPC libraries, which do not read
    `RetryInfo`, the same delay as `grpc-retry-pushback-ms`, which they obey."""
    details = [_any(error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN))]
    if isinstance(error, InvalidRequest):
        violations = [
            error_details_pb2.BadRequest.FieldViolation(field=v.field, description=v.description)
            for v in error.violations[:MAX_VIOLATIONS]
        ]
        if (more := len(error.violations) - MAX_VIOLATIONS) > 0:
            left = error_details_pb2.BadRequest.FieldViolation(description=f"and {more:,} more")
            violations.append(left)
        details.append(_any(error_details_pb2.BadRequest(field_violations=violations)))
    trailers: list[tuple[str, str | bytes]] = []
    if error.retry_after is not None:
        # At least 1: on 0, grpcio 1.85 never makes the retry at all.
        milliseconds = max(1, math.ceil(error.retry_after * 1000))
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(milliseconds)
        details.append(_any(error_details_pb2.RetryInfo(retry_delay=delay)))
        obeyed = error.retry_after <= MAX_PUSHBACK_SECONDS
        trailers.append((PUSHBACK, str(milliseconds) if obeyed else NEVER))
    elif code_of(error) in RETRIED:
        trailers.append((PUSHBACK, NEVER))
    code: int = code_of(error).value[0]
    status = status_pb2.Status(code=code, message=message_of(error), details=details)
    trailers.append(("grpc-status-details-bin", status.SerializeToString()))
    return tuple(trailers)


def _any(
    message: error_details_pb2.ErrorInfo
    | error_details_pb2.BadRequest
    | error_details_pb2.RetryInfo,
) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed
