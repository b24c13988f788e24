"""From a script on the wire to a valid one, with every mistake that is in it."""

from contextlib import AsyncExitStack
from dataclasses import replace

from intone.v1 import tts_pb2
from intone_server.audio import Samples
from intone_server.audio.encoding import Encoding
from intone_server.engines.base import Sampling
from intone_server.errors import InvalidRequest, Reason, Violation, VoiceNotFound, shown
from intone_server.rpc import requests
from intone_server.rpc.calls import MAX_REQUEST_BYTES, current_call
from intone_server.rpc.faults import Faults
from intone_server.rpc.formats import ENCODINGS
from intone_server.rpc.methods import SYNTHESIZE_DIALOGUE
from intone_server.rpc.runtime import Service
from intone_server.rpc.script_items import ItemChecks
from intone_server.rpc.stream_voices import MAX_VOICES, ready
from intone_server.rpc.texts import whole_text
from intone_server.synthesis import inline_audio
from intone_server.synthesis.events import ItemRef
from intone_server.synthesis.script import (
    AudioItem,
    Item,
    OnItemFailure,
    ReuseItem,
    Script,
    SilenceItem,
    SpeechItem,
)
from intone_server.synthesis.speech import SpeechConfig, item_seed
from intone_server.voices.voice import Voice

ON_FAILURE = {
    tts_pb2.ON_ITEM_FAILURE_UNSPECIFIED: OnItemFailure.SKIP,
    tts_pb2.ON_ITEM_FAILURE_SKIP: OnItemFailure.SKIP,
    tts_pb2.ON_ITEM_FAILURE_SILENCE: OnItemFailure.SILENCE,
    tts_pb2.ON_ITEM_FAILURE_ABORT: OnItemFailure.ABORT,
}
CONCURRENCY_RANGE = (1, 64)
MAX_CAST = 100


