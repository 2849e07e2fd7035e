"""Traits of graph operators, declared in `te.ops`. `analysis.operator_patterns` derives other properties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.traits import OpTrait


class Elementwise(OpTrait):
    """Results are formulas of broadcast elements; no attribute names an axis or extent."""


class Idempotent(OpTrait):
    """f(f(x)) is f(x)."""


class Involution(OpTrait):
    """f(f(x)) is x."""


class ViewLike(OpTrait):
    """The operand's elements in row-major order."""


class Repeating(OpTrait):
    """The operand's elements, repeated along axes."""


class Discontinuous(OpTrait):
    """A difference in an operand's last bit may change the result by 1 or more."""


class Recurrent(OpTrait):
    """Two operands are weights: the second multiplies data, the third states."""


@dataclass(frozen=True)
class Product(OpTrait):
    """A sum of products, with kernels for narrower factors."""

    factors: int = 2
    """Leading operands that are factors."""
    of_matrices: bool = False
    """Each element of a large factor is read once; factors may then differ in type."""

    @property
    def of_images(self) -> bool:
        """Whether the product sums over windows and channels of an image, its first factor."""
        return self.factors == 2 and not self.of_matrices


@dataclass(frozen=True)
class Dequantizing(OpTrait):
    """Operands after the first `data`, such as stored integers and scales, are converted where they are read."""

    data: int = 1


@dataclass(frozen=True)
class RightNeutral(OpTrait):
    """f(x, number) is x; if commutative, so is f(number, x)."""

    number: int
    of_floats: bool = True
    """Exact for all floats."""


def declare(trait: OpTrait, *functions: Callable[..., object]) -> None:
    for function in functions:
        vars(function)["traits"] = (*traits_of(function), trait)


def traits_of(function: Callable[..., object]) -> Sequence[OpTrait]:
    return cast("Sequence[OpTrait]", vars(function).get("traits", ()))
