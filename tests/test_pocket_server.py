"""The real pocket-tts, tiny, behind the server."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import grpc.aio
import numpy as np
import pytest
from google.protobuf.json_format import MessageToDict
from pocket_tts import TTSModel

from intone.v1 import status_pb2, tts_pb2, voices_pb2
from intone.v1.status_pb2_grpc import StatusServiceStub
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from intone.v1.voices_pb2_grpc import VoiceServiceStub
from processes import ServerProcess, running_server
from test_lifecycle import run_server
from tiny_pocket import TinyPocket

TEXT = "The quick brown fox jumps over the lazy dog."
F32 = tts_pb2.AudioFormat(encoding=tts_pb2.AUDIO_ENCODING_PCM_F32LE)


@pytest.fixture(scope="module")
def model(tiny_pocket: TinyPocket) -> TTSModel:
    """The same model in this process."""
    return tiny_pocket.load()


@pytest.fixture
async def channel(pocket_server: ServerProcess) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(pocket_server.address) as channel:
        yield channel


async def speak(
    channel: grpc.aio.Channel, text: str, voice: str = "", **sampling: float
) -> np.ndarray:
    """Float samples of one text."""
    config = tts_pb2.SpeechConfig(
        voice=voice,
        format=F32,
        sampling=tts_pb2.Sampling(**sampling),  # type: ignore[arg-type]
    )
    request = tts_pb2.SynthesizeTextRequest(text=text, config=config)
    call = TextToSpeechServiceStub(channel).SynthesizeText(request)
    return np.frombuffer(b"".join([r.event.audio.data async for r in call]), "<f4")


def solo(model: TTSModel, tiny: TinyPocket, text: str, voice: str = "anna") -> np.ndarray:
    """The library's own audio of a text."""
    state = model.get_state_for_audio_prompt(tiny.voices[voice])
    samples: np.ndarray = model.generate_audio(state, text).numpy().clip(-1, 1)
    return samples


@pytest.mark.parametrize("voice", ["anna", "bert"])
async def test_audio_equals_the_librarys_own(
    channel: grpc.aio.Channel, tiny_pocket: TinyPocket, model: TTSModel, voice: str
) -> None:
    ours, theirs = await speak(channel, TEXT, voice), solo(model, tiny_pocket, TEXT, voice)
    assert len(ours) == len(theirs)
    assert np.abs(ours - theirs).max() < 1e-5
    assert np.abs(ours).max() > 1e-3


async def test_two_streams_at_once_equal_their_solo_runs(
    channel: grpc.aio.Channel, tiny_pocket: TinyPocket, model: TTSModel
) -> None:
    texts = ["It was a bright cold day in April.", "How are you today?"]
    results = await asyncio.gather(
        speak(channel, texts[0], "anna"), speak(channel, texts[1], "bert")
    )
    for ours, text, voice in zip(results, texts, ["anna", "bert"], strict=True):
        theirs = solo(model, tiny_pocket, text, voice)
        assert len(ours) == len(theirs)
        assert np.abs(ours - theirs).max() < 1e-5


async def test_a_seed_gives_the_same_audio_again(channel: grpc.aio.Channel) -> None:
    one, two, other = [await speak(channel, TEXT, temperature=1.0, seed=seed) for seed in (5, 5, 6)]
    assert np.abs(one - two).max() < 1e-6
    assert np.abs(one - other).max() > 1e-3


async def test_an_echoed_seed_repeats_its_segment_alone(channel: grpc.aio.Channel) -> None:
    config = tts_pb2.SpeechConfig(
        format=F32, segment_events=True, sampling=tts_pb2.Sampling(temperature=1.0)
    )
    request = tts_pb2.SynthesizeTextRequest(text="One, two, three. Four, five, six.", config=config)
    call = TextToSpeechServiceStub(channel).SynthesizeText(request)
    audio, seeds = {0: b"", 1: b""}, {}
    async for response in call:
        event = response.event
        if event.HasField("segment_started"):
            seeds[event.segment_started.segment] = event.segment_started.seed
        audio[event.audio.segment] += event.audio.data
    again = await speak(channel, "Four, five, six.", temperature=1.0, seed=seeds[1])
    assert np.abs(np.frombuffer(audio[1], "<f4") - again).max() < 1e-6


