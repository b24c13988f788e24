"""The client's side of a Synthesize stream."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from intone.v1 import tts_pb2
from intone_server.errors import (
    InternalError,
    IntoneError,
    InvalidRequest,
    Overloaded,
    ProtocolViolation,
    Reason,
    TimedOut,
    Violation,
)
from intone_server.rpc import requests
from intone_server.rpc.calls import current_call, log
from intone_server.rpc.runtime import Service
from intone_server.rpc.sessions import Sessions
from intone_server.rpc.stream_voices import StreamVoices
from intone_server.synthesis.text_session import TextSession

# How long a stream that fails goes on reading before its status is sent.
STOP_WRITING_SECONDS = 0.2

# Of a text piece, what is read in one turn of the event loop: text that is all marks takes up to
# 0.05 ms a code point.
TURN_CHARACTERS = 1000

Messages = AsyncIterator[tts_pb2.SynthesizeRequest]


async def let_finish_writing(messages: Messages) -> None:
    """Read on, for nothing, until the client half-closes, but not for long.

    A client that is writing when its call ends sees INTERNAL instead of the true status.
    """
    try:
        async with asyncio.timeout(STOP_WRITING_SECONDS):
            while True:
                try:
                    await anext(messages)
                except StopAsyncIteration:
                    return
                except IntoneError:
                    continue  # another malformed message
    except TimeoutError:
        return


class Inputs:
    """Reads the messages of streams and hands them to sessions."""

    def __init__(self, service: Service, sessions: Sessions) -> None:
        self._service = service
        self._sessions = sessions
        self._waiting: set[asyncio.Timeout] = set()

    def stop_waiting(self) -> None:
        """The server is shutting down: no stream that has not begun will."""
        for waiting in self._waiting:
            with contextlib.suppress(RuntimeError):  # its time is over just now
                waiting.reschedule(asyncio.get_running_loop().time())

    async def first(self, messages: Messages) -> tts_pb2.SynthesizeRequest | None:
        """The first message of a stream; None if it was half-closed without any.

        Raises Overloaded if too many wait for theirs, TimedOut, or Unavailable.
        """
        limit = self._service.admission.stream_limit
        if len(self._waiting) >= limit:
            raise Overloaded(
                Reason.STREAM_LIMIT,
                f"{len(self._waiting)} streams have not sent their first message, limit {limit}",
                retry_after=self._service.scheduler.retry_after(),
            )
        seconds = self._service.request_limits.first_message_timeout_seconds
        waiting = asyncio.timeout(seconds)
        self._waiting.add(waiting)
        try:
            async with waiting:
                return await anext(messages, None)
        except TimeoutError:
            self._service.admission.check_available()  # a drain ends the wait too
            raise TimedOut(
                Reason.FIRST_MESSAGE_TIMEOUT, f"no message came within {seconds:g} s"
            ) from None
        finally:
            self._waiting.discard(waiting)

    async def feed(
        self,
        session: TextSession,
        first: tts_pb2.SynthesizeRequest | None,
        messages: Messages,
        voices: StreamVoices,
    ) -> None:
        """Hand the client's messages to the session until half-close."""
        try:
            if first is not None:
                await self._take(session, first, voices)
            async for message in messages:
                await self._take(session, message, voices)
                await session.wait_for_room()
            session.end_input()
        except IntoneError as error:
            session.fail(error)
            await let_finish_writing(messages)
        except Exception:  # noqa: BLE001 - the stream must end, whatever it is
            log.exception("stream failed", request_id=current_call().request_id)
            session.fail(InternalError())

    async def _take(
        self, session: TextSession, message: tts_pb2.SynthesizeRequest, voices: StreamVoices
    ) -> None:
        match message.WhichOneof("input"):
            case "text":
                limit = self._service.request_limits.max_piece_characters
                text = requests.read_piece(message.text, limit)
                try:
                    self._sessions.take_text(len(text))
                except Overloaded as error:
                    session.end_with(error)  # what was taken before is spoken
                    return
                session.push_text(text[:TURN_CHARACTERS])
                for start in range(TURN_CHARACTERS, len(text), TURN_CHARACTERS):
                    await asyncio.sleep(0)
                    session.push_text(text[start : start + TURN_CHARACTERS])
            case "flush":
                session.flush(requests.read_id("flush.id", message.flush.id))
            case "clear":
                clear = message.clear
                heard = clear.heard_samples if clear.HasField("heard_samples") else None
                session.clear(requests.read_id("clear.id", clear.id), heard)
            case "pause":
                session.pause(requests.read_pause(message.pause))
            case "playback":
                session.played(message.playback.played_samples)
            case "voice":
                config = session.config
                if message.voice:
                    session.change_voice(message.voice, await voices.ready(message.voice))
                else:
                    session.change_voice(config.voice, config.voice_ref)
            case "config":
                raise ProtocolViolation(
                    Reason.CONFIG_NOT_FIRST,
                    "config must be the first message of a stream, and the only config",
                )
            case None:
                raise InvalidRequest(
                    Reason.BAD_CONFIG, [Violation("input", "is not set, or not known here")]
                )
