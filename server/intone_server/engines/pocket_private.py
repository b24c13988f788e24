"""Everything that relies on the inside of pocket-tts 4.0.1, for stepping many generations at once.

The library's modules do the work; what they lack for rows at different positions is their
attention (fact 37), which here is put in place of theirs for calls with a batch. Every other call
of the library's goes its own way.

`check` says at load what an update of the library has changed; tests compare with its own audio.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
import torch
from pocket_tts.models import flow_lm as library_flow
from pocket_tts.models import text_chunking
from pocket_tts.models.mimi import MimiModel
from pocket_tts.modules.attention import StreamingMultiheadAttention
from pocket_tts.modules.conv import StreamingConv1d, StreamingConvTranspose1d
from pocket_tts.modules.dummy_quantizer import DummyQuantizer
from pocket_tts.modules.mlp import SimpleMLPAdaLN, TimestepEmbedder
from pocket_tts.modules.resample import ConvTrUpsample1d
from pocket_tts.modules.seanet import SEANetDecoder, SEANetResnetBlock
from pocket_tts.modules.text_conditioner import LUTConditioner
from pocket_tts.modules.transformer import ProjectedTransformer, StreamingTransformer
from torch import nn

from intone_server.engines.base import EngineError
from intone_server.engines.pocket_attention import Attention, Batch, Cache, Rotation
from intone_server.engines.pocket_convolution import (
    ChannelwiseUpsampling,
    Convolution,
    Elu,
    Layer,
    Residual,
)
from intone_server.engines.pocket_linear import FewRows, each_row, is_int8, separate
from intone_server.engines.pocket_state import State

log = structlog.stdlib.get_logger("intone.engine")

_PARTS: dict[str, type] = {
    "flow_lm": library_flow.FlowLMModel,
    "flow_lm.conditioner": LUTConditioner,
    "flow_lm.transformer": StreamingTransformer,
    "flow_lm.flow_net": SimpleMLPAdaLN,
    "flow_lm.flow_net.time_embed": nn.ModuleList,
    "flow_lm.input_linear": nn.Linear,
    "flow_lm.out_eos": nn.Linear,
    "flow_lm.bos_emb": torch.Tensor,
    "flow_lm.emb_std": torch.Tensor,
    "flow_lm.emb_mean": torch.Tensor,
    "flow_lm.dim": int,
    "flow_lm.ldim": int,
    "flow_lm.flow_type": str,
    "mimi": MimiModel,
    "mimi.quantizer": DummyQuantizer,
    "mimi.upsample": ConvTrUpsample1d,
    "mimi.decoder_transformer": ProjectedTransformer,
    "mimi.decoder_transformer.transformer.context": int,
    "mimi.decoder": SEANetDecoder,
    "mimi.encoder_frame_rate": float,
    "mimi.frame_rate": float,
    "sample_rate": int,
    "pad_with_spaces_for_short_inputs": bool,
    "remove_semicolons": bool,
    "append_terminal_punctuation": bool,
    "capitalize_first_letter": bool,
    "replace_characters": dict,
    "_MIN_FRAMES_BEFORE_EOS": int,
}
_TEXT_OPTIONS = (
    "pad_with_spaces_for_short_inputs",
    "remove_semicolons",
    "append_terminal_punctuation",
    "capitalize_first_letter",
    "replace_characters",
)
_CALLS: dict[Any, tuple[str, ...]] = {
    library_flow.FlowLMModel.backbone: (
        "self",
        "input_",
        "text_embeddings",
        "sequence",
        "model_state",
    ),
    StreamingMultiheadAttention.forward: ("self", "query", "model_state", "attn_mask"),
    SimpleMLPAdaLN.forward: ("self", "c", "args"),
    TimestepEmbedder.forward: ("self", "t"),
    ProjectedTransformer.forward: ("self", "x", "model_state"),
    library_flow.lsd_decode: ("v_t", "x_0", "num_steps"),
    library_flow.ot_decode: ("v_t", "x_0", "num_steps"),
    library_flow.drifting_decode: ("v_t", "x_0", "num_steps"),
    library_flow.pointwise_decode: ("v_t", "x_0", "num_steps"),
    text_chunking.prepare_text_prompt: ("text", *_TEXT_OPTIONS),
    text_chunking.split_into_best_sentences: (
        "tokenizer",
        "text_to_generate",
        "max_tokens",
        *_TEXT_OPTIONS,
    ),
}
_HEADS = {
    "lsd": library_flow.lsd_decode,
    "flow_matching": library_flow.ot_decode,
    "drifting": library_flow.drifting_decode,
    "pointwise": library_flow.pointwise_decode,
}
# The library fades the first 1/200 s of a text in, and adds two to its guess of the frames after
# the end of speech.
_FADES_PER_SECOND = 200
_MORE_FRAMES_AFTER_EOS = 2
# Times of the decoding head that are kept: two a step at most, and callers choose the steps.
_TIMES_KNOWN = 256


def check(model: Any) -> None:
    """Raises EngineError if the library is not as this module needs it."""
    for path, kind in _PARTS.items():
        part: Any = model
        for name in path.split("."):
            part = getattr(part, name, None)
        if not isinstance(part, kind):
            raise _changed(f"model.{path} is of type {type(part).__name__}, not {kind.__name__}")
    for function, names in _CALLS.items():
        found = tuple(inspect.signature(function).parameters)
        if found != names:
            raise _changed(f"{function.__qualname__} has the parameters {', '.join(found)}")
    if model.flow_lm.flow_type not in _HEADS:
        raise _changed(f"the flow type {model.flow_lm.flow_type!r} is unknown")
    _attention_modules(model.flow_lm.transformer)
    _attention_modules(model.mimi.decoder_transformer.transformer)
    for parameter in model.parameters():
        if parameter.dtype != torch.float32:
            raise _changed(f"it has weights of type {parameter.dtype}")


def _changed(what: str) -> EngineError:
    return EngineError(
        f"the installed pocket-tts cannot run several generations at once: {what}. "
        "intone is made for pocket-tts 4.0.1"
    )


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text that is spoken in one go: `tokens` of shape (1, t), int64. `max_frames` is the
    library's length cap, `frames_after_eos` how many frames follow the end of speech."""

    tokens: torch.Tensor
    max_frames: int
    frames_after_eos: int


