"""A dialogue as it is asked for: items, and how they are spoken."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, get_args

from intone.v1 import tts_pb2
from intone_client._config import _duration, speech_config
from intone_client._visible import visible

from .places import Fault, Source

OnItemFailure: TypeAlias = Literal["skip", "silence", "abort"]
SampleEncoding: TypeAlias = Literal["pcm_s16le", "pcm_f32le", "mulaw", "alaw"]

_SHOWN_CHARACTERS = 60
MAX_GAP_SECONDS = 10.0  # as the contract says of `gap` and of the gaps in `Segmentation`

_ON_ITEM_FAILURE = {
    "skip": tts_pb2.ON_ITEM_FAILURE_SKIP,
    "silence": tts_pb2.ON_ITEM_FAILURE_SILENCE,
    "abort": tts_pb2.ON_ITEM_FAILURE_ABORT,
}


def line(
    speaker: str,
    text: str,
    *,
    id: str = "",  # noqa: A002 - its name in the contract
    temperature: float | None = None,
    decode_steps: int | None = None,
    eos_threshold: float | None = None,
    noise_clamp: float | None = None,
    frames_after_eos: int | None = None,
    seed: int | None = None,
) -> tts_pb2.DialogueItem:
    """`text`, said by a `speaker` of the cast; empty: in the voice of the config.

    What is given beside it goes before the config, for this line. Raises ValueError for a number
    that its field cannot hold, and TypeError for what is no text or number.
    """
    _check("speaker", speaker, str, "a text")
    _check("text", text, str, "a text")
    _check("id", id, str, "a text")
    numbers = {
        "temperature": temperature,
        "decode_steps": decode_steps,
        "eos_threshold": eos_threshold,
        "noise_clamp": noise_clamp,
        "frames_after_eos": frames_after_eos,
        "seed": seed,
    }
    for name, number in numbers.items():
        whole = name in ("decode_steps", "frames_after_eos", "seed")
        needed = "a whole number" if whole else "a number"
        _check(name, number, (Integral if whole else Real, type(None)), needed)
    own = speech_config(
        temperature=temperature,
        decode_steps=decode_steps,
        eos_threshold=eos_threshold,
        noise_clamp=noise_clamp,
        frames_after_eos=frames_after_eos,
        seed=seed,
    )
    sampling = own.sampling if own.HasField("sampling") else None
    speech = tts_pb2.SpeechItem(speaker=speaker, text=text, sampling=sampling)
    return tts_pb2.DialogueItem(id=id, speech=speech)


def silence(seconds: float, *, id: str = "") -> tts_pb2.DialogueItem:  # noqa: A002 - as above
    """Exact silence, in the place of the gap. Raises ValueError for what is no length, and
    TypeError for what is no number."""
    _check("silence", seconds, Real, "a number of seconds")
    _check("id", id, str, "a text")
    item = tts_pb2.SilenceItem(duration=_duration("silence", seconds))
    return tts_pb2.DialogueItem(id=id, silence=item)


def reuse(item_id: str, *, id: str = "") -> tts_pb2.DialogueItem:  # noqa: A002 - as above
    """The audio of the earlier item `item_id` once more. Raises ValueError if that is empty, and
    TypeError if it is no text."""
    _check("reuse", item_id, str, "the id of an earlier item, a text")
    _check("id", id, str, "a text")
    if not item_id:
        raise ValueError("reuse needs the id of an earlier item")
    return tts_pb2.DialogueItem(id=id, reuse=tts_pb2.ReuseItem(item_id=item_id))


def audio(
    data: bytes,
    *,
    id: str = "",  # noqa: A002 - as above
    encoding: SampleEncoding | None = None,
    sample_rate_hertz: int = 0,
) -> tts_pb2.DialogueItem:
    """A WAV, FLAC, Ogg or MP3 file, or mono samples without a header.

    Samples need their `encoding`; their rate is by default (0) that of the model. Raises ValueError
    for an unknown encoding, or a rate without one, and TypeError for what are no bytes.
    """
    _check("audio", data, bytes, "the bytes of a file, as Path(...).read_bytes() gives them")
    _check("id", id, str, "a text")
    if encoding is None:
        if sample_rate_hertz:
            raise ValueError("a file says its rate itself; for samples give their encoding too")
        item = tts_pb2.AudioItem(data=data)
    elif encoding in get_args(SampleEncoding):
        how = speech_config(encoding=encoding, sample_rate_hertz=sample_rate_hertz)
        item = tts_pb2.AudioItem(data=data, format=how.format)
    else:
        known = ", ".join(get_args(SampleEncoding))
        raise ValueError(f"encoding is {encoding!r}, samples without a header are {known}")
    return tts_pb2.DialogueItem(id=id, audio=item)


@dataclass(frozen=True, slots=True)
class Script:
    """What a dialogue says, in its order. What is left out is the server's default.

    Names, units and ranges are those of `SynthesizeDialogueRequest`; the server checks them.
    """

    #: As `line`, `silence`, `reuse` and `audio` make them.
    items: Sequence[tts_pb2.DialogueItem]
    #: The voice of each speaker.
    cast: Mapping[str, str] = field(default_factory=dict)
    #: For all items.
    config: tts_pb2.SpeechConfig = field(default_factory=tts_pb2.SpeechConfig)
    #: Seconds of silence between two items that are heard.
    gap: float = 0.0
    #: What takes the place of a segment that failed: nothing, silence, or the end of the call.
    on_item_failure: OnItemFailure = "skip"
    #: Segments that may be spoken at the same time. 0: the server's default.
    max_concurrency: int = 0
    #: The line of its file for each item, from 1; empty for a script that was made in code.
    lines: Sequence[int] = ()
    #: Where its file has the rest; None for a script that was made in code.
    source: Source | None = field(default=None, compare=False, repr=False)

    def request(self) -> tts_pb2.SynthesizeDialogueRequest:
        """The script on the wire. Raises ValueError for what no field can hold, and TypeError for
        what is of another kind than it has to be."""
        self._check_kinds()
        if self.on_item_failure not in _ON_ITEM_FAILURE:
            known = ", ".join(_ON_ITEM_FAILURE)
            raise ValueError(f"on_item_failure is {self.on_item_failure!r}, known are {known}")
        return tts_pb2.SynthesizeDialogueRequest(
            config=self.config,
            cast=self.cast,
            items=self.items,
            on_item_failure=_ON_ITEM_FAILURE[self.on_item_failure],
            gap=_duration("gap", self.gap or None),
            max_concurrency=self.max_concurrency,
        )

    def _check_kinds(self) -> None:
        a_list = "a list of what line(), silence(), reuse() and audio() make"
        _check("items", self.items, Sequence, a_list)
        for index, item in enumerate(self.items):
            _check(f"items[{index}]", item, tts_pb2.DialogueItem, "what line() and so on make")
        _check("cast", self.cast, Mapping, "a mapping of speakers to voices")
        for speaker, voice in self.cast.items():
            _check("a speaker of the cast", speaker, str, "a text")
            _check(f"cast[{speaker!r}]", voice, str, "the name of a voice")
        _check("config", self.config, tts_pb2.SpeechConfig, "what speech_config() makes")
        _check("gap", self.gap, Real, "a number of seconds")
        _check("max_concurrency", self.max_concurrency, Integral, "a whole number")

    @staticmethod
    def load(path: str | os.PathLike[str], *, allow_outside: bool = False) -> "Script":
        """The script in a file: YAML (.yaml, .yml), JSON (.json), or else plain text.

        YAML and JSON are as `script.schema.json` in this package says. Plain text is

            # A comment. Without a cast, speakers are named as their voices.
            @cast anna = alba
            @gap 0.3s

            anna: Hello there.
            A line without a speaker continues the last,
              and so does an indented line, which is text: always.
            [pause:1500ms]
            anna: A blank line ends what is said.

        and a pause may stand inside a text, too. With `allow_outside` the audio files that it
        names may lie anywhere, else beside it or below only. Raises ScriptError, which lists every
        fault, up to a hundred.
        """
        # Whoever makes scripts in code needs neither YAML nor a schema.
        from .file import load_script

        return load_script(path, allow_outside=allow_outside)


class ScriptError(ValueError):
    """A script's file cannot be used. `str()` lists every fault, one a line, as FILE:LINE: what."""

    def __init__(self, name: str, faults: Sequence[Fault]) -> None:
        super().__init__(name, faults)
        self.name = name
        #: In the order of the file.
        self.faults = sorted(faults, key=lambda fault: fault[0])

    def __str__(self) -> str:
        return "\n".join(
            visible(f"{self.name}:{number}: {what}" if number else f"{self.name}: {what}")
            for number, what in self.faults
        )


def request_of(
    script: Script | tts_pb2.SynthesizeDialogueRequest,
) -> tts_pb2.SynthesizeDialogueRequest:
    """The script on the wire. Raises what `Script.request` does."""
    if isinstance(script, Script):
        return script.request()
    needed = "a Script; Script.load(path) reads a file, Script(items) takes a list"
    _check("dialogue", script, tts_pb2.SynthesizeDialogueRequest, needed)
    return script


def _check(name: str, value: object, kinds: Any, needed: str) -> None:
    """Raises TypeError, in words, for a value of another kind. True and False are no numbers."""
    if not isinstance(value, kinds) or isinstance(value, bool):
        shown = repr(value)
        short = shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}…"
        raise TypeError(f"{name} needs {needed}, not {short}")
