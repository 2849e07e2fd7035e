"""Precomputation of indices of a block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import is_fixed
from weft.analysis.block_scopes import child_towards, function_of, scope_of
from weft.analysis.index import Index
from weft.dialects.tir import BlockOp, ReadsOp
from weft.dialects.tir_kinds import SPATIAL
from weft.dialects.traversal import operations_in
from weft.passes.index_builders import erase_if_unused, insert_before
from weft.passes.schedule.caching import free_label, insert_alloc, new_alloc, space_of, why_not_scope
from weft.passes.schedule.dominance import not_dominating
from weft.passes.schedule.nest_builders import block_in_loops, values_in
from weft.passes.schedule.primitive import Plan, Primitive
from weft.support.errors import Violation


@dataclass(frozen=True)
class CacheIndexPlan(Plan):
    block: BlockOp
    indices: tuple[Index, ...]
    scope: str
    place: Operation

    def rewrite(self) -> tuple[Operation, ...]:
        return tuple(self._cache(index) for index in self.indices)

    def _cache(self, index: Index) -> BlockOp:
        block = self.block
        used = [at for at, variable in enumerate(block.iter_vars) if index.depends_on([variable])]
        variables, extents = [block.iter_vars[at] for at in used], [block.extents[at] for at in used]
        name = free_label(function_of(block), "index")
        alloc = new_alloc(IndexType(), extents, space_of(self.scope), name, block)
        users = [(op, at) for op, at in _subscripts(block) if Index.of(op.indices[at]) == index]
        insert_alloc(users[0][0].memref, alloc)
        computing, root = block_in_loops(name, [SPATIAL] * len(used), extents, [v.name_hint for v in variables], block)
        body = computing.body.block
        mapping: dict[SSAValue, Index] = dict(zip(variables, map(Index.of, body.args), strict=True))
        (value,) = values_in(body, [index.substitute(mapping)])
        body.add_op(memref.StoreOp.get(value, alloc.memref, body.args))
        for op in body.ops:
            op.location = block.location
        Rewriter.insert_op(root, InsertPoint.before(self.place))
        self._redirect(users, alloc.memref, variables)
        return computing

    def _redirect(
        self, users: Sequence[tuple[memref.LoadOp, int]], cache: SSAValue, variables: Sequence[SSAValue]
    ) -> None:
        for op, at in users:
            old = op.indices[at]
            load = memref.LoadOp.get(cache, variables)
            load.res.name_hint = old.name_hint
            insert_before(op, [load])
            op.operands[1 + at] = load.res
            erase_if_unused([old])
        for op in [op for op in self.block.body.block.ops if isinstance(op, ReadsOp)]:
            if any(op.buffer is user.memref for user, _ in users):  # the region would not match the body
                Rewriter.erase_op(op)


def _subscripts(block: BlockOp) -> Iterator[tuple[memref.LoadOp, int]]:
    for op in operations_in(block):
        if isinstance(op, memref.LoadOp) and (block.init is None or not block.init.is_ancestor(op)):
            yield from ((op, at) for at in range(len(op.indices)))


@dataclass(frozen=True)
class CacheIndex(Primitive):
    """Compute indices of a block's loads that need arithmetic once, before its nest, and read them from buffers.

    Requirements:
    1. `scope` is a memory scope
    2. the extents of the iterators are known at the top of the function

    Candidates are indices over iterators of the block and values defined before its nest, in at least `cse_thresh`
    loads, except iterators, constants, and iterators plus constants. The new blocks are `index`, `index_1`, ... Without
    candidates, nothing changes. Apply it late: it hides the accessed elements from later primitives.

    ```mlir
    tir.block "C" iters(%vi: spatial<64>) = [%i] { memref.load %A[(%vi * 7) mod 64] ... }
    // cache_index "C" {scope = "global", cse_thresh = 0}
    tir.for %ax0 in 64 {
      tir.block "index" iters(%vi: spatial<64>) = [%ax0] { index[%vi] = (%vi * 7) mod 64 } }
    tir.block "C" iters(%vi: spatial<64>) = [%i] { %x = memref.load %index[%vi]  memref.load %A[%x] ... }
    ```
    """

    block: BlockOp
    scope: str
    cse_thresh: int

    def plan(self) -> CacheIndexPlan:
        block = self.block
        self.require(1, why_not_scope(self.scope))
        place = child_towards(scope_of(block), block)
        before = InsertPoint.before(place)
        found = Counter(Index.of(op.indices[at]) for op, at in _subscripts(block))
        chosen: list[Index] = []
        for index, count in found.items():
            own = [v for v in block.iter_vars if index.depends_on([v])]
            if count < self.cse_thresh or not own or (index - index.constant).single_value is not None:
                continue
            if not_dominating([value for value in index.values() if value not in own], before):
                continue
            for variable, extent in zip(block.iter_vars, block.extents, strict=True):
                if variable in own and not isinstance(extent, int) and not is_fixed(extent):
                    detail = f"the extent of %{variable.name_hint or '?'} is not"
                    self.refuse(2, Violation(detail))
            chosen.append(index)
        return CacheIndexPlan(block, tuple(chosen), self.scope, place)
