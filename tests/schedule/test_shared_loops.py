"""Steps in loops that a block shares with others, beside conditions and beside code that is not in the module."""

from __future__ import annotations

import numpy as np
import pytest
from refusal import TEMPORARY, block, copy, function
from schedule_checks import check_schedule, refused
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.script import parse

HEAD = "from weft.script import tir as T\n\n@T.prim_func\n"

PART = f"""{HEAD}def f(X: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    A = T.alloc_buffer((128,), "float32")
    for i in range(8):
        for j in range(16):
            with T.block("A"):
                vi = T.axis.spatial(128, i * 16 + j)
                A[vi] = X[vi] * T.float32(2)
        for j in range(16):
            with T.block("B"):
                vi = T.axis.spatial(128, i * 16 + j)
                B[vi] = A[vi] + T.float32(1)
    for i in range(128):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = A[vi]
"""


def schedule(text: str) -> tuple[ModuleOp, weft.Schedule]:
    module = parse(text) if text.startswith(HEAD) else weft.parse(text, "f.mlir")
    return module, weft.Schedule(module)


@pytest.mark.parametrize("at", ["B", "C"])
def test_each_iteration_copies_what_it_writes(at: str) -> None:
    module, sch = schedule(PART)
    made = sch.cache_read(at, "A", "local")
    assert [sch.get(loop).extent for loop in sch.get_loops(made)] == [8, 16]
    check_schedule(module, sch)


def test_of_guarded_writers() -> None:
    guarded = PART.replace("(128", "(120").replace("[(128", "[(120")
    for name in ("A", "B"):
        line = f'            with T.block("{name}"):\n'
        guarded = guarded.replace(line, f"{line}                T.where(i * 16 + j < 120)\n")
    guarded = guarded.replace("for i in range(128)", "for i in range(120)")
    module, sch = schedule(guarded)
    sch.cache_read("C", "A", "local")
    check_schedule(module, sch)


def test_of_a_parameter_that_is_written_in_part() -> None:
    """C also reads elements that no iteration writes: the copy would not have them."""
    text = PART.replace('    A = T.alloc_buffer((128,), "float32")\n', "")
    text = text.replace("(X: T.Buffer", '(A: T.Buffer((256,), "float32"), X: T.Buffer')
    module, sch = schedule(text)
    sch.cache_read("C", "A", "local")
    check_schedule(module, sch)
    _, sch = schedule(text.replace("C[vi] = A[vi]", "C[vi] = A[vi + 64]"))
    refused(lambda: sch.cache_read("C", "A", "local"), 4, "may read of A what was there before", kind="not proved")


def test_writers_after_all_readers() -> None:
    text = function(block("R", copy("A", "C")), block("W", copy("C", "A")))
    module, sch = schedule(text)
    sch.cache_read("R", "A", "local")
    check_schedule(module, sch)
    together = function(
        block("R", copy("A", "C") + '\n} tir.block "W" iters(%v: spatial<12>) = [%i] {\n' + copy("C", "A"))
    )
    _, sch = schedule(together)
    refused(lambda: sch.cache_read("R", "A", "local"), 3, 'block "W" writes A while "R" reads it')


NESTED = f"""{HEAD}def f(X: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    A = T.alloc_buffer((64,), "float32")
    for i in range(4):
        with T.block("scope"):
            vo = T.axis.spatial(4, i)
            for j in range(16):
                with T.block("A"):
                    vi = T.axis.spatial(64, vo * 16 + j)
                    A[vi] = X[vi] * T.float32(2)
            for j in range(16):
                with T.block("C"):
                    vi = T.axis.spatial(64, vo * 16 + j)
                    C[vi] = A[vi]
"""


def test_blocks_that_read_their_own_stores() -> None:
    module, sch = schedule(NESTED)
    sch.cache_write("scope", "A", "local")
    check_schedule(module, sch)
    before = NESTED.replace("C[vi] = A[vi]", "C[vi] = A[(vi + 16) % 64]")
    _, sch = schedule(before)
    refused(lambda: sch.cache_write("scope", "A", "local"), 5, "it reads A as it was before")


