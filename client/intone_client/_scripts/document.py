"""Scripts that are YAML or JSON: where everything is in them, and what does not fit the schema."""

import functools
import importlib.resources
import json
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .places import Faults, Place, spelled
from .tree import QUOTES, Node, Pairs, Unreadable, json_tree, plain_value, yaml_tree
from .words import shown


@functools.cache
def schema() -> Mapping[str, Any]:
    """The published schema of scripts."""
    file = importlib.resources.files("intone_client") / "script.schema.json"
    found: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


@dataclass(slots=True)
class Document:
    """The `data` of a document: its faults go to `faults`, and what has one may be missing."""

    faults: Faults
    data: Any = None
    lines: dict[Place, int] = field(default_factory=dict)
    _faulty: set[Place] = field(default_factory=set)

    def line(self, place: Place) -> int:
        """Where its key or item begins, from 1; of what is not there: where it should be."""
        while place not in self.lines and place:
            place = place[:-1]
        return self.lines.get(place, 1)

    def fault(self, place: Place, what: str, *, line: int = 0) -> None:
        """Tell `what` is wrong with what is at `place`, on its line if no other is given."""
        told = f"{spelled(place)}: {what}" if place else what
        self.faults.add(line or self.line(place), told)
        self._faulty.update(place[:length] for length in range(len(place) + 1))

    def is_faulty(self, place: Place) -> bool:
        """Whether there is a fault at `place` or in it."""
        return place in self._faulty


def read_document(text: str, *, as_json: bool, faults: Faults) -> Document | None:
    """The document in `text`; None if it is no YAML, or no JSON.

    What YAML leaves without quotes is text, unless the schema has a number, or true or false, in
    its place: a speaker may be called "no", and say 12:30 or 1.50.
    """
    breaks = [match.start() for match in re.finditer("\n", text)]
    try:
        root = json_tree(text) if as_json else yaml_tree(text)
    except Unreadable as error:
        faults.add(bisect_left(breaks, error.index) + 1, error.what)
        return None
    document = Document(faults)
    document.data = _Builder(document, breaks).build(root, (), schema())
    return document


class _Builder:
    """Makes data of nodes, and tells the document where everything is."""

    def __init__(self, document: Document, breaks: list[int]) -> None:
        self._document = document
        self._breaks = breaks

    def build(self, node: Node, place: Place, rule: Mapping[str, Any]) -> Any:
        """The data of `node`; `rule` is the schema of its place, empty if there is none."""
        # A key was there before its value.
        self._document.lines.setdefault(place, self._line(node))
        while "$ref" in rule:
            rule = schema()["$defs"][rule["$ref"].rpartition("/")[2]]
        if isinstance(node.value, list):
            part = rule.get("items", {})
            return [
                self.build(child, (*place, index), part) for index, child in enumerate(node.value)
            ]
        if isinstance(node.value, Pairs):
            return self._mapping(node.value.pairs, place, rule)
        wanted = rule.get("type", "string")
        value = node.value
        if node.is_cut and wanted == "string":
            what = "the rest of its line is a comment: put it in quotes, or a space after the '#'"
            self._document.fault(place, what)
        if node.plain and wanted != "string":
            value = plain_value(str(value))
        if isinstance(value, float) and wanted == "integer" and value.is_integer():
            return int(value)
        return self._text(value, place) if isinstance(value, str) else value

    def _mapping(
        self, pairs: list[tuple[Node, Node]], place: Place, rule: Mapping[str, Any]
    ) -> dict[str, Any]:
        known, other = rule.get("properties", {}), rule.get("additionalProperties")
        data: dict[str, Any] = {}
        for key_node, value_node in pairs:
            if not isinstance(key_node.value, str):
                line = self._line(key_node)
                self._document.fault(place, f"a key is text, nothing else; {QUOTES}", line=line)
                continue
            key = self._text(key_node.value, place)
            here = (*place, key)
            if key_node.is_bare:
                what = f"{shown(key)} has no value: inside {{ }}, text with a ',' needs quotes"
                self._document.fault(place, what, line=self._line(key_node))
                continue
            if key in data:
                first = self._document.line(here)
                what = f"is here a second time, first on line {first}"
                self._document.fault(here, what, line=self._line(key_node))
                continue
            self._document.lines[here] = self._line(key_node)
            data[key] = self.build(value_node, here, known.get(key, other or {}))
        return data

    def _text(self, text: str, place: Place) -> str:
        """With pairs of surrogates, as escapes spell them, made one character."""
        try:
            text.encode()
        except UnicodeEncodeError:
            units = text.encode("utf-16-le", "surrogatepass")
            try:
                return units.decode("utf-16-le")
            except UnicodeDecodeError:
                self._document.fault(place, "an escape in it is half of a character")
                return units.decode("utf-16-le", "replace")
        return text

    def _line(self, node: Node) -> int:
        return bisect_left(self._breaks, node.index) + 1
