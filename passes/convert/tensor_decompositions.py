"""Decomposition of `softmax`, `pack`, `unpack`, `tensor.scatter`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, linalg, math, memref, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import Rewriter

from weft.dialects.traversal import operations_in
from weft.dialects.upstream.linalg import GenericOp
from weft.dialects.upstream.linalg_layouts import LayoutOp, PackOp, SoftmaxOp, UnpackOp, WinogradOp
from weft.dialects.upstream.tensor import ScatterOp
from weft.passes.index_builders import constant_before, insert_before, result_before
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute


def decompose(functions: Iterable[FuncOp]) -> None:
    """Rewrite these operations as structured operations of linalg, loops of scf and others of tensor.

    ```mlir
    %p = linalg.pack %a inner_dims_pos = [1] inner_tiles = [8] into %o : tensor<10x16xf32> -> tensor<10x2x8xf32>
    // becomes
    %p = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1 * 8 + d2)>, ...], ...}
        ins(%a : tensor<10x16xf32>) outs(%o : tensor<10x2x8xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 }
    ```
    Raises `CompileError` for Winograd transforms.
    """
    for function in functions:
        for op in operations_in(function):
            rule = _RULES.get(type(op))
            if rule is not None:
                rule(_TensorWriter(op), op)


def is_decomposed(op: Operation) -> bool:
    """Whether `decompose` rewrites an operation, or refuses it."""
    return type(op) in _RULES


@dataclass
class _TensorWriter:
    op: Operation

    def add(self, op: Operation) -> SSAValue:
        return result_before(op, self.op)

    def write(self, op: Operation, target: SSAValue) -> SSAValue:
        """The result of `op`, or the target if that is a buffer."""
        insert_before(self.op, [op])
        return op.results[0] if op.results else target

    def index(self, number: int) -> SSAValue:
        return constant_before(number, self.op)

    def extent(self, value: SSAValue, dimension: int) -> SSAValue:
        known = _shape(value)[dimension]
        if known != DYNAMIC_INDEX:
            return self.index(known)
        kind = tensor.DimOp if isinstance(value.type, TensorType) else memref.DimOp
        return self.add(kind(value, self.index(dimension)))

    def new(self, like: SSAValue, dimensions: Sequence[int]) -> SSAValue:
        shape = [_shape(like)[d] for d in dimensions]
        sizes = [self.extent(like, d) for d in dimensions if _shape(like)[d] == DYNAMIC_INDEX]
        if isinstance(like.type, TensorType):
            return self.add(tensor.EmptyOp(sizes, TensorType(_element(like), shape)))
        return self.add(memref.AllocOp(sizes, [], MemRefType(_element(like), shape)))

    def computed(
        self,
        inputs: Sequence[tuple[SSAValue, AffineMap]],
        output: tuple[SSAValue, AffineMap],
        compute: Callable[[Block], SSAValue],
        reduced: Sequence[int] = (),
    ) -> SSAValue:
        operands = [*inputs, output]
        block = Block(arg_types=[_element(value) for value, _ in operands])
        value = compute(block)
        block.add_op(linalg.ops.YieldOp(value))
        loops = output[1].num_dims
        kinds = [
            IteratorTypeAttr.reduction() if loop in reduced else IteratorTypeAttr.parallel() for loop in range(loops)
        ]
        maps = [AffineMapAttr(map_) for _, map_ in operands]
        target = output[0]
        results = [target.type] if isinstance(target.type, TensorType) else []
        op = GenericOp([value for value, _ in inputs], [target], Region(block), maps, kinds, results)
        return self.write(op, target)

    def filled(self, number: float, output: SSAValue) -> SSAValue:
        constant = self.add(arith.ConstantOp(FloatAttr(number, cast("AnyFloat", _element(output)))))
        results = [output.type] if isinstance(output.type, TensorType) else []
        return self.write(linalg.ops.FillOp([constant], [output], results), output)

    def replace(self, value: SSAValue) -> None:
        for result in self.op.results:
            value.name_hint = result.name_hint or value.name_hint
        Rewriter.replace_op(self.op, [], [value] * len(self.op.results))


def _shape(value: SSAValue) -> Sequence[int]:
    return cast("TensorType[Attribute] | MemRefType[Attribute]", value.type).get_shape()


def _element(value: SSAValue) -> Attribute:
    return cast("TensorType[Attribute] | MemRefType[Attribute]", value.type).element_type


def _in_block(kind: type[Operation], block: Block, *operands: SSAValue) -> SSAValue:
    op = kind.create(
        operands=operands,
        result_types=[operands[0].type],
        properties={"fastmath": arith.FastMathFlagsAttr("none")},
    )
    block.add_op(op)
    return op.results[0]


# Operations


def _softmax(writer: _TensorWriter, op: Operation) -> None:
    """In MLIR's steps: the maximum, powers of the differences, their sum, quotients."""
    softmax = cast("SoftmaxOp", op)
    source, output = softmax.input, softmax.output
    if not isinstance(_element(output), AnyFloat) or _element(source) != _element(output):
        raise CompileError.at(op, f"{op.name} of {source.type} into {output.type}: elements are floats of one type")
    rank, axis = len(_shape(source)), softmax.dimension.value.data
    kept = [d for d in range(rank) if d != axis]
    whole = AffineMap.identity(rank)
    row = AffineMap(rank, 0, tuple(AffineDimExpr(d) for d in kept))

    def reduced(kind: type[Operation], start: float, of: SSAValue) -> SSAValue:
        total = writer.filled(start, writer.new(source, kept))
        return writer.computed(
            [(of, whole)], (total, row), lambda block: _in_block(kind, block, block.args[1], block.args[0]), [axis]
        )

    def power(block: Block) -> SSAValue:
        return _in_block(math.ExpOp, block, _in_block(arith.SubfOp, block, block.args[0], block.args[1]))

    # Buffers are divided in place. Tensors of powers have the extents of the source, as their reductions.
    on_tensors = isinstance(output.type, TensorType)
    greatest = reduced(arith.MaxnumfOp, float("-inf"), source)
    held = writer.new(source, range(rank)) if on_tensors else output
    powers = writer.computed([(source, whole), (greatest, row)], (held, whole), power)
    total = reduced(arith.AddfOp, 0.0, powers)
    given = [(powers, whole), (total, row)] if on_tensors else [(total, row)]

    def quotient(block: Block) -> SSAValue:
        left, right = (block.args[0], block.args[1]) if on_tensors else (block.args[1], block.args[0])
        return _in_block(arith.DivfOp, block, left, right)

    writer.replace(writer.computed(given, (output, whole), quotient))


