"""Scripts in files: which format they are in, and what YAML and JSON documents make."""

import math
import os
import re
import stat
from pathlib import Path
from typing import Any

from intone.v1 import tts_pb2
from intone_client._config import _duration, speech_config

from .checking import check
from .document import Document, read_document, schema
from .places import Fault, Faults, Place, Source
from .script import MAX_GAP_SECONDS, Script, ScriptError, audio, line, reuse, silence
from .text import looks_like_lines, read_lines, seconds_of
from .words import listed, meant, shown

# Far more than the lines that a server takes. What has no end, a device for example, has one here.
_MAX_SCRIPT_BYTES = 4 * 2**20
_MAX_AUDIO_BYTES = 20_000_000
_MAX_ALL_AUDIO_BYTES = 100_000_000  # no server takes so much; many times one file is soon more

_FORMATS = {".yaml": "YAML", ".yml": "YAML", ".json": "JSON"}
_PLAIN = "plain text"
_JSON_BEGINNING = re.compile(r"\s*(?:\{|\[\s*[\[{\"])")
_YAML_ITEMS = re.compile(r"^items[ \t]*:(?:\s|#[^\n]*\n)*[-\[]", re.MULTILINE)

_GAPS = ("segment_gap", "paragraph_gap")
_DURATIONS = (*_GAPS, "max_queue_wait", "max_ahead")


def load_script(path: str | os.PathLike[str], *, allow_outside: bool = False) -> Script:
    """The script in the file `path`, see `Script.load`. Raises ScriptError."""
    name = os.fsdecode(path)
    text = _read_text(name)
    form = _FORMATS.get(Path(name).suffix.lower(), _PLAIN)
    faults = Faults()
    if form != _PLAIN:
        sounds = _Sounds(Path(name).parent, allow_outside=allow_outside)
        script = _read_document(text, form, sounds, faults)
    elif (likely := _likely_format(text)) == _PLAIN:
        script = read_lines(text, faults)
    else:
        raise ScriptError(name, [_wrong_ending(form, likely)])
    if script is None or faults:
        raise ScriptError(name, list(faults))
    return script


