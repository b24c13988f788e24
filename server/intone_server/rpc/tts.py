"""TextToSpeechService."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from intone.v1 import tts_pb2, tts_pb2_grpc
from intone_server.audio.encoding import COMPRESSED, load_codecs
from intone_server.errors import IntoneError
from intone_server.rpc import methods, requests, responses
from intone_server.rpc.calls import Context, current_call
from intone_server.rpc.dialogues import ScriptReader
from intone_server.rpc.faults import Faults
from intone_server.rpc.files import check_length, collect
from intone_server.rpc.inputs import STOP_WRITING_SECONDS, Inputs, let_finish_writing
from intone_server.rpc.runtime import Service
from intone_server.rpc.scheduling import check_done, check_wait, read_priority
from intone_server.rpc.sending import send
from intone_server.rpc.sessions import Sessions
from intone_server.rpc.stream_voices import StreamVoices, ready
from intone_server.rpc.texts import whole_text
from intone_server.scheduling.admission import Permit
from intone_server.synthesis.dialogue import DialogueSession
from intone_server.synthesis.manuscript import load_what_is_slow
from intone_server.synthesis.planning import plan
from intone_server.synthesis.script import plan_script
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.text_session import TextSession
from intone_server.voices.voice import Voice


class TextToSpeechServicer(tts_pb2_grpc.TextToSpeechServiceServicer):
    """Streams of speech. `drain` and `end_all` are for shutdown."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._sessions = Sessions(service.admission, service.metrics)
        self._inputs = Inputs(service, self._sessions)

    @property
    def buffered_seconds(self) -> float:
        """Audio that was made and waits for its client."""
        return self._sessions.buffered_seconds

    def drain(self, timeout_seconds: float) -> None:
        """Let open streams finish what they have, for so long, and begin nothing new."""
        self._inputs.stop_waiting()
        self._sessions.drain(timeout_seconds)

    def end_all(self, error: IntoneError) -> None:
        """End every stream now."""
        self._sessions.end_all(error)

    # Coroutines that write, not generators: a generator would not hear of a lost client while it
    # waits for the model. The stubs know generators only.
    async def Synthesize(  # type: ignore[override]
        self, request_iterator: AsyncIterator[tts_pb2.SynthesizeRequest], context: Context
    ) -> None:
        async with AsyncExitStack() as stack:
            try:
                self._service.admission.check_available()
                first = await self._inputs.first(request_iterator)
                message = first.config if first and first.WhichOneof("input") == "config" else None
                config, voice = await self._read_config(
                    message or tts_pb2.SpeechConfig(), methods.SYNTHESIZE
                )
                permit = stack.enter_context(
                    self._service.admission.admit(stream=True, priority=config.priority)
                )
                check_wait(self._service.scheduler, config, "")
                voices = await stack.enter_async_context(
                    StreamVoices(self._service.loaded().catalogue, current_call().subject)
                )
                session = await stack.enter_async_context(self._open(config, voice, permit))
            except IntoneError:
                await let_finish_writing(request_iterator)
                raise
            feeding = asyncio.create_task(
                self._inputs.feed(session, None if message else first, request_iterator, voices)
            )
            try:
                await send(session, self._service, context, tts_pb2.SynthesizeResponse)
            except IntoneError:
                # Feeding goes on for a moment, for the reason of `let_finish_writing`.
                await asyncio.wait([feeding], timeout=STOP_WRITING_SECONDS)
                raise
            finally:
                feeding.cancel()
                await asyncio.wait([feeding])

    async def SynthesizeText(  # type: ignore[override]
        self, request: tts_pb2.SynthesizeTextRequest, context: Context
    ) -> None:
        config, voice = await self._read_config(
            request.config, methods.SYNTHESIZE_TEXT, text=request.text
        )
        text = await whole_text(request.text, config.text)
        with self._service.admission.admit(stream=False, priority=config.priority) as permit:
            check_wait(
                self._service.scheduler,
                config,
                request.text,
                deadline_seconds=context.time_remaining(),
            )
            self._sessions.take_text(len(request.text))
            async with self._open(config, voice, permit) as session:
                session.speak_whole(text)
                await send(session, self._service, context, tts_pb2.SynthesizeTextResponse)

    async def SynthesizeDialogue(  # type: ignore[override]
        self, request: tts_pb2.SynthesizeDialogueRequest, context: Context
    ) -> None:
        limits = self._service.request_limits.dialogue
        reader = ScriptReader(request, self._service, current_call().client)
        priority = read_priority(request.config.scheduling, methods.SYNTHESIZE_DIALOGUE)
        with self._service.admission.admit(stream=False, priority=priority) as permit:
            async with AsyncExitStack() as stack:
                script = await reader.script(stack)
                check_wait(
                    self._service.scheduler,
                    script.config,
                    _first_line(request),
                    deadline_seconds=context.time_remaining(),
                )
                self._sessions.take_text(_characters(request))
                await _load_what_is_needed(script.config)
                notices: list[str] = []
                pieces = await plan_script(
                    script, notices.append, max_reused_seconds=limits.held_seconds
                )
                session = DialogueSession(
                    script,
                    pieces,
                    notices,
                    max_buffer_seconds=limits.buffer_seconds,
                    limits=self._service.session_limits,
                    scheduler=self._service.scheduler,
                    permit=permit,
                    watch=current_call().watch,
                )
                request.Clear()  # it may be large
                with self._sessions.taking_part(session):
                    await send(session, self._service, context, tts_pb2.SynthesizeDialogueResponse)

    async def SynthesizeFile(
        self, request: tts_pb2.SynthesizeFileRequest, context: Context
    ) -> tts_pb2.SynthesizeFileResponse:
        config, voice = await self._read_config(
            request.config, methods.SYNTHESIZE_FILE, text=request.text
        )
        check_length(request.text, config)
        config = replace(config, segment_events=True, retry_no_end=True)
        text = await whole_text(request.text, config.text)
        with self._service.admission.admit(stream=False, priority=config.priority) as permit:
            scheduler, deadline = self._service.scheduler, context.time_remaining()
            check_wait(scheduler, config, request.text, deadline_seconds=deadline)
            check_done(scheduler, config, request.text, deadline)
            self._sessions.take_text(len(request.text))
            async with self._open(config, voice, permit) as session:
                session.speak_whole(text)
                audio, finished = await collect(session)
        return tts_pb2.SynthesizeFileResponse(
            audio=audio,
            format=responses.audio_format(config.encoding, config.sample_rate_hertz),
            segments=map(responses.segment_finished, finished),
            stats=responses.stats(session.stats),
        )

    async def PlanText(
        self, request: tts_pb2.PlanTextRequest, context: Context
    ) -> tts_pb2.PlanTextResponse:
        config, _ = await self._read_config(request.config, methods.PLAN_TEXT, text=request.text)
        segments = []
        text = await whole_text(request.text, config.text)
        for segment in plan(text, config):
            segments.append(segment)
            await asyncio.sleep(0)  # others first: a long text takes a tenth of a second
        forecast = self._service.scheduler.outlook.forecast(
            priority=config.priority,
            client=config.client,
            estimated_seconds=next((s.seconds for s in segments if s.spoken_text), 0.0),
        )
        return responses.plan(request.text, segments, forecast.wait_seconds)

    async def _read_config(
        self,
        config: tts_pb2.SpeechConfig,
        method: methods.Method,
        *,
        text: str | None = None,
    ) -> tuple[SpeechConfig, Voice]:
        """A valid config, and its voice, which exists; `text` is the whole text, if it is known."""
        runtime = self._service.loaded()
        faults = Faults()
        if text is not None:
            limit = self._service.request_limits.max_text_characters
            requests.check_text(text, limit, faults)
        read = runtime.config_reader.read(config, method, faults, client=current_call().client)
        await _load_what_is_needed(read)
        voice = await runtime.catalogue.get(read.voice, current_call().subject)
        return read, voice

    @asynccontextmanager
    async def _open(
        self, config: SpeechConfig, voice: Voice, permit: Permit
    ) -> AsyncIterator[TextSession]:
        """A session whose voice is ready."""
        async with ready(self._service.loaded().catalogue, voice) as ref:
            session = TextSession(
                replace(config, voice_ref=ref),
                limits=self._service.session_limits,
                scheduler=self._service.scheduler,
                permit=permit,
                watch=current_call().watch,
            )
            with self._sessions.taking_part(session):
                yield session


def _first_line(request: tts_pb2.SynthesizeDialogueRequest) -> str:
    """The first text that is spoken, if there is any."""
    return next((item.speech.text for item in request.items if item.HasField("speech")), "")


def _characters(request: tts_pb2.SynthesizeDialogueRequest) -> int:
    """Code points of all text that is to be spoken."""
    return sum(len(item.speech.text) for item in request.items)


async def _load_what_is_needed(config: SpeechConfig) -> None:
    """Code that is slow to load, and that few streams need."""
    if config.encoding in COMPRESSED:
        await asyncio.to_thread(load_codecs)
    if config.text.normalize or config.text.replacements:
        await asyncio.to_thread(load_what_is_slow, config.text, config.language)
