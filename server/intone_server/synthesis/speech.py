"""What one stream asked for, checked and with every default resolved."""

import hashlib
import secrets
from dataclasses import dataclass

from intone_server.audio.encoding import Encoding
from intone_server.engines.base import Sampling, VoiceRef
from intone_server.scheduling.generation import Priority
from intone_server.synthesis.manuscript import TextOptions
from intone_server.synthesis.segmenter import SegmentationMode, Segmenter

# Seeds that the server draws stay below 2^53: JavaScript reads them exactly.
_DRAWN_SEED_BITS = 53

# English speech: about 150 words of 6 characters a minute, and a short silence at the end.
CHARACTERS_PER_SECOND = 15.0
SILENCE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class SpeechConfig:
    """The settings of one stream. Seconds and code points; see the proto for ranges.

    `voice` is the name that the client knows and `voice_ref` what the engine is asked for.
    `model_rate_hertz` is that of the model, `sample_rate_hertz` that of the stream. `sampling`
    holds what the client set; None there is the engine's default. `retry_no_end`: a segment is
    kept back until it is whole, and spoken once more if it has no end. `has_listener`:
    somebody listens meanwhile. `client` is who calls, "" if that is not known.
    `max_ahead_seconds` None: the listener may be ahead by any time.
    """

    voice: str
    voice_ref: VoiceRef
    language: str
    encoding: Encoding
    sample_rate_hertz: int
    model_rate_hertz: int
    gain_db: float
    sampling: Sampling
    seed: int
    mode: SegmentationMode
    max_characters: int
    first_max_characters: int
    max_text_delay_seconds: float
    segment_gap_seconds: float
    paragraph_gap_seconds: float
    text: TextOptions
    max_queue_wait_seconds: float | None
    segment_events: bool
    queue_events: bool
    retry_no_end: bool = False
    priority: Priority = Priority.STANDARD
    client: str = ""
    has_listener: bool = True
    max_ahead_seconds: float | None = None

    def segmenter(self) -> Segmenter:
        """One that cuts as this stream asks."""
        return Segmenter(
            language=self.language,
            mode=self.mode,
            max_characters=self.max_characters,
            first_max_characters=self.first_max_characters,
        )


def draw_seed() -> int:
    """A seed for a stream that named none."""
    return secrets.randbits(_DRAWN_SEED_BITS)


def segment_seed(seed: int, segment: int) -> int:
    """The seed of one segment of a stream: the stream's own for the first, so that an echoed seed
    repeats that segment alone; for the others a fixed hash, below 2^53."""
    if segment == 0:
        return seed
    return _hashed_seed(f"{seed}/{segment}")


def item_seed(seed: int, item: str) -> int:
    """The seed of one item of a dialogue, whose id or index is `item`: from it the seeds of its
    segments are made as those of a stream are."""
    return _hashed_seed(f"{seed}/item {item}")


def second_seed(seed: int) -> int:
    """The seed with which a segment is spoken once more that had no end with `seed`."""
    return _hashed_seed(f"{seed}/again")


def _hashed_seed(text: str) -> int:
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - _DRAWN_SEED_BITS)


def estimated_seconds(text: str) -> float:
    """Seconds of audio that `text` will probably give."""
    return len(text) / CHARACTERS_PER_SECOND + SILENCE_SECONDS if text else 0.0
