"""What is heard of a script: its items in order, each with its audio."""

from types import TracebackType
from typing import Self

from intone.v1 import tts_pb2
from intone_client._errors import SynthesisError
from intone_client._speech import DialogueCall, Speech

from .spoken import ItemAssembly, OnEvent, RenderedDialogue, SpokenItem


class Dialogue:
    """The items of one script: an async iterator and an async context manager.

    Iteration yields each item as soon as its last segment has come, in the order of the script;
    one that failed too, with its `error`. It raises `IntoneError` after the items that were
    complete if the call failed, and `StreamEndedError` if the server ended it before the last
    item. It ends at once after `aclose()`. A timeout around one `anext()` is safe: it loses
    nothing and does not end the call.

    One item is held in memory and nothing is read ahead: while the caller works on an item the
    server waits, as long as it does for slow clients (30 s, unless it is set otherwise).

    The audio of OGG_OPUS, FLAC and MP3 cannot be cut into items: iteration raises ValueError, and
    `render()` is the way to have it.
    """

    def __init__(
        self,
        call: DialogueCall,
        address: str,
        request: tts_pb2.SynthesizeDialogueRequest,
        on_event: OnEvent | None,
    ) -> None:
        self._speech = Speech(call, address)
        self._items = ItemAssembly(request, self._speech, on_event)
        self._closed = False

    @property
    def started(self) -> tts_pb2.Started | None:
        """The first event: format, limits and request id. None until it has arrived."""
        return self._speech.started

    @property
    def finished(self) -> tts_pb2.Finished | None:
        """The last event: reason and totals. None until it has arrived."""
        return self._speech.finished

    @property
    def request_id(self) -> str:
        """Of the call, as in the server's log; empty until the server has told it."""
        return self._speech.request_id

    @property
    def failed_items(self) -> dict[int, SynthesisError]:
        """Index and error of each item that failed so far."""
        return self._items.failed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SpokenItem:
        self._items.check_can_be_cut()
        while not self._items.complete:
            event = await anext(self._speech, None)
            if event is None:
                if not self._closed:
                    self._items.check_all_came()
                raise StopAsyncIteration
            self._items.take(event)
        return self._items.complete.popleft()

    async def render(self) -> RenderedDialogue:
        """The whole dialogue, in any encoding. The call is over then, also if this is cancelled.

        Raises what iteration raises, and RuntimeError if that has begun.
        """
        self._items.check_not_begun()
        chunks: list[bytes] = []
        async with self:
            async for event in self._speech:
                self._items.take(event)
                if event.HasField("audio"):
                    chunks.append(event.audio.data)
            self._items.check_all_came()
        return self._items.rendered(b"".join(chunks))

    async def aclose(self) -> None:
        """Cancel the call if it still runs, and wait until nothing of it is left."""
        self._closed = True
        await self._speech.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
