"""Traits of operators of the graph dialect, declared with the functions of `te.ops` that define them.

Properties that follow from element regions are derived instead (`analysis.operator_patterns`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.traits import OpTrait


class Elementwise(OpTrait):
    """Each result is a formula of the elements of the operands, which are broadcast; no attribute names an axis or an
    extent."""


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
    """A sum of products, for which there are kernels with factors narrower than the accumulator."""

    factors: int = 2
    """The number of leading operands that are factors."""
    of_matrices: bool = False
    """Whether each element of a large factor is read once. The factors may have different types then."""


@dataclass(frozen=True)
class RightNeutral(OpTrait):
    """f(x, number) is x; of commutative operators, so is f(number, x)."""

    number: int
    of_floats: bool = True
    """Whether that is exact for all floats."""


def declare(trait: OpTrait, *functions: Callable[..., object]) -> None:
    for function in functions:
        vars(function)["traits"] = (*traits_of(function), trait)


def traits_of(function: Callable[..., object]) -> Sequence[OpTrait]:
    return cast("Sequence[OpTrait]", vars(function).get("traits", ()))
