"""te.ops against PyTorch, where it is installed: its functions are what the operators of networks are called after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from operator_cases import Case, Input, check

from weft.te import ops

torch: Any = pytest.importorskip("torch")
F: Any = torch.nn.functional


def through(function: Any) -> Any:
    """A function of torch as one of arrays."""

    def reference(*arrays: Any) -> Any:
        return function(*(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays)).numpy()

    return reference


def case(label: str, build: Any, function: Any, *inputs: Any) -> Case:
    """Inputs are shapes of float32 or `Input`s."""
    given = [shape if isinstance(shape, Input) else Input(shape) for shape in inputs]
    return Case(label, build, given, through(function))


X, W = (2, 4, 7, 8), (6, 2, 3, 3)


def test_convolutions() -> None:
    cases = [
        case(
            "conv2d",
            lambda x, w: ops.conv2d(x, w, (2, 1), (1, 2), (1, 2), 2),
            lambda x, w: F.conv2d(x, w, None, (2, 1), (1, 2), (1, 2), 2),
            X,
            W,
        ),
        case(
            "conv1d", lambda x, w: ops.conv1d(x, w, 2, 1), lambda x, w: F.conv1d(x, w, None, 2, 1), (1, 3, 9), (4, 3, 3)
        ),
        case("conv3d", ops.conv3d, F.conv3d, (1, 2, 4, 5, 4), (3, 2, 2, 3, 2)),
        case(
            "depthwise",
            lambda x, w: ops.depthwise_conv2d(x, w, 1, 1),
            lambda x, w: F.conv2d(x, w.reshape(8, 1, 3, 3), None, 1, 1, 1, 4),
            X,
            (4, 2, 3, 3),
        ),
        case(
            "transposed",
            lambda x, w: ops.conv2d_transpose(x, w, 3, (1, 0), (2, 0), (1, 2), 2),
            lambda x, w: F.conv_transpose2d(x, w, None, 3, (1, 0), (2, 0), 2, (1, 2)),
            (1, 4, 3, 4),
            (4, 3, 3, 2),
        ),
    ]
    check(cases)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_pools(ceil_mode: bool, count_include_pad: bool) -> None:
    cases: list[Case] = []
    for shape, kernel, strides, padding in (((1, 2, 9), 3, 2, 1), ((1, 2, 6, 7), 3, 2, 1), ((1, 1, 5, 4, 6), 2, 3, 0)):
        rank, rest = len(shape) - 2, (kernel, strides, padding)
        largest: Any = (getattr(ops, f"max_pool{rank}d"), getattr(F, f"max_pool{rank}d"))
        mean: Any = (getattr(ops, f"avg_pool{rank}d"), getattr(F, f"avg_pool{rank}d"))
        cases += [
            case(
                f"max {shape}",
                lambda x, r=rest, f=largest[0]: f(x, *r, 1, ceil_mode),
                lambda x, r=rest, f=largest[1]: f(x, *r, 1, ceil_mode),
                shape,
            ),
            case(
                f"avg {shape}",
                lambda x, r=rest, f=mean[0]: f(x, *r, 1, ceil_mode, count_include_pad),
                lambda x, r=rest, f=mean[1]: f(x, *r, ceil_mode, count_include_pad),
                shape,
            ),
        ]
    check(cases)


def test_adaptive_pools_and_images() -> None:
    def resized(mode: str, **options: Any) -> Any:
        return lambda x: F.interpolate(x, (5, 11), mode=mode, **options)

    def resize(method: str, mode: str) -> Any:
        return lambda x: ops.resize2d(x, (5, 11), "NCHW", method, mode)

    cases = [
        case("mean", lambda x: ops.adaptive_pool(x, (3, 5)), lambda x: F.adaptive_avg_pool2d(x, (3, 5)), X),
        case("max", lambda x: ops.adaptive_pool(x, (3, 5), "max"), lambda x: F.adaptive_max_pool2d(x, (3, 5)), X),
        case("half pixel", resize("linear", "half_pixel"), resized("bilinear", align_corners=False), X),
        case("corners", resize("linear", "align_corners"), resized("bilinear", align_corners=True), X),
        case("nearest", resize("nearest", "asymmetric"), resized("nearest"), X),
        case("nearest exact", resize("nearest", "half_pixel"), resized("nearest-exact"), X),
    ]
    check(cases)


def test_activations() -> None:
    wide = Input((6, 9), low=-12, high=12)
    cases = [
        case(name, getattr(ops, name), getattr(F, name), wide)
        for name in ("relu", "leaky_relu", "elu", "gelu", "silu", "hardsigmoid", "hardswish", "mish", "softplus")
    ]
    cases += [
        case("gelu tanh", lambda x: ops.gelu(x, "tanh"), lambda x: F.gelu(x, approximate="tanh"), wide),
        case("sigmoid", ops.sigmoid, torch.sigmoid, wide),
        case("erf", ops.erf, torch.erf, wide),
    ]
    check(cases)


def test_norms_and_softmax() -> None:
    positive = Input((4,), low=0.5)
    cases = [
        case("softmax", lambda x: ops.softmax(x, 1), lambda x: torch.softmax(x, 1), X),
        case("log_softmax", lambda x: ops.log_softmax(x, 1), lambda x: torch.log_softmax(x, 1), X),
        case("layer", ops.layer_norm, lambda x, g, b: F.layer_norm(x, (8,), g, b), X, (8,), (8,)),
        case("rms", ops.rms_norm, lambda x, g: F.rms_norm(x, (8,), g, 1e-5), X, (8,)),
        case("instance", ops.instance_norm, lambda x, g, b: F.instance_norm(x, weight=g, bias=b), X, (4,), (4,)),
        case(
            "group", lambda x, g, b: ops.group_norm(x, 2, g, b), lambda x, g, b: F.group_norm(x, 2, g, b), X, (4,), (4,)
        ),
        case(
            "batch",
            lambda x, m, v, g, b: ops.batch_norm(x, g, b, m, v),
            lambda x, m, v, g, b: F.batch_norm(x, m, v, g, b),
            X,
            (4,),
            positive,
            (4,),
            (4,),
        ),
    ]
    check(cases)


def test_linear_attention_and_indices() -> None:
    q, k, v = (2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 7)
    places = Input((3, 2), "int64", 0, 4)
    cases = [
        case("linear", ops.dense, F.linear, (2, 3, 4), (5, 4), (5,)),
        case("attention", ops.attention, F.scaled_dot_product_attention, q, k, v),
        case(
            "causal",
            lambda q, k, v: ops.attention(q, k, v, is_causal=True),
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            q,
            k,
            v,
        ),
        case("masked", ops.attention, F.scaled_dot_product_attention, q, k, v, (5, 6)),
        case(
            "bools",
            ops.attention,
            F.scaled_dot_product_attention,
            q,
            k,
            v,
            Input((5, 6), "bool", values=np.tri(5, 6, 1)),
        ),
        case("one hot", lambda i: ops.one_hot(i, 5), lambda i: F.one_hot(i, 5), places),
        case("gather", lambda x, i: ops.gather(x, 1, i), lambda x, i: torch.gather(x, 1, i), (3, 5), places),
        case("flatten", lambda x: ops.flatten(x, 1, 2), lambda x: torch.flatten(x, 1, 2), X),
    ]
    check(cases)
