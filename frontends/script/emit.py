"""Emit the IR of functions of block loops from the values of a script.

Programs are compared op by op, so the order of ops is fixed (`docs/decisions/0005-script.md`). A store evaluates its
value before its indices. In an accumulation, `A[i] = A[i] + x` or `A[i] = T.max(A[i], x)`, `x` precedes the load. Equal
index expressions, and loads without a store, call, loop or block between, are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, NoneAttr, StringAttr
from xdsl.dialects.func import CallOp
from xdsl.dialects.memref import AllocOp, DimOp, LoadOp, StoreOp
from xdsl.dialects.scf import IfOp
from xdsl.dialects.scf import YieldOp as ScfYieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.dialects.element_types import ELEMENT
from weft.dialects.low_access import AccessMode, AccessPtrOp, StrideOp
from weft.dialects.strides import dynamic_strides, with_strides
from weft.dialects.tir import AccessRegionOp, AssumeShapeOp, AssumeStridesOp, BlockOp, ForOp
from weft.dialects.tir_assume import AssumeOp, Relation
from weft.dialects.tir_kinds import LoopKind
from weft.frontends.script.values import (
    BlockAxis,
    Buffer,
    BufferLoad,
    Guard,
    Leaf,
    Pointer,
    Stride,
    Symbol,
    hint_of,
    index_key,
    reads,
    static_extent,
)
from weft.support.errors import CompileError
from weft.support.locations import SourceLocation
from weft.texpr.emit import ElementEmitter, block_results
from weft.texpr.expr import Binary, Cast, Const, Expr, value_type_of

_INDEX = IndexType()


def buffer_type(
    shape: Sequence[object], dtype: str, scope: str, strides: tuple[int | None, ...] | None = None
) -> MemRefType[Attribute]:
    """The buffer is dense if `strides` is None."""
    extents = [DYNAMIC_INDEX if (number := static_extent(extent)) is None else number for extent in shape]
    space = NoneAttr() if scope in ("", "global") else StringAttr(scope)
    dense = MemRefType(value_type_of(dtype), extents, memory_space=space)
    return dense if strides is None else with_strides(dense, strides)


class ScriptEmitter(ElementEmitter):
    def __init__(self, entry: Block) -> None:
        super().__init__(entry, {}, {})
        self._memory = 0
        """The number of effects so far: no load is reused after an effect."""
        self._places: dict[int, tuple[Expr, SourceLocation]] = {}
        """`id(expr)` -> (expression, place in the source). Holding the expression keeps its id unique."""

    def note(self, expr: Expr, place: SourceLocation) -> Expr:
        self._places.setdefault(id(expr), (expr, place))
        return expr

    @property
    def around(self) -> Operation | None:
        op = self._blocks[-1].parent_op()
        return op if isinstance(op, ForOp | BlockOp) else None

    def _index_leaf(self, expr: Expr) -> SSAValue:
        if isinstance(expr, Symbol):
            if expr.value is None:
                raise CompileError(
                    f"the value of {expr.name} is not known: no buffer that is declared so far has it alone as an "
                    "extent or a stride, and no parameter has its name",
                    location=expr.place or self.place,
                )
            return expr.value
        if isinstance(expr, Leaf) and expr.is_index:
            return expr.value
        if isinstance(expr, Stride):
            return self.stride(expr.buffer, expr.dimension)
        if expr.is_index:
            return super()._index_leaf(expr)
        value = self._as_signed(expr)
        return self._once(("cast", value, "index"), lambda: IndexCastOp(value, _INDEX))

    def fixed(self, expr: Expr) -> Expr:
        """Elements that an index expression reads are loaded here, before stores change them."""
        return Leaf.of(self.index(expr), str(expr)) if reads(expr) else expr

    def argument(self, expr: Expr) -> SSAValue:
        """An index, or a scalar in its dtype."""
        if isinstance(expr, Cast) and expr.operand.is_index and not isinstance(expr.operand, Const):
            return self.value(expr.operand, expr.dtype)
        return self.index(expr) if expr.is_index and not isinstance(expr, Const) else self.value(expr)

    def stride(self, buffer: Buffer, dimension: int) -> SSAValue:
        return self._once(("stride", buffer.value, dimension), lambda: StrideOp(buffer.value, dimension))

    def pointer(self, pointer: Pointer) -> SSAValue:
        indices = [self.index(index) for index in pointer.indices]
        return self.append(AccessPtrOp(pointer.buffer.value, indices, AccessMode(pointer.access), pointer.sizes))

    def _write(self, expr: Expr) -> SSAValue:
        outer = self.place
        _, place = self._places.get(id(expr), (expr, None))
        self.place = place or outer
        try:
            match expr:
                case Leaf():
                    return expr.value
                case Symbol() if not expr.is_index:
                    raise CompileError(f"{expr.name} has no value: T.Let gives it one", location=expr.place or place)
                case BufferLoad():
                    return self._load(expr)
                case _:
                    return super()._write(expr)
        finally:
            self.place = outer

    def _load(self, read: BufferLoad) -> SSAValue:
        buffer = read.buffer.value
        operands = [buffer, *(self.index(index) for index in read.indices)]
        return self._once(
            ("load", self._memory, *operands),
            lambda: LoadOp.create(operands=operands, result_types=[value_type_of(read.dtype)]),
            hint_of(read.buffer.name.lower()),
        )

    def effect(self, op: Operation) -> None:
        self.finish(op)
        self._memory += 1

    def store(self, buffer: Buffer, indices: Sequence[Expr], value: Expr) -> None:
        dtype = buffer.dtype
        element = index_key(BufferLoad(buffer, tuple(indices), dtype))
        if isinstance(value, Binary) and isinstance(value.left, BufferLoad) and index_key(value.left) == element:
            self.value(value.right, dtype)
        stored = self.value(value, dtype)
        self.effect(StoreOp.create(operands=[stored, buffer.value, *(self.index(index) for index in indices)]))

    def allocate(
        self, type: MemRefType[Attribute], extents: Sequence[Expr], name: str, element: Attribute | None = None
    ) -> SSAValue:
        """`element` is the element type if `type` does not determine it."""
        op = AllocOp([self.index(extent) for extent in extents], [], type)
        if element is not None:
            op.attributes[ELEMENT] = element
        return self.append(op, hint_of(name))

    def assume(self, left: Expr, relation: Relation, right: Expr) -> None:
        (first, second), operands = self.affine_forms([left, right])
        self.effect(AssumeOp(first, relation, second, operands))

    def declare(self, buffers: Sequence[Buffer]) -> None:
        """State the extents and strides of parameters. The first use defines a symbol as that extent or stride; others
        are assumed to be equal.

        ```mlir
        %m = memref.dim %A, %c0 : memref<?x128xf32>
        tir.assume_shape %B[%m] : memref<?xf32>
        %s = low.stride %C {dimension = 0} : memref<4x4xf32, strided<[?, 1], offset: ?>>
        tir.assume_strides %D[%s] : memref<4x4xf32, strided<[?, 1], offset: ?>>
        ```
        """
        own: set[tuple[SSAValue, int]] = set()
        outer = self.place
        for buffer in buffers:
            self.place = buffer.place or self.place
            for dimension, extent in enumerate(buffer.extents):
                if isinstance(extent, Symbol) and extent.value is None:
                    position = self.constant(dimension, _INDEX)
                    extent.value = self.append(DimOp(buffer.value, position), hint_of(extent.name))
                    own.add((buffer.value, dimension))
        for buffer in buffers:
            self.place = buffer.place or self.place
            dynamic = [d for d, size in enumerate(buffer.type.get_shape()) if size == DYNAMIC_INDEX]
            stated = [d for d in dynamic if buffer.extents[d] is not None]
            if all((buffer.value, d) in own for d in stated):
                continue
            if len(stated) < len(dynamic):
                missing = next(d for d in dynamic if d not in stated)
                raise CompileError(
                    f"the extent of dimension {missing} of {buffer.name} is missing", location=self.place
                )
            extents = [self.index(extent) for d in dynamic if isinstance(extent := buffer.extents[d], Expr)]
            self.finish(AssumeShapeOp(buffer.value, extents))
        for buffer in buffers:
            self.place = buffer.place or self.place
            self._declare_strides(buffer)
        self.place = outer

    def _declare_strides(self, buffer: Buffer) -> None:
        own: set[int] = set()
        for dimension, stride in buffer.strides.items():
            if isinstance(stride, Symbol) and stride.value is None:
                stride.value = self.stride(buffer, dimension)
                stride.value.name_hint = hint_of(stride.name)
                own.add(dimension)
        if own != set(buffer.strides):
            values = [
                self.index(buffer.strides[dimension]) if dimension in buffer.strides else self.stride(buffer, dimension)
                for dimension in dynamic_strides(buffer.type)
            ]
            self.finish(AssumeStridesOp(buffer.value, values))

    def loop(
        self,
        extent: Expr | int,
        name: str,
        kind: LoopKind,
        thread: str | None,
        annotations: Mapping[str, Attribute],
    ) -> ForOp:
        if isinstance(extent, Const):
            extent = int(extent.value)
        body = Block(arg_types=[_INDEX])
        body.args[0].name_hint = hint_of(name)
        size = self.index(extent) if isinstance(extent, Expr) else extent
        return ForOp(size, Region(body), kind, thread, annotations)

    def block(
        self,
        name: str,
        axes: Sequence[BlockAxis],
        guards: Sequence[Guard],
        annotations: Mapping[str, Attribute],
    ) -> BlockOp:
        """Axes are (name, kind, extent, binding). The block is not yet inserted."""
        extents = [extent if isinstance(extent, int) else self.index(extent) for _, _, extent, _ in axes]
        bindings, bound = self.affine_forms([binding for *_, binding in axes])
        sides, guarded = self.affine_forms([side for guard in guards for side in guard])
        pairs = list(zip(sides[::2], sides[1::2], strict=True))
        body = Block(arg_types=[_INDEX] * len(axes))
        for argument, (axis, *_) in zip(body.args, axes, strict=True):
            argument.name_hint = hint_of(axis)
        kinds = [kind for _, kind, _, _ in axes]
        return BlockOp(name, kinds, extents, bindings, bound, Region(body), pairs, guarded, annotations)

    def region(self, kind: type[AccessRegionOp], buffer: Buffer, corner: Sequence[Expr], sizes: Sequence[int]) -> None:
        exprs, operands = self.affine_forms(corner)
        self.finish(kind(buffer.value, exprs, operands, sizes))

    def conditional(self, condition: SSAValue, branches: Sequence[Block]) -> IfOp:
        """Around one or two filled blocks, whose terminators yield its results; not yet inserted."""
        for block in branches:
            if not isinstance(block.last_op, ScfYieldOp):
                with self.inside(block):
                    self.finish(ScfYieldOp())
        types = [value.type for value in block_results(branches[0])]
        regions = [Region(block) for block in branches]
        return IfOp(condition, types, regions[0], regions[1] if len(regions) > 1 else None)

    def call(self, callee: str, arguments: Sequence[SSAValue], results: Sequence[Attribute] = ()) -> CallOp:
        op = CallOp(callee, list(arguments), list(results))
        self.effect(op)
        return op

    @contextmanager
    def body(self, block: Block) -> Generator[None]:
        """Loads are not reused across the start or end of the region."""
        self._memory += 1
        with self.inside(block):
            yield
        self._memory += 1

    @contextmanager
    def trial(self, block: Block) -> Generator[Callable[[], None]]:
        """Unless the yielded function is called, the state is restored."""
        target, outer, memory = self._blocks[-1], self._written[-1], self._memory
        depth = len(self._blocks)
        kept = False

        def keep() -> None:
            nonlocal kept
            kept = True
            outer.update(self._written[depth])
            for op in list(block.ops):
                op.detach()
                target.add_op(op)

        self._blocks.append(block)
        self._written.append({})
        try:
            yield keep
        finally:
            del self._blocks[depth:], self._written[depth:]
            if not kept:
                self._memory = memory
