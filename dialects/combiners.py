"""Associative, commutative ops for reductions, atomics and lanes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.dialects.vector import CombiningKindFlag as Kind
from xdsl.ir import Attribute, Operation

from weft.dialects.element_types import greatest, least


@dataclass(frozen=True)
class Combination:
    kind: Kind
    """The kind of `vector.reduction`."""
    neutral: Callable[[Attribute], float | int]
    """The neutral element for a type."""
    is_idempotent: bool = False
    """Combining a value with itself gives that value."""


def _always(number: float | int) -> Callable[[Attribute], float | int]:
    return lambda _: number


COMBINATIONS: Final[Mapping[type[Operation], Combination]] = {
    arith.AddfOp: Combination(Kind.ADD, _always(-0.0)),  # 0.0 + -0.0 is 0.0, and -0.0 + -0.0 is -0.0
    arith.MulfOp: Combination(Kind.MUL, _always(1.0)),
    arith.MaximumfOp: Combination(Kind.MAXIMUMF, least, is_idempotent=True),
    arith.MinimumfOp: Combination(Kind.MINIMUMF, greatest, is_idempotent=True),
    arith.MaxnumfOp: Combination(Kind.MAXNUMF, _always(math.nan), is_idempotent=True),
    arith.MinnumfOp: Combination(Kind.MINNUMF, _always(math.nan), is_idempotent=True),
    arith.AddiOp: Combination(Kind.ADD, _always(0)),
    arith.MuliOp: Combination(Kind.MUL, _always(1)),
    arith.MaxSIOp: Combination(Kind.MAXSI, least, is_idempotent=True),
    arith.MinSIOp: Combination(Kind.MINSI, greatest, is_idempotent=True),
    arith.MaxUIOp: Combination(Kind.MAXUI, _always(0), is_idempotent=True),
    arith.MinUIOp: Combination(Kind.MINUI, _always(-1), is_idempotent=True),
    arith.AndIOp: Combination(Kind.AND, _always(-1), is_idempotent=True),
    arith.OrIOp: Combination(Kind.OR, _always(0), is_idempotent=True),
    arith.XOrIOp: Combination(Kind.XOR, _always(0)),
}
"""Combinations of floats are exact up to rounding, which reordering a sum requires."""

UPSTREAM_KINDS: Final[Mapping[str, type[Operation]]] = {
    re.sub("([su])i$", r"\1", op_class.name.removeprefix("arith.")): op_class for op_class in COMBINATIONS
}
"""Names of `arith.AtomicRMWKind`, such as `addf` or `maxs` -> op. `assign` has none."""

OPS_BY_NAME: Final[Mapping[str, tuple[type[Operation], type[Operation]]]] = {
    "add": (arith.AddfOp, arith.AddiOp),
    "mul": (arith.MulfOp, arith.MuliOp),
    "min": (arith.MinimumfOp, arith.MinSIOp),
    "max": (arith.MaximumfOp, arith.MaxSIOp),
    "and": (arith.AndIOp, arith.AndIOp),
    "or": (arith.OrIOp, arith.OrIOp),
    "minu": (arith.MinUIOp, arith.MinUIOp),
    "maxu": (arith.MaxUIOp, arith.MaxUIOp),
}
"""Name in reductions and atomics -> op on floats, op on integers."""


def op_named(name: str, type_: Attribute) -> type[Operation]:
    of_floats, of_integers = OPS_BY_NAME[name]
    return of_floats if isinstance(type_, AnyFloat) else of_integers


def op_of_kind(kind: Kind, type_: Attribute) -> type[Operation] | None:
    for op_class, combination in COMBINATIONS.items():
        of_floats = issubclass(op_class, arith.FloatingPointLikeBinaryOperation)
        if combination.kind is kind and of_floats == isinstance(type_, AnyFloat):
            return op_class
    return None
