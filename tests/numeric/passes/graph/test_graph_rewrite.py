"""What `graph-rewrite` makes of graphs computes what they compute: on odd shapes, in all layouts, in narrow floats."""

from collections import Counter

import numpy as np
import pytest
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft import graph as G
from weft.interp.compare import outputs_equal
from weft.interp.interpreter import Interpreter
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_fold_constants import fold_constants
from weft.passes.graph.graph_rewrite import RULES, GraphRewritePass, rewrite_graph
from weft.passes.lower_graph import LowerGraphPass
from weft.support.errors import CompileError

random = np.random.default_rng(3)


def const(*shape, dtype="float32"):
    return G.const(random.standard_normal(shape).astype(dtype))


def positive(*shape, dtype="float32"):
    return G.const((random.random(shape) + 0.5).astype(dtype))


def rewritten(function, *params, rules=tuple(RULES), sizes=(1, 2, 5)):
    """The names of the operators after the rewrite, whose results are those before for each extent n."""
    bb = G.BlockBuilder()
    params = [G.var(p.ssa.name_hint, [e if isinstance(e, int) else str(e) for e in p.shape], p.dtype) for p in params]
    with bb.function("main", params):
        bb.emit_func_output(function(*params))
    module = bb.get()
    (main,) = graph_functions(module)
    fold_constants(main)
    before = Interpreter(module.clone())
    rewrite_graph(main, rules)
    module.verify()
    after = Interpreter(module)
    for n in sizes:
        arrays = [
            np.asarray(random.standard_normal([e if isinstance(e, int) else n for e in p.shape]), p.dtype)
            for p in params
        ]
        assert outputs_equal(before.call("main", *arrays), after.call("main", *arrays))
    return [op.name.removeprefix("graph.") for op in main.walk() if op.name.startswith("graph.")]


def operators(found):
    return [name for name in found if name != "constant"]


