"""Old clients speak with this server, this client with old servers: see `contract` for what was
recorded of each release."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from contract import Call, Contract, as_dict, stable, top_level, versions
from filled_messages import filled
from intone.v1 import status_pb2, tts_pb2, voices_pb2
from intone_client import (
    Client,
    FailedPreconditionError,
    NotFoundError,
    Script,
    Speech,
    SpeechStream,
    line,
    reuse,
    speech_config,
)
from processes import ServerProcess, running_server
from record_vectors import SEED, call

FILES = (tts_pb2, voices_pb2, status_pb2)
NOW = {
    descriptor.name: descriptor
    for file in FILES
    for descriptor in top_level(file.DESCRIPTOR.message_types_by_name)
}
CALLS = [(version, each) for version in versions() for each in Contract(version).calls()]


@pytest.fixture(params=versions())
def old(request: pytest.FixtureRequest) -> Contract:
    return Contract(request.param)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """Shared, because the calls on voices build on each other."""
    with running_server("--engine", "fake") as server:
        yield server


def now(name: str, data: bytes) -> Message:
    """A message as this version reads it."""
    return getattr(
        next(f for f in FILES if name in f.DESCRIPTOR.message_types_by_name), name
    )().FromString(data)


def test_recorded_messages_mean_what_they_meant(old: Contract) -> None:
    for recorded in old.messages():
        message = now(recorded["type"], bytes.fromhex(recorded["hex"]))
        then = old.message(recorded["type"])()
        json_format.Parse(recorded["json"], then)
        assert as_dict(message) == as_dict(then)
        assert message.SerializeToString(deterministic=True).hex() == recorded["hex"]


@pytest.mark.parametrize("name", sorted(NOW))
def test_an_old_peer_reads_what_it_knows_and_passes_on_what_it_does_not(
    old: Contract, name: str
) -> None:
    if name not in {recorded["type"] for recorded in old.messages()}:
        pytest.skip("younger than this release")
    for message in filled(NOW[name]):
        there = old.message(name).FromString(message.SerializeToString())
        assert type(message).FromString(there.SerializeToString()) == message
        agree(message, there)


def agree(message: Message, there: Message) -> None:
    """What both know is the same."""
    known = {field.name for field in there.DESCRIPTOR.fields}
    for field, value in message.ListFields():
        if field.name not in known:
            continue
        other = getattr(there, field.name)
        if field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE or isinstance(value, dict):
            assert other == value, field.full_name
        elif not field.is_repeated:
            agree(value, other)
        elif not field.message_type.GetOptions().map_entry:
            for mine, its in zip(value, other, strict=True):
                agree(mine, its)


@pytest.mark.parametrize(("version", "recorded"), CALLS, ids=lambda x: getattr(x, "name", x))
def test_an_old_client_hears_from_this_server_what_it_always_heard(
    version: str, recorded: Call, server: ServerProcess
) -> None:
    with grpc.insecure_channel(server.address) as channel:
        responses, code = call(channel, recorded.method, recorded.requests)
    old = Contract(version)
    kind = old.message(old.method(recorded.method).output_type.name)
    assert code == recorded.code
    assert told(kind, responses) == told(kind, recorded.responses)


def told(kind: type[Message], responses: list[bytes]) -> list[Any]:
    """What was told, however the audio was cut into messages."""
    found: list[Any] = []
    audio: dict[str, Any] | None = None
    for response in responses:
        message: Any = kind.FromString(response)
        if not hasattr(message, "event"):
            found.append(stable(as_dict(message)))
            continue
        chunk = message.event.audio
        if message.event.WhichOneof("event") != "audio":
            audio = None
            event = stable(as_dict(message.event))
            event.pop("sequence")
            found.append(event)
        elif audio and (audio["segment"], audio["end"]) == (chunk.segment, chunk.sample_offset):
            audio["data"] += chunk.data
            audio["end"] += chunk.sample_count
        else:
            end = chunk.sample_offset + chunk.sample_count
            audio = {"segment": chunk.segment, "end": end, "data": chunk.data}
            found.append(audio)
    return found


class Replay(grpc.GenericRpcHandler):
    """An old server: answers each method with one of its recorded calls."""

    def __init__(self, calls: list[Call]) -> None:
        self._calls = {call.method: call for call in calls}

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        recorded = self._calls.get(details.method)
        if recorded is None:
            return None

        async def answer(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for _ in requests:
                pass
            for response in recorded.responses:
                yield response
            if recorded.code != "OK":
                await context.abort(grpc.StatusCode[recorded.code], "recorded")

        return grpc.stream_stream_rpc_method_handler(answer)


@asynccontextmanager
async def replayed(old: Contract, *names: str) -> AsyncIterator[Client]:
    """A client of such a server, which has these calls."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Replay([c for c in old.calls() if c.name in names]),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with Client(f"127.0.0.1:{port}") as client:
            yield client
    finally:
        await server.stop(None)


async def audio_of(speech: Speech | SpeechStream) -> bytes:
    return b"".join([data async for data in speech.audio()])


async def test_this_client_speaks_with_an_old_server(old: Contract) -> None:
    calls = {call.name: call for call in old.calls()}
    refused = [name for name, each in calls.items() if each.code != "OK"]

    def recorded(name: str) -> bytes:
        responses = told(tts_pb2.SynthesizeResponse, calls[name].responses)
        return b"".join(part["data"] for part in responses if "data" in part)

    async with replayed(old, *(calls.keys() - refused - {"a stream of text alone"})) as client:
        async with client.stream(SEED) as stream:
            await stream.push_text("Good morning to everybody.")
            await stream.end_input()
            said = await audio_of(stream)
        assert said == recorded("a stream with a flush, a pause and another voice")
        async with client.synthesize_text("x") as speech:
            assert await audio_of(speech) == recorded("a whole text")
        script = Script([line("a", "Hello there.", id="one"), reuse("one")], cast={"a": "anna"})
        async with client.dialogue(script) as dialogue:
            assert all([len(item.audio) async for item in dialogue])
        assert (await client.synthesize_file("A file.")).audio.startswith(b"RIFF")
        assert (await client.plan("x")).segments
        assert {voice.name for voice in await client.voices()} >= {"anna", "bert"}
        assert (await client.get_voice("made")).name == "made"
        assert (await client.export_voice("made")).state
        await client.delete_voice("made")
        assert (await client.info()).engine == "fake"
        assert (await client.capacity()).replicas_total == 1


async def test_this_client_understands_the_refusals_of_an_old_server(old: Contract) -> None:
    async with replayed(old, "a second config", "an unknown voice") as client:
        with pytest.raises(NotFoundError):
            await audio_of(client.synthesize_text("x", speech_config(voice="nobody")))
        async with client.stream(SEED) as stream:
            await stream.end_input()
            with pytest.raises(FailedPreconditionError):
                await audio_of(stream)
