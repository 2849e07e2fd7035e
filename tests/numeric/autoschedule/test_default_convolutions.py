"""Convolutions under their default schedules, against sums over windows with NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft import graph as G
from weft import te
from weft.autoschedule.blocked_convolution import blocked_convolution
from weft.autoschedule.convolution import direct_convolution
from weft.autoschedule.default_schedule import apply_default_schedule, default_schedule
from weft.autoschedule.filter_convolution import filter_convolution
from weft.autoschedule.inlining import inline_producer
from weft.autoschedule.nests import single_nest
from weft.autoschedule.packed_convolution import packed_convolution
from weft.autoschedule.rules import Rule
from weft.autoschedule.winograd_convolution import winograd_convolution
from weft.dialects.argument_attributes import set_argument_attribute
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import CONSTANT
from weft.support.target import Target
from weft.texpr.ops.winograd import transformed_kernel
from weft.texpr.references import reference_of

CPUS = (Target.parse("llvm -num-threads=1"), Target.parse("llvm -num-threads=3"))
RULES: tuple[Rule, ...] = (filter_convolution, packed_convolution, direct_convolution)


def expected(
    x: np.ndarray[Any, Any], w: np.ndarray[Any, Any], stride: int, pad: int, dilation: int, groups: int
) -> Any:
    """A convolution in NCHW (any number of spatial axes): one shifted product for each place of the kernel."""
    spatial = x.ndim - 2
    x = np.pad(x.astype("float64"), [(0, 0), (0, 0)] + [(pad, pad)] * spatial)
    sizes = [(x.shape[2 + a] - dilation * (w.shape[2 + a] - 1) - 1) // stride + 1 for a in range(spatial)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    width, each = w.shape[1], w.shape[0] // groups
    for at in product(*(range(e) for e in w.shape[2:])):
        box = tuple(
            slice(k * dilation, k * dilation + (n - 1) * stride + 1, stride) for k, n in zip(at, sizes, strict=True)
        )
        for g in range(groups):
            part = x[(slice(None), slice(g * width, (g + 1) * width), *box)]
            taps = w[(slice(g * each, (g + 1) * each), slice(None), *at)].astype("float64")
            out[:, g * each : (g + 1) * each] += np.einsum("nc...,qc->nq...", part, taps)
    return out


CASES = {
    # data, kernel, stride, pad, dilation, groups
    "one pixel": ((1, 3, 1, 1), (4, 3, 3, 3), 1, 1, 1, 1),
    "7 pixels": ((1, 20, 7, 7), (17, 20, 3, 3), 1, 1, 1, 1),
    "13 pixels": ((2, 5, 13, 13), (33, 5, 3, 3), 1, 1, 1, 1),
    "whole tiles": ((1, 32, 16, 16), (16, 32, 3, 3), 1, 1, 1, 1),
    "few channels": ((1, 3, 20, 36), (6, 3, 3, 3), 1, 1, 1, 1),
    "no border": ((1, 24, 18, 19), (32, 24, 5, 3), 1, 0, 1, 1),
    "stride": ((1, 16, 15, 15), (32, 16, 3, 3), 2, 1, 1, 1),
    "first of a network": ((1, 3, 33, 33), (16, 3, 7, 7), 2, 3, 1, 1),
    "dilation": ((1, 19, 14, 14), (24, 19, 3, 3), 1, 2, 2, 1),
    "groups": ((1, 12, 11, 23), (24, 4, 3, 3), 1, 1, 1, 3),
    "large groups": ((1, 32, 9, 9), (64, 16, 3, 3), 1, 1, 1, 2),
    "windows of one element": ((2, 16, 7, 9), (20, 16, 1, 1), 1, 0, 1, 1),
    "windows of one element, stride": ((1, 16, 7, 9), (20, 16, 1, 1), 2, 0, 1, 1),
    "depthwise": ((1, 6, 30, 33), (6, 1, 3, 3), 1, 1, 1, 6),
    "depthwise, rows of several tiles": ((2, 2, 9, 150), (2, 1, 5, 5), 1, 2, 1, 2),
    "depthwise, dilation": ((1, 3, 20, 48), (3, 1, 3, 3), 1, 2, 2, 3),
    "depthwise, rows end with half a vector": ((1, 3, 14, 56), (3, 1, 3, 3), 1, 1, 1, 3),
    "depthwise, large windows": ((1, 2, 14, 28), (2, 1, 7, 7), 1, 3, 1, 2),
    "depthwise, windows that are not unrolled": ((1, 2, 15, 20), (2, 1, 11, 11), 1, 5, 1, 2),
    "depthwise, few rows": ((1, 3, 2, 3), (3, 1, 7, 7), 1, 3, 1, 3),
    "depthwise, stride": ((2, 5, 17, 17), (5, 1, 3, 3), 2, 1, 1, 5),
    "one axis": ((1, 4, 50), (8, 4, 5), 1, 2, 1, 1),
    "one axis, many channels": ((1, 40, 21), (32, 40, 3), 1, 1, 1, 1),
    "three axes": ((1, 3, 6, 7, 9), (5, 3, 3, 3, 3), 1, 1, 1, 1),
    "three axes, many channels": ((1, 16, 4, 5, 6), (16, 16, 3, 3, 3), 1, 1, 1, 1),
}


@pytest.mark.parametrize("target", first_tier(CPUS, CPUS[1]), ids=["1 thread", "3 threads"])
@pytest.mark.parametrize("name", CASES)
def test_channels_first(name: str, target: Target) -> None:
    data, kernel, stride, pad, dilation, groups = CASES[name]
    convolution = {3: te.ops.conv1d, 4: te.ops.conv2d, 5: te.ops.conv3d}[len(data)]
    X, W = te.placeholder(data, "float32", name="X"), te.placeholder(kernel, "float32", name="W")
    Y = convolution(X, W, stride, pad, dilation, groups)
    # One pixel is a reduction of consecutive elements.
    rules = (*RULES, single_nest)
    check([X, W, Y], target, lambda x, w: expected(x, w, stride, pad, dilation, groups), rules)


SYMBOLIC = ["13 pixels", "whole tiles", "groups", "depthwise", "windows of one element", "first of a network"]


@pytest.mark.parametrize("cpu", ["cascadelake", "haswell"])
@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_batches_get_the_steps_of_known_ones(name: str, cpu: str) -> None:
    data, kernel, stride, pad, dilation, groups = CASES[name]
    target = Target.parse(f"llvm -mcpu={cpu} -num-threads=1")

    def program(batch: Any) -> ModuleOp:
        X = te.placeholder((batch, *data[1:]), "float32", name="X")
        W = te.placeholder(kernel, "float32", name="W")
        return te.create_func([X, W, te.ops.conv2d(X, W, stride, pad, dilation, groups)], name="convolution")

    known, unknown = (default_schedule(program(batch), target, RULES) for batch in (1, te.var("n")))
    steps = [[step.name for step in trace.body.block.ops] for (trace,) in (known, unknown)]
    assert steps[0] == steps[1]
    module = program(te.var("n"))
    apply_default_schedule(module, target, RULES)
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in ((2, *data[1:]), kernel))
    meaning = expected(x, w, stride, pad, dilation, groups)
    out = np.full(meaning.shape, np.nan, "float32")
    weft.build(module, target=CPUS[0], default_schedule=False)["convolution"](x, w, out)
    np.testing.assert_allclose(out, meaning, rtol=1e-4, atol=1e-4)


# Rows of 25 leave lanes idle, whatever their number is: no data are read in place.
FILTERS_IN_LANES = {
    "border": ((1, 32, 27, 25), (16, 32, 3, 3), 1, 1, 1),
    "no border": ((1, 24, 29, 27), (32, 24, 5, 3), 1, 0, 1),
    "batches": ((3, 20, 25, 25), (16, 20, 3, 3), 1, 1, 1),
    "stride": ((2, 16, 31, 31), (32, 16, 3, 3), 2, 1, 1),
    "first of a network": ((1, 3, 45, 45), (16, 3, 7, 7), 2, 3, 1),
    "dilation": ((1, 19, 34, 25), (16, 19, 3, 3), 1, 2, 2),
    "wide windows": ((1, 17, 28, 35), (16, 17, 3, 11), 1, 0, 1),
    "three axes": ((1, 16, 10, 11, 13), (16, 16, 3, 3, 3), 1, 1, 1),
    "groups": ((2, 48, 25, 25), (48, 16, 3, 3), 1, 1, 1, 3),
    "groups and strides": ((1, 40, 31, 31), (32, 20, 3, 3), 2, 1, 1, 2),
}


@pytest.mark.parametrize("cpu", first_tier(["skylake-avx512", "haswell", "x86-64"], "haswell"))
@pytest.mark.parametrize("name", FILTERS_IN_LANES)
def test_filters_in_lanes(name: str, cpu: str) -> None:
    data, kernel, stride, pad, dilation, *rest = FILTERS_IN_LANES[name]
    (groups,) = rest or (1,)
    convolution = {4: te.ops.conv2d, 5: te.ops.conv3d}[len(data)]
    X, W = te.placeholder(data, "float32", name="X"), te.placeholder(kernel, "float32", name="W")
    Y = convolution(X, W, stride, pad, dilation, groups)
    # Scheduled for the processor that is named, run on the one there is.
    check(
        [X, W, Y],
        Target.parse(f"llvm -mcpu={cpu} -num-threads=3"),
        lambda x, w: expected(x, w, stride, pad, dilation, groups),
        (filter_convolution,),
        CPUS[1],
    )


@pytest.mark.parametrize("cpu", first_tier(["skylake-avx512", "haswell", "x86-64"], "haswell"))
@pytest.mark.parametrize(("filters", "stride"), [(21, 2), (40, 2), (63, 1)])
def test_constant_weights_are_padded_to_whole_vectors_of_filters(filters: int, stride: int, cpu: str) -> None:
    X, W = te.placeholder((2, 40, 31, 37), "float32", name="X"), te.placeholder((filters, 40, 3, 3), name="W")
    Y = te.ops.relu(te.ops.conv2d(X, W, stride, 1, name="conv"))
    module, target = te.create_func([X, W, Y], name="f"), Target.parse(f"llvm -mcpu={cpu} -num-threads=3")
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    whole = filters % (target.vector_bytes // 4) == 0
    assert whole or not apply_default_schedule(module.clone(), target, (filter_convolution,))
    set_argument_attribute(function, [1], CONSTANT)
    (trace,) = default_schedule(module, target, (filter_convolution,))
    assert ("sched.pad_einsum" in str(trace)) is not whole
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype("float32") for shape in ((2, 40, 31, 37), (filters, 40, 3, 3)))
    builder, image = G.BlockBuilder(), G.var("x", x.shape)
    with builder.function("main", [image]):
        builder.emit_func_output(builder.emit(G.relu(G.conv2d(image, G.const(w), strides=stride, padding=1))))
    found = weft.build(builder.get(), target=f"llvm -mcpu={cpu} -num-threads=3")["main"](x)
    np.testing.assert_allclose(found, np.maximum(expected(x, w, stride, 1, 1, 1), 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kernel_first", [False, True])
@pytest.mark.parametrize("filters_last", [False, True])
def test_kernels_in_any_order(kernel_first: bool, filters_last: bool) -> None:
    shape = (3, 3, 24, 16) if filters_last else (16, 24, 3, 3)
    X, W = te.placeholder((1, 24, 29, 27), "float32", name="X"), te.placeholder(shape, "float32", name="W")
    c, r, s = te.reduce_axis((0, 24), name="c"), te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="s")

    def product_at(n: Any, f: Any, i: Any, j: Any) -> Any:
        factors = X[n, c, i + r, j + s], W[r, s, c, f] if filters_last else W[f, c, r, s]
        return factors[1] * factors[0] if kernel_first else factors[0] * factors[1]

    Y = te.compute((1, 16, 27, 25), lambda *at: te.sum(product_at(*at), axis=[c, r, s]), name="Y")

    def meaning(x: Any, w: Any) -> Any:
        return expected(x, w.transpose(3, 2, 0, 1) if filters_last else w, 1, 0, 1, 1)

    check([X, W, Y], CPUS[0], meaning, (filter_convolution,))


def needs_registers(filters: int, target: Target) -> None:
    """The rules leave blocks of more filters than a third of the registers holds to others."""
    if filters // (target.vector_bytes // 4) > target.vector_registers // 3:
        pytest.skip(f"{filters} filters are too many for {target.vector_registers} registers of {target.cpu}")


# Data, blocks and channels of filters (none where depthwise), size of windows, stride, pad, dilation.
BLOCKED = {
    "tiles divide rows": ((1, 2, 9, 12, 16), (3, 16), 3, 1, 1, 1),
    "tiles over rows": ((2, 2, 7, 7, 8), (2, 16), 3, 1, 1, 1),
    "tiles over all of an image": ((1, 3, 2, 2, 8), (1, 16), 3, 1, 1, 1),
    "strips of rows": ((1, 4, 60, 36, 16), (2, 16), 3, 1, 1, 1),
    "strips of rows, stride": ((2, 4, 61, 60, 16), (2, 16), 3, 2, 1, 1),
    "no strips for many filters": ((1, 8, 30, 40, 8), (16, 16), 3, 1, 1, 1),
    "rests of rows": ((1, 2, 5, 37, 4), (2, 24), 3, 1, 1, 1),
    "dilation": ((1, 2, 9, 14, 8), (2, 16), 3, 1, 2, 2),
    "stride over rows": ((1, 2, 13, 13, 8), (2, 8), 3, 2, 1, 1),
    "single channels, stride": ((1, 3, 23, 24, 1), (2, 16), 7, 2, 3, 1),
    "windows of one element": ((2, 3, 7, 9, 8), (2, 40), 1, 1, 0, 1),
    "windows of one element, stride": ((2, 3, 9, 16, 8), (2, 16), 1, 2, 0, 1),
    "strips of tiles": ((1, 96, 14, 14, 16), (6, 16), 1, 1, 0, 1),
    "large windows of one element": ((1, 32, 32, 40, 8), (2, 16), 1, 1, 0, 1),
    "odd blocks": ((1, 2, 7, 9, 3), (2, 6), 3, 1, 1, 1),
    "blocks of whole half vectors": ((1, 2, 7, 9, 4), (2, 12), 3, 1, 1, 1),
    "depthwise": ((2, 3, 8, 14, 16), None, 3, 1, 1, 1),
    "depthwise, odd blocks": ((1, 2, 8, 9, 12), None, 3, 1, 1, 1),
    "depthwise, stride": ((1, 2, 9, 11, 8), None, 5, 2, 2, 1),
    "depthwise, strips": ((1, 2, 120, 64, 24), None, 3, 2, 1, 1),
    "depthwise, dilation": ((1, 2, 9, 11, 8), None, 3, 1, 2, 2),
}


@pytest.mark.parametrize("batch", first_tier(["n", None], None), ids=str)
@pytest.mark.parametrize("target", first_tier(CPUS, CPUS[1]), ids=["1 thread", "3 threads"])
@pytest.mark.parametrize(
    "name",
    first_tier(
        BLOCKED,
        "strips of rows, stride",
        "tiles over rows",
        "windows of one element",
        "strips of tiles",
        "odd blocks",
        "depthwise, stride",
    ),
)
def test_blocks_of_channels(name: str, target: Target, batch: str | None) -> None:
    shape, filters, size, *moved = BLOCKED[name]
    needs_registers(filters[1] if filters else 0, target)
    depthwise = (shape[1], size, size, shape[4])
    kernel = (filters[0], *depthwise, filters[1]) if filters else (shape[1], 1, *depthwise[1:])
    symbolic = shape if batch is None else (te.var(batch), *shape[1:])
    X, W = te.placeholder(symbolic, "float32", name="X"), te.placeholder(kernel, "float32", name="W")
    operator = "conv2d" if filters else "depthwise_conv2d"
    Y = getattr(te.ops, operator)(X, W, *moved, data_layout="NCHWc")
    outputs = tuple(shape[0] if at == 0 else int(str(e)) for at, e in enumerate(Y.shape))
    Z = te.placeholder((Y.shape[1], 1, 1, Y.shape[4]), "float32", name="B")
    module = te.create_func([X, W, Z, te.ops.relu(te.ops.add(Y, Z))], name="f")
    assert len(apply_default_schedule(module, target, (blocked_convolution,))) == 1
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(shape).astype("float32"), rng.standard_normal(kernel).astype("float32")
    bias = rng.standard_normal((outputs[1], 1, 1, outputs[4])).astype("float32")
    out = np.full(outputs, np.nan, "float32")
    weft.build(module, target=target, default_schedule=False)["f"](x, w, bias, out)
    reference = reference_of(operator)(x.astype("f8"), w.astype("f8"), *moved, data_layout="NCHWc")
    np.testing.assert_allclose(out, np.maximum(reference + bias, 0), rtol=1e-4, atol=1e-4)


FILTERED: dict[str, tuple[Any, ...]] = {
    "tiles of 4": ((1, 2, 14, 14, 16), (2, 32), 4, 1),
    "tiles of 2": ((1, 2, 14, 14, 16), (2, 32), 2, 1),
    "odd sizes, strips": ((2, 1, 55, 31, 16), (1, 32), 4, 1),
    "other paddings": ((3, 2, 7, 9, 8), (3, 16), 4, ((2, 0), (0, 1))),
    "no border": ((1, 3, 10, 10, 12), (2, 24), 4, 0),
    "kernels beyond the caches": ((2, 32, 7, 7, 16), (16, 32), 4, 1),
    "less than a tile": ((2, 2, 1, 3, 16), (1, 16), 4, 1),
}


@pytest.mark.parametrize("batch", first_tier(["n", None], None), ids=str)
@pytest.mark.parametrize("target", first_tier(CPUS, CPUS[1]), ids=["1 thread", "3 threads"])
@pytest.mark.parametrize("name", first_tier(FILTERED, "odd sizes, strips", "other paddings", "no border"))
def test_minimal_filtering(name: str, target: Target, batch: str | None) -> None:
    shape, (blocks, filters), tile, padding = FILTERED[name]
    needs_registers(filters, target)
    rng = np.random.default_rng(0)
    w = rng.standard_normal((blocks, filters, shape[1], shape[4], 3, 3)).astype("float32")
    kernel = np.ascontiguousarray(transformed_kernel(w, tile).transpose(0, 4, 5, 2, 3, 1))
    symbolic = shape if batch is None else (te.var(batch), *shape[1:])
    X, W = te.placeholder(symbolic, "float32", name="X"), te.placeholder(kernel.shape, "float32", name="W")
    Y = te.ops.conv2d_winograd(X, W, padding)
    outputs = tuple(shape[0] if at == 0 else int(str(e)) for at, e in enumerate(Y.shape))
    Z, R = te.placeholder((blocks, 1, 1, filters), "float32", name="B"), te.placeholder(Y.shape, "float32", name="R")
    module = te.create_func([X, W, Z, R, te.ops.relu(te.ops.add(te.ops.add(Y, Z), R))], name="f")
    (trace,) = apply_default_schedule(module, target, (inline_producer, winograd_convolution))
    assert '"conv2d_winograd_products"' in str(trace)
    # The epilogue is part of the last transform.
    labels = [op.label for op in module.walk() if isinstance(op, BlockOp)]
    assert labels[-1] == "relu"
    assert not {"conv2d_winograd", "add"} & set(labels)
    x = rng.standard_normal(shape).astype("float32")
    bias, other = (rng.standard_normal(s).astype("float32") for s in ((blocks, 1, 1, filters), outputs))
    out = np.full(outputs, np.nan, "float32")
    weft.build(module, target=target, default_schedule=False)["f"](x, kernel, bias, other, out)
    direct = w.transpose(0, 2, 4, 5, 3, 1).astype("f8")
    sums = reference_of("conv2d")(x.astype("f8"), direct, padding=padding, data_layout="NCHWc")
    expected = np.maximum(sums + bias + other, 0)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5 * abs(expected).max())


def test_minimal_filtering_does_not_apply() -> None:
    """To products whose factors are not transformed, and to results that nothing transforms."""
    X, W = te.placeholder((1, 6, 6, 2, 2, 2, 8), name="X"), te.placeholder((2, 6, 6, 2, 8, 16), name="W")
    rb, rc = te.reduce_axis((0, 2), "rb"), te.reduce_axis((0, 8), "rc")

    def products(n: Any, b: Any, i: Any, j: Any, y: Any, x: Any, f: Any) -> Any:
        return te.sum(X(n, i, j, rb, y, x, rc) * W(b, i, j, rb, rc, f), axis=[rb, rc])

    Y = te.compute((1, 2, 6, 6, 2, 2, 16), products, name="Y")
    A, B = te.placeholder((8, 16), name="A"), te.placeholder((16, 32), name="B")
    for tensors in ([X, W, Y], [A, B, te.ops.matmul(A, B)]):
        module = te.create_func(tensors, name="f")
        assert apply_default_schedule(module, CPUS[0], (winograd_convolution,)) == []


INTEGERS: dict[str, tuple[Any, ...]] = {
    "strips of rows, stride": ((1, 2, 60, 58, 8), (2, 16), 3, 2, 1),
    "tiles over rows": ((2, 3, 7, 7, 16), (3, 24), 3, 1, 1),
    "windows of one element": ((1, 4, 14, 14, 16), (6, 16), 1, 1, 0),
    "depthwise": ((1, 2, 9, 11, 16), None, 3, 1, 1),
}


@pytest.mark.parametrize("target", first_tier(CPUS, CPUS[1]), ids=["1 thread", "3 threads"])
@pytest.mark.parametrize("name", first_tier(INTEGERS, "windows of one element"))
def test_blocks_of_channels_of_integers(name: str, target: Target) -> None:
    """Pairs of channels are multiplied by dot products, exactly."""
    shape, filters, size, *moved = INTEGERS[name]
    needs_registers(filters[1] if filters else 0, target)
    pairs = (shape[4] // 2, filters[1], 2) if filters else (shape[4],)
    kernel = (filters[0], shape[1], size, size, *pairs) if filters else (shape[1], 1, size, size, *pairs)
    X, W = te.placeholder(shape, "int16", name="X"), te.placeholder(kernel, "int16", name="W")
    operator, layouts = "depthwise_conv2d", {"data_layout": "NCHWc"}
    if filters:
        operator, layouts = "conv2d", {**layouts, "kernel_layout": "OIHWioi"}
    Y = getattr(te.ops, operator)(X, W, *moved, **layouts, out_dtype="int32")
    module = te.create_func([X, W, te.ops.add(Y, Y)], name="f")
    assert len(apply_default_schedule(module, target, (blocked_convolution,))) == 1
    assert ("low.tile_dot" in str(module)) is bool(filters)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-300, 300, s).astype("int16") for s in (shape, kernel))
    expected = 2 * reference_of(operator)(x, w, *moved, **layouts, out_dtype="int32")
    out = np.full(expected.shape, -1, "int32")
    weft.build(module, target=target, default_schedule=False)["f"](x, w, out)
    np.testing.assert_array_equal(out, expected)


def check(
    tensors: list[te.Tensor],
    target: Target,
    meaning: Any,
    rules: tuple[Rule, ...] = RULES,
    machine: Target | None = None,
) -> None:
    """`machine` is what it runs on, where that is not what it is scheduled for."""
    module = te.create_func(tensors, name="convolution")
    traces = apply_default_schedule(module, target, rules)
    assert len(traces) == 1
    rng = np.random.default_rng(0)
    shapes = [tuple(int(str(e)) for e in tensor.shape) for tensor in tensors]
    inputs = [rng.standard_normal(shape).astype("float32") for shape in shapes[:-1]]
    out = np.full(shapes[-1], np.nan, "float32")
    weft.build(module, target=machine or target, default_schedule=False)["convolution"](*inputs, out)
    np.testing.assert_allclose(out, meaning(*inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 6])
@pytest.mark.parametrize("stride", [1, 2])
def test_channels_last(groups: int, stride: int) -> None:
    X = te.placeholder((2, 13, 11, 6), "float32", name="X")
    W = te.placeholder((3, 3, 6 // groups, 36), "float32", name="W")
    Y = te.ops.conv2d(X, W, stride, 1, groups=groups, data_layout="NHWC")

    def meaning(x: Any, w: Any) -> Any:
        return expected(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), stride, 1, 1, groups).transpose(0, 2, 3, 1)

    check([X, W, Y], CPUS[0], meaning)


@pytest.mark.parametrize(("channels", "filters", "rows"), [(3, 24, 15), (24, 24, 15), (24, 16, 40)])
def test_what_follows_runs_on_the_tile(channels: int, filters: int, rows: int) -> None:
    X = te.placeholder((1, channels, rows, 41), "float32", name="X")
    W = te.placeholder((filters, channels, 3, 3), "float32", name="W")
    B = te.placeholder((filters,), "float32", name="B")
    Y = te.ops.conv2d(X, W, padding=1)
    Z = te.compute((1, filters, rows, 41), lambda n, c, h, w: te.max(Y[n, c, h, w] + B[c], 0.0), name="Z")
    module = te.create_func([X, W, B, Z], name="convolution")
    apply_default_schedule(module, CPUS[0], RULES)
    assert str(module).count("arith.maximumf") == 1
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal([int(str(e)) for e in t.shape]).astype("float32") for t in (X, W, B))
    out = np.empty((1, filters, rows, 41), "float32")
    library = weft.build(module, target=CPUS[0], default_schedule=False)
    assert ".Y" not in library.get_source("ll")
    library["convolution"](x, w, b, out)
    wanted = np.maximum(expected(x, w, 1, 1, 1, 1) + b[None, :, None, None], 0)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dtype", "sums"), [("int8", "int32"), ("float64", "float64"), ("float16", "float32")])
@pytest.mark.parametrize("channels", [2, 40])
def test_dtypes(dtype: str, sums: str, channels: int) -> None:
    X, W = te.placeholder((1, channels, 9, 20), dtype, name="X"), te.placeholder((32, channels, 3, 3), dtype, name="W")
    module = te.create_func([X, W, te.ops.conv2d(X, W, padding=1, out_dtype=sums)], name="convolution")
    assert len(apply_default_schedule(module, CPUS[0], RULES)) == 1
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-9, 9, [int(str(e)) for e in t.shape]).astype(dtype) for t in (X, W))
    out = np.empty((1, 32, 9, 20), sums)
    weft.build(module, target=CPUS[0], default_schedule=False)["convolution"](x, w, out)
    np.testing.assert_array_equal(out, expected(x, w, 1, 1, 1, 1).astype(sums))


def test_which_rule_applies() -> None:
    cpu = Target.parse("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -num-threads=1")

    def rule_of(data: tuple[int, ...], kernel: tuple[int, ...], **options: Any) -> str | None:
        X, W = te.placeholder(data, "float32", name="X"), te.placeholder(kernel, "float32", name="W")
        module = te.create_func([X, W, te.ops.conv2d(X, W, **options)], name="f")
        for rule in RULES:
            if apply_default_schedule(module.clone(), cpu, (rule,)):
                return getattr(rule, "__name__", "")
        return None

    wide = 4 * cpu.vector_bytes // 4
    assert rule_of((1, 3, wide, wide), (64, 3, 3, 3), padding=1) == "direct_convolution"
    assert rule_of((1, 64, 56, 56), (64, 64, 3, 3), padding=1) == "filter_convolution"
    assert rule_of((1, 64, 14, 14), (64, 64, 3, 3), padding=1) == "packed_convolution"
    assert rule_of((1, 64, 56, 56), (65, 64, 3, 3), padding=1) == "packed_convolution"
    assert rule_of((1, 128, 56, 56), (128, 64, 3, 3), padding=1, groups=2) == "filter_convolution"
    assert rule_of((1, 128, 56, 56), (130, 64, 3, 3), padding=1, groups=2) == "packed_convolution"
    assert rule_of((1, 3, 64, 64), (64, 3, 3, 3), strides=2) == "filter_convolution"
    assert rule_of((1, 32, 28, 28), (32, 1, 3, 3), groups=32) == "direct_convolution"
    assert rule_of((1, 28, 28, 64), (3, 3, 64, 64), data_layout="NHWC") == "direct_convolution"
    assert rule_of((1, 64, 28, 28), (64, 64, 1, 1)) == "packed_convolution"


def test_borders_of_single_channels_are_not_copied() -> None:
    """Where a result sums one window of one channel, along rows; what computes the data is not repeated."""

    def trace(stride: int = 1, groups: int = 4, before: bool = False) -> str:
        X = te.placeholder((1, 4, 12, 40), "float32", name="X")
        W = te.placeholder((8, 4 // groups, 3, 3) if groups < 4 else (4, 1, 3, 3), "float32", name="W")
        data = te.compute(X.shape, lambda *at: te.exp(X[at]), name="E") if before else X
        C = te.ops.conv2d(data, W, padding=1, strides=stride, groups=groups)
        return str(apply_default_schedule(te.create_func([X, W, C]), CPUS[0])[0])

    assert "compute_inline" in trace()
    assert "compute_inline" not in trace(stride=2)
    assert "compute_inline" not in trace(groups=1)
    assert trace(before=True).count("compute_inline") == 1


KERNELS = {
    "one channel": ((8, 1, 3, 3), {"groups": 4}),
    "points": ((8, 4, 1, 1), {}),
    "strides": ((32, 4, 3, 3), {"strides": 2}),
}


@pytest.mark.parametrize("space", first_tier([(7, "w"), ("h", 20), ("h", "w")], ("h", "w")), ids=str)
@pytest.mark.parametrize("name", first_tier([*KERNELS, "dilation", "plain"], "plain", "one channel"))
def test_rows_and_columns_of_any_number(name: str, space: tuple[int | str, int | str]) -> None:
    kernel, given = KERNELS.get(name, ((32, 4, 3, 3), {"dilation": 2 if name == "dilation" else 1}))
    rows, columns = ((te.size_var(e) if isinstance(e, str) else e) for e in space)
    X = te.placeholder((1, 4, rows, columns), "float32", name="X")
    W = te.placeholder(kernel, "float32", name="W")
    module = te.create_func([X, W, te.ops.conv2d(X, W, padding=kernel[2] // 2, **given)], name="f")
    assert apply_default_schedule(module, CPUS[0], RULES)
    compiled = weft.build(module, target=CPUS[0], default_schedule=False)["f"]
    rng, (strides, dilation, groups) = (
        np.random.default_rng(0),
        (given.get(k, 1) for k in ("strides", "dilation", "groups")),
    )
    for extent in (3, 4, 5, 8, 15, 16, 17, 33, 49):
        shape = tuple(extent if isinstance(e, str) else e for e in space)
        x, w = (rng.standard_normal(s).astype("float32") for s in ((1, 4, *shape), kernel))
        pad = kernel[2] // 2
        if any(e + 2 * pad < (kernel[2] - 1) * dilation + 1 for e in shape):
            continue
        meaning = expected(x, w, strides, pad, dilation, groups)
        out = np.full(meaning.shape, np.nan, "float32")
        compiled(x, w, out)
        np.testing.assert_allclose(out, meaning, rtol=1e-4, atol=1e-4, err_msg=f"{shape}")


def test_windows_that_are_no_product_are_left_to_others() -> None:
    X = te.placeholder((1, 3, 32, 32), "float32", name="X")
    module = te.create_func([X, te.ops.max_pool2d(X, 2)], name="f")
    assert apply_default_schedule(module, CPUS[0], RULES) == []
