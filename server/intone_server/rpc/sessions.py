"""The calls that are speaking: how they are counted, logged, and ended when the server is."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from intone_server.errors import IntoneError, SynthesisFailed
from intone_server.metrics import Metrics
from intone_server.rpc.calls import current_call
from intone_server.scheduling.admission import Admission
from intone_server.synthesis.session import Session


class Sessions:
    """All sessions that are open."""

    def __init__(self, admission: Admission, metrics: Metrics) -> None:
        self._admission = admission
        self._metrics = metrics
        self._open: set[Session] = set()
        self._drain_ends_at = 0.0

    @property
    def buffered_seconds(self) -> float:
        """Audio that was made and waits for its client."""
        return sum(session.buffered_seconds for session in self._open)

    def drain(self, timeout_seconds: float) -> None:
        """Let them finish what they have, for so long."""
        self._drain_ends_at = time.monotonic() + timeout_seconds
        for session in list(self._open):
            session.drain(timeout_seconds)

    def end_all(self, error: IntoneError) -> None:
        """End every one now."""
        for session in list(self._open):
            session.fail(error)

    def take_text(self, characters: int) -> None:
        """So many code points are to be spoken for this call. Raises Overloaded (CLIENT_LIMIT)."""
        current_call().account.take_characters(characters)
        self._metrics.input_characters.inc(characters)

    @contextmanager
    def taking_part(self, session: Session) -> Iterator[None]:
        """This call speaks, by a session."""
        call = current_call()
        call.speaks = True
        call.watch.admitted()
        with session:
            self._open.add(session)
            if self._admission.draining:  # its voice was loading when that began
                session.drain(max(0.0, self._drain_ends_at - time.monotonic()))
            try:
                yield
            finally:
                self._open.discard(session)
                _leave_totals(session)


def _leave_totals(session: Session) -> None:
    """What the stream did, for its log line."""
    fields = current_call().fields
    if isinstance(session.first_failure, SynthesisFailed):
        fields["first_failure"] = session.first_failure.cause
    totals = {k: v for k, v in asdict(session.stats).items() if v is not None}
    fields |= {k: round(v, 3) if isinstance(v, float) else v for k, v in totals.items()}
