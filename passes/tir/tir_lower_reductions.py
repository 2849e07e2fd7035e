"""tir-lower-reductions: turn the init of a reduction into guarded code before its updates."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from weft.analysis.code_motion import why_not_started_before
from weft.analysis.index import Index, exprs_of
from weft.analysis.structure import takes_pointers
from weft.dialects.effects import only_computes, opaque_op, underlying
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL, IterKind, LoopKind
from weft.dialects.traversal import operations_in
from weft.passes.tir.empty_reductions import start_when_empty
from weft.passes.tir.nest import (
    compare_before,
    conjunction_before,
    detached_ops,
    erase_if_unused,
    if_around,
    index_constant,
    insert_before,
    loops_around,
    range_of,
    tir_functions,
)


@dataclass(frozen=True)
class LowerReductionsPass(ModulePass):
    """Take `tir.init` out of every block.

    Where the loops of the reduction hold nothing but the block, the init becomes a block in a nest of its own just
    before the outermost loop that a reduce iterator is bound to, so that the hot loop stays free of conditions:

    ```mlir
    tir.for %i in 8 { tir.for %k in 4 {
      tir.block "Y" iters(%vi: spatial<8>, %vk: reduce<4>) = [%i, %k] { tir.init { INIT } UPDATE } } }
    // becomes
    tir.for %i in 8 {
      tir.block "Y_init" iters(%vi: spatial<8>) = [%i] { INIT }
      tir.for %k in 4 { tir.block "Y" iters(%vi: spatial<8>, %vk: reduce<4>) = [%i, %k] { UPDATE } } }
    ```
    Elsewhere the init stays in the body, under a condition that all reduce iterators are 0.

    A reduction over no iterations (a dynamic extent of 0) yields its start value: where the init was not hoisted out of
    all loops of the reduction, it also stands in front of them under the condition that an extent is 0
    (`dialects/tir_empty.py`).
    """

    name = "tir-lower-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in tir_functions(op):
            for block in [b for b in operations_in(function) if isinstance(b, BlockOp) and b.init is not None]:
                lower_init(block)


@dataclass(frozen=True)
class _Hoist:
    """Where the init of a block goes.

    `loops` are, outermost first, those that the init moves out of; its nest repeats them except `dropped`, whose
    variables are 0 there. `conditions` are indices that must be 0 where the init runs.
    """

    loops: tuple[ForOp, ...]
    dropped: frozenset[ForOp]
    conditions: tuple[Index, ...]


def lower_init(block: BlockOp) -> None:
    """Take the init of `block` out of it."""
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    reduce = [
        binding.simplified(range_of)
        for kind, binding in zip(block.kinds, bindings, strict=True)
        if kind is IterKind.REDUCE
    ]
    if all(binding == Index({}) for binding in reduce):
        _inline_init(block)
    elif (hoist := _plan_hoist(block, bindings, reduce)) is not None:
        if hoist.conditions or _guards_depend_on(block, hoist.dropped):
            start_when_empty(block)
        _hoist_init(block, bindings, hoist)
    else:
        start_when_empty(block)
        _guard_init(block)


def _guards_depend_on(block: BlockOp, loops: frozenset[ForOp]) -> bool:
    """Whether a guard says something about the steps of a reduction: there is none for it to hold when it is empty."""
    variables = [loop.induction_variable for loop in loops]
    return any(Index.of(value).depends_on(variables) for value in block.guard_operands)


def _inline_init(block: BlockOp) -> None:
    """Every instance is a first one: the init simply runs before the update."""
    init = block.init
    if init is None:
        return
    ops = detached_ops(init.body.block)
    block.body.block.insert_ops_before(ops, init)
    init.detach()
    init.erase()


def _guard_init(block: BlockOp) -> None:
    init = block.init
    if init is None:
        return
    zero = Index({})
    conditions = [
        compare_before("eq", Index.of(variable), zero, init)
        for kind, variable in zip(block.kinds, block.iter_vars, strict=True)
        if kind is IterKind.REDUCE
    ]
    guarded = if_around(conjunction_before(conditions, init), detached_ops(init.body.block))
    insert_before(init, [guarded])
    init.detach()
    init.erase()


def _plan_hoist(block: BlockOp, bindings: tuple[Index, ...], reduce: list[Index]) -> _Hoist | None:
    """How to hoist the init of `block`, or None where it must stay."""
    if not _reads_what_it_writes(block):
        return None
    chain = loops_around(block)
    of_reduction = {value for binding in reduce for value in binding.sources()}
    positions = [p for p, loop in enumerate(chain) if loop.induction_variable in of_reduction]
    if not positions:
        return None
    loops = tuple(reversed(chain[: positions[-1] + 1]))
    if any(loop.kind.data is LoopKind.THREAD_BINDING for loop in loops) or not _holds_only(loops, block):
        return None
    spatial = {
        value
        for kind, binding in zip(block.kinds, bindings, strict=True)
        if kind is IterKind.SPATIAL
        for value in binding.sources()
    }
    dropped = frozenset(
        loop for loop in loops if loop.induction_variable in of_reduction and loop.induction_variable not in spatial
    )
    conditions = _conditions(reduce, [loop.induction_variable for loop in dropped])
    if conditions is None or why_not_started_before(block, loops[0]) is not None:
        return None
    return _Hoist(loops, dropped, conditions)


def _conditions(reduce: list[Index], dropped: list[SSAValue]) -> tuple[Index, ...] | None:
    """What must be 0 beside the dropped loop variables for all reduce bindings to be 0.

    Requires that a sum of the dropped variables with positive factors and a rest that is not negative makes up each
    binding: then it is 0 exactly where all its parts are.
    """
    zeros = {variable: Index({}) for variable in dropped}
    seen: set[SSAValue] = set()
    conditions: list[Index] = []
    for binding in reduce:
        inside = [v for v in binding.values() if v in zeros]
        if any(binding.coefficient(v) <= 0 for v in inside) or len(set(inside)) != len(inside):
            return None
        seen.update(inside)
        rest = binding.substitute(zeros, range_of).simplified(range_of)
        low, _ = rest.range(range_of)
        if low is None or low < 0 or (rest.is_constant and rest.constant > 0):
            return None
        if not rest.is_constant:
            conditions.append(rest)
    return tuple(conditions) if len(seen) == len(zeros) else None


def _holds_only(loops: tuple[ForOp, ...], block: BlockOp) -> bool:
    """Whether nothing with an effect stands in `loops` but the next loop, and `block` in the last."""
    inner: tuple[Operation, ...] = (*loops[1:], block)
    for loop, only in zip(loops, inner, strict=True):
        if any(op is not only and not only_computes(op) for op in loop.body.block.ops):
            return False
    return True


def _reads_what_it_writes(block: BlockOp) -> bool:
    """Whether an instance reads the buffers that it writes only where it writes them, and nothing in it may do more.

    Then it sees no init but its own, where instances with different spatial iterators write different places.
    """
    if takes_pointers(block) or opaque_op(block) is not None:
        return False
    init = block.init
    stored: dict[SSAValue, set[tuple[object, ...]]] = {}
    loads: list[memref.LoadOp] = []

    def place(op: memref.LoadOp | memref.StoreOp) -> tuple[object, ...]:
        return op.memref, *(Index.of(i) for i in op.indices)  # indices of another view mean another element

    for op in operations_in(block.body.block):
        inside_init = init is not None and init.is_ancestor(op)
        if isinstance(op, memref.StoreOp):
            places = stored.setdefault(underlying(op.memref), set())
            if not inside_init:
                places.add(place(op))
        elif isinstance(op, memref.LoadOp):
            loads.append(op)
    return all(place(op) in stored.get(underlying(op.memref), {place(op)}) for op in loads)


def _hoist_init(block: BlockOp, bindings: tuple[Index, ...], hoist: _Hoist) -> None:
    """Build the nest of the init before the outermost loop of `hoist`."""
    anchor = hoist.loops[0]
    zero = index_constant(0)
    insert_before(anchor, [zero])
    mapping: dict[SSAValue, SSAValue] = {}
    computed: list[Operation] = [zero]
    outer: Block | None = None
    for position, loop in enumerate(hoist.loops):
        if loop in hoist.dropped:
            mapping[loop.induction_variable] = zero.result
        else:
            body = Block(arg_types=[loop.induction_variable.type])
            body.args[0].name_hint = loop.induction_variable.name_hint
            mapping[loop.induction_variable] = body.args[0]
            extent = loop.extent
            kept = ForOp(
                extent if isinstance(extent, int) else mapping.get(extent, extent), Region(body), loop.kind.data
            )
            kept.location = loop.location
            _append(outer, [kept], anchor)
            outer = body
        following = hoist.loops[position + 1] if position + 1 < len(hoist.loops) else block
        inside = [op.clone(mapping) for op in loop.body.block.ops if op is not following]
        _append(outer, inside, anchor)
        computed.extend(inside)
    _append(outer, [_init_block(block, bindings, hoist, mapping, zero.result)], anchor)
    erase_if_unused(reversed(computed))


def _append(outer: Block | None, ops: list[Operation], anchor: Operation) -> None:
    """Put `ops` at the end of `outer`, or before `anchor` while no loop of the nest has been kept."""
    if outer is not None:
        outer.add_ops(ops)
    elif anchor.parent is not None:
        anchor.parent.insert_ops_before(ops, anchor)


def _init_block(
    block: BlockOp,
    bindings: tuple[Index, ...],
    hoist: _Hoist,
    mapping: dict[SSAValue, SSAValue],
    zero: SSAValue,
) -> BlockOp:
    """The block that runs the init, over the spatial iterators of `block`; the init leaves `block`."""
    spatial = [p for p, kind in enumerate(block.kinds) if kind is IterKind.SPATIAL]
    renamed = {old: Index.of(new) for old, new in mapping.items()}
    moved = [bindings[p].substitute(renamed, range_of) for p in spatial]
    guard_indices = _renamed_guards(block, renamed) + [
        (rest.substitute(renamed), Index({}, 1)) for rest in hoist.conditions
    ]
    exprs, operands = exprs_of(moved)
    guards, guard_operands = _guard_exprs(guard_indices)
    body = Block(arg_types=[block.iter_vars[p].type for p in spatial])
    inside: dict[SSAValue, SSAValue] = dict(mapping)
    for variable in block.iter_vars:
        inside[variable] = zero
    for argument, p in zip(body.args, spatial, strict=True):
        argument.name_hint = block.iter_vars[p].name_hint
        inside[block.iter_vars[p]] = argument
    init = block.init
    if init is not None:
        body.add_ops(detached_ops(init.body.block))
        init.detach()
        init.erase()
    for op in operations_in(body):
        for position, operand in enumerate(op.operands):
            if operand in inside:
                op.operands[position] = inside[operand]
    extents = [block.extents[p] for p in spatial]
    new = BlockOp(
        f"{block.label}_init",
        [SPATIAL] * len(spatial),
        [e if isinstance(e, int) else mapping.get(e, e) for e in extents],
        exprs,
        operands,
        Region(body),
        guards,
        guard_operands,
    )
    new.location = block.location
    return new


def _renamed_guards(block: BlockOp, renamed: dict[SSAValue, Index]) -> list[tuple[Index, Index]]:
    dims = [Index.of(v).substitute(renamed) for v in block.guard_operands]
    return [(Index.of_expr(left, dims), Index.of_expr(right, dims)) for left, right in block.guards]


def _guard_exprs(
    guards: list[tuple[Index, Index]],
) -> tuple[list[tuple[AffineExpr, AffineExpr]], tuple[SSAValue, ...]]:
    exprs, operands = exprs_of([side for guard in guards for side in guard])
    return list(zip(exprs[::2], exprs[1::2], strict=True)), operands
