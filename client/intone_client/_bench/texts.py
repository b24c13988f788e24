"""What the callers say: texts, and the pieces in which an LLM writes them. Pure."""

import re
from collections.abc import Sequence
from random import Random

# Neutral, without digits and names, so that every voice and every option of the text takes them.
SENTENCES = (
    "Yes, that works for me.",
    "One moment, please.",
    "The meeting has moved to the small room.",
    "Your order left the warehouse this morning.",
    "The train to the coast leaves from the second platform.",
    "I can read the list to you once more if you like.",
    "It rained all night, and the garden looks better for it.",
    "Please bring the form and something to write with.",
    "The library closes early on the last day of the month.",
    "She put the kettle on and looked for the blue cup.",
    "There are two ways to get there, and both of them are slow.",
    "The password can be changed at the bottom of the page.",
    "We have a table for four near the window.",
    "Turn left at the bakery, then follow the river for a while.",
    "Nobody remembered who had planted the tree in front of the school.",
    "The new timetable takes effect next week.",
    "If the light stays red, switch the device off and wait for a minute.",
    "Thank you for calling, and have a good evening.",
    "The soup needs a little more salt and a lot more time.",
    "A storm is expected in the north, while the south stays dry and mild.",
)

# Characters, both ends included: an answer of one sentence, and one of a paragraph.
_RANGES = {"short": (20, 60), "long": (300, 800)}
_MIXED_SHORT_SHARE = 0.7
_RANGE = re.compile(r"(\d+)-(\d+)")
_LEAST_CHARACTERS = 10  # below it there is no room for a word
_MOST_CHARACTERS = 10_000  # what a server takes as one text, unless it is told otherwise

# Tokens of common LLMs have about four characters in English.
_PIECE_CHARACTERS = (1, 7)


class TextLengths:
    """A distribution of lengths in characters: "short", "long", "mixed" or "MIN-MAX".

    Lengths are uniform in 20 to 60 (short), 300 to 800 (long), MIN to MAX; of "mixed", seven of
    ten are short and three are long. Raises ValueError for another name and an empty range.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        found = _RANGE.fullmatch(name)
        if found:
            low, high = int(found[1]), int(found[2])
            if not _LEAST_CHARACTERS <= low <= high <= _MOST_CHARACTERS:
                raise ValueError(
                    f"text lengths are {name}, allowed is MIN-MAX with "
                    f"{_LEAST_CHARACTERS} <= MIN <= MAX <= {_MOST_CHARACTERS}"
                )
            self._choices = [(1.0, (low, high))]
        elif name == "mixed":
            self._choices = [
                (_MIXED_SHORT_SHARE, _RANGES["short"]),
                (1 - _MIXED_SHORT_SHARE, _RANGES["long"]),
            ]
        elif name in _RANGES:
            self._choices = [(1.0, _RANGES[name])]
        else:
            raise ValueError(f"text lengths are {name!r}, known are short, long, mixed, MIN-MAX")

    def draw(self, random: Random) -> int:
        """One length."""
        weights, ranges = zip(*self._choices, strict=True)
        return random.randint(*random.choices(ranges, weights)[0])


def make_text(sentences: Sequence[str], length: int, random: Random) -> str:
    """`sentences` in random order, cut after a word: up to `length` characters, and less than that
    by no more than the word that no longer fits. Ends with a full stop where it was cut.

    A first word that is longer than `length` is cut itself.
    """
    text = random.choice(sentences)
    while len(text) < length:
        text += " " + random.choice(sentences)
    if len(text) == length:
        return text
    room = length - 1
    kept = text[:room]
    if not text[room].isspace():
        kept = kept.rpartition(" ")[0] or kept
    return kept.rstrip(" ,.;:") + "."


def read_texts(content: str) -> list[str]:
    """The texts of a file: a line each, blank lines left out. Raises ValueError without any."""
    texts = [line.strip() for line in content.splitlines() if line.strip()]
    if not texts:
        raise ValueError("there is no text in it")
    return texts


def cut_pieces(text: str, random: Random) -> list[str]:
    """`text` in pieces of one to seven characters, four on average, like an LLM's tokens."""
    pieces = []
    start = 0
    while start < len(text):
        end = start + random.randint(*_PIECE_CHARACTERS)
        pieces.append(text[start:end])
        start = end
    return pieces
