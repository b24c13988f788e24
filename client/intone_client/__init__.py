"""Client of intone: text streams in, speech streams out.

    async with Client("localhost:50051") as client:
        async with client.stream(speech_config(voice="alba")) as stream:
            await stream.push_text("Hello there. ")
            await stream.end_input()
            async for data in stream.audio():
                ...  # mono PCM, `stream.started.format` says which

`BlockingClient` is the same without asyncio. Events are the generated messages of
`intone.v1.tts_pb2`; errors are `IntoneError` and below.
"""

from intone.v1.tts_pb2 import Replacement, SpeechConfig, SpeechEvent

from ._audio import WavWriter
from ._blocking import BlockingClient
from ._blocking_speech import BlockingSpeech, BlockingStream
from ._client import Client
from ._config import speech_config
from ._errors import (
    AlreadyExistsError,
    CallCancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    IntoneError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    OverloadedError,
    StreamEndedError,
    SynthesisError,
    UnavailableError,
)
from ._speech import Speech
from ._stream import SpeechStream

__all__ = [
    "AlreadyExistsError",
    "BlockingClient",
    "BlockingSpeech",
    "BlockingStream",
    "CallCancelledError",
    "Client",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "IntoneError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "OverloadedError",
    "Replacement",
    "Speech",
    "SpeechConfig",
    "SpeechEvent",
    "SpeechStream",
    "StreamEndedError",
    "SynthesisError",
    "UnavailableError",
    "WavWriter",
    "speech_config",
]
