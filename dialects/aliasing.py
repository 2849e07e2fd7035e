"""Aliasing of a function's buffers (docs/decisions/0041-promises.md).

Parameters may alias, in part and with other element types, unless the function promises `noalias` or they are
`llvm.noalias`. Allocations and globals alias no parameter; other buffers, such as results of `scf.if`, may alias any.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.dialects.argument_attributes import has_argument_attribute, set_argument_attribute
from weft.dialects.promises import PROMISES, Promise, promises_of
from weft.dialects.traversal import ancestors

NOALIAS_ARGUMENT: Final = "llvm.noalias"
"""The buffer overlaps no other argument."""
_OWN = frozenset((memref.AllocOp, memref.AllocaOp, memref.GetGlobalOp))


def may_overlap(first: SSAValue, second: SSAValue) -> bool:
    """Whether buffers may share memory; they are not views."""
    if first is second or _is_of_any_memory(first) or _is_of_any_memory(second):
        return True
    return is_exposed(first) and is_exposed(second)


def is_exposed(buffer: SSAValue) -> bool:
    """Whether a parameter may overlap a buffer that is no view."""
    if type(buffer) is BlockArgument and type(function := buffer.block.parent_op()) is FuncOp:
        if PROMISES not in function.attributes or Promise.NOALIAS in promises_of(function):
            return False
        return not has_noalias(function, buffer.index)
    return _is_of_any_memory(buffer)


def _is_of_any_memory(buffer: SSAValue) -> bool:
    if type(buffer) is BlockArgument:
        owner = buffer.block.parent_op()
        return owner is not None and type(owner) is not FuncOp
    return type(buffer.owner) not in _OWN


def _function_around(buffer: SSAValue) -> FuncOp | None:
    place = buffer.owner if isinstance(buffer.owner, Operation) else buffer.owner.parent_op()
    around = () if place is None else (place, *ancestors(place))
    return next((op for op in around if isinstance(op, FuncOp)), None)


def exposed_arguments(function: FuncOp) -> tuple[BlockArgument, ...]:
    if PROMISES not in function.attributes or not function.body.blocks:
        return ()
    found = tuple(a for a in function.args if isinstance(a.type, MemRefType) and is_exposed(a))
    return found if len(found) > 1 else ()


def overlapping(buffer: SSAValue) -> tuple[SSAValue, ...]:
    """Other parameters that may overlap `buffer`, which is no view."""
    if not is_exposed(buffer) or (function := _function_around(buffer)) is None:
        return ()
    if _is_of_any_memory(buffer):
        return tuple(argument for argument in function.args if isinstance(argument.type, MemRefType))
    return tuple(argument for argument in exposed_arguments(function) if argument is not buffer)


def with_overlapping(buffers: Iterable[SSAValue]) -> set[SSAValue]:
    """Add the parameters that may overlap the buffers, which are no views."""
    found = set(buffers)
    return found.union(*[overlapping(buffer) for buffer in found if is_exposed(buffer)])


def has_noalias(function: FuncOp, position: int) -> bool:
    return has_argument_attribute(function, position, NOALIAS_ARGUMENT)


def set_noalias(function: FuncOp, positions: Iterable[int]) -> None:
    set_argument_attribute(function, positions, NOALIAS_ARGUMENT)


def add_argument_attributes(function: FuncOp, before: int = 0, behind: int = 0) -> None:
    if isinstance(function.arg_attrs, ArrayAttr):
        none = DictionaryAttr({})
        function.arg_attrs = ArrayAttr([none] * before + [*function.arg_attrs] + [none] * behind)


def overlap_text(first: SSAValue, second: SSAValue) -> str:
    return f"{buffer_name(first)} and {buffer_name(second)} may overlap"


def overlap_advice(buffer: SSAValue) -> str:
    function = _function_around(buffer)
    name = "the function" if function is None else f"@{function.sym_name.data}"
    return (
        f'where buffers do not overlap, {name} promises it: "{Promise.NOALIAS.value}" in {PROMISES}, or '
        f"{NOALIAS_ARGUMENT} on the argument"
    )


def buffer_name(buffer: SSAValue) -> str:
    if buffer.name_hint:
        return buffer.name_hint
    return f"argument {buffer.index}" if isinstance(buffer, BlockArgument) else "a buffer"
