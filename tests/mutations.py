"""Messages as no client makes them, and what becomes of them at every method.

`python tests/mutations.py 100000` sends so many to a server of its own.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc
import psutil
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from filled_messages import filled
from intone.v1 import status_pb2, tts_pb2, voices_pb2
from processes import ServerProcess, running_server, wait_for

# What a request that is wrong, or asks for what is not there, may be answered with. OK: it parsed,
# and was right. DEADLINE_EXCEEDED is of this test's own making: WatchCapacity never ends by itself.
DOCUMENTED = frozenset(
    {
        grpc.StatusCode.OK,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
CALL_SECONDS = 2.0
# A random message of this size is never right by chance, and costs little.
RANDOM_BYTES = 200
CALLERS = 4


def methods() -> list[MethodDescriptor]:
    """All of the contract."""
    services = (
        tts_pb2.DESCRIPTOR.services_by_name["TextToSpeechService"],
        voices_pb2.DESCRIPTOR.services_by_name["VoiceService"],
        status_pb2.DESCRIPTOR.services_by_name["StatusService"],
    )
    return [method for service in services for method in service.methods]


@dataclass(frozen=True, slots=True)
class Malformed:
    """The bytes of the messages of one call."""

    method: MethodDescriptor
    messages: tuple[bytes, ...]


def malformed(seed: int, count: int) -> Iterator[Malformed]:
    """So many calls, the same for one seed: right messages that were altered, cut off, joined or
    repeated, and noise."""
    draw = random.Random(seed)
    right = {method.full_name: _right(method) for method in methods()}
    for number in range(count):
        method = methods()[number % len(methods())]
        several = draw.randint(1, 4) if method.client_streaming else 1
        yield Malformed(
            method, tuple(_spoil(draw, right[method.full_name]) for _ in range(several))
        )


def _right(method: MethodDescriptor) -> list[bytes]:
    """Messages that parse."""
    messages: list[Message] = list(filled(method.input_type))
    if method.name in {"Synthesize", "SynthesizeText", "SynthesizeFile", "PlanText"}:
        messages += [tts_pb2.SynthesizeTextRequest(text="One two.")]
    return [message.SerializeToString() for message in messages]


def _spoil(draw: random.Random, right: list[bytes]) -> bytes:
    data = bytearray(draw.choice(right))
    match draw.randrange(6):
        case 0:
            return draw.randbytes(draw.randint(0, RANDOM_BYTES))
        case 1:
            return bytes(data[: draw.randint(0, len(data))])
        case 2:
            return bytes(data + draw.choice(right))
        case 3:
            place = draw.randint(0, len(data))
            return bytes(data[:place] + draw.randbytes(draw.randint(1, 20)) + data[place:])
        case _:
            for _ in range(draw.randint(1, 8)):
                if data:
                    data[draw.randrange(len(data))] = draw.randrange(256)
            return bytes(data)


def send(channel: grpc.Channel, call: Malformed) -> grpc.StatusCode:
    """Make the call, read all of its answer, and return its code."""
    method = call.method
    path = f"/{method.containing_service.full_name}/{method.name}"
    requests = iter(call.messages) if method.client_streaming else call.messages[0]
    seconds = 0.05 if method.name == "WatchCapacity" else CALL_SECONDS
    try:
        if method.client_streaming:
            list(channel.stream_stream(path)(requests, timeout=seconds))
        elif method.server_streaming:
            list(channel.unary_stream(path)(requests, timeout=seconds))
        else:
            channel.unary_unary(path)(requests, timeout=seconds)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK


def send_all(address: str, seed: int, count: int) -> Counter[tuple[str, grpc.StatusCode]]:
    """Make so many calls one after the other; counts codes by method."""
    codes: Counter[tuple[str, grpc.StatusCode]] = Counter()
    options = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options) as channel:
        for call in malformed(seed, count):
            codes[call.method.name, send(channel, call)] += 1
    return codes


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What an attack did: codes by method, what the front grew by, and faults that it logged."""

    codes: Counter[tuple[str, grpc.StatusCode]]
    bytes: int
    descriptors: int
    threads: int
    faults: tuple[str, ...]


def attack(server: ServerProcess, count: int) -> Aftermath:
    """So many malformed calls, from CALLERS at the same time."""
    front = psutil.Process(server.process.pid)
    send_all(server.address, seed=0, count=200)  # what is slow to load is loaded
    memory, descriptors = front.memory_info().rss, front.num_fds()
    threads = front.num_threads()
    with ThreadPoolExecutor(CALLERS) as pool:
        seeds = range(1, 1 + CALLERS)
        each = [count // CALLERS] * CALLERS
        found = list(pool.map(send_all, [server.address] * CALLERS, seeds, each))
    wait_for(lambda: front.num_fds() <= descriptors + CALLERS, 30)
    logged = [line for line in server.logs() if line["level"] in ("error", "critical")]
    return Aftermath(
        sum(found, Counter[tuple[str, grpc.StatusCode]]()),
        front.memory_info().rss - memory,
        front.num_fds() - descriptors,
        front.num_threads() - threads,
        tuple(str(line["event"]) for line in logged),
    )


def main() -> int:
    """Exit code: 0 if all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("messages", type=int)
    count = parser.parse_args().messages
    with running_server("--engine", "fake", "--replicas", "4") as server:
        after = attack(server, count)
        is_alive = server.is_serving()
    codes: Counter[str] = Counter()
    for (_, code), times in after.codes.items():
        codes[code.name] += times
    print(f"{count:,} calls: {dict(codes)}")
    print(f"the front grew by {after.bytes / (1 << 20):.1f} MiB, {after.descriptors} descriptors")
    print(f"and {after.threads} threads; it logged {list(after.faults)}")
    undocumented = {code for _, code in after.codes} - DOCUMENTED
    return int(bool(undocumented or after.faults or not is_alive))


if __name__ == "__main__":
    sys.exit(main())
