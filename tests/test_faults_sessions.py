"""Random sessions that are well-formed keep the contract to the letter."""

from collections.abc import Iterator

import pytest

from processes import ServerProcess, running_server
from sessions_machine import run_sessions

SESSIONS = 200


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with running_server("--engine", "fake", "--replicas", "2") as server:
        yield server


@pytest.mark.timeout(600)
def test_random_sessions_keep_the_contract_and_leave_nothing_open(server: ServerProcess) -> None:
    codes = run_sessions(server.address, SESSIONS)
    assert sum(codes.values()) >= SESSIONS
    assert codes["OK"] > SESSIONS / 4
    assert not [line for line in server.logs() if line["level"] in ("error", "critical")]
