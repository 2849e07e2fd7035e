"""Copies of buffers that are indexed by iterators, or by a function of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.dialects import memref
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Context, Domain, accesses, domain_of, is_fixed, range_of
from weft.analysis.block_scopes import (
    ancestors,
    bindings_of,
    buffers_stored_by,
    child_towards,
    function_of,
    loops_around,
    parts_of,
    scope_of,
    writers_of,
)
from weft.analysis.code_motion import disturbed_unnamed, shared_element
from weft.analysis.dependence import buffer_name
from weft.analysis.footprint import span_of
from weft.analysis.index import Index
from weft.analysis.reductions import why_reads_earlier
from weft.dialects.effects import op_name
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL, IterKind
from weft.passes.index_builders import index_before, set_access
from weft.passes.schedule.caching import (
    buffer_at,
    free_label,
    insert_alloc,
    memref_type,
    new_alloc,
    space_of,
    why_not_scope,
)
from weft.passes.schedule.checks import iterator_names, missed_by
from weft.passes.schedule.dominance import why_not_dominating
from weft.passes.schedule.index_maps import points_of_iterators, required_layout
from weft.passes.schedule.nest_builders import (
    IterDomain,
    domain_from_span,
    full_domain,
    loops_over,
    nest,
    new_block,
    set_corner,
    set_guards,
    values_in,
)
from weft.passes.schedule.primitive import BufferPosition, Plan, operation_text
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import Violation


@dataclass(frozen=True)
class ReindexPlan(Plan):
    """`scope` None is that of the buffer."""

    block: BlockOp
    buffer: SSAValue
    indices: tuple[Index, ...]
    iterators: tuple[int, ...]
    domains: tuple[IterDomain, ...]
    new_indices: tuple[Index, ...]
    new_extents: tuple[int | SSAValue, ...]
    scope: str | None
    reading: bool
    place: Operation

    def rewrite(self) -> tuple[Operation, ...]:
        block, old = self.block, memref_type(self.buffer)
        suffix = "reindex" if self.scope is None else self.scope.replace(".", "_")
        name = free_label(function_of(block), f"{self.buffer.name_hint or 'buffer'}_{suffix}")
        space = old.memory_space if self.scope is None else space_of(self.scope)
        alloc = new_alloc(old.element_type, self.new_extents, space, name, block)
        insert_alloc(self.buffer, alloc)
        self._redirect(alloc.memref)
        extents = [self.block.extents[at] for at in self.iterators]
        loops, bindings, guards = loops_over(self.domains, extents, self.block, unit_loops=True)
        copy = self._copy(name, alloc.memref, extents, bindings)
        before, after = InsertPoint.before(self.place), InsertPoint.after(self.place)
        Rewriter.insert_op(nest(loops, [copy]), before if self.reading else after)
        set_guards(copy, guards)
        return (copy,)

    def _redirect(self, new: SSAValue) -> None:
        for use in list(self.buffer.uses):
            op = use.operation
            if not self.block.is_ancestor(op):
                continue
            if isinstance(op, AccessRegionOp):
                set_corner(op, self.new_indices, [1] * len(self.new_indices), new)
            elif isinstance(op, memref.LoadOp | memref.StoreOp):
                set_access(op, new, [index_before(index, op) for index in self.new_indices])

    def _copy(self, name: str, new: SSAValue, extents: Sequence[int | SSAValue], bindings: Sequence[Index]) -> BlockOp:
        variables = [self.block.iter_vars[at] for at in self.iterators]
        hints = [variable.name_hint for variable in variables]
        copy = new_block(name, [SPATIAL] * len(extents), extents, bindings, hints, self.block)
        body = copy.body.block
        mapping: dict[SSAValue, Index] = dict(zip(variables, map(Index.of, body.args), strict=True))
        theirs, ours = (
            (buffer, values_in(body, [index.substitute(mapping) for index in indices]))
            for buffer, indices in ((self.buffer, self.indices), (new, self.new_indices))
        )
        load = memref.LoadOp.get(*(theirs if self.reading else ours))
        body.add_ops([load, memref.StoreOp.get(load.res, *(ours if self.reading else theirs))])
        for op in body.ops:
            op.location = self.block.location
        return copy


class Reindexing(RecheckedPrimitive):
    block: BlockOp

    def draft_of(
        self, buffer: SSAValue, *, reading: bool, scope: str | None = None, index_map: AffineMap | None = None
    ) -> ReindexPlan:
        """Indices of the copy are the iterators, or their image under `index_map`."""
        block = self.block
        if len(parts_of(block)) > 1:
            self.refuse(3, "loop_partition made it one of several parts of a block")
        common = self._common(buffer, reading=reading)
        place = child_towards(common, block)
        indices = self._indices(buffer, place)
        simpler = tuple(index.simplified(range_of) for index in indices)
        mapped: set[int] = set() if index_map is None else index_map.used_dims()
        iterators = tuple(
            at
            for at, (v, extent) in enumerate(zip(block.iter_vars, block.extents, strict=True))
            if at in mapped or any(i.depends_on([v]) for i in (indices if extent == 1 else simpler))
        )
        if not iterators:
            self.refuse(2, f"no iterator is in the indices of {buffer_name(buffer)}")
        domains = self._domains(common, iterators)
        self._require_all(buffer, iterators, common, domains)
        if reading:
            self._require_unchanged(buffer, place)
        else:
            self._require_own(buffer, place, iterators)
        for at in iterators:
            extent = block.extents[at]
            if not isinstance(extent, int) and not is_fixed(extent):
                self.refuse(6, f"the extent of %{block.iter_vars[at].name_hint or at} is not")
        new_indices = tuple(Index.of(block.iter_vars[at]) for at in iterators)
        new_extents = tuple(block.extents[at] for at in iterators)
        if index_map is not None:
            new_indices, new_extents = self._layout(index_map, iterators)
        return ReindexPlan(block, buffer, simpler, iterators, domains, new_indices, new_extents, scope, reading, place)

    def _common(self, buffer: SSAValue, *, reading: bool) -> Operation:
        """The innermost loop shared with another use (when reading, a store) of the buffer; or the scope."""
        block, scope = self.block, scope_of(self.block)
        others = [use.operation for use in buffer.uses if not block.is_ancestor(use.operation)]
        if reading:
            others = [op for op in others if buffer in buffers_stored_by(op)]
        around = (p for p in ancestors(block) if p is scope or any(p.is_ancestor(op) for op in others))
        common = next(around)
        if common is not scope and not isinstance(common, ForOp):
            requirement, used = (4, "written") if reading else (5, "used")
            self.refuse(requirement, f"{buffer_name(buffer)} is {used} elsewhere in {common.name} around it", common)
        return common

    def _domains(self, common: Operation, iterators: Sequence[int]) -> tuple[IterDomain, ...]:
        block = self.block
        if not isinstance(common, ForOp | BlockOp):
            return tuple(full_domain(block.extents[at]) for at in iterators)
        fixed = [loop.induction_variable for loop in loops_around(block) if loop.is_ancestor(common)]
        found: list[IterDomain] = []
        bindings = bindings_of(block)
        for at in iterators:
            span = span_of(bindings[at].simplified(range_of), fixed)
            if span is None or not span.tight:
                name = f"%{block.iter_vars[at].name_hint or at}"
                where = f"an iteration of {operation_text(common)}" if isinstance(common, ForOp) else "an instance"
                detail = f"the values of iterator {name} in {where} are not one range"
                self.refuse(3, Violation(detail, "not proved"))
            found.append(domain_from_span(span, block.extents[at]))
        return tuple(found)

    def _layout(
        self, index_map: AffineMap, iterators: Sequence[int]
    ) -> tuple[tuple[Index, ...], tuple[int | SSAValue, ...]]:
        block = self.block
        points = points_of_iterators(block, "instance ", "would both use")
        extents = [Index.of(e) if at in iterators else Index({}, 1) for at, e in enumerate(block.extents)]
        layout = required_layout(self, (9, 9), index_map, extents, points)
        found: list[int | SSAValue] = []
        for extent in layout.new_extents or ():
            value = extent.constant if extent.is_constant else extent.single_value
            if value is None:
                self.refuse(6, f"an extent of the copy would be {extent!r}")
            found.append(value)
        return tuple(layout.applied(list(map(Index.of, block.iter_vars)))), tuple(found)

    def _indices(self, buffer: SSAValue, place: Operation) -> tuple[Index, ...]:
        block, name = self.block, buffer_name(buffer)
        found: dict[tuple[Index, ...], Operation] = {}
        for use in buffer.uses:
            op = use.operation
            if not block.is_ancestor(op) or isinstance(op, AccessRegionOp):
                continue
            if not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref is not buffer:
                self.refuse(2, f"{op_name(op)} works on {name} in its present layout", op)
            found.setdefault(tuple(Index.of(index) for index in op.indices), op)
        if len(found) != 1:
            texts = " and ".join(sorted(f"{name}[{', '.join(map(repr, indices))}]" for indices in found))
            self.refuse(2, f"it accesses {texts}")
        (indices,) = found
        outer = [v for index in indices for v in index.values() if v not in block.iter_vars]
        self.require(2, why_not_dominating(outer, InsertPoint.before(place)))
        return indices

    def _require_all(
        self, buffer: SSAValue, iterators: Sequence[int], common: Operation, domains: Sequence[IterDomain]
    ) -> None:
        block, name = self.block, buffer_name(buffer)
        context, init = Context.around(block).inside(block), block.init
        found = [access for access in accesses(block) if access.buffer is buffer]
        for access in found:
            around = context.inside(init) if init is not None and init.is_ancestor(access.op) else context
            if access.conditions != around.conditions:
                self.refuse(3, f"a condition decides whether {name} is accessed", access.op)
        if init is not None and all(init.is_ancestor(access.op) for access in found):
            kinds = zip(block.iter_vars, block.kinds, block.extents, strict=True)
            steps = [v for v, kind, extent in kinds if kind is IterKind.REDUCE and extent != 1]
            if any(index.depends_on(steps) for index in self._indices(buffer, block)):
                self.refuse(3, f"only the init accesses {name}, in the first step of the reduction", found[0].op)
        if isinstance(common, ForOp | BlockOp):
            context = Context.in_scope(block)
            loops = tuple(loop for loop in context.loops if not loop.is_ancestor(common))
            bindings = context.resolve_map(block)
            lower = [bindings[at] - domain.lower for at, domain in zip(iterators, domains, strict=True)]
            sizes = tuple(Index.of(domain.extent) for domain in domains)
            domain = Domain(loops, tuple(lower), sizes, context.inside(block).conditions)
        else:
            whole = domain_of(block)
            parts = ((whole.bindings[at], whole.extents[at]) for at in iterators)
            bindings, extents = zip(*parts, strict=True)
            domain = replace(whole, bindings=bindings, extents=extents)
        names = iterator_names(block)
        left = missed_by(domain, [names[at] for at in iterators], lambda text: f"its guards leave out {text}")
        self.require(3, left)

    def _require_unchanged(self, buffer: SSAValue, place: Operation) -> None:
        for use in buffer.uses:
            op = use.operation
            if place.is_ancestor(op) and buffer in buffers_stored_by(op):
                self.refuse(4, f"{op_name(op)} writes {buffer_name(buffer)} there", op)
        self.require(4, disturbed_unnamed((place,), buffer, writes=True))

    def _require_own(self, buffer: SSAValue, place: Operation, iterators: Sequence[int]) -> None:
        block, name = self.block, buffer_name(buffer)
        others = [writer for writer in writers_of(buffer, scope_of(block)) if writer is not block]
        if others:
            self.refuse(5, f'block "{others[0].label}" writes {name} too', others[0])
        for use in buffer.uses:
            if place.is_ancestor(use.operation) and not block.is_ancestor(use.operation):
                self.refuse(5, f"{op_name(use.operation)} accesses {name} in the nest", use.operation)
        self.require(5, disturbed_unnamed((place,), buffer))
        self.require(5, why_reads_earlier(block, buffer))
        for at in iterators:
            if block.kinds[at] is IterKind.REDUCE:
                self.refuse(5, f"reduce iterator %{block.iter_vars[at].name_hint or at} is in its indices")
        self.require(5, shared_element(block))


@dataclass(frozen=True)
class Reindex(Reindexing):
    """Let a block read or write a copy of a buffer that has a dimension for each iterator in its indices, in the order
    of the iterators, and is indexed by exactly these.

    Requirements:
    1. the block reads or writes a buffer at this index
    2. all accesses have the same indices, over iterators of the block: values known outside of its nest may occur;
       there are only loads and stores
    3. every instance accesses the buffer: no guard or condition excludes values of these iterators
    4. nothing in the nest writes what is read: the nest is inside the loops that the block shares with a writer of the
       buffer
    5. what is written is the block's alone: no other block of the scope writes it; the block reads no older elements
       and stores to different ones in different instances
    6. the extents of the iterators are known at the top of the function
    7. loops that run in parallel stay independent

    An iterator on whose value no index depends within its domain, such as %v in `%v floordiv 64` below 64, has no
    dimension. The copy `<buffer>_reindex` runs right before (reading) or after (writing) the nest, in the loops that
    the block shares with writers (writing: with any use) of the buffer.

    ```mlir
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] { memref.load %A[%vj, %vi * 2 + 1] ... }
    // reindex "C" {buffer = ["read", 0]}
    tir.for %ax0 in 8 { tir.for %ax1 in 4 {
      tir.block "A_reindex" iters(%vi: spatial<8>, %vj: spatial<4>) = [%ax0, %ax1] {
        A_reindex[%vi, %vj] = A[%vj, %vi * 2 + 1] } } }
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] { memref.load %A_reindex[%vi, %vj] ... }
    ```
    """

    block: BlockOp
    buffer: BufferPosition

    def draft(self) -> ReindexPlan:
        buffer = buffer_at(self, self.block, *self.buffer)
        return self.draft_of(buffer, reading=self.buffer[0] == "read")


@dataclass(frozen=True)
class _ReindexingCache(Reindexing):
    READING: ClassVar[bool]

    block: BlockOp
    index: int
    scope: str
    index_map: AffineMapAttr

    def draft(self) -> ReindexPlan:
        block, reading = self.block, self.READING
        buffer = buffer_at(self, block, "read" if reading else "write", self.index)
        self.require(8, why_not_scope(self.scope))
        return self.draft_of(buffer, reading=reading, scope=self.scope, index_map=self.index_map.data)


@dataclass(frozen=True)
class ReindexCacheRead(_ReindexingCache):
    """Let a block read a copy of a buffer in another memory scope, at indices that an index map computes from its
    iterators.

    Requirements:
    1. the block reads a buffer at this index
    2. all accesses have the same indices, over iterators of the block: as for `reindex`
    3. every instance accesses the buffer: as for `reindex`
    4. nothing in the nest writes what is read: as for `reindex`
    5. what is written is the block's alone: applies only to `reindex_cache_write`
    6. the extents of the iterators are known at the top of the function: those of the copy, too
    7. loops that run in parallel stay independent
    8. `scope` is a memory scope
    9. the index map keeps instances apart: it maps all iterators to non-negative indices in a box whose extents follow
       from theirs; no two instances of the used iterators share an element

    Iterators without effect on the indices of the buffer and of the copy have no loop. Other blocks read the buffer as
    before.

    ```mlir
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] { memref.load %A[%vj, %vi * 2 + 1] ... }
    // reindex_cache_read "C" {index = 0, scope = "local", index_map = (i, j) -> (j, i)}
    tir.for %ax0 in 8 { tir.for %ax1 in 4 {
      tir.block "A_local" iters(%vi: spatial<8>, %vj: spatial<4>) = [%ax0, %ax1] {
        A_local[%vj, %vi] = A[%vj, %vi * 2 + 1] } } }
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] { memref.load %A_local[%vj, %vi] ... }
    ```
    """

    READING: ClassVar[bool] = True


@dataclass(frozen=True)
class ReindexCacheWrite(_ReindexingCache):
    """Let a block compute into a copy of the buffer it writes, in another memory scope, at indices that an index map
    computes from its iterators; a new block copies the result out.

    Requirements:
    1. the block writes a buffer at this index
    2. all accesses have the same indices, over iterators of the block: as for `reindex`
    3. every instance accesses the buffer: as for `reindex`
    4. nothing in the nest writes what is read: applies only to `reindex_cache_read`
    5. what is written is the block's alone: as for `reindex`; the index map depends on spatial iterators only
    6. the extents of the iterators are known at the top of the function: those of the copy, too
    7. loops that run in parallel stay independent
    8. `scope` is a memory scope
    9. the index map keeps instances apart: as for `reindex_cache_read`

    ```mlir
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] { memref.store %x, %C[%vi, %vj] }
    // reindex_cache_write "C" {index = 0, scope = "local", index_map = (i, j) -> (j, i)}
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] { memref.store %x, %C_local[%vj, %vi] }
    tir.for %ax0 in 8 { tir.for %ax1 in 4 {
      tir.block "C_local" iters(%vi: spatial<8>, %vj: spatial<4>) = [%ax0, %ax1] {
        C[%vi, %vj] = C_local[%vj, %vi] } } }
    ```
    """

    READING: ClassVar[bool] = False
