"""tir-vectorize-serial: vectorize serial loops that fill, copy or reduce contiguous elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.index import Index
from weft.dialects.aliasing import may_overlap, with_overlapping
from weft.dialects.combiners import COMBINATIONS
from weft.dialects.effects import underlying
from weft.dialects.element_types import bytes_of
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind, LoopKindAttr
from weft.dialects.traversal import operations_in
from weft.passes.index_ops import detached_ops, index_before, insert_before
from weft.passes.tir.nest import FunctionPass, buffer_type, remembered_ranges
from weft.support.statistics import Statistic
from weft.support.target import Target

_VECTORIZED: Final = Statistic("tir-vectorize-serial", "loops-vectorized", "serial loops that have become vectors")
_Access: TypeAlias = "memref.LoadOp | memref.StoreOp"
_LEAST_LANES = 4
_CALL_VECTORS = 8
"""Vectors from which on elements that are all consecutive are left to calls of `memset` and `memcpy`, which LLVM
makes of scalar loops."""
_COMBINED_VECTORS = 4
"""Vectors that are combined at a time, as LLVM does."""
_ALLOCATIONS = (memref.AllocOp, memref.AllocaOp, memref.GetGlobalOp)
_COMBINED_FREELY = frozenset(COMBINATIONS) - {arith.AddfOp, arith.MulfOp}


@dataclass(frozen=True)
class VectorizeSerialPass(FunctionPass):
    """Split serial loops of static extent that only move or combine elements by lanes, and vectorize the inner one.

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
    Long runs that are consecutive from end to end stay as they are.

    So does a loop that combines elements into one place in any order, as `m[0] = max(m[0], x[%j])`; it takes several
    vectors at a time, which need not wait for each other. Sums of floats keep their order.

    Requires: flat buffers (`tir-flatten`).

    Leaves: loops of kind `vectorized` where serial ones only move or combine elements.
    """

    name = "tir-vectorize-serial"

    target: str = "llvm"
    """The target, as `weft.build` takes it: it states the size of a vector register."""

    def rewrite(self, function: FuncOp) -> None:
        vector_bytes = Target.parse(self.target).vector_bytes
        for loop in [op for op in operations_in(function) if type(op) is ForOp]:
            if loop.kind.data is LoopKind.SERIAL and isinstance(loop.extent, int):
                vectorize_serial(loop, loop.extent, vector_bytes)


def vectorize_serial(loop: ForOp, extent: int, vector_bytes: int) -> None:
    """Vectorize one loop if it moves or combines elements by lanes."""
    accesses = _accesses(loop)
    if accesses is None:
        return
    stores = [access for access in accesses if isinstance(access, memref.StoreOp)]
    loads = [access for access in accesses if isinstance(access, memref.LoadOp)]
    combined = _combined(loop, stores, loads)
    if combined is not None:
        accesses, vector_bytes = [combined], vector_bytes * _COMBINED_VECTORS
    elif not _are_moves(loop, stores, loads):
        return
    places = [(Index.of(access.indices[0]), access) for access in accesses]
    ranges = remembered_ranges()
    for lanes in _lanes(extent, vector_bytes, accesses):
        if (
            combined is None
            and extent > lanes * _CALL_VECTORS
            and all(_steps(place, loop.induction_variable) for place, _ in places)
        ):
            return
        outer, inner = ForOp.empty(extent // lanes), ForOp.empty(lanes, kind=LoopKind.VECTORIZED)
        old, lane = loop.induction_variable, inner.induction_variable
        value = Index({outer.induction_variable: lanes, lane: 1})
        by_lanes = [(place.substitute({old: value}, ranges).simplified(ranges), access) for place, access in places]
        # What still depends on the old value was loaded, or multiplied.
        if all(_moves_by_lanes(access, place, lane) and not place.depends_on([old]) for place, access in by_lanes):
            _split(loop, outer, inner, value)
            _VECTORIZED.add()
            return


def _accesses(loop: ForOp) -> list[_Access] | None:
    """The loads and stores of a loop that has nothing else but what combines, and what computes indices."""
    accesses: list[_Access] = []
    for op in loop.body.block.ops:
        kind = type(op)
        if kind is memref.LoadOp or kind is memref.StoreOp:
            accesses.append(op)  # pyright: ignore[reportArgumentType]
        elif kind is not arith.ConstantOp and kind not in _COMBINED_FREELY and not _is_index_arithmetic(op):
            return None
    return accesses


def _combined(loop: ForOp, stores: Sequence[memref.StoreOp], loads: Sequence[memref.LoadOp]) -> memref.LoadOp | None:
    """The load whose elements a loop combines into one place, in any order, if that is what it does."""
    if len(stores) != 1 or len(loads) != 2:
        return None
    (store,) = stores
    combine, place = store.value.owner, Index.of(store.indices[0])
    if not isinstance(combine, Operation) or type(combine) not in _COMBINED_FREELY:
        return None
    if place.depends_on([loop.induction_variable]):
        return None
    for old, new in (loads, loads[::-1]):
        is_old = old.memref is store.memref and Index.of(old.indices[0]) == place
        if is_old and new.memref is not store.memref and {*combine.operands} == {old.res, new.res}:
            apart = _is_apart(new) and _is_apart(store) and not may_overlap(new.memref, store.memref)
            return new if apart else None
    return None


def _are_moves(loop: ForOp, stores: Sequence[memref.StoreOp], loads: Sequence[memref.LoadOp]) -> bool:
    """Whether a loop stores what it loads, or what is there before it, and nothing is read after it was stored."""
    stored = {store.memref for store in stores}
    return (
        0 < len(stores) == len(stored)
        and stored.isdisjoint(with_overlapping(load.memref for load in loads))
        and not any(may_overlap(one, other) for one, other in combinations(stored, 2))
        and all(_is_apart(access) for access in (*stores, *loads))
        and all(_is_moved(store.value, loop) for store in stores)
    )


def _is_apart(access: _Access) -> bool:
    """Whether an access is to a parameter or an allocation: a view may be of another buffer."""
    if underlying(access.memref) is not access.memref:
        return False
    return isinstance(access.memref, BlockArgument) or isinstance(access.memref.owner, _ALLOCATIONS)


def _is_index_arithmetic(op: Operation) -> bool:
    computes = type(op) is affine.ApplyOp or op.name.startswith("arith.")
    return computes and len(op.results) == 1 and isinstance(op.results[0].type, IndexType)


def _is_moved(value: SSAValue, loop: ForOp) -> bool:
    return isinstance(value.owner, memref.LoadOp | arith.ConstantOp) or not loop.is_ancestor(value.owner)


def _lanes(extent: int, vector_bytes: int, accesses: Sequence[_Access]) -> Iterator[int]:
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


def _moves_by_lanes(access: _Access, place: Index, lane: SSAValue) -> bool:
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
    Rewriter.erase_op(loop)
