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
    from weft.support.target import Target, TargetKind, register_target_kind
    from weft.support.user_functions import get_func, register_func, register_intrinsic, register_lowering

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
    name: module
    for module, names in {
        "weft.analysis.structural_equality": (
            "assert_structural_equal",
            "structural_equal",
        ),
        "weft.dialects.levels": ("register_operation",),
        "weft.driver.build": ("build",),
        "weft.driver.programs": (
            "parse",
            "parse_file",
        ),
        "weft.driver.traces": (
            "parse_trace",
            "run_trace",
        ),
        "weft.frontends.script.schedule": ("Schedule",),
        "weft.frontends.stage_schedule": ("lower",),
        "weft.interp.interpreter": ("Interpreter",),
        "weft.passes.module_functions": (
            "function_attributes",
            "function_names",
            "lookup",
            "merge",
            "remove_function",
            "set_function_attribute",
            "update_function",
        ),
        "weft.runtime.export.loaded": ("load",),
        "weft.runtime.library": ("Library",),
        "weft.runtime.threads": (
            "get_num_threads",
            "set_num_threads",
        ),
        "weft.schedule.tensor_intrinsics": ("register_tensor_intrinsic",),
        "weft.schedule.traces": (
            "decisions_of",
            "simplify_trace",
            "trace_as_python",
        ),
        "weft.support.errors": (
            "CompileError",
            "InternalError",
            "ScheduleError",
            "WeftError",
        ),
        "weft.support.target": (
            "Target",
            "TargetKind",
            "register_target_kind",
        ),
        "weft.support.user_functions": (
            "get_func",
            "register_func",
            "register_intrinsic",
            "register_lowering",
        ),
    }.items()
    for name in names
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
