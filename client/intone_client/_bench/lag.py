"""How late this machine is itself."""

import asyncio
import time

# Above this, what is measured is no longer the server alone.
MAX_LAG_SECONDS = 0.020

_INTERVAL_SECONDS = 0.010


class LoopLag:
    """Measures how much later than asked for the event loop does something.

    A loop that hangs for a second delays one probe by a second, and keeps a hundred others from
    being made: they are counted with the delay that they would have had.
    """

    def __init__(self) -> None:
        #: In seconds, one for each probe.
        self.lags: list[float] = []

    async def measure(self) -> None:
        """Until it is cancelled."""
        while True:
            due = time.monotonic() + _INTERVAL_SECONDS
            await asyncio.sleep(_INTERVAL_SECONDS)
            self.note(time.monotonic() - due)

    def note(self, lag: float) -> None:
        """A probe was late by `lag` seconds."""
        lag = max(lag, 0.0)
        self.lags.append(lag)
        while (lag := lag - _INTERVAL_SECONDS) > 0:
            self.lags.append(lag)
