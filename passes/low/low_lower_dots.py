"""low-lower-dots: lower dot products to instructions, or to multiplications and additions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import (
    BFloat16Type,
    IndexType,
    IntegerType,
    MemRefType,
    ModuleOp,
    Signedness,
    VectorType,
    f32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_dots import (
    DotOp,
    Reading,
    TileDotOp,
    TileInterleaveOp,
    element_of_reading,
    factor_of,
    is_narrow,
    is_signed,
    sign_of,
    sum_of_reading,
)
from weft.dialects.low_lanes import LANE_FORMS
from weft.dialects.low_tile_products import TileProductOp, parts_of
from weft.dialects.traversal import operations_of
from weft.passes.index_builders import erase_unused_pointers, index_constant
from weft.passes.low.op_rewriter import OpRewriter, lanes_of
from weft.support.cpu_instructions import DotInstruction, dot_instructions, tile_product_intrinsic
from weft.support.errors import CompileError, InternalError
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class LowerDotsPass(ModulePass):
    """Lower dot products in memory to dot products of vectors, and these to instructions of the target:
    `low-lower-dots{target="llvm -mcpu=cascadelake"}`.

    ```mlir
    low.tile_dot %pa as ui8, %pb as si8 onto %pc {lanes = 16, steps = 4}
    // becomes
    %a = vector.load %A[%i] : memref<?xi8>, vector<4xi8>
    %b = vector.load %B[%j] : memref<?xi8>, vector<64xi8>
    %c = vector.load %C[%k] : memref<?xi32>, vector<16xi32>
    %r = low.dot %c, %a as ui8, %b as si8 : vector<16xi32>, vector<4xi8>, vector<64xi8>
    vector.store %r, %C[%k] : memref<?xi32>, vector<16xi32>
    ```
    A `low.dot` of more lanes than an instruction has is split. For an instruction of other signs, an operand's highest
    bits are flipped, and a sum of the other corrects the result: a * b = (a + 128) * b - 128 * b
    (`docs/decisions/0027-dot-products.md`). Bytes read as narrower integers, without an instruction for those, are read
    as `ui8` with cleared high bits. Other dot products become products and sums of 32 bits: fused multiply-adds for
    bf16. A `low.tile_product` is left to tile registers, or becomes loops over rows, vectors of columns and the
    reduction around a `low.dot`.

    Requires: low functions over flat buffers (`tir-flatten`).

    Leaves: low functions whose dot products are instructions of the target.
    """

    name = "low-lower-dots"

    target: str
    """The target, as `weft.build` takes it."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = operations_of(op, DotOp, TileDotOp, TileInterleaveOp, TileProductOp)
        if not found:
            return
        target = Target.parse(self.target)
        instructions = dot_instructions(target)
        for inner in found:
            match inner:
                case TileInterleaveOp():
                    _interleave(inner)
                case TileDotOp():
                    _legalize(_loaded(inner), instructions)
                case DotOp():
                    _legalize(inner, instructions)
                case _:
                    if not tile_product_intrinsic(target, *map(sign_of, inner.readings)):
                        for dot in _loops(inner):
                            _legalize(dot, instructions)


class _Builder(OpRewriter):
    def load(self, pointer: SSAValue, element: Attribute, lanes: int, offset: SSAValue | None = None) -> SSAValue:
        access = _pointer(pointer)
        at = access.indices[0]
        if offset is not None:
            at = self.combine(arith.AddiOp, at, offset)
        return self.insert(vector.LoadOp(access.buffer, [at], VectorType(element, [lanes])))

    def store(self, value: SSAValue, pointer: SSAValue) -> None:
        access = _pointer(pointer)
        self.add(vector.StoreOp(value, access.buffer, list(access.indices)))

    def joined(self, parts: Sequence[SSAValue]) -> SSAValue:
        if len(parts) == 1:
            return parts[0]
        first, second = parts
        return self.shuffle(first, second, range(sum(map(lanes_of, (part.type for part in parts)))))

    def times(self, value: SSAValue, factor: int) -> SSAValue | None:
        if factor < 2:
            return value if factor else None
        return self.combine(arith.MuliOp, value, self.insert(index_constant(factor)))

    def erase(self) -> None:
        operands = list(self.rewritten.operands)
        super().erase()
        erase_unused_pointers(operands)


def _pointer(value: SSAValue) -> AccessPtrOp:
    if not isinstance(value.owner, AccessPtrOp) or len(value.owner.indices) != 1:
        where = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
        message = "dot products of values in memory take pointers into flat buffers, low.access_ptr of one index"
        raise CompileError(message) if where is None else CompileError.at(where, message)
    return value.owner


