"""Processes that make one voice each, and the queue in front of them."""

import asyncio
import contextlib
import io
import multiprocessing.forkserver
import os
import signal
import wave
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from fake_engine import STATE_PREFIX, FakeEngine
from intone_server.engines.base import EngineOptions, Sampling, VoiceRef
from intone_server.errors import (
    InternalError,
    InvalidRequest,
    NotPossible,
    Overloaded,
    Reason,
    Unavailable,
)
from intone_server.voices.making import MAX_WAITING, VoiceMaker
from intone_server.workers import making, wire
from intone_server.workers.launch import Launcher
from intone_server.workers.loading import WorkerSpec
from intone_server.workers.messages import (
    Audio,
    Generate,
    MakeVoice,
    Ready,
    Refusal,
    Released,
    Stop,
    VoiceRefused,
)
from processes import TESTS, is_alive, wait_for

RATE = 24000
FAKE = WorkerSpec("fake_engine:FakeEngine", EngineOptions(), "json")


@contextlib.contextmanager
def running_launcher(spec: WorkerSpec, **environment: str) -> Iterator[Launcher]:
    """A launcher whose fork server, the only one of this process, has this environment."""
    multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
        for name, value in environment.items():
            patch.setenv(name, value)
        launcher = Launcher(spec)
        launcher._ensure_fork_server()
    try:
        yield launcher
    finally:
        multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]


def processes() -> list[psutil.Process]:
    """Those that the fork server has forked and that are alive."""
    server = multiprocessing.forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    return [child for child in psutil.Process(server).children() if is_alive(child)]


def recording(seconds: float = 1.0, rate: int = RATE) -> bytes:
    """A WAV file that changes as speech does: four syllables a second, of harmonics and noise."""
    count = int(seconds * rate)
    time, noise = np.arange(count) / rate, np.random.default_rng(3).normal(0, 1, count)
    syllable = (time * 4).astype(int)
    pitch = 110 + 30 * (syllable % 3)
    voiced = sum(np.sin(2 * np.pi * pitch * n * time) / n for n in range(1, 12))
    samples = np.where(syllable % 2, noise, voiced) * np.abs(np.sin(np.pi * 4 * time)) * 5000
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples.clip(-32768, 32767).astype("<i2").tobytes())
    return file.getvalue()


def orders(words: str) -> bytes:
    """A voice state that tells the fake engine what to do."""
    return STATE_PREFIX + words.encode()


@pytest.fixture(scope="module")
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where processes leave temporary files, if they do."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def launcher(temporary_files: Path) -> Iterator[Launcher]:
    with running_launcher(FAKE, TMPDIR=str(temporary_files)) as launcher:
        yield launcher


@pytest.fixture
async def maker(launcher: Launcher) -> AsyncIterator[VoiceMaker]:
    maker = VoiceMaker(launcher.launch_maker, RATE)
    yield maker
    await maker.stop()
    assert not processes()


async def in_the_middle(task: asyncio.Task[object]) -> psutil.Process:
    """The process that makes a voice, once it has the upload."""
    while not task.done():
        for process in processes():
            if process.nice() > 0 and process.num_threads() > 1:
                return process
        await asyncio.sleep(0.01)
    raise AssertionError(f"it has ended: {task}")


async def test_a_state_is_checked_and_comes_back_with_its_digest(maker: VoiceMaker) -> None:
    made = await maker.make(state=orders("mine warn@odd"))
    assert made.state.data == orders("mine warn@odd")
    assert len(made.state.digest) == 64
    assert made.state.warnings == ("odd",)
    assert made.report is None


async def test_a_recording_becomes_a_state_and_a_report(maker: VoiceMaker) -> None:
    made = await maker.make(prompt=recording(2.0))
    assert made.state.data.startswith(STATE_PREFIX)
    assert made.report is not None
    assert made.report.seconds_used == pytest.approx(2.0, abs=0.1)


async def test_a_bad_state_is_refused_by_its_field(maker: VoiceMaker) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await maker.make(state=b"RIFF")
    assert caught.value.reason is Reason.BAD_STATE
    assert [v.field for v in caught.value.violations] == ["state"]


async def test_a_bad_recording_is_refused_by_its_field(maker: VoiceMaker) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await maker.make(prompt=b"\xff\xd8\xff no recording")
    assert caught.value.reason is Reason.BAD_AUDIO
    assert [v.field for v in caught.value.violations] == ["prompt"]


async def test_an_upload_of_many_megabytes_arrives_whole(maker: VoiceMaker) -> None:
    state = orders("x" * (32 << 20))
    assert (await maker.make(state=state)).state.data == state


def test_a_large_upload_is_not_copied_on_its_way_into_the_pipe() -> None:
    """So that its size does not hold up the event loop."""
    upload = bytes(1 << 20)
    parts = wire.encode_in_parts(MakeVoice(RATE, state=upload))
    assert any(part is upload for part in parts)
    assert sum(map(len, parts)) - len(upload) < 1000


