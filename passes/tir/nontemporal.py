"""Blocks annotated `nontemporal`: their stores go past the caches.

```mlir
tir.block "C" ... attributes {nontemporal = [0]} { memref.store %c, %C[%vi] }
// with the blocks gone
memref.store %c, %C[%i] {nontemporal = true}
```
Vector stores keep the mark, and targets that have such stores use them; elsewhere, and for lanes that are masked, it
says nothing.
"""

from __future__ import annotations

from typing import Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from weft.analysis.structure import buffers_written
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import NONTEMPORAL
from weft.dialects.traversal import operations_in
from weft.passes.tir.nest import LOCAL, buffer_type
from weft.support.errors import CompileError

_YES: Final = BoolAttr.from_bool(True)


def note_nontemporal(function: FuncOp) -> None:
    """Mark the stores of blocks that go past the caches. Buffers in registers stay there. Raises `CompileError` when
    an annotation is malformed, or names a buffer that the block does not write."""
    for block in operations_in(function):
        if not isinstance(block, BlockOp):
            continue
        noted = block.attributes.get(NONTEMPORAL)
        for buffer in () if noted is None else _buffers(block, noted):
            if buffer_type(buffer).memory_space == LOCAL:
                continue
            for use in buffer.uses:
                if isinstance(use.operation, memref.StoreOp) and block.is_ancestor(use.operation):
                    use.operation.nontemporal = _YES


def _buffers(block: BlockOp, noted: Attribute) -> list[SSAValue]:
    """The buffers that an annotation names."""
    entries = noted.data if isinstance(noted, ArrayAttr) else (noted,)
    places = [entry.value.data for entry in entries if isinstance(entry, IntegerAttr)]
    if not isinstance(noted, ArrayAttr) or len(places) != len(entries):
        raise CompileError.at(
            block, f'block "{block.label}": {NONTEMPORAL} is a list of numbers of buffers that it writes, got {noted}'
        )
    written = buffers_written(block)
    for place in places:
        if not 0 <= place < len(written):
            raise CompileError.at(block, f'block "{block.label}" writes {len(written)} buffers: there is no {place}')
    return [written[place] for place in places]
