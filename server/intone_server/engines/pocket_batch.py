"""The two models of pocket-tts with many generations at once: language model and decoder.

What they need of the library's inside comes from `pocket_private`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from intone_server.engines.base import Sampling
from intone_server.engines.pocket_attention import Cache, GrowingBatch, RingBatch
from intone_server.engines.pocket_private import DecoderParts, FlowParts, voice_length
from intone_server.engines.pocket_state import State

# Layers of the decoder that take all rows at once: they have large weights and short inputs. The
# rest has small weights and long inputs, and one row of it fits into the cache of a processor.
LAYERS_TOGETHER = 4
# Frames of a row that are decoded in one call where the listener can wait for them.
MAX_FRAMES_PER_CALL = 2


class Sampler:
    """How one row draws. `sampling` has no None but for the clamp. Raises ValueError."""

    def __init__(self, sampling: Sampling, seed: int) -> None:
        assert sampling.temperature is not None
        assert sampling.decode_steps is not None
        assert sampling.eos_threshold is not None
        if sampling.temperature < 0 or sampling.decode_steps < 1:
            raise ValueError("temperature is below 0, or decode_steps below 1")
        self.decode_steps = sampling.decode_steps
        self.eos_threshold = sampling.eos_threshold
        self._deviation = sampling.temperature**0.5
        self._clamp = sampling.noise_clamp
        self._generator = torch.Generator().manual_seed(seed)

    def noise(self, numbers: int) -> torch.Tensor:
        """The next noise, drawn as the library draws it: shape (1, numbers)."""
        noise = torch.zeros(1, numbers)
        if not self._deviation:
            return noise
        if self._clamp is None:
            return nn.init.normal_(noise, 0.0, self._deviation, self._generator)
        return nn.init.trunc_normal_(
            noise, 0.0, self._deviation, -self._clamp, self._clamp, self._generator
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """What a step made for one row: a latent of shape (1, 1, latent)."""

    latent: torch.Tensor
    is_eos: bool
    is_finite: bool


class FlowRows:
    """The language model, for up to `rows` generations of at most `positions` positions each:
    voice, text and frames. A generation has one row of the caches for its whole life."""

    def __init__(self, parts: FlowParts, rows: int, positions: int) -> None:
        self._parts = parts
        self.positions = positions
        self._lengths = [0] * rows
        self._caches: dict[str, Cache] = {}
        for name, attention in parts.attentions.items():
            cache = Cache.lazy(rows, attention.shared_heads, positions, attention.numbers)
            self._caches[name] = cache
            parts.use(name, cache)
        self._rotation = attention.rotation

    def begin(self, row: int, voice: State, needed: int) -> None:
        """Put a voice into a row, for a generation of `needed` more positions. Raises ValueError
        if they are too many."""
        length = voice_length(voice)
        if length + needed > self.positions:
            raise ValueError(f"{length} + {needed} positions, there is room for {self.positions}")
        for name, cache in self._caches.items():
            keys, values = voice[name]["cache"][:, 0, :length]
            cache.fill(row, keys, values)
        self._lengths[row] = length

    def read(self, row: int, tokens: torch.Tensor) -> None:
        """Let a generation read text: int64 tokens of shape (1, t), t >= 1."""
        self._parts.read(tokens, self._batch([row], tokens.shape[1]))

    def skip_noise(self, sampler: Sampler) -> None:
        """The library draws once after reading a text, and throws it away. Doing the same makes a
        seed mean what it means there."""
        sampler.noise(self._parts.latent_numbers)

    def first_latent(self) -> torch.Tensor:
        """What stands before the first frame: shape (1, 1, latent)."""
        return self._parts.first_latent

    def step(
        self,
        rows: Sequence[int],
        latents: Sequence[torch.Tensor],
        samplers: Sequence[Sampler],
    ) -> list[Frame]:
        """The next frames of some generations, from their last latents."""
        parts = self._parts
        hidden = parts.hidden(torch.cat(list(latents)), self._batch(rows, 1))
        thresholds = torch.tensor([sampler.eos_threshold for sampler in samplers])
        is_eos = (parts.eos_logits(hidden) > thresholds).tolist()
        noise = torch.cat([sampler.noise(parts.latent_numbers) for sampler in samplers])
        made = self._decode(hidden, noise, [sampler.decode_steps for sampler in samplers])
        is_finite = made.isfinite().all(-1).tolist()
        return list(map(Frame, made[:, None].split(1), is_eos, is_finite))

    def _decode(
        self, hidden: torch.Tensor, noise: torch.Tensor, steps: Sequence[int]
    ) -> torch.Tensor:
        """Latents of shape (B, latent); rows of as many steps go together."""
        result = torch.empty_like(noise)
        for number in set(steps):
            rows = [row for row, wanted in enumerate(steps) if wanted == number]
            result[rows] = self._parts.decode(hidden[rows], noise[rows], number)
        return result

    def _batch(self, rows: Sequence[int], new: int) -> GrowingBatch:
        starts = [self._lengths[row] for row in rows]
        for row in rows:
            self._lengths[row] += new
        cache = next(iter(self._caches.values()))
        return GrowingBatch(rows, starts, new, cache, self._rotation)


class DecoderRows:
    """The decoder, for up to `rows` generations at a time: always the first ones of its states."""

    def __init__(self, parts: DecoderParts, rows: int) -> None:
        self._parts = parts
        # Whole frames, so that one never wraps around, and room for some beside the context.
        frames = -(-(parts.context - 1) // parts.steps_per_frame) + MAX_FRAMES_PER_CALL
        places = frames * parts.steps_per_frame
        self._caches = []
        for name, attention in parts.attentions.items():
            shape = (rows, attention.shared_heads, places, attention.numbers)
            self._caches.append(Cache(torch.zeros(shape), torch.zeros(shape)))
            parts.use(name, self._caches[-1])
        self._rotation = attention.rotation
        self._upsampling = parts.upsampling(rows)
        self._layers = parts.layers(rows)
        self._starts: list[int] = []
        self._fades = [False] * rows  # the samples of the last call begin with those of the row
        self._fade_in = torch.linspace(0, 1, parts.fade_in_samples)

    def join(self) -> None:
        """A generation begins, as the last row."""
        row = len(self._starts)
        for tensor in self._states():
            tensor[row] = 0
        self._starts.append(0)

    def leave(self, row: int) -> None:
        """The generation of a row ends; the last row takes its place."""
        last = len(self._starts) - 1
        if row != last:
            for tensor in self._states():
                tensor[row] = tensor[last]
            self._starts[row] = self._starts[last]
        self._starts.pop()

    def begin(self, latents: torch.Tensor, first: int) -> torch.Tensor:
        """The part of decoding that takes rows together: those from `first` on, k latents of each,
        in order: shape (B, k, latent), k up to MAX_FRAMES_PER_CALL."""
        parts, rows = self._parts, slice(first, first + len(latents))
        x = self._upsampling(parts.quantized(latents), rows)
        steps = x.shape[1]
        starts = self._starts[rows]
        batch = RingBatch(first, starts, steps, parts.context, self._caches[0], self._rotation)
        x = parts.transform(x, batch)
        for layer in self._layers[:LAYERS_TOGETHER]:
            x = layer(x, rows)
        self._fades[rows] = [start == 0 for start in starts]
        self._starts[rows] = [start + steps for start in starts]
        return x

    def finish(self, begun: torch.Tensor, row: int) -> torch.Tensor:
        """The samples of one row, shape (k * frame), of its own part of what `begin` gave, shape
        (1, ...). Threads may do different rows."""
        x, alone = begun, slice(row, row + 1)
        for layer in self._layers[LAYERS_TOGETHER:]:
            x = layer(x, alone)
        samples = x[0, :, 0]
        if self._fades[row]:
            faded = min(len(self._fade_in), len(samples))
            samples[:faded] *= self._fade_in[:faded]
        return samples

    def _states(self) -> Iterator[torch.Tensor]:
        for layer in (self._upsampling, *self._layers):
            yield from layer.states()
        for cache in self._caches:
            yield from (cache.keys, cache.values)
