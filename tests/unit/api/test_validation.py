"""Counterexamples are tried out on the program before they refute anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from block_refusals import BLOCKS
from loop_refusals import LOOPS
from loop_shape_refusals import LOOP_SHAPES
from refusal import Refusal

import weft
from weft import Schedule, ScheduleError
from weft.analysis import questions
from weft.analysis.accesses import accesses
from weft.analysis.dependence import PairQuestion, conflict_between
from weft.analysis.independence import carried_conflict
from weft.analysis.questions import Question
from weft.dialects.tir import BlockOp, ForOp
from weft.support.errors import Violation

ARITHMETIC = {"split"}
"""Their counterexample is a number that the message computes."""
REFUTED = [
    refusal
    for refusal in (*LOOPS, *LOOP_SHAPES, *BLOCKS)
    if refusal.counterexample is not None and refusal.primitive not in ARITHMETIC
]

SCAN = """
func.func @f(%X: memref<?xf32>, %A: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %X, %c0 : memref<?xf32>
  %m = affine.apply affine_map<(d0) -> (d0 - 1)>(%n)
  %Y = memref.alloc() : memref<8x8xf32>
  tir.for %i in %m {
    tir.block "X" iters(%v: spatial<%m>) = [%i] {
      %a = memref.load %X[%v] : memref<?xf32>
      %at = affine.apply affine_map<(d0) -> (d0 + 1)>(%v)
      memref.store %a, %X[%at] : memref<?xf32>
    }
  }
  tir.for %p in 4 { tir.for %q in 16 {
    tir.block "Y" iters(%u: spatial<8>, %w: spatial<8>) = [%p * 2 + %q floordiv 8, %q mod 8] where [%q] < [15] {
      %y = memref.load %A[%w, %u] : memref<8x8xf32>
      memref.store %y, %Y[%u, %w] : memref<8x8xf32>
    }
  } }
  func.return
}
"""


def refused(refusal: Refusal) -> ScheduleError:
    sch = Schedule(weft.parse(refusal.program, "program.mlir"))
    refusal.prepare(sch)
    with pytest.raises(ScheduleError) as caught:
        refusal.steps(sch)
    return caught.value


@pytest.mark.parametrize("refusal", REFUTED, ids=[f"{r}-{n}" for n, r in enumerate(REFUTED)])
def test_counterexamples_of_refusals_happen(refusal: Refusal) -> None:
    violation = refused(refusal).violation
    assert violation.claim == "refuted"
    assert violation.counterexample
    assert violation.validate is not None
    assert violation.validate()
    assert violation.kind == "refuted"


def test_there_are_counterexamples_of_many_primitives() -> None:
    assert {"reorder", "parallel", "vectorize", "bind", "merge", "tile", "compute_at", "reverse_compute_at"} <= {
        refusal.primitive for refusal in REFUTED
    }


def loops_of(text: str) -> dict[str, ForOp]:
    module = weft.parse(text)
    return {op.induction_variable.name_hint or "": op for op in module.walk() if isinstance(op, ForOp)}


def test_a_refutation_is_tried_when_it_is_printed_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(Question, "holds", lambda *given: calls.append(given) or True)
    sch = Schedule(weft.parse(SCAN))
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(sch.get_loops("X")[0])
    assert not calls
    assert "not proved" not in str(caught.value)
    assert caught.value.violation.kind == "refuted"
    assert len(calls) == 1


def test_a_counterexample_that_does_not_happen_refutes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Question, "holds", lambda *_: False)
    sch = Schedule(weft.parse(SCAN))
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(sch.get_loops("X")[0])
    assert caught.value.violation.kind == "not proved"
    assert "  not proved: accesses are approximated here, and the approximation allows what " in str(caught.value)


def test_claims_without_a_validation_stay() -> None:
    assert Violation("the loop is parallel").kind == "refuted"
    assert Violation("who knows", "not proved", validate=lambda: True).kind == "not proved"
    assert Violation("it is so", validate=lambda: False).kind == "not proved"
    assert str(Violation("it is so", validate=lambda: True)) == "it is so"


def test_wrong_points_are_noticed() -> None:
    """Each number of a true counterexample matters."""
    loop = loops_of(SCAN)["i"]
    conflict = carried_conflict(loop)
    assert conflict is not None
    assert conflict.happens()
    for key in conflict.point:
        for other in (-1, 5, 100):
            wrong = replace(conflict, point={**conflict.point, key: other})
            symbol = conflict.point[key] <= other and not isinstance(key, tuple)  # a longer buffer is as good
            assert wrong.happens() == symbol, (key, other)


def test_the_order_that_is_claimed_is_looked_at() -> None:
    loop = loops_of(SCAN)["i"]
    load, store = accesses(loop)
    conflict = conflict_between(store, load, (), lambda order: order.earlier(loop))
    assert conflict is not None
    assert conflict.happens()
    turned, shared = PairQuestion(store, load, ()), PairQuestion(store, load, (loop,))
    turned.later(loop)
    shared.earlier(loop)
    assert not turned.holds(conflict.point)
    assert not shared.holds(conflict.point)


def test_loops_around_one_of_two_instances_are_not_compared() -> None:
    """Who asks about a block that moves names all loops that stay around it, also those that are not around others."""
    loops = loops_of(SCAN)
    loop = loops["i"]
    load, store = accesses(loop)
    conflict = conflict_between(store, load, (loops["p"],), lambda order: order.earlier(loop))
    assert conflict is not None
    assert conflict.happens()


def test_guards_bindings_and_extents_are_evaluated() -> None:
    loops = loops_of(SCAN)
    block = next(op for op in loops["q"].walk() if isinstance(op, BlockOp))
    p, q = loops["p"].induction_variable, loops["q"].induction_variable
    first = block.body.block.first_op
    assert first is not None

    def runs(at_p: int, at_q: int) -> bool:
        return questions.Instance({p: at_p, q: at_q}).runs(first)

    assert runs(3, 14)
    assert not runs(3, 15)  # the guard
    assert not runs(4, 0)
    assert not runs(0, 16)
    assert not runs(-1, 3)
    instance = questions.Instance({p: 3, q: 11})
    assert [instance.value(v) for v in block.iter_vars] == [7, 3]


def test_what_the_point_does_not_tell_is_not_tried() -> None:
    text = SCAN.replace(
        "%at = affine.apply affine_map<(d0) -> (d0 + 1)>(%v)",
        "%l = arith.fptosi %a : f32 to i64\n      %at = arith.index_cast %l : i64 to index",
    )
    loop = loops_of(text)["i"]
    store = next(access for access in accesses(loop) if access.is_write)
    with pytest.raises(questions.NotEvaluated):
        questions.Instance({loop.induction_variable: 0}).element(store)
    assert not questions.evaluated(lambda: questions.Instance({}).runs(store.op))
