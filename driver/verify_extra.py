"""Checks of functions at weft's levels, and of upstream operations that xDSL checks less. Imported on first use,
because tools start faster without its dialects."""

from __future__ import annotations

from math import prod

from xdsl.dialects.affine import IfOp
from xdsl.dialects.builtin import AffineMapAttr, DenseIntOrFPElementsAttr, IntegerAttr, MemRefType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import DimOp, GlobalOp
from xdsl.dialects.tensor import DimOp as TensorDimOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from weft.analysis.constants import verify_constants
from weft.dialects.functions import is_weft
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low import PARAMS, verify_signature
from weft.dialects.low_kernel import KERNEL
from weft.dialects.promises import promises_of
from weft.dialects.upstream.affine import ParallelOp
from weft.driver.parsing import is_too_large
from weft.support.errors import CompileError

_CHOOSING = frozenset(("affine.for", "affine.parallel", "affine.min", "affine.max"))
"""Operations that take the minimum or maximum of their maps' results."""


def verify_extra(operation: Operation) -> None:
    """Check an operation beyond its own verifier. Raises `VerifyException`."""
    if isinstance(operation, FuncOp):
        _verify_function(operation)
    elif isinstance(operation, DimOp | TensorDimOp):
        _verify_dimension(operation)
    elif isinstance(operation, GlobalOp):
        _verify_global(operation)
    elif operation.name.startswith("affine."):
        _verify_affine(operation)


def _verify_function(function: FuncOp) -> None:
    is_low = PARAMS in function.attributes or KERNEL in function.attributes
    if PARAMS in function.attributes:
        verify_signature(function)
    try:
        promises_of(function)
    except CompileError as error:
        raise VerifyException(error.message) from None
    if function.arg_attrs is not None:
        verify_constants(function)
    blocks = len(function.body.blocks)
    if blocks != 1 and (is_low or (blocks > 1 and any(map(is_weft, function.body.walk())))):
        raise VerifyException(
            f"@{function.sym_name.data} has {blocks} blocks, functions at the levels of weft have one"
        )


def _verify_affine(operation: Operation) -> None:
    """Check maps, steps, sets and ranks of accesses, as far as xDSL does not."""
    maps = [value for value in operation.properties.values() if isinstance(value, AffineMapAttr)]
    for map_ in maps:
        if any(map(is_too_large, map_.data.results)):
            raise VerifyException(f"a constant of '{operation.name}' fits 64 bits, got {map_}")
        if operation.name in _CHOOSING and not map_.data.results:
            raise VerifyException(f"a map of '{operation.name}' has at least one result, got {map_}")
    if isinstance(operation, ParallelOp) and 0 in (
        *operation.lower_groups.get_values(),
        *operation.upper_groups.get_values(),
    ):
        raise VerifyException(f"each loop of '{operation.name}' has a lower and an upper bound")
    steps = operation.steps if isinstance(operation, ParallelOp) else (operation.properties.get("step"),)
    for step in steps:
        if isinstance(step, IntegerAttr) and step.value.data < 1:
            raise VerifyException(f"the steps of '{operation.name}' are positive, got {step.value.data}")
    if isinstance(operation, IfOp):
        wanted = operation.condition.data.num_dims + operation.condition.data.num_symbols
        if len(operation.args) != wanted:
            raise VerifyException(f"'{operation.name}' has {len(operation.args)} operands, its set takes {wanted}")
    at = next((n for n, value in enumerate(operation.operands) if isinstance(value.type, MemRefType)), None)
    if at is not None and len(maps) == 1:
        buffer, map_, indices = operation.operands[at].type, maps[0].data, len(operation.operands) - at - 1
        if isinstance(buffer, MemRefType) and len(map_.results) != buffer.get_num_dims():
            raise VerifyException(f"'{operation.name}' has {len(map_.results)} indices into {buffer}")
        if indices != map_.num_dims + map_.num_symbols:
            raise VerifyException(f"'{operation.name}' has {indices} operands for its map {maps[0]}")


def _verify_dimension(dim: DimOp | TensorDimOp) -> None:
    number, type_ = constant_integer(dim.index), dim.source.type
    if number is not None and isinstance(type_, MemRefType | TensorType) and not 0 <= number < type_.get_num_dims():
        raise VerifyException(f"'{dim.name}' reads dimension {number} of {type_}")


def _verify_global(constant: GlobalOp) -> None:
    type_, value = constant.type, constant.initial_value
    if prod(type_.get_shape()) >= 1 << 31:
        raise VerifyException(f"'{constant.name}' has less than 2^31 elements, got {type_}")
    if isinstance(value, DenseIntOrFPElementsAttr) and (
        value.get_shape() != type_.get_shape() or value.get_element_type() != type_.element_type
    ):
        raise VerifyException(f"'{constant.name}' of type {type_} has a value of type {value.type}")
