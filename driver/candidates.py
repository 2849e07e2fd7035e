"""Compilation of candidates of a search, from the text of a program and of a schedule to machine code.

Building kernels requires no device. CUDA kernels become machine code if NVRTC is installed; OpenCL kernels stay text,
because only drivers have compilers for it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import GetGlobalOp, GlobalOp

from weft.backends.cuda.nvrtc import MissingCompilerError, compile_cubin
from weft.backends.llvm.compile import object_code
from weft.backends.llvm.emit import emit_module
from weft.dialects.argument_attributes import has_argument_attribute
from weft.dialects.constant_data import dense_attribute
from weft.dialects.effects import is_pure
from weft.dialects.low import imported_c
from weft.dialects.low_signature import signatures_of
from weft.dialects.tir_assume import AssumeOp, AssumeSizesOp
from weft.dialects.tir_kinds import CONSTANT, TIR_FUNCTION
from weft.dialects.traversal import copy_of
from weft.driver.pipeline import Pipeline
from weft.driver.programs import parse
from weft.driver.stages import lower
from weft.driver.traces import trace_with_decisions
from weft.interp.arguments import argument_recipe
from weft.passes.module_edits import functions_of, named_ops
from weft.runtime.constants import take_constants
from weft.runtime.gpu_library import emit_program
from weft.support.build_options import BuildOptions
from weft.support.limited_calls import Failure, Limits, limited_call
from weft.support.names import free_name
from weft.support.target import Target
from weft.tuning.measuring import Built

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import SSAValue

    from weft.passes.schedule.sampling import Decision
    from weft.support.call_signature import Signature

_DECLARATIONS: Final = re.compile(r"^\s*declare\b.*$", re.MULTILINE)


def build_candidate(
    ir: str, trace: str, decisions: Sequence[Decision | None], target: str, limits: Limits
) -> Built | Failure:
    """Build, in a child process, the first function of a tir module, scheduled by a trace with decisions."""
    return limited_call(limits, build_here, ir, trace, decisions, target)


def build_here(ir: str, trace: str, decisions: Sequence[Decision | None], target: str) -> Built:
    """`build_candidate` in this process. Raises `CompileError` and `ScheduleError`."""
    module = copy_of(_parsed(ir))
    name = _entry(module)
    module.body.block.add_op(trace_with_decisions(trace, decisions))
    machine = Target.parse(target)
    # Steps preserve validity, and the program was verified before.
    lower(Pipeline(module, machine, BuildOptions(default_schedule=False, verify=False)))
    signatures = {signature.name: signature for signature in signatures_of(module)}
    if machine.has_kernels:
        return _built_kernels(module, signatures[name], machine)
    constants = take_constants(module)
    text = emit_module(module, machine)
    declarations = "\n".join(_DECLARATIONS.findall(text))
    return Built(signatures[name], object_code(text, machine), target, declarations, constants, imported_c(module))


def _built_kernels(module: ModuleOp, signature: Signature, target: Target) -> Built:
    kernels, host, constants = emit_program(module, target)
    if target.kind == "cuda":
        with suppress(MissingCompilerError):  # the process that runs it reports this, unless it has NVRTC
            kernels = replace(kernels, binary=compile_cubin(kernels.text, target.arch))
    return Built(signature, host.encode(), str(target), constants=constants, kernels=kernels)


def constant_positions(function: FuncOp) -> tuple[int, ...]:
    """The parameters whose arguments are constants of the calling model."""
    return tuple(at for at in range(len(function.args)) if has_argument_attribute(function, at, CONSTANT))


def _entry(module: ModuleOp) -> str:
    """The first function, or a caller of it with random values for constant parameters, packed at build time as in the
    model."""
    function = next(iter(functions_of(module).values()))
    constants = constant_positions(function)
    if not constants:
        return function.sym_name.data
    values = argument_recipe(function).draw()
    types = [type_ for at, type_ in enumerate(function.function_type.inputs) if at not in constants]
    entry = FuncOp(free_name(f"call_{function.sym_name.data}", named_ops(module)), (types, ()))
    given = iter(entry.args)
    passed: list[SSAValue] = []
    for at, parameter in enumerate(function.args):
        if at in constants and isinstance(parameter.type, MemRefType):
            name, data = free_name(f"constant{at}", named_ops(module)), parameter.type
            value = dense_attribute(values[at], data.element_type)
            module.body.block.add_op(GlobalOp.get(StringAttr(name), data, value, constant=UnitAttr()))
            entry.body.block.add_op(get := GetGlobalOp(name, data))
            passed.append(get.memref)
        else:
            argument = next(given)
            argument.name_hint = parameter.name_hint
            passed.append(argument)
    _state_facts(function, entry, passed)
    entry.body.block.add_ops([CallOp(function.sym_name.data, passed, ()), ReturnOp()])
    entry.attributes[TIR_FUNCTION] = UnitAttr()  # marks it for packing of constants
    module.body.block.add_op(entry)
    function.sym_visibility = StringAttr("private")
    return entry.sym_name.data


def _state_facts(function: FuncOp, entry: FuncOp, passed: Sequence[SSAValue]) -> None:
    """Calls of `entry` then check what the call of `function` assumes."""
    copies: dict[SSAValue, SSAValue] = dict(zip(function.args, passed, strict=True))
    for op in function.body.block.ops:
        is_copied = isinstance(op, AssumeOp | AssumeSizesOp) or is_pure(op)
        if is_copied and all(operand in copies for operand in op.operands):
            entry.body.block.add_op(op.clone(copies))


@lru_cache(maxsize=4)
def _parsed(ir: str) -> ModuleOp:
    """Cached: successive candidates have the same program."""
    return parse(ir, "<workload>")
