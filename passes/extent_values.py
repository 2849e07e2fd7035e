"""Symbolic extents as index values of a function."""

from __future__ import annotations

from functools import partial, reduce
from typing import Final

from xdsl.dialects.arith import FloorDivSIOp, MaxSIOp, MinSIOp, MuliOp, RemSIOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from weft.analysis.index import Index, exprs_of
from weft.analysis.integer_ranges import is_not_negative
from weft.dialects.graph_shapes import (
    Expression,
    ExtentOperation,
    KnownExtent,
    add,
    choose,
    lone_name,
    multiply,
    show_extent,
    symbol,
)
from weft.dialects.tir_assume import AssumeOp, Relation
from weft.passes.index_builders import index_before, insert_before, result_before
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError

_OPERATIONS: Final = {"floordiv": FloorDivSIOp, "mod": RemSIOp, "min": MinSIOp, "max": MaxSIOp}


class ExtentValues:
    """Index values of extents, computed before an operation at first use. `know` binds names.

    Raises `CompileError` for an unbound name.
    """

    def __init__(self, anchor: Operation, function: FuncOp) -> None:
        self._anchor = anchor
        self._function = function
        self._values: dict[Expression, SSAValue] = {}

    def move(self, anchor: Operation) -> None:
        """Compute new values before `anchor`, which must follow the previous one."""
        self._anchor = anchor

    def __contains__(self, extent: Expression) -> bool:
        return extent in self._values

    def know(self, extent: Expression, value: SSAValue) -> None:
        self._values[extent] = value
        value.name_hint = value.name_hint or lone_name(extent)

    def value(self, extent: KnownExtent) -> int | SSAValue:
        if isinstance(extent, int):
            return extent
        if extent not in self._values:
            self.know(extent, index_before(self.index(extent), self._anchor))
        return self._values[extent]

    def index(self, extent: KnownExtent) -> Index:
        if isinstance(extent, int):
            return Index.of(extent)
        if extent in self._values:
            return Index.of(self._values[extent])
        total = Index({}, 0)
        for monomial, coefficient in extent.terms:
            factors = [self._atom(atom) for atom in monomial] or [Index.of(1)]
            total = total + reduce(lambda left, right: self._combined(MuliOp, left, right), factors) * coefficient
        return total

    def _atom(self, atom: str | ExtentOperation) -> Index:
        if isinstance(atom, ExtentOperation):
            left, right = self.index(atom.left), self.index(atom.right)
            if atom.kind in ("floordiv", "mod") and right.is_constant and right.constant > 0:
                return left // right.constant if atom.kind == "floordiv" else left % right.constant
            if atom.kind == "mod" and not (is_not_negative(left) and is_not_negative(right)):
                # The remainder of a truncated division differs for negative sides of preconditions.
                quotient = self._combined(FloorDivSIOp, left, right)
                return left - self._combined(MuliOp, right, quotient)
            return self._combined(_OPERATIONS[atom.kind], left, right)
        value = self._values.get(symbol(atom))
        if value is None:
            bound = ", ".join(sorted(map(show_extent, self._values))) or "none"
            raise CompileError.at(
                self._function, f"extent '{atom}' is not bound by the shape of any operand (bound: {bound})"
            )
        return Index.of(value)

    def _combined(
        self, op_type: type[MuliOp | FloorDivSIOp | RemSIOp | MinSIOp | MaxSIOp], left: Index, right: Index
    ) -> Index:
        values = index_before(left, self._anchor), index_before(right, self._anchor)
        return Index.of(result_before(op_type(*values), self._anchor))

    def assume(self, fact: CallPrecondition) -> None:
        """Insert the assumption that a comparison of a precondition is true."""
        names = {name: symbol(name) for name in fact.names}
        comparison = fact.comparisons[0]
        sides = [self.index(comparison.left(names)), self.index(comparison.right(names))]
        relation = Relation(comparison.relation)
        if len(fact.comparisons) > 1:
            # Minima of indices, unlike those of extents, have any factors.
            negative = [self.index(_negative(Relation(c.relation), c.difference(names))) for c in fact.comparisons]
            sides, relation = [reduce(partial(self._combined, MinSIOp), negative), Index.of(0)], Relation.LESS
        (left, right), operands = exprs_of(sides)
        insert_before(self._anchor, [AssumeOp(left, relation, right, operands, fact.reason or None)])


def _negative(relation: Relation, difference: KnownExtent) -> KnownExtent:
    """Negative exactly if the difference satisfies `relation`."""
    if relation is Relation.EQUAL:
        difference = choose("max", difference, multiply(difference, -1))
    return difference if relation is Relation.LESS else add(difference, -1)
