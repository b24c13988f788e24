"""Voices that are ready for a call, and those that one stream has changed to."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

from intone_server.engines.base import VoiceRef
from intone_server.errors import InvalidRequest, Reason, Violation
from intone_server.rpc.calls import current_call
from intone_server.voices.catalogue import Catalogue
from intone_server.voices.voice import Voice

# Of one call, as the proto states it: each may hold a state of 18 MB until the call ends.
MAX_VOICES = 32


@asynccontextmanager
async def ready(catalogue: Catalogue, voice: Voice) -> AsyncIterator[VoiceRef]:
    """A voice that this call can speak with meanwhile. Raises Unavailable, VoiceNotFound."""
    began_at = time.monotonic()
    async with catalogue.in_use(voice) as ref:
        current_call().watch.voice_ready(began_at)
        yield ref


class StreamVoices:
    """Keeps each voice ready until the stream ends, so that changing back costs nothing.

    Voices are those that the caller `subject` can use."""

    def __init__(self, catalogue: Catalogue, subject: str) -> None:
        self._catalogue = catalogue
        self._subject = subject
        self._stack = AsyncExitStack()
        self._refs: dict[str, VoiceRef] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def ready(self, name: str) -> VoiceRef:
        """What the engine is asked for. Raises VoiceNotFound, Unavailable or InvalidRequest."""
        if name not in self._refs:
            if len(self._refs) >= MAX_VOICES:
                raise InvalidRequest(
                    Reason.BAD_CONFIG,
                    [Violation("voice", f"the stream has {MAX_VOICES} voices, limit {MAX_VOICES}")],
                )
            voice = await self._catalogue.get(name, self._subject)
            speaking = ready(self._catalogue, voice)
            self._refs[name] = await self._stack.enter_async_context(speaking)
        return self._refs[name]
