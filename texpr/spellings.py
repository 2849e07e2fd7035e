"""Names of functions of `te.ops` in ATen, ONNX, StableHLO, and Relax of TVM.

A spelling is a name, and the attributes that are parameters. Importers convert operands to the element type that the
language computes in; names with other attributes have a converter. A new language is a function like `onnx` and a
column of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final


@dataclass(frozen=True)
class Spelling:
    language: str
    names: Sequence[str]
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters -> attributes."""
    fixed: Mapping[str, object] = field(default_factory=dict[str, object])
    """Values implied by the name."""
    since: int = 1
    """The first version with these semantics."""


def aten(*names: str, fixed: Mapping[str, object] | None = None, **parameters: str) -> Spelling:
    """`"name"` for the overload `default`, or `"name.overload"`."""
    full = [f"aten.{name}" if "." in name else f"aten.{name}.default" for name in names]
    return Spelling("aten", full, parameters, fixed or {})


def onnx(*names: str, fixed: Mapping[str, object] | None = None, since: int = 1, **parameters: str) -> Spelling:
    """Names in the domain `ai.onnx`."""
    return Spelling("onnx", names, parameters, fixed or {}, since)


def stablehlo(*names: str, fixed: Mapping[str, object] | None = None) -> Spelling:
    """Elementwise ops: `"name"` of stablehlo, or `"chlo.name"`."""
    return Spelling("stablehlo", [name if "." in name else f"stablehlo.{name}" for name in names], {}, fixed or {})


def relax(name: str) -> Spelling:
    """A name in `tvm.relax.op`, with the parameters of `te.ops`."""
    return Spelling("relax", [name])


def _both(name: str) -> tuple[str, str]:
    """A tensor or a number as second operand."""
    return f"{name}.Tensor", f"{name}.Scalar"


