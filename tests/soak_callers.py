"""Callers of a soak: each does one thing after the other, and checks all that it hears."""

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import grpc
import numpy as np

from intone.v1 import tts_pb2
from intone.v1.tts_pb2_grpc import TextToSpeechServiceStub
from live_stream import LiveStream, Request, check_end, check_events

TEXTS = [
    "Hello there, how are you today?",
    "It was a bright cold day in April.",
    "The clocks were striking thirteen.",
    "One, two, three, four, five, six.",
    "The dog does not mind the quick brown fox.",
]
VOICES = ["anna", "bert"]
# The same script with the same seed gives the same samples to within a step of 16 bits.
STEP = 1
# What callers do, and how often of a hundred times.
HABITS = {"listen": 55, "text": 10, "file": 5, "cancel": 10, "clear": 10, "slow": 10}
# A slow caller waits so long after each message.
SLOW_SECONDS = 0.05

Reference = dict[tuple[str, str], np.ndarray]


@dataclass
class Tally:
    """What happened, of all callers together. `faults` are what should not have."""

    calls: Counter[str] = field(default_factory=Counter)
    segments_checked: int = 0
    samples_checked: int = 0
    largest_difference: int = 0
    faults: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def options(*, retries: bool = False) -> list[tuple[str, int]]:
    """Of a connection of its own, on which nothing is tried twice."""
    return [("grpc.enable_retries", int(retries)), ("grpc.use_local_subchannel_pool", 1)]


def config(voice: str) -> tts_pb2.SpeechConfig:
    """Each text is a segment of its own, and told."""
    sampling = tts_pb2.Sampling(temperature=0.0)
    return tts_pb2.SpeechConfig(voice=voice, sampling=sampling, segment_events=True)


def speak_alone(address: str) -> Reference:
    """What each text sounds like when nobody else speaks."""
    spoken: Reference = {}
    with grpc.insecure_channel(address, options()) as channel:
        stub = TextToSpeechServiceStub(channel)
        for voice in VOICES:
            for text in TEXTS:
                request = tts_pb2.SynthesizeTextRequest(text=text, config=config(voice))
                data = b"".join(r.event.audio.data for r in stub.SynthesizeText(request))
                spoken[voice, text] = np.frombuffer(data, "<i2")
    return spoken


class Caller:
    """Calls until `over` is set."""

    def __init__(
        self, address: str, reference: Reference, tally: Tally, over: threading.Event, seed: int
    ) -> None:
        self._reference = reference
        self._tally = tally
        self._over = over
        self._draw = random.Random(seed)
        self._channel = grpc.insecure_channel(address, options())
        self._stub = TextToSpeechServiceStub(self._channel)

    def run(self) -> None:
        """Returns at the end of the call in which `over` was set."""
        with self._channel:
            while not self._over.is_set():
                (habit,) = self._draw.choices([*HABITS], [*HABITS.values()])
                try:
                    getattr(self, f"_{habit}")()
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                    with self._tally.lock:
                        self._tally.faults.append(f"{habit}: {type(error).__name__}: {error}")
                with self._tally.lock:
                    self._tally.calls[habit] += 1

    def _listen(self, slow_seconds: float = 0.0) -> None:
        stream, voice = self._open()
        said = self._say_some(stream)
        stream.half_close()
        while slow_seconds and stream.code is None:
            stream.reading.set()
            time.sleep(slow_seconds / 10)
            stream.reading.clear()
            time.sleep(slow_seconds)
        stream.end()
        assert stream.code is grpc.StatusCode.OK, stream.code
        check_events(stream)
        check_end(stream)
        assert self._check(stream.events, voice) == said

    def _slow(self) -> None:
        self._listen(SLOW_SECONDS)

    def _text(self) -> None:
        voice, text = self._draw.choice(VOICES), self._draw.choice(TEXTS)
        request = tts_pb2.SynthesizeTextRequest(text=text, config=config(voice))
        events = [response.event for response in self._stub.SynthesizeText(request)]
        assert self._check(events, voice) == 1

    def _file(self) -> None:
        voice, text = self._draw.choice(VOICES), self._draw.choice(TEXTS)
        request = tts_pb2.SynthesizeFileRequest(text=text, config=config(voice))
        request.config.format.encoding = tts_pb2.AUDIO_ENCODING_PCM_S16LE
        self._compare(self._stub.SynthesizeFile(request).audio, voice, text)

    def _cancel(self) -> None:
        stream, _ = self._open()
        self._say_some(stream)
        self._await_audio(stream)
        stream.cancel()
        stream.end()
        assert stream.code in {grpc.StatusCode.CANCELLED, grpc.StatusCode.OK}, stream.code
        check_events(stream)

    def _clear(self) -> None:
        stream, voice = self._open()
        self._say_some(stream)
        self._await_audio(stream)
        stream.clear(None)
        said = self._say_some(stream)
        stream.half_close()
        stream.end()
        assert stream.code is grpc.StatusCode.OK, stream.code
        check_events(stream)
        check_end(stream)
        assert self._check([e for e in stream.events if e.epoch], voice) == said

    def _open(self) -> tuple[LiveStream, str]:
        voice = self._draw.choice(VOICES)
        stream = LiveStream(self._channel)
        stream.configure(config(voice))
        return stream, voice

    def _say_some(self, stream: LiveStream) -> int:
        """Some texts, each a segment; returns how many."""
        texts = self._draw.choices(TEXTS, k=self._draw.randint(1, 3))
        for text in texts:
            stream.text(text)
            stream.flush()
            stream.send(Request(playback=tts_pb2.PlaybackReport(played_samples=0)))
        return len(texts)

    def _await_audio(self, stream: LiveStream) -> None:
        """Of the first segment, or the end of the stream."""
        while stream.code is None and not any(e.HasField("audio") for e in list(stream.events)):
            time.sleep(0.005)

    def _check(self, events: list[tts_pb2.SpeechEvent], voice: str) -> int:
        """How many segments are complete; all of those are what they are when spoken alone."""
        texts = {
            e.segment_started.segment: e.segment_started.text
            for e in events
            if e.HasField("segment_started")
        }
        audio: dict[int, bytes] = dict.fromkeys(texts, b"")
        for event in events:
            if event.HasField("audio"):
                audio[event.audio.segment] += event.audio.data
        complete = 0
        for event in events:
            ended = event.segment_finished
            if not event.HasField("segment_finished") or ended.segment not in texts:
                continue
            assert ended.outcome in {
                tts_pb2.SEGMENT_OUTCOME_COMPLETE,
                tts_pb2.SEGMENT_OUTCOME_NO_END,
            }, ended
            self._compare(audio[ended.segment], voice, texts[ended.segment])
            complete += 1
        return complete

    def _compare(self, data: bytes, voice: str, text: str) -> None:
        heard, alone = np.frombuffer(data, "<i2"), self._reference[voice, text]
        assert len(heard) == len(alone), f"{len(heard)} samples instead of {len(alone)}: {text}"
        difference = int(np.abs(heard.astype(int) - alone).max())
        with self._tally.lock:
            self._tally.segments_checked += 1
            self._tally.samples_checked += len(heard)
            self._tally.largest_difference = max(self._tally.largest_difference, difference)
        assert difference <= STEP, f"samples differ by {difference}: {text}"
