"""low: structured control flow over flat memory, common to all targets.

A low function is a `func.func` of `scf`, `arith`, `math`, `memref` and `vector` ops plus the ops below:

- buffers are one-dimensional `memref`s; `low.params` state the rank and shape that callers see;
- dynamic extents and strides are the trailing `index` parameters, named by `low.symbols`;
- temporaries are `memref.alloc` / `memref.dealloc` (heap) or `memref.alloca` (space "local": registers or stack);
- LLVM or the C compiler fully unrolls an `scf.for` with the unit attribute `low.unroll`;
- vectors are the lanes of a vectorised loop, one-dimensional (`low_lanes.py`);
- kernels for GPUs and their ops are in `low_kernel.py`.

`arith.fptosi` and `arith.fptoui` are defined for all inputs on all targets: the number is truncated toward zero to a
signed integer (the register), which is the least one for NaN and out-of-range numbers; the result is its low bits
(`docs/decisions/0094-float-to-integer.md`).

| to an integer of | register | NaN, and beyond the register |
|---|---|---|
| i8, i16, ui16; ui8 from f16, bf16 and f32 | 32 bits | 0 |
| i32 | 32 bits | -2^31 |
| ui32; ui8 from f64 | 64 bits | 0 |
| i64 | 64 bits | -2^63 |
| ui64 | 64 bits; numbers from 2^63 to 2^64 as they are | NaN and below -2^63: 2^63; from 2^64: 0 |
| fewer than 8 bits | 64 bits | NaN and below -2^63: 0; from 2^63: all bits set |

Integers and wider floats are converted to the nearest float, ties to even; wider floats overflow to infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    MemRefType,
    ModuleOp,
    StringAttr,
    VectorType,
    i1,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import (
    Attribute,
    Block,
    BlockArgument,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    param_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import INTRINSIC as INTRINSIC
from weft.dialects.effects import PURE as PURE
from weft.dialects.element_types import element_of, value_type
from weft.dialects.index_map import parse_annotations_and_body, print_annotations_and_body
from weft.dialects.low_access import AccessAttr, AccessMode, AccessPtrOp, PrefetchOp, StrideOp
from weft.dialects.low_dots import DOT_OPS
from weft.dialects.low_kernel import GPU_OPS, AtomicKindAttr, KernelAttr, ShuffleModeAttr
from weft.dialects.low_lanes import LANE_FORMS, LANES, MASK, LdexpOp, mask_type, vector_type
from weft.dialects.low_registered import CallRegisteredOp
from weft.dialects.low_results import ReturnResultOp
from weft.dialects.low_tensor_cores import TENSOR_CORE_OPS, TILE_OPS, FragmentAttr
from weft.dialects.low_tile_products import TileProductOp
from weft.dialects.printing import write
from weft.dialects.strides import dynamic_extents, dynamic_strides, strides_of
from weft.dialects.tir_kinds import RETURNED
from weft.support.call_preconditions import CallPrecondition
from weft.support.locations import record_places

PARAMS = "low.params"
"""Function attribute: a `ParamAttr` for each parameter that callers pass."""
SYMBOLS = "low.symbols"
"""Function attribute: names of the trailing index parameters."""
ASSUME = "low.assume"
"""Function attribute: facts about symbols and index parameters that calls check (`weft.support.call_preconditions`)."""
BOUNDS_LOG = "low.bounds_log"
"""Function attribute: descriptions of the rows of the first parameter, a memref of shape (rows, 3) of i64. A row is for
a dimension of an access that may leave its buffer: a flag that it did, an index out of bounds, the extent."""
IMPORT_LLVM = "low.import_llvm"
"""Module attribute: LLVM IR that defines declared functions."""
IMPORT_C = "low.import_c"
"""Module attribute: C sources that define declared functions."""
ORDERED = "low.ordered"
"""Unit attribute of an addition, subtraction or multiplication of a formula that relies on its order: never
reassociated, but possibly contracted to a fused multiply-add."""
ROUNDED = "low.rounded"
"""Unit attribute of a multiplication of such a formula: rounded, never contracted. In a sum of two products, only the
other may then be contracted, so that vectors of different widths agree."""
DEFINED = "low.defined"
"""Unit attribute of a division without overflow whose divisor is not zero, and of a conversion of floats in range of
the integer type."""
UNROLL = "low.unroll"
"""Unit attribute of an `scf.for` that LLVM or the C compiler fully unrolls."""
MOST_COPIES = 1024
"""Maximum number of copies of bodies of unrolled loops. LLVM takes a second for this number and minutes for four times
as much; beyond a limit it only warns."""


@irdl_attr_definition
class ParamAttr(ParametrizedAttribute):
    """A parameter as callers see it: name, type, access, and symbols of the dynamic extents, then strides.

    ```mlir
    #low.param<"A", memref<?x128xf32>, read, ["m"]>
    #low.param<"B", memref<?x8xf32, strided<[?, 1]>>, read, ["m", "s"]>
    ```
    """

    name = "low.param"

    label: StringAttr = param_def()
    type: Attribute = param_def()
    access: AccessAttr = param_def()
    symbols: ArrayAttr[StringAttr] = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            label = parser.parse_str_literal()
            parser.parse_punctuation(",")
            type_ = parser.parse_type()
            parser.parse_punctuation(",")
            access = parser.parse_str_enum(AccessMode)
            parser.parse_punctuation(",")
            symbols = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
        return [StringAttr(label), type_, AccessAttr(access), ArrayAttr(StringAttr(s) for s in symbols)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            write(printer, self.label, ", ")
            printer.print_attribute(self.type)
            printer.print_string(f", {self.access.data.value}, [")
            printer.print_list(self.symbols, lambda symbol: printer.print_string_literal(symbol.data))
            printer.print_string("]")


def params_of(function: FuncOp) -> tuple[ParamAttr, ...]:
    params = function.attributes.get(PARAMS)
    if not isinstance(params, ArrayAttr):
        raise VerifyException(f"function @{function.sym_name.data} has no {PARAMS}: it is not a low function")
    return tuple(p for p in params if isinstance(p, ParamAttr))


def verify_signature(function: FuncOp) -> None:
    """Raises `VerifyException` for attributes of another signature."""
    name = f"@{function.sym_name.data}"
    attribute = function.attributes[PARAMS]
    if not isinstance(attribute, ArrayAttr) or not all(isinstance(p, ParamAttr) for p in attribute):
        raise VerifyException(f"{PARAMS} of {name} lists #low.param, got {attribute}")
    params, symbols = params_of(function), symbols_of(function)
    inputs = function.function_type.inputs.data
    if len(params) + len(symbols) != len(inputs):
        raise VerifyException(
            f"{name} has {len(inputs)} parameters, but {PARAMS} names {len(params)} and there are {len(symbols)} "
            "symbols"
        )
    for symbol, type_ in zip(symbols, inputs[len(params) :], strict=True):
        if not isinstance(type_, IndexType):
            raise VerifyException(f"symbol '{symbol}' of {name} is an index, got {type_}")
        if not any(symbol == named.data for param in params for named in param.symbols):
            raise VerifyException(f"no parameter of {name} has an extent named {symbol}")
    for param, type_ in zip(params, inputs, strict=False):
        subject = f"parameter '{param.label.data}' of {name}"
        inside = value_type(param.type)
        if _element_or_scalar(inside) != _element_or_scalar(type_):
            hint = f": values are {element_of(inside)}" if inside != param.type else ""
            raise VerifyException(f"{subject} is {param.type} to callers and {type_} here{hint}")
        unknown = [symbol.data for symbol in param.symbols if symbol.data not in symbols]
        if unknown:
            raise VerifyException(f"{subject} names the extent '{unknown[0]}', which is not among {SYMBOLS}")
        given, held = _static_elements(param.type), _static_elements(type_)
        if given is not None and held is not None and given != held:
            raise VerifyException(f"{subject} has {given} elements to callers and {held} here")
        wanted = len(dynamic_extents(param.type)) + len(dynamic_strides(param.type))
        if isinstance(type_, MemRefType) and len(param.symbols) != wanted:
            raise VerifyException(
                f"{subject} has {wanted} extents and strides that vary, {len(param.symbols)} are named"
            )
    preconditions_of(function)


def _static_elements(type_: Attribute) -> int | None:
    if not isinstance(type_, MemRefType) or strides_of(type_) is not None or dynamic_extents(type_):
        return None
    return prod(type_.get_shape()) or None


def _element_or_scalar(type_: Attribute) -> tuple[bool, Attribute]:
    return isinstance(type_, MemRefType), element_of(type_)


def stride_symbols(function: FuncOp) -> frozenset[str]:
    """Symbols that may be negative: strides, and elements of parameters."""
    extents: set[str] = set()
    for param in params_of(function):
        if isinstance(param.type, MemRefType):
            names = [symbol.data for symbol in param.symbols]
            extents.update(names[: len(dynamic_extents(param.type))])
    return frozenset(set(symbols_of(function)) - extents)


def preconditions_of(function: FuncOp) -> tuple[CallPrecondition, ...]:
    """Raises `VerifyException` for other text and unknown names."""
    texts = _texts(function, ASSUME)
    known = {*symbols_of(function), *(p.label.data for p in params_of(function))} if texts else set[str]()
    facts: list[CallPrecondition] = []
    for text in texts:
        try:
            fact = CallPrecondition(text)
        except ValueError as error:
            raise VerifyException(f"{ASSUME} of @{function.sym_name.data}: {error}") from None
        unknown = [name for name in fact.names if name not in known]
        if unknown:
            raise VerifyException(
                f"{ASSUME} of @{function.sym_name.data}: '{text}' names '{unknown[0]}', which is no "
                f"symbol or parameter of it"
            )
        facts.append(fact)
    return tuple(facts)


def bounds_log_of(function: FuncOp) -> tuple[str, ...]:
    return _texts(function, BOUNDS_LOG)


def returned_by(function: FuncOp) -> tuple[str, ...]:
    """Donated parameters."""
    return _texts(function, RETURNED)


def imported_ir(module: ModuleOp) -> tuple[str, ...]:
    return _texts(module, IMPORT_LLVM)


def imported_c(module: ModuleOp) -> tuple[str, ...]:
    return _texts(module, IMPORT_C)


def _texts(holder: Operation, name: str) -> tuple[str, ...]:
    texts = holder.attributes.get(name)
    return tuple(t.data for t in texts if isinstance(t, StringAttr)) if isinstance(texts, ArrayAttr) else ()


def symbols_of(function: FuncOp) -> tuple[str, ...]:
    return _texts(function, SYMBOLS)


@irdl_op_definition
class ParallelForOp(IRDLOperation):
    """Iterations 0 .. extent-1, distributed over threads; if the optional condition is false, the calling thread runs
    all.

    ```mlir
    low.parallel_for %i in %n if %pays {
      memref.store %zero, %A[%i] : memref<?xf32>
    }
    ```
    Syntax: `low.parallel_for %i in %extent [if %condition] [attributes {...}] { body }`
    """

    name = "low.parallel_for"

    extent = operand_def(IndexType)
    condition = opt_operand_def(i1)
    body = region_def()

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, extent: SSAValue, body: Region, condition: SSAValue | None = None) -> None:
        super().__init__(operands=[extent, condition], regions=[body])

    @property
    def induction_variable(self) -> BlockArgument:
        return self.body.block.args[0]

    def verify_(self) -> None:
        blocks = self.body.blocks
        if len(blocks) != 1 or [a.type for a in self.body.block.args] != [IndexType()]:
            raise VerifyException("low.parallel_for body is one block with one index argument")

    @classmethod
    def parse(cls, parser: Parser) -> ParallelForOp:
        variable = parser.parse_argument(expect_type=False)
        parser.parse_keyword("in")
        extent = parser.parse_operand(IndexType())
        condition = parser.parse_operand(i1) if parser.parse_optional_keyword("if") is not None else None
        attributes, body = parse_annotations_and_body(parser, (variable.resolve(IndexType()),))
        op = cls(extent, body, condition)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.induction_variable, " in ", self.extent)
        if self.condition is not None:
            write(printer, " if ", self.condition)
        print_annotations_and_body(printer, self.attributes, self.body)

    @staticmethod
    def around(extent: SSAValue, operations: Sequence[Operation], name_hint: str | None = None) -> ParallelForOp:
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = name_hint
        body.add_ops(operations)
        return ParallelForOp(extent, Region(body))


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Lane l is `base[indices[l]]`, or zero, without an access, if the mask is false.

    ```mlir
    %v = low.gather %A[%indices] mask %m : memref<64xf32>, vector<8xindex> -> vector<8xf32>
    ```
    """

    name = "low.gather"

    base = operand_def(MemRefType)
    indices = operand_def(LANES)
    mask = opt_operand_def(MASK)
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$base `[` $indices `]` (`mask` $mask^)? attr-dict `:` type($base) `,` type($indices) `->` type($result)"
    )

    def __init__(
        self, base: SSAValue, indices: SSAValue, mask: SSAValue | None, result_type: VectorType[Attribute]
    ) -> None:
        super().__init__(operands=[base, indices, mask], result_types=[result_type])

    def verify_(self) -> None:
        _verify_lanes(self, self.base, self.indices, self.result, self.mask)


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """Store lane l to `base[indices[l]]` if the mask is true; these indices differ.

    ```mlir
    low.scatter %v, %A[%indices] mask %m : vector<8xf32>, memref<64xf32>, vector<8xindex>
    ```
    """

    name = "low.scatter"

    value = operand_def(VectorType)
    base = operand_def(MemRefType)
    indices = operand_def(LANES)
    mask = opt_operand_def(MASK)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $base `[` $indices `]` (`mask` $mask^)? attr-dict `:` type($value) `,` type($base) `,` "
        "type($indices)"
    )

    def __init__(self, value: SSAValue, base: SSAValue, indices: SSAValue, mask: SSAValue | None) -> None:
        super().__init__(operands=[value, base, indices, mask])

    def verify_(self) -> None:
        _verify_lanes(self, self.base, self.indices, self.value, self.mask)