SPELLINGS: Final[Mapping[str, Sequence[Spelling]]] = {
    # Elementwise
    "abs": (aten("abs"), onnx("Abs"), stablehlo("abs")),
    "acos": (aten("acos"), onnx("Acos"), stablehlo("chlo.acos")),
    "acosh": (aten("acosh"), onnx("Acosh"), stablehlo("chlo.acosh")),
    "add": (onnx("Add", "Sum"), stablehlo("add")),
    "airy_ai": (aten("special_airy_ai"),),
    "asin": (aten("asin"), onnx("Asin"), stablehlo("chlo.asin")),
    "asinh": (aten("asinh"), onnx("Asinh"), stablehlo("chlo.asinh")),
    "atan": (aten("atan"), onnx("Atan"), stablehlo("chlo.atan")),
    "atan2": (aten("atan2"), stablehlo("atan2")),
    "atanh": (aten("atanh"), onnx("Atanh"), stablehlo("chlo.atanh")),
    "bessel_i0": (aten("i0", "special_modified_bessel_i0"),),
    "bessel_i0e": (aten("special_i0e"),),
    "bessel_i1": (aten("special_i1", "special_modified_bessel_i1"),),
    "bessel_i1e": (aten("special_i1e"), stablehlo("chlo.bessel_i1e")),
    "bessel_j0": (aten("special_bessel_j0"),),
    "bessel_j1": (aten("special_bessel_j1"),),
    "bessel_k0": (aten("special_modified_bessel_k0"),),
    "bessel_k0e": (aten("special_scaled_modified_bessel_k0"),),
    "bessel_k1": (aten("special_modified_bessel_k1"),),
    "bessel_k1e": (aten("special_scaled_modified_bessel_k1"),),
    "bessel_y0": (aten("special_bessel_y0"),),
    "bessel_y1": (aten("special_bessel_y1"),),
    "bitwise_and": (aten(*_both("bitwise_and")), onnx("BitwiseAnd"), stablehlo("and")),
    "bitwise_not": (aten("bitwise_not"), onnx("BitwiseNot"), stablehlo("not")),
    "bitwise_or": (aten(*_both("bitwise_or")), onnx("BitwiseOr"), stablehlo("or")),
    "bitwise_xor": (aten(*_both("bitwise_xor")), onnx("BitwiseXor"), stablehlo("xor")),
    "cast": (relax("astype"),),
    "cbrt": (stablehlo("cbrt"),),
    "ceil": (aten("ceil"), onnx("Ceil"), stablehlo("ceil")),
    "copysign": (aten(*_both("copysign")),),
    "cos": (aten("cos"), onnx("Cos"), stablehlo("cosine")),
    "cosh": (aten("cosh"), onnx("Cosh"), stablehlo("chlo.cosh")),
    "digamma": (aten("digamma"), stablehlo("chlo.digamma")),
    "divide": (aten(*_both("div")),),
    "equal": (aten(*_both("eq")), onnx("Equal")),
    "erf": (aten("erf"), onnx("Erf"), stablehlo("chlo.erf")),
    "erf_inv": (aten("erfinv"), stablehlo("chlo.erf_inv")),
    "erfc": (aten("erfc"), stablehlo("chlo.erfc")),
    "erfcx": (aten("special_erfcx"),),
    "exp": (aten("exp"), onnx("Exp"), stablehlo("exponential")),
    "exp2": (aten("exp2"),),
    "expm1": (aten("expm1"), stablehlo("exponential_minus_one")),
    "floor": (aten("floor"), onnx("Floor"), stablehlo("floor")),
    "floor_mod": (aten(*_both("remainder"), "remainder.Scalar_Tensor"),),
    "fma": (relax("ewise_fma"),),
    "gcd": (aten("gcd"),),
    "greater": (aten(*_both("gt")), onnx("Greater")),
    "greater_equal": (aten(*_both("ge")), onnx("GreaterOrEqual")),
    "igamma": (aten("igamma"), aten("igammac", fixed={"complement": True})),
    "isfinite": (stablehlo("is_finite"),),
    "isinf": (
        onnx("IsInf", detect_negative="detect_negative", detect_positive="detect_positive"),
        stablehlo("chlo.is_inf"),
        stablehlo("chlo.is_neg_inf", fixed={"detect_positive": False}),
        stablehlo("chlo.is_pos_inf", fixed={"detect_negative": False}),
    ),
    "isnan": (onnx("IsNaN"),),
    "left_shift": (
        aten("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", *_both("__lshift__")),
        stablehlo("shift_left"),
    ),
    "less": (aten(*_both("lt")), onnx("Less")),
    "less_equal": (aten(*_both("le")), onnx("LessOrEqual")),
    "lgamma": (aten("lgamma"), stablehlo("chlo.lgamma")),
    "log": (aten("log"), onnx("Log"), stablehlo("log")),
    "log10": (aten("log10"),),
    "log1p": (aten("log1p"), stablehlo("log_plus_one")),
    "log2": (aten("log2"),),
    "logaddexp": (aten("logaddexp"),),
    "logical_and": (aten("logical_and"), onnx("And")),
    "logical_not": (aten("logical_not"), onnx("Not")),
    "logical_or": (aten("logical_or"), onnx("Or")),
    "logical_xor": (aten("logical_xor"), onnx("Xor")),
    "maximum": (aten("maximum"), onnx("Max"), stablehlo("maximum")),
    "minimum": (aten("minimum"), onnx("Min"), stablehlo("minimum")),
    "multiply": (onnx("Mul"), stablehlo("multiply")),
    "ndtri": (aten("special_ndtri"),),
    "negative": (aten("neg"), onnx("Neg"), stablehlo("negate")),
    "nextafter": (aten("nextafter"), stablehlo("chlo.next_after")),
    "not_equal": (aten(*_both("ne")),),
    "polygamma": (aten("polygamma"), stablehlo("chlo.polygamma")),
    "reciprocal": (aten("reciprocal"), onnx("Reciprocal")),
    "right_shift": (aten("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", *_both("__rshift__")),),
    "round": (aten("round", "round.decimals", decimals="decimals"), onnx("Round"), stablehlo("round_nearest_even")),
    "rsqrt": (aten("rsqrt"), stablehlo("rsqrt")),
    "sign": (aten("sign", "sgn", fixed={"keep_nan": False}), onnx("Sign")),
    "sin": (aten("sin"), onnx("Sin"), stablehlo("sine")),
    "sinh": (aten("sinh"), onnx("Sinh"), stablehlo("chlo.sinh")),
    "spherical_bessel_j0": (aten("special_spherical_bessel_j0"),),
    "sqrt": (aten("sqrt"), onnx("Sqrt"), stablehlo("sqrt")),
    "square": (aten("square"), stablehlo("chlo.square")),
    "subtract": (onnx("Sub"), stablehlo("subtract")),
    "tan": (aten("tan"), onnx("Tan"), stablehlo("tan", "chlo.tan")),
    "tanh": (aten("tanh"), onnx("Tanh"), stablehlo("tanh")),
    "trunc": (aten("trunc"),),
    "trunc_mod": (aten(*_both("fmod")), relax("mod"), stablehlo("remainder")),
    "where": (onnx("Where"), stablehlo("select")),
    "zeta": (aten("special_zeta", "special_zeta.other_scalar", "special_zeta.self_scalar"), stablehlo("chlo.zeta")),
    # Activations
    "celu": (aten("celu", alpha="alpha"), onnx("Celu", alpha="alpha")),
    "elu": (
        aten("elu", alpha="alpha", scale="scale", input_scale="input_scale"),
        onnx("Elu", alpha="alpha"),
    ),
    "gelu": (aten("gelu", approximate="approximate"), onnx("Gelu", approximate="approximate"), relax("nn.gelu")),
    "hardsigmoid": (aten("hardsigmoid"), onnx("HardSigmoid", alpha="alpha", beta="beta")),
    "hardswish": (aten("hardswish"), onnx("HardSwish")),
    "leaky_relu": (
        aten("leaky_relu", alpha="negative_slope"),
        onnx("LeakyRelu", alpha="alpha"),
        relax("nn.leaky_relu"),
    ),
    "log_sigmoid": (aten("log_sigmoid"),),
    "mish": (aten("mish"), onnx("Mish")),
    "prelu": (relax("nn.prelu"),),
    "relu": (aten("relu"), onnx("Relu"), relax("nn.relu")),
    "selu": (onnx("Selu", alpha="alpha", gamma="gamma"), relax("nn.selu")),
    "shrink": (onnx("Shrink", lambd="lambd", bias="bias"),),
    "sigmoid": (aten("sigmoid"), onnx("Sigmoid"), stablehlo("logistic")),
    "silu": (aten("silu"), onnx("Swish", alpha="alpha"), relax("nn.silu")),
    "softplus": (aten("softplus", beta="beta", threshold="threshold"), onnx("Softplus"), relax("nn.softplus")),
    "softsign": (onnx("Softsign"),),
    "thresholded_relu": (onnx("ThresholdedRelu", alpha="alpha"),),
    # Reductions, norms and running sums
    "histc": (aten("histc", bins="bins", a_min="min", a_max="max"),),
    "all": (aten("all", "all.dim", "all.dims", axis="dim", keepdims="keepdim"),),
    "any": (aten("any", "any.dim", "any.dims", axis="dim", keepdims="keepdim"),),
    "argmax": (aten("argmax", axis="dim", keepdims="keepdim"),),
    "argmin": (aten("argmin", axis="dim", keepdims="keepdim"),),
    "batch_norm": (relax("nn.batch_norm"),),
    "cumprod": (aten("cumprod", axis="dim"),),
    "cumsum": (aten("cumsum", axis="dim"),),
    "group_norm": (relax("nn.group_norm"),),
    "instance_norm": (onnx("InstanceNormalization", since=6, epsilon="epsilon"), relax("nn.instance_norm")),
    "layer_norm": (relax("nn.layer_norm"),),
    "log_softmax": (
        aten("_log_softmax", axis="dim"),
        onnx("LogSoftmax", since=13, axis="axis"),
        relax("nn.log_softmax"),
    ),
    "logsumexp": (aten("logsumexp", axis="dim", keepdims="keepdim"),),
    "lrn": (onnx("LRN", size="size", alpha="alpha", beta="beta", bias="bias"),),
    "max": (aten("amax", "max", axis="dim", keepdims="keepdim"),),
    "mean": (aten("mean", "mean.dim", axis="dim", keepdims="keepdim"),),
    "min": (aten("amin", "min", axis="dim", keepdims="keepdim"),),
    "prod": (aten("prod", "prod.dim_int", axis="dim", keepdims="keepdim"),),
    "rms_norm": (relax("nn.rms_norm"),),
    "softmax": (aten("_softmax", axis="dim"), onnx("Softmax", since=13, axis="axis"), relax("nn.softmax")),
    "sum": (aten("sum", "sum.dim_IntList", axis="dim", keepdims="keepdim"),),
    "vector_norm": (aten("linalg_vector_norm", axis="dim", keepdims="keepdim", ord="ord"),),
    # Products, convolutions and pools
    "attention": (relax("nn.attention"),),
    "det": (onnx("Det"),),
    "matmul": (aten("mm", "bmm", "matmul"), onnx("MatMul")),
    **{f"avg_pool{rank}d": (relax(f"nn.avg_pool{rank}d"),) for rank in (1, 2, 3)},
    **{f"conv{rank}d": (relax(f"nn.conv{rank}d"),) for rank in (1, 2, 3)},
    **{f"conv{rank}d_transpose": (relax(f"nn.conv{rank}d_transpose"),) for rank in (1, 2, 3)},
    **{f"max_pool{rank}d": (relax(f"nn.max_pool{rank}d"),) for rank in (1, 2, 3)},
    # Shapes and indexing
    "concatenate": (onnx("Concat", since=4, axis="axis"), relax("concat")),
    "depth_to_space": (onnx("DepthToSpace", block_size="blocksize", mode="mode"),),
    "diagonal": (aten("diagonal", offset="offset", axis1="dim1", axis2="dim2"),),
    "dropout": (relax("nn.dropout"),),
    "gather": (onnx("GatherElements", axis="axis", fixed={"mode": "wrap"}),),
    "pad": (relax("nn.pad"),),
    "space_to_depth": (onnx("SpaceToDepth", block_size="blocksize", mode="mode"),),
    "take": (onnx("Gather", axis="axis", fixed={"mode": "wrap"}),),
    "transpose": (onnx("Transpose", axes="perm"), relax("permute_dims")),
    "tril": (aten("tril", k="diagonal"),),
    "triu": (aten("triu", k="diagonal"),),
    "unstack": (aten("unbind.int", axis="dim"),),
}
"""Functions -> their spellings."""


@lru_cache(maxsize=8)
def spellings(language: str) -> Mapping[str, tuple[str, Spelling]]:
    return {
        name: (operator, spelling)
        for operator, columns in SPELLINGS.items()
        for spelling in columns
        if spelling.language == language
        for name in spelling.names
    }
