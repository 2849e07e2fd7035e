"""Run a module's transform scripts, and write the payload in upstream's dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    ModuleOp,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.transform import NamedSequenceOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects import sched
from weft.dialects.tir_kinds import INIT_ORIGIN, ORIGIN
from weft.dialects.traversal import copy_of, operations_in
from weft.dialects.upstream.bufferization import ToBufferOp, ToTensorOp
from weft.passes.convert.convert_low_to_upstream import ConvertLowToUpstreamPass
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.schedule.schedule import Schedule
from weft.schedule.traces import simplify_trace
from weft.schedule.transform import cleanups, control, loops, matchers, packing, structured
from weft.schedule.transform.interpreter import Interpreter, Silenceable
from weft.schedule.transform.payload import WITH_SCRIPTS, Payload, program_ops
from weft.support.errors import CompileError, ScheduleError, Violation, remark

ENTRY_POINT: Final = "__transform_main"
PROMISES: Final = ("reassoc",)
SCRIPT_OPS: Final = ("transform.named_sequence", "transform.sequence")
_DRAWS: Final = 16
"""Attempts to draw choices with which a script succeeds."""
FAMILIES = (control, matchers, structured, loops, packing, cleanups)
"""Their import registers handlers."""


def has_script(module: ModuleOp) -> bool:
    """Whether there is `@__transform_main`, or a sequence at the top."""
    return any(
        op.name == SCRIPT_OPS[1] or (isinstance(op, NamedSequenceOp) and op.sym_name.data == ENTRY_POINT)
        for op in program_ops(module)
    )


class ScriptProgram:
    """Schedules the script's payload; knobs and alternatives are a search space."""

    def __init__(self, module: ModuleOp) -> None:
        """Run with the script's choices, or drawn ones. Raises `CompileError` for failures."""
        self._module = copy_of(module)
        for seed in range(_DRAWS):
            self._payload = Payload(module, PROMISES, seed)
            interpreter = Interpreter(self._payload, self._module, draws=True)
            try:
                interpreter.run(ENTRY_POINT)
                break
            except Silenceable:
                if seed == _DRAWS - 1:
                    raise
        self.trace: sched.FuncOp = simplify_trace(self._payload.schedule.trace, keep_sampling=True)

    def payload(self) -> ModuleOp:
        module = copy_of(self._payload.schedule.original)
        forget_origins(module)
        return module

    def __call__(self, schedule: Schedule) -> None:
        try:
            Interpreter(self._payload.of_schedule(schedule), self._module, draws=True).run(ENTRY_POINT)
        except Silenceable as error:
            raise ScheduleError("transform", 0, "", Violation(error.message)) from error
        forget_origins(schedule.mod)


@dataclass(frozen=True)
class ScriptPass(ModulePass):
    fast_math = (FastMathFlag.REASSOC,)

    entry_point: str = ENTRY_POINT
    """The named sequence to run."""
    promises: tuple[str, ...] = PROMISES
    """Assumptions of the payload: `noalias`, `contract`, `reassoc`. MLIR reassociates the reductions of linalg."""
    choices: tuple[str, ...] = ()
    """Values of `tune.knob` and regions of `tune.alternatives`, each `NAME=VALUE`."""
    seed: int = 0
    """Seed of the knobs without a value."""
    debug_bind_trailing_args: tuple[str, ...] = ()
    """Names of payload ops: further arguments of the entry point are handles to them, as with MLIR's option."""

    def interpreted(self, module: ModuleOp) -> Interpreter:
        """Raises `CompileError` for failures."""
        payload = Payload(module, self.promises, self.seed)
        interpreter = Interpreter(payload, module, parse_choices(self.choices))
        interpreter.run(self.entry_point, self.debug_bind_trailing_args)
        return interpreter