CONDITION = f"""{HEAD}def f(X: T.Buffer((16,), "int32"), A: T.Buffer((16, 16)), C: T.Buffer((16, 16))):
    M = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("M"):
            vi = T.axis.spatial(16, i)
            M[vi] = X[vi] * 2 + 1
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(j < M[i])
            C[vi, vj] = A[vi, vj] + T.float32(1)
"""


def test_producers_of_conditions() -> None:
    module, sch = schedule(CONDITION)
    sch.compute_inline("M")
    assert "%M = memref.alloc" not in str(sch.mod)
    check_schedule(module, sch, run=False)
    x = np.arange(16, dtype="int32") % 5
    a, c = np.ones((16, 16), "float32"), np.zeros((16, 16), "float32")
    weft.build(sch.mod)["f"](x, a, c)
    np.testing.assert_array_equal(c, np.where(np.arange(16) < (x * 2 + 1)[:, None], 2, 0))


def test_conditions_after_a_store_to_an_input() -> None:
    """The block under the condition changes what the producer reads."""
    _, sch = schedule(CONDITION.replace("C[vi, vj] = A[vi, vj] + T.float32(1)", "X[vj] = X[vj] + 1"))
    with pytest.raises(weft.ScheduleError, match="requirement 4, nothing between the block and a reader writes"):
        sch.compute_inline("M")


GUARDED = f"""{HEAD}def f(A: T.Buffer((16, 8), "float32"), C: T.Buffer((15, 8), "float32")):
    B = T.alloc_buffer((16, 8), "float32")
    for i, j in T.grid(16, 8):
        with T.block("B"):
            T.where(i < 15)
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(15, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def test_producers_whose_guards_bound_their_domain() -> None:
    module, sch = schedule(GUARDED)
    sch.reverse_compute_inline("C")
    assert "spatial<15>" in str(sch.mod) and "%B = " not in str(sch.mod)
    check_schedule(module, sch)
    holes = GUARDED.replace("T.where(i < 15)", "T.where(1 <= i)").replace("B[vi, vj] + ", "B[vi + 1, vj] + ")
    _, sch = schedule(holes)
    refused(lambda: sch.reverse_compute_inline("C"), 5, "its loops or guards leave out instance (vi=0")


RESIZED = f"""{HEAD}def f(X: T.Buffer((40,), "float32"), Y: T.Buffer((80,), "float32")):
    for i in range(80):
        with T.block("Y"):
            vi = T.axis.spatial(80, i)
            Y[vi] = X[T.max(T.min(T.Cast("int32", T.floor((T.Cast("float32", vi) - 0.5) * T.float32(0.5))), 39), 0)]