class ScriptReader:
    """Reads one script. What is wrong with it is noted; `script` raises InvalidRequest for all of
    it at once."""

    def __init__(
        self,
        request: tts_pb2.SynthesizeDialogueRequest,
        service: Service,
        client: str,
    ) -> None:
        self._request = request
        self._service = service
        self._client = client
        self._runtime = service.loaded()
        self._limits = service.request_limits.dialogue
        self._faults = Faults()
        self._voices: dict[str, Voice] = {}  # by speaker
        self._sounds: dict[int, Samples] = {}  # by item

    async def script(self, stack: AsyncExitStack) -> Script:
        """The script; its voices are ready to speak until `stack` is closed. Raises IntoneError."""
        request, faults = self._request, self._faults
        self._check_size()
        self._checks = ItemChecks(request, self._service, faults)
        await self._find_voices()
        on_failure = ON_FAILURE.get(request.on_item_failure)
        if on_failure is None:
            faults.add("on_item_failure", f"has no value {request.on_item_failure}")
        gap = faults.seconds("gap", request.gap, requests.GAP_SECONDS)
        concurrency = request.max_concurrency or self._limits.concurrency
        faults.within("max_concurrency", concurrency, *CONCURRENCY_RANGE)
        config = self._read_config()
        rate = config.sample_rate_hertz if config else self._runtime.info.sample_rate_hertz
        await self._read_sounds(rate)
        default = self._runtime.info.default_voice
        await self._find_voice("config.voice", "", request.config.voice or default)
        self._check_voices()
        faults.check()
        assert config is not None
        assert on_failure is not None
        await self._ready_voices(stack)
        return Script(
            config=replace(config, segment_events=True),
            items=tuple([await self._item(index, config) for index in range(len(request.items))]),
            gap_samples=round(gap * rate),
            on_item_failure=on_failure,
            max_concurrency=concurrency,
        )

    def _read_config(self) -> SpeechConfig | None:
        """The settings of the stream; None if there is a fault, here or noted before."""
        try:
            return self._runtime.config_reader.read(
                self._request.config, SYNTHESIZE_DIALOGUE, self._faults, client=self._client
            )
        except InvalidRequest:
            return None  # it is in `faults`

    def _check_size(self) -> None:
        most = max(MAX_REQUEST_BYTES, self._service.request_limits.max_prompt_bytes)
        if (size := self._request.ByteSize()) > most:
            description = f"the message has {size:,} bytes, limit {most:,}"
            raise InvalidRequest(Reason.BAD_MESSAGE, [Violation("", description)])

    # What takes time

    async def _find_voices(self) -> None:
        cast = self._request.cast
        if len(cast) > MAX_CAST:
            self._faults.add("cast", f"has {len(cast):,} speakers, limit {MAX_CAST}")
            return
        for speaker in sorted(cast):
            field = f"cast[{shown(speaker)}]"
            if not speaker or len(speaker) > requests.MAX_ID_CHARACTERS:
                limit = requests.MAX_ID_CHARACTERS
                self._faults.add(field, f"a speaker's name has 1 to {limit} characters")
            else:
                await self._find_voice(field, speaker, cast[speaker])

    def _check_voices(self) -> None:
        """Each is held ready as long as the dialogue lasts."""
        if len(self._request.items) > self._limits.items:
            return  # refused already; there may be millions
        speakers = {item.speech.speaker for item in self._request.items if item.HasField("speech")}
        names = {self._voices[speaker].name for speaker in speakers & set(self._voices)}
        if len(names) > MAX_VOICES:
            self._faults.add("cast", f"has {len(names)} voices that speak, limit {MAX_VOICES}")

    async def _find_voice(self, field: str, speaker: str, name: str) -> None:
        try:
            subject = current_call().subject
            self._voices[speaker] = await self._runtime.catalogue.get(name, subject)
        except VoiceNotFound as error:
            self._faults.add(field, error.message)

    async def _read_sounds(self, rate: int) -> None:
        """Decode the audio of the client, to `rate`."""
        readable = self._checks.readable
        left = self._limits.held_seconds - self._checks.reused_seconds
        audios = [self._request.items[index].audio for index in readable]
        sounds = [inline_audio.Sound(audio.data, *self._format(audio)) for audio in audios]
        read = await self._runtime.audio_reader.read(sounds, rate, max_seconds=max(0.0, left))
        # Of one that brings all to more than may be held, the rest is not read.
        for index, samples in zip(readable, read, strict=False):
            if isinstance(samples, str):
                self._faults.add(f"items[{index}].audio.data", samples, Reason.BAD_AUDIO)
            else:
                self._sounds[index] = samples

    def _format(self, audio: tts_pb2.AudioItem) -> tuple[Encoding | None, int]:
        if not audio.HasField("format"):
            return None, 0
        rate = audio.format.sample_rate_hertz or self._runtime.info.sample_rate_hertz
        return ENCODINGS.get(audio.format.encoding), rate

    async def _ready_voices(self, stack: AsyncExitStack) -> None:
        """Of those who speak."""
        speakers = {item.speech.speaker for item in self._request.items if item.HasField("speech")}
        refs = {}
        for name, voice in {self._voices[s].name: self._voices[s] for s in speakers}.items():
            refs[name] = await stack.enter_async_context(ready(self._runtime.catalogue, voice))
        for speaker in speakers:
            voice = self._voices[speaker]
            self._voices[speaker] = replace(voice, ref=refs[voice.name])

    # A script without faults

    async def _item(self, index: int, config: SpeechConfig) -> Item:
        item = self._request.items[index]
        ref = ItemRef(index, item.id)
        match item.WhichOneof("content"):
            case "speech":
                return Item(ref, await self._line(ref, item.speech, config))
            case "silence":
                seconds = item.silence.duration.ToNanoseconds() / 1e9
                return Item(ref, SilenceItem(round(seconds * config.sample_rate_hertz)))
            case "reuse":
                return Item(ref, ReuseItem(self._checks.originals[item.reuse.item_id]))
            case _:
                return Item(ref, AudioItem(self._sounds[index]))

    async def _line(
        self, ref: ItemRef, speech: tts_pb2.SpeechItem, config: SpeechConfig
    ) -> SpeechItem:
        own = self._runtime.config_reader.read_sampling(speech.sampling, "", self._faults)
        seed = item_seed(config.seed, ref.id or str(ref.index))
        voice = self._voices[speech.speaker]
        spoken_by = replace(
            config,
            voice=voice.name,
            voice_ref=voice.ref,
            sampling=_merged(own, config.sampling),
            seed=speech.sampling.seed if speech.sampling.HasField("seed") else seed,
            first_max_characters=config.max_characters,
        )
        return SpeechItem(await whole_text(speech.text, config.text), spoken_by)


def _merged(own: Sampling, general: Sampling) -> Sampling:
    """Each value of `general`, unless there is an own one."""
    fields = Sampling.__dataclass_fields__
    return Sampling(
        **{
            name: getattr(general, name) if (value := getattr(own, name)) is None else value
            for name in fields
        }
    )
