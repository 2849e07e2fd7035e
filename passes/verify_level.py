"""verify-level: check the ops of a level, and dominance."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove

from weft.dialects.effects import op_name
from weft.dialects.functions import why_misplaced
from weft.dialects.levels import LEVELS, allowed_at
from weft.support.errors import CompileError, did_you_mean


@dataclass(frozen=True)
class VerifyLevelPass(ModulePass):
    """Check that a module is at a level: `verify-level{level=tir}`. Changes nothing.

    1. Every op is valid at the level (`dialects/levels.py`).
    2. Every value is used after its definition, in a region that its definition is in; functions, schedules and modules
      are not nested in functions.
    3. At level tir, integer sets show (`analysis/checks.py`) that loops run every instance of a block (once, unless
      idempotent), accesses stay in bounds, and values read are written.

    Raises CompileError at the first violation.

    Requires: nothing.

    Leaves: the module unchanged.
    """

    name = "verify-level"

    level: str
    """The level: `graph`, `te`, `tir` or `low`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        verify_level(op, self.level)


def verify_level(root: Operation, level: str | None) -> None:
    """`VerifyLevelPass` on a module or function; None is level tir without check 1."""
    if level is not None and level not in LEVELS:
        raise CompileError(f"unknown level '{level}'{did_you_mean(level, LEVELS)}")
    allowed: dict[str, bool] = {}
    _verify_op(root, level, set(), allowed)
    if level in ("tir", None):
        from weft.analysis.checks import (  # start-up: 244 ms
            check_program,  # isl and the analyses: other users of this file need none,
        )

        check_program(root)


def _verify_op(op: Operation, level: str | None, visible: set[SSAValue], allowed: dict[str, bool]) -> None:
    name = op_name(op)
    permitted = allowed.get(name)
    if permitted is None:
        permitted = allowed[name] = level is None or allowed_at(level, name)
    if not permitted:
        raise CompileError.at(op, f"{name} is not allowed at level '{level}'")
    for operand in op.operands:
        if operand not in visible:
            value = f"%{operand.name_hint}" if operand.name_hint else "a value"
            raise CompileError.at(op, f"{name} uses {value} where it is not defined")
    if op.regions:
        if (reason := why_misplaced(op)) is not None:
            raise CompileError.at(op, reason)
        inside = set[SSAValue]() if op.has_trait(IsolatedFromAbove) else visible
        for region in op.regions:
            for block in region.blocks:
                _verify_block(block, level, inside, allowed)


def _verify_block(block: Block, level: str | None, visible: set[SSAValue], allowed: dict[str, bool]) -> None:
    """Values are visible to later ops only during the check."""
    defined: list[SSAValue] = list(block.args)
    visible.update(defined)
    for op in block.ops:
        _verify_op(op, level, visible, allowed)
        if op.results:
            defined.extend(op.results)
            visible.update(op.results)
    visible.difference_update(defined)
