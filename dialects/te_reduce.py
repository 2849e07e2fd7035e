"""`te.reduce`: the values of an expression combined into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerType,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import RegionEffects
from weft.dialects.te_combiners import Combiner, CombinerAttr
from weft.dialects.te_elements import Extent, YieldOp, is_element_type, parse_extent, type_list, verify_region


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """The values of an expression over reduce axes, combined into one; stands in an element region, alone or within a
    larger expression, also within another reduction.

    ```mlir
    %s = te.reduce sum (%k in 128) : f32 { ... te.yield %p : f32 }
    %v, %i = te.reduce argmax (%k in %n) : f32, i32 { ... te.yield %x, %at : f32, i32 }
    %v = te.reduce custom (%a in 3, %b in 3) : f32 {
      ...
      te.yield %x : f32
    } combine (%left, %right) {
      %m = arith.mulf %left, %right : f32
      te.yield %m : f32
    } identity {
      te.yield %one : f32
    }
    ```
    Axes start at 0. `combine` takes the accumulators, then as many new values.
    """

    name = "te.reduce"

    extent_operands = var_operand_def(IndexType)
    """One for each axis of dynamic extent, in order."""
    combiner = prop_def(CombinerAttr)
    static_extents = prop_def(DenseArrayBase.constr(i64))
    values = var_result_def()
    body = region_def()
    combiner_regions = var_region_def()
    """None, or `combine` and `identity`."""

    traits = traits_def(RegionEffects())

    def __init__(
        self,
        combiner: Combiner,
        extents: Sequence[Extent],
        types: Sequence[Attribute],
        body: Region,
        combine: Region | None = None,
        identity: Region | None = None,
        annotations: Mapping[str, Attribute] | None = None,
    ) -> None:
        super().__init__(
            operands=[[extent for extent in extents if isinstance(extent, SSAValue)]],
            result_types=[types],
            properties={
                "combiner": CombinerAttr(combiner),
                "static_extents": DenseArrayBase.from_list(
                    i64, [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in extents]
                ),
            },
            attributes=dict(annotations or {}),
            regions=[body, [region for region in (combine, identity) if region is not None]],
        )

    @staticmethod
    def over(
        combiner: Combiner,
        extents: Sequence[Extent],
        types: Sequence[Attribute],
        axis_hints: Sequence[str | None] = (),
    ) -> ReduceOp:
        """A reduction whose body has its axes as arguments and is to be filled up to a `te.yield`."""
        block = Block(arg_types=[IndexType()] * len(extents))
        for argument, hint in zip(block.args, axis_hints, strict=False):
            argument.name_hint = hint
        return ReduceOp(combiner, extents, types, Region(block))

    @property
    def kind(self) -> Combiner:
        return self.combiner.data

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The extent of each axis, static or a value."""
        dynamic = iter(self.extent_operands)
        static = self.static_extents.get_values()
        return tuple(next(dynamic) if extent == DYNAMIC_INDEX else extent for extent in static)

    @property
    def combine(self) -> Region | None:
        """What `custom` does with the accumulators and as many new values."""
        return self.combiner_regions[0] if self.combiner_regions else None

    @property
    def identity(self) -> Region | None:
        """What `custom` starts from."""
        return self.combiner_regions[1] if len(self.combiner_regions) > 1 else None

    @property
    def axes(self) -> Sequence[BlockArgument]:
        return self.body.block.args

    @property
    def yielded(self) -> YieldOp:
        return cast("YieldOp", self.body.block.last_op)

    def verify_(self) -> None:
        what = f"te.reduce {self.kind.value}"
        self._verify_place(what)
        static = self.static_extents.get_values()
        if not static:
            raise VerifyException(f"{what} has no axis to reduce over")
        if static.count(DYNAMIC_INDEX) != len(self.extent_operands):
            raise VerifyException(f"{what}: dynamic extents and their operands differ in number")
        types = [result.type for result in self.results]
        for type in types:
            if not is_element_type(type) and not isinstance(type, IndexType):
                raise VerifyException(f"{what} combines numbers, got {type}")
        self._verify_types(what, types)
        yielded = verify_region(self, what, self.body, [IndexType()] * len(static))
        if [value.type for value in yielded.values] != types:
            raise VerifyException(
                f"{what} yields {type_list(yielded.values)}, but its results are {type_list(self.results)}"
            )
        if self.kind is not Combiner.CUSTOM:
            if self.combiner_regions:
                raise VerifyException(f"{what} has its own combiner and identity: only `custom` takes regions")
            return
        if self.combine is None or self.identity is None:
            raise VerifyException(f"{what} needs the regions `combine` and `identity`")
        for role, region, arguments in (
            ("combine", self.combine, types + types),
            ("identity", self.identity, ()),
        ):
            yielded = verify_region(self, f"{what}: {role}", region, arguments)
            if [value.type for value in yielded.values] != types:
                raise VerifyException(
                    f"{what}: {role} yields {type_list(yielded.values)}, but the results are {type_list(self.results)}"
                )

    def _verify_place(self, what: str) -> None:
        parent = self.parent_op()
        while parent is not None and parent.name != "te.compute":
            parent = parent.parent_op()
        if parent is None:
            raise VerifyException(f"{what} stands in an element region of te.compute, got none around it")

    def _verify_types(self, what: str, types: Sequence[Attribute]) -> None:
        """What a built-in combiner asks of the types it combines."""
        got = type_list(self.results)
        match self.kind:
            case Combiner.CUSTOM:
                if not types:
                    raise VerifyException(f"{what} has no accumulator")
            case Combiner.ANY | Combiner.ALL:
                if list(types) != [IntegerType(1)]:
                    raise VerifyException(f"{what} combines one truth value (i1), got {got}")
            case Combiner.ARGMAX | Combiner.ARGMIN:
                if len(types) != 2 or types[0] == IntegerType(1) or not isinstance(types[1], IntegerType | IndexType):
                    raise VerifyException(f"{what} combines a number and its integer index, got {got}")
            case _:
                if len(types) != 1 or types[0] == IntegerType(1):
                    raise VerifyException(f"{what} combines one number, got {got}")

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        combiner = parser.parse_str_enum(Combiner)
        axes: list[Parser.Argument] = []
        extents: list[Extent] = []

        def parse_axis() -> None:
            axes.append(parser.parse_argument(expect_type=False).resolve(IndexType()))
            parser.parse_keyword("in")
            extents.append(parse_extent(parser))

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_axis)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        annotations = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(axes)
        combine = identity = None
        at = parser.pos
        if parser.parse_optional_keyword("combine") is not None:
            at = parser.pos
            names = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
            )
            if len(names) != 2 * len(types):
                parser.raise_error(
                    f"combine takes {len(types)} accumulators and as many new values, got {len(names)} arguments",
                    at,
                    parser.pos,
                )
            combine = parser.parse_region(
                [name.resolve(type) for name, type in zip(names, [*types, *types], strict=True)]
            )
        if parser.parse_optional_keyword("identity") is not None:
            identity = parser.parse_region()
        if (combine is None) != (identity is None):
            parser.raise_error("te.reduce takes both `combine` and `identity`, or neither", at, parser.pos)
        return cls(combiner, extents, types, body, combine, identity, annotations.data if annotations else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.value} (")

        def print_axis(axis: tuple[BlockArgument, Extent]) -> None:
            printer.print_ssa_value(axis[0])
            printer.print_string(" in ")
            if isinstance(axis[1], int):
                printer.print_string(str(axis[1]))
            else:
                printer.print_ssa_value(axis[1])

        printer.print_list(zip(self.axes, self.extents, strict=True), print_axis)
        printer.print_string(") : ")
        printer.print_list(self.results, lambda result: printer.print_attribute(result.type))
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        if self.combine is not None:
            printer.print_string(" combine (")
            printer.print_list(self.combine.block.args, printer.print_ssa_value)
            printer.print_string(") ")
            printer.print_region(self.combine, print_entry_block_args=False, print_empty_block=False)
        if self.identity is not None:
            printer.print_string(" identity ")
            printer.print_region(self.identity, print_empty_block=False)
