"""Ogg Opus, FLAC and MP3, as they stream out."""

import io
from collections.abc import Iterator
from contextlib import contextmanager

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
    COMPRESSED,
    NOTHING,
    Encoded,
    Encoder,
    Encoding,
    codecs_available,
    encoder,
    supported_rates,
    to_s16,
)
from intone_server.audio.level import Level, fade_out
from intone_server.audio.resampling import Resampler

MODEL_HERTZ = 24000
FRAME = 1920
STREAM_HERTZ = (8000, 16000, 22050, 24000, 44100, 48000)
EVERY_FORMAT = [
    (encoding, rate)
    for encoding in sorted(COMPRESSED, key=lambda encoding: encoding.name)
    for rate in supported_rates(encoding) or STREAM_HERTZ
]
AT_MODEL_RATE = [(encoding, rate) for encoding, rate in EVERY_FORMAT if rate == MODEL_HERTZ]
# What decoders put before the stream: 576 samples of LAME's delay and 529 of any MP3 decoder.
MP3_DELAY = 1105
# Signal to noise that tells the sound from another one, in dB. Opus is not made to keep the shape
# of the wave, at the few bits of 8 kHz least of all.
FAITHFUL = {Encoding.OGG_OPUS: 5.0, Encoding.FLAC: 80.0, Encoding.MP3: 15.0}

every_format = pytest.mark.parametrize(("encoding", "rate"), EVERY_FORMAT)
at_model_rate = pytest.mark.parametrize(("encoding", "rate"), AT_MODEL_RATE)


def voice(count: int, rate: int) -> Samples:
    """Something with the pitch, harmonics and syllables of a voice."""
    seconds = np.arange(count) / rate
    phase = 2 * np.pi * (120 * seconds + 3 * np.sin(2 * np.pi * 0.7 * seconds))
    harmonics = sum(np.sin(k * phase) / k for k in range(1, 20))
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 3.1 * seconds)
    return np.asarray(0.25 * harmonics * syllables, np.float32)


def tone(count: int, rate: int) -> Samples:
    return (0.5 * np.sin(2 * np.pi * 440 * np.arange(count) / rate)).astype(np.float32)


@contextmanager
def opened(encoding: Encoding, rate: int) -> Iterator[Encoder]:
    stream = encoder(encoding, rate)
    try:
        yield stream
    finally:
        stream.close()


def encoded(encoding: Encoding, rate: int, parts: list[Samples]) -> list[Encoded]:
    """What each part gave, and then the end."""
    with opened(encoding, rate) as stream:
        return [*map(stream.encode, parts), stream.finish()]


def data_of(parts: list[Encoded]) -> bytes:
    return b"".join(part.data for part in parts)


def decoded(data: bytes) -> npt.NDArray[np.float64]:
    """By FFmpeg, which is not told what it is, at `heard_rate`."""
    with av.open(io.BytesIO(data)) as container:
        arrays = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
    samples = np.concatenate(arrays)
    scale = 32767.0 if samples.dtype == np.int16 else 1.0
    return samples.astype(np.float64) / scale


def heard_rate(encoding: Encoding, rate: int) -> int:
    return 48000 if encoding is Encoding.OGG_OPUS else rate


def as_heard(encoding: Encoding, rate: int, count: int) -> int:
    """How many samples a decoder makes of the first `count` samples of the stream."""
    delay = MP3_DELAY if encoding is Encoding.MP3 else 0
    return delay + count * heard_rate(encoding, rate) // rate


def signal_to_noise(encoding: Encoding, rate: int, signal: Samples, data: bytes) -> float:
    heard = decoded(data)
    if encoding is Encoding.OGG_OPUS:
        signal = soxr.resample(signal, rate, 48000)
    elif encoding is Encoding.MP3:
        heard = heard[MP3_DELAY:]
    heard = heard[: len(signal)]
    return float(10 * np.log10(np.sum(signal**2) / np.sum((signal - heard) ** 2)))


def frames(samples: Samples, rate: int, seconds: float = 0.08) -> list[Samples]:
    size = round(seconds * rate)
    return [samples[at : at + size] for at in range(0, len(samples), size)]