def prompts(model: Any, text: str, frames_after_eos: int | None) -> Iterator[Prompt]:
    """What `generate_audio_stream` speaks for a text that it is not to cut by its length.

    Raises ValueError for an empty text.
    """
    options = {name: getattr(model, name) for name in _TEXT_OPTIONS}
    conditioner = model.flow_lm.conditioner
    # No text has more tokens than this, so that all its sentences stay together.
    chunks = text_chunking.split_into_best_sentences(
        conditioner.tokenizer, text, max_tokens=2 * len(text) + 50, **options
    )
    for chunk in chunks:
        prepared, guess = text_chunking.prepare_text_prompt(chunk, **options)
        tokens = conditioner.prepare(prepared)
        after = guess + _MORE_FRAMES_AFTER_EOS if frames_after_eos is None else frames_after_eos
        yield Prompt(tokens, longest_speech(model, tokens.shape[1]), after)


def first_frame_of_eos(model: Any) -> int:
    """Frames before this one (counted from 0) cannot be the end of speech."""
    frames: int = model._MIN_FRAMES_BEFORE_EOS
    return frames


def samples_per_frame(model: Any) -> int:
    """At the model's rate."""
    samples: int = round(model.sample_rate / model.config.mimi.frame_rate)
    return samples


def token_count(model: Any, text: str) -> int:
    """Tokens of a text as it is."""
    count: int = model.flow_lm.conditioner.prepare(text).shape[1]
    return count


def longest_speech(model: Any, tokens: int) -> int:
    """The library's own length cap for so many tokens, in frames."""
    frames: int = model._estimate_max_gen_len(tokens)
    return frames


def voice_length(voice: State) -> int:
    """Positions of a voice."""
    return max(int(tensors["offset"][0]) for tensors in voice.values())


class _BatchState(dict[str, dict[str, torch.Tensor]]):
    """What stands for a state of the library in a call with a batch."""

    def __init__(self, batch: Batch) -> None:
        super().__init__()
        self.batch = batch


class _Attentions:
    """The attentions of a transformer, by their names in its states."""

    def __init__(self, transformer: StreamingTransformer) -> None:
        self._modules = {m._module_absolute_name: m for m in _attention_modules(transformer)}
        self.attentions = {
            name: Attention(
                module.in_proj,
                module.out_proj,
                module.num_heads,
                module.num_kv_heads,
                module.dim_per_head,
                Rotation(module.dim_per_head, module.rope.max_period),
            )
            for name, module in self._modules.items()
        }

    def use(self, name: str, cache: Cache) -> None:
        """Let calls with a batch use this cache."""
        module, attention = self._modules[name], self.attentions[name]
        library = partial(type(module).forward, module)

        def forward(query: Any, model_state: Any, attn_mask: Any = None) -> Any:
            if isinstance(model_state, _BatchState):
                return attention(query, model_state.batch, cache)
            return library(query, model_state, attn_mask)

        module.forward = forward


class _RememberedTime:
    """The embedding of a time of the decoding head, which is the same for all rows and frames."""

    def __init__(self, module: TimestepEmbedder) -> None:
        self._embed = partial(type(module).forward, module)
        self._known: dict[float, torch.Tensor] = {}

    def __call__(self, times: torch.Tensor) -> torch.Tensor:
        """Times of shape (B, 1), all of them one, to an embedding of shape (1, channels)."""
        time = times[0, 0].item()
        if time not in self._known:
            if len(self._known) == _TIMES_KNOWN:
                self._known.clear()
            self._known[time] = self._embed(times[:1])
        return self._known[time]


