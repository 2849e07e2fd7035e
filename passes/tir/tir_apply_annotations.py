"""tir-apply-annotations: annotations of automatic schedulers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from weft.analysis.block_scopes import child_blocks, holds_one_nest, loops_around
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import (
    MAX_PARALLEL,
    MAX_UNROLL_OF_LOOP,
    MAX_VECTORIZE,
    UNROLL_ANNOTATIONS,
    LoopKind,
)
from weft.dialects.traversal import operations_of
from weft.passes.schedule.fuse import Fuse
from weft.passes.schedule.parallel import Parallel, Unroll, Vectorize
from weft.passes.schedule.primitive import Primitive
from weft.passes.schedule.split import Split
from weft.passes.tir.tir_pass import TirPass
from weft.support.errors import ScheduleError
from weft.support.statistics import Statistic

_CHANGED: Final = Statistic(
    "tir-apply-annotations", "loops-changed", "loops that annotations made parallel or the like"
)


@dataclass(frozen=True)
class ApplyAnnotationsPass(TirPass):
    """Apply the annotations of automatic schedulers on functions (TVM: root blocks) and loops, if legal.

    - `meta_schedule.parallel = n`: fuse independent outer loops until iterations exceed `n`; make the result parallel.
    - `meta_schedule.vectorize = n`: fuse inner loops of at most `n` iterations in total; vectorize the result. If both
      annotations select a loop, all are fused and split by `n`.
    - `meta_schedule.unroll_explicit = n` (or `unroll_implicit`), and `pragma_auto_unroll_max_step = n` of a loop:
      unroll inner loops up to `n` copies of their body.

    GPUs, which take threads from bound loops, only unroll.

    ```mlir
    func.func @f(%A: memref<64x8xf32>) attributes {meta_schedule.parallel = 16, meta_schedule.vectorize = 8} {
      %zero = arith.constant 0.0 : f32
      tir.for %i in 64 { tir.for %j in 8 {
        tir.block "B" iters(%vi: spatial<64>, %vj: spatial<8>) = [%i, %j] {
          memref.store %zero, %A[%vi, %vj] : memref<64x8xf32>
        }
      } }
      func.return
    }
    // becomes
    func.func @f(%A: memref<64x8xf32>) {
      %zero = arith.constant 0.0 : f32
      tir.for %i in 64 parallel { tir.for %j in 8 vectorized {
        tir.block "B" iters(%vi: spatial<64>, %vj: spatial<8>) = [%i, %j] {
          memref.store %zero, %A[%vi, %vj] : memref<64x8xf32>
        }
      } }
      func.return
    }
    ```

    Requires: functions of block loops (tir).

    Leaves: the same, without these annotations.
    """

    name = "tir-apply-annotations"

    on_device: bool = False
    """Whether the loops become kernels of a GPU."""

    def rewrite(self, function: FuncOp) -> None:
        parallel, lanes = _taken(function, MAX_PARALLEL), _taken(function, MAX_VECTORIZE)
        steps = max(_taken(function, key) for key in UNROLL_ANNOTATIONS)
        for block in child_blocks(function) if parallel or lanes or steps else ():
            if not self.on_device:
                _parallelize_and_vectorize(block, parallel, lanes)
            loops = loops_around(block)
            if steps and loops and MAX_UNROLL_OF_LOOP not in loops[0].attributes:
                loops[0].attributes[MAX_UNROLL_OF_LOOP] = IntegerAttr(steps, 64)
        for loop in operations_of(function, ForOp):
            if (limit := _taken(loop, MAX_UNROLL_OF_LOOP)) > 0:
                _unroll(loop, limit)


def _taken(op: Operation, key: str) -> int:
    value = op.attributes.get(key)
    if not isinstance(value, IntegerAttr):
        return 0
    del op.attributes[key]
    return value.value.data


def _parallelize_and_vectorize(block: BlockOp, parallel: int, lanes: int) -> None:
    loops = loops_around(block)
    outer = _outer_loops(loops, parallel) if parallel > 0 else []
    inner = _inner_loops(loops, lanes) if lanes > 1 else []
    if inner and prod(map(_extent, inner)) == lanes:
        outer = outer[: len(loops) - len(inner)]
    if len(outer) + len(inner) > len(loops):
        fused = _fused(outer)
        halves = None if fused is None else _applied(Split(fused, (0, lanes)))
        if halves is None:
            _apply_to_all(Parallel, outer[:1])
            return
        outer, inner = halves[:1], halves[1:]
    for loops_of_kind, kind in ((inner, Vectorize), (outer, Parallel)):
        fused = _fused(loops_of_kind)
        _apply_to_all(kind, [] if fused is None else [fused])


def _outer_loops(loops: list[ForOp], limit: int) -> list[ForOp]:
    """Outer loops, up to the first with which iterations exceed `limit`."""
    found: list[ForOp] = []
    for loop in loops:
        if not _is_free(loop, Parallel(loop)):
            break
        found.append(loop)
        if prod(_extent(loop) for loop in found) > limit or not holds_one_nest(loop):
            break
    return found if prod(_extent(loop) for loop in found) > 1 else []


def _inner_loops(loops: list[ForOp], limit: int) -> list[ForOp]:
    found: list[ForOp] = []
    for loop in reversed(loops):
        chained = not found or holds_one_nest(loop)
        if not chained or not _is_free(loop, Vectorize(loop)) or prod(map(_extent, (loop, *found))) > limit:
            break
        found.insert(0, loop)
    return found if prod(_extent(loop) for loop in found) > 1 else []


def _is_free(loop: ForOp, change: Primitive) -> bool:
    if loop.kind.data is not LoopKind.SERIAL or not isinstance(loop.extent, int):
        return False
    try:
        change.plan()
    except ScheduleError:
        return False
    return True


def _extent(loop: ForOp) -> int:
    return loop.extent if isinstance(loop.extent, int) else 0


def _fused(loops: list[ForOp]) -> ForOp | None:
    found = loops if len(loops) < 2 else _applied(Fuse(tuple(loops)))
    return found[0] if found else None


def _applied(change: Primitive) -> list[ForOp] | None:
    try:
        return [op for op in change.apply() if isinstance(op, ForOp)]
    except ScheduleError:
        return None


def _apply_to_all(kind: type[Parallel | Vectorize], loops: Iterable[ForOp]) -> None:
    for loop in loops:
        _CHANGED.add(_applied(kind(loop)) is not None)


def _unroll(loop: ForOp, limit: int) -> int | None:
    """Up to `limit` copies, innermost first. Returns the copies of blocks per outer iteration; None if a loop
    remains."""
    inside = [_unroll(op, limit) for op in _next_loops(loop)]
    own = sum(isinstance(op, BlockOp) for op in loop.body.block.ops)
    if any(copies is None for copies in inside):
        return None
    copies = own + sum(copies or 0 for copies in inside)
    if loop.kind.data is LoopKind.VECTORIZED:
        return copies
    if loop.kind.data is LoopKind.UNROLLED:
        return copies * _extent(loop)
    if loop.kind.data is not LoopKind.SERIAL or not isinstance(loop.extent, int) or copies * loop.extent > limit:
        return None
    if _applied(Unroll(loop)) is None:
        return None
    _CHANGED.add(1)
    return copies * loop.extent


def _next_loops(op: Operation) -> list[ForOp]:
    found: list[ForOp] = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                found.extend([inner] if isinstance(inner, ForOp) else _next_loops(inner))
    return found
