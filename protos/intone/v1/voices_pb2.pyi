import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class VoiceOrigin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VOICE_ORIGIN_UNSPECIFIED: _ClassVar[VoiceOrigin]
    VOICE_ORIGIN_BUILT_IN: _ClassVar[VoiceOrigin]
    VOICE_ORIGIN_OPERATOR: _ClassVar[VoiceOrigin]
    VOICE_ORIGIN_CREATED: _ClassVar[VoiceOrigin]
    VOICE_ORIGIN_IMPORTED: _ClassVar[VoiceOrigin]
VOICE_ORIGIN_UNSPECIFIED: VoiceOrigin
VOICE_ORIGIN_BUILT_IN: VoiceOrigin
VOICE_ORIGIN_OPERATOR: VoiceOrigin
VOICE_ORIGIN_CREATED: VoiceOrigin
VOICE_ORIGIN_IMPORTED: VoiceOrigin

class PromptReport(_message.Message):
    __slots__ = ("seconds_used", "level_dbfs", "clipped_ratio", "speech_ratio", "warnings")
    SECONDS_USED_FIELD_NUMBER: _ClassVar[int]
    LEVEL_DBFS_FIELD_NUMBER: _ClassVar[int]
    CLIPPED_RATIO_FIELD_NUMBER: _ClassVar[int]
    SPEECH_RATIO_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    seconds_used: float
    level_dbfs: float
    clipped_ratio: float
    speech_ratio: float
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, seconds_used: _Optional[float] = ..., level_dbfs: _Optional[float] = ..., clipped_ratio: _Optional[float] = ..., speech_ratio: _Optional[float] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class Voice(_message.Message):
    __slots__ = ("name", "language", "origin", "digest", "license", "create_time", "labels", "loaded", "report", "default", "shared", "owned")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    LICENSE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    LOADED_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    OWNED_FIELD_NUMBER: _ClassVar[int]
    name: str
    language: str
    origin: VoiceOrigin
    digest: str
    license: str
    create_time: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    loaded: bool
    report: PromptReport
    default: bool
    shared: bool
    owned: bool
    def __init__(self, name: _Optional[str] = ..., language: _Optional[str] = ..., origin: _Optional[_Union[VoiceOrigin, str]] = ..., digest: _Optional[str] = ..., license: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., loaded: _Optional[bool] = ..., report: _Optional[_Union[PromptReport, _Mapping]] = ..., default: _Optional[bool] = ..., shared: _Optional[bool] = ..., owned: _Optional[bool] = ...) -> None: ...

class ListVoicesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "language")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    language: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., language: _Optional[str] = ...) -> None: ...

class ListVoicesResponse(_message.Message):
    __slots__ = ("voices", "next_page_token")
    VOICES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    voices: _containers.RepeatedCompositeFieldContainer[Voice]
    next_page_token: str
    def __init__(self, voices: _Optional[_Iterable[_Union[Voice, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetVoiceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetVoiceResponse(_message.Message):
    __slots__ = ("voice",)
    VOICE_FIELD_NUMBER: _ClassVar[int]
    voice: Voice
    def __init__(self, voice: _Optional[_Union[Voice, _Mapping]] = ...) -> None: ...

class CreateVoiceRequest(_message.Message):
    __slots__ = ("name", "prompt", "state", "language", "labels", "consent_statement", "validate_only", "shared")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CONSENT_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    name: str
    prompt: bytes
    state: bytes
    language: str
    labels: _containers.ScalarMap[str, str]
    consent_statement: str
    validate_only: bool
    shared: bool
    def __init__(self, name: _Optional[str] = ..., prompt: _Optional[bytes] = ..., state: _Optional[bytes] = ..., language: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., consent_statement: _Optional[str] = ..., validate_only: _Optional[bool] = ..., shared: _Optional[bool] = ...) -> None: ...

class CreateVoiceResponse(_message.Message):
    __slots__ = ("voice",)
    VOICE_FIELD_NUMBER: _ClassVar[int]
    voice: Voice
    def __init__(self, voice: _Optional[_Union[Voice, _Mapping]] = ...) -> None: ...

class ExportVoiceRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExportVoiceResponse(_message.Message):
    __slots__ = ("state", "voice")
    STATE_FIELD_NUMBER: _ClassVar[int]
    VOICE_FIELD_NUMBER: _ClassVar[int]
    state: bytes
    voice: Voice
    def __init__(self, state: _Optional[bytes] = ..., voice: _Optional[_Union[Voice, _Mapping]] = ...) -> None: ...

class DeleteVoiceRequest(_message.Message):
    __slots__ = ("name", "allow_missing")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    name: str
    allow_missing: bool
    def __init__(self, name: _Optional[str] = ..., allow_missing: _Optional[bool] = ...) -> None: ...

class DeleteVoiceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