def _verify_lanes(op: Operation, base: SSAValue, indices: SSAValue, lanes: SSAValue, mask: SSAValue | None) -> None:
    base_type = cast("MemRefType[Attribute]", base.type)
    index_type, lane_type = vector_type(indices.type), vector_type(lanes.type)
    if base_type.get_num_dims() != 1:
        raise VerifyException(f"{op.name} works on flat buffers, got {base_type}")
    if not isinstance(index_type.element_type, IndexType) or index_type.get_shape() != lane_type.get_shape():
        raise VerifyException(f"{op.name} needs one index a lane, got {index_type} for {lane_type}")
    if lane_type.element_type != base_type.element_type:
        raise VerifyException(f"{op.name} moves {lane_type.element_type}, but the buffer is {base_type}")
    if mask is not None and mask.type != mask_type(index_type):
        raise VerifyException(f"{op.name} mask must be {mask_type(index_type)}, got {mask.type}")


LOW = Dialect(
    "low",
    record_places(
        [
            *(ParallelForOp, GatherOp, ScatterOp, AccessPtrOp, StrideOp, PrefetchOp, CallRegisteredOp),
            ReturnResultOp,
            *(*GPU_OPS, *TILE_OPS, *TENSOR_CORE_OPS, *DOT_OPS, TileProductOp, LdexpOp, *LANE_FORMS.values()),
        ]
    ),
    [AccessAttr, AtomicKindAttr, FragmentAttr, KernelAttr, ParamAttr, ShuffleModeAttr],
)
