"""tir-lower-reductions: replace inits by blocks or guarded code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_scopes import bindings_of, guards_of, sources_of, takes_pointers, why_overlapping
from weft.analysis.code_motion import why_not_started_before
from weft.analysis.index import Index
from weft.dialects.effects import only_computes, opaque_op
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_empty import empty_start, loop_chain
from weft.dialects.tir_kinds import IterKind, LoopKind, LoopKindAttr
from weft.dialects.traversal import operations_of
from weft.passes.index_builders import (
    compare_before,
    conjunction_before,
    constant_before,
    detached_ops,
    disjunction_before,
    erase_if_unused,
    if_around,
    insert_before,
)
from weft.passes.schedule.nest_builders import init_block, nest, new_loop
from weft.passes.tir.tir_pass import TirPass, range_of


@dataclass(frozen=True)
class LowerReductionsPass(TirPass):
    """Lower `tir.init` of every block.

    If the loops of the reduction contain only the block, and its init starts all elements that instances in them update
    (`analysis/reductions.py`), the init gets a nest before the outermost loop of a reduce iterator, so that the hot
    loop has no conditions:

    ```mlir
    tir.for %i in 8 { tir.for %k in 4 {
      tir.block "Y" iters(%vi: spatial<8>, %vk: reduce<4>) = [%i, %k] { tir.init { INIT } UPDATE } } }
    // becomes
    tir.for %i in 8 {
      tir.block "Y_init" iters(%vi: spatial<8>) = [%i] { INIT }
      tir.for %k in 4 { tir.block "Y" iters(%vi: spatial<8>, %vk: reduce<4>) = [%i, %k] { UPDATE } } }
    ```
    Otherwise it stays in the body, under the condition that all reduce iterators are 0.

    A reduction without iterations (a dynamic extent of 0) yields its start value. Unless the init left all its loops, a
    copy precedes them, if an extent is 0 (`dialects/tir_empty.py`).

    Requires: block loops.

    Leaves: block loops without `tir.init`.
    """

    name = "tir-lower-reductions"

    def rewrite(self, function: FuncOp) -> None:
        for block in operations_of(function, BlockOp):
            if block.init is not None:
                _lower_init(block, block.init)


@dataclass(frozen=True)
class _Hoist:
    """Hoisting of an init out of `loops`, outermost first. Its nest repeats them except `dropped`, whose variables are
    0. It runs if all `conditions` are 0."""

    loops: tuple[ForOp, ...]
    dropped: frozenset[ForOp]
    conditions: tuple[Index, ...]


def _lower_init(block: BlockOp, init: InitOp) -> None:
    bindings = bindings_of(block)
    reduce = [
        binding.simplified(range_of)
        for kind, binding in zip(block.kinds, bindings, strict=True)
        if kind is IterKind.REDUCE
    ]
    if all(binding == Index({}) for binding in reduce) and not _may_be_empty(block):
        # Every instance starts its accumulation.
        block.body.block.insert_ops_before(detached_ops(init.body.block), init)
    elif (hoist := _plan_hoist(block, reduce)) is not None:
        if hoist.conditions or _guards_depend_on(block, hoist.dropped):
            _start_when_empty(block)
        _hoist_init(block, hoist)
    else:
        _start_when_empty(block)
        variables = zip(block.kinds, block.iter_vars, strict=True)
        conditions = [
            compare_before("eq", Index.of(variable), Index({}), init)
            for kind, variable in variables
            if kind is IterKind.REDUCE
        ]
        insert_before(init, [if_around(conjunction_before(conditions, init), detached_ops(init.body.block))])
    Rewriter.erase_op(init)


def _may_be_empty(block: BlockOp) -> bool:
    """A dynamic reduce extent may be 0 even if its upper bound is 1."""
    extents = zip(block.kinds, block.extents, strict=True)
    return any(kind is IterKind.REDUCE and isinstance(extent, SSAValue) for kind, extent in extents)


def _guards_depend_on(block: BlockOp, loops: frozenset[ForOp]) -> bool:
    """An empty reduction has no step for which such a guard could hold."""
    variables = [loop.induction_variable for loop in loops]
    return any(Index.of(value).depends_on(variables) for value in block.guard_operands)


def _plan_hoist(block: BlockOp, reduce: list[Index]) -> _Hoist | None:
    if takes_pointers(block) or opaque_op(block) is not None or why_overlapping(block) is not None:
        return None
    chain = loop_chain(block)
    of_reduction = {value for binding in reduce for value in binding.sources()}
    first = next((at for at, loop in enumerate(chain) if loop.induction_variable in of_reduction), len(chain))
    loops = tuple(chain[first:])
    if not loops or any(loop.kind.data is LoopKind.THREAD_BINDING for loop in loops) or not _holds_only(loops, block):
        return None
    dropped_values = of_reduction - sources_of(block, IterKind.SPATIAL)
    dropped = frozenset(loop for loop in loops if loop.induction_variable in dropped_values)
    conditions = _conditions(reduce, [loop.induction_variable for loop in dropped])
    if conditions is None or why_not_started_before(block, loops[0]) is not None:
        return None
    return _Hoist(loops, dropped, conditions)


def _conditions(reduce: list[Index], dropped: list[SSAValue]) -> tuple[Index, ...] | None:
    """Indices that must be 0, in addition to `dropped`, for all reduce bindings to be 0. None unless these are sums of
    dropped variables with positive factors and a non-negative rest."""
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
    inner: tuple[Operation, ...] = (*loops[1:], block)
    for loop, only in zip(loops, inner, strict=True):
        if any(op is not only and not only_computes(op) for op in loop.body.block.ops):
            return False
    return True


def _hoist_init(block: BlockOp, hoist: _Hoist) -> None:
    anchor = hoist.loops[0]
    zero = constant_before(0, anchor)
    mapping: dict[SSAValue, SSAValue] = dict.fromkeys(block.iter_vars, zero)
    computed: list[Operation] = []
    place = InsertPoint.before(anchor)
    for loop, following in zip(hoist.loops, (*hoist.loops[1:], block), strict=True):
        if loop in hoist.dropped:
            mapping[loop.induction_variable] = zero
        else:
            kept = _copy_without_body(loop, mapping)
            Rewriter.insert_op(kept, place)
            place = InsertPoint.at_end(kept.body.block)
        inside = [op.clone(mapping) for op in loop.body.block.ops if op is not following]
        Rewriter.insert_op(inside, place)
        computed += inside
    renamed = {old: Index.of(new) for old, new in mapping.items()}
    bindings = [binding.substitute(renamed, range_of) for binding in bindings_of(block)]
    guards = [(left.substitute(renamed), right.substitute(renamed)) for left, right in guards_of(block)]
    guards += [(rest.substitute(renamed), Index({}, 1)) for rest in hoist.conditions]
    Rewriter.insert_op(init_block(block, f"{block.label}_init", bindings, guards, mapping), place)
    erase_if_unused([*reversed(computed), zero])


def _copy_without_body(loop: ForOp, mapping: dict[SSAValue, SSAValue]) -> ForOp:
    copy = new_loop(_renamed(loop.extent, mapping), loop.induction_variable.name_hint, loop, loop.kind.data)
    mapping[loop.induction_variable] = copy.induction_variable
    return copy


def _renamed(extent: int | SSAValue, mapping: Mapping[SSAValue, SSAValue]) -> int | SSAValue:
    return extent if isinstance(extent, int) else mapping.get(extent, extent)


def _start_when_empty(block: BlockOp) -> None:
    """Run the init before a reduction of which an extent is 0 at run time.

    ```mlir
    tir.for %k in %n { tir.for %i in 8 { tir.block "Y" ... { tir.init { INIT } UPDATE } } }
    // becomes
    scf.if %n <= 0 { tir.for %i in 8 { tir.block "Y_empty" ... { INIT } } }
    tir.for %k in %n { tir.for %i in 8 { tir.block "Y" ... { tir.init { INIT } UPDATE } } }
    ```
    """
    start = empty_start(block)
    if start is None:
        return
    zero = constant_before(0, start.anchor)
    conditions = [compare_before("sle", Index.of(extent), Index({}), start.anchor) for extent in start.extents]
    mapping: dict[SSAValue, SSAValue] = dict.fromkeys(block.iter_vars, zero)
    loops = [_copy_without_body(loop, mapping) for loop in start.kept]
    for loop in loops:
        loop.kind = LoopKindAttr(LoopKind.SERIAL)
    renamed = {old: Index.of(new) for old, new in mapping.items()}
    bindings = [binding.substitute(renamed) for binding in bindings_of(block)]
    for at in start.whole:
        loop = new_loop(block.extents[at], block.iter_vars[at].name_hint, block)
        bindings[at] = Index.of(loop.induction_variable)
        loops.append(loop)
    dims = [Index.of(value).substitute(renamed) for value in block.guard_operands]
    guards = [(Index.of_expr(left, dims), Index.of_expr(right, dims)) for left, right in start.guards]
    inner = nest(loops, [init_block(block, f"{block.label}_empty", bindings, guards, mapping)])
    insert_before(start.anchor, [if_around(disjunction_before(conditions, start.anchor), [inner])])
