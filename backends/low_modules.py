"""Queries of backends on a low module: its functions, and their signatures as callers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import GlobalOp

from weft.backends.names import in_comment
from weft.dialects.low import PARAMS, params_of, symbols_of
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def contents(module: ModuleOp) -> tuple[list[FuncOp], list[FuncOp], list[GlobalOp]]:
    """The functions of a module, those that it declares only, and its data. Raises `CompileError` for anything else."""
    functions: list[FuncOp] = []
    outside: list[FuncOp] = []
    data: list[GlobalOp] = []
    for op in module.ops:
        if isinstance(op, GlobalOp):
            data.append(op)
        elif not isinstance(op, FuncOp):
            raise CompileError.at(op, f"a low module holds functions and globals, got {op.name}")
        elif op.is_declaration:
            outside.append(op)
        elif len(op.body.blocks) != 1:
            raise CompileError.at(op, f"function @{op.sym_name.data} has {len(op.body.blocks)} blocks, low has one")
        else:
            functions.append(op)
    return functions, outside, data


def described(function: FuncOp) -> str:
    """A function as its callers see it, for a comment: `@f(A: memref<?xf32> [n] read, s: f32) for n`."""
    name = function.sym_name.data
    if PARAMS not in function.attributes:
        return f"@{in_comment(name)}()"
    texts: list[str] = []
    for param in params_of(function):
        text = f"{param.label.data}: {param.type}"
        if isinstance(param.type, MemRefType):
            extents = ", ".join(symbol.data for symbol in param.symbols)
            text += f"{f' [{extents}]' if extents else ''} {param.access.data.value}"
        texts.append(text)
    symbols = symbols_of(function)
    extents = f" for {', '.join(symbols)}" if symbols else ""
    return in_comment(f"@{name}({', '.join(texts)}){extents}")
