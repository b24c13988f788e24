import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AudioEncoding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIO_ENCODING_UNSPECIFIED: _ClassVar[AudioEncoding]
    AUDIO_ENCODING_PCM_S16LE: _ClassVar[AudioEncoding]
    AUDIO_ENCODING_PCM_F32LE: _ClassVar[AudioEncoding]
    AUDIO_ENCODING_MULAW: _ClassVar[AudioEncoding]
    AUDIO_ENCODING_ALAW: _ClassVar[AudioEncoding]
    AUDIO_ENCODING_WAV: _ClassVar[AudioEncoding]
    AUDIO_ENCODING_OGG_OPUS: _ClassVar[AudioEncoding]
    AUDIO_ENCODING_FLAC: _ClassVar[AudioEncoding]
    AUDIO_ENCODING_MP3: _ClassVar[AudioEncoding]

class SegmentationMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEGMENTATION_MODE_UNSPECIFIED: _ClassVar[SegmentationMode]
    SEGMENTATION_MODE_SENTENCE: _ClassVar[SegmentationMode]
    SEGMENTATION_MODE_CLAUSE: _ClassVar[SegmentationMode]
    SEGMENTATION_MODE_MANUAL: _ClassVar[SegmentationMode]

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_BATCH: _ClassVar[Priority]
    PRIORITY_STANDARD: _ClassVar[Priority]
    PRIORITY_INTERACTIVE: _ClassVar[Priority]

class OnItemFailure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_ITEM_FAILURE_UNSPECIFIED: _ClassVar[OnItemFailure]
    ON_ITEM_FAILURE_SKIP: _ClassVar[OnItemFailure]
    ON_ITEM_FAILURE_SILENCE: _ClassVar[OnItemFailure]
    ON_ITEM_FAILURE_ABORT: _ClassVar[OnItemFailure]

class SegmentKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEGMENT_KIND_UNSPECIFIED: _ClassVar[SegmentKind]
    SEGMENT_KIND_SPEECH: _ClassVar[SegmentKind]
    SEGMENT_KIND_SILENCE: _ClassVar[SegmentKind]
    SEGMENT_KIND_AUDIO: _ClassVar[SegmentKind]
    SEGMENT_KIND_REUSE: _ClassVar[SegmentKind]

class CommitReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMMIT_REASON_UNSPECIFIED: _ClassVar[CommitReason]
    COMMIT_REASON_SENTENCE: _ClassVar[CommitReason]
    COMMIT_REASON_CLAUSE: _ClassVar[CommitReason]
    COMMIT_REASON_MAX_CHARACTERS: _ClassVar[CommitReason]
    COMMIT_REASON_FLUSH: _ClassVar[CommitReason]
    COMMIT_REASON_PAUSE: _ClassVar[CommitReason]
    COMMIT_REASON_TEXT_DELAY: _ClassVar[CommitReason]
    COMMIT_REASON_END_OF_INPUT: _ClassVar[CommitReason]
    COMMIT_REASON_VOICE: _ClassVar[CommitReason]

class SegmentOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEGMENT_OUTCOME_UNSPECIFIED: _ClassVar[SegmentOutcome]
    SEGMENT_OUTCOME_COMPLETE: _ClassVar[SegmentOutcome]
    SEGMENT_OUTCOME_CLEARED: _ClassVar[SegmentOutcome]
    SEGMENT_OUTCOME_NO_END: _ClassVar[SegmentOutcome]
    SEGMENT_OUTCOME_FAILED: _ClassVar[SegmentOutcome]
    SEGMENT_OUTCOME_SKIPPED: _ClassVar[SegmentOutcome]

class NoticeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NOTICE_KIND_UNSPECIFIED: _ClassVar[NoticeKind]
    NOTICE_KIND_IDLE: _ClassVar[NoticeKind]
    NOTICE_KIND_DRAINING: _ClassVar[NoticeKind]
    NOTICE_KIND_SESSION_LIMIT: _ClassVar[NoticeKind]
    NOTICE_KIND_TEXT_ALTERED: _ClassVar[NoticeKind]
    NOTICE_KIND_ERROR: _ClassVar[NoticeKind]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_END_OF_INPUT: _ClassVar[FinishReason]
    FINISH_REASON_IDLE_TIMEOUT: _ClassVar[FinishReason]
    FINISH_REASON_DRAINED: _ClassVar[FinishReason]
    FINISH_REASON_SESSION_LIMIT: _ClassVar[FinishReason]
