"""From domain values to response messages."""

import enum
import time
from dataclasses import asdict
from typing import Any

from google.protobuf import duration_pb2, timestamp_pb2

from intone.v1 import tts_pb2, voices_pb2
from intone_server.audio.encoding import Encoding
from intone_server.engines.base import EngineInfo
from intone_server.errors import IntoneError
from intone_server.rpc.formats import ENCODINGS
from intone_server.rpc.requests import SAMPLING_RANGES
from intone_server.rpc.scheduling import PRIORITIES
from intone_server.rpc.statuses import code_of, message_of
from intone_server.rpc.texts import text_options
from intone_server.synthesis import events
from intone_server.synthesis.planning import PlannedSegment
from intone_server.synthesis.segmenter import CommitReason, SegmentationMode
from intone_server.synthesis.speech import SpeechConfig
from intone_server.voices.voice import Voice

ENCODING_VALUES = {domain: value for value, domain in ENCODINGS.items()}
PRIORITY_VALUES = {domain: value for value, domain in PRIORITIES.items()}
MODE_VALUES = {
    SegmentationMode.SENTENCE: tts_pb2.SEGMENTATION_MODE_SENTENCE,
    SegmentationMode.CLAUSE: tts_pb2.SEGMENTATION_MODE_CLAUSE,
    SegmentationMode.MANUAL: tts_pb2.SEGMENTATION_MODE_MANUAL,
}


def duration(seconds: float) -> duration_pb2.Duration:
    """Seconds as a Duration, to the nanosecond."""
    message = duration_pb2.Duration()
    message.FromNanoseconds(round(seconds * 1e9))
    return message


def audio_format(encoding: Encoding, sample_rate_hertz: int) -> tts_pb2.AudioFormat:
    """Encoding and rate."""
    return tts_pb2.AudioFormat(
        encoding=ENCODING_VALUES[encoding], sample_rate_hertz=sample_rate_hertz
    )


def effective_config(config: SpeechConfig, info: EngineInfo) -> tts_pb2.SpeechConfig:
    """The settings of a stream with the engine's defaults filled in."""
    sampling = tts_pb2.Sampling(seed=config.seed)
    for name in SAMPLING_RANGES:
        value = getattr(config.sampling, name)
        value = getattr(info.sampling, name) if value is None else value
        if value is not None:
            setattr(sampling, name, value)
    scheduling = tts_pb2.Scheduling(priority=PRIORITY_VALUES[config.priority])
    if config.max_queue_wait_seconds is not None:
        scheduling.max_queue_wait.CopyFrom(duration(config.max_queue_wait_seconds))
    if config.max_ahead_seconds is not None:
        scheduling.max_ahead.CopyFrom(duration(config.max_ahead_seconds))
    return tts_pb2.SpeechConfig(
        voice=config.voice,
        language=config.language,
        format=audio_format(config.encoding, config.sample_rate_hertz),
        sampling=sampling,
        segmentation=tts_pb2.Segmentation(
            mode=MODE_VALUES[config.mode],
            max_characters=config.max_characters,
            first_max_characters=config.first_max_characters,
            max_text_delay=duration(config.max_text_delay_seconds),
            segment_gap=duration(config.segment_gap_seconds),
            paragraph_gap=duration(config.paragraph_gap_seconds),
        ),
        text=text_options(config.text),
        scheduling=scheduling,
        segment_events=config.segment_events,
        queue_events=config.queue_events,
        gain_db=config.gain_db,
    )


def stats(totals: events.Stats) -> tts_pb2.Stats:
    """Totals of a stream."""
    message = tts_pb2.Stats(
        characters=totals.characters,
        segments=totals.segments,
        failed_segments=totals.failed_segments,
        audio_seconds=totals.audio_seconds,
        queue_wait=duration(totals.queue_wait_seconds),
        synthesis_time=duration(totals.synthesis_seconds),
        speed=totals.speed,
        underruns=totals.underruns,
        clipped_samples=totals.clipped_samples,
        max_in_flight=totals.max_in_flight,
        wall_time=duration(totals.wall_seconds),
    )
    if totals.first_audio_seconds is not None:
        message.time_to_first_audio.CopyFrom(duration(totals.first_audio_seconds))
    return message


def segment_error(error: IntoneError) -> tts_pb2.SegmentError:
    """Why a segment failed."""
    return tts_pb2.SegmentError(
        code=code_of(error).value[0], reason=error.reason, message=message_of(error)
    )


def segment_finished(event: events.SegmentFinished) -> tts_pb2.SegmentFinished:
    """How a segment ended."""
    return tts_pb2.SegmentFinished(
        segment=event.segment,
        item_id=event.item.id if event.item else "",
        item=event.item.index if event.item else None,
        ends_item=event.ends_item,
        at=duration(event.at_seconds),
        outcome=_value("SEGMENT_OUTCOME", event.outcome),
        sample_count=event.sample_count,
        synthesis_time=duration(event.synthesis_seconds),
        error=segment_error(event.error) if event.error else None,
    )


