"""Programs, and a database of tuning, whose reports tests look at."""

from __future__ import annotations

from pathlib import Path

import weft
from weft.driver.workloads import tasks_of
from weft.passes.lower_to_tir import lower_to_tir
from weft.schedule.traces import decisions_of, trace_without_decisions
from weft.support.build_options import BuildOptions
from weft.support.target import Target
from weft.tools.show.lowering import program_report
from weft.tools.show.report import ProgramReport
from weft.tuning.database import Database
from weft.tuning.records import Record, Workload

TARGET = "llvm -num-threads=1"

FUNCTION = """
func.func @add_relu(%A: memref<64x32xf32>, %B: memref<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %Y = memref.alloc() : memref<64x32xf32>
  tir.for %i in 64 { tir.for %j in 32 {
    tir.block "Y" iters(%vi: spatial<64>, %vj: spatial<32>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<64x32xf32>
      %y = arith.addf %a, %a : f32
      memref.store %y, %Y[%vi, %vj] : memref<64x32xf32>
    }
  } }
  tir.for %i in 64 { tir.for %j in 32 {
    tir.block "B" iters(%vi: spatial<64>, %vj: spatial<32>) = [%i, %j] {
      %y = memref.load %Y[%vi, %vj] : memref<64x32xf32>
      %b = arith.maximumf %y, %zero : f32
      memref.store %b, %B[%vi, %vj] : memref<64x32xf32>
    }
  } }
  func.return
}
"""

SCHEDULE = """
sched.func @schedule {
  %b = sched.get_block "B" in @add_relu : block
  %i, %j = sched.get_loops %b : loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 8]} : loop, loop
  %y = sched.get_block "Y" in @add_relu : block
  sched.compute_at %y, %j0
  sched.vectorize %j1
}
"""

GRAPH = """
func.func @main(%x: tensor<2x8xf32>, %w: tensor<8x4xf32>) -> tensor<2x4xf32> {
  %h = graph.matmul %x, %w : tensor<2x8xf32>, tensor<8x4xf32> -> tensor<2x4xf32>
  %y = graph.relu %h : tensor<2x4xf32> -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}
"""


def report_of(text: str, target: str = TARGET) -> ProgramReport:
    """The report of a program, without the limits of the machine."""
    return program_report(weft.parse(text), "program.mlir", Target.parse(target), BuildOptions())


def split_by(factor: int) -> weft.Schedule:
    """A schedule of the function with a decision."""
    sch = weft.Schedule(weft.parse(FUNCTION))
    j = sch.get_loops("B")[1]
    factors = sch.sample_perfect_tile(j, n=2, decision=[32 // factor, factor])
    sch.vectorize(sch.split(j, factors)[1])
    return sch


def make_database(path: Path, *, name: str = "add_relu", trace: str | None = None) -> None:
    """A database of a task with five trials: the default, three of a space, one of which failed, and one more."""
    module = weft.parse(FUNCTION)
    lower_to_tir(module)
    (task,) = tasks_of(module)
    place = (task.key, str(Target.parse(TARGET)), "some machine")
    entries: list[Workload | Record] = [Workload(task.key, name, str(task.unit()), 4096)]
    for factor, times, failure in ((4, (3e-6,), ""), (8, (1e-6,), ""), (16, (), "it <crashed>"), (2, (2e-6,), "")):
        sch = split_by(factor)
        steps = trace or trace_without_decisions(sch.trace)
        decisions = tuple(tuple(d) if isinstance(d, list | tuple) else d for d in decisions_of(sch.trace))
        origin = "default" if factor == 4 else "my_space"
        entries.append(Record(*place, steps, decisions, times, failure, origin=origin, date=f"2026-11-2{factor % 10}"))
    with Database(path) as database:
        database.add(*entries)
