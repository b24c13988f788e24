"""What becomes of samples on their way out: rate, loudness, and encodings without a codec."""

import io
import subprocess
import sys

import av
import numpy as np
import numpy.typing as npt
import pytest
import soundfile
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from intone_server.audio import Samples
from intone_server.audio.encoding import (
    BYTES_PER_SAMPLE,
    NOTHING,
    WAV_HEADER_BYTES,
    Encoded,
    Encoding,
    encoder,
    supported_rates,
    wav_file,
)
from intone_server.audio.level import GAIN_DB_RANGE, Level, fade_out
from intone_server.audio.resampling import Resampler

MODEL_HERTZ = 24000
FRAME = 1920
RATES = (8000, 16000, 22050, 44100, 48000)
SAMPLEWISE = tuple(BYTES_PER_SAMPLE)
G711 = {Encoding.MULAW: ("ULAW", "pcm_mulaw"), Encoding.ALAW: ("ALAW", "pcm_alaw")}

cuts = st.lists(st.integers(0, 3000), max_size=8)


def noise(count: int, seed: int = 0, peak: float = 0.9) -> Samples:
    values = np.random.default_rng(seed).uniform(-peak, peak, count)
    return values.astype(np.float32)


def sine(count: int, rate: int = MODEL_HERTZ, hertz: float = 440.0, peak: float = 0.5) -> Samples:
    values = peak * np.sin(2 * np.pi * hertz * np.arange(count) / rate)
    return values.astype(np.float32)


def pieces(samples: Samples, sizes: list[int]) -> list[Samples]:
    return np.split(samples, np.minimum(np.cumsum([0, *sizes]), len(samples)).tolist())


def resampled(resampler: Resampler, samples: Samples, sizes: list[int]) -> Samples:
    """One run, in pieces of those sizes and a last one of the rest."""
    made = [resampler.push(piece) for piece in pieces(samples, sizes)]
    return np.concatenate([*made, resampler.end_run()])


