"""Loop nests and blocks: construction, and changes of loops, extents, bindings and guards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, IntegerAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import is_fixed, is_loop_value, least_value, loop_with_variable, range_of
from weft.analysis.block_scopes import bindings_of, child_towards, function_of, guards_of
from weft.analysis.footprint import Runs, Span
from weft.analysis.index import Index, exprs_of
from weft.dialects.effects import only_computes
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL, IterKind, IterKindAttr, LoopKind
from weft.dialects.traversal import copy_of
from weft.passes.index_builders import (
    compare_before,
    conjunction_before,
    if_around,
    index_before,
    index_op,
    materialize,
)
from weft.passes.schedule.primitive import Primitive, operation_text
from weft.support.errors import InternalError


def new_loop(extent: int | SSAValue, hint: str | None, like: Operation, kind: LoopKind = LoopKind.SERIAL) -> ForOp:
    loop = ForOp.empty(extent, hint, kind)
    loop.location = like.location
    return loop


def empty_copy(loop: ForOp, extent: int | SSAValue, hint: str | None) -> ForOp:
    copy = new_loop(extent, hint, loop, loop.kind.data)
    copy.thread_axis = loop.thread_axis
    copy.attributes.update(loop.attributes)
    return copy


def nest(loops: Sequence[ForOp], body: Sequence[Operation]) -> Operation:
    """One of the two may be empty."""
    for loop in reversed(loops):
        loop.body.block.add_ops(body)
        body = (loop,)
    return body[0]


def new_block(
    label: str,
    kinds: Sequence[IterKindAttr],
    extents: Sequence[int | SSAValue],
    bindings: Sequence[Index],
    hints: Sequence[str | None],
    like: Operation,
    annotations: Mapping[str, Attribute] | None = None,
) -> BlockOp:
    """`like` gives the source location, `hints` the names of iterators."""
    body = Block(arg_types=[IndexType()] * len(kinds))
    for variable, hint in zip(body.args, hints, strict=True):
        variable.name_hint = hint
    block = BlockOp(label, kinds, extents, *exprs_of(bindings), Region(body), annotations=annotations)
    block.location = like.location
    return block


def block_in_loops(
    label: str,
    kinds: Sequence[IterKindAttr],
    extents: Sequence[int | SSAValue],
    hints: Sequence[str | None],
    like: Operation,
    loop_hints: Sequence[str] | None = None,
) -> tuple[BlockOp, Operation]:
    names = loop_hints or [f"ax{at}" for at in range(len(extents))]
    loops = [new_loop(extent, name, like) for extent, name in zip(extents, names, strict=True)]
    block = new_block(label, kinds, extents, [Index.of(loop.induction_variable) for loop in loops], hints, like)
    return block, nest(loops, [block])


def values_in(body: Block, indices: Iterable[Index]) -> list[SSAValue]:
    """Values are computed at the end of `body` unless they exist."""
    found: list[SSAValue] = []
    for index in indices:
        value, operations = materialize(index)
        body.add_ops(operations)
        found.append(value)
    return found


def named_values(body: Block, indices: Mapping[SSAValue, Index]) -> dict[Index, SSAValue]:
    known: dict[Index, SSAValue] = {}
    for variable, index in indices.items():
        if index not in known:
            (known[index],) = values_in(body, [index])
            if index.single_value is None:
                known[index].name_hint = variable.name_hint
    return known


def if_all_hold(
    inequalities: Iterable[Index], equalities: Iterable[Index], operations: Sequence[Operation], anchor: Operation
) -> scf.IfOp:
    """The `scf.if` is detached; its conditions are computed before `anchor`."""
    for op in operations:
        if op.parent is not None:
            op.detach()
    tests = [compare_before("sge", index, Index({}), anchor) for index in inequalities]
    tests += [compare_before("eq", index, Index({}), anchor) for index in equalities]
    return if_around(conjunction_before(tests, anchor), operations)


def init_operations(block: BlockOp, values: Mapping[SSAValue, SSAValue]) -> list[Operation]:
    """Copies of the init over other iterators; reduce iterators are 0."""
    if block.init is None:
        raise InternalError(f'block "{block.label}" has no init')
    used = {operand for op in block.init.body.walk() for operand in op.operands}
    steps = [v for v, kind in zip(block.iter_vars, block.kinds, strict=True) if kind is IterKind.REDUCE and v in used]
    zeros = [index_op(Index({}))] if steps else []
    mapping = {**values, **{step: zero.results[0] for zero in zeros for step in steps}}
    return [*zeros, *(copy_of(op, mapping) for op in block.init.body.block.ops)]


def init_block(
    block: BlockOp,
    label: str,
    bindings: Sequence[Index],
    guards: Sequence[tuple[Index, Index]],
    values: Mapping[SSAValue, SSAValue],
) -> BlockOp:
    """`bindings` are those of all iterators; `values` replace values from outside."""
    spatial = [at for at, kind in enumerate(block.kinds) if kind is IterKind.SPATIAL]
    variables = [block.iter_vars[at] for at in spatial]
    extents = [extent if isinstance(extent := block.extents[at], int) else values.get(extent, extent) for at in spatial]
    hints = [variable.name_hint for variable in variables]
    new = new_block(label, [SPATIAL] * len(spatial), extents, [bindings[at] for at in spatial], hints, block)
    inside = {**values, **dict(zip(variables, new.iter_vars, strict=True))}
    new.body.block.add_ops(init_operations(block, inside))
    set_guards(new, guards)
    return new


def rebind(block: BlockOp, mapping: Mapping[SSAValue, Index]) -> None:
    """Bindings that use none of the values are not simplified: a loop of one iteration may still be split."""
    bindings = [
        index.substitute(mapping, range_of).simplified(range_of) if index.depends_on(mapping) else index
        for index in bindings_of(block)
    ]
    block.set_bindings(*exprs_of(bindings))
    sides = [side.substitute(mapping, range_of).simplified(range_of) for guard in guards_of(block) for side in guard]
    set_guards(block, list(zip(sides[::2], sides[1::2], strict=True)))


def insert_in_copies(block: BlockOp, copies: Mapping[ForOp, ForOp], place: Operation) -> None:
    Rewriter.insert_op(nest(list(copies.values()), [block]), InsertPoint.before(place))
    rebind(block, {old.induction_variable: Index.of(new.induction_variable) for old, new in copies.items()})


def set_guards(block: BlockOp, guards: Sequence[tuple[Index, Index]]) -> None:
    """`left < right`, without duplicates and those that ranges prove."""
    kept = [guard for guard in dict.fromkeys(guards) if not always_less(*guard)]
    exprs, operands = exprs_of([side for guard in kept for side in guard])
    block.set_guards(list(zip(exprs[::2], exprs[1::2], strict=True)), operands)


def always_less(left: Index, right: Index) -> bool:
    low = least_value(right - left)
    return low is not None and low > 0


def replace_loop_value(value: SSAValue, index: Index, body: Block, before: Operation | None = None) -> None:
    """`index` is computed in `body`, before `before` or at its start."""
    users = dict.fromkeys(use.operation for use in value.uses)
    others: list[Operation] = []
    for user in users:
        if isinstance(user, BlockOp):
            if value in user.extent_operands:
                others.append(user)
            rebind(user, {value: index})
        else:
            others.append(user)
    if not others:
        return
    new, operations = materialize(index)
    Rewriter.insert_op(operations, InsertPoint(body, before or body.first_op))
    for user in others:
        for at, operand in enumerate(user.operands):
            if operand is value:
                user.operands[at] = new


def replace_contents(block: BlockOp, other: BlockOp) -> None:
    """Replace by `other`, which is erased, so that handles on `block` stay valid."""
    region = other.detach_region(0)
    old = block.detach_region(0)
    block.add_region(region)
    block.operands = list(other.operands)
    block.properties = dict(other.properties)
    block.attributes = dict(other.attributes)
    old.drop_all_references()
    other.erase()


def erase_empty_loops(op: Operation | None) -> None:
    """Erase `op` if it is a loop that contains only index arithmetic and such loops, then enclosing loops that become
    empty."""
    silent = ForOp | affine.ApplyOp | arith.ConstantOp
    while isinstance(op, ForOp) and all(isinstance(inner, silent) for inner in op.walk()):
        parent = op.parent_op()
        Rewriter.erase_op(op)
        op = parent


def own_loops(block: BlockOp) -> list[ForOp]:
    """Outermost first."""
    found: list[ForOp] = []
    child: Operation = block
    parent = block.parent_op()
    while isinstance(parent, ForOp) and all(op is child or only_computes(op) for op in parent.body.block.ops):
        found.append(parent)
        child, parent = parent, parent.parent_op()
    return found[::-1]


def loop_of_its_own(block: BlockOp, position: int) -> ForOp | str:
    """The reason if none: the loop must contain only the block, have the iterator's extent, and no other use."""
    name = f"%{block.iter_vars[position].name_hint or position}"
    loop = loop_of(block, position)
    if loop is None:
        return f"iterator {name} is not bound to a single loop"
    shown = operation_text(loop)
    if loop not in own_loops(block):
        return f"loop {shown} of iterator {name} holds more than the block"
    if Index.of(loop.extent) != Index.of(block.extents[position]):
        return f"loop {shown} and iterator {name} differ in extent"
    others = [index for at, index in enumerate(bindings_of(block)) if at != position]
    if loop.induction_variable.get_user_of_unique_use() is not block or any(
        index.depends_on([loop.induction_variable]) for index in others
    ):
        return f"loop {shown} is used for more than iterator {name}"
    if loop.kind.data is LoopKind.THREAD_BINDING:
        return f"loop {shown} is bound to a thread axis"
    return loop


