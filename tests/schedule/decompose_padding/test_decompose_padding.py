"""The requirements of decompose_padding, broken one by one."""

from __future__ import annotations

import pytest
from schedule_checks import check_schedule, refused

import weft

PADDED = """
func.func private @note()
func.func @f(%X: memref<8xf32>, %P: memref<12xf32>, %Q: memref<12xf32>) {
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant 0.0 : f32
  tir.for %i in 12 {
    tir.block "P" iters(%v: spatial<12>) = [%i] {
      %above = arith.cmpi sge, %v, %c2 : index
      %below = arith.cmpi slt, %v, %c10 : index
      %inside = arith.andi %above, %below : i1
      %p = scf.if %inside -> (f32) {
        %at = affine.apply affine_map<(d0) -> (d0 - 2)>(%v)
        %x = memref.load %X[%at] : memref<8xf32>
        scf.yield %x : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %p, %P[%v] : memref<12xf32>
    } }
  tir.for %i in 12 {
    tir.block "Q" iters(%v: spatial<12>) = [%i] {
      %p = memref.load %P[%v] : memref<12xf32>
      memref.store %p, %Q[%v] : memref<12xf32>
    } }
  func.return
}"""


def schedule(*changes: tuple[str, str]) -> weft.Schedule:
    text = PADDED
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return weft.Schedule(weft.parse(text, "f.mlir"))


def decompose(sch: weft.Schedule, at: int = 0) -> None:
    sch.decompose_padding("P", sch.get_loops("P")[at])


def test_1_complete() -> None:
    sch = schedule()
    fill = sch.decompose_padding("P", sch.get_loops("P")[0])
    loop = sch.get_loops(fill)[0]
    refused(lambda: sch.decompose_padding(fill, loop), 1, 'block "P_pad_const" is not the only writer of P')


def test_1_an_element_each() -> None:
    sch = schedule(("%P[%v] : memref<12xf32>\n    } }\n", "%P[%at2] : memref<12xf32>\n    } }\n"), ("%above =", HALF))
    error = refused(lambda: decompose(sch), 1, "instances (v=0) and (v=1) store to the same element of P")
    assert error.violation.counterexample == {"first instance": {"v": 0}, "second instance": {"v": 1}}


HALF = "%at2 = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%v)\n      %above ="


def test_2_around_the_block() -> None:
    sch = schedule()
    refused(lambda: sch.decompose_padding("P", sch.get_loops("Q")[0]), 2, "the loop is not around it", "legal: %i")


def test_3_a_choice() -> None:
    refused(
        lambda: (sch := schedule()).decompose_padding("Q", sch.get_loops("Q")[0]), 3, "not a choice between two values"
    )
    border = schedule(
        ("scf.yield %zero", "%y = memref.load %X[%c2] : memref<8xf32>\n        scf.yield %y"),
    )
    refused(lambda: decompose(border), 3, "neither of the two values is a constant")
    called = schedule(("memref.store %p", "func.call @note() : () -> ()\n      memref.store %p"))
    refused(lambda: decompose(called), 1, "calls @note, which may have effects (no low.pure)", kind="not proved")
    twice = schedule(("memref.store %p, %P[%v]", "%q = arith.addf %p, %p : f32\n      memref.store %p, %P[%v]"))
    refused(lambda: decompose(twice), 3, "the choice has uses other than the store")


def test_4_a_condition_on_indices() -> None:
    either = schedule(("arith.andi %above", "arith.ori %above"))
    refused(lambda: decompose(either), 4, "not a conjunction of comparisons of indices", kind="not proved")
    loaded = schedule(
        (
            "%inside = arith.andi %above, %below",
            "%w = memref.load %X[%c2] : memref<8xf32>\n      %inside = arith.cmpf ogt, %w, %zero : f32\n"
            "      %unused = arith.andi %above, %below",
        )
    )
    refused(lambda: decompose(loaded), 4, "not a conjunction of comparisons of indices", kind="not proved")


TOGETHER = ('    } }\n  tir.for %i in 12 {\n    tir.block "Q"', '    }\n    tir.block "Q"')


