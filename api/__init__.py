"""weft, a tensor compiler whose every stage is textual, verified SSA IR on xDSL.

    import weft
    from weft import te

    sch = weft.Schedule(te.create_func([A, B, C], name="mm_relu"))
    lib = weft.build(sch.mod, target="llvm")
    lib["mm_relu"](a, b, c)

These are the public names; each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft import script, te
    from weft.analysis.structural_equality import assert_structural_equal, structural_equal
    from weft.dialects.levels import register_operation
    from weft.driver.build import build
    from weft.driver.programs import parse, parse_file
    from weft.driver.traces import parse_trace, run_trace
    from weft.frontends.script.schedule import Schedule
    from weft.frontends.stage_schedule import lower
    from weft.interp.interpreter import Interpreter
    from weft.passes.module_functions import (
        function_attributes,
        function_names,
        lookup,
        merge,
        remove_function,
        set_function_attribute,
        update_function,
    )
    from weft.runtime.export.loaded import load
    from weft.runtime.library import Library
    from weft.runtime.threads import get_num_threads, set_num_threads
    from weft.schedule.tensor_intrinsics import register_tensor_intrinsic
    from weft.schedule.traces import decisions_of, simplify_trace, trace_as_python
    from weft.support.errors import CompileError, InternalError, ScheduleError, WeftError
    from weft.support.intrinsics import register_intrinsic, register_lowering
    from weft.support.registry import get_func, register_func
    from weft.support.target import Target
    from weft.support.target_kinds import TargetKind, register_target_kind

__all__ = [
    "CompileError",
    "InternalError",
    "Interpreter",
    "Library",
    "Schedule",
    "ScheduleError",
    "Target",
    "TargetKind",
    "WeftError",
    "assert_structural_equal",
    "build",
    "decisions_of",
    "function_attributes",
    "function_names",
    "get_func",
    "get_num_threads",
    "load",
    "lookup",
    "lower",
    "merge",
    "parse",
    "parse_file",
    "parse_trace",
    "register_func",
    "register_intrinsic",
    "register_lowering",
    "register_operation",
    "register_target_kind",
    "register_tensor_intrinsic",
    "remove_function",
    "run_trace",
    "script",
    "set_function_attribute",
    "set_num_threads",
    "simplify_trace",
    "structural_equal",
    "te",
    "trace_as_python",
    "update_function",
]

_PLACES = {
    "CompileError": "weft.support.errors",
    "InternalError": "weft.support.errors",
    "Interpreter": "weft.interp.interpreter",
    "Library": "weft.runtime.library",
    "Schedule": "weft.frontends.script.schedule",
    "ScheduleError": "weft.support.errors",
    "Target": "weft.support.target",
    "TargetKind": "weft.support.target_kinds",
    "WeftError": "weft.support.errors",
    "assert_structural_equal": "weft.analysis.structural_equality",
    "build": "weft.driver.build",
    "decisions_of": "weft.schedule.traces",
    "function_attributes": "weft.passes.module_functions",
    "function_names": "weft.passes.module_functions",
    "get_func": "weft.support.registry",
    "get_num_threads": "weft.runtime.threads",
    "load": "weft.runtime.export.loaded",
    "lookup": "weft.passes.module_functions",
    "lower": "weft.frontends.stage_schedule",
    "merge": "weft.passes.module_functions",
    "parse": "weft.driver.programs",
    "parse_file": "weft.driver.programs",
    "parse_trace": "weft.driver.traces",
    "register_func": "weft.support.registry",
    "register_intrinsic": "weft.support.intrinsics",
    "register_lowering": "weft.support.intrinsics",
    "register_operation": "weft.dialects.levels",
    "register_target_kind": "weft.support.target_kinds",
    "register_tensor_intrinsic": "weft.schedule.tensor_intrinsics",
    "remove_function": "weft.passes.module_functions",
    "run_trace": "weft.driver.traces",
    "set_function_attribute": "weft.passes.module_functions",
    "set_num_threads": "weft.runtime.threads",
    "simplify_trace": "weft.schedule.traces",
    "structural_equal": "weft.analysis.structural_equality",
    "trace_as_python": "weft.schedule.traces",
    "update_function": "weft.passes.module_functions",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("weft")
    if name in ("script", "te"):
        return import_module(f"weft.{name}")
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'weft' has no attribute '{name}'")
