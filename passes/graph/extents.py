"""Symbolic extents as index values of a function, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from xdsl.dialects.arith import FloorDivSIOp, MuliOp, RemSIOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from weft.analysis.index import Atom, Index, Quotient, Remainder
from weft.dialects.graph_shapes import (
    Expression,
    ExtentDivision,
    KnownExtent,
    add,
    divide,
    lone_name,
    multiply,
    show_extent,
    symbol,
)
from weft.passes.index_ops import index_before, result_before
from weft.support.errors import CompileError
from weft.support.names import free_name


class ExtentValues:
    """The index values of extents, computed before an operation when they are first used.

    `know` binds names to values. Raises `CompileError` for a name that is not bound.
    """

    def __init__(self, anchor: Operation, function: FuncOp) -> None:
        self._anchor = anchor
        self._function = function
        self._values: dict[Expression, SSAValue] = {}

    def __contains__(self, extent: Expression) -> bool:
        return extent in self._values

    def know(self, extent: Expression, value: SSAValue) -> None:
        """Let `value` be the value of an extent."""
        self._values[extent] = value
        value.name_hint = value.name_hint or lone_name(extent)

    def value(self, extent: KnownExtent) -> int | SSAValue:
        """A number or an index value."""
        if isinstance(extent, int):
            return extent
        if extent not in self._values:
            self.know(extent, index_before(self.index(extent), self._anchor))
        return self._values[extent]

    def index(self, extent: KnownExtent) -> Index:
        """The extent as an index expression."""
        if isinstance(extent, int):
            return Index.of(extent)
        if extent in self._values:
            return Index.of(self._values[extent])
        total = Index({}, 0)
        for monomial, coefficient in extent.terms:
            factors = [self._atom(atom) for atom in monomial] or [Index.of(1)]
            total = total + reduce(lambda left, right: self._combined(MuliOp, left, right), factors) * coefficient
        return total

    def _atom(self, atom: str | ExtentDivision) -> Index:
        if isinstance(atom, ExtentDivision):
            left, right = self.index(atom.left), self.index(atom.right)
            if right.is_constant and right.constant > 0:
                return left // right.constant if atom.kind == "floordiv" else left % right.constant
            # Extents are not negative, so the remainder of the truncated division is the non-negative one.
            return self._combined(FloorDivSIOp if atom.kind == "floordiv" else RemSIOp, left, right)
        value = self._values.get(symbol(atom))
        if value is None:
            bound = ", ".join(sorted(map(show_extent, self._values))) or "none"
            raise CompileError.at(
                self._function, f"extent '{atom}' is not bound by the shape of any operand (bound: {bound})"
            )
        return Index.of(value)

    def _combined(self, op_type: type[MuliOp | FloorDivSIOp | RemSIOp], left: Index, right: Index) -> Index:
        values = index_before(left, self._anchor), index_before(right, self._anchor)
        return Index.of(result_before(op_type(*values), self._anchor))


class ExtentNames:
    """Index values as extents: sums, products and quotients of those that are known, and of values that are not, each
    of which gets a name of its own."""

    def __init__(self, known: Mapping[SSAValue, KnownExtent] | None = None) -> None:
        self.values: dict[str, SSAValue] = {}
        """The values that were named."""
        self._extents = dict(known or {})

    def extent(self, value: SSAValue) -> KnownExtent:
        """The extent that an index value is."""
        if value not in self._extents:
            self._extents[value] = self._computed(value)
        return self._extents[value]

    def _computed(self, value: SSAValue) -> KnownExtent:
        op = value.owner
        if isinstance(op, MuliOp) and not Index.of(value).is_constant:
            return _known(multiply(self.extent(op.lhs), self.extent(op.rhs)))
        if isinstance(op, FloorDivSIOp):
            return _known(divide("floordiv", self.extent(op.lhs), self.extent(op.rhs)))
        # By truncation, as by rounding down then.
        if isinstance(op, RemSIOp) and is_not_negative(numerator := self.extent(op.lhs)):
            return _known(divide("mod", numerator, self.extent(op.rhs)))
        index = Index.of(value)
        if index.single_value is value:
            name = free_name(value.name_hint or "n", self.values)
            self.values[name] = value
            return symbol(name)
        return self._sum(index)

    def _sum(self, index: Index) -> KnownExtent:
        total: KnownExtent = index.constant
        for atom, factor in index.terms.items():
            total = _known(add(total, multiply(self._atom(atom), factor)))
        return total

    def _atom(self, atom: Atom) -> KnownExtent:
        if isinstance(atom, Quotient | Remainder):
            kind = "floordiv" if isinstance(atom, Quotient) else "mod"
            return _known(divide(kind, self._sum(atom.numerator), atom.divisor))
        return self.extent(atom)


def _known(extent: KnownExtent | None) -> KnownExtent:
    return 0 if extent is None else extent


def is_not_negative(extent: KnownExtent) -> bool:
    """Whether an extent has no negative coefficient, and so is not negative, as names of extents are not."""
    return extent >= 0 if isinstance(extent, int) else all(factor > 0 for _, factor in extent.terms)
