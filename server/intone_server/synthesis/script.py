"""A script: the items of one timeline, checked, with every default resolved."""

import asyncio
import enum
from collections.abc import Callable
from dataclasses import dataclass

from intone_server.audio import Samples
from intone_server.errors import InvalidRequest, Reason, Violation
from intone_server.synthesis.events import ItemRef
from intone_server.synthesis.inline_pauses import InlinePause
from intone_server.synthesis.manuscript import WholeText
from intone_server.synthesis.planning import pieces
from intone_server.synthesis.segmenter import Segment
from intone_server.synthesis.speech import SpeechConfig, estimated_seconds

# Of a script, those that are repeated too: hours of sentences. Each takes a few kB from the start.
MAX_SEGMENTS = 5_000


class OnItemFailure(enum.Enum):
    """What takes the place of a segment that failed."""

    SKIP = "skip"
    SILENCE = "silence"  # as long as it was estimated to be
    ABORT = "abort"  # the end of the call, with its error


@dataclass(frozen=True, slots=True)
class SpeechItem:
    """Text, with the voice, the sampling and the seed that are its own."""

    text: WholeText
    config: SpeechConfig


@dataclass(frozen=True, slots=True)
class SilenceItem:
    """Exact silence, at the stream's rate."""

    samples: int


@dataclass(frozen=True, slots=True)
class ReuseItem:
    """The audio of an earlier item, which is no repeat itself."""

    index: int


@dataclass(frozen=True, slots=True)
class AudioItem:
    """Audio from the client: shape (n,), at the stream's rate."""

    samples: Samples


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a script."""

    ref: ItemRef
    content: SpeechItem | SilenceItem | ReuseItem | AudioItem


@dataclass(frozen=True, slots=True)
class Script:
    """What a dialogue says. `config` is that of the stream; `gap_samples` at its rate are between
    two items that are heard."""

    config: SpeechConfig
    items: tuple[Item, ...]
    gap_samples: int
    on_item_failure: OnItemFailure
    max_concurrency: int


# Of a line: what is spoken, and the silence in it. Nothing for other items.
Pieces = list[Segment | InlinePause]


async def plan_script(
    script: Script, tell: Callable[[str], None], *, max_reused_seconds: float
) -> list[Pieces]:
    """The segments of each item, before anything is spoken. `tell` hears of what will not be done
    as it was asked for.

    Raises InvalidRequest if they are more than MAX_SEGMENTS, or if more than `max_reused_seconds`
    of speech would be kept to be reused.
    """
    planned: list[Pieces] = []
    count = 0
    for item in script.items:
        found: Pieces = []
        if isinstance(item.content, SpeechItem):
            told = _naming(item.ref, tell)
            for piece in pieces(item.content.text, item.content.config, told):
                found.append(piece)
                await asyncio.sleep(0)  # others first: a long script takes seconds
        planned.append(found)
        repeated = planned[item.content.index] if isinstance(item.content, ReuseItem) else found
        count += max(1, len(repeated))
    faults = []
    if count > MAX_SEGMENTS:
        faults.append(f"make {count:,} segments, limit {MAX_SEGMENTS:,}")
    reused = {item.content.index for item in script.items if isinstance(item.content, ReuseItem)}
    seconds = sum(
        estimated_seconds(piece.spoken_text)
        for index in reused
        for piece in planned[index]
        if isinstance(piece, Segment)
    )
    if seconds > max_reused_seconds:
        faults.append(f"reuse about {seconds:,.0f} s of speech, limit {max_reused_seconds:g} s")
    if faults:
        raise InvalidRequest(Reason.BAD_CONFIG, [Violation("items", fault) for fault in faults])
    return planned


def _naming(item: ItemRef, tell: Callable[[str], None]) -> Callable[[str], None]:
    return lambda message: tell(f"items[{item.index}]: {message}")
