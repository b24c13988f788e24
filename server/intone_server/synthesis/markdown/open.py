"""Emphasis that is open at some place of a text."""

from dataclasses import dataclass

# More is no text that anybody wrote.
_MAX_OPEN = 32


@dataclass(slots=True)
class _Run:
    """A run of `length` opening marks, of which `left` are not closed."""

    mark: str
    length: int
    left: int
    closes: bool  # it could have closed something as well


class OpenMarks:
    """The runs of `*`, `_` and `~` that wait for marks that close them, the innermost last."""

    def __init__(self) -> None:
        self.marks: list[_Run] = []

    def add(self, mark: str, length: int, left: int, closes: bool) -> None:
        """Open what `left` of `length` marks open."""
        self.marks = self.marks[-_MAX_OPEN + 1 :]
        self.marks.append(_Run(mark, length, left, closes))

    def close(self, mark: str, length: int, opens: bool) -> int:
        """How many of a run of `length` marks, which `opens` as well or not, close something.

        What was opened inside of what they close is closed with it. The rule of three is
        https://spec.commonmark.org/0.31.2/#emphasis-and-strong-emphasis, 9 and 10.
        """
        left = length
        for at in reversed(range(len(self.marks))):
            run = self.marks[at]
            is_odd = (run.length + length) % 3 == 0 and length % 3 != 0
            if run.mark != mark or (is_odd and (run.closes or opens)):
                continue
            count = min(run.left, left)
            run.left -= count
            left -= count
            del self.marks[at + bool(run.left) :]
            if not left:
                break
        return length - left
