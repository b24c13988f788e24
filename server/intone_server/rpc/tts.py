"""TextToSpeechService."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, replace
from typing import Any

from intone.v1 import tts_pb2, tts_pb2_grpc
from intone_server import __version__
from intone_server.audio.encoding import (
    BYTES_PER_SAMPLE,
    WAV_HEADER_BYTES,
    Encoding,
    wav_file,
)
from intone_server.errors import (
    FileTooLong,
    IntoneError,
    InvalidRequest,
    Overloaded,
    Reason,
    SynthesisFailed,
    TimedOut,
    Violation,
)
from intone_server.rpc import requests, responses
from intone_server.rpc.calls import Context, current_call
from intone_server.rpc.inputs import STOP_WRITING_SECONDS, Inputs, let_finish_writing
from intone_server.rpc.runtime import MAX_FILE_BYTES, Service
from intone_server.scheduling.admission import Permit
from intone_server.synthesis import events
from intone_server.synthesis.segmenter import plan
from intone_server.synthesis.session import Session
from intone_server.synthesis.speech import SpeechConfig, estimated_seconds

STREAMED = (Encoding.PCM_S16LE, Encoding.PCM_F32LE)
FILES = (Encoding.WAV, Encoding.PCM_S16LE, Encoding.PCM_F32LE)
# Nobody speaks so much faster than estimated; a text that is this much over is refused unspoken.
SURELY_TOO_LONG = 2.0


class TextToSpeechServicer(tts_pb2_grpc.TextToSpeechServiceServicer):
    """Streams of speech. `drain` and `end_all` are for shutdown."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._inputs = Inputs(service)
        self._sessions: set[Session] = set()
        self._drain_ends_at = 0.0

    def drain(self, timeout_seconds: float) -> None:
        """Let open streams finish what they have, for so long, and begin nothing new."""
        self._drain_ends_at = time.monotonic() + timeout_seconds
        self._inputs.stop_waiting()
        for session in list(self._sessions):
            session.drain(timeout_seconds)

    def end_all(self, error: IntoneError) -> None:
        """End every stream now."""
        for session in list(self._sessions):
            session.fail(error)

    # Coroutines that write, not generators: a generator would not hear of a lost client while it
    # waits for the model. The stubs know generators only.
    async def Synthesize(  # type: ignore[override]
        self, request_iterator: AsyncIterator[tts_pb2.SynthesizeRequest], context: Context
    ) -> None:
        try:
            self._service.admission.check_available()
            first = await self._inputs.first(request_iterator)
            message = first.config if first and first.WhichOneof("input") == "config" else None
            config = self._read_config(message or tts_pb2.SpeechConfig(), STREAMED)
            permit = self._service.admission.admit(stream=True)
        except IntoneError:
            await let_finish_writing(request_iterator)
            raise
        with permit, await self._open(config, permit) as session:
            feeding = asyncio.create_task(
                self._inputs.feed(session, None if message else first, request_iterator)
            )
            try:
                await self._send(session, context, tts_pb2.SynthesizeResponse)
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
        config = self._read_config(request.config, STREAMED, text=request.text)
        with (
            self._service.admission.admit(stream=False) as permit,
            await self._open(config, permit) as session,
        ):
            session.push_text(request.text)
            session.end_input()
            await self._send(session, context, tts_pb2.SynthesizeTextResponse)

    async def SynthesizeFile(
        self, request: tts_pb2.SynthesizeFileRequest, context: Context
    ) -> tts_pb2.SynthesizeFileResponse:
        info = self._service.loaded().info
        config = self._read_config(request.config, FILES, default=Encoding.WAV, text=request.text)
        limit = MAX_FILE_BYTES - WAV_HEADER_BYTES
        most_seconds = limit / BYTES_PER_SAMPLE[config.encoding] / info.sample_rate_hertz
        if estimated_seconds(request.text) > SURELY_TOO_LONG * most_seconds:
            raise _file_too_long(most_seconds)
        audio = bytearray()
        finished: list[events.SegmentFinished] = []
        with (
            self._service.admission.admit(stream=False) as permit,
            await self._open(replace(config, segment_events=True), permit) as session,
        ):
            session.push_text(request.text)
            session.end_input()
            while not isinstance(event := await session.next_event(), events.Finished):
                if isinstance(event, events.AudioChunk):
                    audio += event.data
                    if len(audio) > limit:
                        raise _file_too_long(most_seconds)
                elif isinstance(event, events.SegmentFinished):
                    if event.error is not None:
                        raise event.error  # a file with a hole in it would look whole
                    finished.append(event)
            if event.reason is not events.FinishReason.END_OF_INPUT:
                raise TimedOut(
                    Reason.SEGMENT_TIMEOUT, "the text was not spoken before the session limit"
                )
            if not audio:
                raise InvalidRequest(
                    Reason.BAD_CONFIG, [Violation("text", "has nothing that can be spoken")]
                )
        data = bytes(audio)
        if config.encoding is Encoding.WAV:
            data = wav_file(data, config.sample_rate_hertz)
        return tts_pb2.SynthesizeFileResponse(
            audio=data,
            format=responses.audio_format(config.encoding, config.sample_rate_hertz),
            segments=map(responses.segment_finished, finished),
            stats=responses.stats(session.stats),
        )

    async def PlanText(
        self, request: tts_pb2.PlanTextRequest, context: Context
    ) -> tts_pb2.PlanTextResponse:
        config = self._read_config(request.config, FILES, text=request.text)
        segments = []
        for segment in plan(
            request.text,
            language=config.language,
            mode=config.mode,
            max_characters=config.max_characters,
            first_max_characters=config.first_max_characters,
        ):
            segments.append(segment)
            await asyncio.sleep(0)  # others first: a long text takes a tenth of a second
        return responses.plan(segments, self._service.scheduler.load().estimated_wait_seconds)

    def _read_config(
        self,
        config: tts_pb2.SpeechConfig,
        allowed: tuple[Encoding, ...],
        default: Encoding = Encoding.PCM_S16LE,
        *,
        text: str | None = None,
    ) -> SpeechConfig:
        """A valid config for a voice that exists; `text` is the whole text, if it is known."""
        runtime = self._service.loaded()
        faults = requests.Faults()
        if text is not None:
            limit = self._service.request_limits.max_text_characters
            requests.check_text(text, limit, faults)
        read = runtime.config_reader.read(config, default, allowed, faults)
        runtime.catalogue.get(read.voice)
        return read

    async def _open(self, config: SpeechConfig, permit: Permit) -> AbstractContextManager[Session]:
        """A session whose voice is ready to speak."""
        await self._service.loaded().catalogue.make_ready(config.voice)
        return self._session(config, permit)

    @contextmanager
    def _session(self, config: SpeechConfig, permit: Permit) -> Iterator[Session]:
        """A session that takes part in shutdown and leaves its totals in the log line."""
        with Session(
            config,
            limits=self._service.session_limits,
            scheduler=self._service.scheduler,
            permit=permit,
        ) as session:
            self._sessions.add(session)
            if self._service.admission.draining:  # its voice was loading when that began
                session.drain(max(0.0, self._drain_ends_at - time.monotonic()))
            try:
                yield session
            finally:
                self._sessions.discard(session)
                if isinstance(session.first_failure, SynthesisFailed):
                    current_call().fields["first_failure"] = session.first_failure.cause
                totals = {k: v for k, v in asdict(session.stats).items() if v is not None}
                current_call().fields |= {
                    k: round(v, 3) if isinstance(v, float) else v for k, v in totals.items()
                }

    async def _send(self, session: Session, context: Context, wrap: Callable[..., Any]) -> None:
        """Write the session's events until it has finished. Raises what ends it instead."""
        sequence = 1
        await context.write(wrap(event=self._started(session.config)))
        try:
            async with asyncio.timeout(None) as patience:
                loop = asyncio.get_running_loop()

                def give_up() -> None:
                    with suppress(RuntimeError):  # it is over already
                        patience.reschedule(loop.time())

                session.on_slow_client = give_up
                event: events.Event | None = None
                while not isinstance(event, events.Finished):
                    event = await session.next_event()
                    sequence += 1
                    message = responses.speech_event(sequence, session.epoch, event)
                    await context.write(wrap(event=message))
        except TimeoutError:
            seconds = self._service.session_limits.slow_client_timeout_seconds
            raise Overloaded(
                Reason.SLOW_CLIENT,
                f"nothing was read for {seconds:g} s",
                retry_after=self._service.scheduler.retry_after(),
            ) from None
        session.check_spoken()

    def _started(self, config: SpeechConfig) -> tts_pb2.SpeechEvent:
        info = self._service.loaded().info
        return tts_pb2.SpeechEvent(
            sequence=1,
            started=tts_pb2.Started(
                request_id=current_call().request_id,
                format=responses.audio_format(config.encoding, config.sample_rate_hertz),
                effective_config=responses.effective_config(config, info),
                limits=self._service.limits(),
                model=info.model,
                server_version=__version__,
            ),
        )


def _file_too_long(most_seconds: float) -> FileTooLong:
    return FileTooLong(
        Reason.FILE_TOO_LONG,
        f"the audio is longer than the {most_seconds:.0f} s that fit one answer; "
        "use SynthesizeText, which streams",
    )
