"""Default schedule of contractions of narrow integers, by dot-product instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32

from weft.analysis.block_patterns import BlockPattern, Operand, pattern_of
from weft.analysis.index import Index
from weft.analysis.structure import buffers_read, stored_buffer
from weft.autoschedule.contraction import Factor, PanelLoops, Panels, Roles, contraction_roles, panels_of
from weft.autoschedule.inlining import fuse_consumers, fuse_producer
from weft.autoschedule.rules import Sampled, keep_in_registers, loop_of, moved_last, op_of, product
from weft.autoschedule.tile_sizes import RegisterTile, best_tile, register_tiles
from weft.dialects.traversal import operations_in
from weft.passes.schedule.dot_intrinsics import dot_name, interleave_name
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.cpu_instructions import DotInstruction, dot_instructions
from weft.support.errors import InternalError
from weft.support.target import Target

_LEAST_ROWS: Final = 8
"""Rows from which on it pays to bring the right factor into groups."""
_LEAST_WORK: Final = 1 << 12
"""Products from which on the copies cost less than they save."""
_WORK_OF_THREADS: Final = 1 << 23
"""Products, some 40 us of one core, from which on it pays to wake other threads."""


@dataclass(frozen=True)
class FactorLoad:
    """How a factor is loaded: integers of so many bits, widened with or without their sign."""

    bits: int
    signed: bool


@dataclass(frozen=True)
class Form:
    """An instruction, and what the factors must be recoded to for it; None where they fit as they are."""

    instruction: DotInstruction
    left: FactorLoad
    right: FactorLoad
    recode_left: str | None = None
    recode_right: str | None = None


@dataclass(frozen=True)
class DotPlan(Panels):
    """What else is decided for a contraction by an instruction. Steps of the panels are groups."""

    form: Form
    pad_columns: bool
    pad_steps: bool

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
    of_left, of_right = load_of(left), load_of(right)
    if of_left is None or of_right is None:
        return None
    # One flipped bit, and a sum a row.
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
                return Form(instruction, *factors)
    return None


def _fits(instruction: DotInstruction, left: FactorLoad, right: FactorLoad) -> bool:
    signs = (left.signed, right.signed)
    return left.bits == right.bits == instruction.bits and instruction.takes(
        instruction.lanes, instruction.group, *signs
    )


def load_of(operand: Operand) -> FactorLoad | None:
    """How what is loaded becomes a factor of 32 bits; None where it is no narrow integer."""
    loaded = operand.op.results[0]
    if not isinstance(loaded.type, IntegerType) or not loaded.has_one_use():
        return None
    (use,) = loaded.uses
    widening = use.operation
    if not isinstance(widening, arith.ExtSIOp | arith.ExtUIOp) or widening.results[0].type != i32:
        return None
    return FactorLoad(loaded.type.width.data, isinstance(widening, arith.ExtSIOp))


def dot_plan_of(sch: Schedule, pattern: BlockPattern, roles: Roles, target: Target) -> DotPlan | None:
    """The sizes for a contraction on a machine; None where there are no such instructions, or they do not pay."""
    rows, work = roles.row_count, product(roles.extents)
    if roles.same_buffer or len(roles.reduced) != 1:
        return None
    if rows is not None and rows < _LEAST_ROWS and not roles.right.constant:
        return None
    if work is not None and work < _LEAST_WORK:
        return None
    form = form_of(pattern, roles, target)
    if form is None:
        return None
    instruction = form.instruction
    if roles.columns is not None and 2 * roles.columns <= instruction.lanes:
        return None
    tile = _tile(sch, roles, instruction, target)
    depth = roles.extents[roles.reduced[0]]
    words = None if depth is None else max(-(-depth // instruction.group), 1)
    # A group is as wide as a sum.
    panels = panels_of(sch, roles, tile, words, 4, _WORK_OF_THREADS, target)
    return DotPlan(
        **vars(panels),
        form=form,
        pad_columns=roles.columns is None or roles.columns % tile.columns != 0,
        pad_steps=depth is None or depth % (instruction.group * (panels.depth or 1)) != 0,
    )


def _tile(sch: Schedule, roles: Roles, instruction: DotInstruction, target: Target) -> RegisterTile:
    """Columns are padded to whole vectors."""
    rows, columns = roles.row_count, roles.columns
    if columns is not None:
        columns = -(-columns // instruction.lanes) * instruction.lanes
    tiles = register_tiles(rows, columns, instruction.lanes, target.vector_registers, fused=instruction.adds)
    return Sampled(sch).tile(tiles, lambda some: best_tile(some, rows, columns))


_ROWS_IN_TURN = 16
"""Rows of a transposed factor that are read in turn."""


def dot_products(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Results in register tiles, as the rule for contractions keeps them; steps of the reduction by twos or fours, as
    instructions multiply and add them.

    ```
    for columns of several panels: pack them as [steps / 4][columns][4]
      for rows of a tile: for panel:
        tile = 0; for k: tile[r, c] += left[r, 4 * k : 4 * k + 4] . panel[k, c, :]; out[rows, panel] = epilogue(tile)
    ```
    Factors that no instruction takes are recoded first (`Schedule.recode`), columns and steps are padded by zeros.
    Applicable where the target has such instructions and the sums are of 32 bits, over a single iterator.
    """
    pattern = pattern_of(op_of(sch, block))
    roles = contraction_roles(pattern)
    plan = None if roles is None else dot_plan_of(sch, pattern, roles, target)
    if roles is None or plan is None:
        return False
    _DotTiling(sch, block, roles, plan).run()
    return True


