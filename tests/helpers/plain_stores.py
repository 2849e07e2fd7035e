"""A bug to plant: updates that are no atoms."""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerType, ModuleOp

from weft.dialects.low_kernel import AtomicKind, AtomicOp


def with_plain_stores(module: ModuleOp) -> ModuleOp:
    """Load, combine and store, in the place of every atomic addition of `module`."""
    for op in [op for op in module.walk() if isinstance(op, AtomicOp)]:
        assert op.kind.data is AtomicKind.ADD and op.parent is not None
        old = memref.LoadOp.get(op.buffer, op.indices)
        add = arith.AddiOp if isinstance(op.value.type, IntegerType) else arith.AddfOp
        new = add(old.res, op.value)
        op.parent.insert_ops_before([old, new, memref.StoreOp.get(new.result, op.buffer, op.indices)], op)
        op.old.replace_all_uses_with(old.res)
        op.detach()
        op.erase()
    return module
