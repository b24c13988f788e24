"""Messages in which every field is set: what a peer of another version could send."""

from collections.abc import Iterator
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

# Value of a scalar field, from its number: no two neighbours are the same. Durations and timestamps
# consist of such numbers, and must be valid.
SCALARS: dict[int, Any] = {
    FieldDescriptor.CPPTYPE_INT32: lambda number: number,
    FieldDescriptor.CPPTYPE_INT64: lambda number: 2**33 + number,
    FieldDescriptor.CPPTYPE_UINT32: lambda number: 2**31 + number,
    FieldDescriptor.CPPTYPE_UINT64: lambda number: 2**63 + number,
    FieldDescriptor.CPPTYPE_DOUBLE: lambda number: number + 0.5,
    FieldDescriptor.CPPTYPE_FLOAT: lambda number: number + 0.25,
    FieldDescriptor.CPPTYPE_BOOL: lambda number: True,
}


def filled(descriptor: Descriptor) -> Iterator[Message]:
    """A message of this type for each choice of its oneofs, everything else set."""
    choices = [o for o in descriptor.oneofs if not o.name.startswith("_")]
    most = max((len(oneof.fields) for oneof in choices), default=1)
    for choice in range(most):
        left_out = {
            field.name
            for oneof in choices
            for i, field in enumerate(oneof.fields)
            if i != choice % len(oneof.fields)
        }
        message = message_factory.GetMessageClass(descriptor)()
        for field in descriptor.fields:
            if field.name not in left_out:
                _fill(message, field)
        yield message


def _fill(message: Message, field: FieldDescriptor) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        getattr(message, field.name)[f"key-{field.number}"] = f"value-{field.number}"
    elif field.message_type is not None:
        values = list(filled(field.message_type))
        if field.is_repeated:
            getattr(message, field.name).extend(values)
        else:
            getattr(message, field.name).CopyFrom(values[field.number % len(values)])
    elif field.is_repeated:
        getattr(message, field.name).extend([_scalar(field, 0), _scalar(field, 1)])
    else:
        setattr(message, field.name, _scalar(field, 0))


def _scalar(field: FieldDescriptor, place: int) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values[-1 - place].number
    if field.type == FieldDescriptor.TYPE_STRING:
        return f"{field.name} ü 😀 {place}"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes([0, 255, field.number, place])
    return SCALARS[field.cpp_type](field.number + place)
