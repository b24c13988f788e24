"""What a client is told of a part."""

from intone_server.errors import IntoneError
from intone_server.synthesis.events import Notice, NoticeKind, SegmentFinished, SegmentStarted
from intone_server.synthesis.part import Part


def segment_started(part: Part, at_seconds: float) -> SegmentStarted:
    """It has begun, at so many seconds of the stream."""
    return SegmentStarted(
        segment=part.segment,
        kind=part.kind,
        start=part.start,
        end=part.end,
        text=part.text,
        voice=part.voice,
        sample_offset=part.sample_offset,
        seed=part.seed,
        reason=part.reason,
        queue_wait_seconds=part.queue_seconds,
        at_seconds=at_seconds,
        item=part.item,
    )


def segment_finished(part: Part, at_seconds: float) -> SegmentFinished:
    """It is over, since so many seconds of the stream."""
    assert part.outcome is not None
    return SegmentFinished(
        segment=part.segment,
        outcome=part.outcome,
        sample_count=part.sent_samples,
        synthesis_seconds=part.run_seconds,
        at_seconds=at_seconds,
        error=part.error,
        item=part.item,
        ends_item=part.ends_item,
    )


def error_notice(error: IntoneError) -> Notice:
    """The call is about to fail: a client that reacts by writing no more sees the true status."""
    return Notice(NoticeKind.ERROR, f"{error.reason}: {error.message}", 0.0)
