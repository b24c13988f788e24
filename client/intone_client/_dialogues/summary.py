"""What became of a dialogue, for people."""

from collections.abc import Iterator
from typing import Any

from intone_client._scripts.script import Script
from intone_client._visible import visible


class Summary:
    """Tells of the `timeline` of a `script` from the file `name`."""

    def __init__(self, timeline: dict[str, Any], script: Script, name: str) -> None:
        self._timeline = timeline
        self._script = script
        self._name = name
        self.failed = [item for item in timeline["items"] if item["status"] == "failed"]

    def line(self) -> str:
        """How much there is of the whole."""
        items = self._timeline["items"]
        partly = sum(map(self._is_partly_heard, self.failed))
        heard = partly + sum(item["status"] == "done" for item in items)
        count = f"{heard} items" if heard == len(items) else f"{heard} of {len(items)} items"
        some = f", {partly} of them partly" if partly else ""
        return f"{count}{some}, {self._timeline['duration']:.2f} s of audio"

    def failures(self) -> Iterator[str]:
        """Each item that failed or was skipped, on a line of its own."""
        for item in self._timeline["items"]:
            if item["status"] == "failed":
                partly = " partly" if self._is_partly_heard(item) else ""
                yield f"{self._item_name(item)} failed{partly}: {visible(item['error'])}"
            elif item["status"] == "skipped":
                yield f"{self._item_name(item)} was skipped: there is nothing of it to be heard"

    def _is_partly_heard(self, item: dict[str, Any]) -> bool:
        """Whether there is more of a failed item than the silence in the place of what failed."""
        silent = self._script.on_item_failure == "silence"
        return any(
            segment["sample_count"] and not (silent and segment["outcome"] == "failed")
            for segment in item["segments"]
        )

    def _item_name(self, item: dict[str, Any]) -> str:
        number = item["number"]
        speaker = self._script.items[number - 1].speech.speaker
        name = f"item {number} ({speaker})" if speaker else f"item {number}"
        if self._script.lines:
            name = f"{self._name}:{self._script.lines[number - 1]}: {name}"
        return visible(name)
