"""Elementwise activation functions. 16-bit floats use float32."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from weft.dialects.graph_traits import Elementwise, Idempotent, declare
from weft.support.argument_types import shown
from weft.texpr import math
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, ExprLike, error
from weft.texpr.ops.arguments import constant, elementwise, floating, is_one_of, one_dtype
from weft.texpr.ops.elementwise import UnaryOperator, mapped, unary_operator
from weft.texpr.tensor import Tensor

__all__ = ["celu", "elu", "gelu", "hardsigmoid", "hardswish", "leaky_relu", "log_sigmoid", "mish", "prelu", "relu"]
__all__ += ["selu", "shrink", "silu", "softplus", "softsign", "thresholded_relu"]


def _activation(label: str, doc: str, scalar: Callable[[Expr], Expr]) -> UnaryOperator:
    return unary_operator(label, doc, f"torch.nn.functional.{label}(data)", scalar, wide=True)


def _softplus(x: Expr) -> Expr:
    return te.max(x, 0.0) + math.log1p(math.exp(-math.abs(x)))


def _relu(x: Expr) -> Expr:
    return te.max(x, constant(0, x.dtype))


def _relu6(x: Expr) -> Expr:
    return te.min(te.max(x, 0.0), 6.0)


relu = unary_operator("relu", "The maximum of x and 0; NaN is kept.", "np.maximum(data, 0)", _relu, "numbers")
hardswish = _activation(
    "hardswish", "x times `hardsigmoid` of x: x * (x + 3) / 6 between -3 and 3.", lambda x: x * _relu6(x + 3.0) / 6.0
)
mish = _activation("mish", "x * tanh(softplus(x)).", lambda x: x * math.tanh(_softplus(x)))
softsign = _activation("softsign", "x / (1 + abs(x)).", lambda x: x / (math.abs(x) + 1.0))
log_sigmoid = unary_operator(
    "log_sigmoid",
    "The logarithm of `sigmoid`, without overflow.",
    "torch.nn.functional.logsigmoid(data)",
    lambda x: -_softplus(-x),
    wide=True,
)

_ROOT_HALF = 0.7071067811865476
"""sqrt(1 / 2)"""
_ROOT_TWO_BY_PI = 0.7978845608028654
"""sqrt(2 / pi)"""


def _scaled(x: Expr, factor: float) -> Expr:
    return x if factor == 1 else x * factor


def silu(data: Tensor, alpha: float = 1.0, *, name: str = "silu") -> Tensor:
    """x * sigmoid(alpha * x), also called swish.

    Dtypes: floats.
    Equals: `torch.nn.functional.silu(data)`; ONNX Swish.
    """
    return mapped(floating(data, "silu: data"), lambda x: x / (math.exp(-_scaled(x, alpha)) + 1.0), name)


def hardsigmoid(data: Tensor, alpha: float = 1 / 6, beta: float = 0.5, *, name: str = "hardsigmoid") -> Tensor:
    """alpha * x + beta, clamped to 0 .. 1.

    Dtypes: floats.
    Equals: `torch.nn.functional.hardsigmoid(data)`; ONNX HardSigmoid.
    """

    def scalar(x: Expr) -> Expr:
        return te.min(te.max(x * alpha + beta, 0.0), 1.0)

    return mapped(floating(data, "hardsigmoid: data"), scalar, name)


def softplus(data: Tensor, beta: float = 1.0, threshold: float = inf, *, name: str = "softplus") -> Tensor:
    """log(1 + exp(beta * x)) / beta, without overflow; x if beta * x exceeds the threshold.

    Dtypes: floats.
    Equals: `torch.nn.functional.softplus(data, beta, threshold)`.
    """

    def scalar(x: Expr) -> Expr:
        scaled = _scaled(x, beta)
        soft = _softplus(scaled) if beta == 1 else _softplus(scaled) / beta
        return soft if threshold == inf else math.select(scaled > threshold, x, soft)

    return mapped(floating(data, "softplus: data"), scalar, name)


def leaky_relu(data: Tensor, alpha: float = 0.01, *, name: str = "leaky_relu") -> Tensor:
    """x if positive, else alpha * x.

    Dtypes: floats.
    Equals: `torch.nn.functional.leaky_relu(data, alpha)`.
    """
    return mapped(floating(data, "leaky_relu: data"), lambda x: math.select(x > 0.0, x, x * alpha), name)


def elu(data: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0, *, name: str = "elu") -> Tensor:
    """x if positive, else alpha * (exp(input_scale * x) - 1); times `scale`.

    Dtypes: floats.
    Equals: `torch.nn.functional.elu(data, alpha)`, with scales `torch.ops.aten.elu`.
    """

    def scalar(x: Expr) -> Expr:
        return _scaled(math.select(x > 0.0, x, math.expm1(_scaled(x, input_scale)) * alpha), scale)

    return mapped(floating(data, "elu: data"), scalar, name)


def gelu(data: Tensor, approximate: str = "none", *, name: str = "gelu") -> Tensor:
    """x times the normal distribution function: x / 2 * (1 + erf(x / sqrt(2))).

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

    return mapped(floating(data, "gelu: data"), exact if approximate == "none" else by_tanh, name)


