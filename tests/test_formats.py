"""Audio formats of streams and files, with real speech."""

import io
import itertools
import time

import av
import grpc
import numpy as np
import pytest
import soundfile
import soxr

from intone.v1 import status_pb2, status_pb2_grpc, tts_pb2, tts_pb2_grpc
from intone_server.audio.encoding import Encoding
from intone_server.errors import InvalidRequest, Reason
from intone_server.rpc import formats
from intone_server.rpc.faults import Faults
from intone_server.rpc.methods import SYNTHESIZE_TEXT
from processes import ServerProcess

PARAGRAPH = (
    "The first sentence is rather plain. The second sentence follows it, with a comma. "
    "And a third one ends the paragraph."
)
RATES = (8000, 16000, 22050, 44100, 48000)


def stream(
    server: ServerProcess, encoding: str = "PCM_F32LE", rate: int = 0, **config: object
) -> tuple[list[tts_pb2.SpeechEvent], list[tts_pb2.AudioChunk]]:
    """All events of the paragraph in a format, and its audio chunks."""
    message = tts_pb2.SpeechConfig(segment_events=True, **config)  # type: ignore[arg-type]
    message.format.encoding = tts_pb2.AudioEncoding.Value(f"AUDIO_ENCODING_{encoding}")
    message.format.sample_rate_hertz = rate
    message.sampling.seed = 3
    with grpc.insecure_channel(server.address) as channel:
        stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        request = tts_pb2.SynthesizeTextRequest(text=PARAGRAPH, config=message)
        events = [response.event for response in stub.SynthesizeText(request, timeout=60)]
    return events, [e.audio for e in events if e.HasField("audio")]


def joined(chunks: list[tts_pb2.AudioChunk]) -> bytes:
    """The bytes of a stream; its offsets have no gap."""
    offset = 0
    for chunk in chunks:
        assert chunk.sample_offset == offset
        offset += chunk.sample_count
    return b"".join(chunk.data for chunk in chunks)


@pytest.fixture(scope="module")
def native(builtin_server: ServerProcess) -> np.ndarray:
    """The paragraph at the model's own rate."""
    return np.frombuffer(joined(stream(builtin_server)[1]), "<f4")


@pytest.mark.parametrize("rate", RATES)
def test_a_stream_at_another_rate_is_the_whole_converted_at_once(
    builtin_server: ServerProcess, native: np.ndarray, rate: int
) -> None:
    """Reported cases 71 and 78."""
    events, chunks = stream(builtin_server, rate=rate)
    samples = np.frombuffer(joined(chunks), "<f4")
    whole = soxr.resample(native, 24000, rate, quality="HQ")
    assert len(samples) == round(len(native) * rate / 24000)
    assert np.abs(samples - whole[: len(samples)]).max() < 1 / 32767
    assert events[0].started.format.sample_rate_hertz == rate


@pytest.mark.parametrize("rate", RATES)
def test_segments_begin_where_their_speech_begins_at_any_rate(
    builtin_server: ServerProcess, rate: int
) -> None:
    """Also where the resampler gave the end of one segment only with the next."""
    starts = {
        e.segment_started.segment: e.segment_started.sample_offset
        for e in stream(builtin_server)[0]
        if e.HasField("segment_started")
    }
    events, chunks = stream(builtin_server, rate=rate)
    for segment, start in starts.items():
        expected = round(start * rate / 24000)
        assert min(c.sample_offset for c in chunks if c.segment == segment) == expected
    finished = [e.segment_finished for e in events if e.HasField("segment_finished")]
    for end in finished:
        assert end.sample_count == sum(c.sample_count for c in chunks if c.segment == end.segment)


