"""One Synthesize stream that is driven by hand, and what its contract says of its events."""

import queue
import threading
from collections.abc import Iterator

import grpc

from fake_engine import FRAME, frame_value, frames_of
from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub

Request = tts_pb2.SynthesizeRequest
PATIENCE_SECONDS = 60.0
SAMPLE_BYTES = {
    tts_pb2.AUDIO_ENCODING_PCM_S16LE: 2,
    tts_pb2.AUDIO_ENCODING_PCM_F32LE: 4,
    tts_pb2.AUDIO_ENCODING_MULAW: 1,
    tts_pb2.AUDIO_ENCODING_ALAW: 1,
}


class LiveStream:
    """Sends what it is told; a thread of its own reads, as long as `reading` is set.

    `epochs` are the texts sent from one Clear to the next, `flushes` and `clears` the ids sent.
    """

    def __init__(self, channel: grpc.Channel) -> None:
        self.events: list[tts_pb2.SpeechEvent] = []
        self.epochs = [""]
        self.flushes: list[str] = []
        self.clears: list[str] = []
        self.code: grpc.StatusCode | None = None
        self.reading = threading.Event()
        self.reading.set()
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._call = TextToSpeechServiceStub(channel).Synthesize(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def configure(self, config: tts_pb2.SpeechConfig) -> None:
        self._requests.put(Request(config=config))

    def text(self, value: str) -> None:
        self.epochs[-1] += value
        self._requests.put(Request(text=value))

    def flush(self) -> None:
        self.flushes.append(f"flush {len(self.flushes)}")
        self._requests.put(Request(flush=tts_pb2.Flush(id=self.flushes[-1])))

    def clear(self, heard_samples: int | None) -> None:
        self.clears.append(f"clear {len(self.clears)}")
        self.epochs.append("")
        clear = tts_pb2.Clear(id=self.clears[-1], heard_samples=heard_samples)
        self._requests.put(Request(clear=clear))

    def send(self, request: Request) -> None:
        """Something that leaves the text alone."""
        self._requests.put(request)

    def half_close(self) -> None:
        self._requests.put(None)

    def cancel(self) -> None:
        self._call.cancel()

    def end(self) -> None:
        """Wait until it is over."""
        self.reading.set()
        self._requests.put(None)
        self._reader.join(PATIENCE_SECONDS)
        assert not self._reader.is_alive(), "the stream did not end"

    def _read(self) -> None:
        try:
            for response in self._call:
                self.events.append(response.event)
                self.reading.wait()
        except grpc.RpcError:
            pass
        self.code = self._call.code()


def check_events(stream: LiveStream) -> None:
    """What holds of any stream, up to where it was cut off."""
    events = stream.events
    assert [e.sequence for e in events] == list(range(1, len(events) + 1))
    if not events:
        return
    started = events[0].started
    assert events[0].HasField("started")
    sample_bytes = SAMPLE_BYTES[started.format.encoding]
    offset = epoch = 0
    for event in events:
        epoch += event.HasField("cleared")
        assert event.epoch == epoch
        if event.HasField("audio"):
            assert event.audio.sample_offset == offset
            assert len(event.audio.data) == sample_bytes * event.audio.sample_count > 0
            offset += event.audio.sample_count
        if event.HasField("flushed"):
            assert event.flushed.sample_offset == offset
    segments = [e.segment_started for e in events if e.HasField("segment_started")]
    assert [s.segment for s in segments] == sorted({s.segment for s in segments})
    for cleared, text in zip(_cleared(stream), stream.epochs, strict=False):
        assert cleared.text_spoken + cleared.text_unspoken == text


def check_end(stream: LiveStream) -> None:
    """What holds of a stream that ended with OK: everything was answered, and each character of
    the text behind the last Clear was spoken, or skipped, once."""
    events = stream.events
    finished = events[-1].finished
    assert finished.reason == tts_pb2.FINISH_REASON_END_OF_INPUT
    assert finished.stats.characters == sum(map(len, stream.epochs))
    assert [e.flushed.id for e in events if e.HasField("flushed")] == stream.flushes
    assert [c.id for c in _cleared(stream)] == stream.clears
    outcomes = {
        e.segment_finished.segment: e.segment_finished.outcome
        for e in events
        if e.HasField("segment_finished")
    }
    assert len(outcomes) == sum(e.HasField("segment_finished") for e in events)
    for started in _segments(stream):
        assert started.segment in outcomes
    text, base = "".join(stream.epochs), sum(map(len, stream.epochs[:-1]))
    covered = [0] * len(text)
    for started in _segments(stream):
        for place in range(started.span.start, started.span.end):
            covered[place] += 1
    assert max(covered, default=0) <= 1
    skipped = tts_pb2.SEGMENT_OUTCOME_SKIPPED in outcomes.values()
    for place in range(base, len(text)):
        known = covered[place] or text[place].isspace()
        known = known or (skipped and not text[place].isalnum())  # they are not announced
        assert known, f"{text[place]!r} at {place} of {text!r} was neither spoken nor skipped"
    assert stream.clears or tts_pb2.SEGMENT_OUTCOME_CLEARED not in outcomes.values()


def check_samples(stream: LiveStream) -> None:
    """Of a fake engine at its own rate, in 16 bits: no sample is lost, and none is another's."""
    audio = _audio_of_segments(stream)
    ended = {
        e.segment_finished.segment: e.segment_finished
        for e in stream.events
        if e.HasField("segment_finished")
    }
    for started in _segments(stream):
        if started.kind != tts_pb2.SEGMENT_KIND_SPEECH:
            continue
        if ended[started.segment].outcome != tts_pb2.SEGMENT_OUTCOME_COMPLETE:
            continue
        spoken = b"".join(
            round(frame_value(started.text, frame) * 32767).to_bytes(2, "little") * FRAME
            for frame in range(frames_of(started.text))
        )
        assert audio.get(started.segment, b"") == spoken, started.text


def _audio_of_segments(stream: LiveStream) -> dict[int, bytes]:
    audio: dict[int, bytes] = {}
    for event in stream.events:
        if event.HasField("audio"):
            segment = event.audio.segment
            audio[segment] = audio.get(segment, b"") + event.audio.data
    return audio


def _cleared(stream: LiveStream) -> list[tts_pb2.Cleared]:
    return [e.cleared for e in stream.events if e.HasField("cleared")]


def _segments(stream: LiveStream) -> Iterator[tts_pb2.SegmentStarted]:
    return (e.segment_started for e in stream.events if e.HasField("segment_started"))
