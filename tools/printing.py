"""Print IR so that text in is text out: a region's names are free again after it.

xDSL's printer keeps every name of a function taken, so that the second `tir.for %i` prints as `%i_1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from typing import IO, TYPE_CHECKING, ClassVar

from xdsl.printer import Printer
from xdsl.targets.mlir import MLIRTarget

from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation


class ScopedPrinter(Printer):
    """A printer whose names are scoped by regions, as the parser's are."""

    def print_op(self, op: Operation) -> None:
        if not op.regions:
            try:
                super().print_op(op)
            except NotImplementedError as error:
                raise CompileError.at(op, f"'{op.name}' holds a number that has no text here, such as f80") from error
            return
        self.enter_scope()
        super().print_op(op)
        self.exit_scope()
        # The results were named inside the scope that just closed, but are visible outside.
        for result in op.results:
            if result.name_hint:
                self.ssa_names[result.name_hint] = self.ssa_names.get(result.name_hint, 0) + 1
            else:
                self._next_valid_name_id[-1] += 1


def text_of(operation: Operation) -> str:
    """`operation` as text that parses back to an equal operation with the same names."""
    stream = StringIO()
    ScopedPrinter(stream=stream).print_op(operation)
    return stream.getvalue()


@dataclass(frozen=True)
class ScopedMLIRTarget(MLIRTarget):
    """xDSL's target `mlir`, with scoped names."""

    name: ClassVar[str] = "mlir"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        printer = self._kind_of_printer()(
            stream=output,
            print_generic_format=self.print_generic_format,
            print_properties_as_attributes=self.print_properties_as_attributes,
            print_debuginfo=self.print_debuginfo,
        )
        printer.print_op(module)
        printer.print_metadata(ctx.loaded_dialects)
        print(file=output)

    def _kind_of_printer(self) -> type[ScopedPrinter]:
        if not self.syntax_highlight:
            return ScopedPrinter
        from xdsl.syntax_printer import SyntaxPrinter

        class ScopedSyntaxPrinter(ScopedPrinter, SyntaxPrinter):
            """Coloured names and locations."""

        return ScopedSyntaxPrinter
