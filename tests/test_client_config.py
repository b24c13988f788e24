"""Settings of a stream from keyword arguments."""

import math
from typing import get_args

import pytest

from intone.v1 import tts_pb2
from intone_client import Replacement, speech_config
from intone_client._config import Encoding, Priority


def test_a_config_has_only_what_was_given() -> None:
    assert speech_config() == tts_pb2.SpeechConfig()
    config = speech_config(
        voice="alba",
        encoding="pcm_f32le",
        temperature=0.0,
        segmentation="clause",
        max_text_delay=0.25,
        priority="batch",
        max_queue_wait=2,
        max_ahead=1.5,
    )
    assert config.format.encoding == tts_pb2.AUDIO_ENCODING_PCM_F32LE
    assert config.sampling.HasField("temperature")
    assert not config.sampling.HasField("seed")
    assert config.segmentation.mode == tts_pb2.SEGMENTATION_MODE_CLAUSE
    assert config.segmentation.max_text_delay.nanos == 250_000_000
    assert config.scheduling.priority == tts_pb2.PRIORITY_BATCH
    assert config.scheduling.max_queue_wait.seconds == 2
    assert config.scheduling.max_ahead.ToMilliseconds() == 1500


def test_a_config_refuses_what_no_field_can_hold() -> None:
    with pytest.raises(ValueError, match="encoding is 'aac'"):
        speech_config(encoding="aac")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="segmentation is 'word'"):
        speech_config(segmentation="word")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="priority is 'high', known are batch, standard, inter"):
        speech_config(priority="high")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        speech_config(seed=-1)
    for seconds in (math.nan, math.inf):
        with pytest.raises(ValueError, match=f"segment_gap is {seconds}"):
            speech_config(segment_gap=seconds)


def test_a_config_holds_every_encoding_of_the_contract() -> None:
    """A new one has to be named here, or nobody can ask for it by name."""
    named = {speech_config(encoding=each).format.encoding for each in get_args(Encoding)}
    assert named == set(tts_pb2.AudioEncoding.values()) - {0}


def test_a_config_holds_every_priority_of_the_contract() -> None:
    named = {speech_config(priority=each).scheduling.priority for each in get_args(Priority)}
    assert named == set(tts_pb2.Priority.values()) - {0}


def test_a_config_says_what_is_done_to_text_and_audio() -> None:
    config = speech_config(
        sample_rate_hertz=8000,
        gain_db=-3.5,
        segment_gap=0.3,
        paragraph_gap=0,
        strip_markdown=True,
        inline_pauses=True,
        normalize=True,
        replacements={"Nguyen": "win", "dB": ""},
    )
    assert (config.format.sample_rate_hertz, config.gain_db) == (8000, -3.5)
    assert config.segmentation.segment_gap.nanos == 300_000_000
    # None at all where a paragraph ends, which is not the same as the default.
    assert config.segmentation.HasField("paragraph_gap")
    assert config.text == tts_pb2.TextOptions(
        strip_markdown=True,
        inline_pauses=True,
        normalize=True,
        replacements=[Replacement(word="Nguyen", spoken="win"), Replacement(word="dB")],
    )
    exact = [Replacement(word="US", spoken="you ess", match_case=True)]
    assert list(speech_config(replacements=exact).text.replacements) == exact
