"""Recordings: what is read, what is refused, and what is said about those for voices."""

import contextlib
import gzip
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from intone_server.audio import Samples
from intone_server.audio.containers import BadRecording, wav_around
from intone_server.audio.encoding import Encoding, encoder, to_s16
from intone_server.audio.level import Level
from intone_server.audio.recording import MAX_PEAK, PromptReport, read_audio, read_recording
from recordings import (
    JPEG,
    RATE,
    at_level,
    at_rate,
    bursts,
    encoded,
    flac_of_length,
    noise,
    sentence,
    silence,
    silent_bomb,
    speech,
    streamed,
    tone,
    wav,
)


def report_of(data: bytes) -> PromptReport:
    return read_recording(data, RATE)[1]


def refusal_of(data: bytes) -> str:
    with pytest.raises(BadRecording) as refused:
        read_recording(data, RATE)
    message = str(refused.value)
    assert "allowed are" in message or "cut off" in message or "damaged" in message
    return message


def closeness(samples: Samples, source: Samples) -> float:
    """Correlation of two signals that start together."""
    count = min(len(samples), len(source))
    return float(np.corrcoef(samples[:count], source[:count])[0, 1])


def float_wav(samples: Samples) -> bytes:
    return encoded(samples, "WAV", "FLOAT")


class TestFormats:
    @pytest.mark.parametrize(
        ("form", "coding"),
        [
            *(("WAV", coding) for coding in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32")),
            *(("WAV", coding) for coding in ("FLOAT", "DOUBLE", "ALAW", "ULAW")),
            *(("WAVEX", coding) for coding in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32")),
            *(("WAVEX", coding) for coding in ("FLOAT", "DOUBLE", "ALAW", "ULAW")),
            *(("FLAC", coding) for coding in ("PCM_S8", "PCM_16", "PCM_24")),
            *(("OGG", coding) for coding in ("VORBIS", "OPUS")),
            ("MP3", "MPEG_LAYER_III"),
        ],
    )
    def test_a_file_of_each_format_gives_its_samples(self, form: str, coding: str) -> None:
        """Reported case 82."""
        samples, report = read_recording(encoded(sentence(), form, coding), RATE)
        assert samples.dtype == np.float32
        assert samples.ndim == 1
        assert len(samples) == len(sentence())
        assert closeness(samples, sentence()) > (0.96 if form in ("OGG", "MP3") else 0.995)
        assert report.seconds_used == len(samples) / RATE
        assert not report.warnings or coding in ("PCM_U8", "PCM_S8")

    @pytest.mark.parametrize(
        ("form", "coding", "channels"),
        [
            *(("WAV", "PCM_24", channels) for channels in (2, 3, 7, 32)),
            *(("FLAC", "PCM_16", channels) for channels in (2, 8)),
        ],
    )
    def test_channels_are_averaged(self, form: str, coding: str, channels: int) -> None:
        heard = np.zeros((len(sentence()), channels), np.float32)
        heard[:, -1] = sentence()
        samples, _ = read_recording(encoded(heard, form, coding), RATE)
        np.testing.assert_allclose(samples, sentence() / channels, atol=1e-4)

    @pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000, 96000, 191999, 192000])
    def test_rates_from_8_to_192_khz_are_converted(self, rate: int) -> None:
        samples, _ = read_recording(encoded(at_rate(sentence(), rate), "WAV", "PCM_16", rate), RATE)
        assert abs(len(samples) - len(sentence())) <= 2
        assert closeness(samples, sentence()) > 0.97

    @pytest.mark.parametrize("rate", [16000, 44100])
    def test_the_samples_come_at_the_rate_that_is_asked_for(self, rate: int) -> None:
        samples, report = read_recording(encoded(sentence(), "FLAC", "PCM_16"), rate)
        assert len(samples) == 3 * rate
        assert report.seconds_used == 3

    @pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x7FFFF000])
    def test_a_wav_of_unknown_size_is_read_to_its_end(self, size: int) -> None:
        samples, _ = read_recording(wav(sentence(), size=size), RATE)
        assert len(samples) == len(sentence())

    def test_a_wav_written_to_a_pipe_is_read_to_its_end(self) -> None:
        samples, _ = read_recording(streamed(sentence(), "wav", "pcm_s16le"), RATE)
        assert len(samples) == len(sentence())

    def test_a_flac_of_unknown_length_is_read_to_its_last_sample(self) -> None:
        samples, _ = read_recording(streamed(sentence(), "flac", "flac"), RATE)
        np.testing.assert_allclose(samples, sentence(), atol=1e-4)

    def test_an_mp3_without_a_length_is_read_to_its_end(self) -> None:
        data = streamed(sentence(), "mp3", "libmp3lame", write_xing="0", id3v2_version="0")
        samples, _ = read_recording(data, RATE)
        assert len(sentence()) <= len(samples) < len(sentence()) + 3 * 1152

    def test_chunks_around_the_samples_of_a_wav_do_not_matter(self) -> None:
        plain = wav(sentence())
        noted = plain[:12] + b"LIST\x03\0\0\0abc\0" + plain[12:] + b"id3 \x04\0\0\0abcd"
        np.testing.assert_array_equal(*(read_recording(d, RATE)[0] for d in (plain, noted)))

    @pytest.mark.parametrize(
        ("form", "coding"), [("MP3", "MPEG_LAYER_III"), ("FLAC", "PCM_16"), ("OGG", "OPUS")]
    )
    def test_tags_before_the_file_do_not_matter(self, form: str, coding: str) -> None:
        plain = encoded(sentence(), form, coding)
        tagged = b"ID3\x04\0\0\0\0\x02\x01" + bytes(257) + plain
        np.testing.assert_array_equal(*(read_recording(d, RATE)[0] for d in (plain, tagged)))

    def test_an_mp3_is_decoded_in_one_go(self) -> None:
        """A seek between blocks would lose what a frame keeps in the one before it."""
        data = encoded(speech(), "MP3", "MPEG_LAYER_III")
        whole, _ = soundfile.read(io.BytesIO(data), dtype="float32")
        np.testing.assert_allclose(read_recording(data, RATE)[0], whole, atol=1e-5)


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("voice.wav", bytes(10_000_000))
    return file.getvalue()


