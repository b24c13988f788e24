"""How far a dialogue is, on a terminal."""

import sys
from typing import Any

from intone.v1 import tts_pb2
from intone_client._show import seconds

_FORMAT = "{percentage:3.0f} %|{bar}| {desc}{remaining} left"


class DialogueProgress:
    """A bar on standard error, if that is a terminal. Its length is the audio that the server
    expects; what it has of each item counts as that item's share."""

    def __init__(self, *, quiet: bool) -> None:
        self._live = sys.stderr.isatty() and not quiet
        self._bar: Any = None
        self._expected: dict[int, float] = {}  # seconds, by item
        self._done = 0.0  # of whole items
        self._done_items = 0
        self._failed: set[int] = set()
        self._heard = 0.0  # of the one that is coming
        self._item = 0
        self._rate = 0

    def on_event(self, event: tts_pb2.SpeechEvent) -> None:
        """Take an event of the dialogue."""
        match event.WhichOneof("event"):
            case "started":
                self._rate = event.started.format.sample_rate_hertz
            case "queued" if event.queued.planned:
                self._expected[event.queued.item] = seconds(event.queued.estimated_audio)
            case "audio":
                self._heard += event.audio.sample_count / self._rate
                self._show()
            case "segment_finished":
                self._end(event.segment_finished)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _end(self, finished: tts_pb2.SegmentFinished) -> None:
        if finished.outcome == tts_pb2.SEGMENT_OUTCOME_FAILED:
            self._failed.add(finished.item)
        if finished.ends_item:
            self._item = finished.item + 1
            self._done += self._expected.get(finished.item, 0.0)
            self._done_items += 1
            self._heard = 0.0
            self._show()

    def _show(self) -> None:
        if not self._live:
            return
        if self._bar is None:
            from tqdm import tqdm  # here: few runs are on a terminal

            self._bar = tqdm(
                total=sum(self._expected.values()),
                bar_format=_FORMAT,
                leave=False,
                file=sys.stderr,
            )
        now = self._done + min(self._heard, self._expected.get(self._item, 0.0))
        failed = f"{len(self._failed)} failed, " if self._failed else ""
        items = f"{self._done_items} of {len(self._expected)} items, {failed}"
        self._bar.set_description_str(items, refresh=False)
        self._bar.update(max(0.0, now - self._bar.n))