class FlowParts(_Attentions):
    """The language model. `first_latent`, shape (1, 1, latent), stands before the first frame."""

    def __init__(self, model: Any) -> None:
        self._flow = flow = model.flow_lm
        super().__init__(flow.transformer)
        self.latent_numbers: int = flow.ldim
        self.first_latent: torch.Tensor = flow.bos_emb.detach().view(1, 1, -1)
        modules = list(flow.modules())
        int8 = [module for module in modules if is_int8(module)]
        for module in modules:
            if type(module) is nn.Linear:
                module.forward = each_row(module) if int8 else FewRows(module)
        slow = [module for module in int8 if not separate(module)]
        for module in flow.flow_net.time_embed:
            module.forward = _RememberedTime(module)
        if slow:
            log.warning("int8 with several rows is slow here: rows are multiplied one by one")

    def read(self, tokens: torch.Tensor, batch: Batch) -> None:
        """Tokens of shape (1, t)."""
        flow = self._flow
        embedded = flow.conditioner(tokens)
        nothing, sequence = (embedded.new_zeros((1, 0, n)) for n in (flow.dim, flow.ldim))
        flow.backbone(nothing, embedded, sequence, model_state=_BatchState(batch))

    def hidden(self, latents: torch.Tensor, batch: Batch) -> torch.Tensor:
        """What the heads start from, shape (B, any), after latents of shape (B, 1, latent)."""
        flow = self._flow
        no_text = latents.new_zeros((len(latents), 0, flow.dim))
        state = _BatchState(batch)
        result: torch.Tensor = flow.backbone(
            flow.input_linear(latents), no_text, latents, model_state=state
        )
        return result[:, -1]

    def eos_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Whether speech is over: shape (B)."""
        logits: torch.Tensor = self._flow.out_eos(hidden)
        return logits[:, 0]

    def decode(self, hidden: torch.Tensor, noise: torch.Tensor, steps: int) -> torch.Tensor:
        """Latents from noise, both of shape (B, latent)."""
        flow_net = partial(self._flow.flow_net, hidden)
        latents: torch.Tensor = _HEADS[self._flow.flow_type](flow_net, noise, steps)
        return latents


class DecoderParts(_Attentions):
    """The decoder. A frame has `steps_per_frame` positions in its transformer."""

    def __init__(self, model: Any) -> None:
        self._mimi = mimi = model.mimi
        super().__init__(mimi.decoder_transformer.transformer)
        self._scale, self._mean = model.flow_lm.emb_std, model.flow_lm.emb_mean
        self.steps_per_frame = int(mimi.encoder_frame_rate / mimi.frame_rate)
        self.context: int = mimi.decoder_transformer.transformer.context
        self.fade_in_samples: int = model.sample_rate // _FADES_PER_SECOND

    def quantized(self, latents: torch.Tensor) -> torch.Tensor:
        """Latents of shape (B, k, latent) as the decoder wants them: (B, k, channels)."""
        scaled = latents * self._scale + self._mean
        quantized: torch.Tensor = self._mimi.quantizer(scaled.transpose(1, 2))
        return quantized.transpose(1, 2)

    def transform(self, x: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The decoder's transformer: x of shape (B, t, channels) to its like."""
        y: torch.Tensor
        (y,) = self._mimi.decoder_transformer(x.transpose(1, 2), _BatchState(batch))
        return y.transpose(1, 2)

    def upsampling(self, rows: int) -> Layer:
        """From frames to positions of the transformer."""
        match self._mimi.upsample.convtr:
            case StreamingConvTranspose1d(convtr=nn.ConvTranspose1d(bias=None) as conv):
                channels, stride = conv.in_channels, conv.stride[0]
                if conv.weight.shape == (channels, 1, 2 * stride):
                    return ChannelwiseUpsampling(conv.weight, rows, stride)
        raise _changed(f"its decoder begins with an unknown layer: {self._mimi.upsample.convtr}")

    def layers(self, rows: int) -> list[Layer]:
        """From the transformer to samples."""
        return [_layer(module, rows) for module in self._mimi.decoder.model]


def _layer(module: nn.Module, rows: int) -> Layer:
    match module:
        case nn.ELU(alpha=1.0):
            return Elu()
        case SEANetResnetBlock():
            return Residual([_layer(inner, rows) for inner in module.block])
        case StreamingConv1d(conv=nn.Conv1d(groups=1, stride=(1,)) as conv, pad_mode="constant"):
            return Convolution.plain(conv.weight, conv.bias, rows, conv.dilation[0])
        case StreamingConvTranspose1d(convtr=nn.ConvTranspose1d(groups=1, dilation=(1,)) as conv):
            length, stride = conv.kernel_size[0], conv.stride[0]
            if length % stride == 0 and conv.padding == conv.output_padding == (0,):
                return Convolution.transposed(conv.weight, conv.bias, rows, stride)
    raise _changed(f"its decoder has an unknown layer: {module}")


def _attention_modules(transformer: StreamingTransformer) -> list[StreamingMultiheadAttention]:
    found = [layer.self_attn for layer in transformer.layers]
    if not all(isinstance(module, StreamingMultiheadAttention) for module in found):
        raise _changed("a layer has another attention")
    return found
