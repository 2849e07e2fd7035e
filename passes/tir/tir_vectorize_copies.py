"""tir-vectorize-copies: serial loops that only fill or copy consecutive elements move vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.analysis.index import Index
from weft.dialects.element_types import bytes_of
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind, LoopKindAttr
from weft.dialects.traversal import operations_in
from weft.passes.tir.nest import (
    buffer_type,
    detached_ops,
    index_before,
    insert_before,
    is_defined_inside,
    remembered_ranges,
)
from weft.support.target import Target

_LEAST_LANES = 4
_CALL_VECTORS = 8
"""Vectors from which on elements that are all consecutive are left to calls of `memset` and `memcpy`, which LLVM
makes of scalar loops."""


@dataclass(frozen=True)
class VectorizeCopiesPass(ModulePass):
    """Split serial loops of static extent that only fill or copy by the lanes of a vector, and vectorize the inner one.

    ```mlir
    tir.for %j in 1024 {
      %b = memref.load %B[%k * 1024 + %j] : memref<1048576xf32>
      memref.store %b, %panel[%j floordiv 64 * 65536 + %k * 64 + %j mod 64] : memref<1048576xf32>
    }
    // becomes
    tir.for %o in 64 { tir.for %l in 16 vectorized {
      %b = memref.load %B[%k * 1024 + %o * 16 + %l] : memref<1048576xf32>
      memref.store %b, %panel[...] : memref<1048576xf32> } }
    ```
    LLVM would find the same, by passes that look at the whole module. Lanes are the most, up to a vector register, that
    divide the extent and for which every store, and every load that differs between lanes, goes to consecutive
    elements. A loop qualifies when nothing else is in it, when it stores to each buffer once, and reads none of those.
    Long runs that are consecutive from end to end stay as they are. Requires flat buffers (`tir-flatten`).
    """

    name = "tir-vectorize-copies"

    target: str = "llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        vector_bytes = Target.parse(self.target).vector_bytes
        for function in [f for f in op.ops if isinstance(f, FuncOp)]:
            for loop in [inner for inner in operations_in(function) if type(inner) is ForOp]:
                vectorize_copy(loop, vector_bytes)


def vectorize_copy(loop: ForOp, vector_bytes: int) -> None:
    """Vectorize one loop if it fills or copies by lanes."""
    extent = loop.extent
    if not isinstance(extent, int) or loop.kind.data is not LoopKind.SERIAL:
        return
    accesses = _moves(loop)
    if accesses is None:
        return
    places = [(Index.of(access.indices[0]), access) for access in accesses]
    ranges = remembered_ranges()
    for lanes in _lanes(extent, vector_bytes, accesses):
        if extent > lanes * _CALL_VECTORS and all(_steps(place, loop.induction_variable) for place, _ in places):
            return
        outer, inner = ForOp.around(extent // lanes), ForOp.around(lanes, kind=LoopKind.VECTORIZED)
        old, lane = loop.induction_variable, inner.induction_variable
        value = Index({outer.induction_variable: lanes, lane: 1})
        by_lanes = [(place.substitute({old: value}, ranges).simplified(ranges), access) for place, access in places]
        # What still depends on the old value was loaded, or multiplied.
        if all(_moves_by_lanes(access, place, lane) and not place.depends_on([old]) for place, access in by_lanes):
            _split(loop, outer, inner, value)
            return


def _moves(loop: ForOp) -> list[memref.LoadOp | memref.StoreOp] | None:
    """The accesses of a loop that stores what it loads, or what is there before it; None when it does more."""
    accesses: list[memref.LoadOp | memref.StoreOp] = []
    for op in loop.body.block.ops:
        kind = type(op)
        if kind is memref.LoadOp or kind is memref.StoreOp:
            accesses.append(op)  # pyright: ignore[reportArgumentType]
        elif kind is not arith.ConstantOp and not _is_index_arithmetic(op):
            return None
    stores = [access for access in accesses if isinstance(access, memref.StoreOp)]
    stored = {store.memref for store in stores}
    # A view may be of another buffer; parameters and allocations are apart.
    apart = all(isinstance(a.memref, BlockArgument) or isinstance(a.memref.owner, _ALLOCATIONS) for a in accesses)
    loaded = [access.memref for access in accesses if isinstance(access, memref.LoadOp)]
    is_move = all(_is_moved(store.value, loop) for store in stores)
    if not stores or not apart or not is_move or len(stored) < len(stores) or not stored.isdisjoint(loaded):
        return None
    return accesses


_ALLOCATIONS = (memref.AllocOp, memref.AllocaOp, memref.GetGlobalOp)


def _is_index_arithmetic(op: Operation) -> bool:
    computes = type(op) is affine.ApplyOp or op.name.startswith("arith.")
    return computes and len(op.results) == 1 and isinstance(op.results[0].type, IndexType)


def _is_moved(value: SSAValue, loop: ForOp) -> bool:
    return isinstance(value.owner, memref.LoadOp | arith.ConstantOp) or not is_defined_inside(value, loop)


def _lanes(extent: int, vector_bytes: int, accesses: list[memref.LoadOp | memref.StoreOp]) -> Iterator[int]:
    """The powers of two that divide the extent, from a full vector of the widest elements down."""
    lanes = vector_bytes // max(bytes_of(buffer_type(access.memref).element_type) for access in accesses)
    while lanes >= _LEAST_LANES:
        if extent % lanes == 0:
            yield lanes
        lanes //= 2


def _steps(place: Index, value: SSAValue) -> bool:
    """Whether a place moves by one element with a value, or not at all."""
    rest = place - Index({value: 1}) if place.coefficient(value) == 1 else place
    return not rest.mentions([value])


def _moves_by_lanes(access: memref.LoadOp | memref.StoreOp, place: Index, lane: SSAValue) -> bool:
    """Whether lanes access consecutive elements, or all load the same one."""
    stays = place.coefficient(lane) == 0
    return _steps(place, lane) and not (stays and isinstance(access, memref.StoreOp))


def _split(loop: ForOp, outer: ForOp, inner: ForOp, value: Index) -> None:
    """Put the body of a loop into two, of which the outer one is left out when it has one iteration."""
    if outer.extent == 1:
        loop.kind = LoopKindAttr(LoopKind.VECTORIZED)
        return
    hint = loop.induction_variable.name_hint or "i"
    outer.induction_variable.name_hint, inner.induction_variable.name_hint = f"{hint}0", f"{hint}1"
    outer.attributes.update(loop.attributes)
    body: list[Operation] = detached_ops(loop.body.block)
    inner.body.block.add_ops(body)
    outer.body.block.add_op(inner)
    insert_before(loop, [outer])
    inner.location = loop.location
    loop.induction_variable.replace_all_uses_with(index_before(value, body[0]))
    loop.detach()
    loop.erase()
