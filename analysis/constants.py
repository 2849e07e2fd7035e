"""Values known when a program is built, so that computations on them can be folded."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, IntegerType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import AllocOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from weft.analysis.block_scopes import buffers_stored_by, function_of, stored_buffer
from weft.dialects.argument_attributes import has_argument_attribute
from weft.dialects.effects import is_pure, opaque_op, views_of
from weft.dialects.element_types import buffer_bytes
from weft.dialects.tir_kinds import CONSTANT
from weft.dialects.traversal import ancestors, captured_values, operations_in


def is_constant(value: SSAValue) -> bool:
    """Whether a value is the same in all calls: a number, a `tir.constant` parameter, or a temporary computed only from
    such values, except dequantized weights (`is_dequantized`)."""
    return _is_constant(value, frozenset())


def is_dequantized(value: SSAValue) -> bool:
    """Whether a value is a temporary of floats computed from a smaller `tir.constant` parameter of integers; each
    call recomputes it, because weights stay in memory as stored."""
    if not isinstance(value.owner, AllocOp):
        return False
    writers = [nest for nest in _nests_using(value.owner) if _writes(nest, value)]
    return _expands_integers(value, writers)


def _expands_integers(temporary: SSAValue, writers: Sequence[Operation]) -> bool:
    type_ = temporary.type
    if not isinstance(type_, MemRefType) or not isinstance(type_.element_type, AnyFloat):
        return False
    sources = {value for nest in writers for value in captured_values(nest) if isinstance(value, BlockArgument)}
    return any(
        isinstance(source.type, MemRefType)
        and isinstance(source.type.element_type, IntegerType)
        and _is_constant(source, frozenset())
        and buffer_bytes(source.type) < buffer_bytes(type_)
        for source in sources
    )


def is_constant_nest(nest: Operation) -> bool:
    return _computes_constants(nest, frozenset())


def _is_constant(value: SSAValue, inside: frozenset[SSAValue]) -> bool:
    """The temporaries `inside`, being checked, count as constant."""
    if value in inside:
        return True
    if isinstance(value, BlockArgument):
        function = value.block.parent_op()
        return isinstance(function, FuncOp) and has_argument_attribute(function, value.index, CONSTANT)
    op = value.owner
    if not isinstance(op, Operation) or not all(_is_constant(operand, inside) for operand in op.operands):
        return False
    if not isinstance(op, AllocOp):
        return is_pure(op) and not isinstance(value.type, MemRefType)
    if any(view is not value for view in views_of(value)):
        return False
    writers = [nest for nest in _nests_using(op) if _writes(nest, value)]
    is_known = bool(writers) and all(_computes_constants(nest, inside | {value}) for nest in writers)
    return is_known and not _expands_integers(value, writers)


def _computes_constants(nest: Operation, inside: frozenset[SSAValue]) -> bool:
    if not nest.regions or opaque_op(nest) is not None:
        return False
    return all(_is_constant(value, inside) for value in (*nest.operands, *captured_values(nest)))


def _writes(nest: Operation, buffer: SSAValue) -> bool:
    inside = operations_in(nest)
    return any(stored_buffer(op) is buffer or buffer in buffers_stored_by(op) for op in inside)


def _nests_using(op: AllocOp) -> list[Operation]:
    function = function_of(op)
    found: dict[Operation, None] = {}
    for use in op.memref.uses:
        around = (use.operation, *ancestors(use.operation))
        found.update(dict.fromkeys(place for place in around if place.parent_op() is function))
    return list(found)


def verify_constants(function: FuncOp) -> None:
    """Raises `VerifyException` for a `tir.constant` parameter that is no buffer of static shape, or is written."""
    for argument in function.args:
        if not has_argument_attribute(function, argument.index, CONSTANT):
            continue
        type_, name = argument.type, argument.name_hint or f"arg{argument.index}"
        what = f"parameter '{name}' of @{function.sym_name.data} is marked {CONSTANT}"
        if not isinstance(type_, MemRefType) or not type_.has_static_shape():
            raise VerifyException(f"{what}: that is a buffer of static shape, got {type_}")
        names = {argument, *views_of(argument)}
        if any(not names.isdisjoint(buffers_stored_by(op)) for op in operations_in(function)):
            raise VerifyException(f"{what}, and the function writes it")
