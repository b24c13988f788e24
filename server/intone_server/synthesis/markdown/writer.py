"""Cleaned text as it is put together, and to which characters the removed marks belong."""

from intone_server.synthesis.mapped import MappedText

# Ends a segment wherever it stands; in the output where a block ends whose mark was removed.
BREAK = "\u2029"


class Writer:
    """Collects output. Removed marks widen the ranges of the characters that they touch."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._mark = (-1, -1)  # removed just now, and opening: it belongs to what comes next

    @property
    def text(self) -> str:
        """What can be taken."""
        return "".join(self._texts)

    def copy(self, source: MappedText) -> None:
        """Add text as it is."""
        if source.text:
            self._texts.append(source.text)
            first = len(self._starts)
            self._starts += source.starts
            self._ends += source.ends
            if self._mark[1] == source.starts[0]:
                self._starts[first] = self._mark[0]
            self._mark = (-1, -1)

    def say(self, text: str, source: MappedText) -> None:
        """Add `text`, every character of which stands for the whole of `source`."""
        start, end = source.starts[0], source.ends[-1]
        self.copy(MappedText(text, [start] * len(text), [end] * len(text)))

    def open(self, mark: MappedText) -> None:
        """Leave out a mark that belongs to the text after it."""
        if mark.text:
            start, end = mark.starts[0], mark.ends[-1]
            self._mark = (self._mark[0] if self._mark[1] == start else start, end)

    def close(self, mark: MappedText) -> None:
        """Leave out a mark that belongs to the text before it."""
        if mark.text and self._ends and self._ends[-1] == mark.starts[0]:
            self._ends[-1] = mark.ends[-1]

    def take(self, *, all_but: int) -> MappedText:
        """What was added since, but for the last `all_but` code points: a mark may close them."""
        text = self.text
        count = max(len(text) - all_but, 0)
        taken = MappedText(text[:count], self._starts[:count], self._ends[:count])
        self._texts = [text[count:]]
        del self._starts[:count], self._ends[:count]
        return taken
