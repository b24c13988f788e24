"""The contract as it was in a release: its messages and methods, made from what was recorded."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.message import Message

VECTORS = Path(__file__).parent / "vectors"
PACKAGE = "intone.v1."
# What differs from run to run, and from version to version.
UNSTABLE = {
    *("request_id", "server_version", "limits", "at", "queue_wait", "synthesis_time", "stats"),
    *("estimated_wait", "speed", "total_speed", "features", "position", "create_time", "loaded"),
    *("seed", "effective_at"),
}


@dataclass(frozen=True)
class Call:
    """One recorded call: serialized messages, and the name of the status code."""

    name: str
    method: str
    requests: list[bytes]
    responses: list[bytes]
    code: str


class Contract:
    """A version of `intone.v1` beside the one that is imported."""

    def __init__(self, version: str) -> None:
        self.folder = VECTORS / version
        image = descriptor_pb2.FileDescriptorSet.FromString(
            (self.folder / "contract.binpb").read_bytes()
        )
        self._pool = descriptor_pool.DescriptorPool()
        for file in image.file:
            self._pool.Add(file)

    def message(self, name: str) -> type[Message]:
        """The class of a message, by its name in the package."""
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(PACKAGE + name))

    def method(self, path: str) -> MethodDescriptor:
        """A method, by its path: /package.Service/Method."""
        service, name = path.removeprefix("/").split("/")
        return self._pool.FindServiceByName(service).methods_by_name[name]

    def messages(self) -> list[dict[str, str]]:
        """Recorded messages: `type`, `hex`, and `json` with the proto's field names."""
        found: list[dict[str, str]] = json.loads((self.folder / "messages.json").read_text())
        return found

    def calls(self) -> list[Call]:
        """Recorded calls of a real server."""
        return [
            Call(
                name=call["name"],
                method=call["method"],
                requests=[bytes.fromhex(each) for each in call["requests"]],
                responses=[bytes.fromhex(each) for each in call["responses"]],
                code=call["code"],
            )
            for call in json.loads((self.folder / "calls.json").read_text())
        ]


def versions() -> list[str]:
    """All that were recorded."""
    return sorted(path.name for path in VECTORS.iterdir() if path.is_dir())


def as_dict(message: Message) -> dict[str, Any]:
    """A message with the proto's field names; large whole numbers are text, as in JSON."""
    found: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return found


def stable(value: Any) -> Any:
    """What must be the same each time the same is asked."""
    if isinstance(value, dict):
        return {k: stable(v) for k, v in value.items() if k not in UNSTABLE}
    return [stable(v) for v in value] if isinstance(value, list) else value


def top_level(descriptors: dict[str, Descriptor]) -> list[Descriptor]:
    """Requests and responses among the messages of a file."""
    return [d for name, d in descriptors.items() if name.endswith(("Request", "Response"))]