@pytest.mark.parametrize("to_hertz", RATES)
class TestResampler:
    """From the model's rate to another one."""

    @settings(max_examples=20, deadline=None)
    @given(count=st.integers(0, 12000), sizes=cuts)
    def test_pieces_of_a_run_equal_the_whole(
        self, to_hertz: int, count: int, sizes: list[int]
    ) -> None:
        samples = noise(count)
        made = resampled(Resampler(MODEL_HERTZ, to_hertz), samples, sizes)
        whole = soxr.resample(samples, MODEL_HERTZ, to_hertz) if count else samples
        assert made.dtype == np.float32
        assert abs(len(made) - len(whole)) <= 1  # an exact half is rounded by either rule
        common = min(len(made), len(whole))
        np.testing.assert_allclose(made[:common], whole[:common], atol=1e-6)

    @settings(max_examples=30, deadline=None)
    @given(count=st.integers(0, 6000))
    def test_a_run_has_its_exact_length(self, to_hertz: int, count: int) -> None:
        resampler = Resampler(MODEL_HERTZ, to_hertz)
        made = resampled(resampler, noise(count), [700, 700])
        assert len(made) == resampler.total(count) == round(count * to_hertz / MODEL_HERTZ)

    def test_an_exact_half_has_its_exact_length_too(self, to_hertz: int) -> None:
        # 147/80 and 147/160 give halves at odd multiples of 40 and 80.
        resampler = Resampler(MODEL_HERTZ, to_hertz)
        for count in range(40, 16000, 40):
            made = resampler.push(np.zeros(count, np.float32))
            assert len(made) + len(resampler.end_run()) == resampler.total(count)

    def test_total_finds_where_the_next_segment_begins_in_a_run(self, to_hertz: int) -> None:
        resampler = Resampler(MODEL_HERTZ, to_hertz)
        samples = np.zeros(5 * FRAME + 777, np.float32)
        first = 2 * FRAME + 333
        samples[first] = 0.9
        made = resampled(resampler, samples, [FRAME] * 5)
        assert abs(int(np.abs(made).argmax()) - resampler.total(first)) <= 1

    def test_a_run_knows_nothing_of_the_one_before(self, to_hertz: int) -> None:
        resampler = Resampler(MODEL_HERTZ, to_hertz)
        first = resampled(resampler, noise(3000, seed=1), [1000])
        second = resampled(resampler, noise(3000, seed=2), [1000])
        assert not np.array_equal(first, second)
        alone = resampled(Resampler(MODEL_HERTZ, to_hertz), noise(3000, seed=2), [1000])
        np.testing.assert_array_equal(second, alone)

    def test_what_is_dropped_is_never_heard(self, to_hertz: int) -> None:
        resampler = Resampler(MODEL_HERTZ, to_hertz)
        resampler.push(noise(FRAME))
        resampler.drop()
        made = resampled(resampler, np.zeros(FRAME, np.float32), [])
        assert len(made) == resampler.total(FRAME)
        assert not made.any()

    def test_every_frame_of_the_model_gives_something_at_once(self, to_hertz: int) -> None:
        resampler = Resampler(MODEL_HERTZ, to_hertz)
        assert all(len(resampler.push(noise(FRAME))) for _ in range(20))

    def test_a_sine_has_no_click_where_pieces_join(self, to_hertz: int) -> None:
        made = resampled(Resampler(MODEL_HERTZ, to_hertz), sine(20 * FRAME), [FRAME] * 19)
        away_from_the_ends = made[to_hertz // 50 : -to_hertz // 50]
        expected = sine(len(made), to_hertz)[to_hertz // 50 : -to_hertz // 50]
        np.testing.assert_allclose(away_from_the_ends, expected, atol=1e-4)

    def test_ending_a_run_twice_gives_nothing_more(self, to_hertz: int) -> None:
        resampler = Resampler(MODEL_HERTZ, to_hertz)
        resampler.push(noise(100))
        assert len(resampler.end_run()) > 0
        assert len(resampler.end_run()) == 0

    def test_samples_that_cannot_be_written_to_are_welcome(self, to_hertz: int) -> None:
        received = np.frombuffer(noise(FRAME).tobytes(), np.float32)
        assert len(Resampler(MODEL_HERTZ, to_hertz).push(received)) > 0


def test_at_equal_rates_samples_pass_through_untouched() -> None:
    resampler = Resampler(MODEL_HERTZ, MODEL_HERTZ)
    samples = noise(100)
    assert resampler.push(samples) is samples
    assert len(resampler.end_run()) == 0
    assert resampler.total(12345) == 12345


def levelled(level: Level, samples: Samples, sizes: list[int]) -> Samples:
    """One run, in pieces of those sizes and a last one of the rest."""
    made = [level.push(piece) for piece in pieces(samples, sizes)]
    return np.concatenate([*made, level.end_run()])


class TestLevel:
    """Gain and limiter."""

    def test_without_gain_only_what_is_beyond_full_scale_changes(self) -> None:
        level = Level(0.0, MODEL_HERTZ)
        limited = level.push(np.float32([0.25, 1.0, -1.0, 1.5, -9.0]))
        assert limited.tolist() == [0.25, 1.0, -1.0, 1.0, -1.0]
        assert level.over_samples == 2

    @pytest.mark.parametrize("gain_db", [-40.0, -6.0, 6.0, 20.0])
    def test_what_stays_within_full_scale_is_multiplied_by_the_gain_alone(
        self, gain_db: float
    ) -> None:
        factor = 10 ** (gain_db / 20)
        quiet = noise(3000, peak=min(0.9, 0.97 / factor))
        level = Level(gain_db, MODEL_HERTZ)
        np.testing.assert_allclose(levelled(level, quiet, []), quiet * factor, rtol=1e-5)
        assert level.over_samples == 0

    @given(
        gain_db=st.floats(*GAIN_DB_RANGE),
        values=st.lists(st.floats(-4.0, 4.0, width=32), min_size=1, max_size=50),
    )
    def test_nothing_ever_exceeds_full_scale(self, gain_db: float, values: list[float]) -> None:
        samples = np.array(values, np.float32)
        level = Level(gain_db, 8000)
        limited = levelled(level, samples, [])
        assert limited.dtype == np.float32
        assert limited.shape == samples.shape
        assert float(np.abs(limited).max()) <= 1.0
        factor = np.float32(10 ** (gain_db / 20))
        assert level.over_samples == np.count_nonzero(np.abs(samples * factor) > 1.0)

    @pytest.mark.parametrize("rate", [8000, 24000, 48000])
    def test_the_limiter_turns_down_and_does_not_clip(self, rate: int) -> None:
        """A tone that is four times too loud comes out as a tone, with next to no overtones."""
        tone = sine(rate, rate, hertz=200.0, peak=0.99)
        limited = levelled(Level(12.0, rate), tone, [])[rate // 10 : -rate // 10]
        assert 0.9 < np.abs(limited).max() < 1.0
        spectrum = np.abs(np.fft.rfft(limited * np.hanning(len(limited)))) ** 2
        ground = len(limited) * 200 // rate
        overtones = spectrum[2 * ground - 5 :].sum() / spectrum[ground - 5 : ground + 5].sum()
        assert overtones < 1e-3

    def test_around_a_peak_the_gain_changes_smoothly(self) -> None:
        """And ten milliseconds away from it not at all."""
        samples = np.full(24000, 0.1, np.float32)
        samples[12000] = 0.9
        limited = levelled(Level(6.0, MODEL_HERTZ), samples, [])
        gains = limited / samples
        np.testing.assert_allclose(gains[[0, 11700, 12300, -1]], 10 ** (6 / 20), rtol=1e-5)
        assert np.abs(np.diff(gains)).max() < 0.03
        assert limited[12000] == pytest.approx(0.98, abs=0.001)

    @given(sizes=cuts)
    def test_pieces_equal_the_whole(self, sizes: list[int]) -> None:
        samples = noise(5000)
        whole, cut = Level(9.0, 8000), Level(9.0, 8000)
        np.testing.assert_array_equal(levelled(cut, samples, sizes), levelled(whole, samples, []))
        assert cut.over_samples == whole.over_samples > 0

    def test_what_was_dropped_leaves_no_trace(self) -> None:
        level = Level(9.0, MODEL_HERTZ)
        level.push(noise(5000))
        level.drop()
        quiet = noise(1000, peak=0.1)
        np.testing.assert_allclose(levelled(level, quiet, []), quiet * 10 ** (9 / 20), rtol=1e-5)

    def test_the_samples_given_are_left_as_they_were(self) -> None:
        samples = noise(1000, peak=2.0)
        before = samples.copy()
        for gain_db in (0.0, -6.0, 6.0):
            Level(gain_db, MODEL_HERTZ).push(samples)
        np.testing.assert_array_equal(samples, before)


class TestFadeOut:
    """The end of a sound that is cut."""

    @pytest.mark.parametrize("rate", [8000, 24000, 44100])
    def test_it_takes_five_milliseconds_to_fall_to_exactly_zero(self, rate: int) -> None:
        faded = fade_out(np.ones(rate, np.float32), rate)
        assert faded.dtype == np.float32
        assert abs(len(faded) / rate - 0.005) <= 0.51 / rate
        assert faded[0] > 0.99
        assert faded[-1] == 0.0
        assert (np.diff(faded) <= 0).all()

    @pytest.mark.parametrize("count", [0, 1, 2, 50])
    def test_fewer_samples_fall_to_zero_sooner(self, count: int) -> None:
        faded = fade_out(np.ones(count, np.float32), MODEL_HERTZ)
        assert len(faded) == count
        assert not faded[-1:].any()


class TestSampleEncodings:
    """Encodings in which each sample stands alone."""

    @pytest.mark.parametrize("encoding", SAMPLEWISE)
    @settings(max_examples=20)
    @given(count=st.integers(0, 4000), sizes=cuts)
    def test_pieces_equal_the_whole_and_counts_are_exact(
        self, encoding: Encoding, count: int, sizes: list[int]
    ) -> None:
        samples = noise(count)
        whole = encoder(encoding, 22050).encode(samples).data
        assert len(whole) == count * BYTES_PER_SAMPLE[encoding]
        stream = encoder(encoding, 22050)
        made = [stream.encode(piece) for piece in pieces(samples, sizes)]
        assert [stream.end_run(), stream.finish(), stream.drop()] == [NOTHING, NOTHING, 0]
        stream.close()
        assert b"".join(part.data for part in made) == whole
        assert sum(part.sample_count for part in made) == stream.position == count

    def test_sixteen_bits_are_the_nearest_ones(self) -> None:
        samples = np.float32([0, 1, -1, 0.5, -0.5, 0.4 / 32767])
        data, count = encoder(Encoding.PCM_S16LE, 8000).encode(samples)
        assert np.frombuffer(data, "<i2").tolist() == [0, 32767, -32767, 16384, -16384, 0]
        assert count == 6

    def test_floats_are_the_samples_themselves(self) -> None:
        assert encoder(Encoding.PCM_F32LE, 8000).encode(np.float32([0.25, -1])) == Encoded(
            b"\0\0\x80\x3e\0\0\x80\xbf", 2
        )

    def test_they_have_any_rate(self) -> None:
        assert {supported_rates(encoding) for encoding in SAMPLEWISE} == {None}

    @pytest.mark.parametrize(
        ("encoding", "silence"), [(Encoding.MULAW, b"\xff"), (Encoding.ALAW, b"\xd5")]
    )
    def test_silence_on_the_telephone_is_the_byte_that_g711_has_for_it(
        self, encoding: Encoding, silence: bytes
    ) -> None:
        assert encoder(encoding, 8000).encode(np.zeros(3, np.float32)).data == silence * 3

    @pytest.mark.parametrize("encoding", G711)
    def test_g711_keeps_speech_levels_at_telephone_quality(self, encoding: Encoding) -> None:
        samples = sine(8000, 8000)
        data, count = encoder(encoding, 8000).encode(samples)
        decoded = g711_values(data, encoding) / 32767
        assert count == len(data) == len(decoded) == 8000
        assert signal_to_noise(samples, decoded) > 36

    @pytest.mark.parametrize("encoding", G711)
    def test_g711_equals_that_of_ffmpeg_but_for_neighbours_at_the_edge_of_a_step(
        self, encoding: Encoding
    ) -> None:
        values = np.arange(-32767, 32768)
        ours, _ = encoder(encoding, 8000).encode((values / 32767).astype(np.float32))
        theirs = g711_of_ffmpeg(values.astype(np.int16), G711[encoding][1])
        # The order of the 256 bytes, by what they mean.
        steps = np.unique(g711_values(bytes(range(256)), encoding))
        places = [np.searchsorted(steps, g711_values(data, encoding)) for data in (ours, theirs)]
        assert np.abs(places[0] - places[1]).max() == 1
        # FFmpeg's edges lie halfway between what bytes mean, libsndfile's where G.711 has them.
        assert np.count_nonzero(places[0] != places[1]) < 0.015 * len(values)

    @pytest.mark.parametrize("rate", [8000, 16000, 22050, 24000, 44100, 48000])
    def test_a_wav_file_of_any_rate_has_true_sizes(self, rate: int) -> None:
        stream = encoder(Encoding.WAV, rate)
        samples = sine(1001, rate)
        pcm = stream.encode(samples[:500]).data + stream.encode(samples[500:]).data
        file = wav_file(pcm, rate)
        assert len(file) == WAV_HEADER_BYTES + 2002
        decoded, found_rate = soundfile.read(io.BytesIO(file), dtype="float32")
        assert found_rate == rate
        np.testing.assert_allclose(decoded, samples, atol=1e-4)


def signal_to_noise(signal: Samples, other: npt.NDArray[np.floating]) -> float:
    difference = signal.astype(np.float64) - other
    return float(10 * np.log10(np.sum(signal.astype(np.float64) ** 2) / np.sum(difference**2)))


def g711_values(data: bytes, encoding: Encoding) -> npt.NDArray[np.float64]:
    """Decoded, in units of 16-bit samples."""
    values, _ = soundfile.read(
        io.BytesIO(data),
        format="RAW",
        subtype=G711[encoding][0],
        samplerate=8000,
        channels=1,
        dtype="int16",
    )
    return np.asarray(values, np.float64)


def g711_of_ffmpeg(values: npt.NDArray[np.int16], codec: str) -> bytes:
    context = av.CodecContext.create(codec, "w")
    context.sample_rate = 8000
    context.layout = "mono"
    context.format = "s16"
    frame = av.AudioFrame.from_ndarray(values[np.newaxis], format="s16", layout="mono")
    frame.sample_rate = 8000
    return b"".join(bytes(packet) for packet in context.encode(frame))


def test_libraries_are_loaded_only_by_streams_that_need_them() -> None:
    program = (
        "import sys, numpy as np;"
        "from intone_server.audio import encoding, level, resampling;"
        "resampling.Resampler(24000, 24000);"
        "encoding.codecs_available();"
        "encoding.encoder(encoding.Encoding.PCM_S16LE, 24000).encode(np.zeros(9, np.float32));"
        "print(sorted({'av', 'soundfile', 'soxr'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
