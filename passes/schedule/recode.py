"""Widening and re-encoding of factors of integer products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, IntegerType, NoneAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_patterns import updates_of
from weft.analysis.block_scopes import child_towards, function_of, is_plain, scope_of, why_opaque
from weft.analysis.dependence import buffer_name
from weft.analysis.index import Index
from weft.dialects.tir import BlockOp, InitOp
from weft.dialects.tir_kinds import REDUCE, SPATIAL, IterKind
from weft.dialects.traversal import operations_in, sources_in
from weft.passes.index_builders import insert_before, result_before
from weft.passes.schedule.cache_read import CacheRead
from weft.passes.schedule.cache_write import CacheWrite
from weft.passes.schedule.caching import CachePlan, buffer_at, extents_of, free_label, insert_alloc, new_alloc
from weft.passes.schedule.checks import stores_of
from weft.passes.schedule.nest_builders import block_in_loops
from weft.passes.schedule.primitive import Plan, Primitive, block_text
from weft.support.errors import InternalError, ScheduleError, Violation

_ENCODINGS: Final = ("unsigned", "signed", "int16", "int32", "int64")


@dataclass(frozen=True)
class WidenedProduct:
    """One factor as loaded and widened, and the other."""

    load: memref.LoadOp
    widening: Operation
    other: SSAValue
    other_operations: tuple[Operation, ...]
    """In order; they compute the other factor."""
    store: memref.StoreOp
    element: IntegerType
    """Stored type of the factor."""
    sum_type: IntegerType

    @property
    def is_signed(self) -> bool:
        return isinstance(self.widening, arith.ExtSIOp)


@dataclass(frozen=True)
class WidenPlan(Plan):
    block: BlockOp
    product: WidenedProduct
    reading: CachePlan
    type: IntegerType

    def rewrite(self) -> tuple[Operation, ...]:
        (copy,) = self.reading.rewrite()
        (store,) = stores_of(copy)
        old = store.memref.owner
        if not isinstance(old, memref.AllocOp):
            raise InternalError("a copy is a temporary")
        alloc = new_alloc(self.type, extents_of(old.memref)[0], NoneAttr(), old.memref.name_hint, old)
        Rewriter.insert_op(alloc, InsertPoint.before(old))
        widen = type(self.product.widening)
        wide = widen.create(operands=[store.value], result_types=[self.type])
        new_store = memref.StoreOp.get(wide.results[0], alloc.memref, list(store.indices))
        insert_before(store, [wide, new_store])
        Rewriter.erase_op(store)
        load, widening = self.product.load, self.product.widening
        new_load = memref.LoadOp.get(alloc.memref, list(load.indices))
        new_load.res.name_hint = load.res.name_hint
        insert_before(load, [new_load])
        value: SSAValue = new_load.res
        if self.type != widening.results[0].type:
            # Equal when read as signed: a widened unsigned number has no sign bit set.
            again = arith.ExtSIOp.create(operands=[value], result_types=[widening.results[0].type])
            value = result_before(again, widening)
        widening.results[0].replace_all_uses_with(value)
        for op in (widening, load, old):
            Rewriter.erase_op(op)
        return (copy,)


@dataclass(frozen=True)
class ShiftPlan(Plan):
    """A factor offset by half of its range, the sums of the other one, and the correction by them."""

    block: BlockOp
    product: WidenedProduct
    reading: CachePlan
    writing: CachePlan
    used: tuple[int, ...]
    """Spatial iterators that the other factor depends on."""

    def rewrite(self) -> tuple[Operation, ...]:
        product = self.product
        (copy,) = self.reading.rewrite()
        (store,) = stores_of(copy)
        half = 1 << (product.element.width.data - 1)
        number = arith.ConstantOp(IntegerAttr(-half, product.element))
        flipped = arith.XOrIOp(store.value, number.result)
        new_store = memref.StoreOp.get(flipped.result, store.memref, list(store.indices))
        insert_before(store, [number, flipped, new_store])
        Rewriter.erase_op(store)
        widening = product.widening
        other_sign = arith.ExtUIOp if product.is_signed else arith.ExtSIOp
        new = other_sign.create(operands=list(widening.operands), result_types=[widening.results[0].type])
        Rewriter.replace_op(widening, [new], [new.results[0]])
        new.location = product.load.location
        sums, sums_buffer = self._sums()
        (result,) = self.writing.rewrite()
        if not isinstance(result, BlockOp):
            raise InternalError("cache_write gives a block")
        self._put_right(result, sums_buffer, -half if product.is_signed else half)
        return (copy, sums, result)

    def _sums(self) -> tuple[BlockOp, SSAValue]:
        block, product = self.block, self.product
        reduced = [at for at, kind in enumerate(block.kinds) if kind is IterKind.REDUCE]
        label = free_label(function_of(block), f"{block.label}_sums")
        extents = [block.extents[at] for at in self.used]
        alloc = new_alloc(product.sum_type, extents, NoneAttr(), label, block)
        insert_alloc(self.writing.buffer, alloc)
        places = [*self.used, *reduced]
        hints = [block.iter_vars[at].name_hint or "v" for at in places]
        loop_hints = [hint.removeprefix("v") or hint for hint in hints]
        kinds = [*[SPATIAL] * len(self.used), *[REDUCE] * len(reduced)]
        extents = [block.extents[at] for at in places]
        sums, outermost = block_in_loops(label, kinds, extents, hints, block, loop_hints)
        variables = [block.iter_vars[at] for at in places]
        mapping: dict[SSAValue, SSAValue] = dict(zip(variables, sums.iter_vars, strict=True))
        indices = list(sums.iter_vars[: len(self.used)])
        sums.body.block.add_ops(self._sum_body(mapping, alloc.memref, indices))
        for op in sums.walk():
            op.location = block.location
        Rewriter.insert_op(outermost, InsertPoint.before(child_towards(scope_of(block), block)))
        return sums, alloc.memref

    def _sum_body(
        self, mapping: Mapping[SSAValue, SSAValue], buffer: SSAValue, indices: Sequence[SSAValue]
    ) -> list[Operation]:
        product = self.product
        zero = arith.ConstantOp(IntegerAttr(0, product.sum_type))
        init = InitOp(Region(Block([zero, memref.StoreOp.get(zero.result, buffer, list(indices))])))
        values = dict(mapping)
        copies = [op.clone(values) for op in product.other_operations]
        before = memref.LoadOp.get(buffer, list(indices))
        after = arith.AddiOp(before.res, values.get(product.other, product.other))
        return [init, *copies, before, after, memref.StoreOp.get(after.result, buffer, list(indices))]

    def _put_right(self, result: BlockOp, sums: SSAValue, factor: int) -> None:
        variables = self.block.iter_vars
        written = [Index.of(index).single_value for index in self.product.store.indices]
        indices = [result.iter_vars[written.index(variables[at])] for at in self.used]
        (store,) = stores_of(result)
        load = memref.LoadOp.get(sums, indices)
        number = arith.ConstantOp(IntegerAttr(factor, self.product.sum_type))
        moved = arith.MuliOp(load.res, number.result)
        total = arith.AddiOp(store.value, moved.result)
        new_store = memref.StoreOp.get(total.result, store.memref, list(store.indices))
        insert_before(store, [load, number, moved, total, new_store])
        Rewriter.erase_op(store)


@dataclass(frozen=True)
class Recode(Primitive):
    """Read a factor of a sum of integer products from a copy that stores it as other integers, as dot-product
    instructions require.

    Requirements:
    1. the block reads a buffer at this index
    2. the encoding is another one, no wider than the sum: "unsigned", "signed", or a wider type ("int16" to "int64")
    3. the block adds products of integers, of which the buffer is one factor: loaded once, and widened
    4. the block is alone in a nest of serial loops, one for each of its iterators
    5. the buffer can be read from a copy, and the results be written through one: by `cache_read` and, for "unsigned"
       and "signed", by `cache_write`, with each spatial iterator of the other factor as an index

    The result is exact, because integers wrap. A wider type stores the same numbers. "unsigned" and "signed" offset
    them by half of the range, which flips one bit: a * b = a * (b + 128) - 128 * a. A separate block computes the
    correction once for all products with the same `a`.

    Returns the block that copies and, for "unsigned" and "signed", the ones that sum the other factor and write the
    results.

    ```mlir
    tir.block "C" ... { C[%vi, %vj] += extsi(A[%vi, %vk]) * extsi(B[%vk, %vj]) }
    // recode "C" {index = 1, encoding = "unsigned"}
    tir.block "B_global" ... { B_global[%v0, %v1] = B[%v0, %v1] xor -128 }
    tir.block "C_sums" iters(%vi: spatial<64>, %vk: reduce<64>) ... { C_sums[%vi] += extsi(A[%vi, %vk]) }
    tir.block "C" ... { C_global[%vi, %vj] += extsi(A[%vi, %vk]) * extui(B_global[%vk, %vj]) }
    tir.block "C_global" ... { C[%v0, %v1] = C_global[%v0, %v1] + C_sums[%v0] * -128 }
    ```
    """

    block: BlockOp
    index: int
    encoding: str

    def plan(self) -> Plan:
        block, subject = self.block, block_text(self.block)
        buffer = buffer_at(self, block, "read", self.index)
        self.require(3, why_opaque(block, subject))
        if self.encoding not in _ENCODINGS:
            known = ", ".join(f'"{name}"' for name in _ENCODINGS)
            self.refuse(2, Violation(f"'{self.encoding}' is not an encoding", legal=known))
        product = self._product(buffer)
        if not is_plain(block):
            self.refuse(4, Violation("it was scheduled already", legal="recode first"))
        try:
            reading = replace(CacheRead(block, self.index, "global").draft(), redirected=(block,))
            if self.encoding.startswith("int"):
                type_ = IntegerType(int(self.encoding[3:]))
                self._require_wider(product, type_)
                return WidenPlan(block, product, reading, type_)
            if product.is_signed == (self.encoding == "signed"):
                self.refuse(2, f"{buffer_name(buffer)} is read as {self.encoding} already")
            writing = CacheWrite(block, 0, "global").plan()
        except ScheduleError as error:
            if error.primitive.startswith(self.NAME):
                raise
            detail = f"{error.primitive}, {error.summary}: {error.violation.detail}"
            self.refuse(5, replace(error.violation, detail=detail))
        return ShiftPlan(block, product, reading, writing, self._used(product))

    def _require_wider(self, product: WidenedProduct, type_: IntegerType) -> None:
        old, new, sums = product.element.width.data, type_.width.data, product.sum_type.width.data
        if not old < new <= sums:
            detail = f"{type_} is not between {product.element}, as stored, and {product.sum_type}, as added"
            self.refuse(2, detail)

    def _product(self, buffer: SSAValue) -> WidenedProduct:
        block = self.block
        updates = updates_of(block) if block.init is not None else None
        if updates is None or len(updates) != 1 or updates[0].operation is not arith.AddiOp:
            self.refuse(3, "it does not add integers to one accumulator")
        (update,) = updates
        multiply = None if update.term is None else update.term.owner
        if not isinstance(multiply, arith.MuliOp) or not isinstance(multiply.result.type, IntegerType):
            self.refuse(3, "what it adds is no product")
        loads = [op for op in block.walk() if isinstance(op, memref.LoadOp) and op.memref is buffer]
        for factor, other in ((multiply.lhs, multiply.rhs), (multiply.rhs, multiply.lhs)):
            widening = factor.owner
            if not isinstance(widening, arith.ExtSIOp | arith.ExtUIOp) or widening.input.owner not in loads:
                continue
            element = cast("IntegerType", widening.input.type)
            if len(loads) != 1 or not widening.results[0].has_one_use() or not loads[0].res.has_one_use():
                self.refuse(3, f"{buffer_name(buffer)} is loaded for something else too")
            computing = self._computing(other)
            return WidenedProduct(loads[0], widening, other, computing, update.store, element, multiply.result.type)
        detail = f"{buffer_name(buffer)} is not loaded, widened and multiplied"
        self.refuse(3, detail)

    def _computing(self, value: SSAValue) -> tuple[Operation, ...]:
        sources = {source.owner for source in sources_in([value])}
        computing = tuple(op for op in operations_in(self.block.body) if op in sources)
        for op in computing:
            if op.parent_op() is not self.block or op.regions:
                self.refuse(3, f"{op.name} computes the other factor under a condition", op)
        return computing

    def _used(self, product: WidenedProduct) -> tuple[int, ...]:
        """Requirement 5: each is an index of the results."""
        block = self.block
        operands = {operand for op in product.other_operations for operand in op.operands}
        used = tuple(
            at
            for at, (variable, kind) in enumerate(zip(block.iter_vars, block.kinds, strict=True))
            if kind is IterKind.SPATIAL and variable in operands
        )
        written = {Index.of(index).single_value for index in product.store.indices}
        for at in used:
            if block.iter_vars[at] not in written:
                detail = f"%{block.iter_vars[at].name_hint} is not an index of the results, only part of one"
                self.refuse(5, detail)
        return used
