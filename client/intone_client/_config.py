"""Settings of a stream from keyword arguments."""

from datetime import timedelta
from typing import Literal

from google.protobuf.message import Message

from intone.v1 import tts_pb2

Encoding = Literal["pcm_s16le", "pcm_f32le", "wav"]
Mode = Literal["sentence", "clause", "manual"]

_MODES = {
    "sentence": tts_pb2.SEGMENTATION_MODE_SENTENCE,
    "clause": tts_pb2.SEGMENTATION_MODE_CLAUSE,
    "manual": tts_pb2.SEGMENTATION_MODE_MANUAL,
}
_ENCODINGS = {
    "pcm_s16le": tts_pb2.AUDIO_ENCODING_PCM_S16LE,
    "pcm_f32le": tts_pb2.AUDIO_ENCODING_PCM_F32LE,
    "wav": tts_pb2.AUDIO_ENCODING_WAV,
}


def speech_config(
    *,
    voice: str = "",
    language: str = "",
    encoding: Encoding | None = None,
    sample_rate_hertz: int = 0,
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
    max_queue_wait: float | None = None,
    segment_events: bool = False,
    queue_events: bool = False,
) -> tts_pb2.SpeechConfig:
    """A `SpeechConfig`; what is left out is the server's default.

    Names, units and ranges are those of `intone/v1/tts.proto`, durations in seconds. The server
    checks ranges. Raises ValueError for an unknown name, or a number that the field cannot hold.
    """
    if encoding is not None and encoding not in _ENCODINGS:
        raise ValueError(f"encoding is {encoding!r}, known are {', '.join(_ENCODINGS)}")
    if segmentation is not None and segmentation not in _MODES:
        raise ValueError(f"segmentation is {segmentation!r}, known are {', '.join(_MODES)}")
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
            max_characters=max_characters, first_max_characters=first_max_characters
        ),
        segment_events=segment_events,
        queue_events=queue_events,
    )
    if encoding is not None:
        config.format.encoding = _ENCODINGS[encoding]
    config.format.sample_rate_hertz = sample_rate_hertz
    if segmentation is not None:
        config.segmentation.mode = _MODES[segmentation]
    if max_text_delay is not None:
        config.segmentation.max_text_delay.FromTimedelta(timedelta(seconds=max_text_delay))
    if max_queue_wait is not None:
        config.scheduling.max_queue_wait.FromTimedelta(timedelta(seconds=max_queue_wait))
    for field, value in config.ListFields():
        if isinstance(value, Message) and not value.ByteSize():
            config.ClearField(field.name)
    return config