@every_format
def test_the_stream_decodes_to_the_sound_with_its_exact_length(
    encoding: Encoding, rate: int
) -> None:
    sound = voice(rate // 2 + 77, rate)
    parts = encoded(encoding, rate, frames(sound, rate))
    assert sum(part.sample_count for part in parts) == len(sound)
    length, expected = len(decoded(data_of(parts))), as_heard(encoding, rate, len(sound))
    if encoding is Encoding.MP3:
        assert expected <= length < expected + 1152  # the last frame is a whole one
    else:
        assert length == expected
    assert signal_to_noise(encoding, rate, sound, data_of(parts)) > FAITHFUL[encoding]


@every_format
def test_whatever_has_come_so_far_is_playable_and_as_long_as_was_said(
    encoding: Encoding, rate: int
) -> None:
    parts = encoded(encoding, rate, frames(voice(rate // 3, rate), rate, 0.03))
    told = 0
    for position, part in enumerate(parts[:-1]):
        assert bool(part.data) == (part.sample_count > 0)
        told += part.sample_count
        expected = as_heard(encoding, rate, told)
        # A single frame of MP3 is right, but FFmpeg wants to see two.
        if part.data and (encoding is not Encoding.MP3 or expected > 1152):
            assert len(decoded(data_of(parts[: position + 1]))) == expected
    assert told > 0


@at_model_rate
@settings(max_examples=10, deadline=None)
@given(sizes=st.lists(st.integers(0, 4000), max_size=8))
def test_the_same_samples_give_the_same_bytes_in_any_pieces(
    encoding: Encoding, rate: int, sizes: list[int]
) -> None:
    sound = voice(12345, rate)
    cuts = np.minimum(np.cumsum([0, *sizes]), len(sound)).tolist()
    parts = encoded(encoding, rate, np.split(sound, cuts))
    assert data_of(parts) == data_of(encoded(encoding, rate, [sound]))
    assert sum(part.sample_count for part in parts) == len(sound)
    assert all(bool(part.data) == (part.sample_count > 0) for part in parts)


@at_model_rate
@pytest.mark.parametrize("count", [1, 2, 479, 480, 481, 960, 1153])
def test_a_stream_may_be_shorter_than_a_frame(encoding: Encoding, rate: int, count: int) -> None:
    parts = encoded(encoding, rate, [voice(count, rate)])
    assert sum(part.sample_count for part in parts) == count
    assert len(decoded(data_of(parts))) >= as_heard(encoding, rate, count)


@at_model_rate
def test_every_frame_of_the_model_gives_bytes_at_once(encoding: Encoding, rate: int) -> None:
    parts = encoded(encoding, rate, frames(voice(20 * FRAME, rate), rate))
    assert all(part.data for part in parts[:-1])


@every_format
def test_at_the_end_of_a_run_all_of_it_can_be_decoded(encoding: Encoding, rate: int) -> None:
    sound = voice(rate // 2 + 123, rate)
    with opened(encoding, rate) as stream:
        parts = [stream.encode(sound), stream.end_run()]
        assert sum(part.sample_count for part in parts) >= len(sound)
        assert signal_to_noise(encoding, rate, sound, data_of(parts)) > FAITHFUL[encoding]
        heard = decoded(data_of(parts))
        end = as_heard(encoding, rate, len(sound))
        assert np.abs(heard[end - rate // 100 : end]).max() > 0.05  # it does not fall silent early
        assert stream.end_run() == NOTHING
        assert stream.encode(np.zeros(0, np.float32)) == NOTHING
        assert stream.end_run() == NOTHING


@every_format
def test_silence_that_was_filled_in_counts_as_given(encoding: Encoding, rate: int) -> None:
    with opened(encoding, rate) as stream:
        parts = [stream.encode(voice(rate // 5 + 7, rate)), stream.end_run()]
        begin = stream.position
        # At most what is promised: a frame, and past the look-ahead.
        assert rate // 5 + 7 <= begin <= rate // 5 + 7 + max(0.05 * rate, 3408)
        burst = tone(rate // 10, rate)
        parts += [stream.encode(burst), stream.finish()]
        assert sum(part.sample_count for part in parts) == stream.position == begin + len(burst)
    heard = decoded(data_of(parts))
    at = as_heard(encoding, rate, begin)
    slack = len(heard) // 50  # what a lossy codec lets ring before a sound that sets in
    assert np.abs(heard[at - 2 * slack : at - slack]).max() < 0.02
    assert np.abs(heard[at : at + slack]).max() > 0.1


@every_format
def test_what_is_dropped_is_never_heard(encoding: Encoding, rate: int) -> None:
    with opened(encoding, rate) as stream:
        parts = [stream.encode(np.zeros(rate // 2, np.float32)), stream.end_run()]
        begin = stream.position
        # Less than any frame.
        loud = np.full(rate // 60, 0.9, np.float32)
        assert stream.encode(loud) == NOTHING
        assert stream.position == begin + len(loud)
        assert stream.drop() == len(loud)
        assert stream.position == begin
        parts += [stream.encode(np.zeros(rate // 2, np.float32)), stream.finish()]
        assert sum(part.sample_count for part in parts) == begin + rate // 2
    assert np.abs(decoded(data_of(parts))).max() < 1e-3


@every_format
def test_after_a_cut_the_end_of_the_run_brings_out_all_that_is_left(
    encoding: Encoding, rate: int
) -> None:
    sound = voice(rate // 2, rate)
    at = rate // 4 + 99
    with opened(encoding, rate) as stream:
        before = [stream.encode(sound[:at]), stream.encode(fade_out(sound[at:], rate))]
        before.append(stream.end_run())
        told = sum(part.sample_count for part in before)
        after = [stream.encode(np.zeros(rate // 4, np.float32)), stream.finish()]
    heard = decoded(data_of([*before, *after]))
    rest = heard[as_heard(encoding, rate, told) :]
    assert np.abs(rest).max() < 0.01
    assert len(rest) >= heard_rate(encoding, rate) // 4


@every_format
def test_a_tone_has_no_click_where_pieces_join(encoding: Encoding, rate: int) -> None:
    resampler, level = Resampler(MODEL_HERTZ, rate), Level(0.0, rate)
    made = [resampler.push(piece) for piece in frames(tone(8 * FRAME, MODEL_HERTZ), MODEL_HERTZ)]
    made.append(resampler.end_run())
    heard = decoded(data_of(encoded(encoding, rate, [level.push(part) for part in made])))
    begin, end = (as_heard(encoding, rate, sum(map(len, made)) * k // 8) for k in (1, 7))
    middle = heard[begin:end]
    # That is what the second difference of the tone reaches, and some noise of the codec.
    step = 2 * np.pi * 440 / heard_rate(encoding, rate)
    assert np.abs(np.diff(middle, 2)).max() < 0.5 * step**2 + 0.03


@pytest.mark.parametrize("encoding", [Encoding.OGG_OPUS, Encoding.MP3])
def test_another_decoder_finds_the_same_length(encoding: Encoding) -> None:
    sound = voice(MODEL_HERTZ, MODEL_HERTZ)
    data = data_of(encoded(encoding, MODEL_HERTZ, frames(sound, MODEL_HERTZ)))
    samples, rate = soundfile.read(io.BytesIO(data))
    slack = 0.0 if encoding is Encoding.OGG_OPUS else 0.1  # delay and padding of MP3
    assert 1.0 <= len(samples) / rate <= 1.0 + slack


def test_flac_keeps_sixteen_bits_exactly() -> None:
    sound = voice(24000, MODEL_HERTZ)
    data = data_of(encoded(Encoding.FLAC, MODEL_HERTZ, frames(sound, MODEL_HERTZ)))
    with av.open(io.BytesIO(data)) as container:
        arrays = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
    np.testing.assert_array_equal(np.concatenate(arrays), to_s16(sound))


@at_model_rate
def test_a_stream_without_samples_is_empty(encoding: Encoding, rate: int) -> None:
    with opened(encoding, rate) as stream:
        assert stream.encode(np.zeros(0, np.float32)) == NOTHING
        assert stream.end_run() == NOTHING
        assert stream.finish() == NOTHING


@at_model_rate
def test_a_stream_can_be_closed_at_any_time_and_more_than_once(
    encoding: Encoding, rate: int, capfd: pytest.CaptureFixture[str]
) -> None:
    for samples in (0, 100, rate):
        stream = encoder(encoding, rate)
        stream.encode(voice(samples, rate))
        stream.close()
        stream.close()
    stream = encoder(encoding, rate)
    stream.encode(voice(rate, rate))
    stream.finish()
    stream.close()
    assert capfd.readouterr() == ("", "")


def test_the_samples_given_may_change_afterwards() -> None:
    sound = voice(1000, MODEL_HERTZ)
    with opened(Encoding.FLAC, MODEL_HERTZ) as stream:
        given_away = sound.copy()
        parts = [stream.encode(given_away)]
        given_away[:] = 0
        parts.append(stream.finish())
    assert data_of(parts) == data_of(encoded(Encoding.FLAC, MODEL_HERTZ, [sound]))


def test_codecs_are_available_here() -> None:
    assert codecs_available()
