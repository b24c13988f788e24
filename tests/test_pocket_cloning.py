"""Voices of one's own on a server with a tiny real pocket-tts."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest

import recordings
from callers import Metadata, bearer
from intone.v1 import tts_pb2, tts_pb2_grpc, voices_pb2, voices_pb2_grpc
from intone_server.audio import Samples
from processes import ServerProcess
from tiny_pocket import TinyPocket
from voice_callers import guarded_server

TEXTS = [
    "One stream says this sentence here.",
    "Another says something else to us.",
    "The third one has its own words too.",
]


@pytest.fixture(scope="module")
def channel_to(pocket_server: ServerProcess) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(pocket_server.address) as channel:
        yield channel


# How many frames the model decodes in one call depends on time, and with it the last bits. Voices
# of the tiny model differ by 2e-5.
SAME = 1e-5  # a row in company, and alone


def speak(
    channel: grpc.Channel, text: str, voice: str = "anna", *, metadata: Metadata = ()
) -> np.ndarray:
    """The samples of a text, at temperature 0."""
    config = tts_pb2.SpeechConfig(
        voice=voice,
        sampling=tts_pb2.Sampling(temperature=0.0, seed=1),
        format=tts_pb2.AudioFormat(encoding=tts_pb2.AUDIO_ENCODING_PCM_F32LE),
    )
    request = tts_pb2.SynthesizeTextRequest(text=text, config=config)
    stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
    responses = stub.SynthesizeText(request, timeout=60, metadata=metadata)
    data = b"".join(r.event.audio.data for r in responses)
    return np.frombuffer(data, "<f4")


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """The greatest of their samples'; they are equally long, because length is the text's."""
    assert len(one) == len(other) > 0
    return float(np.abs(one - other).max())


def create(
    channel: grpc.Channel,
    name: str,
    *,
    keep: bool = True,
    recording: Samples | None = None,
    metadata: Metadata = (),
) -> voices_pb2.Voice:
    """By default from a recording of 17 s."""
    prompt = recordings.wav(recordings.speech() if recording is None else recording)
    request = voices_pb2.CreateVoiceRequest(name=name, prompt=prompt, validate_only=not keep)
    stub = voices_pb2_grpc.VoiceServiceStub(channel)
    return stub.CreateVoice(request, timeout=90, metadata=metadata).voice


def test_streams_sound_the_same_while_a_voice_is_made(channel_to: grpc.Channel) -> None:
    """Reported case 23."""
    alone = [speak(channel_to, text) for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        making = pool.submit(create, channel_to, "unkept", keep=False)
        beside = []
        while not making.done() or not beside:
            beside += [pool.submit(speak, channel_to, text) for text in TEXTS]
            [call.result() for call in beside]
        assert making.result().report.speech_ratio > 0.3
    for index, call in enumerate(beside):
        assert difference(call.result(), alone[index % len(TEXTS)]) < SAME


def test_a_voice_of_a_recording_speaks_and_is_another_than_the_models(
    channel_to: grpc.Channel,
) -> None:
    made = create(channel_to, "mine")
    assert made.origin == voices_pb2.VOICE_ORIGIN_CREATED
    mine, hers = (speak(channel_to, TEXTS[0], voice) for voice in ("mine", "anna"))
    assert difference(mine, hers) > SAME
    assert difference(mine, speak(channel_to, TEXTS[0], "mine")) < SAME


def test_the_voice_of_the_operator_can_be_exported_and_made_again(
    channel_to: grpc.Channel,
) -> None:
    stub = voices_pb2_grpc.VoiceServiceStub(channel_to)
    exported = stub.ExportVoice(voices_pb2.ExportVoiceRequest(name="bert"), timeout=30)
    request = voices_pb2.CreateVoiceRequest(name="again", state=exported.state)
    again = stub.CreateVoice(request, timeout=60).voice
    assert again.digest == exported.voice.digest
    spoken = [speak(channel_to, TEXTS[1], voice) for voice in ("again", "bert")]
    assert difference(*spoken) < SAME


def test_two_clients_voices_of_one_name_sound_as_each_of_them_made_it(
    tiny_pocket: TinyPocket, tmp_path: Path
) -> None:
    """The states of both are in the memory of the worker."""
    with guarded_server(tmp_path, *tiny_pocket.flags(), names=["ann", "ben"]) as server:
        said = {}
        with grpc.insecure_channel(server.address) as channel:
            ann, ben = bearer("ann-token"), bearer("ben-token")
            create(channel, "mine", metadata=ann)
            create(channel, "mine", recording=recordings.sentence(), metadata=ben)
            for caller in (ann, ben, ann, ben):
                spoken = speak(channel, TEXTS[0], "mine", metadata=caller)
                assert difference(spoken, said.setdefault(caller, spoken)) < SAME
        assert difference(said[ann], said[ben]) > SAME
