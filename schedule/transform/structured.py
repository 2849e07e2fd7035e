"""Operations on structured ops: tiles, fusion, interchange, partial reductions, vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from xdsl.ir import Operation

from weft.analysis.block_scopes import consumers_of, producers_of
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import INIT_ORIGIN, ORIGIN, IterKind
from weft.dialects.traversal import operations_in, operations_of
from weft.dialects.upstream.transform import FuseOp, TileUsingForallOp
from weft.schedule.recording import LoopHandle
from weft.schedule.transform.interpreter import (
    Associated,
    Interpreter,
    Results,
    Silenceable,
    Size,
    each,
    handles,
    handles_each,
    has_flag,
    integer_of,
    integers_of,
)
from weft.schedule.transform.payload import PayloadBlock, PayloadInit, PayloadItem, PayloadLoops
from weft.support.errors import CompileError, ScheduleError

_LANES: Final = 64
"""Lanes into which `vectorize` turns one loop at most; longer loops are split first."""


def as_structured(interpreter: Interpreter, op: Operation, target: PayloadItem) -> PayloadBlock:
    """A payload op, or a reduction's fill."""
    payload = interpreter.payload
    if isinstance(target, PayloadBlock):
        return target
    if isinstance(target, PayloadInit):
        reduction = payload.block(target)
        loops = payload.schedule.get_loops(target.reduction)
        known = {payload.loop(loop) for one in payload.known if isinstance(one, PayloadLoops) for loop in one.loops}
        first = next(loop for loop in loops if payload.loop(loop) not in known)
        block = payload.schedule.decompose_reduction(target.reduction, first)
        reduction.attributes.pop(INIT_ORIGIN, None)
        payload.remove(target)
        cast("BlockOp", payload.schedule.get(block)).attributes.pop(INIT_ORIGIN, None)
        return payload.add_structured(block, target.origin)
    raise interpreter.failure(op, "only structured ops can be tiled", target)


def kinds_of(interpreter: Interpreter, target: PayloadBlock) -> Sequence[IterKind]:
    return interpreter.payload.block(target).kinds


def loop_of(interpreter: Interpreter, target: PayloadBlock, dimension: int) -> LoopHandle:
    """Created if missing because of one iteration."""
    loop = target.loops[dimension]
    if loop is None:
        schedule = interpreter.payload.schedule
        inner = [one for one in target.loops if one is not None]
        loop = target.loops[dimension] = schedule.add_unit_loop(inner[0] if inner else target.block)
    return loop


def extent_of(interpreter: Interpreter, loop: LoopHandle) -> int | None:
    """Returns None if unknown at compile time."""
    extent = interpreter.payload.loop(loop).extent
    return extent if isinstance(extent, int) else None


def tile(
    interpreter: Interpreter,
    op: Operation,
    target: PayloadBlock,
    sizes: Sequence[Size],
    interchange: Sequence[int] = (),
    *,
    counted: bool = False,
) -> tuple[PayloadBlock, list[LoopHandle]]:
    """Split loops by sizes (0 keeps a loop), or with `counted` by numbers of tiles. Returns the op on one tile, and the
    outer loops."""
    payload = interpreter.payload
    count = len(target.loops)
    if len(sizes) > count:
        raise interpreter.failure(op, f"too many tiles provided, expected at most {count} found {len(sizes)}", target)
    order = [*interchange, *(d for d in range(count) if d not in interchange)]
    if sorted(order) != list(range(count)):
        raise interpreter.failure(op, f"the interchange {list(interchange)} is no permutation of dimensions", target)
    outer: dict[int, LoopHandle] = {}
    inner: list[LoopHandle | None] = list(target.loops)
    for dimension, size in enumerate(sizes):
        if interpreter.number(size) == 0:
            continue
        if interpreter.number(size) < 0:
            raise interpreter.failure(
                op, f"the size {interpreter.number(size)} of dimension {dimension} is negative", target
            )
        loop = loop_of(interpreter, target, dimension)
        extent = extent_of(interpreter, loop)
        if counted:
            factors: list[Size | None] = [size, None]
        else:
            factors = [None, min(size, extent) if isinstance(size, int) and extent is not None else size]
        outer[dimension], inner[dimension] = payload.schedule.split(loop, factors)
    tiles = [outer[dimension] for dimension in order if dimension in outer]
    loops = [*tiles, *(loop for loop in inner if loop is not None)]
    if tiles and len(loops) > 1:
        payload.schedule.reorder(*loops)
    payload.remove(target)
    tiled = PayloadBlock(
        target.name, target.location, target.block, inner, attributes=dict(target.attributes), origin=target.origin
    )
    payload.known.append(tiled)
    return tiled, tiles


