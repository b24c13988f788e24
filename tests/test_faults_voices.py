"""Voices while processes die and disks are full: what is there is spoken, what fails says so."""

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import psutil
import pytest

from callers import delay_of, reason_of
from fake_engine import STATE_PREFIX
from faults import (
    PATIENCE_SECONDS,
    assert_well,
    capacity,
    kill,
    own_channel,
    two_workers,
    workers,
)
from intone.v1 import tts_pb2, voices_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from intone.v1.voices_pb2_grpc import VoiceServiceStub
from processes import ServerProcess, running_server, wait_for
from voice_callers import Caller

LARGE = 4 << 20  # bytes of a voice that no disk here has room for
DISK = "1m"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with two_workers() as server:
        yield server


@pytest.fixture
def caller(server: ServerProcess) -> Iterator[Caller]:
    with contextlib.closing(Caller(server)) as caller:
        yield caller


def test_a_voice_that_was_being_loaded_is_unavailable_and_loaded_the_next_time(
    server: ServerProcess, caller: Caller
) -> None:
    caller.create("first", 250)
    loading = workers(server)
    for worker in loading:
        worker.send_signal(signal.SIGSTOP)  # it will never load it
    with grpc.insecure_channel(server.address, [("grpc.enable_retries", 0)]) as channel:
        config = tts_pb2.SpeechConfig(voice="first")
        request = tts_pb2.SynthesizeTextRequest(text="One two.", config=config)
        call = TextToSpeechServiceStub(channel).SynthesizeText(request, timeout=60)
        wait_for(lambda: is_loading(server), PATIENCE_SECONDS)
        kill(loading)
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert reason_of(caught.value) == "VOICE_UNAVAILABLE"
    assert delay_of(caught.value) > 0
    asyncio.run(assert_well(server))
    assert caller.say("first") == {250}


def is_loading(server: ServerProcess) -> bool:
    """Whether a call is admitted, which waits for its voice then."""

    async def admitted() -> bool:
        async with own_channel(server) as channel:
            return bool((await capacity(channel)).open_streams)

    return asyncio.run(admitted())


def test_a_voice_is_made_while_all_workers_die(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.address) as channel:
        making = create(channel, STATE_PREFIX + b"sleep@2000 x")
        wait_for(lambda: len(workers(server)) == 3)
        kill(sorted(workers(server), key=psutil.Process.create_time)[:2])
        assert making.result().voice.name == "mine"
    asyncio.run(assert_well(server))


def test_a_voice_whose_process_dies_fails_alone(server: ServerProcess, caller: Caller) -> None:
    with grpc.insecure_channel(server.address) as channel:
        making = create(channel, STATE_PREFIX + b"sleep@60000 x")
        wait_for(lambda: len(workers(server)) == 3)
        kill(sorted(workers(server), key=psutil.Process.create_time)[2:])
        assert making.code() is grpc.StatusCode.INTERNAL
    asyncio.run(assert_well(server))
    caller.create("after", 300)
    assert caller.say("after") == {300}


def create(channel: grpc.Channel, data: bytes) -> "grpc.Future":
    """A call that makes a voice, and keeps nothing."""
    request = voices_pb2.CreateVoiceRequest(name="mine", state=data, validate_only=True)
    return VoiceServiceStub(channel).CreateVoice.future(request, timeout=60)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of its own; skips where that is not allowed."""
    options = f"size={DISK},mode=0777"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def voice_server(folder: Path) -> Iterator[tuple[ServerProcess, Caller]]:
    """A server with this voice directory, in which there is a voice."""
    with (
        running_server("--engine", "fake", "--voice-dir", str(folder)) as server,
        contextlib.closing(Caller(server)) as caller,
    ):
        caller.create("before", 200)
        yield server, caller


def assert_refused_for_now(server: ServerProcess) -> None:
    """No voice can be kept, and the caller is told to come back."""
    with grpc.insecure_channel(server.address, [("grpc.enable_retries", 0)]) as channel:
        large = STATE_PREFIX + b"level@500 " + b"x" * LARGE
        request = voices_pb2.CreateVoiceRequest(name="large", state=large)
        with pytest.raises(grpc.RpcError) as caught:
            VoiceServiceStub(channel).CreateVoice(request, timeout=60)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert reason_of(caught.value) == "VOICE_UNAVAILABLE"
    assert delay_of(caught.value) > 0


def test_a_full_disk_keeps_no_half_of_a_voice_and_old_voices_speak(tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk, voice_server(disk) as (server, caller):
        files = {path for path in disk.rglob("*") if path.is_file()}
        assert_refused_for_now(server)
        assert {path for path in disk.rglob("*") if path.is_file()} == files
        (disk / "filler").write_bytes(b"x" * (900 << 10))
        assert caller.say("before") == {200}
        (disk / "filler").unlink()
        caller.create("after", 300)
        assert set(caller.list()) == {"before", "after"}


def test_a_limit_on_the_length_of_files_is_like_a_full_disk(tmp_path: Path) -> None:
    """For whoever may not mount."""
    with voice_server(tmp_path / "voices") as (server, caller):
        front = psutil.Process(server.process.pid)
        files = {path for path in tmp_path.rglob("*") if path.is_file()}
        descriptors = front.num_fds()
        front.rlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        assert_refused_for_now(server)
        assert {path for path in tmp_path.rglob("*") if path.is_file()} == files
        assert caller.say("before") == {200}
        wait_for(lambda: front.num_fds() <= descriptors)
        front.rlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        caller.create("after", 300)
        assert caller.say("after") == {300}


@pytest.mark.parametrize("way", ["mount", "mode"])
def test_a_read_only_directory_still_speaks_and_lists(tmp_path: Path, way: str) -> None:
    if way == "mode" and os.geteuid() == 0:
        pytest.skip("modes do not stop root")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(small_disk(tmp_path)) if way == "mount" else tmp_path
        server, caller = stack.enter_context(voice_server(folder))
        make_read_only(folder, way)
        stack.callback(make_writable, folder, way)
        assert_refused_for_now(server)
        with pytest.raises(grpc.RpcError) as caught:
            caller.delete("before")
        assert reason_of(caught.value) == "VOICE_UNAVAILABLE"
        assert set(caller.list()) == {"before"}
        assert caller.say("before") == {200}


def make_read_only(folder: Path, way: str) -> None:
    if way == "mode":
        folder.chmod(0o500)
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


def make_writable(folder: Path, way: str) -> None:
    if way == "mode":
        folder.chmod(0o700)
    else:
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)


def test_a_memory_file_that_cannot_be_written_leaves_no_descriptor(server: ServerProcess) -> None:
    """Without a directory, the states of voices are files in memory."""
    front = psutil.Process(server.process.pid)
    descriptors = front.num_fds()
    front.rlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    for _ in range(3):
        assert_refused_for_now(server)
    front.rlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    wait_for(lambda: front.num_fds() <= descriptors + 1)