@pytest.mark.parametrize(
    ("encoding", "rate"),
    [("OGG_OPUS", 0), ("OGG_OPUS", 48000), ("FLAC", 0), ("FLAC", 44100), ("MP3", 0), ("MP3", 8000)],
)
def test_a_compressed_stream_decodes_to_the_length_it_says(
    builtin_server: ServerProcess, native: np.ndarray, encoding: str, rate: int
) -> None:
    """MP3 decoders add the codec's delay, and a part of a frame at the end."""
    chunks = stream(builtin_server, encoding, rate)[1]
    told = sum(chunk.sample_count for chunk in chunks)
    seconds = len(native) / 24000
    assert told == round(seconds * (rate or 24000))
    samples, decoded_rate = decode(joined(chunks))
    extra = len(samples) / decoded_rate - seconds
    assert -0.001 < extra < (0.4 if encoding == "MP3" else 0.001)


@pytest.mark.parametrize("encoding", ["OGG_OPUS", "FLAC", "MP3"])
def test_every_message_but_the_first_adds_audio_that_can_be_played(
    builtin_server: ServerProcess, encoding: str
) -> None:
    chunks = stream(builtin_server, encoding)[1]
    heard = [len(decode(joined(chunks[:count]))[0]) for count in range(1, len(chunks) + 1)]
    assert all(more > less for less, more in itertools.pairwise(heard))


@pytest.mark.parametrize(("encoding", "subtype"), [("MULAW", "ULAW"), ("ALAW", "ALAW")])
def test_telephone_audio_has_a_byte_a_sample_and_sounds_like_the_whole(
    builtin_server: ServerProcess, native: np.ndarray, encoding: str, subtype: str
) -> None:
    data = joined(stream(builtin_server, encoding, 8000)[1])
    assert len(data) == round(len(native) / 3)
    samples, _ = soundfile.read(
        io.BytesIO(data), format="RAW", subtype=subtype, samplerate=8000, channels=1
    )
    whole = soxr.resample(native, 24000, 8000, quality="HQ")[: len(samples)]
    noise = np.sqrt(np.mean((samples - whole) ** 2))
    assert 20 * np.log10(np.sqrt(np.mean(whole**2)) / noise) > 30  # G.711 has about 37 dB


@pytest.mark.parametrize("encoding", ["WAV", "OGG_OPUS", "FLAC", "MP3", "MULAW", "PCM_F32LE"])
def test_a_file_can_have_any_format(builtin_server: ServerProcess, encoding: str) -> None:
    """Reported cases 70 and 77."""
    config = tts_pb2.SpeechConfig(sampling=tts_pb2.Sampling(seed=3))
    config.format.encoding = tts_pb2.AudioEncoding.Value(f"AUDIO_ENCODING_{encoding}")
    config.format.sample_rate_hertz = 16000
    with grpc.insecure_channel(builtin_server.address) as channel:
        stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        answer = stub.SynthesizeFile(
            tts_pb2.SynthesizeFileRequest(text=PARAGRAPH, config=config), timeout=60
        )
    assert answer.format == config.format
    told = sum(segment.sample_count for segment in answer.segments)
    assert answer.stats.audio_seconds == pytest.approx(told / 16000)
    if encoding in ("MULAW", "PCM_F32LE"):
        assert len(answer.audio) == told * (1 if encoding == "MULAW" else 4)
    else:
        samples, rate = decode(answer.audio)
        assert len(samples) / rate == pytest.approx(told / 16000, abs=0.2)
        # libsndfile believes the head of the file.
        seconds = soundfile.info(io.BytesIO(answer.audio)).duration
        assert seconds == pytest.approx(told / 16000, abs=0.2)


def test_a_file_of_much_silence_disturbs_nobody_and_is_refused(
    builtin_server: ServerProcess,
) -> None:
    """It is there at once and takes next to no bytes: only its length ends it."""
    config = tts_pb2.SpeechConfig(text=tts_pb2.TextOptions(inline_pauses=True))
    config.format.encoding = tts_pb2.AUDIO_ENCODING_OGG_OPUS
    config.format.sample_rate_hertz = 8000
    request = tts_pb2.SynthesizeFileRequest(text="[pause:10s] " * 200, config=config)
    with grpc.insecure_channel(builtin_server.address) as channel:
        call = tts_pb2_grpc.TextToSpeechServiceStub(channel).SynthesizeFile.future(
            request, timeout=100
        )
        answered = []
        while not call.done():
            asked_at = time.monotonic()
            assert builtin_server.is_serving("liveness")
            answered.append(time.monotonic() - asked_at)
        assert call.code() is grpc.StatusCode.OUT_OF_RANGE
    assert max(answered) < 2.0


