"""Shared fixtures. Servers of a kind are shared by the tests of a module."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import grpc.aio
import pytest

from processes import ServerProcess, running_server
from tiny_pocket import TinyPocket, make_tiny_pocket


@pytest.fixture(scope="session")
def tiny_pocket(tmp_path_factory: pytest.TempPathFactory) -> TinyPocket:
    """A tiny real pocket-tts model on disk."""
    return make_tiny_pocket(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def fake_server() -> Iterator[ServerProcess]:
    """A server with the fake engine and one replica."""
    with running_server("--engine", "fake") as server:
        yield server


@pytest.fixture(scope="module")
def builtin_server() -> Iterator[ServerProcess]:
    """A server with the builtin engine."""
    with running_server("--engine", "builtin") as server:
        yield server


@pytest.fixture(scope="module")
def pocket_server(tiny_pocket: TinyPocket) -> Iterator[ServerProcess]:
    """A server with a tiny real pocket-tts."""
    with running_server(*tiny_pocket.flags()) as server:
        yield server


@pytest.fixture
async def channel(fake_server: ServerProcess) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to the fake server."""
    async with grpc.aio.insecure_channel(fake_server.address) as channel:
        yield channel


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Fail a test that leaves a thread behind. The event loop's own pool ends with the loop."""
    before = set(threading.enumerate())
    yield
    left = [
        t
        for t in threading.enumerate()
        if t not in before and not t.daemon and not t.name.startswith("asyncio_")
    ]
    for thread in left:
        thread.join(5)
    assert not [t for t in left if t.is_alive()]


@pytest.fixture(autouse=True)
async def no_task_left() -> AsyncIterator[None]:
    """Fail a test that leaves a task behind. grpc's own for a call end a moment after it."""
    yield
    this = asyncio.current_task()
    left: list[asyncio.Task[object]] = []
    for _ in range(100):
        left = [t for t in asyncio.all_tasks() if t is not this and not t.done()]
        if not left:
            return
        await asyncio.sleep(0.02)
    assert not left, left
