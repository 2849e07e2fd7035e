"""A form, or several, of every operator of the graph dialect: for tests, and for the examples of its page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

import weft
from weft.dialects.attribute_values import attribute_of
from weft.dialects.graph_shapes import DimsAttr
from weft.texpr.graph_operators import OPERATORS

BY_NAME = {operator.name.removeprefix("graph."): operator for operator in OPERATORS}


@dataclass
class Form:
    """An operator on operands of these types ("4x6xf32"; None is left out, a list where a role takes several)."""

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
FORMS = [
    *(form(name, F) for name in ("abs", "cbrt", "ceil", "cos", "cosh", "exp", "exp2", "expm1", "floor", "isfinite")),
    *(form(name, F) for name in ("isinf", "isnan", "negative", "sign", "sin", "sinh", "square", "tan", "tanh")),
    *(form(name, F) for name in ("trunc", "atan", "asinh", "sigmoid", "erf", "round", "relu", "softplus", "silu")),
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
    *(form(name, "4xi32", "4xi32", low=0, high=5) for name in ("left_shift", "right_shift")),
    form("atan2", F, F),
    form("power", F, F, low=0.5, high=2.0),
    form("power", "4xi32", "4xi32", low=0, high=4),
    form("where", "3x5xi1", "5xf32", "3x1xf32"),
    form("leaky_relu", F, alpha=0.3),
    form("elu", F, alpha=0.5),
    form("gelu", F, approximate="tanh"),
    form("cast", F, dtype="float16"),
    form("cast", "4xi32", dtype="bool"),
    form("clip", F, a_min=-1.0, a_max=0.5),
    form("clip", "4xi32", a_max=1),
    form("quantize", F, "f32", low=0.25, high=2.0),
    form("quantize", F, "5xf32", "5xi32", axis=1, dtype="int16", low=1.0, high=2.0),
    form("dequantize", "3x5xi8", "3xf32", axis=0),
    *(form(name, F) for name in ("sum", "prod", "max", "min", "mean", "var", "argmax", "argmin", "cumsum")),
    *(form(name, F, axis=0, keepdims=True) for name in ("sum", "prod", "max", "min", "mean", "argmax", "argmin")),
    form("sum", "2x3x4xi8", axis=[0, 2]),
    form("sum", "2x3xi8", dtype="int32", axis=-1),
    form("sum", "0x3xf32", axis=0),
    form("var", F, axis=1, ddof=1),
    form("any", "3x5xi1", axis=1),
    form("cumsum", F, axis=1, exclusive=True),
    form("matmul", "2x3x4xf32", "4x5xf32"),
    form("matmul", "4x3xf32", "5x4xf32", transpose_a=True, transpose_b=True),
    form("matmul", "3x4xi8", "4x5xi8", out_dtype="int32"),
    form("batch_matmul", "2x3x4xf32", "2x5x4xf32"),
    form("dense", "3x4xf32", "5x4xf32", "5xf32"),
    form("dense", "3x4xf16", "5x4xf16", tolerance=4e-3),
    form("einsum", ["2x3x4xf32", "2x4x5xf32"], subscripts="bij,bjk->ik"),
    form("attention", "2x3x8xf32", "2x5x8xf32", "2x5x6xf32"),
    form("attention", "3x8xf32", "3x8xf32", "3x6xf32", None, is_causal=True, scale=0.5),
    form("attention", "3x8xf32", "5x8xf32", "5x6xf32", "3x5xf32"),
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
    form("flip", F),
    form("flip", F, axis=1),
    form("transpose", "2x3x4xf32"),
    form("transpose", "2x3x4xf32", axes=[2, 0, 1]),
    form("tile", F, reps=[2, 1]),
    form("repeat", F, repeats=2, axis=1),
    form("pad", F, pad_width=[[1, 2], [0, 1]], constant_values=3.0),
    form("pad", F, pad_width=2, mode="reflect"),
    form("pad", F, pad_width=[1, 0], mode="edge"),
    form("tril", F, k=1),
    form("triu", "2x3x4xi32", k=-1),
    form("full", shape=(2, 3), fill_value=1.5),
    form("full", shape=(0,), fill_value=1, dtype="int8"),
    form("arange", start=5),
    form("arange", start=2, stop=10, step=3, dtype="float32"),
    form("strided_slice", "5x6xf32", begin=[1, -1], end=[4, 0], strides=[1, -2]),
    form("strided_slice", "5x6xf32", begin=2, end=6, axes=[1]),
    form("take", F, "2x2xi32", axis=1, low=0, high=4),
    form("take", F, "4xi64", mode="wrap", low=-9, high=9),
    form("gather", "3x5xf32", "3x2xi32", axis=1, low=-1, high=6),
    form("gather_nd", "3x4x5xf32", "2x6xi32", low=-1, high=5),
    form("one_hot", "3xi32", depth=4, low=-1, high=5),
    form("one_hot", "3xi32", depth=4, axis=0, on_value=2, off_value=-1, dtype="int16", low=0, high=3),
    *(
        form("resize2d", "1x2x3x4xf32", size=[5, 6], method=method, coordinate_transformation_mode=mode)
        for method in ("nearest", "bilinear")
        for mode in ("half_pixel", "align_corners", "asymmetric")
    ),
    form("resize2d", "1x5x6x2xf32", size=3, layout="NHWC"),
    form("conv1d", "2x4x9xf32", "6x4x3xf32", strides=2, padding=1),
    form("conv2d", IMAGE, "6x2x3x3xf32", padding=[1, 0], groups=2),
    form("conv2d", CHANNELS_LAST, "3x3x4x5xf32", padding="SAME", data_layout="NHWC"),
    form("conv2d", IMAGE, "5x4x3x3xf32", padding=[[1, 2], [0, 1]], dilation=2, strides=[1, 2]),
    form("conv3d", "1x2x4x4x4xf32", "3x2x2x2x2xf32"),
    form("depthwise_conv2d", IMAGE, "4x2x3x3xf32", padding=1),
    form("conv2d_transpose", "1x4x3x3xf32", "4x2x3x3xf32", strides=2, padding=1, output_padding=1),
    form("conv2d_transpose", "1x4x3x3xf32", "4x1x2x2xf32", groups=2),
    *(form(f"{kind}_pool1d", "2x3x9xf32", kernel=3, strides=2) for kind in ("avg", "max", "sum")),
    *(form(f"{kind}_pool2d", IMAGE, kernel=[2, 3], padding=1, ceil_mode=True) for kind in ("avg", "max", "sum")),
    *(form(f"{kind}_pool3d", "1x2x4x4x4xf32", kernel=2) for kind in ("avg", "max", "sum")),
    form("avg_pool2d", CHANNELS_LAST, kernel=3, padding=1, count_include_pad=False, layout="NHWC"),
    form("adaptive_pool", IMAGE, output_size=[3, 2]),
    form("global_pool", IMAGE, pool_type="max"),
]


def parsed_type(text: str) -> Any:
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
        shape, element = type_.get_shape(), str(type_.element_type)
        if element == "i1":
            found.append(generator.integers(0, 2, shape).astype(bool))
        elif element.startswith("i"):
            numbers = generator.integers(int(given.low), int(given.high) + 1, shape)
            found.append(np.asarray(numbers).astype(f"int{element[1:]}"))
        else:
            found.append(np.asarray(generator.uniform(given.low, given.high, shape)).astype(f"float{element[1:]}"))
    return found


def example(operator: str) -> str:
    """The text of the first form of an operator, one line."""
    text = str(module_of(next(given for given in FORMS if given.operator == operator)))
    return next(line.strip() for line in text.splitlines() if f" = graph.{operator} " in line)
