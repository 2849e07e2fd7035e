"""Modules as MLIR's own tools read them.

    weft-opt prog.mlir -p 'lower-tir-to-low,convert-low-to-upstream' -t upstream | mlir-opt ...

xDSL's custom syntax is MLIR's but in places; there the generic form is printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar, Final

from xdsl.dialects import memref, vector
from xdsl.printer import Printer
from xdsl.utils.target import Target

from weft.dialects.traversal import operations_in
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

_OURS: Final = frozenset(("graph", "te", "tir", "low", "sched"))
_WITH_INHERENT: Final = frozenset(
    (memref.AllocOp, memref.AllocaOp, memref.LoadOp, memref.StoreOp, vector.LoadOp, vector.StoreOp)
)
"""Operations whose inherent attributes xDSL prints among the others, where MLIR does not look for them."""
_INHERENT: Final = frozenset(("alignment", "nontemporal"))


@dataclass(frozen=True)
class UpstreamTarget(Target):
    """The module for MLIR's tools. Raises `CompileError` for ops of weft's dialects."""

    name: ClassVar[str] = "upstream"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        for op in operations_in(module):
            if op.name.split(".")[0] in _OURS:
                raise CompileError.at(op, f"{op.name} is not upstream's (convert-low-to-upstream)")
        _UpstreamPrinter(output).print_op(module)
        output.write("\n")


class _UpstreamPrinter(Printer):
    def print_op(self, op: Operation) -> None:
        before = self.print_generic_format
        if type(op) in _WITH_INHERENT and not _INHERENT.isdisjoint((*op.properties, *op.attributes)):
            self.print_generic_format = True
        try:
            super().print_op(op)
        finally:
            self.print_generic_format = before
