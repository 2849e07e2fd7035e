"""Packed layouts: operands are copied tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.dialects.memref import LoadOp, StoreOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from weft.analysis.block_scopes import buffers_read
from weft.analysis.index import Index
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import ORIGIN
from weft.dialects.traversal import operations_of
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.transform.interpreter import Associated, Interpreter, Results, each, handles, integers_of
from weft.schedule.transform.payload import Origin, PayloadBlock, PayloadItem
from weft.schedule.transform.structured import as_structured, extent_of, loop_of
from weft.support.errors import CompileError


@handles("structured.pack")
def pack(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    """Copy operands to tiles, padded to multiples, and compute by tile."""
    sizes = [interpreter.number(size) for size in interpreter.sizes(op, "static_packed_sizes", op.operands[1:])]

    def run(target: PayloadItem) -> Results:
        return [[_packed(interpreter, op, as_structured(interpreter, op, target), sizes)]]

    return each(interpreter, op, run)


def _packed(interpreter: Interpreter, op: Operation, target: PayloadBlock, sizes: Sequence[int]) -> PayloadBlock:
    payload, schedule = interpreter.payload, interpreter.payload.schedule
    if len(sizes) != len(target.loops):
        raise interpreter.failure(op, f"{len(sizes)} sizes for {len(target.loops)} dimensions", target)
    if any(size < 0 for size in sizes):
        raise interpreter.failure(op, f"sizes are at least 0, got {list(sizes)}", target)
    packed = [dimension for dimension, size in enumerate(sizes) if size]
    extents = [extent_of(interpreter, loop_of(interpreter, target, dimension)) for dimension in packed]
    if None in extents:
        raise interpreter.failure(op, "the extent of a packed dimension is known at run time only", target)
    if any(cast("int", extent) % sizes[at] for at, extent in zip(packed, extents, strict=True)):
        schedule.pad_einsum(target.block, [size or 1 for size in sizes])
        payload.remove(target)
        target = payload.add_structured(target.block, target.origin, target.name, target)
    reads, writes = _subscripts(interpreter, op, target)
    block, origin = target.block, target.origin
    packs: list[PayloadItem | None] = []
    for buffer, subscripts in reads:
        map_ = _tiles(subscripts, sizes)
        if map_ is None:
            packs.append(None)
            continue
        number = buffers_read(payload.block_of(block)).index(buffer)
        made = schedule.cache_read(block, number, "global", [block])
        schedule.transform_layout(made, ("write", 0), map_)
        packs.append(_copy(interpreter, target, made, "linalg.pack"))
    unpack: PayloadBlock | None = None
    if (map_ := _tiles(writes, sizes)) is not None:
        made = schedule.cache_write(block, 0, "global")
        schedule.transform_layout(made, ("read", 0), map_)
        # Consumers of the op now use its unpacked result.
        payload.block_of(made).attributes.pop(ORIGIN, None)
        unpack = payload.add_structured(made, origin, "linalg.unpack", target)
    outer, inner = list(target.loops), list[LoopHandle]()
    for dimension in packed:
        outer[dimension], tile = schedule.split(loop_of(interpreter, target, dimension), [None, sizes[dimension]])
        inner.append(tile)
    schedule.reorder(*(loop for loop in outer if loop is not None), *inner)
    payload.remove(target)
    producers = [None if one is None or one.origin is None else one.origin.number for one in packs]
    if origin is not None:
        producers = [origin.producers[at] if one is None else one for at, one in enumerate(producers)]
        producers += origin.producers[len(producers) :]
        new = payload.add_origin(replace(origin, name="linalg.generic", producers=tuple(producers)))
        if unpack is not None:
            payload.block_of(block).attributes[ORIGIN] = IntegerAttr(new.number, i64)
            payload.block_of(unpack.block).attributes[ORIGIN] = IntegerAttr(origin.number, i64)
            unpacking = replace(origin, name="linalg.unpack", producers=(new.number,))
            payload.origins[origin.number] = unpack.origin = unpacking
        origin = new if unpack is not None else origin
    result = PayloadBlock("linalg.generic", target.location, block, [*outer, *inner], origin=origin)
    payload.known.append(result)
    return result


def _copy(interpreter: Interpreter, target: PayloadBlock, block: BlockHandle, name: str) -> PayloadBlock:
    """Give a copying block its own origin, as a producer."""
    payload = interpreter.payload
    function = payload.function_of(target)
    origin = payload.add_origin(Origin(name, {}, (), (), (), function, target.location, (), 0))
    payload.block_of(block).attributes[ORIGIN] = IntegerAttr(origin.number, i64)
    return payload.add_structured(block, origin, name, target)


def _subscripts(
    interpreter: Interpreter, op: Operation, target: PayloadBlock
) -> tuple[list[tuple[SSAValue, list[int | None]]], list[int | None]]:
    """Dimensions of subscripts, or None, of buffers read and written."""
    block = interpreter.payload.block(target)
    body = operations_of(block, LoadOp, StoreOp)
    (*_, store) = [one for one in body if isinstance(one, StoreOp)]
    numbers: dict[SSAValue, int] = {variable: at for at, variable in enumerate(block.iter_vars)}
    inputs = dict.fromkeys(one.memref for one in body if isinstance(one, LoadOp) and one.memref is not store.memref)
    loads = [one for one in body if isinstance(one, LoadOp) and one.memref in inputs and not _in_init(one)]
    if len(loads) != len({load.memref for load in loads}):
        raise interpreter.failure(op, "it reads one buffer by two operands", target)

    def dimensions(access: LoadOp | StoreOp) -> list[int | None]:
        singles = [Index.of(index).single_value for index in access.indices]
        return [None if single is None else numbers.get(single) for single in singles]

    return [(load.memref, dimensions(load)) for load in loads], dimensions(store)


def _in_init(op: Operation) -> bool:
    parent = op.parent_op()
    return parent is not None and not isinstance(parent, BlockOp)


def _tiles(subscripts: Sequence[int | None], sizes: Sequence[int]) -> AffineMap | None:
    """Tiles, then positions in a tile; None if no dimension is packed."""
    at = {dimension: place for place, dimension in enumerate(subscripts) if dimension is not None and sizes[dimension]}
    if not at:
        return None
    exprs: list[AffineExpr] = [AffineDimExpr(place) for place in range(len(subscripts))]
    inner: list[AffineExpr] = []
    for dimension in sorted(at):
        place, size = at[dimension], AffineConstantExpr(sizes[dimension])
        exprs[place] = AffineDimExpr(place) // size
        inner.append(AffineDimExpr(place) % size)
    return AffineMap(len(subscripts), 0, (*exprs, *inner))


@handles("structured.pack_transpose")
def pack_transpose(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    """Permute a packed operand's tiles, and tiles' dimensions."""
    payload, schedule = interpreter.payload, interpreter.payload.schedule
    target, computing = interpreter.single(op), interpreter.single(op, 1)
    if not isinstance(target, PayloadBlock) or target.name not in ("linalg.pack", "linalg.unpack"):
        raise interpreter.failure(op, "requires target to map to a linalg.pack or linalg.unpack", target)
    if not isinstance(computing, PayloadBlock) or computing.origin is None or target.origin is None:
        raise interpreter.failure(op, "requires with_compute_op to be a structured op", computing)
    is_pack = target.name == "linalg.pack"
    if is_pack and target.origin.number not in computing.origin.producers:
        raise interpreter.failure(op, "not a single use by the LinalgOp target", target)
    rank, packed = _ranks(interpreter, target, is_pack=is_pack)
    outer, inner = (
        _permutation(interpreter, op, name, count) for name, count in (("outer_perm", rank), ("inner_perm", packed))
    )
    places = [*outer, *(rank + at for at in inner)]
    map_ = AffineMap(rank + packed, 0, tuple(AffineDimExpr(at) for at in places))
    interpreter.consume(op)
    interpreter.consume(op, 1)
    with payload.undone_on_error():
        schedule.transform_layout(target.block, ("write" if is_pack else "read", 0), map_)
    unpacks: list[Associated] = [
        one
        for one in payload.known
        if one.name == "linalg.unpack" and isinstance(one, PayloadBlock) and _reads(interpreter, one, computing)
    ]
    return [[computing], [target] if is_pack else [], unpacks if is_pack else [target]]


def _reads(interpreter: Interpreter, unpack: PayloadBlock, computing: PayloadBlock) -> bool:
    stores = operations_of(interpreter.payload.block(computing), StoreOp)
    loads = operations_of(interpreter.payload.block(unpack), LoadOp)
    return any(load.memref is store.memref for load in loads for store in stores)


def _ranks(interpreter: Interpreter, target: PayloadBlock, *, is_pack: bool) -> tuple[int, int]:
    block = interpreter.payload.block(target)
    load = next(iter(operations_of(block, LoadOp)))
    store = next(iter(operations_of(block, StoreOp)))
    plain, tiled = (load, store) if is_pack else (store, load)
    return len(plain.indices), len(tiled.indices) - len(plain.indices)


def _permutation(interpreter: Interpreter, op: Operation, name: str, count: int) -> Sequence[int]:
    given = integers_of(op, name) or range(count)
    if sorted(given) != list(range(count)):
        raise CompileError.at(op, f"invalid {name}: {list(given)} is no permutation of {count} dimensions")
    return given
