"""From a script to its timeline, several generations at a time."""

from collections.abc import Callable, Sequence

from intone_server.errors import IntoneError
from intone_server.scheduling.admission import Permit
from intone_server.scheduling.generation import GenerationStatus
from intone_server.scheduling.scheduler import Scheduler
from intone_server.synthesis.deadlines import SessionLimits
from intone_server.synthesis.events import Notice, NoticeKind, Outcome, Queued, Stats
from intone_server.synthesis.generations import Generations
from intone_server.synthesis.layout import Layout
from intone_server.synthesis.part import Part
from intone_server.synthesis.script import OnItemFailure, Pieces, Script, SpeechItem
from intone_server.synthesis.session import Session
from intone_server.synthesis.timeline import Timeline
from intone_server.synthesis.watching import Watch


class DialogueSession(Session):
    """Speaks a script that is known from the start. See `Session`.

    `pieces` are those of `plan_script`, and `notices` what it told; `max_buffer_seconds` is of
    audio that may be made before its turn.
    """

    def __init__(
        self,
        script: Script,
        pieces: Sequence[Pieces],
        notices: Sequence[str],
        *,
        max_buffer_seconds: float,
        limits: SessionLimits,
        scheduler: Scheduler,
        permit: Permit,
        watch: Watch,
    ) -> None:
        stats = Stats()
        speaker = DialogueSpeaker(
            script,
            pieces,
            stats,
            max_buffer_seconds=max_buffer_seconds,
            scheduler=scheduler,
            watch=watch,
        )
        for message in notices:
            speaker.timeline.aside(Notice(NoticeKind.TEXT_ALTERED, message, 0.0))
        super().__init__(script.config, speaker, stats, limits=limits, permit=permit)
        self.end_input()


