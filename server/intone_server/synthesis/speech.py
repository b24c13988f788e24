"""What one stream asked for, checked and with every default resolved."""

import hashlib
import secrets
from dataclasses import dataclass

from intone_server.audio.encoding import Encoding
from intone_server.engines.base import Sampling
from intone_server.synthesis.segmenter import SegmentationMode

# Seeds that the server draws stay below 2^53: JavaScript reads them exactly.
_DRAWN_SEED_BITS = 53

# English speech: about 150 words of 6 characters a minute, and a short silence at the end.
CHARACTERS_PER_SECOND = 15.0
SILENCE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class SpeechConfig:
    """The settings of one stream. Seconds and code points; see the proto for ranges.

    `sampling` holds what the client set; None there is the engine's default.
    """

    voice: str
    language: str
    encoding: Encoding
    sample_rate_hertz: int
    sampling: Sampling
    seed: int
    mode: SegmentationMode
    max_characters: int
    first_max_characters: int
    max_text_delay_seconds: float
    max_queue_wait_seconds: float | None
    segment_events: bool
    queue_events: bool


def draw_seed() -> int:
    """A seed for a stream that named none."""
    return secrets.randbits(_DRAWN_SEED_BITS)


def segment_seed(seed: int, segment: int) -> int:
    """The seed of one segment of a stream: the stream's own for the first, so that an echoed seed
    repeats that segment alone; for the others a fixed hash, below 2^53."""
    if segment == 0:
        return seed
    digest = hashlib.sha256(f"{seed}/{segment}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _DRAWN_SEED_BITS)


def estimated_seconds(text: str) -> float:
    """Seconds of audio that `text` will probably give."""
    return len(text) / CHARACTERS_PER_SECOND + SILENCE_SECONDS if text else 0.0