CONVOLUTIONS = {
    "conv1d": (lambda x: G.conv1d(x, const(6, 4, 3), padding=1), ("n", 4, 5), 1),
    "conv1d-last": (lambda x: G.conv1d(x, const(3, 4, 6), data_layout="NWC"), ("n", 5, 4), 2),
    "conv2d": (lambda x: G.conv2d(x, const(6, 4, 3, 2), strides=2, padding=1), ("n", 4, 5, 6), 1),
    "conv2d-groups": (lambda x: G.conv2d(x, const(6, 2, 3, 3), groups=2), ("n", 4, 5, 3), 1),
    "conv2d-last": (lambda x: G.conv2d(x, const(1, 2, 4, 6), data_layout="NHWC"), ("n", 3, 3, 4), 3),
    "conv2d-kernel": (lambda x: G.conv2d(x, const(4, 6, 1, 2), kernel_layout="IOHW"), ("n", 4, 3, 3), 1),
    "conv3d": (lambda x: G.conv3d(x, const(6, 1, 2, 2, 2)), ("n", 1, 2, 3, 3), 1),
    "depthwise_conv2d": (lambda x: G.depthwise_conv2d(x, const(3, 2, 2, 2)), ("n", 3, 3, 3), 1),
    "depthwise_conv2d-last": (
        lambda x: G.depthwise_conv2d(x, const(2, 2, 3, 2), data_layout="NHWC"),
        ("n", 3, 3, 3),
        3,
    ),
    "conv2d_transpose": (lambda x: G.conv2d_transpose(x, const(4, 6, 2, 2), strides=2), ("n", 4, 2, 3), 1),
    "conv1d_transpose": (lambda x: G.conv1d_transpose(x, const(4, 6, 2)), ("n", 4, 3), 1),
    "conv3d_transpose": (
        lambda x: G.conv3d_transpose(x, const(1, 1, 2, 2, 6), data_layout="NDHWC", kernel_layout="DHWIO"),
        ("n", 2, 2, 3, 2),
        4,
    ),
    "matmul": (lambda x: x @ const(4, 6), ("n", 4), 1),
    "matmul-transposed": (lambda x: G.matmul(x, const(6, 4), transpose_b=True), (2, "n", 4), 2),
    "matmul-of-vector": (lambda x: x @ const(4, 6), (4,), 0),
    "batch_matmul": (lambda x: G.batch_matmul(x, const(2, 6, 4)), (2, "n", 4), 2),
    "dense": (lambda x: G.dense(x, const(6, 4)), ("n", 4), 1),
    "dense-bias": (lambda x: G.dense(x, const(6, 4), const(6)), ("n", 4), 1),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("form", first_tier(["norm", "spelled"], "spelled"))
def test_norms_are_folded_into_weights(name, form):
    product, shape, axis = CONVOLUTIONS[name]
    spread = (6, *[1] * (len(shape) - axis - 1))

    def model(x):
        if form == "norm":
            parameters = [const(6), const(6), const(6), positive(6)]
            return G.batch_norm(product(x) + const(*spread), *parameters, axis=axis, epsilon=0.01)
        deviation = G.sqrt(positive(*spread) + 0.01)
        return (product(x) - const(*spread)) / deviation * const(*spread) + const(*spread)

    kind = name.partition("-")[0]
    expected = [kind] if kind == "dense" else [kind, "add"]
    rules = [rule for rule in RULES if rule != "transposed_convolutions"]
    assert operators(rewritten(model, G.var("x", shape), rules=rules, sizes=(1, 3))) == expected


def test_norms_that_are_not_folded():
    weight = const(6, 4, 1, 1)
    x = G.var("x", ("n", 4, 2, 6))

    def other_axis(x):
        return G.batch_norm(G.conv2d(x, weight), const(6), const(6), const(6), positive(6), axis=3)

    assert operators(rewritten(other_axis, x, sizes=(2,))) == ["conv2d", "multiply", "add"]

    def grouped_transpose(x):
        return G.conv2d_transpose(x, const(4, 3, 1, 1), groups=2) * const(6, 1, 1)

    assert operators(rewritten(grouped_transpose, G.var("x", ("n", 4, 2, 6)), sizes=(2,))) == [
        "conv2d_transpose", "multiply",
    ]  # fmt: skip

    def of_parameters(x, gamma):
        return G.batch_norm(G.conv2d(x, const(6, 4, 1, 1)), gamma, const(6), const(6), positive(6))

    params = G.var("x", ("n", 4, 2, 6)), G.var("gamma", (6,))
    assert operators(rewritten(of_parameters, *params, sizes=(2,))) == ["conv2d", "batch_norm"]


@pytest.mark.parametrize(("rank", "extents"), [(1, (5,)), (1, ("n",)), (2, (5, 4)), (2, ("n", "n")), (3, (5, 4, 6))])
@pytest.mark.parametrize("term", [None, (), "channels"])
@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (2, {"strides": 2}),
        (3, {"strides": 2, "padding": 1, "output_padding": 1}),
        (4, {"strides": 2, "padding": 1, "groups": 2}),
        (5, {"strides": 3, "padding": 2}),
        (1, {"strides": 3, "output_padding": 2}),
        (2, {"strides": 2, "padding": 3}),
    ],
)
def test_transposed_convolutions(rank, extents, term, kernel, options):
    groups = options.get("groups", 1)
    transposed = getattr(G, f"conv{rank}d_transpose")

    def model(x):
        y = transposed(x, const(4, 3, *[kernel] * rank), **options)
        return y if term is None else y + const(*((3 * groups, *[1] * rank) if term else ()))

    found = operators(rewritten(model, G.var("x", ("n", 4, *extents)), sizes=(4,) if "n" in extents else (1, 2)))
    assert found[: 1 + (term is not None)] == [f"conv{rank}d", "add"][: 1 + (term is not None)]
    assert {*found[2:]} <= {"reshape", "transpose", "strided_slice", "prefix"}


