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
VOICE_ORIGIN_UNSPECIFIED: VoiceOrigin
VOICE_ORIGIN_BUILT_IN: VoiceOrigin
VOICE_ORIGIN_OPERATOR: VoiceOrigin

class Voice(_message.Message):
    __slots__ = ("name", "language", "origin", "digest", "license", "loaded", "default")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    LICENSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    name: str
    language: str
    origin: VoiceOrigin
    digest: str
    license: str
    loaded: bool
    default: bool
    def __init__(self, name: _Optional[str] = ..., language: _Optional[str] = ..., origin: _Optional[_Union[VoiceOrigin, str]] = ..., digest: _Optional[str] = ..., license: _Optional[str] = ..., loaded: _Optional[bool] = ..., default: _Optional[bool] = ...) -> None: ...

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
