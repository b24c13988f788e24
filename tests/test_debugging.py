"""Looking into a server that runs: the signal, and channelz."""

import signal
from typing import Any

import grpc
import pytest
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc

from intone.v1 import tts_pb2, tts_pb2_grpc
from processes import ServerProcess, running_server, wait_for


def dumps(server: ServerProcess) -> list[dict[str, Any]]:
    return [line for line in server.logs() if line["event"] == "where everything is"]


def test_the_signal_says_where_calls_and_workers_are() -> None:
    with running_server("--engine", "fake", "--debug-signal") as server:
        with grpc.insecure_channel(server.address) as channel:
            stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
            call = stub.SynthesizeText(
                tts_pb2.SynthesizeTextRequest(text="frames@400 delay@20 marigold."),
                metadata=(("x-request-id", "the-slow-one"),),
            )
            next(response for response in call if response.event.HasField("audio"))
            server.process.send_signal(signal.SIGUSR2)
            wait_for(lambda: dumps(server))
            call.cancel()
        (dump,) = dumps(server)
        (told,) = dump["calls"]
        assert (told["request_id"], told["rpc"]) == ("the-slow-one", "SynthesizeText")
        (worker,) = dump["workers"]
        assert worker["replicas"][0]["state"] == "busy"
        assert dump["state"] == "serving"
        assert any("_on_signal" in stack for stack in dump["threads"])
        # The worker writes for itself, in the middle of a step.
        wait_for(lambda: "Current thread" in server.stderr.read_text())
        assert "fake_engine.py" in server.stderr.read_text()
        assert "marigold" not in server.stderr.read_text()
        server.wait_until_ready()


def test_without_the_flag_the_signal_does_nothing(fake_server: ServerProcess) -> None:
    (worker,) = fake_server.workers()
    fake_server.process.send_signal(signal.SIGUSR2)
    worker.send_signal(signal.SIGUSR2)
    assert fake_server.is_serving()
    assert fake_server.workers() == [worker]
    assert not dumps(fake_server)


def test_channelz_is_served_where_it_is_asked_for(fake_server: ServerProcess) -> None:
    ask = channelz_pb2.GetServersRequest(start_server_id=0)
    with (
        running_server("--engine", "fake", "--channelz") as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        (found,) = channelz_pb2_grpc.ChannelzStub(channel).GetServers(ask).server
        assert found.data.calls_started > 0
    with grpc.insecure_channel(fake_server.address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channelz_pb2_grpc.ChannelzStub(channel).GetServers(ask)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined]
