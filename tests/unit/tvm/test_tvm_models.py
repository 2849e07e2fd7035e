"""Passes, patterns, models and default schedules under TVM's names."""

from __future__ import annotations

import numpy as np
import pytest

import weft.tvm as tvm
from weft.support.errors import CompileError
from weft.tvm import dlight, relax
from weft.tvm.relax.dpl import is_const, is_op, is_var, rewrite_call, wildcard
from weft.tvm.relax.frontend import nn
from weft.tvm.script import relax as R
from weft.tvm.script import tir as T

X = np.random.default_rng(0).uniform(-1, 1, (3, 4)).astype("float32")


@tvm.script.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
        z = R.add(x, y)
        w = R.nn.relu(z)
        unused = R.exp(w)  # noqa: F841
        return R.add(w, R.multiply(w, R.const(2.0, "float32")))


EXPECTED = 3 * np.maximum(X + X, 0)


def call(mod: object, *args: np.ndarray, name: str = "main") -> np.ndarray:
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    return np.asarray(machine[name](*map(tvm.runtime.tensor, args)))


@pytest.mark.parametrize(
    "name",
    ["DeadCodeElimination", "CanonicalizeBindings", "FoldConstant", "LambdaLift", "AnnotateTIROpPattern",
     "Normalize", "ToMixedPrecision", "EliminateCommonSubexpr", "InlinePrivateFunctions", "CallTIRRewrite",
     "LegalizeOps", "FuseOps"],
)  # fmt: skip
def test_passes_keep_the_meaning(name: str):
    np.testing.assert_allclose(call(getattr(relax.transform, name)()(Chain), X, X), EXPECTED, rtol=1e-5)


def test_pipelines_and_layouts():
    np.testing.assert_allclose(call(relax.get_pipeline("zero")(Chain), X, X), EXPECTED, rtol=1e-5)
    layouts = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})
    np.testing.assert_allclose(call(layouts(Chain), X, X), EXPECTED, rtol=1e-5)
    assert "R.exp" in str(Chain)
    assert "R.exp" not in str(relax.transform.DeadCodeElimination()(Chain))
    with pytest.raises(CompileError, match="get_pipeline: weft has 'zero' and 'default', got 'static_shape_tuning'"):
        relax.get_pipeline("static_shape_tuning")
    with pytest.raises(CompileError, match="ToMixedPrecision: parameters and results keep their types"):
        relax.transform.ToMixedPrecision("float16")
    for absent, reason in (
        ("RunCodegen", "weft calls no libraries"),
        ("RewriteCUDAGraph", "launched one by one"),
        ("FuseOpsByPattern", "dpl.rewrite_call"),
    ):
        with pytest.raises(AttributeError, match=reason):
            getattr(relax.transform, absent)


def test_rewriting_calls():
    first, second = wildcard(), wildcard()
    pattern = is_op("relax.nn.relu")(is_op("relax.add")(first, second))
    function = rewrite_call(pattern, lambda _, m: relax.op.multiply(m[first], m[second]), Chain["main"])
    module = Chain.clone()
    module["main"] = function
    np.testing.assert_allclose(call(module, X, X), 3 * X * X, rtol=1e-5)
    same = rewrite_call(pattern, lambda value, _: value, Chain["main"])
    module["main"] = same
    np.testing.assert_allclose(call(module, X, X), EXPECTED, rtol=1e-5)


def test_patterns():
    x, y = (relax.Var(name, relax.TensorStructInfo((3, 4), "float32")) for name in "xy")
    product = relax.op.multiply(relax.op.add(x, y), relax.const(2.0, "float32"))
    assert ((wildcard() + wildcard()) * is_const()).match(product)
    assert not ((wildcard() - wildcard()) * is_const()).match(product)
    assert (is_op("relax.exp")(wildcard()) | is_op("relax.multiply")(wildcard(), is_const())).match(product)
    assert is_op("relax.add")(is_var("x"), is_var("y")).match(relax.op.add(x, y))
    assert not is_op("relax.add")(is_var("x"), is_var("z")).match(relax.op.add(x, y))
    assert wildcard().has_dtype("float32").has_shape((3, 4)).match(product)
    assert not wildcard().has_dtype("int8").match(product)
    assert is_op("relax.sum")(wildcard()).has_attr({"keepdims": True}).match(relax.op.sum(x, keepdims=True))