AUDIO_ENCODING_UNSPECIFIED: AudioEncoding
AUDIO_ENCODING_PCM_S16LE: AudioEncoding
AUDIO_ENCODING_PCM_F32LE: AudioEncoding
AUDIO_ENCODING_MULAW: AudioEncoding
AUDIO_ENCODING_ALAW: AudioEncoding
AUDIO_ENCODING_WAV: AudioEncoding
AUDIO_ENCODING_OGG_OPUS: AudioEncoding
AUDIO_ENCODING_FLAC: AudioEncoding
AUDIO_ENCODING_MP3: AudioEncoding
SEGMENTATION_MODE_UNSPECIFIED: SegmentationMode
SEGMENTATION_MODE_SENTENCE: SegmentationMode
SEGMENTATION_MODE_CLAUSE: SegmentationMode
SEGMENTATION_MODE_MANUAL: SegmentationMode
PRIORITY_UNSPECIFIED: Priority
PRIORITY_BATCH: Priority
PRIORITY_STANDARD: Priority
PRIORITY_INTERACTIVE: Priority
ON_ITEM_FAILURE_UNSPECIFIED: OnItemFailure
ON_ITEM_FAILURE_SKIP: OnItemFailure
ON_ITEM_FAILURE_SILENCE: OnItemFailure
ON_ITEM_FAILURE_ABORT: OnItemFailure
SEGMENT_KIND_UNSPECIFIED: SegmentKind
SEGMENT_KIND_SPEECH: SegmentKind
SEGMENT_KIND_SILENCE: SegmentKind
SEGMENT_KIND_AUDIO: SegmentKind
SEGMENT_KIND_REUSE: SegmentKind
COMMIT_REASON_UNSPECIFIED: CommitReason
COMMIT_REASON_SENTENCE: CommitReason
COMMIT_REASON_CLAUSE: CommitReason
COMMIT_REASON_MAX_CHARACTERS: CommitReason
COMMIT_REASON_FLUSH: CommitReason
COMMIT_REASON_PAUSE: CommitReason
COMMIT_REASON_TEXT_DELAY: CommitReason
COMMIT_REASON_END_OF_INPUT: CommitReason
COMMIT_REASON_VOICE: CommitReason
SEGMENT_OUTCOME_UNSPECIFIED: SegmentOutcome
SEGMENT_OUTCOME_COMPLETE: SegmentOutcome
SEGMENT_OUTCOME_CLEARED: SegmentOutcome
SEGMENT_OUTCOME_NO_END: SegmentOutcome
SEGMENT_OUTCOME_FAILED: SegmentOutcome
SEGMENT_OUTCOME_SKIPPED: SegmentOutcome
NOTICE_KIND_UNSPECIFIED: NoticeKind
NOTICE_KIND_IDLE: NoticeKind
NOTICE_KIND_DRAINING: NoticeKind
NOTICE_KIND_SESSION_LIMIT: NoticeKind
NOTICE_KIND_TEXT_ALTERED: NoticeKind
NOTICE_KIND_ERROR: NoticeKind
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_END_OF_INPUT: FinishReason
FINISH_REASON_IDLE_TIMEOUT: FinishReason
FINISH_REASON_DRAINED: FinishReason
FINISH_REASON_SESSION_LIMIT: FinishReason

