"""Processes killed while the server starts and while it ends."""

import asyncio
import signal
from pathlib import Path

import psutil
import pytest

from faults import (
    PATIENCE_SECONDS,
    failures,
    heard,
    kill,
    open_stream,
    own_channel,
    rest,
    speaking_worker,
    two_workers,
    workers,
)
from processes import start_server, wait_for
from test_synthesize import check_order, expected, samples, text


@pytest.mark.parametrize("chunks", [0, 2])
async def test_a_worker_killed_during_a_drain_costs_what_was_heard_and_no_time(
    chunks: int, tmp_path: Path
) -> None:
    orders = "frames@60 delay@20" if chunks else "delay@60000"
    words = f"{orders} once@{tmp_path}/flag to the end. "
    with two_workers() as server:
        async with own_channel(server) as channel:
            call = open_stream(channel)
            await call.write(text(words))
            await call.done_writing()
            speaking = await speaking_worker(server, 0)
            events = await heard(call, chunks)
            server.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(wait_for, lambda: not server.is_serving())
            kill([speaking])
            events += await rest(call)
            check_order(events)
            assert failures(events) == ["REPLICA_LOST"] * bool(chunks)
            assert chunks or (samples(events) == expected(words.strip())).all()
            assert events[-1].HasField("finished")
        assert await asyncio.to_thread(server.process.wait, PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("whose", ["fork server", "worker"])
def test_a_process_killed_while_the_model_loads_ends_the_server_with_a_reason(
    tmp_path: Path, whose: str
) -> None:
    """Nothing was served yet: whoever started the server hears of it, and starts it again."""
    slow = "FAKE_ENGINE_LOAD_SECONDS" if whose == "fork server" else "FAKE_ENGINE_ATTACH_SECONDS"
    server = start_server(tmp_path, "--engine", "fake", environment={slow: "30"})
    front = psutil.Process(server.process.pid)
    if whose == "worker":
        wait_for(lambda: workers(server), PATIENCE_SECONDS)
        kill(workers(server))
    else:
        wait_for(lambda: len(front.children()) == 2, PATIENCE_SECONDS)
        kill([c for c in front.children() if "resource_tracker" not in " ".join(c.cmdline())])
    assert server.process.wait(PATIENCE_SECONDS) == 1
    assert "intone-server: " in server.stderr.read_text()
    assert server.process.stdout is not None
    server.process.stdout.close()
