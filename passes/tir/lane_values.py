"""Vectors for scalar values: constants, broadcasts, and the lanes of indices."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.index import Atom, Index, Quotient, Remainder, quotient, remainder
from weft.dialects.low_lanes import CmpiOp, SelectOp
from weft.passes.index_ops import materialize
from weft.passes.tir.lane_analysis import Lanes
from weft.support.errors import InternalError

_INDEX = IndexType()
_AT_LEAST = arith.CMPI_COMPARISON_OPERATIONS.index("sge")


@lru_cache(maxsize=256)
def _vector_type(element: Attribute, count: int) -> VectorType:
    return VectorType(element, [count])


def lanes_constant(type_: VectorType, elements: Sequence[int] | Sequence[float]) -> arith.ConstantOp:
    """A vector of constants; one element stands for all lanes."""
    # from_list is typed for either kind of element, not for both.
    data = cast("Sequence[int]", elements if len(elements) > 1 else list(elements) * type_.get_shape()[0])
    if isinstance(type_.element_type, IndexType):
        dense = _index_lanes(type_, tuple(data))
    else:
        dense = DenseIntOrFPElementsAttr.from_list(cast("VectorType[IntegerType]", type_), data)
    return arith.ConstantOp.create(result_types=[type_], properties={"value": dense})


@lru_cache(maxsize=1024)
def _index_lanes(type_: VectorType, lanes: tuple[int, ...]) -> Attribute:
    """Lanes of indices modulo 2^64, of which a program has the same few over and over."""
    wrapped = [(lane + (1 << 63)) % (1 << 64) - (1 << 63) for lane in lanes]
    return DenseIntOrFPElementsAttr.from_list(cast("VectorType[IntegerType]", type_), wrapped)


class LaneValues:
    """Emits ops in the place of a vectorised loop, and gives the lanes of scalar values of its body."""

    def __init__(self, lanes: Lanes, count: int) -> None:
        self.lanes = lanes
        self.loop = lanes.loop
        self.variable = lanes.loop.induction_variable
        self.count = count
        self.ranges = lanes.ranges
        self.vectors: dict[SSAValue, SSAValue] = {}
        """The vector of a value that differs between lanes."""
        self.ops: list[Operation] = []
        self.distances: dict[Index, tuple[Index, tuple[int, ...]] | None] = {}
        """What is known of indices that are not affine in the lane."""
        self.scopes: list[dict[object, SSAValue]] = [{}]
        """Vectors made on demand (broadcasts, constants, lanes of indices), by scope, for reuse."""
        self.location = lanes.loop.location

    # Emission

    def emit(self, op: Operation, hint: str | None = None) -> SSAValue | None:
        op.location = self.location
        self.ops.append(op)
        if not op.results:
            return None
        if hint is not None:
            op.results[0].name_hint = hint
        return op.results[0]

    def value(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Emit `op` and return its only result."""
        result = self.emit(op, hint)
        if result is None:
            raise InternalError(f"{op.name} has no result")
        return result

    @contextmanager
    def scope(self) -> Generator[list[Operation]]:
        """Collect the ops that are emitted inside, in a region of their own."""
        outer, self.ops = self.ops, []
        self.scopes.append({})
        try:
            yield self.ops
        finally:
            self.scopes.pop()
            self.ops = outer

    def known(self, key: object) -> SSAValue | None:
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    def remember(self, key: object, value: SSAValue) -> SSAValue:
        self.scopes[-1][key] = value
        return value

    # Values

    def type_of(self, element: Attribute) -> VectorType:
        return _vector_type(element, self.count)

    def constant(self, element: Attribute, elements: Sequence[int] | Sequence[float]) -> SSAValue:
        """A vector of constants; one element stands for all lanes."""
        key = ("constant", element, tuple(elements))
        if (found := self.known(key)) is not None:
            return found
        type_ = self.type_of(element)
        return self.remember(key, self.value(lanes_constant(type_, elements)))

    def zeros(self, element: Attribute) -> SSAValue:
        return self.constant(element, [0.0] if isinstance(element, AnyFloat) else [0])

    def scalar(self, index: Index) -> SSAValue:
        """The value of an index that is the same for all lanes."""
        if (found := self.known(index)) is not None:
            return found
        value, ops = materialize(index)
        for op in ops:
            self.emit(op)
        return self.remember(index, value)

    def broadcast(self, value: SSAValue) -> SSAValue:
        if (found := self.known(value)) is not None:
            return found
        op = vector.BroadcastOp.create(operands=[value], result_types=[self.type_of(value.type)])
        return self.remember(value, self.value(op, value.name_hint))

    def vector_of(self, value: SSAValue) -> SSAValue:
        """The lanes of any value of the body."""
        if value in self.vectors:
            return self.vectors[value]
        if value not in self.lanes.varying:
            return self.broadcast(value)
        if isinstance(value.type, IndexType):
            return self.index_vector(Index.of(value).simplified(self.ranges))
        raise InternalError(f"no lanes were made of %{value.name_hint}, a {value.type}")

    def offsets(self, index: Index) -> tuple[Index, tuple[int, ...]] | None:
        """`index` as one index for all lanes plus a constant for each, or None when it is not that."""
        factor = index.coefficient(self.variable)
        rest = index - Index({self.variable: factor})
        if not self.lanes.varies(rest):
            return rest, tuple(factor * lane for lane in range(self.count))
        if index not in self.distances:
            self.distances[index] = self._distances(index)
        return self.distances[index]

    def _distances(self, index: Index) -> tuple[Index, tuple[int, ...]] | None:
        """`offsets` of an index that has the loop variable in a quotient or remainder."""
        if any(v in self.lanes.varying and v is not self.variable for v in index.values()):
            return None
        first, offsets = self._at_lane(index, 0), [0] * self.count
        # The last lane first: where lanes reach the next multiple of a divisor, it tells.
        for lane in range(self.count - 1, 0, -1):
            distance = self._at_lane(index, lane) - first
            if not distance.is_constant:
                return None
            offsets[lane] = distance.constant
        return first, tuple(offsets)

    def _at_lane(self, index: Index, lane: int) -> Index:
        return index.substitute({self.variable: Index({}, lane)}, self.ranges).simplified(self.ranges)

    def index_vector(self, index: Index) -> SSAValue:
        """The lanes of an index."""
        if (found := self.known(("lanes", index))) is not None:
            return found
        split = self.offsets(index)
        if split is not None:
            base, offsets = split
            if base.is_constant:
                return self.constant(_INDEX, [base.constant + o for o in offsets])
            result = self.broadcast(self.scalar(base))
            if any(offsets):
                result = self.arith(arith.AddiOp, result, self.constant(_INDEX, offsets))
        else:
            result = self._sum_of_terms(index)
        return self.remember(("lanes", index), result)

    def arith(self, op_class: type[Operation], *operands: SSAValue) -> SSAValue:
        properties: dict[str, Attribute] = {}
        if issubclass(op_class, arith.SignlessIntegerBinaryOperationWithOverflow):
            properties["overflowFlags"] = arith.IntegerOverflowAttr("none")
        return self.value(op_class.create(operands=operands, result_types=[operands[0].type], properties=properties))

    def _sum_of_terms(self, index: Index) -> SSAValue:
        """Lanes of an index that is not affine in the lane: term by term."""
        shared: dict[Atom, int] = {}
        total: SSAValue | None = None
        for atom, factor in index.terms.items():
            if not self.lanes.varies(Index({atom: 1})):
                shared[atom] = factor
                continue
            term = self._atom_vector(atom)
            if factor != 1:
                term = self.arith(arith.MuliOp, term, self.constant(_INDEX, [factor]))
            total = term if total is None else self.arith(arith.AddiOp, total, term)
        rest = Index(shared, index.constant)
        if total is None:
            return self.broadcast(self.scalar(rest))
        return total if rest == Index({}) else self.arith(arith.AddiOp, total, self.broadcast(self.scalar(rest)))

    def _wrapped_lanes(self, atom: Quotient | Remainder) -> SSAValue | None:
        """The lanes of a quotient or remainder that steps to the next multiple of the divisor at most once on the way
        from the first lane to the last: a comparison does then what would be a division in each lane."""
        split, divisor = self.offsets(atom.numerator), atom.divisor
        is_shift = divisor & (divisor - 1) == 0
        if split is None or is_shift or not 0 <= min(split[1]) <= max(split[1]) <= divisor:
            return None
        base, offsets = split
        first = self.broadcast(self.scalar(remainder(base, divisor, self.ranges)))
        reached = self.arith(arith.AddiOp, first, self.constant(_INDEX, offsets))
        past = self.value(CmpiOp(reached, self.constant(_INDEX, [divisor]), _AT_LEAST))
        if isinstance(atom, Remainder):
            return self._pick(past, self.arith(arith.SubiOp, reached, self.constant(_INDEX, [divisor])), reached)
        whole = self.broadcast(self.scalar(quotient(base, divisor, self.ranges)))
        return self._pick(past, self.arith(arith.AddiOp, whole, self.constant(_INDEX, [1])), whole)

    def _pick(self, mask: SSAValue, on: SSAValue, off: SSAValue) -> SSAValue:
        return self.value(SelectOp.create(operands=[mask, on, off], result_types=[on.type]))

    def _atom_vector(self, atom: Atom) -> SSAValue:
        if atom is self.variable:
            return self.constant(_INDEX, range(self.count))
        if isinstance(atom, SSAValue):
            return self.vectors[atom]
        if (wrapped := self._wrapped_lanes(atom)) is not None:
            return wrapped
        numerator = self.index_vector(atom.numerator)
        divisor = self.constant(_INDEX, [atom.divisor])
        low, _ = atom.numerator.range(self.ranges)
        unsigned = low is not None and low >= 0
        if isinstance(atom, Quotient):
            return self.arith(arith.DivUIOp if unsigned else arith.FloorDivSIOp, numerator, divisor)
        if unsigned:
            return self.arith(arith.RemUIOp, numerator, divisor)
        quotient = self.arith(arith.FloorDivSIOp, numerator, divisor)
        return self.arith(arith.SubiOp, numerator, self.arith(arith.MuliOp, quotient, divisor))