class AudioFormat(_message.Message):
    __slots__ = ("encoding", "sample_rate_hertz")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_RATE_HERTZ_FIELD_NUMBER: _ClassVar[int]
    encoding: AudioEncoding
    sample_rate_hertz: int
    def __init__(self, encoding: _Optional[_Union[AudioEncoding, str]] = ..., sample_rate_hertz: _Optional[int] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("temperature", "decode_steps", "eos_threshold", "noise_clamp", "frames_after_eos", "seed")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    DECODE_STEPS_FIELD_NUMBER: _ClassVar[int]
    EOS_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    NOISE_CLAMP_FIELD_NUMBER: _ClassVar[int]
    FRAMES_AFTER_EOS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    decode_steps: int
    eos_threshold: float
    noise_clamp: float
    frames_after_eos: int
    seed: int
    def __init__(self, temperature: _Optional[float] = ..., decode_steps: _Optional[int] = ..., eos_threshold: _Optional[float] = ..., noise_clamp: _Optional[float] = ..., frames_after_eos: _Optional[int] = ..., seed: _Optional[int] = ...) -> None: ...

class Segmentation(_message.Message):
    __slots__ = ("mode", "max_characters", "first_max_characters", "max_text_delay", "segment_gap", "paragraph_gap")
    MODE_FIELD_NUMBER: _ClassVar[int]
    MAX_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    FIRST_MAX_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    MAX_TEXT_DELAY_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_GAP_FIELD_NUMBER: _ClassVar[int]
    PARAGRAPH_GAP_FIELD_NUMBER: _ClassVar[int]
    mode: SegmentationMode
    max_characters: int
    first_max_characters: int
    max_text_delay: _duration_pb2.Duration
    segment_gap: _duration_pb2.Duration
    paragraph_gap: _duration_pb2.Duration
    def __init__(self, mode: _Optional[_Union[SegmentationMode, str]] = ..., max_characters: _Optional[int] = ..., first_max_characters: _Optional[int] = ..., max_text_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., segment_gap: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., paragraph_gap: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Replacement(_message.Message):
    __slots__ = ("word", "spoken", "match_case")
    WORD_FIELD_NUMBER: _ClassVar[int]
    SPOKEN_FIELD_NUMBER: _ClassVar[int]
    MATCH_CASE_FIELD_NUMBER: _ClassVar[int]
    word: str
    spoken: str
    match_case: bool
    def __init__(self, word: _Optional[str] = ..., spoken: _Optional[str] = ..., match_case: _Optional[bool] = ...) -> None: ...

class TextOptions(_message.Message):
    __slots__ = ("strip_markdown", "inline_pauses", "normalize", "replacements")
    STRIP_MARKDOWN_FIELD_NUMBER: _ClassVar[int]
    INLINE_PAUSES_FIELD_NUMBER: _ClassVar[int]
    NORMALIZE_FIELD_NUMBER: _ClassVar[int]
    REPLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    strip_markdown: bool
    inline_pauses: bool
    normalize: bool
    replacements: _containers.RepeatedCompositeFieldContainer[Replacement]
    def __init__(self, strip_markdown: _Optional[bool] = ..., inline_pauses: _Optional[bool] = ..., normalize: _Optional[bool] = ..., replacements: _Optional[_Iterable[_Union[Replacement, _Mapping]]] = ...) -> None: ...

class Scheduling(_message.Message):
    __slots__ = ("priority", "max_queue_wait", "max_ahead")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MAX_QUEUE_WAIT_FIELD_NUMBER: _ClassVar[int]
    MAX_AHEAD_FIELD_NUMBER: _ClassVar[int]
    priority: Priority
    max_queue_wait: _duration_pb2.Duration
    max_ahead: _duration_pb2.Duration
    def __init__(self, priority: _Optional[_Union[Priority, str]] = ..., max_queue_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_ahead: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SpeechConfig(_message.Message):
    __slots__ = ("voice", "language", "format", "sampling", "segmentation", "text", "scheduling", "segment_events", "queue_events", "gain_db")
    VOICE_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    SEGMENTATION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULING_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_EVENTS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_EVENTS_FIELD_NUMBER: _ClassVar[int]
    GAIN_DB_FIELD_NUMBER: _ClassVar[int]
    voice: str
    language: str
    format: AudioFormat
    sampling: Sampling
    segmentation: Segmentation
    text: TextOptions
    scheduling: Scheduling
    segment_events: bool
    queue_events: bool
    gain_db: float
    def __init__(self, voice: _Optional[str] = ..., language: _Optional[str] = ..., format: _Optional[_Union[AudioFormat, _Mapping]] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., segmentation: _Optional[_Union[Segmentation, _Mapping]] = ..., text: _Optional[_Union[TextOptions, _Mapping]] = ..., scheduling: _Optional[_Union[Scheduling, _Mapping]] = ..., segment_events: _Optional[bool] = ..., queue_events: _Optional[bool] = ..., gain_db: _Optional[float] = ...) -> None: ...

class Flush(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class Clear(_message.Message):
    __slots__ = ("id", "heard_samples")
    ID_FIELD_NUMBER: _ClassVar[int]
    HEARD_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    id: str
    heard_samples: int
    def __init__(self, id: _Optional[str] = ..., heard_samples: _Optional[int] = ...) -> None: ...

class Pause(_message.Message):
    __slots__ = ("duration",)
    DURATION_FIELD_NUMBER: _ClassVar[int]
    duration: _duration_pb2.Duration
    def __init__(self, duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PlaybackReport(_message.Message):
    __slots__ = ("played_samples",)
    PLAYED_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    played_samples: int
    def __init__(self, played_samples: _Optional[int] = ...) -> None: ...

class SynthesizeRequest(_message.Message):
    __slots__ = ("config", "text", "flush", "clear", "pause", "playback", "voice")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FLUSH_FIELD_NUMBER: _ClassVar[int]
    CLEAR_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    PLAYBACK_FIELD_NUMBER: _ClassVar[int]
    VOICE_FIELD_NUMBER: _ClassVar[int]
    config: SpeechConfig
    text: str
    flush: Flush
    clear: Clear
    pause: Pause
    playback: PlaybackReport
    voice: str
    def __init__(self, config: _Optional[_Union[SpeechConfig, _Mapping]] = ..., text: _Optional[str] = ..., flush: _Optional[_Union[Flush, _Mapping]] = ..., clear: _Optional[_Union[Clear, _Mapping]] = ..., pause: _Optional[_Union[Pause, _Mapping]] = ..., playback: _Optional[_Union[PlaybackReport, _Mapping]] = ..., voice: _Optional[str] = ...) -> None: ...

class SynthesizeResponse(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: SpeechEvent
    def __init__(self, event: _Optional[_Union[SpeechEvent, _Mapping]] = ...) -> None: ...

class SynthesizeTextRequest(_message.Message):
    __slots__ = ("text", "config")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    text: str
    config: SpeechConfig
    def __init__(self, text: _Optional[str] = ..., config: _Optional[_Union[SpeechConfig, _Mapping]] = ...) -> None: ...

class SynthesizeTextResponse(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: SpeechEvent
    def __init__(self, event: _Optional[_Union[SpeechEvent, _Mapping]] = ...) -> None: ...

class SynthesizeFileRequest(_message.Message):
    __slots__ = ("text", "config")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    text: str
    config: SpeechConfig
    def __init__(self, text: _Optional[str] = ..., config: _Optional[_Union[SpeechConfig, _Mapping]] = ...) -> None: ...

class SynthesizeFileResponse(_message.Message):
    __slots__ = ("audio", "format", "segments", "stats")
    AUDIO_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    audio: bytes
    format: AudioFormat
    segments: _containers.RepeatedCompositeFieldContainer[SegmentFinished]
    stats: Stats
    def __init__(self, audio: _Optional[bytes] = ..., format: _Optional[_Union[AudioFormat, _Mapping]] = ..., segments: _Optional[_Iterable[_Union[SegmentFinished, _Mapping]]] = ..., stats: _Optional[_Union[Stats, _Mapping]] = ...) -> None: ...

class PlanTextRequest(_message.Message):
    __slots__ = ("text", "config")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    text: str
    config: SpeechConfig
    def __init__(self, text: _Optional[str] = ..., config: _Optional[_Union[SpeechConfig, _Mapping]] = ...) -> None: ...

class PlanTextResponse(_message.Message):
    __slots__ = ("segments", "estimated_audio", "estimated_wait")
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_AUDIO_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_WAIT_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedCompositeFieldContainer[PlannedSegment]
    estimated_audio: _duration_pb2.Duration
    estimated_wait: _duration_pb2.Duration
    def __init__(self, segments: _Optional[_Iterable[_Union[PlannedSegment, _Mapping]]] = ..., estimated_audio: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., estimated_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PlannedSegment(_message.Message):
    __slots__ = ("span", "text", "spoken_text", "reason", "estimated_audio")
    SPAN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SPOKEN_TEXT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_AUDIO_FIELD_NUMBER: _ClassVar[int]
    span: TextSpan
    text: str
    spoken_text: str
    reason: CommitReason
    estimated_audio: _duration_pb2.Duration
    def __init__(self, span: _Optional[_Union[TextSpan, _Mapping]] = ..., text: _Optional[str] = ..., spoken_text: _Optional[str] = ..., reason: _Optional[_Union[CommitReason, str]] = ..., estimated_audio: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SpeechItem(_message.Message):
    __slots__ = ("speaker", "text", "sampling")
    SPEAKER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    speaker: str
    text: str
    sampling: Sampling
    def __init__(self, speaker: _Optional[str] = ..., text: _Optional[str] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ...) -> None: ...

class SilenceItem(_message.Message):
    __slots__ = ("duration",)
    DURATION_FIELD_NUMBER: _ClassVar[int]
    duration: _duration_pb2.Duration
    def __init__(self, duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ReuseItem(_message.Message):
    __slots__ = ("item_id",)
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    def __init__(self, item_id: _Optional[str] = ...) -> None: ...

class AudioItem(_message.Message):
    __slots__ = ("data", "format")
    DATA_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    format: AudioFormat
    def __init__(self, data: _Optional[bytes] = ..., format: _Optional[_Union[AudioFormat, _Mapping]] = ...) -> None: ...

class DialogueItem(_message.Message):
    __slots__ = ("id", "speech", "silence", "reuse", "audio")
    ID_FIELD_NUMBER: _ClassVar[int]
    SPEECH_FIELD_NUMBER: _ClassVar[int]
    SILENCE_FIELD_NUMBER: _ClassVar[int]
    REUSE_FIELD_NUMBER: _ClassVar[int]
    AUDIO_FIELD_NUMBER: _ClassVar[int]
    id: str
    speech: SpeechItem
    silence: SilenceItem
    reuse: ReuseItem
    audio: AudioItem
    def __init__(self, id: _Optional[str] = ..., speech: _Optional[_Union[SpeechItem, _Mapping]] = ..., silence: _Optional[_Union[SilenceItem, _Mapping]] = ..., reuse: _Optional[_Union[ReuseItem, _Mapping]] = ..., audio: _Optional[_Union[AudioItem, _Mapping]] = ...) -> None: ...

class SynthesizeDialogueRequest(_message.Message):
    __slots__ = ("config", "cast", "items", "on_item_failure", "gap", "max_concurrency")
    class CastEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    CAST_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ON_ITEM_FAILURE_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    config: SpeechConfig
    cast: _containers.ScalarMap[str, str]
    items: _containers.RepeatedCompositeFieldContainer[DialogueItem]
    on_item_failure: OnItemFailure
    gap: _duration_pb2.Duration
    max_concurrency: int
    def __init__(self, config: _Optional[_Union[SpeechConfig, _Mapping]] = ..., cast: _Optional[_Mapping[str, str]] = ..., items: _Optional[_Iterable[_Union[DialogueItem, _Mapping]]] = ..., on_item_failure: _Optional[_Union[OnItemFailure, str]] = ..., gap: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_concurrency: _Optional[int] = ...) -> None: ...

class SynthesizeDialogueResponse(_message.Message):
    __slots__ = ("event",)
    EVENT_FIELD_NUMBER: _ClassVar[int]
    event: SpeechEvent
    def __init__(self, event: _Optional[_Union[SpeechEvent, _Mapping]] = ...) -> None: ...

class SpeechEvent(_message.Message):
    __slots__ = ("sequence", "epoch", "started", "queued", "segment_started", "audio", "segment_finished", "flushed", "cleared", "notice", "finished")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_STARTED_FIELD_NUMBER: _ClassVar[int]
    AUDIO_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FINISHED_FIELD_NUMBER: _ClassVar[int]
    FLUSHED_FIELD_NUMBER: _ClassVar[int]
    CLEARED_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    epoch: int
    started: Started
    queued: Queued
    segment_started: SegmentStarted
    audio: AudioChunk
    segment_finished: SegmentFinished
    flushed: Flushed
    cleared: Cleared
    notice: Notice
    finished: Finished
    def __init__(self, sequence: _Optional[int] = ..., epoch: _Optional[int] = ..., started: _Optional[_Union[Started, _Mapping]] = ..., queued: _Optional[_Union[Queued, _Mapping]] = ..., segment_started: _Optional[_Union[SegmentStarted, _Mapping]] = ..., audio: _Optional[_Union[AudioChunk, _Mapping]] = ..., segment_finished: _Optional[_Union[SegmentFinished, _Mapping]] = ..., flushed: _Optional[_Union[Flushed, _Mapping]] = ..., cleared: _Optional[_Union[Cleared, _Mapping]] = ..., notice: _Optional[_Union[Notice, _Mapping]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ...) -> None: ...

class Started(_message.Message):
    __slots__ = ("request_id", "format", "effective_config", "limits", "model", "server_version")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_CONFIG_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    format: AudioFormat
    effective_config: SpeechConfig
    limits: Limits
    model: str
    server_version: str
    def __init__(self, request_id: _Optional[str] = ..., format: _Optional[_Union[AudioFormat, _Mapping]] = ..., effective_config: _Optional[_Union[SpeechConfig, _Mapping]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., model: _Optional[str] = ..., server_version: _Optional[str] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_text_characters", "max_buffered_characters", "max_segment_characters", "max_file_seconds", "max_prompt_bytes", "idle_timeout", "session_limit", "max_piece_characters", "max_dialogue_items", "max_dialogue_characters", "max_dialogue_held_audio")
    MAX_TEXT_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    MAX_BUFFERED_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    MAX_SEGMENT_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    MAX_FILE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MAX_PROMPT_BYTES_FIELD_NUMBER: _ClassVar[int]
    IDLE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    SESSION_LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_PIECE_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    MAX_DIALOGUE_ITEMS_FIELD_NUMBER: _ClassVar[int]
    MAX_DIALOGUE_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    MAX_DIALOGUE_HELD_AUDIO_FIELD_NUMBER: _ClassVar[int]
    max_text_characters: int
    max_buffered_characters: int
    max_segment_characters: int
    max_file_seconds: int
    max_prompt_bytes: int
    idle_timeout: _duration_pb2.Duration
    session_limit: _duration_pb2.Duration
    max_piece_characters: int
    max_dialogue_items: int
    max_dialogue_characters: int
    max_dialogue_held_audio: _duration_pb2.Duration
    def __init__(self, max_text_characters: _Optional[int] = ..., max_buffered_characters: _Optional[int] = ..., max_segment_characters: _Optional[int] = ..., max_file_seconds: _Optional[int] = ..., max_prompt_bytes: _Optional[int] = ..., idle_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., session_limit: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_piece_characters: _Optional[int] = ..., max_dialogue_items: _Optional[int] = ..., max_dialogue_characters: _Optional[int] = ..., max_dialogue_held_audio: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Queued(_message.Message):
    __slots__ = ("segment", "position", "estimated_wait", "item_id", "item", "planned", "estimated_audio", "at")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_WAIT_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_AUDIO_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    segment: int
    position: int
    estimated_wait: _duration_pb2.Duration
    item_id: str
    item: int
    planned: bool
    estimated_audio: _duration_pb2.Duration
    at: _duration_pb2.Duration
    def __init__(self, segment: _Optional[int] = ..., position: _Optional[int] = ..., estimated_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., item_id: _Optional[str] = ..., item: _Optional[int] = ..., planned: _Optional[bool] = ..., estimated_audio: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., at: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class TextSpan(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class SegmentStarted(_message.Message):
    __slots__ = ("segment", "item_id", "kind", "span", "text", "voice", "sample_offset", "seed", "reason", "queue_wait", "item", "at")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VOICE_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    QUEUE_WAIT_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    segment: int
    item_id: str
    kind: SegmentKind
    span: TextSpan
    text: str
    voice: str
    sample_offset: int
    seed: int
    reason: CommitReason
    queue_wait: _duration_pb2.Duration
    item: int
    at: _duration_pb2.Duration
    def __init__(self, segment: _Optional[int] = ..., item_id: _Optional[str] = ..., kind: _Optional[_Union[SegmentKind, str]] = ..., span: _Optional[_Union[TextSpan, _Mapping]] = ..., text: _Optional[str] = ..., voice: _Optional[str] = ..., sample_offset: _Optional[int] = ..., seed: _Optional[int] = ..., reason: _Optional[_Union[CommitReason, str]] = ..., queue_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., item: _Optional[int] = ..., at: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AudioChunk(_message.Message):
    __slots__ = ("data", "segment", "sample_offset", "sample_count")
    DATA_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    segment: int
    sample_offset: int
    sample_count: int
    def __init__(self, data: _Optional[bytes] = ..., segment: _Optional[int] = ..., sample_offset: _Optional[int] = ..., sample_count: _Optional[int] = ...) -> None: ...

class SegmentError(_message.Message):
    __slots__ = ("code", "reason", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: int
    reason: str
    message: str
    def __init__(self, code: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class SegmentFinished(_message.Message):
    __slots__ = ("segment", "item_id", "outcome", "sample_count", "synthesis_time", "error", "item", "at", "ends_item")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SYNTHESIS_TIME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    ENDS_ITEM_FIELD_NUMBER: _ClassVar[int]
    segment: int
    item_id: str
    outcome: SegmentOutcome
    sample_count: int
    synthesis_time: _duration_pb2.Duration
    error: SegmentError
    item: int
    at: _duration_pb2.Duration
    ends_item: bool
    def __init__(self, segment: _Optional[int] = ..., item_id: _Optional[str] = ..., outcome: _Optional[_Union[SegmentOutcome, str]] = ..., sample_count: _Optional[int] = ..., synthesis_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., error: _Optional[_Union[SegmentError, _Mapping]] = ..., item: _Optional[int] = ..., at: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ends_item: _Optional[bool] = ...) -> None: ...

class Flushed(_message.Message):
    __slots__ = ("id", "sample_offset", "cleared")
    ID_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CLEARED_FIELD_NUMBER: _ClassVar[int]
    id: str
    sample_offset: int
    cleared: bool
    def __init__(self, id: _Optional[str] = ..., sample_offset: _Optional[int] = ..., cleared: _Optional[bool] = ...) -> None: ...

class Cleared(_message.Message):
    __slots__ = ("id", "epoch", "dropped_segments", "discarded_samples", "text_spoken", "text_unspoken", "text_split_estimated")
    ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    DROPPED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    TEXT_SPOKEN_FIELD_NUMBER: _ClassVar[int]
    TEXT_UNSPOKEN_FIELD_NUMBER: _ClassVar[int]
    TEXT_SPLIT_ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    id: str
    epoch: int
    dropped_segments: int
    discarded_samples: int
    text_spoken: str
    text_unspoken: str
    text_split_estimated: bool
    def __init__(self, id: _Optional[str] = ..., epoch: _Optional[int] = ..., dropped_segments: _Optional[int] = ..., discarded_samples: _Optional[int] = ..., text_spoken: _Optional[str] = ..., text_unspoken: _Optional[str] = ..., text_split_estimated: _Optional[bool] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("kind", "message", "effective_at")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_AT_FIELD_NUMBER: _ClassVar[int]
    kind: NoticeKind
    message: str
    effective_at: _timestamp_pb2.Timestamp
    def __init__(self, kind: _Optional[_Union[NoticeKind, str]] = ..., message: _Optional[str] = ..., effective_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Stats(_message.Message):
    __slots__ = ("characters", "segments", "failed_segments", "audio_seconds", "time_to_first_audio", "queue_wait", "synthesis_time", "speed", "underruns", "clipped_samples", "max_in_flight", "wall_time")
    CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    AUDIO_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_FIRST_AUDIO_FIELD_NUMBER: _ClassVar[int]
    QUEUE_WAIT_FIELD_NUMBER: _ClassVar[int]
    SYNTHESIS_TIME_FIELD_NUMBER: _ClassVar[int]
    SPEED_FIELD_NUMBER: _ClassVar[int]
    UNDERRUNS_FIELD_NUMBER: _ClassVar[int]
    CLIPPED_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    characters: int
    segments: int
    failed_segments: int
    audio_seconds: float
    time_to_first_audio: _duration_pb2.Duration
    queue_wait: _duration_pb2.Duration
    synthesis_time: _duration_pb2.Duration
    speed: float
    underruns: int
    clipped_samples: int
    max_in_flight: int
    wall_time: _duration_pb2.Duration
    def __init__(self, characters: _Optional[int] = ..., segments: _Optional[int] = ..., failed_segments: _Optional[int] = ..., audio_seconds: _Optional[float] = ..., time_to_first_audio: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., queue_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., synthesis_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., speed: _Optional[float] = ..., underruns: _Optional[int] = ..., clipped_samples: _Optional[int] = ..., max_in_flight: _Optional[int] = ..., wall_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("reason", "stats")
    REASON_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    reason: FinishReason
    stats: Stats
    def __init__(self, reason: _Optional[_Union[FinishReason, str]] = ..., stats: _Optional[_Union[Stats, _Mapping]] = ...) -> None: ...
