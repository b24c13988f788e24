"""From requests to valid domain values. Nobody behind this module checks again."""

from intone.v1 import tts_pb2
from intone_server.audio.level import GAIN_DB_RANGE
from intone_server.engines.base import EngineInfo, Sampling, VoiceRef
from intone_server.errors import InvalidRequest, Reason, Violation
from intone_server.rpc.faults import Faults
from intone_server.rpc.formats import read_format
from intone_server.rpc.methods import Method
from intone_server.rpc.scheduling import read_max_ahead, read_max_queue_wait, read_priority
from intone_server.rpc.texts import read_text_options
from intone_server.synthesis.segmenter import SegmentationMode
from intone_server.synthesis.speech import SpeechConfig, draw_seed

MODES = {
    tts_pb2.SEGMENTATION_MODE_UNSPECIFIED: SegmentationMode.SENTENCE,
    tts_pb2.SEGMENTATION_MODE_SENTENCE: SegmentationMode.SENTENCE,
    tts_pb2.SEGMENTATION_MODE_CLAUSE: SegmentationMode.CLAUSE,
    tts_pb2.SEGMENTATION_MODE_MANUAL: SegmentationMode.MANUAL,
}
# Allowed values, as the proto states them.
SAMPLING_RANGES = {
    "temperature": (0.0, 2.0),
    "decode_steps": (1, 64),
    "eos_threshold": (-100.0, 100.0),
    "noise_clamp": (1e-6, 10.0),
    "frames_after_eos": (0, 100),
}
MIN_SEGMENT_CHARACTERS = 20
MIN_FIRST_SEGMENT_CHARACTERS = 10
MAX_ID_CHARACTERS = 128
TEXT_DELAY_SECONDS = (0.05, 60.0)
PAUSE_SECONDS = (1e-9, 60.0)
GAP_SECONDS = (0.0, 10.0)
WATCH_SECONDS = (0.1, 3600.0)


class ConfigReader:
    """Turns `SpeechConfig` messages into domain values for one engine."""

    def __init__(self, info: EngineInfo, *, max_text_delay_seconds: float) -> None:
        self._info = info
        self._max_text_delay_seconds = max_text_delay_seconds

    def read(
        self,
        config: tts_pb2.SpeechConfig,
        method: Method,
        faults: Faults,
        *,
        client: str,
    ) -> SpeechConfig:
        """The settings of a stream of `client`, with every default resolved.

        Raises InvalidRequest with every fault, those that `faults` has already among them. Whether
        the voice exists is the catalogue's to say.
        """
        language = faults.language("config.language", config.language, self._info.languages)
        encoding, rate = read_format(config.format, method, self._info.sample_rate_hertz, faults)
        faults.within("config.gain_db", config.gain_db, *GAIN_DB_RANGE)
        text = read_text_options(config.text, faults)
        sampling = self.read_sampling(config.sampling, "config.sampling", faults)
        longest, first = self._segment_lengths(config.segmentation, faults)
        mode = MODES.get(config.segmentation.mode)
        if mode is None:
            faults.add("config.segmentation.mode", f"has no value {config.segmentation.mode}")
        delay = self._max_text_delay_seconds
        if config.segmentation.HasField("max_text_delay"):
            delay = faults.seconds(
                "config.segmentation.max_text_delay",
                config.segmentation.max_text_delay,
                TEXT_DELAY_SECONDS,
            )
        gap = faults.seconds(
            "config.segmentation.segment_gap", config.segmentation.segment_gap, GAP_SECONDS
        )
        paragraph_gap = gap
        if config.segmentation.HasField("paragraph_gap"):
            paragraph_gap = faults.seconds(
                "config.segmentation.paragraph_gap", config.segmentation.paragraph_gap, GAP_SECONDS
            )
        priority = read_priority(config.scheduling, method, faults)
        wait = read_max_queue_wait(config.scheduling, faults)
        ahead = read_max_ahead(config.scheduling, method, faults)
        faults.check()
        assert mode is not None
        voice = config.voice or self._info.default_voice
        return SpeechConfig(
            voice=voice,
            voice_ref=VoiceRef(voice),
            language=language,
            encoding=encoding,
            sample_rate_hertz=rate,
            model_rate_hertz=self._info.sample_rate_hertz,
            gain_db=config.gain_db,
            sampling=sampling,
            seed=config.sampling.seed if config.sampling.HasField("seed") else draw_seed(),
            mode=mode,
            max_characters=longest,
            first_max_characters=first,
            max_text_delay_seconds=delay,
            segment_gap_seconds=gap,
            paragraph_gap_seconds=paragraph_gap,
            text=text,
            max_queue_wait_seconds=wait,
            segment_events=config.segment_events,
            queue_events=config.queue_events,
            priority=priority,
            client=client,
            has_listener=method.has_listener,
            max_ahead_seconds=ahead,
        )

    def read_sampling(self, sampling: tts_pb2.Sampling, field: str, faults: Faults) -> Sampling:
        """What the client set of it. Faults are noted; the seed is left to the caller."""
        values: dict[str, float] = {}
        for name in (*SAMPLING_RANGES, "seed"):
            if not sampling.HasField(name):
                continue
            path = f"{field}.{name}"
            if name not in self._info.features:
                faults.add(
                    path,
                    f"the {self._info.engine} engine cannot honour it",
                    Reason.UNSUPPORTED_OPTION,
                )
            elif name in SAMPLING_RANGES:
                value = getattr(sampling, name)
                faults.within(path, value, *SAMPLING_RANGES[name])
                values[name] = value
        return Sampling(**values)  # type: ignore[arg-type]

    def _segment_lengths(
        self, segmentation: tts_pb2.Segmentation, faults: Faults
    ) -> tuple[int, int]:
        most = self._info.max_segment_characters
        longest = segmentation.max_characters or most
        faults.within("config.segmentation.max_characters", longest, MIN_SEGMENT_CHARACTERS, most)
        first = segmentation.first_max_characters
        if not first:
            return longest, longest
        faults.within(
            "config.segmentation.first_max_characters",
            first,
            MIN_FIRST_SEGMENT_CHARACTERS,
            longest,
        )
        return longest, first


def check_text(text: str, limit: int, faults: Faults, field: str = "text") -> None:
    """Note what is wrong with a whole text."""
    if not text.strip():
        faults.add(field, "has nothing to speak: it is empty or blank")
    elif len(text) > limit:
        faults.add(
            field, f"text has {len(text):,} characters, limit {limit:,}", Reason.TEXT_TOO_LONG
        )


def read_piece(text: str, limit: int) -> str:
    """One text piece of a stream. Raises InvalidRequest."""
    if len(text) > limit:
        raise InvalidRequest(
            Reason.TEXT_TOO_LONG,
            [Violation("text", f"text piece has {len(text):,} characters, limit {limit:,}")],
        )
    return text


def read_id(field: str, value: str) -> str:
    """The id of a Flush or Clear. Raises InvalidRequest."""
    if len(value) > MAX_ID_CHARACTERS:
        faults = Faults()
        faults.add(field, f"has {len(value):,} characters, limit {MAX_ID_CHARACTERS}")
        faults.check()
    return value


def read_pause(pause: tts_pb2.Pause) -> float:
    """The seconds of a Pause. Raises InvalidRequest."""
    faults = Faults()
    seconds = faults.seconds("pause.duration", pause.duration, PAUSE_SECONDS)
    faults.check()
    return seconds
