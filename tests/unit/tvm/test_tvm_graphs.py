"""Functions of graphs in the spellings of TVM 0.27 and before: read, run, and compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import weft.tvm as tvm
from weft.support.errors import CompileError
from weft.tvm import relax
from weft.tvm.script import relax as R

HEAD = """from tvm.script import ir as I, relax as R, tirx as T
@I.ir_module(s_tir=True, check_well_formed=False)
class Module:
"""
X = np.arange(12, dtype="float32").reshape(3, 4) / 4 - 1
Y = np.cos(X)
IMAGE = np.sin(np.arange(2 * 4 * 6 * 6, dtype="float32")).reshape(2, 4, 6, 6)


def read(text: str) -> object:
    return tvm.script.from_source(HEAD + "".join(f"    {line}\n" for line in text.strip().splitlines()))


def call(text: str, *args: np.ndarray) -> object:
    machine = relax.VirtualMachine(relax.build(read(text), "llvm"), tvm.cpu())
    found = machine["main"](*args)
    return tuple(np.asarray(part) for part in found) if isinstance(found, tuple) else np.asarray(found)


def function(body: str, parameters: str = 'x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")') -> str:
    return f"@R.function\ndef main({parameters}):\n" + "".join(f"    {line}\n" for line in body.strip().splitlines())


PROGRAMS = {
    "a tuple": ("z = (R.add(x, y), x)\nw = z[0]\nreturn (w, z[1])", lambda x, y: (x + y, x)),
    "a tuple of tuples": (
        "z = R.tuple(x, R.tuple(y, R.multiply(x, y)))\nw = z[1][1]\nreturn (w, (x, y))",
        lambda x, y: (x * y, x, y),
    ),
    "types of tuples": (
        'z: R.Tuple(R.Tensor((3, 4), "float32"), R.Tensor((3, 4), "float32")) = (x, y)\nreturn R.add(z[0], z[1])',
        lambda x, y: x + y,
    ),
    "constants": ('return R.add(R.multiply(x, R.const(2.0, "float32")), R.const([1.0, 2.0, 3.0, 4.0], "float32"))',
                  lambda x, y: x * 2 + np.array([1, 2, 3, 4], "float32")),
    "an alias": ("z = x\nw: R.Tensor(dtype='float32', ndim=2) = R.add(z, y)\nreturn w", lambda x, y: x + y),
    "types without shapes": ("z: R.Tensor(dtype='float32') = R.add(x, y)\nw: R.Object = R.exp(z)\nreturn w",
                             lambda x, y: np.exp(x + y)),
    "shapes": ("s = R.shape([4, 3])\nreturn R.reshape(x, s)", lambda x, y: x.reshape(4, 3)),
    "match_cast": (
        'm = T.int64()\nk = T.int64(is_size_var=True)\nz = R.match_cast(x, R.Tensor((m, k), "float32"))\n'
        "return R.reshape(z, R.shape([k, m]))",
        lambda x, y: x.reshape(4, 3),
    ),
    "like": ('return R.add(R.add(R.ones_like(x), R.zeros_like(y)), R.full_like(x, R.const(3, "float32")))',
             lambda x, y: np.full((3, 4), 4, "float32")),
    "full": ('return R.add(R.full((3, 4), R.const(2, "float32"), dtype="float32"), R.ones((3, 4), "float32"))',
             lambda x, y: np.full((3, 4), 3, "float32")),
    "an assertion": ('R.assert_op(R.const(True, "bool"), format="never")\nreturn x', lambda x, y: x),
    "layout_transform": ("return R.layout_transform(x, index_map=lambda i, j: (j // 2, i, j % 2))",
                         lambda x, y: x.reshape(3, 2, 2).transpose(1, 0, 2)),
    "layout_transform with padding": (
        "return R.layout_transform(x, index_map=lambda i, j: (i // 2, j, i % 2), pad_value=5)",
        lambda x, y: np.pad(x, ((0, 1), (0, 0)), constant_values=5).reshape(2, 2, 4).transpose(0, 2, 1),
    ),
    "a function inside": (
        'def inner(a: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):\n'
        "    b = R.exp(a)\n    return b\nz = inner(x)\nreturn inner(R.add(z, y))",
        lambda x, y: np.exp(np.exp(x) + y),
    ),
    "a condition": (
        'c = R.greater(R.sum(x), R.const(0.0, "float32"))\nif c:\n    z = R.add(x, y)\nelse:\n'
        "    z = R.subtract(x, y)\nreturn R.multiply(z, y)",
        lambda x, y: (x + y) * y if x.sum() > 0 else (x - y) * y,
    ),
    "a condition that returns": (
        'c = R.less(R.sum(x), R.const(0.0, "float32"))\nif c:\n    return R.add(x, y)\nelse:\n    return R.exp(y)',
        lambda x, y: x + y if x.sum() < 0 else np.exp(y),
    ),
    "dataflow": (
        "with R.dataflow():\n    lv = R.add(x, y)\n    gv: R.Tensor((3, 4), 'float32') = R.nn.relu(lv)\n"
        "    R.output(gv)\nreturn gv",
        lambda x, y: np.maximum(x + y, 0),
    ),
    "take": ('return R.take(x, R.const([2, 0], "int64"), axis=0)', lambda x, y: x[[2, 0]]),
    "clip": ("return R.clip(x, R.prim_value(-0.5), 0.5)", lambda x, y: np.clip(x, -0.5, 0.5)),
    "concat": ("return R.concat((x, y), axis=1)", lambda x, y: np.concatenate([x, y], 1)),
    "split": ("z = R.split(x, 2, axis=1)\nreturn R.add(z[0], z[1])", lambda x, y: x[:, :2] + x[:, 2:]),
    "stack": ("return R.stack((x, y), axis=1)", lambda x, y: np.stack([x, y], 1)),
    "strided_slice": ("return R.strided_slice(x, axes=[0, 1], begin=[1, 0], end=[3, 4], strides=[1, 2])",
                      lambda x, y: x[1:3, 0:4:2]),
    "variance": ("return R.variance(x, axis=[1])", lambda x, y: x.var(1)),
    "std": ("return R.std(x, axis=[0], keepdims=True)", lambda x, y: x.std(0, keepdims=True)),
    "median": ("z = R.median(x, axis=1)\nreturn z", lambda x, y: (np.sort(x, 1)[:, 1], np.argsort(x, 1)[:, 1])),
    "argmax": ("return R.argmax(y, axis=1)", lambda x, y: y.argmax(1)),
    "topk": ("z = R.topk(y, k=2, axis=1)\nreturn z[0]", lambda x, y: -np.sort(-y, 1)[:, :2]),
    "argsort": ("return R.argsort(y, axis=1)", lambda x, y: y.argsort(1).astype("int32")),
    "one_hot": ('return R.one_hot(R.const([0, 2], "int64"), R.prim_value(1.0), R.prim_value(0.0), depth=3)',
                lambda x, y: np.eye(3, dtype="float32")[[0, 2]]),
    "arange": ('return R.arange(R.prim_value(1), R.prim_value(7), R.prim_value(2), dtype="float32")',
               lambda x, y: np.arange(1, 7, 2, dtype="float32")),
    "eye_like": ("return R.eye_like(x)", lambda x, y: np.eye(3, 4, dtype="float32")),
    "einsum": ('return R.einsum((x, y), "ij,kj->ik")', lambda x, y: x @ y.T),
    "masked_fill": ('return R.masked_fill(x, R.less(y, R.const(0.5, "float32")), R.const(9.0, "float32"))',
                    lambda x, y: np.where(y < 0.5, np.float32(9), x)),
    "collapse_sum_to": ("return R.collapse_sum_to(x, R.shape([3, 1]))", lambda x, y: x.sum(1, keepdims=True)),
    "repeat": ("return R.repeat(x, repeats=2)", lambda x, y: np.repeat(x, 2)),
    "gather_elements": ('return R.gather_elements(x, R.const([[0, 3], [1, 2], [-1, 0]], "int64"), axis=1)',
                        lambda x, y: np.take_along_axis(x, np.array([[0, 3], [1, 2], [3, 0]]), 1)),
    "slice_scatter": ('return R.slice_scatter(x, R.const([[7.0, 7.0, 7.0, 7.0]], "float32"), 1, 2, 1, axis=0)',
                      lambda x, y: np.where(np.arange(3)[:, None] == 1, np.float32(7), x)),
    "batch_norm": (
        'm = R.const([0.0, 1.0, 2.0, 3.0], "float32")\nv = R.const([1.0, 2.0, 3.0, 4.0], "float32")\n'
        "z = R.nn.batch_norm(x, v, m, m, v, axis=1, training=False)\nreturn z[0]",
        lambda x, y: (x - np.arange(4)) / np.sqrt(np.arange(1, 5) + 1e-5) * np.arange(1, 5) + np.arange(4),
    ),
    "layer_norm": (
        'w = R.const([1.0, 1.0, 1.0, 1.0], "float32")\nreturn R.nn.layer_norm(x, w, R.zeros_like(w), axes=[-1])',
        lambda x, y: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5),
    ),
    "gelu_tanh": ("return R.nn.gelu_tanh(x)",
                  lambda x, y: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    "leakyrelu": ("return R.nn.leakyrelu(x, alpha=0.1)", lambda x, y: np.where(x > 0, x, 0.1 * x)),
    "bucketize": ('return R.bucketize(x, R.const([-0.5, 0.5], "float32"))',
                  lambda x, y: np.searchsorted(np.array([-0.5, 0.5]), x)),
    "linear": ("return R.linear(x, y)", lambda x, y: x @ y.T),
    "quantize": (
        'return R.quantize(x, R.const(0.25, "float32"), R.const(1, "int8"), axis=0, out_dtype="int8")',
        lambda x, y: np.round(x / 0.25).astype("int8") + 1,
    ),
    "to_vdevice": ("return R.stop_lift_params(R.to_vdevice(x, 'cpu'))", lambda x, y: x),
    "nll_loss": ('return R.nn.nll_loss(x, R.const([0, 3, 1], "int64"))',
                 lambda x, y: -x[np.arange(3), [0, 3, 1]].mean()),
    "cross_entropy": ("return R.nn.cross_entropy_with_logits(x, y)", lambda x, y: -(x * y).sum() / 3),
}  # fmt: skip


def check(found: object, expected: object) -> None:
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)
    else:
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str):
    body, expected = PROGRAMS[name]
    check(call(function(body), X, Y), expected(X, Y))


IMAGES = {
    "max_pool2d": ("R.nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2], layout='NCHW', out_layout='NCHW')",
                   lambda x: x.reshape(2, 4, 3, 2, 3, 2).max((3, 5))),
    "max_pool2d without strides": ("R.nn.max_pool2d(x, [1, 1])", lambda x: x),
    "avg_pool2d": ("R.nn.avg_pool2d(x, (3, 3), (3, 3), (0, 0))", lambda x: x.reshape(2, 4, 2, 3, 2, 3).mean((3, 5))),
    "adaptive_avg_pool2d": ("R.nn.adaptive_avg_pool2d(x, (1, 1))", lambda x: x.mean((2, 3), keepdims=True)),
    "pad": ("R.nn.pad(x, (0, 0, 0, 0, 1, 1, 2, 0))", lambda x: np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 0)))),
    "pixel_shuffle": ("R.nn.pixel_shuffle(x, 2)",
                      lambda x: x.reshape(2, 1, 2, 2, 6, 6).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 12, 12)),
    "resize2d": ("R.image.resize2d(x, R.shape([12, 12]), layout='NCHW', method='nearest_neighbor', "
                 "coordinate_transformation_mode='asymmetric', rounding_method='floor')",
                 lambda x: x.repeat(2, 2).repeat(2, 3)),
    "batch_flatten": ("R.nn.batch_flatten(x)", lambda x: x.reshape(2, -1)),
    "conv2d": ("R.nn.conv2d(x, R.ones((3, 4, 1, 1), 'float32'), padding=[0, 0, 0, 0], out_layout='NCHW')",
               lambda x: x.sum(1, keepdims=True).repeat(3, 1)),
    "group_norm": ("R.nn.group_norm(x, R.ones((4,), 'float32'), R.zeros((4,), 'float32'), num_groups=2, "
                   "channel_axis=1, axes=[2, 3])",
                   lambda x: ((x.reshape(2, 2, -1) - x.reshape(2, 2, -1).mean(2, keepdims=True))
                              / np.sqrt(x.reshape(2, 2, -1).var(2, keepdims=True) + 1e-5)).reshape(x.shape)),
}  # fmt: skip


@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str):
    body, expected = IMAGES[name]
    check(call(function(f"return {body}", 'x: R.Tensor((2, 4, 6, 6), "float32")'), IMAGE), expected(IMAGE))


def test_the_module_in_itself():
    text = """
