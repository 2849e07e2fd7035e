"""Which ops may stand at which level: the contract that is checked at every level boundary (pass `verify-level`).

Names that end in `.*` admit a whole dialect.
"""

from __future__ import annotations

from collections.abc import Mapping

_FUNCTIONS = ("builtin.module", "func.func", "func.return")
_CALLS = ("func.call", "memref.global", "memref.get_global")
"""Functions over buffers call each other and read constants of the module."""
_SCALARS = ("arith.*", "math.*")
_CONDITIONS = ("scf.if", "scf.yield")

LEVELS: Mapping[str, tuple[str, ...]] = {
    "graph": (*_FUNCTIONS, *_SCALARS, "graph.*", "te.*", "tensor.*", "tir.*", "memref.*", "affine.apply", *_CONDITIONS),
    "te": (
        *_FUNCTIONS,
        "func.call",
        *_SCALARS,
        "te.*",
        "tir.assume",
        "tensor.extract",
        "tensor.dim",
        "affine.apply",
        *_CONDITIONS,
    ),
    "tir": (
        *_FUNCTIONS,
        *_SCALARS,
        *_CONDITIONS,
        "tir.*",
        "low.access_ptr",
        "low.stride",
        "low.tile_dot",
        "low.tile_fill",
        "low.tile_interleave",
        "low.tile_load",
        "low.tile_mma",
        "low.tile_store",
        "sched.*",
        "affine.apply",
        *_CALLS,
        "memref.alloc",
        "memref.cast",
        "memref.dim",
        "memref.load",
        "memref.store",
    ),
    "low": (
        *_FUNCTIONS,
        *_SCALARS,
        *_CONDITIONS,
        "low.*",
        "scf.for",
        *_CALLS,
        "memref.alloc",
        "memref.alloca",
        "memref.cast",
        "memref.dealloc",
        "memref.load",
        "memref.store",
        "vector.*",
    ),
}
"""Level -> names of the ops that may stand there. `graph` modules also hold the tensor functions that they call."""


def allowed_at(level: str, op_name: str) -> bool:
    """Whether an op named `op_name` may stand at `level`."""
    return any(
        op_name == pattern or (pattern.endswith(".*") and op_name.startswith(pattern[:-1])) for pattern in LEVELS[level]
    )
