"""The client of one server."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import grpc

from intone.v1 import (
    status_pb2,
    status_pb2_grpc,
    tts_pb2,
    tts_pb2_grpc,
    voices_pb2,
    voices_pb2_grpc,
)

from ._connection import DEFAULT_ADDRESS, Connection
from ._dialogues.call import Dialogue
from ._dialogues.spoken import OnEvent
from ._scripts.script import Script, request_of
from ._speech import Speech
from ._stream import SpeechStream


class Client:
    """Speaks through the server at `address`; an async context manager.

    `address` is HOST:PORT, HOST (port 50051) or `unix:PATH`. `credentials` are those of `tls()`;
    None: plaintext. `token` is sent with every call, over plaintext too. Connects on first use,
    in the event loop that is running then, and belongs to that loop. `retry` False is
    for measuring: a call that speaks is not repeated when the server refuses it, and the connection
    is not shared with other clients of this process.

    In every call, `timeout` is its deadline in seconds (None: no limit of the client's own),
    `request_id` goes to the server's log as `x-request-id` (None: the server makes one), and
    `config` None means all defaults. All of them raise `IntoneError`.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
        retry: bool = True,
    ) -> None:
        self._connection = Connection(address, credentials, token, retry=retry)
        self._metadata = self._connection.metadata
        #: With the port that is used.
        self.address = self._connection.address

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection and cancel what still runs on it."""
        await self._connection.aclose()

    def stream(
        self,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> SpeechStream:
        """Text pieces in, events with audio out, at the same time: `async with` it."""
        call = tts_pb2_grpc.TextToSpeechServiceStub(self._connection.channel).Synthesize(
            timeout=timeout, metadata=self._metadata(request_id)
        )
        return SpeechStream(call, self.address, config or tts_pb2.SpeechConfig())

    def synthesize_text(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Speech:
        """A whole text in, the same events out. Iterate it, or its `audio()`."""
        call = tts_pb2_grpc.TextToSpeechServiceStub(self._connection.channel).SynthesizeText(
            tts_pb2.SynthesizeTextRequest(text=text, config=config),
            timeout=timeout,
            metadata=self._metadata(request_id),
        )
        return Speech(call, self.address)

    def dialogue(
        self,
        script: Script | tts_pb2.SynthesizeDialogueRequest,
        *,
        on_event: OnEvent | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Dialogue:
        """A whole script in, its items out: iterate it, or take all of it by `render()`.

        `on_event` is called with every `SpeechEvent` as it is taken from the call, those of the
        plan and audio among them; what it raises is raised by the iteration. Raises ValueError
        for a script that cannot be sent. A request above 256 KiB, for example with audio of your
        own, is not repeated when the server refuses it for now: gRPC keeps no copy of it.
        """
        request = request_of(script)
        call = tts_pb2_grpc.TextToSpeechServiceStub(self._connection.channel).SynthesizeDialogue(
            request, timeout=timeout, metadata=self._metadata(request_id)
        )
        return Dialogue(call, self.address, request, on_event)

    async def synthesize_file(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> tts_pb2.SynthesizeFileResponse:
        """A whole text in, one complete file of up to 3.9 MB out, in `audio`.

        WAV by default; `speech_config(encoding="mp3")` and the others that a server offers are
        whole files too. `format` of the answer says what it is.
        """
        return await self._connection.answer(
            tts_pb2_grpc.TextToSpeechServiceStub(self._connection.channel).SynthesizeFile(
                tts_pb2.SynthesizeFileRequest(text=text, config=config),
                timeout=timeout,
                metadata=self._metadata(request_id),
            )
        )

    async def plan(
        self,
        text: str,
        config: tts_pb2.SpeechConfig | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> tts_pb2.PlanTextResponse:
        """What would be spoken: segments, estimated audio and wait. Nothing is synthesized."""
        return await self._connection.answer(
            tts_pb2_grpc.TextToSpeechServiceStub(self._connection.channel).PlanText(
                tts_pb2.PlanTextRequest(text=text, config=config),
                timeout=timeout,
                metadata=self._metadata(request_id),
            )
        )

    async def voices(
        self, *, language: str = "", timeout: float | None = None
    ) -> list[voices_pb2.Voice]:
        """All voices, or those of one language, ordered by name. `timeout` is for each page."""
        stub = voices_pb2_grpc.VoiceServiceStub(self._connection.channel)
        voices: list[voices_pb2.Voice] = []
        token = ""
        while True:
            request = voices_pb2.ListVoicesRequest(page_token=token, language=language)
            page = await self._connection.answer(
                stub.ListVoices(request, timeout=timeout, metadata=self._metadata())
            )
            voices.extend(page.voices)
            token = page.next_page_token
            if not token:
                return voices

    async def get_voice(self, name: str, *, timeout: float | None = None) -> voices_pb2.Voice:
        """One voice. Raises NotFoundError if there is none of that name."""
        stub = voices_pb2_grpc.VoiceServiceStub(self._connection.channel)
        request = voices_pb2.GetVoiceRequest(name=name)
        return (
            await self._connection.answer(
                stub.GetVoice(request, timeout=timeout, metadata=self._metadata())
            )
        ).voice

    async def create_voice(
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
        """A new voice from the bytes of a recording (`prompt`) or of an exported voice (`state`).

        Its `report` says what was heard in a recording. With `shared` all clients can speak with
        it, otherwise you alone. `validate_only` does everything but keep it. Raises ValueError
        unless exactly one source is given, AlreadyExistsError if the name is taken,
        InvalidArgumentError (BAD_AUDIO, BAD_STATE) that says what was found.

        A call whose answer is lost (DeadlineExceededError, or UnavailableError without a `reason`)
        may have made the voice. It is not repeated; `get_voice` tells.
        """
        if (prompt is None) == (state is None):
            raise ValueError("give either prompt or state")
        stub = voices_pb2_grpc.VoiceServiceStub(self._connection.channel)
        request = voices_pb2.CreateVoiceRequest(
            name=name,
            prompt=prompt,
            state=state,
            language=language,
            labels=labels,
            consent_statement=consent_statement,
            shared=shared,
            validate_only=validate_only,
        )
        answer = await self._connection.change(
            lambda left: stub.CreateVoice(request, timeout=left, metadata=self._metadata()),
            timeout,
        )
        return answer.voice

    async def export_voice(
        self, name: str, *, timeout: float | None = None
    ) -> voices_pb2.ExportVoiceResponse:
        """The voice as a safetensors file in `state`, for `create_voice` elsewhere."""
        stub = voices_pb2_grpc.VoiceServiceStub(self._connection.channel)
        request = voices_pb2.ExportVoiceRequest(name=name)
        return await self._connection.answer(
            stub.ExportVoice(request, timeout=timeout, metadata=self._metadata())
        )

    async def delete_voice(
        self, name: str, *, allow_missing: bool = False, timeout: float | None = None
    ) -> None:
        """Delete a voice that was created. Raises FailedPreconditionError while it speaks.

        Without `allow_missing` NotFoundError if there is none of that name.
        """
        stub = voices_pb2_grpc.VoiceServiceStub(self._connection.channel)
        request = voices_pb2.DeleteVoiceRequest(name=name, allow_missing=allow_missing)
        await self._connection.change(
            lambda left: stub.DeleteVoice(request, timeout=left, metadata=self._metadata()),
            timeout,
        )

    async def info(self, *, timeout: float | None = None) -> status_pb2.GetServerInfoResponse:
        """What the server is: versions, model, features and limits."""
        stub = status_pb2_grpc.StatusServiceStub(self._connection.channel)
        return await self._connection.answer(
            stub.GetServerInfo(
                status_pb2.GetServerInfoRequest(),
                timeout=timeout,
                metadata=self._metadata(),
            )
        )

    async def capacity(self, *, timeout: float | None = None) -> status_pb2.Capacity:
        """How busy the server is now."""
        stub = status_pb2_grpc.StatusServiceStub(self._connection.channel)
        answer = await self._connection.answer(
            stub.GetCapacity(
                status_pb2.GetCapacityRequest(),
                timeout=timeout,
                metadata=self._metadata(),
            )
        )
        return answer.capacity
