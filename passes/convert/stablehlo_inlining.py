"""Inlining of stablehlo calls, and removal of invariant carried values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from weft.dialects import stablehlo
from weft.dialects.stablehlo import WhileOp
from weft.passes.convert.convert_stablehlo_to_te import callee_of, is_operator
from weft.support.errors import CompileError, did_you_mean


def inline_calls(function: FuncOp, functions: Mapping[str, FuncOp]) -> None:
    """Inline calls, and composites that are not operators, in place.

    Raises `CompileError` for a function that is missing, has no body, or calls itself.
    """
    _inline(function.body.block, functions, (function.sym_name.data,))


def _inline(block: Block, functions: Mapping[str, FuncOp], around: tuple[str, ...]) -> None:
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                _inline(inner, functions, around)
        name = callee_of(op)
        if name is None or is_operator(op):
            continue
        callee = functions.get(name)
        if callee is None:
            raise CompileError.at(
                op, f"{op.name}: there is no function @{name} with a body{did_you_mean(name, functions)}"
            )
        if name in around:
            raise CompileError.at(op, f"{op.name}: @{name} calls itself")
        copies = Region(Block(arg_types=callee.body.block.arg_types))
        values: dict[SSAValue, SSAValue] = dict(zip(callee.args, op.operands, strict=True))
        for inner in callee.body.block.ops:
            copy = inner.clone(values)
            for old, new in zip(inner.results, copy.results, strict=True):
                new.name_hint = old.name_hint
            copies.block.add_op(copy)
        _inline(copies.block, functions, (*around, name))
        end = cast("Operation", copies.block.last_op)
        if not isinstance(end, ReturnOp):
            raise CompileError.at(op, f"{op.name}: @{name} ends in no return")
        results = list(end.operands)
        Rewriter.erase_op(end)
        for moved in list(copies.block.ops):
            moved.detach()
            block.insert_op_before(moved, op)
        for result, value in zip(op.results, results, strict=True):
            result.replace_all_uses_with(value)
        Rewriter.erase_op(op)


def drop_invariants(function: FuncOp) -> None:
    """Drop values that loops carry unchanged; uses refer to those outside."""
    for op in [op for op in function.walk(reverse=True) if isinstance(op, WhileOp)]:
        end = cast("stablehlo.ReturnOp", op.body.block.last_op)
        pairs = zip(end.operands, op.body.block.args, strict=True)
        same = [place for place, (value, argument) in enumerate(pairs) if value is argument]
        if not same:
            continue
        for place in reversed(same):
            value = op.inputs[place]
            for block in (op.cond.block, op.body.block):
                block.args[place].replace_all_uses_with(value)
            op.results[place].replace_all_uses_with(value)
        kept = [place for place in range(len(op.inputs)) if place not in same]
        Rewriter.replace_op(end, stablehlo.ReturnOp.create(operands=[end.operands[place] for place in kept]))
        for block in (op.cond.block, op.body.block):
            for place in reversed(same):
                block.erase_arg(block.args[place])
        new = WhileOp.create(
            operands=[op.inputs[place] for place in kept],
            result_types=[op.results[place].type for place in kept],
            regions=[op.detach_region(region) for region in (op.cond, op.body)],
            attributes=op.attributes,
        )
        new.location = op.location
        cast("Block", op.parent).insert_op_before(new, op)
        for place, result in zip(kept, new.results, strict=True):
            result.name_hint = op.results[place].name_hint
            op.results[place].replace_all_uses_with(result)
        Rewriter.erase_op(op)
