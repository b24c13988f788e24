"""Voice states of pocket-tts as safetensors files: written, and read with distrust.

A state is what the model's attention remembers of a recording: for each layer a `cache` of keys
and values, `offset`, the number of positions in it that are used, and `pad`, how many of those are
padding. The library itself takes any file for a state and fails at its first use (fact 14).
"""

import hashlib
import json
from typing import Any

import safetensors.torch
import torch
from pocket_tts.modules.stateful_module import init_states

from intone_server.engines.base import BadState, VoiceState
from intone_server.engines.pocket_files import MAX_STATE_HEAD_BYTES

State = dict[str, dict[str, torch.Tensor]]

# Entries of the file's metadata, which pocket-tts does not look at.
FINGERPRINT_KEY = "intone.fingerprint"
MODEL_KEY = "intone.model"
# Names out of a file that an error repeats, and how much of each.
SHOWN_NAMES, SHOWN_CHARACTERS = 3, 64
# Keys and values are of the order of 1 to 100; far beyond, attention overflows at each segment.
MAX_MAGNITUDE = 1e6
# What is bigger says no more about which training it is from.
MAX_FINGERPRINT_TENSOR_BYTES = 1 << 20
# Parts of the language model that int8 rewrites, that only make voices (the weights without voice
# cloning need not have them), or that do not see the voice state.
_NOT_IN_FINGERPRINT = (
    ".self_attn.",
    ".linear1.",
    ".linear2.",
    "speaker_proj_weight",
    "bos_before_voice",
    "flow_net.",
)


class StateFormat:
    """The voice states of one model."""

    def __init__(self, model: Any, model_name: str) -> None:
        template = _flat(init_states(model.flow_lm, batch_size=1, sequence_length=1))
        self._layout = {name: (t.dtype, tuple(t.shape)) for name, t in template.items()}
        self._model_name = model_name
        self.fingerprint = fingerprint(model)

    def write(self, state: State) -> bytes:
        """The file that `pocket_tts.models.model_state.export_model_state` would write, with the
        model's fingerprint and name as metadata."""
        metadata = {FINGERPRINT_KEY: self.fingerprint, MODEL_KEY: self._model_name}
        return bytes(safetensors.torch.save(_flat(state), metadata))

    def pack(self, state: State, warnings: tuple[str, ...] = ()) -> VoiceState:
        """A state as it leaves the engine."""
        return VoiceState(self.write(state), digest(state), warnings)

    def read(self, data: bytes, *, max_positions: int | None = None) -> State:
        """The state in a file of pocket-tts or of this module, without positions that are not
        used. Raises BadState, whatever `data` is.

        Takes memory of about three times `data`. With `max_positions`, a longer one is refused.
        """
        head_bytes = int.from_bytes(data[:8], "little")
        if not 0 < head_bytes <= MAX_STATE_HEAD_BYTES:
            raise BadState(
                f"this is not a voice state: as a safetensors file it would have a head of "
                f"{head_bytes:,} bytes; {MAX_STATE_HEAD_BYTES:,} are allowed"
            )
        try:
            tensors = safetensors.torch.load(data)
            metadata = json.loads(data[8 : 8 + head_bytes]).get("__metadata__") or {}
        except Exception as error:
            raise BadState(f"this is not a voice state: {str(error)[:200]}") from error
        self._check_metadata(metadata)
        _bring_up_to_date(tensors)
        self._check_layout(tensors)
        return _trimmed(_nested(tensors), max_positions)

    def _check_metadata(self, metadata: dict[str, str]) -> None:
        if metadata.get(FINGERPRINT_KEY, self.fingerprint) == self.fingerprint:
            return
        theirs = metadata.get(MODEL_KEY, "")[:SHOWN_CHARACTERS]
        if theirs == self._model_name:
            raise BadState(f"this voice state was made with other weights of the model {theirs!r}")
        raise BadState(
            f"this voice state was made with the model {theirs!r}; "
            f"this server runs {self._model_name!r}"
        )

    def _check_layout(self, tensors: dict[str, torch.Tensor]) -> None:
        missing = self._layout.keys() - tensors.keys()
        unknown = tensors.keys() - self._layout.keys()
        if missing or unknown:
            faults = [f"it has no {_some(missing)}"] if missing else []
            faults += [f"this model has no {_some(unknown)}"] if unknown else []
            raise BadState("this is a voice state of another model: " + ", and ".join(faults))
        for name, tensor in tensors.items():
            dtype, shape = self._layout[name]
            if tensor.dtype != dtype:
                raise BadState(f"{name} is of type {tensor.dtype}, this model needs {dtype}")
            is_cache = name.endswith("/cache")
            found = tuple(tensor.shape)
            if found != shape and not (is_cache and _without_positions(found, shape)):
                needed = str(list(shape)).replace("1, 1,", "1, N,") if is_cache else list(shape)
                raise BadState(f"{name} has shape {list(found)}, this model needs {needed}")


