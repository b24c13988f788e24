"""Convolutions over time as matrix products, with the past of each row. Knows torch alone.

Tensors are float32 of shape (rows, time, channels): channels last, so that a window of the past is
one stretch of memory, and an upsampling by s makes its s new steps side by side.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch


class Layer(Protocol):
    """A layer of a decoder, with its states of all rows."""

    def __call__(self, x: torch.Tensor, rows: slice) -> torch.Tensor:
        """The next steps of some rows."""

    def states(self) -> Iterator[torch.Tensor]:
        """What is remembered: tensors of shape (rows, ...), zeros at the beginning of a row."""


class Convolution:
    """A causal convolution, upsampling or not: y[t] = bias + sum of x[t - d (k - 1 - j)] @ w[j].

    `weights` has shape (k, inputs, stride * outputs), `bias` (outputs); y is `stride` times as long
    as x. `past` holds what x was before: zeros at the beginning.
    """

    def __init__(
        self, weights: torch.Tensor, bias: torch.Tensor, rows: int, stride: int, dilation: int
    ) -> None:
        self._taps, self._inputs, _ = weights.shape
        self._weights = weights.flatten(0, 1).contiguous()
        self._bias = bias.repeat(stride)
        self._stride = stride
        self._dilation = dilation
        self.past = torch.zeros(rows, (self._taps - 1) * dilation, self._inputs)

    @classmethod
    def plain(
        cls, weight: torch.Tensor, bias: torch.Tensor | None, rows: int, dilation: int
    ) -> "Convolution":
        """Of the weights of a `Conv1d`: (outputs, inputs, k)."""
        bias = weight.new_zeros(weight.shape[0]) if bias is None else bias
        return cls(weight.detach().permute(2, 1, 0), bias.detach(), rows, 1, dilation)

    @classmethod
    def transposed(
        cls, weight: torch.Tensor, bias: torch.Tensor | None, rows: int, stride: int
    ) -> "Convolution":
        """Of the weights of a `ConvTranspose1d`: (inputs, outputs, k), k a multiple of `stride`.

        What input t adds to output s of the block j blocks later is weight[:, :, j * stride + s].
        """
        inputs, outputs, length = weight.shape
        bias = weight.new_zeros(outputs) if bias is None else bias
        blocks = weight.detach().view(inputs, outputs, length // stride, stride)
        taps = blocks.permute(2, 0, 3, 1).flip(0).reshape(-1, inputs, stride * outputs)
        return cls(taps, bias.detach(), rows, stride, 1)

    def __call__(self, x: torch.Tensor, rows: slice) -> torch.Tensor:
        count, time, inputs = x.shape
        if self._taps > 1:
            past = self.past[rows]
            whole = torch.cat((past, x), dim=1)
            past.copy_(whole[:, time:])
            step = self._dilation * inputs
            shape = (count, time, self._taps, inputs)
            x = whole.as_strided(shape, (whole.stride(0), inputs, step, 1))
        y = torch.addmm(self._bias, x.reshape(count * time, -1), self._weights)
        return y.view(count, time * self._stride, -1)

    def states(self) -> Iterator[torch.Tensor]:
        yield self.past


class ChannelwiseUpsampling:
    """A transposed convolution whose channels are separate, k = 2 * stride, without bias.

    `weight` has shape (channels, 1, k).
    """

    def __init__(self, weight: torch.Tensor, rows: int, stride: int) -> None:
        now, later = weight.detach()[:, 0].t().split(stride)
        self._now, self._later = now.contiguous(), later.contiguous()
        self.past = torch.zeros(rows, 1, weight.shape[0])

    def __call__(self, x: torch.Tensor, rows: slice) -> torch.Tensor:
        past = self.past[rows]
        before = torch.cat((past, x[:, :-1]), dim=1)
        past.copy_(x[:, -1:])
        y = x[:, :, None] * self._now + before[:, :, None] * self._later
        return y.flatten(1, 2)

    def states(self) -> Iterator[torch.Tensor]:
        yield self.past


class Elu:
    """x where it is positive, exp(x) - 1 where it is not. Faster than torch's own, which takes more
    care of small numbers."""

    def __call__(self, x: torch.Tensor, rows: slice) -> torch.Tensor:  # noqa: ARG002 - a Layer
        return torch.maximum(x, x.clamp(max=0).exp_().sub_(1))

    def states(self) -> Iterator[torch.Tensor]:
        yield from ()


class Residual:
    """Layers whose result is added to what they were given."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = layers

    def __call__(self, x: torch.Tensor, rows: slice) -> torch.Tensor:
        y = x
        for layer in self._layers:
            y = layer(y, rows)
        return y.add_(x)

    def states(self) -> Iterator[torch.Tensor]:
        for layer in self._layers:
            yield from layer.states()
