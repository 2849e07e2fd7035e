"""tir-lower-tiles: distribute tiles over the threads of warps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, BoolAttr, IntegerAttr, MemRefType, f16, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.block_scopes import ancestors, block_around
from weft.analysis.index import Index
from weft.analysis.threads import axis_of, differs_between_threads
from weft.dialects.low_access import AccessMode, AccessPtrOp, StrideOp
from weft.dialects.low_kernel import THREAD_AXES
from weft.dialects.low_tensor_cores import (
    WARP,
    Family,
    FragmentAttr,
    FragmentRole,
    LdmatrixOp,
    MmaSyncOp,
    Order,
    TileFillOp,
    TileLoadOp,
    TileMmaOp,
    TileOp,
    TileStoreOp,
    WmmaLoadOp,
    WmmaMmaOp,
    WmmaStoreOp,
)
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.passes.index_builders import (
    end_of,
    erase_unused_pointers,
    index_before,
    insert_before,
    result_before,
)
from weft.passes.tir.tir_pass import LOCAL, KernelPass, allocate_before, buffer_type, range_of
from weft.support.errors import CompileError
from weft.support.target import Target

LANES: Final = THREAD_AXES[0]
"""Its threads form a warp in kernels that work on tiles."""


@dataclass(frozen=True)
class LowerTilesPass(KernelPass):
    """Distribute every fragment over the threads of a warp, and lower the ops on tiles in kernels.

    ```mlir
    %F = memref.alloc() : memref<32x16xf16, "local">
    %f = low.access_ptr %F[%i * 16, 0] sizes [16, 16] write : memref<32x16xf16, "local">
    low.tile_load <mma, a, row, [16, 16, 16], f16> %s, %s_rows to %f, %f_rows
    // becomes
    %F = memref.alloc() : memref<2x1x8xf16, "local">
    %s = low.access_ptr %S[%i * 16 + %lane mod 16, %lane floordiv 16 * 8] ...
    %f = low.access_ptr %F[%i, 0, 0] sizes [1, 1, 8] write : memref<2x1x8xf16, "local">
    low.ldmatrix %s to %f {count = 4, transposed = false, element = f16}
    ```
    `low.ldmatrix` loads fragments of family `mma`; threads store them element by element. Raises CompileError if a
    buffer holds fragments of two kinds, if a tile is not a whole fragment, and for tile ops under conditions that may
    differ between threads of a warp.

    Requires: kernels (`tir-bind-threads`) with temporaries of the size that is used (`tir-compact-buffers`), before
    `tir-flatten`.

    Leaves: operations on the parts of tiles that a thread holds; no operation on whole tiles.
    """

    name = "tir-lower-tiles"

    def rewrite(self, function: FuncOp) -> None:
        tiles = [op for op in function.walk() if isinstance(op, TileOp)]
        for op in tiles:
            _require_together(op)
        held = _fragments_of_buffers(tiles)
        parts = {buffer: _divided(buffer, fragment) for buffer, fragment in held.items()}
        for op in tiles:
            _TileLowering(op, parts).run()
        for buffer in parts:
            _erase_buffer(buffer)


def _require_together(op: TileOp) -> None:
    for parent in ancestors(op):
        value = parent.cond if isinstance(parent, scf.IfOp) else parent.extent if isinstance(parent, ForOp) else None
        if isinstance(value, SSAValue) and differs_between_threads(value, (LANES,)):
            what = "a condition" if isinstance(parent, scf.IfOp) else "a loop whose extent is"
            raise CompileError.at(op, f"{op.name} is under {what} that may differ between the threads of a warp")


def _fragments_of_buffers(tiles: Sequence[TileOp]) -> dict[SSAValue, FragmentAttr]:
    found: dict[SSAValue, FragmentAttr] = {}
    for op in tiles:
        for fragment, pointer in op.fragments():
            buffer = _pointer(pointer).buffer
            other = found.setdefault(buffer, fragment)
            if other != fragment:
                raise CompileError.at(
                    op, f"%{buffer.name_hint} holds fragments of two kinds: {other} elsewhere and {fragment} here"
                )
    return found


def _pointer(value: SSAValue) -> AccessPtrOp:
    if not isinstance(value.owner, AccessPtrOp):
        raise TypeError("tiles are pointers of low.access_ptr")
    return value.owner


def _divided(buffer: SSAValue, fragment: FragmentAttr) -> SSAValue:
    alloc, type_ = buffer.owner, buffer_type(buffer)
    shape, tile = type_.get_shape(), fragment.tile
    if not isinstance(alloc, memref.AllocOp) or DYNAMIC_INDEX in shape or len(shape) < 2:
        raise TypeError(f"fragments are in temporaries of static shape, got {type_}")
    if shape[-2] % tile[0] or shape[-1] % tile[1]:
        raise CompileError.at(alloc, f"%{buffer.name_hint} of {list(shape)} is not made of whole {fragment}")
    new_shape = [*shape[:-2], shape[-2] // tile[0], shape[-1] // tile[1], fragment.elements_per_thread]
    new_type = MemRefType(type_.element_type, new_shape, memory_space=LOCAL)
    return allocate_before(alloc, memref.AllocOp, new_type, buffer.name_hint, alloc.alignment).memref


def _erase_buffer(buffer: SSAValue) -> None:
    for use in list(buffer.uses):
        Rewriter.erase_op(use.operation)
    alloc = buffer.owner
    if isinstance(alloc, Operation):
        Rewriter.erase_op(alloc)


class _TileLowering:
    def __init__(self, op: TileOp, parts: dict[SSAValue, SSAValue]) -> None:
        self.op = op
        self.parts = parts

    def run(self) -> None:
        match self.op:
            case TileLoadOp():
                self.load(self.op)
            case TileStoreOp():
                self.store(self.op)
            case TileFillOp():
                self.fill(self.op)
            case TileMmaOp():
                self.multiply(self.op)
            case _:
                raise TypeError(f"no lowering of {self.op.name}")
        operands = list(self.op.operands)
        Rewriter.erase_op(self.op)
        erase_unused_pointers(operands)

    def load(self, op: TileLoadOp) -> None:
        if op.fragment.family is Family.WMMA:
            target = self.registers(op.fragment, op.target, AccessMode.WRITE)
            self.insert(WmmaLoadOp(op.source, op.source_rows, target, fragment=op.fragment))
            return
        fragment, source = op.fragment, _pointer(op.source)
        row, column = _place_for_ldmatrix(fragment, Index.of(lanes_around(op).induction_variable))
        first = self.moved(source, (row, column), AccessMode.READ, [*[1] * (len(source.indices) - 1), 8])
        target = self.registers(fragment, op.target, AccessMode.WRITE)
        transposed = (fragment.role is FragmentRole.A) == (fragment.order is Order.COL)
        properties = {"count": IntegerAttr(len(fragment.parts), i64), "transposed": BoolAttr.from_bool(transposed)}
        self.insert(LdmatrixOp(first, target, **properties, element=fragment.element))

    def store(self, op: TileStoreOp) -> None:
        if op.fragment.family is Family.WMMA:
            source = self.registers(op.fragment, op.source, AccessMode.READ)
            self.insert(WmmaStoreOp(source, op.target, op.target_rows, fragment=op.fragment))
            return
        lane = Index.of(lanes_around(op).induction_variable)
        target = _pointer(op.target)
        corner = [Index.of(index) for index in target.indices]
        for number, (row, column) in enumerate(op.fragment.parts):
            pair = ForOp.empty(2, "e", LoopKind.VECTORIZED)
            self.insert(pair)
            element = Index.of(pair.induction_variable)
            *outer, i, j = corner
            place = (*outer, i + lane // 4 + row, j + (lane % 4) * 2 + column + element)
            buffer, at = self.part(op.fragment, op.source)
            with end_of(pair.body.block) as end:
                registers = [index_before(index, end) for index in (*at, element + 2 * number)]
                value = result_before(memref.LoadOp.get(buffer, registers), end)
                indices = [index_before(index.simplified(range_of), end) for index in place]
                insert_before(end, [memref.StoreOp.get(value, target.buffer, indices)])

    def fill(self, op: TileFillOp) -> None:
        buffer, at = self.part(op.fragment, op.target)
        value = arith.ConstantOp(op.value)
        self.insert(value)
        loop = ForOp.empty(op.fragment.elements_per_thread, "r", LoopKind.UNROLLED)
        self.insert(loop)
        indices = [index_before(index, loop) for index in at]
        store = memref.StoreOp.get(value.result, buffer, [*indices, loop.induction_variable])
        store.location = op.location
        loop.body.block.add_op(store)

    def multiply(self, op: TileMmaOp) -> None:
        a, b, c = op.a_fragment, op.b_fragment, op.c_fragment
        if a.family is Family.WMMA:
            pointers = (
                self.registers(a, op.a, AccessMode.READ),
                self.registers(b, op.b, AccessMode.READ),
                self.registers(c, op.c, AccessMode.READWRITE),
            )
            self.insert(WmmaMmaOp(*pointers, a=a, b=b))
            return
        for half in range(a.shape[1] // 8):
            first = self.registers(a, op.a, AccessMode.READ)
            second = self.registers(b, op.b, AccessMode.READ, 4 * half, 4)
            sums = self.registers(c, op.c, AccessMode.READWRITE, 4 * half, 4)
            self.insert(MmaSyncOp(first, second, sums, element=a.element))

    def insert(self, op: Operation) -> None:
        insert_before(self.op, [op])

    def part(self, fragment: FragmentAttr, tile: SSAValue) -> tuple[SSAValue, list[Index]]:
        pointer = _pointer(tile)
        *outer, i, j = [Index.of(index).simplified(range_of) for index in pointer.indices]
        rows, columns = fragment.tile
        if i % rows != Index({}) or j % columns != Index({}):
            raise CompileError.at(
                self.op,
                f"{self.op.name}: a tile of %{pointer.buffer.name_hint} starts at [{i!r}, {j!r}], which is no multiple "
                f"of {list(fragment.tile)}",
            )
        return self.parts[pointer.buffer], [*outer, i // rows, j // columns]

    def registers(
        self, fragment: FragmentAttr, tile: SSAValue, access: AccessMode, first: int = 0, count: int | None = None
    ) -> SSAValue:
        buffer, at = self.part(fragment, tile)
        indices = [index_before(index, self.op) for index in (*at, Index({}, first))]
        sizes = [*[1] * len(at), fragment.elements_per_thread if count is None else count]
        pointer = AccessPtrOp(buffer, indices, access, sizes)
        self.insert(pointer)
        return pointer.pointer

    def moved(
        self, pointer: AccessPtrOp, by: tuple[Index, Index], access: AccessMode, sizes: Sequence[int]
    ) -> SSAValue:
        *outer, i, j = [Index.of(index) for index in pointer.indices]
        indices = [*outer, i + by[0], j + by[1]]
        values = [index_before(index.simplified(range_of), self.op) for index in indices]
        new = AccessPtrOp(pointer.buffer, values, access, sizes)
        self.insert(new)
        return new.pointer


def _place_for_ldmatrix(fragment: FragmentAttr, lane: Index) -> tuple[Index, Index]:
    """Row and column of the 8 elements whose address a thread provides: row l mod 8 of matrix l floordiv 8.

    The parts of a fragment are stacked by rows. With two, threads from 16 on repeat addresses.
    """
    two = len(fragment.parts) == 2
    zero = Index({})
    if fragment.order is Order.ROW:
        return lane % 16, zero if two else (lane // 16) * 8
    return lane % 8 if two else (lane // 16) * 8 + lane % 8, (lane // 8) % 2 * 8


def works_on_tiles(block: BlockOp) -> bool:
    """Whether a block itself, outside nested blocks, works on tiles."""
    return any(isinstance(op, TileOp) and block_around(op) is block for op in block.walk())


def is_of_warp(op: Operation) -> bool:
    """Whether an op is a pointer to a tile."""
    return isinstance(op, AccessPtrOp) and any(isinstance(use.operation, TileOp) for use in op.pointer.uses)


def require_tensor_cores(root: Operation, target: Target) -> None:
    available = target.gpu.tensor_cores if target.gpu is not None else frozenset[str]()
    name = f"{target.kind} -arch={target.arch}" if target.arch else target.kind
    for op in root.walk():
        if not isinstance(op, TileOp):
            continue
        for fragment, _ in op.fragments():
            needed = instruction_of(fragment)
            if needed not in available:
                known = f"it has {', '.join(sorted(available))}" if available else "it has no tensor cores"
                raise CompileError.at(op, f"{op.name} needs {needed}, which target {name} does not have: {known}")
    if available and target.gpu is not None and target.gpu.warp_size != WARP:
        raise CompileError(f"work on tiles needs warps of {WARP} threads, target {name} has {target.gpu.warp_size}")


def instruction_of(fragment: FragmentAttr) -> str:
    """The name in `GpuMachine.tensor_cores`. All of a family accumulate in `f32`."""
    element = f16 if fragment.role is FragmentRole.C else fragment.element
    return f"wmma {element}" if fragment.family is Family.WMMA else f"mma.sync m16n8k16 {element}"


def require_fragment(alloc: memref.AllocOp) -> None:
    """Raise `CompileError` for uses other than tile ops."""
    for use in alloc.memref.uses:
        op = use.operation
        if isinstance(op, StrideOp) or is_of_warp(op):
            continue
        block = block_around(op)
        where = f'block "{block.label}"' if block is not None else op.name
        type_ = alloc.memref.type
        raise CompileError.at(
            op,
            f"{where} uses %{alloc.memref.name_hint} in memory of space {type_.memory_space}, which only tensor cores "
            "can use: tensorize it",
        )


def require_lanes(blocks: Sequence[BlockOp], loops: Sequence[ForOp], extent: int | SSAValue | None) -> None:
    """Raise `CompileError` unless threadIdx.x can be a warp."""
    for block in blocks:
        inside = next((loop for loop in loops if loop.is_ancestor(block)), None)
        if inside is not None:
            name = inside.induction_variable.name_hint
            raise CompileError.at(
                block,
                f'block "{block.label}" works on tiles, which the {WARP} threads of a warp do together, but is in '
                f"loop %{name} over them ({LANES}): bind warps to threadIdx.y or threadIdx.z",
            )
    if extent is not None and extent != WARP:
        raise CompileError.at(
            loops[0],
            f'block "{blocks[0].label}" works on tiles, which the {WARP} threads of a warp do together: loops over '
            f"{LANES} have {WARP} iterations, got {extent}",
        )


def lanes_around(op: Operation) -> ForOp:
    for parent in ancestors(op):
        if isinstance(parent, ForOp) and axis_of(parent) == LANES:
            return parent
    raise CompileError.at(op, f"{op.name} is in no loop over {LANES}: run tir-bind-threads before")
