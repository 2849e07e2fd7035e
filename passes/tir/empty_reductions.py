"""Initialisation of reductions whose domain is empty at run time."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from weft.analysis.index import Index
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_empty import EmptyStart, empty_start
from weft.dialects.tir_kinds import SPATIAL, IterKind
from weft.passes.tir.nest import compare_before, disjunction_before, if_around, index_constant, insert_before


def start_when_empty(block: BlockOp) -> None:
    """Put the init of `block` in front of its reduction, for when an extent of that is 0 at run time.

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
    anchor = start.anchor
    zero = index_constant(0)
    insert_before(anchor, [zero])
    conditions = [compare_before("sle", Index.of(extent), Index({}), anchor) for extent in start.extents]
    insert_before(anchor, [if_around(disjunction_before(conditions, anchor), [_nest(start, zero.result)])])


def _nest(start: EmptyStart, zero: SSAValue) -> Operation:
    """The init in loops over the spatial points."""
    mapping: dict[SSAValue, SSAValue] = {}
    loops: list[ForOp] = []
    for loop in start.kept:
        copy = ForOp.around(loop.extent, (), loop.induction_variable.name_hint)
        copy.location = loop.location
        mapping[loop.induction_variable] = copy.induction_variable
        loops.append(copy)
    bound: dict[int, SSAValue] = {}
    for at in start.whole:
        copy = ForOp.around(start.block.extents[at], (), start.block.iter_vars[at].name_hint)
        copy.location = start.block.location
        bound[at] = copy.induction_variable
        loops.append(copy)
    inner: Operation = _block(start, mapping, bound, zero)
    for loop in reversed(loops):
        loop.body.block.add_op(inner)
        inner = loop
    return inner


def _block(start: EmptyStart, mapping: dict[SSAValue, SSAValue], bound: dict[int, SSAValue], zero: SSAValue) -> BlockOp:
    block, init = start.block, start.block.init
    spatial = [at for at, kind in enumerate(block.kinds) if kind is IterKind.SPATIAL]
    operands = [mapping.get(value, value) for value in block.binding_operands]
    bindings: list[AffineExpr] = []
    for at in spatial:
        if at in bound:
            bindings.append(AffineDimExpr(len(operands)))
            operands.append(bound[at])
        else:
            bindings.append(block.bindings.data.results[at])
    body = Block(arg_types=[IndexType()] * len(spatial))
    inside: dict[SSAValue, SSAValue] = dict.fromkeys(block.iter_vars, zero)
    for argument, at in zip(body.args, spatial, strict=True):
        argument.name_hint = block.iter_vars[at].name_hint
        inside[block.iter_vars[at]] = argument
    body.add_ops([op.clone(inside) for op in (init.body.block.ops if init is not None else ())])
    new = BlockOp(
        f"{block.label}_empty",
        [SPATIAL] * len(spatial),
        [block.extents[at] for at in spatial],
        bindings,
        operands,
        Region(body),
        start.guards,
        [mapping.get(value, value) for value in block.guard_operands],
    )
    new.location = block.location
    return new
