"""The public names of weft, and where they are defined: for type checkers, and read by `__init__.py`."""

from weft import graph as graph
from weft import script as script
from weft import te as te
from weft.analysis.structural_equality import assert_structural_equal as assert_structural_equal
from weft.analysis.structural_equality import structural_equal as structural_equal
from weft.dialects.element_types import register_element_type as register_element_type
from weft.dialects.levels import register_operation as register_operation
from weft.driver.build import build as build
from weft.driver.build import schedule_of as schedule_of
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

__version__: str