async def test_a_setting_of_one_stream_does_not_leak_into_the_next(
    channel: grpc.aio.Channel, tiny_pocket: TinyPocket, model: TTSModel
) -> None:
    await speak(channel, TEXT, temperature=1.5, frames_after_eos=7, eos_threshold=5.0)
    assert np.abs(await speak(channel, TEXT) - solo(model, tiny_pocket, TEXT)).max() < 1e-5


async def test_a_segment_without_an_end_is_reported(channel: grpc.aio.Channel) -> None:
    request = tts_pb2.SynthesizeFileRequest(text="Hello there.")
    response = await TextToSpeechServiceStub(channel).SynthesizeFile(request)
    assert response.segments[0].outcome == tts_pb2.SEGMENT_OUTCOME_NO_END


async def test_an_end_of_speech_is_heeded(channel: grpc.aio.Channel) -> None:
    """With a threshold that every frame passes, speech ends after its shortest length."""
    audio = await speak(channel, TEXT, eos_threshold=-100.0, frames_after_eos=0)
    assert len(audio) == 6 * 1920


async def test_cancel_frees_the_replica_within_two_steps(channel: grpc.aio.Channel) -> None:
    call = TextToSpeechServiceStub(channel).SynthesizeText(
        tts_pb2.SynthesizeTextRequest(text=TEXT * 10)
    )
    async for response in call:
        if response.event.HasField("audio"):
            break
    call.cancel()
    status = StatusServiceStub(channel)
    async with asyncio.timeout(2):
        while True:
            now = (await status.GetCapacity(status_pb2.GetCapacityRequest())).capacity
            if not now.replicas_busy:
                break
    assert len(await speak(channel, "OK."))


async def test_more_tokens_than_the_model_takes_are_cut_at_words_inside_the_segment(
    channel: grpc.aio.Channel, model: TTSModel
) -> None:
    """The tiny tokenizer needs a token a letter for such words."""
    text = " ".join(["zyxwvq"] * 20) + "."
    assert model.flow_lm.conditioner.prepare(text).shape[1] > 100
    request = tts_pb2.SynthesizeTextRequest(
        text=text, config=tts_pb2.SpeechConfig(segment_events=True)
    )
    events = [r.event async for r in TextToSpeechServiceStub(channel).SynthesizeText(request)]
    assert [e.segment_started.text for e in events if e.HasField("segment_started")] == [text]
    # Each piece runs to its cap: a third of a second for each token, and two seconds.
    assert events[-1].finished.stats.audio_seconds > 100 / 3 + 2 * 3


async def test_voices_are_the_operators_with_digests(channel: grpc.aio.Channel) -> None:
    response = await VoiceServiceStub(channel).ListVoices(voices_pb2.ListVoicesRequest())
    voices = {v.name: v for v in response.voices}
    assert set(voices) == {"anna", "bert"}
    assert all(v.origin == voices_pb2.VOICE_ORIGIN_OPERATOR for v in voices.values())
    assert voices["anna"].default
    assert voices["anna"].digest != voices["bert"].digest != ""


async def test_server_info_tells_model_and_features(channel: grpc.aio.Channel) -> None:
    info = await StatusServiceStub(channel).GetServerInfo(status_pb2.GetServerInfoRequest())
    told = MessageToDict(info, preserving_proto_field_name=True)
    assert told["engine"] == "pocket"
    assert told["engine_version"] == "4.0.1"
    assert told["model"] == "tiny"
    assert "temperature" in told["features"]
    assert told["native_format"]["sample_rate_hertz"] == 24000


async def test_the_front_process_has_no_torch(
    channel: grpc.aio.Channel, pocket_server: ServerProcess
) -> None:
    await speak(channel, "Hello.")
    maps = Path(f"/proc/{pocket_server.process.pid}/maps").read_text()
    assert "torch" not in maps


