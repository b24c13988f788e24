"""What is heard of a script, without asyncio."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from intone.v1 import tts_pb2
from intone_client._blocking_speech import BlockingSpeech
from intone_client._errors import SynthesisError

from .call import Dialogue
from .spoken import RenderedDialogue, SpokenItem

if TYPE_CHECKING:
    from intone_client._blocking import BlockingClient


class BlockingDialogue:
    """The items of one script: an iterator and a context manager. See `Dialogue`.

    Iterate in one thread: `on_event` is called there. Leave it by `with` or `close()`; a call that
    was left half-way otherwise ends with its client.
    """

    def __init__(self, client: "BlockingClient", dialogue: Dialogue) -> None:
        # Its events are taken one by one, so that items are put together in the caller's thread.
        self._speech = BlockingSpeech(client, dialogue._speech)
        self._items = dialogue._items
        self._closed = False

    @property
    def started(self) -> tts_pb2.Started | None:
        """The first event; None until it has arrived."""
        return self._speech.started

    @property
    def finished(self) -> tts_pb2.Finished | None:
        """The last event; None until it has arrived."""
        return self._speech.finished

    @property
    def request_id(self) -> str:
        """Of the call; empty until the server has told it."""
        return self._speech.request_id

    @property
    def failed_items(self) -> dict[int, SynthesisError]:
        """Index and error of each item that failed so far."""
        return self._items.failed

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> SpokenItem:
        self._items.check_can_be_cut()
        while not self._items.complete:
            event = next(self._speech, None)
            if event is None:
                if not self._closed:
                    self._items.check_all_came()
                raise StopIteration
            self._items.take(event)
        return self._items.complete.popleft()

    def render(self) -> RenderedDialogue:
        """The whole dialogue, as `Dialogue.render()`."""
        self._items.check_not_begun()
        chunks: list[bytes] = []
        with self:
            for event in self._speech:
                self._items.take(event)
                if event.HasField("audio"):
                    chunks.append(event.audio.data)
            self._items.check_all_came()
        return self._items.rendered(b"".join(chunks))

    def close(self) -> None:
        """Cancel the call if it still runs."""
        self._closed = True
        self._speech.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
