"""The direction of each parameter is the program's, whatever schedules and lowering do to its body."""

from __future__ import annotations

import pytest
from xdsl.context import Context

import weft
from weft import te
from weft.dialects.low_signature import signature_of
from weft.passes.lower_tir_to_low import LowerTirToLowPass

ROWS = 12


def sum_of(index: str) -> weft.Schedule:
    a, k = te.placeholder((ROWS, 8), name="A"), te.reduce_axis((0, 8), name="k")
    column = {"plain": k, "wrapped": (k * 7) % 8}[index]
    c = te.compute((ROWS,), lambda i: te.sum(a[i, column], axis=k), name="C")
    return weft.Schedule(te.create_func([a, c], name="f"))


def tiled(sch: weft.Schedule) -> None:
    i, k = sch.get_loops("C")
    outer, inner = sch.split(i, [None, 5])
    sch.reorder(outer, k, inner)
    sch.decompose_reduction("C", k)


def factored(sch: weft.Schedule) -> None:
    sch.rfactor(sch.split(sch.get_loops("C")[1], [None, 4])[1], 0)


def cached(sch: weft.Schedule) -> None:
    sch.cache_write("C", 0, "local")


@pytest.mark.parametrize("index", ["plain", "wrapped"])
def test_schedules_keep_directions(index: str) -> None:
    wanted = f"f(A: float32[{ROWS}, 8], out C: float32[{ROWS}])"
    for default in (False, True):
        assert str(weft.build(sum_of(index).mod, default_schedule=default)["f"].signature) == wanted
    for steps in (tiled, factored, cached):
        sch = sum_of(index)
        steps(sch)
        assert str(weft.build(sch.mod)["f"].signature) == wanted, steps.__name__


def direction(body: str, types: str = "%C: memref<8xf32>", rest: str = "") -> str:
    module = weft.parse(f"func.func @f({types}) {{ %one = arith.constant 1.0 : f32 {body} func.return }} {rest}")
    LowerTirToLowPass("llvm", func=("f",)).apply(Context(), module)
    args = signature_of(next(f for f in module.ops if f.sym_name.data == "f")).args
    return {"read": "in", "write": "out", "readwrite": "inout"}[args[-1].access]


LOAD = "%c = memref.load %C[%v] : memref<8xf32>"
STORE = "memref.store {}, %C[%v] : memref<8xf32>"


def block(extent: int, *ops: str) -> str:
    inside = "\n".join(ops)
    return f'tir.for %i in {extent} {{ tir.block "B" iters(%v: spatial<{extent}>) = [%i] {{ {inside} }} }}'


ADD = (LOAD, "%d = arith.addf %c, %one : f32", STORE.format("%d"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (block(8, *ADD), "inout"),
        (block(8, STORE.format("%one")) + block(8, *ADD), "out"),
        (block(8, STORE.format("%one"), *ADD), "out"),
        (block(7, STORE.format("%one")) + block(8, *ADD), "inout"),  # the last element is the caller's
        (block(8, *ADD) + block(8, STORE.format("%one")), "inout"),
        (block(8, STORE.format("%one")), "out"),
        (block(0, STORE.format("%one")), "out"),  # lowering removes the loop
    ],
)
def test_what_is_written_before_it_is_read(body: str, expected: str) -> None:
    assert direction(body) == expected


def test_calls_are_followed() -> None:
    callee = "func.func @g(%C: memref<8xf32>) { %one = arith.constant 1.0 : f32 {} func.return }"
    call = "func.call @g(%C) : (memref<8xf32>) -> ()"
    fill = block(8, STORE.format("%one"))
    for inside, expected in ((fill, "out"), (fill + block(8, *ADD), "out"), (block(8, *ADD), "inout")):
        assert direction(call, rest=callee.replace("{}", inside)) == expected


def test_parameters_of_one_name_have_labels_of_their_own() -> None:
    text = """
    func.func @f(%x_1: memref<4xf32>, %x_2: memref<4xf32>) {
      tir.for %i in 4 { tir.block "a" iters(%v: spatial<4>) = [%i] {
        %a = memref.load %x_1[%v] : memref<4xf32>
        memref.store %a, %x_2[%v] : memref<4xf32>
      } }
      func.return
    }
    """
    assert [argument.name for argument in weft.build(text)["f"].signature.args] == ["x", "x_1"]