@handles("structured.tile_using_for")
def tile_using_for(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    sizes = interpreter.sizes(op, "static_sizes", op.operands[1:])
    if has_flag(op, "scalable_sizes") and any(integers_of(op, "scalable_sizes") or ()):
        raise CompileError.at(op, f"{op_name(op)}: scalable sizes are not supported")

    def run(target: PayloadItem) -> Results:
        structured = as_structured(interpreter, op, target)
        tiled, loops = tile(interpreter, op, structured, sizes, integers_of(op, "interchange") or ())
        return [[tiled], *([interpreter.payload.add_loop("scf.for", [loop], target)] for loop in loops)]

    return each(interpreter, op, run)


@handles("structured.tile_using_forall")
def tile_using_forall(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    forall = cast("TileUsingForallOp", op)
    if forall.packed_num_threads is not None or forall.packed_tile_sizes is not None:
        raise CompileError.at(op, f"{op_name(op)}: packed sizes are not supported")
    threads = interpreter.sizes(op, "static_num_threads", forall.num_threads)
    sizes = interpreter.sizes(op, "static_tile_sizes", forall.tile_sizes)
    if threads and any(map(interpreter.number, sizes)):
        raise CompileError.at(op, f"{op_name(op)}: num_threads and tile_sizes together are not supported")

    def run(target: PayloadItem) -> Results:
        structured = as_structured(interpreter, op, target)
        tiled, loops = tile(interpreter, op, structured, threads or sizes, counted=bool(threads))
        for loop in loops:
            interpreter.payload.schedule.parallel(loop)
        return [[tiled], [interpreter.payload.add_loop("scf.forall", loops, target)] if loops else []]

    return each(interpreter, op, run)


@handles("structured.fuse_into_containing_op")
def fuse_into_containing_op(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    producers, containing = interpreter.ops(op), interpreter.ops(op, 1)
    if not producers:
        return [[], list(containing)]
    if len(containing) != 1 or not isinstance(containing[0], PayloadLoops):
        raise CompileError.at(
            op, f"{op_name(op)} requires exactly one containing_op handle to a loop (got {len(containing)})"
        )
    interpreter.consume(op)
    with interpreter.payload.undone_on_error():
        return [fuse_producers(interpreter, op, producers, containing[0]), [containing[0]]]


def fuse_producers(
    interpreter: Interpreter, op: Operation, producers: Sequence[PayloadItem], containing: PayloadLoops
) -> list[Associated]:
    """Move producers into a loop, consumers first."""
    pending, fused = list(producers), list[Associated]()
    while pending:
        failures: list[Silenceable] = []
        for producer in pending:
            try:
                fused.append(_fuse_producer(interpreter, op, producer, containing))
            except Silenceable as error:
                failures.append(error)
            else:
                pending.remove(producer)
                break
        else:
            raise failures[0]
    return fused


def _fuse_producer(
    interpreter: Interpreter, op: Operation, producer: PayloadItem, containing: PayloadLoops
) -> PayloadItem:
    payload = interpreter.payload
    loop = payload.loop(containing.loops[-1])
    if isinstance(producer, PayloadInit):
        if loop.is_ancestor(payload.block(producer)):
            return producer
        raise interpreter.failure(
            op, "could not find next producer to fuse into container: the reduction that it starts is outside", producer
        )
    if not isinstance(producer, PayloadBlock):
        raise interpreter.failure(op, "only structured ops can be fused", producer)
    if loop.is_ancestor(payload.block(producer)):
        raise interpreter.failure(op, "it is inside of the containing op already", producer)
    if not any(loop.is_ancestor(consumer) for consumer in consumers_of(payload.block(producer))):
        raise interpreter.failure(
            op, "could not find next producer to fuse into container: nothing there uses its result", producer
        )
    try:
        payload.schedule.compute_at(producer.block, containing.loops[-1], preserve_unit_loops=True)
    except ScheduleError as error:
        raise interpreter.failure(op, str(error).removeprefix("error: "), producer) from error
    return replace(interpreter, producer)


def replace(interpreter: Interpreter, old: PayloadBlock, name: str | None = None) -> PayloadBlock:
    interpreter.payload.remove(old)
    new = interpreter.payload.add_structured(old.block, old.origin, name or old.name, old)
    new.attributes.update(old.attributes)
    return new


@handles("structured.fuse")
def fuse(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    sizes = interpreter.sizes(op, "static_tile_sizes", cast("FuseOp", op).tile_sizes)
    interchange = [
        interpreter.number(one)
        for one in interpreter.sizes(op, "static_tile_interchange", cast("FuseOp", op).tile_interchange)
    ]

    def run(target: PayloadItem) -> Results:
        payload = interpreter.payload
        tiled, loops = tile(interpreter, op, as_structured(interpreter, op, target), sizes, interchange)
        if has_flag(op, "use_forall"):
            for loop in loops:
                payload.schedule.parallel(loop)
            made = [payload.add_loop("scf.forall", loops, target)] if loops else []
        else:
            made = [payload.add_loop("scf.for", [loop], target) for loop in loops]
        if made:
            _fuse_greedily(interpreter, op, tiled, made[-1])
        return [[tiled], *([loop] for loop in made)]

    return each(interpreter, op, run)


def _fuse_greedily(interpreter: Interpreter, op: Operation, tiled: PayloadBlock, loop: PayloadLoops) -> None:
    payload = interpreter.payload
    pending = [payload.block(tiled)]
    while pending:
        block = pending.pop()
        for producer in producers_of(block):
            known = {payload.block(one): one for one in payload.known if isinstance(one, PayloadBlock)}
            if producer not in known or payload.loop(loop.loops[-1]).is_ancestor(producer):
                continue
            try:
                fused = _fuse_producer(interpreter, op, known[producer], loop)
            except Silenceable:
                continue
            pending.append(payload.block(cast("PayloadBlock", fused)))


@handles("structured.interchange")
def interchange(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    permutation = integers_of(op, "iterator_interchange") or []

    def run(target: PayloadItem) -> Results:
        if not isinstance(target, PayloadBlock) or target.name != "linalg.generic":
            return [[]]
        if not permutation:
            return [[target]]
        if sorted(permutation) != list(range(len(target.loops))):
            raise CompileError.at(
                op, f"{op_name(op)}: {permutation} is no permutation of the {len(target.loops)} dimensions"
            )
        loops = [target.loops[dimension] for dimension in permutation]
        named = [loop for loop in loops if loop is not None]
        if len(named) > 1:
            interpreter.payload.schedule.reorder(*named)
        return [[renewed(interpreter, target, loops)]]

    return each(interpreter, op, run)


def renewed(
    interpreter: Interpreter, target: PayloadBlock, loops: Sequence[LoopHandle | None], name: str | None = None
) -> PayloadBlock:
    interpreter.payload.remove(target)
    new = PayloadBlock(
        name or target.name,
        target.location,
        target.block,
        list(loops),
        attributes=dict(target.attributes),
        origin=target.origin,
    )
    interpreter.payload.known.append(new)
    return new


@handles_each("structured.generalize")
def generalize(interpreter: Interpreter, op: Operation, target: PayloadItem) -> Results:
    if isinstance(target, PayloadInit):
        target = as_structured(interpreter, op, target)
    if not isinstance(target, PayloadBlock):
        return [[]]
    return [[renewed(interpreter, target, target.loops, "linalg.generic")]]


@handles_each("structured.decompose")
def decompose(interpreter: Interpreter, op: Operation, target: PayloadItem) -> Results:
    """Reduce 2-d convolutions and pools whose window and output have one element along a dimension."""
    if not isinstance(target, PayloadBlock):
        return [[]]
    if "conv_2d" not in target.name and "pooling" not in target.name:
        raise interpreter.failure(op, "it has no decomposition into operations of fewer dimensions", target)
    extents = [1 if loop is None else extent_of(interpreter, loop) for loop in target.loops]
    kinds = kinds_of(interpreter, target)
    units = [at for at, extent in enumerate(extents) if extent == 1]
    if not any(kinds[at] is IterKind.SPATIAL for at in units) or not any(kinds[at] is IterKind.REDUCE for at in units):
        raise interpreter.failure(op, "no dimension of the window, with that of the output, has one element", target)
    row = next(at for at in units if kinds[at] is IterKind.SPATIAL)
    window = next(at for at in units if kinds[at] is IterKind.REDUCE)
    loops = [loop for at, loop in enumerate(target.loops) if at not in (row, window)]
    return [[renewed(interpreter, target, loops, target.name.replace("2d", "1d"))]]


@handles_each("structured.convert_to_loops")
def convert_to_loops(interpreter: Interpreter, op: Operation, target: PayloadItem) -> Results:
    structured = as_structured(interpreter, op, target)
    interpreter.payload.remove(structured)
    interpreter.payload.block(structured).attributes.pop(ORIGIN, None)
    made = [interpreter.payload.add_loop("scf.for", [loop], target) for loop in structured.loops if loop is not None]
    return [made]


@handles("structured.split")
def split(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    dimension = integer_of(op, "dimension")
    chunk = (
        integer_of(op, "static_chunk_sizes")
        if len(op.operands) == 1
        else interpreter.number(interpreter.size(op, op.operands[1]))
    )
    if has_flag(op, "multiway"):
        raise CompileError.at(op, f"{op_name(op)}: multiway is not supported")

    def run(target: PayloadItem) -> Results:
        payload = interpreter.payload
        structured = as_structured(interpreter, op, target)
        if not 0 <= dimension < len(structured.loops):
            raise interpreter.failure(op, f"dimension {dimension} does not exist in target op", target)
        loop = loop_of(interpreter, structured, dimension)
        extent = extent_of(interpreter, loop)
        if extent is None:
            raise interpreter.failure(op, "the extent of the dimension is known at run time only", target)
        if chunk >= extent:
            return [[structured]]
        loops = [one for one in structured.loops if one is not None]
        if loops[0] is not loop:
            payload.schedule.reorder(loop, *(one for one in loops if one is not loop))
        origin = structured.origin
        payload.remove(structured)
        parts = payload.schedule.loop_partition(loop, [chunk, None])
        found = payload.structured_in(parts, origin, structured.name)
        for part in found:
            own = [one for one in part.loops if one is not None]
            if len(own) > 1 and dimension:
                payload.schedule.reorder(*own)
        return [found]

    return each(interpreter, op, run)


@handles("structured.pad")
def pad(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    """Pad dimensions to multiples, copying operands."""
    dimensions = integers_of(op, "padding_dimensions") or []
    multiples = interpreter.sizes(op, "static_pad_to_multiple_of", op.operands[1:])
    if has_flag(op, "transpose_paddings") and any(cast("Sequence[object]", op.properties["transpose_paddings"])):
        raise CompileError.at(op, f"{op_name(op)}: transpose_paddings is not supported")

    def run(target: PayloadItem) -> Results:
        payload, structured = interpreter.payload, as_structured(interpreter, op, target)
        if any(not 0 <= dimension < len(structured.loops) for dimension in dimensions):
            raise interpreter.failure(op, f"padding dimensions {dimensions} of {len(structured.loops)}", target)
        padding = [1] * len(structured.loops)
        for at, dimension in enumerate(dimensions):
            padding[dimension] = interpreter.number(multiples[at]) if at < len(multiples) else 1
        function = payload.place(payload.around(target)[-2])
        before = {block for block in operations_in(function) if isinstance(block, BlockOp)}
        payload.schedule.pad_einsum(structured.block, padding)
        padded = replace(interpreter, structured)
        reduction = payload.block(padded)
        pads: list[PayloadItem] = []
        copies: list[PayloadItem] = []
        is_after = False
        for block in operations_of(function, BlockOp):
            is_after = is_after or block is reduction
            if block not in before:
                name = "linalg.copy" if is_after else "tensor.pad"
                made = payload.add_structured(payload.schedule.handle_of(block), None, name, target)
                (copies if is_after else pads).append(made)
        return [[padded], pads, copies]

    return each(interpreter, op, run)


@handles_each("structured.convert_conv2d_to_img2col")
def convert_conv2d_to_img2col(interpreter: Interpreter, op: Operation, target: PayloadItem) -> Results:
    """Copy the input, indexed by the convolution's dimensions; the rest is a product."""
    payload, structured = interpreter.payload, as_structured(interpreter, op, target)
    if "conv_2d" not in structured.name:
        raise interpreter.failure(op, "it is no convolution over two dimensions", target)
    copy = payload.schedule.reindex(structured.block, ("read", 0))
    return [
        [payload.add_structured(copy, None, "linalg.generic", target)],
        [renewed(interpreter, structured, structured.loops, "linalg.generic")],
    ]


@handles("structured.tile_reduction_using_for")
def tile_reduction_using_for(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    """Partial results per position in a tile."""
    sizes = interpreter.sizes(op, "tile_sizes", op.operands[1:])

    def run(target: PayloadItem) -> Results:
        structured, reduced = _tiled_reduction(interpreter, op, target, sizes)
        start = _start_of(interpreter, structured)
        tiled, loops = tile(interpreter, op, structured, sizes)
        partial, combining = _factor(interpreter, tiled, loop_of(interpreter, tiled, reduced), -1)
        outer = interpreter.payload.add_loop("scf.for", loops, target)
        fills = [*start, *_start_of(interpreter, partial)][-1:]
        return _as_many(op, [fills, [partial], [combining], [outer]])

    return each(interpreter, op, run)


@handles("structured.tile_reduction_using_forall")
def tile_reduction_using_forall(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    """Partial results per concurrent part."""
    counts = interpreter.sizes(op, "num_threads", ())
    if has_flag(op, "tile_sizes"):
        raise CompileError.at(op, f"{op_name(op)}: num_threads and tile_sizes together are not supported")

    def run(target: PayloadItem) -> Results:
        payload = interpreter.payload
        structured, _ = _tiled_reduction(interpreter, op, target, counts)
        tiled, (part,) = tile(interpreter, op, structured, counts, counted=True)
        partial, combining = _factor(interpreter, tiled, part, -1)
        payload.schedule.parallel(part)
        loop = payload.add_loop("scf.forall", [part], target)
        partial = replace(interpreter, partial)
        return _as_many(op, [_start_of(interpreter, partial), [partial], [combining], [loop]])

    return each(interpreter, op, run)


def _tiled_reduction(
    interpreter: Interpreter, op: Operation, target: PayloadItem, numbers: Sequence[Size]
) -> tuple[PayloadBlock, int]:
    """The block, and the only dimension with a number other than 0."""
    structured = as_structured(interpreter, op, target)
    kinds, tiled = kinds_of(interpreter, structured), [at for at, n in enumerate(numbers) if interpreter.number(n)]
    if len(tiled) != 1 or tiled[0] >= len(kinds) or kinds[tiled[0]] is not IterKind.REDUCE:
        raise interpreter.failure(op, "one dimension is tiled, a reduction", target)
    return structured, tiled[0]


@handles("structured.split_reduction")
def split_reduction(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    """Partial results per part."""
    factor, place = integer_of(op, "split_factor", 0), integer_of(op, "insert_split_dimension", 0)

    def run(target: PayloadItem) -> Results:
        structured = as_structured(interpreter, op, target)
        kinds = kinds_of(interpreter, structured)
        reduced = [at for at, kind in enumerate(kinds) if kind is IterKind.REDUCE]
        if len(reduced) != 1:
            raise interpreter.failure(op, f"it has {len(reduced)} reduction dimensions, one is expected", target)
        loop = loop_of(interpreter, structured, reduced[0])
        extent = extent_of(interpreter, loop)
        if factor < 2 or extent is None or extent % factor:
            raise interpreter.failure(
                op, f"the factor {factor} does not divide the extent {extent} of the reduction", target
            )
        inner = has_flag(op, "inner_parallel")
        split = interpreter.payload.schedule.split(loop, [None, factor] if inner else [factor, None])
        chosen, structured.loops[reduced[0]] = (split[1], split[0]) if inner else (split[0], split[1])
        partial, combining = _factor(interpreter, structured, chosen, place)
        fills = _start_of(interpreter, partial)
        return _as_many(op, [[], fills, [partial], [combining]])

    return each(interpreter, op, run)


def _factor(
    interpreter: Interpreter, target: PayloadBlock, loop: LoopHandle, axis: int
) -> tuple[PayloadBlock, PayloadBlock]:
    payload = interpreter.payload
    block = payload.schedule.rfactor(loop, axis)
    made, old = cast("BlockOp", payload.schedule.get(block)), payload.block(target)
    if INIT_ORIGIN in old.attributes:
        made.attributes[INIT_ORIGIN] = old.attributes.pop(INIT_ORIGIN)
    for one in [one for one in payload.known if isinstance(one, PayloadInit) and one.reduction == target.block]:
        payload.remove(one)
    payload.remove(target)
    for name in (ORIGIN,):
        made.attributes.pop(name, None)
    partial = payload.add_structured(block, None, "linalg.generic", target)
    combining = payload.add_structured(target.block, target.origin, "linalg.reduce", target)
    return partial, combining


def _start_of(interpreter: Interpreter, target: PayloadBlock) -> list[PayloadItem]:
    return [one for one in interpreter.payload.known if isinstance(one, PayloadInit) and one.reduction == target.block]


def _as_many(op: Operation, found: Results) -> Results:
    return list(found)[: len(op.results)]


def vectorize_op(
    interpreter: Interpreter, op: Operation, target: PayloadItem, sizes: Sequence[Size] = ()
) -> PayloadBlock:
    """Turn the innermost parallel dimension into lanes."""
    payload, schedule = interpreter.payload, interpreter.payload.schedule
    structured = as_structured(interpreter, op, target)
    kinds = kinds_of(interpreter, structured)
    if len(sizes) > len(structured.loops):
        raise interpreter.failure(op, f"{len(sizes)} vector sizes for {len(structured.loops)} dimensions", target)
    extents = [1 if loop is None else extent_of(interpreter, loop) for loop in structured.loops]
    for at, size in enumerate(map(interpreter.number, sizes)):
        extent = extents[at]
        if extent is not None and size < extent:
            raise interpreter.failure(
                op, f"the vector size {size} of dimension {at} is less than its extent {extent}", target
            )
    if None in extents and not sizes:
        raise interpreter.failure(op, "an extent is known at run time only, and no vector sizes are given", target)
    parallel = [at for at, extent in enumerate(extents) if kinds[at] is IterKind.SPATIAL and extent != 1]
    if not parallel:
        return _vectorize_reduction(interpreter, op, structured, extents)
    chosen = parallel[-1]
    loop = cast("LoopHandle", structured.loops[chosen])
    others = [one for at, one in enumerate(structured.loops) if at != chosen and one is not None]
    if others:
        schedule.reorder(*others, loop)
    lanes = _lanes(extents[chosen] or interpreter.number(sizes[chosen]))
    if lanes != extents[chosen]:
        _, loop = schedule.split(loop, [None, lanes])
    schedule.vectorize(loop)
    payload.remove(structured)
    return structured


def _lanes(extent: int) -> int:
    if extent <= _LANES:
        return extent
    return next((lanes for lanes in (64, 32, 16, 8) if extent % lanes == 0), 16)


def _vectorize_reduction(
    interpreter: Interpreter, op: Operation, target: PayloadBlock, extents: Sequence[int | None]
) -> PayloadBlock:
    schedule = interpreter.payload.schedule
    loops = [(loop, extent) for loop, extent in zip(target.loops, extents, strict=True) if loop is not None]
    if not loops or max(extent or 0 for _, extent in loops) == 1:
        return target
    loop, extent = loops[-1]
    block = interpreter.payload.block(target)
    if block.init is not None:
        schedule.decompose_reduction(target.block, loops[0][0])
    lanes = _lanes(extent or 1)
    if lanes != extent:
        _, loop = schedule.split(loop, [None, lanes])
    schedule.annotate(loop, "reassociate", True)
    schedule.vectorize(loop)
    return target


@handles("structured.vectorize")
def vectorize(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    sizes = interpreter.sizes(op, "static_vector_sizes", op.operands[1:])

    def run(target: PayloadItem) -> None:
        vectorize_op(interpreter, op, target, sizes)

    return each(interpreter, op, run)


@handles("structured.vectorize_children_and_apply_patterns")
def vectorize_children(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    targets = interpreter.ops(op)
    for target in targets:
        if target.name not in ("func.func", "builtin.module"):
            raise interpreter.failure(op, "the target is isolated from above", target)
    interpreter.consume(op)
    for target in targets:
        for one in interpreter.payload.inside(target):
            if isinstance(one, PayloadBlock):
                try:
                    with interpreter.payload.undone_on_error():
                        vectorize_op(interpreter, op, one)
                except (ScheduleError, Silenceable):
                    continue
    return [list(targets)]
