"""The recorded ops as kernels: a block of one thread runs the loop of each."""

from collections.abc import Sequence

from recorded_ops import RecordedOp
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.universe import Universe

from weft.backends.c_family.emitter import KernelSource
from weft.backends.c_family.kernels import emit_kernels
from weft.dialects.low import PARAMS, params_of
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.low_kernel import ARG_ACCESS, KERNEL, KernelAttr
from weft.driver.parsing import parse_text
from weft.passes.low.low_legalize import LowLegalizePass
from weft.support.target import Target


def kernel_source(records: Sequence[RecordedOp], target: Target) -> KernelSource:
    """A text with the kernels `f0`, `f1`, ... for CUDA or OpenCL."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    functions: list[FuncOp] = []
    for number, record in enumerate(records):
        (function,) = (op for op in parse_text(context, record.text, "op.mlir").ops if isinstance(op, FuncOp))
        function.properties["sym_name"] = StringAttr(f"f{number}")
        accesses = [AccessAttr(param.access.data) for param in params_of(function)]
        function.attributes[ARG_ACCESS] = ArrayAttr([*accesses, AccessAttr(AccessMode.READ)])
        function.attributes[KERNEL] = KernelAttr.of([1, 1, 1], "op")
        del function.attributes[PARAMS]
        function.detach()
        functions.append(function)
    module = ModuleOp(functions)
    LowLegalizePass(target.kind).apply(Context(), module)
    module.verify()
    return emit_kernels(module, target)
