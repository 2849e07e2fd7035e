"""Lane-wise comparisons, selection and casts of `low`.

xDSL's `arith.cmpi`, `cmpf`, `select` (by a mask), `index_cast` and conversions from and to integers are for scalars.
Each op here applies one per lane, with its operand, result and property names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import CustomDirective
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from weft.dialects.type_rule import TypeByRule
from weft.dialects.upstream.custom_syntax import word_directive

T = TypeVar("T")


def vector_type(type_: Attribute) -> VectorType[Attribute]:
    """Raises `VerifyException` for other types."""
    if not isinstance(type_, VectorType):
        raise VerifyException(f"lanes and masks are vectors, got {type_}")
    return type_


def mask_type(lanes: Attribute) -> VectorType[Attribute]:
    return VectorType(i1, vector_type(lanes).get_shape())


SAME: Final = TypeByRule("LANES", vector_type, vector_type)
LANES: Final = VarConstraint("LANES", SAME)
"""The vector type in the text of an op."""
MASK: Final = TypeByRule("LANES", mask_type, vector_type)


def _predicate(names: Sequence[str]) -> type[CustomDirective]:
    return word_directive("Predicate", names, "unknown predicate '{word}' of {op}")


class _LaneCompareOp(IRDLOperation):
    PREDICATES: ClassVar[Sequence[str]] = ()

    lhs = operand_def(LANES)
    rhs = operand_def(SAME)
    predicate = prop_def(IntegerAttr)
    result = result_def(MASK)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue, predicate: int) -> None:
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": IntegerAttr(predicate, i64)},
            result_types=[mask_type(lhs.type)],
        )

    def verify_(self) -> None:
        if self.lhs.type != self.rhs.type or self.result.type != mask_type(self.lhs.type):
            raise VerifyException(
                f"{self.name} compares equal types to a mask, "
                f"got {self.lhs.type}, {self.rhs.type} -> {self.result.type}"
            )
        if not 0 <= self.predicate.value.data < len(self.PREDICATES):
            raise VerifyException(f"{self.name} has no predicate {self.predicate.value.data}")


@irdl_op_definition
class CmpiOp(_LaneCompareOp):
    """`arith.cmpi` on every lane, also of index vectors.

    ```mlir
    %m = low.cmpi slt, %a, %b : vector<8xi32>
    ```
    """

    name = "low.cmpi"
    PREDICATES: ClassVar = arith.CMPI_COMPARISON_OPERATIONS
    custom_directives = (_predicate(PREDICATES),)
    assembly_format = "custom<Predicate>($predicate) `,` $lhs `,` $rhs attr-dict `:` type($lhs)"


@irdl_op_definition
class CmpfOp(_LaneCompareOp):
    """`arith.cmpf` on every lane.

    ```mlir
    %m = low.cmpf olt, %a, %b fastmath<nnan> : vector<8xf32>
    ```
    """

    name = "low.cmpf"
    PREDICATES: ClassVar = arith.CMPF_COMPARISON_OPERATIONS
    custom_directives = (_predicate(PREDICATES),)

    fastmath = prop_def(arith.FastMathFlagsAttr, default_value=arith.FastMathFlagsAttr("none"))

    assembly_format = (
        "custom<Predicate>($predicate) `,` $lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs)"
    )


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Lane l is `lhs[l]` if `cond` is true, else `rhs[l]`.

    ```mlir
    %r = low.select %mask, %a, %b : vector<8xf32>
    ```
    """

    name = "low.select"

    cond = operand_def(MASK)
    lhs = operand_def(LANES)
    rhs = operand_def(SAME)
    result = result_def(SAME)

    traits = traits_def(Pure())
    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($lhs)"

    def __init__(self, cond: SSAValue, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[cond, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        if not self.lhs.type == self.rhs.type == self.result.type or self.cond.type != mask_type(self.lhs.type):
            raise VerifyException(
                f"{self.name} chooses between equal types by a mask, "
                f"got {self.cond.type}, {self.lhs.type}, {self.rhs.type}"
            )


class LaneCastOp(IRDLOperation):
    """A lane-wise conversion of `arith`: `low.sitofp %v : vector<8xi32> to vector<8xf32>`."""

    input = operand_def(VectorType)
    result = result_def(VectorType)

    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"
    traits = traits_def(Pure())

    def __init__(self, input_: SSAValue, result_type: Attribute) -> None:
        super().__init__(operands=[input_], result_types=[result_type])

    @staticmethod
    def converts(source: Attribute, target: Attribute) -> bool:
        raise NotImplementedError

    def verify_(self) -> None:
        source, target = self.input.type, self.result.type
        if mask_type(source) != mask_type(target) or not self.converts(
            get_element_type_or_self(source), get_element_type_or_self(target)
        ):
            raise VerifyException(f"{self.name} does not convert {source} to {target}")


def _on_lanes(
    scalar: type[Operation], converts: Callable[[Attribute, Attribute], bool], example: str
) -> type[LaneCastOp]:
    """A lane-wise conversion, with types `example` in its docstring."""
    name = scalar.name.replace("arith.", "low.")
    doc = f"`{scalar.name}` on every lane.\n\n```mlir\n%r = {name} %v : {example}\n```\n"
    fields = {"name": name, "__doc__": doc, "__module__": __name__}
    return irdl_op_definition(type(scalar.__name__, (LaneCastOp,), {**fields, "converts": staticmethod(converts)}))


def _is_to_float(source: Attribute, target: Attribute) -> bool:
    return isinstance(source, IntegerType) and isinstance(target, AnyFloat)


def _is_to_integer(source: Attribute, target: Attribute) -> bool:
    return _is_to_float(target, source)


def _is_wider(source: Attribute, target: Attribute) -> bool:
    if not isinstance(source, IntegerType) or not isinstance(target, IntegerType):
        return False
    return source.width.data < target.width.data


def _is_narrower(source: Attribute, target: Attribute) -> bool:
    return _is_wider(target, source)


def _is_from_or_to_index(source: Attribute, target: Attribute) -> bool:
    return {type(source), type(target)} == {IndexType, IntegerType}


SIToFPOp = _on_lanes(arith.SIToFPOp, _is_to_float, "vector<8xi32> to vector<8xf32>")
UIToFPOp = _on_lanes(arith.UIToFPOp, _is_to_float, "vector<8xi8> to vector<8xf32>")
FPToSIOp = _on_lanes(arith.FPToSIOp, _is_to_integer, "vector<8xf32> to vector<8xi32>")
FPToUIOp = _on_lanes(arith.FPToUIOp, _is_to_integer, "vector<8xf32> to vector<8xi8>")
ExtSIOp = _on_lanes(arith.ExtSIOp, _is_wider, "vector<8xi8> to vector<8xi32>")
ExtUIOp = _on_lanes(arith.ExtUIOp, _is_wider, "vector<8xi1> to vector<8xi32>")
TruncIOp = _on_lanes(arith.TruncIOp, _is_narrower, "vector<8xi32> to vector<8xi8>")
IndexCastOp = _on_lanes(arith.IndexCastOp, _is_from_or_to_index, "vector<8xindex> to vector<8xi32>")


@irdl_op_definition
class LdexpOp(IRDLOperation):
    """`significand * 2^exponent` of lanes or scalars, rounded once.

    ```mlir
    %r = low.ldexp %p, %n : vector<16xf32>
    ```
    The exponent is a whole number of the same type; results may be subnormal, infinite or zero. Some processors have an
    instruction for it.
    """

    name = "low.ldexp"

    T: ClassVar = VarConstraint("T", AnyAttr())

    significand = operand_def(T)
    exponent = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$significand `,` $exponent attr-dict `:` type($result)"

    def __init__(self, significand: SSAValue, exponent: SSAValue) -> None:
        super().__init__(operands=[significand, exponent], result_types=[significand.type])

    def verify_(self) -> None:
        type_ = self.result.type
        if not isinstance(get_element_type_or_self(type_), Float32Type | Float64Type):
            raise VerifyException(f"{self.name} works on f32 and f64, got {type_}")


LANE_FORMS: Mapping[type[Operation], type[Operation]] = {
    arith.CmpiOp: CmpiOp,
    arith.CmpfOp: CmpfOp,
    arith.SelectOp: SelectOp,
    arith.SIToFPOp: SIToFPOp,
    arith.UIToFPOp: UIToFPOp,
    arith.FPToSIOp: FPToSIOp,
    arith.FPToUIOp: FPToUIOp,
    arith.ExtSIOp: ExtSIOp,
    arith.ExtUIOp: ExtUIOp,
    arith.TruncIOp: TruncIOp,
    arith.IndexCastOp: IndexCastOp,
}


def with_lane_forms(table: Mapping[type[Operation], T]) -> dict[type[Operation], T]:
    """Add lane-wise forms, with the entries of scalar ones."""
    return {**table, **{form: table[scalar] for scalar, form in LANE_FORMS.items() if scalar in table}}
