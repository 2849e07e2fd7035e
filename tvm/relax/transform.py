"""`relax.transform`: passes on graphs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from weft.dialects.graph import FUSED, CallTirOp
from weft.graph import bind_params
from weft.passes.graph.functions import inline_calls, inline_dataflow
from weft.passes.graph.graph_block_layouts import GraphBlockLayoutsPass
from weft.passes.graph.graph_fold_constants import GraphFoldConstantsPass
from weft.passes.graph.graph_fuse import GraphFusePass
from weft.passes.graph.graph_infer_types import GraphInferTypesPass
from weft.passes.graph.graph_precision import GraphPrecisionPass
from weft.passes.graph.graph_simplify import GraphSimplifyPass
from weft.passes.graph.legalize_graph_to_te import LegalizeGraphToTePass
from weft.passes.module_edits import lookup
from weft.passes.te.lower_te_to_tir import LowerTeToTirPass
from weft.support.errors import CompileError
from weft.tvm.absent import refuses
from weft.tvm.ir.module import IRModule
from weft.tvm.ir.transform import Pass, Sequential, module_pass
from weft.tvm.target import current_target, spelling


def _passes(name: str, *passes: ModulePass) -> Pass:
    def run(mod: IRModule, _: object) -> IRModule:
        mark_groups(copy := mod.clone())
        for step in passes:
            step.apply(Context(), copy)
        return copy

    return Pass(run, name)


def mark_groups(module: ModuleOp) -> None:
    """Make functions with the attribute `Primitive` fused groups, in place."""
    for function in module.body.block.ops:
        callees = [lookup(module, op.callee.string_value()) for op in function.walk() if isinstance(op, CallTirOp)]
        written = any(isinstance(type_, MemRefType) for callee in callees for type_ in callee.function_type.inputs)
        if isinstance(function, FuncOp) and function.attributes.pop("Primitive", None) is not None and not written:
            inline_dataflow(function)
            function.attributes[FUSED], function.sym_visibility = UnitAttr(), StringAttr("private")


def BindParams(func_name: str, params: Mapping[str, Any]) -> Pass:
    return Pass(lambda mod, _: bind_params(mod, func_name, params), "BindParams")


def LegalizeOps() -> Pass:
    """Lower operators to block loops."""
    return _passes("LegalizeOps", LegalizeGraphToTePass(), LowerTeToTirPass())


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Outline operators that one kernel computes."""
    return _passes("FuseOps", GraphFusePass("llvm"))


def FuseTIR() -> Pass:
    """Lower functions with attribute `Primitive` or of `FuseOps` to block loops."""
    return _passes("FuseTIR", LegalizeGraphToTePass(), LowerTeToTirPass())


def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> Pass:
    """Erase unused bindings, not functions."""
    return _passes("DeadCodeElimination", GraphInferTypesPass(), GraphSimplifyPass())


def CanonicalizeBindings() -> Pass:
    """Merge equal operators, and remove identities."""
    return _passes("CanonicalizeBindings", GraphInferTypesPass(), GraphSimplifyPass())


EliminateCommonSubexpr = RemoveRedundantReshape = CanonicalizeBindings


def FoldConstant() -> Pass:
    return _passes("FoldConstant", GraphInferTypesPass(), GraphFoldConstantsPass())


def ToMixedPrecision(out_dtype: str = "float32", fp16_input_names: object = None) -> Pass:
    """Store constant factors as float16 and accumulate in float32, if faster on the current target (`with target:`), by
    default a CPU that converts float16. Raises `CompileError` for names of inputs and another `out_dtype`: signatures
    keep their types."""
    if out_dtype != "float32" or fp16_input_names:
        raise CompileError("ToMixedPrecision: parameters and results keep their types in weft: out_dtype='float32'")
    chosen = "llvm -mcpu=x86-64-v3" if (target := current_target()) is None else spelling(target)
    step = GraphPrecisionPass(chosen, "f16")
    return _passes("ToMixedPrecision", GraphInferTypesPass(), GraphFoldConstantsPass(), step)


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]], layout_cb: object = None) -> Pass:
    """Store images as NCHWc if estimates favour it."""
    del desired_layouts, layout_cb
    return _passes("ConvertLayout", GraphInferTypesPass(), GraphFoldConstantsPass(), GraphBlockLayoutsPass("llvm"))


def InlinePrivateFunctions() -> Pass:
    def run(mod: IRModule, _: object) -> IRModule:
        mark_groups(copy := mod.clone())
        inline_calls(copy)
        return copy

    return Pass(run, "InlinePrivateFunctions")


def _nothing(name: str, why: str) -> Callable[..., Pass]:
    def make(*_: object, **__: object) -> Pass:
        return Pass(lambda mod, _: mod.clone(), name)

    make.__name__, make.__doc__ = name, f"A copy: {why}."
    return make


AnnotateTIROpPattern = _nothing("AnnotateTIROpPattern", "FuseOps reads what operators compute from their expressions")
LambdaLift = _nothing("LambdaLift", "functions inside of others are inlined where they are read")
Normalize = _nothing("Normalize", "IR has each call in a variable of its own")
ConvertToDataflow = _nothing("ConvertToDataflow", "functions of graphs are pure, in dataflow regions or not")
ToNonDataflow = _nothing("ToNonDataflow", "functions of graphs are pure, in dataflow regions or not")
CallTIRRewrite = _nothing("CallTIRRewrite", "relax.build allocates results")
DecomposeOpsForInference = _nothing("DecomposeOpsForInference", "operators compute as they do when models run")
StaticPlanBlockMemory = _nothing("StaticPlanBlockMemory", "relax.build plans memory")


__all__ = [
    "AnnotateTIROpPattern", "BindParams", "CallTIRRewrite", "CanonicalizeBindings", "ConvertLayout",
    "ConvertToDataflow", "DeadCodeElimination", "DecomposeOpsForInference", "EliminateCommonSubexpr", "FoldConstant",
    "FuseOps", "FuseTIR", "InlinePrivateFunctions", "LambdaLift", "LegalizeOps", "Normalize", "Pass",
    "RemoveRedundantReshape", "Sequential", "StaticPlanBlockMemory", "ToMixedPrecision", "ToNonDataflow", "module_pass",
]  # fmt: skip
__getattr__ = refuses(__name__)
