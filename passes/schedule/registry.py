"""Where schedule primitives are defined."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from weft.dialects.sched_steps import PRIMITIVE_STEPS
from weft.passes.schedule.primitive import Primitive
from weft.support.errors import InternalError

_FILES: Mapping[str, str] = {
    "split": "loop_structure",
    "fuse": "loop_structure",
    "tile": "loop_structure",
    "parallel": "loop_kinds",
    "vectorize": "loop_kinds",
    "unroll": "loop_kinds",
    "add_unit_loop": "iterators",
    "reorder_block_iter_var": "iterators",
    "annotate": "annotations",
    "unannotate": "annotations",
    "compute_at": "compute_location",
    "reverse_compute_at": "compute_location",
    "compute_inline": "inlining",
    "reverse_compute_inline": "inlining",
    "decompose_reduction": "reduction",
    "reindex_cache_read": "reindex",
    "reindex_cache_write": "reindex",
    "transform_layout": "layouts",
    "rolling_buffer": "rolling",
}
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