def _read_text(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            data = file.read(_MAX_SCRIPT_BYTES + 1)
            size = max(len(data), os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise ScriptError(name, [(0, f"cannot be read: {error.strerror}")]) from None
    except ValueError as error:
        raise ScriptError(name, [(0, f"is no name of a file: {error}")]) from None
    if len(data) > _MAX_SCRIPT_BYTES:
        # What has no end has no size.
        has = f"{size:,}" if size > len(data) else f"more than {_MAX_SCRIPT_BYTES:,}"
        what = f"has {has} bytes, limit {_MAX_SCRIPT_BYTES:,}: cut the script in two"
        raise ScriptError(name, [(0, what)])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = data.count(b"\n", 0, error.start) + 1
        what = f"is not UTF-8 text: there is a byte 0x{data[error.start]:02X} which cannot be in it"
        raise ScriptError(name, [(at, what)]) from None
    if not text.strip():
        raise ScriptError(name, [(1, "the file is empty")])
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _likely_format(text: str) -> str:
    """What `text` looks like, whatever its file is called."""
    if _JSON_BEGINNING.match(text):
        return "JSON"
    return "YAML" if _YAML_ITEMS.search(text) else _PLAIN


def _wrong_ending(form: str, likely: str) -> Fault:
    what = f"this looks like {likely}, but the ending of the file means {form}: "
    return 1, f"{what}.yaml and .yml are YAML, .json is JSON, any other is plain text"


def _read_document(text: str, form: str, sounds: "_Sounds", faults: Faults) -> Script | None:
    document = read_document(text, as_json=form == "JSON", faults=faults)
    data = document.data if document else None
    keys = schema()["properties"]
    if not (isinstance(data, dict) and data.keys() & keys):
        # Nothing in it is as it should be.
        likely = _likely_format(text)
        if likely not in (form, _PLAIN) or (likely == _PLAIN and looks_like_lines(text, keys)):
            # Of what was taken for what it is not, only why it cannot be read is worth telling.
            found = [] if document else list(faults)
            faults.clear()
            for line_number, what in [_wrong_ending(form, likely), *found]:
                faults.add(line_number, what)
            return None
    if document is None:
        return None
    check(document)
    if not isinstance(data, dict) or not isinstance(data.get("items"), list):
        return None
    cast = data.get("cast", {})
    items = _Items(document, data["items"], cast, sounds).made()
    config = _config(document, data.get("config", {}))
    gap = _seconds(document, ("gap",), data.get("gap", 0), MAX_GAP_SECONDS)
    if faults:
        return None
    return Script(
        items,
        cast=cast,
        config=config,
        gap=gap,
        on_item_failure=data.get("on_item_failure", "skip"),
        max_concurrency=data.get("max_concurrency", 0),
        lines=[document.line(("items", index)) for index in range(len(items))],
        source=Source(document.lines),
    )


def _seconds(document: Document, place: Place, value: Any, most: float = math.inf) -> float:
    """The length that is at `place`, up to `most` seconds; 0 if that has a fault, then or now."""
    if document.is_faulty(place):
        return 0.0
    seconds = seconds_of(value) if isinstance(value, str) else float(value)
    try:
        _duration("", seconds)
    except ValueError:
        document.fault(place, f"{shown(value)} is too long")
        return 0.0
    if seconds > most:
        document.fault(place, f"is {seconds:g} s, the most is {most:g} s")
        return 0.0
    return seconds


def _config(document: Document, data: Any) -> tts_pb2.SpeechConfig:
    if document.is_faulty(("config",)):
        return tts_pb2.SpeechConfig()
    keywords = dict(data)
    for key in _DURATIONS:
        if key in keywords:
            most = MAX_GAP_SECONDS if key in _GAPS else math.inf
            keywords[key] = _seconds(document, ("config", key), keywords[key], most)
    if isinstance(rules := keywords.get("replacements"), list):
        keywords["replacements"] = [tts_pb2.Replacement(**rule) for rule in rules]
    return speech_config(**keywords)


class _Items:
    """Makes the items of a document, and tells it what the schema cannot know."""

    def __init__(self, document: Document, items: list[Any], cast: Any, sounds: "_Sounds") -> None:
        self._document = document
        self._items = items
        # A cast that is none has its own fault.
        self._cast = cast if isinstance(cast, dict) else None
        self._sounds = sounds
        self._first: dict[str, int] = {}  # items by id
        for index, item in enumerate(items):
            if isinstance(item, dict) and isinstance(item.get("id"), str):
                self._first.setdefault(item["id"], index)

    def made(self) -> list[tts_pb2.DialogueItem]:
        """All items that have no fault."""
        made = []
        for index, item in enumerate(self._items):
            if self._document.faults.full:
                break
            if isinstance(item, dict):
                self._check_names(index, item)
            if not self._document.is_faulty(("items", index)):
                made.append(self._item(("items", index), item))
        return made

    def _check_names(self, index: int, item: dict[str, Any]) -> None:
        fault, place = self._document.fault, ("items", index)
        name, speaker, target = (item.get(key) for key in ("id", "speaker", "reuse"))
        if isinstance(name, str) and self._first[name] < index:
            fault((*place, "id"), f"{shown(name)} is the id of {self._where(name)} already")
        cast = self._cast
        if isinstance(speaker, str) and speaker and cast is not None and speaker not in cast:
            what = f"{shown(speaker)} is not in the cast ({listed(cast)}){meant(speaker, cast)}"
            fault((*place, "speaker"), what)
        if not isinstance(target, str) or self._first.get(target, index) < index:
            return
        if target not in self._first:
            what = f"no item has the id {shown(target)}{meant(target, self._first)}"
        elif self._first[target] == index:
            what = f"{shown(target)} is the id of this item itself; it takes an earlier one"
        else:
            what = f"{shown(target)} is the id of {self._where(target)}; it takes an earlier one"
        fault((*place, "reuse"), what)

    def _where(self, name: str) -> str:
        index = self._first[name]
        return f"items[{index}] on line {self._document.line(('items', index))}"

    def _item(self, place: Place, item: dict[str, Any]) -> tts_pb2.DialogueItem:
        name = item.get("id", "")
        if "silence" in item:
            return silence(_seconds(self._document, (*place, "silence"), item["silence"]), id=name)
        if "reuse" in item:
            return reuse(item["reuse"], id=name)
        if "audio" in item:
            return audio(self._read_audio((*place, "audio"), item["audio"]), id=name)
        if "text" not in item:
            ((speaker, text),) = item.items()
            return line(speaker, text)
        own = {key: value for key, value in item.items() if key not in ("speaker", "text", "id")}
        return line(item.get("speaker", ""), item["text"], id=name, **own)

    def _read_audio(self, place: Place, name: str) -> bytes:
        try:
            return self._sounds.read(name)
        except ValueError as error:
            self._document.fault(place, f"{shown(name)} {error}")
            return b""


class _Sounds:
    """Reads the audio files that a script names, as seen from its folder."""

    def __init__(self, folder: Path, *, allow_outside: bool) -> None:
        self._folder = folder
        self._allow_outside = allow_outside
        self._room_bytes = _MAX_ALL_AUDIO_BYTES

    def read(self, name: str) -> bytes:
        """Raises ValueError, which says what the file is or has."""
        path = self._folder / name
        # A script may come from somebody else: it must not send any file of this machine.
        inside = os.path.realpath(self._folder)
        if not self._allow_outside and not Path(os.path.realpath(path)).is_relative_to(inside):
            raise ValueError(
                "lies outside the folder of the script, which only --allow-outside lets it do "
                "(in Python Script.load(..., allow_outside=True))"
            )
        data = _audio_file(path, self._room_bytes)
        self._room_bytes -= len(data)
        return data


def _audio_file(path: Path, room_bytes: int) -> bytes:
    """Raises ValueError, which says what the file is or has."""
    try:
        # Opening a pipe would wait for whoever writes to it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError("is not a file")
        with path.open("rb") as file:
            data = file.read(_MAX_AUDIO_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror} ({path})") from None
    if not data:
        raise ValueError("is empty")
    if len(data) > _MAX_AUDIO_BYTES:
        raise ValueError(f"has more than {_MAX_AUDIO_BYTES:,} bytes, the limit")
    if len(data) > room_bytes:
        raise ValueError(f"is too much: limit {_MAX_ALL_AUDIO_BYTES:,} bytes in all items")
    return data
