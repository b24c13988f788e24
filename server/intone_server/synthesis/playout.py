"""A model of the listener: one who plays audio as it arrives, and may say how far that got."""


class Playout:
    """Knows what was heard, and when the listener runs dry: the `Listener` of a call's generations.

    Samples are those of the stream's timeline; times are seconds on the clock of
    `time.monotonic()`. Between reports the listener plays by the clock.
    """

    def __init__(self, sample_rate_hertz: int) -> None:
        self._rate = sample_rate_hertz
        self.sent_samples = 0  # of the whole stream
        self._heard = 0  # of those, for sure, or dropped by the listener
        # When all that was sent will have been heard; None: nothing of this text was.
        self._dry_at: float | None = None
        self._in_text = False  # the listener has begun a text that goes on

    def dry_at(self) -> float | None:
        """When all that was sent will have been heard; None while nothing was heard of the text
        that is being spoken."""
        return self._dry_at

    def sent(self, now: float, samples: int) -> None:
        """So many samples were sent at `now`."""
        self.sent_samples += samples
        start = now if self._dry_at is None else max(self._dry_at, now)
        self._dry_at = start + samples / self._rate
        self._in_text = True

    def reported(self, now: float, played_samples: int) -> None:
        """The listener has played the timeline up to there. What was heard once stays heard, and
        more than was sent is all of it."""
        self._heard = min(max(played_samples, self._heard), self.sent_samples)
        if left := self.sent_samples - self._heard:
            self._dry_at = now + left / self._rate
        elif self._dry_at is not None:
            self._dry_at = min(self._dry_at, now)

    def ahead(self, now: float) -> float:
        """Seconds of audio that were sent and are not yet heard."""
        return 0.0 if self._dry_at is None else max(0.0, self._dry_at - now)

    def position(self, now: float) -> int:
        """How many samples of the timeline were heard, or dropped by the listener."""
        return self.sent_samples - round(self.ahead(now) * self._rate)

    def is_dry(self, now: float) -> bool:
        """Whether the listener, inside a text, waits for more."""
        return self._in_text and self._dry_at is not None and self._dry_at <= now

    def text_came(self, now: float) -> None:
        """More text came at `now`: a new one, if all of the one before was heard."""
        if not self._in_text and self._dry_at is not None and self._dry_at <= now:
            self._dry_at = None

    def all_said(self) -> None:
        """There is no more text now: the silence after it is as it should be."""
        self._in_text = False

    def stopped(self) -> None:
        """The listener dropped what was not heard."""
        self._heard = self.sent_samples
        self._dry_at = None
        self._in_text = False
