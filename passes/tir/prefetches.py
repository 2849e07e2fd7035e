"""Annotation `prefetch`: accesses of the block prefetch for later instances.

```mlir
tir.block "exp" ... attributes {prefetch = [["read", 0, [1, 0]]]} { memref.load %A[%vi, %vk] ... }
// with the blocks gone
memref.load %A[%i, %k] {tir.prefetched = array<i64: 1, 0>}
// with flat buffers of rows of 1024 elements
low.prefetch %A[%i * 1024 + %k + 1024] {lanes = 1}
memref.load %A[%i * 1024 + %k]
```
Shifts of block iterators rather than of loops: they mean the same in whatever loops the block comes to stand.

A block may also ask for what another will access, `["write", 0, [0, 0], "C"]`, that block's iterators being its own:
while it computes, memory has time. That becomes a `low.prefetch` with an index a dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.utils.hints import isa

from weft.analysis.index import Index
from weft.analysis.structure import buffers_read, buffers_written
from weft.dialects.low_access import PrefetchOp
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import IN_STEP, PREFETCH, PREFETCHED
from weft.dialects.tir_regions import AccessRegionOp
from weft.passes.tir.nest import LOCAL, buffer_type, index_before, insert_before
from weft.support.errors import CompileError

_FORM: Final = f'{PREFETCH} is a list of ["read" or "write", buffer, [shift of each iterator]], with a block or without'


def note_prefetches(function: FuncOp, blocks: Sequence[BlockOp]) -> None:
    """Say at the accesses of the blocks of a function, or at the head of these, what they ask for. Buffers in
    registers, and elements whose distance is not known (or zero), are not asked for; nor are temporaries by another
    block than the one that accesses them. Raises `CompileError` when an annotation is malformed, or names a block that
    there is not or a buffer that the block does not access."""
    for block in blocks:
        noted = block.attributes.get(PREFETCH)
        for entry in () if noted is None else _entries(block, noted, blocks):
            if entry.accessing is block:
                _note(entry)
            elif isinstance(entry.buffer, BlockArgument) and IN_STEP not in function.attributes:
                _ask(block, entry)


@dataclass(frozen=True)
class _Entry:
    """What is asked for: the elements of `buffer` that `accessing` reads or writes, its iterators shifted."""

    accessing: BlockOp
    kind: str
    buffer: SSAValue
    shifts: list[int]

    def accesses(self) -> list[memref.LoadOp | memref.StoreOp]:
        op_type = memref.LoadOp if self.kind == "read" else memref.StoreOp
        uses = [use.operation for use in self.buffer.uses]
        return [op for op in uses if isinstance(op, op_type) and self.accessing.is_ancestor(op)]


def _note(entry: _Entry) -> None:
    """Mark the accesses with the distance of what to ask for."""
    if buffer_type(entry.buffer).memory_space == LOCAL:
        return
    shifted: dict[SSAValue, Index] = {
        v: Index.of(v) + shift for v, shift in zip(entry.accessing.iter_vars, entry.shifts, strict=True) if shift != 0
    }
    for op in entry.accesses():
        distances = _distances(op.indices, shifted)
        if distances is not None and any(distances):
            op.attributes[PREFETCHED] = DenseArrayBase.from_list(i64, distances)


def _ask(block: BlockOp, entry: _Entry) -> None:
    """Ask at the head of `block` for what the other block accesses."""
    shifted: dict[SSAValue, Index] = {
        theirs: Index.of(own) + shift
        for theirs, own, shift in zip(entry.accessing.iter_vars, block.iter_vars, entry.shifts, strict=True)
    }
    first = next((op for op in block.body.block.ops if not isinstance(op, AccessRegionOp)), None)
    for op in entry.accesses():
        indices = [Index.of(index) for index in op.indices]
        if first is not None and all(value in shifted for index in indices for value in index.values()):
            places = [index_before(index.substitute(shifted), first) for index in indices]
            insert_before(first, [PrefetchOp(entry.buffer, places, for_write=entry.kind == "write")])


def take_distances(op: memref.LoadOp | memref.StoreOp) -> tuple[int, ...]:
    """What `note_prefetches` noted on an access, an integer a dimension, which is taken away; nothing where it did
    not."""
    noted = op.attributes.pop(PREFETCHED, None)
    if noted is None:
        return ()
    return noted.get_values() if isa(noted, DenseArrayBase[IntegerType]) else ()


def _entries(block: BlockOp, noted: Attribute, blocks: Sequence[BlockOp]) -> Iterator[_Entry]:
    elements: tuple[Attribute, ...] = noted.data if isinstance(noted, ArrayAttr) else (noted,)
    for entry in elements:
        match entry.data if isinstance(entry, ArrayAttr) else ():
            case (
                StringAttr(data="read" | "write" as kind),
                IntegerAttr() as position,
                ArrayAttr(data=numbers),
                *others,
            ) if len(others) < 2 and all(isinstance(other, StringAttr) for other in others):
                shifts = [number.value.data for number in numbers if isinstance(number, IntegerAttr)]
                names = [other.data for other in others if isinstance(other, StringAttr)]
            case _:
                raise CompileError.at(block, f'block "{block.label}": {_FORM}, got {entry}')
        accessing = _named(block, names[0], blocks) if names else block
        if len(shifts) != len(accessing.iter_vars) or len(shifts) != len(numbers):
            raise CompileError.at(
                block, f'block "{accessing.label}" has {len(accessing.iter_vars)} iterators: {_FORM}, got {entry}'
            )
        yield _Entry(accessing, kind, accessed_buffer(block, accessing, kind, position.value.data), shifts)


def accessed_buffer(block: BlockOp, accessing: BlockOp, kind: str, at: int) -> SSAValue:
    """The buffer with a number among those that `accessing` reads or writes (`kind`). Raises `CompileError` at `block`,
    whose annotation names it, where there is none."""
    buffers = buffers_read(accessing) if kind == "read" else buffers_written(accessing)
    if not 0 <= at < len(buffers):
        raise CompileError.at(block, f'block "{accessing.label}" {kind}s {len(buffers)} buffers: there is no {at}')
    return buffers[at]


def _named(block: BlockOp, name: str, blocks: Sequence[BlockOp]) -> BlockOp:
    """The other block, which has as many iterators."""
    for other in blocks:
        if other.label == name:
            if len(other.iter_vars) == len(block.iter_vars):
                return other
            raise CompileError.at(
                block,
                f'block "{block.label}" asks for what "{name}" accesses: it has {len(block.iter_vars)} iterators, '
                f"that one {len(other.iter_vars)}",
            )
    raise CompileError.at(block, f'block "{block.label}" asks for what "{name}" accesses: there is no such block')


def _distances(indices: Sequence[SSAValue], shifted: dict[SSAValue, Index]) -> list[int] | None:
    """How far the element with shifted iterators lies from the one at `indices`, in each dimension."""
    found: list[int] = []
    for value in indices:
        index = Index.of(value)
        difference = (index.substitute(shifted) - index).simplified()
        opaque = [value for value in index.values() if value not in shifted]
        if not difference.is_constant or any(Index.of(value).depends_on(shifted) for value in opaque):
            return None
        found.append(difference.constant)
    return found
