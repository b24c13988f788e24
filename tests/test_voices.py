"""VoiceService, through a server with a fake engine; its states are `STATE_PREFIX` and anything."""

import asyncio
import hashlib
import signal
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio
import numpy as np
import psutil
import pytest
from google.rpc import error_details_pb2
from google.rpc import status_pb2 as rpc_status_pb2

import recordings
from fake_engine import STATE_PREFIX
from intone.v1 import (
    status_pb2,
    status_pb2_grpc,
    tts_pb2,
    tts_pb2_grpc,
    voices_pb2,
    voices_pb2_grpc,
)
from processes import ServerProcess, running_server, start_server, wait_for

STATE = STATE_PREFIX + b"one"


class Voices:
    """The service's stub, with a shorthand for each method."""

    def __init__(self, server: ServerProcess) -> None:
        self._channel = grpc.insecure_channel(server.address)
        self.stub = voices_pb2_grpc.VoiceServiceStub(self._channel)

    def close(self) -> None:
        self._channel.close()

    def create(self, name: str, state: bytes = STATE, **fields: object) -> voices_pb2.Voice:
        request = voices_pb2.CreateVoiceRequest(name=name, state=state, **fields)  # type: ignore[arg-type]
        return self.stub.CreateVoice(request, timeout=30).voice

    def names(self, **fields: object) -> list[str]:
        request = voices_pb2.ListVoicesRequest(**fields)  # type: ignore[arg-type]
        return [voice.name for voice in self.stub.ListVoices(request, timeout=10).voices]

    def get(self, name: str) -> voices_pb2.Voice:
        return self.stub.GetVoice(voices_pb2.GetVoiceRequest(name=name), timeout=10).voice

    def export(self, name: str) -> voices_pb2.ExportVoiceResponse:
        return self.stub.ExportVoice(voices_pb2.ExportVoiceRequest(name=name), timeout=10)

    def delete(self, name: str, *, allow_missing: bool = False) -> None:
        self.stub.DeleteVoice(
            voices_pb2.DeleteVoiceRequest(name=name, allow_missing=allow_missing), timeout=10
        )


@pytest.fixture
def voices(fake_server: ServerProcess) -> Iterator[Voices]:
    """The service of a server without created voices."""
    voices = Voices(fake_server)
    yield voices
    for name in set(voices.names()) - {"anna", "bert", "unfetchable"}:
        voices.delete(name)
    voices.close()


