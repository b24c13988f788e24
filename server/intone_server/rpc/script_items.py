"""The items of a script on the wire: what is wrong with each, without looking anything up."""

from intone.v1 import tts_pb2
from intone_server.audio.containers import HEADERLESS, MAX_RATE_HERTZ, MIN_RATE_HERTZ
from intone_server.errors import Reason, shown
from intone_server.rpc import requests
from intone_server.rpc.faults import Faults
from intone_server.rpc.formats import ENCODINGS
from intone_server.rpc.runtime import Service
from intone_server.synthesis.speech import estimated_seconds


class ItemChecks:
    """Looks at all items of a request and notes their faults.

    `originals` is the place of what is heard for each id: of a reuse that of its original.
    `reused_seconds` is the estimate of speech that has to be kept for others, `readable` the places
    of audio that can be tried.
    """

    def __init__(
        self, request: tts_pb2.SynthesizeDialogueRequest, service: Service, faults: Faults
    ) -> None:
        self._request = request
        self._text_limit = service.request_limits.max_text_characters
        self._limits = service.request_limits.dialogue
        self._read_sampling = service.loaded().config_reader.read_sampling
        self._faults = faults
        self._ids: set[str] = set()
        self._first_of: dict[str, int] = {}
        self.originals: dict[str, int] = {}
        self.reused_seconds = 0.0
        self.readable: list[int] = []
        self._check_items()

    def _check_items(self) -> None:
        items, faults = self._request.items, self._faults
        if not items:
            faults.add("items", "are none: a script needs at least one")
        if len(items) > self._limits.items:
            faults.add("items", f"are {len(items):,}, limit {self._limits.items:,}")
            return
        self._ids = {item.id for item in items}
        for index, item in enumerate(items):
            self._check_item(index, item)
            self._first_of.setdefault(item.id, index)
            if item.id:
                # For what is no reuse that is empty, and no id.
                original = self.originals.get(item.reuse.item_id, index)
                self.originals.setdefault(item.id, original)
        characters = sum(len(item.speech.text) for item in items)
        if characters > self._limits.characters:
            limit = self._limits.characters
            faults.add(
                "items",
                f"have {characters:,} characters in their texts, limit {limit:,}",
                Reason.TEXT_TOO_LONG,
            )
        reused = {item.reuse.item_id for item in items if item.HasField("reuse")}
        self.reused_seconds = sum(
            estimated_seconds(item.speech.text) for item in items if item.id and item.id in reused
        )
        if (seconds := self.reused_seconds) > self._limits.held_seconds:
            faults.add(
                "items",
                f"reuse about {seconds:,.0f} s of speech, limit {self._limits.held_seconds:g} s",
            )

    def _check_item(self, index: int, item: tts_pb2.DialogueItem) -> None:
        path, faults = f"items[{index}]", self._faults
        if len(item.id) > requests.MAX_ID_CHARACTERS:
            faults.add(
                f"{path}.id", f"has {len(item.id):,} characters, limit {requests.MAX_ID_CHARACTERS}"
            )
        elif item.id in self._first_of and item.id:
            first = self._first_of[item.id]
            faults.add(f"{path}.id", f"is {shown(item.id)}, as that of items[{first}]")
        match item.WhichOneof("content"):
            case "speech":
                text = item.speech.text
                requests.check_text(text, self._text_limit, faults, f"{path}.speech.text")
                speaker = item.speech.speaker
                if speaker and speaker not in self._request.cast:
                    faults.add(f"{path}.speech.speaker", f"{shown(speaker)} is not in the cast")
                self._read_sampling(item.speech.sampling, f"{path}.speech.sampling", faults)
            case "silence":
                field = f"{path}.silence.duration"
                faults.seconds(field, item.silence.duration, requests.PAUSE_SECONDS)
            case "reuse":
                self._check_reuse(f"{path}.reuse.item_id", item.reuse.item_id)
            case "audio":
                if self._check_audio(f"{path}.audio", item.audio):
                    self.readable.append(index)
            case None:
                faults.add(path, "has no content: speech, silence, reuse or audio")

    def _check_reuse(self, field: str, item_id: str) -> None:
        if item_id and item_id in self._first_of:
            return
        if not item_id:
            self._faults.add(field, "is empty: it names an earlier item")
        elif item_id in self._ids:
            self._faults.add(field, f"{shown(item_id)} is not before this item")
        else:
            self._faults.add(field, f"no item has the id {shown(item_id)}")

    def _check_audio(self, field: str, audio: tts_pb2.AudioItem) -> bool:
        """Whether it can be tried to read it."""
        if not audio.data:
            self._faults.add(f"{field}.data", "is empty", Reason.BAD_AUDIO)
            return False
        if not audio.HasField("format"):
            return True
        known = ENCODINGS.get(audio.format.encoding) in HEADERLESS
        if not known:
            names = ", ".join(encoding.name for encoding in HEADERLESS)
            self._faults.add(
                f"{field}.format.encoding",
                f"is for samples without a header: {names}; leave the format of a file away",
                Reason.UNSUPPORTED_FORMAT,
            )
        rate = audio.format.sample_rate_hertz
        right = not rate or self._faults.within(
            f"{field}.format.sample_rate_hertz", rate, MIN_RATE_HERTZ, MAX_RATE_HERTZ
        )
        return known and right