def test_borders_of_transposed_convolutions():
    def model(x):
        y = G.conv2d_transpose(x, const(2, 3, 3, 2), strides=(2, 1), padding=((1, 0), (0, 1)))
        return G.conv2d_transpose(y, const(3, 2, 2, 3), strides=(1, 3), padding=[0, 1, 1, 0], kernel_layout="")

    assert operators(rewritten(model, G.var("x", (2, 2, 3, 4)), sizes=(1,))).count("conv2d") == 2


def test_transposed_convolutions_that_stay():
    x = G.var("x", ("n", 4, 5, 6))

    def check(function, *params):
        assert operators(rewritten(function, *params, sizes=(2,))) == ["conv2d_transpose"]

    check(lambda x: G.conv2d_transpose(x, const(4, 3, 2, 2)), x)
    check(lambda x: G.conv2d_transpose(x, const(4, 3, 2, 2), strides=2, dilation=2), x)
    check(lambda x: G.conv2d_transpose(x, const(2, 2, 6, 3), strides=2, data_layout="NHWC"), x)
    check(lambda x: G.conv2d_transpose(x, const(3, 4, 2, 2), strides=2, kernel_layout="OIHW"), x)
    check(lambda x, w: G.conv2d_transpose(x, w, strides=2), x, G.var("w", (4, 3, 2, 2)))


def test_terms_of_more_channels_than_a_transposed_convolution():
    def model(x):
        return G.conv2d_transpose(x, const(2, 1, 2, 2), strides=2) + const(3, 1, 1)

    found = operators(rewritten(model, G.var("x", (1, 2, 3, 3)), sizes=(1,)))
    assert found == ["conv2d", "reshape", "transpose", "reshape", "add"]


def test_a_transposed_convolution_that_others_use_keeps_its_term():
    def model(x):
        y = G.conv2d_transpose(x, const(4, 3, 2, 2), strides=2)
        return G.multiply(y, y + const(3, 1, 1))

    found = operators(rewritten(model, G.var("x", ("n", 4, 5, 6)), sizes=(2,)))
    assert found == ["conv2d", "reshape", "transpose", "reshape", "add", "multiply"]


def gelu(x):
    return 0.5 * x * (1.0 + G.erf(x / 1.4142135623730951))


def gelu_by_tanh(x):
    return 0.5 * x * (1.0 + G.tanh(0.7978845608028654 * (x + 0.044715 * G.power(x, 3.0))))


def layer_norm(x):
    deviation = x - G.mean(x, axis=-1, keepdims=True)
    variance = G.mean(deviation * deviation, axis=-1, keepdims=True)
    return deviation / G.sqrt(variance + 1e-3)


def rms_norm(x):
    return x * G.rsqrt(G.mean(G.square(x), axis=-1, keepdims=True) + 1e-3)


def softmax(x):
    power = G.exp(x - G.max(x, axis=-1, keepdims=True))
    return power / G.sum(power, axis=-1, keepdims=True)


SPELLED = {
    "gelu": gelu,
    "gelu_tanh": gelu_by_tanh,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "softmax": softmax,
    "silu": lambda x: x / (1.0 + G.exp(-x)),
    "hardswish": lambda x: x * (G.clip(x + 3.0, 0.0, 6.0) / 6.0),
    "hardsigmoid": lambda x: G.relu(G.minimum(x + 3.0, 6.0)) / 6.0,
    "softplus": lambda x: G.relu(x) + G.log1p(G.exp(-G.abs(x))),
    "softsign": lambda x: x / (1.0 + G.abs(x)),
    "log_sigmoid": lambda x: G.log(1.0 / (1.0 + G.exp(-x))),
    "log_softmax": lambda x: G.log(softmax(x)),
    "logsumexp": lambda x: G.log(G.sum(G.exp(x), axis=-1)),
    "mish": lambda x: x * G.tanh(G.log(G.exp(x) + 1.0)),
}


