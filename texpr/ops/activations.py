"""Activation functions of neural networks, element by element. Floats of 16 bits are computed in float32."""

from __future__ import annotations

from collections.abc import Callable

from weft.support.argument_types import shown
from weft.texpr import math
from weft.texpr.expr import Expr
from weft.texpr.ops.arguments import compute, constant, floating, is_one_of, numeric, sum_dtype
from weft.texpr.places import error
from weft.texpr.reductions import max as greater
from weft.texpr.reductions import min as less
from weft.texpr.tensor import Tensor

__all__ = ["elu", "gelu", "hardsigmoid", "hardswish", "leaky_relu", "mish", "relu", "silu", "softplus"]

_ROOT_HALF = 0.7071067811865476
"""sqrt(1 / 2)"""
_ROOT_TWO_BY_PI = 0.7978845608028654
"""sqrt(2 / pi)"""


def _activation(data: Tensor, function: Callable[[Expr], Expr], label: str, name: str) -> Tensor:
    """`function` of each float, in float32 where it has 16 bits."""
    source = floating(data, f"{label}: data")
    wide = sum_dtype(source.dtype)
    return compute(source.shape, lambda *i: function(source(*i).astype(wide)).astype(source.dtype), name)


def relu(data: Tensor, *, name: str = "relu") -> Tensor:
    """The greater of x and 0; NaN stays.

    Dtypes: numbers.
    Equals: `np.maximum(data, 0)`.
    """
    source = numeric(data, "relu: data")
    return compute(source.shape, lambda *i: greater(source(*i), constant(0, source.dtype)), name)


def leaky_relu(data: Tensor, alpha: float = 0.01, *, name: str = "leaky_relu") -> Tensor:
    """x where it is positive, else alpha * x.

    Dtypes: floats.
    Equals: `torch.nn.functional.leaky_relu(data, alpha)`.
    """
    return _activation(data, lambda x: math.select(x > 0.0, x, x * alpha), "leaky_relu", name)


def elu(data: Tensor, alpha: float = 1.0, *, name: str = "elu") -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1).

    Dtypes: floats.
    Equals: `torch.nn.functional.elu(data, alpha)`.
    """
    return _activation(data, lambda x: math.select(x > 0.0, x, math.expm1(x) * alpha), "elu", name)


def gelu(data: Tensor, approximate: str = "none", *, name: str = "gelu") -> Tensor:
    """x times the normal distribution function: x / 2 * (1 + erf(x / sqrt(2))), or its form by tanh.

    `approximate` is "none" or "tanh": x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), Hendrycks and Gimpel 2016.

    Dtypes: floats.
    Equals: `torch.nn.functional.gelu(data, approximate=...)`.
    """
    if not is_one_of(approximate, ("none", "tanh")):
        raise error(f"gelu: approximate is 'none' or 'tanh', got {shown(approximate)}")

    def exact(x: Expr) -> Expr:
        return x * 0.5 * (math.erf(x * _ROOT_HALF) + 1.0)

    def by_tanh(x: Expr) -> Expr:
        return x * 0.5 * (math.tanh((x * x * x * 0.044715 + x) * _ROOT_TWO_BY_PI) + 1.0)

    return _activation(data, exact if approximate == "none" else by_tanh, "gelu", name)


def silu(data: Tensor, *, name: str = "silu") -> Tensor:
    """x * sigmoid(x), also called swish.

    Dtypes: floats.
    Equals: `torch.nn.functional.silu(data)`.
    """
    return _activation(data, lambda x: x / (math.exp(-x) + 1.0), "silu", name)


def hardsigmoid(data: Tensor, *, name: str = "hardsigmoid") -> Tensor:
    """(x + 3) / 6, from 0 to 1.

    Dtypes: floats.
    Equals: `torch.nn.functional.hardsigmoid(data)`.
    """
    return _activation(data, lambda x: less(greater(x + 3.0, 0.0), 6.0) / 6.0, "hardsigmoid", name)


def hardswish(data: Tensor, *, name: str = "hardswish") -> Tensor:
    """x times `hardsigmoid` of x.

    Dtypes: floats.
    Equals: `torch.nn.functional.hardswish(data)`.
    """
    return _activation(data, lambda x: x * less(greater(x + 3.0, 0.0), 6.0) / 6.0, "hardswish", name)


def softplus(data: Tensor, *, name: str = "softplus") -> Tensor:
    """log(1 + exp(x)), without overflow.

    Dtypes: floats.
    Equals: `torch.nn.functional.softplus(data)`.
    """
    return _activation(data, _softplus, "softplus", name)


def _softplus(x: Expr) -> Expr:
    return greater(x, 0.0) + math.log1p(math.exp(-math.abs(x)))


def mish(data: Tensor, *, name: str = "mish") -> Tensor:
    """x * tanh(softplus(x)).

    Dtypes: floats.
    Equals: `torch.nn.functional.mish(data)`.
    """
    return _activation(data, lambda x: x * math.tanh(_softplus(x)), "mish", name)
