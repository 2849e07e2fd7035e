"""Normalization of `scf` and `affine` loops to `tir.for`: from 0, with step 1, over rectangular domains.

- A loop whose bounds depend on loops around it runs over its largest extent, under conditions. A loop whose number of
  iterations depends on data is *dynamic*.
- Loop-carried values (`iter_args`, reductions), and results of conditions with stores, are in temporaries with an
  element per iteration of the loops around them.
- Indices are maps over loop variables, also through views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Final, cast

from xdsl.dialects import affine, arith, memref, scf, vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, IndexType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstraintKind, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import range_of
from weft.analysis.block_patterns import neutral_value
from weft.analysis.block_scopes import child_towards
from weft.analysis.index import Atom, Index, Quotient, Remainder
from weft.dialects.combiners import UPSTREAM_KINDS
from weft.dialects.effects import is_pure, may_trap, only_computes
from weft.dialects.index_map import over_dims
from weft.dialects.integer_arith import constant_integer
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import operations_in, sources_in
from weft.dialects.upstream.affine import MaxOp, ParallelOp
from weft.dialects.upstream.scf_forall import ForallOp
from weft.dialects.upstream.views import VIEWS
from weft.passes.convert.buffer_views import element_of_base
from weft.passes.index_builders import (
    arith_op,
    compare_before,
    conjunction_before,
    detached_ops,
    divided_up,
    extents_before,
    index_before,
    insert_before,
    number_attribute,
    result_before,
)
from weft.passes.schedule.nest_builders import always_less, new_loop
from weft.support.errors import CompileError

_MOST_ELEMENTS: Final = 1 << 24
"""Limit of the number of elements of a temporary that has one for each iteration of the loops around it."""
Bound = Sequence[Index]
"""The indices whose maximum is a lower bound, or whose minimum is an upper bound."""


def only_reads(op: Operation) -> bool:
    if not op.regions:
        return only_computes(op) or isinstance(op, scf.YieldOp | scf.ConditionOp)
    return isinstance(op, scf.IfOp | scf.WhileOp | ForOp) and all(
        only_reads(inner) for region in op.regions for block in region.blocks for inner in block.ops
    )


def hoist_invariants(function: FuncOp) -> None:
    top = function.body.block
    for op in operations_in(function.body):
        if op.parent is top or op.parent is None or not is_pure(op) or may_trap(op):
            continue
        if all(_block_of(operand) is top for operand in op.operands):
            around = child_towards(function, op)
            op.detach()
            top.insert_op_before(op, around)


def _block_of(value: SSAValue) -> Block | None:
    return (
        value.block
        if isinstance(value, BlockArgument)
        else value.owner.parent
        if isinstance(value.owner, Operation)
        else None
    )


class LoopNormalization:
    """Rewrites loops in place. Those of tir are unchanged, except accesses through views."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.static: set[ForOp] = set()
        """The new loops, except dynamic ones and those inside them."""
        self.parallel: list[ForOp] = []
        """The outermost loops whose iterations the program declares independent."""
        self.temporaries: set[SSAValue] = set()
        """New buffers for values, with no other uses than loads and stores."""
        self._loops: list[ForOp] = []
        """The non-dynamic loops around the current op."""
        self._is_static = True
        """Whether the current op is only in those loops and in conditions."""

    def run(self) -> None:
        hoist_invariants(self.function)
        self._region(self.function.body.block)
        for op in reversed(operations_in(self.function.body)):
            if isinstance(op, (*VIEWS, memref.DimOp)) and op.results[0].first_use is None:
                Rewriter.erase_op(op)

    def _region(self, block: Block) -> None:
        for op in list(block.ops):
            if op.parent is block:  # an earlier op may have erased it
                self._operation(op)

    def _operation(self, op: Operation) -> None:
        match op:
            case affine.MinOp() | MaxOp():
                self._choice(op, arith.MaxSIOp if isinstance(op, MaxOp) else arith.MinSIOp)
            case memref.LoadOp() | memref.StoreOp() if not isinstance(op.memref.owner, VIEWS):
                pass
            case affine.LoadOp() | memref.LoadOp():
                buffer, indices = self._access(op)
                self._replace(op, memref.LoadOp.get(buffer, indices))
            case affine.StoreOp() | memref.StoreOp():
                buffer, indices = self._access(op)
                self._replace(op, memref.StoreOp.get(op.value, buffer, indices))
            case affine.VectorLoadOp():
                buffer, indices = self._access(op)
                self._replace(op, vector.LoadOp(buffer, indices, op.result.type))
            case affine.VectorStoreOp():
                buffer, indices = self._access(op)
                self._replace(op, vector.StoreOp(op.value, buffer, indices))
            case affine.ForOp():
                lower = _bound(op.lowerBoundMap, op.lowerBoundOperands)
                upper = _bound(op.upperBoundMap, op.upperBoundOperands)
                self._serial(op, lower, upper, op.step.value.data)
            case scf.ForOp():
                low, high, step = (self._as_index(value, op) for value in (op.lb, op.ub, op.step))
                counter = op.body.block.args[0]
                if not isinstance(counter.type, IndexType):
                    self._count_by_index(op.body.block)
                self._serial(op, _chosen(low, arith.MaxSIOp), _chosen(high, arith.MinSIOp), _number(step))
            case scf.ParallelOp():
                bounds = [
                    (_chosen(low, arith.MaxSIOp), _chosen(high, arith.MinSIOp), _number(step))
                    for low, high, step in zip(op.lowerBound, op.upperBound, op.step, strict=True)
                ]
                self._scf_parallel(op, bounds)
            case ForallOp():
                self._forall(op)
            case ParallelOp():
                self._affine_parallel(op)
            case affine.IfOp():
                self._affine_if(op)
            case scf.IfOp():
                self._if(op)
            case memref.CopyOp():
                self._copy(op)
            case memref.AllocOp() | memref.AllocaOp():
                self._allocate(op)
            case memref.DeallocOp():
                if isinstance(op.memref.owner, memref.AllocOp):
                    Rewriter.erase_op(op)
            case memref.DimOp():
                self._dim(op)
            case AccessRegionOp():
                if isinstance(op.buffer.owner, VIEWS):
                    Rewriter.erase_op(op)  # regions that are not stated are inferred
            case ForOp() | BlockOp() | InitOp():
                self._region(op.body.block)
            case _ if op.regions:
                self._opaque(op)
            case _:
                pass

    # Indices

    def _choice(self, op: affine.MinOp | MaxOp, arith_class: type[Operation]) -> None:
        dims = [Index.of(value) for value in op.arguments]
        values = [index_before(Index.of_expr(expr, dims), op) for expr in over_dims(op.map.data)]
        chosen = reduce(lambda left, right: result_before(arith_op(arith_class, left, right), op), values)
        self._use_instead(op.result, chosen)
        Rewriter.erase_op(op)

    def _access(
        self,
        op: affine.LoadOp
        | affine.StoreOp
        | affine.VectorLoadOp
        | affine.VectorStoreOp
        | memref.LoadOp
        | memref.StoreOp,
    ) -> tuple[SSAValue, list[SSAValue]]:
        dims = [Index.of(value) for value in op.indices]
        if not isinstance(op, memref.LoadOp | memref.StoreOp):
            dims = [Index.of_expr(expr, dims) for expr in over_dims(op.map.data)]
        if isinstance(op.memref.owner, VIEWS) and not isinstance(
            op, memref.LoadOp | memref.StoreOp | affine.LoadOp | affine.StoreOp
        ):
            raise CompileError.at(op, f"{op.name} of a view, {op.memref.type}: its lanes may be at other addresses")
        buffer, indices = element_of_base(op.memref, dims, op)
        return buffer, [index_before(index, op) for index in indices]

    def _replace(self, op: Operation, new: Operation) -> None:
        for old, result in zip(op.results, new.results, strict=True):
            result.name_hint = old.name_hint
        new.location = op.location
        Rewriter.replace_op(op, new)

    def _use_instead(self, old: SSAValue, new: SSAValue) -> None:
        new.name_hint = new.name_hint or old.name_hint
        old.replace_all_uses_with(new)

    def _dim(self, op: memref.DimOp) -> None:
        dimension = constant_integer(op.index)
        if dimension is None or isinstance(op.source, BlockArgument):
            return
        extent = extents_before(op.source, op)[dimension]
        value = index_before(Index.of(extent), op) if isinstance(extent, int) else extent
        if value is not op.result:
            self._use_instead(op.result, value)
            Rewriter.erase_op(op)

    # Loops

    def _serial(self, op: affine.ForOp | scf.ForOp, lower: Bound, upper: Bound, step: int | SSAValue) -> None:
        inits = op.inits if isinstance(op, affine.ForOp) else op.iter_args
        body = op.body.block
        hints = [
            result.name_hint or argument.name_hint for result, argument in zip(op.results, body.args[1:], strict=True)
        ]
        carried = [
            self._passed_through(value, result) or self._carried(value, value.type, hint, op)
            for value, result, hint in zip(inits, op.results, hints, strict=True)
        ]

        def finish(last: Operation, end: Operation) -> None:
            for value, cell in zip(last.operands, carried, strict=True):
                cell.store(value, end)

        starts = list(zip(body.args[1:], carried, strict=True))
        self._nest(op, body, [(lower, upper, step)], LoopKind.SERIAL, finish, starts)
        self._give(op, carried)

    def _as_index(self, value: SSAValue, op: Operation) -> SSAValue:
        if isinstance(value.type, IndexType):
            return value
        is_fixed = _block_of(value) is self.function.body.block
        anchor = child_towards(self.function, op) if is_fixed and op.parent is not self.function.body.block else op
        number = constant_integer(value)
        if number is not None:
            return index_before(Index({}, number), anchor)
        return result_before(arith.IndexCastOp(value, IndexType()), anchor)

    def _count_by_index(self, body: Block) -> None:
        """Let a loop over integers use an index variable, from which they are cast."""
        old = body.args[0]
        new = body.insert_arg(IndexType(), 0)
        new.name_hint = old.name_hint
        for use in list(old.uses):
            if isinstance(cast_ := use.operation, arith.IndexCastOp) and isinstance(cast_.result.type, IndexType):
                cast_.result.replace_all_uses_with(new)
        if body.first_op is not None and old.first_use is not None:
            old.replace_all_uses_with(result_before(arith.IndexCastOp(new, old.type), body.first_op))
        body.erase_arg(old)

    def _carried(self, start: SSAValue | None, type_: Attribute, hint: str | None, op: Operation) -> _Carried:
        """A temporary, which contains `start` before `op`."""
        if isinstance(type_, MemRefType):
            raise CompileError.at(op, f"{op.name} passes buffers on: which one an access touches is not known")
        cell = _Carried(*self.temporary(type_, hint, op), hint)
        if start is not None:
            cell.store(start, op)
        return cell

    def _passed_through(self, start: SSAValue, result: SSAValue) -> _Carried | None:
        load, use = start.owner, result.get_unique_use()
        if not isinstance(load, memref.LoadOp) or load.memref not in self.temporaries or start.get_unique_use() is None:
            return None
        store = None if use is None else use.operation
        if not isinstance(store, memref.StoreOp) or store.memref is not load.memref or store.parent is not load.parent:
            return None
        if list(store.indices) != list(load.indices):
            return None
        Rewriter.erase_op(store)
        return _Carried(load.memref, list(load.indices), load.res.name_hint)

    def _give(self, op: Operation, carried: Sequence[_Carried]) -> None:
        for result, cell in zip(op.results, carried, strict=True):
            if result.first_use is not None:
                self._use_instead(result, cell.load(op))
        Rewriter.erase_op(op)

    def _scf_parallel(self, op: scf.ParallelOp, bounds: Sequence[tuple[Bound, Bound, int | SSAValue]]) -> None:
        starts = zip(op.initVals, op.res, strict=True)
        cells = [self._carried(value, value.type, result.name_hint, op) for value, result in starts]

        def finish(last: Operation, end: Operation) -> None:
            for value, region, cell in zip(last.operands, last.regions, cells, strict=True):
                combined = region.block.last_op
                Rewriter.inline_block(region.block, InsertPoint.before(end), [cell.load(end), value])
                if combined is not None:
                    cell.store(combined.operands[0], end)
                    Rewriter.erase_op(combined)

        kind = LoopKind.SERIAL if cells else LoopKind.PARALLEL
        self._nest(op, op.body.block, bounds, kind, finish)
        self._give(op, cells)

    def _affine_parallel(self, op: ParallelOp) -> None:
        count = op.lower_map.data.num_dims + op.lower_map.data.num_symbols
        groups: list[list[list[Index]]] = []
        for map_, operands, sizes in (
            (op.lower_map, op.map_operands[:count], op.lower_groups),
            (op.upper_map, op.map_operands[count:], op.upper_groups),
        ):
            left = iter(_bound(map_, operands))
            groups.append([[next(left) for _ in range(size)] for size in sizes.get_values()])
        bounds = [(low, high, step.value.data) for low, high, step in zip(*groups, op.steps, strict=True)]
        classes: list[type[Operation]] = []
        for kind in op.kinds:
            if kind not in UPSTREAM_KINDS:
                raise CompileError.at(op, f"{op.name}: results of reduction '{kind}' depend on the order of iterations")
            classes.append(UPSTREAM_KINDS[kind])
        cells: list[_Carried] = []
        for result, combiner in zip(op.res, classes, strict=True):
            neutral = neutral_value(combiner, result.type)
            if neutral is None:
                raise CompileError.at(op, f"{op.name}: {combiner.name} has no neutral element of type {result.type}")
            start = arith.ConstantOp(number_attribute(neutral, result.type))
            cells.append(self._carried(result_before(start, op), result.type, result.name_hint, op))

        def finish(last: Operation, end: Operation) -> None:
            for value, combiner, cell in zip(last.operands, classes, cells, strict=True):
                cell.store(result_before(arith_op(combiner, cell.load(end), value), end), end)

        self._nest(op, op.body.block, bounds, LoopKind.SERIAL if cells else LoopKind.PARALLEL, finish)
        self._give(op, cells)

    def _forall(self, op: ForallOp) -> None:
        if op.outputs:
            raise CompileError.at(op, f"{op.name} shares tensors: bufferize-tensors comes first")
        bounds = [
            ([Index.of(low)], [Index.of(high)], _number(step))
            for low, high, step in zip(op.lower, op.upper, op.step, strict=True)
        ]

        self._nest(op, op.body.block, bounds, LoopKind.PARALLEL)
        Rewriter.erase_op(op)

    def _nest(
        self,
        op: Operation,
        body: Block,
        bounds: Sequence[tuple[Bound, Bound, int | SSAValue]],
        kind: LoopKind,
        finish: Callable[[Operation, Operation], None] | None = None,
        starts: Sequence[tuple[SSAValue, _Carried]] = (),
    ) -> None:
        """Insert loops with these bounds, outermost first, and move `body` into the innermost. Its first arguments
        become the loop variables, those of `starts` are loaded. `finish` replaces its terminator at the end of an
        iteration."""
        count, was_static = len(self._loops), self._is_static
        anchor: Operation = op
        indices: list[Index] = []
        guards: list[tuple[Index, Index]] = []
        for at, (lower, upper, step) in enumerate(bounds):
            first, extent, own = self._domain(lower, upper, step, anchor)
            loop = new_loop(extent, body.args[at].name_hint or "i", op)
            insert_before(anchor, [loop])
            end = scf.YieldOp()
            loop.body.block.add_op(end)
            variable = Index.of(loop.induction_variable)
            indices.append(first + _scaled(variable, step, end))
            if self._is_static:
                if kind is LoopKind.PARALLEL and not any(outer in self.parallel for outer in self._loops):
                    self.parallel.append(loop)
                self._loops.append(loop)
                self.static.add(loop)
            guards += [(left(indices[-1]), right(indices[-1])) for left, right in own]
            if anchor is not op:
                Rewriter.erase_op(anchor)
            anchor = end
        inner = cast(Block, anchor.parent)
        for argument, index in zip(list(body.args), indices, strict=False):
            if argument.first_use is not None:
                argument.replace_all_uses_with(index_before(index, anchor, argument.name_hint))
        conditions = [
            compare_before("slt", left, right, anchor)
            for left, right in dict.fromkeys(guards)
            if not always_less(left.simplified(range_of), right.simplified(range_of))
        ]
        end = anchor
        if conditions:
            end = scf.YieldOp()
            insert_before(anchor, [scf.IfOp(conjunction_before(conditions, anchor), [], Region(Block([end])))])
        for argument, cell in starts:
            argument.replace_all_uses_with(cell.load(end))
        *inside, last = detached_ops(body)
        insert_before_keeping(end, inside)
        if finish is not None:
            finish(last, end)
        last.erase()
        Rewriter.erase_op(anchor)
        self._region(inner)
        del self._loops[count:]
        self._is_static = was_static

    def _domain(
        self, lower: Bound, upper: Bound, step: int | SSAValue, anchor: Operation
    ) -> tuple[Index, int | SSAValue, list[tuple[Callable[[Index], Index], Callable[[Index], Index]]]]:
        """First value, number of iterations, and guards: pairs of functions of the value, the first of which must be
        less."""
        static = self._is_static and isinstance(step, int) and (step == 1 or len(lower) == 1)
        if not static or not isinstance(step, int) or not all(map(self._is_known, (*lower, *upper))):
            self._is_static = False
            return self._dynamic_domain(lower, upper, step, anchor)
        first = next((index for index in lower if not self._varies(index)), lower[0])
        counts: list[Index] = []
        hulls: list[Index] = []
        guards: list[tuple[Callable[[Index], Index], Callable[[Index], Index]]] = [
            (lambda _, low=low: low - 1, lambda value: value) for low in lower if low != first
        ]
        for high in upper:
            span = high - first
            if not self._varies(span):
                counts.append(divided_up(span, step))
                continue
            hulls.append(divided_up(self._greatest(span), step))
            guards.append((lambda value: value, lambda _, high=high: high))
        numbers = [index.constant for index in (*counts, *hulls) if index.is_constant]
        symbols = [index for index in (counts or hulls) if not index.is_constant]
        if not numbers and not symbols:
            symbols = hulls[:1]
        top = child_towards(self.function, anchor)
        if not symbols:
            return first, max(min(numbers), 0), guards
        values = [index_before(index, top) for index in symbols]
        if numbers and counts:
            values.append(index_before(Index({}, min(numbers)), top))
        elif numbers:
            return first, max(min(numbers), 0), guards
        return first, _least(values, top), guards

    def _dynamic_domain(
        self, lower: Bound, upper: Bound, step: int | SSAValue, anchor: Operation
    ) -> tuple[Index, SSAValue, list[tuple[Callable[[Index], Index], Callable[[Index], Index]]]]:
        lows, highs = ([index_before(index, anchor) for index in bound] for bound in (lower, upper))
        first = Index.of(reduce(lambda a, b: result_before(arith_op(arith.MaxSIOp, a, b), anchor), lows))
        last = Index.of(_least(highs, anchor))
        span = last - first
        if isinstance(step, int):
            return first, index_before(divided_up(span, step), anchor), []
        count = arith.CeilDivSIOp(index_before(span, anchor), step)
        return first, result_before(count, anchor), []

    def _is_known(self, index: Index) -> bool:
        """Whether an index depends only on loop variables and top-level values of parameters."""
        variables = {loop.induction_variable for loop in self._loops}
        return all(value in variables or self._is_of_parameters(value) for value in index.values())

    def _is_of_parameters(self, value: SSAValue) -> bool:
        return _block_of(value) is self.function.body.block and all(
            isinstance(source.owner, Block) or (is_pure(source.owner) and not may_trap(source.owner))
            for source in sources_in([value])
            if not isinstance(source.type, MemRefType)
        )

    def _varies(self, index: Index) -> bool:
        return index.mentions(loop.induction_variable for loop in self._loops)

    def _greatest(self, index: Index) -> Index:
        return self._extreme(index, largest=True)

    def _extreme(self, index: Index, *, largest: bool) -> Index:
        total = Index({}, index.constant)
        for atom, factor in index.terms.items():
            total = total + self._extreme_atom(atom, largest=largest == (factor > 0)) * factor
        return self._extreme(total, largest=largest) if self._varies(total) else total

    def _extreme_atom(self, atom: Atom, *, largest: bool) -> Index:
        if isinstance(atom, Quotient):
            return self._extreme(atom.numerator, largest=largest) // atom.divisor
        if isinstance(atom, Remainder):
            return Index({}, atom.divisor - 1 if largest else 0)
        loop = next((loop for loop in self._loops if loop.induction_variable is atom), None)
        if loop is None:
            return Index.of(atom)
        return Index.of(loop.extent) - 1 if largest else Index({})

    # Conditions

    def _affine_if(self, op: affine.IfOp) -> None:
        set_ = op.condition.data
        values = [Index.of(value) for value in op.args]
        dims, symbols = values[: set_.num_dims], values[set_.num_dims :]
        tests: list[SSAValue] = []
        for constraint in set_.constraints:
            left, right = (_of_set(expr, dims, symbols) for expr in (constraint.lhs, constraint.rhs))
            predicate = {AffineConstraintKind.ge: "sge", AffineConstraintKind.le: "sle", AffineConstraintKind.eq: "eq"}
            tests.append(compare_before(predicate[constraint.kind], left, right, op))
        regions = [op.detach_region(0), op.detach_region(0)]
        for region in regions:
            for block in region.blocks:
                last = block.last_op
                if isinstance(last, affine.YieldOp):
                    Rewriter.replace_op(last, scf.YieldOp(*last.arguments))
        new = scf.IfOp(
            conjunction_before(tests, op),
            [result.type for result in op.results],
            regions[0],
            regions[1] if regions[1].blocks else None,
        )
        for old, result in zip(op.results, new.results, strict=True):
            result.name_hint = old.name_hint
        new.location = op.location
        Rewriter.replace_op(op, new)
        self._if(new)

    def _if(self, op: scf.IfOp) -> None:
        blocks = [block for region in op.regions for block in region.blocks]
        for block in blocks:
            self._region(block)
        if not op.results or only_reads(op):
            return
        cells = [self._carried(None, result.type, result.name_hint, op) for result in op.results]
        for block in blocks:
            last = block.last_op
            if isinstance(last, scf.YieldOp):
                for value, cell in zip(last.operands, cells, strict=True):
                    cell.store(value, last)
                Rewriter.replace_op(last, scf.YieldOp())
        regions = [op.detach_region(0), op.detach_region(0)]
        new = scf.IfOp(op.cond, [], regions[0], regions[1] if regions[1].blocks else None)
        insert_before(op, [new])
        self._give(op, cells)

    def _opaque(self, op: Operation) -> None:
        was_static, self._is_static = self._is_static, False
        for region in op.regions:
            for block in region.blocks:
                self._region(block)
        self._is_static = was_static

    # Buffers

    def _copy(self, op: memref.CopyOp) -> None:
        extents = extents_before(op.source, op)
        end: Operation = scf.YieldOp()
        indices = [BlockArgument(IndexType(), Block(), at) for at in range(len(extents))]
        body = Block([end], arg_types=[IndexType()] * len(indices))
        for argument, at in zip(body.args, range(len(extents)), strict=True):
            argument.name_hint = f"i{at}"
        load = memref.LoadOp.get(op.source, body.args)
        insert_before(end, [load, memref.StoreOp.get(load.res, op.destination, body.args)])
        end.location = op.location
        bounds = [([Index({})], [Index.of(extent)], 1) for extent in extents]
        self._nest(op, body, bounds, LoopKind.SERIAL)
        Rewriter.erase_op(op)

    def _allocate(self, op: memref.AllocOp | memref.AllocaOp) -> None:
        """Allocate temporaries before their nest, if their size is known there, without a layout: no other code depends
        on it."""
        top = self.function.body.block
        type_ = op.memref.type
        if op.symbol_operands:
            raise CompileError.at(op, f"{op.name}: symbols of layouts are not supported, got {type_}")
        known = all(_block_of(size) is top for size in op.dynamic_sizes)
        new = memref.AllocOp.build(
            operands=[list(op.dynamic_sizes), []],
            result_types=[MemRefType(type_.element_type, type_.shape, memory_space=type_.memory_space)],
            properties={} if op.alignment is None else {"alignment": op.alignment},
        )
        new.memref.name_hint = op.memref.name_hint
        insert_before(child_towards(self.function, op) if known and op.parent is not top else op, [new])
        new.location = op.location
        for use in list(op.memref.uses):
            if isinstance(use.operation, memref.DeallocOp):
                Rewriter.erase_op(use.operation)
        op.memref.replace_all_uses_with(new.memref)
        Rewriter.erase_op(op)

    def temporary(
        self, type_: Attribute, hint: str | None, op: Operation, loops: Sequence[ForOp] | None = None
    ) -> tuple[SSAValue, list[SSAValue]]:
        """A buffer with an element per iteration of the loops around `op`, and the current indices."""
        loops = self._loops if loops is None else loops
        static = [loop.extent for loop in loops if isinstance(loop.extent, int)]
        if prod(static) > _MOST_ELEMENTS:
            loops = []
        top = child_towards(self.function, op) if op.parent is not self.function.body.block else op
        shape = [loop.extent if isinstance(loop.extent, int) else DYNAMIC_INDEX for loop in loops]
        sizes: list[SSAValue] = []
        for loop in loops:
            if isinstance(extent := loop.extent, SSAValue):
                low, _ = Index.of(extent).range(range_of)
                if low is None or low < 0:
                    zero = index_before(Index({}), top)
                    extent = result_before(arith_op(arith.MaxSIOp, extent, zero), top)
                sizes.append(extent)
        alloc = memref.AllocOp.build(operands=[sizes, []], result_types=[MemRefType(type_, shape)])
        alloc.memref.name_hint = hint or "carried"
        insert_before(top, [alloc])
        self.temporaries.add(alloc.memref)
        return alloc.memref, [loop.induction_variable for loop in loops]


