"""Streams as a random client would use them: a hypothesis state machine over the wire.

Each example is one session with one long-lived server. `python -m sessions_machine 10000` runs so
many of them, with a server of its own.
"""

import argparse
from collections import Counter
from typing import Any, ClassVar

import grpc
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from intone.v1 import status_pb2, tts_pb2
from intone.v1.status_pb2_grpc import StatusServiceStub
from live_stream import SAMPLE_BYTES, LiveStream, Request, check_end, check_events, check_samples
from processes import running_server, wait_for

SENTENCES = [
    "Hello there. ",
    "How are you today? ",
    "Dr. Lee paid 1,234.56 at 9:30 a.m. ",
    "One, two; three: ",
    "Zoë 😀 said “no”.",
    "\n\n",
    " ",
    "",
    "…---…",
    "word",
    "日本語です。",
    "a\u0301\u200d\ufeff",
]
# Without what are orders for the fake engine.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="@")
PIECES = st.one_of(st.sampled_from(SENTENCES), st.text(CHARACTERS, max_size=60))
STEPS = 15  # of one session


def seconds(value: float) -> Any:
    """A Duration, as protobuf takes it for a field."""
    return {"nanos": int(value % 1 * 1e9), "seconds": int(value)}


CONFIGS = st.builds(
    tts_pb2.SpeechConfig,
    voice=st.sampled_from(["", "anna", "bert"]),
    format=st.builds(
        tts_pb2.AudioFormat,
        encoding=st.sampled_from([0, *SAMPLE_BYTES]),
        sample_rate_hertz=st.sampled_from([0, 0, 0, 8000, 48000]),
    ),
    segmentation=st.builds(
        tts_pb2.Segmentation,
        mode=st.sampled_from([0, 1, 2, 3]),
        max_characters=st.sampled_from([0, 20, 50]),
        first_max_characters=st.sampled_from([0, 10]),
        max_text_delay=st.sampled_from([None, seconds(0.05)]),
        segment_gap=st.sampled_from([None, seconds(0.1)]),
    ),
    queue_events=st.booleans(),
    gain_db=st.sampled_from([0.0, 0.0, -6.0, 12.0]),
)


class Sessions(RuleBasedStateMachine):
    """`channel` is to the server; `codes` counts how sessions ended."""

    channel: ClassVar[grpc.Channel]
    codes: ClassVar[Counter[str]] = Counter()

    @initialize(config=st.none() | CONFIGS)
    def begin(self, config: tts_pb2.SpeechConfig | None) -> None:
        self.expected = {grpc.StatusCode.OK}
        self.is_open = True
        self.config = tts_pb2.SpeechConfig() if config is None else config
        self.config.segment_events = True
        self.stream = LiveStream(self.channel)
        self.stream.configure(self.config)

    @precondition(lambda self: self.is_open)
    @rule(piece=PIECES)
    def say(self, piece: str) -> None:
        self.stream.text(piece)

    @precondition(lambda self: self.is_open)
    @rule(pieces=st.lists(PIECES, min_size=2, max_size=10))
    def say_many(self, pieces: list[str]) -> None:
        for piece in pieces:
            self.stream.text(piece)

    @precondition(lambda self: self.is_open)
    @rule()
    def flush(self) -> None:
        self.stream.flush()

    @precondition(lambda self: self.is_open)
    @rule(heard=st.none() | st.integers(0, 1 << 40))
    def clear(self, heard: int | None) -> None:
        self.stream.clear(heard)

    @precondition(lambda self: self.is_open)
    @rule(played=st.integers(0, 1 << 40))
    def report(self, played: int) -> None:
        self.stream.send(Request(playback=tts_pb2.PlaybackReport(played_samples=played)))

    @precondition(lambda self: self.is_open)
    @rule(milliseconds=st.integers(1, 500))
    def pause(self, milliseconds: int) -> None:
        duration = seconds(milliseconds / 1000)
        self.stream.send(Request(pause=tts_pb2.Pause(duration=duration)))

    @precondition(lambda self: self.is_open)
    @rule(voice=st.sampled_from(["", "anna", "bert"]))
    def change_voice(self, voice: str) -> None:
        self.stream.send(Request(voice=voice))

    @rule()
    def stop_reading(self) -> None:
        self.stream.reading.clear()

    @rule()
    def go_on_reading(self) -> None:
        self.stream.reading.set()

    @precondition(lambda self: self.is_open)
    @rule(
        wrong=st.sampled_from(
            [
                (Request(config=tts_pb2.SpeechConfig()), grpc.StatusCode.FAILED_PRECONDITION),
                (Request(pause=tts_pb2.Pause()), grpc.StatusCode.INVALID_ARGUMENT),
                (Request(voice="nobody"), grpc.StatusCode.NOT_FOUND),
                (Request(), grpc.StatusCode.INVALID_ARGUMENT),
            ]
        )
    )
    def do_wrong(self, wrong: tuple[Request, grpc.StatusCode]) -> None:
        request, code = wrong
        self.stream.send(request)
        self.expected = {code}
        self.is_open = False

    @precondition(lambda self: self.is_open)
    @rule()
    def half_close(self) -> None:
        self.stream.half_close()
        self.is_open = False

    @precondition(lambda self: self.is_open)
    @rule()
    def cancel(self) -> None:
        self.stream.cancel()
        self.expected = {grpc.StatusCode.CANCELLED}
        self.is_open = False

    def teardown(self) -> None:
        if not hasattr(self, "stream"):
            return
        self.stream.end()
        assert self.stream.code in self.expected, self.stream.code
        self.codes[self.stream.code.name] += 1
        check_events(self.stream)
        if self.stream.code is grpc.StatusCode.OK:
            check_end(self.stream)
            form = self.config.format
            is_plain = form.encoding in (0, 1) and form.sample_rate_hertz in (0, 24_000)
            if is_plain and not self.config.gain_db:
                check_samples(self.stream)


def run_sessions(address: str, count: int) -> Counter[str]:
    """Run so many; returns how they ended. Fails with the smallest session that breaks a rule."""
    limits = settings(
        max_examples=count,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    options = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options) as channel:
        Sessions.channel, Sessions.codes = channel, Counter()
        run_state_machine_as_test(Sessions, settings=limits)  # type: ignore[no-untyped-call]
        status = StatusServiceStub(channel)

        def is_idle() -> bool:
            now = status.GetCapacity(status_pb2.GetCapacityRequest()).capacity
            return not (now.open_streams or now.replicas_busy or now.queue_depth)

        wait_for(is_idle, 30)
    return Sessions.codes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sessions", type=int)
    with running_server("--engine", "fake", "--replicas", "2") as server:
        print(dict(run_sessions(server.address, parser.parse_args().sessions)))
