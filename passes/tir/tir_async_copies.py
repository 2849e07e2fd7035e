"""tir-async-copies: asynchronous copies in pipelined loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import FixedBitwidthType, VectorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.index import Index
from weft.analysis.threads import is_shared
from weft.dialects.effects import is_pure
from weft.dialects.low_kernel import AsyncCommitOp, AsyncCopyOp, AsyncWaitOp, BarrierOp
from weft.dialects.tir_kinds import ASYNC
from weft.passes.index_builders import erase_if_unused, index_before, insert_before
from weft.passes.tir.tir_pass import LOCAL, KernelPass, buffer_type, range_of

_SIZES = (16, 8, 4)


@dataclass(frozen=True)
class AsyncCopiesPass(KernelPass):
    """Turn loads from device memory that are only stored to buffers of pipelined loops into `low.async_copy`.

    ```mlir
    %v = vector.load %A[%i] : memref<4096xf32>, vector<4xf32>
    vector.store %v, %S[%j] : memref<512xf32, "shared">, vector<4xf32>
    // becomes
    low.async_copy %A[%i] to %S[%j] bytes 16 : memref<4096xf32>, memref<512xf32, "shared">
    ```
    Copies have 16, 8 or 4 bytes; both addresses are provably multiples. Other accesses stay.

    Requires: kernels over flat buffers (`tir-flatten`), after vectorization (`tir-lower-vectorized`).

    Leaves: the same, with `low.async_copy`.
    """

    name = "tir-async-copies"

    def rewrite(self, function: FuncOp) -> None:
        for alloca in [op for op in function.walk() if isinstance(op, memref.AllocaOp) and ASYNC in op.attributes]:
            for use in list(alloca.memref.uses):
                if isinstance(use.operation, memref.StoreOp | vector.StoreOp) and _is_committed(use.operation):
                    _copy(use.operation)


def _is_committed(op: Operation) -> bool:
    inner: Operation | None = op
    while inner is not None and not isinstance(inner, FuncOp):
        following = inner.next_op
        while following is not None:
            if isinstance(following, AsyncCommitOp):
                return True
            if isinstance(following, BarrierOp | AsyncWaitOp):
                return False
            following = following.next_op
        inner = inner.parent_op()
    return False


def _copy(store: memref.StoreOp | vector.StoreOp) -> None:
    value = store.value if isinstance(store, memref.StoreOp) else store.vector
    load = value.op if isinstance(value, OpResult) and value.has_one_use() else None
    if not isinstance(load, memref.LoadOp | vector.LoadOp) or load.parent is not store.parent:
        return
    source, target = _buffer(load), _buffer(store)
    if is_shared(source) or buffer_type(source).memory_space == LOCAL or not _nothing_between(load, store):
        return
    element = buffer_type(target).element_type
    if not isinstance(element, FixedBitwidthType) or element.bitwidth % 8:
        return
    lanes = value.type.get_shape()[0] if isinstance(value.type, VectorType) else 1
    places = (Index.of(load.indices[0]).simplified(range_of), Index.of(store.indices[0]).simplified(range_of))
    width = _width(places, lanes, element.bitwidth // 8)
    if width is None:
        return
    copies = [
        AsyncCopyOp(
            source,
            index_before(places[0] + lane, store),
            target,
            index_before(places[1] + lane, store),
            width * element.bitwidth // 8,
        )
        for lane in range(0, lanes, width)
    ]
    insert_before(store, copies)
    unused = [operand for op in (load, store) for operand in op.operands if operand.owner is not load]
    for op in (store, load):
        Rewriter.erase_op(op)
    erase_if_unused(unused)


def _buffer(op: memref.LoadOp | memref.StoreOp | vector.LoadOp | vector.StoreOp) -> SSAValue:
    return op.base if isinstance(op, vector.LoadOp | vector.StoreOp) else op.memref


def _nothing_between(first: Operation, second: Operation) -> bool:
    op = first.next_op
    while op is not None and op is not second:
        if not is_pure(op):
            return False
        op = op.next_op
    return op is second


def _width(places: Sequence[Index], lanes: int, size: int) -> int | None:
    for total in _SIZES:
        width = total // size
        if total % size or width > lanes or lanes % width:
            continue
        if all(index % width == Index({}) for index in places):
            return width
    return None
