"""Making a voice and keeping it."""

import asyncio
import math
import time
from dataclasses import asdict, dataclass
from typing import Any

from intone_server.engines.base import EngineInfo
from intone_server.errors import NotPossible, Overloaded, Reason, VoiceExists
from intone_server.voices.catalogue import Catalogue, storage
from intone_server.voices.making import VoiceMaker
from intone_server.voices.record import OWNER_SHARE, Store, StoreFull, VoiceRecord
from intone_server.voices.voice import Origin, Voice, of_record
from intone_server.workers.messages import VoiceMade


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVoice:
    """What a caller wants made, checked. Either `prompt`, a recording, or `state` is not empty.
    `owner` is the caller, and "" if callers are not told apart."""

    name: str
    language: str
    prompt: bytes
    state: bytes
    labels: dict[str, str]
    consent_statement: str
    owner: str
    shared: bool


class VoiceCreator:
    """Makes voices, of which there can be `max_voices`, and OWNER_SHARE of that of one client."""

    def __init__(
        self,
        info: EngineInfo,
        catalogue: Catalogue,
        store: Store,
        maker: VoiceMaker,
        max_voices: int,
    ) -> None:
        self._info = info
        self._catalogue = catalogue
        self._store = store
        self._maker = maker
        self._max_voices = max_voices
        self._keeping = asyncio.Lock()

    async def create(self, new: NewVoice, *, keep: bool) -> Voice:
        """The new voice, or with `keep` False what it would be. Raises IntoneError."""
        self._check_possible(new)
        await self._catalogue.check_free(new.name, new.owner, shared=new.shared)
        await self._check_room(new.owner)
        made = await self._maker.make(prompt=new.prompt, state=new.state)
        record = VoiceRecord(
            name=new.name,
            language=new.language,
            origin=(Origin.CREATED if new.prompt else Origin.IMPORTED).value,
            digest=made.state.digest,
            model_fingerprint=self._info.fingerprint,
            model=self._info.model,
            create_time=time.time(),
            labels=new.labels,
            consent_statement=new.consent_statement,
            report=_report(made),
            owner=new.owner,
            shared=new.shared,
        )
        if not keep:
            return of_record(record, "", loaded=False)
        try:
            async with self._keeping:  # others may have been made meanwhile
                await self._check_room(new.owner)
                with storage():
                    stored = await asyncio.to_thread(self._store.create, record, made.state.data)
        except FileExistsError:
            raise VoiceExists(new.name) from None
        except StoreFull as error:
            raise Overloaded(Reason.VOICE_LIMIT, str(error)) from None
        return of_record(stored, str(stored.file), loaded=False)

    async def _check_room(self, owner: str) -> None:
        with storage():
            count = await asyncio.to_thread(self._store.count)
        if count >= self._max_voices:
            raise Overloaded(
                Reason.VOICE_LIMIT, f"{count:,} voices were created, limit {self._max_voices:,}"
            )
        if not owner:
            return
        count = await self._catalogue.count_of(owner)
        if count >= (limit := math.ceil(self._max_voices * OWNER_SHARE)):
            raise Overloaded(
                Reason.VOICE_LIMIT, f"the client has created {count:,} voices, limit {limit:,}"
            )

    def _check_possible(self, new: NewVoice) -> None:
        if "voice_import" not in self._info.features:
            why = f"the {self._info.engine} engine has a fixed set of voices"
        elif new.prompt and "voice_cloning" not in self._info.features:
            why = "this model cannot make voices from recordings: its weights for that are gated"
        else:
            return
        raise NotPossible(Reason.CLONING_UNAVAILABLE, why)


def _report(made: VoiceMade) -> dict[str, Any] | None:
    """What was heard in the recording, with what its voice does when it speaks."""
    if made.report is None:
        return None
    report = asdict(made.report)
    return report | {"warnings": [*report["warnings"], *made.state.warnings]}
