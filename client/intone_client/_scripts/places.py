"""Where something is in the file of a script, and what is wrong there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

#: A line of a file, from 1 (0: the file as a whole), and what is wrong there.
Fault: TypeAlias = tuple[int, str]
#: Keys and indices, from the root of a document.
Place: TypeAlias = tuple[str | int, ...]

# Nobody mends more at once, and junk has as many as it has lines.
MAX_FAULTS = 100


def spelled(place: Place) -> str:
    """As people write it, `items[2].text`."""
    parts = (f"[{key}]" if isinstance(key, int) else f".{key:.60}" for key in place)
    return "".join(parts).removeprefix(".")


@dataclass(frozen=True, slots=True)
class Source:
    """The file of a script: the line where something begins, from 1, and what it is called there,
    if that is not its place."""

    lines: Mapping[Place, int]
    names: Mapping[Place, str] = field(default_factory=dict)

    def where(self, place: Place) -> Fault:
        """Line and name of what is at `place`; of what is not there, the line where it should be.

        The line is 0 if none of it is in the file.
        """
        known = place
        while known and known not in self.lines:
            known = known[:-1]
        line = self.lines[known] if known else 0
        return line, self.names.get(known) or spelled(place)


class Faults:
    """What is wrong with one script, each thing once. No more is taken when it is full."""

    def __init__(self) -> None:
        self._faults: dict[Fault, None] = {}
        self.full = False

    def add(self, line: int, what: str) -> None:
        """Tell `what` is wrong on a line."""
        if len(self._faults) < MAX_FAULTS:
            self._faults[line, what] = None
        self.full = len(self._faults) >= MAX_FAULTS

    def clear(self) -> None:
        """Forget all."""
        self._faults.clear()
        self.full = False

    def __bool__(self) -> bool:
        return bool(self._faults)

    def __iter__(self) -> Iterator[Fault]:
        yield from self._faults
        if self.full:
            last = max(line for line, _ in self._faults)
            yield last, f"these are {MAX_FAULTS}, and no more were looked for"
