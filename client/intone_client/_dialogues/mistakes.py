"""Mistakes of a script that only the server sees, in the words of its file."""

import re
from collections.abc import Mapping, Sequence

from intone_client._scripts.places import Fault, Place, Source
from intone_client._scripts.script import Script

_PART = re.compile(r"\[(\d+)\]|([a-z_]+)")

# Messages of the contract whose fields are keys of a script themselves.
_GROUPS = {"speech", "sampling", "segmentation", "text", "scheduling", "format"}
# Fields that a script has no word for: their message's is the key.
_INNER = {"duration", "item_id", "data", "mode"}


def script_faults(
    violations: Sequence[tuple[str, str]],
    script: Script,
    asked: Sequence[int],
    flags: Mapping[Place, str],
) -> list[Fault]:
    """The `violations` of a request with the items numbered `asked` (from 1) of `script`.

    `flags` are the options of the command that went before what is at a place of the script.
    """
    source = script.source or Source({})
    cast = {f"cast[{speaker!r}]": speaker for speaker in script.cast}
    faults: list[Fault] = []
    for field, description in violations:
        # Advice of the contract, for who has the command.
        what = description.replace("VoiceService.ListVoices lists them", "see `intone voices`")
        if not field:  # how many more there are
            faults.append((max((line for line, _ in faults), default=0), what))
            continue
        place = ("cast", cast[field]) if field in cast else _place(field, script, asked)
        line, name = (0, flags[place]) if place in flags else source.where(place)
        faults.append((line, f"{name}: {what}"))
    return faults


def _place(field: str, script: Script, asked: Sequence[int]) -> Place:
    """Of a field of the request."""
    place: list[str | int] = [
        int(index) if index else name for index, name in _PART.findall(field.partition("['")[0])
    ]
    if place[:1] == ["items"] and len(place) > 1 and isinstance(place[1], int):
        if place[1] < len(asked):
            place[1] = asked[place[1]] - 1
        if "audio" in place:
            place = place[: place.index("audio") + 1]
    if place[-1] in _INNER:
        place.pop()
    last = len(place) - 1
    found = tuple(key for at, key in enumerate(place) if at == last or key not in _GROUPS)
    return _short(found, script)


def _short(place: Place, script: Script) -> Place:
    """Of a text, with its speaker for the key if it is written so: `anna: Hello.`"""
    match place:
        case ("items", int(index), "text") if script.source and index < len(script.items):
            short = ("items", index, script.items[index].speech.speaker)
            return short if short in script.source.lines else place
    return place
