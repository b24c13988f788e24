"""The three that are compared, behind one interface. Each is a process on loopback or on pipes."""

import contextlib
import http.client
import json
import subprocess
import time
import urllib.parse
from typing import Any, Protocol

import grpc
import psutil

from benchmarks.listener import Arrival
from benchmarks.model import SAMPLE_RATE_HERTZ
from intone.v1 import tts_pb2, tts_pb2_grpc

BYTES_PER_SECOND = 2 * SAMPLE_RATE_HERTZ
WAV_HEADER_BYTES = 44
# `pocket-tts serve` adds 200 ms of silence, which nobody has computed.
WAV_TAIL_BYTES = BYTES_PER_SECOND // 5
LOAD_SECONDS = 120.0  # longest wait for a model to be loaded
CALL_SECONDS = 300.0  # longest call


class Contender(Protocol):
    """Something that speaks. `speak` may be called by several threads if `serves_many`."""

    name: str
    process: psutil.Process
    serves_many: bool

    def speak(self, text: str, *, first_only: bool = False) -> tuple[float, list[Arrival]]:
        """When the call began (seconds on the monotonic clock), and its audio as it arrived.

        `first_only` cancels the call at its first audio.
        """


class Bare:
    """`generate_audio_stream`, in one process without any server."""

    name = "library"
    serves_many = False

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._popen = process
        self.process = psutil.Process(process.pid)

    def speak(
        self, text: str, *, first_only: bool = False, decoder_frames: int = 0, threads: int = 1
    ) -> tuple[float, list[Arrival]]:
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
        return answer["started_at"], [Arrival(at, n / rate) for at, n in answer["items"]]

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

    name = "pocket-tts serve"
    serves_many = True

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._port = port
        self._popen = process
        self.process = psutil.Process(process.pid)

    def speak(self, text: str, *, first_only: bool = False) -> tuple[float, list[Arrival]]:
        assert not first_only, "it would go on speaking"
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
        return started_at, _without(sizes, WAV_HEADER_BYTES, WAV_TAIL_BYTES)

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

    name = "intone"
    serves_many = True

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self._popen = process
        self.address = address
        self.process = psutil.Process(process.pid)
        self._channel = grpc.insecure_channel(address)
        self.stub = tts_pb2_grpc.TextToSpeechServiceStub(self._channel)

    def speak(self, text: str, *, first_only: bool = False) -> tuple[float, list[Arrival]]:
        arrivals = []
        started_at = time.monotonic()
        request = tts_pb2.SynthesizeTextRequest(text=text)
        call = self.stub.SynthesizeText(request, timeout=CALL_SECONDS)
        for response in call:
            if response.event.WhichOneof("event") == "audio":
                size = len(response.event.audio.data)
                arrivals.append(Arrival(time.monotonic(), size / BYTES_PER_SECOND))
                if first_only:
                    call.cancel()
                    break
        return started_at, arrivals

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


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
