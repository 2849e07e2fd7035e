"""Unit attributes of function arguments: callers' promises, such as `llvm.noalias`."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute


def argument_attributes(function: FuncOp) -> list[DictionaryAttr]:
    stated = list(function.arg_attrs.data) if isinstance(function.arg_attrs, ArrayAttr) else []
    return stated or [DictionaryAttr({})] * len(function.function_type.inputs)


def has_argument_attribute(function: FuncOp, position: int, name: str) -> bool:
    entries = function.arg_attrs.data if isinstance(function.arg_attrs, ArrayAttr) else ()
    return position < len(entries) and name in entries[position].data


def set_argument_attribute(function: FuncOp, positions: Iterable[int], name: str) -> None:
    entries = argument_attributes(function)
    for position in positions:
        stated: dict[str, Attribute] = {**entries[position].data, name: UnitAttr()}
        entries[position] = DictionaryAttr(stated)
    function.arg_attrs = ArrayAttr(entries)
