"""Operations of xDSL that lack the custom syntax of MLIR, or take fewer types than their MLIR namesakes.

A class made here is registered in the place of an operation of the same name. It reads text as MLIR prints it, and
gives operations of xDSL's own class: no op of the class itself ever exists.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from xdsl.irdl.declarative_assembly_format import FormatProgram

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.ir import Operation
    from xdsl.irdl import IRDLOperation
    from xdsl.parser import Parser


def with_format(op: type[IRDLOperation], assembly_format: str) -> type[Operation]:
    """Reads `op` by a declarative format."""

    @cache
    def program() -> FormatProgram:
        return FormatProgram.from_str(assembly_format, op.get_irdl_definition())

    return with_parser(op, lambda parser: program().parse(parser, op))


def with_parser(op: type[IRDLOperation], parse: Callable[[Parser], Operation]) -> type[Operation]:
    """Reads `op` by a function, which is called behind the name of the op."""

    def parse_op(_: type[Operation], parser: Parser) -> Operation:
        return parse(parser)

    def create(_: type[Operation], **parts: Any) -> Operation:
        return op.create(**parts)

    return type(
        op.__name__, (op,), {"parse": classmethod(parse_op), "create": classmethod(create), "__module__": __name__}
    )
