"""The double's side of a dialogue: segments with their places, items in order."""

from collections.abc import Sequence
from typing import Any

from google.protobuf.duration_pb2 import Duration

from client_double import RATE, Call, Double, Script, spoken
from intone.v1 import tts_pb2

Item = tts_pb2.DialogueItem


def duration(seconds: float) -> Duration:
    return Duration(nanos=round(seconds * 1e9) % 10**9, seconds=int(seconds))


def silent(seconds: float) -> bytes:
    return bytes(2 * round(seconds * RATE))


class Stage:
    """Sends the segments of one call, numbered and in their places."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._segments = 0

    async def segment(
        self,
        item: int | None,
        *chunks: bytes,
        kind: str = "SPEECH",
        text: str = "",
        span: tuple[int, int] = (0, 0),
        outcome: str = "COMPLETE",
        begun: bool = True,
        ends: bool = True,
        seed: int = 0,
        times: tuple[float, float, float] = (0, 0, 0),
        **error: Any,
    ) -> None:
        """One segment of an item, or of none; `times` are start, end and time on a replica."""
        index, self._segments = self._segments, self._segments + 1
        before = self.call.offset
        if begun:
            started = tts_pb2.SegmentStarted(
                segment=index,
                item=item,
                kind=f"SEGMENT_KIND_{kind}",
                text=text,
                span=tts_pb2.TextSpan(start=span[0], end=span[1]),
                sample_offset=before,
                seed=seed,
                at=duration(times[0]),
            )
            await self.call.send(segment_started=started)
        for chunk in chunks:
            await self.call.audio(chunk, segment=index)
        finished = tts_pb2.SegmentFinished(
            segment=index,
            item=item,
            outcome=f"SEGMENT_OUTCOME_{outcome}",
            sample_count=self.call.offset - before,
            at=duration(times[1]),
            synthesis_time=duration(times[2]),
            error=tts_pb2.SegmentError(**error) if error else None,
            ends_item=ends and item is not None,
        )
        await self.call.send(segment_finished=finished)

    async def gap(self, seconds: float) -> None:
        """Silence between two items."""
        await self.segment(None, silent(seconds), kind="SILENCE")


def performing(double: Double) -> Script:
    """A script that performs what the double was asked for last: two chunks for each line."""

    async def perform(call: Call) -> None:
        request = double.requests[-1]
        stage = Stage(call)
        await call.started()
        for index, item in enumerate(request.items):
            queued = tts_pb2.Queued(segment=index, item=index, item_id=item.id, planned=True)
            await call.send(queued=queued)
        for index, item in enumerate(request.items):
            if index and request.HasField("gap") and _has_gap(request.items[index - 1 : index + 1]):
                await stage.gap(request.gap.ToNanoseconds() / 1e9)
            await _say(stage, index, item, request.items)
        await call.finished()

    return perform


def _has_gap(items: Sequence[Item]) -> bool:
    return not any(item.HasField("silence") for item in items)


async def _say(stage: Stage, index: int, item: Item, script: Sequence[Item]) -> None:
    match item.WhichOneof("content"):
        case "silence":
            seconds = item.silence.duration.ToNanoseconds() / 1e9
            await stage.segment(index, silent(seconds), kind="SILENCE")
        case "audio":
            await stage.segment(index, item.audio.data, kind="AUDIO")
        case content:
            is_reuse = content == "reuse"
            source = next(x for x in script if x.id == item.reuse.item_id) if is_reuse else item
            text = source.speech.text
            half = len(text) // 2
            await stage.segment(
                index,
                spoken(text[:half]),
                spoken(text[half:]),
                kind=content.upper(),
                text=text,
                span=(0, len(text)),
            )
