"""A model of the listener: one who starts at the first audio and plays as it arrives."""


class Playout:
    """Knows when the listener runs dry. Times in seconds on one monotonic clock."""

    def __init__(self) -> None:
        self.dry_at = 0.0  # when all that was sent will have been heard

    def sent(self, now: float, seconds: float) -> None:
        """`seconds` of audio were sent at `now`."""
        self.dry_at = max(self.dry_at, now) + seconds

    def ahead(self, now: float) -> float:
        """Seconds of audio that were sent and are not yet heard."""
        return max(0.0, self.dry_at - now)

    def is_dry(self, now: float) -> bool:
        """Whether the listener, having heard something, waits for more."""
        return 0.0 < self.dry_at < now

    def stopped(self) -> None:
        """The listener dropped what was not heard, or has heard all there was."""
        self.dry_at = 0.0
