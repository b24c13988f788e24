"""Voice states in memory, up to a number of bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """What can be kept."""

    @property
    def bytes(self) -> int:
        """Memory that it takes."""


Value = TypeVar("Value", bound=Sized)


@dataclass(slots=True)
class _Entry(Generic[Value]):
    value: Future[Value] = field(default_factory=Future)
    users: int = 0


class ByteCache(Generic[Value]):
    """Values by key; beyond `limit_bytes` those least recently used go, but never one in use: what
    is in use may be more. For any thread."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry[Value]] = OrderedDict()  # oldest use first

    @contextmanager
    def use(self, key: str, load: Callable[[], Value]) -> Iterator[Value]:
        """Hold the value of `key` for the time of a `with` block.

        If it is not there, `load` is called once, by the first who asks; the others wait and share
        its outcome. What it raises is raised here and not kept.
        """
        with self._lock:
            entry = self._entries.get(key)
            is_first = entry is None
            if entry is None:
                entry = self._entries[key] = _Entry()
            self._entries.move_to_end(key)
            entry.users += 1
        try:
            if is_first:
                self._fill(key, entry, load)
            yield entry.value.result()
        finally:
            with self._lock:
                entry.users -= 1
                self._evict()

    def keys(self) -> list[str]:
        """What is kept, least recently used first."""
        with self._lock:
            return list(self._entries)

    def _fill(self, key: str, entry: _Entry[Value], load: Callable[[], Value]) -> None:
        try:
            value = load()
        except BaseException as error:
            with self._lock:
                del self._entries[key]
            entry.value.set_exception(error)
            raise
        entry.value.set_result(value)

    def _evict(self) -> None:
        filled = [(key, entry) for key, entry in self._entries.items() if entry.value.done()]
        total = sum(entry.value.result().bytes for _, entry in filled)
        for key, entry in filled:
            if total <= self._limit_bytes:
                return
            if not entry.users:
                total -= entry.value.result().bytes
                del self._entries[key]
