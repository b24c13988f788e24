"""The voices of the double: kept in memory, made of any bytes."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from intone.v1 import voices_pb2, voices_pb2_grpc

REPORT = voices_pb2.PromptReport(
    seconds_used=12.34,
    level_dbfs=-21.26,
    clipped_ratio=0.0012,
    speech_ratio=0.86,
    warnings=["there is music"],
)

VoiceScript = Callable[[Any], Awaitable[None]]


class VoicesDouble(voices_pb2_grpc.VoiceServiceServicer):
    """Takes a recording for a voice state as it is."""

    def __init__(self) -> None:
        self.voices = [voices_pb2.Voice(name=name, language="en") for name in "abcde"]
        self.states: dict[str, bytes] = {}
        #: What the next calls that change a voice do first, with their context.
        self.voice_scripts: list[VoiceScript] = []
        #: Every request that changes or reads one voice, in order of arrival.
        self.voice_requests: list[Any] = []

    async def ListVoices(self, request: Any, context: Any) -> Any:
        start = int(request.page_token or 0)
        page = self.voices[start : start + 2]
        more = start + 2 < len(self.voices)
        return voices_pb2.ListVoicesResponse(
            voices=page, next_page_token=str(start + 2) if more else ""
        )

    async def GetVoice(self, request: Any, context: Any) -> Any:
        self.voice_requests.append(request)
        return voices_pb2.GetVoiceResponse(voice=await self._find(request.name, context))

    async def CreateVoice(self, request: Any, context: Any) -> Any:
        await self._begin(request, context)
        if any(voice.name == request.name for voice in self.voices):
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, f"{request.name} exists")
        state = request.prompt or request.state
        voice = voices_pb2.Voice(
            name=request.name,
            language=request.language or "en",
            origin="VOICE_ORIGIN_CREATED" if request.prompt else "VOICE_ORIGIN_IMPORTED",
            digest=hashlib.sha256(state).hexdigest(),
            labels=request.labels,
            report=REPORT if request.prompt else None,
            shared=request.shared,
            owned=True,
        )
        if not request.validate_only:
            voice.create_time.FromJsonString("2026-01-02T03:04:05Z")
            self.voices.append(voice)
            self.states[voice.name] = state
        return voices_pb2.CreateVoiceResponse(voice=voice)

    async def ExportVoice(self, request: Any, context: Any) -> Any:
        self.voice_requests.append(request)
        voice = await self._find(request.name, context)
        return voices_pb2.ExportVoiceResponse(state=self.states[voice.name], voice=voice)

    async def DeleteVoice(self, request: Any, context: Any) -> Any:
        await self._begin(request, context)
        left = [voice for voice in self.voices if voice.name != request.name]
        if len(left) == len(self.voices) and not request.allow_missing:
            await self._find(request.name, context)
        self.voices = left
        return voices_pb2.DeleteVoiceResponse()

    async def _begin(self, request: Any, context: Any) -> None:
        self.voice_requests.append(request)
        if self.voice_scripts:
            await self.voice_scripts.pop(0)(context)

    async def _find(self, name: str, context: Any) -> Any:
        found = [voice for voice in self.voices if voice.name == name]
        if not found:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"there is no voice {name}")
        return found[0]
