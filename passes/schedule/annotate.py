"""Annotations of loops, blocks and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, Union

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.primitive import Plan, Primitive
from weft.support.errors import did_you_mean

Annotation: TypeAlias = Union[int, float, str, bool, Sequence["Annotation"], Mapping[str, "Annotation"]]  # noqa: UP007 - recursive
_OWN = ("tir.", "low.")


def why_not_key(key: str) -> str | None:
    if not key:
        return "the key is empty"
    if key.startswith(_OWN):
        return f"'{key}' has a prefix that is reserved for weft: {' or '.join(_OWN)}"
    return None


@dataclass(frozen=True)
class AnnotatePlan(Plan):
    target: BlockOp | ForOp | FuncOp
    key: str
    value: Attribute | None

    def rewrite(self) -> tuple[Operation, ...]:
        if self.value is None:
            del self.target.attributes[self.key]
        else:
            self.target.attributes[self.key] = self.value
        return ()


@dataclass(frozen=True)
class Annotate(Primitive):
    """Annotate a loop, block or function: a key with an integer, float, string, bool, list or dict. Replaces an older
    value.

    Requirements:
    1. the key is not empty and has no reserved prefix: `tir.` or `low.`

    `split` and `tile` keep annotations on the outermost new loop, `fuse` and `merge` join them (the first loop with a
    key decides), `loop_partition` copies them. Annotations of functions, and `pragma_auto_unroll_max_step` of loops,
    make loops parallel, vectorized and unrolled (`tir-apply-annotations`). Lowering reads `reassociate`, `interior`,
    `pipeline_stages` of loops and, on CPUs, two annotations of blocks:

    - `prefetch`: `[["read", 0, [1, 0]]]` prefetches the first read buffer for the instance with the first iterator
      advanced by one. A fourth element names another block, whose accesses are prefetched.
    - `nontemporal`: `[0]` stores vectors of the first written buffer with non-temporal stores, if the CPU has them.

    ```mlir
    tir.for %i in 128 { ... }
    // annotate %i {key = "pragma_auto_unroll_max_step", value = 16}
    tir.for %i in 128 attributes {pragma_auto_unroll_max_step = 16 : i64} { ... }
    ```
    """

    target: BlockOp | ForOp | FuncOp
    key: str
    value: Attribute

    def plan(self) -> AnnotatePlan:
        self.require(1, why_not_key(self.key), self.target)
        return AnnotatePlan(self.target, self.key, self.value)


@dataclass(frozen=True)
class Unannotate(Primitive):
    """Remove an annotation of a loop or block.

    Requirements:
    1. the key is not empty and has no reserved prefix: `tir.` or `low.`
    2. there is such an annotation

    ```mlir
    tir.for %i in 128 attributes {note = 16 : i64} { ... }
    // unannotate %i {key = "note"}
    tir.for %i in 128 { ... }
    ```
    """

    target: BlockOp | ForOp | FuncOp
    key: str

    def plan(self) -> AnnotatePlan:
        self.require(1, why_not_key(self.key), self.target)
        if self.key not in self.target.attributes:
            known = [key for key in self.target.attributes if why_not_key(key) is None]
            hint = did_you_mean(self.key, known) or ": it has no annotations"
            self.refuse(2, f"there is no '{self.key}'{hint}", self.target)
        return AnnotatePlan(self.target, self.key, None)
