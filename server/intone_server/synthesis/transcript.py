"""Which text of a stream was heard: the bookkeeping behind `Cleared`."""

from intone_server.errors import InvalidRequest, Reason, Violation
from intone_server.synthesis.events import Outcome
from intone_server.synthesis.part import Part
from intone_server.synthesis.speech import estimated_seconds

# Text between two `Clear`s that a stream can have: an hour at four times real time, and more.
MAX_EPOCH_CHARACTERS = 1_000_000


class Transcript:
    """All text since the last `Clear`, and the parts that spoke it, in order."""

    def __init__(self, sample_rate_hertz: int, model_rate_hertz: int) -> None:
        self._rate = sample_rate_hertz
        self._model_rate = model_rate_hertz
        self._pieces: list[str] = []
        self._start = 0
        self._length = 0
        self._parts: list[Part] = []

    def push(self, text: str) -> None:
        """Text came from the client. Raises InvalidRequest if it is too much to remember."""
        if self._length + len(text) > MAX_EPOCH_CHARACTERS:
            raise InvalidRequest(
                Reason.TEXT_TOO_LONG,
                [
                    Violation(
                        "text",
                        f"the stream has {self._length + len(text):,} characters since its last "
                        f"clear, limit {MAX_EPOCH_CHARACTERS:,}",
                    )
                ],
            )
        self._length += len(text)
        self._pieces.append(text)

    def add(self, part: Part) -> None:
        """A spoken part was put on the timeline."""
        self._parts.append(part)

    def split(self, heard_samples: int) -> tuple[str, str, bool]:
        """Text heard and not heard by a listener at `heard_samples` of the stream's timeline.

        Also whether the split is an estimate inside a segment: in proportion to samples, at a word.
        """
        text = "".join(self._pieces)
        end, estimated = self._start, False
        for part in self._parts:
            if not part.announced:
                continue
            heard = min(heard_samples - part.sample_offset, part.sent_samples)
            if part.all_sent and heard == part.sent_samples:
                if part.outcome is not Outcome.FAILED:
                    end = part.end
                continue  # of a failed part nothing more will be heard; what follows may be
            if heard > 0:
                seconds = part.made_samples / self._model_rate
                if part.outcome not in (Outcome.COMPLETE, Outcome.NO_END):
                    seconds = max(seconds, estimated_seconds(part.text))
                whole = max(seconds * self._rate, heard)
                end = _heard_end(part, text[part.start - self._start :], heard / whole)
                estimated = True
            break
        return text[: end - self._start], text[end - self._start :], estimated

    def restart(self) -> None:
        """Begin a new epoch."""
        self._start += self._length
        self._length = 0
        self._pieces.clear()
        self._parts.clear()


def _heard_end(part: Part, text: str, fraction: float) -> int:
    """The code point up to which a part was heard whose text `text` begins with. Marks and the
    targets of links, which take no time to say, do not count."""
    if part.cleaned is None:
        return part.start + _word_end(text[: part.end - part.start], fraction)
    cut = _word_end(part.cleaned.text, fraction)
    return part.cleaned.ends[cut - 1] if cut else part.start


def _word_end(text: str, fraction: float) -> int:
    """Where the last whole word ends within the first `fraction` of `text`.

    Text without spaces, as in Chinese or Japanese, is cut between characters.
    """
    cut = min(len(text), int(fraction * len(text)))
    if cut == len(text) or text[cut].isspace() or not any(map(str.isspace, text)):
        return cut
    return max((i for i in range(cut) if text[i].isspace()), default=0)
