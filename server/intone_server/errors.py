"""What can go wrong, in the terms of the domain; `rpc.statuses` turns it into gRPC statuses.

IntoneError
├── InvalidRequest      the request is wrong, field by field
├── ProtocolViolation   the messages of a stream came in a wrong order
├── VoiceNotFound       no voice of that name
├── VoiceExists         there is a voice of that name
├── NotPossible         the server, or what it is doing, does not allow it
├── FileTooLong         the answer would not fit one message
├── NotAllowed          who calls is not known here, or may not do this
├── Overloaded          no room now; try again after `retry_after`
├── Unavailable         this server cannot now; try again after `retry_after`, or elsewhere
├── TimedOut            it took too long
├── SynthesisFailed     the model failed
└── InternalError       a fault in this program
"""

import enum
from dataclasses import dataclass

# Code points of a wrong name that an error repeats: the longest that a voice can have.
MAX_SHOWN_NAME = 64


class Reason(enum.StrEnum):
    """Why, for programs: `google.rpc.ErrorInfo.reason` on the wire."""

    BAD_CONFIG = "BAD_CONFIG"
    BAD_MESSAGE = "BAD_MESSAGE"
    TEXT_TOO_LONG = "TEXT_TOO_LONG"
    UNSUPPORTED_OPTION = "UNSUPPORTED_OPTION"
    UNSUPPORTED_FORMAT = "UNSUPPORTED_FORMAT"
    CONFIG_NOT_FIRST = "CONFIG_NOT_FIRST"
    BAD_AUDIO = "BAD_AUDIO"
    BAD_STATE = "BAD_STATE"
    CLONING_UNAVAILABLE = "CLONING_UNAVAILABLE"
    VOICE_IN_USE = "VOICE_IN_USE"
    VOICE_NOT_FOUND = "VOICE_NOT_FOUND"
    VOICE_EXISTS = "VOICE_EXISTS"
    VOICE_LIMIT = "VOICE_LIMIT"
    FILE_TOO_LONG = "FILE_TOO_LONG"
    QUEUE_FULL = "QUEUE_FULL"
    STREAM_LIMIT = "STREAM_LIMIT"
    CLIENT_LIMIT = "CLIENT_LIMIT"
    SLOW_CLIENT = "SLOW_CLIENT"
    DEADLINE_UNREACHABLE = "DEADLINE_UNREACHABLE"
    STARTING = "STARTING"
    DRAINING = "DRAINING"
    NO_REPLICA = "NO_REPLICA"
    REPLICA_LOST = "REPLICA_LOST"
    VOICE_UNAVAILABLE = "VOICE_UNAVAILABLE"
    QUEUE_WAIT_EXCEEDED = "QUEUE_WAIT_EXCEEDED"
    SEGMENT_TIMEOUT = "SEGMENT_TIMEOUT"
    FIRST_MESSAGE_TIMEOUT = "FIRST_MESSAGE_TIMEOUT"
    TOKEN_MISSING = "TOKEN_MISSING"  # noqa: S105
    TOKEN_INVALID = "TOKEN_INVALID"  # noqa: S105
    NOT_ALLOWED = "NOT_ALLOWED"
    SYNTHESIS_FAILED = "SYNTHESIS_FAILED"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with a request: the field's path in the proto, and what about it."""

    field: str
    description: str


class IntoneError(Exception):
    """Base of all. `message` is for people and may leave the server: no user text, no traceback.

    `retry_after` is in seconds; None says that the same call would fail again.
    """

    def __init__(self, reason: Reason, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class InvalidRequest(IntoneError):
    """The request is wrong; `violations` holds every fault found, not only the first."""

    def __init__(self, reason: Reason, violations: list[Violation]) -> None:
        super().__init__(reason, "; ".join(f"{v.field}: {v.description}" for v in violations))
        self.violations = tuple(violations)


class ProtocolViolation(IntoneError):
    """The messages of a stream came in a wrong order."""


def shown(name: str) -> str:
    """A wrong name as an error repeats it: in quotes, and not at length."""
    return repr(name if len(name) <= MAX_SHOWN_NAME else name[:MAX_SHOWN_NAME] + "…")


class VoiceNotFound(IntoneError):
    """No voice of that name, whatever the name looks like."""

    def __init__(self, name: str) -> None:
        super().__init__(
            Reason.VOICE_NOT_FOUND, f"no voice {shown(name)}; VoiceService.ListVoices lists them"
        )


class VoiceExists(IntoneError):
    """There is a voice of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(Reason.VOICE_EXISTS, f"there is a voice {name!r} already")


class NotPossible(IntoneError):
    """The server as it is set up, or what it is doing now, does not allow it."""


class FileTooLong(IntoneError):
    """The audio would not fit one message."""


class NotAllowed(IntoneError):
    """Who calls is not known here, or may not do this."""


class Overloaded(IntoneError):
    """No room now."""


class Unavailable(IntoneError):
    """This server cannot now; another one may."""


class TimedOut(IntoneError):
    """A limit on time was reached."""


class SynthesisFailed(IntoneError):
    """The model failed on this text. `cause` is for the server's log."""

    def __init__(self, cause: str) -> None:
        super().__init__(Reason.SYNTHESIS_FAILED, "the model failed on this segment")
        self.cause = cause


class InternalError(IntoneError):
    """A fault in this program. The log has it, under the request id."""

    def __init__(self) -> None:
        super().__init__(Reason.INTERNAL, "internal error; the server's log has this request id")