def _tiles(op: LayoutOp) -> dict[int, int]:
    return dict(zip(op.tiled, op.tiles, strict=True))


def _dynamic_tiles(writer: _TensorWriter, op: PackOp | UnpackOp) -> dict[int, SSAValue]:
    """Dimension -> value of the extent of its tiles."""
    given = iter(op.inner_tiles)
    return {
        d: next(given) if tile == DYNAMIC_INDEX else writer.index(tile)
        for d, tile in zip(op.tiled, op.tiles, strict=True)
    }


@dataclass
class _Places:
    """Index arithmetic for elements at positions that no affine map gives."""

    block: Block

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def loop(self, number: int) -> SSAValue:
        return self.add(linalg.ops.IndexOp(number))

    def element(self, source: SSAValue, places: Sequence[SSAValue]) -> SSAValue:
        if isinstance(source.type, MemRefType):
            return self.add(memref.LoadOp.get(source, places))
        return self.add(tensor.ExtractOp(source, list(places), _element(source)))


def _first(block: Block) -> SSAValue:
    return block.args[0]


def _pack(writer: _TensorWriter, op: Operation) -> None:
    pack = cast("PackOp", op)
    tiles, source, rank = _tiles(pack), pack.source, pack.rank
    is_padded_buffer = pack.padding_value is not None and isinstance(source.type, MemRefType)
    if DYNAMIC_INDEX in pack.tiles or is_padded_buffer:
        _pack_by_places(writer, pack)
        return
    if pack.padding_value is not None:
        source = _padded(writer, pack, tiles)
    exprs: list[AffineExpr] = []
    for d in range(rank):
        outer: AffineExpr = AffineDimExpr(pack.outer.index(d))
        if d in tiles:
            outer = outer * tiles[d] + AffineDimExpr(rank + pack.tiled.index(d))
        exprs.append(outer)
    loops = rank + len(tiles)
    identity = AffineMap.identity(loops)
    writer.replace(writer.computed([(source, AffineMap(loops, 0, tuple(exprs)))], (pack.dest, identity), _first))


def _pack_by_places(writer: _TensorWriter, pack: PackOp) -> None:
    """Elements of the tiles are those at their places in the source, or padding."""
    tiles, rank, padding = _dynamic_tiles(writer, pack), pack.rank, pack.padding_value
    ends = [writer.extent(pack.source, d) for d in range(rank)]
    one = writer.index(1)

    def element(block: Block) -> SSAValue:
        at, places, inside = _Places(block), list[SSAValue](), list[SSAValue]()
        for d in range(rank):
            place = at.loop(pack.outer.index(d))
            if d in tiles:
                place = at.add(arith.MuliOp(place, tiles[d]))
                place = at.add(arith.AddiOp(place, at.loop(rank + pack.tiled.index(d))))
            if d in tiles and padding is not None:
                inside.append(at.add(arith.CmpiOp(place, ends[d], "slt")))
                place = at.add(arith.MinSIOp(place, at.add(arith.SubiOp(ends[d], one))))
            places.append(place)
        found = at.element(pack.source, places)
        for condition in inside:
            found = at.add(arith.SelectOp(condition, found, cast("SSAValue", padding)))
        return found

    identity = AffineMap.identity(rank + len(tiles))
    writer.replace(writer.computed([], (pack.dest, identity), element))


