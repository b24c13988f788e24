"""What load there is: when calls begin and what they say, as a seed decides it. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from .texts import SENTENCES, TextLengths, cut_pieces, make_text


@dataclass(frozen=True, slots=True)
class Plan:
    """What load there is. Either `rate` (calls per second) or `streams` (conversations) is set.

    Calls begin within `duration` seconds; those that run then are waited for. `timeout` is the
    deadline of each. `tokens_per_second` None: whole texts by `SynthesizeText`; else `Synthesize`.
    """

    rate: float | None
    streams: int | None
    think: float
    duration: float
    seed: int
    tokens_per_second: float | None
    max_calls: int
    concurrency_limit: int
    timeout: float


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one call says: `pieces` of text, `piece_seconds` apart (0: all at once)."""

    pieces: tuple[str, ...]
    piece_seconds: float = 0.0

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.pieces)


class Texts:
    """What the calls say, drawn by `seed`.

    `own` are the user's texts, in the place of the built-in sentences. Without `lengths` each call
    says one of them, else as many as come to a length. `tokens_per_second` cuts texts into pieces
    that come at this pace; None and 0 leave them whole.
    """

    def __init__(
        self,
        seed: int,
        *,
        own: Sequence[str] = (),
        lengths: TextLengths | None = None,
        tokens_per_second: float | None = None,
    ) -> None:
        self._seed = seed
        self._sentences = own or SENTENCES
        self._lengths = lengths
        self._tokens_per_second = tokens_per_second or 0.0

    def utterance(self, *name: int) -> Utterance:
        """What the call of this name says: the same for the same seed, whatever was asked before.

        A name is the number of a call, or those of a conversation and its turn.
        """
        random = random_for(self._seed, "text", *name)
        if self._lengths is None:
            text = random.choice(self._sentences)
        else:
            text = make_text(self._sentences, self._lengths.draw(random), random)
        if not self._tokens_per_second:
            return Utterance((text,))
        return Utterance(tuple(cut_pieces(text, random)), 1 / self._tokens_per_second)


def arrivals(seed: int, rate: float, duration: float) -> Iterator[float]:
    """The times in [0, `duration`) at which calls begin: a Poisson process of `rate` per second.

    Its gaps are exponentially distributed with the mean 1 / `rate`, each independent of what came
    before. A longer duration goes on where a shorter one ends.
    """
    random = random_for(seed, "arrivals")
    at = random.expovariate(rate)
    while at < duration:
        yield at
        at += random.expovariate(rate)


def think_times(seed: int, stream: int, mean: float) -> Iterator[float]:
    """Endless pauses of one conversation in seconds: exponentially distributed, 0 for mean 0."""
    random = random_for(seed, "think", stream)
    while True:
        yield random.expovariate(1 / mean) if mean else 0.0


def random_for(seed: int, *name: str | int) -> Random:
    """A generator of its own for each name, so that no draw depends on the order of others."""
    return Random("/".join(map(str, (seed, *name))))  # noqa: S311 - for load, not for secrets