def loop_of(block: BlockOp, position: int) -> ForOp | None:
    return loop_with_variable(bindings_of(block)[position].single_value)


def set_loop_extent(loop: ForOp, extent: int | SSAValue) -> None:
    loop.static_extent = IntegerAttr(extent, i64) if isinstance(extent, int) else None
    loop.operands = [] if isinstance(extent, int) else [extent]


def set_extents(block: BlockOp, extents: Sequence[int | SSAValue]) -> None:
    bindings, guards = tuple(block.binding_operands), tuple(block.guard_operands)
    values = [extent for extent in extents if not isinstance(extent, int)]
    static = [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in extents]
    block.static_extents = DenseArrayBase.from_list(i64, static)
    block.operands = (*values, *bindings, *guards)
    block.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(values), len(bindings), len(guards)])


def extent_before(index: Index, anchor: Operation) -> int | SSAValue:
    return index.constant if index.is_constant else index_before(index, anchor)


def extent_value(index: Index, at: Operation) -> int | SSAValue:
    """The value is computed at the top level of the function."""
    return extent_before(index, child_towards(function_of(at), at))


def only_child_block(primitive: Primitive, loop: ForOp | BlockOp) -> BlockOp:
    """The only op with an effect, through nested loops; a block itself. Requirement 1: it is one block."""
    inner: Operation = loop
    while isinstance(inner, ForOp):
        effects = [op for op in inner.body.block.ops if not only_computes(op)]
        if len(effects) != 1:
            names = ", ".join(f'block "{op.label}"' if isinstance(op, BlockOp) else op.name for op in effects)
            primitive.refuse(1, f"the body of loop {operation_text(inner)} holds {names or 'nothing'}", inner)
        (inner,) = effects
    if not isinstance(inner, BlockOp):
        primitive.refuse(1, f"it holds {inner.name}, not a block", inner)
    return inner


