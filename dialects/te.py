"""te: tensors defined element by element (the role of TVM's tensor expression language).

`te.compute` defines an element of a new tensor by a pure expression over its indices; `te.reduce` combines values over
reduce axes. `lower-te-to-tir` chooses order and storage, which schedules transform.

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

Element regions use their arguments, and outer scalars, extents and constants. Reads are `tensor.extract`, index
arithmetic is `affine.apply`, a guarded read is `scf.if`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import auto
from typing import Final, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    DenseArrayBase,
    IndexType,
    IntegerType,
    ReducedPrecisionFloatType,
    Signedness,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import (
    Attribute,
    Block,
    BlockArgument,
    Dialect,
    Operation,
    OpResult,
    Region,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from weft.dialects.combiners import op_named
from weft.dialects.effects import RegionEffects
from weft.dialects.element_types import greatest, least
from weft.dialects.index_map import (
    Extent,
    mixed_extents,
    parse_annotations_and_body,
    parse_domain,
    print_annotations_and_body,
    static_extents,
)
from weft.dialects.printing import write
from weft.dialects.te_extern import ExternOp
from weft.dialects.tir_assume import AssumeSizesOp
from weft.dialects.traversal import ancestors
from weft.support.locations import record_places


class Combiner(StrEnum):
    """The combiner of `te.reduce`; its identity is the result of an empty reduction.

    Schedules may reorder reductions, since all combiners are associative and commutative up to rounding.
    """

    SUM = auto()
    """Addition, identity 0. Integers wrap."""
    PROD = auto()
    """Multiplication, identity 1. Integers wrap."""
    MIN = auto()
    """Minimum, identity +inf or the greatest integer. NaN propagates."""
    MAX = auto()
    """Maximum, identity -inf or the least integer. NaN propagates."""
    MINU = auto()
    """Minimum of unsigned integers, identity the greatest one."""
    MAXU = auto()
    """Maximum of unsigned integers, identity 0."""
    ANY = auto()
    """Logical or, identity false."""
    ALL = auto()
    """Logical and, identity true."""
    ARGMAX = auto()
    """(value, index) of the greatest value, with the least index among equals; NaN is greatest. Identity: (-inf or the
    least integer, the greatest integer)."""
    ARGMIN = auto()
    """(value, index) of the least value, with the least index among equals; NaN is least. Identity: (+inf or the
    greatest integer, the greatest integer)."""
    ARGMAXU = auto()
    """`argmax` of unsigned integers. Identity: (0, the greatest signed integer)."""
    ARGMINU = auto()
    """`argmin` of unsigned integers. Identity: (the greatest one, the greatest signed integer)."""
    CUSTOM = auto()
    """Defined by the regions `combine` and `identity`, over any number of accumulators."""


@irdl_attr_definition
class CombinerAttr(EnumAttribute[Combiner], SpacedOpaqueSyntaxAttribute):
    """The combiner of a reduction.

    ```mlir
    #te<combiner sum>
    ```
    """

    name = "te.combiner"


_OPS: Final = {
    Combiner.SUM: "add",
    Combiner.PROD: "mul",
    Combiner.MIN: "min",
    Combiner.MAX: "max",
    Combiner.MINU: "minu",
    Combiner.MAXU: "maxu",
    Combiner.ANY: "or",
    Combiner.ALL: "and",
}


UNSIGNED: Final = {
    Combiner.MIN: Combiner.MINU,
    Combiner.MAX: Combiner.MAXU,
    Combiner.ARGMIN: Combiner.ARGMINU,
    Combiner.ARGMAX: Combiner.ARGMAXU,
}
"""Signed -> unsigned."""
LOCATING: Final = {
    Combiner.ARGMAX: "sgt",
    Combiner.ARGMIN: "slt",
    Combiner.ARGMAXU: "ugt",
    Combiner.ARGMINU: "ult",
}
"""Combiners of pairs -> predicate of the better of two integers."""


def combining_op(combiner: Combiner, type_: Attribute) -> type[Operation]:
    """The op of `arith`, except for pairs and `custom`."""
    return op_named(_OPS[combiner], type_)


def identity_of(combiner: Combiner, types: Sequence[Attribute]) -> list[float | int]:
    """Initial values, except for `custom`."""
    match combiner:
        case Combiner.SUM | Combiner.ANY | Combiner.MAXU:
            return [0]
        case Combiner.PROD | Combiner.ALL:
            return [1]
        case Combiner.MIN | Combiner.ARGMIN:
            return [greatest(type_) for type_ in types]
        case Combiner.MINU | Combiner.ARGMINU | Combiner.ARGMAXU:  # the greatest unsigned integer
            return [0 if combiner is Combiner.ARGMAXU else -1, *(greatest(type_) for type_ in types[1:])]
        case _:
            return [least(types[0]), *(greatest(type_) for type_ in types[1:])]


def is_element_type(type: Attribute) -> bool:
    if isinstance(type, IntegerType):
        return type.width.data in (1, 8, 16, 32, 64) and type.signedness.data is Signedness.SIGNLESS
    return isinstance(type, AnyFloat) and not isinstance(type, ReducedPrecisionFloatType)


def type_list(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def _verify_region(
    what: str, region: Region, arguments: Sequence[Attribute], results: str, types: Sequence[Attribute]
) -> None:
    """Check for one block that yields `results` values."""
    if len(region.blocks) != 1:
        raise VerifyException(f"{what} holds exactly one block of operations, got {len(region.blocks)}")
    block = region.block
    if list(block.arg_types) != list(arguments):
        raise VerifyException(
            f"{what} takes arguments of types {type_list(arguments)}, got {type_list(block.arg_types)}"
        )
    last = block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"{what} must end in te.yield, got {'nothing' if last is None else last.name}")
    if list(last.operand_types) != list(types):
        raise VerifyException(f"{what} yields {type_list(last.operand_types)}, but {results} are {type_list(types)}")


def _compute_around(op: Operation) -> ComputeOp | None:
    return next((parent for parent in ancestors(op) if isinstance(parent, ComputeOp)), None)


def _indexed_block(count: int, hints: Sequence[str | None]) -> Block:
    block = Block(arg_types=[IndexType()] * count)
    for argument, hint in zip(block.args, hints, strict=False):
        argument.name_hint = hint
    return block


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Return the values of an element, a reduction's expression, a combiner or an identity.

    ```mlir
    %Z = te.compute "Z" (%i) : tensor<4xf32> {
      te.yield %zero : f32
    }
    ```
    """

    name = "te.yield"

    values = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[values])

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is None or parent.name not in ("te.compute", "te.reduce"):
            raise VerifyException("te.yield must be in a region of te.compute or te.reduce")


