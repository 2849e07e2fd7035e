"""Blocks annotated `prefetch`: their accesses ask for what later instances will access.

```mlir
tir.block "exp" ... attributes {prefetch = [["read", 0, [1, 0]]]} { memref.load %A[%vi, %vk] ... }
// with the blocks gone
memref.load %A[%i, %k] {tir.prefetched = array<i64: 1, 0>}
// with flat buffers of rows of 1024 elements
low.prefetch %A[%i * 1024 + %k + 1024] {lanes = 1}
memref.load %A[%i * 1024 + %k]
```
Shifts of block iterators rather than of loops: they mean the same in whatever loops the block comes to stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, StringAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from weft.analysis.index import Index
from weft.analysis.structure import buffers_read, buffers_written
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import PREFETCH, PREFETCHED
from weft.passes.tir.nest import LOCAL, buffer_type
from weft.support.errors import CompileError

_FORM: Final = f'{PREFETCH} is a list of ["read" or "write", buffer, [shift of each iterator]]'


def note_prefetches(block: BlockOp) -> None:
    """Mark the accesses whose neighbours `block` says to ask for. Buffers in registers, and elements whose distance is
    not known (or zero), are not asked for. Raises `CompileError` when the
    annotation is malformed, or names a buffer that the block does not access."""
    noted = block.attributes.get(PREFETCH)
    if noted is None:
        return
    for kind, buffer, shifts in _entries(block, noted):
        if buffer_type(buffer).memory_space == LOCAL:
            continue
        shifted: dict[SSAValue, Index] = {
            v: Index.of(v) + shift for v, shift in zip(block.iter_vars, shifts, strict=True) if shift != 0
        }
        for use in buffer.uses:
            op = use.operation
            if isinstance(op, memref.LoadOp if kind == "read" else memref.StoreOp) and block.is_ancestor(op):
                distances = _distances(op.indices, shifted)
                if distances is not None and any(distances):
                    op.attributes[PREFETCHED] = DenseArrayBase.from_list(i64, distances)


def take_distances(op: memref.LoadOp | memref.StoreOp) -> tuple[int, ...]:
    """What `note_prefetches` noted on an access, an integer a dimension, which is taken away; nothing where it did
    not."""
    noted = op.attributes.pop(PREFETCHED, None)
    if noted is None:
        return ()
    return noted.get_values() if isa(noted, DenseArrayBase[IntegerType]) else ()


def _entries(block: BlockOp, noted: Attribute) -> Iterator[tuple[str, SSAValue, list[int]]]:
    elements: tuple[Attribute, ...] = noted.data if isinstance(noted, ArrayAttr) else (noted,)
    for entry in elements:
        match entry.data if isinstance(entry, ArrayAttr) else ():
            case (StringAttr(data="read" | "write" as kind), IntegerAttr() as position, ArrayAttr(data=numbers)):
                shifts = [number.value.data for number in numbers if isinstance(number, IntegerAttr)]
            case _:
                raise CompileError.at(block, f'block "{block.label}": {_FORM}, got {entry}')
        if len(shifts) != len(block.iter_vars) or len(shifts) != len(numbers):
            raise CompileError.at(
                block, f'block "{block.label}" has {len(block.iter_vars)} iterators: {_FORM}, got {entry}'
            )
        buffers = buffers_read(block) if kind == "read" else buffers_written(block)
        at = position.value.data
        if not 0 <= at < len(buffers):
            raise CompileError.at(block, f'block "{block.label}" {kind}s {len(buffers)} buffers: there is no {at}')
        yield kind, buffers[at], shifts


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
