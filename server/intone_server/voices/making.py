"""From an upload to a voice state, in a process of its own."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from intone_server.errors import (
    InternalError,
    IntoneError,
    InvalidRequest,
    NotPossible,
    Overloaded,
    Reason,
    Unavailable,
    Violation,
)
from intone_server.workers.launch import WorkerLink
from intone_server.workers.messages import MakeVoice, Refusal, VoiceMade, VoiceRefused

log = structlog.stdlib.get_logger("intone.voices")

# One process takes up to a gigabyte; with more at once the streams would starve.
MAX_WAITING = 4
# A recording of 30 s takes 10 to 20 s of one core, of which busy streams may leave a quarter.
TIMEOUT_SECONDS = 90.0
# What a voice takes, roughly: when the next in line will have been served.
RETRY_SECONDS = 5.0
# How long a process may take to exit after its answer.
EXIT_SECONDS = 2.0


class VoiceMaker:
    """Makes voices, one at a time; others wait, up to MAX_WAITING of them.

    `launch` starts a process that makes one voice, for a model of `sample_rate_hertz`.
    """

    def __init__(
        self,
        launch: Callable[[], Awaitable[WorkerLink]],
        sample_rate_hertz: int,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._launch = launch
        self._sample_rate_hertz = sample_rate_hertz
        self._timeout_seconds = timeout_seconds
        self._one_at_a_time = asyncio.Lock()
        self._waiting = 0
        self._link: WorkerLink | None = None
        self._stopped = False

    async def make(self, *, prompt: bytes = b"", state: bytes = b"") -> VoiceMade:
        """The voice of a recording in any format, or of an exported voice state.

        Raises InvalidRequest, NotPossible, Overloaded, Unavailable or InternalError. A caller that
        is cancelled ends the process at once.
        """
        if self._waiting >= MAX_WAITING:
            raise Overloaded(
                Reason.QUEUE_FULL,
                f"{self._waiting} other voices are waiting to be made, {MAX_WAITING} may wait",
                retry_after=self._waiting * RETRY_SECONDS,
            )
        self._waiting += 1
        try:
            await self._one_at_a_time.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._make(MakeVoice(self._sample_rate_hertz, prompt, state))
        finally:
            self._one_at_a_time.release()

    async def stop(self) -> None:
        """End what runs; whoever waits gets Unavailable."""
        self._stopped = True
        if self._link is not None:
            self._link.kill()
        async with self._one_at_a_time:
            pass

    async def _make(self, upload: MakeVoice) -> VoiceMade:
        started_at = time.monotonic()
        if self._stopped:
            raise _unavailable("the server is shutting down", Reason.DRAINING)
        try:
            link = self._link = await self._launch()
        except (OSError, EOFError) as error:
            log.exception("no process to make a voice in")
            raise _unavailable("a voice cannot be made here now") from error
        if self._stopped:  # meanwhile
            link.kill()
        answer: VoiceMade | VoiceRefused | None = None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                answer = await _ask(link, upload)
        except TimeoutError as error:
            log.error("making a voice took too long", pid=link.pid)  # noqa: TRY400
            raise _unavailable(
                f"the voice was not made within {self._timeout_seconds:g} s; the server may be busy"
            ) from error
        finally:
            self._link = None
            if answer is None:
                link.kill()
            code = await asyncio.shield(link.close(EXIT_SECONDS))
        if isinstance(answer, VoiceRefused):
            raise _refused(answer)
        if answer is not None:
            seconds = round(time.monotonic() - started_at, 2)
            log.info("voice made", digest=answer.state.digest, seconds=seconds)
            return answer
        if self._stopped:
            raise _unavailable("the server is shutting down", Reason.DRAINING)
        log.error("the process that made a voice died", pid=link.pid, exit_code=code)
        raise InternalError


async def _ask(link: WorkerLink, upload: MakeVoice) -> VoiceMade | VoiceRefused | None:
    """The answer; None if the process ended without one."""
    try:
        await link.deliver(upload)
    except OSError:
        return None
    answer = await link.receive()
    assert isinstance(answer, VoiceMade | VoiceRefused | None)
    return answer


def _refused(answer: VoiceRefused) -> IntoneError:
    match answer.refusal:
        case Refusal.BAD_AUDIO:
            return InvalidRequest(Reason.BAD_AUDIO, [Violation("prompt", answer.message)])
        case Refusal.BAD_STATE:
            return InvalidRequest(Reason.BAD_STATE, [Violation("state", answer.message)])
        case Refusal.CLONING_UNAVAILABLE:
            return NotPossible(Reason.CLONING_UNAVAILABLE, answer.message)


def _unavailable(message: str, reason: Reason = Reason.VOICE_UNAVAILABLE) -> Unavailable:
    return Unavailable(reason, message, retry_after=RETRY_SECONDS)