def digest(state: State) -> str:
    """SHA-256 in hexadecimal over the names, types, shapes and bytes of the tensors, in order of
    their names."""
    result = hashlib.sha256()
    for module in sorted(state):
        for key in sorted(state[module]):
            tensor = state[module][key].contiguous()
            result.update(f"{module}/{key} {tensor.dtype} {list(tensor.shape)}".encode())
            result.update(_bytes_of(tensor))
    return result.hexdigest()


def size_bytes(state: State) -> int:
    """Memory of the tensors."""
    return sum(tensor.nbytes for tensors in state.values() for tensor in tensors.values())


def fingerprint(model: Any) -> str:
    """SHA-256 in hexadecimal over small tensors of the language model: the same for float32 and
    int8 and with or without voice cloning, another for each training."""
    result = hashlib.sha256()
    language_model = model.flow_lm
    named = dict([*language_model.named_parameters(), *language_model.named_buffers()])
    for name in sorted(named):
        tensor = named[name].detach().contiguous()
        if tensor.nbytes > MAX_FINGERPRINT_TENSOR_BYTES or any(
            part in name for part in _NOT_IN_FINGERPRINT
        ):
            continue
        result.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        result.update(_bytes_of(tensor))
    return result.hexdigest()


def _bytes_of(tensor: torch.Tensor) -> memoryview:
    """The memory of a contiguous tensor. As bytes: numpy has no bfloat16."""
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())


def _flat(state: State) -> dict[str, torch.Tensor]:
    return {
        f"{module}/{key}": tensor
        for module, tensors in state.items()
        for key, tensor in tensors.items()
    }


def _nested(tensors: dict[str, torch.Tensor]) -> State:
    state: State = {}
    for name, tensor in tensors.items():
        module, key = name.rsplit("/", 1)
        state.setdefault(module, {})[key] = tensor
    return state


def _bring_up_to_date(tensors: dict[str, torch.Tensor]) -> None:
    """What older versions of pocket-tts wrote, as it reads it itself: the length of `current_end`
    for `offset`, and no `pad`."""
    for name in [name for name in tensors if name.endswith("/current_end")]:
        module = name.removesuffix("/current_end")
        if f"{module}/offset" not in tensors and tensors[name].ndim:
            length = tensors.pop(name).shape[0]
            tensors[f"{module}/offset"] = torch.full((1,), length, dtype=torch.long)
    for name in [name for name in tensors if name.endswith("/offset")]:
        pad = name.removesuffix("/offset") + "/pad"
        tensors.setdefault(pad, torch.zeros(1, dtype=torch.long))


def _trimmed(state: State, max_positions: int | None) -> State:
    """The state without unused positions. Raises BadState if the positions make no sense."""
    offsets = {int(tensors["offset"][0]) for tensors in state.values()}
    if len(offsets) != 1:
        raise BadState("the layers of this voice state disagree on their number of positions")
    (used,) = offsets
    if max_positions is not None and used > max_positions:
        raise BadState(f"this voice state has {used:,} positions, {max_positions} are allowed")
    for module, tensors in state.items():
        there = tensors["cache"].shape[2]
        if not 1 <= used <= there:
            raise BadState(f"{module}/offset is {used}, but its cache has {there} positions")
        if tensors["pad"][0] != 0:
            raise BadState(f"{module}/pad is {int(tensors['pad'][0])}, this model needs 0")
        tensors["cache"] = tensors["cache"][:, :, :used].contiguous()
        largest = float(tensors["cache"].abs().max())  # NaN, if there is one
        if not largest <= MAX_MAGNITUDE:
            raise BadState(
                f"{module}/cache holds values up to {largest:g}, {MAX_MAGNITUDE:g} is allowed"
            )
    return state


def _without_positions(found: tuple[int, ...], needed: tuple[int, ...]) -> bool:
    """Whether shapes differ in their third axis alone, the number of positions."""
    return len(found) == len(needed) and found[:2] + found[3:] == needed[:2] + needed[3:]


def _some(names: set[str]) -> str:
    shown = ", ".join(name[:SHOWN_CHARACTERS] for name in sorted(names)[:SHOWN_NAMES])
    rest = len(names) - SHOWN_NAMES
    return f"{shown} and {rest} more" if rest > 0 else shown
