"""The client without asyncio: one event loop in one thread behind every `BlockingClient`."""

import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import grpc

from intone.v1 import status_pb2, tts_pb2, voices_pb2

from ._blocking_speech import BlockingSpeech, BlockingStream
from ._client import Client
from ._connection import DEFAULT_ADDRESS
from ._dialogues.blocking import BlockingDialogue
from ._dialogues.call import Dialogue
from ._dialogues.spoken import OnEvent
from ._loop import LoopThread
from ._scripts.script import Script
from ._speech import Speech
from ._stream import SpeechStream


class BlockingClient:
    """`Client` for code without asyncio; a context manager. Methods are those of `Client`."""

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
    ) -> None:
        self._client = Client(address, credentials=credentials, token=token)
        #: With the port that is used.
        self.address = self._client.address
        self._thread = LoopThread()
        self._stop = weakref.finalize(self, self._thread.stop)

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return not self._stop.alive

    def close(self) -> None:
        """Cancel what still runs, close the connection, end the thread."""
        if not self.closed:
            self._thread.run(self._client.aclose())
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def stream(
        self,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> BlockingStream:
        """Text pieces in, events with audio out, at the same time: `with` it."""

        async def start() -> SpeechStream:
            return self._client.stream(config, timeout=timeout, request_id=request_id)

        return BlockingStream(self, self._thread.run(start()))

    def synthesize_text(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> BlockingSpeech:
        """A whole text in, the same events out."""

        async def start() -> Speech:
            return self._client.synthesize_text(
                text, config, timeout=timeout, request_id=request_id
            )

        return BlockingSpeech(self, self._thread.run(start()))

    def dialogue(
        self,
        script: Script | tts_pb2.SynthesizeDialogueRequest,
        *,
        on_event: OnEvent | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> BlockingDialogue:
        """A whole script in, its items out."""

        async def start() -> Dialogue:
            return self._client.dialogue(
                script, on_event=on_event, timeout=timeout, request_id=request_id
            )

        return BlockingDialogue(self, self._thread.run(start()))

    def synthesize_file(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> tts_pb2.SynthesizeFileResponse:
        """A whole text in, one complete file out, in `audio`; WAV by default."""
        return self._thread.run(
            self._client.synthesize_file(text, config, timeout=timeout, request_id=request_id)
        )

    def plan(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> tts_pb2.PlanTextResponse:
        """What would be spoken."""
        return self._thread.run(
            self._client.plan(text, config, timeout=timeout, request_id=request_id)
        )

    def voices(self, *, language: str = "", timeout: float | None = None) -> list[voices_pb2.Voice]:
        """All voices, or those of one language."""
        return self._thread.run(self._client.voices(language=language, timeout=timeout))

    def get_voice(self, name: str, *, timeout: float | None = None) -> voices_pb2.Voice:
        """One voice."""
        return self._thread.run(self._client.get_voice(name, timeout=timeout))

    def create_voice(
        self,
        name: str,
        *,
        prompt: bytes | None = None,
        state: bytes | None = None,
        language: str = "",
        labels: Mapping[str, str] | None = None,
        consent_statement: str = "",
        shared: bool = False,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> voices_pb2.Voice:
        """A new voice from the bytes of a recording or of an exported voice."""
        return self._thread.run(
            self._client.create_voice(
                name,
                prompt=prompt,
                state=state,
                language=language,
                labels=labels,
                consent_statement=consent_statement,
                shared=shared,
                validate_only=validate_only,
                timeout=timeout,
            )
        )

    def export_voice(
        self, name: str, *, timeout: float | None = None
    ) -> voices_pb2.ExportVoiceResponse:
        """The voice as a safetensors file, in `state`."""
        return self._thread.run(self._client.export_voice(name, timeout=timeout))

    def delete_voice(
        self, name: str, *, allow_missing: bool = False, timeout: float | None = None
    ) -> None:
        """Delete a voice that was created."""
        self._thread.run(
            self._client.delete_voice(name, allow_missing=allow_missing, timeout=timeout)
        )

    def info(self, *, timeout: float | None = None) -> status_pb2.GetServerInfoResponse:
        """What the server is."""
        return self._thread.run(self._client.info(timeout=timeout))

    def capacity(self, *, timeout: float | None = None) -> status_pb2.Capacity:
        """How busy the server is now."""
        return self._thread.run(self._client.capacity(timeout=timeout))