I.module_global_infos({"vdevice": [I.vdevice("llvm", 0)]})
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(ndim=2, dtype="float32")):
    n = T.int64()
    z = Module.twice(x)
    w = R.call_tir(Module.add_one, (z,), out_ty=R.Tensor((n, 4), "float32"))
    v = R.call_tir(cls.add_one, (w,), out_sinfo=R.Tensor((n, 4), "float32"))
    return (v, R.exp(y))
@R.function(private=True)
def twice(x: R.Tensor(("n", 4), "float32")):
    return R.add(x, x)
@T.prim_func(private=True, s_tir=True)
def add_one(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
"""
    check(call(text, X, Y), (2 * X + 2, np.exp(Y)))


def test_a_parameter_that_is_a_tuple():
    text = function("return R.add(t[0], t[1])", 't: R.Tuple(R.Tensor((3, 4), "float32"), R.Tensor((3, 4), "float32"))')
    check(call(text, X, Y), X + Y)


def test_functions_that_return():
    tvm.register_func("twice", lambda x: np.asarray(x) * 2, override=True)

    @tvm.register_func("bump", override=True)
    def bump(x):
        x += 1
        return x

    body = """
z = R.call_pure_packed("twice", x, sinfo_args=(R.Tensor((3, 4), "float32"),))
w = R.call_inplace_packed("bump", z, inplace_indices=[0], ty_args=[R.Tensor((3, 4), "float32")])
return (z, w)
"""
    check(call(function(body), X, Y), (2 * X, 2 * X + 1))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("R.print(x)\nreturn R.tuple()", "a function with effects returns a tensor"),
        ("return R.call_tir_inplace(cls.f, (x,), inplace_indices=[0], out_sinfo=x)", "functions of a graph are pure|f"),
        ("z = R.match_cast(x, R.Tensor((5, 4), 'float32'))\nreturn z", "match_cast: an extent is 3"),
        ("z = R.match_cast(x, R.Tensor((3, 4), 'int32'))\nreturn z", "match_cast: .* is no"),
        ("return R.nn.max_pool2d(R.reshape(x, (1, 1, 3, 4)), 2, out_layout='NCHW4c')", "out_layout='NCHW4c'"),
        ("def f(a):\n    return f(a)\nreturn f(x)", "f calls itself"),
        ("return R.shape_of(x)", "shapes are tuples"),
        ("if R.greater(R.sum(x), R.const(0.0, 'float32')):\n    z = x\nreturn x", "both branches of a condition"),
        ("return R.layout_transform(x, lambda i, j: (i // 2, j, i % 2))", "elements to which no element of x is moved"),
        ("return R.shape([1])", "a function of a graph returns tensors"),
    ],
)
def test_what_is_refused(body: str, message: str):
    with pytest.raises(CompileError, match=message):
        read(function(body))


def test_parameters_need_a_rank():
    with pytest.raises(CompileError, match="weft knows the rank"):
        read(function("return x", 'x: R.Tensor(dtype="float32")'))
    with pytest.raises(CompileError, match=r"parameter x is R\.Object"):
        read(function("return x", "x: R.Object"))


def test_types():
    assert R.Tensor((1, 2)).shape == (1, 2)
    assert R.Tuple(R.Tensor((1,)), R.Tensor((2,))).fields[1].shape == (2,)
    assert R.Object().what == "R.Object"
