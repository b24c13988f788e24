"""One stream: text pieces and commands in."""

import time

from intone_server.engines.base import VoiceRef
from intone_server.scheduling.admission import Permit
from intone_server.scheduling.scheduler import Scheduler
from intone_server.synthesis.deadlines import SessionLimits
from intone_server.synthesis.events import Flushed, Stats
from intone_server.synthesis.manuscript import WholeText
from intone_server.synthesis.segmenter import CommitReason
from intone_server.synthesis.session import Session, SessionState
from intone_server.synthesis.speaker import MAX_WAITING_EVENTS, Speaker, VoiceChange
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.watching import Watch


class TextSession(Session):
    """Speaks text as it arrives. See `Session`."""

    def __init__(
        self,
        config: SpeechConfig,
        *,
        limits: SessionLimits,
        scheduler: Scheduler,
        permit: Permit,
        watch: Watch,
    ) -> None:
        stats = Stats()
        self._speaker = Speaker(
            config,
            stats,
            max_unsent_seconds=limits.max_unsent_seconds,
            scheduler=scheduler,
            watch=watch,
        )
        self._max_buffered = limits.max_buffered_characters
        super().__init__(config, self._speaker, stats, limits=limits, permit=permit)

    def speak_whole(self, text: WholeText) -> None:
        """Speak this text, then finish. Raises InvalidRequest."""
        self._speaker.push_whole(text, time.monotonic())
        self.end_input()

    def push_text(self, text: str) -> None:
        """Append a text piece. Empty text is a heartbeat. Raises InvalidRequest."""
        now = time.monotonic()
        self._deadlines.heard(now, text=bool(text))
        if text and self._state is SessionState.SPEAKING:
            self._speaker.push(text, now)
        self._advance()

    def flush(self, flush_id: str) -> None:
        """Speak what is buffered; answered by Flushed after its audio."""
        if self._takes_commands():
            self._speaker.commit(CommitReason.FLUSH, Flushed(flush_id, 0, cleared=False))
        self._advance()

    def pause(self, seconds: float) -> None:
        """Exact silence at this point of the text."""
        if self._takes_commands():
            self._speaker.pause(round(seconds * self.config.sample_rate_hertz))
        self._advance()

    def change_voice(self, voice: str, ref: VoiceRef) -> None:
        """Speak the text that follows with this one."""
        if self._takes_commands():
            self._speaker.commit(CommitReason.VOICE, VoiceChange(voice, ref))
        self._advance()

    def clear(self, clear_id: str, heard_samples: int | None) -> None:
        """Barge-in. `heard_samples` on the stream's timeline; None takes it from the model of the
        listener."""
        now = time.monotonic()
        self._deadlines.heard(now)
        if self._state is not SessionState.CLOSED:
            self._speaker.clear(clear_id, heard_samples, now)
            self._advance()

    def played(self, samples: int) -> None:
        """The listener has played the stream's timeline up to there."""
        now = time.monotonic()
        self._deadlines.heard(now)
        self._timeline.playout.reported(now, samples)
        self._advance()

    async def wait_for_room(self) -> None:
        """Return when the session can hold more. Until then the client's messages are not read."""
        while self._state is not SessionState.CLOSED and (
            self._speaker.buffered_characters > self._max_buffered
            or self._speaker.waiting_events > MAX_WAITING_EVENTS
        ):
            self._room.clear()
            await self._room.wait()

    def _takes_commands(self) -> bool:
        """A command that crosses the server's own end of the input still finds its place, before
        `Finished`."""
        self._deadlines.heard(time.monotonic())
        return self._state is not SessionState.CLOSED and not self._timeline.has_finished