class TestRefusedFiles:
    @pytest.mark.parametrize(
        ("data", "found"),
        [
            (b"", "it is empty"),
            (b"R", "begins with the bytes 52"),
            (bytes(5000), "begins with the bytes 00 00 00 00"),
            (b"hello, this is text", "begins with the bytes"),
            (JPEG, "begins like a JPEG image"),
            (zipped(), "begins like a zip archive"),
            (gzip.compress(bytes(10_000_000)), "begins like a gzip archive"),
            (b"\x1a\x45\xdf\xa3" + bytes(99), "begins like a WebM"),
            (b"\0\0\0\x20ftypM4A " + bytes(99), "begins like an MP4"),
            (b"@\0\0\0\0\0\0\0" + b'{"a/cache":{}}', "begins like a voice state"),
            (b"RIFF\x04\0\0\0AVI " + bytes(99), "a RIFF file other than WAV"),
            (b"OggS" + bytes(22) + b"\x01\x05\x7fFLAC", "an Ogg file of neither"),
            (b"\xff\xf1\x50\x80" + bytes(99), "MPEG audio that is not MP3"),
            (b"ID3\x04\0\0\0\0\0\x0a" + bytes(10) + JPEG, "begins like a JPEG image"),
        ],
    )
    def test_what_is_no_recording_is_called_by_its_name(self, data: bytes, found: str) -> None:
        message = refusal_of(data)
        assert found in message
        assert message.endswith("allowed are WAV, FLAC, Ogg Vorbis, Ogg Opus and MP3")

    @pytest.mark.parametrize("form", ["AIFF", "AU", "CAF", "W64", "RF64", "NIST", "VOC"])
    def test_other_formats_that_the_library_reads_are_refused(self, form: str) -> None:
        assert "not a recording" in refusal_of(encoded(sentence(), form, "PCM_16"))

    @pytest.mark.parametrize("coding", ["IMA_ADPCM", "MS_ADPCM", "GSM610"])
    def test_other_codings_in_a_wav_are_refused(self, coding: str) -> None:
        data = encoded(at_rate(sentence(), 8000), "WAV", coding, 8000)
        assert "allowed are integers of 8, 16, 24 or 32 bits" in refusal_of(data)

    @pytest.mark.parametrize("rate", [0, 1, 7999, 192001, 1999993, 2000000, 0xFFFFFFFF])
    def test_a_wav_that_claims_another_rate_is_refused(self, rate: int) -> None:
        message = refusal_of(wav(sentence(), rate=rate))
        assert message == f"sample rate is {rate} Hz, allowed are 8000 to 192000 Hz"

    def test_a_flac_of_another_rate_is_refused(self) -> None:
        message = refusal_of(encoded(sentence(), "FLAC", "PCM_16", 384000))
        assert message == "sample rate is 384000 Hz, allowed are 8000 to 192000 Hz"

    @pytest.mark.parametrize("channels", [0, 33, 65535])
    def test_a_wav_with_too_many_channels_or_none_is_refused(self, channels: int) -> None:
        message = refusal_of(wav(sentence(), channels=channels))
        assert message == f"the recording has {channels} channels, allowed are 1 to 32"

    @pytest.mark.parametrize("bits", [0, 1, 12, 20, 64])
    def test_a_wav_with_other_integers_is_refused(self, bits: int) -> None:
        assert f"format 1 with {bits} bits" in refusal_of(wav(sentence(), bits=bits))

    def test_a_wav_without_samples_is_refused(self) -> None:
        assert "without samples" in refusal_of(wav(sentence())[:36])
        assert "is 0.00 s long" in refusal_of(wav(silence(0)))

    def test_a_wav_without_a_format_is_refused(self) -> None:
        plain = wav(sentence())
        assert "does not state its format" in refusal_of(plain[:12] + plain[36:])

    @pytest.mark.parametrize("seconds", [1 / RATE, 0.01, 0.99])
    def test_less_than_a_second_is_refused(self, seconds: float) -> None:
        message = refusal_of(wav(speech()[: max(1, int(seconds * RATE))]))
        assert message == f"the recording is {seconds:.2f} s long, allowed are 1 to 120 s"

    def test_ten_minutes_are_refused(self) -> None:
        message = refusal_of(wav(np.zeros(600 * 8000, np.float32), rate=8000))
        assert message == "the recording is 600.00 s long, allowed are 1 to 120 s"

    def test_two_minutes_are_read(self) -> None:
        report = report_of(encoded(np.tile(speech(), 7)[: 120 * RATE], "FLAC", "PCM_16"))
        assert 27 < report.seconds_used <= 30

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_samples_that_are_no_numbers_are_refused(self, value: float) -> None:
        samples = sentence().copy()
        samples[RATE] = value
        assert "NaN or infinity" in refusal_of(float_wav(samples))

    @pytest.mark.parametrize("peak", [1e4, 32768, 3e38])
    def test_samples_far_beyond_full_scale_are_refused(self, peak: float) -> None:
        samples = sentence() / np.abs(sentence()).max() * np.float32(peak)
        message = refusal_of(float_wav(samples))
        assert message.startswith("the recording's samples reach ")
        assert message.endswith(", allowed are -1.0 to 1.0")


