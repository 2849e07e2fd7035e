"""Extents, integers or expressions over variables, in one form: those that are equal as polynomials are the same.

Shapes that operators compute, such as `h + 1 + 1 - 3 + 1` rows of a convolution, can so be compared with `h`. The
polynomials are those of `weft.dialects.graph_shapes`, over names that `Names` gives the variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from weft.dialects import graph_shapes
from weft.dialects.graph_shapes import Atom, Division, KnownExtent
from weft.texpr.expr import Binary, BinaryKind, Const, Expr, Var, binary
from weft.texpr.shapes import Extent


class UnknownExtent(Var):
    """An extent of which nothing is known, not whether it equals another: what checks compare it with fits."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("?", "int64")


_COMBINE = {
    BinaryKind.ADD: graph_shapes.add,
    BinaryKind.SUB: graph_shapes.subtract,
    BinaryKind.MUL: graph_shapes.multiply,
    BinaryKind.FLOORDIV: graph_shapes.floordiv,
    BinaryKind.FLOORMOD: graph_shapes.modulo,
}


class Names:
    """Names of the variables in extents, and of what else is no arithmetic of extents, one for each."""

    def __init__(self, given: Mapping[str, Expr] | None = None) -> None:
        self._exprs = dict(given or {})
        self._names = {id(expr): name for name, expr in self._exprs.items()}

    def polynomial(self, extent: Extent) -> KnownExtent:
        """The normal form of an extent."""
        if isinstance(extent, int):
            return extent
        if isinstance(extent, Const):
            return int(extent.value)
        if isinstance(extent, Binary) and extent.kind in _COMBINE:
            left, right = self.polynomial(extent.left), self.polynomial(extent.right)
            divides = extent.kind in (BinaryKind.FLOORDIV, BinaryKind.FLOORMOD)
            found = None if divides and right == 0 else _COMBINE[extent.kind](left, right)
            if found is not None:
                return found
        return graph_shapes.symbol(self.name(extent))

    def name(self, expr: Expr) -> str:
        """The name of an expression, a new one where it has none."""
        if id(expr) not in self._names:
            name = str(expr)
            while name in self._exprs:
                name += "'"
            self._exprs[name] = expr
            self._names[id(expr)] = name
        return self._names[id(expr)]

    def extent(self, polynomial: KnownExtent) -> Extent:
        """A polynomial as an expression: first what is added, then what is subtracted, numbers last."""
        if isinstance(polynomial, int):
            return polynomial
        result: Extent | None = None
        for monomial, coefficient in sorted(polynomial.terms, key=lambda term: (not term[0], term[1] < 0)):
            factors = [self._atom(atom) for atom in monomial]
            size = -coefficient if coefficient < 0 else coefficient
            term: Extent = reduce(lambda x, y: x * y, factors) if factors else size
            if factors and size != 1:
                term = term * size
            if result is None:
                result = term if coefficient > 0 else 0 - term
            else:
                result = result + term if coefficient > 0 else result - term
        return 0 if result is None else result

    def _atom(self, atom: Atom) -> Expr:
        if not isinstance(atom, Division):
            return self._exprs[atom]
        kind = BinaryKind.FLOORDIV if atom.kind == "floordiv" else BinaryKind.FLOORMOD
        return binary(kind, self.extent(atom.left), self.extent(atom.right))


def simplified(extent: Extent) -> Extent:
    """`extent` as a sum of products, a number where it is one: `(2 * n + 3) // 2` is `n + 1`."""
    if isinstance(extent, int):
        return extent
    names = Names()
    return names.extent(names.polynomial(extent))


def is_same(left: Extent, right: Extent) -> bool:
    """Whether two extents are equal for all values of their variables, as polynomials over quotients and remainders."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if left is right or isinstance(left, UnknownExtent) or isinstance(right, UnknownExtent):
        return True
    names = Names()
    return names.polynomial(left) == names.polynomial(right)


def product(extents: Sequence[Extent]) -> Extent:
    """How many elements a shape has."""
    return simplified(reduce(lambda x, y: x * y, extents, 1))


def is_empty(shape: Sequence[Extent]) -> bool:
    """Whether a shape has no elements for certain."""
    return any(isinstance(extent, int) and extent == 0 for extent in map(simplified, shape))


def quotient(total: Extent, divisor: Extent) -> Extent | None:
    """What `total` divided by `divisor` is where it is known to leave nothing: numbers, or a product that is a factor
    of every term."""
    names = Names()
    found = graph_shapes.exact_quotient(names.polynomial(total), names.polynomial(divisor))
    return None if found is None else names.extent(found)


def shape_text(shape: Sequence[Extent]) -> str:
    """A shape as messages show it."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
