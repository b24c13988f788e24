"""Statuses that change by rules."""

import enum
from collections.abc import Mapping
from typing import TypeVar

Status = TypeVar("Status", bound=enum.Enum)


def change(old: Status, new: Status, allowed: Mapping[Status, frozenset[Status]]) -> Status:
    """`new`, if `allowed` has it for `old`. A status without an entry is final.

    An illegal transition is a fault in the program: raises RuntimeError.
    """
    if new not in allowed.get(old, frozenset()):
        raise RuntimeError(f"{type(old).__name__}: {old.name} -> {new.name}")
    return new
