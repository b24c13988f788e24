"""How faults name what is in a script: in a few words, however long it is."""

import difflib
from collections.abc import Collection
from itertools import islice

_SHOWN_CHARACTERS = 40
_LISTED = 20
_GUESSED = 500  # each is compared letter by letter


def shown(value: object) -> str:
    """A value of a document for people, in a few words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    text = str(value)
    short = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return repr(short) if isinstance(value, str) else short


def listed(names: Collection[str]) -> str:
    """The first names of a cast."""
    if not names:
        return "which is empty"
    first = ", ".join(f"{name:.{_SHOWN_CHARACTERS}}" for name in islice(names, _LISTED))
    return f"{first} and {len(names) - _LISTED:,} more" if len(names) > _LISTED else first


def meant(word: str, known: Collection[str]) -> str:
    """A guess at the name in `known` that `word` was to be, to be put behind it; or nothing."""
    some = [name for name in islice(known, _GUESSED) if len(name) <= 2 * _SHOWN_CHARACTERS]
    close = difflib.get_close_matches(word[:_SHOWN_CHARACTERS], some, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""
