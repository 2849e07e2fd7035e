"""`plan-memory`: place the temporaries that a function passes to others in one arena, or in several slots."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.arith import MaxSIOp, MinSIOp
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, ModuleOp, NoneAttr, i8, i64
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis.extents import ExtentNames
from weft.dialects.arena import ARENA_BYTES, arena_attribute
from weft.dialects.effects import RENAMES
from weft.dialects.element_types import bytes_of
from weft.dialects.graph_shapes import EXTENTS, KnownExtent, ShapeError, symbol
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_registered import CallRegisteredOp
from weft.dialects.tir import BlockOp
from weft.dialects.tir_assume import CheckSizeOp
from weft.dialects.tir_kinds import RETURNED
from weft.dialects.traversal import ancestors
from weft.passes.extent_values import ExtentValues
from weft.passes.graph.arena_layout import ALIGNMENT, Greatest, Lifetime, arena_layout, slot_layout
from weft.passes.graph.in_place import InPlaceFunctions, write_over_operands
from weft.passes.index_builders import extent_before, insert_before, result_before
from weft.passes.tir.tir_pass import buffer_functions, buffer_type
from weft.support.errors import CompileError

_MOST_BYTES: Final = 1 << 56
"""Bytes of an address space: virtual addresses have at most 57 bits, one of which selects the system's half."""


