"""Annotation `nontemporal`: stores of the block bypass the caches.

```mlir
tir.block "C" ... attributes {nontemporal = [0]} { memref.store %c, %C[%vi] }
// with the blocks gone
memref.store %c, %C[%i] {nontemporal = true}
```
Vector stores keep the mark, and targets that have such stores use them; elsewhere, and for lanes that are masked, it
says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue

from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import NONTEMPORAL
from weft.passes.tir.nest import LOCAL, buffer_type
from weft.passes.tir.prefetches import accessed_buffer
from weft.support.errors import CompileError

_YES: Final = BoolAttr.from_bool(True)


def note_nontemporal(blocks: Iterable[BlockOp]) -> None:
    """Mark the stores of blocks that go past the caches. Buffers in registers stay there. Raises `CompileError` when
    an annotation is malformed, or names a buffer that the block does not write."""
    for block in blocks:
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
    return [accessed_buffer(block, block, "write", place) for place in places]
