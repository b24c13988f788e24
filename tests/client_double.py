"""A real gRPC server that says what a test has scripted, and nothing else."""

import asyncio
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from client_double_voices import VoicesDouble
from intone.v1 import (
    status_pb2,
    status_pb2_grpc,
    tts_pb2,
    tts_pb2_grpc,
    voices_pb2_grpc,
)

RATE = 24000
SAMPLES_PER_CHARACTER = 240


def spoken(text: str) -> bytes:
    """The PCM that the double makes of `text`: 10 ms for each character, told apart by value."""
    return b"".join(struct.pack("<h", ord(letter)) * SAMPLES_PER_CHARACTER for letter in text)


class Call:
    """The server's side of one call: numbered events out, refusals."""

    def __init__(self, context: Any, response: Callable[..., Any], request_id: str) -> None:
        self.context = context
        self.request_id = request_id
        self._response = response
        self._sequence = 0
        self._offset = 0

    @property
    def offset(self) -> int:
        """Where the next sample lies on the timeline."""
        return self._offset

    async def read(self) -> tts_pb2.SynthesizeRequest | None:
        request = await self.context.read()
        return None if request is grpc.aio.EOF else request

    async def read_all(self) -> None:
        """Read to the end of input: a call that ends well before it ends with its text unsaid."""
        while await self.read() is not None:
            pass

    async def send(self, *, epoch: int = 0, **event: Any) -> None:
        self._sequence += 1
        message = tts_pb2.SpeechEvent(sequence=self._sequence, epoch=epoch, **event)
        await self.context.write(self._response(event=message))

    async def started(self, **limits: Any) -> None:
        started = tts_pb2.Started(
            request_id=self.request_id,
            format=tts_pb2.AudioFormat(encoding="AUDIO_ENCODING_PCM_S16LE", sample_rate_hertz=RATE),
            limits=tts_pb2.Limits(**limits),
        )
        await self.send(started=started)

    async def audio(self, data: bytes, *, epoch: int = 0, segment: int = 0) -> None:
        count = len(data) // 2
        chunk = tts_pb2.AudioChunk(
            data=data, segment=segment, sample_offset=self._offset, sample_count=count
        )
        self._offset += count
        await self.send(epoch=epoch, audio=chunk)

    async def segment(self, index: int, outcome: str, **error: Any) -> None:
        ended = tts_pb2.SegmentFinished(segment=index, outcome=f"SEGMENT_OUTCOME_{outcome}")
        if error:
            ended.error.CopyFrom(tts_pb2.SegmentError(**error))
        await self.send(segment_finished=ended)

    async def finished(self, reason: str = "END_OF_INPUT") -> None:
        stats = tts_pb2.Stats(audio_seconds=self._offset / RATE, speed=5.6)
        await self.send(finished=tts_pb2.Finished(reason=f"FINISH_REASON_{reason}", stats=stats))

    async def fail(
        self,
        code: grpc.StatusCode,
        reason: str,
        message: str,
        *,
        retry_seconds: float | None = None,
        violations: Iterable[tuple[str, str]] = (),
    ) -> None:
        """End the call like the server: details and pushback in the trailers."""
        details = [ErrorInfo(reason=reason, domain="intone")]
        trailers: list[tuple[str, str | bytes]] = [("x-request-id", self.request_id)]
        if retry_seconds is not None:
            delay = Duration(nanos=int(retry_seconds * 1e9) % 10**9, seconds=int(retry_seconds))
            details.append(RetryInfo(retry_delay=delay))
            trailers.append(("grpc-retry-pushback-ms", str(int(retry_seconds * 1000))))
        broken = [BadRequest.FieldViolation(field=f, description=d) for f, d in violations]
        if broken:
            details.append(BadRequest(field_violations=broken))
        packed = []
        for detail in details:
            packed.append(AnyMessage())
            packed[-1].Pack(detail)
        status = Status(code=code.value[0], message=message, details=packed)
        trailers.append(("grpc-status-details-bin", status.SerializeToString()))
        await self.context.abort(code, message, tuple(trailers))


Script = Callable[[Call], Awaitable[None]]


async def speak(call: Call) -> None:
    """The default script: each text piece is spoken at once."""
    await call.started()
    epoch = 0
    while (request := await call.read()) is not None:
        match request.WhichOneof("input"):
            case "text" if request.text:
                await call.audio(spoken(request.text), epoch=epoch)
            case "flush":
                await call.send(epoch=epoch, flushed=tts_pb2.Flushed(id=request.flush.id))
            case "clear":
                epoch += 1
                cleared = tts_pb2.Cleared(id=request.clear.id, epoch=epoch)
                await call.send(epoch=epoch, cleared=cleared)
            case "pause":
                silence = bytes(
                    2 * int(request.pause.duration.ToTimedelta().total_seconds() * RATE)
                )
                await call.audio(silence, epoch=epoch)
    await call.finished()


