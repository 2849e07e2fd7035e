"""`relax.analysis`."""

from __future__ import annotations

from typing import Any

from weft.dialects.graph import DataflowOp, OutputOp
from weft.dialects.traversal import copy_of, operations_in
from weft.tvm.absent import refuses
from weft.tvm.ir.module import IRModule
from weft.tvm.relax.function import Function


def remove_all_unused(func: Any) -> Any:
    """A copy of a function, or of a module, without bindings that nothing uses."""
    if isinstance(func, IRModule):
        copy = func.clone()
        for name, function in func.functions.items():
            if isinstance(function, Function):
                copy[name] = remove_all_unused(function)
        return copy
    function = copy_of(func.func_op)
    for op in reversed(operations_in(function.body)):
        if isinstance(op, OutputOp | DataflowOp) or not op.results or op.regions:
            continue
        if all(not result.uses for result in op.results):
            op.detach()
            op.erase()
    return Function(function)


__all__ = ["remove_all_unused"]
__getattr__ = refuses(
    __name__, {"well_formed": "module.verify()", "free_vars": "functions of a graph take all that they use"}
)
