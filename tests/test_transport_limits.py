"""Peers that misuse HTTP/2 or gRPC cost a bounded amount of memory, and others are served."""

import asyncio
import contextlib
import signal
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import grpc.aio
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from intone.v1 import status_pb2, tts_pb2, tts_pb2_grpc
from intone_server.rpc import uploads
from intone_server.rpc.access import Access
from intone_server.rpc.calls import CallInterceptor
from intone_server.rpc.server import HANDSHAKE_SECONDS, MAX_CONNECTIONS, MAX_METADATA_BYTES
from processes import ServerProcess, running_server, wait_for
from raw_http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    Peer,
    frame,
    headers,
)

SPEECH = tts_pb2.SynthesizeTextRequest(text="One two.")
SYNTHESIZE = "/intone.v1.TextToSpeechService/Synthesize"
# What a front grows by for reasons of its own while it is busy.
ROOM_BYTES = 32 * 1024 * 1024


def memory(server: ServerProcess) -> int:
    return int(psutil.Process(server.process.pid).memory_info().rss)


@contextmanager
def undisturbed(server: ServerProcess) -> Iterator[None]:
    """A call beside it is served, before, during and after; memory stays where it was."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(server.address, options) as channel:
        stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        assert list(stub.SynthesizeText(SPEECH, timeout=30))
        before = memory(server)
        yield
        assert list(stub.SynthesizeText(SPEECH, timeout=30))
        assert memory(server) - before < ROOM_BYTES
    assert server.process.poll() is None


def send_all(peer: Peer, data: Callable[[int], bytes], times: int) -> None:
    """So many times, or until the server hangs up."""
    for number in range(times):
        if not peer.send(data(number)):
            return


def test_metadata_has_a_limit(fake_server: ServerProcess) -> None:
    with undisturbed(fake_server), grpc.insecure_channel(fake_server.address) as channel:
        stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        assert list(stub.SynthesizeText(SPEECH, metadata=(("x-a", "a" * 8000),)))
        with pytest.raises(grpc.RpcError) as caught:
            list(stub.SynthesizeText(SPEECH, metadata=(("x-a", "a" * MAX_METADATA_BYTES),)))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED  # type: ignore[attr-defined]


def test_a_header_list_without_an_end_is_not_kept(fake_server: ServerProcess) -> None:
    """CVE-2024-27316 and its kin: CONTINUATION frames for ever."""
    with undisturbed(fake_server), Peer(fake_server.address) as peer:
        peer.greet()
        peer.send(frame(HEADERS, 0, 1, headers(SYNTHESIZE)))
        more = frame(CONTINUATION, 0, 1, headers(SYNTHESIZE, ("x-a", "a" * 4000)))
        send_all(peer, lambda _: more, 20_000)


def test_streams_that_are_reset_at_once_leave_nothing_behind(fake_server: ServerProcess) -> None:
    """CVE-2023-44487: many streams, each reset as soon as it is opened."""
    block = headers(SYNTHESIZE)
    with undisturbed(fake_server), Peer(fake_server.address) as peer:
        peer.greet()

        def open_and_reset(number: int) -> bytes:
            stream = 2 * number + 1
            return frame(HEADERS, END_HEADERS, stream, block) + frame(
                RST_STREAM, 0, stream, b"\0\0\0\x08"
            )

        send_all(peer, open_and_reset, 5_000)


def test_pings_without_a_pause_end_the_connection(fake_server: ServerProcess) -> None:
    with undisturbed(fake_server), Peer(fake_server.address) as peer:
        peer.greet()
        ping = frame(PING, 0, 0, b"12345678") * 100
        send_all(peer, lambda _: ping, 200)
        assert peer.is_closed_within(30)


def test_settings_without_a_pause_cost_no_memory(fake_server: ServerProcess) -> None:
    with undisturbed(fake_server), Peer(fake_server.address) as peer:
        peer.greet()
        flood = frame(SETTINGS, 0, 0) * 100 + frame(SETTINGS, ACK, 0)
        send_all(peer, lambda _: flood, 200)


def test_who_does_not_finish_the_preface_is_hung_up_on(fake_server: ServerProcess) -> None:
    address = fake_server.address
    with undisturbed(fake_server), Peer(address) as silent, Peer(address) as slow:
        slow.send(PREFACE[:10])
        assert silent.is_closed_within(3 * HANDSHAKE_SECONDS)
        assert slow.is_closed_within(3 * HANDSHAKE_SECONDS)


def test_connections_have_a_limit(fake_server: ServerProcess) -> None:
    with undisturbed(fake_server), contextlib.ExitStack() as opened:
        peers = [
            opened.enter_context(Peer(fake_server.address)) for _ in range(MAX_CONNECTIONS + 20)
        ]
        assert peers[-1].is_closed_within(HANDSHAKE_SECONDS - 1)
    wait_for(lambda: len(psutil.Process(fake_server.process.pid).net_connections()) < 20, 60)


@pytest.fixture
async def hasty(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The address of a server of which the messages must come at once."""
    monkeypatch.setattr(uploads, "MESSAGE_SECONDS", 0.2)

    async def answer(_request: Any, _context: Any) -> status_pb2.GetCapacityResponse:
        return status_pb2.GetCapacityResponse()

    handler = grpc.unary_unary_rpc_method_handler(
        answer,
        status_pb2.GetCapacityRequest.FromString,
        status_pb2.GetCapacityResponse.SerializeToString,
    )
    server = grpc.aio.server(interceptors=[CallInterceptor(Access())])
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("intone.v1.StatusService", {"GetCapacity": handler})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0)


def is_serving() -> bool:
    """Whether grpc has a task for a call here."""
    return any(t.get_name().startswith("HandleExceptions") for t in asyncio.all_tasks())


async def test_a_call_that_never_sends_its_message_is_given_up(hasty: str) -> None:
    async with grpc.aio.insecure_channel(hasty) as channel:
        silent = channel.stream_unary("/intone.v1.StatusService/GetCapacity")()
        await silent.wait_for_connection()
        async with asyncio.timeout(10):
            for expected in (True, False):
                while is_serving() is not expected:
                    await asyncio.sleep(0.01)
        silent.cancel()
        quick = channel.unary_unary("/intone.v1.StatusService/GetCapacity")
        assert await quick(b"") == b""


def test_a_watcher_of_health_that_takes_nothing_holds_up_nothing() -> None:
    """A peer whose window is 0 must not keep the server from draining, or others from hearing."""
    no_window = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    watch = frame(HEADERS, END_HEADERS, 1, headers("/grpc.health.v1.Health/Watch"))
    message = frame(DATA, END_STREAM, 1, b"\0\0\0\0\0")
    with running_server("--engine", "fake") as server, Peer(server.address) as peer:
        peer.send(PREFACE + no_window + watch + message)
        with grpc.insecure_channel(server.address) as channel:
            heard = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            assert next(heard).status == health_pb2.HealthCheckResponse.SERVING
            long = tts_pb2.SynthesizeTextRequest(text="frames@100 delay@20 one.")
            speaking = tts_pb2_grpc.TextToSpeechServiceStub(channel).SynthesizeText(long)
            next(speaking)
            server.process.send_signal(signal.SIGTERM)
            assert next(heard).status == health_pb2.HealthCheckResponse.NOT_SERVING
            assert list(speaking)[-1].event.HasField("finished")
        assert server.process.wait(30) == 0
