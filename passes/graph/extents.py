"""Symbolic extents as SSA values."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.arith import FloorDivSIOp, MuliOp, RemSIOp
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from weft.analysis.index import Index
from weft.dialects.graph_shapes import Division, Expression, KnownExtent, lone_name, show_extent
from weft.passes.index_ops import materialize
from weft.support.errors import CompileError


class ExtentValues:
    """The values of extents at one place of a function; what is missing is computed there from what is known.

    `insert` adds an op at the place; `about` is the operation that errors speak of.
    """

    def __init__(self, insert: Callable[[Operation], None], about: Operation) -> None:
        self._insert = insert
        self._about = about
        self._known: dict[Expression, SSAValue] = {}

    def know(self, extent: Expression, value: SSAValue) -> None:
        """`value` is the extent."""
        self._known[extent] = value
        value.name_hint = value.name_hint or lone_name(extent)

    def knows(self, extent: KnownExtent) -> bool:
        return isinstance(extent, int) or extent in self._known

    def value(self, extent: KnownExtent) -> int | SSAValue:
        """The extent, a number or an index value. Raises `CompileError` when a name in it is not bound."""
        if isinstance(extent, int):
            return extent
        if extent not in self._known:
            self.know(extent, self._materialize(self._index(extent)))
        return self._known[extent]

    def _index(self, extent: KnownExtent) -> Index:
        if isinstance(extent, int):
            return Index.of(extent)
        if extent in self._known:
            return Index.of(self._known[extent])
        total = Index({}, 0)
        for monomial, coefficient in extent.terms:
            if monomial == () or len(monomial) == 1:
                factor = self._atom(monomial[0]) if monomial else Index.of(1)
            else:
                factor = self._product([self._atom(atom) for atom in monomial])
            total = total + factor * coefficient
        return total

    def _atom(self, atom: str | Division) -> Index:
        if isinstance(atom, Division):
            left, right = self._index(atom.left), self._index(atom.right)
            if right.is_constant and right.constant > 0:
                return left // right.constant if atom.kind == "floordiv" else left % right.constant
            # Extents are not negative, so the remainder of the truncated division is the non-negative one.
            op_type = FloorDivSIOp if atom.kind == "floordiv" else RemSIOp
            return self._emit(op_type(self._materialize(left), self._materialize(right)))
        value = self._known.get(Expression((((atom,), 1),)))
        if value is None:
            bound = ", ".join(sorted(map(show_extent, self._known))) or "none"
            raise CompileError.at(
                self._about, f"extent '{atom}' is not bound by the shape of any operand (bound: {bound})"
            )
        return Index.of(value)

    def _product(self, factors: list[Index]) -> Index:
        total = self._materialize(factors[0])
        for factor in factors[1:]:
            op = MuliOp(total, self._materialize(factor), IndexType())
            self._insert(op)
            total = op.result
        return Index.of(total)

    def _emit(self, op: FloorDivSIOp | RemSIOp) -> Index:
        self._insert(op)
        return Index.of(op.result)

    def _materialize(self, index: Index) -> SSAValue:
        value, ops = materialize(index)
        for op in ops:
            self._insert(op)
        return value
