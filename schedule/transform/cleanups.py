"""Operations that clean up, bufferize or run passes.

They run on the program before the first step, later on the resulting payload, since block loops have nothing to
simplify.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import PassFailedException

from weft.dialects.attribute_values import value_of
from weft.dialects.effects import op_name
from weft.dialects.upstream.transform import PATTERNS
from weft.passes.pipeline_text import parse_passes
from weft.schedule.transform.interpreter import Associated, Interpreter, handles, has_flag, text_of
from weft.schedule.transform.payload import PayloadFunction
from weft.support.errors import CompileError
from weft.support.packages import installed_universe

_PATTERNS = {f"{pattern.name}" for pattern in PATTERNS}
_KEEPING = (
    *("apply_cse", "apply_dce", "apply_licm", "bufferization.eliminate_empty_tensors"),
    "loop.hoist_loop_invariant_subsets",
)
_RETURNING = ("structured.hoist_redundant_vector_transfers", "structured.hoist_redundant_vector_broadcasts")


def _run_pass(interpreter: Interpreter, op: Operation, text: str) -> None:
    try:
        passes = list(parse_passes(text, installed_universe().all_passes))
    except CompileError as error:
        raise CompileError.at(op, f"{op_name(op)}: {error.message}") from error

    def run(module: ModuleOp) -> None:
        for one in passes:
            try:
                one.apply(Context(), module)
            except PassFailedException as error:
                raise interpreter.failure(op, f"pass '{one.name}' failed: {error}") from error

    payload = interpreter.payload
    if payload.is_unscheduled:
        if not payload.is_prepared:
            run(payload.source)
            payload.convert()
    else:
        interpreter.later.append(run)


@handles("apply_patterns")
def apply_patterns(interpreter: Interpreter, op: Operation) -> None:
    """Ignored: weft's lowering applies these clean-ups."""
    for pattern in op.regions[0].block.ops:
        if op_name(pattern) not in _PATTERNS:
            raise CompileError.at(pattern, f"{op_name(pattern)} is not supported")


@handles(*_KEEPING)
def keep(interpreter: Interpreter, op: Operation) -> None:
    """Ignored: weft's lowering does these clean-ups."""


@handles(*_RETURNING)
def keep_and_return(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    targets = interpreter.ops(op)
    interpreter.consume(op)
    return [targets]


@handles("apply_registered_pass")
def apply_registered_pass(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    targets = interpreter.ops(op)
    options = op.properties.get("options")
    given: Mapping[str, Attribute] = options.data if isinstance(options, DictionaryAttr) else {}
    text = text_of(op, "pass_name") or ""
    if given:
        texts = [f"{name}={_option_text(value_of(value))}" for name, value in given.items()]
        text += f"{{{' '.join(texts)}}}"
    for target in targets:
        if not isinstance(target, PayloadFunction):
            raise CompileError.at(op, f"{op_name(op)}: passes run on functions and modules, got {target.name}")
    interpreter.consume(op)
    if targets:
        _run_pass(interpreter, op, text)
    return [[interpreter.payload.renewed(target) for target in targets if isinstance(target, PayloadFunction)]]


def _option_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


@handles("bufferization.one_shot_bufferize")
def one_shot_bufferize(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    targets = interpreter.ops(op)
    interpreter.consume(op)
    if has_flag(op, "bufferize_function_boundaries"):
        interpreter.is_bufferized = True
    return [targets]
