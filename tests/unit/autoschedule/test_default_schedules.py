"""Which functions get a default schedule, how rules are tried, and what shows which schedule was used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.analysis.block_patterns import PatternKind, pattern_of
from weft.analysis.block_scopes import child_blocks, find_block, functions
from weft.analysis.structural_equality import first_difference
from weft.autoschedule.default_schedule import apply_default_schedule, default_schedule, rules_for, scheduled_by
from weft.autoschedule.rules import op_of
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.schedule.traces import steps_of
from weft.support.errors import CompileError
from weft.support.target import Target

TARGET = Target.parse("llvm -num-threads=2")


def add_relu(n: int = 1000, name: str = "main") -> ModuleOp:
    A, B = te.placeholder((n,), "float32", name="A"), te.placeholder((n,), "float32", name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    return te.create_func([A, B, te.compute((n,), lambda i: te.max(C[i], 0.0), name="D")], name=name)


def row_sums(m: int = 64, n: int = 64) -> ModuleOp:
    A = te.placeholder((m, n), "float32", name="A")
    k = te.reduce_axis((0, n), name="k")
    return te.create_func([A, te.compute((m,), lambda i: te.sum(A[i, k], axis=k), name="S")], name="rows")


class CountingRule:
    """Records which blocks it was offered, and does what it is told."""

    def __init__(self, steps: Callable[[Schedule, BlockHandle], bool]) -> None:
        self.steps = steps
        self.offered: list[str] = []

    def __call__(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        self.offered.append(op_of(sch, block).label)
        return self.steps(sch, block)


def split_and(end: Callable[[Schedule, BlockHandle], bool]) -> CountingRule:
    def steps(sch: Schedule, block: BlockHandle) -> bool:
        sch.split(sch.get_loops(block)[0], factors=[None, 8])
        return end(sch, block)

    return CountingRule(steps)


def refused_step(sch: Schedule, block: BlockHandle) -> bool:
    (*_, k) = sch.get_loops(block)
    sch.vectorize(k)
    sch.vectorize(sch.get_loops(block)[-2])
    sch.parallel(k)
    return True


def test_the_module_stays_and_each_trace_replays() -> None:
    module = weft.merge(add_relu(name="one"), add_relu(name="two"), row_sums())
    before = str(module)
    traces = default_schedule(module, TARGET)
    assert str(module) == before
    assert [trace.sym_name.data for trace in traces] == ["default_one", "default_two", "default_rows"]
    scheduled = module.clone()
    apply_default_schedule(scheduled, TARGET)
    replayed = weft.Schedule(module)
    for trace in traces:
        replayed.replay(trace)
    assert first_difference(scheduled, replayed.mod) is None
    assert [f.sym_name.data for f in functions(scheduled)] == ["one", "two", "rows"]


def test_a_refused_rule_leaves_nothing_behind() -> None:
    rule = split_and(refused_step)
    assert default_schedule(add_relu(), TARGET, [rule]) == []
    assert rule.offered == ["C", "D"]


def test_a_rule_that_says_no_leaves_nothing_behind() -> None:
    no = split_and(lambda sch, block: False)
    then = split_and(lambda sch, block: True)
    (trace,) = default_schedule(add_relu(), TARGET, [no, then])
    assert [step.name for step in trace.body.block.ops].count("sched.split") == 2
    assert then.offered == ["C", "D"]


def test_what_one_rule_did_stays_when_the_next_is_refused() -> None:
    inline = CountingRule(lambda sch, block: op_of(sch, block).label == "C" and sch.compute_inline(block) is None)
    (trace,) = default_schedule(add_relu(), TARGET, [inline, split_and(refused_step)])
    assert [step.name for step in trace.body.block.ops] == ["sched.get_block", "sched.compute_inline"]


def test_a_block_that_was_scheduled_is_offered_to_no_other_rule() -> None:
    nothing = CountingRule(lambda sch, block: True)
    later = CountingRule(lambda sch, block: True)
    assert default_schedule(add_relu(), TARGET, [nothing, later]) == []
    assert later.offered == []


def test_other_errors_of_rules_are_not_hidden() -> None:
    rule = CountingRule(lambda sch, block: sch.get_block("nonsense") is None)
    with pytest.raises(CompileError, match="unknown block 'nonsense'"):
        default_schedule(add_relu(), TARGET, [rule])


USER_STEPS: dict[str, Callable[[weft.Schedule], object]] = {
    "split": lambda s: s.split(s.get_loops("D")[0], factors=[None, 8]),
    "parallel": lambda s: s.parallel(s.get_loops("C")[0]),
    "note on a block": lambda s: s.annotate("D", "note", 1),
    "note on a loop": lambda s: s.annotate(s.get_loops("D")[0], "note", 1),
    "set_scope": lambda s: s.set_scope("C", 0, "local"),
    "merge": lambda s: s.merge(s.get_loops("C")[0], s.get_loops("D")[0]),
    "compute_at": lambda s: s.compute_at("C", s.get_loops("D")[0]),
    "blockize": lambda s: s.blockize(s.get_loops("D")[0]),
}


@pytest.mark.parametrize("steps", USER_STEPS.values(), ids=USER_STEPS)
def test_what_a_user_scheduled_is_left_alone(steps: Callable[[weft.Schedule], object]) -> None:
    sch = weft.Schedule(add_relu())
    steps(sch)
    assert default_schedule(sch.mod, TARGET) == []


@pytest.mark.parametrize("kind", ["cuda", "opencl", "metal"])
def test_kernels_are_bound_to_threads(kind: str) -> None:
    (trace,) = default_schedule(add_relu(), Target.parse(kind))
    axes = [step.properties["thread_axis"].data for step in steps_of(trace) if step.name == "sched.bind"]
    assert axes == ["blockIdx.x", "threadIdx.x"]


def test_each_kind_of_target_has_rules_of_its_own() -> None:
    kinds = {kind: rules_for(kind) for kind in ("llvm", "c", "cuda", "opencl", "other")}
    assert kinds["llvm"] == kinds["c"] != kinds["cuda"] == kinds["opencl"] and kinds["other"] == ()
    assert all(len(set(rules)) == len(rules) for rules in kinds.values())


def test_blocks_of_one_name_get_none() -> None:
    module = add_relu()
    find_block(module, "C").block_name = find_block(module, "D").block_name
    assert default_schedule(module, TARGET) == []


def test_skipped_functions() -> None:
    module = weft.merge(add_relu(name="one"), add_relu(name="two"))
    assert [t.sym_name.data for t in default_schedule(module, TARGET, skip=["one"])] == ["default_two"]
    sch = weft.Schedule(module)
    sch.compute_inline(sch.get_block("C", func_name="two"))
    assert scheduled_by(sch.trace, module) == {"two"}


def test_build_shows_the_trace() -> None:
    library = weft.build(add_relu(), target=TARGET)
    assert library.trace.startswith("sched.func @default_main")
    assert "sched.compute_inline" in library.trace
    assert "sch.vectorize(" in weft.trace_as_python(library.traces[0])
    assert weft.build(add_relu(), target=TARGET, default_schedule=False).trace == ""
    a, b, out = *np.random.default_rng(0).standard_normal((2, 1000)).astype("float32"), np.empty(1000, "float32")
    library["main"](a, b, out)
    assert np.array_equal(out, np.maximum(a + b, 0))


def test_build_leaves_functions_of_schedules_in_the_module_alone() -> None:
    module = weft.parse(str(weft.merge(add_relu(name="one"), add_relu(name="two"))))
    sch = weft.Schedule(module)
    sch.compute_inline(sch.get_block("C", func_name="one"))
    module.body.block.add_op(sch.trace.clone())
    assert [t.sym_name.data for t in weft.build(module, target=TARGET).traces] == ["default_two"]


def test_stage_schedules_are_schedules() -> None:
    A = te.placeholder((64,), "float32", name="A")
    B = te.compute((64,), lambda i: A[i] + 1, name="B")
    assert weft.build(te.create_schedule(B.op), [A, B], target=TARGET).trace == ""


def pattern(module: ModuleOp, label: str) -> PatternKind:
    return pattern_of(find_block(module, label)).kind


def test_patterns() -> None:
    A, B = te.placeholder((8, 8), "float32", name="A"), te.placeholder((8, 8), "float32", name="B")
    X = te.placeholder((10,), "float32", name="X")
    k, p = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 3), name="p")
    outputs = [
        te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="product"),
        te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="sums"),
        te.compute((8,), lambda i: te.sum(X[i + p] * A[0, p], axis=p), name="convolution"),
        te.compute((8,), lambda i: te.max(X[i + p], axis=p), name="pooling"),
        te.compute((8, 8), lambda i, j: A[j, i] + B[i, j], name="elementwise"),
        te.compute((1, 8), lambda i, j: te.max(A[i * 8 + k, j], axis=k), name="one_window"),
    ]
    module = te.create_func([A, B, X, *outputs])
    found = [pattern_of(block) for block in child_blocks(functions(module)[0])]
    kinds = PatternKind.CONTRACTION, PatternKind.REDUCTION, PatternKind.CONVOLUTION, PatternKind.WINDOW
    assert tuple(p.kind for p in found) == (*kinds, PatternKind.INJECTIVE, PatternKind.REDUCTION)
    assert found[0].factors is not None
    left, right = found[0].factors
    i, j, reduced = found[0].block.iter_vars
    assert [left.stride_of(v) for v in (i, j, reduced)] == [8, 0, 1]
    assert [right.stride_of(v) for v in (i, j, reduced)] == [0, 1, 8]
    assert right.dimensions_of(j) == (1,)
    assert [read.stride_of(found[4].block.iter_vars[1]) for read in found[4].reads] == [8, 1]


def test_a_reduction_that_keeps_nothing_is_left_alone() -> None:
    text = """
    func.func @product(%A: memref<48x64xi32>, %C: memref<48x128xi32>) {
      %zero = arith.constant 0 : i32
      tir.for %i in 48 { tir.for %j in 128 { tir.for %k in 64 {
        tir.block "C" iters(%vi: spatial<48>, %vj: spatial<128>, %vk: reduce<64>) = [%i, %j, %k] {
          tir.init { memref.store %zero, %C[%vi, %vj] : memref<48x128xi32> }
          %a = memref.load %A[%vi, %vk] : memref<48x64xi32>
          %c = memref.load %C[%vi, %vj] : memref<48x128xi32>
          %s = arith.addi %c, %a : i32
        } } } }
      func.return
    }"""
    module = weft.parse(text)
    assert pattern(module, "C") is PatternKind.OPAQUE
    weft.build(module, target=TARGET)
