"""Removal of results that are parameters."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.upstream.views import uncast
from weft.passes.module_edits import calls_by_name


def drop_returned_parameters(module: ModuleOp, functions: Iterable[FuncOp]) -> None:
    """Drop the results of functions that are parameters, or casts of them, in place.

    ```mlir
    func.func @f(%C: memref<4xf32>) -> memref<4xf32> { ... return %C : memref<4xf32> }
    // becomes
    func.func @f(%C: memref<4xf32>) { ... return }
    ```
    Calls use the argument instead. A function with references other than calls is unchanged.
    """
    calls: dict[str, list[CallOp]] | None = None
    for function in functions:
        returned = {
            at: parameter.index
            for at, value in enumerate(_returned(function))
            if (parameter := _parameter_of(value, function)) is not None
        }
        if not returned:
            continue
        calls = calls_by_name(module) if calls is None else calls
        if (own := calls.get(function.sym_name.data)) is not None:
            _drop(function, returned)
            for call in own:
                _give_arguments(call, returned)


def _returned(function: FuncOp) -> tuple[SSAValue, ...]:
    if not any(isinstance(type_, MemRefType) for type_ in function.function_type.outputs):
        return ()
    last = function.body.blocks[0].last_op if len(function.body.blocks) == 1 else None
    return tuple(last.arguments) if isinstance(last, ReturnOp) else ()


def _parameter_of(value: SSAValue, function: FuncOp) -> BlockArgument | None:
    value = uncast(value)
    if not isinstance(value, BlockArgument) or not isinstance(value.type, MemRefType):
        return None
    return value if value.block is function.body.block else None


def _drop(function: FuncOp, returned: dict[int, int]) -> None:
    last = function.body.block.last_op
    if isinstance(last, ReturnOp):
        last.operands = [value for at, value in enumerate(last.operands) if at not in returned]
    if isinstance(function.res_attrs, ArrayAttr):
        left = [entry for at, entry in enumerate(function.res_attrs) if at not in returned]
        function.res_attrs = ArrayAttr(left) if any(entry.data for entry in left) else None
    function.update_function_type()


def _give_arguments(call: CallOp, returned: dict[int, int]) -> None:
    kept = [result for at, result in enumerate(call.results) if at not in returned]
    new = CallOp(call.callee, call.arguments, [result.type for result in kept])
    new.attributes.update(call.attributes)
    new.location = call.location
    Rewriter.insert_op(new, InsertPoint.before(call))
    for old, result in zip(kept, new.results, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    for at, position in returned.items():
        call.results[at].replace_all_uses_with(_as_type(call.arguments[position], call.results[at], call))
    Rewriter.erase_op(call)


def _as_type(argument: SSAValue, result: SSAValue, anchor: Operation) -> SSAValue:
    if argument.type == result.type or not isinstance(result.type, MemRefType):
        return argument
    cast = memref.CastOp.get(argument, result.type)
    cast.location = anchor.location
    Rewriter.insert_op(cast, InsertPoint.before(anchor))
    return cast.dest
