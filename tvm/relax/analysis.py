"""`relax.analysis`."""

from weft.dialects.graph import DataflowOp, OutputOp
from weft.dialects.traversal import copy_of, operations_in
from weft.tvm.absent import refuses
from weft.tvm.relax.function import Function


def remove_all_unused(func: Function) -> Function:
    function = copy_of(func.func_op)
    for op in reversed(operations_in(function.body)):
        is_binding = op.results and not op.regions and not isinstance(op, OutputOp | DataflowOp)
        if is_binding and not any(result.uses for result in op.results):
            op.detach()
            op.erase()
    return Function(function)


__getattr__ = refuses(__name__)