class Perceptron(nn.Module):
    def __init__(self):
        self.first, self.act = nn.Linear(4, 8), nn.ReLU()
        self.second, self.norm = nn.Linear(8, 4, bias=False), nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(self.second(self.act(self.first(x))))


def test_models_as_classes():
    module, parameters = Perceptron().export_tvm({"forward": {"x": nn.spec.Tensor((3, 4), "float32")}})
    draw = np.random.default_rng(1)
    weights = [draw.uniform(-1, 1, p.shape).astype(p.dtype) for _, p in parameters]
    assert [name for name, _ in parameters] == [
        "first.weight", "first.bias", "second.weight", "norm.weight", "norm.bias",
    ]  # fmt: skip
    hidden = np.maximum(X @ weights[0].T + weights[1], 0) @ weights[2].T
    centred = hidden - hidden.mean(1, keepdims=True)
    expected = centred / np.sqrt(hidden.var(1, keepdims=True) + 1e-5) * weights[3] + weights[4]
    np.testing.assert_allclose(call(module, X, *weights, name="forward"), expected, rtol=1e-3, atol=1e-4)


def test_parts_of_models():
    class Parts(nn.Module):
        def __init__(self):
            self.table, self.layers = nn.Embedding(10, 4), nn.ModuleList([nn.SiLU(), nn.RMSNorm(4, bias=False)])

        def forward(self, x):
            return self.layers(self.table(x))

        def images(self, x):
            return nn.op.exp(x)

    spec = {"forward": {"x": nn.spec.Tensor((2,), "int64")}, "images": {"x": nn.spec.Tensor((3, 4), "float32")}}
    module, _ = Parts().export_tvm(spec)
    table, scale = np.random.default_rng(2).random((10, 4)).astype("float32"), np.ones(4, "float32")
    rows = table[[3, 7]] / (1 + np.exp(-table[[3, 7]]))
    expected = rows / np.sqrt((rows * rows).mean(1, keepdims=True) + 1e-5)
    places = np.array([3, 7])
    np.testing.assert_allclose(call(module, places, table, scale, name="forward"), expected, rtol=1e-4)
    with pytest.raises(CompileError, match="call export_tvm"):
        nn.Linear(2, 2)(relax.Var("x", relax.TensorStructInfo((2, 2))))
    with pytest.raises(NotImplementedError, match=r"Module has no forward\(\)"):
        nn.Module()()


class Images(nn.Module):
    def __init__(self):
        self.images, self.groups = nn.Conv2D(4, 6, [3, 3], padding=1, groups=2), nn.GroupNorm(2, 6)

    def forward(self, x):
        return self.groups(self.images(x), channel_axis=1, axes=[2, 3])


def exported(model: nn.Module, *shape: int, seed: int = 0, name: str = "forward"):
    """The result of a model on random numbers, beside the input and the parameters as tensors of PyTorch."""
    torch = pytest.importorskip("torch")
    module, parameters = model.export_tvm({name: {"x": nn.spec.Tensor(shape, "float32")}})
    draw = np.random.default_rng(seed)
    x, *weights = (draw.uniform(-1, 1, size).astype("float32") for size in (shape, *(p.shape for _, p in parameters)))
    return call(module, x, *weights, name=name), *map(torch.from_numpy, (x, *weights))


