"""Text that is changed on its way to the model, with where each character of it came from."""

from dataclasses import dataclass, field
from typing import Self


@dataclass(slots=True)
class MappedText:
    """`text[i]` stands for the code points `starts[i]` up to `ends[i]` of the client's text.

    Both rise along the text; what was left out lies between the end of one character and the start
    of the next.
    """

    text: str = ""
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    @classmethod
    def verbatim(cls, text: str, position: int) -> Self:
        """Text as the client sent it, from code point `position` of the stream on."""
        after = position + len(text)
        return cls(text, list(range(position, after)), list(range(position + 1, after + 1)))

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, part: slice) -> "MappedText":
        return MappedText(self.text[part], self.starts[part], self.ends[part])

    def __add__(self, other: "MappedText") -> "MappedText":
        return MappedText(
            self.text + other.text, self.starts + other.starts, self.ends + other.ends
        )

    def append(self, text: str, start: int, end: int) -> None:
        """Add text of which every character stands for the same range."""
        self.text += text
        self.starts += [start] * len(text)
        self.ends += [end] * len(text)
