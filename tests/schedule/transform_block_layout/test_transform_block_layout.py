"""transform_block_layout: its requirements, what refutes them, and what it does to programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from refusal import TEMPORARY, TURNED, block, copy, function
from schedule_checks import check_schedule, refused
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.analysis.block_scopes import loops_around
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import IterKind


def matmul(n: int = 6, m: int = 10, length: int = 8) -> ModuleOp:
    A, B = te.placeholder((n, length), name="A"), te.placeholder((length, m), name="B")
    k = te.reduce_axis((0, length), name="k")
    return te.create_func([A, B, te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")])


def schedule(text: str) -> weft.Schedule:
    return weft.Schedule(weft.parse(text, "f.mlir"))


COPY = function(block("C", copy("A", "C")))


@pytest.mark.parametrize(
    "index_map",
    [
        lambda i, j, k: (k, j, i),
        lambda i, j, k: (i // 2, j // 5, k // 4, i % 2, j % 5, k % 4),
        lambda i, j, k: (i * 10 + j, k),
        lambda i, j, k: (j // 5, k % 4, i * 5 + j % 5, k // 4),
        lambda i, j, k: (5 - i, 9 - j, 7 - k),
        lambda i, j, k: ((i * 10 + j) // 15, k, (i * 10 + j) % 15),
        lambda i, j, k: (i, (j + i) % 10, (k + 3) % 8, 0),
    ],
    ids=["permuted", "tiled", "joined", "mixed", "reversed", "joined and split", "rotated"],
)
def test_of_a_reduction(index_map: Callable[..., object]) -> None:
    module = matmul()
    sch = weft.Schedule(module)
    c = sch.get_block("C")
    loops = sch.transform_block_layout(c, index_map)
    op = sch.get(c)
    assert isinstance(op, BlockOp)
    assert [sch.get(loop) for loop in loops] == loops_around(op)
    sch.parallel(next(loop for loop, kind in zip(loops, op.kinds, strict=True) if kind is IterKind.SPATIAL))
    check_schedule(module, sch)


def test_over_dynamic_extents_that_stay_whole() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, 6, m), name="A")
    module = te.create_func([A, te.compute((n, 6, m), lambda i, j, k: A[i, j, k] + 1, name="C")])
    sch = weft.Schedule(module)
    sch.transform_block_layout("C", lambda i, j, k: (k, j // 3, i, j % 3))
    check_schedule(module, sch)
    sch.transform_block_layout("C", lambda k, jo, i, ji: (jo, ji + i * 3, k))
    check_schedule(module, sch)


def test_under_a_loop_of_the_consumer_and_in_a_block() -> None:
    A = te.placeholder((8, 12), name="A")
    T = te.compute((8, 12), lambda i, j: A[i, j] * 2, name="T")
    module = te.create_func([A, te.compute((8, 12), lambda i, j: T[i, j] + 1, name="C")])
    sch = weft.Schedule(module)
    i, _ = sch.get_loops("C")
    _, i1 = sch.split(i, [4, 2])
    sch.blockize(i1)
    sch.transform_block_layout("C_o", lambda i: (i // 2, i % 2))
    sch.transform_block_layout("C", lambda i, j: (j // 4, i, j % 4))
    check_schedule(module, sch)


def test_iterators_of_one_iteration_keep_their_kind() -> None:
    module = matmul(n=1, m=10, length=1)
    sch = weft.Schedule(module)
    c = sch.get_block("C")
    sch.transform_block_layout(c, lambda i, j, k: (k, j // 5, i, j % 5))
    op = sch.get(c)
    assert isinstance(op, BlockOp)
    assert [kind.value for kind in op.kinds] == ["reduce", "spatial", "spatial", "spatial"]
    check_schedule(module, sch)
    sch.transform_block_layout(c, lambda k, jo, i, ji: jo * 5 + ji + k + i)
    check_schedule(module, sch)


def test_stated_regions_follow() -> None:
    text = COPY.replace("%a = memref.load", "tir.reads %A[%v] : memref<12xf32>\n%a = memref.load")
    sch = schedule(text)
    sch.transform_block_layout("C", lambda i: (i // 4, i % 4))
    assert "tir.reads %A[%v_o * 4 + %v_i] : memref<12xf32>" in str(sch.mod)
    check_schedule(weft.parse(text), sch)


def test_layout_and_iterators_together() -> None:
    """A packed buffer whose producer runs in its order: all indices are plain iterators again."""
    A = te.placeholder((8, 32), name="A")
    T = te.compute((8, 32), lambda i, j: A[i, j] * 2, name="T")
    module = te.create_func([A, te.compute((8, 32), lambda i, j: T[i, j] + 1, name="C")])
    sch = weft.Schedule(module)
    pack = lambda i, j: (j // 16, i, j % 16)  # noqa: E731
    sch.transform_layout("T", "T", pack)
    sch.transform_block_layout("T", pack)
    assert ", %T[%vj_o, %vi, %vj_i] : memref<2x8x16xf32>" in str(sch.mod)
    check_schedule(module, sch)


def test_1_any_order() -> None:
    scan = function(block("C", "%x = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%v)\n" + copy("C", "C", at="%x")))
    refused(lambda: schedule(scan).transform_block_layout("C", lambda i: (11 - i,)), 1, "reads C, which it writes")
    shared = function(
        block("C", "%x = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%v)\n" + copy("A", "C", to="%x"))
    )
    refused(
        lambda: schedule(shared).transform_block_layout("C", lambda i: (11 - i,)),
        1,
        "(v=0) and (v=1) store to the same",
    )


def test_1_a_combiner_that_depends_on_the_order() -> None:
    text = """
    func.func @f(%A: memref<12xf32>, %C: memref<1xf32>) {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      tir.for %k in 12 { tir.block "C" iters(%vk: reduce<12>) = [%k] {
        tir.init { memref.store %zero, %C[%c0] : memref<1xf32> }
        %a = memref.load %A[%vk] : memref<12xf32>
        %c = memref.load %C[%c0] : memref<1xf32>
        %s = arith.subf %a, %c : f32
        memref.store %s, %C[%c0] : memref<1xf32>
      } }
      func.return
    }"""
    refused(
        lambda: schedule(text).transform_block_layout("C", lambda k: (11 - k,)),
        1,
        "its combiner is not known to be commutative",
        kind="not proved",
    )


def test_2_a_nest_of_its_own() -> None:
    sch = weft.Schedule(matmul())
    i, _, k = sch.get_loops("C")
    sch.parallel(i)
    refused(lambda: sch.transform_block_layout("C", lambda i, j, k: (j, i, k)), 2, "loop %i is parallel")
    sch.split(k, [None, 4])
    refused(
        lambda: sch.transform_block_layout("C", lambda i, j, k: (j, i, k)),
        2,
        "iterator %vk is not bound to a single loop",
    )
    guarded = weft.Schedule(matmul())
    guarded.split(guarded.get_loops("C")[1], [None, 4])
    refused(lambda: guarded.transform_block_layout("C", lambda i, j, k: (j, i, k)), 2, 'block "C" has a guard')
    both = function(
        block("B", copy("A", "B"))[:-1]
        + 'tir.block "C" iters(%w: spatial<12>) = [%i] {\n'
        + copy("A", "C", at="%w", to="%w").replace("%a", "%b")
        + "\n} }",
        temporaries=TEMPORARY,
    )
    refused(
        lambda: schedule(both).transform_block_layout("B", lambda i: (11 - i,)),
        2,
        "loop %i of iterator %v holds more than the block",
    )
    unit = weft.Schedule(weft.parse(COPY))
    (i,) = unit.get_loops("C")
    unit.add_unit_loop("C")
    refused(
        lambda: unit.transform_block_layout("C", lambda i: (11 - i,)), 2, 'no iterator of block "C" is bound to loop'
    )


def test_2_parts_of_a_block() -> None:
    sch = schedule(COPY)
    sch.loop_partition(sch.get_loops("C")[0], [3, None])
    refused(lambda: sch.transform_block_layout("C_i0", lambda i: (11 - i,)), 2, "one of several parts of a block")


def test_3_to_a_box_and_kinds() -> None:
    error = refused(lambda: schedule(COPY).transform_block_layout("C", lambda i: (i - 1,)), 3, "it takes (v=0) below 0")
    assert error.violation.counterexample == {"instance": {"v": 0}}
    refused(
        lambda: weft.Schedule(matmul()).transform_block_layout("C", lambda i, j, k: (i, j * 8 + k)),
        3,
        "new iterator 1 would be made of spatial and reduce iterators",
    )


GUARDED = function(
    """tir.for %i in 12 { tir.for %u in 1 {
      tir.block "C" iters(%v: spatial<12>, %x: spatial<1>) = [%i, %u] {
        tir.for %j in 4 { tir.block "inner" iters(%w: spatial<4>) = [%j] where [%x * 4 + %j] < [3] {
          %a = memref.load %A[%v] : memref<12xf32>
          memref.store %a, %C[%v, %w] : memref<12x3xf32>
        } } } } }""",
    parameters="%A: memref<12xf32>, %C: memref<12x3xf32>",
)


def test_3_guards_inside_are_on_iterators_that_stay() -> None:
    sch = schedule(GUARDED)
    refused(lambda: sch.transform_block_layout("C", lambda v, x: v), 3, "a guard inside is on %x, which goes away")
    sch.transform_block_layout("C", lambda v, x: (x, v))
    assert "where [%x * 4 + %j] < [3]" in str(sch.mod)
    check_schedule(weft.parse(GUARDED), sch)


def test_4_no_two_instances_become_one() -> None:
    error = refused(
        lambda: schedule(COPY).transform_block_layout("C", lambda i: (i // 2,)),
        4,
        "(v=0) and (v=1) would both run as [0]",
    )
    assert error.violation.counterexample == {"first instance": {"v": 0}, "second instance": {"v": 1}}


def test_5_every_instance_is_one_of_the_old() -> None:
    error = refused(
        lambda: schedule(COPY).transform_block_layout("C", lambda i: (i // 5, i % 5)),
        5,
        "new instance [2, 2] would be none of the old",
        "legal: a bijection",
    )
    assert error.violation.counterexample == {"index": {"d0": 2, "d1": 2}}


def test_5_not_known_for_all_extents() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    sch = weft.Schedule(te.create_func([A, te.compute((n,), lambda i: A[i] + 1, name="C")]))
    refused(lambda: sch.transform_block_layout("C", lambda i: (i // 4, i % 4)), 5, "would be none of the old")


def test_6_the_init_does_not_use_reduce_iterators() -> None:
    text = """
    func.func @f(%A: memref<12xf32>, %S: memref<12xf32>, %C: memref<1xf32>) {
      %c0 = arith.constant 0 : index
      tir.for %k in 12 { tir.block "C" iters(%vk: reduce<12>) = [%k] {
        tir.init { %s = memref.load %S[%vk] : memref<12xf32> memref.store %s, %C[%c0] : memref<1xf32> }
        %a = memref.load %A[%vk] : memref<12xf32>
        %c = memref.load %C[%c0] : memref<1xf32>
        %t = arith.addf %a, %c : f32
        memref.store %t, %C[%c0] : memref<1xf32>
      } }
      func.return
    }"""
    refused(lambda: schedule(text).transform_block_layout("C", lambda k: (11 - k,)), 6, "memref.load uses %vk")


def test_handles_of_the_old_loops_are_used_up() -> None:
    sch = schedule(function(block("C", TURNED + copy("A", "C", at="%x"))))
    (i,) = sch.get_loops("C")
    sch.transform_block_layout("C", lambda i: (i // 4, i % 4))
    with pytest.raises(weft.CompileError, match="expired handle %i"):
        sch.parallel(i)