@irdl_op_definition
class AssumeShapeOp(AssumeSizesOp):
    """State the dynamic extents of a tensor, which calls check.

    ```mlir
    %m = tensor.dim %A, %c0 : tensor<?x128xf32>
    te.assume_shape %B[%m] : tensor<?x128xf32>
    ```
    """

    name = "te.assume_shape"

    buffer = operand_def(TensorType)


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Combine the values of an expression over reduce axes, in an element region or another reduction.

    ```mlir
    %C = te.compute "C" (%i) : tensor<4xf32> {
      %s = te.reduce sum (%k in 128) : f32 {
        %a = tensor.extract %A[%i, %k] : tensor<4x128xf32>
        te.yield %a : f32
      }
      te.yield %s : f32
    }
    %V, %K = te.compute "top" (%i) : tensor<4xf32>, tensor<4xi32> {
      %v, %at = te.reduce argmax (%k in %n) : f32, i32 {
        %a = tensor.extract %B[%i, %k] : tensor<4x?xf32>
        %k_i32 = arith.index_cast %k : index to i32
        te.yield %a, %k_i32 : f32, i32
      }
      te.yield %v, %at : f32, i32
    }
    %P = te.compute "product" (%i) : tensor<4xf32> {
      %p = te.reduce custom (%k in 128) : f32 {
        %a = tensor.extract %A[%i, %k] : tensor<4x128xf32>
        te.yield %a : f32
      } combine (%left, %right) {
        %m = arith.mulf %left, %right : f32
        te.yield %m : f32
      } identity {
        %one = arith.constant 1.0 : f32
        te.yield %one : f32
      }
      te.yield %p : f32
    }
    ```
    Axes start at 0. `combine` takes the accumulators, then as many new values.

    Syntax: `te.reduce combiner (%k in extent, ...) : type, ... [attributes {...}] { body } [combine (%left, %right) {
    ... } identity { ... }]`, where the combiner is a word of `#te<combiner ...>`.
    """

    name = "te.reduce"

    extent_operands = var_operand_def(IndexType)
    """One for each dynamic axis, in order."""
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
                "static_extents": static_extents(extents),
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
        """The body lacks `te.yield`."""
        return ReduceOp(combiner, extents, types, Region(_indexed_block(len(extents), axis_hints)))

    @property
    def kind(self) -> Combiner:
        return self.combiner.data

    @property
    def extents(self) -> tuple[Extent, ...]:
        return mixed_extents(self.static_extents.get_values(), self.extent_operands)

    @property
    def combine(self) -> Region | None:
        """Accumulators, then as many new values."""
        return self.combiner_regions[0] if self.combiner_regions else None

    @property
    def identity(self) -> Region | None:
        return self.combiner_regions[1] if len(self.combiner_regions) > 1 else None

    @property
    def axes(self) -> Sequence[BlockArgument]:
        return self.body.block.args

    @property
    def yielded(self) -> YieldOp:
        return cast("YieldOp", self.body.block.last_op)

    def verify_(self) -> None:
        what = f"te.reduce {self.kind.value}"
        if _compute_around(self) is None:
            raise VerifyException(f"{what} must be in an element region of te.compute")
        static = self.static_extents.get_values()
        if not static:
            raise VerifyException(f"{what} has no axis to reduce over")
        if static.count(DYNAMIC_INDEX) != len(self.extent_operands):
            raise VerifyException(f"{what}: dynamic extents and their operands differ in number")
        types = self.result_types
        for type in types:
            if not is_element_type(type) and not isinstance(type, IndexType):
                raise VerifyException(f"{what} combines numbers, got {type}")
        self._verify_types(what, types)
        _verify_region(what, self.body, [IndexType()] * len(static), "its results", types)
        if self.kind is not Combiner.CUSTOM:
            if self.combiner_regions:
                raise VerifyException(f"{what} has its own combiner and identity: only `custom` takes regions")
        elif self.combine is None or self.identity is None:
            raise VerifyException(f"{what} needs the regions `combine` and `identity`")
        else:
            _verify_region(f"{what}: combine", self.combine, (*types, *types), "the results", types)
            _verify_region(f"{what}: identity", self.identity, (), "the results", types)

    def _verify_types(self, what: str, types: Sequence[Attribute]) -> None:
        got = type_list(types)
        match self.kind:
            case Combiner.CUSTOM:
                if not types:
                    raise VerifyException(f"{what} has no accumulator")
            case Combiner.ANY | Combiner.ALL:
                if list(types) != [IntegerType(1)]:
                    raise VerifyException(f"{what} combines one truth value (i1), got {got}")
            case _ if self.kind in LOCATING:
                if len(types) != 2 or types[0] == IntegerType(1) or not isinstance(types[1], IntegerType | IndexType):
                    raise VerifyException(f"{what} combines a number and its integer index, got {got}")
            case _:
                if len(types) != 1 or types[0] == IntegerType(1):
                    raise VerifyException(f"{what} combines one number, got {got}")
        if self.kind in UNSIGNED.values() and not isinstance(types[0], IntegerType):
            raise VerifyException(f"{what} combines integers, got {got}")

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        combiner = parser.parse_str_enum(Combiner)
        axes, extents = parse_domain(parser)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        annotations, body = parse_annotations_and_body(parser, axes)
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
        return cls(combiner, extents, types, body, combine, identity, annotations)

    def print(self, printer: Printer) -> None:
        axes = [(axis, " in ", extent) for axis, extent in zip(self.axes, self.extents, strict=True)]
        write(printer, f" {self.kind.value} (", axes, ") : ", [*self.result_types])
        print_annotations_and_body(printer, self.attributes, self.body)
        if self.combine is not None:
            write(printer, " combine (", [*self.combine.block.args], ") ")
            printer.print_region(self.combine, print_entry_block_args=False, print_empty_block=False)
        if self.identity is not None:
            printer.print_string(" identity ")
            printer.print_region(self.identity, print_empty_block=False)


PARAMETER_ORDER = "te.parameter_order"
"""Positions of a function's inputs, then results, in the order of their buffers; by default results are last."""


