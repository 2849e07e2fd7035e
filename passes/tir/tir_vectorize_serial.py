"""tir-vectorize-serial: vectorized innermost loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import combinations
from typing import Final, TypeAlias

from xdsl.dialects import affine, arith, math, memref
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.index import Index, RangeOf, quotient, remainder
from weft.dialects.aliasing import may_overlap, with_overlapping
from weft.dialects.combiners import COMBINATIONS
from weft.dialects.effects import underlying
from weft.dialects.element_types import bytes_of
from weft.dialects.integer_arith import DIVISIONS
from weft.dialects.promises import Promise, promises_of
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import REASSOCIATE, LoopKind, LoopKindAttr
from weft.dialects.traversal import ancestors, operations_of
from weft.dialects.upstream.arith import RemFOp
from weft.passes.index_builders import constant_before, detached_ops, index_before, insert_before, result_before
from weft.passes.low.low_expand_math import EXPANDED
from weft.passes.schedule.nest_builders import set_loop_extent
from weft.passes.tir.serial_dots import LANES, Dots, dots_of
from weft.passes.tir.tir_pass import FunctionPass, buffer_type, range_of_difference, remembered_ranges, replace_variable
from weft.support.statistics import Statistic
from weft.support.target import Target

_VECTORIZED: Final = Statistic("tir-vectorize-serial", "loops-vectorized", "serial loops that have become vectors")
_Access: TypeAlias = "memref.LoadOp | memref.StoreOp"
_LEAST_LANES = 4
_LEAST_VECTORS = 4
"""Least number of vectors in the upper bound of a dynamic extent for a vectorized version."""
_CALL_VECTORS = 8
"""Vectors above which contiguous moves stay scalar loops, which LLVM turns into `memset` and `memcpy`."""
_INTERLEAVED = 4
"""Vectors of one iteration: partial results of a reduction hide the latency of the combiner, and a short body spreads
the cost of the loop."""
_SUM_BYTES = 4
"""Bytes of a sum of integer products."""
_SHORT_BODY = 6
"""Accesses and computations of a short body."""
_UNROLLED = 8
"""Iterations of a short body up to which the loop over its vectors is unrolled: a matmul with an elementwise innermost
loop becomes 1.3 times faster (Zen 4)."""
_ALLOCATIONS = (memref.AllocOp, memref.AllocaOp, memref.GetGlobalOp)
_COMBINED_FREELY = frozenset(COMBINATIONS) - {arith.AddfOp, arith.MulfOp}
_MATH: Final = frozenset(
    (*EXPANDED, math.SqrtOp, math.AbsFOp, math.FloorOp, math.CeilOp, math.TruncOp, math.RoundEvenOp, math.CopySignOp)
)
"""Same results at any vector length: formulas and instructions, no library calls."""


@dataclass(frozen=True)
class VectorizeSerialPass(FunctionPass):
    """Vectorize innermost serial loops whose iterations are independent, and reductions in any order.

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
    The number of lanes is the largest, up to a vector register, for which every store, and every load that differs
    between lanes, accesses consecutive elements. Four kinds of loops qualify:

    - Moves of loaded or invariant values, of a static extent that the lanes divide. Long contiguous runs stay scalar:
      LLVM replaces them by `memset` and `memcpy`.
    - Elementwise computations. Loads of a stored buffer are of the same element, or at least a vector away. The
      remainder of the extent, which may be dynamic, is a second loop. A short loop over vectors is unrolled.
    - Reductions into one element by a combiner that may be reordered, as `m[0] = max(m[0], x[%j] * y[%j])`, with four
      vectors of partial results. Float sums and products require that the target or a loop annotation lets them be
      reassociated.
    - Dot products of four adjacent bytes, or of two 16-bit integers or bf16 numbers, added to elements of a buffer of
      32 bits: `C[%g] += A[%k] * B[%g * 4] + A[%k + 1] * B[%g * 4 + 1] + ...` is a `low.tile_dot` per group. Those of
      bf16 require the assumption `reassoc`, because instructions round differently.

    Loops that contain loops, conditions, calls or integer divisions stay scalar.

    Requires: flat buffers (`tir-flatten`).

    Leaves: loops of kind `vectorized`, and remainder loops.
    """

    name = "tir-vectorize-serial"

    target: str = "llvm"
    """As in `weft.build`; gives the size of a vector register."""

    def rewrite(self, function: FuncOp) -> None:
        target = Target.parse(self.target)
        may_reassociate = Promise.REASSOC in promises_of(function)
        reassociates = target.reassociate and may_reassociate
        for loop in operations_of(function, ForOp):
            if loop.kind.data is LoopKind.SERIAL and not _is_in_lanes(loop):
                if reassociates:
                    loop.attributes[REASSOCIATE] = UnitAttr()
                vectorize_serial(loop, target.vector_bytes, may_reassociate)


class _Kind(Enum):
    MOVES = auto()
    COMPUTES = auto()
    COMBINES = auto()


@dataclass(frozen=True)
class _Body:
    accesses: list[_Access]
    """Accesses that differ between lanes or that all lanes read; in a reduction, without its accumulator."""
    kind: _Kind


def vectorize_serial(loop: ForOp, vector_bytes: int, may_reassociate: bool) -> None:
    dots = dots_of(loop, reassociates=may_reassociate)
    if dots is not None:
        _compute_dots(loop, dots, vector_bytes, may_reassociate)
        return
    body = _body_of(loop)
    if body is None:
        return
    extent, ranges = loop.extent, remembered_ranges()
    places = [(Index.of(access.indices[0]), access) for access in body.accesses]
    for lanes in _lanes(loop, body, vector_bytes, ranges):
        is_long = isinstance(extent, int) and extent > lanes * _CALL_VECTORS
        if body.kind is _Kind.MOVES and is_long and all(_steps(place, loop.induction_variable) for place, _ in places):
            return
        # The range of the outer variable simplifies the indices.
        outer = ForOp.empty(extent // lanes if isinstance(extent, int) else extent)
        inner = ForOp.empty(lanes, kind=LoopKind.VECTORIZED)
        old: SSAValue = loop.induction_variable
        lane = inner.induction_variable
        value = Index({outer.induction_variable: lanes, lane: 1})
        by_lanes = [(place.substitute({old: value}, ranges).simplified(ranges), access) for place, access in places]
        # Indices that still depend on the old variable contain loaded values or products.
        if not all(_moves_by_lanes(access, place, lane) and not place.depends_on([old]) for place, access in by_lanes):
            continue
        if body.kind is _Kind.COMPUTES and not _are_independent(places, lanes):
            continue
        rest = _split(loop, outer, inner, value, lanes)
        is_repeated = outer.parent is not None and isinstance(outer.extent, int) and outer.extent <= _UNROLLED
        if is_repeated and body.kind is _Kind.COMPUTES and _is_short(inner):
            outer.kind = LoopKindAttr(LoopKind.UNROLLED)
        _VECTORIZED.add()
        if rest is not None and isinstance(rest.extent, int):
            vectorize_serial(rest, vector_bytes, may_reassociate)
        return


def _compute_dots(loop: ForOp, dots: Dots, vector_bytes: int, may_reassociate: bool) -> None:
    least = loop.extent if isinstance(loop.extent, int) else LANES[-1] * _LEAST_VECTORS
    lanes = next((lanes for lanes in LANES if lanes * _SUM_BYTES <= max(vector_bytes, 16) and lanes <= least), None)
    if lanes is None:
        return
    extent, ranges = _iterations(loop), remembered_ranges()
    vectors, left = (part(extent, lanes, ranges) for part in (quotient, remainder))
    if left != Index({}):
        rest = loop.clone()
        Rewriter.insert_op(rest, InsertPoint.after(loop))
        _set_extent(rest, left)
        replace_variable(rest, vectors * lanes + Index({rest.induction_variable: 1}))
        if isinstance(rest.extent, int):
            vectorize_serial(rest, vector_bytes, may_reassociate)
    outer = ForOp.empty(0)
    insert_before(loop, [outer])
    _set_extent(outer, vectors)
    outer.induction_variable.name_hint = loop.induction_variable.name_hint
    if isinstance(outer.extent, int) and outer.extent <= _UNROLLED:
        outer.kind = LoopKindAttr(LoopKind.UNROLLED)
    dots.write(outer, Index({outer.induction_variable: lanes}), lanes)
    Rewriter.erase_op(loop)
    _VECTORIZED.add()


def _is_in_lanes(loop: ForOp) -> bool:
    return any(type(outer) is ForOp and outer.kind.data is LoopKind.VECTORIZED for outer in ancestors(loop))


def _body_of(loop: ForOp) -> _Body | None:
    accesses: list[_Access] = []
    only_combines = True
    for op in loop.body.block.ops:
        kind = type(op)
        if kind is memref.LoadOp or kind is memref.StoreOp:
            accesses.append(op)  # pyright: ignore[reportArgumentType]
        elif not _is_index_arithmetic(op):
            if not _has_lanes(op):
                return None
            only_combines &= kind is arith.ConstantOp or kind in _COMBINED_FREELY
    stores = [access for access in accesses if isinstance(access, memref.StoreOp)]
    loads = [access for access in accesses if isinstance(access, memref.LoadOp)]
    combined = _combined(loop, stores, loads)
    if combined is not None:
        return _Body([*combined], _Kind.COMBINES)
    if only_combines and _are_moves(loop, stores, loads):
        return _Body(accesses, _Kind.MOVES) if isinstance(loop.extent, int) else None
    stored = {store.memref for store in stores}
    read = {load.memref for load in loads} - stored
    if (
        not stores
        or not all(_is_apart(access) for access in accesses)
        or any(may_overlap(one, other) for one, other in combinations(stored, 2))
        or any(may_overlap(one, other) for one in stored for other in read)
    ):
        return None
    return _Body(accesses, _Kind.COMPUTES)


def _has_lanes(op: Operation) -> bool:
    kind = type(op)
    if kind in DIVISIONS or len(op.results) != 1 or op.regions:
        return False
    return kind in _MATH or (op.name.startswith("arith.") and kind is not RemFOp)


def _combined(
    loop: ForOp, stores: Sequence[memref.StoreOp], loads: Sequence[memref.LoadOp]
) -> Sequence[memref.LoadOp] | None:
    """Loads that a loop combines into one element, in any order, without other effects."""
    if len(stores) != 1:
        return None
    (store,) = stores
    combine, place = store.value.owner, Index.of(store.indices[0])
    free = COMBINATIONS if REASSOCIATE in loop.attributes else _COMBINED_FREELY
    if not isinstance(combine, Operation) or type(combine) not in free or not store.value.has_one_use():
        return None
    if isinstance(store.value.type, IndexType) or place.depends_on([loop.induction_variable]) or not _is_apart(store):
        return None
    for old, new in (combine.operands, combine.operands[::-1]):
        load = old.owner
        if (
            isinstance(load, memref.LoadOp)
            and loop.is_ancestor(load)
            and load.memref is store.memref
            and Index.of(load.indices[0]) == place
            and old.has_one_use()
            and old is not new
        ):
            others = [other for other in loads if other is not load]
            varies = any(Index.of(other.indices[0]).depends_on([loop.induction_variable]) for other in others)
            apart = all(_is_apart(other) and not may_overlap(other.memref, store.memref) for other in others)
            return others if apart and varies else None
    return None


def _are_independent(places: Sequence[tuple[Index, _Access]], lanes: int) -> bool:
    """Accesses to a stored buffer are to one element, or at least `lanes` apart."""
    for at, (place, access) in enumerate(places):
        for other, second in places[at + 1 :]:
            if access.memref is not second.memref or (
                isinstance(access, memref.LoadOp) and isinstance(second, memref.LoadOp)
            ):
                continue
            if place == other:
                continue
            low, high = range_of_difference(place, other)
            if not ((low is not None and low >= lanes) or (high is not None and high <= -lanes)):
                return False
    return True


def _are_moves(loop: ForOp, stores: Sequence[memref.StoreOp], loads: Sequence[memref.LoadOp]) -> bool:
    stored = {store.memref for store in stores}
    return (
        0 < len(stores) == len(stored)
        and stored.isdisjoint(with_overlapping(load.memref for load in loads))
        and not any(may_overlap(one, other) for one, other in combinations(stored, 2))
        and all(_is_apart(access) for access in (*stores, *loads))
        and all(_is_moved(store.value, loop) for store in stores)
    )


def _is_apart(access: _Access) -> bool:
    if underlying(access.memref) is not access.memref:
        return False
    return isinstance(access.memref, BlockArgument) or isinstance(access.memref.owner, _ALLOCATIONS)


def _is_index_arithmetic(op: Operation) -> bool:
    computes = type(op) is affine.ApplyOp or op.name.startswith("arith.")
    return computes and len(op.results) == 1 and isinstance(op.results[0].type, IndexType)


def _is_moved(value: SSAValue, loop: ForOp) -> bool:
    return isinstance(value.owner, memref.LoadOp | arith.ConstantOp) or not loop.is_ancestor(value.owner)


def _lanes(loop: ForOp, body: _Body, vector_bytes: int, ranges: RangeOf) -> Iterator[int]:
    """Best first: powers of two that divide the extent, from several vectors of the widest elements to one, then
    others."""
    types = [buffer_type(access.memref).element_type for access in body.accesses]
    if body.kind is not _Kind.MOVES:
        values = [result.type for op in _computations(loop) for result in op.results]
        types += [type_ for type_ in values if not isinstance(type_, IndexType)]
    register = vector_bytes // max(map(bytes_of, types))
    extent, most = loop.extent, register
    is_short = isinstance(extent, int) and _is_short(loop)
    if body.kind is _Kind.COMBINES or (body.kind is _Kind.COMPUTES and is_short):
        most *= _INTERLEAVED
    if isinstance(extent, int):
        least = _LEAST_LANES if body.kind is _Kind.MOVES else register
        yield from (lanes for lanes in _powers(most, least) if lanes <= extent and extent % lanes == 0)
        if body.kind is _Kind.MOVES:
            return
    else:
        bound = Index.of(extent).range(ranges)[1]
        extent = most * _LEAST_VECTORS if bound is None else bound // _LEAST_VECTORS
    most = most if body.kind is _Kind.COMBINES else register
    yield from (lanes for lanes in _powers(most, _LEAST_LANES) if lanes <= extent)


def _computations(loop: ForOp) -> list[Operation]:
    return [op for op in loop.body.block.ops if not _is_index_arithmetic(op)]


def _is_short(loop: ForOp) -> bool:
    return len(_computations(loop)) <= _SHORT_BODY


def _powers(most: int, least: int) -> Iterator[int]:
    while most >= least:
        yield most
        most //= 2


def _steps(place: Index, value: SSAValue) -> bool:
    rest = place - Index({value: 1}) if place.coefficient(value) == 1 else place
    return not rest.mentions([value])


def _moves_by_lanes(access: _Access, place: Index, lane: SSAValue) -> bool:
    stays = place.coefficient(lane) == 0
    return _steps(place, lane) and not (stays and isinstance(access, memref.StoreOp))


def _split(loop: ForOp, outer: ForOp, inner: ForOp, value: Index, lanes: int) -> ForOp | None:
    """Split into `outer` over vectors, omitted for one, and `inner` over lanes; returns the remainder loop."""
    extent = _iterations(loop)
    ranges = remembered_ranges()
    vectors, left = (part(extent, lanes, ranges) for part in (quotient, remainder))
    rest = None
    if left != Index({}):
        rest = loop.clone()
        Rewriter.insert_op(rest, InsertPoint.after(loop))
        _set_extent(rest, left)
        replace_variable(rest, vectors * lanes + Index({rest.induction_variable: 1}))
    if vectors == Index({}, 1):
        loop.kind = LoopKindAttr(LoopKind.VECTORIZED)
        _set_extent(loop, Index({}, lanes))
        return rest
    insert_before(loop, [outer])
    _set_extent(outer, vectors)
    hint = loop.induction_variable.name_hint or "i"
    outer.induction_variable.name_hint, inner.induction_variable.name_hint = f"{hint}0", f"{hint}1"
    outer.attributes.update(loop.attributes)
    if REASSOCIATE in loop.attributes:
        inner.attributes[REASSOCIATE] = loop.attributes[REASSOCIATE]
    body: list[Operation] = detached_ops(loop.body.block)
    inner.body.block.add_ops(body)
    outer.body.block.add_op(inner)
    inner.location = outer.location = loop.location
    loop.induction_variable.replace_all_uses_with(index_before(value, body[0]))
    Rewriter.erase_op(loop)
    return rest


def _iterations(loop: ForOp) -> Index:
    """A possibly negative dynamic extent is clamped at 0 before the loop."""
    extent = loop.extent
    if isinstance(extent, int):
        return Index({}, extent)
    low, _ = Index.of(extent).range(remembered_ranges())
    if low is None or low < 0:
        extent = result_before(arith.MaxSIOp(extent, constant_before(0, loop)), loop)
    return Index.of(extent)


def _set_extent(loop: ForOp, extent: Index) -> None:
    set_loop_extent(loop, extent.constant if extent.is_constant else index_before(extent, loop))