def test_convolutions_and_groups():
    functional = pytest.importorskip("torch.nn.functional")
    found, x, weight, bias, scale, shift, *_ = exported(Images(), 2, 4, 5, 6)
    expected = functional.group_norm(functional.conv2d(x, weight, bias, padding=1, groups=2), 2, scale, shift)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    for dimensions, layer in ((1, nn.Conv1D(3, 2, 3, 2, 1)), (3, nn.Conv3D(3, 2, 2, dilation=2, bias=False))):
        found, x, weight, *bias = exported(layer, 1, 3, 5, 6, 7) if dimensions == 3 else exported(layer, 1, 3, 7)
        options = {"stride": layer.stride, "padding": layer.padding, "dilation": layer.dilation}
        expected = getattr(functional, f"conv{dimensions}d")(x, weight, *bias, **options)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    found, x, weight, bias = exported(nn.ConvTranspose1D(3, 2, 3, stride=2, padding=1, output_padding=1), 1, 3, 7)
    expected = functional.conv_transpose1d(x, weight, bias, 2, 1, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_convolutions_with_channels_last():
    class Last(nn.Module):
        def forward(self, x, weight, bias):
            return nn.op.conv2d(x, weight, bias, data_layout="NHWC")

    spec = {name: nn.spec.Tensor(shape, "float32") for name, shape in (("x", (1, 4, 4, 3)), ("weight", (2, 3, 1, 1)))}
    module, _ = Last().export_tvm({"forward": spec | {"bias": nn.spec.Tensor((2,), "float32")}})
    x, weight, bias = (np.random.default_rng(1).random(s).astype("float32") for s in ((1, 4, 4, 3), (2, 3, 1, 1), (2,)))
    expected = x @ weight[:, :, 0, 0].T + bias
    np.testing.assert_allclose(call(module, x, weight, bias, name="forward"), expected, rtol=1e-4)


def test_attention_of_models():
    functional = pytest.importorskip("torch.nn.functional")

    class Attention(nn.Module):
        def forward(self, x):
            return nn.op.scaled_dot_product_attention(x, x, x, is_causal=True)

    found, x = exported(Attention(), 1, 5, 2, 4)
    heads = x.transpose(1, 2)
    expected = functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True).transpose(1, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    for name, reason in (("KVCache", "a model takes its keys and values"), ("IOEffect", "R.print")):
        with pytest.raises(AttributeError, match=reason):
            getattr(nn, name)
    with pytest.raises(TypeError, match="num_channels"):
        nn.GroupNorm(2)


@T.prim_func
def doubled(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0


def test_default_schedules():
    module = tvm.IRModule({"doubled": doubled})
    with tvm.target.Target({"kind": "cuda", "arch": "sm_80"}) as target:
        assert tvm.target.Target.current() is target
        assert "threadIdx" in str(dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(module))
    assert tvm.target.Target.current() is None
    scheduled = dlight.ApplyDefaultSchedule(dlight.cpu.GEMV())(module)
    assert "T.vectorized" in str(scheduled)
    a, b = np.ones((64, 64), "float32"), np.zeros((64, 64), "float32")
    tvm.compile(scheduled, target="llvm")["doubled"](a, b)
    assert (b == 2).all()


def test_programs_of_torch():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(4, 3).eval()
    program = torch.export.export(model, (torch.from_numpy(X),))
    module = relax.frontend.torch.from_exported_program(program)
    found = call(module, X)
    np.testing.assert_allclose(found.reshape(3, 3), model(torch.from_numpy(X)).detach().numpy(), rtol=1e-4, atol=1e-6)


def test_a_printed_graph_reads_back():
    @tvm.script.ir_module
    class Printed:
        @R.function
        def main(x: R.Tensor((1, 4, 8, 8), "float32")):
            ones, zeros = R.ones((4,), "float32"), R.zeros((4,), "float32")
            y = R.nn.batch_norm(x, ones, zeros, zeros, ones, axis=1, training=False)
            z = R.nn.max_pool2d(y[0], pool_size=[2, 2], strides=[2, 2])
            q = R.reshape(z, (1, 4, 4, 4))
            return R.nn.attention(q, q, q), R.nn.layer_norm(q, ones, zeros, axes=[-1])

    again = tvm.script.from_source(Printed.script())
    tvm.ir.assert_structural_equal(again, Printed)
    assert "R.weft.attention" in Printed.script()


@pytest.mark.slow
def test_tuning_models(tmp_path):
    database = tvm.meta_schedule.relax_integration.tune_relax(Chain, None, "llvm", str(tmp_path), 2)
    machine = relax.VirtualMachine(
        tvm.meta_schedule.relax_integration.compile_relax(database, Chain, "llvm"), tvm.cpu()
    )
    np.testing.assert_allclose(np.asarray(machine["main"](X, X)), EXPECTED, rtol=1e-5)
