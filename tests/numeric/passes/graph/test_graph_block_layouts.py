"""Graphs whose images are in blocks of channels compute what they compute without: interpreted, and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graph_models import MODELS
from tiers import first_tier
from xdsl.context import Context

import weft
from weft import graph as G
from weft.interp.compare import outputs_equal
from weft.interp.interpreter import Interpreter
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_block_layouts import block_layouts, width_of
from weft.passes.graph.graph_fold_constants import fold_constants
from weft.passes.graph.graph_rewrite import rewrite_graph
from weft.passes.lower_graph import LowerGraphPass
from weft.support.target import Target
from weft.texpr.references import reference_of

random = np.random.default_rng(5)
AVX2, AVX512 = Target.parse("llvm -mcpu=haswell"), Target.parse("llvm -mcpu=skylake-avx512")


def const(*shape: int, dtype: str = "float32") -> Any:
    return G.const(random.standard_normal(shape).astype(dtype))


def conv(x: Any, filters: int, channels: int, size: int = 3, **options: Any) -> Any:
    return G.conv2d(x, const(filters, channels, size, size), **{"padding": size // 2, **options})


def module_of(function: Callable[..., Any], *shapes: tuple[Any, ...], dtype: str = "float32") -> Any:
    bb = G.BlockBuilder()
    params = [G.var(f"x{at}", shape, dtype) for at, shape in enumerate(shapes)]
    with bb.function("main", params):
        found = function(*params)
        bb.emit_func_output(found)
    return bb.get()


def in_blocks(
    module: Any, target: Target = AVX2, *, everywhere: bool = True, winograd: bool = False, n: int = 2
) -> list[str]:
    """The names of the operators in blocks, whose results are those before."""
    (main,) = graph_functions(module)
    rewrite_graph(main)
    before = Interpreter(module.clone())
    count = block_layouts(main, target, everywhere=everywhere, winograd=winograd)
    module.verify()
    after = Interpreter(module)
    shapes = [[e if e >= 0 else n for e in argument.type.get_shape()] for argument in main.args]
    arrays = [
        random.standard_normal(s).astype(str(a.type.element_type).replace("f", "float"))
        for s, a in zip(shapes, main.args, strict=True)
    ]
    results = [found if isinstance(found := at.call("main", *arrays), tuple) else (found,) for at in (before, after)]
    assert all(outputs_equal(first, second) for first, second in zip(*results, strict=True))
    found = [op.name.removeprefix("graph.") for op in main.walk() if op.results and _is_blocked(op)]
    assert bool(found) == bool(count)
    return found


def _is_blocked(op: Any) -> bool:
    is_moved = op.name in ("graph.pack", "graph.reshape", "graph.constant", "graph.dataflow")
    return op.name.startswith("graph.") and not is_moved and op.results[0].type.get_num_dims() == 5


IMAGE = ("n", 16, 7, 6)
CASES: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...], list[str]]] = {
    "bias and activation": (
        lambda x: G.relu(conv(x, 16, 3) + const(16, 1, 1)),
        ("n", 3, 7, 6),
        ["conv2d", "add", "relu"],
    ),
    "residual": (
        lambda x: conv(G.relu(conv(x, 16, 16) + x), 24, 16),
        IMAGE,
        ["conv2d", "add", "relu", "conv2d"],
    ),
    "strides, dilation, padding": (
        lambda x: conv(conv(x, 8, 16, padding=(0, 1, 2, 3), strides=(2, 1)), 16, 8, dilation=2, padding="SAME"),
        IMAGE,
        ["conv2d"] * 2,
    ),
    "depthwise": (
        lambda x: G.depthwise_conv2d(conv(x, 40, 16, 1), const(40, 1, 3, 5), (2, 1), padding=((1, 0), (2, 2))),
        IMAGE,
        ["conv2d", "depthwise_conv2d"],
    ),
    "depthwise as groups": (
        lambda x: conv(x, 16, 1, groups=16, strides=2),
        IMAGE,
        ["depthwise_conv2d"],
    ),
    "pools": (
        lambda x: G.avg_pool2d(
            G.max_pool2d(conv(x, 16, 16), kernel=3, strides=2, padding=1),
            kernel=(2, 3),
            padding=(1, 1),
            count_include_pad=False,
        ),
        IMAGE,
        ["conv2d", "max_pool2d", "avg_pool2d"],
    ),
    "pools, other paddings": (
        lambda x: G.sum_pool2d(
            G.max_pool2d(conv(x, 16, 16), kernel=(3, 2), strides=(2, 1), padding="SAME"),
            kernel=2,
            padding=(1, 0, 1, 1),
            ceil_mode=True,
        ),
        IMAGE,
        ["conv2d", "max_pool2d", "sum_pool2d"],
    ),
    "means of images": (
        lambda x: G.flatten(G.global_pool(G.adaptive_pool(conv(x, 32, 16), (3, 2), "max")), 1),
        IMAGE,
        ["conv2d", "adaptive_pool", "global_pool"],
    ),
    "squeeze and excite": (
        lambda x: (lambda y: y * G.sigmoid(conv(G.mean(y, axis=(-2, -1), keepdims=True), 16, 16, 1)))(conv(x, 16, 16)),
        IMAGE,
        ["conv2d", "mean", "conv2d", "sigmoid", "multiply"],
    ),
    "concatenation": (
        lambda x: conv(G.concatenate([conv(x, 16, 16), conv(x, 24, 16), x], axis=1), 16, 56),
        IMAGE,
        ["conv2d", "conv2d", "concatenate", "conv2d"],
    ),
    "borders, resizing": (
        lambda x: conv(G.resize2d(G.pad(conv(x, 16, 16), ((0, 0), (16, 0), (1, 0), (0, 2))), size=(9, 5)), 16, 32, 1),
        IMAGE,
        ["conv2d", "pad", "resize2d", "conv2d"],
    ),
    "borders from other channels": (
        lambda x: G.pad(conv(x, 16, 16), ((0, 0), (16, 0), (1, 0), (0, 2)), "edge"),
        IMAGE,
        ["conv2d"],
    ),
    "along rows and columns": (
        lambda x: G.flip(G.cumsum(G.softmax(conv(x, 16, 16)), axis=-2), axis=(2, -1)),
        IMAGE,
        ["conv2d", "softmax", "cumsum", "flip"],
    ),
    "norms and sums of channels": (
        lambda x: G.instance_norm(y := conv(x, 16, 16)) + G.softmax(y, axis=1) + G.lrn(y, 3),
        IMAGE,
        ["conv2d", "add", "add"],
    ),
    "operands of all ranks": (
        lambda x: G.where(
            G.greater(conv(x, 16, 16) * const(6) + const(7, 1), const(1, 16, 7, 6)),
            const(16, 7, 1),
            const(1, 1, 7, 6) - const(),
        ),
        IMAGE,
        ["conv2d", "multiply", "add", "greater", "where"],
    ),
    "read by others": (
        lambda x: G.softmax((y := conv(x, 16, 16)), axis=1) + conv(y, 16, 16),
        IMAGE,
        ["conv2d", "conv2d", "add"],
    ),
    "channels that are no vectors": (lambda x: conv(conv(x, 10, 16), 16, 10), IMAGE, ["conv2d"]),
    "other layouts": (
        lambda x: conv(G.transpose(x, axes=(0, 2, 3, 1)), 16, 16, data_layout="NHWC", kernel_layout="OIHW"),
        IMAGE,
        [],
    ),
    "groups": (lambda x: conv(x, 16, 8, groups=2), IMAGE, ["conv2d"]),
    "groups smaller than vectors": (lambda x: conv(x, 16, 4, groups=4, strides=2), IMAGE, ["conv2d"]),
    "groups of other filters than channels": (lambda x: conv(x, 48, 8, groups=2), IMAGE, ["conv2d"]),
    "groups of several blocks": (lambda x: conv(conv(x, 96, 16, 1), 96, 48, groups=2), IMAGE, ["conv2d"] * 2),
    "a multiplier": (lambda x: G.depthwise_conv2d(x, const(16, 2, 3, 3)), IMAGE, []),
    "weights that are computed": (lambda x: G.conv2d(x, G.reshape(x, (6, 16, 7, 1))), (1, 16, 7, 6), []),
    "rows that only calls tell": (
        lambda x: G.max_pool2d(conv(x, 16, 16), kernel=2, strides=2) * const(16, 1, 1),
        ("n", 16, "h", "w"),
        ["conv2d", "max_pool2d", "multiply"],
    ),
    "channels that only calls tell": (lambda x: G.relu(x), (1, "c", 7, 6), []),
}


@pytest.mark.parametrize("name", CASES)
def test_results_stay(name: str) -> None:
    function, shape, expected = CASES[name]
    assert in_blocks(module_of(function, shape)) == expected


def test_several_results() -> None:
    def function(x: Any) -> Any:
        y = conv(x, 16, 16)
        return [y, G.relu(y), G.global_pool(y)]

    assert in_blocks(module_of(function, IMAGE)) == ["conv2d", "relu", "global_pool"]


def test_double_precision_and_other_machines() -> None:
    def function(x: Any) -> Any:
        return G.conv2d(x, const(12, 16, 3, 3, dtype="float64"))

    assert in_blocks(module_of(function, IMAGE, dtype="float64")) == ["conv2d"]
    assert in_blocks(module_of(lambda x: conv(x, 24, 16), IMAGE), AVX512) == ["conv2d"]
    widths = {lanes: [width_of(channels, lanes) for channels in (64, 24, 40, 56, 8, 12)] for lanes in (4, 8, 16)}
    assert widths == {
        4: [8, 8, 8, 8, 8, 12],
        8: [16, 24, 40, 8, 8, None],
        16: [32, 24, 40, 8, 8, None],
    }
    parts = [width_of(channels, 16, whole=False) for channels in (64, 24, 40, 56, 72, 88, 184, 12)]
    assert parts == [32, 24, 40, 56, 72, 88, 8, None]


def test_blocks_divide_groups() -> None:
    """Blocks of two vectors would merge groups of three vectors."""
    module = module_of(lambda x: conv(x, 96, 48, groups=2), ("n", 96, 7, 6))
    assert in_blocks(module, AVX512) == ["conv2d"]
    assert "tensor<2x1x3x3x48x48xf32>" in str(module)


def test_groups_smaller_than_vectors_pay_with_strides() -> None:
    """A block of two groups multiplies as many weights of 0 as others; conversions of single convolutions cost more."""

    def net(groups: int, stride: int) -> Any:
        def function(x: Any) -> Any:
            y = G.relu(conv(x, 128, 64, 1))
            return conv(conv(y, 128, 128 // groups, groups=groups, strides=stride), 64, 128, 1)

        return module_of(function, (1, 64, 28, 28))

    sizes = [(width, stride) for width in (4, 8, 16) for stride in (1, 2)]
    blocked = [size for size in sizes if in_blocks(net(128 // size[0], size[1]), AVX512, everywhere=False)]
    assert blocked == [(8, 2), (16, 1), (16, 2)]


def test_images_are_in_blocks_where_that_pays() -> None:
    def net(*filters: int) -> Any:
        def function(x: Any) -> Any:
            for channels, following in zip((3, *filters), filters, strict=False):
                x = G.relu(conv(x, following, channels))
            return x

        return module_of(function, ("n", 3, 8, 8))

    assert in_blocks(net(16), everywhere=False) == []
    assert in_blocks(net(64, 64, 64), everywhere=False) == ["conv2d", "relu"] * 3
    # The last convolution has no vectors of filters, and would not gain what it takes to convert its data.
    assert in_blocks(net(64, 64, 5), everywhere=False) == ["conv2d", "relu"] * 2
    assert in_blocks(net(16, 5), everywhere=False) == []


WIDE = ("n", 64, 13, 15)
FILTERED: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...], str]] = {
    "odd sizes, residual": (lambda x: G.relu(conv(x, 64, 64) + x), WIDE, "conv2d_winograd add relu"),
    "paddings": (lambda x: conv(conv(x, 48, 64, padding=0), 64, 48, padding="SAME"), WIDE, "conv2d_winograd " * 2),
    "data of few channels": (lambda x: conv(conv(x, 64, 3), 64, 64), ("n", 3, 7, 6), "conv2d conv2d_winograd"),
    "data that are not in blocks": (lambda x: conv(x, 64, 65), ("n", 65, 7, 6), "conv2d"),
    "strides": (lambda x: conv(x, 64, 64, strides=2), WIDE, "conv2d"),
    "dilation": (lambda x: conv(x, 64, 64, dilation=2), WIDE, "conv2d"),
    "other windows": (lambda x: conv(conv(x, 16, 64, 5), 64, 16, 1), WIDE, "conv2d " * 2),
    "depthwise": (lambda x: conv(x, 64, 1, groups=64), WIDE, "depthwise_conv2d"),
    "few channels": (lambda x: conv(x, 8, 8), ("n", 8, 7, 6), "conv2d"),
    "images of one pixel": (lambda x: conv(x, 64, 64), ("n", 64, 1, 1), "conv2d"),
}


@pytest.mark.parametrize("name", FILTERED)
def test_minimal_filtering(name: str) -> None:
    function, shape, expected = FILTERED[name]
    assert in_blocks(module_of(function, shape), winograd=True) == expected.split()


def test_minimal_filtering_pays_for_conversions() -> None:
    """Direct, a single convolution gains less than converting its data and results takes."""
    assert in_blocks(module_of(lambda x: conv(x, 64, 64), (1, 64, 14, 14)), everywhere=False) == []
    module = module_of(lambda x: conv(x, 64, 64), (1, 64, 14, 14))
    assert in_blocks(module, everywhere=False, winograd=True) == ["conv2d_winograd"]


def test_minimal_filtering_of_doubles() -> None:
    module = module_of(lambda x: G.conv2d(x, const(64, 64, 3, 3, dtype="float64"), padding=1), WIDE, dtype="float64")
    assert in_blocks(module, winograd=True) == ["conv2d_winograd"]


def test_minimal_filtering_of_bf16() -> None:
    """Float32 sums of transformed data take less time than dot products of bf16, but not than tile registers, nor if
    the transformed weights of a small image are read from memory."""

    def net(size: int) -> Any:
        weights = G.cast(const(64, 64, 3, 3), dtype="bfloat16")
        function = lambda x: G.conv2d(G.cast(x, dtype="bfloat16"), weights, padding=1, out_dtype="float32")  # noqa: E731
        module = module_of(function, (1, 64, size, size))
        (main,) = graph_functions(module)
        fold_constants(main)
        return module

    def named(size: int, cpu: str) -> list[str]:
        found = in_blocks(net(size), Target.parse(f"llvm -mcpu={cpu}"), winograd=True)
        return [name for name in found if name != "cast"]

    module = net(28)
    assert named(28, "znver4") == ["conv2d_winograd"]
    assert named(28, "sapphirerapids") == ["conv2d"]
    assert named(7, "znver4") == ["conv2d"]
    (main,) = graph_functions(module)
    block_layouts(main, Target.parse("llvm -mcpu=znver4"))
    assert "tensor<2x6x6x2x32x32xf32>" in str(module)


VOLUMES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "padding": (lambda x: G.conv3d(x, const(16, 16, 3, 3, 3), padding=(1, 0, 1, 0, 1, 2)), True),
    "strides and dilation in depth": (
        lambda x: G.conv3d(x, const(32, 16, 2, 3, 3), padding=1, strides=(2, 1, 1), dilation=(2, 1, 1)),
        True,
    ),
    "planes": (lambda x: G.conv3d(x, const(32, 16, 1, 3, 3)), True),
    "depth of the volume": (lambda x: G.conv3d(x, const(16, 16, 3, 3, 3), padding=1), True),
    "strides in planes": (lambda x: G.conv3d(x, const(16, 16, 3, 3, 3), strides=(1, 2, 1)), False),
    "groups": (lambda x: G.conv3d(x, const(16, 8, 3, 3, 3), groups=2), False),
    "other windows": (lambda x: G.conv3d(x, const(16, 16, 3, 3, 5)), False),
    "few filters": (lambda x: G.conv3d(x, const(4, 16, 3, 3, 3)), False),
}


def in_planes(function: Callable[[Any], Any], shape: tuple[Any, ...], *, winograd: bool = True) -> bool:
    """Whether a convolution of volumes becomes one of planes, whose results are those before."""
    module = module_of(function, shape)
    (main,) = graph_functions(module)
    before = Interpreter(module.clone())
    count = block_layouts(main, AVX2, winograd=winograd)
    module.verify()
    numbers = {"n": 2, "d": 5, "h": 6, "w": 9}
    array = random.standard_normal([numbers.get(extent, extent) for extent in shape]).astype("float32")
    assert outputs_equal(before.call("main", array), Interpreter(module).call("main", array))
    assert ("graph.conv3d" in str(module)) is not bool(count)
    return "graph.conv2d_winograd" in str(module)


@pytest.mark.parametrize("name", VOLUMES)
def test_minimal_filtering_of_planes(name: str) -> None:
    function, is_filtered = VOLUMES[name]
    assert in_planes(function, (1, 16, 5, 14, 14)) is is_filtered


@pytest.mark.parametrize("name", VOLUMES)
@pytest.mark.parametrize("shape", [("n", 16, 5, 14, 14), ("n", 16, "d", "h", "w")])
def test_planes_of_symbolic_extents(name: str, shape: tuple[Any, ...]) -> None:
    """A symbolic depth must be that of the result as well."""
    function, is_filtered = VOLUMES[name]
    keeps_depth = shape[2] == 5 or name in ("planes", "depth of the volume")
    assert in_planes(function, shape) is (is_filtered and keeps_depth)


def test_volumes_that_stay() -> None:
    """Without minimal filtering, and with copies that cost more than it saves."""

    def function(x: Any) -> Any:
        return G.conv3d(x, const(16, 16, 3, 3, 3), padding=1)

    assert not in_planes(function, (1, 16, 5, 14, 14), winograd=False)
    assert not in_planes(function, (1, 16, 2, 3, 3))


@pytest.mark.parametrize("size", [28, 7])
def test_accuracy_of_minimal_filtering(size: int) -> None:
    """Tiles of 2 x 2 are as accurate as sums of windows, those of 4 x 4 within 1e-5 of the largest element, compiled
    as a graph with its bias and activation."""
    rng = np.random.default_rng(1)
    x = np.maximum(rng.standard_normal((1, 64, size, size)), 0).astype("float32")
    w = (rng.standard_normal((64, 64, 3, 3)) / 24).astype("float32")
    b = rng.standard_normal((64, 1, 1)).astype("float32")
    module = module_of(lambda x: G.relu(G.conv2d(x, G.const(w), padding=1) + G.const(b)), x.shape)
    exact = reference_of("conv2d")(x.astype("float64"), w.astype("float64"), padding=1) + b
    built = weft.build(module), weft.build(module, winograd=False)
    assert ["winograd" in str([row.names for row in library.report().rows]) for library in built] == [True, False]
    filtered, direct = (np.abs(library["main"](x) - np.maximum(exact, 0)).max() / exact.max() for library in built)
    assert direct < 2e-6
    assert filtered < 1e-5


@pytest.mark.parametrize("name", first_tier(["residual block", "convolution net"], "residual block"))
def test_compiled(name: str) -> None:
    model = MODELS[name]
    module = model.module()
    (main,) = graph_functions(module)
    rewrite_graph(main)
    assert block_layouts(main, Target.parse("llvm"), everywhere=True)
    built = weft.build(module, target="llvm -num-threads=2")["main"]
    for sizes in model.sizes:
        array = model.array(sizes)
        np.testing.assert_allclose(built(array), model.expected(array), rtol=1e-4, atol=1e-4)


def test_layouts_can_be_turned_off() -> None:
    module = module_of(lambda x: G.global_pool(conv(x, 16, 3)), (1, 3, 8, 8))
    for target, layouts, expected in (
        ("llvm", True, True),
        ("llvm", False, False),
        ("c", True, False),
        ("cuda", True, False),
    ):
        copy = module.clone()
        LowerGraphPass(target, layouts=layouts).apply(Context(), copy)
        assert ("1x3x3x3x1x16xf32" in str(copy)) is expected
    blocked, plain = ({row.symbol for row in weft.build(module, layouts=on).report().rows} for on in (True, False))
    assert not blocked & plain
