"""IR as text that parses back with the same names."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from math import prod
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DenseResourceAttr, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer
from xdsl.targets.mlir import MLIRTarget


class ScopedPrinter(Printer):
    """Names are scoped by regions, as in the parser. xDSL's printer would print the second `tir.for %i` of a function
    as `%i_1`."""

    elide_above: int | None = None
    """Constants of more elements print as `dense_resource<__elided__>`, which does not parse back to their values."""

    def print_op(self, op: Operation) -> None:
        if not op.regions:
            super().print_op(op)
            return
        self.enter_scope()
        super().print_op(op)
        self.exit_scope()
        # The results are visible outside of the scope that just closed.
        for result in op.results:
            if result.name_hint:
                self.ssa_names[result.name_hint] = self.ssa_names.get(result.name_hint, 0) + 1
            else:
                self._next_valid_name_id[-1] += 1

    def print_attribute(self, attribute: Attribute) -> None:
        if (
            self.elide_above is not None
            and isinstance(attribute, DenseIntOrFPElementsAttr | DenseResourceAttr)
            and prod(attribute.type.get_shape()) > self.elide_above
            and not _is_repeated(attribute)
        ):
            self.print_string("dense_resource<__elided__> : ")
            super().print_attribute(attribute.type)
            return
        super().print_attribute(attribute)


def _is_repeated(attribute: Attribute) -> bool:
    from weft.dialects.constant_data import is_repeated  # start-up: 2 ms

    return isinstance(attribute, DenseIntOrFPElementsAttr) and is_repeated(attribute)


@dataclass(frozen=True)
class ScopedMLIRTarget(MLIRTarget):
    """IR in the custom syntax of each operation."""

    name: ClassVar[str] = "mlir"

    elide_above: int | None = None
    """Constants of more elements are elided."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        printer = self._printer(output)
        printer.print_op(module)
        if self.elide_above is None:
            printer.print_metadata(ctx.loaded_dialects)
        print(file=output)

    def text(self, operation: Operation) -> str:
        """Use the generic form if the custom syntax fails, for example on invalid IR."""
        try:
            return self._text(operation, self.print_generic_format)
        except Exception:  # noqa: BLE001 - whatever the printers of operations raise
            return self._text(operation, True)

    def _text(self, operation: Operation, generic: bool) -> str:
        stream = StringIO()
        printer = self._printer(stream)
        printer.print_generic_format = generic
        printer.print_op(operation)
        return stream.getvalue()

    def _printer(self, output: IO[str]) -> ScopedPrinter:
        printer = self._kind_of_printer()(
            stream=output,
            print_generic_format=self.print_generic_format,
            print_properties_as_attributes=self.print_properties_as_attributes,
            print_debuginfo=self.print_debuginfo,
        )
        printer.elide_above = self.elide_above
        return printer

    def _kind_of_printer(self) -> type[ScopedPrinter]:
        if not self.syntax_highlight:
            return ScopedPrinter
        from xdsl.syntax_printer import SyntaxPrinter

        class ScopedSyntaxPrinter(ScopedPrinter, SyntaxPrinter):
            """Coloured names and locations."""

        return ScopedSyntaxPrinter


def text_of(operation: Operation) -> str:
    """The text parses back to an equal operation with the same names."""
    stream = StringIO()
    ScopedPrinter(stream=stream).print_op(operation)
    return stream.getvalue()
