"""Settings of a stream from keyword arguments."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from intone.v1 import tts_pb2

Encoding = Literal["pcm_s16le", "pcm_f32le", "mulaw", "alaw", "wav", "ogg_opus", "flac", "mp3"]
Mode = Literal["sentence", "clause", "manual"]
Priority = Literal["batch", "standard", "interactive"]

_MODES = {
    "sentence": tts_pb2.SEGMENTATION_MODE_SENTENCE,
    "clause": tts_pb2.SEGMENTATION_MODE_CLAUSE,
    "manual": tts_pb2.SEGMENTATION_MODE_MANUAL,
}
_PRIORITIES = {
    "batch": tts_pb2.PRIORITY_BATCH,
    "standard": tts_pb2.PRIORITY_STANDARD,
    "interactive": tts_pb2.PRIORITY_INTERACTIVE,
}
_ENCODINGS = {
    "pcm_s16le": tts_pb2.AUDIO_ENCODING_PCM_S16LE,
    "pcm_f32le": tts_pb2.AUDIO_ENCODING_PCM_F32LE,
    "mulaw": tts_pb2.AUDIO_ENCODING_MULAW,
    "alaw": tts_pb2.AUDIO_ENCODING_ALAW,
    "wav": tts_pb2.AUDIO_ENCODING_WAV,
    "ogg_opus": tts_pb2.AUDIO_ENCODING_OGG_OPUS,
    "flac": tts_pb2.AUDIO_ENCODING_FLAC,
    "mp3": tts_pb2.AUDIO_ENCODING_MP3,
}


def speech_config(
    *,
    voice: str = "",
    language: str = "",
    encoding: Encoding | None = None,
    sample_rate_hertz: int = 0,
    gain_db: float = 0.0,
    temperature: float | None = None,
    decode_steps: int | None = None,
    eos_threshold: float | None = None,
    noise_clamp: float | None = None,
    frames_after_eos: int | None = None,
    seed: int | None = None,
    segmentation: Mode | None = None,
    max_characters: int = 0,
    first_max_characters: int = 0,
    max_text_delay: float | None = None,
    segment_gap: float | None = None,
    paragraph_gap: float | None = None,
    strip_markdown: bool = False,
    inline_pauses: bool = False,
    normalize: bool = False,
    replacements: Mapping[str, str] | Sequence[tts_pb2.Replacement] = (),
    priority: Priority | None = None,
    max_queue_wait: float | None = None,
    max_ahead: float | None = None,
    segment_events: bool = False,
    queue_events: bool = False,
) -> tts_pb2.SpeechConfig:
    """A `SpeechConfig`; what is left out is the server's default.

    Names, units and ranges are those of `intone/v1/tts.proto`, durations in seconds. The server
    checks ranges. `replacements` maps words to how they are said, in any case; give `Replacement`
    messages where case matters. They are applied in their order. `max_ahead`: no more audio comes
    while so much of it waits to be heard, by the clock or by `SpeechStream.played`. Raises
    ValueError for an unknown name, or a number that the field cannot hold.
    """
    if encoding is not None and encoding not in _ENCODINGS:
        raise ValueError(f"encoding is {encoding!r}, known are {', '.join(_ENCODINGS)}")
    if segmentation is not None and segmentation not in _MODES:
        raise ValueError(f"segmentation is {segmentation!r}, known are {', '.join(_MODES)}")
    if priority is not None and priority not in _PRIORITIES:
        raise ValueError(f"priority is {priority!r}, known are {', '.join(_PRIORITIES)}")
    if isinstance(replacements, Mapping):
        replacements = [
            tts_pb2.Replacement(word=word, spoken=spoken) for word, spoken in replacements.items()
        ]
    config = tts_pb2.SpeechConfig(
        voice=voice,
        language=language,
        sampling=tts_pb2.Sampling(
            temperature=temperature,
            decode_steps=decode_steps,
            eos_threshold=eos_threshold,
            noise_clamp=noise_clamp,
            frames_after_eos=frames_after_eos,
            seed=seed,
        ),
        segmentation=tts_pb2.Segmentation(
            max_characters=max_characters,
            first_max_characters=first_max_characters,
            max_text_delay=_duration("max_text_delay", max_text_delay),
            segment_gap=_duration("segment_gap", segment_gap),
            paragraph_gap=_duration("paragraph_gap", paragraph_gap),
        ),
        text=tts_pb2.TextOptions(
            strip_markdown=strip_markdown,
            inline_pauses=inline_pauses,
            normalize=normalize,
            replacements=replacements,
        ),
        scheduling=tts_pb2.Scheduling(
            max_queue_wait=_duration("max_queue_wait", max_queue_wait),
            max_ahead=_duration("max_ahead", max_ahead),
        ),
        format=tts_pb2.AudioFormat(sample_rate_hertz=sample_rate_hertz),
        segment_events=segment_events,
        queue_events=queue_events,
        gain_db=gain_db,
    )
    if encoding is not None:
        config.format.encoding = _ENCODINGS[encoding]
    if segmentation is not None:
        config.segmentation.mode = _MODES[segmentation]
    if priority is not None:
        config.scheduling.priority = _PRIORITIES[priority]
    for field, value in config.ListFields():
        if isinstance(value, Message) and not value.ByteSize():
            config.ClearField(field.name)
    return config


def _duration(name: str, seconds: float | None) -> Duration | None:
    if seconds is None:
        return None
    duration = Duration()
    try:
        duration.FromTimedelta(timedelta(seconds=seconds))
    except (OverflowError, ValueError):
        raise ValueError(f"{name} is {seconds}, which is no number of seconds") from None
    return duration
