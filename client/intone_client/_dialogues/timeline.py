"""What is known of a dialogue in a folder: the document `timeline.json`."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from .captions import Cue
from .plan import PlannedItem, file_name
from .settings import NO_FLAGS, Settings, read_settings

FILE_NAME = "timeline.json"
_VERSION = 1

_KINDS = {"speech", "silence", "reuse", "audio"}
_ITEM_FILE = re.compile(r"\d{4,}-[^/\\:]+\.wav")


@dataclass(frozen=True, slots=True)
class ItemSegment:
    """A segment of an item; `sample_offset` counts from the item's first sample."""

    kind: str
    text: str
    sample_offset: int
    sample_count: int
    seed: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of an item."""

    item: PlannedItem
    status: str = "missing"
    sample_count: int = 0
    error: str | None = None
    segments: tuple[ItemSegment, ...] = ()

    @property
    def file(self) -> str:
        """The name of its WAV file, which is there if it has samples."""
        kind = self.item.kind
        name = file_name(self.item.speaker) if kind == "speech" else kind
        return f"{self.item.number:04}-{name}.wav"


@dataclass(slots=True)
class Timeline:
    """The items of a dialogue, and where they are."""

    sample_rate_hertz: int | None = None
    seed: int | None = None
    gap: float = 0.0
    records: list[Record] = field(default_factory=list)
    #: Files of items that an earlier script had.
    leftovers: set[str] = field(default_factory=set)
    #: Whether `dialogue.wav` has all that is here.
    is_joined: bool = False
    settings: Settings = NO_FLAGS
    #: What `to_text` made last, with what it was made of.
    _lines: dict[int, tuple[Any, str]] = field(default_factory=dict)

    def record(self, number: int) -> Record:
        return self.records[number - 1]

    def has_samples(self) -> bool:
        return any(record.sample_count for record in self.records)

    def missing(self) -> list[int]:
        return [each.item.number for each in self.records if not self._is_settled(each)]

    def places(self) -> list[int | None]:
        """Where each item begins, in samples, and at last where all end; None where that is not
        known. The rule for gaps is the server's: between two items that are heard, not beside a
        silence."""
        gap = round(self.gap * (self.sample_rate_hertz or 0))
        places: list[int | None] = []
        position = 0
        last = None  # of those that are heard
        for record in self.records:
            if record.status == "missing":
                return places + [None] * (len(self.records) + 1 - len(places))
            if record.sample_count:
                if last is not None and "silence" not in (last.item.kind, record.item.kind):
                    position += gap
                last = record
            places.append(position)
            position += record.sample_count
        return [*places, position]

    def cues(self) -> Iterator[Cue]:
        """What was said."""
        rate = self.sample_rate_hertz or 1
        for record, place in zip(self.records, self.places()[:-1], strict=True):
            for segment in record.segments:
                said = segment.kind in ("speech", "reuse") and segment.outcome != "failed"
                if said and segment.sample_count and place is not None:
                    start = place + segment.sample_offset
                    end = start + segment.sample_count
                    yield Cue(start / rate, end / rate, record.item.speaker, segment.text)

    def to_json(self) -> dict[str, Any]:
        """The document."""
        starts = self.places()[:-1]
        items = [self._item(*each) for each in zip(self.records, starts, strict=True)]
        return self._head() | {"items": items}

    def to_text(self) -> str:
        """The document as JSON, an item a line.

        It is asked for after each item: only what has changed since is encoded, or a thousand items
        would take a minute.
        """
        for record, start in zip(self.records, self.places()[:-1], strict=True):
            key = (record, start, self.sample_rate_hertz)
            if self._lines.get(record.item.number, (None, ""))[0] != key:
                line = json.dumps(self._item(record, start), ensure_ascii=False)
                self._lines[record.item.number] = (key, line)
        items = ",\n    ".join(self._lines[each.item.number][1] for each in self.records)
        head = json.dumps(self._head(), ensure_ascii=False, indent=2).removesuffix("\n}")
        return f'{head},\n  "items": [\n    {items}\n  ]\n}}\n'

    def _head(self) -> dict[str, Any]:
        head: dict[str, Any] = {
            "version": _VERSION,
            "sample_rate_hertz": self.sample_rate_hertz,
            "seed": self.seed,
            "settings": asdict(self.settings),
            "gap": self.gap,
            "duration": self._seconds(self.places()[-1]),
            "complete": self.is_joined and not self.missing(),
        }
        if self.leftovers:
            head["leftovers"] = sorted(self.leftovers)
        return head

    def _item(self, record: Record, start: int | None) -> dict[str, Any]:
        item = asdict(record.item)
        digest = item.pop("fingerprint")
        spoken = [each.seed for each in record.segments if each.kind in ("speech", "reuse")]
        return item | {
            "file": record.file if record.sample_count else None,
            "start": self._seconds(start),
            "end": self._seconds(start, record.sample_count),
            "sample_count": record.sample_count,
            "status": record.status,
            "error": record.error,
            "seed": spoken[0] if spoken else None,
            "segments": [
                {
                    "start": self._seconds(start, each.sample_offset),
                    "end": self._seconds(start, each.sample_offset + each.sample_count),
                    **asdict(each),
                }
                for each in record.segments
            ],
            "fingerprint": digest,
        }

    def _seconds(self, position: int | None, more: int = 0) -> float | None:
        if position is None:
            return None
        # Six digits tell samples apart at every rate.
        return round((position + more) / (self.sample_rate_hertz or 1), 6)

    def _is_settled(self, record: Record) -> bool:
        if record.status == "skipped" and record.item.reuse_of is not None:
            # Or else its original failed, and may yet be made.
            return self.record(record.item.reuse_of).status == "skipped"
        return record.status in ("done", "skipped")


def read_timeline(path: Path) -> Timeline:
    """The timeline in a file. Raises OSError, and ValueError if it cannot be used."""
    try:
        document = json.loads(path.read_bytes())
        version = document["version"]
        timeline = _parse(document) if version == _VERSION else None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: name another folder") from error
    if timeline is None:
        raise ValueError(
            f"{path} is of version {version}, and {_VERSION} is known here: name another folder"
        )
    return timeline


def _parse(document: dict[str, Any]) -> Timeline:
    """The timeline of a document. Raises about anything if it is none."""
    records = [
        Record(
            item=PlannedItem(**{each.name: raw[each.name] for each in fields(PlannedItem)}),
            status=raw["status"],
            sample_count=raw["sample_count"],
            error=raw["error"],
            segments=tuple(
                ItemSegment(**{each.name: segment[each.name] for each in fields(ItemSegment)})
                for segment in raw["segments"]
            ),
        )
        for raw in document["items"]
    ]
    # Of what was begun before they were kept, nothing is known.
    document.setdefault("settings", asdict(NO_FLAGS))
    settings = read_settings(document["settings"])
    rate = document["sample_rate_hertz"]
    leftovers = set(document.get("leftovers", []))
    timeline = Timeline(
        rate, document["seed"], document["gap"], records, leftovers, document["complete"], settings
    )
    kinds = {record.item.kind for record in records}
    numbers = [record.item.number for record in records]
    if (
        numbers == list(range(1, len(records) + 1))
        # Of these are made the names of files that are written and deleted.
        and kinds <= _KINDS
        and all(map(_ITEM_FILE.fullmatch, leftovers))
        and (rate is None or (isinstance(rate, int) and 0 < rate < 2**31))
        # What is derived has to be as it would be written.
        and timeline.to_json() == document
    ):
        return timeline
    raise ValueError("it contradicts itself")
