"""Custom calls of LAPACK, as JAX makes them on CPUs, as formulas over operators of `te.ops`.

Batch axes are first; `operand_layouts` do not matter. Pivots count from 1. `info` is LAPACK's for `potrf`, otherwise 0:
JAX reads only its sign, negative for wrong arguments.

Source: handlers of XLA, jaxlib's `lapack_kernels.h`, `jax/_src/lax/linalg.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr

from weft.dialects.stablehlo import CustomCallOp
from weft.support.errors import CompileError
from weft.texpr.stablehlo import Apply
from weft.texpr.stablehlo_tensors import Formula, Value


def _letter(op: CustomCallOp, key: str) -> str:
    """`uplo` is "L" or "U"."""
    config = op.attributes.get("mhlo.backend_config")
    value = config.data.get(key) if isinstance(config, DictionaryAttr) else None
    if not isinstance(value, IntegerAttr):
        raise CompileError(f"@{op.call_target_name.data} has an integer '{key}' in mhlo.backend_config, got {config}")
    return chr(value.value.data)


def _turned(apply: Apply, matrix: Value) -> Value:
    return apply("swapaxes", matrix, -1, -2)


def _success(apply: Apply, matrix: Value) -> Value:
    return apply("full", matrix.shape[:-2], 0, dtype="int32")


def _potrf(apply: Apply, op: CustomCallOp, matrix: Value) -> list[Value]:
    is_lower = _letter(op, "uplo") == "L"
    factor, minor = apply("cholesky", matrix if is_lower else _turned(apply, matrix))
    return [factor if is_lower else _turned(apply, factor), apply("cast", minor, dtype="int32")]


def _getrf(apply: Apply, op: CustomCallOp, matrix: Value) -> list[Value]:
    factors, pivots = apply("lu", matrix)
    return [factors, apply("cast", apply("add", pivots, 1), dtype="int32"), _success(apply, matrix)]


def _trsm(apply: Apply, op: CustomCallOp, matrix: Value, given: Value) -> Value:
    is_left, is_lower = _letter(op, "side") == "L", _letter(op, "uplo") == "L"
    if _letter(op, "trans_x") == "C" and op.call_target_name.data.startswith(("lapack_c", "lapack_z")):
        matrix = apply("conjugate", matrix)
    if is_left == (_letter(op, "trans_x") != "N"):  # the solution of X op(A) = B is that of op(A)^T X^T = B^T
        matrix, is_lower = _turned(apply, matrix), not is_lower
    given = given if is_left else _turned(apply, given)
    found = apply("solve_triangular", matrix, given, lower=is_lower, unit_diagonal=_letter(op, "diag") == "U")
    return found if is_left else _turned(apply, found)


def _geqrf(apply: Apply, op: CustomCallOp, matrix: Value) -> list[Value]:
    return list(apply("householder_factors", matrix))


def _orgqr(apply: Apply, op: CustomCallOp, vectors: Value, tau: Value) -> Value:
    return apply("householder_product", vectors, tau)


def _syevd(apply: Apply, op: CustomCallOp, matrix: Value) -> list[Value]:
    values, vectors = apply("eigh", matrix, lower=_letter(op, "uplo") == "L")
    return [vectors, values, _success(apply, matrix)]


def _gesdd(apply: Apply, op: CustomCallOp, matrix: Value) -> list[Value]:
    """The first result, the operand's memory, is unspecified, as are the vectors in mode "N", with the types of mode
    "A".
    """
    left, values, right = apply("svd", matrix, full_matrices=_letter(op, "mode") != "S")
    return [matrix, values, left, right, _success(apply, matrix)]


_ROUTINES: Final[Mapping[str, tuple[Formula, int]]] = {
    "geqrf": (_geqrf, 1),
    "gesdd": (_gesdd, 1),
    "getrf": (_getrf, 1),
    "orgqr": (_orgqr, 2),
    "potrf": (_potrf, 1),
    "syevd": (_syevd, 1),
    "trsm": (_trsm, 2),
}
"""Name of a routine without its type -> its formula and the number of its operands, which sizes of results follow."""
_COMPLEX: Final = ("potrf", "trsm")
"""The routines that take complex matrices; their formulas apply `conjugate` too."""
LAPACK_CALLS: Final = {
    f"lapack_{kind}{name}_ffi": found
    for name, found in _ROUTINES.items()
    for kind in ("sdcz" if name in _COMPLEX else "sd")
}
"""Target of a custom call -> formula and number of operands."""


def lapack_results(apply: Apply, op: CustomCallOp, *operands: Value) -> Value:
    formula, count = LAPACK_CALLS[op.call_target_name.data]
    if len(operands) < count:
        raise CompileError(f"@{op.call_target_name.data} needs more operands: {count}, got {len(operands)}")
    return formula(apply, op, *operands[:count])
