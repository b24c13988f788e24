"""Records the contract of a release: `make vectors VERSION=0.2.0` when it is tagged, once.

Writes tests/vectors/VERSION/ with the compiled contract (contract.binpb), a message of every kind
in which all is set (messages.json), and calls of a real server (calls.json).
"""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import grpc
from google.protobuf import json_format
from google.protobuf.message import Message

from contract import VECTORS, top_level
from filled_messages import filled
from intone.v1 import status_pb2, tts_pb2, voices_pb2
from processes import running_server

FILES = (tts_pb2, voices_pb2, status_pb2)
SEED = tts_pb2.SpeechConfig(sampling=tts_pb2.Sampling(seed=7), segment_events=True)


def messages() -> Iterator[dict[str, str]]:
    for file in FILES:
        for descriptor in top_level(file.DESCRIPTOR.message_types_by_name):
            for message in filled(descriptor):
                yield {
                    "type": descriptor.name,
                    "hex": message.SerializeToString(deterministic=True).hex(),
                    "json": json_format.MessageToJson(
                        message, preserving_proto_field_name=True, sort_keys=True, indent=None
                    ),
                }


def conversations() -> Iterator[tuple[str, str, list[Message]]]:
    """Name, method and requests of each call, in their order."""
    tts, voices, status = (
        f"/{file.DESCRIPTOR.package}.{name}/"
        for file, name in zip(
            FILES, ("TextToSpeechService", "VoiceService", "StatusService"), strict=True
        )
    )
    request = tts_pb2.SynthesizeRequest
    yield (
        "a stream with a flush, a pause and another voice",
        f"{tts}Synthesize",
        [
            request(config=SEED),
            request(text="Good morning "),
            request(text="to everybody."),
            request(flush=tts_pb2.Flush(id="a")),
            request(pause=tts_pb2.Pause(duration=timedelta(milliseconds=100))),
            request(voice="bert"),
            request(text="This is said by somebody else."),
        ],
    )
    yield "a stream of text alone", f"{tts}Synthesize", [request(text="Only text.")]
    yield (
        "a second config",
        f"{tts}Synthesize",
        [request(config=SEED), request(config=SEED)],
    )
    text = "The first sentence. The second one."
    whole = tts_pb2.SynthesizeTextRequest(text=text, config=SEED)
    yield "a whole text", f"{tts}SynthesizeText", [whole]
    nobody = tts_pb2.SynthesizeTextRequest(text="x", config=tts_pb2.SpeechConfig(voice="nobody"))
    yield "an unknown voice", f"{tts}SynthesizeText", [nobody]
    file = tts_pb2.SynthesizeFileRequest(text="A file.", config=SEED)
    yield "a file", f"{tts}SynthesizeFile", [file]
    yield "a plan", f"{tts}PlanText", [tts_pb2.PlanTextRequest(text=text)]
    items = [
        tts_pb2.DialogueItem(id="one", speech=tts_pb2.SpeechItem(speaker="a", text="Hello there.")),
        tts_pb2.DialogueItem(reuse=tts_pb2.ReuseItem(item_id="one")),
    ]
    dialogue = tts_pb2.SynthesizeDialogueRequest(config=SEED, cast={"a": "anna"}, items=items)
    yield "a dialogue", f"{tts}SynthesizeDialogue", [dialogue]
    made = voices_pb2.CreateVoiceRequest(name="made", state=b"fake: state", language="en")
    yield "a voice is made", f"{voices}CreateVoice", [made]
    yield "voices are listed", f"{voices}ListVoices", [voices_pb2.ListVoicesRequest()]
    yield "a voice is shown", f"{voices}GetVoice", [voices_pb2.GetVoiceRequest(name="made")]
    yield (
        "a voice is exported",
        f"{voices}ExportVoice",
        [voices_pb2.ExportVoiceRequest(name="made")],
    )
    yield "a voice is deleted", f"{voices}DeleteVoice", [voices_pb2.DeleteVoiceRequest(name="made")]
    yield "the server is described", f"{status}GetServerInfo", [status_pb2.GetServerInfoRequest()]
    yield "its capacity is told", f"{status}GetCapacity", [status_pb2.GetCapacityRequest()]


def call(channel: grpc.Channel, method: str, requests: list[bytes]) -> tuple[list[bytes], str]:
    """Serialized responses, and the name of the code. Every call is made as a stream of both: on
    the wire there is no difference."""
    stream = channel.stream_stream(method)(iter(requests), timeout=30)
    responses: list[bytes] = []
    with contextlib.suppress(grpc.RpcError):
        responses.extend(stream)
    return responses, stream.code().name


def calls() -> Iterator[dict[str, object]]:
    with running_server("--engine", "fake") as server, grpc.insecure_channel(server.address) as c:
        for name, method, messages in conversations():
            requests = [message.SerializeToString(deterministic=True) for message in messages]
            responses, code = call(c, method, requests)
            yield {
                "name": name,
                "method": method,
                "requests": [each.hex() for each in requests],
                "responses": [each.hex() for each in responses],
                "code": code,
            }


def main(version: str) -> None:
    folder = VECTORS / version
    folder.mkdir(parents=True)
    buf = shutil.which("buf", path=str(Path(sys.executable).parent)) or "buf"
    image = str(folder / "contract.binpb")
    subprocess.run([buf, "build", "--exclude-source-info", "-o", image], check=True)
    for name, records in (("messages", messages()), ("calls", calls())):
        lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
        (folder / f"{name}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(sys.argv[1])
