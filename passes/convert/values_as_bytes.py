"""Values of types that weft only stores, in integers that contain them.

    %a = memref.load %A[%i] : memref<4xi4>            %a = memref.load %A[%i] : memref<4xi8>   // its low bits, extended
    %s = arith.addi %a, %a : i4                 ->    %s = arith.addi %a, %a : i8              // here too
    memref.store %s, %B[%i] : memref<4xi4>            memref.store %s, %B[%i] : memref<4xi8>     // its low bits

A narrow integer is stored in the next wider type that weft computes with, sign-extended: unsigned operations mask the
upper bits, and operations that may change them, and loads, restore them: in memory they are zero, as in arrays of
`ml_dtypes`, or arbitrary. A small float is its bits, computed in `f32`. Unsigned elements become signless. Parameters
state the elements of their arrays (`tir.element`, `dialects/element_types.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FixedBitwidthType,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    ReducedPrecisionFloatType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    VectorType,
    f32,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.dialects.effects import callee_of
from weft.dialects.element_types import array_name, element_of, joined_attributes, stated_elements, value_type
from weft.dialects.traversal import ancestors, operations_in, values_of
from weft.passes.low.decompositions import to_integer
from weft.passes.low.elementary.lanes import FORMATS, Constants, Writer, integer_shape, shape_of
from weft.passes.low.op_rewriter import OpRewriter
from weft.passes.module_edits import named_ops
from weft.support.errors import CompileError

_WIDTHS: Final = (1, 8, 16, 32, 64)
"""Bits of the integers that weft computes with."""
_NO_FLAGS: Final = arith.IntegerOverflowAttr("none")


def hold_in_bytes(function: FuncOp) -> None:
    """Convert values and buffers of a function without tensors in place; other constants of the module are copied.

    Raises `CompileError` for operations that cannot be converted, with the function partly changed, and for parameters
    whose elements are those of no array.
    """
    values = [value for op in operations_in(function) for value in values_of(op)]
    if not any(map(_is_held, values)):
        return
    _check_parameters(function)
    function.arg_attrs = joined_attributes(function.arg_attrs, _stated(function.function_type.inputs.data))
    function.res_attrs = joined_attributes(function.res_attrs, _stated(function.function_type.outputs.data))
    rewrites = [(op, rewrite) for op in operations_in(function) if (rewrite := _rewrite_of(op)) is not None]
    for value in values:
        if _is_held(value):
            Rewriter.replace_value_with_new_type(value, _held(value.type))
    for op, rewrite in rewrites:
        rewrite(op)
    function.update_function_type()


def _check_parameters(function: FuncOp) -> None:
    for argument in function.args:
        element = element_of(argument.type)
        if _is_held(argument) and array_name(element) is None:
            name = argument.name_hint or argument.index
            message = f"parameter '{name}' of @{function.sym_name.data}: no array has elements of {element}"
            raise CompileError.at(function, message)


def _stated(types: tuple[Attribute, ...]) -> ArrayAttr[DictionaryAttr] | None:
    return stated_elements(map(element_of, types))


def _held(type_: Attribute) -> Attribute:
    element = element_of(type_)
    held = value_type(element)
    if isinstance(held, IntegerType) and 1 < (bits := held.width.data) < max(_WIDTHS):
        held = IntegerType(min(width for width in _WIDTHS if width >= bits))
    if held == element:
        return type_
    if isinstance(type_, MemRefType):
        return MemRefType(held, type_.shape, type_.layout, type_.memory_space)
    return held


def is_held(type_: Attribute) -> bool:
    return _held(type_) != type_


def _is_held(value: SSAValue) -> bool:
    return is_held(value.type)


# Operations

_Rewrite: TypeAlias = Callable[[Operation], None]
"""A function that changes an operation whose operands and results already have their new types."""
_MOVES: Final = ("affine.", "func.", "memref.", "scf.", "tir.")
"""Dialects of operations that compute nothing, so that a change of types suffices."""
_ATOMIC: Final = ("memref.atomic_rmw", "memref.generic_atomic_rmw")
_KEEP: Final = frozenset(
    f"arith.{name}"
    for name in ("andi", "cmpi", "maxsi", "maxui", "minsi", "minui", "ori", "remsi", "select", "shrsi", "xori")
)
"""Operations that map sign-extended integers to sign-extended integers; the unsigned order is kept."""
_WRAP: Final = frozenset(
    ("arith.addi", "arith.ceildivsi", "arith.divsi", "arith.floordivsi", "arith.muli", "arith.shli", "arith.subi")
) | {"math.absi", "math.ipowi"}
_MASK: Final = frozenset(f"arith.{name}" for name in ("ceildivui", "divui", "remui", "shrui")) | {"math.ctpop"}
"""Operations on unsigned integers."""
_CASTS: Final = frozenset(
    f"arith.{name}"
    for name in (
        *("bitcast", "extsi", "extui", "fptosi", "fptoui", "index_cast", "index_castui", "sitofp", "trunci", "uitofp"),
    )
)


def _rewrite_of(op: Operation) -> _Rewrite | None:
    """The rewrite of an op by its current types, or None if a change of types suffices. Raises `CompileError` if it has
    no form on other types."""
    values = [*op.operands, *op.results]
    held = [value for value in values if _is_held(value)]
    if not held:
        return None
    if any(isinstance(value.type, VectorType) for value in values):
        raise CompileError.at(op, f"{op.name} has vectors of {element_of(held[0].type)}, which are not supported")
    if isinstance(op, memref.LoadOp):
        type_ = op.results[0].type
        return (lambda op: _extend(op, _bits(type_))) if _is_narrow(type_) else None
    if isinstance(op, memref.StoreOp):
        bits = op.value.type.bitwidth if isinstance(op.value.type, FixedBitwidthType) else 8
        return (lambda op: _store_low_bits(op, bits)) if bits not in _WIDTHS else None
    if isinstance(op, memref.GetGlobalOp):
        return _constant_of_module
    if isinstance(op, CallOp):
        if (callee := callee_of(op)) is None or callee.is_declaration:
            raise CompileError.at(op, f"{op.name} passes {held[0].type} to a function without a body")
        return None
    if op.name.startswith(_MOVES) and op.name not in _ATOMIC:
        return None
    types = [value.type for value in op.operands], [result.type for result in op.results]
    if isinstance(op, arith.ConstantOp):
        return _constant
    if op.name == "arith.extf":
        return lambda op: _extend_small(op, types[0][0])
    if op.name == "arith.truncf" and not _is_small(types[0][0]):
        return lambda op: _round_to_small(op, types[1][0])
    if op.name in _CASTS and not (any(map(_is_small, chain(*types))) and op.name != "arith.bitcast"):
        return lambda op: _cast(op, types[0][0], types[1][0])
    if any(map(_is_small, chain(*types))) and op.name != "arith.select":
        return lambda op: _compute_in_f32(op, types[0], types[1][0])
    bits = _bits(held[0].type)
    if op.name in _KEEP:
        return None
    if op.name in _WRAP:
        return lambda op: _compute(op, bits, masks=False)
    if op.name in _MASK:
        return lambda op: _compute(op, bits, masks=True)
    raise CompileError.at(op, f"{op.name} on {held[0].type} is not supported")


def _bits(type_: Attribute) -> int:
    return type_.width.data if isinstance(type_, IntegerType) else 64


def _is_narrow(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType) and type_.width.data not in _WIDTHS


class _BitsWriter(OpRewriter):
    def number(self, value: int, type_: Attribute) -> SSAValue:
        return self.insert(arith.ConstantOp(IntegerAttr(value, cast("IntegerType", type_))))

    def masked(self, value: SSAValue, bits: int) -> SSAValue:
        if _bits(value.type) == bits:
            return value
        return self.insert(arith.AndIOp(value, self.number((1 << bits) - 1, value.type)))

    def wrapped(self, value: SSAValue, bits: int) -> SSAValue:
        if _bits(value.type) == bits or bits == 1:
            return value
        distance = self.number(_bits(value.type) - bits, value.type)
        shifted = self.op(arith.ShLIOp, (value, distance), value.type, {"overflowFlags": _NO_FLAGS})
        return self.insert(arith.ShRSIOp(shifted, distance))


def _extend(load: Operation, bits: int) -> None:
    users = list(load.results[0].uses)
    anchor = cast("Operation", load.next_op)
    writer = _BitsWriter(anchor)
    value = writer.wrapped(load.results[0], bits)
    value.name_hint = load.results[0].name_hint
    for op in writer.inserted:
        op.location = load.location
    for use in users:
        use.operation.operands[use.index] = value


def _store_low_bits(store: Operation, bits: int) -> None:
    store.operands[0] = _BitsWriter(store).masked(store.operands[0], bits)


def _compute(op: Operation, bits: int, *, masks: bool) -> None:
    writer = _BitsWriter(op)
    operands = [writer.masked(value, bits) if masks else value for value in op.operands]
    properties = {**op.properties, "overflowFlags": _NO_FLAGS} if "overflowFlags" in op.properties else op.properties
    result = writer.op(type(op), operands, op.results[0].type, properties, op.attributes)
    writer.replace(writer.wrapped(result, bits))


def _cast(op: Operation, source: Attribute, target: Attribute) -> None:
    writer = _BitsWriter(op)
    value, type_ = op.operands[0], op.results[0].type
    if op.name in ("arith.extui", "arith.index_castui", "arith.uitofp") and _is_narrow(source):
        value = writer.masked(value, _bits(source))
    if op.name in ("arith.fptosi", "arith.fptoui") and _is_narrow(target) and _bits(target) < 8:
        value = _to_few_bits(op, _bits(target))
    elif value.type != type_:
        value = writer.op(type(op), (value,), type_, op.properties, op.attributes)
    writer.replace(writer.wrapped(value, _bits(target)) if _is_narrow(target) else value)


def _to_few_bits(op: Operation, bits: int) -> SSAValue:
    """Converts a float to an integer of fewer than 8 bits, in its storage type."""
    constants = Constants(cast("Block", op.parent))
    x = Writer(op, constants, shape_of(FORMATS[op.operands[0].type], 0)).lanes(op.operands[0])
    held = cast("IntegerType", op.results[0].type)
    register, small = (Writer(op, constants, integer_shape(type_, 0)) for type_ in (i64, held))
    return to_integer(x, register, small, bits, signed=True).value


def _extend_small(op: Operation, source: Attribute) -> None:
    writer = _BitsWriter(op)
    number = _as_float(writer, op.operands[0], source)
    writer.replace(writer.insert(arith.ExtFOp(number, cast("AnyFloat", op.results[0].type))))


def _round_to_small(op: Operation, target: Attribute) -> None:
    writer = _BitsWriter(op)
    rounded = writer.insert(arith.TruncFOp(op.operands[0], cast("ReducedPrecisionFloatType", target)))
    writer.replace(_as_bits(writer, rounded, op.results[0].type))


def _compute_in_f32(op: Operation, operands: Sequence[Attribute], result: Attribute) -> None:
    writer = _BitsWriter(op)
    values = [
        writer.insert(arith.ExtFOp(_as_float(writer, value, type_), f32)) if _is_small(type_) else value
        for value, type_ in zip(op.operands, operands, strict=True)
    ]
    type_ = op.results[0].type
    computed = writer.op(type(op), values, f32 if _is_small(result) else type_, op.properties, op.attributes)
    if _is_small(result):
        rounded = writer.insert(arith.TruncFOp(computed, cast("ReducedPrecisionFloatType", result)))
        computed = _as_bits(writer, rounded, type_)
    writer.replace(computed)


def _is_small(type_: Attribute) -> bool:
    return isinstance(type_, ReducedPrecisionFloatType)


def _as_float(writer: _BitsWriter, value: SSAValue, type_: Attribute) -> SSAValue:
    type_ = cast("ReducedPrecisionFloatType", type_)
    if type_.bitwidth < _bits(value.type):
        value = writer.insert(arith.TruncIOp(value, IntegerType(type_.bitwidth)))
    return writer.insert(arith.BitcastOp(value, type_))


def _as_bits(writer: _BitsWriter, value: SSAValue, type_: Attribute) -> SSAValue:
    bits = cast("ReducedPrecisionFloatType", value.type).bitwidth
    code = writer.insert(arith.BitcastOp(value, IntegerType(bits)))
    return code if code.type == type_ else writer.insert(arith.ExtUIOp(code, cast("IntegerType", type_)))


def _constant(op: Operation) -> None:
    constant = cast("arith.ConstantOp", op)
    type_ = cast("IntegerType", op.results[0].type)
    match constant.value:
        case IntegerAttr() as number:
            bits = _bits(number.type)
            value = number.value.data & ((1 << bits) - 1)
            value -= (value >> (bits - 1)) << bits
        case FloatAttr() as number:
            value = number.type.pack([number.value.data])[0]
        case _:
            raise CompileError.at(op, f"{op.name} of {constant.value} is not supported")
    op.properties["value"] = IntegerAttr(value, type_)


def _constant_of_module(op: Operation) -> None:
    get = cast("memref.GetGlobalOp", op)
    module = next(parent for parent in ancestors(op) if isinstance(parent, ModuleOp))
    symbols = named_ops(module)
    data = cast("memref.GlobalOp", symbols[get.name_.string_value()])
    name = f"{data.sym_name.data}_bytes"
    if name not in symbols:
        copy = data.clone()
        copy.sym_name = StringAttr(name)
        copy.properties["type"] = get.memref.type
        value = data.initial_value
        if isinstance(value, DenseIntOrFPElementsAttr):
            elements = TensorType(get.memref.type.element_type, get.memref.type.get_shape())
            copy.properties["initial_value"] = DenseIntOrFPElementsAttr(cast("TensorType[Any]", elements), value.data)
        module.body.block.insert_op_after(copy, data)
    op.properties["name"] = SymbolRefAttr(name)
