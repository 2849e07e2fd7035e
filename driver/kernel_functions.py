"""Kernels of a model: private functions over buffers that other functions call, and that call none themselves.

The key of a kernel covers everything that its code depends on: its structure (`analysis/structural_hash.py`), including
the globals and declarations that it refers to, the target, the options, and the versions of weft and its compilers. Its
symbol contains the key, so that objects of several programs can be linked.
"""

from __future__ import annotations

import hashlib

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from weft.autoschedule.default_schedule import scheduled_by
from weft.dialects.traversal import operations_in
from weft.driver.pipeline import ModelKernel, Pipeline
from weft.driver.tuned_schedules import tuned_records
from weft.driver.workloads import function_digest, needed_by
from weft.passes.module_edits import calls_by_name, named_ops, schedules_of
from weft.passes.tir.tir_collect_imports import PRAGMAS
from weft.passes.tir.tir_pass import buffer_functions
from weft.runtime.compile_cache import code_depends_on
from weft.support.build_options import BuildOptions


def find_kernels(pipeline: Pipeline) -> list[ModelKernel]:
    module, options = pipeline.module, pipeline.options
    known = named_ops(module)
    functions = _functions_apart(module, options, known)
    if not functions:
        return []
    depends = code_depends_on(pipeline.target, options.of_kernels())
    tuned = {}
    if options.database is not None:
        tuned = tuned_records(module, pipeline.target, options.database, options.require_tuned)
    found: dict[str, ModelKernel] = {}
    for function, needed in functions.items():
        records = b"".join(record.uid for record in tuned.get(function.sym_name.data, ()))
        key = hashlib.blake2b(function_digest(function, needed) + depends + records, digest_size=32).hexdigest()
        if key in found:
            found[key].functions.append(function)
        else:
            found[key] = ModelKernel(key, [function], list(needed))
    return list(found.values())


def _functions_apart(
    module: ModuleOp, options: BuildOptions, known: dict[str, Operation]
) -> dict[FuncOp, tuple[Operation, ...]]:
    scheduled: set[str] = set()
    for schedule in schedules_of(module) if options.scheduled else ():
        scheduled |= scheduled_by(schedule, module)
    calls, found = calls_by_name(module), dict[FuncOp, tuple[Operation, ...]]()
    for function in buffer_functions(module):
        name = function.sym_name.data
        is_private = function.sym_visibility is not None and function.sym_visibility.data == "private"
        if (
            is_private
            and calls.get(name)
            and name not in scheduled
            and not function.function_type.outputs
            and len(function.body.blocks) == 1
            and (needed := needed_by(function, known)) is not None
            and not any(pragma in op.attributes for op in operations_in(function) for pragma in PRAGMAS)
        ):
            found[function] = needed
    return found
