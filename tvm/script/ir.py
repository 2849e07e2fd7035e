"""`from tvm.script import ir as I`."""

from weft.frontends.script.ir import mlir, module_attrs
from weft.tvm.script.reader import ir_module

__all__ = ["ir_module", "mlir", "module_attrs"]
