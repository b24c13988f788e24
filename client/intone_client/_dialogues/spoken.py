"""The items of a dialogue, put together from its events."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import grpc

from intone.v1 import tts_pb2
from intone_client._errors import StreamEndedError, SynthesisError, error_from_segments
from intone_client._show import seconds, short_name
from intone_client._speech import Speech

OnEvent: TypeAlias = Callable[[tts_pb2.SpeechEvent], object]
ItemKind: TypeAlias = Literal["speech", "silence", "reuse", "audio"]

# Their chunks lie across items.
_COMPRESSED = (
    tts_pb2.AUDIO_ENCODING_OGG_OPUS,
    tts_pb2.AUDIO_ENCODING_FLAC,
    tts_pb2.AUDIO_ENCODING_MP3,
)


@dataclass(frozen=True, slots=True)
class SpokenSegment:
    """A part of an item that was made in one go. Times are in seconds."""

    #: "speech", "silence", "audio" or "reuse".
    kind: str
    #: Its part of the item's text; of a reuse, what was spoken; of silence and audio, nothing.
    text: str
    #: From the first sample of the item.
    sample_offset: int
    sample_count: int
    #: `Sampling.seed` that repeats this segment alone.
    seed: int
    #: "complete", "no_end" (heard to its end, but suspect), "failed" or "skipped".
    outcome: str
    #: When it was begun and when its last sample was made, since `Started`.
    started_at: float
    finished_at: float
    #: From its start on a replica to its last sample.
    synthesis_time: float


@dataclass(frozen=True, slots=True)
class SpokenItem:
    """An item of a script as it was heard."""

    #: In the script, from 0.
    index: int
    #: `DialogueItem.id`; empty if it has none.
    id: str
    kind: ItemKind
    #: Both as in the script; of a reuse, those of the item that it repeats.
    speaker: str
    text: str
    #: From the first sample of the dialogue.
    sample_offset: int
    sample_count: int
    #: Samples between the item before it, or the start, and this one: no item's.
    gap_before_samples: int
    #: In the format of `Started`; empty if that is compressed.
    audio: bytes = field(repr=False)
    segments: tuple[SpokenSegment, ...]
    #: Why a segment of it failed; what was heard of it is there all the same.
    error: SynthesisError | None
    #: There was nothing in it to be heard, or it repeats an item that failed.
    skipped: bool


@dataclass(frozen=True, slots=True)
class RenderedDialogue:
    """A whole dialogue. `SpokenItem.error` tells whether something of it is missing."""

    #: Of `audio`.
    format: tts_pb2.AudioFormat
    #: The whole timeline, gaps too.
    audio: bytes = field(repr=False)
    #: In order. Their audio is a second copy.
    items: list[SpokenItem]
    #: Totals of the call.
    stats: tts_pb2.Stats


class ItemAssembly:
    """Puts items together from the events of `speech`, and hands every event to `on_event`.

    `complete` holds the items that nobody has taken yet: one at most, if each is taken at once.
    """

    def __init__(
        self,
        request: tts_pb2.SynthesizeDialogueRequest,
        speech: Speech,
        on_event: OnEvent | None,
    ) -> None:
        self.complete: deque[SpokenItem] = deque()
        self.failed: dict[int, SynthesisError] = {}
        # Not the request itself: its owner may change it.
        self._script = _script_items(request.items)
        self._encoding = request.config.format.encoding
        self._speech = speech
        self._on_event = on_event
        self._came = 0
        self._position = 0  # on the timeline, in samples
        self._item_end = 0  # where the last item ended there
        self._open: _OpenItem | None = None

    def check_can_be_cut(self) -> None:
        """Raises ValueError if items have no audio of their own."""
        if self._encoding in _COMPRESSED:
            name = short_name(tts_pb2.AudioEncoding, self._encoding)
            raise ValueError(f"{name} audio cannot be cut into items: use render()")

    def check_not_begun(self) -> None:
        """Raises RuntimeError if an event was taken."""
        if self._speech.started is not None:
            raise RuntimeError("render() takes a dialogue from its start, and this one has begun")

    def check_all_came(self) -> None:
        """Raises StreamEndedError if the call, which is over, brought less than was asked for."""
        if self._came < len(self._script):
            finished = self._speech.finished or tts_pb2.Finished()
            raise StreamEndedError(
                f"the dialogue has ended after {self._came} of {len(self._script)} items",
                code=grpc.StatusCode.OK,
                reason=short_name(tts_pb2.FinishReason, finished.reason).upper(),
                request_id=self._speech.request_id,
            )

    def take(self, event: tts_pb2.SpeechEvent) -> None:
        """The next event."""
        match event.WhichOneof("event"):
            case "segment_started":
                self._begin(event.segment_started)
            case "audio":
                self._hear(event.audio)
            case "segment_finished":
                self._end(event.segment_finished)
        if self._on_event is not None:
            self._on_event(event)

    def rendered(self, audio: bytes) -> RenderedDialogue:
        """All of a call that is over."""
        started = self._speech.started or tts_pb2.Started()
        finished = self._speech.finished or tts_pb2.Finished()
        return RenderedDialogue(started.format, audio, list(self.complete), finished.stats)

    def _begin(self, started: tts_pb2.SegmentStarted) -> None:
        self._position = started.sample_offset
        if started.HasField("item"):
            self._item(started.item).begun[started.segment] = started

    def _hear(self, chunk: tts_pb2.AudioChunk) -> None:
        if self._open is not None and self._encoding not in _COMPRESSED:
            self._open.audio.append(chunk.data)

    def _end(self, finished: tts_pb2.SegmentFinished) -> None:
        if finished.HasField("item"):
            item = self._item(finished.item)
            if finished.segment not in item.begun:  # it failed while it waited for a replica
                item.begun[finished.segment] = tts_pb2.SegmentStarted(
                    kind=f"SEGMENT_KIND_{item.script.kind.upper()}",
                    sample_offset=self._position,
                    at=finished.at,
                )
            item.finished.append(finished)
        self._position += finished.sample_count
        if finished.ends_item:
            self._complete(self._item(finished.item))

    def _item(self, index: int) -> "_OpenItem":
        if self._open is None:
            self._open = _OpenItem(index, self._script[index], self._position)
        return self._open

    def _complete(self, item: "_OpenItem") -> None:
        self._open = None
        self._came += 1
        skipped = [x.outcome == tts_pb2.SEGMENT_OUTCOME_SKIPPED for x in item.finished]
        failed = [x for x in item.finished if x.outcome == tts_pb2.SEGMENT_OUTCOME_FAILED]
        error = error_from_segments(failed, self._speech.request_id) if failed else None
        if error is not None:
            self.failed[item.index] = error
        self.complete.append(
            SpokenItem(
                index=item.index,
                id=item.script.id,
                kind=item.script.kind,
                speaker=item.script.speaker,
                text=item.script.text,
                sample_offset=item.sample_offset,
                sample_count=self._position - item.sample_offset,
                gap_before_samples=item.sample_offset - self._item_end,
                audio=b"".join(item.audio),
                segments=tuple(map(item.segment, item.finished)),
                error=error,
                skipped=all(skipped),
            )
        )
        self._item_end = self._position


class _ScriptItem(NamedTuple):
    """What a script says of an item and its events do not."""

    id: str
    kind: ItemKind
    speaker: str
    text: str


@dataclass
class _OpenItem:
    """What has come of an item that is not complete."""

    index: int
    script: _ScriptItem
    sample_offset: int
    begun: dict[int, tts_pb2.SegmentStarted] = field(default_factory=dict)
    finished: list[tts_pb2.SegmentFinished] = field(default_factory=list)
    audio: list[bytes] = field(default_factory=list)

    def segment(self, finished: tts_pb2.SegmentFinished) -> SpokenSegment:
        started = self.begun[finished.segment]
        # The spans of a reuse are those of another item's text.
        is_reuse = started.kind == tts_pb2.SEGMENT_KIND_REUSE
        own = self.script.text[started.span.start : started.span.end]
        return SpokenSegment(
            kind=short_name(tts_pb2.SegmentKind, started.kind),
            text=started.text if is_reuse else own,
            sample_offset=started.sample_offset - self.sample_offset,
            sample_count=finished.sample_count,
            seed=started.seed,
            outcome=short_name(tts_pb2.SegmentOutcome, finished.outcome),
            started_at=seconds(started.at),
            finished_at=seconds(finished.at),
            synthesis_time=seconds(finished.synthesis_time),
        )


def _script_items(items: Sequence[tts_pb2.DialogueItem]) -> list[_ScriptItem]:
    script: list[_ScriptItem] = []
    by_id: dict[str, _ScriptItem] = {}
    for item in items:
        # The server refuses an item without content, in one answer with all other mistakes.
        kind: ItemKind = item.WhichOneof("content") or "speech"
        said = by_id.get(item.reuse.item_id) if kind == "reuse" else None
        own = item.speech
        speaker, text = (said.speaker, said.text) if said else (own.speaker, own.text)
        script.append(_ScriptItem(item.id, kind, speaker, text))
        by_id[item.id] = script[-1]
    return script
