"""Output of the driver: `-t c` prints the C of a low module, `-t 'c{header=true}'` the header that declares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar

from xdsl.utils.target import Target

from weft.backends.c_family.checks import check_level

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class CTarget(Target):
    """C99, or its header."""

    name: ClassVar[str] = "c"

    header: bool = False

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from weft.backends.c.emit import emit_module
        from weft.support.target import Target as Machine

        check_level(module, "c")
        source = emit_module(module, Machine("c"))
        output.write(source.header if self.header else source.text)
