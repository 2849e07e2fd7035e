"""Which functions of a module belong to upstream dialects."""

from __future__ import annotations

from typing import Final

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from weft.dialects.low import PARAMS
from weft.dialects.low_kernel import KERNEL
from weft.dialects.tir_kinds import TIR_FUNCTION
from weft.dialects.traversal import operations_in

OURS: Final = frozenset(("te", "graph", "tir", "low", "sched"))
"""The dialects of weft's levels."""
STABLEHLO: Final = frozenset(("stablehlo", "chlo"))
_UPSTREAM: Final = STABLEHLO | {"affine", "bufferization", "gpu", "linalg", "memref", "scf", "tensor", "vector"}


def upstream_dialects(function: Operation) -> frozenset[str]:
    """The upstream dialects that the body of a function uses; none for functions of weft's levels, and for others that
    only compute and call."""
    if not isinstance(function, FuncOp) or function.is_declaration:
        return frozenset()
    if any(name in function.attributes for name in (PARAMS, KERNEL, TIR_FUNCTION)):
        return frozenset()
    found: set[str] = set()
    for op in operations_in(function):
        dialect = op.name.partition(".")[0]
        if dialect in OURS:
            return frozenset()
        if dialect in _UPSTREAM:
            found.add(dialect)
    return frozenset(found)
