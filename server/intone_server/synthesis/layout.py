"""A script as parts of a timeline: each item with its place before anything is spoken."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from intone_server.synthesis.events import ItemRef, Outcome, SegmentKind
from intone_server.synthesis.inline_pauses import InlinePause
from intone_server.synthesis.part import Part, Silence
from intone_server.synthesis.script import (
    AudioItem,
    Item,
    Pieces,
    ReuseItem,
    Script,
    SilenceItem,
    SpeechItem,
)
from intone_server.synthesis.segmenter import CommitReason, Segment
from intone_server.synthesis.speech import SpeechConfig, segment_seed

OnChange = Callable[[Part], None]


@dataclass(slots=True)
class LaidItem:
    """The parts of an item, the gap before it if there may be one, and the items that repeat it or
    that it repeats."""

    ref: ItemRef
    is_pause: bool
    gap: Part | None
    parts: list[Part]
    original: "LaidItem | None"
    repeats: list["LaidItem"] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether all of it was made."""
        return all(part.outcome is not None for part in self.parts)

    @property
    def is_heard(self) -> bool | None:
        """Whether there is sound of it; None: not known yet."""
        if any(part.made_samples or part.unsent_samples for part in self.parts):
            return True
        return False if self.is_over else None


class Layout:
    """The items of a script in order, and all their parts, `segment` being the index of each.

    Gaps depend on what is heard and repeats on what was made: `settle` and `repeat` are to be
    called when that is known.
    """

    def __init__(self, script: Script, pieces: Sequence[Pieces], on_change: OnChange) -> None:
        """`pieces` are those of `plan_script`; `on_change` is called for what is spoken."""
        self.items: list[LaidItem] = []
        self.parts: list[Part] = []
        self._gap_samples = script.gap_samples
        self._on_change = on_change
        self._repeated = {
            item.content.index for item in script.items if isinstance(item.content, ReuseItem)
        }
        self._unsettled = 0  # the first item of which it is not known whether it is heard
        self._follows_sound = False  # it does, with no pause between
        for item, found in zip(script.items, pieces, strict=True):
            self._lay(item, found)
        for each in self.items:
            self.repeat(each)
        self.settle()

    def settle(self) -> None:
        """Put the gaps that are certain now between items that are heard; pauses take the place of
        the gaps beside them.

        What was made before its turn may still be lost with its worker: it counts when its turn
        has come.
        """
        while self._unsettled < len(self.items):
            item = self.items[self._unsettled]
            before = self.items[self._unsettled - 1] if self._unsettled else None
            heard = item.is_heard
            if heard is None or not (item.is_over or before is None or before.parts[-1].closed):
                return
            if item.gap is not None:
                if heard and self._follows_sound:
                    item.gap.be_silent(self._gap_samples)
                else:
                    item.gap.end_with(Outcome.SKIPPED)
            if heard:
                self._follows_sound = not item.is_pause
            self._unsettled += 1

    def repeat(self, item: LaidItem) -> None:
        """If all of the item was made, give it to those that repeat it; nothing if it failed."""
        if not item.repeats or not item.is_over:
            return
        failed = any(part.outcome is Outcome.FAILED for part in item.parts)
        for part in item.parts:
            if part.kept:  # one array for all of them
                part.kept = [np.concatenate(part.kept)]
        for repeat in item.repeats:
            for part, original in zip(repeat.parts, item.parts, strict=True):
                if failed:
                    part.end_with(Outcome.SKIPPED)
                else:
                    part.repeat(original)
        item.repeats.clear()
        for part in item.parts:
            part.kept = None

    def _lay(self, item: Item, found: Pieces) -> None:
        is_pause = isinstance(item.content, SilenceItem)
        gap = None
        if self._gap_samples and self.items and not is_pause and not self.items[-1].is_pause:
            gap = self._pending_gap()
        parts = []
        for part in self._parts_of(item, found):
            part.item = item.ref
            parts.append(part)
            self.parts.append(part)
        parts[-1].ends_item = True
        original = self.items[item.content.index] if isinstance(item.content, ReuseItem) else None
        laid = LaidItem(item.ref, is_pause, gap, parts, original)
        if original is not None:
            original.repeats.append(laid)
        self.items.append(laid)

    def _pending_gap(self) -> Part:
        gap = Part(
            segment=len(self.parts),
            kind=SegmentKind.SILENCE,
            start=0,
            end=0,
            text="",
            seed=0,
            reason=CommitReason.PAUSE,
        )
        self.parts.append(gap)
        return gap

    def _parts_of(self, item: Item, found: Pieces) -> Iterator[Part]:
        """Each is in `parts` before the next one is asked for."""
        keep = item.ref.index in self._repeated
        match item.content:
            case SpeechItem(config=config):
                spoken = 0
                for piece in found or [_nothing()]:
                    if isinstance(piece, InlinePause):
                        samples = round(piece.seconds * config.sample_rate_hertz)
                        silence = Silence(samples, piece.start, piece.end)
                        yield Part.silence(silence, len(self.parts))
                    else:
                        yield self._speech(piece, config, spoken, keep=keep)
                        spoken += 1
            case SilenceItem(samples=samples):
                yield Part.silence(Silence(samples, 0, 0), len(self.parts))
            case AudioItem(samples=samples):
                yield Part.sound(samples, len(self.parts), keep=keep)
            case ReuseItem(index=index):
                for original in self.items[index].parts:
                    yield Part.repeated(original, len(self.parts))

    def _speech(self, segment: Segment, config: SpeechConfig, spoken: int, *, keep: bool) -> Part:
        seed = segment_seed(config.seed, spoken)
        part = Part.speech(segment, len(self.parts), config, self._on_change, seed=seed)
        part.kept = [] if keep else None
        return part


def _nothing() -> Segment:
    """Of a line of which the text options leave nothing."""
    return Segment(0, 0, "", "", CommitReason.END_OF_INPUT, speakable=False, paragraph=False)
