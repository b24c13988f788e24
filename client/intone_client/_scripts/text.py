"""Scripts as plain text: who speaks, a colon, and what is said."""

import re
from collections.abc import Container

from intone_client._config import speech_config

from .places import Faults, Place, Source
from .script import MAX_GAP_SECONDS, Script, line, silence
from .words import listed, shown

# As in the marks for pauses that the server knows.
_LENGTH = r"(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(?P<unit>[mM]?[sS])"
_SECONDS = re.compile(rf"\s*{_LENGTH}\s*")
_PAUSE = re.compile(rf"\[[pP][aA][uU][sS][eE]:\s*(?P<length>{_LENGTH})\s*\]")
_NO_PAUSE = re.compile(r"\[pause\b[^\]]*\]", re.IGNORECASE)
_VOICE = re.compile(r"[a-z0-9][a-z0-9_-]*")
_SHOWN_CHARACTERS = 60


def read_lines(text: str, faults: Faults) -> Script | None:
    """The script in plain `text`, see `Script.load`; None if there is a fault."""
    reader = _Reader(faults)
    for number, written in enumerate(text.split("\n"), 1):
        if faults.full:
            return None
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

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._cast: dict[str, str] = {}
        self._gap: float | None = None
        # What is said, or seconds of silence, after the line of the file and the speaker.
        self._items: list[tuple[int, str, list[str] | float]] = []
        # What a line without a speaker is added to.
        self._said: list[str] | None = None
        self._strangers: set[str] = set()
        # Where the headers are; of speakers who are voices, what they say first.
        self._lines: dict[Place, int] = {}
        self._names: dict[Place, str] = {}

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
            self._faults.add(number, "a pause is written as [pause:1500ms] or [pause:1.5s]")
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
                    self._faults.add(number, "no silence is so long")
            elif text := "\n".join(content).strip():
                items.append(line(speaker, text))
            else:
                self._faults.add(number, f"{speaker:.{_SHOWN_CHARACTERS}} says nothing")
        if not self._items and not self._faults:
            what = "nobody says anything: write lines such as 'alba: Hello there.'"
            self._faults.add(1, what)
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
            source=self._source(),
        )

    def _source(self) -> Source:
        for index, (number, speaker, _) in enumerate(self._items):
            self._place(("items", index), number, speaker or "[pause]")
            if speaker and ("cast", speaker) not in self._lines:
                self._place(("cast", speaker), number, speaker)
        return Source(self._lines, self._names)

    def _place(self, place: Place, number: int, name: str) -> None:
        self._lines[place] = number
        self._names[place] = name

    def _begin(self, number: int, speaker: str, said: str) -> None:
        self._said = [said]
        self._items.append((number, speaker, self._said))
        if speaker in self._strangers or speaker in self._cast:
            return
        if self._cast:
            what = f"{shown(speaker)} is not in the cast ({listed(self._cast)})"
        elif not _VOICE.fullmatch(speaker):
            what = f"{shown(speaker)} is not the name of a voice"
        else:
            return
        self._strangers.add(speaker)
        what += f": write '@cast {speaker:.{_SHOWN_CHARACTERS}} = VOICE' above the first line, or,"
        what += f" if nobody is called {shown(speaker)}, indent this line to continue the last"
        self._faults.add(number, what)

    def _continue(self, number: int, written: str) -> None:
        if self._said is None:
            what = "nobody says this: a line begins with 'SPEAKER: ' or comes right after one"
            if written[0].isspace():
                what += "; an indented line always continues the last"
            self._faults.add(number, what)
            # One fault for all lines up to the next blank one.
            self._said = []
        self._said.append(written.strip())

    def _header(self, number: int, written: str) -> None:
        name, _, setting = written.partition(" ")
        name = name[:_SHOWN_CHARACTERS]
        if self._items:
            what = f"{name} has to be above the first line (indent it if it is text)"
            self._faults.add(number, what)
            return
        try:
            if name == "@cast":
                self._take_speaker(number, setting)
            elif name == "@gap":
                self._take_gap(number, setting.strip())
            else:
                self._faults.add(number, f"{name} is unknown: there are @cast and @gap")
        except ValueError as error:
            self._faults.add(number, str(error))

    def _take_speaker(self, number: int, setting: str) -> None:
        speaker, _, voice = (part.strip() for part in setting.partition("="))
        if not speaker or not voice or ":" in speaker:
            raise ValueError("write '@cast SPEAKER = VOICE', without a ':' in the speaker")
        if speaker in self._cast:
            raise ValueError(
                f"{shown(speaker)} is in the cast already, as {shown(self._cast[speaker])}"
            )
        self._cast[speaker] = voice
        self._place(("cast", speaker), number, f"@cast {speaker}")

    def _take_gap(self, number: int, setting: str) -> None:
        if self._gap is not None:
            raise ValueError("@gap is here a second time")
        try:
            self._gap = seconds_of(setting)
        except ValueError:
            raise ValueError(f"write '@gap 300ms' or '@gap 0.3s', not {shown(setting)}") from None
        self._place(("gap",), number, "@gap")
        if self._gap > MAX_GAP_SECONDS:
            raise ValueError(f"@gap is {self._gap:g} s, the most is {MAX_GAP_SECONDS:g} s")
