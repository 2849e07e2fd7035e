"""A form, or several, of every operator of the graph dialect: for tests, and for the examples of its page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

import weft
from weft.dialects.attribute_values import attribute_of
from weft.dialects.graph_shapes import DimsAttr
from weft.texpr.graph_operators import OPERATORS

BY_NAME = {operator.name.removeprefix("graph."): operator for operator in OPERATORS}


SIZE = 3
"""The extent that symbols stand for."""


@dataclass
class Form:
    """An operator on operands of these types ("4x6xf32"; None is left out, a list where a role takes several). A letter
    is a symbolic extent: "nx6xf32"."""

    operator: str
    operands: list[Any]
    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    low: float = -2.0
    high: float = 2.0
    tolerance: float = 2e-5

    def __str__(self) -> str:
        return f"{self.operator}({', '.join(map(str, self.operands))}{self.properties or ''})"


def form(
    operator: str, *operands: Any, low: float = -2.0, high: float = 2.0, tolerance: float = 2e-5, **properties: Any
):
    return Form(operator, list(operands), properties, low, high, tolerance)


F = "3x5xf32"
_DIVISIONS = ("floor_divide", "floor_mod", "trunc_divide", "trunc_mod")
IMAGE, CHANNELS_LAST = "2x4x6x7xf32", "2x6x7x4xf32"
QCONV: dict[str, Any] = {"groups": 2, "padding": 1, "strides": [1, 2], "low": 1, "high": 6}
BYTES: dict[str, Any] = {"low": 0, "high": 9}
BOTH: dict[str, Any] = {"direction": "bidirectional", "low": -1, "high": 4}
ROUNDED: dict[str, Any] = {"state_scale": 0.01, "tolerance": 1e-2}
LSTM = ("3x2x4xf32", "1x8x4xf32", "1x8x2xf32", "1x16xf32", "2xi32", "1x2x2xf32", "1x2x2xf32")
ROI = [0.125, 1.25]
FORMS = [
    *(form(name, F) for name in ("abs", "cbrt", "ceil", "cos", "cosh", "exp", "exp2", "expm1", "floor", "isfinite")),
    *(form(name, F) for name in ("isinf", "isnan", "negative", "sign", "sin", "sinh", "square", "tan", "tanh")),
    *(form(name, F) for name in ("trunc", "atan", "asinh", "sigmoid", "erf", "round", "relu", "softplus", "silu")),
    *(form(name, F) for name in ("softsign", "log_sigmoid", "celu", "selu", "thresholded_relu", "shrink")),
    *(form(name, F) for name in ("mish", "hardsigmoid", "hardswish", "leaky_relu", "elu", "gelu", "softmax")),
    *(form(name, F, low=0.25, high=4.0) for name in ("log", "log10", "log1p", "log2", "sqrt", "rsqrt", "reciprocal")),
    *(form(name, F, low=-0.9, high=0.9) for name in ("acos", "asin", "atanh")),
    form("acosh", F, low=1.25, high=4.0),
    *(form(name, "3x5xi1") for name in ("logical_not", "all", "any")),
    *(form(name, "3x5xi16", low=-9, high=9) for name in ("abs", "negative", "sign", "square", "bitwise_not", "relu")),
    *(form(name, "3x1xf32", "5xf32") for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")),
    *(
        form(name, "3x1xi32", "5xi32")
        for name in ("add", "subtract", "multiply", "maximum", "minimum", "equal", "less")
    ),
    *(form(name, F, "f32") for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")),
    *(form(name, "3x5xi1", "3x1xi1") for name in ("logical_and", "logical_or", "logical_xor", "bitwise_xor")),
    *(form(name, "4xi32", "4xi32", low=-9, high=9) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *(
        form(name, "4xi32", "4xi32", low=1, high=9)
        for name in ("floor_divide", "floor_mod", "trunc_divide", "trunc_mod")
    ),
    *(form(name, "4x5xf32", "5xf32", low=-9, high=9) for name in _DIVISIONS),
    *(form(name, "6xf16", "6xf16", low=-90, high=9) for name in _DIVISIONS),
    *(form(name, "4xi32", "4xi32", low=0, high=5) for name in ("left_shift", "right_shift")),
    *(form(name, "3x7xi8", "7xi8", low=-9, high=11) for name in ("left_shift", "right_shift")),
    form("copysign", F, "5xf32"),
    *(form(name, F, low=-3.0, high=3.0) for name in ("erfc", "lgamma", "digamma", "signbit")),
    form("erf_inv", F, low=-0.99, high=0.99),
    form("ndtri", F, low=0.01, high=0.99),
    *(form(name, F, low=-9.0, high=9.0) for name in ("bessel_j0", "bessel_j1", "bessel_i0e", "bessel_i1e", "erfcx")),
    *(form(name, F, low=0.1, high=9.0) for name in ("bessel_y0", "bessel_y1", "bessel_k0", "bessel_k0e")),
    *(form(name, F, low=0.5, high=9.0) for name in ("bessel_k1", "bessel_k1e", "spherical_bessel_j0")),
    *(form(name, F) for name in ("bessel_i0", "bessel_i1", "airy_ai", "frexp")),
    form("frexp", "5xf16"),
    form("zeta", F, "5xf32", low=1.5, high=4.0),
    form("polygamma", "3x1xf32", F, low=2.0, high=2.0),
    form("igamma", F, "5xf32", low=0.5, high=9.0),
    form("igamma", F, F, low=0.5, high=9.0, complement=True),
    *(
        form("orthogonal_polynomial", F, "5xi32", low=0, high=5, tolerance=2e-4, kind=kind)
        for kind in ("chebyshev_t", "chebyshev_u", "chebyshev_v", "chebyshev_w", "legendre_p", "laguerre_l")
    ),
    *(
        form("orthogonal_polynomial", F, "3x1xi32", low=0, high=3, tolerance=2e-4, kind=kind)
        for kind in ("hermite_h", "hermite_he")
    ),
    form("orthogonal_polynomial", F, F, low=0, high=4, tolerance=2e-4, kind="chebyshev_t", shifted=True),
    *(form("mode", "4x6xi8", low=0, high=3, axis=axis, keepdims=axis == 0) for axis in (0, 1)),
    *(form(name, "2x4x4xf32", tolerance=2e-3) for name in ("lu", "cholesky", "householder_factors", "eigh", "svd")),
    *(form("svd", f"{shape}xf64", tolerance=1e-9) for shape in ("2x3x5", "5x3")),
    *(form(name, f"{shape}xf64", tolerance=1e-9) for name in ("lu", "householder_factors") for shape in ("3x5", "5x3")),
    form("eigh", "3x3xf64", lower=False),
    form("lu_solve", "2x4x4xf64", "2x4xi64", "2x4x3xf64", low=1, high=3, tolerance=1e-6),
    form("solve_triangular", "2x4x4xf64", "2x4x3xf64", low=1.0, high=2.0, tolerance=1e-6),
    form("solve_triangular", "3x3xf64", "3x1xf64", low=0.1, high=0.9, lower=False, unit_diagonal=True),
    form("householder_product", "2x5x3xf64", "2x3xf64", tolerance=1e-6),
    form("householder_product", "5x3xf64", "3xf64", columns=5, tolerance=1e-6),
    *(form("adaptive_max_pool_with_indices", IMAGE, output_size=size) for size in ([2, 3], [3, 7])),
    form("adaptive_max_pool_with_indices", "1x2x3x5xf32", output_size=[2, 3]),
    form("nextafter", F, "5xf32"),
    form("bitcast", F, dtype="int32"),
    *(form("gcd", f"3x4x{dtype}", f"4x{dtype}", low=-9, high=99) for dtype in ("i32", "i8")),
    form("signbit", "4xi32"),
    *(form("logcumsumexp", F, axis=axis) for axis in (0, -1)),
    form("sign", F, keep_nan=False),
    *(form("isinf", F, detect_negative=negative, detect_positive=not negative) for negative in (False, True)),
    form("isinf", F, detect_negative=False, detect_positive=False),
    form("nan_to_num", F, nan=1.0, posinf=3.0),
    form("round", F, decimals=1),
    form("round", F, decimals=-1, low=-99, high=99),
    form("remainder", "4x5xf32", "5xf32", low=-9, high=9),
    form("remainder", "4xi32", "4xi32", low=1, high=9),
    form("atan2", F, F),
    form("power", F, F, low=0.5, high=2.0),
    form("power", "4xi32", "4xi32", low=0, high=4),
    form("where", "3x5xi1", "5xf32", "3x1xf32"),
    form("fma", F, "5xf32", "3x1xf32"),
    form("fma", "4xi32", "4xi32", "i32"),
    form("leaky_relu", F, alpha=0.3),
    form("elu", F, alpha=0.5),
    form("elu", F, alpha=0.5, scale=2.0, input_scale=3.0),
    form("hardsigmoid", F, alpha=0.5, beta=0.25),
    form("silu", F, alpha=2.0),
    form("softplus", F, beta=2.0, threshold=1.0),
    form("gelu", F, approximate="tanh"),
    form("celu", F, alpha=0.5),
    form("selu", "3x5xf16", tolerance=4e-3),
    form("thresholded_relu", F, alpha=0.25),
    form("shrink", F, lambd=1.5, bias=0.5),
    form("prelu", "2x3x4xf32", "3x1xf32"),
    form("logaddexp", "3x1xf32", "5xf32"),
    form("logaddexp", "3x5xf16", "3x5xf16", tolerance=4e-3),
    form("cast", F, dtype="float16"),
    form("cast", "4xi32", dtype="bool"),
    form("clip", F, a_min=-1.0, a_max=0.5),
    form("clip", "4xi32", a_max=1),
    form("quantize", F, "f32", low=0.25, high=2.0),
    form("quantize", F, "5xf32", "5xi32", axis=1, dtype="int16", low=1.0, high=2.0),
    form("dequantize", "3x5xi8", "3xf32", axis=0),
    form("dequantize", "7x5xi8", "3x5xf32", "3x5xi8", axis=0, group_size=3, low=-9, high=9),
    form("dequantize", "3x10xui8", "3x2xf32", "3x2xf32", axis=1, group_size=5, low=0, high=9),
    form("dequantize", "3xnxui8", "3xnxf32", axis=1, group_size=1, low=0, high=9),
    *(form(name, F) for name in ("sum", "prod", "max", "min", "mean", "var", "argmax", "argmin", "cumsum")),
    *(form(name, F, axis=0, keepdims=True) for name in ("sum", "prod", "max", "min", "mean", "argmax", "argmin")),
    form("sum", "2x3x4xi8", axis=[0, 2]),
    form("sum", "2x3xi8", dtype="int32", axis=-1),
    form("sum", "0x3xf32", axis=0),
    *(form(name, "3x5xi1", axis=1) for name in ("max", "min")),
    form("histc", "4x6xf32", bins=5, a_min=-1.0, a_max=1.5),
    form("histc", "7xf32", bins=3),
    form("var", F, axis=1, ddof=1),
    form("any", "3x5xi1", axis=1),
    form("cumsum", F, axis=1, exclusive=True),
    form("cumsum", "5x3xi8", axis=0, reverse=True, low=-99, high=99),
    form("cumsum", "1x3xf16", axis=1, exclusive=True, reverse=True, tolerance=4e-3),
    *(form(name, F, axis=1) for name in ("cumprod", "cummax", "cummin", "logsumexp", "std")),
    *(form(name, "0x3xi32", axis=1) for name in ("cumprod", "cummax", "cummin", "count_nonzero")),
    form("cummax", "7xi8", reverse=True, low=-99, high=99),
    form("cumprod", "2x3xi16", dtype="int64", axis=0, exclusive=True),
    form("std", "2x3x4xf16", axis=[0, 2], keepdims=True, ddof=1, tolerance=4e-3),
    form("logsumexp", "0x3xf32", axis=0),
    form("logsumexp", "2x3x4xf64", axis=[0, 2], keepdims=True, high=900.0),
    form("count_nonzero", F, keepdims=True),
    form("count_nonzero", "3x5xi1", axis=0),
    form("sum_square", "2x3x4xi8", axis=[0, 2], low=-99, high=99),
    form("sum_square", F),
    *(form("vector_norm", F, axis=1, ord=order) for order in (0, 1, 2, 3, float("inf"), float("-inf"))),
    form("vector_norm", "2x3x4xf16", axis=[0, 2], keepdims=True, tolerance=4e-3),
    form("trace", "3x5xi32", offset=1),
    form("trace", "2x4x3xf32", axis1=1, axis2=-1),
    form("matmul", "2x3x4xf32", "4x5xf32"),
    form("matmul", "4x3xf32", "5x4xf32", transpose_a=True, transpose_b=True),
    form("matmul", "3x4xi8", "4x5xi8", out_dtype="int32"),
    form("batch_matmul", "2x3x4xf32", "2x5x4xf32"),
    form("grouped_matmul", "6x4xf32", "3x4x5xf32", "3xi64", low=0, high=7),
    form("grouped_matmul", "6x4xf16", "2x4x3xf16", "2xi32", low=1, high=6, tolerance=4e-3),
    form("grouped_matmul", "nx4xf32", "2x4xmxf32", "2xi32", low=0, high=9),
    form("dense", "3x4xf32", "5x4xf32", "5xf32"),
    form("dense", "3x4xf16", "5x4xf16", tolerance=4e-3),
    form("einsum", ["2x3x4xf32", "2x4x5xf32"], subscripts="bij,bjk->ik"),
    form("outer", "3xf32", "4xf32"),
    form("cross", "4x3xf32", "3xf32"),
    *(form("det", f"3x{rows}x{rows}xf32", tolerance=2e-4) for rows in (1, 2, 3, 4)),
    form("cross", "3x1xi32", "3x5xi32", axis=0),
    form("attention", "2x3x8xf32", "2x5x8xf32", "2x5x6xf32"),
    form("attention", "3x8xf32", "3x8xf32", "3x6xf32", None, is_causal=True, scale=0.5),
    form("attention", "3x8xf32", "5x8xf32", "5x6xf32", "3x5xf32"),
    form("attention", "2x6x3x8xf32", "2x2x5x8xf32", "2x2x5x4xf32", "6x3x5xi1", enable_gqa=True, high=1.0),
    form("attention", "4x3x8xf32", "2x3x8xf32", "2x3x4xf32", None, enable_gqa=True, is_causal=True, softcap=0.5),
    form("attention", "4xnx8xf32", "2xmx8xf32", "2xmx4xf32", None, enable_gqa=True),
    form("cached_attention", "2x1x8xf32", "2x1x8xf32", "2x1x4xf32", "2x5x8xf32", "2x5x4xf32", is_causal=True),
    form(
        "cached_attention",
        "4xnx8xf32",
        "2xnx8xf32",
        "2xnx4xf32",
        "2xmx8xf32",
        "2xmx4xf32",
        enable_gqa=True,
        is_causal=True,
    ),
    form("rotary_embedding", "2x3x5x8xf32", "5x4xf32", "5x4xf32"),
    form("rotary_embedding", "2x3x5x8xf32", "7x2xf32", "7x2xf32", "2x1x5xi64", rotary_dim=4, low=-2, high=8),
    form("rotary_embedding", "nx6xf16", "nx2xf16", "nx2xf16", interleaved=True, rotary_dim=4, tolerance=4e-3),
    form("qlinear_matmul", "3x4xi8", "f32", "i8", "4x5xi8", "f32", "i8", "f32", "i8", low=0.25, high=9.0),
    form(
        "qlinear_matmul",
        "2x3x4xui8",
        "3xf32",
        "ui8",
        "4x5xi8",
        "5xf32",
        "5xi8",
        "f32",
        "ui8",
        dtype="uint8",
        low=1,
        high=4,
    ),
    form("dequantized_matmul", "2x3x12xf32", "5x8xui8", "5x2xf32", group_size=8, low=0, high=9),
    form("dequantized_matmul", "3x12xf32", "5x12xui8", "5x3xf32", "5x3xui8", "5xf32", bits=8, group_size=4, **BYTES),
    form("dequantized_matmul", "nx12xf32", "2x2x4xui32", "2x1x4xf32", columns=7, group_size=16, low=0, high=9),
    form(
        "dequantized_matmul",
        "2x16xf32",
        "2x2x4xui32",
        "2x2x4xf32",
        "2x2x4xf32",
        "7xf32",
        columns=7,
        group_size=8,
        **BYTES,
    ),
    form("dequantized_matmul", "12xf16", "1x3x4xui32", "1x1x4xf16", bits=8, group_size=12, tolerance=4e-3, **BYTES),
    form(
        "dequantized_matmul",
        *("2x20xf32", "1x6x8x4xui8", "1x3x8xf32", "1x3x8xui8"),
        bits=8,
        group_size=8,
        compute_dtype="int8",
        **BYTES,
    ),
    form(
        "dequantized_matmul",
        *("nx16xf32", "2x2x4x4xui8", "2x1x4xf32"),
        group_size=16,
        compute_dtype="int8",
        low=0,
        high=9,
    ),
    form("qlinear_conv", "1x4x5x6xui8", "f32", "ui8", "6x2x3x2xi8", "6xf32", "6xi8", "f32", "i8", "6xi32", **QCONV),
    form("qlinear_conv", "1x2x5xi8", "f32", "i8", "3x2x3xi8", "f32", "i8", "f32", "i8", low=1, high=4),
    *(form("random_uniform", shape=(3, 5), low=-1.0, high=3.0, dtype=d) for d in ("float16", "float32", "float64")),
    form("random_uniform", "i64", shape=(0, 2), low=1, high=9),
    form("random_uniform", "i64", shape=(70,), low=-9, high=-1),
    form("random_normal", shape=(3, 5)),
    form("random_normal", "ui32", shape=(4,), dtype="float64", low=1, high=9),
    form("bernoulli", F, "i32", low=0, high=1),
    form("bernoulli", F, dtype="bool", low=0, high=1),
    form("dropout", "3x5xf16", tolerance=4e-3),
    form("dropout", "nx5xf32", "i64", ratio=0.25, is_training=True, low=1, high=9),
    *(form("dft", "2x4x2xf32", axis=1, inverse=True, onesided=True, length=length) for length in (1, 5, 6, 9)),
    form("dft", "4x2xf32", inverse=True, onesided=True),
    form("dft", "2x5x1xf32"),
    form("dft", "6x2x2xf32", axis=0, inverse=True),
    *(form("dft", "2x5x2xf32", axis=1, length=length) for length in (3, 8)),
    form("dft", "nxmx1xf32", onesided=True),
    form("dft", "4x2xf16", axis=0, tolerance=4e-3),
    form("stft", "2x12x1xf32", None, frame_step=3, frame_length=6),
    form("stft", "1x9x2xf32", "4xf32", frame_step=2, onesided=False),
    form("stft", "nxmx1xf32", "mxf32", frame_step=2),
    form("rnn", "3x2x4xf32", "1x5x4xf32", "1x5x5xf32"),
    form("rnn", *("3x2x4xf32", "2x5x4xf32", "2x5x5xf32", "2x10xf32", "2xi32"), **BOTH, activations=["relu"]),
    form("gru", *("3x2x4xf32", "1x15x4xf32", "1x15x5xf32", "1x30xf32"), direction="reverse", linear_before_reset=True),
    form("gru", *("nxmx4xf32", "2x15x4xf32", "2x15x5xf32", None, "mxi64", "2xmx5xf32"), **BOTH, clip=0.5),
    form("lstm", "3x2x4xf32", "1x8x4xf32", "1x8x2xf32"),
    form("lstm", *("3x2x4xi16", "1x8x4xi16", "1x8x2xi8"), *[None] * 5, *["1x8xf32"] * 2, **ROUNDED),
    form("gru", "3x2x4xi8", "1x6x4xi8", "1x6x2xi8", *[None] * 3, "1x6xf32", "1x6xf32", tolerance=1e-2),
    form("rnn", "3x2x4xf32", "1x2x4xf32", "1x2x2xf32", **ROUNDED),
    form("rnn", "nxmx5xf32", None, "1x5x5xf32", "1x10xf32"),
    form("gru", "3x2x30xf32", None, "2x15x5xf32", "2x30xf32", "2xi32", **BOTH, linear_before_reset=True),
    form("lstm", *("nxmx144xf32", None, "2x72x18xi8", None, "mxi32"), *[None] * 4, "2x72xf32", **BOTH, tolerance=1e-2),
    form("lstm", *("3x6x40xf32", None, "1x40x10xui8"), *[None] * 6, *("1x40xf32", "1x40xi16"), tolerance=1e-2),
    form("gru", *("3x5x30xf32", None, "1x30x10xi16"), *[None] * 4, *("1x30xf32", "1x30xi32"), tolerance=1e-2),
    form("lstm", *LSTM, "1x6xf32", direction="reverse", clip=0.75),
    form("lstm", *LSTM[:-1], None, input_forget=True),
    form("lstm", "2x1x3xf16", "2x8x3xf16", "2x8x2xf16", direction="bidirectional", tolerance=4e-3),
    form("rnn", "3x2x4xf32", "1x5x4xf32", "1x5x5xf16", tolerance=4e-3),
    form("softmax", "2x3x4xf32", axis=1),
    form("log_softmax", F),
    form("batch_norm", IMAGE, "4xf32", None, "4xf32", "4xf32", low=0.25, high=2.0),
    form("batch_norm", "3x5xf32", None, None, "5xf32", "5xf32", low=0.25, high=2.0, axis=-1),
    form("layer_norm", F, "5xf32", "5xf32"),
    form("layer_norm", "2x3x4xf32", None, "3x4xf32", axis=[1, 2], epsilon=0.001),
    form("rms_norm", F, "5xf32"),
    form("rms_norm", F),
    form("group_norm", IMAGE, None, "4xf32", num_groups=2),
    form("instance_norm", IMAGE, "4xf32"),
    form("broadcast_to", "3x1xf32", shape=(2, 3, 5)),
    form("reshape", "3x4xf32", newshape=(2, -1)),
    form("concatenate", ["2x3xf32", "2x4xf32", "2x0xf32"], axis=1),
    form("concatenate", ["2xi64"]),
    form("stack", ["2x3xf32", "2x3xf32"], axis=-1),
    form("split", "6x4xf32", indices_or_sections=3),
    form("split", "6x4xf32", indices_or_sections=[1, 3], axis=1),
    form("expand_dims", F, axis=[0, 3]),
    form("squeeze", "1x3x1xf32"),
    form("squeeze", "1x3x1xf32", axis=2),
    form("flatten", "2x3x4xf32", start_axis=1),
    form("flatten", "f32"),
    form("flip", F),
    form("flip", F, axis=1),
    form("transpose", "2x3x4xf32"),
    form("transpose", "2x3x4xf32", axes=[2, 0, 1]),
    form("tile", F, reps=[2, 1]),
    form("repeat", F, repeats=2, axis=1),
    form("pad", F, pad_width=[[1, 2], [0, 1]], constant_values=3.0),
    form("pad", F, pad_width=2, mode="reflect"),
    form("pad", F, pad_width=[1, 0], mode="edge"),
    *(form("pad", "3x1xf32", pad_width=[[7, 4], [1, 2]], mode=mode) for mode in ("reflect", "symmetric", "wrap")),
    *(form("pad", "5xi8", pad_width=[2, 3], mode=mode) for mode in ("symmetric", "wrap")),
    form("swapaxes", "2x3x4xf32", axis1=0, axis2=-1),
    form("moveaxis", "2x3x4xf32", source=[0, 2], destination=[1, 0]),
    form("moveaxis", "2x3x4xi1", source=-1, destination=0),
    form("roll", F, shift=2),
    form("roll", "3x5x0xi32", shift=1),
    form("roll", F, shift=[1, -7], axis=[0, 1]),
    form("unstack", "3x2xf32"),
    form("unstack", "2x1x3xi64", axis=1),
    form("diagonal", "4x3xf32", offset=-1),
    form("diagonal", "2x3x4xf32", offset=5, axis1=1, axis2=2),
    form("meshgrid", ["3xf32", "4xf32", "2xi32"]),
    form("meshgrid", ["3xf32", "4xf32"], indexing="ij"),
    *(form("depth_to_space", "1x8x2x3xf32", block_size=2, mode=mode) for mode in ("DCR", "CRD")),
    *(form("space_to_depth", "1x4x6x2xf32", block_size=2, mode=mode, layout="NHWC") for mode in ("DCR", "CRD")),
    form("depth_to_space", "2x2x3x9xi8", block_size=3, layout="NHWC"),
    form("space_to_depth", "1x3x4x2xi1", block_size=2),
    form("channel_shuffle", "2x6x2xf32", groups=3),
    form("pack", "2x8x3xf32", inner_dims_pos=1, inner_tiles=4),
    form("pack", "7x6xf16", inner_dims_pos=[1, 0], inner_tiles=[2, 3], outer_dims_perm=[1, 0], padding_value=0.5),
    form("pack", "2x3x4xi1", inner_dims_pos=[-1, 0], inner_tiles=[3, 1], outer_dims_perm=[2, 0, 1], padding_value=0),
    form("unpack", "2x2x3x4xf32", inner_dims_pos=1, inner_tiles=4),
    form("unpack", "3x3x2x3xf16", inner_dims_pos=[1, 0], inner_tiles=[2, 3], outer_dims_perm=[1, 0], shape=(7, 6)),
    form("unpack", "2x2x3x3x1xi1", inner_dims_pos=[-1, 0], inner_tiles=[3, 1], outer_dims_perm=[2, 0, 1]),
    form("eye", n_rows=3),
    form("eye", n_rows=3, n_cols=5, k=-1, dtype="bool"),
    form("tri", n_rows=3, n_cols=4, k=1, dtype="int32"),
    form("linspace", start=-1.5, stop=2.0, num=7),
    form("linspace", start=1, stop=2, num=5, endpoint=False, dtype="float16", tolerance=1e-3),
    form("linspace", start=1, stop=2, num=1),
    form("tril", F, k=1),
    form("triu", "2x3x4xi32", k=-1),
    form("full", shape=(2, 3), fill_value=1.5),
    form("full", shape=(0,), fill_value=1, dtype="int8"),
    form("extents", shape=(2, 7, 3)),
    form("extents", shape=(4,), dtype="int32"),
    form("iota", shape=(2, 3), axis=1),
    form("iota", shape=(3,), dtype="float32"),
    form("arange", start=5),
    form("arange", start=2, stop=10, step=3, dtype="float32"),
    form("strided_slice", "5x6xf32", begin=[1, -1], end=[4, 0], strides=[1, -2]),
    form("strided_slice", "5x6xf32", begin=2, end=6, axes=[1]),
    form("prefix", "5x6xf32", shape=DimsAttr((3, 6))),
    form("prefix", "5x0xi8", shape=DimsAttr((0, 0))),
    form("take", F, "2x2xi32", axis=1, low=0, high=4),
    form("take", F, "4xi64", mode="wrap", low=-9, high=9),
    *(form("embedding_bag", "5x3xf32", "7xi64", "4xi32", mode=mode, low=0, high=4) for mode in ("sum", "mean", "max")),
    form("embedding_bag", "5x3xf16", "7xi32", "4xi32", "7xf16", include_last_offset=True, low=0, high=4),
    form("take", F, "4xi64", axis=1, mode="fast", low=0, high=4),
    form("bound_indices", "3x5xi32", shape=(4,), low=-9, high=9),
    form("bound_indices", "7xi8", shape=(4,), wrap=True, low=-9, high=9),
    form("bound_indices", "7xi64", shape=(4,), wrap=True, checked=True, low=-4, high=9),
    form("gather", "3x5xf32", "3x2xi32", axis=1, low=-1, high=6),
    form("gather", "3x5xf32", "2x7xi64", axis=1, low=-1, high=6),
    form("gather", "4x5x3xi8", "2x6x1xi32", axis=-2, low=-9, high=9, mode="wrap"),
    form("gather", "nx5x2xf32", "nx2x1xi64", axis=1, low=0, high=5),
    form("gather_nd", "3x4x5xf32", "2x6xi32", low=-1, high=5),
    form("one_hot", "3xi32", depth=4, low=-1, high=5),
    form("one_hot", "3xi32", depth=4, axis=0, on_value=2, off_value=-1, dtype="int16", low=0, high=3),
    *(form(name, "3x7xi8", low=-3, high=3) for name in ("argsort", "sort")),
    *(form(name, "2x5x3xf32", axis=1, descending=True) for name in ("argsort", "sort")),
    *(form(name, "nx3xf32", axis=0) for name in ("argsort", "sort")),
    *(form(name, "3x0xf32") for name in ("argsort", "sort")),
    form("cumsum", "nx3xf32", axis=0, exclusive=True),
    form("cumprod", "2xnx3xf16", axis=1, reverse=True, tolerance=4e-3),
    form("cummax", "nx2xi8", low=-9, high=9),
    form("cummin", "2xnxui8", axis=1, reverse=True, low=0, high=250),
    form("sort", "1xi64"),
    form("topk", "3x7xi16", k=3),
    form("topk", "5x3xf32", k=2, axis=0, largest=False),
    form("topk", "nx7xf32", k=7),
    form("topk", "nx3xf32", k=2, axis=0),
    form("topk", "2xnxi16", k=3, axis=1, largest=False),
    form("topk", "nxf64", k=1),
    form("searchsorted", "1xf32", "3x2xf32"),
    form("nonzero", "3x5xi8", low=-1, high=2),
    form("nonzero", "2x3x4xi1", size=5, fill_value=-1),
    *(form("nonzero", f"{shape}xf32") for shape in ("n", "0x3", "1", "nx4")),
    form("compress", "3xi1", "5x4xf32", axis=0),
    form("compress", "4xi1", "5x4xi16", axis=-1, size=2, fill_value=7),
    form("compress", "nxi1", "nxf32"),
    form("compress", "10xi1", "3x4xi1"),
    form("compress", "0xi1", "0x4xf32", axis=0, size=2),
    form("unique", "3x5xi8", low=-2, high=3),
    form("unique", "6xi32", low=-3, high=3, size=2, fill_value=9),
    *(form("unique", f"{shape}xf32") for shape in ("n", "0", "1")),
    *(form("unique", "3x5x2xi8", low=0, high=1, axis=axis) for axis in (0, 1, -1)),
    *(form("unique", f"{shape}xf32", low=0, high=1, axis=0, size=3) for shape in ("nx2", "0x3", "4x1")),
    form("nms", "6x4xf32", "6xf32", low=-1, high=1),
    form("nms", "6x4xf32", "6xf32", "f32", low=0, high=1),
    form("nms", "2x3x4xf32", "2x3xf32", "f32", "f32", low=0, high=1, size=2),
    form("nms", "2x37x4xf32", "2x37xf32", "f32", "f32", "i64", low=0, high=8),
    form("nms", "nx4xf64", "nxf64", low=-1, high=1),
    form("searchsorted", "0xi32", "3xi32", side="right"),
    form("searchsorted", "nxf32", "mxf32", low=0.5, high=0.75, side="right", dtype="int32"),
    form("take_along_axis", F, "3x2xi32", axis=1, low=-5, high=4),
    form("take_along_axis", "1x5x2xi8", "3x4x1xi64", axis=1, mode="clip", low=-9, high=9),
    *(
        form(
            "scatter_elements",
            "2x5xi32",
            "2x7xi32",
            "2x7xi32",
            axis=1,
            reduction=reduction,
            mode="wrap",
            low=-9,
            high=9,
        )
        for reduction in ("none", "add", "mul", "max", "min")
    ),
    form("scatter_elements", "3x5xf32", "2x4xi64", "2x4xf32", high=4.0),
    form("scatter_elements", "3x5xf16", "2x9xi64", "2x9xf16", axis=1, reduction="add", tolerance=4e-3),
    form("scatter_elements", "3x5xi1", "3x0xi64", "3x0xi1", axis=1),
    form("scatter_elements", "nx4xf32", "nx4xi64", "nx4xf32", axis=0, reduction="max"),
    form("put_along_axis", F, "3x2xi32", "2xf32", axis=1, low=-5, high=4),
    *(form("scatter_nd", "4x3xf32", "1x5xi32", "5x3xf32", reduction=r, high=4.0) for r in ("none", "add", "min")),
    form("scatter_nd", "4x3xi8", "2x5xi32", "5xi8", mode="wrap", low=-9, high=9),
    form("scatter_nd", "nx3xf32", "1xmxi64", "mx3xf32", mode="wrap"),
    form("max_unpool", "1x2x2x2xf32", "1x2x2x2xi64", output_size=[3, 4], low=0, high=11),
    form("max_unpool", "2x1x3xi8", "2x1x3xi32", output_size=5, low=-2, high=7),
    *(
        form("resize2d", "1x2x3x4xf32", size=[5, 6], method=method, coordinate_transformation_mode=mode)
        for method in ("nearest", "linear")
        for mode in ("half_pixel", "align_corners", "asymmetric")
    ),
    form("resize2d", "1x5x6x2xf32", size=3, layout="NHWC"),
    *(
        form("resize1d", "1x2x5xf32", size=7, method=method, coordinate_transformation_mode=mode, scales=1.5, roi=ROI)
        for method in ("nearest", "linear", "cubic")
        for mode in ("pytorch_half_pixel", "half_pixel_symmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize")
    ),
    *(
        form("resize1d", "1x2x6xi16", size=4, method="nearest", rounding_method=rounding)
        for rounding in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    ),
    *(
        form("resize2d", "1x2x7x4xf32", size=[3, 6], method=method, antialias=True, exclude_outside=exclude)
        for method in ("linear", "cubic")
        for exclude in (False, True)
    ),
    form(
        "resize2d", "1x2x3x4xf16", size=[4, 3], method="cubic", cubic_alpha=-0.5, exclude_outside=True, tolerance=4e-3
    ),
    form("resize2d", "1x2x4x4xf32", scales=[0.6, 1.7]),
    form("resize2d", "1x2xnxmxf32", scales=2.0),
    form("resize2d", "nx2x4xmxf32", size=[1, 3], coordinate_transformation_mode="pytorch_half_pixel"),
    *(
        form("grid_sample", "2x2x3x4xf32", "2x2x3x2xf32", method=method, padding_mode=padding, align_corners=corners)
        for method in ("nearest", "linear", "cubic")
        for padding, corners in (("zeros", False), ("border", True), ("reflection", False), ("reflection", True))
    ),
    form("grid_sample", "1x2x3x1x4xf32", "1x2x1x3x3xf32", padding_mode="reflection", align_corners=True),
    form("grid_sample", "1x2x3x4xf16", "1x2x3x2xf16", method="nearest"),
    form("grid_sample", "nx2x3x4xf32", "nxmx3x2xf32"),
    form("deform_conv2d", "2x3x5x4xf32", "2x18x3x2xf32", "2x3x3x3xf32"),
    form(
        "deform_conv2d",
        *("1x4x5x6xf32", "1x24x4x3xf32", "6x2x2x3xf32", "1x12x4x3xf32"),
        **{"strides": [1, 2], "padding": [[1, 0], [0, 1]], "dilation": [2, 1], "groups": 2, "offset_groups": 2},
    ),
    form("deform_conv2d", "nx2xhx4xf32", "nx2xhx4xf32", "2x2x1x1xf32", "nx1xhx4xf32"),
    form("deform_conv2d", "1x2x3x4xf16", "1x8x2x3xf16", "2x2x2x2xf16", tolerance=4e-3),
    form("roi_align", "2x2x6x5xf32", "3x4xf32", "3xi64", output_size=[2, 3], high=6.0),
    form("roi_align", "2x2x6x5xf32", "3x4xf32", "3xi32", output_size=2, mode="max", aligned=False, high=6.0),
    form("roi_align", "1x2x6x5xf32", "nx4xf32", "nxi32", output_size=2, spatial_scale=0.5, sampling_ratio=2, high=9.0),
    form("roi_align", "2x12x6x5xf32", "3x4xf32", "3xi64", output_size=[2, 3], position_sensitive=True, high=6.0),
    form("roi_pool", "2x2x6x5xf32", "3x4xf32", "3xi64", output_size=[2, 3], high=6.0),
    form("roi_pool", "1x2x6x5xf16", "nx4xf16", "nxi32", output_size=2, spatial_scale=0.5, high=9.0),
    form("roi_pool", "2x12x6x5xf32", "3x4xf32", "3xi64", output_size=[2, 3], mode="position_sensitive_avg", high=6.0),
    form("resize3d", "1x1x3x2x4xf32", size=[2, 3, 5]),
    form("resize3d", "1x2x2x3x1xf32", size=[3, 2, 2], method="cubic", layout="NDHWC"),
    form("resize3d", "1x1x3x2x4xi1", size=[2, 3, 5], method="nearest"),
    form("conv1d", "2x4x9xf32", "6x4x3xf32", strides=2, padding=1),
    form("conv2d", IMAGE, "6x2x3x3xf32", padding=[1, 0], groups=2),
    form("conv2d", CHANNELS_LAST, "3x3x4x5xf32", padding="SAME", data_layout="NHWC"),
    form("conv2d", IMAGE, "5x4x3x3xf32", padding=[[1, 2], [0, 1]], dilation=2, strides=[1, 2]),
    form("conv3d", "1x2x4x4x4xf32", "3x2x2x2x2xf32"),
    form("depthwise_conv2d", IMAGE, "4x2x3x3xf32", padding=1),
    form("conv2d", "2x2x5x6x4xf32", "3x2x3x3x4x2xf32", data_layout="NCHWc", padding=[[1, 2], [0, 1]], dilation=2),
    form("conv2d", "nx3x4x4x1xf32", "2x3x1x1x1x8xf32", data_layout="NCHWc", strides=[1, 2]),
    form("conv2d", "1x4x4x5x2xf32", "6x2x3x3x2x4xf32", data_layout="NCHWc", groups=2),
    form("conv2d", "1x4x5x2x4xf32", "3x2x3x2x4x2xf32", data_layout="NHWCc", kernel_layout="HWOIio"),
    form(
        *("conv2d", "1x2x4x5x4xi16", "3x2x3x2x2x8x2xi16"),
        **{"data_layout": "NCHWc", "kernel_layout": "OIHWioi", "padding": 1, "out_dtype": "int32"},
    ),
    form("conv1d", "2x2x9x3xf32", "2x2x3x3x4xf32", data_layout="NCWc"),
    form("depthwise_conv2d", "2x3x5x6x4xf32", "3x1x3x2x4xf32", data_layout="NCHWc", strides=2, padding="SAME"),
    form("conv2d_winograd", "2x2x5x6x4xf32", "3x4x4x2x4x2xf32", padding=[[1, 2], [0, 1]]),
    form("conv2d_winograd", "nx1x7x3x8xf32", "2x6x6x1x8x4xf32", padding=1, tolerance=2e-4),
    form("conv2d_winograd", "1x1xnx5x2xf16", "1x4x4x1x2x3xf16", padding="VALID", out_dtype="float32"),
    form("conv2d_transpose", "1x4x3x3xf32", "4x2x3x3xf32", strides=2, padding=1, output_padding=1),
    form("conv2d_transpose", "1x4x3x3xf32", "4x1x2x2xf32", groups=2),
    form("conv1d_transpose", "2x3x5xf32", "3x2x4xf32", strides=3, padding=1, dilation=2, output_padding=2),
    form("conv1d_transpose", "2x5x4xf32", "3x4x2xf32", groups=2, data_layout="NWC"),
    form("conv3d_transpose", "1x2x2x3x2xf32", "2x2x2x1x3xf32", strides=[1, 2, 3], padding=[0, 0, 1]),
    *(form(f"{kind}_pool1d", "2x3x9xf32", kernel=3, strides=2) for kind in ("avg", "max", "sum")),
    *(form(f"{kind}_pool2d", IMAGE, kernel=[2, 3], padding=1, ceil_mode=True) for kind in ("avg", "max", "sum")),
    *(form(f"{kind}_pool3d", "1x2x4x4x4xf32", kernel=2) for kind in ("avg", "max", "sum")),
    form("avg_pool2d", CHANNELS_LAST, kernel=3, padding=1, count_include_pad=False, layout="NHWC"),
    *(form(f"{kind}_pool2d", "2x3x5x6x4xf32", kernel=[2, 3], layout="NCHWc", padding=1) for kind in ("avg", "max")),
    form("adaptive_pool", "2x3x5x6x4xf32", output_size=[2, 3], layout="NCHWc"),
    form("resize2d", "2x3x5x6x4xf32", size=[7, 4], method="cubic", layout="NCHWc"),
    form("lp_pool", IMAGE, kernel=[2, 3], padding=1, ceil_mode=True),
    form("lp_pool", "2x9x3xf16", kernel=3, strides=2, dilation=2, p=3.0, layout="NWC", tolerance=4e-3),
    form("max_pool_with_indices", "2x3x9xi8", kernel=3, strides=2, padding=1, low=-3, high=3),
    form("max_pool_with_indices", IMAGE, kernel=[2, 3], padding=1, dilation=2, ceil_mode=True),
    form("max_pool_with_indices", "1x2x4x4x4xf32", kernel=2),
    form("lrn", IMAGE, size=3, alpha=0.5),
    form("lrn", "2x5xf16", size=4, alpha=0.5, bias=2.0, axis=-1, tolerance=4e-3),
    form("adaptive_pool", IMAGE, output_size=[3, 2]),
    form("adaptive_pool", CHANNELS_LAST, output_size=[3, 2], pool_type="max", layout="NHWC"),
    form("global_pool", IMAGE, pool_type="max"),
    *(form(name, "3x5xui8", low=0, high=250) for name in ("negative", "sign", "bitwise_not", "max", "argmin", "sum")),
    *(form(name, "3x1xui8", "5xui8", low=1, high=250) for name in ("subtract", "maximum", "less", *_DIVISIONS)),
    *(form(name, "4xui32", "4xui32", low=0, high=5) for name in ("right_shift", "power")),
    *(form("cast", "4xui8", low=0, high=250, dtype=dtype) for dtype in ("int16", "float32", "uint32", "bool")),
    form("cast", F, dtype="uint8", low=0, high=250),
    form("quantize", F, "f32", "ui8", dtype="uint8", low=0, high=2),
    form("dequantize", "3x5xui8", "3xf32", axis=0, low=0, high=250),
    form("matmul", "3x4xui8", "4x5xui8", out_dtype="uint32", low=0, high=250),
    form("dense", "3x4xui8", "5x4xi8", "5xi32", out_dtype="int32", low=0, high=120),
    form("conv2d", "1x4x5x6xui8", "3x4x3x3xi8", out_dtype="int32", padding=[1, 1], low=0, high=120),
    form("max_pool2d", "2x4x6x7xui8", kernel=[3, 2], padding=[1, 1], low=0, high=250),
    form("take", "4xui16", "3xui8", low=0, high=3),
    *(form(name, "3x7xui8", low=0, high=250) for name in ("sort", "argsort", "cummax", "cummin", "sum_square")),
    form("scatter_elements", "9xui8", "9xui8", "9xui8", reduction="max", low=0, high=250),
    form("max_pool_with_indices", "2x3x9xui8", kernel=3, strides=2, padding=1, low=0, high=250),
    form("full", shape=(3,), fill_value=255, dtype="uint8"),
    # Symbolic extents
    *(form(name, "nx4xf32", axis=0) for name in ("std", "vector_norm", "logsumexp", "count_nonzero", "sum_square")),
    *(form(name, "nx4xf32") for name in ("softsign", "std", "logsumexp")),
    form("roll", "nx4xf32", shift=5),
    form("strided_slice", "nx4xf32", begin=[1, None], end=[None, None], strides=[2, -1]),
    form("strided_slice", "nxi32", begin=[None], end=[None], strides=[-2]),
    *(form("pad", "nx4xf32", pad_width=2, mode=mode) for mode in ("edge", "reflect", "symmetric", "wrap")),
    form("prelu", "nx4xf32", "4xf32"),
    form("roll", "nx4xf32", shift=[1, 2], axis=[0, 1]),
    form("swapaxes", "nxmxf32", axis1=0, axis2=1),
    form("diagonal", "nxnxf32", offset=1),
    form("trace", "nxnxf32"),
    form("outer", "nxf32", "mxf32"),
    form("cross", "nx3xf32", "3xf32"),
    form("meshgrid", ["nxf32", "mxf32"]),
    form("depth_to_space", "nx4xmx2xf32", block_size=2),
    form("channel_shuffle", "nx4xmxf32", groups=2),
    form("pack", "nx8xmxf32", inner_dims_pos=[1, 2], inner_tiles=[4, 3], padding_value=-1.0),
    form("unpack", "nx2xmx4xi8", inner_dims_pos=1, inner_tiles=4),
]


def parsed_type(text: str) -> Any:
    *extents, element = text.split("x")
    names = [extent for extent in extents if extent.isalpha()]
    if names:
        shape = "".join("?x" if extent in names else f"{extent}x" for extent in extents)
        text = f"{shape}{element}, #graph.dims<{', '.join(names)}>"
    return weft.parse(f"func.func private @f(tensor<{text}>)").body.block.first_op.function_type.inputs.data[0]  # pyright: ignore


def module_of(given: Form) -> ModuleOp:
    """A graph function that applies the operator to its parameters."""
    groups = [[parsed_type(t) for t in g] if isinstance(g, list) else g and parsed_type(g) for g in given.operands]
    flat = [t for group in groups for t in (group if isinstance(group, list) else [group]) if t is not None]
    block = Block(arg_types=flat)
    rest = iter(block.args)
    values = [[next(rest) for _ in g] if isinstance(g, list) else None if g is None else next(rest) for g in groups]
    properties = {
        name: DimsAttr(value) if isinstance(value, tuple) else attribute_of(value)
        for name, value in given.properties.items()
    }
    op = BY_NAME[given.operator].of(values, properties)
    for operand, name in zip(op.operands, op.operand_names, strict=True):
        operand.name_hint = name
    block.add_ops([op, ReturnOp(*op.results)])
    function = FuncOp("main", (flat, [r.type for r in op.results]), Region(block))
    return ModuleOp([function])


def arrays_of(module: ModuleOp, given: Form) -> list[Any]:
    generator = np.random.default_rng(len(str(given)))
    found: list[Any] = []
    for type_ in module.body.block.first_op.function_type.inputs:  # pyright: ignore
        shape = tuple(SIZE if extent == DYNAMIC_INDEX else extent for extent in type_.get_shape())
        element = str(type_.element_type)
        if element == "i1":
            found.append(generator.integers(0, 2, shape).astype(bool))
        elif element.startswith(("i", "ui")):
            numbers = generator.integers(int(given.low), int(given.high) + 1, shape)
            found.append(np.asarray(numbers).astype(element.replace("i", "int")))
        else:
            found.append(np.asarray(generator.uniform(given.low, given.high, shape)).astype(f"float{element[1:]}"))
    return found


def example(operator: str) -> str:
    """The text of the first form of an operator, one line."""
    text = str(module_of(next(given for given in FORMS if given.operator == operator)))
    return next(line.strip() for line in text.splitlines() if f" = graph.{operator} " in line)