@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize("dtype", first_tier(["float32", "float64", "float16"], "float16"))
def test_spelled_operators(name, dtype):
    found = rewritten(SPELLED[name], G.var("x", ("n", 3, 5), dtype))
    assert found == [name.removesuffix("_tanh")]


def test_norms_with_scales():
    def model(x, scale):
        return layer_norm(x) * scale + const(1, 1, 5)

    params = G.var("x", ("n", 3, 5)), G.var("scale", (5,))
    assert operators(rewritten(model, *params)) == ["layer_norm"]
    rows = G.var("x", ("n", 5, 5)), G.var("scale", (5, 1))
    assert operators(rewritten(lambda x, scale: rms_norm(x) * scale, *rows)) == ["rms_norm", "multiply"]


@pytest.mark.parametrize("causal", [None, -np.inf, -1e9, "bool", "bool, finite"])
def test_attention(causal):
    """Heads in front, keys transposed, a scale, a mask; with the causal one, 6 queries of 6 keys."""

    def model(x, mask):
        heads = [(x @ const(8, 8)).reshape("n", 6, 2, 4) for _ in range(3)]
        q, k, v = heads
        q, v = (G.transpose(t, axes=[0, 2, 1, 3]) for t in (q, v))
        scores = (q @ G.transpose(k, axes=[0, 2, 3, 1])) * 0.5
        triangle = np.tri(6, dtype=bool)
        if causal is None:
            scores = scores + mask
        elif isinstance(causal, str):
            scores = G.where(G.const(triangle), scores, G.const(-np.inf if causal == "bool" else -3e38))
        else:
            scores = scores + G.const(np.where(triangle, 0, causal).astype("float32"))
        out = G.transpose(G.softmax(scores) @ v, axes=[0, 2, 1, 3]).reshape("n", 6, 8)
        return out @ const(8, 8)

    params = G.var("x", ("n", 6, 8)), G.var("mask", (6, 6))
    defaults = [name for name in RULES if name not in ("products", "constants")]
    found = operators(rewritten(model, *params, rules=defaults))
    assert Counter(found) == {"matmul": 4, "reshape": 4, "transpose": 4, "attention": 1}
    merged = operators(rewritten(model, *params))
    assert merged.count("matmul") == 2 and merged.count("split") == 1


def test_chains_of_views():
    """Transposes and reshapes that meet behind elementwise operators."""

    def model(x, y):
        rows = G.relu(G.transpose(x, axes=[0, 2, 1]).reshape("n", 12) * 2.0).reshape("n", 4, 3)
        return G.transpose(G.tanh(rows) + G.transpose(y, axes=[0, 2, 1]), axes=[0, 2, 1])

    params = G.var("x", ("n", 3, 4)), G.var("y", ("n", 3, 4))
    found = operators(rewritten(model, *params))
    assert sorted(found) == ["add", "multiply", "relu", "tanh"]


def test_products_of_transposes():
    x, w, b = G.var("x", (4, "n")), G.var("w", (3, 4)), G.var("b", (3,))
    assert operators(rewritten(lambda x, w, b: x.T @ w.T + b, x, w, b)) == ["matmul", "add"]
    x, w = G.var("x", (4, "n")), G.var("w", (4, 3))
    assert operators(rewritten(lambda x, w: G.dense(x.T, w.T), x, w)) == ["matmul"]
    x, w, b = G.var("x", ("n", 4)), G.var("w", (4, 3)), G.var("b", (3,))
    assert operators(rewritten(lambda x, w, b: G.dense(x, w.T, b), x, w, b)) == ["matmul", "add"]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("filters", [2, 5, 7])
