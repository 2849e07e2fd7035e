"""Traits of graph operators, declared with the functions of `te.ops`.

Properties of element regions are derived instead (`analysis.operator_patterns`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.traits import OpTrait


class Elementwise(OpTrait):
    """Results are formulas of broadcast elements; no attribute names an axis or an extent."""


class Idempotent(OpTrait):
    """f(f(x)) is f(x)."""


class Involution(OpTrait):
    """f(f(x)) is x."""


class ViewLike(OpTrait):
    """The result has the elements of the operand in row-major order."""


class Repeating(OpTrait):
    """The result has the elements of the operand, repeated along axes."""


class Discontinuous(OpTrait):
    """A difference in the last bit of an operand may become a difference of 1 or more in the result."""


class Recurrent(OpTrait):
    """Two operands are weights: the second multiplies the data, the third the states."""


@dataclass(frozen=True)
class Product(OpTrait):
    """A sum of products, with kernels for factors narrower than the accumulator."""

    factors: int = 2
    """Leading operands that are factors."""
    of_matrices: bool = False
    """Each element of a large factor is read once; factors may then differ in type."""


@dataclass(frozen=True)
class Dequantizing(OpTrait):
    """The operands after the first `data` are stored integers, scales and the like: where they are read, they are
    converted to the type of the computation."""

    data: int = 1


@dataclass(frozen=True)
class RightNeutral(OpTrait):
    """f(x, number) is x; of commutative operators, so is f(number, x)."""

    number: int
    of_floats: bool = True
    """Exact for all floats."""


def declare(trait: OpTrait, *functions: Callable[..., object]) -> None:
    for function in functions:
        vars(function)["traits"] = (*traits_of(function), trait)


def traits_of(function: Callable[..., object]) -> Sequence[OpTrait]:
    return cast("Sequence[OpTrait]", vars(function).get("traits", ()))
