"""From the text of one stream to parts on its timeline, one generation at a time."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from intone_server.engines.base import VoiceRef
from intone_server.errors import IntoneError
from intone_server.scheduling.scheduler import Scheduler
from intone_server.synthesis.events import (
    Flushed,
    Notice,
    NoticeKind,
    SegmentKind,
    Stats,
)
from intone_server.synthesis.generations import Generations
from intone_server.synthesis.inline_pauses import InlinePause
from intone_server.synthesis.manuscript import Manuscript, WholeText
from intone_server.synthesis.part import Part, Silence
from intone_server.synthesis.segmenter import CommitReason, Segment
from intone_server.synthesis.spacing import Spacing
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.timeline import Timeline
from intone_server.synthesis.transcript import Transcript
from intone_server.synthesis.watching import Watch

# Events that may wait for a client that sends and does not read; audio has its own bound.
MAX_WAITING_EVENTS = 1000
# How long one stream takes segments, pauses and flushes from its text before others have a turn.
TURN_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class VoiceChange:
    """Another voice speaks what follows."""

    voice: str
    ref: VoiceRef


class Speaker:
    """Takes the next segment when it has none running, and keeps within the stream's bounds: the
    `Source` of a session."""

    def __init__(
        self,
        config: SpeechConfig,
        stats: Stats,
        *,
        max_unsent_seconds: float,
        scheduler: Scheduler,
        watch: Watch,
    ) -> None:
        self.timeline = Timeline(config, stats, watch=watch)
        self.on_audio: Callable[[], None] = lambda: None
        self.on_ended: Callable[[], None] = lambda: None
        self._config = config  # with the voice that speaks now
        self._stats = stats
        self._most_unsent = max_unsent_seconds * config.model_rate_hertz
        self._generations = Generations(config, stats, self.timeline, scheduler)
        self._manuscript = Manuscript(
            config.segmenter(),
            config.text,
            config.language,
            on_pause=self._inline_pause,
            on_altered=self._tell_altered,
        )
        self._spacing = Spacing(config)
        self._transcript = Transcript(config.sample_rate_hertz, config.model_rate_hertz)
        self._current: Part | None = None
        self._rests = False  # others have their turn

    @property
    def busy(self) -> bool:
        """Whether a segment waits for a replica or runs."""
        return self._current is not None

    @property
    def has_text(self) -> bool:
        """Whether there is text that is no segment yet."""
        return self._manuscript.has_text

    @property
    def buffered_characters(self) -> int:
        """Code points of that text."""
        return self._manuscript.buffered_characters

    @property
    def waiting_events(self) -> int:
        """Events and commands that the client has yet to be told of."""
        return self._manuscript.pending_commits + len(self.timeline)

    @property
    def can_take(self) -> bool:
        """Whether the next thing to say may go onto the timeline now."""
        return (
            self._current is None
            and self.timeline.unsent_samples < self._most_unsent
            and len(self.timeline) < MAX_WAITING_EVENTS
            and not self.timeline.is_full()
        )

    def push(self, text: str, now: float) -> None:
        """Append text that came at `now`. Raises InvalidRequest."""
        self._note(text, now)
        self._manuscript.push(text)

    def push_whole(self, text: WholeText, now: float) -> None:
        """Give all the text that there will be. Raises InvalidRequest."""
        self._note(text.text, now)
        self._manuscript.push_whole(text)

    def _note(self, text: str, now: float) -> None:
        self._transcript.push(text)
        self._stats.characters += len(text)
        if not text.isspace():
            self.timeline.text_came(now)

    def commit(
        self, reason: CommitReason, then: Flushed | Silence | VoiceChange | None = None
    ) -> None:
        """Speak all text pushed so far, and then say or do this."""
        self._manuscript.commit(reason, then)

    def end(self) -> None:
        """No more text will come."""
        self.commit(CommitReason.END_OF_INPUT)

    def hurry(self) -> None:
        """Speak the text as far as that makes sense without what follows it."""
        self._manuscript.commit_at_boundary()

    def advance(self) -> bool:
        """Move on as far as possible. Returns whether there is nothing left to take.

        Text that cannot be spoken comes to no end by itself: after some of it others have a turn.
        """
        if self._rests:
            return False
        began_at = time.monotonic()
        while (taken_seconds := time.monotonic() - began_at) < TURN_SECONDS:
            if not self.can_take:
                return False
            item = self._manuscript.next()
            if isinstance(item, VoiceChange):
                self._change_voice(item)
                continue
            gap = self._spacing.before(item) if item is not None else 0.0
            match item:
                case Segment():
                    if gap:
                        self._be_silent(gap, item.start)
                    index = self._stats.segments
                    self._speak(Part.speech(item, index, self._config, self._on_part))
                case Silence():
                    self._put(Part.silence(item, self._stats.segments))
                case Flushed():
                    self.timeline.add(item)
                case None:
                    return True
        # Later, by as much: a call of somebody else takes many turns of the loop.
        self._rests = True
        asyncio.get_running_loop().call_later(taken_seconds, self._go_on)
        return False

    def _go_on(self) -> None:
        self._rests = False
        self.on_ended()

    def _change_voice(self, to: VoiceChange) -> None:
        self._config = replace(self._config, voice=to.voice, voice_ref=to.ref)

    def pause(self, samples: int) -> None:
        """Exact silence at this point of the text."""
        position = self._manuscript.position
        self.commit(CommitReason.PAUSE, Silence(samples, position, position))

    def _inline_pause(self, pause: InlinePause) -> Silence:
        """A pause in the text; the client is told if it is not as long as it says."""
        if pause.alteration:
            self._tell_altered(pause.alteration)
        samples = round(pause.seconds * self._config.sample_rate_hertz)
        return Silence(samples, pause.start, pause.end)

    def _tell_altered(self, message: str) -> None:
        self.timeline.aside(Notice(NoticeKind.TEXT_ALTERED, message, 0.0))

    def _be_silent(self, seconds: float, position: int) -> None:
        silence = Silence(round(seconds * self._config.sample_rate_hertz), position, position)
        self._put(Part.silence(silence, self._stats.segments))

    def clear(self, clear_id: str, heard_samples: int | None, now: float) -> None:
        """Drop what is not heard; None takes `heard_samples` from the model of the listener."""
        self.timeline.look_at_head()
        if heard_samples is None:
            heard_samples = self.timeline.playout.position(now)
        split = self._transcript.split(heard_samples)
        flushes, uncut = self.drop_text()
        self._current = None
        self.timeline.clear(clear_id, split, flushes, uncut)
        self._transcript.restart()

    def drop_text(self) -> tuple[list[Flushed], int]:
        """Forget what is buffered: answers to its flushes, and 1 if there was text."""
        uncut = int(self._manuscript.has_text)
        marks = self._manuscript.drop()
        self._stats.segments += uncut
        self._spacing.restart()
        for mark in marks:
            if isinstance(mark, VoiceChange):  # what follows is another's, whatever was dropped
                self._change_voice(mark)
        return [replace(mark, cleared=True) for mark in marks if isinstance(mark, Flushed)], uncut

    def stop(self) -> None:
        """Forget what is buffered, and answer its flushes."""
        for flushed in self.drop_text()[0]:
            self.timeline.add(flushed)

    def fail(self, error: IntoneError) -> None:
        """Say nothing more but that."""
        self._current = None
        self.timeline.fail(error)

    def close(self) -> None:
        """Cancel what runs; nobody is left to tell."""
        self._current = None
        self.timeline.close()

    def _speak(self, part: Part) -> None:
        self._put(part)
        if part.generation is None:
            return
        self._current = part
        self._stats.max_in_flight = 1
        self._generations.submit(part)

    def _put(self, part: Part) -> None:
        self._stats.segments += 1
        if part.kind is SegmentKind.SPEECH:
            self._transcript.add(part)
        self.timeline.add(part)

    def _on_part(self, part: Part) -> None:
        """The generation of a part has made progress."""
        if part is self._current and part.wants_replica:
            self._generations.submit(part)
        if part is not self._current or part.outcome is None:
            self.on_audio()
            return
        if part.was_lost_unheard:
            self._generations.submit_again(part)
            return
        self._current = None
        self._generations.count(part)
        self.on_ended()
