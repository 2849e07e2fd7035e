"""From a tensor expression to script, through schedule steps that print their results, and a custom pass.

python examples/script_and_schedule.py
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import weft
from weft import te


def product_of_matrices() -> weft.Library:
    """An elementwise product over symbolic shapes; its code, and its loops."""
    m = te.var("m")
    n = te.var("n")
    a = te.placeholder((m, n), name="A")
    b = te.placeholder((m, n), name="B")
    c = te.compute((m, n), lambda i, j: a[i, j] * b[i, j], name="C")
    s = te.create_schedule([c.op])
    tgt = weft.Target("llvm")
    mult = weft.build(s, [a, b, c], target=tgt, name="mult")
    print(mult.get_source())
    print(weft.lower(s, [a, b, c], simple_mode=True))
    return mult


def add_one() -> ModuleOp:
    """B = A + 1 over eight elements."""
    A = te.placeholder((8,), dtype="float32", name="A")
    B = te.compute((8,), lambda *i: A(*i) + 1.0, name="B")
    return te.create_prim_func([A, B], name="main")


def scheduled() -> dict[str, str]:
    """The script after each step."""
    sch = weft.Schedule(add_one())
    steps = {"plain": str(sch.script())}
    block_b = sch.get_block("B")
    (i,) = sch.get_loops(block_b)
    i_0, i_1, i_2 = sch.split(i, factors=[2, 2, 2])
    steps["split"] = str(sch.script())
    sch.reorder(i_0, i_2, i_1)
    steps["reorder"] = str(sch.script())
    sch.bind(i_0, "blockIdx.x")
    sch.bind(i_2, "threadIdx.x")
    steps["bind"] = str(sch.script())
    return steps


@dataclass(frozen=True)
class DoubleSums(ModulePass):
    """A custom pass that adds every sum to itself. (It changes results, so that its effect is visible.)"""

    name = "double-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for add in [inner for inner in op.walk() if isinstance(inner, arith.AddfOp)]:
            twice = arith.AddfOp(add.result, add.result)
            add.result.replace_uses_with_if(twice.result, lambda use, twice=twice: use.operation is not twice)
            add.parent.insert_op_after(twice, add)


def with_a_pass() -> np.ndarray:
    """The pass runs after buffers are flattened, the position of a custom vectorisation."""
    lib = weft.build(add_one(), target="llvm", passes={"after:flatten": DoubleSums()})
    x = np.arange(8, dtype=np.float32)
    out = np.empty_like(x)
    lib["main"](x, out)
    return out


def main() -> None:
    x, y = np.random.default_rng(0).random((2, 5, 7), dtype=np.float32)
    z = np.empty_like(x)
    product_of_matrices()["mult"](x, y, z)
    np.testing.assert_array_equal(z, x * y)
    for name, text in scheduled().items():
        print(f"=== {name}\n{text}")
    np.testing.assert_array_equal(with_a_pass(), (np.arange(8) + 1) * 2)
    print("results agree with NumPy")


if __name__ == "__main__":
    main()
