"""Voices through the client: create, get, export, delete."""

import asyncio
import time
from typing import Any

import grpc
import pytest

from client_double import Call, Double, double_fixture  # noqa: F401
from client_double_voices import VoiceScript
from intone.v1 import voices_pb2
from intone_client import (
    AlreadyExistsError,
    BlockingClient,
    Client,
    NotFoundError,
    OverloadedError,
    UnavailableError,
)

pytestmark = pytest.mark.timeout(20)

MEGABYTE = 1_000_000


def refusal(code: str, reason: str, retry_seconds: float | None) -> VoiceScript:
    """Ends a call as the server does."""

    async def script(context: Any) -> None:
        call = Call(context, voices_pb2.CreateVoiceResponse, "r-1")
        await call.fail(grpc.StatusCode[code], reason, "no", retry_seconds=retry_seconds)

    return script


async def lost(context: Any) -> None:
    """Ends a call as a transport does that has lost the server: no details."""
    await context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")


async def test_a_voice_is_created_found_exported_imported_and_deleted(double: Double) -> None:
    async with Client(double.address) as client:
        voice = await client.create_voice(
            "bob",
            prompt=b"RIFF",
            language="en",
            labels={"team": "a"},
            consent_statement="he said so",
            shared=True,
        )
        assert (voice.shared, voice.owned) == (True, True)
        assert (voice.name, voice.labels, voice.report.seconds_used) == (
            "bob",
            {"team": "a"},
            12.34,
        )
        assert double.voice_requests[0].consent_statement == "he said so"
        assert await client.get_voice("bob") == voice
        exported = await client.export_voice("bob")
        assert (exported.state, exported.voice) == (b"RIFF", voice)
        again = await client.create_voice("bob-2", state=exported.state)
        assert again.digest == voice.digest
        await client.delete_voice("bob")
        with pytest.raises(NotFoundError, match="there is no voice bob"):
            await client.delete_voice("bob")
        await client.delete_voice("bob", allow_missing=True)


async def test_a_voice_that_is_only_validated_is_not_kept(double: Double) -> None:
    async with Client(double.address) as client:
        assert (await client.create_voice("bob", prompt=b"x", validate_only=True)).name == "bob"
        with pytest.raises(NotFoundError):
            await client.get_voice("bob")


async def test_a_name_that_is_taken_has_an_error_of_its_own(double: Double) -> None:
    async with Client(double.address) as client:
        with pytest.raises(AlreadyExistsError, match="a exists"):
            await client.create_voice("a", prompt=b"x")


@pytest.mark.parametrize("sources", [{}, {"prompt": b"x", "state": b"y"}])
async def test_a_voice_has_exactly_one_source(double: Double, sources: dict[str, bytes]) -> None:
    async with Client(double.address) as client:
        with pytest.raises(ValueError, match="either prompt or state"):
            await client.create_voice("bob", **sources)  # type: ignore[arg-type]
    assert double.voice_requests == []


async def test_voices_of_many_megabytes_pass_both_ways(double: Double) -> None:
    state = bytes(31 * MEGABYTE)
    async with Client(double.address) as client:
        await client.create_voice("bob", state=state)
        assert (await client.export_voice("bob")).state == state


async def test_a_refusal_is_asked_again_after_its_delay_whatever_the_size(double: Double) -> None:
    double.voice_scripts = [
        refusal("UNAVAILABLE", "STARTING", 0.2),
        refusal("RESOURCE_EXHAUSTED", "QUEUE_FULL", 0.2),
    ]
    began = time.monotonic()
    async with Client(double.address) as client:
        assert (await client.create_voice("bob", prompt=bytes(MEGABYTE))).name == "bob"
    assert len(double.voice_requests) == 3
    assert 0.4 <= time.monotonic() - began < 5


async def test_refusals_end_with_the_fourth(double: Double) -> None:
    double.voice_scripts = [refusal("UNAVAILABLE", "STARTING", 0.01)] * 5
    async with Client(double.address) as client:
        with pytest.raises(UnavailableError, match="STARTING"):
            await client.delete_voice("a")
    assert len(double.voice_requests) == 4


async def test_a_delay_beyond_the_timeout_is_not_waited_for(double: Double) -> None:
    double.voice_scripts = [refusal("UNAVAILABLE", "STARTING", 30)]
    async with Client(double.address) as client:
        with pytest.raises(UnavailableError, match="STARTING"):
            await client.delete_voice("a", timeout=5)


@pytest.mark.parametrize("method", ["create_voice", "delete_voice"])
@pytest.mark.parametrize(
    "script",
    [lost, refusal("UNAVAILABLE", "REPLICA_LOST", 0.01)],
    ids=["no answer", "a worker died"],
)
async def test_a_change_that_may_have_begun_is_never_repeated(
    double: Double, method: str, script: VoiceScript
) -> None:
    """Or a voice that was made would come back as one that exists already."""
    double.voice_scripts = [script]
    options = {"prompt": b"x"} if method == "create_voice" else {}
    async with Client(double.address) as client:
        with pytest.raises(UnavailableError):
            await getattr(client, method)("a", **options)
        await asyncio.sleep(0.3)
    assert len(double.voice_requests) == 1


async def test_a_refusal_without_a_delay_is_final(double: Double) -> None:
    double.voice_scripts = [refusal("RESOURCE_EXHAUSTED", "VOICE_LIMIT", None)]
    async with Client(double.address) as client:
        with pytest.raises(OverloadedError, match="VOICE_LIMIT"):
            await client.create_voice("bob", prompt=b"x")
    assert len(double.voice_requests) == 1


async def test_the_blocking_client_does_the_same(double: Double) -> None:
    def use() -> None:
        with BlockingClient(double.address) as client:
            voice = client.create_voice("bob", prompt=b"x", labels={"k": "v"}, shared=True)
            assert voice.shared
            assert client.get_voice("bob") == voice
            exported = client.export_voice("bob")
            assert client.create_voice("eve", state=exported.state).digest == voice.digest
            client.delete_voice("bob")
            client.delete_voice("bob", allow_missing=True)
            with pytest.raises(NotFoundError):
                client.get_voice("bob")

    await asyncio.to_thread(use)