def refusal(call: object, *arguments: object, **fields: object) -> tuple[str, str, list[str]]:
    """Code, reason and the fields at fault of a call that is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, **fields)  # type: ignore[operator]
    error = caught.value
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in rpc_status_pb2.Status.FromString(details).details:
        detail.Unpack(info)
        detail.Unpack(bad)
    return error.code().name, info.reason, [v.field for v in bad.field_violations]


def speak(server: ServerProcess, voice: str) -> str:
    """The voice that a text was spoken with."""
    with grpc.insecure_channel(server.address) as channel:
        stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        config = tts_pb2.SpeechConfig(voice=voice, segment_events=True)
        request = tts_pb2.SynthesizeTextRequest(text="One two three.", config=config)
        events = [response.event for response in stub.SynthesizeText(request, timeout=20)]
    assert any(e.audio.data for e in events)
    return next(e.segment_started.voice for e in events if e.HasField("segment_started"))


def test_a_created_voice_is_listed_and_spoken_with(
    fake_server: ServerProcess, voices: Voices
) -> None:
    """Reported case 94: the list is the single truth."""
    made = voices.create("mine", labels={"team": "a"}, language="en")
    assert made.origin == voices_pb2.VOICE_ORIGIN_IMPORTED
    assert (made.language, dict(made.labels)) == ("en", {"team": "a"})
    assert made.create_time.seconds > 1.7e9
    assert voices.names() == ["anna", "bert", "mine", "unfetchable"]
    assert speak(fake_server, "mine") == "mine"
    got = voices.get("mine")
    assert got.loaded
    assert (got.digest, got.create_time) == (made.digest, made.create_time)


def test_an_exported_voice_is_the_same_under_another_name(voices: Voices) -> None:
    first = voices.create("first")
    exported = voices.export("first")
    assert exported.voice.digest == first.digest
    assert voices.create("second", exported.state).digest == first.digest


def test_pages_hold_built_in_and_created_voices_in_order(voices: Voices) -> None:
    voices.create("carl")
    seen, token = [], ""
    while True:
        request = voices_pb2.ListVoicesRequest(page_size=2, page_token=token)
        page = voices.stub.ListVoices(request, timeout=10)
        seen += [voice.name for voice in page.voices]
        token = page.next_page_token
        if not token:
            break
    assert seen == ["anna", "bert", "carl", "unfetchable"]
    assert voices.names(language="fr") == []


@pytest.mark.parametrize("name", ["mine", "anna"])
def test_a_name_is_given_once(voices: Voices, name: str) -> None:
    voices.create("mine")
    assert refusal(voices.create, name) == ("ALREADY_EXISTS", "VOICE_EXISTS", [])


def test_every_fault_of_a_request_is_told_at_once(voices: Voices) -> None:
    code, reason, fields = refusal(
        voices.create,
        "Not a name",
        b"",
        language="tlh",
        labels={"UPPER": "x", "ok": "y" * 257},
        consent_statement="z" * 2001,
    )
    assert (code, reason) == ("INVALID_ARGUMENT", "BAD_CONFIG")
    assert sorted(fields) == [
        "consent_statement",
        "labels",
        "labels[ok]",
        "language",
        "name",
        "state",
    ]


@pytest.mark.parametrize(
    "name",
    ["../up", "/etc/passwd", "https://example.org/a.wav", "hf://a/b/c", "a\0b", "Zoë", "x" * 65],
)
def test_a_voice_is_never_a_path_or_an_address(
    fake_server: ServerProcess, voices: Voices, name: str
) -> None:
    """Reported case 97."""
    assert refusal(voices.create, name)[:2] == ("INVALID_ARGUMENT", "BAD_CONFIG")
    assert refusal(voices.get, name)[:2] == ("NOT_FOUND", "VOICE_NOT_FOUND")
    assert refusal(speak, fake_server, name)[:2] == ("NOT_FOUND", "VOICE_NOT_FOUND")


@pytest.mark.parametrize("size", [1_100_000, 11_000_000])
def test_uploads_up_to_the_stated_limit_are_taken(voices: Voices, size: int) -> None:
    """Reported case 88."""
    seconds = size / 4 / 48000
    loud = np.tile(recordings.at_rate(recordings.speech(), 48000), 4)[: int(seconds * 48000)]
    data = recordings.encoded(np.stack([loud, loud], axis=1), "WAV", "PCM_16", 48000)
    assert abs(len(data) - size) < 1000
    request = voices_pb2.CreateVoiceRequest(name="mine", prompt=data)
    made = voices.stub.CreateVoice(request, timeout=60).voice
    assert made.origin == voices_pb2.VOICE_ORIGIN_CREATED
    assert 0 < made.report.seconds_used <= 30


def test_an_upload_over_the_limit_is_told_both_numbers(voices: Voices) -> None:
    with pytest.raises(grpc.RpcError, match="has 21,000,000 bytes, limit 20,971,520"):
        voices.create("mine", bytes(21_000_000))


def test_so_many_uploads_are_received_at_once_and_no_more(fake_server: ServerProcess) -> None:
    """The others hear when to come back; who cancels gives its place to the next."""
    with grpc.insecure_channel(fake_server.address) as channel:
        stub = voices_pb2_grpc.VoiceServiceStub(channel)
        request = voices_pb2.CreateVoiceRequest(
            name="mine", state=STATE_PREFIX + b"sleep@1000 x", validate_only=True
        )
        calls = [stub.CreateVoice.future(request, timeout=60) for _ in range(8)]
        codes = [call.code().name for call in calls]
        assert codes.count("RESOURCE_EXHAUSTED") >= 3
        assert codes.count("OK") >= 1
        for call in [stub.CreateVoice.future(request, timeout=60) for _ in range(8)]:
            call.cancel()
        wait_for(lambda: stub.CreateVoice.future(request, timeout=60).code().name == "OK", 30)


def test_a_state_that_is_none_is_refused_with_the_reason(voices: Voices) -> None:
    refused = refusal(voices.create, "mine", b"something else")
    assert refused == ("INVALID_ARGUMENT", "BAD_STATE", ["state"])
    assert "mine" not in voices.names()


def test_a_recording_that_is_none_is_refused_with_the_reason(voices: Voices) -> None:
    request = voices_pb2.CreateVoiceRequest(name="mine", prompt=b"\xff\xd8\xff\xe0 a picture")
    refused = refusal(voices.stub.CreateVoice, request, timeout=30)
    assert refused == ("INVALID_ARGUMENT", "BAD_AUDIO", ["prompt"])


def test_validating_keeps_nothing(voices: Voices) -> None:
    assert voices.create("mine", validate_only=True).digest
    assert "mine" not in voices.names()


def test_a_deleted_voice_is_gone_and_its_name_free(
    fake_server: ServerProcess, voices: Voices
) -> None:
    voices.create("mine")
    speak(fake_server, "mine")
    voices.delete("mine")
    assert refusal(speak, fake_server, "mine")[:2] == ("NOT_FOUND", "VOICE_NOT_FOUND")
    assert refusal(voices.delete, "mine")[:2] == ("NOT_FOUND", "VOICE_NOT_FOUND")
    voices.delete("mine", allow_missing=True)
    other = voices.create("mine", STATE_PREFIX + b"two")
    assert other.digest == hashlib.sha256(STATE_PREFIX + b"two").hexdigest()
    assert not voices.get("mine").loaded


def test_a_voice_of_the_model_cannot_be_deleted(voices: Voices) -> None:
    assert refusal(voices.delete, "anna") == ("INVALID_ARGUMENT", "BAD_CONFIG", ["name"])


def test_a_voice_in_use_is_not_deleted(fake_server: ServerProcess, voices: Voices) -> None:
    voices.create("mine")
    with grpc.insecure_channel(fake_server.address) as channel:
        stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        config = tts_pb2.SpeechConfig(voice="mine")
        request = tts_pb2.SynthesizeTextRequest(text="frames@1000 delay@20", config=config)
        call = stub.SynthesizeText(request, timeout=20)
        next(call)
        assert refusal(voices.delete, "mine")[:2] == ("FAILED_PRECONDITION", "VOICE_IN_USE")
        call.cancel()
        wait_for(lambda: _deletes(voices, "mine"))


def _deletes(voices: Voices, name: str) -> bool:
    try:
        voices.delete(name)
    except grpc.RpcError:
        return False
    return True


async def test_many_uploads_at_once_leave_nothing_behind(tmp_path: Path) -> None:
    """Reported case 86. Who finds the queue full is told when to come back."""
    with running_server("--engine", "fake", environment={"TMPDIR": str(tmp_path)}) as server:
        before = set(tmp_path.rglob("*"))
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub = voices_pb2_grpc.VoiceServiceStub(channel)
            calls = [
                stub.CreateVoice(
                    voices_pb2.CreateVoiceRequest(name=f"v{n}", state=STATE, validate_only=True),
                    timeout=60,
                )
                for n in range(20)
            ]
            await asyncio.gather(*calls, return_exceptions=True)
            codes = [(await call.code()).name for call in calls]
            for call, code in zip(calls, codes, strict=True):
                retries = "grpc-retry-pushback-ms" in dict(await call.trailing_metadata())
                assert (code, retries) in {("OK", False), ("RESOURCE_EXHAUSTED", True)}
        assert codes.count("OK") >= 1
        assert set(tmp_path.rglob("*")) == before


def test_a_server_says_what_it_can_do_with_voices(voices: Voices) -> None:
    with running_server("--engine", "fake", "--require-consent", "--max-prompt-bytes", "99") as it:
        with grpc.insecure_channel(it.address) as channel:
            stub = status_pb2_grpc.StatusServiceStub(channel)
            info = stub.GetServerInfo(status_pb2.GetServerInfoRequest(), timeout=10)
        assert {"voice_cloning", "voice_import", "consent_required"} <= set(info.features)
        assert "voice_storage" not in info.features
        assert info.limits.max_prompt_bytes == 99
        strict = Voices(it)
        assert refusal(strict.create, "mine")[2] == ["consent_statement"]
        strict.create("mine", consent_statement="I agree.")
        refused = refusal(strict.create, "long", STATE_PREFIX + b"x" * 99, consent_statement="y")
        assert refused == ("INVALID_ARGUMENT", "BAD_STATE", ["state"])
        strict.close()


@pytest.mark.parametrize(
    ("features", "fields"),
    [
        ("seed", {"state": STATE}),
        ("seed", {"prompt": b"RIFF"}),
        ("voice_import", {"prompt": b"RIFF"}),
    ],
)
def test_without_cloning_no_other_voice_is_taken(features: str, fields: dict[str, bytes]) -> None:
    """Reported case 89."""
    with running_server(
        "--engine", "fake", environment={"FAKE_ENGINE_FEATURES": features}
    ) as server:
        voices = Voices(server)
        request = voices_pb2.CreateVoiceRequest(name="mine", **fields)  # type: ignore[arg-type]
        refused = refusal(voices.stub.CreateVoice, request, timeout=10)
        assert refused[:2] == ("FAILED_PRECONDITION", "CLONING_UNAVAILABLE")
        assert refusal(speak, server, "mine")[:2] == ("NOT_FOUND", "VOICE_NOT_FOUND")
        voices.close()


def test_servers_share_a_directory_of_voices(tmp_path: Path) -> None:
    """A voice that one makes is used by the other without a restart, and gone when it is deleted.
    The number of voices is limited for both."""
    flags = ["--engine", "fake", "--voice-dir", str(tmp_path / "voices"), "--max-voices", "1"]
    with running_server(*flags) as one, running_server(*flags) as other:
        here, there = Voices(one), Voices(other)
        digest = here.create("mine").digest
        assert there.get("mine").digest == digest
        assert speak(other, "mine") == "mine"
        assert refusal(there.create, "more")[:2] == ("RESOURCE_EXHAUSTED", "VOICE_LIMIT")
        there.delete("mine")
        assert "mine" not in here.names()
        here.close()
        there.close()
    assert not list((tmp_path / "voices").iterdir())


def test_a_stream_keeps_its_voice_when_another_server_deletes_it(tmp_path: Path) -> None:
    """Its later segments, too, are spoken with what it began with."""
    flags = ["--engine", "fake", "--voice-dir", str(tmp_path / "voices")]
    with running_server(*flags) as one, running_server(*flags) as other:
        here, there = Voices(one), Voices(other)
        here.create("mine")
        with grpc.insecure_channel(one.address) as channel:
            stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
            config = tts_pb2.SpeechConfig(voice="mine", segment_events=True)
            text = "frames@20 delay@20 is first. frames@2 is second here. frames@2 is third here."
            request = tts_pb2.SynthesizeTextRequest(text=text, config=config)
            call = stub.SynthesizeText(request, timeout=20)
            next(call)
            there.delete("mine")
            events = [response.event for response in call]
        outcomes = [e.segment_finished.outcome for e in events if e.HasField("segment_finished")]
        assert outcomes == [tts_pb2.SEGMENT_OUTCOME_COMPLETE] * 3
        assert refusal(speak, one, "mine")[:2] == ("NOT_FOUND", "VOICE_NOT_FOUND")
        here.close()
        there.close()


def test_a_drain_waits_for_a_voice_that_is_being_made(tmp_path: Path) -> None:
    server = start_server(tmp_path, "--engine", "fake")
    server.wait_until_ready()
    with grpc.insecure_channel(server.address) as channel:
        stub = voices_pb2_grpc.VoiceServiceStub(channel)
        request = voices_pb2.CreateVoiceRequest(
            name="mine", state=STATE_PREFIX + b"sleep@1500 x", validate_only=True
        )
        call = stub.CreateVoice.future(request, timeout=30)
        wait_for(lambda: len(psutil.Process(server.process.pid).children(recursive=True)) >= 4)
        server.process.send_signal(signal.SIGTERM)
        assert call.result().voice.name == "mine"
    assert server.process.wait(20) == 0
    assert server.process.stdout is not None
    server.process.stdout.close()


def test_a_voice_outlives_its_server_however_that_ends(tmp_path: Path) -> None:
    flags = ["--engine", "fake", "--voice-dir", str(tmp_path / "voices")]
    server = start_server(tmp_path, *flags)
    server.wait_until_ready()
    voices = Voices(server)
    digest = voices.create("mine").digest
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    assert server.process.stdout is not None
    server.process.stdout.close()
    voices.close()
    with running_server(*flags) as again:
        after = Voices(again)
        assert after.get("mine").digest == digest
        assert speak(again, "mine") == "mine"
        after.close()


def test_a_voice_directory_that_cannot_be_one_is_told_at_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    server = start_server(tmp_path, "--engine", "fake", "--voice-dir", str(tmp_path / "file"))
    assert server.process.wait(20) == 1
    assert "is not a directory" in server.stderr.read_text()
    assert server.process.stdout is not None
    server.process.stdout.close()


def test_a_request_that_is_no_upload_may_not_be_as_long_as_one(fake_server: ServerProcess) -> None:
    with grpc.insecure_channel(fake_server.address) as channel:
        stub = tts_pb2_grpc.TextToSpeechServiceStub(channel)
        request = tts_pb2.SynthesizeFileRequest(text="x" * 2_000_000)
        refused = refusal(stub.SynthesizeFile, request, timeout=10)
    assert refused[:2] == ("INVALID_ARGUMENT", "BAD_MESSAGE")
