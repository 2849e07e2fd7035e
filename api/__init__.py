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
    from weft import script as script
    from weft import te as te
    from weft.analysis.structural_equality import assert_structural_equal as assert_structural_equal
    from weft.analysis.structural_equality import structural_equal as structural_equal
    from weft.dialects.levels import register_operation as register_operation
    from weft.driver.build import build as build
    from weft.driver.programs import parse as parse
    from weft.driver.programs import parse_file as parse_file
    from weft.driver.traces import parse_trace as parse_trace
    from weft.driver.traces import run_trace as run_trace
    from weft.frontends.script.schedule import Schedule as Schedule
    from weft.frontends.stage_schedule import lower as lower
    from weft.interp.interpreter import Interpreter as Interpreter
    from weft.passes.module_functions import function_attributes as function_attributes
    from weft.passes.module_functions import function_names as function_names
    from weft.passes.module_functions import lookup as lookup
    from weft.passes.module_functions import merge as merge
    from weft.passes.module_functions import remove_function as remove_function
    from weft.passes.module_functions import set_function_attribute as set_function_attribute
    from weft.passes.module_functions import update_function as update_function
    from weft.runtime.export.loaded import load as load
    from weft.runtime.library import Library as Library
    from weft.runtime.native_runtime import get_num_threads as get_num_threads
    from weft.runtime.native_runtime import set_num_threads as set_num_threads
    from weft.schedule.tensor_intrinsics import register_tensor_intrinsic as register_tensor_intrinsic
    from weft.schedule.traces import decisions_of as decisions_of
    from weft.schedule.traces import simplify_trace as simplify_trace
    from weft.schedule.traces import trace_as_python as trace_as_python
    from weft.support.errors import CompileError as CompileError
    from weft.support.errors import InternalError as InternalError
    from weft.support.errors import ScheduleError as ScheduleError
    from weft.support.errors import WeftError as WeftError
    from weft.support.target import Target as Target
    from weft.support.target import TargetKind as TargetKind
    from weft.support.target import register_target_kind as register_target_kind
    from weft.support.user_functions import get_func as get_func
    from weft.support.user_functions import register_func as register_func
    from weft.support.user_functions import register_intrinsic as register_intrinsic
    from weft.support.user_functions import register_lowering as register_lowering

_MODULES = {
    "weft.analysis.structural_equality": ("assert_structural_equal", "structural_equal"),
    "weft.dialects.levels": ("register_operation",),
    "weft.driver.build": ("build",),
    "weft.driver.programs": ("parse", "parse_file"),
    "weft.driver.traces": ("parse_trace", "run_trace"),
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
    "weft.runtime.native_runtime": ("get_num_threads", "set_num_threads"),
    "weft.schedule.tensor_intrinsics": ("register_tensor_intrinsic",),
    "weft.schedule.traces": ("decisions_of", "simplify_trace", "trace_as_python"),
    "weft.support.errors": ("CompileError", "InternalError", "ScheduleError", "WeftError"),
    "weft.support.target": ("Target", "TargetKind", "register_target_kind"),
    "weft.support.user_functions": ("get_func", "register_func", "register_intrinsic", "register_lowering"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = ["script", "te", *_PLACES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("weft")
    if name in ("script", "te"):
        return import_module(f"weft.{name}")
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'weft' has no attribute '{name}'")
