"""Change of the memory scope of a temporary."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import Operation

from weft.analysis.block_scopes import function_of
from weft.analysis.dependence import buffer_name, is_temporary
from weft.dialects.tir import BlockOp
from weft.passes.schedule.caching import (
    buffer_at,
    extents_of,
    replace_alloc,
    space_of,
    why_not_redirected,
    why_not_scope,
)
from weft.passes.schedule.primitive import Plan, Primitive


@dataclass(frozen=True)
class SetScopePlan(Plan):
    alloc: memref.AllocOp
    scope: str

    def rewrite(self) -> tuple[Operation, ...]:
        replace_alloc(self.alloc, extents_of(self.alloc.memref)[0], space_of(self.scope))
        return ()


@dataclass(frozen=True)
class SetScope(Primitive):
    """Set the memory scope of a temporary that the block writes.

    Requirements:
    1. the block writes a buffer at this index
    2. `scope` is a memory scope
    3. the buffer is a temporary: the caller determines the memory of parameters; no op takes all of it as it is

    ```mlir
    %Y = memref.alloc() : memref<128x128xf32>
    // set_scope "Y" {index = 0, scope = "shared"}
    %Y = memref.alloc() : memref<128x128xf32, "shared">
    ```
    """

    block: BlockOp
    index: int
    scope: str

    def plan(self) -> SetScopePlan:
        block = self.block
        buffer = buffer_at(self, block, "write", self.index)
        self.require(2, why_not_scope(self.scope))
        owner = buffer.owner
        if not is_temporary(buffer) or not isinstance(owner, memref.AllocOp):
            function = function_of(block).sym_name.data
            self.refuse(3, f"{buffer_name(buffer)} is a parameter of @{function}")
        for use in buffer.uses:
            self.require(3, why_not_redirected(use.operation, buffer), use.operation)
        return SetScopePlan(owner, self.scope)
