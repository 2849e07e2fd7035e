"""Dot products of narrow adjacent factors in serial loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import BFloat16Type, IntegerType, Signedness, bf16, f32, i32
from xdsl.ir import Operation, SSAValue

from weft.analysis.index import Index
from weft.dialects.aliasing import may_overlap
from weft.dialects.low_access import AccessMode, AccessPtrOp
from weft.dialects.low_dots import TileDotOp
from weft.dialects.tir import ForOp
from weft.passes.index_builders import end_of, index_before, result_before

LANES: Final = (16, 8, 4)
"""Sums of one dot product."""
_WIDTHS: Final = {8: 4, 16: 2}
"""Bits of a factor -> products that an instruction adds to a sum of 32 bits."""
_WIDENED: Final = {arith.ExtSIOp: Signedness.SIGNED, arith.ExtUIOp: Signedness.UNSIGNED}


@dataclass(frozen=True)
class _Factor:
    buffer: SSAValue
    place: Index
    reading: IntegerType | BFloat16Type

    @property
    def width(self) -> int:
        return _WIDTHS[self.reading.width.data if isinstance(self.reading, IntegerType) else self.reading.bitwidth]


_Product = tuple[_Factor, _Factor]
"""A factor shared by all iterations, and one of each iteration."""


@dataclass(frozen=True)
class Dots:
    variable: SSAValue
    sums: SSAValue
    place: Index
    groups: tuple[_Product, ...]
    """First factors of each dot product."""
    width: int
    """Products of a group."""

    def write(self, body: ForOp, first: Index, lanes: int) -> None:
        with end_of(body.body.block) as end:

            def pointer(buffer: SSAValue, place: Index, access: AccessMode, size: int) -> SSAValue:
                at = index_before(place.substitute({self.variable: first}), end)
                return result_before(AccessPtrOp(buffer, [at], access, [size]), end)

            for one, other in self.groups:
                a = pointer(one.buffer, one.place, AccessMode.READ, self.width)
                b = pointer(other.buffer, other.place, AccessMode.READ, self.width * lanes)
                c = pointer(self.sums, self.place, AccessMode.READWRITE, lanes)
                dot = TileDotOp(a, one.reading, b, other.reading, c, lanes, self.width)
                dot.location = end.location
                body.body.block.insert_op_before(dot, end)


def dots_of(loop: ForOp, *, reassociates: bool) -> Dots | None:
    """The dot products of an innermost loop; None for other effects. Those of floats round differently, so sums must be
    reassociable.

    ```mlir
    tir.for %g in 384 {
      %c = memref.load %C[%g] : memref<384xi32>
      %a0 = memref.load %A[%k] : memref<96xi8>        // also %k + 1, %k + 2, %k + 3
      %b0 = memref.load %B[%g * 4] : memref<1536xi8>  // also %g * 4 + 1, ...
      ...                                             // %c + extsi(%a0) * extui(%b0) + ...
      memref.store %sum, %C[%g] : memref<384xi32> }
    ```
    """
    ops, variable = list(loop.body.block.ops), loop.induction_variable
    store = ops[-1] if ops else None
    if not isinstance(store, memref.StoreOp) or len(store.indices) != 1:
        return None
    if store.value.type != i32 and not (reassociates and store.value.type == f32):
        return None
    place = Index.of(store.indices[0])
    terms = list(_terms(store.value, loop))
    accumulators = [term.owner for term in terms if isinstance(term.owner, memref.LoadOp)]
    if len(accumulators) != 1 or not _moves(place, variable, 1) or not _is_known_before(place, loop):
        return None
    (accumulator,) = accumulators
    if accumulator.memref is not store.memref or Index.of(accumulator.indices[0]) != place:
        return None
    products: list[_Product] = []
    for term in terms:
        if term.owner is not accumulator:
            product = _product(term, loop)
            if product is None:
                return None
            products.append(product)
    if len({(factor.width, isinstance(factor.reading, BFloat16Type)) for two in products for factor in two}) != 1:
        return None
    width = products[0][0].width
    groups = _groups(products, width)
    if groups is None or not all(_moves(other.place, variable, width) for _, other in groups):
        return None
    read = {factor.buffer for product in products for factor in product}
    is_known = all(_is_part(op, store, read) for op in ops)
    if not is_known or any(may_overlap(buffer, store.memref) for buffer in read):
        return None
    return Dots(variable, store.memref, place, tuple(groups), width)


def _is_part(op: Operation, store: memref.StoreOp, read: set[SSAValue]) -> bool:
    if isinstance(op, memref.LoadOp):
        return op.memref in read or op.memref is store.memref
    return op is store or (len(op.results) == 1 and (op.name.startswith("arith.") or op.name == "affine.apply"))


def _terms(value: SSAValue, loop: ForOp) -> Iterator[SSAValue]:
    if isinstance(value.owner, arith.AddiOp | arith.AddfOp) and loop.is_ancestor(value.owner):
        for operand in value.owner.operands:
            yield from _terms(operand, loop)
    else:
        yield value


def _product(value: SSAValue, loop: ForOp) -> _Product | None:
    if not isinstance(value.owner, arith.MuliOp | arith.MulfOp):
        return None
    one, other = (_factor(operand, loop) for operand in value.owner.operands)
    if one is None or other is None:
        return None
    if one.place.depends_on([loop.induction_variable]):
        one, other = other, one
    return None if one.place.depends_on([loop.induction_variable]) else (one, other)


def _factor(value: SSAValue, loop: ForOp) -> _Factor | None:
    widened = value.owner
    if not isinstance(widened, arith.ExtSIOp | arith.ExtUIOp | arith.ExtFOp) or value.type not in (i32, f32):
        return None
    load = widened.operands[0].owner
    if not isinstance(load, memref.LoadOp) or not loop.is_ancestor(load) or len(load.indices) != 1:
        return None
    loaded, place = load.res.type, Index.of(load.indices[0])
    if not _is_known_before(place, loop):
        return None
    if isinstance(widened, arith.ExtFOp):
        return _Factor(load.memref, place, bf16) if isinstance(loaded, BFloat16Type) else None
    if not isinstance(loaded, IntegerType) or loaded.width.data not in _WIDTHS:
        return None
    return _Factor(load.memref, place, IntegerType(loaded.width.data, _WIDENED[type(widened)]))


def _is_known_before(place: Index, loop: ForOp) -> bool:
    return not any(isinstance(value.owner, Operation) and loop.is_ancestor(value.owner) for value in place.values())


def _groups(products: Sequence[_Product], width: int) -> list[_Product] | None:
    left = list(products)
    found: list[_Product] = []
    while left:
        first = left[0]
        alike = [product for product in left if _is_alike(first, product)]
        distances = sorted((product[0].place - first[0].place).constant for product in alike)
        start = next(p for p in alike if (p[0].place - first[0].place).constant == distances[0])
        for step in range(width):
            wanted = [(factor.buffer, factor.place + step, factor.reading) for factor in start]
            matching = (p for p in alike if [(f.buffer, f.place, f.reading) for f in p] == wanted)
            product = next(matching, None)
            if product is None:
                return None
            left.remove(product)
            alike.remove(product)
        found.append(start)
    return found


def _is_alike(one: _Product, other: _Product) -> bool:
    a, b = one[0], other[0]
    return a.buffer is b.buffer and a.reading == b.reading and (a.place - b.place).is_constant


def _moves(place: Index, variable: SSAValue, elements: int) -> bool:
    rest = place - Index({variable: elements})
    return place.coefficient(variable) == elements and not rest.mentions([variable])
