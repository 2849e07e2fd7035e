"""Modules in the syntax of MLIR's own tools.

    weft-opt prog.mlir -p 'lower-tir-to-low,convert-low-to-upstream' -t upstream | mlir-opt ...

Where xDSL's custom syntax is not MLIR's, the generic form is printed, which all versions accept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar, Final, cast

from xdsl.dialects import memref, scf, vector
from xdsl.printer import Printer
from xdsl.utils.target import Target

from weft.dialects.low_lanes import LANE_FORMS
from weft.dialects.traversal import operations_in
from weft.dialects.upstream import gpu
from weft.dialects.upstream import memref as upstream_memref
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

_OURS: Final = frozenset(("graph", "te", "tir", "low", "sched"))
_WITH_INHERENT: Final = frozenset(
    (memref.AllocOp, memref.AllocaOp, memref.LoadOp, memref.StoreOp, vector.LoadOp, vector.StoreOp)
)
"""xDSL prints their inherent attributes among the discardable ones, where MLIR does not look."""
_INHERENT: Final = frozenset(("alignment", "nontemporal"))
_SCALARS: Final = {form: scalar for scalar, form in LANE_FORMS.items()}
"""Operations on lanes -> those of `arith`."""


@dataclass(frozen=True)
class UpstreamTarget(Target):
    """The module for MLIR's tools. Raises `CompileError` for ops of weft's dialects."""

    name: ClassVar[str] = "upstream"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        for op in operations_in(module):
            if op.name.split(".")[0] in _OURS and type(op) not in _SCALARS:
                raise CompileError.at(op, f"{op.name} is not upstream's (convert-low-to-upstream)")
        _UpstreamPrinter(output).print_op(module)
        output.write("\n")


class _UpstreamPrinter(Printer):
    def print_op(self, op: Operation) -> None:
        scalar, custom = _SCALARS.get(type(op)), _CUSTOM.get(type(op))
        if scalar is not None:
            self._print_results(op)
            self.print_string(f'"{scalar.name}"')
            self.print_op_with_default_format(op)
            return
        if custom is not None:
            self._print_results(op)
            self.print_string(op.name)
            custom.print(cast("Any", op), self)
            return
        before = self.print_generic_format
        if type(op) in _WITH_INHERENT and not _INHERENT.isdisjoint((*op.properties, *op.attributes)):
            self.print_generic_format = True
        if isinstance(op, scf.ReduceOp) and len(op.reductions) > 1:
            self.print_generic_format = True
        try:
            super().print_op(op)
        finally:
            self.print_generic_format = before


_CUSTOM: Final[Mapping[type[Operation], type[Operation]]] = {
    op: reader
    for reader in (*gpu.OPERATIONS, *upstream_memref.OPERATIONS)
    for op in (*gpu.PLACES, memref.AtomicRMWOp)
    if issubclass(reader, op)
}
"""Operations whose attributes all versions of MLIR interpret alike only in the custom form, which xDSL lacks -> the
classes that print it."""
