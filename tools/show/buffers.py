"""The buffers of functions, and the bytes that loops move between them and the core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import Access, accesses
from weft.analysis.block_scopes import sources_of
from weft.analysis.loop_tree import type_text, value_text
from weft.dialects.element_types import bytes_of
from weft.dialects.low_kernel import space_of
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import IterKind
from weft.dialects.traversal import operations_in
from weft.plans.traffic import bytes_from_beyond, caches
from weft.tools.show.report import BufferRow, MemoryRow
from weft.tuning.features import nest_of, places_of

if TYPE_CHECKING:
    from weft.support.target import Target


def buffer_rows(function: FuncOp, target: Target) -> tuple[BufferRow, ...]:
    """Parameters precede other buffers, which are in the order of their first access."""
    found: dict[SSAValue, list[Access]] = {}
    by_block: dict[BlockOp, list[Access]] = {}
    for access in accesses(function):
        found.setdefault(access.buffer, []).append(access)
        if access.block is not None and not access.in_init:
            by_block.setdefault(access.block, []).append(access)
    moved: dict[SSAValue, list[float]] = {buffer: [0.0, 0.0, 0.0] for buffer in found}
    if not target.has_kernels:
        for nest in by_block.values():
            loops = max((access.loops for access in nest), key=len)
            places = places_of(nest)
            for level, cache in enumerate(caches(target)):
                amounts = bytes_from_beyond(nest_of(places, loops), cache, target.processor)
                for access, amount in zip(places, amounts, strict=True):
                    moved[access.buffer][level] += amount
    parameters = [argument for argument in function.body.block.args if argument in found]
    order = [*parameters, *(buffer for buffer in found if buffer not in parameters)]
    return tuple(
        _row(buffer, found[buffer], None if target.has_kernels else tuple(map(round, moved[buffer])))
        for buffer in order
    )


def _row(buffer: SSAValue, found: Sequence[Access], caches: tuple[int, ...] | None) -> BufferRow:
    size = buffer_bytes(buffer)
    loaded, stored = (_moved(buffer, [a for a in found if a.is_write == is_write]) for is_write in (False, True))
    is_known = size is not None and caches is not None and None not in (loaded, stored)
    levels = (caches[0], caches[1], caches[2]) if is_known and caches is not None else None
    return BufferRow(value_text(buffer), type_text(buffer.type), _place(buffer), size, loaded, stored, levels)


def buffer_bytes(buffer: SSAValue) -> int | None:
    """Returns None if an extent is unknown."""
    if not isinstance(buffer.type, MemRefType) or any(extent < 0 for extent in buffer.type.get_shape()):
        return None
    return prod(buffer.type.get_shape()) * bytes_of(buffer.type.element_type)


def _moved(buffer: SSAValue, found: Sequence[Access]) -> int | None:
    total = 0
    for access in found:
        loops = access.loops
        if access.init_of is not None:  # an init runs once per element
            reduced = sources_of(access.init_of, IterKind.REDUCE)
            loops = tuple(loop for loop in loops if loop.induction_variable not in reduced)
        extents = [loop.extent for loop in loops]
        known = [extent for extent in extents if isinstance(extent, int)]
        size = buffer_bytes(buffer) if access.indices is None else _element_bytes(buffer)
        if len(known) < len(extents) or size is None:
            return None
        total += prod(known) * size
    return total


def _element_bytes(buffer: SSAValue) -> int | None:
    return bytes_of(buffer.type.element_type) if isinstance(buffer.type, MemRefType) else None


def _place(buffer: SSAValue) -> str:
    space = space_of(buffer.type)
    match buffer.owner:
        case memref.GetGlobalOp():
            return "constant"
        case Operation():
            return "temporary" if space == "global" else f"temporary, {space}"
        case _:
            return "argument" if space == "global" else f"argument, {space}"


def memory_rows(module: ModuleOp) -> tuple[MemoryRow, ...]:
    rows: list[MemoryRow] = []
    for op in module.ops:
        if isinstance(op, memref.GlobalOp):
            size = prod(op.type.get_shape()) * bytes_of(op.type.element_type)
            rows.append(MemoryRow("", BufferRow(op.sym_name.data, type_text(op.type), "constant", size)))
        elif isinstance(op, FuncOp):
            rows.extend(MemoryRow(op.sym_name.data, row) for row in _allocated(op))
    return tuple(rows)


def _allocated(function: FuncOp) -> Iterator[BufferRow]:
    for op in operations_in(function):
        if not isinstance(op, memref.AllocOp | memref.AllocaOp):
            continue
        space = space_of(op.memref.type)
        where = {"global": "heap" if isinstance(op, memref.AllocOp) else "stack", "local": "registers or stack"}
        around = " > ".join(value_text(parent.regions[0].blocks[0].args[0]) for parent in _loops_around(op))
        place = where.get(space, f"{space} memory") + (f", in {around}" if around else "")
        yield BufferRow(value_text(op.memref), type_text(op.memref.type), place, buffer_bytes(op.memref))


def _loops_around(op: Operation) -> list[Operation]:
    found: list[Operation] = []
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        if any(block.args for region in parent.regions for block in region.blocks):
            found.append(parent)
        parent = parent.parent_op()
    return found[::-1]
