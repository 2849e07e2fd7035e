"""Moves keep reads before the writes that follow them: write-after-read and write-after-write count on the whole way,
an init starts each element once and finds there what it would find in place."""

from __future__ import annotations

import pytest
from schedule_checks import refused
from xdsl.context import Context

import weft
from weft.interp.compare import compare_modules
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.script import parse


def schedule(parameters: dict[str, tuple[int, ...]], body: str, temporary: tuple[int, ...] = ()) -> weft.Schedule:
    """A schedule of nests, over parameters and perhaps a temporary X."""
    head = ", ".join(f'{name}: T.Buffer({shape}, "float32")' for name, shape in parameters.items())
    lines = [f'X = T.alloc_buffer({temporary}, "float32")'] * bool(temporary) + body.strip().splitlines()
    text = "from weft.script import tir as T\n@T.prim_func\ndef f(" + head + "):\n"
    return weft.Schedule(parse(text + "".join(f"    {line}\n" for line in lines)))


def nest(label: str, statement: str) -> str:
    """A loop of 8 around a block with an iterator `vi`."""
    lines = (f"with T.block('{label}'):", "    vi = T.axis.spatial(8, i)", f"    {statement}")
    return "for i in range(8):\n" + "".join(f"    {line}\n" for line in lines)


def inside(loop: str, *nests: str) -> str:
    """A loop around nests."""
    return f"{loop}\n" + "".join(f"    {line}\n" for text in nests for line in text.splitlines())


def step(label: str, statement: str, *, extent: int = 5, where: str = "", at: str = "t") -> str:
    """A nest of 8 in a loop over time: the block's first iterator is bound to `at`, over the time loop %t."""
    guard = f"        T.where({where})\n" if where else ""
    return (
        f"for i in range(8):\n    with T.block('{label}'):\n{guard}        vt = T.axis.spatial({extent}, {at})\n"
        f"        v = T.axis.spatial(8, i)\n        {statement}\n"
    )


REDUCTION = """
for i in range(8):
    for k in range(6):
        with T.block("Y"):
            v = T.axis.spatial(8, i)
            r = T.axis.reduce(6, k)
            with T.init():
                {init}
            {update}
"""


def test_a_reader_stays_before_a_later_writer() -> None:
    sch = schedule({"A": (8,), "O": (8,)}, nest("B", "O[vi] = A[vi] + 1.0") + nest("D", "A[vi] = 3.0"))
    refused(lambda: sch.reverse_compute_at("B", sch.get_loops("D")[0]), 3, "no block writes what it reads before it")


def test_a_consumer_stays_before_a_later_writer_of_another_input() -> None:
    body = nest("P", "X[vi] = A[vi]") + nest("B", "O[vi] = X[vi] + A[vi]") + nest("D", "A[vi] = X[vi]")
    sch = schedule({"A": (8,), "O": (8,)}, body, (8,))
    refused(
        lambda: sch.reverse_compute_at("B", sch.get_loops("D")[0]),
        3,
        "all that write what it reads run before the loop",
    )


def test_a_later_writer_in_the_nest_is_passed() -> None:
    """Two writers of X are around the reader: the first is its producer, the second overwrites what it reads."""
    body = inside(
        "for t in range(5):",
        nest("P", "X[vi] = A[vi] + 1.0"),
        step("B", "O[vt, v] = X[v]"),
        nest("D", "X[vi] = X[vi] * 2.0"),
    )
    sch = schedule({"A": (8,), "O": (5, 8), "X": (8,)}, body)
    with pytest.raises(weft.ScheduleError):
        sch.reverse_compute_at("B", sch.get_loops("D")[1])


SHIFTED = inside(
    "for t in range(5):",
    step("P", "X[vt, v] = A[vt, v] + 1.0"),
    step("C", "O[vt, v] = X[vt, v]", extent=4, where="t >= 1", at="t - 1"),
    step("E", "Q[vt, v] = O[vt, v]", extent=4, where="t < 4"),
)
SHIFTED_SHAPES = {"A": (5, 8), "O": (4, 8), "Q": (4, 8)}


