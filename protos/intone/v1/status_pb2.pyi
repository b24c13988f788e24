import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from intone.v1 import tts_pb2 as _tts_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("server_version", "engine", "engine_version", "model", "languages", "features", "native_format", "encodings", "limits", "default_voice")
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    NATIVE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    ENCODINGS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VOICE_FIELD_NUMBER: _ClassVar[int]
    server_version: str
    engine: str
    engine_version: str
    model: str
    languages: _containers.RepeatedScalarFieldContainer[str]
    features: _containers.RepeatedScalarFieldContainer[str]
    native_format: _tts_pb2.AudioFormat
    encodings: _containers.RepeatedScalarFieldContainer[_tts_pb2.AudioEncoding]
    limits: _tts_pb2.Limits
    default_voice: str
    def __init__(self, server_version: _Optional[str] = ..., engine: _Optional[str] = ..., engine_version: _Optional[str] = ..., model: _Optional[str] = ..., languages: _Optional[_Iterable[str]] = ..., features: _Optional[_Iterable[str]] = ..., native_format: _Optional[_Union[_tts_pb2.AudioFormat, _Mapping]] = ..., encodings: _Optional[_Iterable[_Union[_tts_pb2.AudioEncoding, str]]] = ..., limits: _Optional[_Union[_tts_pb2.Limits, _Mapping]] = ..., default_voice: _Optional[str] = ...) -> None: ...

class GetCapacityRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCapacityResponse(_message.Message):
    __slots__ = ("capacity",)
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    capacity: Capacity
    def __init__(self, capacity: _Optional[_Union[Capacity, _Mapping]] = ...) -> None: ...

class WatchCapacityRequest(_message.Message):
    __slots__ = ("min_interval",)
    MIN_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    min_interval: _duration_pb2.Duration
    def __init__(self, min_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchCapacityResponse(_message.Message):
    __slots__ = ("capacity",)
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    capacity: Capacity
    def __init__(self, capacity: _Optional[_Union[Capacity, _Mapping]] = ...) -> None: ...

class Capacity(_message.Message):
    __slots__ = ("replicas_total", "replicas_busy", "replicas_unhealthy", "queue_depth", "queue_limit", "queued_work", "estimated_wait", "open_streams", "stream_limit", "speed", "draining", "total_speed")
    REPLICAS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_BUSY_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_UNHEALTHY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DEPTH_FIELD_NUMBER: _ClassVar[int]
    QUEUE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    QUEUED_WORK_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_WAIT_FIELD_NUMBER: _ClassVar[int]
    OPEN_STREAMS_FIELD_NUMBER: _ClassVar[int]
    STREAM_LIMIT_FIELD_NUMBER: _ClassVar[int]
    SPEED_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SPEED_FIELD_NUMBER: _ClassVar[int]
    replicas_total: int
    replicas_busy: int
    replicas_unhealthy: int
    queue_depth: int
    queue_limit: int
    queued_work: _duration_pb2.Duration
    estimated_wait: _duration_pb2.Duration
    open_streams: int
    stream_limit: int
    speed: float
    draining: bool
    total_speed: float
    def __init__(self, replicas_total: _Optional[int] = ..., replicas_busy: _Optional[int] = ..., replicas_unhealthy: _Optional[int] = ..., queue_depth: _Optional[int] = ..., queue_limit: _Optional[int] = ..., queued_work: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., estimated_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., open_streams: _Optional[int] = ..., stream_limit: _Optional[int] = ..., speed: _Optional[float] = ..., draining: _Optional[bool] = ..., total_speed: _Optional[float] = ...) -> None: ...
