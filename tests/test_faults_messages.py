"""Malformed messages to every method: a documented status, no crash, and nothing is left."""

from collections.abc import Iterator

import grpc
import pytest

from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from mutations import CALLERS, DOCUMENTED, attack, methods
from processes import ServerProcess, running_server

CALLS = 2000
# What a front grows by for reasons of its own while it is busy.
ROOM_BYTES = 16 << 20


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with running_server("--engine", "fake", "--replicas", "4") as server:
        yield server


@pytest.mark.timeout(600)
def test_malformed_messages_get_documented_statuses_and_leave_nothing(
    server: ServerProcess,
) -> None:
    after = attack(server, CALLS)
    assert {method for method, _ in after.codes} == {method.name for method in methods()}
    assert {code for _, code in after.codes} <= DOCUMENTED, after.codes
    assert after.bytes < ROOM_BYTES
    assert after.descriptors <= CALLERS
    assert after.threads <= CALLERS
    assert not after.faults
    with grpc.insecure_channel(server.address) as channel:
        request = tts_pb2.SynthesizeTextRequest(text="One two.")
        assert list(TextToSpeechServiceStub(channel).SynthesizeText(request))