@irdl_op_definition
class ComputeOp(IRDLOperation):
    """New tensors of one shape, defined by an expression for an element; the indices range over the shape.

    ```mlir
    %C = te.compute "C" (%i, %j) : tensor<4x4xf32> {
      %a = tensor.extract %A[%i, %j] : tensor<4x4xf32>
      %c = arith.addf %a, %a : f32
      te.yield %c : f32
    }
    %D = te.compute "D" (%i in %m, %j) : tensor<?x4xf32> {
      te.yield %zero : f32
    }
    %V, %K = te.compute "pair" (%i) : tensor<4xf32>, tensor<4xi32> {
      te.yield %zero, %one : f32, i32
    }
    %S = te.compute "s" () : tensor<f32> {
      te.yield %zero : f32
    }
    ```
    The extent of a dynamic dimension follows `in`.

    Syntax: `te.compute "name" (%i [in extent], ...) : type, ... [attributes {...}] { body }`
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
        """`extents`: one per dynamic dimension."""
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
        """The body lacks `te.yield`. Hints are `name`, or `name_v0`, `name_v1`, ... for several results."""
        body = Region(_indexed_block(len(extents), index_hints))
        shape = [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in extents]
        types = [TensorType(element, shape) for element in element_types]
        op = ComputeOp(name, types, [extent for extent in extents if isinstance(extent, SSAValue)], body)
        for position, result in enumerate(op.results):
            hint = name if len(element_types) == 1 else f"{name}_v{position}"
            result.name_hint = hint if SSAValue.is_valid_name(hint) else None
        return op

    @property
    def label(self) -> str:
        """Names blocks and buffers."""
        return self.compute_name.data

    @property
    def shape(self) -> tuple[int, ...]:
        return cast("TensorType[Attribute]", self.results[0].type).get_shape()

    @property
    def extents(self) -> tuple[Extent, ...]:
        return mixed_extents(self.shape, self.extent_operands)

    def extents_of(self, result: OpResult) -> tuple[Extent, ...]:
        del result  # one shape
        return self.extents

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
        elements = [type.element_type for type in types]
        _verify_region(what, self.body, [IndexType()] * len(self.shape), "its elements", elements)
        around = _compute_around(self)
        if around is not None:
            raise VerifyException(f'{what} must not be in an element of te.compute "{around.label}"')

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
        if not isinstance(types[0], TensorType):
            parser.raise_error(f'te.compute "{name}" computes tensors, got {types[0]}', at, parser.pos)
        shape = types[0].get_shape()
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
        annotations, body = parse_annotations_and_body(parser, indices)
        return cls(name, types, [extent for extent in extents if extent is not None], body, annotations)

    def print(self, printer: Printer) -> None:
        indices = [
            (index, " in ", extent) if isinstance(extent, SSAValue) else index
            for index, extent in zip(self.indices, self.extents, strict=True)
        ]
        write(printer, " ", StringAttr(self.label), " (", indices, ") : ", [*self.result_types])
        print_annotations_and_body(printer, self.attributes, self.body)


TE = Dialect("te", record_places([ComputeOp, ExternOp, ReduceOp, YieldOp, AssumeShapeOp]), [CombinerAttr])