def test_gain_is_the_same_for_every_sample_of_a_stream(
    builtin_server: ServerProcess, native: np.ndarray
) -> None:
    """Reported case 75."""
    samples = np.frombuffer(joined(stream(builtin_server, gain_db=-6.0)[1]), "<f4")
    assert np.allclose(samples, native * 10 ** (-6 / 20), atol=1e-6)


def test_much_gain_is_limited_and_counted_and_never_clips(
    builtin_server: ServerProcess, native: np.ndarray
) -> None:
    """Reported case 74."""
    events, chunks = stream(builtin_server, gain_db=20.0)
    samples = np.frombuffer(joined(chunks), "<f4")
    assert np.abs(samples).max() <= 0.9801
    over = np.count_nonzero(np.abs(native * 10) > 1)
    assert events[-1].finished.stats.clipped_samples == pytest.approx(over, abs=2)


@pytest.mark.parametrize(
    ("encoding", "rate", "field"),
    [
        ("WAV", 0, "config.format.encoding"),
        ("OGG_OPUS", 44100, "config.format.sample_rate_hertz"),
        ("PCM_S16LE", 11025, "config.format.sample_rate_hertz"),
    ],
)
def test_a_format_that_a_stream_cannot_have_is_refused_by_name(
    builtin_server: ServerProcess, encoding: str, rate: int, field: str
) -> None:
    """Reported case 77."""
    with pytest.raises(grpc.RpcError) as caught:
        stream(builtin_server, encoding, rate)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details().startswith(field)


def test_gain_outside_its_range_is_refused(builtin_server: ServerProcess) -> None:
    with pytest.raises(grpc.RpcError, match=r"config.gain_db: is 40, allowed is -40 to 20"):
        stream(builtin_server, gain_db=40.0)


def test_the_server_tells_its_encodings(builtin_server: ServerProcess) -> None:
    with grpc.insecure_channel(builtin_server.address) as channel:
        stub = status_pb2_grpc.StatusServiceStub(channel)
        info = stub.GetServerInfo(status_pb2.GetServerInfoRequest(), timeout=10)
    assert list(info.encodings) == sorted(tts_pb2.AudioEncoding.values())[1:]


def test_without_the_codecs_a_compressed_format_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(formats, "codecs_available", lambda: False)
    faults = Faults()
    asked = tts_pb2.AudioFormat(encoding=tts_pb2.AUDIO_ENCODING_OGG_OPUS)
    formats.read_format(asked, SYNTHESIZE_TEXT, 24000, faults)
    with pytest.raises(InvalidRequest, match=r"intone\[codecs\]") as caught:
        faults.check()
    assert caught.value.reason is Reason.UNSUPPORTED_FORMAT
    assert tts_pb2.AUDIO_ENCODING_OGG_OPUS not in formats.available_encodings()
    assert tts_pb2.AUDIO_ENCODING_MULAW in formats.available_encodings()


def test_each_encoding_of_the_contract_is_known() -> None:
    assert set(formats.ENCODINGS) == set(tts_pb2.AudioEncoding.values()) - {0}
    assert set(formats.ENCODINGS.values()) == set(Encoding)


def decode(data: bytes) -> tuple[np.ndarray, int]:
    """Mono samples and their rate, through FFmpeg."""
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(audio=0))
        rate = frames[0].sample_rate
        return np.concatenate([frame.to_ndarray().mean(axis=0) for frame in frames]), rate