async def test_a_process_is_killed_at_once_when_its_caller_leaves(maker: VoiceMaker) -> None:
    task = asyncio.create_task(maker.make(state=orders("sleep@60000")))
    await in_the_middle(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not processes()
    assert await maker.make(state=orders("next"))


async def test_a_process_that_takes_too_long_is_killed(launcher: Launcher) -> None:
    maker = VoiceMaker(launcher.launch_maker, RATE, timeout_seconds=0.5)
    with pytest.raises(Unavailable) as caught:
        await maker.make(state=orders("sleep@60000"))
    assert caught.value.retry_after
    assert not processes()


async def test_a_killed_process_fails_its_voice_alone(maker: VoiceMaker) -> None:
    task = asyncio.create_task(maker.make(state=orders("sleep@60000")))
    (await in_the_middle(task)).kill()
    with pytest.raises(InternalError):
        await task
    assert await maker.make(state=orders("next"))


@pytest.mark.parametrize("fault", ["raise@1", "dies@3", "grow@8000"])
async def test_a_fault_fails_its_voice_alone(maker: VoiceMaker, fault: str) -> None:
    """8 GB are more than a process may take."""
    with pytest.raises(InternalError):
        await maker.make(state=orders(fault))
    assert await maker.make(state=orders("next"))


def test_a_recording_that_takes_too_much_memory_is_a_bad_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read_recording(data: bytes, sample_rate_hertz: int) -> None:
        raise MemoryError

    monkeypatch.setattr(making, "read_recording", read_recording)
    answer = making._make(FakeEngine(), MakeVoice(RATE, prompt=b"bomb"))
    assert isinstance(answer, VoiceRefused)
    assert answer.refusal is Refusal.BAD_AUDIO


async def test_signals_to_the_group_do_not_end_a_process(maker: VoiceMaker) -> None:
    task = asyncio.create_task(maker.make(state=orders("sleep@500")))
    process = await in_the_middle(task)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert await task


async def test_a_process_ends_with_the_front(launcher: Launcher) -> None:
    link = await launcher.launch_maker()
    await link.deliver(MakeVoice(RATE, state=orders("sleep@60000")))
    assert processes()
    link._writer.close()
    await asyncio.to_thread(wait_for, lambda: not processes())
    await link.close(1.0)


async def test_voices_are_made_one_at_a_time_and_too_many_are_refused(
    maker: VoiceMaker,
) -> None:
    done: list[int] = []

    async def make(number: int) -> None:
        await maker.make(state=orders(f"sleep@300 {number}"))
        done.append(number)

    first = asyncio.create_task(make(0))
    await in_the_middle(first)
    others = [asyncio.create_task(make(number)) for number in range(1, MAX_WAITING + 1)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded) as caught:
        await maker.make(state=orders("one too many"))
    assert caught.value.reason is Reason.QUEUE_FULL
    assert caught.value.retry_after
    assert len(processes()) == 1
    others[1].cancel()
    await asyncio.gather(first, *others, return_exceptions=True)
    assert done == [0, 1, 3, 4]


async def test_stop_ends_what_runs_and_what_waits(launcher: Launcher) -> None:
    maker = VoiceMaker(launcher.launch_maker, RATE)
    both = [asyncio.create_task(maker.make(state=orders("sleep@60000"))) for _ in range(2)]
    await in_the_middle(both[0])
    await maker.stop()
    for outcome in await asyncio.gather(*both, return_exceptions=True):
        assert isinstance(outcome, Unavailable)
        assert outcome.reason is Reason.DRAINING
    assert not processes()


async def test_a_running_stream_goes_on_while_a_voice_is_made(launcher: Launcher) -> None:
    """Reported case 23."""
    worker = await launcher.launch()
    maker = VoiceMaker(launcher.launch_maker, RATE)
    assert isinstance(await worker.receive(), Ready)
    task = asyncio.create_task(maker.make(state=orders("sleep@60000")))
    await in_the_middle(task)
    worker.send(Generate(1, "frames@40 on and on", VoiceRef("anna"), Sampling(), 0))
    frames = 0
    while not isinstance(report := await worker.receive(), Released):
        frames += isinstance(report, Audio)
    assert frames == 40
    assert not task.done()
    await maker.stop()
    await asyncio.wait([task])
    worker.send(Stop())
    assert await worker.close(2.0) == 0
    assert isinstance(task.exception(), Unavailable)


async def test_uploads_leave_no_file_and_no_process_behind(
    maker: VoiceMaker, temporary_files: Path
) -> None:
    for number in range(20):
        with contextlib.suppress(InvalidRequest):
            await maker.make(**{"prompt" if number % 2 else "state": recording(0.5)})
        assert not processes()
    assert not list(temporary_files.iterdir())


async def test_a_model_that_cannot_clone_says_so() -> None:
    """Another fork server: this one replaces that of the other tests, so it comes last."""
    with running_launcher(FAKE, FAKE_ENGINE_FEATURES="seed voice_import") as launcher:
        maker = VoiceMaker(launcher.launch_maker, RATE)
        with pytest.raises(NotPossible) as caught:
            await maker.make(prompt=recording(2.0))
    assert caught.value.reason is Reason.CLONING_UNAVAILABLE
