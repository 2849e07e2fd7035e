"""Legal ops per level, checked at its boundary (pass `verify-level`).

`.*` is a whole dialect. Other dialects' ops are registered:

    weft.register_operation(ClampOp, levels=("tir", "low"), effects=(), meaning=lambda op, x: min(max(x, 0.0), 1.0))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from xdsl.ir import Operation
from xdsl.traits import MemoryEffect

from weft.dialects.effects import READ, WRITE, state_effects
from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean

_FUNCTIONS = ("builtin.module", "func.func", "func.return")
_CALLS = ("func.call", "memref.global", "memref.get_global")
"""Functions over buffers call each other and use constants."""
_SCALARS = ("arith.*", "math.*")
_CONDITIONS = ("scf.if", "scf.yield")
_WHILE = ("scf.while", "scf.condition")

LEVELS: Mapping[str, tuple[str, ...]] = {
    "graph": (*_FUNCTIONS, *_SCALARS, "graph.*", "te.*", "tensor.*", "tir.*", "memref.*", "affine.apply", *_CONDITIONS),
    "te": (
        *_FUNCTIONS,
        "func.call",
        *_SCALARS,
        "te.*",
        "tir.assume",
        "tir.for",
        "memref.load",
        "memref.store",
        "tensor.extract",
        "tensor.dim",
        "affine.apply",
        *_CONDITIONS,
    ),
    "tir": (
        *_FUNCTIONS,
        *_SCALARS,
        *_CONDITIONS,
        *_WHILE,
        "tir.*",
        "low.access_ptr",
        "low.call_registered",
        "low.return_result",
        "low.stride",
        "low.tile_dot",
        "low.tile_fill",
        "low.tile_interleave",
        "low.tile_load",
        "low.tile_mma",
        "low.tile_product",
        "low.tile_store",
        "sched.*",
        "affine.apply",
        *_CALLS,
        "memref.alloc",
        "memref.cast",
        "memref.dim",
        "memref.load",
        "memref.reinterpret_cast",
        "memref.store",
        "memref.view",
    ),
    "low": (
        *_FUNCTIONS,
        *_SCALARS,
        *_CONDITIONS,
        *_WHILE,
        "low.*",
        "scf.for",
        *_CALLS,
        "memref.alloc",
        "memref.alloca",
        "memref.cast",
        "memref.dealloc",
        "memref.load",
        "memref.reinterpret_cast",
        "memref.store",
        "memref.view",
        "vector.*",
    ),
}
"""Legal ops by level. `graph` modules also contain the tensor functions that they call."""


Meaning: TypeAlias = Callable[..., Any]
_EFFECTS = {"read": READ, "write": WRITE}

_registered: dict[str, tuple[frozenset[str], Meaning | None]] = {}
"""Op -> levels and meaning."""


@checked
def register_operation(
    op: type[Operation] | str,
    *,
    levels: Collection[str],
    effects: Collection[str] | None = None,
    meaning: Meaning | None = None,
    override: bool = False,
) -> None:
    """Make an op of another dialect legal at `"graph"`, `"te"`, `"tir"` or `"low"`.

    `meaning` interprets it: a function of the op and its operands (numbers rounded to the type, lists for vectors,
    `interp.values.Buffer` for memrefs, arrays for tensors) that returns the result, or a tuple. `MemoryEffect` traits,
    or without these `effects`, state the effects: `"read"` and `"write"` of memref operands, or `()`. An op without
    either is opaque: not repeated, erased, reordered, or run by several threads or lanes. A user-supplied pass lowers
    it before a level where it is illegal.

    Raises `CompileError` for an unknown level or effect, effects of an op that has traits, ops of weft, and a
    registered name unless `override`.
    """
    name = op if isinstance(op, str) else op.name
    for level in levels:
        if level not in LEVELS:
            raise CompileError(f"operation '{name}': unknown level '{level}'{did_you_mean(level, LEVELS)}")
    if any(_is_listed(level, name) for level in LEVELS):
        raise CompileError(f"operation '{name}' is one that weft knows")
    if name in _registered and not override:
        raise CompileError(f"an operation '{name}' is registered already; override=True replaces it")
    for effect in effects or ():
        if effect not in _EFFECTS:
            raise CompileError(f"operation '{name}': unknown effect '{effect}'{did_you_mean(effect, _EFFECTS)}")
    if effects is not None and not isinstance(op, str) and any(isinstance(t, MemoryEffect) for t in op.traits.traits):
        raise CompileError(f"operation '{name}' has a trait that states its effects: give it no others")
    state_effects(name, None if effects is None else [_EFFECTS[effect] for effect in effects])
    _registered[name] = frozenset(levels), meaning


def unregister_operation(op: type[Operation] | str) -> None:
    """Raises `CompileError` for an unregistered op."""
    name = op if isinstance(op, str) else op.name
    if _registered.pop(name, None) is None:
        raise CompileError(f"no operation '{name}' is registered{did_you_mean(name, _registered)}")
    state_effects(name, None)


def registered_elsewhere(level: str) -> Collection[str]:
    """Registered ops that are legal at other levels only."""
    return {name for name, (levels, _) in _registered.items() if level not in levels}


def registered_meaning(op_name: str) -> Meaning | None:
    return _registered[op_name][1] if op_name in _registered else None


def allowed_at(level: str, op_name: str) -> bool:
    return _is_listed(level, op_name) or (op_name in _registered and level in _registered[op_name][0])


def _is_listed(level: str, op_name: str) -> bool:
    return any(
        op_name == pattern or (pattern.endswith(".*") and op_name.startswith(pattern[:-1])) for pattern in LEVELS[level]
    )