def parse_choices(choices: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for choice in choices:
        name, equals, value = choice.partition("=")
        if not equals:
            raise CompileError(f"a choice is given as NAME=VALUE, got '{choice}'")
        found[name] = value
    return found


def forget_origins(module: ModuleOp) -> None:
    """Drop attributes that identify blocks, also from other ops."""
    for op in operations_in(module):
        op.attributes.pop(ORIGIN, None)
        op.attributes.pop(INIT_ORIGIN, None)


def replace_body(module: ModuleOp, new: ModuleOp) -> None:
    for op in list(module.body.block.ops):
        Rewriter.erase_op(op, safe_erase=False)
    for op in list(new.body.block.ops):
        op.detach()
        module.body.block.add_op(op)
    module.attributes.pop(WITH_SCRIPTS, None)


def payload_of(interpreter: Interpreter) -> ModuleOp:
    """The scheduled program in upstream dialects, with its original signatures."""
    result, source = interpreter.payload.schedule.mod, interpreter.payload.source
    forget_origins(result)
    LowerTirToLowPass().apply(Context(), result)
    ConvertLowToUpstreamPass().apply(Context(), result)
    if not interpreter.is_bufferized:
        types = {op.sym_name.data: op for op in source.ops if isinstance(op, FuncOp)}
        called = {op.callee.string_value() for op in operations_in(result) if isinstance(op, CallOp)}
        for function in [op for op in result.ops if isinstance(op, FuncOp)]:
            original = types.get(function.sym_name.data)
            if original is not None and original.function_type != function.function_type:
                _restore_tensors(function, original, is_called=function.sym_name.data in called)
    for one in interpreter.later:
        one(result)
    return result


def _restore_tensors(function: FuncOp, original: FuncOp, *, is_called: bool) -> None:
    inputs, outputs = list(original.function_type.inputs), list(original.function_type.outputs)
    tensors = [type_ for type_ in outputs if isinstance(type_, TensorType)]
    block = function.body.block
    if is_called or any(DYNAMIC_INDEX in type_.get_shape() for type_ in tensors):
        reason = "other functions call it" if is_called else "extents of its results are dynamic"
        remark(function, f"@{function.sym_name.data} stays a function over buffers: {reason}")
        return
    results: list[SSAValue] = []
    start: list[Operation] = []
    for argument in list(block.args)[len(inputs) :]:
        alloc = memref.AllocOp([], [], argument.type)
        start.append(alloc)
        argument.replace_all_uses_with(alloc.memref)
        results.append(alloc.memref)
        block.erase_arg(argument)
    for argument, type_ in zip(list(block.args), inputs, strict=True):
        if not isinstance(type_, TensorType):
            continue
        buffer = ToBufferOp.create(
            operands=[argument], properties={"read_only": UnitAttr()}, result_types=[argument.type]
        )
        argument.replace_all_uses_with(buffer.memref)
        buffer.operands = [argument]
        start.append(buffer)
    last = block.last_op
    if not isinstance(last, ReturnOp):
        raise CompileError.at(function, f"@{function.sym_name.data} ends in another op than func.return")
    numbers, given = iter(list(last.operands)), iter(results)
    returned: list[SSAValue] = []
    for type_ in outputs:
        if isinstance(type_, TensorType):
            buffer = next(given)
            tensor = ToTensorOp.create(
                operands=[buffer],
                properties={"restrict": UnitAttr(), "writable": UnitAttr()},
                result_types=[type_],
            )
            Rewriter.insert_op(tensor, InsertPoint.before(last))
            returned.append(tensor.tensor)
        else:
            returned.append(next(numbers))
    last.operands = returned
    Rewriter.insert_op(start, InsertPoint.at_start(block))
    for argument, type_ in zip(block.args, inputs, strict=True):
        Rewriter.replace_value_with_new_type(argument, type_)
    function.function_type = FunctionType.from_lists(inputs, outputs)
    function.arg_attrs, function.res_attrs = original.arg_attrs, original.res_attrs
