"""Messages that do not parse, or are too long, reach the method as what is wrong with them."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from intone_server.errors import InvalidRequest, Reason, Violation


@dataclass(frozen=True, slots=True)
class _Malformed:
    """In the place of a message: what is wrong with it."""

    description: str


def tolerant(
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


def checked(request: Any) -> Any:
    if isinstance(request, _Malformed):
        raise InvalidRequest(Reason.BAD_MESSAGE, [Violation("", request.description)])
    return request


class CheckedStream:
    """An iterator that can go on after a malformed message, as a generator could not."""

    def __init__(self, requests: AsyncIterator[Any]) -> None:
        self._requests = aiter(requests)

    def __aiter__(self) -> "CheckedStream":
        return self

    async def __anext__(self) -> Any:
        return checked(await anext(self._requests))
