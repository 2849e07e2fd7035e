"""blockize keeps the meaning; the blocks that it makes can be scheduled on."""

from __future__ import annotations

import pytest
from schedule_checks import check_schedule
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te


def matmul(n: int, m: int, length: int) -> ModuleOp:
    A, B = te.placeholder((n, length), name="A"), te.placeholder((m, length), name="B")
    k = te.reduce_axis((0, length), name="k")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="Y")
    C = te.compute((n, m), lambda i, j: te.max(Y[i, j], te.const(0, "float32")), name="C")
    return te.create_func([A, B, C])


def tiled(sch: weft.Schedule, *sizes: int) -> list[weft.schedule.schedule.LoopHandle]:
    """The loops of block Y, outer ones first."""
    pairs = [sch.split(loop, [None, size]) for loop, size in zip(sch.get_loops("Y"), sizes, strict=True)]
    loops = [pair[0] for pair in pairs] + [pair[1] for pair in pairs]
    sch.reorder(*loops)
    return loops


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("shape", [(8, 12, 16), (9, 10, 7)], ids=str)
def test_tiles(shape: tuple[int, int, int], at: int) -> None:
    """Each loop of the nest; where tiles do not divide the extents, guards go to where their loops are."""
    module = matmul(*shape)
    sch = weft.Schedule(module)
    loops = tiled(sch, 4, 4, 4)
    outer = sch.blockize(loops[at])
    assert sch.get(outer).label == "Y_o"
    assert [b.value.name_hint for b in sch.get_child_blocks(outer)] == ["y"]
    check_schedule(module, sch, run=at in (0, 3))


def test_the_tensorized_matrix_product_of_the_course() -> None:
    module = matmul(8, 8, 12)
    sch = weft.Schedule(module)
    i, j, k, ii, *_ = tiled(sch, 4, 4, 4)
    block = sch.blockize(ii)
    a, b = (sch.cache_read(block, at, f"global.{name}_reg") for at, name in enumerate("AB"))
    sch.compute_at(a, k)
    sch.compute_at(b, k)
    out = sch.cache_write(block, 0, "global.accumulator")
    sch.reverse_compute_at(out, j)
    init = sch.decompose_reduction(block, k)
    assert sch.get(init).label == "Y_o_init"
    sch.parallel(i)
    check_schedule(module, sch)


def test_blocks_in_blocks_in_blocks() -> None:
    module = matmul(8, 8, 8)
    sch = weft.Schedule(module)
    loops = tiled(sch, 4, 4, 4)
    sch.blockize(loops[5])
    sch.blockize(sch.get_loops("Y_o")[3])
    sch.unroll(sch.get_loops("Y")[0])
    check_schedule(module, sch)


def test_outer_loops_are_reordered_and_split_afterwards() -> None:
    """The updates of a tile are those of a reduction: outer loops of it change places."""
    module = matmul(8, 8, 16)
    sch = weft.Schedule(module)
    i, _, k, ii, *_ = tiled(sch, 4, 4, 4)
    sch.blockize(ii)
    k0, k1 = sch.split(k, [2, 2])
    sch.reorder(k1, k0, i)
    check_schedule(module, sch)


def test_dynamic_extents() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    module = te.create_func([A, te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="Y")])
    for at in (1, 2):
        sch = weft.Schedule(module)
        _, k_loop = sch.get_loops("Y")
        if at == 2:
            sch.split(k_loop, [None, 4])
        sch.blockize(sch.get_loops("Y")[at])
        check_schedule(module, sch)


def test_init_that_reads() -> None:
    module = weft.parse(
        """
        func.func @f(%A: memref<8x12xf32>, %W: memref<8xf32>, %B: memref<8xf32>) {
          tir.for %i in 8 { tir.for %k in 12 {
            tir.block "B" iters(%vi: spatial<8>, %vk: reduce<12>) = [%i, %k] {
              tir.init {
                %w = memref.load %W[%vi] : memref<8xf32>
                memref.store %w, %B[%vi] : memref<8xf32>
              }
              %a = memref.load %A[%vi, %vk] : memref<8x12xf32>
              %b = memref.load %B[%vi] : memref<8xf32>
              %s = arith.addf %b, %a : f32
              memref.store %s, %B[%vi] : memref<8xf32>
            } } }
          func.return
        }"""
    )
    sch = weft.Schedule(module)
    i, k = sch.get_loops("B")
    i0, i1 = sch.split(i, [None, 4])
    sch.reorder(i0, k, i1)
    sch.blockize(i1)
    sch.vectorize(i1)
    check_schedule(module, sch)
