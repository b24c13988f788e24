"""What is known of one call."""

import enum
import math
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.duration_pb2 import Duration

from intone.v1 import tts_pb2
from intone_client._errors import IntoneError
from intone_client._show import seconds

from .listener import AUDIBLE_SECONDS, Gap, Heard


class Outcome(enum.Enum):
    """How a call ended."""

    #: The server spoke all of the text.
    SPOKEN = "spoken"
    #: The server said no before it began, with a reason; or a proxy, by RESOURCE_EXHAUSTED.
    REFUSED = "refused"
    #: Anything else that is no success: lost connections, deadlines, segments that failed, text
    #: without any audio.
    FAILED = "failed"
    #: Not even begun, because too many calls were open.
    NOT_SENT = "not_sent"
    #: Open when the measurement was interrupted.
    UNFINISHED = "unfinished"


@dataclass(slots=True)
class CallResult:
    """One call. Times named `_at` are in seconds since the measurement began.

    `stream` is the number of its conversation, None outside of one. `started_at` is when its first
    text was sent, later than `planned_at` only if this machine was too slow. What has not happened
    is None.
    """

    number: int
    stream: int | None
    planned_at: float
    characters: int
    outcome: Outcome = Outcome.UNFINISHED
    status: str = ""
    reason: str = ""
    message: str = ""
    retry_delay_seconds: float | None = None
    request_id: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    heard: Heard | None = None
    stats: tts_pb2.Stats | None = field(default=None, repr=False)

    @property
    def first_audio_seconds(self) -> float | None:
        """From the first text sent to the first audio."""
        if self.heard is None or self.started_at is None:
            return None
        return self.heard.first_at - self.started_at

    @property
    def answer_seconds(self) -> float | None:
        """From the text that the first audio needed, see `TextLog`, to the first audio."""
        return None if self.heard is None else self.heard.first_at - self.heard.first_text_at

    @property
    def audio_seconds(self) -> float:
        """Audio received."""
        return self.heard.audio_seconds if self.heard else 0.0

    @property
    def speed(self) -> float | None:
        """Seconds of audio per second from the first text sent to the last audio."""
        if self.heard is None or self.started_at is None:
            return None
        return self.audio_seconds / max(self.heard.last_at - self.started_at, 1e-9)

    @property
    def server_gaps(self) -> list[Gap]:
        """The silences, or parts of them, that are the server's."""
        gaps = self.heard.gaps if self.heard else ()
        return [gap for gap in gaps if gap.server_seconds > AUDIBLE_SECONDS]

    @property
    def silence_seconds(self) -> float:
        """Silence of the server's."""
        return math.fsum(gap.server_seconds for gap in self.server_gaps)

    @property
    def text_silence_seconds(self) -> float:
        """Silence because of text that had not come yet."""
        return math.fsum(gap.text_seconds for gap in self.heard.gaps) if self.heard else 0.0

    @property
    def server_first_audio_seconds(self) -> float | None:
        """The server's own figure, `Stats.time_to_first_audio`."""
        return self._stat("time_to_first_audio")

    @property
    def server_queue_wait_seconds(self) -> float | None:
        """The server's own figure, `Stats.queue_wait`: of all segments together."""
        return self._stat("queue_wait")

    def fail(self, error: IntoneError, *, started: bool) -> None:
        """The call ended with `error`, before or after `Started`."""
        refused = not started and (error.reason or error.code.name == "RESOURCE_EXHAUSTED")
        self.outcome = Outcome.REFUSED if refused else Outcome.FAILED
        self.status = error.code.name
        self.reason = error.reason
        self.message = error.message
        self.retry_delay_seconds = error.retry_delay
        self.request_id = error.request_id or self.request_id

    def document(self) -> dict[str, Any]:
        """For JSON."""
        heard = self.heard
        return {
            "number": self.number,
            "stream": self.stream,
            "outcome": self.outcome.value,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "retry_delay_seconds": self.retry_delay_seconds,
            "request_id": self.request_id,
            "characters": self.characters,
            "planned_at": self.planned_at,
            "started_at": self.started_at,
            "first_audio_at": heard.first_at if heard else None,
            "last_audio_at": heard.last_at if heard else None,
            "ended_at": self.ended_at,
            "first_audio_seconds": self.first_audio_seconds,
            "answer_seconds": self.answer_seconds,
            "server_first_audio_seconds": self.server_first_audio_seconds,
            "server_queue_wait_seconds": self.server_queue_wait_seconds,
            "audio_seconds": self.audio_seconds,
            "speed": self.speed,
            "gaps": len(self.server_gaps),
            "silence_seconds": self.silence_seconds,
            "longest_silence_seconds": max(
                (gap.server_seconds for gap in self.server_gaps), default=0.0
            ),
            "text_silence_seconds": self.text_silence_seconds,
            "deadline_misses": heard.deadline_misses if heard else 0,
            "silences": [
                {
                    "at": gap.at,
                    "server_seconds": gap.server_seconds,
                    "text_seconds": gap.text_seconds,
                }
                for gap in (heard.gaps if heard else ())
            ],
        }

    def _stat(self, name: str) -> float | None:
        if self.stats is None or not self.stats.HasField(name):
            return None
        value: Duration = getattr(self.stats, name)
        return seconds(value)
