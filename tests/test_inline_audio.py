"""Audio of callers, read in processes of its own, and the queue in front of them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import soxr

from intone_server.audio import Samples
from intone_server.audio.encoding import Encoding, encoder, to_s16, wav_file
from intone_server.audio.recording import read_audio
from intone_server.engines.base import EngineOptions
from intone_server.errors import InternalError, Overloaded, Reason, TimedOut, Unavailable
from intone_server.synthesis.inline_audio import (
    MAX_PROCESSES,
    MAX_READING,
    MAX_WAITING,
    AudioReader,
    Sound,
)
from intone_server.workers import reading
from intone_server.workers.launch import Launcher, WorkerLink
from intone_server.workers.loading import WorkerSpec
from intone_server.workers.messages import AudioRead, AudioRefused, ReadAudio
from processes import wait_for
from recordings import (
    JPEG,
    RATE,
    at_rate,
    encoded,
    flac_of_length,
    sentence,
    silent_bomb,
    speech,
    streamed,
)
from test_voice_making import FAKE, processes, running_launcher

SHORT = Sound(wav_file(bytes(2 * RATE), RATE))
CRASHED = "the recording cannot be decoded: the decoder crashed on it"
TOO_SLOW = (
    "decoding this recording takes more than 20 s of a processor, more than a recording should"
)


@pytest.fixture(scope="module")
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where processes leave temporary files, if they do."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def fork_server(temporary_files: Path) -> Iterator[None]:
    with running_launcher(FAKE, TMPDIR=str(temporary_files)):
        yield


@pytest.fixture
def launcher(fork_server: None) -> Launcher:
    """One for each event loop."""
    return Launcher(FAKE)


@pytest.fixture
async def reader(launcher: Launcher) -> AsyncIterator[AudioReader]:
    reader = AudioReader(launcher.launch_reader)
    yield reader
    await reader.stop()
    wait_for(lambda: not processes())


class Launches:
    """Starts processes and sends each of the first `count` a signal before it has read anything."""

    def __init__(self, launcher: Launcher, number: int, count: int = 1000) -> None:
        self._launcher = launcher
        self._number = number
        self._count = count
        self.pids: list[int] = []
        self.callers: list[str] = []

    async def __call__(self) -> WorkerLink:
        link = await self._launcher.launch_reader()
        assert link.pid is not None
        if len(self.pids) < self._count:
            os.kill(link.pid, self._number)
        self.pids.append(link.pid)
        task = asyncio.current_task()
        assert task is not None
        self.callers.append(task.get_name())
        return link

    async def until(self, count: int) -> None:
        while len(self.pids) < count:
            await asyncio.sleep(0.005)

    def resume(self) -> None:
        self._count = 0
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)


async def read(reader: AudioReader, *sounds: Sound, rate: int = RATE) -> list[Samples | str]:
    return await reader.read(sounds, rate, max_seconds=600)


def samples_of(result: Samples | str) -> Samples:
    assert not isinstance(result, str), result
    assert result.dtype == np.float32
    assert result.ndim == 1
    return result


def slow() -> Sound:
    """About two seconds of decoding."""
    return Sound(silent_bomb("FLAC", "PCM_16", 192000, 8, 60))


async def in_the_middle(task: asyncio.Task[object]) -> psutil.Process:
    """The process that reads for a task, once it is decoding."""
    while not task.done():
        for process in processes():
            if process.num_threads() > 1 and process.cpu_times().user > 0.4:
                return process
        await asyncio.sleep(0.01)
    raise AssertionError(f"it has ended: {task}")


class TestSounds:
    @pytest.mark.parametrize(
        ("form", "coding"),
        [
            ("WAV", "PCM_16"),
            ("WAV", "FLOAT"),
            ("FLAC", "PCM_24"),
            ("OGG", "VORBIS"),
            ("OGG", "OPUS"),
            ("MP3", "MPEG_LAYER_III"),
        ],
    )
    @pytest.mark.parametrize("rate", [8000, RATE, 48000])
    async def test_a_file_becomes_samples_at_the_rate_that_is_asked_for(
        self, reader: AudioReader, form: str, coding: str, rate: int
    ) -> None:
        data = encoded(sentence(), form, coding)
        samples = samples_of((await read(reader, Sound(data), rate=rate))[0])
        assert len(samples) == 3 * rate
        np.testing.assert_array_equal(samples, read_audio(data, rate))

    async def test_sounds_of_a_call_come_back_in_order(self, reader: AudioReader) -> None:
        lengths = [3, 1, 2, 0.5]
        sounds = [Sound(encoded(speech()[: int(n * RATE)], "FLAC", "PCM_16")) for n in lengths]
        assert [len(samples_of(s)) / RATE for s in await read(reader, *sounds)] == lengths

    async def test_two_minutes_arrive_whole(self, reader: AudioReader) -> None:
        samples = np.tile(speech(), 8)[: 120 * RATE]
        sound = Sound(encoded(samples, "WAV", "FLOAT"))
        np.testing.assert_array_equal(samples_of((await read(reader, sound))[0]), samples)

    async def test_every_16_bit_sample_leaves_as_it_came(self, reader: AudioReader) -> None:
        pcm = np.arange(-32768, 32768).astype("<i2")
        sounds = [
            Sound(wav_file(pcm.tobytes(), RATE)),
            Sound(pcm.tobytes(), Encoding.PCM_S16LE, RATE),
        ]
        for result in await read(reader, *sounds):
            np.testing.assert_array_equal(to_s16(samples_of(result)), pcm)

    async def test_what_the_server_says_comes_back_as_it_was(self, reader: AudioReader) -> None:
        """In the encodings of a stream that lose nothing, or only once. mu-law has two zeros."""
        said = {
            encoding: encoder(encoding, RATE).encode(sentence()).data
            for encoding in (
                Encoding.PCM_S16LE,
                Encoding.PCM_F32LE,
                Encoding.MULAW,
                Encoding.ALAW,
            )
        }
        results = await read(reader, *(Sound(data, e, RATE) for e, data in said.items()))
        for (encoding, data), result in zip(said.items(), results, strict=True):
            again = encoder(encoding, RATE).encode(samples_of(result))
            assert again.data == (
                data.replace(b"\x7f", b"\xff") if encoding is Encoding.MULAW else data
            )

    async def test_samples_without_a_header_have_the_rate_that_is_stated(
        self, reader: AudioReader
    ) -> None:
        data = at_rate(sentence(), 8000).tobytes()
        [result] = await read(reader, Sound(data, Encoding.PCM_F32LE, 8000), rate=16000)
        expected = soxr.resample(at_rate(sentence(), 8000), 8000, 16000)
        np.testing.assert_array_equal(samples_of(result), expected)

    async def test_nothing_to_read_takes_no_process(self, launcher: Launcher) -> None:
        launches = Launches(launcher, signal.SIGKILL)
        assert await read(AudioReader(launches)) == []
        assert not launches.pids

    async def test_one_process_reads_all_sounds_of_a_call(self, launcher: Launcher) -> None:
        launches = Launches(launcher, signal.SIGCONT)
        assert len(await read(AudioReader(launches), *[SHORT] * 20)) == 20
        assert len(launches.pids) == 1
        wait_for(lambda: not processes())


class TestRefusals:
    async def test_all_mistakes_are_told_at_once(self, reader: AudioReader) -> None:
        short, long, cut, encoding, rate, ok = await read(
            reader,
            Sound(wav_file(bytes(2 * 239), RATE)),
            Sound(silent_bomb("OGG", "OPUS", 8000, 1, 121)),
            Sound(bytes(2 * RATE + 1), Encoding.PCM_S16LE, RATE),
            Sound(bytes(RATE), Encoding.FLAC, RATE),
            Sound(bytes(RATE), Encoding.MULAW, 4000),
            SHORT,
        )
        assert short == "the recording is 9.96 ms long, allowed are 10 ms to 120 s"
        assert long == "the recording is 121.00 s long, allowed are 10 ms to 120 s"
        assert cut == "the recording is cut off: 48001 bytes are not whole samples of 2 bytes"
        allowed = "PCM_S16LE, PCM_F32LE, MULAW, ALAW"
        assert encoding == f"samples without a header are FLAC, allowed are {allowed}"
        assert rate == "sample rate is 4000 Hz, allowed are 8000 to 192000 Hz"
        assert len(samples_of(ok)) == RATE

    @pytest.mark.parametrize("data", [b"", JPEG, bytes(1000)])
    async def test_what_is_no_recording_is_refused(self, reader: AudioReader, data: bytes) -> None:
        [result] = await read(reader, Sound(data))
        assert isinstance(result, str)
        assert result.endswith("allowed are WAV, FLAC, Ogg Vorbis, Ogg Opus and MP3")

    async def test_more_than_may_be_held_is_refused_and_the_rest_is_not_read(
        self, reader: AudioReader
    ) -> None:
        sounds = [SHORT, Sound(JPEG), SHORT, SHORT, Sound(JPEG)]
        *read, last = await reader.read(sounds, 8000, max_seconds=2.5)
        assert [isinstance(result, str) for result in read] == [False, True, False]
        assert last == "brings the audio of this call to 3.00 s, allowed are up to 2.5 s"

    async def test_exactly_what_may_be_held_is_read(self, reader: AudioReader) -> None:
        results = await reader.read([SHORT] * 3, 8000, max_seconds=3)
        assert [len(samples_of(result)) for result in results] == [8000] * 3


class TestHostileFiles:
    async def test_bombs_are_refused_and_what_is_beside_them_is_read(
        self, reader: AudioReader
    ) -> None:
        """The first two would expand to 120 MB and more."""
        silent_flac = silent_bomb("FLAC", "PCM_16", 96000, 2, 160)
        longer, claimed, vorbis, ok = await read(
            reader,
            Sound(flac_of_length(0, silent_flac)),
            Sound(flac_of_length(96000 * 18000, silent_flac)),
            Sound(silent_bomb("OGG", "VORBIS", 8000, 1, 600)),
            SHORT,
        )
        allowed = "allowed are 10 ms to 120 s"
        assert longer == f"the recording is longer than 120 s, {allowed}"
        assert claimed == f"the recording is 18000.00 s long, {allowed}"
        assert vorbis == f"the recording is 600.00 s long, {allowed}"
        assert len(samples_of(ok)) == RATE

    async def test_what_takes_too_much_memory_is_refused_and_the_rest_is_read(
        self, reader: AudioReader
    ) -> None:
        large = Sound(bytes(reading.MEMORY_BYTES // 2), Encoding.PCM_S16LE, RATE)
        before, result, after = await read(reader, SHORT, large, SHORT)
        assert result == "decoding this recording takes more memory than a recording should"
        np.testing.assert_array_equal(samples_of(before), samples_of(after))

    async def test_there_is_memory_for_the_longest_recording_at_the_highest_rate(
        self, reader: AudioReader
    ) -> None:
        longest = Sound(silent_bomb("FLAC", "PCM_16", 192000, 1, 120))
        first, second = await read(reader, longest, longest, rate=48000)
        assert len(samples_of(first)) == len(samples_of(second)) == 120 * 48000

    async def test_a_process_has_limits_and_a_low_priority(self, reader: AudioReader) -> None:
        task = asyncio.create_task(read(reader, slow()))
        process = await in_the_middle(task)
        assert process.nice() > psutil.Process().nice()
        space = process.rlimit(psutil.RLIMIT_AS)[0]
        assert process.memory_info().vms < space < reading.MEMORY_BYTES + (1 << 30)
        assert process.rlimit(psutil.RLIMIT_CPU)[0] <= reading.CPU_SECONDS + 2
        assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)
        samples_of((await task)[0])

    @pytest.mark.parametrize(
        ("number", "message"),
        [
            (signal.SIGKILL, CRASHED),
            (signal.SIGSEGV, CRASHED),
            (signal.SIGXCPU, TOO_SLOW),
        ],
    )
    async def test_a_death_is_the_fault_of_the_sound_that_was_read(
        self, reader: AudioReader, number: int, message: str
    ) -> None:
        task = asyncio.create_task(read(reader, SHORT, slow(), SHORT))
        (await in_the_middle(task)).send_signal(number)
        before, result, after = await task
        assert result == message
        np.testing.assert_array_equal(samples_of(before), samples_of(after))

    async def test_so_many_processes_die_for_a_call_and_no_more(self, launcher: Launcher) -> None:
        launches = Launches(launcher, signal.SIGKILL)
        results = await read(AudioReader(launches), *[SHORT] * (MAX_PROCESSES + 3))
        assert results == [CRASHED] * MAX_PROCESSES
        assert len(launches.pids) == MAX_PROCESSES
        wait_for(lambda: not processes())

    async def test_decoders_write_nothing_into_the_log(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        damaged = bytearray(encoded(sentence(), "MP3", "MPEG_LAYER_III"))
        del damaged[2000:2500]
        read_audio(bytes(damaged), RATE)
        assert "Illegal Audio-MPEG-Header" in capfd.readouterr().err
        assert all(reading._read(ReadAudio(bytes(damaged), None, 0, RATE)))
        assert not capfd.readouterr().err

    async def test_a_fault_in_the_program_is_not_the_callers(self, launcher: Launcher) -> None:
        """Which here is a rate that no stream has."""
        with pytest.raises(InternalError):
            await AudioReader(launcher.launch_reader).read([SHORT, SHORT], 0, max_seconds=10)
        wait_for(lambda: not processes())


class TestQueue:
    async def test_so_many_calls_are_read_at_a_time_and_the_others_in_order(
        self, launcher: Launcher
    ) -> None:
        launches = Launches(launcher, signal.SIGSTOP)
        reader = AudioReader(launches)
        most = 0

        async def call() -> None:
            nonlocal most
            await read(reader, SHORT)
            most = max(most, len(processes()))

        calls = [asyncio.create_task(call(), name=f"{n}") for n in range(MAX_READING + MAX_WAITING)]
        await launches.until(MAX_READING)
        await asyncio.sleep(0.1)
        assert len(processes()) == len(launches.pids) == MAX_READING
        with pytest.raises(Overloaded) as caught:
            await read(reader, SHORT)
        assert caught.value.reason is Reason.QUEUE_FULL
        assert caught.value.retry_after
        assert caught.value.message == (
            f"the audio of {MAX_WAITING} other calls is waiting to be read, {MAX_WAITING} may wait"
        )
        calls[3].cancel()
        launches.resume()
        await asyncio.wait(calls)
        assert [call.cancelled() for call in calls] == [n == 3 for n in range(len(calls))]
        assert launches.callers == [f"{n}" for n in range(len(calls)) if n != 3]
        assert most <= MAX_READING
        wait_for(lambda: not processes())

    async def test_a_process_is_killed_at_once_when_its_caller_leaves(
        self, reader: AudioReader
    ) -> None:
        task = asyncio.create_task(read(reader, slow()))
        await in_the_middle(task)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        wait_for(lambda: not processes())
        samples_of((await read(reader, SHORT))[0])

    async def test_a_caller_who_leaves_at_any_time_leaves_nothing_behind(
        self, reader: AudioReader
    ) -> None:
        for milliseconds in range(0, 100, 5):
            calls = [asyncio.create_task(read(reader, SHORT, SHORT)) for _ in range(3)]
            await asyncio.sleep(milliseconds / 1000)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
        await asyncio.to_thread(wait_for, lambda: not processes())
        samples_of((await read(reader, SHORT))[0])

    async def test_what_takes_too_long_is_ended(self, launcher: Launcher) -> None:
        reader = AudioReader(Launches(launcher, signal.SIGSTOP), timeout_seconds=0.3)
        with pytest.raises(TimedOut) as caught:
            await read(reader, SHORT)
        assert caught.value.message.startswith("the audio was not read within 0.3 s")
        assert caught.value.retry_after
        wait_for(lambda: not processes())

    async def test_stop_ends_what_runs_and_what_waits(self, launcher: Launcher) -> None:
        launches = Launches(launcher, signal.SIGSTOP)
        reader = AudioReader(launches)
        calls = [asyncio.create_task(read(reader, SHORT)) for _ in range(MAX_READING + 2)]
        await launches.until(MAX_READING)
        await reader.stop()
        wait_for(lambda: not processes())
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(outcome, Unavailable)
            assert outcome.reason is Reason.DRAINING
        assert len(launches.pids) == MAX_READING

    async def test_stop_ends_a_process_that_is_being_started(self, launcher: Launcher) -> None:
        reader = AudioReader(launcher.launch_reader)
        task = asyncio.create_task(read(reader, slow()))
        await asyncio.sleep(0)
        await reader.stop()
        [outcome] = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, Unavailable)
        wait_for(lambda: not processes())

    async def test_without_a_process_the_call_may_be_repeated(self) -> None:
        async def launch() -> WorkerLink:
            raise OSError("no more processes")

        with pytest.raises(Unavailable) as caught:
            await read(AudioReader(launch), SHORT)
        assert caught.value.retry_after


class TestProcess:
    async def test_it_ends_with_the_front(self, launcher: Launcher) -> None:
        link = await launcher.launch_reader()
        await link.deliver(ReadAudio(slow().data, None, 0, RATE))
        assert processes()
        link._writer.close()
        await asyncio.to_thread(wait_for, lambda: not processes(), 1.0)
        assert await link.close(1.0) == reading.GONE

    async def test_signals_to_the_group_do_not_end_it(self, reader: AudioReader) -> None:
        task = asyncio.create_task(read(reader, slow()))
        process = await in_the_middle(task)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        samples_of((await task)[0])

    async def test_long_audio_comes_in_parts_so_that_no_stream_waits_for_it(
        self, launcher: Launcher
    ) -> None:
        link = await launcher.launch_reader()
        await link.deliver(ReadAudio(bytes(8 * RATE), Encoding.PCM_S16LE, RATE, 48000))
        parts: list[AudioRead] = []
        while not parts or parts[-1].more:
            part = await link.receive()
            assert isinstance(part, AudioRead)
            parts.append(part)
        assert max(len(part.samples) for part in parts) <= reading.PART_BYTES
        assert sum(len(part.samples) for part in parts) == 4 * 48000 * 4
        await link.deliver(ReadAudio(JPEG, None, 0, RATE))
        assert isinstance(await link.receive(), AudioRefused)
        link.kill()
        await link.close(1.0)

    async def test_nothing_is_written_to_disk(
        self, reader: AudioReader, temporary_files: Path
    ) -> None:
        flac = streamed(sentence(), "flac", "flac")
        damaged = [Sound(flac[: len(flac) // 2]), Sound(encoded(sentence(), "OGG", "OPUS")[:-99])]
        results = await read(reader, SHORT, *damaged, Sound(flac))
        assert [isinstance(result, str) for result in results] == [False, True, True, False]
        assert not list(temporary_files.iterdir())

    async def test_it_needs_no_model(self) -> None:
        """Another fork server: this one replaces that of the other tests, so it comes last."""
        broken = WorkerSpec(FAKE.engine, EngineOptions(model="broken"), "json")
        with running_launcher(broken) as launcher:
            samples_of((await read(AudioReader(launcher.launch_reader), SHORT))[0])
