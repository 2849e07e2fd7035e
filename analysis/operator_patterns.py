"""Patterns of operators: the kind of a function of tensor expressions, and its accesses to each operand.

An operator of several stages (softmax, convolution with padding, attention) has one pattern, derived from the element
regions; `block_patterns` classifies single blocks after lowering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from math import prod
from typing import Final, cast

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.analysis.block_patterns import without_casts
from weft.analysis.index import Index
from weft.dialects.element_types import least
from weft.dialects.te import Combiner, ComputeOp, ReduceOp, YieldOp
from weft.dialects.te_extern import ExternOp


class ReadKind(IntEnum):
    """Accesses to a tensor, over all stages between it and the results, in increasing order."""

    ELEMENTWISE = auto()
    """At the index of the result."""
    BROADCAST = auto()
    """At some of the indices of the result, in order."""
    INJECTIVE = auto()
    """Permuted, shifted, strided, gathered: other accesses to a few elements per result."""
    REDUCED = auto()
    """Over the axes of a reduction, each element for one result."""
    WINDOW = auto()
    """Over the axes of a reduction, with windows that move with the result and overlap."""
    SHARED = auto()
    """Over the axes of a reduction, each element for many results: the factors of products of matrices."""
    TABLE = auto()
    """A small tensor, at indices that depend on other elements only, not on those of the result."""


class OperatorKind(IntEnum):
    """The kind of computation. Up to `INJECTIVE`, an element of the result depends on few elements of the operands."""

    ELEMENTWISE = auto()
    """From elements at the same index."""
    BROADCAST = auto()
    """Elementwise, with operands broadcast along axes."""
    INJECTIVE = auto()
    """From elements at any index: transposed, reshaped, padded, concatenated, gathered."""
    REDUCTION = auto()
    """Over rows, in one stage or several: sums, softmax, normalisations, pooling."""
    CONTRACTION = auto()
    """Sums of products, optionally with padding before and an epilogue at the same index, or stages that combine
    several of the sums: products of matrices and convolutions."""
    OPAQUE = auto()
    """Anything else: several contractions, statements, functions that are not tensor expressions."""


@dataclass(frozen=True)
class ChannelAxes:
    """Output channels of a product that share no weights."""

    weight: tuple[int, ...]
    """Axes of the weights, the second operand."""
    result: int
    """Axis of the result."""
    reduced: tuple[int, ...] = ()
    """Axes of the first operand that are summed; none if padding or casts precede the sum."""


@dataclass(frozen=True)
class OperatorPattern:
    kind: OperatorKind
    accesses: tuple[ReadKind, ...]
    channels: ChannelAxes | None = None
    """Set for sums of products of the first two operands, plus at most a bias per channel."""
    moves: bool = False
    """Whether each result is an element of an operand, or the maximum of several."""
    rounds_once: bool = False
    """Whether 16-bit results are computed in wider floats and rounded at the end."""
    is_cheap: bool = True
    """Whether no elementary function (exp, tanh) is evaluated."""


def operator_pattern(function: FuncOp) -> OperatorPattern:
    # Other parameters are extents, which are not operands of the operator.
    tensors = [argument for argument in function.args if isinstance(argument.type, TensorType)]
    opaque = OperatorPattern(OperatorKind.OPAQUE, (ReadKind.SHARED,) * len(tensors))
    returned = function.get_return_op()
    if returned is None or any(isinstance(op, ExternOp) for op in function.body.block.ops):
        return opaque
    on_the_way = {value: ReadKind.ELEMENTWISE for value in returned.arguments}
    combined: set[SSAValue] = set()
    """Tensors of which a stage combines several elements."""
    kind, contractions, reductions = OperatorKind.ELEMENTWISE, 0, 0
    stages = [op for op in function.body.block.ops if isinstance(op, ComputeOp)]
    for stage in reversed(stages):
        uses = [on_the_way[tensor] for tensor in stage.results if tensor in on_the_way]
        if not uses:
            continue
        reads = list(_reads(stage))
        reduces = [op for op in stage.walk() if isinstance(op, ReduceOp)]
        if any(_is_product(op) for op in reduces) and any(access >= ReadKind.WINDOW for _, access in reads):
            contractions += 1
            is_last = max(uses) == ReadKind.ELEMENTWISE or combined.issuperset(stage.results)
            if not is_last or len(reduces) > 1:
                return opaque
        elif reduces:
            reductions += 1
        for tensor, access in reads:
            on_the_way[tensor] = max(access, *uses, on_the_way.get(tensor, access))
            of_read = OperatorKind.BROADCAST if access is ReadKind.TABLE else min(access, OperatorKind.INJECTIVE)
            kind = max(kind, OperatorKind(of_read))
        if not reduces:
            read = [tensor for tensor, _ in reads]
            combined.update(tensor for tensor in read if read.count(tensor) > 1)
    if contractions > 1 or (contractions and reductions):
        return opaque
    if contractions or reductions:
        kind = OperatorKind.CONTRACTION if contractions else OperatorKind.REDUCTION
    accesses = tuple(on_the_way.get(tensor, ReadKind.ELEMENTWISE) for tensor in tensors)
    moves = all(_is_moved(value) for stage in stages for value in _elements(stage))
    is_cheap = not any(_is_elementary(op) for stage in stages for op in stage.walk())
    return OperatorPattern(kind, accesses, _channels(stages, tensors, returned), moves, _rounds_once(stages), is_cheap)


def _reads(stage: ComputeOp) -> Iterator[tuple[SSAValue, ReadKind]]:
    axes = list[SSAValue](stage.indices)
    long: set[SSAValue] = {axis for axis, extent in zip(axes, stage.extents, strict=True) if extent != 1}
    for op in stage.walk():
        if isinstance(op, ExtractOp):
            yield op.tensor, _access(op, axes, long, _reduce_axes(op, stage))


def _reduce_axes(op: ExtractOp, stage: ComputeOp) -> set[SSAValue]:
    found: set[SSAValue] = set()
    block: Block | None = op.parent
    while block is not None and block is not stage.body.block:
        parent = block.parent_op()
        if isinstance(parent, ReduceOp):
            found.update(block.args)
        block = None if parent is None else parent.parent
    return found


def _access(read: ExtractOp, axes: list[SSAValue], long: set[SSAValue], reduced: set[SSAValue]) -> ReadKind:
    indices = [Index.of(index) for index in read.indices]
    sources = [index.sources() for index in indices]
    if reduced:
        if any(source & reduced and source & long for source in sources):
            return ReadKind.WINDOW
        return ReadKind.REDUCED if long <= set[SSAValue]().union(*sources) else ReadKind.SHARED
    if any(sources) and _is_small(read.tensor) and all(map(_is_of_elements, read.indices)):
        return ReadKind.TABLE
    places: list[int] = []
    for index in indices:
        if index.is_constant:
            continue
        value = index.single_value
        if value is None or value not in axes:
            return ReadKind.INJECTIVE
        places.append(axes.index(value))
    if places != sorted(set(places)):
        return ReadKind.INJECTIVE
    return ReadKind.ELEMENTWISE if len(places) == len(indices) == len(axes) else ReadKind.BROADCAST


_TABLE_ELEMENTS: Final = 256
"""Limit of the elements of a table."""


def _is_small(tensor: SSAValue) -> bool:
    shape = cast("TensorType[Attribute]", tensor.type).get_shape()
    return min(shape, default=0) > 0 and prod(shape) <= _TABLE_ELEMENTS


def _is_of_elements(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, ExtractOp) or (isinstance(op, Operation) and all(map(_is_of_elements, op.operands)))


def _is_product(reduce: ReduceOp) -> bool:
    last = reduce.body.block.last_op
    if reduce.kind is not Combiner.SUM or last is None:
        return False
    product = without_casts(last.operands[0]).owner
    if not isinstance(product, arith.MulfOp | arith.MuliOp):
        return False
    return all(isinstance(without_casts(factor).owner, ExtractOp) for factor in product.operands)


def _elements(stage: ComputeOp | ReduceOp) -> Sequence[SSAValue]:
    return cast("YieldOp", stage.body.block.last_op).values


def _is_moved(value: SSAValue) -> bool:
    """Whether a value is an element of a tensor, or the maximum of several and the least number of the type."""
    match value.owner:
        case ExtractOp():
            return True
        case ReduceOp(kind=Combiner.MAX) as reduce:
            return all(map(_is_moved, _elements(reduce)))
        case arith.SelectOp(operands=(condition, *choices)):
            return _is_of_indices(condition) and all(map(_is_moved, choices))
        case scf.IfOp() as branch:
            at = branch.results.index(value)
            return _is_of_indices(branch.cond) and all(
                _is_moved(cast("Operation", region.block.last_op).operands[at]) for region in branch.regions
            )
        case arith.ConstantOp(value=IntegerAttr() | FloatAttr() as constant):
            return constant.value.data == least(value.type)
        case _:
            return False


def _is_of_indices(value: SSAValue) -> bool:
    op = value.owner
    if isinstance(op, Block):
        return True
    return not isinstance(op, ExtractOp) and not op.regions and all(map(_is_of_indices, op.operands))


def _rounds_once(stages: Sequence[ComputeOp]) -> bool:
    ops = [op for stage in stages for op in stage.walk()]
    rounded = (result for op in ops if not _is_exact(op) for result in op.results)
    return sum(isinstance(op, arith.TruncFOp) for op in ops) == 1 and not any(_is_narrow(v.type) for v in rounded)


def _is_exact(op: Operation) -> bool:
    if isinstance(op, ReduceOp):
        return op.kind in (Combiner.MAX, Combiner.MIN)
    return isinstance(op, ComputeOp | ExtractOp | arith.ConstantOp | arith.SelectOp | arith.TruncFOp | scf.IfOp)


def _is_narrow(type_: Attribute) -> bool:
    return isinstance(type_, AnyFloat) and type_.bitwidth == 16


def _channels(stages: Sequence[ComputeOp], tensors: Sequence[SSAValue], returned: ReturnOp) -> ChannelAxes | None:
    found = _plain_product(stages) if [value.owner for value in returned.arguments] == stages[-1:] else None
    if found is None or len(tensors) < 2:
        return None
    stage, product = found
    reads = {op.tensor: op.indices for op in product.walk() if isinstance(op, ExtractOp)}
    data = [Index.of(index) for index in reads.get(tensors[0], ())]
    indices = [Index.of(index) for index in reads.pop(tensors[1], ())]
    axes, reduced = list[SSAValue](stage.indices), set[SSAValue](product.axes)
    own = [index.sources().intersection(axes) for index in indices]
    if any(mine and index.sources() & reduced for mine, index in zip(own, indices, strict=True)):
        return None
    # Prefer axes that the data does not have, unlike batch axes; of these, the last.
    outer = {source for places in reads.values() for index in places for source in Index.of(index).sources()}
    candidates = set[SSAValue]().union(*own)
    channel = max(candidates - outer or candidates, key=axes.index, default=None)
    along = tuple(at for at, mine in enumerate(own) if mine == {channel})
    if channel is None or not along:
        return None
    shape, result = cast("TensorType[Attribute]", tensors[1].type).get_shape(), axes.index(channel)
    is_one_to_one = prod(shape[at] for at in along) == stage.extents[result]
    is_lone = len(along) == 1 and indices[along[0]].single_value is channel
    biases = [op.indices for op in stages[-1].walk() if isinstance(op, ExtractOp) and op.tensor in tensors[2:]]
    is_bias = all([*map(Index.of, bias)] == [Index.of(stages[-1].indices[result])] for bias in biases)
    summed = tuple(at for at, index in enumerate(data) if index.sources() & reduced)
    return ChannelAxes(along, result, summed) if is_bias and (is_one_to_one or is_lone) else None


def _plain_product(stages: Sequence[ComputeOp]) -> tuple[ComputeOp, ReduceOp] | None:
    """The only reduction and its stage, if it sums products of two elements and the last stage returns these sums, plus
    at most an element of another tensor."""
    reduces = [(stage, op) for stage in stages for op in stage.walk() if isinstance(op, ReduceOp)]
    if len(reduces) != 1 or not _is_product(reduces[0][1]):
        return None
    stage, product = reduces[0]
    if [without_casts(value).owner for value in _elements(stage)] != [product]:
        return None
    if stage is not stages[-1]:
        totals = [value.owner for value in _elements(stages[-1])]
        terms = [value.owner for op in totals if isinstance(op, _ADDITIONS) for value in op.operands]
        if [isinstance(op, ExtractOp) and op.tensor in stage.results for op in terms] != [True, False]:
            return None
    return stage, product


_ADDITIONS = (arith.AddfOp, arith.AddiOp)

_INSTRUCTIONS: Final = (
    *(math.AbsFOp, math.AbsIOp, math.CeilOp, math.CopySignOp, math.FloorOp, math.FmaOp, math.RoundEvenOp),
    *(math.RoundOp, math.SqrtOp, math.TruncOp),
)
"""Ops of dialect math that cost few instructions."""


def _is_elementary(op: Operation) -> bool:
    return op.dialect_name() == "math" and not isinstance(op, _INSTRUCTIONS)
