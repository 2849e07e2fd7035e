"""tir-distribute-virtual-threads: share uniform work of virtual threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_scopes import buffers_loaded_by, buffers_written
from weft.analysis.threads import is_shared
from weft.dialects.aliasing import with_overlapping
from weft.dialects.effects import only_computes, opaque_op
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import VIRTUAL_THREADS, LoopKind
from weft.dialects.traversal import copies_of_sources, copy_of, operations_in, sources_in
from weft.passes.schedule.nest_builders import empty_copy
from weft.passes.tir.tir_flatten import allocate_several
from weft.passes.tir.tir_pass import TirPass


@dataclass(frozen=True)
class DistributeVirtualThreadsPass(TirPass):
    """Move loops over virtual threads inwards, past the statements that fill shared memory for all of them.

    ```mlir
    tir.for %v in 2 unrolled {
      %L = memref.alloc() : memref<4xf32, "local">
      INIT(%v, %L)
      tir.for %k in 8 { FETCH(%k) into shared memory;  USE(%v, %k, %L) }
      STORE(%v, %L) }
    // becomes
    %L = memref.alloc() : memref<2x4xf32, "local">
    tir.for %v in 2 unrolled { INIT(%v, %L[%v]) }
    tir.for %k in 8 { FETCH(%k) into shared memory;  tir.for %v in 2 unrolled { USE(%v, %k, %L[%v]) } }
    tir.for %v in 2 unrolled { STORE(%v, %L[%v]) }
    ```
    The loop may be split between any statements, since `bind` requires independent iterations. It stays if nothing is
    shared, or the shared work depends on the virtual thread.

    Requires: kernels without blocks (`tir-lower-blocks`), with temporaries of one virtual thread
    (`tir-compact-buffers`).

    Leaves: the same; loops over virtual threads are inside the shared work.
    """

    name = "tir-distribute-virtual-threads"

    def rewrite(self, function: FuncOp) -> None:
        for loop in operations_in(function, inner_first=True):
            if isinstance(loop, ForOp) and VIRTUAL_THREADS in loop.attributes and loop.parent is not None:
                _distribute(loop)


@dataclass
class _Part:
    ops: list[Operation] = field(default_factory=list[Operation])
    together: bool = False
    loop: ForOp | None = None
    parts: list[_Part] = field(default_factory=list["_Part"])


def _distribute(loop: ForOp) -> None:
    if not isinstance(loop.extent, int) or not any(_fills_shared(op) for op in loop.body.walk()):
        return
    if opaque_op(loop) is not None:
        return
    allocations: list[memref.AllocOp] = []
    repeatable = _repeatable_ops(loop)
    parts = _parts(loop.body.block, loop, allocations, repeatable)
    if parts is None or not _is_legal(parts):
        return
    for alloc in allocations:
        _expand(alloc, loop)
    new = _Recomputation(loop, repeatable).build(parts, {})
    Rewriter.insert_op(new, InsertPoint.before(loop))
    Rewriter.erase_op(loop)


def _fills_shared(op: Operation) -> bool:
    return isinstance(op, memref.StoreOp) and is_shared(op.memref)


def _parts(
    block: Block, loop: ForOp, allocations: list[memref.AllocOp], repeatable: set[Operation]
) -> list[_Part] | None:
    parts: list[_Part] = []
    for op in block.ops:
        if isinstance(op, memref.AllocOp):
            if op.dynamic_sizes:
                return None
            allocations.append(op)
        elif op in repeatable:
            continue  # recomputed in each part
        elif not any(_fills_shared(inner) for inner in op.walk()):
            if not parts or parts[-1].together or parts[-1].loop is not None:
                parts.append(_Part())
            parts[-1].ops.append(op)
        elif _is_alike(op, loop):
            parts.append(_Part([op], together=True))
        elif isinstance(op, ForOp) and op.kind.data is LoopKind.SERIAL and not _depends(op.operands, loop):
            inner = _parts(op.body.block, loop, allocations, repeatable)
            if inner is None:
                return None
            parts.append(_Part(loop=op, parts=inner))
        else:
            return None
    return parts


def _repeatable_ops(loop: ForOp) -> set[Operation]:
    written = with_overlapping(buffers_written(loop))
    found: set[Operation] = set()
    for op in loop.body.walk():
        sources = [operand.op for operand in op.operands if isinstance(operand, OpResult)]
        if (
            only_computes(op)
            and written.isdisjoint(buffers_loaded_by(op))
            and all(source in found for source in sources if loop.is_ancestor(source))
        ):
            found.add(op)
    return found


def _is_alike(op: Operation, loop: ForOp) -> bool:
    stores = [inner for inner in op.walk() if isinstance(inner, memref.StoreOp)]
    if not all(is_shared(store.memref) for store in stores):
        return False
    return not any(_depends(inner.operands, loop) for inner in op.walk())


def _depends(values: Sequence[SSAValue], loop: ForOp) -> bool:
    return loop.induction_variable in sources_in(values)


def _is_legal(parts: Sequence[_Part]) -> bool:
    """Parts share only recomputable values, and common parts read no buffer that virtual threads write."""
    single = _flat(parts)
    if not any(part.together for part in single):
        return False
    written = with_overlapping(
        op.memref
        for part in single
        if not part.together
        for own in part.ops
        for op in own.walk()
        if isinstance(op, memref.StoreOp)
    )
    for part in single:
        mine = {inner for op in part.ops for inner in op.walk()}
        if part.together and any(isinstance(op, memref.LoadOp) and op.memref in written for op in mine):
            return False
        if any(use.operation not in mine for op in part.ops for result in op.results for use in result.uses):
            return False
    return True


def _flat(parts: Sequence[_Part]) -> list[_Part]:
    return [single for part in parts for single in (_flat(part.parts) if part.loop is not None else [part])]


def _expand(alloc: memref.AllocOp, loop: ForOp) -> None:
    if is_shared(alloc.memref):
        alloc.detach()
        Rewriter.insert_op(alloc, InsertPoint.before(loop))
        return
    allocate_several(alloc, loop.extent if isinstance(loop.extent, int) else 1, loop, lambda _: loop.induction_variable)


@dataclass
class _Recomputation:
    loop: ForOp
    repeatable: set[Operation]

    def build(self, parts: Sequence[_Part], mapping: dict[SSAValue, SSAValue]) -> list[Operation]:
        result: list[Operation] = []
        for part in parts:
            if part.loop is not None:
                extent = part.loop.extent
                if isinstance(extent, SSAValue):
                    result += copies_of_sources([extent], mapping, self._is_repeated)
                    extent = mapping.get(extent, extent)
                copy, known = _empty_copy(part.loop, extent, mapping)
                copy.body.block.add_ops(self.build(part.parts, known))
                result.append(copy)
            elif part.together:
                result += self._copies(part.ops, dict(mapping))
            else:
                copy, known = _empty_copy(self.loop, self.loop.extent, mapping)
                copy.body.block.add_ops(self._copies(part.ops, known))
                result.append(copy)
        return result

    def _copies(self, ops: Sequence[Operation], mapping: dict[SSAValue, SSAValue]) -> list[Operation]:
        result: list[Operation] = []
        for op in ops:
            for inner in op.walk():
                result += copies_of_sources(inner.operands, mapping, self._is_repeated)
            result.append(copy_of(op, mapping))
        return result

    def _is_repeated(self, op: Operation) -> bool:
        if op not in self.repeatable:
            return False
        parent = op.parent_op()
        while isinstance(parent, ForOp) and parent is not self.loop:
            if not any(_fills_shared(inner) for inner in parent.walk()) or _is_alike(parent, self.loop):
                return False
            parent = parent.parent_op()
        return parent is self.loop


def _empty_copy(
    loop: ForOp, extent: int | SSAValue, mapping: dict[SSAValue, SSAValue]
) -> tuple[ForOp, dict[SSAValue, SSAValue]]:
    copy = empty_copy(loop, extent, loop.induction_variable.name_hint)
    return copy, {**mapping, loop.induction_variable: copy.induction_variable}