@dataclass
class _Carried:
    buffer: SSAValue
    indices: list[SSAValue]
    hint: str | None

    def load(self, anchor: Operation) -> SSAValue:
        value = result_before(memref.LoadOp.get(self.buffer, self.indices), anchor)
        value.name_hint = self.hint
        return value

    def store(self, value: SSAValue, anchor: Operation) -> None:
        insert_before(anchor, [memref.StoreOp.get(value, self.buffer, self.indices)])


def insert_before_keeping(anchor: Operation, ops: Sequence[Operation]) -> None:
    if ops:
        Rewriter.insert_op(ops, InsertPoint.before(anchor))


def _bound(map_: AffineMapAttr, operands: Sequence[SSAValue]) -> list[Index]:
    dims = [Index.of(value) for value in operands]
    return [Index.of_expr(expr, dims) for expr in over_dims(map_.data)]


def _chosen(value: SSAValue, choice: type[Operation]) -> list[Index]:
    op = value.owner
    if isinstance(op, choice):
        return [index for operand in op.operands for index in _chosen(operand, choice)]
    return [Index.of(value)]


def _number(step: int | SSAValue) -> int | SSAValue:
    known = step if isinstance(step, int) else constant_integer(step)
    return step if known is None or known < 1 else known


def _scaled(variable: Index, step: int | SSAValue, anchor: Operation) -> Index:
    if isinstance(step, int):
        return variable * step
    return Index.of(result_before(arith_op(arith.MuliOp, index_before(variable, anchor), step), anchor))


def _least(values: Sequence[SSAValue], anchor: Operation) -> SSAValue:
    return reduce(lambda a, b: result_before(arith_op(arith.MinSIOp, a, b), anchor), values)


def _of_set(expr: AffineExpr, dims: Sequence[Index], symbols: Sequence[Index]) -> Index:
    return Index.of_expr(over_dims(AffineMap(len(dims), len(symbols), (expr,)))[0], [*dims, *symbols])
