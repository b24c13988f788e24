"""Attention of rows that are at different positions. Knows torch alone.

Shapes use B rows of a batch, t new positions per row, H heads of the queries, G heads of keys and
values (G divides H), D numbers per head. All tensors are float32.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import Protocol

import torch
from torch.nn.functional import scaled_dot_product_attention

Projection = Callable[[torch.Tensor], torch.Tensor]


class Rotation:
    """Rotary position embedding (https://arxiv.org/abs/2104.09864) of pairs of neighbours."""

    def __init__(self, numbers_per_head: int, max_period: float) -> None:
        pairs = torch.arange(numbers_per_head // 2, dtype=torch.float32)
        self._frequencies = torch.exp(pairs * (-math.log(max_period) * 2 / numbers_per_head))

    def at(self, positions: torch.Tensor) -> torch.Tensor:
        """Factors for positions of shape (B, t): complex64 of shape (B, t, 1, D / 2)."""
        angles = positions.float()[:, :, None, None] * self._frequencies
        return torch.complex(torch.cos(angles), torch.sin(angles))


@dataclass(slots=True)
class Cache:
    """Keys and values of one layer: each of shape (rows, G, places, D)."""

    keys: torch.Tensor
    values: torch.Tensor

    @classmethod
    def lazy(cls, rows: int, heads: int, places: int, numbers: int) -> "Cache":
        """Zeros whose memory is taken page by page, when it is first written. (numpy asks for huge
        pages, of which a row uses a part.)"""
        shape = (rows, heads, places, numbers)
        size = 4 * math.prod(shape)
        keys, values = (torch.frombuffer(mmap(-1, size), dtype=torch.float32) for _ in range(2))
        return cls(keys.view(shape), values.view(shape))

    def fill(self, row: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Begin a row with keys and values of shape (positions, G, D)."""
        self.keys[row, :, : len(keys)] = keys.transpose(0, 1)
        self.values[row, :, : len(values)] = values.transpose(0, 1)

    def beginning(self, row: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of one row up to `end`: views of shape (1, G, end, D)."""
        _, heads, _, numbers = self.keys.shape
        strides, shape = self.keys.stride(), (1, heads, end, numbers)
        # One call for each instead of two: there are many.
        return (
            self.keys.as_strided(shape, strides, row * strides[0]),
            self.values.as_strided(shape, strides, row * strides[0]),
        )

    def write(self, lines: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Put keys and values (B, t, G, D) into lines of (rows * G * places): shape (B * t * G)."""
        numbers = keys.shape[-1]
        for cache, new in ((self.keys, keys), (self.values, values)):
            cache.view(-1, numbers).index_copy_(0, lines, new.reshape(-1, numbers))


class Batch(Protocol):
    """Where one call of a model writes to the caches of its layers, and what it reads."""

    rotation: torch.Tensor

    def attend(
        self, cache: Cache, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Append keys and values (B, t, G, D); returns what queries (B, t, H, D) find, of their
        shape."""


@dataclass(frozen=True, slots=True)
class Attention:
    """A layer's attention. `project` gives queries, keys and values one after the other."""

    project: Projection
    project_back: Projection
    heads: int
    shared_heads: int
    numbers: int
    rotation: Rotation

    def __call__(self, x: torch.Tensor, batch: Batch, cache: Cache) -> torch.Tensor:
        """x of shape (B, t, channels) to its like."""
        projected = self.project(x)
        turned = self.heads + self.shared_heads
        pairs = projected[..., : turned * self.numbers].unflatten(
            -1, (turned, self.numbers // 2, 2)
        )
        rotated = torch.view_as_real(torch.view_as_complex(pairs) * batch.rotation).flatten(-2)
        queries, keys = rotated.split((self.heads, self.shared_heads), dim=2)
        values = projected[..., turned * self.numbers :].unflatten(-1, (self.shared_heads, -1))
        return self.project_back(batch.attend(cache, queries, keys, values).flatten(-2))


class GrowingBatch:
    """Rows of any length: row i of the batch is row `rows[i]` of the caches and gets t positions
    from `starts[i]` on. More than one position at a time only for a single row."""

    def __init__(
        self,
        rows: Sequence[int],
        starts: Sequence[int],
        new: int,
        cache: Cache,
        rotation: Rotation,
    ) -> None:
        _, heads, places, _ = cache.keys.shape
        self._spans = [(row, start + new) for row, start in zip(rows, starts, strict=True)]
        where = torch.tensor(starts)[:, None] + torch.arange(new)  # (B, t)
        self.rotation = rotation.at(where)
        lines = torch.tensor(rows)[:, None] * heads + torch.arange(heads)  # (B, G)
        self._lines = (lines[:, None, :] * places + where[:, :, None]).flatten()
        self._mask = (
            torch.ones(new, starts[0] + new, dtype=torch.bool).tril(starts[0]) if new > 1 else None
        )

    def attend(
        self, cache: Cache, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Rows are looked up one by one: each reads its own length alone, and needs no mask."""
        cache.write(self._lines, keys, values)
        count, new, heads, numbers = queries.shape
        shared = keys.shape[2]
        # Heads that share their keys become positions: (B, G, H / G * t, D).
        asked = queries.view(count, new, shared, -1, numbers).permute(0, 2, 3, 1, 4)
        asked = asked.reshape(count, shared, -1, numbers)
        mask = self._mask if self._mask is None else self._mask.repeat(heads // shared, 1)
        found = torch.cat(
            [
                scaled_dot_product_attention(one, *cache.beginning(row, end), mask)
                for one, (row, end) in zip(asked.split(1), self._spans, strict=True)
            ]
        )
        found = found.view(count, shared, -1, new, numbers).permute(0, 3, 1, 2, 4)
        return found.reshape(count, new, heads, numbers)


class RingBatch:
    """Rows that see a window: row i of the batch is row `first + i` of the caches and gets t
    positions from `starts[i]` on. A query sees itself and the `context - 1` positions before it;
    the caches are rings of at least `context - 1 + t` places."""

    def __init__(
        self,
        first: int,
        starts: Sequence[int],
        new: int,
        context: int,
        cache: Cache,
        rotation: Rotation,
    ) -> None:
        _, heads, ring, _ = cache.keys.shape
        self._rows = slice(first, first + len(starts))
        assert ring >= context - 1 + new, "the ring would overwrite what is still seen"
        where = torch.tensor(starts)[:, None] + torch.arange(new)  # (B, t)
        self.rotation = rotation.at(where)
        lines = torch.arange(first * heads, (first + len(starts)) * heads).view(-1, 1, heads)
        self._lines = (lines * ring + (where % ring)[:, :, None]).flatten()
        # Place p of a ring holds the newest position that is p modulo its length.
        newest = where[:, -1:]
        held = newest - (newest - torch.arange(ring)) % ring  # (B, ring); negative: never written
        age = where[:, :, None] - held[:, None, :]
        unseen = (age < 0) | (age >= context) | (held < 0)[:, None, :]
        self._mask = torch.zeros(unseen.shape).masked_fill_(unseen, -torch.inf)[:, None]

    def attend(
        self, cache: Cache, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """All rows at once: their windows are of one length."""
        cache.write(self._lines, keys, values)
        sharing = queries.shape[2] // keys.shape[2]
        seen = (cache.keys[self._rows], cache.values[self._rows])
        if sharing > 1:
            seen = (
                seen[0].repeat_interleave(sharing, dim=1),
                seen[1].repeat_interleave(sharing, dim=1),
            )
        answer = scaled_dot_product_attention(queries.transpose(1, 2), *seen, self._mask)
        return answer.transpose(1, 2)