class DialogueSpeaker:
    """Begins generations in the order of the script: the `Source` of a session.

    All parts are on the timeline from the start, which delivers them in order and holds what was
    made before its turn. The next one is begun while fewer than `max_concurrency` are in flight,
    none of them waits for a replica, and there is room for its audio.
    """

    def __init__(
        self,
        script: Script,
        pieces: Sequence[Pieces],
        stats: Stats,
        *,
        max_buffer_seconds: float,
        scheduler: Scheduler,
        watch: Watch,
    ) -> None:
        self.on_audio: Callable[[], None] = lambda: None
        self.on_ended: Callable[[], None] = lambda: None
        self._config = script.config
        self._on_failure = script.on_item_failure
        self._max_concurrency = script.max_concurrency
        self._max_buffer_seconds = max_buffer_seconds
        self._stats = stats
        # Runs end where items do, never by the clock: samples must not depend on that.
        self.timeline = Timeline(script.config, stats, watch=watch, gives_tails=False)
        self._generations = Generations(script.config, stats, self.timeline, scheduler)
        self._layout = Layout(script, pieces, self._on_part)
        self._next = 0  # the first part that was not begun
        self._oldest = 0  # the first part that was not wholly sent
        self._in_flight: list[Part] = []
        for part in self._layout.parts:
            self.timeline.add(part)
        stats.segments = len(self._layout.parts)
        texts = [
            item.content.text.text for item in script.items if isinstance(item.content, SpeechItem)
        ]
        stats.characters = sum(map(len, texts))
        if texts:
            self.timeline.text_came(self.timeline.began_at)
        if script.config.queue_events:
            self._tell_plan()

    @property
    def busy(self) -> bool:
        """Whether a segment waits for a replica or runs."""
        return bool(self._in_flight)

    @property
    def has_text(self) -> bool:
        """Whether there is something that was not sent: it is held here, and the call counts as
        one that talks."""
        return self._oldest < len(self._layout.parts)

    @property
    def can_take(self) -> bool:
        """A script waits for no more text."""
        return False

    def advance(self) -> bool:
        """Begin what may be begun. All of it is on the timeline already."""
        parts = self._layout.parts
        while self._oldest < len(parts) and parts[self._oldest].closed:
            self._oldest += 1
        self._layout.settle()
        while self._next < len(self._layout.parts):
            part = self._layout.parts[self._next]
            if part.wants_replica and not self._may_begin(part):
                break
            self._next += 1
            if part.wants_replica:
                self._in_flight.append(part)
                self._generations.submit(part)
        return True

    def hurry(self) -> None:
        """Nothing is kept back."""

    def end(self) -> None:
        """The script has been complete from the start."""

    def stop(self) -> None:
        """Begin nothing new: what is running is finished."""
        parts = self._layout.parts
        if self._next == len(parts):
            return  # there is nothing to cut
        self.timeline.cut_behind(parts[self._next - 1] if self._next else None)
        self._next = len(parts)
        self._layout.settle()

    def fail(self, error: IntoneError) -> None:
        """Say nothing more but that."""
        self.stop()  # what was not begun is no failure
        self._in_flight.clear()
        self.timeline.fail(error)

    def close(self) -> None:
        """Cancel what runs; nobody is left to tell."""
        self._next = self._oldest = len(self._layout.parts)
        self._in_flight.clear()
        self.timeline.close()

    def _tell_plan(self) -> None:
        for item in self._layout.items:
            seconds = sum(map(self._estimated_seconds, (item.original or item).parts))
            first = item.parts[0].segment
            self.timeline.aside(Queued(first, 0, 0.0, seconds, 0.0, item.ref, planned=True))

    def _may_begin(self, part: Part) -> bool:
        if len(self._in_flight) >= self._max_concurrency:
            return False
        if len(self._in_flight) > self._running():
            return False  # one waits at the most, or others would wait for all of them
        limited = self._config.max_queue_wait_seconds is not None
        if limited and self._in_flight and self._generations.would_wait:
            return False  # behind the dialogue's own segments, which is no wait for others
        if self.timeline.is_full(part):
            return False
        return self._has_room(self._estimated_seconds(part))

    def _has_room(self, seconds: float) -> bool:
        """Whether so much audio can be made beside what was spoken and not sent, or is expected of
        what is in flight. Other audio is held in any case."""
        rate = self._config.model_rate_hertz
        held = 0.0
        for part in self._layout.parts[self._oldest : self._next]:
            if part.generation is None:
                continue
            held += part.unsent_samples / rate
            if part.outcome is None:
                held += max(0.0, part.generation.estimated_seconds - part.made_samples / rate)
            if held and held + seconds > self._max_buffer_seconds:
                return False
        return True

    def _estimated_seconds(self, part: Part) -> float:
        if part.generation is not None:
            return part.generation.estimated_seconds
        return part.made_samples / self._config.sample_rate_hertz

    def _on_part(self, part: Part) -> None:
        """The generation of a part has made progress."""
        if part not in self._in_flight:
            return
        if part.outcome is None:
            self._stats.max_in_flight = max(self._stats.max_in_flight, self._running())
            self._layout.settle()
            self.on_audio()
            # Its replica was had, so that the next one may wait for another.
            if part.started and not part.made_samples:
                self.on_ended()
            return
        if part.was_lost_unheard:
            self._generations.submit_again(part)
            return
        self._in_flight.remove(part)
        self._generations.count(part)
        self._heed(part)
        assert part.item is not None
        self._layout.repeat(self._layout.items[part.item.index])
        self._layout.settle()
        self.on_ended()

    def _running(self) -> int:
        return sum(
            p.generation is not None and p.generation.status is GenerationStatus.RUNNING
            for p in self._in_flight
        )

    def _heed(self, part: Part) -> None:
        """Do what is to be done if a part failed."""
        if part.outcome is not Outcome.FAILED:
            return
        assert part.error is not None
        if self._on_failure is OnItemFailure.ABORT:
            self._next = len(self._layout.parts)
            self.timeline.end_behind(part, part.error)
            self._in_flight = [each for each in self._in_flight if each.outcome is None]
        elif self._on_failure is OnItemFailure.SILENCE and part.generation is not None:
            missing = part.generation.estimated_seconds * self._config.model_rate_hertz
            part.stand_in(max(0, round(missing) - part.made_samples))
