"""Winograd convolutions of one result: products with weights that are derived from the transformed ones."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of
from weft.analysis.block_scopes import child_blocks, child_towards, function_of, readers_of, writers_of
from weft.analysis.index import Index
from weft.dialects.integer_arith import SIGNED_PREDICATES
from weft.dialects.tir import BlockOp, InitOp
from weft.dialects.tir_kinds import REDUCE, SPATIAL
from weft.passes.schedule.nest_builders import block_in_loops, values_in

_Element: TypeAlias = tuple[SSAValue, tuple[Index, ...]]
"""A buffer and the place of an element."""
_Factors: TypeAlias = dict[tuple[int, int], dict[tuple[int, int], float]]
"""Factors of kernel elements (i, j), for each element (k, l) of an image."""
_Form: TypeAlias = dict[_Element, float]
"""A sum of elements times factors."""

_BATCH, _BLOCK, _ROW, _COLUMN, _Y, _X, _FILTER = range(7)
"""The spatial iterators of the products."""
_STAGES_BEFORE: Final = 3
"""Border, transform of rows, transform of columns."""
_RANK: Final = 5
"""The number of iterators of the results, and of dimensions of the image."""


@dataclass(frozen=True)
class FilteredImage:
    """The stages of a Winograd convolution: `products[n, b, i, j, y, x, f] += data[n, i, j, rb, y, x, rc] * kernel[b,
    i, j, rb, rc, f]` between combinations of elements."""

    before: tuple[BlockOp, ...]
    """Stages from the image to `data`, the first of which may add a border."""
    products: BlockPattern
    data: Operand
    kernel: Operand
    after: tuple[BlockOp, BlockOp]
    """The stages from `products` to results (N, F / f, H, W, f)."""

    @property
    def extents(self) -> tuple[int | SSAValue, ...]:
        """Rows and columns of the result."""
        return self.after[-1].extents[2:4]


def filtered_image(function: FuncOp) -> FilteredImage | None:
    """The first Winograd convolution of a function."""
    for block in child_blocks(function):
        pattern = pattern_of(block)
        if pattern.kind is PatternKind.CONTRACTION and len(pattern.spatial) == _FILTER + 1:
            found = _stages(pattern, function)
            if found is not None:
                return found
    return None


def _stages(pattern: BlockPattern, function: FuncOp) -> FilteredImage | None:
    if pattern.factors is None or len(pattern.writes) != 1 or len(pattern.reduced) != 2:
        return None
    v, (rb, rc), factors = pattern.spatial, pattern.reduced, pattern.factors
    data = next((factor for factor in factors if v[_BATCH] in factor.iterators), factors[0])
    kernel = next(factor for factor in factors if factor is not data)
    places = (
        (data, (v[_BATCH], v[_ROW], v[_COLUMN], rb, v[_Y], v[_X], rc)),
        (kernel, (v[_BLOCK], v[_ROW], v[_COLUMN], rb, rc, v[_FILTER])),
        (pattern.writes[0], tuple(v)),
    )
    if any(factor.indices != tuple(map(Index.of, place)) for factor, place in places):
        return None
    before: list[BlockOp] = []
    reader, buffer = pattern.block, data.buffer
    while len(before) < _STAGES_BEFORE:
        writers = writers_of(buffer, function)
        sources = {read.buffer for read in pattern_of(writers[0]).reads} if len(writers) == 1 else set[SSAValue]()
        if len(sources) != 1 or not _is_stage(writers[0], buffer, reader, function):
            return None
        before.append(reader := writers[0])
        buffer = sources.pop()
    sums = _only_reader(pattern.writes[0].buffer, pattern.block, function)
    result = None if sums is None else _only_reader(pattern_of(sums).writes[0].buffer, sums, function)
    if sums is None or result is None or len(result.extents) != _RANK:
        return None
    if (result.extents[1], result.extents[-1]) != (pattern.block.extents[_BLOCK], pattern.block.extents[_FILTER]):
        return None
    return FilteredImage(tuple(before), pattern, data, kernel, (sums, result))


def _is_stage(block: BlockOp, buffer: SSAValue, reader: BlockOp, function: FuncOp) -> bool:
    """Whether a block computes elements of a temporary that only `reader` reads."""
    pattern = pattern_of(block)
    is_temporary = isinstance(buffer.owner, memref.AllocOp)
    only_read_there = readers_of(buffer, function) == [reader]
    return pattern.kind is PatternKind.INJECTIVE and len(pattern.writes) == 1 and is_temporary and only_read_there


def _only_reader(buffer: SSAValue, writer: BlockOp, function: FuncOp) -> BlockOp | None:
    """The block that reads a temporary of one writer, and computes elements of one buffer."""
    readers = [block for block in readers_of(buffer, function) if block is not writer]
    if not isinstance(buffer.owner, memref.AllocOp) or writers_of(buffer, function) != [writer] or len(readers) != 1:
        return None
    pattern = pattern_of(readers[0])
    return readers[0] if pattern.kind is PatternKind.INJECTIVE and len(pattern.writes) == 1 else None


def multiply_directly(function: FuncOp) -> bool:
    """Replace the Winograd convolution of an image with one result by products of its elements and weights; return
    whether this is possible.

    ```
    weights[b, rb, k, l, rc, f] = sum over i, j: factor[i, j, k, l] * kernel[b, i, j, rb, rc, f]
    result[n, b, 0, 0, f] = sum over rb, k, l, rc: image[n, rb, k, l, rc] * weights[b, rb, k, l, rc, f]
    ```
    The factors follow from the stages, evaluated as linear forms. Weights of constant kernels are computed when the
    program is built. A result of 3 x 3 windows of a bordered pixel reads the centre of each window.
    """
    stages = filtered_image(function)
    found = None if stages is None or stages.extents != (1, 1) else _factors(stages)
    if stages is None or found is None:
        return False
    source, factors = found
    (result,) = pattern_of(stages.after[-1]).writes
    rows, columns = (max(at[axis] for at in factors) + 1 for axis in (0, 1))
    shape = source.type.get_shape() if isinstance(source.type, MemRefType) else ()
    if len(factors) != rows * columns or (rows, columns) != tuple(shape[2:4]):
        return False
    if not stages.data.element_type == stages.kernel.element_type == result.element_type:
        return False
    _Builder(stages, source, (rows, columns)).build(factors)
    return True


def _factors(stages: FilteredImage) -> tuple[SSAValue, _Factors] | None:
    """The image, and for each of its elements (k, l) the factors of kernel elements (i, j); None if the stages are not
    linear or move other axes."""
    v, (rb, rc) = stages.products.spatial, stages.products.reduced
    n, b, f, channels, channel = map(Index.of, (v[_BATCH], v[_BLOCK], v[_FILTER], rb, rc))
    zero = Index({})
    (result,) = pattern_of(stages.after[-1]).writes
    sources: set[SSAValue] = set()
    found: _Factors = {}
    try:
        sums, elements = _Forms(stages.after).of((result.buffer, (n, b, zero, zero, f))), _Forms(stages.before)
        for (buffer, place), factor in sums.items():
            if buffer is not stages.products.writes[0].buffer:  # as of an addend
                return None
            i, j = place[_ROW], place[_COLUMN]
            if place != (n, b, i, j, zero, zero, f) or not i.is_constant or not j.is_constant:
                return None
            data = elements.of((stages.data.buffer, (n, i, j, channels, zero, zero, channel)))
            for (source, element), other in data.items():
                if len(element) != _RANK:
                    return None
                k, l = element[2:4]  # noqa: E741
                if element != (n, channels, k, l, channel) or not k.is_constant or not l.is_constant:
                    return None
                sources.add(source)
                of_element = found.setdefault((k.constant, l.constant), {})
                of_element[i.constant, j.constant] = factor * other
    except _NotLinear:
        return None
    return (sources.pop(), found) if len(sources) == 1 else None


class _NotLinear(Exception):
    pass


@dataclass(frozen=True)
class _Forms:
    """Elements as linear forms of those that `blocks` read."""

    blocks: Container[BlockOp]
    known: dict[_Element, _Form] = field(default_factory=dict[_Element, _Form])

    def of(self, element: _Element) -> _Form:
        """Raises `_NotLinear`."""
        if element not in self.known:
            self.known[element] = self._of_element(element)
        return self.known[element]

    def _of_element(self, element: _Element) -> _Form:
        buffer, place = element
        writers = [use.operation for use in buffer.uses if isinstance(use.operation, memref.StoreOp)]
        block = writers[0].parent_op() if len(writers) == 1 else None
        if not isinstance(block, BlockOp) or block not in self.blocks:
            return {element: 1.0}
        (write,) = pattern_of(block).writes
        iterators = dict(zip(write.indices, place, strict=True))
        if set(iterators) != {Index.of(variable) for variable in block.iter_vars}:
            raise _NotLinear
        known: dict[SSAValue, Index] = {variable: iterators[Index.of(variable)] for variable in block.iter_vars}
        return self._of_value(cast("memref.StoreOp", write.op).value, known)

    def _of_value(self, value: SSAValue, known: Mapping[SSAValue, Index]) -> _Form:
        op = value.owner
        if isinstance(op, memref.LoadOp):
            return self.of((op.memref, tuple(Index.of(index).substitute(known) for index in op.indices)))
        if isinstance(op, arith.AddfOp | arith.SubfOp):
            sign = 1.0 if isinstance(op, arith.AddfOp) else -1.0
            left, right = self._of_value(op.lhs, known), self._of_value(op.rhs, known)
            return {at: left.get(at, 0.0) + sign * right.get(at, 0.0) for at in (*left, *right)}
        if isinstance(op, arith.NegfOp):
            return {at: -factor for at, factor in self._of_value(op.operand, known).items()}
        if isinstance(op, arith.MulfOp):
            for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                if (number := _number(one)) is not None:
                    return {at: number * factor for at, factor in self._of_value(other, known).items()}
        if isinstance(op, arith.SelectOp):
            return self._of_value(op.lhs if self._holds(op.cond, known) else op.rhs, known)
        if isinstance(op, scf.IfOp):
            region = op.true_region if self._holds(op.cond, known) else op.false_region
            return self._of_value(cast("scf.YieldOp", region.block.last_op).operands[op.results.index(value)], known)
        if _number(value) == 0:
            return {}
        raise _NotLinear

    def _holds(self, condition: SSAValue, known: Mapping[SSAValue, Index]) -> bool:
        op = condition.owner
        if isinstance(op, arith.AndIOp):
            return all(self._holds(operand, known) for operand in op.operands)
        if isinstance(op, arith.CmpiOp):
            left, right = (Index.of(operand).substitute(known) for operand in op.operands)
            if left.is_constant and right.is_constant and (test := SIGNED_PREDICATES.get(op.predicate.value.data)):
                return test(left.constant, right.constant)
        raise _NotLinear


def _number(value: SSAValue) -> float | None:
    constant = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return constant.value.data if isinstance(constant, FloatAttr) else None


@dataclass(frozen=True)
class _Builder:
    stages: FilteredImage
    source: SSAValue
    window: tuple[int, int]

    def build(self, factors: _Factors) -> None:
        stages, result = self.stages, pattern_of(self.stages.after[-1]).writes[0]
        blocks, _, _, inner, channels, filters = stages.kernel.type.get_shape()
        shape = [blocks, inner, *self.window, channels, filters]
        weights = memref.AllocOp([], [], MemRefType(stages.kernel.element_type, shape))
        weights.memref.name_hint = "weights"
        nests = [self._weights(weights.memref, *item) for item in sorted(factors.items())]
        place = InsertPoint.before(_nest_of(stages.after[-1]))
        Rewriter.insert_op([weights, *nests, self._product(weights.memref, result)], place)
        Rewriter.erase_op(_nest_of(stages.after[-1]))
        for block in (stages.after[0], stages.products.block, *stages.before):
            (write,) = pattern_of(block).writes
            Rewriter.erase_op(_nest_of(block))
            if isinstance(write.buffer.owner, memref.AllocOp) and write.buffer.first_use is None:
                Rewriter.erase_op(write.buffer.owner)

    def _weights(
        self, weights: SSAValue, element: tuple[int, int], factors: Mapping[tuple[int, int], float]
    ) -> Operation:
        """The weights of an element of the image."""
        kernel = self.stages.kernel
        blocks, _, _, inner, channels, filters = kernel.type.get_shape()
        extents = (blocks, inner, channels, filters)
        label = "_".join(["weights", *map(str, element)])
        block, nest = block_in_loops(label, [SPATIAL] * 4, extents, ["vb", "vrb", "vrc", "vf"], self._like)
        body = block.body.block
        b, rb, rc, f = map(Index.of, block.iter_vars)
        terms: list[SSAValue] = []
        for (i, j), factor in sorted(factors.items()):
            indices = values_in(body, (b, Index({}, i), Index({}, j), rb, rc, f))
            load = memref.LoadOp.get(kernel.buffer, indices)
            number = arith.ConstantOp(FloatAttr(factor, cast("AnyFloat", kernel.element_type)))
            term = arith.MulfOp(load.res, number.result)
            body.add_ops([load, number, term])
            terms.append(term.result)
        total = terms[0]
        for other in terms[1:]:
            body.add_op(op := arith.AddfOp(total, other))
            total = op.result
        k, l = element  # noqa: E741
        places = values_in(body, (b, rb, Index({}, k), Index({}, l), rc, f))
        body.add_op(memref.StoreOp.get(total, weights, places))
        return nest

    def _product(self, weights: SSAValue, result: Operand) -> Operation:
        products = self.stages.products.block
        n, b, _, _, _, _, f, rb, rc = products.extents
        extents = (n, b, 1, 1, f, rb, *self.window, rc)
        hints = ["vn", "vb", "vh", "vw", "vf", "vrb", "vrh", "vrw", "vrc"]
        kinds = [*[SPATIAL] * 5, *[REDUCE] * 4]
        block, nest = block_in_loops(self.stages.after[-1].label, kinds, extents, hints, self._like)
        body = block.body.block
        n_, b_, h, w, f_, rb_, rh, rw, rc_ = map(Index.of, block.iter_vars)
        places = values_in(body, (n_, b_, h, w, f_))
        init = InitOp(Region(Block()))
        zero = arith.ConstantOp(FloatAttr(0.0, cast("AnyFloat", result.element_type)))
        Rewriter.insert_op(zero, InsertPoint.before(_nest_of(self.stages.after[-1])))
        init.body.block.add_op(memref.StoreOp.get(zero, result.buffer, places))
        Rewriter.insert_op(init, InsertPoint.at_start(body))
        image = memref.LoadOp.get(self.source, values_in(body, (n_, rb_, h + rh, w + rw, rc_)))
        weight = memref.LoadOp.get(weights, values_in(body, (b_, rb_, rh, rw, rc_, f_)))
        product, old = arith.MulfOp(image.res, weight.res), memref.LoadOp.get(result.buffer, places)
        like = cast("memref.StoreOp", self.stages.products.writes[0].op).value.owner
        flags = like.properties["fastmath"] if isinstance(like, arith.AddfOp | math.FmaOp) else None
        total = arith.AddfOp(old.res, product.result, cast("arith.FastMathFlagsAttr | None", flags))
        body.add_ops([image, weight, product, old, total, memref.StoreOp.get(total, result.buffer, places)])
        return nest

    @property
    def _like(self) -> Operation:
        return self.stages.products.block


def _nest_of(block: BlockOp) -> Operation:
    return child_towards(function_of(block), block)
