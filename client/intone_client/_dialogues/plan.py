"""The items of a script as files are made of them."""

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from intone.v1 import tts_pb2

_NAME_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """An item as the script asks for it."""

    #: From 1, in the order of the script.
    number: int
    id: str
    #: "speech", "silence", "reuse" or "audio".
    kind: str
    #: Of a reuse, speaker, voice and text are those of its original.
    speaker: str
    voice: str
    text: str
    #: Number of the item that a reuse repeats, which is no reuse itself.
    reuse_of: int | None
    #: SHA-256, in hexadecimal, over all that decides how it sounds.
    fingerprint: str


def plan_items(
    items: Sequence[tts_pb2.DialogueItem],
    cast: Mapping[str, str],
    config: tts_pb2.SpeechConfig,
) -> list[PlannedItem]:
    """The items of a script, with the voices of `cast`; mistakes in it are left to the server.

    `config` is that of the request. An item has the same fingerprint in another script, or at
    another place, if it sounds the same there: its seed comes from that of the config and its id,
    or its number if it has none. A voice goes by its name.
    """
    config = tts_pb2.SpeechConfig.FromString(config.SerializeToString())
    config_voice = config.voice
    for name in ("voice", "scheduling", "segment_events", "queue_events"):
        config.ClearField(name)
    common = config.SerializeToString(deterministic=True)
    planned: list[PlannedItem] = []
    by_id: dict[str, PlannedItem] = {}
    for number, item in enumerate(items, 1):
        kind = item.WhichOneof("content") or "speech"
        place = ""
        if kind == "speech":
            speech = tts_pb2.SpeechItem(text=item.speech.text, sampling=item.speech.sampling)
            content = speech.SerializeToString(deterministic=True)
            if not speech.sampling.HasField("seed"):
                place = f"id {item.id}" if item.id else f"number {number}"
        else:
            content = getattr(item, kind).SerializeToString(deterministic=True)
        voice = cast.get(item.speech.speaker, "") if item.speech.speaker else config_voice
        said = PlannedItem(
            number=number,
            id=item.id,
            kind=kind,
            speaker=item.speech.speaker,
            voice=voice if kind == "speech" else "",
            text=item.speech.text,
            reuse_of=None,
            fingerprint=_digest(kind, place, voice if kind == "speech" else "", content, common),
        )
        original = by_id.get(item.reuse.item_id) if kind == "reuse" else None
        if original is not None:
            said = replace(
                original,
                number=number,
                id=item.id,
                kind=kind,
                reuse_of=original.reuse_of or original.number,
                fingerprint=_digest(kind, original.fingerprint),
            )
        planned.append(said)
        if item.id:
            by_id[item.id] = said
    return planned


def file_name(speaker: str) -> str:
    """A short form of a name that every file system takes; "voice" if nothing of it is left."""
    name = unicodedata.normalize("NFC", speaker).lower()
    kept = "".join(each if unicodedata.category(each)[0] in "LMN" else " " for each in name)
    short = unicodedata.normalize("NFC", "-".join(kept.split()))[:_NAME_CHARACTERS]
    return short.rstrip("-") or "voice"


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
