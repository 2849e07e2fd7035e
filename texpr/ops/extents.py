"""Extents, integers or expressions over variables, in one form: those that are equal as polynomials are the same.

Shapes that operators compute, such as `h + 1 + 1 - 3 + 1` rows of a convolution, can so be compared with `h`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from weft.texpr.expr import Binary, BinaryKind, Const, Expr, binary
from weft.texpr.shapes import Extent

_Atom: TypeAlias = "tuple[object, ...]"
"""What identifies a variable, or an operator that is no sum, difference or product, over sums."""
_Product: TypeAlias = "tuple[_Atom, ...]"


@dataclass(frozen=True)
class _Sum:
    """Integers times products of atoms, in the order of first use; the empty product is 1."""

    terms: Mapping[_Product, int]
    atoms: Mapping[_Atom, Expr]

    @staticmethod
    def of(terms: Iterable[tuple[_Product, int]], atoms: Mapping[_Atom, Expr]) -> _Sum:
        collected: dict[_Product, int] = {}
        for product, factor in terms:
            collected[product] = collected.get(product, 0) + factor
        return _Sum({product: factor for product, factor in collected.items() if factor}, atoms)

    @property
    def constant(self) -> int | None:
        """The number that it is, if it is one."""
        return self.terms.get((), 0) if not self.terms.keys() - {()} else None

    @property
    def key(self) -> frozenset[tuple[_Product, int]]:
        return frozenset(self.terms.items())

    def plus(self, other: _Sum, factor: int = 1) -> _Sum:
        scaled = ((product, factor * number) for product, number in other.terms.items())
        return _Sum.of([*self.terms.items(), *scaled], {**self.atoms, **other.atoms})

    def times(self, other: _Sum) -> _Sum:
        products = [
            (tuple(sorted((*left, *right), key=repr)), x * y)
            for left, x in self.terms.items()
            for right, y in other.terms.items()
        ]
        return _Sum.of(products, {**self.atoms, **other.atoms})

    def divided(self, divisor: int) -> tuple[_Sum, _Sum]:
        """q and r with `self = divisor * q + r`, the factors of r from 0 to divisor - 1."""
        quotient = [(product, factor // divisor) for product, factor in self.terms.items()]
        rest = [(product, factor % divisor) for product, factor in self.terms.items()]
        return _Sum.of(quotient, self.atoms), _Sum.of(rest, self.atoms)

    def extent(self) -> Extent:
        """As an expression: first what is added, then what is subtracted, numbers last."""
        result: Extent | None = None
        for product, factor in sorted(self.terms.items(), key=lambda term: (not term[0], term[1] < 0)):
            factors: list[Extent] = [self.atoms[atom] for atom in product]
            size = builtins.abs(factor)
            term: Extent = reduce(lambda x, y: x * y, factors) if factors else size
            if factors and size != 1:
                term = term * size
            if result is None:
                result = term if factor > 0 else 0 - term
            else:
                result = result + term if factor > 0 else result - term
        return 0 if result is None else result


def _number(value: int) -> _Sum:
    return _Sum({(): value} if value else {}, {})


def _atom(key: _Atom, expr: Expr) -> _Sum:
    return _Sum({(key,): 1}, {key: expr})


def _sum(extent: Extent) -> _Sum:
    if isinstance(extent, int):
        return _number(extent)
    if isinstance(extent, Const):
        return _number(int(extent.value))
    if not isinstance(extent, Binary):
        return _atom((str(extent), id(extent)), extent)
    left, right = _sum(extent.left), _sum(extent.right)
    match extent.kind:
        case BinaryKind.ADD:
            return left.plus(right)
        case BinaryKind.SUB:
            return left.plus(right, -1)
        case BinaryKind.MUL:
            return left.times(right)
        case _:
            return _other(extent.kind, left, right)


def _other(kind: BinaryKind, left: _Sum, right: _Sum) -> _Sum:
    """A quotient or remainder, whose divisible part is taken out, or another operator over sums."""
    whole, divisor = _number(0), right.constant
    if kind in (BinaryKind.FLOORDIV, BinaryKind.FLOORMOD) and divisor is not None and divisor > 0:
        whole, left = left.divided(divisor)
        number = left.constant
        if number is not None:  # from 0 to divisor - 1
            return whole if kind is BinaryKind.FLOORDIV else _number(number)
    rest = _atom((kind.value, left.key, right.key), binary(kind, left.extent(), right.extent()))
    return whole.plus(rest) if kind is BinaryKind.FLOORDIV else rest


def simplified(extent: Extent) -> Extent:
    """`extent` as a sum of products, a number where it is one: `(2 * n + 3) // 2` is `n + 1`."""
    return extent if isinstance(extent, int) else _sum(extent).extent()


def is_same(left: Extent, right: Extent) -> bool:
    """Whether two extents are equal for all values of their variables, as polynomials over quotients and remainders."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    return left is right or _sum(left).key == _sum(right).key


def product(extents: Sequence[Extent]) -> Extent:
    """How many elements a shape has."""
    return simplified(reduce(lambda x, y: x * y, extents, 1))


def is_empty(shape: Sequence[Extent]) -> bool:
    """Whether a shape has no elements for certain."""
    return any(is_same(extent, 0) for extent in shape)


def quotient(total: Extent, divisor: Extent) -> Extent | None:
    """What `total` divided by `divisor` is where it is known to leave nothing: numbers, or a product that is a factor
    of every term."""
    if isinstance(total, int) and isinstance(divisor, int):
        return total // divisor if divisor and total % divisor == 0 else None
    whole, part = _sum(total), _sum(divisor)
    if len(part.terms) != 1:
        return 1 if whole.key == part.key else None
    ((atoms, number),) = part.terms.items()
    terms: list[tuple[_Product, int]] = []
    for product, factor in whole.terms.items():
        rest = list(product)
        for atom in atoms:
            if atom not in rest:
                return None
            rest.remove(atom)
        if factor % number:
            return None
        terms.append((tuple(rest), factor // number))
    return _Sum.of(terms, whole.atoms).extent()


def shape_text(shape: Sequence[Extent]) -> str:
    """A shape as messages show it."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
