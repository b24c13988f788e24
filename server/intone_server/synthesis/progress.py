"""How far a stream has come: its totals, and what a watch of its call is told."""

from collections import deque

from intone_server.synthesis.events import Outcome, SegmentKind, Stats
from intone_server.synthesis.part import Part
from intone_server.synthesis.playout import Playout
from intone_server.synthesis.speech import SpeechConfig
from intone_server.synthesis.watching import EndedSegment, WasteCause, Watch


class Progress:
    """Hears of what is sent as it is sent. Times are those of the monotonic clock."""

    def __init__(self, config: SpeechConfig, stats: Stats, playout: Playout, watch: Watch) -> None:
        self._config = config
        self._stats = stats
        self._playout = playout
        self._watch = watch
        self._text_at: float | None = None  # of a text of which nothing was heard yet
        self._chunk_at: float | None = None  # of the last chunk of the same text
        self._clears_at: deque[float] = deque()  # those not answered yet

    def text_came(self, now: float) -> None:
        """Text that will be spoken came."""
        self._playout.text_came(now)
        new = self._playout.dry_at() is None or self._stats.first_audio_seconds is None
        if new and self._text_at is None:
            self._text_at = now
            self._chunk_at = None

    def heard(self, now: float) -> None:
        """A chunk is sent that the listener hears as speech goes on."""
        if self._text_at is not None:
            seconds = now - self._text_at
            self._text_at = None
            if self._stats.first_audio_seconds is None:
                self._stats.first_audio_seconds = seconds
            self._watch.first_audio(seconds, self._config.priority)
        if self._playout.is_dry(now):
            self._stats.underruns += 1
            self._watch.underrun()

    def sent(self, now: float, samples: int) -> None:
        """So many samples are sent, heard as speech goes on or not."""
        seconds = samples / self._config.sample_rate_hertz
        self._stats.audio_seconds += seconds
        self._playout.sent(now, samples)
        gap = None if self._chunk_at is None else now - self._chunk_at
        self._chunk_at = now
        self._watch.audio_sent(seconds, gap)

    def clear_came(self, now: float) -> None:
        """What was not heard is dropped."""
        self._clears_at.append(now)
        self._playout.stopped()
        self._text_at = None
        self._chunk_at = None

    def clear_answered(self, now: float) -> None:
        """The client is told so."""
        self._watch.cleared(now - self._clears_at.popleft())

    def over(self, part: Part, waste_cause: WasteCause) -> None:
        """Nothing more of a part will be sent, for this reason if that was not all of it."""
        if part.outcome is Outcome.FAILED:
            self._stats.failed_segments += 1
        if part.kind is not SegmentKind.SPEECH:
            return
        assert part.outcome is not None
        assert part.ended_at is not None
        made = part.made_samples / self._config.model_rate_hertz
        sent = part.sent_samples / self._config.sample_rate_hertz
        # An encoder counts in frames of its own: what was sent to its end is all of it.
        unsent = 0.0 if part.closed or part.all_sent else max(0.0, made - sent)
        generation = part.generation
        self._watch.segment_ended(
            EndedSegment(
                segment=part.segment,
                voice=part.voice,
                characters=part.end - part.start,
                outcome=part.outcome,
                reason=part.error.reason if part.error else None,
                queued_at=generation.queued_at or None if generation else None,
                started_at=part.started_at,
                first_audio_at=part.first_audio_at,
                ended_at=part.ended_at,
                queue_seconds=part.queue_seconds,
                synthesis_seconds=part.run_seconds,
                made_seconds=made + part.earlier_made_samples / self._config.model_rate_hertz,
                sent_seconds=sent,
                wasted_seconds=unsent + part.earlier_made_samples / self._config.model_rate_hertz,
                waste_cause=waste_cause,
            )
        )