def commit_reason(reason: CommitReason) -> tts_pb2.CommitReason:
    """Why a segment was cut where it was."""
    value: tts_pb2.CommitReason = _value("COMMIT_REASON", reason)
    return value


def plan(
    text: str, segments: list[PlannedSegment], estimated_wait_seconds: float
) -> tts_pb2.PlanTextResponse:
    """The segments of a text with their estimates."""
    return tts_pb2.PlanTextResponse(
        segments=[
            tts_pb2.PlannedSegment(
                span=tts_pb2.TextSpan(start=segment.start, end=segment.end),
                text=text[segment.start : segment.end],
                spoken_text=segment.spoken_text,
                reason=commit_reason(segment.reason),
                estimated_audio=duration(segment.seconds),
            )
            for segment in segments
        ],
        estimated_audio=duration(sum(segment.seconds for segment in segments)),
        estimated_wait=duration(estimated_wait_seconds),
    )


def voice(known: Voice, default: str, subject: str) -> voices_pb2.Voice:
    """A voice, as the caller `subject` is told of it; `default` is the name of the default one."""
    message = voices_pb2.Voice(
        name=known.name,
        language=known.language,
        origin=getattr(voices_pb2, f"VOICE_ORIGIN_{known.origin.name}"),
        digest=known.digest,
        license=known.license,
        labels=known.labels,
        loaded=known.loaded,
        default=known.name == default,
        shared=known.shared,
        owned=known.is_owned_by(subject),
    )
    if known.create_time is not None:
        message.create_time.FromMilliseconds(round(known.create_time * 1000))
    if known.report is not None:
        message.report.CopyFrom(voices_pb2.PromptReport(**asdict(known.report)))
    return message


def speech_event(sequence: int, epoch: int, event: events.Event) -> tts_pb2.SpeechEvent:
    """One event of a session, numbered."""
    message = tts_pb2.SpeechEvent(sequence=sequence, epoch=epoch)
    match event:
        case events.AudioChunk():
            message.audio.data = event.data
            message.audio.segment = event.segment
            message.audio.sample_offset = event.sample_offset
            message.audio.sample_count = event.sample_count
        case events.Queued():
            message.queued.CopyFrom(
                tts_pb2.Queued(
                    segment=event.segment,
                    position=event.position,
                    estimated_wait=duration(event.estimated_wait_seconds),
                    item_id=event.item.id if event.item else "",
                    item=event.item.index if event.item else None,
                    planned=event.planned,
                    estimated_audio=duration(event.estimated_audio_seconds),
                    at=duration(event.at_seconds),
                )
            )
        case events.SegmentStarted():
            message.segment_started.CopyFrom(_segment_started(event))
        case events.SegmentFinished():
            message.segment_finished.CopyFrom(segment_finished(event))
        case events.Flushed():
            message.flushed.CopyFrom(
                tts_pb2.Flushed(
                    id=event.id, sample_offset=event.sample_offset, cleared=event.cleared
                )
            )
        case events.Cleared():
            message.cleared.CopyFrom(
                tts_pb2.Cleared(
                    id=event.id,
                    epoch=event.epoch,
                    dropped_segments=event.dropped_segments,
                    discarded_samples=event.discarded_samples,
                    text_spoken=event.text_spoken,
                    text_unspoken=event.text_unspoken,
                    text_split_estimated=event.text_split_estimated,
                )
            )
        case events.Notice():
            at = timestamp_pb2.Timestamp()
            at.FromMilliseconds(round((time.time() + event.effective_in_seconds) * 1000))
            message.notice.CopyFrom(
                tts_pb2.Notice(
                    kind=_value("NOTICE_KIND", event.kind),
                    message=event.message,
                    effective_at=at,
                )
            )
        case events.Finished():
            message.finished.reason = _value("FINISH_REASON", event.reason)
            message.finished.stats.CopyFrom(stats(event.stats))
    return message


def _segment_started(event: events.SegmentStarted) -> tts_pb2.SegmentStarted:
    return tts_pb2.SegmentStarted(
        segment=event.segment,
        item_id=event.item.id if event.item else "",
        item=event.item.index if event.item else None,
        at=duration(event.at_seconds),
        kind=_value("SEGMENT_KIND", event.kind),
        span=tts_pb2.TextSpan(start=event.start, end=event.end),
        text=event.text,
        voice=event.voice,
        sample_offset=event.sample_offset,
        seed=event.seed,
        reason=commit_reason(event.reason),
        queue_wait=duration(event.queue_wait_seconds),
    )


def _value(prefix: str, member: enum.Enum) -> Any:
    """The proto's enum value of the same name; a test checks that there is one for each member."""
    return getattr(tts_pb2, f"{prefix}_{member.name}")
