"""The requirements of pad_einsum, broken one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from schedule_checks import refused
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te

MATMUL = """
func.func @f(%A: memref<6x7xf32>, %B: memref<7x5xf32>, %C: memref<6x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  tir.for %i in 6 { tir.for %j in 5 { tir.for %k in 7 {
    tir.block "C" iters(%vi: spatial<6>, %vj: spatial<5>, %vk: reduce<7>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<6x5xf32> }
      %a = memref.load %A[%vi, %vk] : memref<6x7xf32>
      %b = memref.load %B[%vk, %vj] : memref<7x5xf32>
      %p = arith.mulf %a, %b : f32
      %c = memref.load %C[%vi, %vj] : memref<6x5xf32>
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<6x5xf32>
    } } } }
  func.return
}"""


def schedule(*changes: tuple[str, str]) -> weft.Schedule:
    text = MATMUL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return weft.Schedule(weft.parse(text, "f.mlir"))


def pad(sch: weft.Schedule, *padding: int) -> None:
    sch.pad_einsum("C", list(padding or (4, 4, 4)))


def summed(element: object, *inputs: te.Tensor) -> weft.Schedule:
    """C[i] = sum over k of an element."""
    k = te.reduce_axis((0, 7), name="k")
    C = te.compute((6,), lambda i: te.sum(element(i, k), axis=k), name="C")  # type: ignore[operator]
    return weft.Schedule(te.create_func([*inputs, C]))


@pytest.mark.parametrize("padding", [[4, 4], [4, 4, 4, 4], [4, 0, 4], [4, 4, -1]])
def test_1_a_padding_for_each_iterator(padding: Sequence[int]) -> None:
    refused(lambda: schedule().pad_einsum("C", padding), 1, f"{padding} for 3 iterators")


def test_2_complete_or_a_reduction() -> None:
    sch = schedule()
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    refused(lambda: sch.pad_einsum("C_update", [4, 4, 4]), 2, 'block "C_update" has a reduce iterator')


def test_2_it_only_computes() -> None:
    divided = summed(lambda i, k: A[i] // B[k], A := vector("A", 6, "int32"), B := vector("B", 7, "int32"))
    refused(lambda: divided.pad_einsum("C", [4, 4]), 2, "is not defined for all operands")
    chosen = summed(lambda i, k: te.if_then_else(k < 3, B[k], 0.0), B := vector("B", 7))
    refused(lambda: chosen.pad_einsum("C", [4, 4]), 2, "it contains scf.if")


def vector(name: str, extent: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder((extent,), dtype, name=name)


def test_3_loops_of_its_own() -> None:
    split = schedule()
    split.split(split.get_loops("C")[0], [None, 2])
    refused(lambda: pad(split), 3, "iterator %vi is not bound to a single loop", "legal: pad before loops are split")
    pad(split, 1, 4, 4)
    shared = schedule()
    shared.decompose_reduction("C", shared.get_loops("C")[2])
    copied = schedule()
    copied.compute_at(copied.cache_read("C", 0, "local"), copied.get_loops("C")[1])
    refused(lambda: pad(copied), 3, "loop %i of iterator %vi holds more than the block")
    unrolled = schedule()
    unrolled.unroll(unrolled.get_loops("C")[1])
    refused(lambda: pad(unrolled), 3, "loop %j is unrolled")


def test_3_no_guards() -> None:
    text = MATMUL.replace("%C: memref<6x5xf32>)", "%D: memref<6x5xf32>)").replace(
        "  %c1 =", "  %C = memref.alloc() : memref<6x5xf32>\n  %c1 ="
    )
    guarded = weft.Schedule(
        weft.parse(text.replace("[%i, %j, %k] {", "[%i, %j, %k] where [%i + %j] < [8] {"), "f.mlir")
    )
    refused(lambda: pad(guarded), 3, "loop %i is used for more than iterator %vi")
    refused(lambda: pad(guarded, 1, 1, 4), 3, "a guard leaves instances out")


def test_4_indices() -> None:
    window = summed(lambda i, k: B[i + k], B := vector("B", 12))
    refused(lambda: window.pad_einsum("C", [4, 1]), 4, "is not %vi plus a constant")
    strided = summed(lambda i, k: B[2 * k], B := vector("B", 13))
    refused(lambda: strided.pad_einsum("C", [1, 4]), 4, "is not %vk plus a constant")
    strided.pad_einsum("C", [4, 1])
    square = te.placeholder((7, 7), name="S")
    diagonal = summed(lambda i, k: square[k, k], square)
    refused(lambda: diagonal.pad_einsum("C", [1, 4]), 4, "or %vk is in two")
    gathered = summed(lambda i, k: B[P[k]], B := vector("B", 7), P := vector("P", 7, "int32"))
    refused(lambda: gathered.pad_einsum("C", [4, 4]), 4, "index 0 is not affine", kind="not proved")


def test_4_results() -> None:
    sch = weft.Schedule(weft.parse(DOUBLED, "f.mlir"))
    refused(lambda: sch.pad_einsum("C", [4]), 4, "is not %v plus a constant")
    single = weft.Schedule(weft.parse(SINGLE, "f.mlir"))
    refused(lambda: single.pad_einsum("C", [4]), 4, "C is stored without iterator %v")


DOUBLED = """
func.func @f(%A: memref<6xf32>, %C: memref<12xf32>) {
  tir.for %i in 6 {
    tir.block "C" iters(%v: spatial<6>) = [%i] {
      %a = memref.load %A[%v] : memref<6xf32>
      %x = affine.apply affine_map<(d0) -> (d0 * 2)>(%v)
      memref.store %a, %C[%x] : memref<12xf32>
    } }
  func.return
}"""
SINGLE = """
func.func @f(%A: memref<1xf32>, %C: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  tir.for %i in 1 {
    tir.block "C" iters(%v: spatial<1>) = [%i] {
      %a = memref.load %A[%v] : memref<1xf32>
      memref.store %a, %C[%c0] : memref<1xf32>
    } }
  func.return
}"""


def test_5_neutral_steps() -> None:
    scaled = summed(lambda i, k: A[k] * B[i], A := vector("A", 7), B := vector("B", 6))
    refused(
        lambda: scaled.pad_einsum("C", [4, 4]),
        5,
        "no padding of A, B is known with which steps outside of %vk combine a neutral value",
        kind="not proved",
    )
    scaled.pad_einsum("C", [4, 1])
    whole = summed(lambda i, k: A[k] * B[i], A := vector("A", 7, "int32"), B := vector("B", 6, "int32"))
    whole.pad_einsum("C", [4, 4])  # of whole numbers, 0 times any is 0
    shifted = summed(lambda i, k: te.exp(A[k]), A := vector("A", 7))
    refused(lambda: shifted.pad_einsum("C", [1, 4]), 5, "no padding of A is known", kind="not proved")
    steps = summed(lambda i, k: B[i], B := vector("B", 6))
    refused(lambda: steps.pad_einsum("C", [1, 4]), 5, "no padding of nothing is known", kind="not proved")


def test_5_combiners() -> None:
    A = te.placeholder((6, 7), name="A")
    k = te.reduce_axis((0, 7), name="k")
    B, P = te.compute((6,), lambda i: te.argmax(A[i, k], axis=k), name="C")
    sch = weft.Schedule(te.create_func([A, B, P]))
    refused(lambda: sch.pad_einsum("C", [1, 4]), 5, "its update is not understood", kind="not proved")
    sch.pad_einsum("C", [4, 1])


def partly_written(extent: int) -> ModuleOp:
    """C[i] = sum over k of T[i + 2 * k', k] for a T of which some rows are written."""
    text = f"""
func.func @f(%A: memref<16x7xf32>, %C: memref<6x7xf32>) {{
  %T = memref.alloc() : memref<16x7xf32>
  tir.for %i in {extent} {{ tir.for %j in 7 {{
    tir.block "T" iters(%v: spatial<16>, %w: spatial<7>) = [%i, %j] {{
      %a = memref.load %A[%v, %w] : memref<16x7xf32>
      memref.store %a, %T[%v, %w] : memref<16x7xf32>
    }} }} }}
  tir.for %i in 6 {{ tir.for %j in 7 {{
    tir.block "C" iters(%v: spatial<6>, %w: spatial<7>) = [%i, %j] {{
      %x = affine.apply affine_map<(d0) -> (d0 * 2)>(%v)
      %t = memref.load %T[%x, %w] : memref<16x7xf32>
      memref.store %t, %C[%v, %w] : memref<6x7xf32>
    }} }} }}
  func.return
}}"""
    return weft.parse(text, "f.mlir")


def test_6_what_is_copied_was_written() -> None:
    sch = weft.Schedule(partly_written(12))
    error = refused(lambda: sch.pad_einsum("C", [1, 4]), 6, "it never writes T[")
    assert error.violation.counterexample["element"]["d0"] >= 12
    weft.Schedule(partly_written(16)).pad_einsum("C", [1, 4])


def test_a_refused_step_changes_nothing() -> None:
    sch = schedule()
    before = str(sch.mod)
    refused(lambda: pad(sch, 4, 0, 4), 1)
    assert str(sch.mod) == before
    assert "pad_einsum" not in str(sch.trace)
