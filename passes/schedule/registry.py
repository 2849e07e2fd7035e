"""Where schedule primitives are defined."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from weft.dialects.sched import PRIMITIVE_STEPS
from weft.passes.schedule.primitive import Primitive
from weft.support.errors import InternalError

_FILES: Mapping[str, str] = {
    "vectorize": "parallel",
    "unroll": "parallel",
    "unannotate": "annotate",
    "reverse_compute_at": "compute_at",
    "reverse_compute_inline": "compute_inline",
    "fuse_reduction_epilogue": "compute_inline",
    "read_at": "cache_read",
    "cache_inplace": "cache_read",
    "write_at": "cache_write",
    "reindex_cache_read": "reindex",
    "reindex_cache_write": "reindex",
}
"""The modules that are not named as the primitive."""
PRIMITIVES: Mapping[str, str] = {name: _FILES.get(name, name) for name in PRIMITIVE_STEPS}
"""Name -> module in this folder. The step is `sched.<name>`, the pass `tir-<name with dashes>`."""


@cache
def primitive_class(name: str) -> type[Primitive]:
    """The class of a primitive; `InternalError` for a name that is not in the table."""
    if name not in PRIMITIVES:
        raise InternalError(f"no schedule primitive is called {name!r}")
    module = import_module(f"weft.passes.schedule.{PRIMITIVES[name]}")
    found: type[Primitive] = getattr(module, PRIMITIVE_STEPS[name].class_name)
    return found
