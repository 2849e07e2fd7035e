"""Queries of backends on a low module: its functions, and their signatures as callers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import GetGlobalOp, GlobalOp
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from weft.backends.names import in_comment
from weft.dialects.levels import allowed_at
from weft.dialects.low import MOST_COPIES, PARAMS, UNROLL, params_of, symbols_of
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation


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


def check_low_level(module: ModuleOp, kind: str = "") -> None:
    """Raises `CompileError` at the first op that may not stand at low level; `kind`: the target to lower it for."""
    for op in module.walk():
        if not allowed_at("low", op.name):
            options = f"{{target={kind}}}" if kind else ""
            raise CompileError.at(
                op, f"{op.name} may not stand at level low: lower the module first, with -p lower-tir-to-low{options}"
            )


def used_globals(functions: Iterable[FuncOp]) -> set[str]:
    """The data that functions refer to."""
    return {op.name_.string_value() for function in functions for op in function.walk() if isinstance(op, GetGlobalOp)}


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


def check_unrolled(loop: Operation, trips: int | None) -> int:
    """The iterations of a loop that is marked `low.unroll`. Raises `CompileError` where they are unknown (None), or
    where the loop and those marked around it would make too many copies."""
    if trips is None:
        raise CompileError.at(loop, f"a loop that is marked {UNROLL} needs constant bounds and a constant step")
    copies, around = trips, loop.parent_op()
    while around is not None:
        if isinstance(around, scf.ForOp) and UNROLL in around.attributes:
            copies *= max(1, _iterations(around) or 1)
        around = around.parent_op()
    if copies > MOST_COPIES:
        raise CompileError.at(
            loop, f"a loop that is marked {UNROLL} makes {copies} copies of its body; at most {MOST_COPIES} are made"
        )
    return trips


def _iterations(loop: scf.ForOp) -> int | None:
    lower, upper, step = (const_evaluate_operand(bound) for bound in (loop.lb, loop.ub, loop.step))
    return None if lower is None or upper is None or not step else -((lower - upper) // step)