class Double(
    tts_pb2_grpc.TextToSpeechServiceServicer,
    VoicesDouble,
    status_pb2_grpc.StatusServiceServicer,
):
    """What the server does is `script`, for every method that speaks."""

    def __init__(self) -> None:
        super().__init__()
        self.address = ""
        self.script: Script = speak
        #: Every request of every call, in order of arrival.
        self.requests: list[Any] = []
        #: Calls that have arrived, and that have ended.
        self.calls = 0
        self.ended = 0
        self.features: list[str] = []
        self.limits = tts_pb2.Limits(max_text_characters=7)

    async def Synthesize(self, request_iterator: Any, context: Any) -> None:
        read = context.read

        async def reading() -> Any:
            request = await read()
            if request is not grpc.aio.EOF:
                self.requests.append(request)
            return request

        context = _Recorded(context, reading)
        await self._run(Call(context, tts_pb2.SynthesizeResponse, self._request_id(context)))

    async def SynthesizeText(self, request: Any, context: Any) -> None:
        self.requests.append(request)
        pieces = iter([tts_pb2.SynthesizeRequest(text=request.text), grpc.aio.EOF])

        async def reading() -> Any:
            return next(pieces)

        context = _Recorded(context, reading)
        await self._run(Call(context, tts_pb2.SynthesizeTextResponse, self._request_id(context)))

    async def SynthesizeDialogue(self, request: Any, context: Any) -> None:
        self.requests.append(request)
        response = tts_pb2.SynthesizeDialogueResponse
        await self._run(Call(context, response, self._request_id(context)))

    async def _run(self, call: Call) -> None:
        self.calls += 1
        try:
            await self.script(call)
        finally:
            self.ended += 1

    def _request_id(self, context: Any) -> str:
        return dict(context.invocation_metadata()).get("x-request-id", "made-by-server")

    async def SynthesizeFile(self, request: Any, context: Any) -> Any:
        if len(request.text) > 100:
            await Call(context, None, "r-1").fail(
                grpc.StatusCode.OUT_OF_RANGE, "FILE_TOO_LONG", "too long for one file"
            )
        return tts_pb2.SynthesizeFileResponse(audio=b"RIFF")

    async def PlanText(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        segment = tts_pb2.PlannedSegment(
            span=tts_pb2.TextSpan(start=0, end=len(request.text)),
            text=request.text,
            spoken_text=request.text.replace("*", ""),
            reason="COMMIT_REASON_SENTENCE",
            estimated_audio=Duration(seconds=1, nanos=500_000_000),
        )
        return tts_pb2.PlanTextResponse(segments=[segment], estimated_audio=Duration(seconds=2))

    async def GetServerInfo(self, request: Any, context: Any) -> Any:
        return status_pb2.GetServerInfoResponse(
            server_version="0.1.0",
            engine="builtin",
            features=self.features,
            limits=self.limits,
        )

    async def GetCapacity(self, request: Any, context: Any) -> Any:
        return status_pb2.GetCapacityResponse(capacity=status_pb2.Capacity(replicas_total=3))

    async def WatchCapacity(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    async def until(self, condition: Callable[[], bool], seconds: float = 5) -> None:
        """Wait until `condition` holds, and fail if it does not in time."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)


class _Recorded:
    """A servicer context with another `read`."""

    def __init__(self, context: Any, read: Callable[[], Awaitable[Any]]) -> None:
        self._context = context
        self.read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


@asynccontextmanager
async def serving(address: str = "localhost:0") -> AsyncIterator[Double]:
    """A double that listens on `address`."""
    double = Double()
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    tts_pb2_grpc.add_TextToSpeechServiceServicer_to_server(double, server)
    voices_pb2_grpc.add_VoiceServiceServicer_to_server(double, server)
    status_pb2_grpc.add_StatusServiceServicer_to_server(double, server)
    port = server.add_insecure_port(address)
    double.address = address if address.startswith("unix:") else f"localhost:{port}"
    await server.start()
    try:
        yield double
    finally:
        await server.stop(0)


@pytest.fixture(name="double")
async def double_fixture() -> AsyncIterator[Double]:
    """A double, and a check that the test leaves no task and no thread behind."""
    threads = set(threading.enumerate())
    tasks = asyncio.all_tasks()
    async with serving() as started:
        yield started
    # Threads of `asyncio.to_thread` are the test's own, and would count as left behind.
    await asyncio.get_running_loop().shutdown_default_executor()
    async with asyncio.timeout(5):
        while asyncio.all_tasks() - tasks - {asyncio.current_task()}:
            await asyncio.sleep(0.01)
    ours = {each for each in threading.enumerate() if each.name.startswith("intone")}
    assert not ours - threads
