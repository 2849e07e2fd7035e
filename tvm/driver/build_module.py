"""`tvm.build` and `tvm.lower`."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from weft.analysis.block_scopes import functions
from weft.dialects.tir_kinds import TIR_FUNCTION
from weft.driver.build import build as _build
from weft.frontends.stage_schedule import StageSchedule
from weft.passes.graph.functions import holds_graph_ops
from weft.passes.module_edits import merge
from weft.passes.tir.tir_lower_blocks import LowerBlocksPass
from weft.passes.tir.tir_lower_reductions import LowerReductionsPass
from weft.passes.tir.tir_place_buffers import PlaceBuffersPass
from weft.support.errors import CompileError
from weft.tvm.ir.module import IRModule
from weft.tvm.ir.transform import PassContext
from weft.tvm.runtime.module import Module
from weft.tvm.script.printer import plain
from weft.tvm.target import spelling


def build(
    inputs: Any,
    args: Sequence[Any] | None = None,
    target: Any = None,
    target_host: Any = None,
    *,
    name: str = "main",
    binds: Any = None,
) -> Module:
    """Compile a schedule of stages, a module, a function, or a mapping of one target to modules, without default
    schedules.
    """
    if isinstance(inputs, Mapping):
        modules = cast("Mapping[Any, ModuleOp]", inputs)
        (target,) = {str(key) for key in modules}
        inputs = merge(*map(plain, modules.values()))
    if target is None and isinstance(args, str):
        args, target = None, args
    if isinstance(inputs, StageSchedule):
        return Module(_build(inputs, _distinct(args), spelling(target), name=name, binds=binds))
    if not isinstance(inputs, ModuleOp):
        raise TypeError(f"build: expected a schedule, a module or a function, got {type(inputs).__name__}")
    if args:
        raise CompileError("build: arguments are given with a schedule of stages: a module has its own")
    return Module(_build(plain(inputs), spelling(target), default_schedule=False))


def compile(mod: Any, target: Any = None, **options: Any) -> Any:
    """Compile a model (`relax.build`), or functions of block loops (`build`)."""
    if any(holds_graph_ops(op) for op in mod.body.block.ops if isinstance(op, FuncOp)):
        return import_module("weft.tvm.relax.vm_build").build(mod, target or "llvm", **options)
    return build(mod, target=target)


def lower(
    inputs: Any, args: Sequence[Any] | None = None, name: str = "main", binds: Any = None, simple_mode: bool = False
) -> IRModule:
    """Lower to loops without blocks and axes; reductions are initialised before their loop.

    `PassContext(config={"tir.add_lower_pass": [(phase, pass)]})` adds passes before (phase 0) or after the lowering of
    blocks.
    """
    if isinstance(inputs, StageSchedule):
        inputs = inputs.schedule(_distinct(args), name, binds=binds, name_loops=True).mod
    elif not isinstance(inputs, ModuleOp):
        raise TypeError(f"lower: expected a schedule, a module or a function, got {type(inputs).__name__}")
    context = PassContext.current()
    module = context.run_lower_passes(IRModule.of(plain(inputs)), (0,))
    for lowering in (PlaceBuffersPass(), LowerReductionsPass(), LowerBlocksPass()):
        lowering.apply(Context(), module)
    for function in functions(module):
        function.attributes.pop(TIR_FUNCTION, None)
    CommonSubexpressionElimination().apply(Context(), module)  # scripts show an index at its uses
    return context.run_lower_passes(module, (1, 2, 3))


def _distinct(args: Sequence[Any] | None) -> list[Any]:
    return list({id(arg): arg for arg in args or ()}.values())
