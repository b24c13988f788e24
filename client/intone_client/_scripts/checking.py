"""What does not fit the schema of scripts, said so that it can be mended without reading that."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import jsonschema

from .document import Document, schema
from .places import MAX_FAULTS, Place
from .words import listed, meant, shown

KINDS = ("text", "silence", "reuse", "audio")
_LISTED = 10

_NEEDED = {
    "string": "text",
    "number": "a number",
    "boolean": "true or false",
}


def check(document: Document) -> None:
    """Tell the document every fault that its schema finds in it, until its faults are full."""
    data = document.data
    items = data.get("items") if isinstance(data, dict) else None
    unclear: set[Place] = set()
    for index, item in enumerate(items if isinstance(items, list) else []):
        if document.faults.full:
            return
        if isinstance(item, dict) and _is_unclear(document, index, item, data.get("cast", {})):
            unclear.add(("items", index))
    for error in jsonschema.Draft202012Validator(schema()).iter_errors(data):
        if document.faults.full:
            return
        place = tuple(error.absolute_path)
        # Of what is none of its kinds the schema only knows that it fits nothing.
        if place[:2] not in unclear:
            _tell(document, place, error)


def _is_unclear(document: Document, index: int, item: dict[str, Any], cast: object) -> bool:
    """Whether its keys do not tell what the item is; that is told then."""
    place = ("items", index)
    keys = schema()["$defs"]["item"]["properties"]
    found = [key for key in ("speaker", *KINDS) if key in item]
    if len(found) > 1 and found != ["speaker", "text"]:
        both = " and ".join(repr(key) for key in found)
        document.fault(place, f"has {both}: an item is only one of {', '.join(KINDS)}")
        return True
    if found or (len(item) == 1 and not isinstance(cast, dict)):
        return False
    speakers = cast if isinstance(cast, dict) else {}
    short = [key for key in item if key in speakers]
    if short and len(item) > 1:
        others = ", ".join(shown(key) for key in islice(item, _LISTED) if key != short[0])
        what = f"the short form '{short[0]}: ...' takes no other key, but here is {others}: "
        what += f"write 'speaker: {short[0]}' and 'text: ...' as keys of their own"
        document.fault(place, what)
    elif not short:
        allowed = ", ".join(KINDS)
        unknown = [key for key in item if key not in keys]
        for key in unknown[:MAX_FAULTS]:
            told = f"unknown key {shown(key)}{meant(key, [*keys, *speakers])}, allowed: {allowed}"
            told += f", or a speaker of the cast ({listed(speakers)})"
            document.fault(place, told, line=document.line((*place, key)))
        if not unknown:
            document.fault(place, f"is nothing that can be heard: it needs one of {allowed}")
    return not (short and len(item) == 1)


def _tell(document: Document, place: Place, error: jsonschema.ValidationError) -> None:
    rule: Any = error.schema
    value: Any = error.instance
    limit: Any = error.validator_value
    if "propertyNames" in error.schema_path:
        what = "cannot be the name of a speaker: it is a key of items"
        if not value.strip():
            what = "is the name of a speaker, but empty"
        document.fault((*place, value), what)
        return
    match error.validator:
        case "additionalProperties":
            known = [key for key in rule["properties"] if not key.startswith("$")]
            unknown = [key for key in value if key not in rule["properties"]]
            for key in unknown[:MAX_FAULTS]:
                told = f"unknown key {shown(key)}{meant(key, known)}, allowed: {', '.join(known)}"
                document.fault(place, told, line=document.line((*place, key)))
        case "required":
            # Of a misspelt key there is a fault already.
            strange = [key for key in value if key not in rule["properties"]]
            for key in [key for key in limit if key not in value and not meant(key, strange)]:
                document.fault(place, f"the key {key!r} is missing")
        case "type":
            document.fault(place, _wrong_type(place, rule, value))
        case "pattern" if not value.strip():
            document.fault(place, "is empty")
        case "pattern":
            document.fault(place, f"needs {rule['title']}, not {shown(value)}")
        case "enum":
            document.fault(place, f"is {shown(value)}, known are {', '.join(limit)}")
        case "minimum":
            document.fault(place, f"is {shown(value)}, the least is {limit}")
        case "maximum":
            document.fault(place, f"is {shown(value)}, the most is {limit}")
        case "minItems":
            document.fault(place, "is empty, but a script has at least one item")
        case _:
            raise AssertionError(f"the schema has a rule without words: {error.validator}")


def _wrong_type(place: Place, rule: Mapping[str, Any], value: object) -> str:
    needed = rule.get("title") or _NEEDED[rule["type"]]
    if not place:
        needed = "a mapping of keys to values, such as 'items:'"
    hint = ""
    if rule["type"] == "string" and isinstance(value, (list, dict)):
        hint = "; text that begins with [ or { needs quotes"
    elif rule["type"] == "object" and isinstance(value, str) and ":" in value:
        hint = "; there has to be a space after the ':'"
    return f"needs {needed}, not {shown(value)}{hint}"
