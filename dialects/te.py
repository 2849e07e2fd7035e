"""te: tensor expressions, tensors defined element by element (the job of TVM's tensor expression language).

A function at this level takes and returns `tensor` values. `te.compute` says what each element of a new tensor is, as a
pure expression over its indices; `te.reduce` is an expression that combines the values of another over reduce axes.
Nothing says how elements are ordered or stored: `lower-te-to-tir` makes loops and buffers, schedules do the rest.

```mlir
func.func @mm_relu(%A: tensor<128x128xf32>, %B: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.000000e+00 : f32
  %Y = te.compute "Y" (%i, %j) : tensor<128x128xf32> {
    %s = te.reduce sum (%k in 128) : f32 {
      %a = tensor.extract %A[%i, %k] : tensor<128x128xf32>
      %b = tensor.extract %B[%k, %j] : tensor<128x128xf32>
      %p = arith.mulf %a, %b : f32
      te.yield %p : f32
    }
    te.yield %s : f32
  }
  %C = te.compute "C" (%i, %j) : tensor<128x128xf32> {
    %y = tensor.extract %Y[%i, %j] : tensor<128x128xf32>
    %r = arith.maximumf %y, %zero : f32
    te.yield %r : f32
  }
  func.return %C : tensor<128x128xf32>
}
```

Inputs are the arguments of the function. Element regions see them, scalars, extents and constants from around them.
Reads are `tensor.extract`, index arithmetic is `affine.apply`, a guarded read is `scf.if` with a result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    StringAttr,
    TensorType,
)
from xdsl.ir import (
    Attribute,
    Block,
    BlockArgument,
    Dialect,
    Region,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import RegionEffects
from weft.dialects.te_combiners import Combiner, CombinerAttr
from weft.dialects.te_elements import (
    AssumeShapeOp,
    Extent,
    YieldOp,
    is_element_type,
    type_list,
    verify_region,
)
from weft.dialects.te_reduce import ReduceOp
from weft.support.locations import record_places

__all__ = [
    "PARAMETER_ORDER",
    "TE",
    "AssumeShapeOp",
    "Combiner",
    "ComputeOp",
    "Extent",
    "ReduceOp",
    "YieldOp",
    "is_element_type",
]

PARAMETER_ORDER = "te.parameter_order"
"""Attribute of a function (`array<i64: ...>`): positions of its inputs, then results, in the order of the buffers that
they become; without it results come last."""


@irdl_op_definition
class ComputeOp(IRDLOperation):
    """New tensors, given by the expression of one element; the indices run over the shape.

    ```mlir
    %C = te.compute "C" (%i, %j) : tensor<4x4xi64> { ... te.yield %c : i64 }
    %D = te.compute "D" (%i in %m, %j) : tensor<?x4xf32> { ... }
    %v, %k = te.compute "top" (%i) : tensor<4xf32>, tensor<4xi32> { ... te.yield %a, %b : f32, i32 }
    %s = te.compute "s" () : tensor<f32> { ... }
    ```
    Dynamic dimensions take their extent after `in`. Several results have one shape.
    """

    name = "te.compute"

    extent_operands = var_operand_def(IndexType)
    """One for each dynamic dimension, in order."""
    compute_name = prop_def(StringAttr)
    tensors = var_result_def(TensorType)
    body = region_def()

    traits = traits_def(RegionEffects())

    def __init__(
        self,
        name: str,
        types: Sequence[Attribute],
        extents: Sequence[SSAValue],
        body: Region,
        annotations: Mapping[str, Attribute] | None = None,
    ) -> None:
        """`extents` has one value for each dynamic dimension of the `types`."""
        super().__init__(
            operands=[extents],
            result_types=[types],
            properties={"compute_name": StringAttr(name)},
            attributes=dict(annotations or {}),
            regions=[body],
        )

    @staticmethod
    def over(
        name: str,
        extents: Sequence[Extent],
        element_types: Sequence[Attribute],
        index_hints: Sequence[str | None] = (),
    ) -> ComputeOp:
        """A compute whose body has its index arguments and is to be filled up to a `te.yield`.

        The results take `name` as hint (`name_v0`, `name_v1`, ... when there are several).
        """
        block = Block(arg_types=[IndexType()] * len(extents))
        for argument, hint in zip(block.args, index_hints, strict=False):
            argument.name_hint = hint
        shape = [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in extents]
        types = [TensorType(element, shape) for element in element_types]
        op = ComputeOp(name, types, [extent for extent in extents if isinstance(extent, SSAValue)], Region(block))
        for position, result in enumerate(op.results):
            hint = name if len(element_types) == 1 else f"{name}_v{position}"
            result.name_hint = hint if SSAValue.is_valid_name(hint) else None
        return op

    @property
    def label(self) -> str:
        """The name as users write it: blocks and buffers are named after it."""
        return self.compute_name.data

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the results, DYNAMIC_INDEX where they are values."""
        return cast("TensorType[Attribute]", self.results[0].type).get_shape()

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The extent of each index, static or a value."""
        dynamic = iter(self.extent_operands)
        return tuple(next(dynamic) if extent == DYNAMIC_INDEX else extent for extent in self.shape)

    @property
    def indices(self) -> Sequence[BlockArgument]:
        return self.body.block.args

    @property
    def yielded(self) -> YieldOp:
        return cast("YieldOp", self.body.block.last_op)

    def verify_(self) -> None:
        what = f'te.compute "{self.label}"'
        if not self.results:
            raise VerifyException(f"{what} has no result")
        types = [cast("TensorType[Attribute]", result.type) for result in self.results]
        for type in types:
            if type.get_shape() != types[0].get_shape():
                raise VerifyException(f"{what}: results differ in shape, {types[0]} and {type}")
            if not is_element_type(type.element_type):
                raise VerifyException(f"{what}: elements are i1, i8 to i64 or floats, got {type.element_type}")
        dynamic = self.shape.count(DYNAMIC_INDEX)
        if dynamic != len(self.extent_operands):
            raise VerifyException(
                f"{what} gives {len(self.extent_operands)} extents for {dynamic} dynamic dimensions of {types[0]}"
            )
        yielded = verify_region(self, what, self.body, [IndexType()] * len(self.shape))
        if [value.type for value in yielded.values] != [type.element_type for type in types]:
            elements = ", ".join(str(type.element_type) for type in types)
            raise VerifyException(f"{what} yields {type_list(yielded.values)}, but its elements are {elements}")
        parent = self.parent_op()
        while parent is not None:
            if isinstance(parent, ComputeOp):
                raise VerifyException(f'{what} stands in an element of te.compute "{parent.label}"')
            parent = parent.parent_op()

    @classmethod
    def parse(cls, parser: Parser) -> ComputeOp:
        name = parser.parse_str_literal("name of the computed tensor")
        indices: list[Parser.Argument] = []
        extents: list[SSAValue | None] = []

        def parse_index() -> None:
            indices.append(parser.parse_argument(expect_type=False).resolve(IndexType()))
            dynamic = parser.parse_optional_keyword("in") is not None
            extents.append(parser.parse_operand(IndexType()) if dynamic else None)

        at = parser.pos
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_index)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        shape = cls._shape(parser, name, types, at)
        if len(shape) != len(indices):
            parser.raise_error(
                f'te.compute "{name}" has {len(indices)} indices, but {types[0]} has rank {len(shape)}',
                at,
                parser.pos,
            )
        for position, (size, extent) in enumerate(zip(shape, extents, strict=True)):
            if (size == DYNAMIC_INDEX) != (extent is not None):
                needs = "needs its extent after `in`" if extent is None else "is static and takes no extent"
                parser.raise_error(f'te.compute "{name}": dimension {position} of {types[0]} {needs}', at, parser.pos)
        annotations = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region(indices)
        return cls(
            name,
            types,
            [extent for extent in extents if extent is not None],
            body,
            annotations.data if annotations else None,
        )

    @staticmethod
    def _shape(parser: Parser, name: str, types: Sequence[Attribute], at: int) -> tuple[int, ...]:
        """The one shape of the result types."""
        for type in types:
            if not isinstance(type, TensorType):
                parser.raise_error(f'te.compute "{name}" computes tensors, got {type}', at, parser.pos)
            if type.get_shape() != cast("TensorType[Attribute]", types[0]).get_shape():
                parser.raise_error(
                    f'te.compute "{name}": results differ in shape, {types[0]} and {type}', at, parser.pos
                )
        return cast("TensorType[Attribute]", types[0]).get_shape()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label)
        printer.print_string(" (")

        def print_index(index: tuple[BlockArgument, Extent]) -> None:
            printer.print_ssa_value(index[0])
            if isinstance(index[1], SSAValue):
                printer.print_string(" in ")
                printer.print_ssa_value(index[1])

        printer.print_list(zip(self.indices, self.extents, strict=True), print_index)
        printer.print_string(") : ")
        printer.print_list(self.results, lambda result: printer.print_attribute(result.type))
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


TE = Dialect("te", record_places([ComputeOp, ReduceOp, YieldOp, AssumeShapeOp]), [CombinerAttr])