def _loaded(op: TileDotOp) -> DotOp:
    build = _Builder(op)
    left, right = op.readings
    a = build.load(op.a, element_of_reading(left), op.step_count)
    b = build.load(op.b, element_of_reading(right), op.lane_count * op.step_count)
    dot = DotOp(build.load(op.c, sum_of_reading(left), op.lane_count), a, left, b, right)
    build.store(build.insert(dot), op.c)
    build.erase()
    return dot


def _loops(op: TileProductOp) -> list[DotOp]:
    build = _Builder(op)
    rows, columns, depth = op.shape
    dots = [
        _product_of_columns(build, op, range(first, first + width), (rows, depth)) for first, width in parts_of(columns)
    ]
    build.erase()
    return dots


def _product_of_columns(build: _Builder, op: TileProductOp, columns: range, shape: tuple[int, int]) -> DotOp:
    left, right = op.readings
    rows, depth = shape
    lanes, group = len(columns), op.group
    sums = VectorType(sum_of_reading(left), [lanes])
    a, b, c = map(_pointer, (op.a, op.b, op.c))

    def moved(body: OpRewriter, base: SSAValue, number: SSAValue, distance: SSAValue) -> SSAValue:
        return body.combine(arith.AddiOp, base, body.combine(arith.MuliOp, number, distance))

    row_loop, row_body = _loop(build, rows, ())
    row = row_loop.body.block.args[0]
    at_a = moved(row_body, a.indices[0], row, op.a_distances[0])
    at_c = moved(row_body, c.indices[0], row, op.c_distance)
    at_c = row_body.combine(arith.AddiOp, at_c, row_body.index(columns.start))
    at_b = row_body.combine(arith.AddiOp, b.indices[0], row_body.index(columns.start * group))
    start = (
        row_body.constant_lanes(sums, [0])
        if op.from_zero is not None
        else row_body.insert(vector.LoadOp(c.buffer, [at_c], sums))
    )
    bodies, loops = [row_body], list[scf.ForOp]()
    groups = row_body.index(group)
    a_distances, b_distances = (*op.a_distances[1:], groups), (*op.b_distances[1:], op.b_distances[0])
    for extent, a_step, b_step in zip((*op.levels, depth // group), a_distances, b_distances, strict=True):
        loop, body = _loop(bodies[-1], extent, (start if not loops else loops[-1].body.block.args[1],))
        step = loop.body.block.args[0]
        at_a, at_b = moved(body, at_a, step, a_step), moved(body, at_b, step, b_step)
        loops.append(loop)
        bodies.append(body)
    inner = bodies[-1]
    of_a = inner.insert(vector.LoadOp(a.buffer, [at_a], VectorType(element_of_reading(left), [group])))
    of_b = inner.insert(vector.LoadOp(b.buffer, [at_b], VectorType(element_of_reading(right), [lanes * group])))
    dot = DotOp(loops[-1].body.block.args[1], of_a, left, of_b, right)
    inner.add(dot)
    found: SSAValue = dot.result
    for loop in reversed(loops):
        cast("scf.YieldOp", loop.body.block.last_op).operands = [found]
        found = loop.results[0]
    row_body.add(vector.StoreOp(found, c.buffer, [at_c]))
    return dot


def _loop(build: OpRewriter, extent: int, carried: Sequence[SSAValue]) -> tuple[scf.ForOp, _Builder]:
    """A loop that carries values, and a builder at the end of its body."""
    types = [IndexType(), *(value.type for value in carried)]
    first, last, step = (build.index(number) for number in (0, extent, 1))
    end = scf.YieldOp(*carried)
    body = Block([], arg_types=types)
    body.add_op(end)
    loop = scf.ForOp(first, last, step, list(carried), body)
    build.add(loop)
    end.location = build.rewritten.location
    return loop, _Builder(end)


def _legalize(op: DotOp, instructions: Sequence[DotInstruction]) -> None:
    left, right = map(factor_of, op.readings)
    fitting = [i for i in instructions if i.group == op.group and op.lanes % i.lanes == 0]
    exact = [i for i in fitting if i.takes(i.lanes, i.group, left, right)]
    if any(i.lanes == op.lanes for i in exact):
        return
    if exact:
        _cut(op, exact[0].lanes)
        return
    if any(map(is_narrow, op.readings)):
        _legalize(_widened(op), instructions)
        return
    # Two differing signs would need two corrections.
    near = [i for i in fitting if i.takes(i.lanes, i.group, replace(left, signed=not left.signed), right)]
    if near and left.signed == right.signed and not left.floats:
        for part in _flip(op, *_integers(op)):
            _legalize(part, instructions)
    else:
        _spell_out(op)


def _widened(op: DotOp) -> DotOp:
    """Clear the high bits of bytes read as narrower integers."""
    build = _Builder(op)
    operands: list[tuple[SSAValue, Reading]] = []
    for value, reading in zip((op.lhs, op.rhs), op.readings, strict=True):
        width = factor_of(reading).width
        if width is None:
            operands.append((value, reading))
        else:
            low = build.combine(arith.AndIOp, value, build.constant_lanes(value.type, [(1 << width) - 1]))
            operands.append((low, IntegerType(factor_of(reading).bits, Signedness.UNSIGNED)))
    (lhs, lhs_as), (rhs, rhs_as) = operands
    dot = DotOp(op.acc, lhs, lhs_as, rhs, rhs_as)
    build.replace(build.insert(dot))
    return dot


def _integers(op: DotOp) -> tuple[IntegerType, IntegerType]:
    left, right = op.readings
    if not isinstance(left, IntegerType) or not isinstance(right, IntegerType):
        raise InternalError("bf16 has no unsigned reading")
    return left, right


def _cut(op: DotOp, lanes: int) -> None:
    build = _Builder(op)
    total: SSAValue | None = None
    for first in range(0, op.lanes, lanes):
        group = range(first * op.group, (first + lanes) * op.group)
        acc = build.shuffle(op.acc, op.acc, range(first, first + lanes))
        lhs = op.lhs if op.is_one_group else build.shuffle(op.lhs, op.lhs, group)
        rhs = build.shuffle(op.rhs, op.rhs, group)
        part = build.insert(DotOp(acc, lhs, op.readings[0], rhs, op.readings[1]))
        total = part if total is None else build.shuffle(total, part, range(first + lanes))
    build.replace(op.acc if total is None else total)


def _flip(op: DotOp, left: IntegerType, right: IntegerType) -> tuple[DotOp, DotOp]:
    """Read the left operand with the other sign, and subtract the excess, shared by loops and rows with the same right
    operand.
    """
    build = _Builder(op)
    half = 1 << (left.width.data - 1)
    other = IntegerType(left.width.data, _other(left))
    flipped = build.combine(arith.XOrIOp, op.lhs, build.constant_lanes(op.lhs.type, [-half]))
    sums = DotOp(op.acc, flipped, other, op.rhs, right)
    total = build.insert(sums)
    group = VectorType(IntegerType(left.width.data), [op.group])
    # 128 of unsigned bytes, -128 of signed ones: the same bits.
    moved = DotOp(
        build.constant_lanes(op.acc.type, [0]),
        build.constant_lanes(group, [-half]),
        other,
        op.rhs,
        right,
    )
    build.replace(build.combine(arith.SubiOp, total, build.insert(moved)))
    return sums, moved


def _other(type_: IntegerType) -> Signedness:
    return Signedness.UNSIGNED if is_signed(type_) else Signedness.SIGNED


def _spell_out(op: DotOp) -> None:
    build = _Builder(op)
    element = sum_of_reading(op.readings[0])
    wide = VectorType(element, [op.lanes])

    def lanes_of(value: SSAValue, reading: Reading, step: int, *, is_group: bool) -> SSAValue:
        is_float = isinstance(reading, BFloat16Type)
        widen = arith.ExtFOp if is_float else arith.ExtSIOp if is_signed(reading) else arith.ExtUIOp
        if is_group:
            scalar = build.op(widen, (build.extract(value, step),), element)
            return build.insert(vector.BroadcastOp(scalar, wide))
        narrow = build.shuffle(value, value, range(step, op.lanes * op.group, op.group))
        return build.op(widen if is_float else LANE_FORMS[widen], (narrow,), wide)

    total: SSAValue = op.acc
    for step in range(op.group):
        left = lanes_of(op.lhs, op.readings[0], step, is_group=op.is_one_group)
        right = lanes_of(op.rhs, op.readings[1], step, is_group=False)
        if element == f32:
            total = build.insert(vector.FMAOp(left, right, total))
        else:
            total = build.combine(arith.AddiOp, total, build.combine(arith.MuliOp, left, right))
    build.replace(total)


def _interleave(op: TileInterleaveOp) -> None:
    """Concatenated rows and one shuffle, which code generators lower best."""
    build = _Builder(op)
    element = cast("MemRefType[Attribute]", _pointer(op.source).buffer.type).element_type
    lanes, count = op.lane_count, op.row_count
    parts = [build.load(op.source, element, lanes, build.times(op.distance, row)) for row in range(count)]
    while len(parts) > 2:
        parts = [build.joined(parts[at : at + 2]) for at in range(0, len(parts), 2)]
    result = build.shuffle(parts[0], parts[-1], [row * lanes + lane for lane in range(lanes) for row in range(count)])
    build.store(result, op.target)
    build.erase()
