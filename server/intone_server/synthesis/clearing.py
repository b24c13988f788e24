"""How a timeline is emptied before its end: what becomes of its parts, and of their sound."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from intone_server.audio.encoding import NOTHING, Encoded
from intone_server.errors import IntoneError
from intone_server.synthesis.events import Event, Finished, Flushed, Outcome, SegmentKind
from intone_server.synthesis.output import Output
from intone_server.synthesis.part import Part


@dataclass(slots=True)
class Dropped:
    """What was on a timeline, in its order.

    `parts` are those whose end is to be told, `events` what must still be sent, `untouched` the
    number of parts of which nothing was sent.
    """

    parts: list[Part] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    discarded_samples: int = 0
    untouched: int = 0


def drop(
    items: Iterable[Part | Event | IntoneError],
    outcome: Outcome,
    error: IntoneError | None,
    made_samples: Callable[[Part], int],
) -> Dropped:
    """End all parts with `outcome`, those apart that were over. `made_samples` of a part are at the
    stream's rate."""
    dropped = Dropped()
    lost_audio = False
    for item in items:
        if isinstance(item, Part):
            lost = 0 if item.all_sent else max(0, made_samples(item) - item.sent_samples)
            dropped.discarded_samples += lost
            lost_audio = lost_audio or bool(lost) or item.outcome is None
            item.drop(outcome, error, lost=bool(lost))
            if not item.sent_samples and item.outcome is outcome:
                dropped.untouched += 1
            if item.started or item.outcome is not outcome:
                dropped.parts.append(item)
        elif isinstance(item, Flushed):
            dropped.events.append(Flushed(item.id, 0, cleared=lost_audio or item.cleared))
        elif not isinstance(item, Finished | IntoneError):
            dropped.events.append(item)
    return dropped


def last_sound(output: Output, head: object, sounding: Part | None) -> tuple[Encoded, Part | None]:
    """What is still heard before a `Clear` takes effect, and the part that it belongs to: nothing
    clicks, and nothing that the encoder holds comes up after it.

    `head` is first on the timeline, `sounding` the part of the last chunk that was sent.
    """
    if sounding is None:  # whatever the encoder holds, nobody has heard a byte of it
        output.restart()
        if isinstance(head, Part):
            head.sent_samples = 0
        return NOTHING, None
    part = head if isinstance(head, Part) and head.announced else sounding
    cuts = part.kind is not SegmentKind.SILENCE and part.sent_samples and not part.all_sent
    return (output.cut(part) if cuts else output.settle()), part