def test_the_worker_logs_nothing_of_the_library(pocket_server: ServerProcess) -> None:
    text = pocket_server.stderr.read_text()
    assert "pocket_tts" not in text
    assert "starting timer" not in text


@pytest.fixture(scope="module")
def quantized_server(
    tiny_pocket: TinyPocket, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """Two workers, int8, and a voice from a recording."""
    flags = [*tiny_pocket.flags(), "--voice", f"carl={tiny_pocket.recording}"]
    with running_server(*flags, "--quantize", "--workers", "2") as server:
        yield server


async def test_a_recording_gives_one_voice_on_all_workers(
    quantized_server: ServerProcess,
) -> None:
    async with grpc.aio.insecure_channel(quantized_server.address) as channel:
        both = await asyncio.gather(*(speak(channel, TEXT, "carl") for _ in range(2)))
        assert len(both[0]) == len(both[1]) > 0
        assert np.abs(both[0] - both[1]).max() < 1e-4
        voice = (
            await VoiceServiceStub(channel).GetVoice(voices_pb2.GetVoiceRequest(name="carl"))
        ).voice
        assert voice.loaded
        assert voice.digest


def test_the_backend_of_int8_is_logged(quantized_server: ServerProcess) -> None:
    assert any("quantization backend" in line["event"] for line in quantized_server.logs())


def test_two_workers_speak_at_the_same_time(quantized_server: ServerProcess) -> None:
    with grpc.insecure_channel(quantized_server.address) as channel:
        stub = TextToSpeechServiceStub(channel)
        request = tts_pb2.SynthesizeTextRequest(text=TEXT * 3)
        busy: list[int] = []

        def listen() -> None:
            for _ in stub.SynthesizeText(request):
                status = StatusServiceStub(channel)
                load = status.GetCapacity(status_pb2.GetCapacityRequest()).capacity
                busy.append(load.replicas_busy)

        listeners = [threading.Thread(target=listen) for _ in range(2)]
        for listener in listeners:
            listener.start()
        for listener in listeners:
            listener.join()
    assert max(busy) == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("voice.wav", b"RIFFnonsense", "cannot be read as a recording"),
        ("voice.safetensors", b"nonsense", "is not a voice state"),
        ("voice.jpeg", b"\xff\xd8\xff", "cannot be read as a recording"),
    ],
)
def test_a_bad_voice_file_is_said_at_start(
    tiny_pocket: TinyPocket, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = run_server(*tiny_pocket.flags(), "--voice", f"dora={path}")
    assert result.returncode == 1
    assert f"--voice dora: {path}" in result.stderr
    assert said in result.stderr


def test_a_state_of_another_model_is_said_at_start(tiny_pocket: TinyPocket, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(tiny_pocket.voices["anna"])
    state.pop(next(iter(state)))
    save_file(state, tmp_path / "other.safetensors")
    result = run_server(*tiny_pocket.flags(), "--voice", f"dora={tmp_path / 'other.safetensors'}")
    assert result.returncode == 1
    assert "of another model" in result.stderr


def test_a_config_file_needs_a_default_voice(tiny_pocket: TinyPocket) -> None:
    result = run_server("--engine", "pocket", "--model", str(tiny_pocket.config))
    assert result.returncode == 1
    assert "--default-voice" in result.stderr


def test_a_config_that_names_a_missing_file_is_said_at_start(
    tiny_pocket: TinyPocket, tmp_path: Path
) -> None:
    config = tmp_path / "tiny.yaml"
    shutil.copy(tiny_pocket.config, config)
    weights = tiny_pocket.config.parent / "tiny.safetensors"
    config.write_text(config.read_text().replace(str(weights), "/none/such.safetensors"))
    flags = tiny_pocket.flags()
    flags[flags.index(str(tiny_pocket.config))] = str(config)
    result = run_server(*flags)
    assert result.returncode == 1
    assert "/none/such.safetensors, which is not a file, is needed" in result.stderr
