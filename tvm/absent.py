"""The names of the packages of `weft.tvm`, imported at their first use, because the packages import each other as TVM's
do. Errors for other names of TVM state the nearest equivalent in weft."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules

from weft.support.errors import did_you_mean

_NEAREST = {
    "arith": "weft simplifies in its passes (`weft-opt`)",
    **dict.fromkeys(("auto_scheduler", "autotvm"), "weft.tvm.meta_schedule tunes; default schedules need no search"),
    **dict.fromkeys(("compute", "create_schedule", "placeholder", "reduce_axis", "sum", "var"), "weft.tvm.te"),
    "instrument": "lib.timing of weft.build says how long each stage took",
    "micro": "weft.build(mod, target='c').get_source() is C without dependencies",
    "parser": "weft.tvm.script.from_source reads scripts",
    "rpc": "the library that weft.build gives is exported (lib.export) and run where its target is",
    **dict.fromkeys(("rocm", "vulkan"), "the kinds of GPU are cuda, opencl and metal"),
    "ir.Range": "te.reduce_axis takes (low, extent)",
    "ir.load_json": "weft.parse reads modules as MLIR text",
    "ir.structural_hash": "weft.structural_equal",
    "ir.make_node": "te and tir build expressions",
    "ir.save_json": "str(weft.graph.Module) and printers of xDSL write modules as MLIR text",
    "ir.transform.PrintIR": "`weft-opt --print-ir-after-all` shows the IR after each pass",
    **dict.fromkeys(("meta_schedule.builder", "meta_schedule.runner"), "weft.tune(..., executor=...)"),
    "meta_schedule.cost_model": "weft.tune measures what it proposes",
    "meta_schedule.database": "weft.tune keeps records in a file of SQLite: `weft db`",
    "meta_schedule.tune_tasks": "weft.tune",
    "nd.from_dlpack": "numpy.from_dlpack; compiled functions take arrays with DLPack",
    "relax.If": "BlockBuilder.emit_if of weft.graph",
    "relax.PyExprVisitor": "func.body.blocks and their .bindings",
    "relax.ShapeExpr": "shapes are tuples",
    "relax.distributed": "weft runs a model on one device",
    "relax.analysis.free_vars": "functions of a graph take all that they use",
    "relax.analysis.well_formed": "module.verify()",
    "relax.frontend.stablehlo": "weft.build takes modules of stablehlo",
    "relax.frontend.tflite": "weft reads models of ONNX and PyTorch, and StableHLO",
    "relax.transform.FuseOpsByPattern": "relax.dpl.rewrite_call, or weft.graph.pattern, finds and replaces",
    "relax.transform.MergeCompositeFunctions": "weft calls no libraries of operators: FuseOps makes kernels",
    "relax.transform.RewriteCUDAGraph": "kernels of a model are launched one by one",
    "relax.transform.RunCodegen": "weft calls no libraries of operators; call_dps_packed calls registered functions",
    "relax.transform.MetaScheduleApplyDatabase": "weft.build(program, database=...)",
    **{f"relay.{name}": "weft.tvm.relax" for name in ("Function", "nn", "op", "transform", "var")},
    "relay.quantize": "weft builds models that are quantised by ONNX",
    "runtime.load_module": "weft.load reads an exported library",
    "runtime.profiling": "lib.profile",
    "script.highlight": "mod.show()",
    "target.arm_cpu": 'Target("llvm -mcpu=...")',
    "target.create": "Target",
    **dict.fromkeys(("relax.training", "te.gradient"), "weft computes no gradients"),
    **dict.fromkeys(("te.extern", "te.hybrid"), "a function of loops is a T.prim_func"),
    "te.scan": "weft.graph's BlockBuilder.emit_loop",
    "tir.FloatImm": "tir.const(1.0, 'float32')",
    "tir.IntImm": "tir.const(1, 'int32')",
    "tir.analysis": "weft.Schedule checks each step; lib.report() estimates arithmetic and bytes",
    "tir.decl_buffer": "te.decl_buffer",
    "tir.ir_builder": "functions are written as script, or with te",
    "tir.stmt_functor": "passes of xDSL walk and rewrite IR: docs/inserting-passes.md",
    "tir.transform": "docs/passes.md names weft's passes; weft.build(..., passes=...) inserts some",
    **dict.fromkeys(("topi.cuda", "topi.generic", "topi.x86"), "weft.build schedules unscheduled functions"),
    "topi.bias_add": "add",
    "topi.conv2d_nchw": "conv2d(data, weight, stride, padding)",
}
"""Names of TVM -> the equivalent in weft."""


def refuses(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a module of `weft.tvm`, which raises `AttributeError`."""

    def missing(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        own = vars(sys.modules[module])
        names = own.get("__all__", {*own, *(found.name for found in iter_modules(own.get("__path__", ())))})
        known = [known for known in names if not known.startswith("_") and known != "refuses"]
        nearest = _NEAREST.get(f"{module}.{name}".removeprefix("weft.tvm."))
        hint = f": {nearest}" if nearest else did_you_mean(name, known)
        raise AttributeError(f"{module} has no '{name}' of TVM{hint}")

    return missing


def named(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package of `weft.tvm` for names that other modules define: `places` maps each to its
    module, or to "" for a module of the package. Raises `AttributeError` for other names, as `refuses` does."""
    missing = refuses(package)

    def found(name: str) -> object:
        if name not in places:
            return missing(name)
        return getattr(import_module(places[name]), name) if places[name] else import_module(f"{package}.{name}")

    return found
