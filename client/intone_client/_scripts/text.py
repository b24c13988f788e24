"""Scripts as plain text: who speaks, a colon, and what is said."""

import re
from collections.abc import Container

from intone_client._config import _duration, speech_config

from .script import Fault, Script, line, silence

# As in the marks for pauses that the server knows.
_LENGTH = r"(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(?P<unit>[mM]?[sS])"
_SECONDS = re.compile(rf"\s*{_LENGTH}\s*")
_PAUSE = re.compile(rf"\[[pP][aA][uU][sS][eE]:\s*(?P<length>{_LENGTH})\s*\]")
_NO_PAUSE = re.compile(r"\[pause\b[^\]]*\]", re.IGNORECASE)
_VOICE = re.compile(r"[a-z0-9][a-z0-9_-]*")


def read_lines(text: str, faults: list[Fault]) -> Script | None:
    """The script in plain `text`, see `Script.load`; None if there is a fault."""
    reader = _Reader(faults)
    for number, written in enumerate(text.split("\n"), 1):
        reader.take(number, written.rstrip())
    return reader.script()


def seconds_of(text: str) -> float:
    """Of a length such as "300ms" or "1.5s". Raises ValueError for anything else."""
    length = _SECONDS.fullmatch(text)
    if length is None:
        raise ValueError(f"{text!r} is no length such as 300ms or 1.5s")
    seconds = float(length["number"])
    return seconds / 1000 if len(length["unit"]) == len("ms") else seconds


def looks_like_lines(text: str, keys: Container[str]) -> bool:
    """Whether all of `text` is said by somebody, who is not called like one of `keys`."""
    written = [each for each in text.split("\n") if each.strip() and each[0] not in "#@ \t"]
    spoken = [found for each in written if (found := _spoken(each))]
    return bool(spoken) and all(
        said and speaker not in keys and speaker[0] not in "-{[\"'" for speaker, said in spoken
    )


def _spoken(written: str, cast: Container[str] = ()) -> tuple[str, str] | None:
    """Speaker and text; None if nobody speaks in this line.

    Before the colon is a name of the `cast`, or what can be one: 12:30 and https:// are text, and
    so is :-) behind more than one word.
    """
    speaker, colon, said = written.partition(":")
    speaker, begins = speaker.strip(), said[:1]
    if not colon or not speaker:
        return None
    if speaker not in cast and begins and not begins.isspace() and not begins.isalpha():
        is_text = begins.isdecimal() or begins == "/" or len(speaker.split()) > 1
        return None if is_text else (speaker, said.strip())
    return speaker, said.strip()


class _Reader:
    """Takes one line of the file after the other."""

    def __init__(self, faults: list[Fault]) -> None:
        self._faults = faults
        self._cast: dict[str, str] = {}
        self._gap: float | None = None
        # What is said, or seconds of silence, after the line of the file and the speaker.
        self._items: list[tuple[int, str, list[str] | float]] = []
        # What a line without a speaker is added to.
        self._said: list[str] | None = None
        self._strangers: set[str] = set()

    def take(self, number: int, written: str) -> None:
        """The line `number`, without white space at its end."""
        if not written:
            self._said = None
        elif written[0].isspace():
            self._continue(number, written)
        elif written[0] == "@":
            self._header(number, written)
        elif written[0] == "#":
            pass
        elif pause := _PAUSE.fullmatch(written):
            self._said = None
            self._items.append((number, "", seconds_of(pause["length"])))
        elif _NO_PAUSE.fullmatch(written):
            self._faults.append((number, "a pause is written as [pause:1500ms] or [pause:1.5s]"))
        elif spoken := _spoken(written, self._cast):
            self._begin(number, *spoken)
        else:
            self._continue(number, written)

    def script(self) -> Script | None:
        """The script, after the last line; None if there is a fault."""
        items = []
        for number, speaker, content in self._items:
            if isinstance(content, float):
                try:
                    items.append(silence(content))
                except ValueError:
                    self._faults.append((number, "no silence is so long"))
            elif text := "\n".join(content).strip():
                items.append(line(speaker, text))
            else:
                self._faults.append((number, f"{speaker} says nothing"))
        if not self._items and not self._faults:
            what = "nobody says anything: write lines such as 'alba: Hello there.'"
            self._faults.append((1, what))
        if self._faults:
            return None
        # Without a cast, speakers are voices.
        speakers = {speaker: speaker for _, speaker, _ in self._items if speaker}
        return Script(
            items,
            cast=self._cast or speakers,
            config=speech_config(inline_pauses=True),
            gap=self._gap or 0.0,
            lines=[number for number, _, _ in self._items],
        )

    def _begin(self, number: int, speaker: str, said: str) -> None:
        self._said = [said]
        self._items.append((number, speaker, self._said))
        if speaker in self._strangers or speaker in self._cast:
            return
        if self._cast:
            what = f"{speaker!r} is not in the cast ({', '.join(self._cast)})"
        elif not _VOICE.fullmatch(speaker):
            what = f"{speaker!r} is not the name of a voice"
        else:
            return
        self._strangers.add(speaker)
        what += f": write '@cast {speaker} = VOICE' above the first line, or, if nobody is called"
        self._faults.append((number, f"{what} {speaker!r}, indent this line to continue the last"))

    def _continue(self, number: int, written: str) -> None:
        if self._said is None:
            what = "nobody says this: a line begins with 'SPEAKER: ' or comes right after one"
            if written[0].isspace():
                what += "; an indented line always continues the last"
            self._faults.append((number, what))
            # One fault for all lines up to the next blank one.
            self._said = []
        self._said.append(written.strip())

    def _header(self, number: int, written: str) -> None:
        name, _, setting = written.partition(" ")
        if self._items:
            what = f"{name} has to be above the first line (indent it if it is text)"
            self._faults.append((number, what))
            return
        try:
            if name == "@cast":
                self._take_speaker(setting)
            elif name == "@gap":
                self._take_gap(setting.strip())
            else:
                self._faults.append((number, f"{name} is unknown: there are @cast and @gap"))
        except ValueError as error:
            self._faults.append((number, str(error)))

    def _take_speaker(self, setting: str) -> None:
        speaker, _, voice = (part.strip() for part in setting.partition("="))
        if not speaker or not voice or ":" in speaker:
            raise ValueError("write '@cast SPEAKER = VOICE', without a ':' in the speaker")
        if speaker in self._cast:
            raise ValueError(f"{speaker!r} is in the cast already, as {self._cast[speaker]}")
        self._cast[speaker] = voice

    def _take_gap(self, setting: str) -> None:
        if self._gap is not None:
            raise ValueError("@gap is here a second time")
        try:
            self._gap = seconds_of(setting)
            _duration("gap", self._gap)
        except ValueError:
            raise ValueError(f"write '@gap 300ms' or '@gap 0.3s', not {setting!r}") from None
