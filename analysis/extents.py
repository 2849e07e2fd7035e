"""Index values as symbolic extents."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.arith import FloorDivSIOp, MaxSIOp, MinSIOp, MuliOp, RemSIOp, SelectOp
from xdsl.ir import SSAValue

from weft.analysis.index import Atom, Index, Quotient, Remainder
from weft.analysis.integer_ranges import RangeOf, Ranges, floor_remainder_of
from weft.dialects.graph_shapes import KnownExtent, add, choose, divide, is_not_negative, lone_name, multiply, symbol
from weft.support.names import free_name


class ExtentNames:
    """Converts index values to extents of known values, and of unknown ones, which get new names."""

    def __init__(self, known: Mapping[SSAValue, KnownExtent] | None = None) -> None:
        self.values: dict[str, SSAValue] = {}
        self._extents = dict(known or {})

    def extent(self, value: SSAValue) -> KnownExtent:
        if value not in self._extents:
            self._extents[value] = self._computed(value)
        return self._extents[value]

    def _computed(self, value: SSAValue) -> KnownExtent:
        op = value.owner
        if isinstance(op, MuliOp) and not Index.of(value).is_constant:
            return multiply(self.extent(op.lhs), self.extent(op.rhs))
        if isinstance(op, FloorDivSIOp):
            return divide("floordiv", self.extent(op.lhs), self.extent(op.rhs))
        if isinstance(op, RemSIOp) and is_not_negative(numerator := self.extent(op.lhs)):
            return divide("mod", numerator, self.extent(op.rhs))
        if isinstance(op, SelectOp) and (division := floor_remainder_of(op)) is not None:
            return divide("mod", self.extent(division.lhs), self.extent(division.rhs))
        if isinstance(op, MinSIOp | MaxSIOp):
            kind = "min" if isinstance(op, MinSIOp) else "max"
            return choose(kind, self.extent(op.lhs), self.extent(op.rhs))
        index = Index.of(value)
        if index.single_value is value:
            name = free_name(value.name_hint or "n", self.values)
            self.values[name] = value
            return symbol(name)
        return self.of_index(index)

    def know(self, value: SSAValue, extent: KnownExtent) -> None:
        self._extents[value] = extent

    def not_negative(self, ranges: RangeOf | None = None) -> set[str]:
        """Names of non-negative values. Equal values may share a name."""
        ranges = ranges or Ranges()
        named = ((lone_name(extent), ranges(value)[0]) for value, extent in self._extents.items())
        return {name for name, low in named if name is not None and low is not None and low >= 0}

    def of_index(self, index: Index) -> KnownExtent:
        total: KnownExtent = index.constant
        for atom, factor in index.terms.items():
            total = add(total, multiply(self._atom(atom), factor))
        return total

    def _atom(self, atom: Atom) -> KnownExtent:
        if isinstance(atom, Quotient | Remainder):
            kind = "floordiv" if isinstance(atom, Quotient) else "mod"
            return divide(kind, self.of_index(atom.numerator), atom.divisor)
        return self.extent(atom)