def test_a_consumer_that_changes_its_iteration_of_a_loop_around_passes_all_of_it() -> None:
    sch = schedule(SHIFTED_SHAPES, SHIFTED, (5, 8))
    refused(
        lambda: sch.reverse_compute_at("C", sch.get_loops("P")[1]),
        7,
        'of block "C" writes O[0, 0]; iteration (t=0, i=0) of block "E" reads O[0, 0] and would change places',
    )
    refused(
        lambda: sch.reverse_compute_at("E", sch.get_loops("C")[1]),
        5,
        'iteration (t=0, i=0) of block "E" reads O[0, 0]; iteration (t=1, i=0) of block "C" writes O[0, 0]',
    )


def test_a_producer_that_changes_its_iteration_stays_after_earlier_readers() -> None:
    sch = schedule(SHIFTED_SHAPES, SHIFTED.replace("= X[", "= A["), (5, 8))
    refused(
        lambda: sch.compute_at("C", sch.get_loops("E")[1]),
        4,
        'iteration (t=0, i=0) of block "E" reads O[0, 0]; iteration (t=1, i=0) of block "C" writes O[0, 0]',
    )


def test_recomputed_instances_read_what_nobody_changes_meanwhile() -> None:
    """The producer runs again in the next iteration of %t, where it finds its input as it was, or does not."""
    consumer = step("C", "O[vt, v] = X[vt, v]", extent=4, where="t >= 1", at="t - 1")
    stable = inside("for t in range(5):", step("P", "X[vt, v] = A[vt, v] + 1.0"), consumer)
    sch = schedule({"A": (5, 8), "O": (4, 8)}, stable, (5, 8))
    before = sch.mod.clone()
    sch.compute_at("P", sch.get_loops("C")[1])
    assert compare_modules(before, sch.mod) is None
    changed = stable + "".join(f"    {line}\n" for line in step("D", "A[vt, v] = 0.0").splitlines())
    sch = schedule({"A": (5, 8), "O": (4, 8)}, changed, (5, 8))
    refused(
        lambda: sch.compute_at("P", sch.get_loops("C")[1]), 6, 'of block "D" writes A[0, 0] and would change places'
    )


@pytest.mark.parametrize(
    ("init", "update", "after", "message"),
    [
        ("O[v] = W[v]", "O[v] = O[v] + A[v, r]", "W[vi + 1] = 0.0", 'block "D" writes W[1]'),
        ("O[v // 2] = 0.0", "O[v // 2] = O[v // 2] + A[v, r]", "", "(v=0) and (v=1) store to the same element of O"),
    ],
)
def test_decompose_reduction_finds_what_the_init_would_find(init: str, update: str, after: str, message: str) -> None:
    body = REDUCTION.format(init=init, update=update)
    if after:
        body += f"    with T.block('D'):\n        vi = T.axis.spatial(8, i)\n        {after}\n"
    sch = schedule({"A": (8, 6), "W": (9,), "O": (8,)}, body)
    refused(lambda: sch.decompose_reduction("Y", sch.get_loops("Y")[0]), 4, message)
    before = sch.mod.clone()
    sch.decompose_reduction("Y", sch.get_loops("Y")[1])  # below the loop over the elements, nothing changes places
    assert compare_modules(before, sch.mod) is None


RESTARTED = REDUCTION.format(init="O[v // 2] = 0.0", update="O[v // 2] = O[v // 2] + A[v, r]")


def test_an_element_that_is_started_again_is_no_reduction_of_threads_or_tiles() -> None:
    sch = schedule({"A": (8, 6), "O": (4,)}, RESTARTED)
    message = "(v=0) and (v=1) store to the same element of O"
    refused(lambda: sch.blockize(sch.get_loops("Y")[0]), 5, message)
    refused(lambda: sch.bind(sch.get_loops("Y")[0], "threadIdx.x"), 3, "writes O[0]")