def celu(data: Tensor, alpha: float = 1.0, *, name: str = "celu") -> Tensor:
    """x if positive, else alpha * (exp(x / alpha) - 1). Raises CompileError for an alpha of 0.

    Dtypes: floats.
    Equals: `torch.nn.functional.celu(data, alpha)`.
    """
    source = floating(data, "celu: data")
    if alpha == 0:
        raise error("celu: alpha must not be 0")
    return mapped(source, lambda x: math.select(x > 0.0, x, math.expm1(x / alpha) * alpha), name)


_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def selu(data: Tensor, alpha: float = _SELU_ALPHA, gamma: float = _SELU_SCALE, *, name: str = "selu") -> Tensor:
    """gamma times `elu`; the default constants preserve mean and variance (Klambauer et al. 2017).

    Dtypes: floats.
    Equals: `torch.nn.functional.selu(data)`.
    """
    return elu(data, alpha, gamma, name=name)


def thresholded_relu(data: Tensor, alpha: float = 1.0, *, name: str = "thresholded_relu") -> Tensor:
    """x if greater than alpha, else 0.

    Dtypes: floats.
    Equals: `torch.nn.functional.threshold(data, alpha, 0)`; ONNX ThresholdedRelu.
    """
    return mapped(floating(data, "thresholded_relu: data"), lambda x: math.select(x > alpha, x, 0.0), name)


def shrink(data: Tensor, lambd: float = 0.5, bias: float = 0.0, *, name: str = "shrink") -> Tensor:
    """x + bias below -lambd, x - bias above lambd, else 0; softshrink if the bias is lambd.

    Dtypes: floats.
    Equals: `torch.nn.functional.hardshrink(data, lambd)`; ONNX Shrink.
    """

    def scalar(x: Expr) -> Expr:
        return math.select(x < -lambd, x + bias, math.select(x > lambd, x - bias, 0.0))

    return mapped(floating(data, "shrink: data"), scalar, name)


def prelu(data: Tensor, slope: Tensor, *, name: str = "prelu") -> Tensor:
    """x if positive, else slope * x, broadcast: (c, 1, 1) is a slope per channel of (n, c, h, w).

    Dtypes: floats.
    Equals: `np.where(data > 0, data, data * slope)`; ONNX PRelu.
    """
    one_dtype("prelu", floating(data, "prelu: data"), floating(slope, "prelu: slope"))

    def element(x: ExprLike, factor: ExprLike) -> Expr:
        return math.select(x > 0.0, x, x * factor)

    return elementwise("prelu", element, (data, slope), name)


declare(Elementwise(), *map(globals().__getitem__, __all__))
declare(Idempotent(), relu)
