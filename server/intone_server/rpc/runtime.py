"""What the servicers need once the model is loaded."""

from dataclasses import dataclass

from intone.v1 import tts_pb2
from intone_server.engines.base import EngineInfo
from intone_server.metrics import Metrics
from intone_server.rpc.requests import ConfigReader
from intone_server.rpc.responses import duration
from intone_server.scheduling.admission import Admission
from intone_server.scheduling.scheduler import Scheduler
from intone_server.synthesis.deadlines import SessionLimits
from intone_server.synthesis.inline_audio import AudioReader
from intone_server.voices.catalogue import Catalogue
from intone_server.voices.creation import VoiceCreator

# A file answer has to fit a stock 4 MiB client limit with its other fields.
MAX_FILE_BYTES = 3_900_000


@dataclass(frozen=True, slots=True)
class DialogueLimits:
    """Bounds of one dialogue. `concurrency` is that of a request that names none; `held_seconds` is
    of audio that is reused or that the client sent, `buffer_seconds` of audio made before its turn.
    """

    concurrency: int
    items: int
    characters: int
    held_seconds: float
    buffer_seconds: float


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Bounds of requests; characters are code points."""

    max_text_characters: int
    max_piece_characters: int
    first_message_timeout_seconds: float
    max_prompt_bytes: int
    require_consent: bool
    dialogue: DialogueLimits


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything about the loaded model that calls need. `features` are the engine's and the
    server's own."""

    info: EngineInfo
    features: frozenset[str]
    config_reader: ConfigReader
    audio_reader: AudioReader
    catalogue: Catalogue
    creator: VoiceCreator


class Service:
    """State that all servicers share. `runtime` is None until the model is loaded."""

    def __init__(
        self,
        *,
        scheduler: Scheduler,
        admission: Admission,
        session_limits: SessionLimits,
        request_limits: RequestLimits,
        metrics: Metrics,
    ) -> None:
        self.scheduler = scheduler
        self.admission = admission
        self.session_limits = session_limits
        self.request_limits = request_limits
        self.metrics = metrics
        self.runtime: Runtime | None = None

    def loaded(self) -> Runtime:
        """The runtime. Raises Unavailable while the model is loading."""
        if self.runtime is None:
            self.admission.check_available()
        assert self.runtime is not None
        return self.runtime

    def limits(self) -> tts_pb2.Limits:
        """What the server accepts, for clients."""
        info = self.loaded().info
        return tts_pb2.Limits(
            max_text_characters=self.request_limits.max_text_characters,
            max_buffered_characters=self.session_limits.max_buffered_characters,
            max_segment_characters=info.max_segment_characters,
            max_file_seconds=MAX_FILE_BYTES // (2 * info.sample_rate_hertz),
            max_prompt_bytes=self.request_limits.max_prompt_bytes,
            idle_timeout=duration(self.session_limits.idle_timeout_seconds),
            session_limit=duration(self.session_limits.session_limit_seconds),
            max_piece_characters=self.request_limits.max_piece_characters,
            max_dialogue_items=self.request_limits.dialogue.items,
            max_dialogue_characters=self.request_limits.dialogue.characters,
            max_dialogue_held_audio=duration(self.request_limits.dialogue.held_seconds),
        )