@dataclass
class _DotTiling:
    """The steps of the rule on one block."""

    sch: Schedule
    block: BlockHandle
    roles: Roles
    plan: DotPlan

    def run(self) -> None:
        sch, block, plan = self.sch, self.block, self.plan
        group, lanes = plan.group, plan.form.instruction.lanes
        steps = self.roles.reduced[0]
        self.right_steps = self._dimension_of(self.roles.right, steps)
        left_steps = self._dimension_of(self.roles.left, steps)
        stage, result = self._operands()
        packed = sch.cache_read(block, self.roles.right.position, "global")
        if stage is None:
            fuse_producer(sch, packed)
        if left_steps != self.roles.left.rank - 1:
            self._turn_left(left_steps)
        fuse_consumers(sch, result)
        loops = PanelLoops(sch, block, self.roles, plan, [plan.tile.vectors, lanes], [group])
        step, products = loops.steps
        loops.order([step], products)
        is_ahead = self.roles.right.constant  # then all of it is packed once, before calls
        if not is_ahead:
            sch.compute_at(packed, loops.part or loops.panels)
        sch.reverse_compute_at(result, loops.panel if loops.part is None else loops.panels)
        self._lay_out(packed)
        near = None if is_ahead else self._vectorize_packing(packed)
        if stage is not None and near is not None:
            sch.compute_at(stage, near)
        init = sch.decompose_reduction(block, loops.part or step)
        *_, rows, vectors, lane, _ = sch.get_loops(block)
        signs = (plan.form.left.signed, plan.form.right.signed)
        # Before loops are vectorized: what is done then is tried on a copy first.
        name = dot_name(lanes, 32 // group, *signs)
        sch.tensorize(lane, name if loops.part is None else f"{name}_global")
        sch.unroll(vectors)
        if loops.row is not None:
            sch.unroll(rows)
        if stage is not None and near is not None:
            self._rows_of_stage(stage)
        # The init has a loop over lanes already.
        for part, sides in ((init, 3), (result, 2)):
            keep_in_registers(sch, part, -sides if loops.row is not None else 1 - sides, lanes)
        loops.share()

    def _dimension_of(self, factor: Factor, iterator: int) -> int:
        """The dimension of a factor that an iterator alone indexes."""
        op = op_of(self.sch, self.block)
        pattern = pattern_of(op)
        buffer = buffers_read(op)[factor.position]
        (operand,) = (read for read in pattern.reads if read.buffer is buffer)
        (dimension,) = operand.dimensions_of(op.iter_vars[iterator])
        return dimension

    def _operands(self) -> tuple[BlockHandle | None, BlockHandle]:
        """Recode and pad. Gives the block that writes what is packed then, if there is one, and the one that writes the
        results."""
        sch, block, roles, form = self.sch, self.block, self.roles, self.plan.form
        if form.recode_left is not None:
            sch.recode(block, roles.left.position, form.recode_left)
        recoded = [] if form.recode_right is None else sch.recode(block, roles.right.position, form.recode_right)
        stage = recoded[0] if recoded else None
        if stage is not None:
            fuse_producer(sch, stage)
        result = recoded[2] if len(recoded) > 1 else None
        if self.plan.pad_columns or self.plan.pad_steps:
            factors = [1] * len(roles.extents)
            factors[roles.column] = self.plan.tile.columns
            factors[roles.reduced[0]] = self.plan.group * (self.plan.depth or 1)
            sch.pad_einsum(block, factors)
            stage = self._writer_of(roles.right)
            fuse_producer(sch, stage)
            if self.plan.pad_columns:
                (result,) = sch.get_consumers(block)
        scope = "local" if self.plan.depth is None else "global"
        if result is None:
            return stage, sch.cache_write(block, 0, scope)
        sch.set_scope(block, 0, scope)
        return stage, result

    def _writer_of(self, factor: Factor) -> BlockHandle:
        """The block that writes what a factor is read from."""
        buffer = buffers_read(op_of(self.sch, self.block))[factor.position]
        for producer in self.sch.get_producers(self.block):
            if any(stored_buffer(op) is buffer for op in operations_in(op_of(self.sch, producer))):
                return producer
        raise InternalError("nobody writes a padded copy")

    def _turn_left(self, steps: int) -> None:
        """Let the steps be the fastest dimension of the left factor."""
        copy = self.sch.cache_read(self.block, self.roles.left.position, "global")
        self.sch.transform_layout(copy, ("write", 0), moved_last(steps))

    def _lay_out(self, packed: BlockHandle) -> None:
        """Lay out panels as [steps / group][columns][group]."""
        columns, at, steps, group = (
            self.plan.tile.columns,
            self.roles.right.dimension,
            self.right_steps,
            self.plan.group,
        )

        def panels(*indices: int) -> tuple[object, ...]:
            rest = [index for place, index in enumerate(indices) if place not in (at, steps)]
            column, step = indices[at], indices[steps]
            return (column // columns, *rest, step // group, column % columns, step % group)

        self.sch.transform_layout(packed, ("write", 0), panels, pad_value=0)

    def _vectorize_packing(self, packed: BlockHandle) -> LoopHandle:
        """Bring rows of a group together. Gives the loop whose iterations read as much as stays in the first cache."""
        sch, right, group = self.sch, self.roles.right, self.plan.group
        step, column = self._own_loop(packed, self.right_steps), self._own_loop(packed, right.dimension)
        outer, inner = sch.split(step, [None, group])
        if right.contiguous:
            vectors, lanes = sch.split(column, [None, self.plan.tile.lanes])
            sch.reorder(outer, vectors, inner, lanes)
            sch.tensorize(inner, interleave_name(self.plan.tile.lanes, 32 // group))
            return outer
        slow, rows = sch.split(column, [None, _ROWS_IN_TURN])
        sch.reorder(slow, outer, rows, inner)
        sch.vectorize(inner)
        sch.unroll(rows)
        return slow

    def _own_loop(self, block: BlockHandle, dimension: int) -> LoopHandle:
        """The innermost loop that the iterator of a dimension of a copy is computed from."""
        op = op_of(self.sch, block)
        index = Index.of_map(op.bindings.data, op.binding_operands)[dimension]
        loops = [
            loop for loop in self.sch.get_loops(block) if index.depends_on([loop_of(self.sch, loop).induction_variable])
        ]
        return loops[-1]

    def _rows_of_stage(self, stage: BlockHandle) -> None:
        """Rows as they lie in memory, vector by vector."""
        loops = self.sch.get_loops(stage)
        width = self.plan.tile.columns if self.roles.right.contiguous else self.plan.tile.lanes * self.plan.group
        _, lanes = self.sch.split(loops[-1], [None, width])
        self.sch.vectorize(lanes)
