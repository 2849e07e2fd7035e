"""Default schedule of contractions of narrow integers and of bf16 by dot-product instructions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, IntegerType, f32, i32

from weft.analysis.block_patterns import BlockPattern, Operand
from weft.autoschedule.contraction import PanelLoops, panels_of
from weft.autoschedule.executor import planned
from weft.autoschedule.rules import product
from weft.autoschedule.tile_sizes import RegisterTile, best_tile, register_tiles
from weft.passes.schedule.dot_intrinsics import dot_name, float_dot_name, interleave_name
from weft.plans import fitted
from weft.plans.cost import threads_pay_from
from weft.plans.decisions import Decisions
from weft.plans.roles import ContractionRoles, contraction_roles
from weft.plans.tile_plan import CopyLoops, Digit, Loop, MadeBy, ResultCopy, Staged, TilePlan, digits_of, moved_last
from weft.support.cpu_instructions import DotInstruction, Factor, dot_instructions
from weft.support.target import Target


@dataclass(frozen=True)
class FactorLoad:
    """The loads of a factor: integers of `bits`, sign- or zero-extended, or bf16."""

    bits: int
    signed: bool
    is_float: bool = False

    @property
    def factor(self) -> Factor:
        return Factor(self.bits, self.signed or self.is_float, self.is_float)

    @property
    def sign(self) -> bool | None:
        """Whether integers are signed; None for bf16."""
        return None if self.is_float else self.signed

    def dot_name(self, lanes: int, right: FactorLoad) -> str:
        if self.is_float:
            return float_dot_name(lanes)
        return dot_name(lanes, self.bits, self.signed, right.signed)


@dataclass(frozen=True)
class RecodedInstruction:
    """An instruction, and the types to which factors must be recoded, if any."""

    instruction: DotInstruction
    left: FactorLoad
    right: FactorLoad
    recode_left: str | None = None
    recode_right: str | None = None


@planned()
def dot_products(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Like the rule for contractions, with reduction steps of the two or four products that an instruction adds.

    ```
    for columns of several panels: pack them as [steps / 4][columns][4]
      for rows of a tile: for panel:
        tile = 0; for k: tile[r, c] += left[r, 4 * k : 4 * k + 4] . panel[k, c, :]; out[rows, panel] = epilogue(tile)
    ```
    Factors that no instruction accepts are recoded first (`Schedule.recode`); columns and steps are padded with zeros.
    Applicable if the target has such instructions and the sums have 32 bits (integers, or bf16 in float32) and one
    reduction iterator.
    """
    roles = contraction_roles(pattern)
    form = None if roles is None or not pays(roles) else recoded_instruction(pattern, roles, target)
    if roles is None or form is None:
        return None
    instruction, columns, depth = form.instruction, roles.columns, roles.extents[roles.reduced[0]]
    if columns is not None and 2 * columns <= instruction.lanes:
        return None
    tile, group, lanes = _tile(roles, instruction, target, decisions), instruction.group, instruction.lanes
    words = None if depth is None else max(-(-depth // group), 1)
    work = fitted.DOT_PRODUCTS * threads_pay_from(target.processor)
    panels = panels_of(roles, tile, words, 4, work, target, decisions)
    loops = PanelLoops(panels, (tile.vectors, lanes), (group,))
    step, products = loops.steps
    pads_columns = columns is None or columns % tile.columns != 0
    multiples = [1] * len(roles.extents)
    multiples[roles.column], multiples[roles.reduced[0]] = tile.columns, group * (panels.depth or 1)
    pads_steps = depth is None or depth % multiples[roles.reduced[0]] != 0
    sides = 3 if loops.rows else 2
    name = form.left.dot_name(lanes, form.right)
    return TilePlan(
        padding=tuple(multiples) if pads_columns or pads_steps else (),
        splits=tuple(loops.splits),
        order=loops.order(products),
        staged=(
            *_left(pattern, roles, form),
            packed_right(
                pattern, roles, tile, (loops.part or [loops.panels])[0], group, form.right, form.recode_right or ""
            ),
        ),
        result=ResultCopy(
            loops.result,
            scope="local" if panels.depth is None else "global",
            padded=pads_columns,
            kept=sides - 1,
            is_first=True,
        ),
        start=(*loops.part, step)[0],
        registers=sides + 1,
        lanes=lanes,
        intrinsic=name if panels.depth is None else f"{name}_global",
        threads=panels.threads,
    )


def pays(roles: ContractionRoles) -> bool:
    """Whether packing the right factor in groups pays, for one reduced iterator."""
    rows, work = roles.row_count, product(roles.extents)
    if roles.same_buffer or len(roles.reduced) != 1 or (work is not None and work < fitted.PACKED_PRODUCTS):
        return False
    return rows is None or rows >= fitted.PACKED_ROWS_TRANSPOSED or roles.right.constant


def _left(pattern: BlockPattern, roles: ContractionRoles, form: RecodedInstruction) -> list[Staged]:
    """The left factor: recoded, with steps as its fastest dimension."""
    steps, rank = dimension_of_steps(pattern, roles, is_left=True), roles.left.rank
    recoded, is_turned = form.recode_left or "", steps != rank - 1
    if not recoded and not is_turned:
        return []
    layout = moved_last(rank, steps) if is_turned else ()
    return [
        Staged(roles.left.position, recoded=recoded, layout=layout, made_by=MadeBy.COPY if is_turned else MadeBy.NONE)
    ]


def packed_right(
    pattern: BlockPattern,
    roles: ContractionRoles,
    tile: RegisterTile,
    at: Loop,
    group: int,
    load: FactorLoad,
    recoded: str = "",
    *,
    is_padded: bool = True,
) -> Staged:
    """The right factor in panels `[steps / group][columns][group]`, recoded or padded at the packed piece, which stays
    in L1. With `is_padded`, the padding of the plan is that of this factor."""
    right, columns = roles.right, roles.right.dimension
    steps = dimension_of_steps(pattern, roles, is_left=False)
    rest = digits_of([dimension for dimension in range(right.rank) if dimension not in (columns, steps)])
    width = tile.columns
    if right.constant:
        loops = CopyLoops()
    elif right.contiguous:
        loops = CopyLoops(
            (None, tile.lanes),
            columns,
            inside=(1, 0),
            steps=group,
            stepped=steps,
            intrinsic=interleave_name(tile.lanes, 32 // group, floats=load.is_float),
        )
    else:
        loops = CopyLoops((None, fitted.ROWS_IN_TURN), columns, inside=(2, 1), steps=group, stepped=steps, unrolled=1)
    return Staged(
        right.position,
        None if right.constant else at,
        recoded=recoded,
        fuses_producer=True,
        layout=(Digit(columns, width), *rest, Digit(steps, group), Digit(columns, 1, width), Digit(steps, 1, group)),
        loops=loops,
        source=CopyLoops((None, width if right.contiguous else tile.lanes * group)) if is_padded else None,
    )


def dimension_of_steps(pattern: BlockPattern, roles: ContractionRoles, *, is_left: bool) -> int:
    """The dimension of a factor that only the reduction steps index."""
    column = pattern.block.iter_vars[roles.column]
    (factor,) = (factor for factor in pattern.factors or () if (column in factor.iterators) is not is_left)
    (dimension,) = factor.dimensions_of(pattern.block.iter_vars[roles.reduced[0]])
    return dimension


def recoded_instruction(pattern: BlockPattern, roles: ContractionRoles, target: Target) -> RecodedInstruction | None:
    loads = loads_of(pattern, roles)
    if loads is None:
        return None
    of_left, of_right = loads
    if of_left.is_float:
        fitting = [i for i in dot_instructions(target) if _fits(i, of_left, of_right)]
        return RecodedInstruction(fitting[0], of_left, of_right) if fitting else None
    # Recoding costs a bit flip per element and a sum per row.
    flipped, halves = FactorLoad(of_right.bits, not of_right.signed), FactorLoad(16, True)
    candidates: list[tuple[FactorLoad, FactorLoad, str | None, str | None]] = [
        (of_left, of_right, None, None),
        (of_left, flipped, None, "signed" if flipped.signed else "unsigned"),
    ]
    if of_left.bits == of_right.bits == 8:
        candidates.append((halves, halves, "int16", "int16"))
    for factors in candidates:
        for instruction in dot_instructions(target):
            if _fits(instruction, *factors[:2]):
                return RecodedInstruction(instruction, *factors)
    return None


def loads_of(pattern: BlockPattern, roles: ContractionRoles) -> tuple[FactorLoad, FactorLoad] | None:
    """None unless both factors are narrow integers or bf16."""
    if roles.element not in (i32, f32) or pattern.factors is None:
        return None
    if any(len(factor.dimensions_of(v)) != 1 for factor in pattern.factors for v in pattern.reduced):
        return None
    left, right = pattern.factors
    if pattern.block.iter_vars[roles.column] in left.iterators:
        left, right = right, left
    of_left, of_right = load_of(left), load_of(right)
    if of_left is None or of_right is None or of_left.is_float is not of_right.is_float:
        return None
    return of_left, of_right


def _fits(instruction: DotInstruction, left: FactorLoad, right: FactorLoad) -> bool:
    return instruction.takes(instruction.lanes, instruction.group, left.factor, right.factor)


def load_of(operand: Operand) -> FactorLoad | None:
    """None unless the factor is widened to 32 bits."""
    loaded = operand.op.results[0]
    if not isinstance(loaded.type, IntegerType | BFloat16Type) or not loaded.has_one_use():
        return None
    (use,) = loaded.uses
    widening = use.operation
    if isinstance(loaded.type, BFloat16Type):
        is_wide = isinstance(widening, arith.ExtFOp) and widening.results[0].type == f32
        return FactorLoad(16, True, True) if is_wide else None
    if not isinstance(widening, arith.ExtSIOp | arith.ExtUIOp) or widening.results[0].type != i32:
        return None
    return FactorLoad(loaded.type.width.data, isinstance(widening, arith.ExtSIOp))


def _tile(roles: ContractionRoles, instruction: DotInstruction, target: Target, decisions: Decisions) -> RegisterTile:
    rows, columns = roles.row_count, roles.columns
    if columns is not None:
        columns = -(-columns // instruction.lanes) * instruction.lanes
    tiles = register_tiles(rows, columns, instruction.lanes, target.vector_registers, fused=instruction.adds)
    return decisions.tile(tiles, lambda some: best_tile(some, rows, columns, target.processor))
