"""Linear layers for a few rows at a time. Knows torch alone.

They are put in place of a module's `forward` and take over calls with several rows of one position
each: x of shape (B, K) or (B, 1, K), float32. All other calls go to the module.
"""

from typing import Any

import torch
from torch import nn

# torch's dynamic int8 quantizes activations to this many steps (7 bits, so that sums of two
# products fit into 16 bits), and none is smaller than the second number.
INT8_STEPS = 127.0
INT8_LEAST_STEP = 6.1e-5


class FewRows:
    """`nn.Linear.forward` as many small products.

    Reading the weights is most of the work. For a large product a library for matrices first
    brings them into another order, which does not pay for so few rows.
    """

    OUTPUTS = 32  # of each product
    MAX_ROWS = 16  # beyond, the order pays

    def __init__(self, module: nn.Linear) -> None:
        self._module = module
        self._products = module.out_features // self.OUTPUTS

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        module, rows = self._module, x.shape[0]
        if (
            not 1 < rows <= self.MAX_ROWS
            or x.numel() != rows * module.in_features
            or module.out_features % self.OUTPUTS
        ):
            return nn.Linear.forward(module, x)
        weights = module.weight.view(self._products, self.OUTPUTS, -1).transpose(1, 2)
        y = torch.bmm(x.view(rows, -1).expand(self._products, -1, -1), weights)
        y = y.transpose(0, 1).reshape(*x.shape[:-1], -1)
        return y if module.bias is None else y.add_(module.bias)


class EachRow:
    """`nn.Linear.forward`, to the last bit what each row would get alone, where `each_row` finds it
    so.

    Where activations are rounded to int8 the last bit counts: it may turn a value the other way,
    and the rest of the audio with it.
    """

    BYTES = 1 << 18  # of weights at a time: they stay in the processor's cache for all rows

    def __init__(self, module: nn.Linear) -> None:
        self._module = module
        self._outputs = max(1, self.BYTES // (4 * module.in_features))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        module, rows = self._module, x.shape[0]
        if rows == 1 or x.numel() != rows * module.in_features:
            return nn.Linear.forward(module, x)
        each = x.view(rows, 1, -1)
        bias = x.new_zeros(module.out_features) if module.bias is None else module.bias
        parts = [
            torch.baddbmm(some_bias, each, some.t().expand(rows, -1, -1))
            for some, some_bias in zip(
                module.weight.split(self._outputs), bias.split(self._outputs), strict=True
            )
        ]
        return torch.cat(parts, dim=2).view(*x.shape[:-1], -1)


class EachRowInt8:
    """The dynamic int8 linear of torch, to the last bit what each row would get alone.

    torch quantizes all rows of a call by one scale, from the smallest to the largest activation of
    them all: rows would hear of each other. Here every row gets its own scale. The module is
    given whole numbers and takes them as they are, because one more row, of 0 and INT8_STEPS,
    makes its scale 1.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._inputs: int = module.in_features
        weight = module.weight()
        if weight.qscheme() == torch.per_tensor_affine:
            self._scale = torch.tensor(weight.q_scale(), dtype=torch.float32)
        else:
            self._scale = weight.q_per_channel_scales().float()
        self._sums = weight.int_repr().sum(1, dtype=torch.float32)  # of the weights, per output

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        module, rows = self._module, x.shape[0]
        if rows == 1 or x.numel() != rows * self._inputs:
            return type(module).forward(module, x)
        # In float64 as torch does it. (`aminmax` takes several times as long as these two.)
        least = x.amin(-1, keepdim=True).clamp_(max=0).double()
        most = x.amax(-1, keepdim=True).clamp_(min=0).double()
        step = most.sub_(least).div_(INT8_STEPS).float()
        zero = least.div_(step.clamp_(min=1e-30)).neg_().round_().float()
        step.clamp_(min=INT8_LEAST_STEP)
        whole = x.new_zeros((rows + 1, *x.shape[1:]))
        whole[rows, ..., 0] = INT8_STEPS
        # One rounding less than a product and a sum, as torch does it. What is no number stays in
        # its row: it would spoil the common scale.
        torch.addcmul(zero, x, step.reciprocal(), out=whole[:rows]).nan_to_num_(0.0)
        whole.round_().clamp_(0, INT8_STEPS)
        sums = type(module).forward(module, whole)[:rows]
        sums.div_(self._scale).round_()  # whole numbers again
        return sums.sub_(zero * self._sums).mul_(step * self._scale)


class OneByOne:
    """Rows one after the other, for processors on which the faster ways are not exact."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        forward = type(self._module).forward
        return torch.cat([forward(self._module, row) for row in x.split(1)])


def each_row(module: nn.Linear) -> "EachRow | OneByOne":
    """The faster one of those that are exact here: it depends on the library for matrices."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, module.in_features, generator=generator)
    alone, together = OneByOne(module), EachRow(module)
    is_exact = all(torch.equal(together(x[:rows]), alone(x[:rows])) for rows in range(2, 9))
    return together if is_exact else alone


def is_int8(module: nn.Module) -> bool:
    """Whether it is torch's dynamic int8 linear. (That of torchao scales each row by itself.)"""
    kind = type(module)
    return kind.__name__ == "Linear" and kind.__module__.startswith("torch.ao.nn.quantized.dynamic")


def separate(module: Any) -> bool:
    """Make an int8 linear scale each row by itself; False if that takes a call for each row."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 1, module.in_features, generator=generator)
    x *= torch.tensor([0.1, 1.0, 10.0])[:, None, None]
    alone, together = OneByOne(module), EachRowInt8(module)
    is_exact: bool = torch.allclose(together(x), alone(x), rtol=1e-5, atol=1e-5)
    module.forward = together if is_exact else alone
    return is_exact
