"""The real pocket-tts, tiny, behind the server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio
import numpy as np
import pytest
import torch
from intone.v1 import tts_pb2, voices_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from intone.v1.voices_pb2_grpc import VoiceServiceStub
from processes import ServerProcess, running_server
from tiny_pocket import TinyPocket

TEXT = "The quick brown fox jumps over the lazy dog."
F32 = tts_pb2.AudioFormat(encoding=tts_pb2.AUDIO_ENCODING_PCM_F32LE)


@pytest.fixture
def tts(pocket_server: ServerProcess) -> Iterator[TextToSpeechServiceStub]:
    with grpc.insecure_channel(pocket_server.address) as channel:
        yield TextToSpeechServiceStub(channel)


def speak(tts: TextToSpeechServiceStub, text: str, voice: str = "") -> np.ndarray:
    config = tts_pb2.SpeechConfig(voice=voice, format=F32)
    call = tts.SynthesizeText(tts_pb2.SynthesizeTextRequest(text=text, config=config))
    return np.frombuffer(b"".join(r.event.audio.data for r in call), "<f4")


def solo(tiny: TinyPocket, text: str, voice: str = "anna") -> np.ndarray:
    """The library's own audio of a text."""
    model = tiny.load()
    state = model.get_state_for_audio_prompt(tiny.voices[voice])
    return model.generate_audio(state, text).numpy().clip(-1, 1)


@pytest.mark.parametrize("voice", ["anna", "bert"])
def test_audio_equals_the_librarys_own(
    tts: TextToSpeechServiceStub, tiny_pocket: TinyPocket, voice: str
) -> None:
    ours, theirs = speak(tts, TEXT, voice), solo(tiny_pocket, TEXT, voice)
    assert len(ours) == len(theirs)
    assert np.abs(ours - theirs).max() < 1e-5
    assert np.abs(ours).max() > 1e-3