@dataclass(frozen=True)
class PlanMemoryPass(ModulePass):
    """Place the temporaries that a function passes to its callees in one buffer.

    A temporary is alive from the first call that uses it to the last. Temporaries never alive together may overlap
    (`passes/graph/arena_layout.py`). The last user of a temporary writes its result over it if the callee computes
    element by element (`passes/graph/in_place.py`). Offsets and sizes that depend on extents are computed at the
    call. With `arena=false`, for devices that cannot address parts of buffers, each of several slots has a buffer,
    and temporaries start at its beginning. `tir.arena_bytes` states the bytes of each buffer.

    Requires: functions over buffers that allocate and call (`lower-graph-to-tir`). Temporaries that loops of the
    function access are unchanged. Raises `CompileError` if the arena exceeds an address space, and for functions of
    several blocks.

    Leaves: the same functions; temporaries are `memref.view`s of one `memref.alloc`, or of one per slot.
    """

    name = "plan-memory"

    in_place: bool = True
    """Whether results are written over operands."""
    arena: bool = True
    """Whether one buffer contains all temporaries."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = InPlaceFunctions(op)
        for function in list(buffer_functions(op)):
            if len(function.body.blocks) != 1:
                name, count = function.sym_name.data, len(function.body.blocks)
                raise CompileError.at(function, f"{self.name}: @{name} has {count} blocks: branches are not supported")
            if ARENA_BYTES in function.attributes:
                continue
            if not any(_temporaries(function)) and RETURNED not in function.attributes:
                continue
            if self.in_place:
                write_over_operands(function, functions)
            ops = list(function.body.block.ops)
            parts = [(part, ops[min(t.first for t in part) - 1]) for part in _temporaries(function) if part]
            sizes = [_share_memory(function, part, anchor, self.arena) for part, anchor in parts]
            stated = [size for part in sizes for size in part] or [arena_attribute([0])]
            function.attributes[ARENA_BYTES] = ArrayAttr(stated) if len(stated) > 1 or not self.arena else stated[0]
        functions.erase_unused()


@dataclass(frozen=True)
class _Temporary:
    alloc: memref.AllocOp
    first: int
    last: int
    renames: Sequence[Operation]
    """The ops that create aliases of it."""


def _temporaries(function: FuncOp) -> list[list[_Temporary]]:
    """Returns the allocations of calls whose extents are known before any is accessed, in a list per part of the
    function: extents that depend on data are known in later parts."""
    block = function.body.block
    cuts = [at for at, op in enumerate(block.ops, 1) if isinstance(op, CheckSizeOp)]
    places = {op: place for place, op in enumerate(block.ops, 1)}
    found: list[_Temporary] = []
    for op in places:
        if isinstance(op, memref.AllocOp) and _is_plain(op):
            renames: list[Operation] = []
            users = _users(op.memref, renames)
            if users and any(isinstance(user, CallOp | CallRegisteredOp) for user in users):
                # The lifetime of an op with regions starts at the first alias that it creates.
                inner = (rename for rename in renames if rename.parent is not block)
                at = [places[_op_of(block, user)] for user in (*users, *inner)]
                found.append(_Temporary(op, min(at), max(at), renames))
    parts: list[list[_Temporary]] = [[] for _ in range(len(cuts) + 1)]
    for temporary in found:
        parts[bisect(cuts, places[temporary.alloc]) if temporary.alloc.dynamic_sizes else 0].append(temporary)
    starts = [min((temporary.first for temporary in part), default=0) for part in parts]
    return [
        [t for t in part if not t.alloc.dynamic_sizes or places[t.alloc] < start]
        for part, start in zip(parts, starts, strict=True)
    ]


def _op_of(block: Block, op: Operation) -> Operation:
    while op.parent is not block and (parent := op.parent_op()) is not None:
        op = parent
    return op


def _is_plain(alloc: memref.AllocOp) -> bool:
    type_ = buffer_type(alloc.memref)
    aligned = alloc.alignment
    return (
        isinstance(type_.layout, NoneAttr)
        and isinstance(type_.memory_space, NoneAttr)
        and not alloc.symbol_operands
        and not alloc.attributes
        and (aligned is None or ALIGNMENT % aligned.value.data == 0)
    )


def _users(buffer: SSAValue, renames: list[Operation]) -> list[Operation] | None:
    """Returns the ops that access a buffer under any name, and adds alias ops to `renames`. None if one may pass it
    on, or is in a block, which accesses only its own buffers."""
    found: list[Operation] = []
    for use in buffer.uses:
        user = use.operation
        if isinstance(user, (*RENAMES, AccessPtrOp)):
            renames.append(user)
            inner = _users(user.results[0], renames)
            if inner is None:
                return None
            found += inner
        elif (
            user.regions
            or any(isinstance(result.type, MemRefType) for result in user.results)
            or any(isinstance(parent, BlockOp) for parent in ancestors(user))
        ):
            return None
        else:
            found.append(user)
    return found


def _share_memory(
    function: FuncOp, temporaries: Sequence[_Temporary], anchor: Operation, in_arena: bool
) -> list[Attribute]:
    """Replace allocations by views of buffers allocated before `anchor`. Returns their bytes."""
    block = function.body.block
    renames = {rename for temporary in temporaries for rename in temporary.renames if rename.parent is block}
    early = [op for op in takewhile(lambda op: op is not anchor, block.ops) if op in renames]
    names = ExtentNames()
    decided = {label: value for label, value in _decided_by_data(block).items() if _is_before(value, anchor)}
    for label, value in decided.items():
        names.values[label] = value
        names.know(value, symbol(label))
    try:
        lifetimes = [Lifetime(t.first, t.last, _bytes(t.alloc, names)) for t in temporaries]
        not_negative = {name for name, value in names.values.items() if isinstance(value.owner, memref.DimOp)} | set(
            decided
        )
        if in_arena:
            arena = arena_layout(lifetimes, not_negative)
            places, sizes = [(0, offset) for offset in arena.offsets], [arena.size]
        else:
            slots = slot_layout(lifetimes, not_negative)
            places, sizes = [(slot, (0,)) for slot in slots.slots], slots.sizes
    except ShapeError:  # for sums of extents with too many factors: fewer temporaries have smaller sums
        if len(temporaries) < 2:
            return []
        half = len(temporaries) // 2
        parts = (temporaries[:half], temporaries[half:])
        return [size for part in parts for size in _share_memory(function, part, anchor, in_arena)]
    least = sum(_least_bytes(size) for size in sizes)
    if least >= _MOST_BYTES:
        raise CompileError.at(
            function,
            f"@{function.sym_name.data}: its temporaries take {least:,} bytes at a time, more than an address space "
            f"holds ({_MOST_BYTES:,})",
        )
    values = ExtentValues(anchor, function)
    for name, value in names.values.items():
        values.know(symbol(name), value)
    name = "arena" if in_arena else "slot"
    buffers = [_allocate(name, _greatest_before(size, values, anchor), anchor) for size in sizes]
    for temporary, (buffer, offset) in zip(temporaries, places, strict=True):
        old = temporary.alloc
        shift = extent_before(_greatest_before(offset, values, anchor), anchor)
        view = memref.ViewOp(buffers[buffer], shift, old.dynamic_sizes, buffer_type(old.memref))
        insert_before(anchor, [view])
        view.location = old.location
        view.result.name_hint = old.memref.name_hint
        old.memref.replace_all_uses_with(view.result)
        Rewriter.erase_op(old)
    for rename in early:  # after the views
        rename.detach()
        block.insert_op_before(rename, anchor)
    return list(map(arena_attribute, sizes))


def _decided_by_data(block: Block) -> dict[str, SSAValue]:
    found: dict[str, SSAValue] = {}
    for op in block.ops:
        if isinstance(op, MaxSIOp | MinSIOp) and (label := _label_of(op.lhs, found)) is not None:
            found[label] = op.result
    return found


def _label_of(value: SSAValue, found: Mapping[str, SSAValue]) -> str | None:
    checks = (use.operation for use in value.uses)
    named = next((op.label.data for op in checks if isinstance(op, CheckSizeOp) and op.size is value), None)
    return named or next((label for label, known in found.items() if known is value), None)


def _is_before(value: SSAValue, anchor: Operation) -> bool:
    return isinstance(value.owner, Operation) and value.owner.is_before_in_block(anchor)


def _bytes(alloc: memref.AllocOp, names: ExtentNames) -> KnownExtent:
    type_ = buffer_type(alloc.memref)
    static = prod(extent for extent in type_.get_shape() if extent != DYNAMIC_INDEX) * bytes_of(type_.element_type)
    return static * EXTENTS.product(map(names.extent, alloc.dynamic_sizes))


def _least_bytes(sizes: Greatest) -> int:
    return max(size if isinstance(size, int) else dict(size.terms).get((), 0) for size in sizes)


def _greatest_before(sizes: Greatest, values: ExtentValues, anchor: Operation) -> int | SSAValue:
    if len(sizes) == 1:
        return values.value(sizes[0])
    found = [extent_before(values.value(size), anchor) for size in sizes]
    return reduce(lambda left, right: result_before(MaxSIOp(left, right), anchor), found)


def _allocate(name: str, size: int | SSAValue, anchor: Operation) -> SSAValue:
    extents = [] if isinstance(size, int) else [size]
    type_ = MemRefType(i8, [size if isinstance(size, int) else DYNAMIC_INDEX])
    alloc = memref.AllocOp(extents, (), type_, IntegerAttr(ALIGNMENT, i64))
    alloc.memref.name_hint = name
    return result_before(alloc, anchor)