def test_5_readers_of_what_was_written() -> None:
    """The fill precedes a loop that holds the consumer of each element, too."""
    sch = schedule(TOGETHER)
    decompose(sch)
    check_schedule(schedule(TOGETHER).mod, sch)


def test_5_readers_before() -> None:
    early = "%at = affine.apply affine_map<(d0) -> ((d0 + 1) mod 12)>(%v)\n      %p = memref.load %P[%at]"
    sch = schedule(TOGETHER, ("%p = memref.load %P[%v]", early))
    refused(lambda: decompose(sch), 5, 'block "Q" touches P inside the loop')


def test_5_readers_of_an_earlier_run() -> None:
    """In each iteration of `n`, the first reads are of what the one before it wrote."""
    body = PADDED[PADDED.index("  tir.for %i in 12") : PADDED.index("  func.return")]
    producer, consumer = body.split("  tir.for %i in 12")[1:]
    nest = "  tir.for %i in 12"
    half = f"tir.for %n in 2 {{ tir.for %o in 1 {{\n{nest}{consumer}{nest}{producer}}} }}\n"
    sch = weft.Schedule(weft.parse(PADDED.replace(body, half), "f.mlir"))
    refused(lambda: decompose(sch, 1), 5, 'block "Q" touches P inside the loop')


def test_6_something_inside() -> None:
    nothing = schedule(("%c10 = arith.constant 10", "%c10 = arith.constant 2"))
    refused(lambda: decompose(nothing), 6, "no value of iterator %v lies inside")


TWICE = "%twice = affine.apply affine_map<(d0) -> (d0 * 2 - 2)>(%v)\n      %above = arith.cmpi sge, %twice, %c2"
UNIT = (
    ('tir.for %i in 12 {\n    tir.block "P"', 'tir.for %i in 12 { tir.for %u in 1 {\n    tir.block "P"'),
    ("%P[%v] : memref<12xf32>\n    } }\n  tir", "%P[%v] : memref<12xf32>\n    } } }\n  tir"),
)
AS_CONDITION = {
    "split": ((), lambda s: s.split(s.get_loops("P")[0], [3, 4]), 0),
    "inside a tile": ((), lambda s: s.split(s.get_loops("P")[0], [None, 5]), 1),
    "fused": (UNIT, lambda s: s.split(s.fuse(*s.get_loops("P")), [None, 4]), 0),
    "bound": ((), lambda s: s.bind(s.get_loops("P")[0], "threadIdx.x"), 0),
    "of a sum": (
        (("%above = arith.cmpi sge, %v, %c2", TWICE), ("cmpi slt, %v,", "cmpi slt, %twice,")), lambda s: None, 0
    ),
    "in an inner loop": (UNIT, lambda s: None, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", AS_CONDITION)
def test_what_loops_do_not_say_stays_a_condition(name: str) -> None:
    changes, steps, at = AS_CONDITION[name]
    sch = schedule(*changes)
    before = sch.mod.clone()
    steps(sch)
    decompose(sch, at)
    assert str(sch.mod).count("scf.if") == 1
    check_schedule(before, sch)


def test_7_known_before() -> None:
    text = PADDED.replace(
        'tir.for %i in 12 {\n    tir.block "P"',
        'tir.for %i in 12 {\n    %edge = memref.load %Q[%c2] : memref<12xf32>\n    tir.block "P"',
    ).replace("scf.yield %zero", "scf.yield %edge")
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: decompose(sch), 7, "it uses %edge, which is not known there")


def test_a_refused_step_changes_nothing() -> None:
    sch = schedule(("arith.andi %above", "arith.ori %above"))
    loop = sch.get_loops("P")[0]
    before, trace = str(sch.mod), str(sch.trace)
    refused(lambda: sch.decompose_padding("P", loop), 4, kind="not proved")
    assert str(sch.mod) == before
    assert "decompose_padding" not in str(sch.trace)
    assert str(sch.trace).startswith(trace[:-2])


def test_asked_before() -> None:
    sch = schedule()
    assert sch.can_decompose_padding("P", sch.get_loops("P")[0])
    assert not sch.can_decompose_padding(sch.get_block("Q"), sch.get_loops("Q")[0])
    assert "decompose_padding" not in str(sch.trace)
