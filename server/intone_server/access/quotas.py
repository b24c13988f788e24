"""How much each client has in use, so that none takes all there is."""

import itertools
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from intone_server.access.grants import NO_LIMITS, ClientLimits
from intone_server.access.windows import Window
from intone_server.errors import Overloaded, Reason

MINUTE_SECONDS = 60.0
DAY_SECONDS = 86_400.0
# Clients that are remembered; beyond it those are forgotten that have been away for longest.
MAX_CLIENTS = 10_000
# Until one of the client's own calls ends, which nobody knows.
OWN_CALLS_SECONDS = 1.0


class Account:
    """What one client has in use. All refusals are Overloaded (CLIENT_LIMIT)."""

    def __init__(
        self,
        limits: ClientLimits = NO_LIMITS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._streams = 0
        self._heavy_calls = 0
        self._characters = Window(MINUTE_SECONDS)
        self._audio = Window(DAY_SECONDS)

    @property
    def in_use(self) -> bool:
        """Whether a call is open."""
        return bool(self._streams or self._heavy_calls)

    @property
    def is_empty(self) -> bool:
        """Whether it may be forgotten without any harm."""
        now = self._clock()
        return not (self.in_use or self._characters.used(now) or self._audio.used(now))

    @contextmanager
    def stream(self) -> Iterator[None]:
        """A call that speaks is open."""
        self.check_audio()
        _check_calls("open", self._streams, self.limits.streams)
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    @contextmanager
    def heavy_call(self) -> Iterator[None]:
        """A call is open that takes much computing at once."""
        _check_calls(
            "of CreateVoice, ExportVoice and PlanText open",
            self._heavy_calls,
            self.limits.heavy_calls,
        )
        self._heavy_calls += 1
        try:
            yield
        finally:
            self._heavy_calls -= 1

    def take_characters(self, count: int) -> None:
        """Count so many code points that are to be spoken, all or none."""
        self.check_audio()
        limit = self.limits.characters_per_minute
        if not limit:
            return
        now = self._clock()
        if count > limit:
            raise Overloaded(
                Reason.CLIENT_LIMIT,
                f"the text has {count:,} characters, limit {limit:,} a minute for each client",
            )
        used = self._characters.used(now)
        if used + count > limit:
            raise Overloaded(
                Reason.CLIENT_LIMIT,
                f"this client sent {used:,.0f} characters in the last minute and now {count:,}, "
                f"limit {limit:,}",
                retry_after=self._characters.wait(now, limit - count),
            )
        self._characters.add(now, count)

    def add_audio(self, seconds: float) -> None:
        """So much was sent."""
        if self.limits.audio_seconds_per_day:
            self._audio.add(self._clock(), seconds)

    def check_audio(self) -> None:
        """Whether more may be spoken. What was taken is spoken to its end, so that the limit is
        passed by one text at most."""
        limit = self.limits.audio_seconds_per_day
        now = self._clock()
        if limit and (used := self._audio.used(now)) >= limit:
            raise Overloaded(
                Reason.CLIENT_LIMIT,
                f"this client got {used:,.0f} s of audio in 24 hours, limit {limit:,} s",
                retry_after=self._audio.wait(now, limit * (1 - 1e-9)),
            )


def _check_calls(what: str, count: int, limit: int) -> None:
    if limit and count >= limit:
        raise Overloaded(
            Reason.CLIENT_LIMIT,
            f"this client has {count} calls {what}, limit {limit}",
            retry_after=OWN_CALLS_SECONDS,
        )


class Quotas:
    """The accounts of all clients."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._accounts: OrderedDict[str, Account] = OrderedDict()

    def __len__(self) -> int:
        """Clients that are remembered."""
        return len(self._accounts)

    def account(self, client: str, limits: ClientLimits) -> Account:
        """That of a client, under the limits that hold for it now."""
        if limits == NO_LIMITS:
            return Account(limits, self._clock)  # nothing to remember
        account = self._accounts.pop(client, None)
        if account is None:
            self._forget()
            account = Account(limits, self._clock)
        account.limits = limits
        self._accounts[client] = account
        return account

    def _forget(self) -> None:
        """Make room: of the two that were away for longest, those that are empty; or whoever has no
        call open, if there are too many."""
        for client, account in list(itertools.islice(self._accounts.items(), 2)):
            if account.is_empty:
                del self._accounts[client]
        if len(self._accounts) >= MAX_CLIENTS:
            idle = next((c for c, account in self._accounts.items() if not account.in_use), None)
            if idle is not None:
                del self._accounts[idle]
