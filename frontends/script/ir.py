"""The namespace that scripts call `I`: `from weft.script import ir as I`."""

from weft.frontends.script.constructs import mlir, module_attrs
from weft.frontends.script.decorators import ir_module

__all__ = ["ir_module", "mlir", "module_attrs"]
