"""Unrolling of vectors of several dimensions to vectors of one: a row per position in the leading dimensions.

    %s = arith.addf %a, %b : vector<2x4xf32>      ->      %s0 = arith.addf %a0, %b0 : vector<4xf32>
                                                          %s1 = arith.addf %a1, %b1 : vector<4xf32>

A vector without dimensions is one lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from xdsl.dialects import affine, arith, scf, vector
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    VectorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import DimOp
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.rewriter import Rewriter

from weft.dialects.combiners import op_of_kind
from weft.dialects.low_lanes import mask_type
from weft.dialects.traversal import operations_in
from weft.dialects.upstream import vector as upstream
from weft.passes.low.op_rewriter import OpRewriter, element_of, lanes_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import MemRefType

_REGIONS: Final = (scf.ForOp, scf.IfOp, scf.WhileOp)
_ENDS: Final = (scf.YieldOp, scf.ConditionOp)
_AFFINE: Final = (affine.ForOp, affine.IfOp, affine.YieldOp, affine.VectorLoadOp, affine.VectorStoreOp)
"""Ops that are lowered to others before this step."""


def is_wide(type_: Attribute) -> bool:
    return isinstance(type_, VectorType) and len(type_.get_shape()) != 1


def is_unrolled(op: Operation) -> bool:
    if _is_transfer(op) and not all(isinstance(expr, AffineDimExpr) for expr in op.permutation_map.data.results):
        return True
    return type(op) in _COMPOUND or any(is_wide(value.type) for value in (*op.operands, *op.results))


def _is_transfer(op: Operation) -> TypeGuard[vector.TransferReadOp | vector.TransferWriteOp]:
    return isinstance(op, vector.TransferReadOp | vector.TransferWriteOp)


def why_not_unrolled(op: Operation) -> str | None:
    """The reason why an op has no form on vectors of one dimension."""
    types = [value.type for value in (*op.operands, *op.results) if isinstance(value.type, VectorType)]
    types.sort(key=is_wide, reverse=True)
    if any(any(type_.scalable_dims) for type_ in types):
        return f"{op.name} has vectors of other than fixed dimensions, {types[0]}"
    if not (type(op) in _UNROLLED or _is_elementwise(op) or isinstance(op, (*_REGIONS, *_ENDS, *_AFFINE))):
        return f"{op.name} has vectors of other than one fixed dimension, {types[0]}"
    if _is_transfer(op) and op.mask is not None and not op.permutation_map.data.is_minor_identity():
        return f"{op.name} with a mask and the map {op.permutation_map.data}"
    if isinstance(op, upstream.ContractOp | upstream.OuterProductOp | upstream.MultiReductionOp):
        element = element_of(op.operands[0].type)
        if op_of_kind(op.kind.data, element) is None:
            return f"{op.name} of kind {op.kind.data.value} does not combine {element}"
    return None


def _is_elementwise(op: Operation) -> bool:
    if op.name.partition(".")[0] not in ("arith", "math", "low") and not isinstance(op, vector.FMAOp):
        return False
    shapes = {value.type.get_shape() for value in (*op.operands, *op.results) if isinstance(value.type, VectorType)}
    return len(op.results) == 1 and len(shapes) == 1 and not op.regions


def unroll_vectors(function: FuncOp) -> None:
    unroller = _Unroller()
    for op in operations_in(function):
        if is_unrolled(op):
            unroller.unroll(op)
    for op in reversed(unroller.replaced):
        Rewriter.erase_op(op)
    for argument in unroller.arguments:
        argument.block.erase_arg(argument)


def _shape(type_: Attribute) -> tuple[int, ...]:
    return type_.get_shape() if isinstance(type_, VectorType) else ()


def _leading(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return product(*map(range, shape[:-1]))


def _row_type(type_: Attribute) -> VectorType[Attribute]:
    return VectorType(element_of(type_), [_shape(type_)[-1] if _shape(type_) else 1])


def _at(shape: Sequence[int], position: Sequence[int]) -> int:
    place = 0
    for extent, index in zip(shape, position, strict=True):
        place = place * extent + index
    return place


class _Unroller:
    def __init__(self) -> None:
        self.replaced: list[Operation] = []
        self.arguments: list[BlockArgument] = []
        """The arguments of blocks that are replaced by rows."""
        self._rows: dict[SSAValue, list[SSAValue]] = {}

    def unroll(self, op: Operation) -> None:
        if isinstance(op, _REGIONS):
            self._regions(op)
            return
        if isinstance(op, _ENDS):
            op.operands = [row for operand in op.operands for row in self.rows(operand)]
            return
        self._rewriter = OpRewriter(op)
        handler = _UNROLLED.get(type(op))
        found = self._elementwise(op) if handler is None else handler(self, op)
        for result, rows in zip(op.results, found, strict=True):
            if is_wide(result.type):
                self._rows[result] = rows
            else:
                result.replace_all_uses_with(rows[0])
        self.replaced.append(op)

    def rows(self, value: SSAValue) -> list[SSAValue]:
        """The rows of a vector, or another value itself."""
        return self._rows[value] if is_wide(value.type) else [value]

    def _types(self, type_: Attribute) -> list[Attribute]:
        return [_row_type(type_)] * prod(_shape(type_)[:-1]) if is_wide(type_) else [type_]

    def elements(self, value: SSAValue) -> list[SSAValue]:
        """The elements of a vector, in order, or a number itself."""
        if not isinstance(value.type, VectorType):
            return [value]
        return [self._rewriter.extract(row, lane) for row in self.rows(value) for lane in range(lanes_of(row.type))]

    def from_elements(self, elements: Sequence[SSAValue], type_: Attribute) -> list[SSAValue]:
        """The rows of a vector of elements, or the element itself for another type."""
        if not isinstance(type_, VectorType):
            return [elements[0]]
        row, count = _row_type(type_), _row_type(type_).get_shape()[0]
        found: list[SSAValue] = []
        for start in range(0, len(elements), count):
            lanes = self._rewriter.insert(vector.BroadcastOp(elements[start], row))
            for lane in range(1, count):
                lanes = self._rewriter.insert(vector.InsertOp(elements[start + lane], lanes, [lane]))
            found.append(lanes)
        return found

    def combined(self, kind: vector.CombiningKindAttr, left: SSAValue, right: SSAValue) -> SSAValue:
        combiner = cast("type[Operation]", op_of_kind(kind.data, element_of(left.type)))
        properties = {"fastmath": arith.FastMathFlagsAttr("none")} if combiner.name.endswith("f") else {}
        return self._rewriter.op(combiner, (left, right), left.type, properties)

    def _product(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.combined(vector.CombiningKindAttr(vector.CombiningKindFlag.MUL), left, right)

    def _spread(self, value: SSAValue, type_: Attribute) -> SSAValue:
        return self._rewriter.insert(vector.BroadcastOp(value, cast("VectorType[Attribute]", type_)))

    # Control flow

    def _regions(self, op: Operation) -> None:
        regions = [op.detach_region(region) for region in list(op.regions)]
        for block in [block for region in regions for block in region.blocks]:
            self._arguments(block)
        new = type(op).create(
            operands=[row for operand in op.operands for row in self.rows(operand)],
            result_types=[type_ for result in op.results for type_ in self._types(result.type)],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=regions,
        )
        OpRewriter(op).add(new)
        results = list(new.results)
        for result in op.results:
            count = len(self._types(result.type))
            if is_wide(result.type):
                self._rows[result] = list(results[:count])
            else:
                result.replace_all_uses_with(results[0])
            results = results[count:]
        self.replaced.append(op)

    def _arguments(self, block: Block) -> None:
        for argument in list(block.args):
            if is_wide(argument.type):
                types = self._types(argument.type)
                self._rows[argument] = [block.insert_arg(type_, argument.index) for type_ in types]
                self.arguments.append(argument)

    # Values

    def _elementwise(self, op: Operation) -> list[list[SSAValue]]:
        row, count = _row_type(op.results[0].type), len(self._types(op.results[0].type))
        operands = [self.rows(one) if isinstance(one.type, VectorType) else [one] * count for one in op.operands]
        return [
            [
                self._rewriter.op(type(op), [rows[at] for rows in operands], row, op.properties, op.attributes)
                for at in range(count)
            ]
        ]

    def constant(self, op: Operation) -> list[list[SSAValue]]:
        type_, value = op.results[0].type, cast("DenseIntOrFPElementsAttr[Any]", op.properties["value"])
        row, count = _row_type(type_), _row_type(type_).get_shape()[0]
        numbers = list(value.get_values()) * (prod(_shape(type_)) if value.is_splat() else 1)
        if value.is_splat():
            numbers = numbers[: prod(_shape(type_))]
        found: list[SSAValue] = []
        for start in range(0, len(numbers), count):
            part = DenseIntOrFPElementsAttr.from_list(cast("Any", row), numbers[start : start + count])
            found.append(self._rewriter.op(arith.ConstantOp, (), row, {"value": part}))
        return [found]

    def poison(self, op: Operation) -> list[list[SSAValue]]:
        return [[self._rewriter.op(PoisonOp, (), type_) for type_ in self._types(op.results[0].type)]]

    def broadcast(self, op: Operation) -> list[list[SSAValue]]:
        source, type_ = op.operands[0], op.results[0].type
        shape, row = _shape(type_), _row_type(type_)
        if not isinstance(source.type, VectorType):
            return [[self._spread(source, row)] * prod(shape[:-1])]
        old, rows = _shape(source.type), self.rows(source)
        if not old or old[-1] != row.get_shape()[0]:
            rows = [self._spread(self._rewriter.extract(one, 0), row) for one in rows]
        lead = old[:-1]
        found: list[SSAValue] = []
        for position in _leading(shape):
            aligned = position[len(position) - len(lead) :]
            own = [0 if extent == 1 else at for extent, at in zip(lead, aligned, strict=True)]
            found.append(rows[_at(lead, own)])
        return [found]

    def _places(self, shape: Sequence[int], place: Sequence[int | SSAValue]) -> list[tuple[int, SSAValue | None]]:
        """Row-major positions that a position in the leading dimensions may have, with conditions, or None if known.
        Positions out of bounds are undefined."""
        choices = [range(extent) if isinstance(at, SSAValue) else [at] for extent, at in zip(shape, place, strict=True)]
        found: list[tuple[int, SSAValue | None]] = []
        for choice in product(*choices):
            condition: SSAValue | None = None
            for at, number in zip(place, choice, strict=True):
                if not isinstance(at, SSAValue):
                    continue
                value = self._rewriter.insert(arith.ConstantOp(IntegerAttr(number, IndexType())))
                test = self._rewriter.insert(arith.CmpiOp(at, value, "eq"))
                condition = test if condition is None else self._rewriter.insert(arith.AndIOp(condition, test))
            found.append((_at(shape, choice), condition))
        return found

    def _select(self, condition: SSAValue | None, yes: SSAValue, no: SSAValue) -> SSAValue:
        return yes if condition is None else self._rewriter.insert(arith.SelectOp(condition, yes, no))

    def extract(self, op: Operation) -> list[list[SSAValue]]:
        source, place = op.operands[0], cast("vector.ExtractOp", op).get_mixed_position()
        shape, rows = _shape(source.type), self.rows(source)
        is_element = len(place) == len(shape)
        lead = place[:-1] if is_element else place
        below = 1 if is_element else prod(shape[len(place) : -1])
        (first, _), *others = self._places(shape[: len(lead)], lead)
        chosen = rows[first * below : (first + 1) * below]
        for at, condition in others:
            chosen = [self._select(condition, rows[at * below + n], row) for n, row in enumerate(chosen)]
        if is_element:
            lane = [place[-1] if place else 0]
            return [[self._rewriter.insert(vector.ExtractOp(chosen[0], lane, op.result_types[0]))]]
        return [chosen]

    def insert(self, op: Operation) -> list[list[SSAValue]]:
        source, dest = op.operands[0], op.operands[1]
        place = cast("vector.InsertOp", op).get_mixed_position()
        shape, rows = _shape(dest.type), list(self.rows(dest))
        is_element = len(place) == len(shape) and not is_wide(source.type)
        lead = place[:-1] if is_element else place
        below = 1 if is_element else prod(shape[len(place) : -1])
        for at, condition in self._places(shape[: len(lead)], lead):
            for number in range(below):
                old = rows[at * below + number]
                if is_element:
                    new = self._rewriter.insert(vector.InsertOp(source, old, [place[-1] if place else 0]))
                else:
                    new = self.rows(source)[number]
                rows[at * below + number] = self._select(condition, new, old)
        return [rows]

    def shuffle(self, op: Operation) -> list[list[SSAValue]]:
        shuffle = cast("vector.ShuffleOp", op)
        parts: list[list[SSAValue]] = []
        for value in (shuffle.v1, shuffle.v2):
            rows, count = self.rows(value), prod(_shape(value.type)[1:-1])
            parts += [rows[at * count : (at + 1) * count] for at in range(_shape(value.type)[0])]
        return [[row for at in shuffle.mask.get_values() for row in parts[max(at, 0)]]]

    def transpose(self, op: Operation) -> list[list[SSAValue]]:
        order = cast("upstream.TransposeOp", op).permutation.get_values()
        source, type_ = op.operands[0], op.results[0].type
        old, shape = _shape(source.type), _shape(type_)
        if not order or order[-1] == len(order) - 1:
            rows = self.rows(source)
            return [[rows[_at(old[:-1], self._source(order[:-1], position))] for position in _leading(shape)]]
        elements = self.elements(source)
        found = [elements[_at(old, self._source(order, position))] for position in product(*map(range, shape))]
        return [self.from_elements(found, type_)]

    def _source(self, order: Sequence[int], position: Sequence[int]) -> list[int]:
        place = [0] * len(order)
        for at, dimension in enumerate(order):
            place[dimension] = position[at]
        return place

    def reshape(self, op: Operation) -> list[list[SSAValue]]:
        source, type_ = op.operands[0], op.results[0].type
        if _row_type(source.type) == _row_type(type_):
            return [self.rows(source)]
        return [self.from_elements(self.elements(source), type_)]

    def outer_product(self, op: Operation) -> list[list[SSAValue]]:
        outer = cast("upstream.OuterProductOp", op)
        numbers = self.elements(outer.lhs)
        if isinstance(outer.rhs.type, VectorType):
            (right,) = self.rows(outer.rhs)
            rows = [self._product(self._spread(number, right.type), right) for number in numbers]
        else:
            rows = [self._product(outer.lhs, self._spread(outer.rhs, outer.lhs.type))]
        if outer.acc is not None:
            rows = [self.combined(outer.kind, acc, row) for acc, row in zip(self.rows(outer.acc), rows, strict=True)]
        return [rows]

    def multi_reduction(self, op: Operation) -> list[list[SSAValue]]:
        reduction = cast("upstream.MultiReductionOp", op)
        dims, shape = reduction.reduction_dims.get_values(), _shape(reduction.source.type)
        last = len(shape) - 1
        groups: dict[tuple[int, ...], SSAValue] = {}
        by_lanes = last not in dims
        starts = self.rows(reduction.acc) if by_lanes else self.elements(reduction.acc)
        if not dims:
            rows = self.rows(reduction.source)
            return [[self.combined(reduction.kind, a, b) for a, b in zip(starts, rows, strict=True)]]
        for position, row in zip(_leading(shape), self.rows(reduction.source), strict=True):
            kept = tuple(at for dimension, at in enumerate(position) if dimension not in dims)
            groups[kept] = self.combined(reduction.kind, groups[kept], row) if kept in groups else row
        kept_shape = [extent for at, extent in enumerate(shape[:-1]) if at not in dims]
        found: list[SSAValue] = []
        for place, row in groups.items():
            start = starts[_at(kept_shape, place)]
            if by_lanes:
                found.append(self.combined(reduction.kind, start, row))
                continue
            total = start
            for lane in range(lanes_of(row.type)):
                total = self.combined(reduction.kind, total, self._rewriter.extract(row, lane))
            found.append(total)
        return [found if by_lanes else self.from_elements(found, reduction.dest.type)]

    def contract(self, op: Operation) -> list[list[SSAValue]]:
        contract = cast("upstream.ContractOp", op)
        maps = [[cast("AffineDimExpr", expr).position for expr in map_.data.results] for map_ in contract.indexing_maps]
        values = (contract.lhs, contract.rhs, contract.acc)
        extents = {
            dim: extent
            for dims, value in zip(maps, values, strict=True)
            for dim, extent in zip(dims, _shape(value.type), strict=True)
        }
        lane = maps[2][-1] if maps[2] else None
        if lane is not None and all(lane not in dims[:-1] for dims in maps):
            return [self._contract_rows(contract, maps, extents, lane)]
        return [self._contract_elements(contract, maps, extents)]

    def _contract_rows(
        self, op: upstream.ContractOp, maps: Sequence[Sequence[int]], extents: Mapping[int, int], lane: int
    ) -> list[SSAValue]:
        """Contracts with one dimension in lanes, last in each operand that has it."""
        others = [dim for dim in extents if dim != lane]
        totals, row = list(self.rows(op.acc)), _row_type(op.result.type)
        sides: list[Callable[[Mapping[int, int]], SSAValue]] = []
        for value, dims in ((op.lhs, maps[0]), (op.rhs, maps[1])):
            shape = _shape(value.type)
            if lane in dims:
                rows = self.rows(value)
                sides.append(lambda at, r=rows, s=shape, d=dims: r[_at(s[:-1], [at[one] for one in d[:-1]])])
            else:
                spread = [self._spread(element, row) for element in self.elements(value)]
                sides.append(lambda at, r=spread, s=shape, d=dims: r[_at(s, [at[one] for one in d])])
        acc = _shape(op.result.type)
        for position in product(*(range(extents[dim]) for dim in others)):
            at = dict(zip(others, position, strict=True))
            place = _at(acc[:-1], [at[dim] for dim in maps[2][:-1]])
            totals[place] = self.combined(op.kind, totals[place], self._product(sides[0](at), sides[1](at)))
        return totals

    def _contract_elements(
        self, op: upstream.ContractOp, maps: Sequence[Sequence[int]], extents: Mapping[int, int]
    ) -> list[SSAValue]:
        left, right, totals = self.elements(op.lhs), self.elements(op.rhs), self.elements(op.acc)
        shapes = [_shape(value.type) for value in (op.lhs, op.rhs, op.result)]
        for position in product(*map(range, extents.values())):
            at = dict(zip(extents, position, strict=True))
            one, other, place = (
                _at(shape, [at[dim] for dim in dims]) for shape, dims in zip(shapes, maps, strict=True)
            )
            totals[place] = self.combined(op.kind, totals[place], self._product(left[one], right[other]))
        return self.from_elements(totals, op.result.type)

    # Masks and slices

    def constant_mask(self, op: Operation) -> list[list[SSAValue]]:
        sizes, type_ = cast("upstream.ConstantMaskOp", op).mask_dim_sizes.get_values(), op.results[0].type
        row, count = _row_type(type_), _row_type(type_).get_shape()[0]
        found: list[SSAValue] = []
        for position in _leading(_shape(type_)):
            holds = all(at < size for at, size in zip(position, sizes, strict=False))
            found.append(self._rewriter.constant_lanes(row, [int(holds and lane < sizes[-1]) for lane in range(count)]))
        return [found]

    def create_mask(self, op: Operation) -> list[list[SSAValue]]:
        type_, zero = op.results[0].type, self._rewriter.index(0)
        found: list[SSAValue] = []
        for position in _leading(_shape(type_)):
            count = op.operands[-1]
            for at, size in zip(position, op.operands, strict=False):
                inside = self._rewriter.insert(arith.CmpiOp(self._rewriter.index(at), size, "slt"))
                count = self._rewriter.insert(arith.SelectOp(inside, count, zero))
            found.append(self._rewriter.insert(vector.CreateMaskOp([count], _row_type(type_))))
        return [found]

    def extract_slice(self, op: Operation) -> list[list[SSAValue]]:
        part = cast("upstream.ExtractStridedSliceOp", op)
        shape, type_ = _shape(part.source.type), _shape(part.result.type)
        offsets, strides = _numbers(part.offsets), _numbers(part.strides)
        offsets += [0] * (len(shape) - len(offsets))
        strides += [1] * (len(shape) - len(strides))
        rows = self.rows(part.source)
        found: list[SSAValue] = []
        for position in _leading(type_):
            place = [offset + stride * at for offset, stride, at in zip(offsets, strides, position, strict=False)]
            row = rows[_at(shape[:-1], place)]
            if type_[-1] != shape[-1]:
                row = self._rewriter.shuffle(row, row, [offsets[-1] + strides[-1] * lane for lane in range(type_[-1])])
            found.append(row)
        return [found]

    def insert_slice(self, op: Operation) -> list[list[SSAValue]]:
        part = cast("upstream.InsertStridedSliceOp", op)
        shape, inner = _shape(part.dest.type), _shape(part.source.type)
        offsets = _numbers(part.offsets)
        inner = (*[1] * (len(shape) - len(inner)), *inner)
        rows, sources, lanes = list(self.rows(part.dest)), self.rows(part.source), shape[-1]
        for position, source in zip(_leading(inner), sources, strict=True):
            at = _at(shape[:-1], [offset + one for offset, one in zip(offsets, position, strict=False)])
            first, count = offsets[-1], inner[-1]
            chosen = [lanes + lane - first if first <= lane < first + count else lane for lane in range(lanes)]
            rows[at] = self._rewriter.shuffle(rows[at], source, chosen) if count != lanes else source
        return [rows]

    def from_scalars(self, op: Operation) -> list[list[SSAValue]]:
        return [self.from_elements(list(op.operands), op.results[0].type)]

    def to_scalars(self, op: Operation) -> list[list[SSAValue]]:
        return [[element] for element in self.elements(op.operands[0])]

    def by_rows(self, op: Operation) -> list[list[SSAValue]]:
        rows = [self.rows(operand) for operand in op.operands]
        made: list[list[SSAValue]] = [[] for _ in op.results]
        for operands in zip(*rows, strict=True):
            new = type(op).create(
                operands=operands,
                result_types=[_row_type(result.type) for result in op.results],
                properties=dict(op.properties),
                attributes=dict(op.attributes),
            )
            self._rewriter.add(new)
            for one, result in zip(made, new.results, strict=True):
                one.append(result)
        return made

    # Memory

    def load(self, op: Operation) -> list[list[SSAValue]]:
        load = cast("vector.LoadOp", op)
        shape, row = _shape(load.result.type), _row_type(load.result.type)
        places = (self._place(load.indices, position) for position in _leading(shape))
        return [[self._rewriter.op(vector.LoadOp, (load.base, *place), row, op.properties) for place in places]]

    def store(self, op: Operation) -> list[list[SSAValue]]:
        store = cast("vector.StoreOp", op)
        for position, row in zip(_leading(_shape(store.vector.type)), self.rows(store.vector), strict=True):
            operands = [row, store.base, *self._place(store.indices, position)]
            self._rewriter.add(vector.StoreOp.create(operands=operands, properties=dict(op.properties)))
        return []

    def _place(self, indices: Sequence[SSAValue], position: Sequence[int]) -> list[SSAValue]:
        moved = dict(zip(range(len(indices) - 1 - len(position), len(indices)), position, strict=False))
        return [self._moved(index, moved.get(at, 0)) for at, index in enumerate(indices)]

    def _moved(self, index: SSAValue, by: int) -> SSAValue:
        return self._rewriter.combine(arith.AddiOp, index, self._rewriter.index(by)) if by else index

    def gather(self, op: Operation) -> list[list[SSAValue]]:
        gather = cast("upstream.GatherOp", op)
        rows = zip(*map(self.rows, (gather.index_vec, gather.mask, gather.pass_thru)), strict=True)
        row, first = _row_type(gather.result.type), (gather.base, *gather.indices)
        return [[self._rewriter.op(upstream.GatherOp, (*first, *one), row, op.properties) for one in rows]]

    def scatter(self, op: Operation) -> list[list[SSAValue]]:
        scatter = cast("upstream.ScatterOp", op)
        for one in zip(*map(self.rows, (scatter.index_vec, scatter.mask, scatter.value)), strict=True):
            operands = [scatter.base, *scatter.indices, *one]
            self._rewriter.add(upstream.ScatterOp.create(operands=operands, properties=dict(op.properties)))
        return []

    def transfer(self, op: Operation) -> list[list[SSAValue]]:
        """A transfer per row, with a mask for rows that may be out of bounds."""
        transfer = cast("vector.TransferReadOp | vector.TransferWriteOp", op)
        is_read = isinstance(transfer, vector.TransferReadOp)
        type_ = transfer.result.type if is_read else transfer.vector.type
        shape, map_ = _shape(type_), transfer.permutation_map.data
        masks = None if transfer.mask is None else self.rows(transfer.mask)
        bounds = [bool(one.value.data) for one in transfer.in_bounds.data]
        rows = [] if is_read else self.rows(transfer.vector)
        found: list[SSAValue] = []
        for number, position in enumerate(_leading(shape) if shape else [()]):
            indices = list(transfer.indices)
            inside: SSAValue | None = None
            for expr, at, is_inside in zip(map_.results, position, bounds, strict=False):
                if isinstance(expr, AffineDimExpr):
                    indices[expr.position] = self._moved(indices[expr.position], at)
                    if not is_inside:
                        inside = self._both(inside, self._below(transfer, indices, expr.position))
            mask = None if masks is None else masks[number]
            row = _row_type(type_)
            last = map_.results[-1] if map_.results else AffineConstantExpr(0)
            is_spread = not isinstance(last, AffineDimExpr)
            lanes = VectorType(element_of(type_), [1]) if is_spread else row
            if inside is not None:
                condition = self._spread(inside, mask_type(lanes))
                mask = condition if mask is None else self._rewriter.insert(arith.AndIOp(mask, condition))
            rank = len(indices)
            along = AffineDimExpr(rank - 1) if is_spread and rank else last
            made = self._row_transfer(transfer, indices, mask, along, is_spread or bounds[-1], lanes, rows[number:])
            if is_read:
                found.append(self._spread(self._rewriter.extract(made, 0), row) if is_spread and shape else made)
        return [found] if is_read else []

    def _row_transfer(
        self,
        transfer: vector.TransferReadOp | vector.TransferWriteOp,
        indices: Sequence[SSAValue],
        mask: SSAValue | None,
        along: Any,
        is_inside: bool,
        lanes: VectorType[Attribute],
        rows: Sequence[SSAValue],
    ) -> SSAValue:
        bounds = ArrayAttr([BoolAttr.from_bool(is_inside)])
        map_ = AffineMapAttr(AffineMap(len(indices), 0, (along,)))
        if isinstance(transfer, vector.TransferReadOp):
            return self._rewriter.insert(
                vector.TransferReadOp(transfer.source, indices, transfer.padding, lanes, bounds, map_, mask)
            )
        self._rewriter.add(vector.TransferWriteOp(rows[0], transfer.source, indices, bounds, mask, map_))
        return rows[0]

    def _below(self, transfer: Operation, indices: Sequence[SSAValue], dimension: int) -> SSAValue:
        source = cast("vector.TransferReadOp | vector.TransferWriteOp", transfer).source
        extent = cast("MemRefType[Attribute]", source.type).get_shape()[dimension]
        if extent >= 0:
            limit = self._rewriter.index(extent)
        else:
            limit = self._rewriter.insert(DimOp(source, self._rewriter.index(dimension)))
        return self._rewriter.insert(arith.CmpiOp(indices[dimension], limit, "slt"))

    def _both(self, left: SSAValue | None, right: SSAValue) -> SSAValue:
        return right if left is None else self._rewriter.insert(arith.AndIOp(left, right))


def _numbers(values: ArrayAttr[IntegerAttr]) -> list[int]:
    return [value.value.data for value in values]


_COMPOUND: Final = (*(upstream.ContractOp, upstream.MultiReductionOp, upstream.OuterProductOp, upstream.TransposeOp),)
"""Ops that have no form at the low level on vectors of one dimension either."""
_UNROLLED: Final[Mapping[type[Operation], Callable[[_Unroller, Operation], list[list[SSAValue]]]]] = {
    arith.ConstantOp: _Unroller.constant,
    PoisonOp: _Unroller.poison,
    vector.BroadcastOp: _Unroller.broadcast,
    vector.ExtractOp: _Unroller.extract,
    vector.InsertOp: _Unroller.insert,
    vector.ShuffleOp: _Unroller.shuffle,
    vector.BitcastOp: _Unroller.by_rows,
    vector.LoadOp: _Unroller.load,
    vector.StoreOp: _Unroller.store,
    vector.TransferReadOp: _Unroller.transfer,
    vector.TransferWriteOp: _Unroller.transfer,
    vector.CreateMaskOp: _Unroller.create_mask,
    upstream.ConstantMaskOp: _Unroller.constant_mask,
    upstream.GatherOp: _Unroller.gather,
    upstream.ScatterOp: _Unroller.scatter,
    upstream.FromElementsOp: _Unroller.from_scalars,
    upstream.ToElementsOp: _Unroller.to_scalars,
    upstream.ExtractStridedSliceOp: _Unroller.extract_slice,
    upstream.InsertStridedSliceOp: _Unroller.insert_slice,
    upstream.InterleaveOp: _Unroller.by_rows,
    upstream.DeinterleaveOp: _Unroller.by_rows,
    upstream.ShapeCastOp: _Unroller.reshape,
    upstream.TransposeOp: _Unroller.transpose,
    upstream.OuterProductOp: _Unroller.outer_product,
    upstream.MultiReductionOp: _Unroller.multi_reduction,
    upstream.ContractOp: _Unroller.contract,
}
