"""What the methods that speak allow, and what they take for granted."""

from dataclasses import dataclass

from intone_server.audio.encoding import Encoding
from intone_server.scheduling.generation import Priority

_STREAMED = tuple(encoding for encoding in Encoding if encoding is not Encoding.WAV)
_ALL = tuple(Encoding)


@dataclass(frozen=True, slots=True)
class Method:
    """Allowed encodings, defaults of encoding and priority, and whether somebody listens while it
    answers, whom it may be ahead of."""

    encodings: tuple[Encoding, ...]
    encoding: Encoding = Encoding.PCM_S16LE
    priority: Priority = Priority.STANDARD
    has_listener: bool = True


SYNTHESIZE = Method(_STREAMED, priority=Priority.INTERACTIVE)
SYNTHESIZE_TEXT = Method(_STREAMED)
SYNTHESIZE_DIALOGUE = Method(_STREAMED)
SYNTHESIZE_FILE = Method(_ALL, Encoding.WAV, has_listener=False)
PLAN_TEXT = Method(_ALL, has_listener=False)
