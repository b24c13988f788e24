"""What is compared, behind one interface. Each is a process on loopback or on pipes."""

import contextlib
import http.client
import json
import subprocess
import time
import urllib.parse
from typing import Any, Protocol

import grpc
import psutil
from google.protobuf import duration_pb2

from benchmarks.listener import Arrival, Call, Segment
from benchmarks.model import SAMPLE_RATE_HERTZ
from intone.v1 import tts_pb2, tts_pb2_grpc

BYTES_PER_SECOND = 2 * SAMPLE_RATE_HERTZ
WAV_HEADER_BYTES = 44
# `pocket-tts serve` adds 200 ms of silence, which nobody has computed.
WAV_TAIL_BYTES = BYTES_PER_SECOND // 5
LOAD_SECONDS = 120.0  # longest wait for a model to be loaded
CALL_SECONDS = 300.0  # longest call

LIBRARY = "library"
POCKET_SERVE = "pocket-tts serve"
FIFO = "intone FIFO"
INTONE = "intone"
# In the order of tables and plots.
CONTENDERS = (LIBRARY, POCKET_SERVE, FIFO, INTONE)


class Refused(Exception):
    """The server has no place for this call."""


class Contender(Protocol):
    """Something that speaks. `speak` may be called by several threads if `serves_many`. If it
    `has_front`, its first process has no model, and its children have."""

    name: str
    process: psutil.Process
    serves_many: bool
    has_front: bool

    def speak(self, text: str, *, first_only: bool = False) -> Call:
        """The call, on the monotonic clock, with its audio as it arrived. Raises Refused.

        `first_only` cancels the call at its first audio, where that stops the model.
        """


class Bare:
    """`generate_audio_stream`, in one process without any server."""

    name = LIBRARY
    serves_many = False
    has_front = False

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._popen = process
        self.process = psutil.Process(process.pid)

    def speak(
        self, text: str, *, first_only: bool = False, decoder_frames: int = 0, threads: int = 1
    ) -> Call:
        """With so many frames at most in one call of the decoder (0: all that wait), and so many
        threads of torch for one operation; the defaults are the library's."""
        assert self._popen.stdin is not None
        request = {
            "text": text,
            "first_only": first_only,
            "decoder_frames": decoder_frames,
            "threads": threads,
        }
        self._popen.stdin.write(json.dumps(request) + "\n")
        self._popen.stdin.flush()
        answer = self._answer()
        rate = answer["rate"]
        arrivals = tuple(Arrival(at, samples / rate) for at, samples in answer["items"])
        return Call(answer["started_at"], arrivals)

    def _answer(self) -> dict[str, Any]:
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        if not line:
            raise RuntimeError("the library's process has ended; see its log")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def wait_until_ready(self) -> None:
        """Return once the model is loaded."""
        self._answer()


class PocketServe:
    """`pocket-tts serve`: a WAV file over HTTP."""

    name = POCKET_SERVE
    serves_many = True
    has_front = False

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._port = port
        self._popen = process
        self.process = psutil.Process(process.pid)

    def speak(self, text: str, *, first_only: bool = False) -> Call:  # noqa: ARG002 - it goes on speaking
        # Always to its end: it does not notice that nobody listens any more.
        body = urllib.parse.urlencode({"text": text})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        sizes = []
        started_at = time.monotonic()
        with contextlib.closing(self._connection(CALL_SECONDS)) as connection:
            connection.request("POST", "/tts", body, headers)
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise RuntimeError(f"pocket-tts serve answered {response.status}")
            while data := response.read1(1 << 20):
                sizes.append((time.monotonic(), len(data)))
        return Call(started_at, tuple(_without(sizes, WAV_HEADER_BYTES, WAV_TAIL_BYTES)))

    def wait_until_ready(self) -> None:
        """Return once it answers. Raises TimeoutError."""
        deadline = time.monotonic() + LOAD_SECONDS
        while time.monotonic() < deadline and self._popen.poll() is None:
            with (
                contextlib.suppress(OSError),
                contextlib.closing(self._connection(5.0)) as connection,
            ):
                connection.request("GET", "/health")
                if connection.getresponse().status == http.client.OK:
                    return
            time.sleep(0.1)
        raise TimeoutError("pocket-tts serve did not start; see its log")

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout)


class Intone:
    """This project's server: SynthesizeText with 16-bit samples. All calls share a connection."""

    serves_many = True
    has_front = True

    def __init__(self, process: subprocess.Popen[str], address: str, name: str) -> None:
        self.name = name
        self.address = address
        self.process = psutil.Process(process.pid)
        self._channel = grpc.insecure_channel(address)
        self.stub = tts_pb2_grpc.TextToSpeechServiceStub(self._channel)

    def speak(self, text: str, *, first_only: bool = False) -> Call:
        arrivals: list[Arrival] = []
        segments: list[Segment] = []
        admitted_at = 0.0
        config = tts_pb2.SpeechConfig(segment_events=True)
        request = tts_pb2.SynthesizeTextRequest(text=text, config=config)
        started_at = time.monotonic()
        call = self.stub.SynthesizeText(request, timeout=CALL_SECONDS)
        try:
            for response in call:
                now, event = time.monotonic(), response.event
                match event.WhichOneof("event"):
                    case "started":
                        admitted_at = now
                    case "audio":
                        arrivals.append(Arrival(now, len(event.audio.data) / BYTES_PER_SECOND))
                        if first_only:
                            call.cancel()
                            break
                    case "segment_finished":
                        ended_at = admitted_at + _seconds(event.segment_finished.at)
                        took = _seconds(event.segment_finished.synthesis_time)
                        segments.append(Segment(ended_at - took, ended_at))
        except grpc.RpcError as error:
            if call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise Refused(call.details()) from error
            raise
        return Call(started_at, tuple(arrivals), tuple(segments))

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def _seconds(duration: duration_pb2.Duration) -> float:
    return duration.seconds + duration.nanos / 1e9


def _without(sizes: list[tuple[float, int]], head: int, tail: int) -> list[Arrival]:
    """Arrivals of a body whose first `head` and last `tail` bytes are no speech."""
    end = sum(size for _, size in sizes) - tail
    arrivals, position = [], 0
    for at, size in sizes:
        speech = min(position + size, end) - max(position, head)
        position += size
        if speech > 0:
            arrivals.append(Arrival(at, speech / BYTES_PER_SECOND))
    return arrivals
