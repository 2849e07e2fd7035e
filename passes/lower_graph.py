"""lower-graph: lower a graph to functions over buffers, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft.passes.graph.functions import check_no_cycles, control_callees, graph_functions, tensor_callees
from weft.passes.graph_pipeline import graph_to_tir
from weft.passes.pass_sequence import PassSequence, PipelineStep, RunStep, points_of
from weft.support.build_options import BuildOptions


@dataclass(frozen=True)
class LowerGraphPass(PassSequence):
    """Lower graph functions, and functions of tensor expressions, to functions over buffers: `pipelines.graph_to_tir`.

    Each different group of operators (with `fuse=false` each operator) becomes a function of block loops, and each
    graph function one that calls them. `func` names functions to lower even if they only copy tensors.

    Requires: graph functions.

    Leaves: functions of block loops, and functions over buffers that call them.
    """

    name = "lower-graph"

    target: str = "llvm"
    """The target, as in `weft.build`."""
    rewrite: bool = True
    """Whether to rewrite operators (`graph-rewrite`); some rewrites change rounding."""
    layouts: bool = True
    """Whether to lay images out in blocks of channels if profitable (`graph-block-layouts`)."""
    winograd: bool = True
    """Whether convolutions in blocks may use minimal filtering, which has larger rounding errors."""
    fuse: bool = True
    """Whether to fuse operators (`graph-fuse`)."""
    precision: str = ""
    """The precision of products (`graph-precision`); that of the model if empty."""
    func: tuple[str, ...] = ()
    """Functions to lower even if they only copy tensors."""

    @property
    def options(self) -> BuildOptions:
        return BuildOptions(
            rewrite=self.rewrite,
            layouts=self.layouts,
            winograd=self.winograd,
            fuse=self.fuse,
            precision=self.precision,
        )

    def run_steps(self, ctx: Context, op: ModuleOp, run: RunStep) -> None:
        lower_graph(ctx, op, self.target, self.options, run, self.func)


def lower_graph(
    ctx: Context, op: ModuleOp, target: str, options: BuildOptions, run: RunStep, func: Sequence[str] = ()
) -> None:
    """Lower graph functions and those in `func`; `run` runs each step."""
    for step in graph_steps(op, target, options, func):
        run(step, ctx, op)


def graph_steps(op: ModuleOp, target: str, options: BuildOptions, func: Sequence[str] = ()) -> Sequence[PipelineStep]:
    """The steps of `lower_graph`."""
    check_no_cycles(op)
    # Simplification may leave no operators. Called functions are found by their calls; some join a group.
    graphs = [function.sym_name.data for function in graph_functions(op)]
    called = control_callees(op) | tensor_callees(op)
    named = dict.fromkeys(name for name in (*func, *graphs) if name not in called)
    steps = graph_to_tir(target, options, tuple(named))
    return [PipelineStep(step, point) for point, step in zip(points_of(steps), steps, strict=True)]
