"""Traces: simplified, as Python calls, and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from block_refusals import DIAGONALS
from schedule_checks import check_schedule
from schedule_programs import PROGRAMS

import weft
from weft import CompileError, Schedule
from weft.dialects import sched
from weft.schedule.traces import run_python, simplify_trace, trace_as_python


def tiled(s: Schedule) -> None:
    y = s.get_block("Y", func_name="f")
    i, j, k = s.get_loops(y)
    t = s.sample_perfect_tile(i, 2, decision=[3, 4])
    s.sample_perfect_tile(j, 2)
    i0, i1 = s.split(i, t)
    j0, j1 = s.split(j, [None, s.sample_categorical([2, 4], [0.25, 0.75])])
    (k0,) = s.split(k, [None])
    s.get_consumers(y)
    s.reorder(i0, j0, k0, i1, j1)
    s.compute_at(s.cache_read(y, "A", "local"), j0)
    s.annotate(i0, "note", [1, True, 'it\'s "x"', 0.1, [-2]])
    s.annotate(y, "options", {"unroll": 16, "deep": {"names": ["a b", "c"], "on": False}, "with space": 0.5})
    s.annotate(y, "unroll", s.sample_categorical([16], [1.0]))
    s.reverse_compute_at("C", s.get_loops(y)[0])
    s.decompose_reduction(y, k0)
    s.vectorize(j1)
    s.parallel(i0)


def shapes(s: Schedule) -> None:
    i, j = s.get_loops("C")
    _, j1 = s.loop_partition(j, [4, None])
    s.add_unit_loop(j1)
    s.bind(i, "blockIdx.x")
    s.reorder_block_iter_var("C_j0", [1, 0])
    a, b = s.get_loops("Y")[:2]
    s.annotate(a, "gone", 1)
    s.unannotate(a, "gone")
    s.fuse(*s.tile(a, b, factors=[3, 5])[2:])
    s.unroll(s.get_loops("Y")[-1])
    s.set_scope("Y", 0, "shared")


def moved(s: Schedule) -> None:
    s.merge(*(s.get_loops(block)[1] for block in "BC"))
    s.compute_at("B", s.sample_compute_location("B", decision=-2))
    s.reverse_compute_inline("D")
    s.cache_write("C", 0, "global.x")


def factored(s: Schedule) -> None:
    *_, k = s.get_loops("Y")
    outer, _ = s.split(k, [None, 3])
    s.rfactor(outer, 0)


CASES: list[tuple[str, Callable[[Schedule], None]]] = [
    ("matmul_relu", tiled),
    ("matmul_relu", shapes),
    ("chain", moved),
    ("matmul_relu", factored),
]


def ran(name: str, steps: Callable[[Schedule], None]) -> Schedule:
    sch = Schedule(weft.parse(PROGRAMS[name].text), seed=1)
    steps(sch)
    return sch


@pytest.mark.parametrize(("name", "steps"), CASES)
def test_as_python_and_back(name: str, steps: Callable[[Schedule], None]):
    sch = ran(name, steps)
    text = trace_as_python(sch.trace)
    executed = Schedule(weft.parse(PROGRAMS[name].text), seed=2)
    exec(text, {"sch": executed})
    read = Schedule(weft.parse(PROGRAMS[name].text), seed=3)
    run_python(read, text)
    for other in (executed, read):
        weft.assert_structural_equal(sch.mod, other.mod)
        assert str(other.trace) == str(sch.trace)
        assert trace_as_python(other.trace) == text


@pytest.mark.parametrize(("name", "steps"), CASES)
def test_simplified_traces_do_the_same(name: str, steps: Callable[[Schedule], None]):
    sch = ran(name, steps)
    before = str(sch.trace)
    simple = simplify_trace(sch.trace)
    assert str(sch.trace) == before
    assert len(list(simple.body.block.ops)) <= len(list(sch.trace.body.block.ops))
    assert str(simplify_trace(simple)) == str(simple)
    again = Schedule(weft.parse(PROGRAMS[name].text), seed=4)
    again.replay(simple)
    weft.assert_structural_equal(sch.mod, again.mod)
    parsed = next(op for op in weft.parse(str(simple)).ops if isinstance(op, sched.FuncOp))
    assert str(parsed) == str(simple)


def test_what_is_dropped():
    sch = ran("matmul_relu", tiled)
    text = str(simplify_trace(sch.trace))
    assert "get_consumers" in str(sch.trace) and "get_consumers" not in text
    assert str(sch.trace).count("sample_perfect_tile") == 2 and text.count("sample_perfect_tile") == 1
    assert text.count("sample_categorical") == 2
    empty = Schedule(weft.parse(PROGRAMS["chain"].text))
    empty.get_loops(empty.get_consumers("B")[0])
    assert not list(simplify_trace(empty.trace).body.block.ops)


def test_the_python_form():
    sch = Schedule(weft.parse(PROGRAMS["matmul_relu"].text))
    y = sch.get_block("Y", func_name="f")
    i, _, k = sch.get_loops(y)
    t0, t1 = sch.sample_perfect_tile(i, 2, decision=[3, 4])
    sch.split(i, [t0, t1])
    sch.split(k, [None, 4])
    sch.annotate("Y", "x", "y")
    sch.tile(sch.get_loops("C")[0], factors=[2])
    assert trace_as_python(sch.trace, "s") == (
        'y = s.get_block("Y", func_name="f")\n'
        "i, j, k = s.get_loops(y)\n"
        "t0, t1 = s.sample_perfect_tile(i, n=2, max_innermost_factor=16, decision=[3, 4])\n"
        "i0, i1 = s.split(i, factors=[t0, t1])\n"
        "k0, k1 = s.split(k, factors=[None, 4])\n"
        'y_1 = s.get_block("Y")\n'
        's.annotate(y_1, ann_key="x", ann_val="y")\n'
        'c = s.get_block("C")\n'
        "i_1, j_1 = s.get_loops(c)\n"
        "i0_1, i1_1 = s.tile(i_1, factors=[2])\n"
    )


def test_names_that_are_no_python_names():
    text = PROGRAMS["chain"].text.replace('"B"', '"lambda"').replace('"C"', '"a.b-c"').replace('"D"', '"sch"')
    sch = Schedule(weft.parse(text))
    for label in ("lambda", "a.b-c", "sch"):
        sch.split(sch.get_loops(label)[0], [None, 2])
    again = Schedule(weft.parse(text))
    exec(trace_as_python(sch.trace), {"sch": again})
    weft.assert_structural_equal(sch.mod, again.mod)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os", r"<trace>:1:1: error: a trace is calls like sch.get_block"),
        ("sch.get_block('B'", r"<trace>:1:\d+: error: '\(' was never closed"),
        ("x = sch.get_block('B')\nsch.get_loops(y)", r"<trace>:2:15: error: unknown handle 'y'"),
        ("sch.mod.erase()", "a trace is calls like"),
        ("sch._run('B')", "unknown step '_run'"),
        ("sch.splitt('B')", "unknown step 'splitt', did you mean 'split'"),
        ("other.get_block('B')", "unknown step"),
        ("sch.get_block(open('x'))", "an argument is a handle, a constant or a list of them"),
        ("sch.get_block()", "get_block: missing a required argument: 'name'"),
        ("sch.get_block('B', wrong=1)", "get_block: got an unexpected keyword argument 'wrong'"),
        ("sch.get_block(**{})", "arguments are written one by one"),
        ("a, b = sch.get_block('B')", "1 handles are given, 2 are named"),
        ("a.x = sch.get_block('B')", "results are given names"),
        ("for i in x: pass", "a trace is calls like"),
    ],
)
def test_other_python_is_not_run(text: str, message: str):
    sch = Schedule(weft.parse(PROGRAMS["chain"].text))
    with pytest.raises(CompileError, match=message):
        run_python(sch, text)


def test_regions_and_indices() -> None:
    """A region prints as begins and ends in turn, which a function may give, too."""
    module = weft.parse(DIAGONALS)
    sch = weft.Schedule(module)
    sch.annotate_buffer_access("O", 0, "write", lambda v: (v, (0, 8)))
    sch.cache_index("C", "global")
    check_schedule(module, sch)
    text = trace_as_python(sch.trace)
    assert "gen_new_ranges=lambda d0: (d0, d0 + 1, 0, 8)" in text
    for run in (lambda s: exec(text, {"sch": s}), lambda s: run_python(s, text)):
        again = weft.Schedule(module)
        run(again)
        weft.assert_structural_equal(again.mod, sch.mod)