class TestCutOffFiles:
    def test_a_wav_that_holds_less_than_its_header_says_is_refused(self) -> None:
        data = wav(sentence())
        for missing in (1, 2, 1000, len(data) - 50):
            message = refusal_of(data[:-missing])
            assert "is cut off: its header states 144000 bytes of samples, the file" in message
            assert message.endswith(f"holds {144000 - missing}")

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
    @pytest.mark.parametrize(
        ("form", "coding"),
        [("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")],
    )
    def test_a_compressed_file_that_is_cut_is_refused(
        self, form: str, coding: str, share: float
    ) -> None:
        data = encoded(speech()[: 6 * RATE], form, coding)
        assert "cut off" in refusal_of(data[: int(len(data) * share)])

    def test_a_flac_of_unknown_length_that_is_cut_is_refused(self) -> None:
        data = streamed(speech(), "flac", "flac")
        assert "cut off" in refusal_of(data[: len(data) // 2])

    def test_an_ogg_without_its_last_pages_is_warned_of(self) -> None:
        data = streamed(speech()[: 6 * RATE], "ogg", "libopus")
        report = report_of(data[: data.rfind(b"OggS")])
        assert "without an end mark: it may be cut off" in report.warnings

    def test_an_mp3_without_a_length_may_end_anywhere(self) -> None:
        data = streamed(
            speech()[: 6 * RATE], "mp3", "libmp3lame", write_xing="0", id3v2_version="0"
        )
        assert 2.8 < report_of(data[: len(data) // 2]).seconds_used < 3.2

    @pytest.mark.parametrize(
        ("form", "coding"),
        [("WAV", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")],
    )
    def test_what_follows_a_whole_file_does_not_matter(self, form: str, coding: str) -> None:
        data = encoded(sentence(), form, coding)
        assert report_of(data + b"TAG" + bytes(125)) == report_of(data)


class TestLength:
    def test_only_the_first_30_s_are_used_and_they_end_in_a_pause(self) -> None:
        long = np.tile(speech(), 2)
        samples, report = read_recording(wav(long), RATE)
        assert 27 <= report.seconds_used <= 30
        assert report.seconds_used == len(samples) / RATE
        assert np.abs(samples[-RATE // 50 :]).max() < 0.01
        used = f"the first {report.seconds_used:.1f} s are used"
        assert report.warnings == (f"longer than 30 s: of its {len(long) / RATE:.1f} s {used}",)

    def test_30_s_are_used_whole(self) -> None:
        report = report_of(wav(np.tile(speech(), 2)[: 30 * RATE]))
        assert report.seconds_used == 30
        assert not any("longer" in warning for warning in report.warnings)

    def test_the_cut_comes_before_the_conversion(self, monkeypatch: pytest.MonkeyPatch) -> None:
        converted: list[int] = []
        real: Callable[..., Samples] = soxr.resample

        def resample(samples: Samples, rate: int, to: int) -> Samples:
            converted.append(len(samples))
            return real(samples, rate, to)

        monkeypatch.setattr(soxr, "resample", resample)
        report_of(wav(np.tile(speech(), 3)[: 50 * RATE], rate=RATE))
        assert max(converted) <= 30 * RATE


class TestBombs:
    @pytest.mark.parametrize(("read", "most_megabytes"), [("recording", 110), ("audio", 250)])
    def test_small_files_that_expand_or_claim_much_take_little_memory(
        self, tmp_path: Path, read: str, most_megabytes: int
    ) -> None:
        """The first three would expand to 120 MB and more."""
        silent_flac = silent_bomb("FLAC", "PCM_16", 96000, 2, 160)
        bombs = {
            "longer than 120 s, allowed are 1": flac_of_length(0, silent_flac),
            "is silent" if read == "recording" else "40.0 s": flac_of_length(
                96000 * 40, silent_flac
            ),
            "18000.00 s long": flac_of_length(96000 * 18000, silent_flac),
            "600.00 s long": silent_bomb("OGG", "VORBIS", 8000, 1, 600),
            "121.00 s long": silent_bomb("OGG", "OPUS", 8000, 1, 121),
            "200.00 s long": silent_bomb("MP3", "MPEG_LAYER_III", 8000, 1, 200),
            "1999993 Hz": wav(silence(0.04), rate=1999993),
            "576000000 bytes": wav(silence(0.04), rate=8000, size=8000 * 2 * 36000),
        }
        assert all(len(data) < 2_000_000 for data in bombs.values())
        files = []
        for number, data in enumerate(bombs.values()):
            files.append(tmp_path / str(number))
            files[-1].write_bytes(data)
        run = subprocess.run(
            [sys.executable, "-c", MEASURE, f"read_{read}", *files],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        *messages, grown_kilobytes = run.stdout.splitlines()
        for found, message in zip(bombs, messages, strict=True):
            assert found in message
        assert int(grown_kilobytes) < most_megabytes * 1024


# Resident memory at its peak, above what the libraries take.
MEASURE = """
import sys
import numpy, soundfile, soxr
from intone_server.audio.containers import BadRecording
from intone_server.audio import recording

def kilobytes(key):
    return int(open("/proc/self/status").read().split(key)[1].split()[0])

before = kilobytes("VmRSS:")
for file in sys.argv[2:]:
    try:
        samples = getattr(recording, sys.argv[1])(open(file, "rb").read(), 24000)
        print(len(samples) / 24000, "s")
    except BadRecording as error:
        print(error)
print(kilobytes("VmHWM:") - before)
"""


class TestSpeech:
    @pytest.mark.parametrize("level", [-6, -10, -20, -30, -40])
    def test_speech_passes_at_any_usual_level(self, level: float) -> None:
        report = report_of(encoded(at_level(speech(), level), "WAV", "PCM_16"))
        # Pauses count in `at_level` and not in the report.
        assert level - 1 < report.level_dbfs < level + 3
        assert 0.4 < report.speech_ratio < 0.9
        assert any("clipped" in warning for warning in report.warnings) == (level > -20)

    @pytest.mark.parametrize("slope", [0, 1, 2])
    def test_speech_15_db_above_noise_passes_without_a_word(self, slope: float) -> None:
        background = at_level(noise(len(speech()) / RATE, slope), -35)
        report = report_of(float_wav(at_level(speech(), -20) + background))
        assert report.warnings == ()

    def test_speech_in_loud_noise_passes_with_a_warning(self) -> None:
        background = at_level(noise(len(speech()) / RATE), -22)
        report = report_of(float_wav(at_level(speech(), -20) + background))
        assert [w.split(":")[0] for w in report.warnings] == ["noisy"]

    @pytest.mark.parametrize("coding", ["ULAW", "ALAW"])
    def test_speech_over_a_telephone_passes(self, coding: str) -> None:
        band = np.fft.rfft(at_rate(speech(), 8000))
        hertz = np.fft.rfftfreq(len(at_rate(speech(), 8000)), 1 / 8000)
        band[(hertz < 300) | (hertz > 3400)] = 0
        heard = at_level(np.fft.irfft(band).astype(np.float32), -20)
        assert report_of(encoded(heard, "WAV", coding, 8000)).warnings == ()

    @pytest.mark.parametrize("start", range(0, 16, 2))
    def test_any_two_seconds_of_speech_pass(self, start: int) -> None:
        report_of(float_wav(speech()[start * RATE : (start + 2) * RATE]))

    @pytest.mark.parametrize("speed", [0.7, 1.4])
    def test_low_and_high_voices_pass(self, speed: float) -> None:
        assert report_of(float_wav(at_rate(speech(), int(RATE / speed)))).warnings == ()

    def test_a_word_in_half_a_minute_passes_with_a_warning(self) -> None:
        word = speech()[:RATE]
        report = report_of(float_wav(np.concatenate([silence(10), word, silence(18)])))
        assert report.speech_ratio < 0.05
        assert [w.split(":")[0] for w in report.warnings] == ["little speech"]

    def test_quiet_speech_is_warned_of(self) -> None:
        """Reported case 85."""
        report = report_of(float_wav(at_level(speech(), -47)))
        assert "very quiet: speech is at -45 dBFS, better are -40 dBFS and more" in report.warnings

    def test_clipping_is_counted_and_warned_of(self) -> None:
        loud = speech() / np.abs(speech()).max()
        assert report_of(float_wav(loud)).clipped_ratio < 0.0001
        samples, report = read_recording(float_wav(3 * loud), RATE)
        assert np.abs(samples).max() <= 1
        assert 0.01 < report.clipped_ratio < 0.05
        assert [w.split(":")[0] for w in report.warnings] == ["clipped"]

    def test_clipping_in_one_channel_counts(self) -> None:
        loud = np.clip(3 * speech() / np.abs(speech()).max(), -1, 1)
        stereo = np.stack([loud, loud / 10], axis=1)
        assert report_of(encoded(stereo, "WAV", "ULAW")).clipped_ratio > 0.01

    def test_an_end_inside_a_word_is_warned_of(self) -> None:
        vowel = int(np.argmax(np.abs(speech()[2 * RATE : 3 * RATE]))) + 2 * RATE
        warnings = report_of(float_wav(speech()[:vowel])).warnings
        assert warnings == ("ends in the middle of a word: a pause at the end is better",)


BAD_SOUNDS = {
    "digital silence": (silence(3), "is silent: its loudest parts are at -120 dBFS"),
    "an empty room": (at_level(noise(3), -70), "is silent: its loudest parts are at -7"),
    "a click": (np.concatenate([silence(2), noise(0.01), silence(2)]), "is silent"),
    "white noise": (noise(5), "steady noise"),
    "pink noise": (noise(5, slope=1), "steady noise"),
    "brown noise": (noise(5, slope=2), "steady noise"),
    "loud noise": (at_level(noise(5), -3), "steady noise"),
    "bursts of noise": (bursts(noise(5)), "steady noise"),
    "bursts of pink noise": (bursts(noise(5, slope=1)), "steady noise"),
    "a low tone": (tone(100), "is a pure tone: 100%"),
    "a tone": (tone(440), "is a pure tone: 100%"),
    "a high tone": (tone(3000), "is a pure tone: 100%"),
    "a tone in noise": (tone(1000) + at_level(noise(3), -25), "is a pure tone"),
    "bursts of a tone": (bursts(tone(440, 5)), "is a pure tone: 9"),
    "a square wave": (0.3 * np.sign(tone(200)), "a steady tone"),
    "hum": (tone(50) + tone(100) / 2 + tone(150) / 3, "a steady tone"),
    "a tone above speech": (tone(9000), "is silent"),
}


class TestNoSpeech:
    @pytest.mark.parametrize("sound", BAD_SOUNDS)
    def test_what_is_not_speech_is_refused(self, sound: str) -> None:
        """Reported cases 84 and 85."""
        samples, found = BAD_SOUNDS[sound]
        message = refusal_of(float_wav(samples))
        assert found in message
        assert "allowed are" in message

    @pytest.mark.parametrize("slope", [0, 1, 2])
    def test_no_second_of_noise_passes(self, slope: float) -> None:
        for seed in range(10):
            assert "steady noise" in refusal_of(float_wav(noise(1, slope, seed)))

    def test_a_whisper_is_refused(self) -> None:
        """Noise with the spectrum of speech at every moment: nothing to take a voice from."""
        length = RATE // 33
        window = np.hanning(length)
        random = np.random.default_rng(0)
        whisper = np.zeros(len(speech()))
        for start in range(0, len(whisper) - length, length // 2):
            spectrum = np.abs(np.fft.rfft(speech()[start : start + length] * window))
            smooth = np.convolve(spectrum, np.ones(15) / 15, "same")
            turned = smooth * np.exp(2j * np.pi * random.random(len(smooth)))
            whisper[start : start + length] += window * np.fft.irfft(turned, length)
        assert "has no voice in it" in refusal_of(float_wav(whisper.astype(np.float32)))

    @pytest.mark.parametrize("sound", BAD_SOUNDS)
    def test_the_operators_recordings_are_warned_of_instead(self, sound: str) -> None:
        samples, found = BAD_SOUNDS[sound]
        read, report = read_recording(float_wav(samples), RATE, judge=False)
        assert len(read) == len(samples)
        assert found in report.warnings[0]

    def test_the_operators_recordings_keep_to_the_limits(self) -> None:
        for data in (JPEG, wav(silence(0.5)), wav(sentence(), rate=192001), wav(sentence())[:-9]):
            with pytest.raises(BadRecording):
                read_recording(data, RATE, judge=False)


ALL_16_BIT = np.arange(-32768, 32768).astype("<i2")
RATES = (8000, 11025, 16000, 22050, 24000, 44100, 48000)


def audio_refusal_of(data: bytes) -> str:
    with pytest.raises(BadRecording) as refused:
        read_audio(data, RATE)
    return str(refused.value)


class TestAudio:
    """What is not for a voice."""

    @pytest.mark.parametrize(
        ("form", "coding"),
        [
            *(("WAV", coding) for coding in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32")),
            *(("WAV", coding) for coding in ("FLOAT", "DOUBLE", "ALAW", "ULAW")),
            *(("FLAC", coding) for coding in ("PCM_S8", "PCM_16", "PCM_24")),
            *(("OGG", coding) for coding in ("VORBIS", "OPUS")),
            ("MP3", "MPEG_LAYER_III"),
        ],
    )
    def test_a_file_of_each_format_gives_its_samples(self, form: str, coding: str) -> None:
        data = encoded(sentence(), form, coding)
        samples = read_audio(data, RATE)
        assert samples.dtype == np.float32
        assert samples.shape == sentence().shape
        # On the scale of the integers that came, as for a voice but for the last 3 in 100,000.
        np.testing.assert_allclose(samples, read_recording(data, RATE)[0], rtol=4e-5, atol=1e-7)

    @pytest.mark.parametrize("form", ["WAV", "WAVEX", "FLAC"])
    @pytest.mark.parametrize("channels", [1, 2, 3])
    def test_every_16_bit_sample_leaves_as_it_came(self, form: str, channels: int) -> None:
        pcm = np.repeat(ALL_16_BIT[:, None], channels, axis=1)
        samples = read_audio(encoded(pcm, form, "PCM_16"), RATE)
        np.testing.assert_array_equal(samples, (ALL_16_BIT / 32767).astype(np.float32))
        np.testing.assert_array_equal(to_s16(samples), ALL_16_BIT)

    def test_minus_32768_alone_is_beyond_full_scale(self) -> None:
        """Which lies at -32767 and 32767 in what leaves."""
        level = Level(0.0, RATE)
        samples = level.push(read_audio(encoded(ALL_16_BIT, "WAV", "PCM_16"), RATE))
        np.testing.assert_array_equal(to_s16(samples), np.maximum(ALL_16_BIT, -32767))
        assert level.over_samples == 1

    @pytest.mark.parametrize("coding", ["PCM_24", "PCM_32"])
    def test_16_bits_in_a_wider_integer_leave_as_they_came(self, coding: str) -> None:
        wide = ALL_16_BIT.astype(np.int32) << 16
        samples = read_audio(encoded(wide, "WAV", coding), RATE)
        np.testing.assert_array_equal(to_s16(samples), ALL_16_BIT)

    @pytest.mark.parametrize("encoding", [Encoding.MULAW, Encoding.ALAW])
    def test_every_byte_of_g711_leaves_as_it_came(self, encoding: Encoding) -> None:
        """But for the negative zero of mu-law, which is its other zero."""
        codes = bytes(range(256)) * 8
        samples = read_audio(wav_around(codes, encoding, 8000), 8000)
        expected = codes.replace(b"\x7f", b"\xff") if encoding is Encoding.MULAW else codes
        assert encoder(encoding, 8000).encode(samples).data == expected

    def test_floats_are_kept_also_beyond_full_scale(self) -> None:
        loud = np.linspace(-MAX_PEAK, MAX_PEAK, RATE, dtype=np.float32)
        np.testing.assert_array_equal(read_audio(float_wav(loud), RATE), loud)
        np.testing.assert_array_equal(
            read_audio(wav_around(loud.tobytes(), Encoding.PCM_F32LE, RATE), RATE), loud
        )

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 8.1, -1e9])
    def test_samples_that_are_no_sound_are_refused_wherever_they_are(self, value: float) -> None:
        samples = silence(60)
        samples[-1] = value
        assert "allowed are -1.0 to 1.0" in audio_refusal_of(float_wav(samples))

    def test_channels_are_averaged(self) -> None:
        left = np.repeat(np.array([100, -200, 300], "<i2"), 1000)
        stereo = np.stack([left, 3 * left], axis=1)
        samples = read_audio(encoded(stereo, "FLAC", "PCM_16"), RATE)
        np.testing.assert_array_equal(to_s16(samples), 2 * left)

    @pytest.mark.parametrize("seconds", [31, 120])
    def test_all_of_it_is_used(self, seconds: int) -> None:
        samples = np.tile(speech(), 8)[: seconds * RATE]
        np.testing.assert_array_equal(read_audio(float_wav(samples), RATE), samples)
        assert len(read_audio(encoded(samples, "FLAC", "PCM_16"), 16000)) == seconds * 16000

    @pytest.mark.parametrize("sound", [silence(1), tone(440), noise(1), noise(0.01)])
    def test_it_need_not_be_speech(self, sound: Samples) -> None:
        np.testing.assert_array_equal(read_audio(float_wav(sound), RATE), sound)

    @settings(max_examples=150, deadline=None)
    @given(
        own=st.sampled_from((*RATES, 12345, 96000, 191999, 192000)),
        to=st.sampled_from(RATES),
        extra=st.integers(0, 5000),
    )
    def test_the_length_at_another_rate_is_exact(self, own: int, to: int, extra: int) -> None:
        count = own // 50 + extra
        samples = np.random.default_rng(extra).uniform(-1, 1, count).astype(np.float32)
        read = read_audio(encoded(samples, "WAV", "FLOAT", own), to)
        assert len(read) == round(count * to / own)
        whole = samples if own == to else soxr.resample(samples, own, to)
        assert abs(len(whole) - len(read)) <= 1
        common = min(len(whole), len(read))
        np.testing.assert_array_equal(read[:common], whole[:common])

    def test_what_a_new_rate_drives_beyond_full_scale_is_kept(self) -> None:
        square = np.sign(tone(100)).astype(np.float32)
        samples = read_audio(float_wav(square), 48000)
        assert 1.05 < np.abs(samples).max() < 1.3

    def test_less_than_10_ms_or_more_than_2_minutes_are_refused(self) -> None:
        assert len(read_audio(wav(silence(0.01)), RATE)) == 240
        short, long = wav(silence(0.01)[1:]), wav(silence(121))
        allowed = "allowed are 10 ms to 120 s"
        assert audio_refusal_of(short) == f"the recording is 9.96 ms long, {allowed}"
        assert audio_refusal_of(long) == f"the recording is 121.00 s long, {allowed}"
        assert audio_refusal_of(wav(silence(0))) == f"the recording is 0.00 ms long, {allowed}"

    def test_a_file_that_is_cut_off_is_refused(self) -> None:
        data = encoded(speech(), "FLAC", "PCM_16")
        assert "cut off" in audio_refusal_of(data[: len(data) // 2])
        assert "cut off" in audio_refusal_of(wav(sentence())[:-1])

    @pytest.mark.parametrize(
        ("encoding", "coding"),
        [
            (Encoding.PCM_S16LE, "PCM_16"),
            (Encoding.PCM_F32LE, "FLOAT"),
            (Encoding.MULAW, "ULAW"),
            (Encoding.ALAW, "ALAW"),
        ],
    )
    def test_samples_without_a_header_are_those_of_a_file(
        self, encoding: Encoding, coding: str
    ) -> None:
        bare = encoded(sentence(), "RAW", coding, 16000)
        np.testing.assert_array_equal(
            read_audio(wav_around(bare, encoding, 16000), 16000),
            read_audio(encoded(sentence(), "WAV", coding, 16000), 16000),
        )

    def test_half_a_sample_without_a_header_is_refused(self) -> None:
        with pytest.raises(BadRecording, match="1001 bytes are not whole samples of 2 bytes"):
            wav_around(bytes(1001), Encoding.PCM_S16LE, RATE)
        with pytest.raises(BadRecording, match="1002 bytes are not whole samples of 4 bytes"):
            wav_around(bytes(1002), Encoding.PCM_F32LE, RATE)

    @pytest.mark.parametrize("rate", [0, 7999, 192001, 1 << 40])
    def test_another_rate_without_a_header_is_refused(self, rate: int) -> None:
        with pytest.raises(BadRecording, match="allowed are 8000 to 192000 Hz"):
            wav_around(bytes(1000), Encoding.MULAW, rate)


FUZZED = {
    "wav": encoded(sentence(), "WAVEX", "PCM_16"),
    "float": float_wav(sentence()),
    "flac": encoded(sentence(), "FLAC", "PCM_16"),
    "streamed flac": streamed(sentence(), "flac", "flac"),
    "vorbis": encoded(sentence(), "OGG", "VORBIS"),
    "opus": encoded(sentence(), "OGG", "OPUS"),
    "mp3": encoded(sentence(), "MP3", "MPEG_LAYER_III"),
}


def is_read_or_refused(data: bytes) -> None:
    with perhaps_refused():
        samples, report = read_recording(data, RATE)
        assert samples.dtype == np.float32
        assert RATE <= len(samples) <= 30 * RATE
        assert np.abs(samples).max() <= 1
        assert 0 <= report.clipped_ratio <= 1
        assert 0 < report.speech_ratio <= 1
    with perhaps_refused():
        samples = read_audio(data, RATE)
        assert samples.dtype == np.float32
        assert RATE // 100 <= len(samples) <= 120 * RATE
        assert np.abs(samples).max() <= 2 * MAX_PEAK


@contextlib.contextmanager
def perhaps_refused() -> Iterator[None]:
    """If so, in a short line."""
    try:
        yield
    except BadRecording as refused:
        message = str(refused)
        assert len(message) < 200
        assert "\n" not in message


class TestAnyBytes:
    @settings(max_examples=100, deadline=None)
    @given(
        st.sampled_from([b"", b"RIFF\0\0\0\0WAVE", b"fLaC", b"OggS", b"ID3", b"\xff\xfb"]),
        st.binary(max_size=400),
    )
    def test_random_bytes_are_refused(self, start: bytes, rest: bytes) -> None:
        for read in (read_recording, read_audio):
            with pytest.raises(BadRecording):
                read(start + rest, RATE)

    @settings(max_examples=150, deadline=None)
    @given(st.sampled_from(sorted(FUZZED)), st.data())
    def test_a_damaged_file_is_read_or_refused(self, kind: str, draw: st.DataObject) -> None:
        data = bytearray(FUZZED[kind])
        # Half of the damage goes where the headers are.
        place = st.integers(0, 200) | st.integers(0, len(data) - 1)
        for start, removed, added in draw.draw(
            st.lists(
                st.tuples(place, st.integers(0, 300), st.binary(max_size=20)),
                min_size=1,
                max_size=4,
            )
        ):
            data[start : start + removed] = added
        is_read_or_refused(bytes(data))

    @settings(max_examples=100, deadline=None)
    @given(st.sampled_from(sorted(FUZZED)), st.floats(0, 1), st.binary(max_size=300))
    def test_a_shortened_or_extended_file_is_read_or_refused(
        self, kind: str, share: float, added: bytes
    ) -> None:
        data = FUZZED[kind]
        is_read_or_refused(data[: int(len(data) * share)])
        is_read_or_refused(data + added)

    def test_nothing_is_written_to_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        for data in FUZZED.values():
            report_of(data)
        assert not list(tmp_path.iterdir())
