"""One call: it speaks, and somebody listens."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from intone.v1 import tts_pb2
from intone_client._client import Client
from intone_client._errors import IntoneError, StreamEndedError, error_from_segments
from intone_client._speech import Speech
from intone_client._stream import SpeechStream

from .listener import Arrival, TextLog, listen
from .plan import Utterance
from .result import CallResult, Outcome


@dataclass(slots=True)
class _Tape:
    """What happens on one call."""

    result: CallResult
    written: TextLog = field(default_factory=TextLog)
    arrivals: list[Arrival] = field(default_factory=list)


class Caller:
    """Makes calls over `clients` in turn, which must not repeat what is refused.

    `streamed`: text goes in pieces into `Synthesize`; else whole into `SynthesizeText`. `timeout`
    is the deadline of a call in seconds. The clock of all results begins at `began_at`, a time of
    `time.monotonic()`.
    """

    def __init__(
        self,
        clients: Sequence[Client],
        config: tts_pb2.SpeechConfig,
        *,
        streamed: bool,
        timeout: float,
        began_at: float,
    ) -> None:
        self._clients = clients
        self._config = tts_pb2.SpeechConfig()
        self._config.CopyFrom(config)
        # They tell which text audio belongs to, and with that whom a silence waits for.
        self._config.segment_events = streamed
        self._streamed = streamed
        self._timeout = timeout
        self._began_at = began_at

    def now(self) -> float:
        """Seconds since the measurement began."""
        return time.monotonic() - self._began_at

    async def call(self, result: CallResult, utterance: Utterance) -> None:
        """Speak `utterance` and complete `result`, also if this is cancelled half-way.

        What goes wrong on the call is in `result`, and not raised.
        """
        client = self._clients[result.number % len(self._clients)]
        tape = _Tape(result)
        result.started_at = self.now()
        speech: Speech
        if self._streamed:
            speech = client.stream(self._config, timeout=self._timeout)
        else:
            tape.written.wrote(utterance.text, result.started_at)
            speech = client.synthesize_text(utterance.text, self._config, timeout=self._timeout)
        try:
            async with speech:
                if isinstance(speech, SpeechStream):
                    await self._converse(tape, speech, utterance)
                else:
                    await self._listen(tape, speech)
            _check(speech, tape)
        except IntoneError as error:
            result.fail(error, started=speech.started is not None)
        finally:
            result.ended_at = self.now()
            result.heard = listen(tape.arrivals)
            if speech.finished is not None:
                result.stats = speech.finished.stats

    async def _converse(self, tape: _Tape, stream: SpeechStream, utterance: Utterance) -> None:
        """Write and read at the same time. Raises `IntoneError`."""
        tape.result.started_at = self.now()
        writing = asyncio.create_task(self._write(tape, stream, utterance))
        try:
            await self._listen(tape, stream)
        finally:
            writing.cancel()
            # What a call fails with is raised to its reader as well.
            await asyncio.gather(writing, return_exceptions=True)

    async def _write(self, tape: _Tape, stream: SpeechStream, utterance: Utterance) -> None:
        began_at = self.now()
        for index, piece in enumerate(utterance.pieces):
            due_at = began_at + index * utterance.piece_seconds
            delay = due_at - self.now()
            if delay > 0:
                await asyncio.sleep(delay)
            # When the LLM had it: that the server is slow to take it is no excuse for silence.
            tape.written.wrote(piece, due_at)
            await stream.push_text(piece)
        await stream.end_input()

    async def _listen(self, tape: _Tape, speech: Speech) -> None:
        """Read all events. Raises `IntoneError`."""
        assert tape.result.started_at is not None
        text_at: dict[int, float] = {}  # by segment
        rate = 0
        async for event in speech:
            match event.WhichOneof("event"):
                case "started":
                    rate = event.started.format.sample_rate_hertz
                    tape.result.request_id = event.started.request_id
                case "segment_started":
                    segment = event.segment_started
                    text_at[segment.segment] = tape.written.written_at(segment.span.end)
                case "audio":
                    chunk = event.audio
                    written_at = text_at.get(chunk.segment, tape.result.started_at)
                    seconds = chunk.sample_count / rate
                    tape.arrivals.append(Arrival(self.now(), seconds, written_at))


def _check(speech: Speech, tape: _Tape) -> None:
    """Whether all of the text was spoken. Raises `IntoneError` if not."""
    if speech.failed_segments:
        raise error_from_segments(speech.failed_segments, speech.request_id)
    finished = speech.finished
    if finished is None or finished.reason != tts_pb2.FINISH_REASON_END_OF_INPUT:
        raise StreamEndedError.after(finished, speech.request_id)
    if tape.arrivals:
        tape.result.outcome = Outcome.SPOKEN
    else:
        tape.result.outcome = Outcome.FAILED
        tape.result.message = "the call was OK, and there was no audio"
