"""Client of intone: text streams in, speech streams out.

    async with Client("localhost:50051") as client:
        async with client.stream(speech_config(voice="alba")) as stream:
            await stream.push_text("Hello there. ")
            await stream.end_input()
            async for data in stream.audio():
                ...  # mono PCM, `stream.started.format` says which

        cast = {"anna": "alba", "ben": "jean"}
        script = Script([line("anna", "Hello."), silence(0.5), line("ben", "Hi!")], cast)
        async with client.dialogue(script) as dialogue:
            async for item in dialogue:
                ...  # `item.audio`, `item.text`, in the order of the script

`BlockingClient` is the same without asyncio. Events are the generated messages of
`intone.v1.tts_pb2`; errors are `IntoneError` and below.
"""

from intone.v1.tts_pb2 import Replacement, SpeechConfig, SpeechEvent

from ._access import tls
from ._audio import WavWriter
from ._blocking import BlockingClient
from ._blocking_speech import BlockingSpeech, BlockingStream
from ._client import Client
from ._config import speech_config
from ._dialogues.blocking import BlockingDialogue
from ._dialogues.call import Dialogue
from ._dialogues.spoken import RenderedDialogue, SpokenItem, SpokenSegment
from ._errors import (
    AlreadyExistsError,
    CallCancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    IntoneError,
    InvalidArgumentError,
    NotAllowedError,
    NotFoundError,
    OutOfRangeError,
    OverloadedError,
    StreamEndedError,
    SynthesisError,
    UnavailableError,
)
from ._scripts.script import Script, ScriptError, audio, line, reuse, silence
from ._speech import Speech
from ._stream import SpeechStream

__all__ = [
    "AlreadyExistsError",
    "BlockingClient",
    "BlockingDialogue",
    "BlockingSpeech",
    "BlockingStream",
    "CallCancelledError",
    "Client",
    "DeadlineExceededError",
    "Dialogue",
    "FailedPreconditionError",
    "IntoneError",
    "InvalidArgumentError",
    "NotAllowedError",
    "NotFoundError",
    "OutOfRangeError",
    "OverloadedError",
    "RenderedDialogue",
    "Replacement",
    "Script",
    "ScriptError",
    "Speech",
    "SpeechConfig",
    "SpeechEvent",
    "SpeechStream",
    "SpokenItem",
    "SpokenSegment",
    "StreamEndedError",
    "SynthesisError",
    "UnavailableError",
    "WavWriter",
    "audio",
    "line",
    "reuse",
    "silence",
    "speech_config",
    "tls",
]
