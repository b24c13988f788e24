"""A watch that remembers what it was told."""

from intone_server.errors import Reason
from intone_server.scheduling.generation import Priority
from intone_server.synthesis.watching import EndedSegment


class Recorder:
    def __init__(self) -> None:
        self.first_audios: list[float] = []
        self.chunks: list[tuple[float, float | None]] = []
        self.underruns = 0
        self.segments: list[EndedSegment] = []
        self.clears: list[float] = []

    @property
    def sent_seconds(self) -> float:
        return sum(seconds for seconds, _ in self.chunks)

    def admitted(self) -> None: ...

    def refused(self, reason: Reason) -> None: ...

    def voice_ready(self, began_at: float) -> None: ...

    def first_audio(self, seconds: float, priority: Priority) -> None:
        self.first_audios.append(seconds)

    def audio_sent(self, seconds: float, gap_seconds: float | None) -> None:
        self.chunks.append((seconds, gap_seconds))

    def underrun(self) -> None:
        self.underruns += 1

    def segment_ended(self, segment: EndedSegment) -> None:
        self.segments.append(segment)

    def cleared(self, stop_seconds: float) -> None:
        self.clears.append(stop_seconds)

    def ended(self, code: str) -> None: ...