"""


def test_computed_indices_are_evaluated() -> None:
    module, sch = schedule(RESIZED)
    sch.annotate_buffer_access("Y", 0, "read", lambda i: (i // 2 - 1, i // 2 + 1))
    assert "sizes [2]" in str(sch.mod)
    check_schedule(module, sch)
    _, sch = schedule(RESIZED)
    region = lambda i: (i // 2, i // 2 + 1)  # noqa: E731
    error = refused(lambda: sch.annotate_buffer_access("Y", 0, "read", region), 3, "an element of X that is outside")
    assert error.violation.counterexample["instance"]["vi"] % 2 == 0
    loaded = RESIZED.replace('T.Cast("float32", vi) - 0.5', "X[vi // 2] - 0.5")
    _, sch = schedule(loaded)
    told = "which elements of X it touches is not known"
    refused(lambda: sch.annotate_buffer_access("Y", 0, "read", region), 3, told, kind="not proved")


FRAGMENTS = f"""{HEAD}def f(A: T.Buffer((64, 64), "float16"), D: T.Buffer((64, 64), "float16")):
    F = T.alloc_buffer((64, 64), "float16", scope="wmma.matrix_a")
    S = T.alloc_buffer((64, 64), "float16")
    for i, j in T.grid(64, 64):
        with T.block("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj]
    for i, j in T.grid(4, 4):
        with T.block("F"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(S[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.writes(F[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.evaluate(T.CALL(F.data, 16, 16, 16, vi * 4 + vj, S.data, 64, "row_major", dtype="handle"))
    for i, j in T.grid(64, 64):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = A[vi, vj] + T.float16(1)
"""


def test_steps_beside_loads_of_fragments() -> None:
    """The load accesses its operands alone, in the regions that its block states."""
    _, sch = schedule(FRAGMENTS.replace("CALL", "tvm_load_matrix_sync"))
    i, j = sch.get_loops("F")
    sch.reorder(j, i)
    sch.cache_read("D", "A", "local")
    sch.compute_at("S", sch.get_loops("F")[0])
    sch.cache_write("F", "F", "local")
    sch.parallel(sch.get_loops("F")[0])


def test_regions_that_overlap_are_no_tiles() -> None:
    text = FRAGMENTS.replace("CALL", "tvm_load_matrix_sync")
    wider = text.replace("T.writes(F[vi * 16 : vi * 16 + 16, ", "T.writes(D[0 : 64, ").replace("CALL(F", "CALL(D")
    _, sch = schedule(wider.replace("tvm_load_matrix_sync(F.data", "tvm_load_matrix_sync(D.data"))
    with pytest.raises(weft.ScheduleError, match="requirement 2, the iterations are independent"):
        sch.parallel(sch.get_loops("F")[0])


def test_other_intrinsics_may_access_everything() -> None:
    _, sch = schedule(FRAGMENTS.replace("CALL", "tvm_unknown"))
    with pytest.raises(weft.ScheduleError, match=r"runs tir\.intrinsic, whose effects are not known"):
        sch.compute_at("S", sch.get_loops("F")[0])


EXTERNAL = f"""{HEAD}def f(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), "float32")
    E = T.alloc_buffer((16, 16), "float32")
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range(16):
        with T.block("E"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi, 0:16])
            T.writes(E[vi, 0:16])
            T.call_extern("int32", "g", E.data, B.data, vi)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = E[vi, vj] + T.float32(1)
"""


def test_steps_beside_external_code_whose_accesses_are_stated() -> None:
    _, sch = schedule(EXTERNAL)
    loop = sch.get_loops("E")[0]
    sch.compute_at("B", loop)
    sch.reverse_compute_at("C", loop)
    _, sch = schedule(EXTERNAL.replace("            T.writes(E[vi, 0:16])\n", ""))
    with pytest.raises(weft.ScheduleError, match='block "E" writes it too'):
        sch.compute_at("B", sch.get_loops("E")[0])


def test_ranges_of_fused_symbolic_loops() -> None:
    text = f"""{HEAD}def f(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (8, n, 32), "float32")
    Y = T.match_buffer(y, (8, n, 32), "float32")
    for i, k in T.grid(8, n * 32):
        with T.block("Y"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(n, k // 32)
            vk = T.axis.spatial(32, k % 32)
            Y[vi, vj, vk] = X[vi, vj, vk] + T.float32(1)
"""
    module, sch = schedule(text)
    sch.reverse_compute_at(sch.cache_write("Y", 0, "local"), sch.get_loops("Y")[0])
    check_schedule(module, sch)


def spread(binding: str) -> str:
    nest = f"""tir.for %i in 3 {{ tir.for %j in 4 {{
      tir.block "B" iters(%v: spatial<12>) = [{binding}] {{ {copy("A", "B")} }} }} }}"""
    return function(nest, block("C", copy("B", "C")), temporaries=TEMPORARY)


def test_ranges_with_steps() -> None:
    module, sch = schedule(spread("%j * 3 + %i"))
    sch.reverse_compute_at("C", sch.get_loops("B")[0])
    check_schedule(module, sch)


def test_ranges_that_iterations_share() -> None:
    _, sch = schedule(spread("(%j * 3 + %i * 5) mod 12"))
    told = "is not one dense range of iterator %v"
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]), 4, told, kind="not proved")