def test_inits_of_elements_that_are_started_again_stay_in_place() -> None:
    sch = schedule({"A": (8, 6), "O": (4,)}, RESTARTED)
    before = sch.mod.clone()
    sch.fuse(*sch.get_loops("Y"))
    low = sch.mod.clone()
    LowerTirToLowPass("llvm").apply(Context(), low)
    assert compare_modules(before, low) is None


@pytest.mark.parametrize(
    ("init", "update"),
    [("O[v] = 0.0", "O[v] = O[v] + A[v, r] + O[T.min(v + 1, 7)]"), ("O[v] = O[v] * 2.0", "O[v] = O[v] + A[v, r]")],
)
def test_a_copy_of_the_output_has_no_earlier_values(init: str, update: str) -> None:
    sch = schedule({"A": (8, 6), "O": (8,)}, REDUCTION.format(init=init, update=update))
    refused(lambda: sch.cache_write("Y", 0, "local"), 5, "it reads O as it was before")
    with pytest.raises(weft.ScheduleError):
        sch.reindex("Y", ("write", 0))


def test_stores_at_the_place_of_a_minimum_meet() -> None:
    """Minima are one of their sides: the counterexample is one of the program."""
    body = nest("D", "O[T.min(vi + 1, 7)] = A[vi]") + nest("E", "Q[vi] = O[vi]")
    sch = schedule({"A": (8,), "O": (8,), "Q": (8,)}, body)
    refused(lambda: sch.compute_at("D", sch.get_loops("E")[0]), 2, "(vi=6) and (vi=7) store to the same element of O")


NESTED = """
for io in range(4):
    with T.block("outer"):
        vo = T.axis.spatial(4, io)
        for i in range(5):
            with T.block("P"):
                v = T.axis.spatial(11, vo * 2 + i)
                X[v] = A[v]
        for i in range(2):
            with T.block("C"):
                v = T.axis.spatial(8, vo * 2 + i)
                O[v] = X[v] + X[v + 3]
"""


def test_moves_in_a_block_stay_in_its_iteration() -> None:
    """What the consumer needs of a later iteration of the loop around the enclosing block is computed in its own."""
    sch = schedule({"A": (12,), "O": (8,)}, NESTED, (12,))
    refused(lambda: sch.reverse_compute_at("C", sch.get_loops("P")[0]), 5, "would read an element of X")


SECOND_NAME = """
func.func @f(%A: memref<8xf32>, %O: memref<8xf32>) {
  %two = arith.constant 2.0 : f32
  %B = "memref.cast"(%A) : (memref<8xf32>) -> memref<?xf32>
  tir.for %i in 8 { tir.block "R" iters(%v: spatial<8>) = [%i] {
    %a = memref.load %A[%v] : memref<8xf32>
    memref.store %a, %O[%v] : memref<8xf32> } }
  tir.for %j in 8 { tir.block "W" iters(%v: spatial<8>) = [%j] {
    %x = affine.apply affine_map<(d0) -> (7 - d0)>(%v)
    memref.store %two, %B[%x] : memref<?xf32> } }
  func.return
}"""


def test_a_second_name_is_the_same_memory() -> None:
    sch = weft.Schedule(weft.parse(SECOND_NAME, "f.mlir"))
    loops = [*sch.get_loops("R"), *sch.get_loops("W")]
    refused(lambda: sch.merge(*loops), 4, 'of block "R" reads A[4]', 'of block "W" writes A[4]')
    refused(lambda: sch.cache_read("R", 0, "local"), 1, "A is accessed under another name too, B")
    refused(lambda: sch.decompose_padding("W", loops[1]), 1, 'block "W" accesses A under another name, B')


def test_iterators_with_one_value_are_part_of_a_counterexample() -> None:
    head = "for w, i in T.grid(2, 1):\n    with T.block('S'):\n"
    body = f"{head}        vw, v = T.axis.remap('SS', [w, i])\n        O[v + 1] = A[vw]"
    sch = schedule({"A": (2,), "O": (2,)}, body)
    refused(lambda: sch.pad_einsum("S", [1, 1]), 2, "(vw=0) and (vw=1) store to the same element of O")
