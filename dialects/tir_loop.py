"""The loop of tir."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_operand_def, opt_prop_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES
from weft.dialects.tir_kinds import VIRTUAL_AXES, LoopKind, LoopKindAttr


def verify_single_block(op: Operation, region: Region, arguments: int) -> None:
    if len(region.blocks) != 1:
        raise VerifyException(f"{op.name} holds exactly one block of operations, got {len(region.blocks)}")
    if len(region.block.args) != arguments:
        raise VerifyException(f"{op.name} body takes {arguments} index arguments, got {len(region.block.args)}")
    for argument in region.block.args:
        if not isinstance(argument.type, IndexType):
            raise VerifyException(f"{op.name} body arguments are index values, got {argument.type}")


@cache
def _kind(kind: LoopKind) -> LoopKindAttr:
    return LoopKindAttr(kind)


_INDEX = IndexType()


@lru_cache(maxsize=4096)
def _static(extent: int) -> IntegerAttr:
    return IntegerAttr(extent, i64)


AXES = (*BLOCK_AXES, *THREAD_AXES, *VIRTUAL_AXES)
"""What the iterations of a loop can be bound to."""


@irdl_op_definition
class ForOp(IRDLOperation):
    """A loop from 0 to `extent`, step 1.

    ```mlir
    tir.for %i in 128 { ... }
    tir.for %i in %n parallel attributes {note = 1 : i64} { ... }
    tir.for %i in 64 thread_binding<"threadIdx.x"> { ... }
    ```
    """

    name = "tir.for"

    dynamic_extent = opt_operand_def(IndexType)
    static_extent = opt_prop_def(IntegerAttr)
    kind = prop_def(LoopKindAttr)
    thread_axis = opt_prop_def(StringAttr)
    body = region_def()

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        extent: int | SSAValue,
        body: Region,
        kind: LoopKind = LoopKind.SERIAL,
        thread_axis: str | None = None,
        annotations: Mapping[str, Attribute] | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {"kind": _kind(kind)}
        if isinstance(extent, int):
            properties["static_extent"] = _static(extent)
        if thread_axis is not None:
            properties["thread_axis"] = StringAttr(thread_axis)
        # Not through IRDL, whose sorting of operands and properties costs four times as much: schedules make many.
        Operation.__init__(
            self,
            operands=[] if isinstance(extent, int) else [extent],
            properties=properties,
            attributes=annotations or {},
            regions=[body],
        )

    @staticmethod
    def around(
        extent: int | SSAValue,
        operations: Sequence[Operation] = (),
        name_hint: str | None = None,
        kind: LoopKind = LoopKind.SERIAL,
    ) -> ForOp:
        """A loop around `operations`, with a fresh loop variable."""
        body = Block(arg_types=[_INDEX])
        body.args[0].name_hint = name_hint
        body.add_ops(operations)
        return ForOp(extent, Region(body), kind)

    @property
    def extent(self) -> int | SSAValue:
        """The number of iterations, static or a value."""
        # Not through the field, whose look-up costs more than all else: analyses ask very often.
        static = self.properties.get("static_extent")
        if isinstance(static, IntegerAttr):
            return static.value.data
        if self.dynamic_extent is None:
            raise VerifyException("tir.for has neither a static nor a dynamic extent")
        return self.dynamic_extent

    @property
    def induction_variable(self) -> BlockArgument:
        return self.regions[0].block.args[0]

    def verify_(self) -> None:
        if (self.static_extent is None) == (self.dynamic_extent is None):
            raise VerifyException("tir.for needs either a static or a dynamic extent")
        if self.static_extent is not None and self.static_extent.value.data < 0:
            raise VerifyException(f"tir.for extent must not be negative, got {self.static_extent.value.data}")
        if (self.kind.data is LoopKind.THREAD_BINDING) != (self.thread_axis is not None):
            raise VerifyException("tir.for has a thread axis exactly when its kind is thread_binding")
        if self.thread_axis is not None and self.thread_axis.data not in AXES:
            raise VerifyException(f"tir.for: thread axis '{self.thread_axis.data}' is none of {', '.join(AXES)}")
        verify_single_block(self, self.body, 1)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        variable = parser.parse_argument(expect_type=False)
        parser.parse_keyword("in")
        extent: int | SSAValue | None = parser.parse_optional_integer(allow_boolean=False)
        if extent is None:
            extent = parser.parse_operand(IndexType())
        kind, thread_axis = LoopKind.SERIAL, None
        for candidate in LoopKind:
            if parser.parse_optional_keyword(str(candidate)) is not None:
                kind = candidate
                break
        if kind is LoopKind.THREAD_BINDING:
            with parser.in_angle_brackets():
                thread_axis = parser.parse_str_literal()
        annotations = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region((variable.resolve(IndexType()),))
        return cls(extent, body, kind, thread_axis, annotations.data if annotations else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.induction_variable)
        printer.print_string(" in ")
        if isinstance(self.extent, int):
            printer.print_string(str(self.extent))
        else:
            printer.print_ssa_value(self.extent)
        if self.kind.data is not LoopKind.SERIAL:
            printer.print_string(f" {self.kind.data.value}")
        if self.thread_axis is not None:
            printer.print_string(f'<"{self.thread_axis.data}">')
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
