"""Spoken text as it grows."""

# A pause needs no comma behind these.
_MARKS = ".,;:!?…–—-"  # noqa: RUF001
# These follow a word at once, and make a comma before them needless.
_CLOSING = ".,;:!?…"
# Behind these a spoken word needs a blank.
_ATTACHED = ",;:)]}%"


class Output:
    """Adds words and signs to what is said so far, and keeps blanks and commas in order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._spoken = False  # the last word was not in the text
        self._pausing = False  # a pause comes before whatever is next
        self._dropped = False  # something was left out since the last word

    def copy(self, text: str) -> None:
        """Add text as it is: blanks, or something without any at its ends."""
        if text.isspace():
            if not self._pausing and not (self._dropped and self._last in ("", " ")):
                self._parts.append(text)
            return
        self._settle(text)
        if self._spoken and self._last.isalnum() and text[0].isalnum():
            self._parts.append(" ")
        self._parts.append(text)
        self._spoken = False

    def say(self, words: str) -> None:
        """Add words for something else."""
        self._settle(words)
        if self._last.isalnum() or (self._last and self._last in _ATTACHED):
            self._parts.append(" ")
        self._parts.append(words)
        self._spoken = True

    def drop(self) -> None:
        """Leave something out."""
        self._dropped = True

    def pause(self) -> None:
        """A pause instead of a mark, if there is something on either side of it."""
        self._strip()
        self._pausing = True

    def finish(self) -> str:
        """All of it."""
        if self._dropped:
            self._strip()
        return "".join(self._parts)

    @property
    def _last(self) -> str:
        """The last character; "" at the start."""
        return self._parts[-1][-1] if self._parts else ""

    def _settle(self, following: str) -> None:
        """Put in order what stands before `following`."""
        closed = following[0] in _CLOSING
        if self._dropped and closed:
            self._strip()
        if self._pausing and self._last and not closed:
            self._parts.append(" " if self._last in _MARKS else ", ")
        self._pausing = self._dropped = False

    def _strip(self) -> None:
        """Take trailing blanks away."""
        while self._parts and self._parts[-1].isspace():
            self._parts.pop()
