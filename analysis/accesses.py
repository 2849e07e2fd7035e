"""Memory accesses of tir programs, as functions of loop variables and symbols. See
docs/decisions/0003-set-questions-as-one-conjunction.md.

Guards, conditions of `scf.if` and the first reduction step of a `tir.init` become conditions. A non-affine index (a
loaded subscript, a product of values) stays opaque. Ops without indices access whole buffers
(`weft.dialects.effects`). An opaque op reads and writes every buffer that it can reach, and `WORLD`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, i1
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.analysis.block_scopes import ancestors
from weft.analysis.index import Index
from weft.analysis.integer_ranges import Division, meaning_of
from weft.analysis.integer_ranges import is_fixed as is_fixed
from weft.analysis.integer_ranges import is_symbol as is_symbol
from weft.analysis.integer_ranges import range_of as range_of
from weft.dialects.effects import effects_of, is_opaque, is_same_elements, reachable_buffers, touches_memory, underlying
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_kernel import AtomicOp
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, InitOp, ReadsOp, WritesOp
from weft.dialects.tir_kinds import IterKind

WORLD = Block(arg_types=[MemRefType(i1, [])]).args[0]
"""All memory that is not a named buffer. Opaque ops write it, in program order."""
WORLD.name_hint = "world"


@dataclass(frozen=True)
class Conditions:
    """An instance runs if all `inequalities` are >= 0 and all `equalities` 0; inexact if a condition was dropped."""

    inequalities: tuple[Index, ...] = ()
    equalities: tuple[Index, ...] = ()
    exact: bool = True

    @property
    def indices(self) -> tuple[Index, ...]:
        return self.inequalities + self.equalities

    def __and__(self, other: Conditions) -> Conditions:
        return Conditions(
            self.inequalities + other.inequalities, self.equalities + other.equalities, self.exact and other.exact
        )


@dataclass(frozen=True)
class Access:
    """A load, a store, half of an atomic update, or an access to a whole buffer, of all instances."""

    op: Operation
    buffer: SSAValue
    indices: tuple[Index, ...] | None
    """One per dimension, over loop variables and symbols; None for the whole buffer."""
    is_write: bool
    loops: tuple[ForOp, ...]
    conditions: Conditions
    blocks: tuple[BlockOp, ...]
    init_of: BlockOp | None = None
    """The block whose init contains the access, possibly in nested loops and blocks."""

    @property
    def expressions(self) -> list[Index]:
        return [*(self.indices or ()), *self.conditions.indices, *dynamic_extents(self.loops)]

    @property
    def in_init(self) -> bool:
        return self.init_of is not None

    @property
    def block(self) -> BlockOp | None:
        return self.blocks[-1] if self.blocks else None

    def block_text(self) -> str:
        return "" if self.block is None else f'block "{self.block.label}" '

    @property
    def is_opaque(self) -> bool:
        return self.indices is None and is_opaque(self.op)

    def surely_covers(self, other: Access) -> bool:
        return (
            self.indices == other.indices
            and self.indices is not None
            and self.loops == other.loops
            and set(self.conditions.inequalities) <= set(other.conditions.inequalities)
            and set(self.conditions.equalities) <= set(other.conditions.equalities)
            and self.conditions.exact
        )


@dataclass(frozen=True)
class Context:
    loops: tuple[ForOp, ...] = ()
    blocks: tuple[BlockOp, ...] = ()
    conditions: Conditions = field(default_factory=Conditions)
    iterators: dict[SSAValue, Index] = field(default_factory=dict[SSAValue, Index])
    """Block iterator -> its binding over loop variables."""
    init_of: BlockOp | None = None

    @staticmethod
    def around(op: Operation) -> Context:
        return Context()._down_to(op, (func.FuncOp,))

    @staticmethod
    def in_scope(op: Operation) -> Context:
        """The context within one instance of the enclosing block, whose iterators stay values."""
        scope = next((parent for parent in ancestors(op) if isinstance(parent, BlockOp | func.FuncOp)), None)
        context = Context()
        if isinstance(scope, BlockOp):
            known: dict[SSAValue, Index] = {variable: Index.of(variable) for variable in scope.iter_vars}
            context = Context(blocks=(scope,), iterators=known)
        return context._down_to(op, (BlockOp, func.FuncOp))

    def _down_to(self, op: Operation, outside: tuple[type[Operation], ...]) -> Context:
        """`self` is the context of the nearest enclosing op of a class in `outside`."""
        path = [op]
        while (parent := path[-1].parent_op()) is not None and not isinstance(parent, outside):
            path.append(parent)
        context = self
        for inner, outer in reversed(list(pairwise(path))):
            context = context.inside(outer, inner)
        return context

    def inside(self, op: Operation, child: Operation | None = None) -> Context:
        """The context of the body; `child` selects the region of an `scf.if`."""
        if type(op) is ForOp:
            return Context((*self.loops, op), self.blocks, self.conditions, self.iterators, self.init_of)
        if type(op) is BlockOp:
            return self._inside_block(op)
        if isinstance(op, InitOp) and self.blocks:
            return replace(
                self, conditions=self.conditions & self._first_step(self.blocks[-1]), init_of=self.blocks[-1]
            )
        if isinstance(op, scf.IfOp) and child is not None:
            holds = child.parent_region() is op.true_region
            return replace(self, conditions=self.conditions & condition_of(op.cond, holds, self.iterators))
        if isinstance(op, scf.WhileOp):
            return replace(self, conditions=self.conditions & Conditions(exact=False))
        return self

    def _inside_block(self, block: BlockOp) -> Context:
        bound = self.resolve_map(block)
        iterators = {**self.iterators, **dict(zip(block.iter_vars, bound, strict=True))}
        operands = [self.resolve(v) for v in block.guard_operands]
        guards = tuple(
            Index.of_expr(right, operands) - Index.of_expr(left, operands) - 1 for left, right in block.guards
        )
        return replace(
            self,
            blocks=(*self.blocks, block),
            iterators=iterators,
            conditions=self.conditions & Conditions(guards),
        )

    def resolve_map(self, block: BlockOp) -> tuple[Index, ...]:
        operands = [self.resolve(v) for v in block.binding_operands]
        return tuple(Index.of_expr(expr, operands) for expr in block.bindings.data.results)

    def resolve(self, value: SSAValue) -> Index:
        return Index.of(value).substitute(self.iterators)

    def _first_step(self, block: BlockOp) -> Conditions:
        steps = zip(block.iter_vars, block.kinds, strict=True)
        return Conditions(equalities=tuple(self.iterators[v] for v, kind in steps if kind is IterKind.REDUCE))

    def steps_of(self, block: BlockOp) -> tuple[Index, ...]:
        bindings = zip(self.resolve_map(block), block.kinds, strict=True)
        return tuple(index for index, kind in bindings if kind is IterKind.REDUCE)


@dataclass(frozen=True)
class Domain:
    loops: tuple[ForOp, ...]
    bindings: tuple[Index, ...]
    extents: tuple[Index, ...]
    conditions: Conditions
    free_loops: tuple[tuple[SSAValue, int | Index], ...] = ()
    """Loops that a plan will create, or the two that replace a fused loop: variable and extent."""

    @cached_property
    def loop_extents(self) -> dict[SSAValue, int | SSAValue | Index]:
        return {loop.induction_variable: loop.extent for loop in self.loops} | dict(self.free_loops)


def domain_of(block: BlockOp) -> Domain:
    context = Context.around(block)
    inner = context.inside(block)
    loops = tuple(loop for loop in context.loops if not context.blocks or context.blocks[-1].is_ancestor(loop))
    return Domain(
        loops,
        tuple(index.simplified(range_of) for index in context.resolve_map(block)),
        tuple(context.resolve(e) if isinstance(e, SSAValue) else Index.of(e) for e in block.extents),
        inner.conditions,
    )


def dynamic_extents(loops: Iterable[ForOp]) -> list[Index]:
    return [Index.of(loop.extent) for loop in loops if not isinstance(loop.extent, int)]


def values_of_iteration(found: Iterable[Access], loops: Collection[ForOp]) -> list[SSAValue]:
    """Values in indices and conditions that are computed inside `loops`, such as a remainder by a symbol."""
    used = (index for access in found for index in (*(access.indices or ()), *access.conditions.indices))
    values = dict.fromkeys(value for index in used for value in index.values())
    return [value for value in values if not is_loop_value(value) and value.owner.parent_op() in loops]


def accesses(root: Operation) -> list[Access]:
    """The accesses in program order, with the loops around `root`."""
    found: list[Access] = []
    _walk_op(root, Context.around(root), found, {})
    return found


def accesses_in_scope(root: Operation) -> list[Access]:
    """The accesses over iterators of the enclosing block and loops in it."""
    found: list[Access] = []
    _walk_op(root, Context.in_scope(root), found, {})
    return found


def accesses_of_instance(block: BlockOp) -> list[Access]:
    return [access for op in block.body.block.ops for access in accesses_in_scope(op)]


_Roots: TypeAlias = dict[SSAValue, SSAValue]
"""Memo of buffer -> the buffer that it is a view of. For a global, this requires a search."""


def _walk_op(op: Operation, context: Context, found: list[Access], roots: _Roots) -> None:
    if type(op) is memref.LoadOp:
        found.append(_access(op, op.memref, op.indices, False, context, roots))
    elif type(op) is memref.StoreOp:
        found.append(_access(op, op.memref, op.indices, True, context, roots))
    elif type(op) is AccessPtrOp:
        found.extend(_box_accesses(op, context, roots))
    elif type(op) is AtomicOp:
        for is_write in (False, True):
            found.append(_access(op, op.buffer, op.indices, is_write, context, roots))
    else:
        if touches_memory(op):
            found.extend(_whole_accesses(op, context, roots))
        for region in op.regions:
            for block in region.blocks:
                _walk_block(op, block, context, found, roots)


def _walk_block(op: Operation, block: Block, context: Context, found: list[Access], roots: _Roots) -> None:
    first = block.first_op
    if first is None:
        return
    inner = context.inside(op, first)
    for child in block.ops:
        _walk_op(child, inner, found, roots)


def _box_accesses(op: AccessPtrOp, context: Context, roots: _Roots) -> Iterator[Access]:
    """Accesses of external code through a pointer: over detached loops through the box, or regions that the block
    states."""
    loops = box_loops(op.box_sizes or ())
    inner = replace(context, loops=(*context.loops, *loops))
    whole = op.box_sizes is None
    for is_write, happens in ((False, op.reads), (True, op.writes)):
        regions = _stated_regions(op, is_write, context) if happens and whole else ()
        for region in regions:
            steps = box_loops(region.box_sizes)
            around = replace(context, loops=(*context.loops, *steps))
            operands = [context.resolve(value) for value in region.corner_operands]
            corner = [Index.of_expr(expr, operands) for expr in region.corner.data.results]
            places = zip(corner, steps, strict=True)
            indices = tuple(first + Index.of(step.induction_variable) for first, step in places)
            yield replace(_access(op, op.buffer, None, is_write, around, roots), indices=indices)
        if happens and not regions:
            access = _access(op, op.buffer, None if whole else op.indices, is_write, inner, roots)
            indices = access.indices
            if indices is not None:
                steps = [Index.of(loop.induction_variable) for loop in loops]
                indices = tuple(index + step for index, step in zip(indices, steps, strict=True))
            yield replace(access, indices=indices)


def _whole_accesses(op: Operation, context: Context, roots: _Roots) -> Iterator[Access]:
    effects = effects_of(op)
    read, written = effects.reads, effects.writes
    if effects.reads_all:
        reachable = (*_reachable_from(op), WORLD)
        read = (*read, *reachable)
        written = (*written, *(reachable if effects.is_opaque else ()))
    for is_write, buffers in ((False, read), (True, written)):
        for buffer in dict.fromkeys(_root(b, roots) for b in buffers if isinstance(b.type, MemRefType)):
            yield _access(op, buffer, None, is_write, context, roots)


def _reachable_from(op: Operation) -> list[SSAValue]:
    function = next((parent for parent in ancestors(op) if isinstance(parent, func.FuncOp)), None)
    own = [operand for operand in op.operands if isinstance(operand.type, MemRefType)]
    return own if function is None else [*own, *reachable_buffers(function)]


def _stated_regions(op: AccessPtrOp, is_write: bool, context: Context) -> list[AccessRegionOp]:
    if not context.blocks or not is_same_elements(op.buffer):
        return []
    kind = WritesOp if is_write else ReadsOp
    stated = (region for region in context.blocks[-1].body.block.ops if isinstance(region, kind))
    return [region for region in stated if region.buffer is op.buffer]


def box_loops(sizes: Sequence[int]) -> tuple[ForOp, ...]:
    return tuple(ForOp.empty(size, f"d{at}") for at, size in enumerate(sizes))


def _access(
    op: Operation,
    buffer: SSAValue,
    indices: Sequence[SSAValue] | None,
    is_write: bool,
    context: Context,
    roots: _Roots,
) -> Access:
    known = indices if is_same_elements(buffer) else None
    return Access(
        op,
        _root(buffer, roots),
        None if known is None else tuple(context.resolve(i) for i in known),
        is_write,
        context.loops,
        context.conditions,
        context.blocks,
        context.init_of,
    )


def _root(buffer: SSAValue, roots: _Roots) -> SSAValue:
    if buffer not in roots:
        roots[buffer] = underlying(buffer)
    return roots[buffer]


def condition_of(condition: SSAValue, holds: bool, iterators: dict[SSAValue, Index]) -> Conditions:
    """Conditions implied by a true (or false) `i1`, from comparisons and conjunctions."""
    op = condition.owner
    if isinstance(op, arith.AndIOp) and holds:
        return condition_of(op.lhs, True, iterators) & condition_of(op.rhs, True, iterators)
    if isinstance(op, arith.OrIOp) and not holds:
        return condition_of(op.lhs, False, iterators) & condition_of(op.rhs, False, iterators)
    if isinstance(op, arith.XOrIOp):
        for side, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if (constant := constant_integer(other)) is not None:
                return condition_of(side, holds != bool(constant), iterators)
    if (constant := constant_integer(condition)) is not None:
        return Conditions() if bool(constant) == holds else Conditions((Index({}, -1),))
    if isinstance(op, arith.CmpiOp) and isinstance(op.lhs.type, IndexType):
        left = Index.of(op.lhs).substitute(iterators)
        right = Index.of(op.rhs).substitute(iterators)
        return _comparison(op.predicate.value.data, left, right, holds)
    return Conditions(exact=False)


def _comparison(predicate: int, left: Index, right: Index, holds: bool) -> Conditions:
    """`arith.cmpi` predicates: 0 eq, 1 ne, 2 slt, 3 sle, 4 sgt, 5 sge. Unsigned ones give no condition."""
    if predicate in (0, 1):
        if (predicate == 0) == holds:
            return Conditions(equalities=(left - right,))
        return Conditions(exact=False)
    if predicate in (4, 5):
        left, right = right, left
        predicate -= 2
    if predicate not in (2, 3):
        return Conditions(exact=False)
    if holds:
        return Conditions((right - left - (1 if predicate == 2 else 0),))
    return Conditions((left - right - (0 if predicate == 2 else 1),))


def loop_with_variable(value: SSAValue | None) -> ForOp | None:
    loop = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return loop if isinstance(loop, ForOp) else None


def is_loop_value(value: SSAValue) -> bool:
    return loop_with_variable(value) is not None


def is_iterator(value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), BlockOp)


def least_value(index: Index) -> int | None:
    """A lower bound. Symbolic extents of loops and divisors of remainders are upper bounds."""
    low = index.range(range_of)[0]
    if low is not None:
        return low
    ends = {
        atom: end
        for atom, factor in index.terms.items()
        if factor < 0 and isinstance(atom, SSAValue) and (end := _last_value(atom)) is not None
    }
    return index.substitute(ends).range(range_of)[0] if ends else None


def _last_value(value: SSAValue) -> Index | None:
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        return Index.of(loop.extent) - 1 if isinstance(loop, ForOp) and not isinstance(loop.extent, int) else None
    meaning = meaning_of(value)
    return meaning.divisor - 1 if isinstance(meaning, Division) and not meaning.is_quotient else None
