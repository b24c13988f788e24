"""Callers with tokens, and what each does with voices."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from callers import bearer, reason_of, token_entry
from fake_engine import STATE_PREFIX
from intone.v1 import tts_pb2, tts_pb2_grpc, voices_pb2, voices_pb2_grpc
from intone_server.access.grants import Scope
from processes import ServerProcess, running_server


def state(level: int) -> bytes:
    """A voice state with which all samples are `level` thousandths."""
    return STATE_PREFIX + f"level@{level}".encode()


class Caller:
    """Calls of one client; without a `name` it shows no token."""

    def __init__(self, server: ServerProcess, name: str = "") -> None:
        self._metadata = bearer(f"{name}-token") if name else ()
        self._channel = grpc.insecure_channel(server.address)
        self._voices = voices_pb2_grpc.VoiceServiceStub(self._channel)
        self._speech = tts_pb2_grpc.TextToSpeechServiceStub(self._channel)

    def close(self) -> None:
        self._channel.close()

    def _call(self, method: Any, request: Any) -> Any:
        return method(request, metadata=self._metadata, timeout=60)

    def create(self, name: str, level: int = 100, *, shared: bool = False) -> voices_pb2.Voice:
        request = voices_pb2.CreateVoiceRequest(name=name, state=state(level), shared=shared)
        voice: voices_pb2.Voice = self._call(self._voices.CreateVoice, request).voice
        return voice

    def list(self) -> dict[str, voices_pb2.Voice]:
        """All created voices, from pages of one voice each."""
        found, token = {}, ""
        while True:
            request = voices_pb2.ListVoicesRequest(page_size=1, page_token=token)
            page = self._call(self._voices.ListVoices, request)
            found |= {v.name: v for v in page.voices if v.HasField("create_time")}
            token = page.next_page_token
            if not token:
                return found

    def get(self, name: str) -> voices_pb2.Voice:
        voice: voices_pb2.Voice = self._call(
            self._voices.GetVoice, voices_pb2.GetVoiceRequest(name=name)
        ).voice
        return voice

    def export(self, name: str) -> bytes:
        request = voices_pb2.ExportVoiceRequest(name=name)
        exported: bytes = self._call(self._voices.ExportVoice, request).state
        return exported

    def delete(self, name: str, *, allow_missing: bool = False) -> None:
        request = voices_pb2.DeleteVoiceRequest(name=name, allow_missing=allow_missing)
        self._call(self._voices.DeleteVoice, request)

    def speech(self, voice: str, text: str = "One two.") -> Any:
        """The open call."""
        config = tts_pb2.SpeechConfig(voice=voice)
        request = tts_pb2.SynthesizeTextRequest(text=text, config=config)
        return self._call(self._speech.SynthesizeText, request)

    def say(self, voice: str) -> set[int]:
        """The level of each sample, in thousandths."""
        return _levels(self.speech(voice))

    def stream(self, voice: str, *, then: str = "") -> set[int]:
        requests = [tts_pb2.SynthesizeRequest(config=tts_pb2.SpeechConfig(voice=voice))]
        if then:
            requests += [tts_pb2.SynthesizeRequest(voice=then)]
        requests += [tts_pb2.SynthesizeRequest(text="One two.")]
        return _levels(self._call(self._speech.Synthesize, iter(requests)))

    def change(self, voice: str) -> set[int]:
        """In a stream that began with another."""
        return self.stream("anna", then=voice)

    def file(self, voice: str) -> None:
        config = tts_pb2.SpeechConfig(voice=voice)
        request = tts_pb2.SynthesizeFileRequest(text="One two.", config=config)
        self._call(self._speech.SynthesizeFile, request)

    def cast(self, voice: str) -> set[int]:
        """A dialogue in which it has a part."""
        line = tts_pb2.DialogueItem(speech=tts_pb2.SpeechItem(speaker="a", text="One two."))
        request = tts_pb2.SynthesizeDialogueRequest(cast={"a": voice}, items=[line])
        return _levels(self._call(self._speech.SynthesizeDialogue, request))

    def narrate(self, voice: str) -> set[int]:
        """A dialogue that it speaks where no other does."""
        line = tts_pb2.DialogueItem(speech=tts_pb2.SpeechItem(text="One two."))
        config = tts_pb2.SpeechConfig(voice=voice)
        request = tts_pb2.SynthesizeDialogueRequest(config=config, items=[line])
        return _levels(self._call(self._speech.SynthesizeDialogue, request))

    def plan(self, voice: str) -> None:
        config = tts_pb2.SpeechConfig(voice=voice)
        self._call(self._speech.PlanText, tts_pb2.PlanTextRequest(text="One two.", config=config))


@contextmanager
def guarded_server(folder: Path, *flags: str, names: list[str]) -> Iterator[ServerProcess]:
    """A server that knows the clients of these names."""
    scopes = [scope.value for scope in Scope]
    tokens = folder / "tokens.toml"
    tokens.write_text("".join(token_entry(name, f"{name}-token", scopes) for name in names))
    engine = [] if "--engine" in flags else ["--engine", "fake"]
    with running_server(*engine, "--tokens", str(tokens), *flags) as server:
        yield server


def refusal(call: Any, *arguments: Any, **fields: Any) -> tuple[str, str]:
    """Code and reason of a call that is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, **fields)
    return caught.value.code().name, reason_of(caught.value)


def words_of_refusal(call: Any, name: str) -> tuple[Any, ...]:
    """All that a refused caller is told, but for the name it gave and the id of the request."""
    with pytest.raises(grpc.RpcError) as caught:
        call(name)
    error = caught.value
    trailers = {
        key: value.replace(name.encode(), b"NAME") if isinstance(value, bytes) else value
        for key, value in error.trailing_metadata()
        if key != "x-request-id"
    }
    return error.code(), error.details().replace(name, "NAME"), trailers


def _levels(responses: Any) -> set[int]:
    audio = b"".join(response.event.audio.data for response in responses)
    samples = np.frombuffer(audio, np.int16)
    return {round(each / 32.767) for each in np.unique(samples).tolist()}