@dataclass(frozen=True)
class IterDomain:
    """Values: `lower + step * v` for a new induction variable v below `extent`."""

    lower: Index
    extent: int | SSAValue
    clipped: bool
    """Whether a guard must keep the span in the iterator's domain."""
    step: int = 1
    runs: Runs | None = None
    """Runs with gaps, if any; `v` enumerates the values in these."""

    def at(self, value: SSAValue) -> Index:
        return self.lower + self._offset(Index.of(value))

    def offset(self, value: int) -> int:
        return self._offset(Index({}, value)).constant

    def _offset(self, value: Index) -> Index:
        if self.runs is None:
            return value * self.step
        count = self.runs.count(self.step)
        return value // count * self.runs.period + value % count * self.step


def full_domain(extent: int | SSAValue) -> IterDomain:
    return IterDomain(Index({}), extent, clipped=False)


def domain_from_span(span: Span | None, extent: int | SSAValue, *, again: bool = True) -> IterDomain:
    """The whole iterator if `span` covers all values. `again=False` prevents that such values run again in each
    iteration of the enclosing loops."""
    if span is None:
        return full_domain(extent)
    lower, length, count = span.lower, span.extent, span.count
    low = least_value(lower)
    if isinstance(extent, int) and count >= extent:
        if again or not any(is_loop_value(value) or not is_fixed(value) for value in lower.values()):
            return full_domain(extent)
        if low is not None and low >= 0:
            length = count = extent
    last = least_value(Index.of(extent) - lower - length)
    inside = low is not None and low >= 0 and last is not None and last >= 0
    return IterDomain(lower, count, not inside, span.step, span.runs)


def loops_over(
    domains: Sequence[IterDomain], extents: Sequence[int | SSAValue], like: Operation, *, unit_loops: bool = False
) -> tuple[list[ForOp], list[Index], list[tuple[Index, Index]]]:
    """Loops, the value of each iterator, and the guards that bound it by its extent."""
    loops: list[ForOp] = []
    bindings: list[Index] = []
    guards: list[tuple[Index, Index]] = []
    for domain, extent in zip(domains, extents, strict=True):
        index = domain.lower
        if domain.extent != 1 or unit_loops:
            new = new_loop(domain.extent, f"ax{len(loops)}", like)
            loops.append(new)
            index = domain.at(new.induction_variable)
        bindings.append(index)
        if domain.clipped:
            guards.append((index, Index.of(extent)))
            guards.append((Index({}, -1), index))
    return loops, bindings, guards


def set_corner(
    op: AccessRegionOp, corner: Sequence[Index], sizes: Sequence[int] | None = None, buffer: SSAValue | None = None
) -> None:
    new = type(op)(buffer or op.buffer, *exprs_of(corner), op.box_sizes if sizes is None else sizes)
    op.operands = list(new.operands)
    op.properties = dict(new.properties)
    new.drop_all_references()
