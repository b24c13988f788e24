"""The one list of voices: what ListVoices shows is exactly what a stream can use."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from intone_server.engines.base import EngineVoice
from intone_server.errors import Reason, Unavailable, VoiceNotFound

# A voice that could not be brought here may be there in a moment; no sooner than this.
RETRY_SECONDS = 5.0
# How long a call may wait for a voice: a few megabytes of download, once.
LOAD_SECONDS = 60.0


class Catalogue:
    """Voices by name. A name is only ever looked up here: it is never a path or an address."""

    def __init__(
        self,
        voices: Iterable[EngineVoice],
        default: str,
        load: Callable[[str], Awaitable[EngineVoice]],
    ) -> None:
        self._voices = {voice.name: voice for voice in voices}
        self._load = load
        self.default = default

    def voices(self, language: str = "") -> list[EngineVoice]:
        """All voices, or those of one language, ordered by name."""
        return sorted(
            (v for v in self._voices.values() if language in ("", v.language)),
            key=lambda voice: voice.name,
        )

    def get(self, name: str) -> EngineVoice:
        """One voice. Raises VoiceNotFound."""
        try:
            return self._voices[name]
        except KeyError:
            raise VoiceNotFound(name) from None

    async def make_ready(self, name: str) -> None:
        """Return when the voice can speak. Raises VoiceNotFound, or Unavailable if its files
        cannot be had now."""
        if self.get(name).loaded:
            return
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                self._voices[name] = await self._load(name)
        except (LookupError, TimeoutError) as error:
            raise Unavailable(
                Reason.VOICE_UNAVAILABLE,
                "the files of this voice cannot be brought here now",
                retry_after=RETRY_SECONDS,
            ) from error
