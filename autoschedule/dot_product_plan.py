"""Whether dot-product instructions serve an integer contraction, and its tiling for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32

from weft.analysis.block_patterns import BlockPattern, Operand
from weft.autoschedule.contraction_roles import Roles
from weft.autoschedule.contraction_tiles import (
    cache_for_panels,
    depth_of_panels,
    panels_together,
    product,
    register_tile,
)
from weft.autoschedule.register_tile import RegisterTile
from weft.support.cpu_instructions import DotInstruction, dot_instructions
from weft.support.target import Target

_LEAST_ROWS: Final = 8
"""Rows from which on it pays to bring the right factor into groups."""
_LEAST_WORK: Final = 1 << 12
"""Products from which on the copies cost less than they save."""
_WORK_OF_THREADS: Final = 1 << 23
"""Products, some 40 us of one core, from which on it pays to wake other threads."""


@dataclass(frozen=True)
class Reading:
    """How a factor is loaded: integers of so many bits, widened with or without their sign."""

    bits: int
    signed: bool


@dataclass(frozen=True)
class Form:
    """An instruction, and what the factors must be recoded to for it; None where they fit as they are."""

    instruction: DotInstruction
    left: Reading
    right: Reading
    recode_left: str | None = None
    recode_right: str | None = None


@dataclass(frozen=True)
class DotPlan:
    """How a contraction is cut up. Sizes are in elements."""

    form: Form
    tile: RegisterTile
    together: int
    """Panels of the right factor that are packed before rows pass by them."""
    depth: int | None
    """Steps of the reduction that run before the next, in groups; None where the whole reduction runs at once."""
    pad_columns: bool
    pad_steps: bool
    threads: int

    @property
    def group(self) -> int:
        return self.form.instruction.group


def form_of(pattern: BlockPattern, roles: Roles, target: Target) -> Form | None:
    """The best instruction for what a block multiplies; None where the target has none."""
    if roles.element != i32 or pattern.factors is None:
        return None
    if any(len(factor.dimensions_of(v)) != 1 for factor in pattern.factors for v in pattern.reduced):
        return None
    left, right = pattern.factors
    if pattern.block.iter_vars[roles.column] in left.iterators:
        left, right = right, left
    of_left, of_right = _reading(left), _reading(right)
    if of_left is None or of_right is None:
        return None
    found = dot_instructions(target)
    for instruction in found:
        if _fits(instruction, of_left, of_right):
            return Form(instruction, of_left, of_right)
    # One flipped bit, and a sum a row.
    other = Reading(of_right.bits, not of_right.signed)
    for instruction in found:
        if _fits(instruction, of_left, other):
            return Form(instruction, of_left, other, recode_right="signed" if other.signed else "unsigned")
    halves = Reading(16, True)
    if of_left.bits == of_right.bits == 8:
        for instruction in found:
            if _fits(instruction, halves, halves):
                return Form(instruction, halves, halves, "int16", "int16")
    return None


def _fits(instruction: DotInstruction, left: Reading, right: Reading) -> bool:
    signs = (left.signed, right.signed)
    return left.bits == right.bits == instruction.bits and instruction.takes(
        instruction.lanes, instruction.group, *signs
    )


def _reading(operand: Operand) -> Reading | None:
    """How what is loaded becomes a factor of 32 bits."""
    loaded = operand.op.results[0]
    if not isinstance(loaded.type, IntegerType) or not loaded.has_one_use():
        return None
    (use,) = loaded.uses
    widening = use.operation
    if not isinstance(widening, arith.ExtSIOp | arith.ExtUIOp) or widening.results[0].type != i32:
        return None
    return Reading(loaded.type.width.data, isinstance(widening, arith.ExtSIOp))


def dot_plan_of(pattern: BlockPattern, roles: Roles, target: Target) -> DotPlan | None:
    """The sizes for a contraction on a machine; None where there are no such instructions, or they do not pay."""
    rows, work = roles.row_count, product(roles.extents)
    if roles.same_buffer or len(roles.reduced) != 1 or (rows is not None and rows < _LEAST_ROWS):
        return None
    if work is not None and work < _LEAST_WORK:
        return None
    form = form_of(pattern, roles, target)
    if form is None:
        return None
    instruction = form.instruction
    if roles.columns is not None and 2 * roles.columns <= instruction.lanes:
        return None
    tile = _tile(roles, instruction, target)
    depth = roles.extents[roles.reduced[0]]
    panels = None if roles.columns is None else -(-roles.columns // tile.columns)
    # A group is as wide as a sum.
    words = None if depth is None else max(-(-depth // instruction.group), 1)
    cut = depth_of_panels(words, tile.columns, 4, target.l2_bytes)
    panel_bytes = None if words is None else (cut or words) * tile.columns * 4
    threads = target.num_threads if work is None or work >= _WORK_OF_THREADS else 1
    batches = product(roles.extents[at] for at in roles.batch)
    sharing = 1 if batches is not None and batches >= threads else threads
    return DotPlan(
        form,
        tile,
        panels_together(panels, panel_bytes, cache_for_panels(target.l2_bytes, target.l2_ways), sharing),
        cut,
        pad_columns=roles.columns is None or roles.columns % tile.columns != 0,
        pad_steps=depth is None or depth % (instruction.group * (cut or 1)) != 0,
        threads=threads,
    )


def _tile(roles: Roles, instruction: DotInstruction, target: Target) -> RegisterTile:
    """Columns are padded to whole vectors."""
    columns = None if roles.columns is None else -(-roles.columns // instruction.lanes) * instruction.lanes
    return register_tile(roles.row_count, columns, instruction.lanes, target.vector_registers, fused=instruction.adds)
