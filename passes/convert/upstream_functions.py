"""Classification of the functions of a module by upstream dialects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from xdsl.dialects import affine
from xdsl.dialects.builtin import TensorType, UnregisteredOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from weft.dialects.low import PARAMS
from weft.dialects.low_kernel import KERNEL
from weft.dialects.tir_kinds import TIR_FUNCTION
from weft.dialects.traversal import operations_in

OURS: Final = frozenset(("te", "graph", "tir", "low", "sched"))
"""The dialects of weft's levels."""
STABLEHLO: Final = frozenset(("stablehlo", "chlo"))
_UPSTREAM: Final = STABLEHLO | {"affine", "bufferization", "gpu", "linalg", "memref", "scf", "tensor", "vector"}
_SCALARS: Final = frozenset(("arith", "math"))
_KNOWN: Final = OURS | _UPSTREAM | _SCALARS | {"builtin", "cf", "complex", "func"}


def upstream_dialects(function: Operation) -> frozenset[str]:
    """The upstream dialects in the body of a function, including `tensor` for `arith` and `math` on tensors, and
    `vector` for vector accesses of `affine`; empty for functions of weft's levels, and for those that only compute
    scalars and call."""
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
        elif dialect in _SCALARS and any(isinstance(operand.type, TensorType) for operand in op.operands):
            found.add("tensor")
        if isinstance(op, affine.VectorLoadOp | affine.VectorStoreOp):
            found.add("vector")
    return frozenset(found)


def foreign_op(function: FuncOp) -> Operation | None:
    """The first op on tensors of a dialect that is neither of weft's levels nor upstream's; None if there is none."""
    for op in operations_in(function):
        dialect = op.name.partition(".")[0]
        if (op.name == UnregisteredOp.name or dialect not in _KNOWN) and any(
            isinstance(value.type, TensorType) for value in (*op.operands, *op.results)
        ):
            return op
    return None


def called_together(functions: Sequence[FuncOp], candidates: Sequence[FuncOp]) -> list[FuncOp]:
    """The functions among `candidates` that are in `functions`, or are connected to one of them by calls."""
    called = {f: {op.callee.string_value() for op in operations_in(f) if isinstance(op, CallOp)} for f in candidates}
    found = [f for f in candidates if f in functions]
    for one in found:  # grows as callers and callees are found
        near = (f for f in candidates if one.sym_name.data in called[f] or f.sym_name.data in called[one])
        found += [f for f in near if f not in found]
    return found
