"""What is written about a voice beside its state, as JSON."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from intone_server.setting_values import VOICE_NAME

# The format of NAME.json. What a newer server has written is left alone.
VERSION = 1
MAX_JSON_BYTES = 1 << 20
# The space of voices that all clients can use, beside one for each client that has voices.
COMMON = ""
# No client can have more than this part of the room for created voices: the others need some too.
OWNER_SHARE = 1 / 4
# Protobuf timestamps end with the year 9999.
END_OF_TIME = 253_402_300_800

# The file of a state: NAME.<random>.safetensors.
STATE_FILE = re.compile(rf"({VOICE_NAME.pattern})\.[0-9a-f]{{16}}\.safetensors")


class StoreFull(Exception):
    """No voice can be kept any more. The message, for callers, says how much there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceRecord:
    """What is kept about a voice beside its state.

    `origin` is "created" or "imported"; `digest` a SHA-256 in hexadecimal; `model_fingerprint` and
    `model` tell the model that the state is for; `create_time` is in seconds since 1970. `report`,
    of a created voice, has the numbers seconds_used, level_dbfs, clipped_ratio and speech_ratio,
    all finite, and the list of strings warnings. `owner` is the client that made the voice, "" if
    clients are not told apart; `shared` says that others can use it.
    """

    name: str
    language: str
    origin: str
    digest: str
    model_fingerprint: str
    model: str
    create_time: float
    labels: dict[str, str]
    consent_statement: str
    report: dict[str, Any] | None
    owner: str = ""
    shared: bool = False

    @property
    def space(self) -> str:
        """In which the name is unique: COMMON, or that of the owner."""
        return COMMON if self.shared else self.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVoice(VoiceRecord):
    """A voice in the store. `file` is its state; it never changes, but may be deleted at any time,
    also by another machine. Read it at once rather than map it: pages of a file that is gone from
    a network file system end the process (SIGBUS)."""

    file: Path


class Store(Protocol):
    """Where voices are kept: in spaces, each with names of its own. A space is COMMON or has the
    name of the owner whose voices it holds. Calls may block, and come from any thread."""

    def create(self, voice: VoiceRecord, state: bytes) -> StoredVoice:
        """Keep a voice. Raises FileExistsError, StoreFull or OSError."""

    def get(self, name: str, space: str = COMMON) -> StoredVoice | None:
        """The voice of this name, as it is now. Raises OSError."""

    def all(self, space: str = COMMON) -> list[StoredVoice]:
        """All voices of a space, ordered by name. Raises OSError."""

    def count(self) -> int:
        """How many names are taken in all spaces. Raises OSError."""

    @property
    def in_memory(self) -> tuple[int, int]:
        """How many voices this process itself holds in memory, and their bytes."""

    def delete(self, name: str, space: str = COMMON) -> bool:
        """Remove a voice; False if there is none. Raises OSError."""


def _is_text(value: Any) -> bool:
    # Half a surrogate pair, which JSON can write, fits no UTF-8.
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_number(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _is_labels(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, [*value, *value.values()]))


_NUMBERS = ("seconds_used", "level_dbfs", "clipped_ratio", "speech_ratio")


def _is_report(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(_is_number(value.get(key)) for key in _NUMBERS)
        and isinstance(value.get("warnings"), list)
        and all(map(_is_text, value["warnings"]))
    )


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "language": _is_text,
    "origin": lambda value: value in ("created", "imported"),
    "digest": _is_digest,
    "model_fingerprint": _is_text,
    "model": _is_text,
    "create_time": lambda value: _is_number(value) and 0 <= value < END_OF_TIME,
    "labels": _is_labels,
    "consent_statement": _is_text,
    "report": _is_report,
}


def to_json(voice: VoiceRecord, state_name: str) -> bytes:
    """Raises ValueError for what JSON in UTF-8 cannot hold."""
    record = {key: getattr(voice, key) for key in _FIELDS}
    if voice.owner:
        record |= {"owner": voice.owner, "shared": voice.shared}
    record |= {"version": VERSION, "file": state_name}
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, indent=2, sort_keys=True)
    return f"{text}\n".encode()


def from_json(name: str, data: bytes, directory: Path) -> StoredVoice:
    """The voice of that name. Raises ValueError that says what is wrong with the JSON."""
    if len(data) > MAX_JSON_BYTES:
        raise ValueError(f"the record has {len(data):,} bytes, limit {MAX_JSON_BYTES:,}")
    try:
        record = json.loads(data.decode(), parse_int=float)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(record, dict) or record.get("version") != VERSION:
        raise ValueError(f"not a voice in the format of version {VERSION}")
    for key, is_valid in _FIELDS.items():
        if key not in record or not is_valid(record[key]):
            raise ValueError(f"{key} is missing or wrong")
    file = record.get("file")
    match = STATE_FILE.fullmatch(file) if isinstance(file, str) else None
    if record["name"] != name or match is None or match[1] != name:
        raise ValueError("name or file is not that of this voice, or no voice can have it")
    # Records of before there were owners have neither, and servers of that time read over both.
    owner, shared = record.get("owner", ""), record.get("shared", False)
    if not _is_text(owner) or not isinstance(shared, bool):
        raise ValueError("owner or shared is wrong")
    if record["report"] is not None:
        record["report"] = {key: record["report"][key] for key in (*_NUMBERS, "warnings")}
    fields = {key: record[key] for key in _FIELDS} | {"owner": owner, "shared": shared}
    return StoredVoice(**fields, file=directory / match[0])
