"""Functions that promise less than weft's own (`tir.promises`): arguments that overlap give the result of the program
as written, whatever is done to it.

Each primitive is tried on programs whose parameters may overlap. The step is refused with words that name the buffers
and say how to promise, or the scheduled program leaves memory as the program does, for arguments that overlap.
"""

from __future__ import annotations

import re

import pytest
from overlapping_arguments import compiled, interpreted, layouts
from primitive_cases import CASES, Steps, loop
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft import Schedule
from weft.dialects.aliasing import set_noalias
from weft.dialects.promises import Promise, set_promises
from weft.support.errors import ScheduleError

REFUSED = (
    r"not proved: (.|\n)*(\w+) and (\w+) may overlap(.|\n)*legal: where buffers do not overlap, @f promises it: "
    r'"noalias" in tir.promises, or llvm.noalias on the argument'
)


def program(text: str, *promises: Promise) -> ModuleOp:
    """The module of a program of `primitive_cases` without its calls, whose function promises that alone."""
    lines = [re.sub(r"@@\w+ (\S+) (\S+)", r"\1 = arith.addf \2, %zero : f32", line) for line in text.splitlines()]
    module = weft.parse("\n".join(lines))
    set_promises(function_of(module), promises)
    return module


def function_of(module: ModuleOp) -> FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks)


def require_same(before: ModuleOp, after: ModuleOp) -> None:
    """Both leave memory alike for arguments that overlap."""
    signature = weft.Interpreter(before).signature("f")
    for layout in layouts(signature):
        wanted = layout.after(interpreted(before, "f"))
        for order in ("forward", "reversed"):
            assert layout.after(interpreted(after, "f", order)) == wanted, f"{layout.places}, {order}:\n{after}"


@pytest.mark.parametrize("name", sorted(set(CASES) - {"tensorize"}))
def test_primitive_on_overlapping_parameters(name: str) -> None:
    case = CASES[name]
    sch = Schedule(program(case.program, Promise.CONTRACT, Promise.REASSOC))
    before = sch.mod.clone()
    try:
        case.prepare(sch)
        case.step(sch)
    except ScheduleError as error:
        assert re.search(REFUSED, str(error)), str(error)
        return
    require_same(before, sch.mod)


DIRECT = """
func.func @f(%A: memref<8x6xf32>, %D: memref<8x6xf32>, %E: memref<8x6xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 { tir.for %j in 6 {
    tir.block "D" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<8x6xf32>
      %d = arith.addf %a, %one : f32
      memref.store %d, %D[%vi, %vj] : memref<8x6xf32>
    } } }
  tir.for %i in 8 { tir.for %j in 6 {
    tir.block "E" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      %d = memref.load %D[%vi, %vj] : memref<8x6xf32>
      memref.store %d, %E[%vi, %vj] : memref<8x6xf32>
    } } }
  func.return
}"""
STEPS: dict[str, Steps] = {
    "tile": lambda s: s.tile(*s.get_loops("D"), factors=[4, 3]),
    "reorder": lambda s: s.reorder(*s.get_loops("D")[::-1]),
    "parallel": lambda s: s.parallel(loop(s, "D")),
    "vectorize": lambda s: s.vectorize(loop(s, "D", 1)),
    "bind": lambda s: s.bind(loop(s, "D"), "threadIdx.x"),
    "merge": lambda s: s.merge(loop(s, "D"), loop(s, "E")),
    "compute_at": lambda s: s.compute_at("D", loop(s, "E")),
    "reverse_compute_at": lambda s: s.reverse_compute_at("E", loop(s, "D")),
    "cache_read": lambda s: s.cache_read("D", 0, "local"),
    "cache_write": lambda s: s.cache_write("D", 0, "local"),
    "cache_write for consumers": lambda s: s.cache_write("D", 0, "local", consumer_blocks=["E"]),
    "read_at": lambda s: s.read_at(loop(s, "D"), "D", 0, "local"),
    "write_at": lambda s: s.write_at(loop(s, "D"), "D", 0, "local"),
    "reindex": lambda s: s.reindex("D", ("read", 0)),
    "reindex what is written": lambda s: s.reindex("D", ("write", 0)),
    "reindex_cache_read": lambda s: s.reindex_cache_read("D", 0, "local", lambda i, j: (j, i)),
    "reindex_cache_write": lambda s: s.reindex_cache_write("D", 0, "local", lambda i, j: (j, i)),
    "transform_layout": lambda s: s.transform_layout("D", ("read", 0), lambda i, j: (j, i)),
    "transform_block_layout": lambda s: s.transform_block_layout("D", lambda i, j: (j, i)),
}
"""Steps that overlapping parameters forbid."""
KEEP_ORDER: dict[str, Steps] = {
    "split": lambda s: s.split(loop(s, "D"), [3, 3]),
    "fuse": lambda s: s.fuse(*s.get_loops("D")),
    "loop_partition": lambda s: s.loop_partition(loop(s, "D"), [2, 0]),
    "unroll": lambda s: s.unroll(loop(s, "D")),
    "blockize": lambda s: s.blockize(loop(s, "D", 1)),
}


@pytest.mark.parametrize("name", STEPS)
def test_refused_between_parameters(name: str) -> None:
    sch = Schedule(program(DIRECT))
    with pytest.raises(ScheduleError) as refused:
        STEPS[name](sch)
    assert re.search(REFUSED, str(refused.value)), str(refused.value)
    STEPS[name](Schedule(program(DIRECT, Promise.NOALIAS)))
    of_arguments = program(DIRECT)
    set_noalias(function_of(of_arguments), [0, 2])
    STEPS[name](Schedule(of_arguments))


@pytest.mark.parametrize("name", KEEP_ORDER)
def test_steps_that_keep_the_order(name: str) -> None:
    sch = Schedule(program(DIRECT))
    before = sch.mod.clone()
    KEEP_ORDER[name](sch)
    require_same(before, sch.mod)
    for layout in layouts(weft.Interpreter(before).signature("f")):
        wanted = layout.after(interpreted(before, "f"))
        assert layout.after(compiled(sch.mod, "f")) == wanted


def test_calls_of_functions_that_promise_refuse_what_overlaps() -> None:
    module = program(DIRECT, Promise.NOALIAS)
    layout = next(layouts(weft.Interpreter(module).signature("f")))
    for call in (compiled(module, "f"), interpreted(module, "f")):
        with pytest.raises(ValueError, match="an output that shares no memory with other arguments"):
            layout.after(call)
    apart = program(DIRECT)
    set_noalias(function_of(apart), [0])
    for call in (compiled(apart, "f"), interpreted(apart, "f")):
        with pytest.raises(ValueError, match="got one that overlaps argument 1 \\('A'\\)"):
            layout.after(call)


@pytest.mark.parametrize("kind", ["llvm"])
@pytest.mark.parametrize("name", ["split", "cache_inplace", "rfactor", "decompose_padding"])
def test_build_of_overlapping_parameters(name: str, kind: str) -> None:
    """With the default schedule, of which no step is taken that needs a promise."""
    module = program(CASES[name].program)
    call = compiled(module, "f", weft.Target(kind))
    for layout in layouts(weft.Interpreter(module).signature("f")):
        assert layout.after(call) == layout.after(interpreted(module, "f"))
