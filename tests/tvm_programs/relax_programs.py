"""Models in Relax, in the style of TVM's tests."""

import numpy as np
from running import check, data, run_model

import tvm
from tvm import relax

PROGRAMS = {}
HEAD = """@I.ir_module
class Module:
    @R.function
    def main({parameters}):
{body}
"""
X, Y = data(3, 4), data(3, 4, seed=1)
IMAGE = data(1, 4, 8, 8)
TWO = 'x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")'
ONE = 'x: R.Tensor((1, 4, 8, 8), "float32")'


def program(body, expected, arrays=(X, Y), parameters=TWO):
    def case():
        lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
        mod = tvm.script.from_source(HEAD.format(parameters=parameters, body=lines))
        return check(run_model(mod, *arrays), expected)

    return case


PROGRAMS["add"] = program("z = R.add(x, y)\nreturn z", X + Y)
PROGRAMS["tuple"] = program("z = (R.add(x, y), R.subtract(x, y))\nw = z[0]\nreturn (w, z[1])", [X + Y, X - Y])
PROGRAMS["dataflow"] = program(
    "with R.dataflow():\n    a = R.multiply(x, y)\n    b = R.nn.relu(a)\n    R.output(b)\nreturn b",
    np.maximum(X * Y, 0),
)
PROGRAMS["constants"] = program('return R.add(R.multiply(x, R.const(2.0, "float32")), y)', X * 2 + Y)
PROGRAMS["matmul"] = program("return R.matmul(x, R.permute_dims(y))", X @ Y.T)
PROGRAMS["sum"] = program("return R.sum(x, axis=[1], keepdims=True)", X.sum(1, keepdims=True))
PROGRAMS["mean_variance"] = program("return (R.mean(x, axis=1), R.variance(x, axis=1))", [X.mean(1), X.var(1)])
PROGRAMS["softmax"] = program("return R.nn.softmax(x, axis=-1)", np.exp(X) / np.exp(X).sum(1, keepdims=True))
PROGRAMS["reshape"] = program("return R.reshape(x, R.shape([2, 6]))", X.reshape(2, 6))
PROGRAMS["concat_split"] = program(
    "z = R.concat((x, y), axis=0)\nw = R.split(z, 2, axis=0)\nreturn R.subtract(w[0], w[1])", X - Y
)
PROGRAMS["take"] = program('return R.take(x, R.const([2, 0], "int64"), axis=0)', X[[2, 0]])
PROGRAMS["strided_slice"] = program("return R.strided_slice(x, axes=[0, 1], begin=[0, 1], end=[2, 4])", X[0:2, 1:4])
PROGRAMS["where_clip"] = program(
    "return R.where(R.less(x, y), R.clip(x, -0.5, 0.5), y)", np.where(X < Y, np.clip(X, -0.5, 0.5), Y)
)
PROGRAMS["like"] = program(
    'return R.add(R.ones_like(x), R.full_like(y, R.const(2, "float32")))', np.full((3, 4), 3, "float32")
)
PROGRAMS["max_pool2d"] = program(
    "return R.nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2])",
    IMAGE.reshape(1, 4, 4, 2, 4, 2).max((3, 5)), (IMAGE,), ONE,
)  # fmt: skip
PROGRAMS["conv2d"] = program(
    'return R.nn.conv2d(x, R.ones((2, 4, 1, 1), "float32"), padding=[0, 0, 0, 0])',
    IMAGE.sum(1, keepdims=True).repeat(2, 1), (IMAGE,), ONE,
)  # fmt: skip
PROGRAMS["layer_norm"] = program(
    'w = R.const([1.0, 1.0, 1.0, 1.0], "float32")\nreturn R.nn.layer_norm(x, w, R.zeros_like(w), axes=[-1])',
    (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5),
)
PROGRAMS["condition"] = program(
    'c = R.greater(R.sum(x), R.const(0.0, "float32"))\nif c:\n    z = R.add(x, y)\n'
    "else:\n    z = R.subtract(x, y)\nreturn z",
    X + Y if X.sum() > 0 else X - Y,
)


def call_tir():
    mod = tvm.script.from_source("""@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def add_one(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (n, 4), "float32")
        for i, j in T.grid(n, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.add_one, (x,), out_ty=R.Tensor((n, 4), "float32"))
        return y
""")
    return check(run_model(mod, X), X + 1)


PROGRAMS["call_tir"] = call_tir


def block_builder():
    bb = relax.BlockBuilder()
    made = tvm.script.from_source(HEAD.format(parameters=TWO, body="        return x\n"))
    x, y = (relax.Var(name, made["main"].params[0].ty) for name in "xy")
    with bb.function("main", [x, y]):
        with bb.dataflow():
            z = bb.emit(relax.op.add(x, y))
            out = bb.emit_output(relax.op.nn.relu(z))
        bb.emit_func_output(out)
    return check(run_model(bb.get(), X, Y), np.maximum(X + Y, 0))


PROGRAMS["block_builder"] = block_builder