def _padded(writer: _TensorWriter, pack: PackOp, tiles: Mapping[int, int]) -> SSAValue:
    source, shape = pack.source, list(_shape(pack.source))
    high: list[int] = []
    sizes: list[SSAValue] = []
    for d, extent in enumerate(shape):
        outer = _shape(pack.dest)[pack.outer.index(d)]
        if d not in tiles:
            high.append(0)
        elif DYNAMIC_INDEX in (outer, extent):
            count = writer.extent(pack.dest, pack.outer.index(d))
            full = writer.add(arith.MuliOp(count, writer.index(tiles[d])))
            sizes.append(writer.add(arith.SubiOp(full, writer.extent(source, d))))
            high.append(DYNAMIC_INDEX)
            shape[d] = DYNAMIC_INDEX if outer == DYNAMIC_INDEX else outer * tiles[d]
        else:
            high.append(outer * tiles[d] - extent)
            shape[d] = outer * tiles[d]
    if not any(high):
        return source
    body = Block([tensor.YieldOp(cast("SSAValue", pack.padding_value))], arg_types=[IndexType()] * len(shape))
    return writer.add(
        tensor.PadOp(
            source,
            [],
            sizes,
            Region(body),
            DenseArrayBase.from_list(i64, [0] * len(shape)),
            DenseArrayBase.from_list(i64, high),
            TensorType(_element(source), shape),
        )
    )


def _unpack(writer: _TensorWriter, op: Operation) -> None:
    unpack = cast("UnpackOp", op)
    tiles, rank = _tiles(unpack), unpack.rank
    if DYNAMIC_INDEX in unpack.tiles:
        sizes = _dynamic_tiles(writer, unpack)

        def element(block: Block) -> SSAValue:
            at = _Places(block)
            places = [at.loop(d) for d in range(rank)]
            outer = [at.add(arith.DivUIOp(places[d], sizes[d])) if d in sizes else places[d] for d in unpack.outer]
            inner = [at.add(arith.RemUIOp(places[d], sizes[d])) for d in unpack.tiled]
            return at.element(unpack.source, [*outer, *inner])

        writer.replace(writer.computed([], (unpack.dest, AffineMap.identity(rank)), element))
        return
    outer = [AffineDimExpr(d) // tiles[d] if d in tiles else AffineDimExpr(d) for d in unpack.outer]
    inner = [AffineDimExpr(d) % tiles[d] for d in unpack.tiled]
    packed = AffineMap(rank, 0, (*outer, *inner))
    writer.replace(writer.computed([(unpack.source, packed)], (unpack.dest, AffineMap.identity(rank)), _first))


def _scatter(writer: _TensorWriter, op: Operation) -> None:
    """One element after the other, into the tensor that the iterations pass on."""
    scatter = cast("ScatterOp", op)
    dims, rank = scatter.scatter_dims.get_values(), len(_shape(scatter.dest))
    batch = len(_shape(scatter.indices)) - 1
    is_reduced = len(_shape(scatter.source)) == batch + rank - len(dims)
    zero, one = writer.index(0), writer.index(1)
    extents = [writer.extent(scatter.source, d) for d in range(len(_shape(scatter.source)))]
    bodies = [Block(arg_types=[IndexType(), scatter.dest.type]) for _ in extents]
    variables = [body.args[0] for body in bodies]
    carried = bodies[-1].args[1] if bodies else scatter.dest
    block = bodies[-1] if bodies else Block()

    def add(new: Operation) -> SSAValue:
        new.location = op.location
        block.add_op(new)
        return new.results[0]

    kept = iter(variables[batch:])
    places: list[SSAValue] = []
    for d in range(rank):
        if d not in dims:
            places.append(next(kept))
            continue
        if not is_reduced:
            next(kept)
        number = add(arith.ConstantOp.from_int_and_width(dims.index(d), IndexType()))
        place = add(tensor.ExtractOp(scatter.indices, [*variables[:batch], number], _element(scatter.indices)))
        places.append(place if isinstance(place.type, IndexType) else add(arith.IndexCastOp(place, IndexType())))
    element = add(tensor.ExtractOp(scatter.source, variables, _element(scatter.source)))
    value = add(tensor.InsertOp(element, carried, places))
    if not bodies:
        for inner in list(block.ops):
            inner.detach()
            writer.add(inner)
        writer.replace(value)
        return
    block.add_op(scf.YieldOp(value))
    for at in reversed(range(len(bodies))):
        start = bodies[at - 1].args[1] if at else scatter.dest
        loop = scf.ForOp(zero, extents[at], one, [start], bodies[at])
        loop.location = op.location
        if at:
            bodies[at - 1].add_ops([loop, scf.YieldOp(loop.results[0])])
        else:
            writer.replace(writer.add(loop))


def _winograd(writer: _TensorWriter, op: Operation) -> None:
    reason = "the default schedules of convolutions choose Winograd's form by themselves"
    raise CompileError.at(
        op, f"{op.name} has no form in tir: write the convolution (linalg.conv_2d_nhwc_hwcf); {reason}"
    )


_RULES: Final[Mapping[type[Operation], Callable[[_TensorWriter, Operation], None]]] = {
    SoftmaxOp: _softmax,
    PackOp: _pack,
    UnpackOp: _unpack,
    ScatterOp: _scatter,
    **dict.fromkeys(WinogradOp.__subclasses__(), _winograd),
}
