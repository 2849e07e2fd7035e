"""Classification of functions by upstream dialects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from xdsl.dialects import affine
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, ModuleOp, TensorType, UnregisteredOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from weft.dialects.effects import op_name
from weft.dialects.levels import LEVELS, allowed_at
from weft.dialects.low import PARAMS
from weft.dialects.low_kernel import KERNEL
from weft.dialects.low_lanes import LANE_FORMS
from weft.dialects.tir_kinds import TIR_FUNCTION
from weft.dialects.traversal import operations_in
from weft.passes.module_edits import symbol_uses
from weft.support.errors import remark

OURS: Final = frozenset(("te", "graph", "tir", "low", "sched"))
"""The dialects of weft's levels."""
STABLEHLO: Final = frozenset(("stablehlo", "chlo"))
_UPSTREAM: Final = STABLEHLO | {"affine", "bufferization", "gpu", "linalg", "memref", "scf", "tensor", "vector"}
_LANES: Final = frozenset(LANE_FORMS.values())
"""Ops of `arith` on vectors, which the parser replaces by these."""
_SCALARS: Final = frozenset(("arith", "math"))
_KNOWN: Final = OURS | _UPSTREAM | _SCALARS | {"builtin", "cf", "complex", "func"}


def upstream_dialects(function: Operation) -> frozenset[str]:
    """Upstream dialects in a function's body, including `tensor` for `arith` and `math` on tensors, and `vector` for
    vector accesses of `affine`. Empty for functions of weft's levels, and those that only compute scalars and call."""
    if not isinstance(function, FuncOp) or function.is_declaration:
        return frozenset()
    if any(name in function.attributes for name in (PARAMS, KERNEL, TIR_FUNCTION)):
        return frozenset()
    found: set[str] = set()
    for op in operations_in(function):
        dialect = op.name.partition(".")[0]
        if type(op) in _LANES:
            dialect = "vector"
        if dialect in OURS:
            return frozenset()
        if dialect in _UPSTREAM:
            found.add(dialect)
        elif dialect in _SCALARS and any(isinstance(operand.type, TensorType) for operand in op.operands):
            found.add("tensor")
        if isinstance(op, affine.VectorLoadOp | affine.VectorStoreOp):
            found.add("vector")
    return frozenset(found)


def is_foreign(op: Operation) -> bool:
    name = op_name(op)
    if op.name == UnregisteredOp.name or op.name.partition(".")[0] not in _KNOWN:
        return not any(allowed_at(level, name) for level in LEVELS)
    return False


def convertible(
    module: ModuleOp, name: str, functions: Sequence[FuncOp], *, in_blocks: bool = False, strict: bool = False
) -> list[FuncOp]:
    """The functions that the conversion `name` may change. The others get a remark, or with `strict` an error.

    A function of which an op is not understood stays byte for byte. So do functions connected to it by calls, and those
    to which a foreign op refers, since their signature may change. A conversion that moves foreign ops to opaque blocks
    (`in_blocks`) leaves only functions with one that has no block.
    """
    tolerant = {f for f in functions if in_blocks and not has_tensors(f)}
    left: dict[FuncOp, tuple[Operation, str]] = {}
    for function in functions:
        for op in operations_in(function.body):
            if not is_foreign(op):
                continue
            reason = _why_no_block(op) if function in tolerant else "is of no dialect that weft knows"
            if reason is not None:
                left[function] = op, f"'{op_name(op)}' {reason}"
                break
    fixed = [f for f in functions if f not in tolerant]
    names = {f.sym_name.data: f for f in fixed if f not in left}
    for symbol, user in symbol_uses(module) if names else ():
        if symbol in names and is_foreign(user):
            left.setdefault(names[symbol], (user, f"'{op_name(user)}' refers to it"))
    everything = [f for f in module.ops if isinstance(f, FuncOp) and not f.is_declaration] if fixed else []
    staying = [f for f in everything if f in left or any(map(is_foreign, operations_in(f.body)))]
    for function in called_together(staying, everything) if staying else ():
        if function in fixed and function not in left:
            left[function] = function, "it is connected by calls to a function that stays"
    for function, (op, reason) in left.items():
        remark(op, f"{name} leaves @{function.sym_name.data} as it is: {reason}", strict=strict)
    return [function for function in functions if function not in left]


def has_tensors(function: FuncOp) -> bool:
    types = (*function.function_type.inputs, *function.function_type.outputs)
    if any(isinstance(type_, TensorType) for type_ in types):
        return True
    return any(isinstance(value.type, TensorType) for op in operations_in(function.body) for value in op.results)


def tensor_functions(module: ModuleOp) -> list[FuncOp]:
    return [
        function
        for function in module.ops
        if isinstance(function, FuncOp)
        and not function.is_declaration
        and not any(op.name.partition(".")[0] in OURS for op in operations_in(function))
        and has_tensors(function)
    ]


def _why_no_block(op: Operation) -> str | None:
    if op.successors:
        return "branches to other blocks"
    for result in op.results:
        if result.first_use is not None and not isinstance(result.type, IndexType | IntegerType | AnyFloat):
            return f"gives other ops a value of type {result.type}, which no buffer holds"
    inner = next((one for region in op.regions for one in operations_in(region) if _is_converted(one)), None)
    return None if inner is None else f"contains {op_name(inner)}, to which it may give another meaning"


def _is_converted(op: Operation) -> bool:
    return op.name.partition(".")[0] in _UPSTREAM


def called_together(functions: Sequence[FuncOp], candidates: Sequence[FuncOp]) -> list[FuncOp]:
    """Candidates in `functions`, or connected to one by calls."""
    called = {f: {op.callee.string_value() for op in operations_in(f) if isinstance(op, CallOp)} for f in candidates}
    found = [f for f in candidates if f in functions]
    for one in found:  # `found` grows as callers and callees are found
        near = (f for f in candidates if one.sym_name.data in called[f] or f.sym_name.data in called[one])
        found += [f for f in near if f not in found]
    return found
