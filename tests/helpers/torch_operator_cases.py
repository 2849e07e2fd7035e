"""Small cases of ATen operators: for each overload the arguments of calls, with odd shapes and element types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Call = tuple[tuple[Any, ...], dict[str, Any]]


def floats(*shape: int, dtype: Any = torch.float32, low: float = -2.0, high: float = 2.0) -> Any:
    return (torch.rand(shape, dtype=torch.float64) * (high - low) + low).to(dtype)


def integers(*shape: int, low: int = -5, high: int = 6, dtype: Any = torch.int64) -> Any:
    return torch.randint(low, high, shape, dtype=dtype)


def bools(*shape: int) -> Any:
    return torch.rand(shape) > 0.5


def call(*args: Any, **keywords: Any) -> Call:
    return args, keywords


F16, BF16, F64, I32, U8 = torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.uint8
CASES: dict[str, Callable[[], list[Call]]] = {}


def case(names: str, make: Callable[[], list[Call]]) -> None:
    """The calls of operators, named without `aten.`; `default` is the overload unless given."""
    for name in names.split():
        CASES[f"aten.{name}" if "." in name else f"aten.{name}.default"] = make


# Elementwise
case(
    "cos sin tanh sigmoid erf exp expm1 sinh cosh asinh atan tan silu mish",
    lambda: [call(floats(3, 5)), call(floats(7, dtype=F64)), call(floats(5, dtype=F16))],
)
case(
    "exp2 hardsigmoid hardswish gelu log_sigmoid",
    lambda: [call(floats(3, 5, low=-4, high=4)), call(floats(7, dtype=F64))],
)
case(
    "sqrt log1p reciprocal",
    lambda: [call(integers(4, low=1, high=9)), call(floats(3, 5, low=0.2))],
)
case("acos asin atanh", lambda: [call(floats(9, low=-0.9, high=0.9))])
case("acosh log log2 log10 rsqrt", lambda: [call(floats(9, low=1.1, high=9)), call(integers(4, low=1, high=9))])
case("abs neg sign sgn square", lambda: [call(floats(3, 4)), call(integers(6)), call(integers(6, dtype=I32))])
case("relu", lambda: [call(floats(3, 4)), call(integers(6))])
case(
    "ceil floor round trunc",
    lambda: [call(floats(20, low=-5, high=5)), call(integers(6)), call(torch.tensor([0.5, 1.5, -0.5]))],
)
case("bitwise_not", lambda: [call(integers(6)), call(bools(5)), call(integers(4, low=0, high=9, dtype=U8))])
case("logical_not", lambda: [call(floats(6).round()), call(integers(6, low=0, high=2)), call(bools(5))])
case("isnan isinf", lambda: [call(torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])), call(integers(3))])
case(
    "add.Tensor sub.Tensor",
    lambda: [
        call(floats(3, 1, 5), floats(4, 1)),
        call(integers(4), floats(4), alpha=2),
        call(integers(4, dtype=I32), integers(4), alpha=3),
        call(floats(4, dtype=F16), floats()),
        call(floats(4, dtype=BF16), 0.1),
    ],
)
case("rsub.Tensor", lambda: [call(floats(3, 4), floats(4)), call(integers(4), floats(4), alpha=2)])
case(
    "mul.Tensor",
    lambda: [
        call(floats(3, 1, 5), floats(4, 1)),
        call(bools(4), bools(4)),
        call(integers(4), 2.5),
        call(floats(4, dtype=BF16), 0.1),
    ],
)
case(
    "add.Scalar sub.Scalar rsub.Scalar", lambda: [call(floats(3, 4), 2.5), call(integers(4), 2), call(integers(4), 0.5)]
)
case("mul.Scalar", lambda: [call(floats(3, 4), 2.5), call(integers(4), 2), call(integers(4), 0.5)])
case(
    "div.Tensor",
    lambda: [
        call(floats(3, 4), floats(4, low=1)),
        call(integers(4), integers(4, low=1)),
        call(floats(4, dtype=F16), 3.0),
    ],
)
case("true_divide.Tensor", lambda: [call(floats(3, 4), floats(4, low=1)), call(integers(4), integers(4, low=1))])
case("div.Scalar true_divide.Scalar", lambda: [call(floats(3, 4), 3.0), call(integers(4), 2)])
case(
    "div.Tensor_mode",
    lambda: [
        call(*given, rounding_mode=mode)
        for mode in ("floor", "trunc", None)
        for given in ((floats(9, high=9), floats(9, low=0.5)), (integers(9), torch.tensor([2, -3, 1] * 3)))
    ],
)
case(
    "div.Scalar_mode",
    lambda: [call(floats(9, high=9), 0.1, rounding_mode="floor"), call(integers(9), -2, rounding_mode="trunc")],
)
case("floor_divide", lambda: [call(floats(9), floats(9, low=0.5)), call(integers(9), torch.tensor([2, -3, 1] * 3))])
case(
    "remainder.Tensor fmod.Tensor",
    lambda: [
        call(floats(9, low=-9, high=9), floats(9, low=0.5)),
        call(integers(9), torch.tensor([2, -3, 1] * 3)),
        call(floats(6), -floats(6, low=0.3)),
    ],
)
case(
    "remainder.Scalar fmod.Scalar",
    lambda: [call(floats(9, low=-9, high=9), 1.5), call(integers(9), 3), call(integers(9), -4)],
)
case("remainder.Scalar_Tensor", lambda: [call(7.5, floats(5, low=0.5)), call(7, torch.tensor([2, -3, 4]))])
case("pow.Tensor_Tensor", lambda: [call(floats(5, low=0.1), floats(5)), call(integers(5), integers(5, low=0, high=4))])
case(
    "pow.Tensor_Scalar",
    lambda: (
        [call(floats(5, low=0.1), exponent) for exponent in (2, 0.5, -0.5, -1, 1, 3, 1.7)]
        + [call(integers(5), 2), call(integers(5), 3)]
    ),
)
case("pow.Scalar", lambda: [call(2.0, floats(5)), call(3, integers(5, low=0, high=4))])
case(
    "maximum minimum",
    lambda: [
        call(floats(3, 1), floats(4)),
        call(integers(4), floats(4)),
        call(bools(4), bools(4)),
        call(torch.tensor([float("nan"), 1.0]), floats(2)),
    ],
)
case("atan2 logaddexp", lambda: [call(floats(3, 4), floats(4))])
case("atan2", lambda: [call(floats(3, 4), floats(4)), call(integers(4), integers(4, low=1))])
case(
    "eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor",
    lambda: [
        call(integers(9, low=0, high=3), integers(9, low=0, high=3)),
        call(integers(3, 1), floats(4)),
        call(bools(4), bools(4)),
        call(floats(4), floats(4, dtype=F64)),
    ],
)
case(
    "eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar",
    lambda: [call(integers(9, low=0, high=3), 1), call(integers(4), 0.5), call(floats(4), 0), call(bools(4), True)],
)
case(
    "logical_and logical_or logical_xor",
    lambda: [call(bools(4), bools(4)), call(integers(4, low=0, high=2), floats(4))],
)
case(
    "bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor",
    lambda: [call(integers(9), integers(9)), call(bools(4), bools(4)), call(integers(4, dtype=I32), integers(4))],
)
case("bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar", lambda: [call(integers(9), 6), call(bools(4), True)])
case("bitwise_left_shift.Tensor bitwise_right_shift.Tensor", lambda: [call(integers(9), integers(9, low=0, high=5))])
case("erfc erfinv lgamma digamma signbit", lambda: [call(floats(3, 4) * 0.3), call(floats(4, dtype=F64) * 0.3)])
case("nextafter", lambda: [call(floats(6), floats(6)), call(floats(6, dtype=F64), floats(6, dtype=F64))])
case("gcd lcm", lambda: [call(integers(3, 4), integers(4)), call(integers(4, dtype=I32), integers(4, dtype=I32))])
case(
    "fmax fmin hypot",
    lambda: [call(torch.tensor([float("nan"), 1.0, float("inf")]), floats(3)), call(floats(3, 1), floats(4))],
)
case(
    "cummax cummin", lambda: [call(torch.tensor([[1.0, 3.0, 2.0, 3.0, float("nan"), 1.0]]), 1), call(integers(5, 3), 0)]
)
case("logcumsumexp", lambda: [call(floats(3, 4), 1), call(floats(5) * 40, 0)])
case("kthvalue", lambda: [call(floats(3, 5), 2), call(floats(3, 5), 2, 0, True)])
case("median nanmedian", lambda: [call(floats(3, 4)), call(torch.tensor([1.0, float("nan"), 3.0, 2.0]))])
case(
    "median.dim nanmedian.dim",
    lambda: [call(floats(3, 5), 1), call(torch.tensor([[1.0, float("nan"), 3.0, 2.0], [4.0, 7.0, 6.0, 5.0]]), 1, True)],
)
case("searchsorted.Tensor", lambda: [call(torch.sort(floats(7)).values, floats(3, 2))])
case("searchsorted.Scalar", lambda: [call(torch.sort(floats(7)).values, 0.5)])
case("bucketize.Tensor", lambda: [call(floats(3, 2), torch.sort(floats(7)).values)])
case("bucketize.Scalar", lambda: [call(0.5, torch.sort(floats(7)).values)])
case("view.dtype", lambda: [call(floats(3, 4), torch.int32), call(integers(4), torch.float64)])
case("diagonal_scatter", lambda: [call(floats(3, 4), floats(3)), call(floats(2, 4, 3), floats(4, 1), 2, 0, 2)])
case("copysign.Tensor", lambda: [call(floats(6), -floats(6))])
case("copysign.Scalar", lambda: [call(floats(6), -1.0)])
case("__lshift__.Tensor __rshift__.Tensor", lambda: [call(integers(9), integers(9, low=0, high=40))])
case("__lshift__.Scalar __rshift__.Scalar", lambda: [call(integers(9), 3)])
case("bitwise_left_shift.Tensor_Scalar bitwise_right_shift.Tensor_Scalar", lambda: [call(integers(9), 3)])
case(
    "clamp",
    lambda: [
        call(floats(9), -0.5, 1),
        call(floats(9), None, 1),
        call(integers(9), -2, 2),
        call(integers(9), -1.5),
        call(floats(4, dtype=F16), 0.1, 1.0),
    ],
)
case(
    "clamp.Tensor",
    lambda: [call(floats(3, 4), floats(4, low=-1, high=0), floats(1, low=0)), call(floats(9), None, torch.tensor(1.0))],
)
case("clamp_min clamp_max", lambda: [call(floats(9), 0.5), call(integers(9), 1)])
case("clamp_min.Tensor clamp_max.Tensor", lambda: [call(floats(9), floats(9))])
case("hardtanh", lambda: [call(floats(9)), call(floats(9), -0.5, 0.75)])
case(
    "where.self",
    lambda: [
        call(bools(3, 1), floats(4), floats(3, 4)),
        call(bools(4), integers(4), floats()),
        call(bools(4), torch.tensor(0.0), floats(4, dtype=F16)),
    ],
)
case("masked_fill.Scalar", lambda: [call(floats(3, 4), bools(4), -1.5), call(integers(4), bools(4), 3)])
case("masked_fill.Tensor", lambda: [call(floats(3, 4), bools(3, 1), torch.tensor(7.0))])
case("round.decimals", lambda: [call(floats(9), decimals=2), call(floats(9, high=99), decimals=-1)])
case(
    "_to_copy",
    lambda: (
        [call(floats(9, low=-4, high=4), dtype=dtype) for dtype in (torch.int32, torch.bool, F16, BF16, F64)]
        + [call(bools(4), dtype=torch.float32), call(integers(4), dtype=torch.uint8)]
    ),
)
case("gelu", lambda: [call(floats(9)), call(floats(9), approximate="tanh")])
case("elu", lambda: [call(floats(9)), call(floats(9), 0.7), call(floats(9), 1.5, 1.1, 0.9)])
case("celu", lambda: [call(floats(9)), call(floats(9), 1.7)])
case("leaky_relu", lambda: [call(floats(9)), call(floats(9), 0.2)])
case("softplus", lambda: [call(floats(9, low=-30, high=30)), call(floats(9), 2.0, 1.0)])
case("_prelu_kernel", lambda: [call(floats(2, 3, 4), floats(1, 3, 1)), call(floats(4), floats(1))])
case("prelu", lambda: [call(floats(2, 3, 4), floats(3)), call(floats(2, 3), floats(1))])
case(
    "nan_to_num",
    lambda: [
        call(torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0])),
        call(torch.tensor([float("nan"), float("inf")]), 2.0, 3.0),
    ],
)
case("fill.Scalar", lambda: [call(floats(3, 4), 2.5), call(integers(4), 3)])
case("fill.Tensor", lambda: [call(floats(3, 4), torch.tensor(2.5))])
case("copy", lambda: [call(floats(3, 4), floats(4)), call(floats(4), integers(4))])

# Reductions
case("sum mean prod", lambda: [call(floats(3, 4)), call(floats(4, dtype=F16)), call(floats())])
case(
    "sum prod",
    lambda: [
        call(floats(3, 4)),
        call(integers(3, 4)),
        call(bools(4)),
        call(integers(4, dtype=I32)),
        call(floats(4), dtype=F64),
    ],
)
case(
    "sum.dim_IntList",
    lambda: [
        call(floats(3, 4, 5), [0, -1]),
        call(floats(3, 4), [1], True),
        call(bools(3, 4), [0]),
        call(floats(3, 4), []),
        call(floats(3, 4), None),
        call(floats(), [0]),
    ],
)
case(
    "mean.dim",
    lambda: [
        call(floats(3, 4, 5), [0, -1]),
        call(floats(3, 4), [1], True),
        call(integers(3, 4), [0], dtype=torch.float32),
    ],
)
case("prod.dim_int", lambda: [call(floats(3, 4), 0), call(integers(3, 4), -1, True)])
case(
    "amax amin",
    lambda: [
        call(floats(3, 4, 5), [0, 2]),
        call(integers(3, 4), [-1], True),
        call(floats(3, 4)),
        call(bools(3, 4), [0]),
    ],
)
case("max min", lambda: [call(floats(3, 4)), call(integers(5))])
case(
    "max.dim min.dim",
    lambda: [
        call(floats(3, 4), 0),
        call(floats(3, 4), -1, True),
        call(floats(), 0),
        call(integers(7, low=-50, high=50), 0),
    ],
)
case("argmax argmin", lambda: [call(floats(3, 4)), call(floats(3, 4), 1), call(floats(3, 4), 0, True), call(floats())])
case("any all", lambda: [call(bools(3, 4)), call(integers(4, low=0, high=2)), call(floats(4).round())])
case(
    "any.dim all.dim",
    lambda: [call(bools(3, 4), 0), call(floats(3, 4).round(), -1, True), call(integers(3, low=0, high=2, dtype=U8), 0)],
)
case("any.dims all.dims", lambda: [call(bools(3, 4, 2), [0, 2]), call(bools(3, 4), None)])
case(
    "var.correction",
    lambda: [
        call(floats(3, 4)),
        call(floats(3, 4), [0], correction=0),
        call(floats(3, 4), [1], correction=2, keepdim=True),
    ],
)
case("var.dim", lambda: [call(floats(3, 4), [0]), call(floats(3, 4), [0, 1], False, True)])
case("var_mean.correction", lambda: [call(floats(3, 4), [1], correction=0, keepdim=True)])
case("logsumexp", lambda: [call(floats(3, 4), [1]), call(floats(3, 4), [0, 1], True)])
case(
    "linalg_vector_norm",
    lambda: [
        call(floats(3, 4)),
        call(floats(3, 4), 1, [1], True),
        call(floats(3, 4), float("inf"), [0]),
        call(floats(3, 4), 3),
    ],
)
case(
    "_softmax _log_softmax",
    lambda: [
        call(floats(3, 5), -1, False),
        call(floats(3, 5, 2), 1, False),
        call(floats(4, dtype=F16), 0, False),
        call(floats(), 0, False),
    ],
)
case(
    "cumsum cumprod",
    lambda: [
        call(floats(3, 5), 1),
        call(integers(5, low=1, high=4), 0),
        call(bools(6), 0),
        call(floats(5), 0, dtype=F64),
        call(floats(), 0),
    ],
)
case("sort", lambda: [call(floats(3, 7)), call(floats(3, 7), 0, True), call(integers(30).unique())])
case("sort.stable", lambda: [call(integers(3, 9), stable=True), call(integers(9), stable=True, dim=0, descending=True)])
case("topk", lambda: [call(floats(3, 9), 4), call(floats(9, 3), 2, 0, False)])
case(
    "_cdist_forward",
    lambda: (
        [call(floats(4, 3), floats(5, 3), p, None) for p in (2.0, 1.0, float("inf"))]
        + [call(floats(2, 4, 3), floats(2, 5, 3), 2.0, None)]
    ),
)
case("_pdist_forward", lambda: [call(floats(5, 3), 2.0), call(floats(4, 3), 1.0)])

# Views, creation, indexing
case("alias detach clone lift_fresh_copy _neg_view", lambda: [call(floats(3, 4))])
case("view _unsafe_view reshape", lambda: [call(floats(3, 4), [2, 6]), call(floats(3, 4), [-1]), call(floats(1), [])])
case("unsqueeze", lambda: [call(floats(3, 4), 0), call(floats(3, 4), -1), call(floats(), 0)])
case("squeeze.dim", lambda: [call(floats(3, 1, 4), 1), call(floats(3, 4), 0), call(floats(3, 1), -1)])
case("squeeze.dims", lambda: [call(floats(1, 3, 1, 4), [0, 2]), call(floats(3, 4), [0])])
case("squeeze", lambda: [call(floats(1, 3, 1))])
case("narrow", lambda: [call(floats(5, 3), 0, 1, 3), call(floats(3, 5), -1, -4, 2)])
case("avg_pool1d", lambda: [call(floats(2, 3, 7), [3]), call(floats(3, 7), [3], [2], [1], True, False)])
case("permute", lambda: [call(floats(2, 3, 4), [2, 0, 1]), call(floats(2, 3), [-1, 0]), call(floats(), [])])
case("transpose.int", lambda: [call(floats(2, 3, 4), 0, -1), call(floats(), 0, -1)])
case("t", lambda: [call(floats(2, 3)), call(floats(3))])
case("expand", lambda: [call(floats(3, 1), [2, 3, 4]), call(floats(3, 1), [-1, 5]), call(floats(), [2, 2])])
case("flip", lambda: [call(floats(2, 3), [0]), call(floats(2, 3), [-1, 0]), call(integers(4), [])])
case("roll", lambda: [call(floats(3, 4), [1], [1]), call(floats(3, 4), [5]), call(floats(3, 4), [1, -2], [0, 1])])
case("repeat", lambda: [call(floats(2, 3), [2, 1]), call(floats(3), [2, 1, 2]), call(floats(), [3])])
case(
    "cat",
    lambda: [
        call([floats(2, 3), floats(1, 3)]),
        call([floats(2, 3), integers(2, 2)], 1),
        call([torch.zeros(0), floats(2, 3)], -1),
        call([floats(3)]),
    ],
)
case("stack", lambda: [call([floats(2, 3), floats(2, 3)]), call([floats(2), floats(2), floats(2)], -1)])
case(
    "slice.Tensor",
    lambda: [
        call(floats(7, 3), 0, 1, 5),
        call(floats(7, 3), 0, -4, 9223372036854775807, 2),
        call(floats(3, 7), 1, None, -2),
        call(floats(7), 0, 5, 3),
        call(floats(7), 0, 9, 12),
    ],
)
case("select.int", lambda: [call(floats(3, 4), 0, 1), call(floats(3, 4), -1, -1)])
case("split_with_sizes", lambda: [call(floats(7, 2), [3, 4]), call(floats(2, 6), [1, 2, 3], -1), call(floats(3), [3])])
case("split.Tensor", lambda: [call(floats(7, 2), 3), call(floats(2, 6), 2, 1)])
case("unbind.int", lambda: [call(floats(3, 2)), call(floats(2, 3), -1)])
case("diagonal", lambda: [call(floats(3, 4)), call(floats(3, 4), 1), call(floats(2, 3, 4), -1, 0, -1)])
case("tril triu", lambda: [call(floats(3, 4)), call(floats(2, 3, 3), -1), call(integers(3, 3), 1)])
case("as_strided", lambda: [call(floats(12), [3, 2], [4, 1]), call(floats(3, 4), [2, 3], [1, 2], 3)])
case("unfold", lambda: [call(floats(7), 0, 3, 2), call(floats(2, 7), 1, 3, 1), call(floats(5, 2), 0, 2, 3)])
case(
    "constant_pad_nd",
    lambda: [
        call(floats(3, 4), [1, 2]),
        call(floats(3, 4), [1, 0, 0, 2], 1.5),
        call(floats(3, 4), [-1, 1, 2, -1], 2),
        call(bools(3), [1, 1], True),
    ],
)
case("reflection_pad1d replication_pad1d", lambda: [call(floats(2, 5), [2, 1]), call(floats(1, 2, 5), [0, 2])])
case(
    "reflection_pad2d replication_pad2d",
    lambda: [call(floats(2, 4, 5), [2, 1, 0, 3]), call(floats(1, 2, 4, 5), [1, 1, 1, 1])],
)
CASES["aten.replication_pad2d.default"] = lambda: [
    call(floats(2, 4, 5), [2, 1, 0, 3]),
    call(floats(1, 2, 4, 5), [-5, 5, 3, -4]),
]
case("reflection_pad3d replication_pad3d", lambda: [call(floats(1, 2, 3, 4, 5), [2, 1, 0, 3, 1, 1])])
case("full", lambda: [call([2, 3], 1.5), call([2], 3, dtype=torch.int64), call([2], True), call([], 2.0)])
case("full_like", lambda: [call(floats(2, 3), 1.5), call(integers(2), 3), call(floats(2), 3, dtype=torch.int32)])
case("scalar_tensor", lambda: [call(1.5), call(3, dtype=torch.int64)])
case(
    "arange.start_step",
    lambda: [call(0, 5), call(1, 9, 3), call(0.5, 3.0, 0.5), call(5, 0, -2), call(0, 4, dtype=torch.float32)],
)
case(
    "embedding",
    lambda: [
        call(floats(7, 3), integers(2, 4, low=0, high=7)),
        call(floats(7, 3), integers(low=0, high=7)),
        call(floats(7, 3), integers(5, low=0, high=7, dtype=I32)),
    ],
)
case(
    "index_select",
    lambda: [call(floats(5, 3), 0, integers(4, low=0, high=5)), call(floats(3, 5), -1, integers(2, low=0, high=5))],
)
case(
    "gather",
    lambda: [
        call(floats(3, 5), 1, integers(3, 2, low=0, high=5)),
        call(floats(3, 5), 0, integers(2, 3, low=0, high=3)),
    ],
)
case(
    "index.Tensor _unsafe_index.Tensor",
    lambda: [
        call(floats(5, 3), [integers(4, low=-5, high=5)]),
        call(floats(5, 3, 4), [None, integers(2, 2, low=-3, high=3)]),
        call(floats(5, 3, 4), [integers(2, 1, low=0, high=5), integers(3, low=0, high=3)]),
        call(floats(5, 3, 4), [integers(2, low=0, high=5), None, integers(2, low=0, high=4)]),
        call(floats(5, 3, 4), [None, integers(2, low=0, high=3), integers(2, low=-4, high=4)]),
    ],
)
case(
    "index_put _unsafe_index_put",
    lambda: [
        call(floats(5, 3), [torch.tensor([1, -1])], floats(2, 3)),
        call(floats(5, 3), [torch.tensor([1, 1, 4])], floats(3), True),
        call(floats(5, 3, 4), [None, torch.tensor([2])], floats(5, 1, 4)),
        call(floats(5, 3, 4), [None, torch.tensor([2, 0])], floats(2, 4)),
        call(floats(5, 3, 4), [torch.tensor([0, 1]), None, torch.tensor([3, 2])], floats(2, 3)),
        call(floats(5, 3, 4), [None, torch.tensor([0, 1]), torch.tensor([3, 2])], floats(5, 2)),
        call(floats(5, 3), [torch.tensor([[1], [2]]), torch.tensor([0, 2])], floats(2, 2), True),
        call(bools(5, 3), [torch.tensor([[1], [2]]), torch.tensor([0, 2])], bools(2, 2), True),
        call(bools(5, 3), [torch.tensor([1, 1, 4])], bools(3), True),
        call(floats(5, 3), [bools(5, 3)], torch.tensor(9.0)),
        call(floats(5, 3), [bools(5)], torch.tensor([2.0]), True),
    ],
)
case("select_scatter", lambda: [call(floats(3, 4), floats(4), 0, 1), call(floats(3, 4), floats(3), -1, -2)])
case(
    "slice_scatter",
    lambda: [
        call(floats(7, 3), floats(3, 3), 0, 1, 4),
        call(floats(3, 7), floats(3, 3), 1, -6, 9223372036854775807, 2),
        call(floats(3, 7), floats(3, 7), 1),
    ],
)
case(
    "scatter.src",
    lambda: [
        call(floats(3, 5), 1, torch.tensor([[0, 2], [4, 1]]), floats(3, 3)),
        call(floats(5), 0, torch.tensor([3, 1]), floats(2)),
    ],
)
case("scatter.value", lambda: [call(floats(3, 5), 1, torch.tensor([[0, 2], [4, 1]]), 2.5)])
case(
    "scatter_add",
    lambda: [
        call(floats(3, 5), 1, integers(3, 4, low=0, high=5), floats(3, 4)),
        call(integers(5), 0, torch.tensor([1, 1]), integers(2)),
        call(bools(3, 5), 1, integers(3, 4, low=0, high=5), bools(3, 4)),
    ],
)
case(
    "scatter_reduce.two",
    lambda: (
        [
            call(floats(3, 5), 1, integers(3, 4, low=0, high=5), floats(3, 4), kind, include_self=whole)
            for kind in ("sum", "prod", "mean", "amax", "amin")
            for whole in (True, False)
        ]
        + [
            call(bools(3, 5), 1, integers(3, 4, low=0, high=5), bools(3, 4), kind, include_self=whole)
            for kind in ("sum", "prod", "amax", "amin")
            for whole in (True, False)
        ]
    ),
)
case(
    "masked_scatter", lambda: [call(floats(3, 4), bools(3, 4), floats(12)), call(floats(3, 4), bools(4), floats(3, 4))]
)
case("zeros ones", lambda: [call([2, 3]), call([2], dtype=torch.int64)])
case("zeros_like ones_like", lambda: [call(floats(2, 3)), call(integers(2))])
case("new_zeros new_ones", lambda: [call(floats(2), [3, 2])])
case("new_full", lambda: [call(floats(2), [3, 2], 2.5)])

# Products, convolutions, pools, norms, attention, recurrent networks, images
case(
    "mm",
    lambda: [
        call(floats(3, 4), floats(4, 5)),
        call(integers(3, 4), integers(4, 5)),
        call(floats(3, 4, dtype=F16), floats(4, 5, dtype=F16)),
    ],
)
case("bmm", lambda: [call(floats(2, 3, 4), floats(2, 4, 5))])
case(
    "matmul",
    lambda: [
        call(floats(2, 3, 4), floats(4, 5)),
        call(floats(4), floats(4)),
        call(floats(3, 4), floats(4)),
        call(floats(2, 1, 3, 4), floats(5, 4, 2)),
    ],
)
case(
    "linear",
    lambda: [
        call(floats(2, 3, 4), floats(5, 4), floats(5)),
        call(floats(4), floats(5, 4)),
        call(floats(3, 4), floats(4)),
    ],
)
case(
    "addmm",
    lambda: [
        call(floats(5), floats(3, 4), floats(4, 5)),
        call(floats(3, 1), floats(3, 4), floats(4, 5), beta=0.5, alpha=2),
        call(floats(5), floats(3, 4), floats(4, 5), beta=0),
    ],
)
case("baddbmm", lambda: [call(floats(2, 3, 5), floats(2, 3, 4), floats(2, 4, 5), beta=0.5)])
case(
    "convolution",
    lambda: [
        call(floats(2, 4, 7, 6), floats(6, 2, 3, 3), floats(6), [2, 1], [1, 0], [1, 2], False, [0, 0], 2),
        call(floats(2, 4, 9), floats(6, 4, 3), None, [1], [1], [1], False, [0], 1),
        call(
            floats(1, 2, 4, 5, 6),
            floats(3, 2, 2, 2, 2),
            floats(3),
            [1, 1, 1],
            [0, 0, 0],
            [1, 1, 1],
            False,
            [0, 0, 0],
            1,
        ),
        call(floats(2, 4, 5, 6), floats(4, 3, 3, 3), floats(3), [2, 2], [1, 1], [1, 1], True, [1, 0], 1),
        call(floats(2, 4, 5), floats(4, 2, 3), None, [2], [0], [1], True, [0], 2),
        call(floats(2, 6, 8, 8), floats(6, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 6),
    ],
)
case(
    "avg_pool2d",
    lambda: [
        call(floats(2, 3, 7, 8), [3, 2]),
        call(floats(1, 3, 7, 8), [3, 3], [2, 2], [1, 1], True, False),
        call(floats(3, 7, 8), [2, 2], [1, 1], [0, 0], False, True, 3),
    ],
)
case(
    "avg_pool3d",
    lambda: [call(floats(1, 2, 5, 6, 7), [2, 2, 3]), call(floats(1, 2, 5, 6, 7), [3, 3, 3], [2, 2, 2], [1, 1, 1])],
)
case(
    "max_pool2d_with_indices",
    lambda: [
        call(floats(2, 3, 7, 8), [3, 2]),
        call(floats(3, 7, 8), [3, 3], [2, 2], [1, 1]),
        call(floats(1, 3, 9, 8), [2, 2], [2, 2], [0, 0], [2, 2], True),
    ],
)
case("max_pool3d_with_indices", lambda: [call(floats(1, 2, 5, 6, 7), [2, 2, 3])])
case(
    "_adaptive_avg_pool2d",
    lambda: [call(floats(2, 3, 7, 8), [1, 1]), call(floats(2, 3, 7, 8), [3, 5]), call(floats(3, 7, 8), [2, 2])],
)
case("_adaptive_avg_pool3d", lambda: [call(floats(2, 3, 4, 7, 8), [2, 3, 5])])
case(
    "layer_norm",
    lambda: [
        call(floats(2, 3, 4), [4], floats(4), floats(4)),
        call(floats(2, 3, 4), [3, 4]),
        call(floats(2, 4), [4], floats(4)),
    ],
)
case(
    "native_layer_norm",
    lambda: [call(floats(2, 3, 4), [4], floats(4), floats(4), 1e-5), call(floats(2, 3, 4), [3, 4], None, None, 1e-3)],
)
case("rms_norm", lambda: [call(floats(2, 3, 4), [4], floats(4), 1e-5), call(floats(2, 4), [4])])
case("group_norm", lambda: [call(floats(2, 6, 5), 3, floats(6), floats(6)), call(floats(2, 6, 3, 2), 2)])
case(
    "native_group_norm",
    lambda: [
        call(floats(2, 6, 5), floats(6), floats(6), 2, 6, 5, 3, 1e-5),
        call(floats(2, 6, 5), None, None, 2, 6, 5, 2, 1e-5),
    ],
)
case(
    "_native_batch_norm_legit_no_training",
    lambda: [
        call(floats(2, 3, 5), floats(3), floats(3), floats(3), floats(3, low=0.5), 0.1, 1e-5),
        call(floats(2, 3), None, None, floats(3), floats(3, low=0.5), 0.1, 1e-5),
    ],
)
case(
    "_native_batch_norm_legit.no_stats",
    lambda: [
        call(floats(4, 3, 5), floats(3), floats(3), True, 0.1, 1e-5),
        call(floats(4, 3, 5, dtype=BF16), floats(3), None, True, 0.1, 1e-5),
    ],
)
case(
    "_native_batch_norm_legit_functional",
    lambda: [
        call(floats(4, 3, 5), floats(3), floats(3), floats(3), floats(3, low=0.5), True, 0.1, 1e-5),
        call(
            floats(4, 3, dtype=BF16), None, None, floats(3, dtype=BF16), floats(3, low=0.5, dtype=BF16), True, 0.1, 1e-5
        ),
        call(floats(4, 3, dtype=BF16), floats(3), floats(3), floats(3), floats(3, low=0.5), False, 0.1, 1e-5),
    ],
)
case(
    "scaled_dot_product_attention",
    lambda: [
        call(floats(2, 3, 4, 8), floats(2, 3, 5, 8), floats(2, 3, 5, 8)),
        call(floats(2, 3, 4, 8), floats(2, 3, 4, 8), floats(2, 3, 4, 8), is_causal=True),
        call(floats(2, 3, 4, 8), floats(2, 3, 5, 8), floats(2, 3, 5, 6), floats(4, 5), scale=0.3),
        call(
            floats(1, 2, 3, 8),
            floats(1, 2, 3, 8),
            floats(1, 2, 3, 8),
            torch.tensor([[True, False, True], [False] * 3, [True] * 3]),
        ),
        call(floats(1, 4, 3, 8), floats(1, 2, 3, 8), floats(1, 2, 3, 8), enable_gqa=True),
    ],
)


def recurrent(gates: int, states: int, *, bidirectional: bool, bias: bool = True, layers: int = 2) -> Call:
    hidden, size, directions = 3, 4, 2 if bidirectional else 1
    weights: list[Any] = []
    for layer in range(layers):
        for _ in range(directions):
            width = size if layer == 0 else hidden * directions
            weights += [floats(gates * hidden, width), floats(gates * hidden, hidden)]
            weights += [floats(gates * hidden), floats(gates * hidden)] if bias else []
    begun = [floats(layers * directions, 2, hidden) for _ in range(states)]
    first = begun if states > 1 else begun[0]
    return call(floats(2, 5, size), first, weights, bias, layers, 0.0, False, bidirectional, True)


case("lstm.input", lambda: [recurrent(4, 2, bidirectional=False), recurrent(4, 2, bidirectional=True, bias=False)])
case("gru.input", lambda: [recurrent(3, 1, bidirectional=False), recurrent(3, 1, bidirectional=True)])
case("rnn_tanh.input rnn_relu.input", lambda: [recurrent(1, 1, bidirectional=True)])
case(
    "upsample_nearest2d.vec _upsample_nearest_exact2d.vec",
    lambda: [call(floats(1, 2, 3, 4), [7, 5], None), call(floats(1, 2, 3, 4), None, [2.0, 1.5])],
)
case("upsample_nearest1d.vec _upsample_nearest_exact1d.vec", lambda: [call(floats(1, 2, 5), [8], None)])
case(
    "upsample_nearest3d.vec _upsample_nearest_exact3d.vec", lambda: [call(floats(1, 2, 2, 3, 4), None, [2.0, 2.0, 2.0])]
)
case(
    "upsample_bilinear2d.vec upsample_bicubic2d.vec",
    lambda: [
        call(floats(1, 2, 5, 4), [7, 9], False, None),
        call(floats(1, 2, 5, 4), [7, 9], True, None),
        call(floats(1, 2, 5, 4), None, False, [1.5, 2.0]),
    ],
)
case("upsample_linear1d.vec", lambda: [call(floats(1, 2, 5), [8], False, None)])
case("upsample_trilinear3d.vec", lambda: [call(floats(1, 2, 2, 3, 4), [3, 4, 5], True, None)])
case(
    "grid_sampler_2d",
    lambda: [
        call(floats(1, 2, 4, 5), floats(1, 3, 3, 2, low=-1.2, high=1.2), mode, padding, corners)
        for mode in (0, 1, 2)
        for padding in (0, 1, 2)
        for corners in (False, True)
    ],
)
case("grid_sampler_3d", lambda: [call(floats(1, 2, 3, 4, 5), floats(1, 2, 3, 3, 3, low=-1.2, high=1.2), 0, 0, False)])
case(
    "_embedding_bag _embedding_bag_forward_only",
    lambda: [
        call(floats(7, 3), integers(6, low=0, high=7), torch.tensor([0, 2, 2, 5]), False, mode) for mode in (0, 1, 2)
    ],
)
case("adaptive_max_pool2d", lambda: [call(floats(2, 3, 7, 8), [3, 5])])
case("adaptive_max_pool3d", lambda: [call(floats(2, 3, 4, 7, 8), [2, 3, 5])])
case("_fused_rms_norm", lambda: [call(floats(2, 3, 4), [4], floats(4), 1e-5), call(floats(2, 4), [4], None, None)])
case(
    "histc",
    lambda: [
        call(floats(40), bins=7, min=-2, max=1),
        call(torch.tensor([1.0, 2.0, 1.0, 4.0, float("nan"), 9.0, -1.0]), bins=4, min=0, max=4),
        call(integers(30, low=0, high=5).float(), bins=5, min=0, max=4),
        call(floats(4, 9, dtype=F64)),
        call(torch.ones(3), bins=3),
    ],
)
case(
    "_grouped_mm",
    lambda: [
        call(floats(6, 8), floats(3, 8, 4), torch.tensor([2, 2, 6], dtype=I32)),
        call(floats(5, 8, dtype=BF16), floats(2, 8, 16, dtype=BF16), torch.tensor([1, 5], dtype=I32)),
    ],
)


# Special functions
def numbers(*, low: float = -6.0, high: float = 9.0) -> list[Call]:
    return [call(floats(3, 4, low=low, high=high)), call(floats(9, dtype=F64, low=low, high=high))]


_SCALED = "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1"
case("i0 special_i0e special_i1 special_i1e special_modified_bessel_i0 special_modified_bessel_i1", numbers)
case(
    "special_bessel_j0 special_bessel_j1 special_spherical_bessel_j0 special_erfcx special_airy_ai",
    lambda: numbers()[:1],
)
case("special_bessel_y0 special_bessel_y1", lambda: numbers(low=0.1)[:1])
case(f"special_modified_bessel_k0 special_modified_bessel_k1 {_SCALED}", lambda: numbers(low=0.1))
case("special_ndtri", lambda: numbers(low=0.0, high=1.0))
case("igamma igammac", lambda: [call(floats(3, 1, low=0.1, high=9), floats(4, low=0.1, high=9))])
case("polygamma", lambda: [call(order, floats(7, low=0.1, high=5)) for order in (0, 1, 3)])
case("special_zeta", lambda: [call(floats(3, 1, low=1.5, high=6), floats(4, low=0.5, high=9))])
case("special_zeta.other_scalar", lambda: [call(floats(4, low=1.5, high=6), 2.0)])
case("special_zeta.self_scalar", lambda: [call(3, floats(4, low=-3.5, high=9))])
for _kind in (
    *(f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
):
    case(f"special_{_kind}", lambda: [call(floats(6, 1, dtype=F64, low=-1), integers(9, low=-1, high=9))])
    case(f"special_{_kind}.x_scalar", lambda: [call(0.3, floats(4, low=0, high=9))])
    case(f"special_{_kind}.n_scalar", lambda: [call(floats(4, low=-1, high=1), 4)])
case("angle", lambda: [call(torch.tensor([-1.0, 0.0, 2.0, float("nan")])), call(integers(4)), call(bools(4))])
case("frexp.Tensor", lambda: [call(floats(9)), call(torch.tensor([0.0, float("inf"), -1e-40, 8.0]))])


# Factorizations
def matrices(*shape: int) -> Any:
    return floats(*shape, dtype=F64) + 3 * torch.eye(*shape[-2:], dtype=F64)


def positive_definite() -> Any:
    found = matrices(2, 4, 4)
    return torch.linalg.cholesky(found @ found.mT + 9 * torch.eye(4, dtype=F64))


case("linalg_lu_factor_ex linalg_lu", lambda: [call(matrices(2, 3, 5)), call(matrices(5, 3)), call(matrices(4, 4))])
case(
    "lu_unpack",
    lambda: [call(*torch.linalg.lu_factor(matrices(2, 3, 5))), call(*torch.linalg.lu_factor(matrices(5, 3)))],
)
case(
    "linalg_lu_solve",
    lambda: [
        call(
            *torch.linalg.lu_factor(matrices(2, 4, 4)),
            matrices(*((4, 3) if left else (3, 4))),
            left=left,
            adjoint=adjoint,
        )
        for left in (False, True)
        for adjoint in (False, True)
    ],
)
case(
    "_linalg_solve_ex",
    lambda: [call(matrices(2, 4, 4), matrices(2, 4, 3)), call(matrices(4, 4), floats(4, dtype=F64))],
)
case("linalg_inv_ex _linalg_det _linalg_slogdet", lambda: [call(matrices(2, 4, 4))])
case(
    "linalg_matrix_exp",
    lambda: [call(matrices(2, 4, 4)), call(matrices(3, 3) * 9), call(torch.zeros(2, 2)), call(torch.zeros(0, 0))],
)
case("linalg_cholesky_ex", lambda: [call(torch.eye(3) * 2), call(torch.eye(3) * 2, upper=True)])
case("cholesky", lambda: [call(torch.eye(3) * 2), call(torch.eye(3) * 2, True)])
case(
    "cholesky_solve",
    lambda: [call(matrices(2, 4, 3), positive_definite()), call(matrices(2, 4, 3), positive_definite().mT, True)],
)
case("cholesky_inverse", lambda: [call(positive_definite())])
case(
    "linalg_solve_triangular",
    lambda: [
        call(matrices(2, 4, 4), matrices(*((4, 3) if left else (3, 4))), upper=upper, left=left, unitriangular=upper)
        for left in (False, True)
        for upper in (False, True)
    ],
)
case(
    "triangular_solve",
    lambda: [call(matrices(2, 4, 3), matrices(2, 4, 4)), call(matrices(4, 3), matrices(4, 4), False, True)],
)
case("geqrf", lambda: [call(matrices(2, 3, 5)), call(matrices(5, 3))])
case("linalg_qr", lambda: [call(matrices(5, 3), mode) for mode in ("reduced", "complete", "r")])
case("linalg_householder_product", lambda: [call(*torch.geqrf(matrices(2, 5, 3)))])
case(
    "ormqr",
    lambda: [
        call(*torch.geqrf(matrices(5, 3)), matrices(5, 2)),
        call(*torch.geqrf(matrices(4, 4)), matrices(2, 4), False, True),
    ],
)
case("_linalg_eigh", lambda: [call(matrices(2, 4, 4), uplo, False) for uplo in "LU"])
case("_linalg_svd", lambda: [call(matrices(*shape), False, False) for shape in ((2, 4, 3), (3, 4))])
case("linalg_pinv.atol_rtol_tensor", lambda: [call(matrices(2, 4, 3)), call(matrices(4, 4), hermitian=False)])

# Rarer operators
case("mode", lambda: [call(torch.tensor([[1, 2, 2, 3, 3], [4, 4, 0, 1, 2]])), call(integers(9, low=0, high=1))])
case(
    "as_strided_scatter",
    lambda: [call(floats(3, 4), floats(2, 2), [2, 2], [4, 2], 1), call(integers(9), integers(3), [3], [2])],
)
case(
    "put",
    lambda: [
        call(floats(3, 4), torch.tensor([[0, -1]]), floats(1, 2)),
        call(integers(6), torch.tensor([1, 1, 5]), integers(3), True),
        call(bools(6), torch.tensor([1, 1, 5]), bools(3), True),
    ],
)
case("scatter.reduce", lambda: [call(floats(3, 4), 0, integers(2, 4, low=0, high=3), floats(2, 4), reduce="add")])
case("scatter.value_reduce", lambda: [call(floats(3, 4), 1, integers(3, 2, low=0, high=4), 2.5, reduce="multiply")])
case(
    "index_reduce",
    lambda: [
        call(floats(4, 3), 0, torch.tensor([0, 3, 0]), floats(3, 3), kind, include_self=own)
        for kind in ("prod", "mean", "amax", "amin")
        for own in (False, True)
    ],
)
case("nonzero_static", lambda: [call(integers(3, 4), size=15), call(bools(5), size=2, fill_value=7)])
case("tril_indices triu_indices", lambda: [call(3, 4, 1), call(2, 2, -5)])
case(
    "addbmm",
    lambda: [
        call(floats(3, 5), floats(2, 3, 4), floats(2, 4, 5)),
        call(floats(5), floats(2, 3, 4), floats(2, 4, 5), beta=2, alpha=0.5),
    ],
)
case("_trilinear", lambda: [call(floats(4, 3), floats(2, 3, 5), floats(4, 5), [1, 3], [0], [1, 2], [2, 3])])
case(
    "segment_reduce",
    lambda: [
        *(
            call(floats(6, 2), kind, lengths=torch.tensor([2, 0, 4]), unsafe=True)
            for kind in ("sum", "mean", "max", "min", "prod")
        ),
        call(floats(6), "mean", offsets=torch.tensor([0, 2, 2, 6]), initial=1.5),
    ],
)
case(
    "_upsample_bilinear2d_aa.vec _upsample_bicubic2d_aa.vec",
    lambda: [call(floats(1, 2, 9, 8), [4, 5], False, None)],
)
case(
    "_upsample_bilinear2d_aa _upsample_bicubic2d_aa",
    lambda: [call(floats(1, 2, 9, 8), [4, 5], False, None, None), call(floats(1, 2, 4, 4), [3, 7], False, 0.75, 1.75)],
)
case("view_copy", lambda: [call(floats(3, 4), [2, 6])])
case(
    "hash_tensor",
    lambda: [
        call(floats(3, 4, 2)),
        call(integers(3, 4, dtype=I32), [1], keepdim=True),
        call(floats(2, 3, 4, dtype=BF16), [0, -1]),
        call(bools(5)),
        call(floats(), [-1]),
    ],
)
case("conv_tbc", lambda: [call(floats(5, 2, 3), floats(3, 3, 4), floats(4), 1)])
case("rrelu_with_noise rrelu_with_noise_functional", lambda: [call(floats(3, 4), floats(3, 4), 0.1, 0.3, False)])
case("resize", lambda: [call(floats(3, 4), [2, 5]), call(integers(6), [3, 2])])
_VIEWS = (
    "alias as_strided detach diagonal expand narrow permute select slice split split_with_sizes squeeze t transpose"
)
for _name in list(CASES):
    _, _packet, _overload = _name.split(".")
    if _packet in (*_VIEWS.split(), "unbind", "unfold", "unsqueeze") or _name == "aten.view.dtype":
        CASES[f"aten.{_packet}_copy.{_overload}"] = CASES[_name]