@pytest.mark.parametrize("order", ["before", "after", "both"])
def test_pointwise_convolutions_of_pixels(rank, filters, order):
    """A product replaces the convolution unless it moves the transpose to the larger tensor."""
    convolution = {1: G.conv1d, 2: G.conv2d, 3: G.conv3d}[rank]
    pixels, channels = ("n", 3, 4)[:rank], 5
    to_first, to_last = [0, rank + 1, *range(1, rank + 1)], [0, *range(2, rank + 2), 1]

    def chain(x):
        x = x if order == "after" else G.transpose(x, to_first)
        x = G.relu(convolution(x, const(filters, channels, *[1] * rank)) + const(filters, *[1] * rank))
        return x if order == "before" else G.transpose(x, to_last)

    shape = ("n", channels, *pixels) if order == "after" else ("n", *pixels, channels)
    found = Counter(rewritten(chain, G.var("x", shape)))
    stays = filters > channels if order == "before" else filters < channels if order == "after" else False
    assert found["matmul"] == (not stays)
    assert found[f"conv{rank}d"] == stays
    assert found["transpose"] == (0 if order == "both" or (rank == 1 and order == "after" and not stays) else 1)


def test_narrow_operators():
    def model(x, w):
        wide = G.softmax(x.astype("float32")).astype("float16")
        return G.rms_norm((wide @ w).astype("float32")).astype("float16")

    params = G.var("x", ("n", 5), "float16"), G.var("w", (5, 3), "float16")
    assert operators(rewritten(model, *params)) == ["softmax", "matmul", "rms_norm"]

    def total(x):
        return G.logsumexp(x.astype("float32"), axis=1).astype("float16")

    assert operators(rewritten(total, params[0])) == ["logsumexp"]

    def rounded_often(x):
        return G.relu(G.exp(x.astype("float32"))).astype("float16")

    assert operators(rewritten(rounded_often, params[0])) == ["cast", "exp", "relu", "cast"]

    def spelled(x, weight):
        return rms_norm(x.astype("float32")).astype("float16") * weight

    params = G.var("x", ("n", 5), "float16"), G.var("weight", (5,), "float16")
    assert operators(rewritten(spelled, *params)) == ["rms_norm"]


def test_merged_products():
    def model(x):
        parts = [G.dense(x, const(width, 4), const(width)) for width in (3, 1, 3)]
        return parts[0] * parts[2] + parts[1]

    found = operators(rewritten(model, G.var("x", ("n", 4)), rules=["products"]))
    assert found == ["dense", "split", "multiply", "add"]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_merged_constants(dtype):
    def model(x):
        two, row = G.const(np.asarray(2, dtype)), G.const(np.arange(4).astype(dtype))
        return ((x * two) * row + (row + row)) * two + two + row

    assert operators(rewritten(model, G.var("x", ("n", 4), dtype), rules=["constants"])) == ["multiply", "add"]

    def growing(x):
        return x * G.const(np.ones((1, 4), dtype)) * G.const(np.ones((3, 1), dtype))

    x = G.var("x", (3, 4), dtype)
    assert operators(rewritten(growing, x, rules=["constants"], sizes=(1,))).count("multiply") != 1


def test_lowered_as_it_is_written():
    for rewrite, kernels in ((True, ["silu"]), (False, ["multiply", "sigmoid"])):
        x = G.var("x", ("n", 4))
        bb = G.BlockBuilder()
        with bb.function("main", [x]):
            bb.emit_func_output(x * G.sigmoid(x))
        module = bb.get()
        LowerGraphPass(rewrite=rewrite, fuse=False).apply(Context(), module)
        found = {f.sym_name.data.removesuffix("_in_place") for f in module.ops if f.name == "func.func"}
        assert found == {"main", *kernels}


def test_unknown_rules():
    with pytest.raises(CompileError, match=r"there is no rule 'transpose', did you mean 'transposes'"):
        GraphRewritePass(("norms", "transpose")).apply(Context(), ModuleOp([]))
