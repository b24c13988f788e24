"""Calls whose one request is large: how many are received at the same time, and for how long."""

import asyncio
from collections import Counter
from dataclasses import dataclass

from intone_server.errors import Overloaded, Reason

# Within this the message of a call has come: 20 MiB at 1.4 Mbit/s. Then the call is given up, and
# its place is free; grpc.aio sends no status for it: its own deadline ends it at the client.
MESSAGE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Uploads:
    """Bounds of a method whose requests are large: each is held in memory while it is received.

    `most` at the same time. `until_end`: all of the call counts, and not the receiving alone.
    """

    most: int
    until_end: bool
    retry_seconds: float


UPLOADS = {
    "/intone.v1.VoiceService/CreateVoice": Uploads(5, True, 5.0),
    # After it was received, the permit bounds how many there are.
    "/intone.v1.TextToSpeechService/SynthesizeDialogue": Uploads(32, False, 1.0),
}


class Receiving:
    """The waiting for the one message of a call.

    At the longest for as long as the task of the call lives: the handler may never be called, if
    the client leaves before its message has come.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._timer = asyncio.get_running_loop().call_later(MESSAGE_SECONDS, task.cancel)
        task.add_done_callback(self.end)

    def received(self) -> None:
        """All of it is there."""
        self._timer.cancel()

    def end(self, _: object = None) -> None:
        """The call is over."""
        self._timer.cancel()


class Upload(Receiving):
    """The receiving of one large request, counted under `method` in `counts`: or calls that never
    send anything would keep all others out."""

    def __init__(self, method: str, counts: Counter[str], *, until_end: bool) -> None:
        super().__init__()
        self._method = method
        self._counts = counts
        self._counted = True
        self._until_end = until_end
        counts[method] += 1

    def received(self) -> None:
        super().received()
        if not self._until_end:
            self.end()

    def end(self, _: object = None) -> None:
        super().end()
        if self._counted:
            self._counted = False
            self._counts[self._method] -= 1


def no_room(uploads: Uploads) -> Overloaded:
    """What a call is told that would be one too many."""
    return Overloaded(
        Reason.QUEUE_FULL,
        f"{uploads.most} other uploads are being received"
        + (" or worked on" if uploads.until_end else ""),
        retry_after=uploads.retry_seconds,
    )
