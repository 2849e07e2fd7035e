"""`convert-stablehlo-to-te`: functions of stablehlo, as printed by JAX."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, ModuleOp, NameLoc, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects import stablehlo
from weft.dialects.chlo import BroadcastCompareOp, BroadcastingOp
from weft.dialects.element_types import element_name, joined_attributes
from weft.dialects.graph_shapes import is_signed
from weft.dialects.stablehlo import DIALECTS, DOT_KEYS, CombiningOp, CompareOp, ElementwiseOp
from weft.dialects.stablehlo_library import CommunicationOp, MapOp, ReducePrecisionOp, SetDimensionSizeOp
from weft.passes.convert.stablehlo_complex import (
    MOVES,
    complex_results,
    complex_type,
    element_in_region,
    is_complex,
    is_linear,
    on_parts,
)
from weft.passes.convert.stablehlo_complex_matrices import on_complex_matrices
from weft.passes.convert.stablehlo_library import (
    LIBRARY_RULES,
    broadcast_together,
    cast_value,
    map_elements,
    on_tensors,
    recast,
)
from weft.passes.convert.stablehlo_scatter import scatter, select_and_scatter
from weft.passes.convert.stablehlo_tensors import (
    COMBINING_RULES,
    RULES,
    dynamic_reduce_window,
    label,
    result_dtype,
    result_shape,
    sized_slice,
)
from weft.passes.convert.stablehlo_values import (
    BroadcastView,
    Composed,
    Fact,
    Parts,
    Sizes,
    Splat,
    Value,
    dense_value,
    element_of,
    integer_of,
    parts_of,
    sizes_of,
    tensor_of,
)
from weft.passes.convert.upstream_functions import convertible
from weft.passes.module_edits import symbol_uses
from weft.support.errors import CompileError, did_you_mean, remark
from weft.support.locations import location_of
from weft.support.names import new_name
from weft.texpr.expr import (
    Binary,
    BinaryKind,
    Compare,
    Const,
    Expr,
    Predicate,
    Var,
    as_expr,
    binary,
    compare,
    is_integer,
    reinterpret,
)
from weft.texpr.function import te_function
from weft.texpr.math import if_then_else
from weft.texpr.ops.arguments import compute
from weft.texpr.shapes import Extent, is_same, shape_text, simplified, value_name
from weft.texpr.stablehlo import ELEMENTWISE, WIDE, compared, converted, elementwise, on_elements, reduced_precision
from weft.texpr.stablehlo_complex import PARTS
from weft.texpr.stablehlo_lapack import LAPACK_CALLS, lapack_results
from weft.texpr.stablehlo_quantized import on_integers
from weft.texpr.stablehlo_tensors import MATRICES, TENSOR_FORMULAS
from weft.texpr.tensor import ComputeOp, ConstantOp, Tensor, placeholder


def convert_stablehlo(module: ModuleOp, *, strict: bool = False) -> None:
    """Replace the functions of `module` with ops of stablehlo or chlo by functions of tensor expressions.

    Calls are inlined. A function with an unsupported op or form is unchanged, with a remark; with `strict`, that and a
    module without such functions are `CompileError`s.

    ```mlir
    func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.tanh %arg0 : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    // becomes
    func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
      %out = te.compute "tanh" (%i0) : tensor<4xf32> { ... math.tanh ... }
      func.return %out : tensor<4xf32>
    }
    ```
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration}
    roots = stablehlo_functions(functions)
    if not roots:
        remark(module, "convert-stablehlo-to-te: no function holds ops of stablehlo", strict=strict)
    roots = convertible(module, "convert-stablehlo-to-te", roots, strict=strict)
    inlined: set[str] = set()
    new_functions: list[tuple[FuncOp, FuncOp]] = []
    for function in roots:
        conversion = StablehloConversion(functions)
        try:
            reached = (function.sym_name.data, *reached_functions(function, functions))
            plain = on_integers({name: functions[name] for name in reached if name in functions})
            conversion = StablehloConversion(plain)
            source = plain[function.sym_name.data]
            new = conversion.convert(source)
            # Terminates, because each round has one variable less.
            while new is None:
                conversion = StablehloConversion(plain, conversion.same)
                new = conversion.convert(source)
        except CompileError as error:
            if strict:
                raise
            _remark_that_stays(conversion.at or function, function, error.message)
            continue
        new_functions.append((function, new))
        inlined |= conversion.inlined
    new_functions = _callable(module, new_functions, strict=strict)
    for function, new in new_functions:  # at the end, because other functions may call it
        Rewriter.replace_op(function, new)
    erase_inlined(module, inlined)


def _remark_that_stays(at: Operation, function: FuncOp, reason: str, *, strict: bool = False) -> None:
    remark(at, f"convert-stablehlo-to-te leaves @{function.sym_name.data} as it is: {reason}", strict=strict)


def _callable(
    module: ModuleOp, new_functions: Sequence[tuple[FuncOp, FuncOp]], *, strict: bool
) -> list[tuple[FuncOp, FuncOp]]:
    """Excludes conversions that change the type of a function that an unconverted one refers to."""
    found = list(new_functions)
    while True:
        converted = {function.sym_name.data for function, _ in found}
        staying = [op for op in module.ops if not (isinstance(op, FuncOp) and op.sym_name.data in converted)]
        users = {symbol: user for op in staying for symbol, user in symbol_uses(op)}
        kept: list[tuple[FuncOp, FuncOp]] = []
        for function, new in found:
            user = users.get(function.sym_name.data)
            if user is None or function.function_type == new.function_type:
                kept.append((function, new))
            else:
                _remark_that_stays(user, function, "a function that stays refers to it", strict=strict)
        if len(kept) == len(found):
            return kept
        found = kept


def erase_inlined(module: ModuleOp, names: set[str]) -> None:
    """Erase private functions of `names` without references."""
    while True:
        used = {symbol for symbol, _ in symbol_uses(module)}
        unused = [
            op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data in names - used and _is_private(op)
        ]
        if not unused:
            return
        for function in unused:
            Rewriter.erase_op(function)


def _is_stablehlo(op: Operation) -> bool:
    return op.name.partition(".")[0] in DIALECTS


def constant_elements(op: Operation) -> DenseIntOrFPElementsAttr[Any] | None:
    value = op.value if isinstance(op, stablehlo.DenseConstantOp | arith.ConstantOp) else None
    return value if isinstance(value, DenseIntOrFPElementsAttr) else None


def is_constant(op: Operation) -> bool:
    return constant_elements(op) is not None


def callee_of(op: Operation) -> str | None:
    """The called function, or the decomposition of a composite."""
    match op:
        case CallOp():
            return op.callee.string_value()
        case stablehlo.CompositeOp():
            return op.decomposition.string_value()
        case _:
            return None


def _callees(function: FuncOp) -> Iterator[str]:
    return (name for op in function.body.walk() if (name := callee_of(op)) is not None)


def reached_functions(function: FuncOp, functions: Mapping[str, FuncOp]) -> set[str]:
    found: set[str] = set()
    pending = [*_callees(function)]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _callees(functions[name]) if name in functions else ()
    return found


def stablehlo_functions(functions: Mapping[str, FuncOp]) -> list[FuncOp]:
    """Functions that contain or reach stablehlo, except private ones called by these."""
    holding = {name for name, function in functions.items() if any(map(_is_stablehlo, function.body.walk()))}
    if not holding:
        return []
    reached = {name: reached_functions(function, functions) for name, function in functions.items()}
    calling = [name for name in functions if name in holding or reached[name] & holding]
    called = set[str]().union(*(reached[name] for name in calling))
    return [functions[name] for name in calling if not (_is_private(functions[name]) and name in called)]


def _is_private(function: FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


Elementwise: TypeAlias = ElementwiseOp | BroadcastingOp | stablehlo.CompositeOp
_Dim: TypeAlias = tuple[int, int]
"""A parameter or operand, and one of its dimensions."""


class _OneVariable(Exception):
    """Raised if extents of parameters must have one variable."""


_WIDENED: Final = (CombiningOp, stablehlo.ConvolutionOp, stablehlo.DotGeneralOp, stablehlo.SelectAndScatterOp)
"""Ops that combine elements; small integers use bytes, since sums and products keep their low bits."""
_OF_ALL: Final = (stablehlo.CaseOp, stablehlo.CustomCallOp, stablehlo.IfOp)
"""Ops whose rules take complex operands as well as real ones."""
CUSTOM_CALLS: Final = frozenset({"Sharding", "shape_assertion", "stablehlo.dynamic_reduce_window", *LAPACK_CALLS})
"""The supported targets of custom calls."""
_REFUSED: Final[Mapping[str, str]] = {
    **{name: "tuples are not supported" for name in ("stablehlo.get_tuple_element", "stablehlo.tuple")},
    "stablehlo.rng": "random numbers without a state are not reproducible: use stablehlo.rng_bit_generator",
}
"""Maps an op to the reason why it has no tensor expression."""


class StablehloConversion:
    """Evaluates the ops of a function, and its callees, to tensors."""

    def __init__(
        self, functions: Mapping[str, FuncOp], same: Sequence[tuple[_Dim, _Dim]] = (), *, composes: bool = False
    ) -> None:
        """`same` are dynamic extents of parameters that must be equal. If it `composes`, an elementwise op read only by
        another is part of it."""
        self._composes = composes
        self._functions = functions
        self.same = list(same)
        self._sizes: dict[_Dim, Var] = {}
        """The variable of each dynamic extent of a parameter."""
        self._values: dict[SSAValue, Value] = {}
        self._facts: list[Compare] = []
        self._placed: set[object] = set()
        self._originals: dict[Block, Block] = {}
        """The region on complex numbers for one on their parts, or for itself if its arguments are parts."""
        self._calls: list[str] = []
        """The functions whose ops are being converted, outermost first."""
        self.at: Operation | None = None
        """The op that is being converted."""
        self.inlined: set[str] = set()
        """The inlined functions."""

    def convert(self, function: FuncOp) -> FuncOp | None:
        """None if extents were added to `same`, which must have one variable. Raises `CompileError`."""
        try:
            return self._convert_function(function)
        except _OneVariable:
            return None

    def _convert_function(self, function: FuncOp) -> FuncOp:
        self.at = function
        if len(function.body.blocks) != 1:
            raise CompileError.at(function, f"@{function.sym_name.data}: a function of stablehlo is one block")
        self._calls.append(function.sym_name.data)
        inputs = self._placeholders(function)
        results = self._block(function.body.block)
        self.at = function
        taken = {value_name(tensor.name) for tensor in inputs}
        outputs: list[Tensor] = []
        for position, value in enumerate(results):
            tensor = tensor_of(value, "out")
            if not isinstance(tensor.op, ComputeOp) or any(tensor is other for other in outputs):
                tensor = compute(tensor.shape, tensor, "copy")
            tensor.name = new_name("out" if len(results) == 1 else f"out{position}", taken)
            outputs.append(tensor)
        if not outputs:
            raise CompileError.at(function, f"@{function.sym_name.data} returns nothing")
        self._place(function, outputs)
        try:
            new = te_function((*inputs, *outputs), function.sym_name.data, self._facts)
        except CompileError as error:
            raise CompileError.at(function, f"@{function.sym_name.data}: {error.message}") from None
        new.location = function.location
        new.attributes.update(function.attributes)
        if function.sym_visibility is not None:
            new.sym_visibility = function.sym_visibility
        new.arg_attrs = joined_attributes(function.arg_attrs, new.arg_attrs)
        new.res_attrs = joined_attributes(function.res_attrs, new.res_attrs)
        return new

    def evaluate(
        self, ops: Sequence[Operation], known: Mapping[SSAValue, Value], wanted: Sequence[SSAValue]
    ) -> list[Value]:
        self._values.update(known)
        for op in ops:
            self._convert(op)
        return [self._values[value] for value in wanted]

    @property
    def facts(self) -> Sequence[Compare]:
        return self._facts

    def _placeholders(self, function: FuncOp) -> list[Tensor]:
        for type_ in function.function_type.inputs:
            if not isinstance(type_, TensorType):
                raise CompileError.at(function, f"@{function.sym_name.data}: parameters are tensors, got {type_}")
        taken: set[str] = set()
        sizes = self._sizes = _equal_sizes(function, self.same)
        inputs: list[Tensor] = []
        for position, argument in enumerate(function.args):
            type_ = cast("TensorType[Attribute]", argument.type)
            kind = complex_type(type_)
            dtype = element_name(type_.element_type) if kind is None else PARTS[kind]
            if dtype is None:
                raise CompileError.at(
                    function, f"@{function.sym_name.data}: elements of type {type_.element_type} are not supported"
                )
            name = new_name(value_name(_name_of(argument) or f"arg{position}"), taken)
            shape = [sizes[position, d] if e == DYNAMIC_INDEX else e for d, e in enumerate(type_.get_shape())]
            if isinstance(type_.encoding, stablehlo.BoundsAttr):
                for extent, bound in zip(shape, type_.encoding.data, strict=True):
                    if bound is not None:
                        self._at_most(extent, bound, f"an extent of @{function.sym_name.data}")
            tensor = placeholder((*shape, 2) if kind is not None else tuple(shape), dtype, name)
            tensor.op.place = location_of(function)
            inputs.append(tensor)
            self._values[argument] = tensor if kind is None else parts_of(tensor, kind)
        return inputs

    # Ops

    def _block(self, block: Block) -> list[Value]:
        for op in block.ops:
            if isinstance(op, arith.ConstantOp) and op.result.first_use is None:
                continue
            if isinstance(op, ReturnOp | stablehlo.ReturnOp):
                return [self._values[operand] for operand in op.operands]
            self._convert(op)
        raise CompileError.at(cast("Operation", block.parent_op()), "a block of stablehlo ends in a return")

    def _convert(self, op: Operation) -> None:
        callee = callee_of(op)
        if callee is not None and not is_operator(op):
            self._call(op, callee)
            return
        self.at = op
        try:
            found = self._results(op)
        except CompileError as error:
            if isinstance(op, stablehlo.CaseOp | stablehlo.IfOp) and self.at is not op:
                raise
            raise CompileError.at(op, f"{op.name}: {error.message}") from None
        except (ValueError, IndexError, KeyError):  # lists of different lengths, or dimensions beyond the rank
            raise CompileError.at(op, f"{op.name}: operands and attributes do not fit each other") from None
        for result, value in zip(op.results, found, strict=True):
            self._values[result] = value
        self._place(op, [value for value in found if isinstance(value, Tensor)])

    def _results(self, op: Operation) -> Sequence[Value]:
        if not _is_stablehlo(op) and not is_constant(op):
            raise CompileError("only ops of stablehlo and chlo are converted")
        values = [self._values[operand] for operand in op.operands]
        for left, right in _agreeing(op, values):
            self._agree(values, left, right)
        for size, extent, dim in _slices(op, values):
            self._at_most(size, extent, f"the size of the slice along dimension {dim}")
        if isinstance(op, BroadcastingOp):
            dims = None if op.broadcast_dimensions is None else stablehlo.numbers(op.broadcast_dimensions)
            values = broadcast_together(values, dims)
        if is_constant(op) or isinstance(op, _OF_ALL) or not is_complex(op):
            results = self._real_results(op, values)
        elif isinstance(op, stablehlo.SelectAndScatterOp):
            self._originals |= {region.block: region.block for region in op.regions}
            results = self._real_results(op, values)
        elif op.name in MATRICES:
            found = TENSOR_FORMULAS[op.name](on_complex_matrices, op, *values)
            results = [cast("Value", found)]
        elif isinstance(op, CombiningOp) and not (op.name in MOVES and is_linear(op)):
            results = self._combined_parts(op, values)
        else:
            results = complex_results(op, _elementwise_name(op), values, partial(self._real_results, op))
        for position, value in enumerate(results):
            _check(op, position, value)
        return results

    def _real_results(self, op: Operation, values: Sequence[Value]) -> list[Value]:
        values = list(values)
        if any(value.dtype in WIDE for value in values) and isinstance(op, _WIDENED):
            return self._widened(op, values)
        found: object
        elements = constant_elements(op)
        if elements is not None:
            found = dense_value(elements, op.results[0].name_hint or "constant")
        elif op.name == "stablehlo.bitcast_convert" and len(values[0].shape) != len(result_shape(op)):
            found = recast(cast("stablehlo.TensorOp", op), values[0])
        elif isinstance(op, Elementwise):
            found = self._elementwise(op, values)
        elif op.name == "stablehlo.real_dynamic_slice" and (counts := self._slice_counts(op)) is not None:
            found = sized_slice(cast("stablehlo.TensorOp", op), values[0], values[1], counts)
        elif op.name in RULES:
            found = RULES[op.name](op, *values)
        elif op.name in LIBRARY_RULES:
            found = LIBRARY_RULES[op.name](op, *values)
        elif op.name in TENSOR_FORMULAS:
            tensors = [tensor_of(value, f"{label(op)}_operand{at}") for at, value in enumerate(values)]
            found = TENSOR_FORMULAS[op.name](on_tensors, op, *tensors)
        elif isinstance(op, MapOp):
            found = map_elements(op, values, partial(self._elements, op.body.block))
        elif isinstance(op, stablehlo.ScatterOp):
            found = scatter(op, values, partial(self._elements, op.body.block))
        elif isinstance(op, CombiningOp) and op.name in COMBINING_RULES:
            found = COMBINING_RULES[op.name](op, values, partial(self._elements, op.body.block))
        elif isinstance(op, stablehlo.SelectAndScatterOp):
            found = select_and_scatter(op, values, *(partial(self._elements, one.block) for one in op.regions))
        elif isinstance(op, stablehlo.CaseOp | stablehlo.IfOp):
            found = self._branches(op, values[0])
        elif isinstance(op, stablehlo.CustomCallOp):
            found = self._custom_call(op, values)
        elif isinstance(op, stablehlo.OptimizationBarrierOp):
            found = values
        elif isinstance(op, SetDimensionSizeOp):
            found = self._set_dimension_size(op, *values)
        elif isinstance(op, CommunicationOp):
            raise CompileError("ops of several devices and of hosts are not supported: weft compiles for one device")
        elif op.name in _REFUSED:
            raise CompileError(_REFUSED[op.name])
        else:
            raise CompileError("there is no tensor expression for it")
        return list(cast("Sequence[Value]", found)) if isinstance(found, list | tuple) else [cast("Value", found)]

    def _set_dimension_size(self, op: SetDimensionSizeOp, source: Value, size: Value) -> Value:
        (dim,), sizes = op.keyword("dim"), sizes_of(size)
        if sizes is None:
            raise CompileError("the size is computed from data, not from extents")
        self._at_most(sizes.elements[0], source.shape[dim], f"the size of dimension {dim}")
        shape = (*source.shape[:dim], sizes.elements[0], *source.shape[dim + 1 :])
        return BroadcastView(source, shape, tuple(range(len(shape))))

    def _at_most(self, extent: Extent, limit: Extent, what: str) -> None:
        """Calls check the limit if the extents are not known."""
        numbers = integer_of(extent), integer_of(limit)
        if numbers[0] is not None and numbers[1] is not None:
            if not 0 <= numbers[0] <= numbers[1]:
                raise CompileError(f"{what} is 0 to {numbers[1]}, got {numbers[0]}")
        elif not self._is_positive(simplified(binary(BinaryKind.SUB, limit, extent)), least=0):
            self._facts.append(cast("Compare", compare(Predicate.LE, extent, limit)))

    def _combined_parts(self, op: CombiningOp, values: Sequence[Value]) -> list[Value]:
        split = on_parts(op)
        self._originals[split.body.block] = op.body.block
        sides = [side for value in values for side in (value.both if isinstance(value, Parts) else (value,))]
        found = iter(self._real_results(split, sides))
        kinds = [complex_type(type_) for type_ in op.result_types]
        return [next(found) if kind is None else Parts(next(found), next(found), kind) for kind in kinds]

    def _slice_counts(self, op: Operation) -> Sequence[Extent] | None:
        """Extents of a slice from `start`, which depends on data, to `start` plus sizes. JAX emits it for rows of
        tensors with another symbolic dimension."""
        _, start, limit, strides = op.operands
        end = limit.owner
        if sizes_of(self._values[start]) is not None or not isinstance(end, Operation) or end.name != "stablehlo.add":
            return None
        counts, steps = (sizes_of(self._values[value]) for value in (end.operands[1], strides))
        if end.operands[0] is not start or counts is None or steps is None:
            return None
        return counts.elements if all(integer_of(step) == 1 for step in steps.elements) else None

    def _widened(self, op: Operation, values: Sequence[Value]) -> list[Value]:
        found = self._real_results(op, [cast_value(value, WIDE.get(value.dtype, value.dtype)) for value in values])
        return [cast_value(value, result_dtype(op, position)) for position, value in enumerate(found)]

    def _call(self, op: Operation, name: str) -> None:
        callee = self._functions.get(name)
        self.at = op
        if callee is None:
            near = did_you_mean(name, self._functions)
            raise CompileError.at(op, f"{op.name}: there is no function @{name} with a body{near}")
        if name in self._calls:
            raise CompileError.at(op, f"{op.name}: @{name} calls itself")
        quotient = self._floor_division(op) if _is_selection(callee.body.block) else None
        if quotient is not None:
            self._values[op.results[0]] = quotient
            self.inlined.add(name)
            return
        self._calls.append(name)
        for argument, operand in zip(callee.args, op.operands, strict=True):
            self._values[argument] = self._values[operand]
        for result, value in zip(op.results, self._block(callee.body.block), strict=True):
            self._values[result] = value
        self._calls.pop()
        self.inlined.add(name)

    def _place(self, op: Operation, tensors: Sequence[Tensor]) -> None:
        place = location_of(op)
        pending = [tensor.op for tensor in tensors]
        while pending:
            made = pending.pop()
            if made in self._placed or not isinstance(made, ComputeOp | ConstantOp):
                continue
            self._placed.add(made)
            made.place = place
            pending += [tensor.op for tensor in made.input_tensors]

    # Elements

    def _elementwise(self, op: Elementwise, values: list[Value]) -> Value:
        known = _chosen(op, values) or self._floor_division(op) or self._of_sizes(op, values)
        if known is not None:
            return known
        if op.name == "stablehlo.convert" and isinstance(values[0], Splat):
            number = _converted_splat(values[0], result_dtype(op))
            if number is not None:
                return number
        if all(isinstance(value, Splat | Sizes | Fact) for value in values):
            values = [tensor_of(values[0], "constant"), *values[1:]]  # whose element is no number known here
        rank = len(result_shape(op))
        wide = [value for value in values if len(value.shape) == rank]
        shape = wide[0].shape if wide else ()
        for value in wide:
            if not _same_shape(value.shape, shape):
                raise CompileError(f"operands of shapes {shape_text(shape)} and {shape_text(value.shape)}")

        def element(*indices: Expr) -> Expr:
            return _element(op, [element_of(value, indices if value.shape else ()) for value in values])

        if self._composes and _has_elementwise_reader(op):
            return Composed(lambda indices: element(*map(as_expr, indices)), tuple(shape), result_dtype(op))
        return compute(shape, element, label(op))

    def _floor_division(self, op: Operation) -> Value | None:
        """The floor division of sizes that a choice between truncated quotients means."""
        pair = stablehlo.floor_division(op)
        sizes = [] if pair is None else [sizes_of(self._values[operand]) for operand in pair]
        dividend, divisor = sizes if len(sizes) == 2 else (None, None)
        if dividend is None or divisor is None or any((integer_of(e) or 0) <= 0 for e in divisor.elements):
            return None
        pairs = zip(dividend.elements, divisor.elements, strict=True)
        quotients = tuple(simplified(binary(BinaryKind.FLOORDIV, x, y)) for x, y in pairs)
        return Sizes(quotients, dividend.shape, dividend.dtype)

    def _of_sizes(self, op: Operation, values: Sequence[Value]) -> Value | None:
        if not any(isinstance(value, Sizes) for value in values):
            return None
        sizes = [found for value in values if (found := sizes_of(value)) is not None]
        if len(sizes) != len(values):
            return None
        if isinstance(op, CompareOp) and not sizes[0].shape:
            left, right = (one.elements[0] for one in sizes)
            direction = op.comparison_direction.data
            known = self._compared(direction, left, right)
            if known is not None:
                return Splat(known, (), "bool")
            return Fact(cast("Compare", compare(Predicate(direction.lower()), left, right)))
        if op.name == "stablehlo.sign" and all(map(self._is_positive, sizes[0].elements)):
            return Sizes((1,) * len(sizes[0].elements), sizes[0].shape, sizes[0].dtype)
        if op.name == "stablehlo.convert" and result_dtype(op) in ("int32", "int64"):
            return Sizes(sizes[0].elements, sizes[0].shape, result_dtype(op))
        if op.name not in _SIZES:
            return None
        kind = _SIZES[op.name]
        if kind in (BinaryKind.FLOORDIV, BinaryKind.FLOORMOD):  # quotients of StableHLO are truncated
            dividends, divisors = (one.elements for one in sizes)
            if not all(self._is_positive(x, 0) for x in dividends) or not all(map(self._is_positive, divisors)):
                return None
        combined = [simplified(binary(kind, x, y)) for x, y in zip(sizes[0].elements, sizes[1].elements, strict=True)]
        return Sizes(tuple(combined), sizes[0].shape, sizes[0].dtype)

    def _compared(self, direction: str, left: Extent, right: Extent) -> bool | None:
        x, y = integer_of(left), integer_of(right)
        if x is not None and y is not None:
            return _COMPARISONS[direction](x, y)
        if direction in ("EQ", "LE", "GE") and is_same(left, right):
            return True
        if y == 0 and (direction in ("GE", "LT") and self._is_positive(left, least=0)):
            return direction == "GE"
        if y == 0 and (direction in ("EQ", "NE", "GT", "LE") and self._is_positive(left)):
            return direction in ("NE", "GT")
        return None

    def _is_positive(self, extent: Extent, least: int = 1) -> bool:
        """Whether an extent is at least `least`: it has no negative terms, and extents of parameters are at least 1 if
        asserted."""
        match extent:
            case int() | Const():
                return cast("int", integer_of(extent)) >= least
            case Var():
                stated = any(
                    fact.predicate is Predicate.GE and fact.left is extent and integer_of(fact.right) == 1
                    for fact in self._facts
                )
                return (least == 0 and not is_signed(extent.name)) or stated
            case Binary(kind=BinaryKind.ADD):
                lows = ((least, 0), (0, least))
                sides = (extent.left, extent.right)
                return any(all(map(self._is_positive, sides, pair)) for pair in lows)
            case Binary(kind=BinaryKind.MUL):
                return self._is_positive(extent.left, least) and self._is_positive(extent.right, least)
            case Binary(kind=BinaryKind.FLOORMOD | BinaryKind.FLOORDIV):
                return least == 0 and self._is_positive(extent.left, 0) and self._is_positive(extent.right)
            case _:
                return False

    def _agree(self, values: list[Value], left: _Dim, right: _Dim) -> None:
        """Give two dimensions one extent, the left one or a number, checked by calls. The conversion restarts with one
        variable for two extents of parameters."""
        extents = [values[at].shape[dim] for at, dim in (left, right)]
        numbers = [integer_of(extent) for extent in extents]
        if is_same(*extents) or None not in numbers:
            return  # if both are numbers, the op reports a difference
        dims = [next((dim for dim, var in self._sizes.items() if var is extent), None) for extent in extents]
        if dims[0] is not None and dims[1] is not None:
            self.same.append((dims[0], dims[1]))
            raise _OneVariable
        self._facts.append(cast("Compare", compare(Predicate.EQ, *extents)))
        kept, (at, dim) = (extents[1], left) if numbers[0] is None and numbers[1] is not None else (extents[0], right)
        value = values[at]
        shape = (*value.shape[:dim], kept, *value.shape[dim + 1 :])
        places = tuple(range(len(shape)))
        if isinstance(value, Parts):
            values[at] = Parts(
                BroadcastView(value.real, shape, places), BroadcastView(value.imaginary, shape, places), value.dtype
            )
        else:
            values[at] = BroadcastView(value, shape, places)

    def _elements(self, block: Block, arguments: Sequence[Expr]) -> list[Expr]:
        """Results of a region over scalars: pairs if it replaces one on complex numbers, else of one part."""
        original = self._originals.get(block)
        has_pairs, block = original is not None, original or block
        # Comparisons of sorts take both sides of each operand, other regions the arguments in order.
        is_sort = isinstance(block.parent_op(), stablehlo.SortOp)
        given = [iter(arguments[::2]), iter(arguments[1::2])] if is_sort else [iter(arguments)]
        known: dict[SSAValue, Any] = {}
        for position, argument in enumerate(block.args):
            side = given[position % len(given)]
            is_pair = has_pairs and complex_type(argument.type) is not None
            known[argument] = (next(side), next(side)) if is_pair else next(side)

        def value_of(operand: SSAValue) -> Any:
            if operand in known:
                return known[operand]
            return _element_of_constant(self._values[operand])

        for op in block.ops:
            if isinstance(op, ReturnOp | stablehlo.ReturnOp):
                found = [value_of(operand) for operand in op.operands]
                pairs = [cast("tuple[Expr, ...]", value if isinstance(value, tuple) else (value,)) for value in found]
                return [side for pair in pairs for side in pair]
            elements = constant_elements(op)
            if elements is not None:
                known[op.results[0]] = _element_of_constant(dense_value(elements, "constant"))
            elif isinstance(op, ElementwiseOp):
                operands = [value_of(operand) for operand in op.operands]
                is_pair = has_pairs and is_complex(op)
                known[op.results[0]] = element_in_region(op, operands) if is_pair else _element(op, operands)
            elif op.name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
                known[op.results[0]] = value_of(op.operands[0])
            else:
                raise CompileError(f"{op.name} in the region is not supported")
        raise CompileError("the region ends in no stablehlo.return")

    # Control

    def _branches(self, op: stablehlo.CaseOp | stablehlo.IfOp, index: Value) -> list[Value]:
        """Compute all branches, which have no effects, and select per element."""
        results = [self._block(region.block) for region in op.regions]
        chooser = tensor_of(index, "index")
        is_if = isinstance(op, stablehlo.IfOp)
        found: list[Value] = []
        self.at = op
        for position, choices in enumerate(zip(*results, strict=True)):
            shape = choices[0].shape
            name = f"{label(op)}{position}" if len(op.results) > 1 else label(op)

            def element(*indices: Expr, choices: Sequence[Value] = choices) -> Expr:
                chosen = element_of(choices[-1], indices)
                for number in reversed(range(len(choices) - 1)):
                    here = chooser() if is_if else chooser() == number
                    chosen = if_then_else(here, element_of(choices[number], indices), chosen)
                return chosen

            if isinstance(choices[0], Parts):
                sides = zip(*(cast("Parts", choice).both for choice in choices), strict=True)
                real, imaginary = (compute(shape, partial(element, choices=side), name) for side in sides)
                found.append(Parts(real, imaginary, choices[0].dtype))
            else:
                found.append(compute(shape, element, name))
        return found

    def _custom_call(self, op: stablehlo.CustomCallOp, values: Sequence[Value]) -> list[Value]:
        """Shape assertions become assumptions, which calls check; sharding annotations are ignored."""
        target = op.call_target_name.data
        if target == "stablehlo.dynamic_reduce_window":
            (name,) = (called.string_value() for called in op.called_computations or ())
            callee = self._functions.get(name)
            if callee is None:
                raise CompileError(f"there is no function @{name} with a body{did_you_mean(name, self._functions)}")
            found = dynamic_reduce_window(values, callee.body.block, partial(self._elements, callee.body.block))
            return list(found) if isinstance(found, list | tuple) else [cast("Value", found)]
        if target == "shape_assertion" and isinstance(values[0], Fact | Splat):
            fact = values[0].comparison if isinstance(values[0], Fact) else bool(values[0].number)
            if isinstance(fact, bool):
                if not fact:
                    raise CompileError("the shapes do not fit this assertion")
            else:
                self._facts.append(fact)
            return []
        if target == "Sharding":
            return list(values)
        if target in LAPACK_CALLS:
            if is_complex(op):
                found = lapack_results(on_complex_matrices, op, *values)
            else:
                tensors = [tensor_of(value, f"{label(op)}_operand{at}") for at, value in enumerate(values)]
                found = lapack_results(on_tensors, op, *tensors)
            return list(cast("Sequence[Value]", found)) if isinstance(found, list) else [cast("Value", found)]
        raise CompileError(f"@{target} is not known: `convert-stablehlo-to-graph` takes calls of registered functions")


def _element_of_constant(value: Value) -> Any:
    sides = value.both if isinstance(value, Parts) else (value,)
    if not all(isinstance(side, Splat) for side in sides):
        raise CompileError("the region uses a value from outside that is not constant")
    found = tuple(element_of(side, ()) for side in sides)
    return found if isinstance(value, Parts) else found[0]


def is_operator(op: Operation) -> bool:
    return isinstance(op, stablehlo.CompositeOp) and op.composite_name.data in ELEMENTWISE


def _is_selection(block: Block) -> bool:
    """Whether a block selects an argument by another, as the function that `jax.numpy.where` calls."""
    first = block.first_op
    return (
        first is not None
        and first.name == "stablehlo.select"
        and tuple(first.operands) == tuple(block.args)
        and first.next_op is block.last_op
    )


def _has_elementwise_reader(op: Operation) -> bool:
    uses = list(op.results[0].uses)
    reader = uses[0].operation if len(uses) == 1 else None
    is_elementwise = isinstance(reader, ElementwiseOp) or (reader is not None and is_operator(reader))
    return is_elementwise and reader is not None and reader.parent is op.parent


def _element(op: Elementwise, operands: Sequence[Expr]) -> Expr:
    name = _elementwise_name(op)
    if isinstance(op, CompareOp | BroadcastCompareOp):
        kind = None if op.compare_type is None else op.compare_type.data
        return compared(on_elements, op.comparison_direction.data, kind, *operands)
    if isinstance(op, ReducePrecisionOp):
        return reduced_precision(on_elements, *op.bits, *operands)
    if name == "stablehlo.convert":
        return converted(on_elements, operands[0], result_dtype(op))
    if name == "stablehlo.bitcast_convert":
        return reinterpret(operands[0], result_dtype(op))
    return elementwise(on_elements, name, *operands)


def _elementwise_name(op: Operation) -> str:
    match op:
        case stablehlo.CompositeOp():
            return op.composite_name.data
        case BroadcastingOp():
            return op.BASE
        case _:
            return op.name


def _converted_splat(value: Splat, dtype: str) -> Splat | None:
    number = value.number
    if not math.isfinite(number) or number != int(number) or abs(number) >= 1 << 7:
        return None
    if dtype == "bool":
        return Splat(number != 0, value.shape, dtype)
    return Splat(int(number) if is_integer(dtype) else float(number), value.shape, dtype)


def _name_of(argument: BlockArgument) -> str | None:
    location = argument.location
    if isinstance(location, NameLoc) and location.desc.data.isidentifier() and location.desc.data.isascii():
        return location.desc.data
    return argument.name_hint


def _check(op: Operation, position: int, value: Value) -> None:
    declared = result_shape(op, position)
    dtype = complex_type(op.results[position].type) or result_dtype(op, position)
    found = [integer_of(extent) for extent in value.shape]
    fits = len(found) == len(declared) and all(
        e == DYNAMIC_INDEX or n is None or n == e for n, e in zip(found, declared, strict=True)
    )
    if not fits or value.dtype != dtype:
        raise CompileError(
            f"result {position} is declared {op.results[position].type}, but the operands give "
            f"{shape_text(value.shape)} of {value.dtype}"
        )


def _same_shape(left: Sequence[Extent], right: Sequence[Extent]) -> bool:
    return len(left) == len(right) and all(map(is_same, left, right))


# Extents

_SIZES = {
    "stablehlo.add": BinaryKind.ADD,
    "stablehlo.subtract": BinaryKind.SUB,
    "stablehlo.multiply": BinaryKind.MUL,
    "stablehlo.divide": BinaryKind.FLOORDIV,
    "stablehlo.remainder": BinaryKind.FLOORMOD,
}
"""Maps arithmetic of StableHLO to that of extents."""
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name.lower()) for name in ("EQ", "NE", "GE", "GT", "LE", "LT")
}


def _chosen(op: Operation, values: Sequence[Value]) -> Value | None:
    """The result on known numbers, as in conditions of extents: a sign, logic, or a selection."""
    if op.name == "stablehlo.sign" and isinstance(values[0], Splat) and is_integer(values[0].dtype):
        number = int(values[0].number)
        return Splat((number > 0) - (number < 0), values[0].shape, values[0].dtype)
    if op.name == "stablehlo.select" and isinstance(values[0], Splat) and isinstance(values[1], Sizes | Splat):
        return values[1] if values[0].number else values[2]
    if len(values) != 2 or any(value.shape for value in values):
        return None
    if not all(value.dtype == "bool" or is_integer(value.dtype) for value in values):
        return None
    left, right = values
    if isinstance(op, CompareOp) and isinstance(left, Splat) and isinstance(right, Splat):
        direction = op.comparison_direction.data
        return Splat(_COMPARISONS[direction](int(left.number), int(right.number)), (), "bool")
    if op.name in ("stablehlo.and", "stablehlo.or") and left.dtype == "bool":
        absorbing = op.name == "stablehlo.or"
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Splat):
                return one if bool(one.number) == absorbing else other
    return None


def _agreeing(op: Operation, values: Sequence[Value]) -> Iterator[tuple[_Dim, _Dim]]:
    """Pairs of operand dimensions (position, dimension) whose extents the op defines to be equal."""
    match op:
        case ElementwiseOp() | stablehlo.ReduceOp() | stablehlo.ReduceWindowOp() | stablehlo.SortOp():
            rank = max((len(value.shape) for value in values), default=0)
            first, *others = (at for at, value in enumerate(values) if len(value.shape) == rank)
            yield from (((first, dim), (at, dim)) for at in others for dim in range(rank))
        case stablehlo.DotGeneralOp():
            numbers = op.dot_dimension_numbers
            for left, right in DOT_KEYS:
                yield from (((0, x), (1, y)) for x, y in zip(numbers.dims(left), numbers.dims(right), strict=True))
        case _ if op.name == "stablehlo.concatenate":
            (axis,) = cast("stablehlo.TensorOp", op).keyword("dim")
            kept = [dim for dim in range(len(values[0].shape)) if dim != axis]
            yield from (((0, dim), (at, dim)) for at in range(1, len(values)) for dim in kept)
        case _:
            pass


def _slices(op: Operation, values: Sequence[Value]) -> Iterator[tuple[Extent, Extent, int]]:
    """Slice sizes at clamped indices, with the containing extents and their dimensions."""
    sizes: Sequence[Extent] = ()
    if op.name == "stablehlo.dynamic_slice":
        sizes = cast("stablehlo.TensorOp", op).keyword("sizes")
    elif isinstance(op, stablehlo.GatherOp):
        sizes = stablehlo.numbers(op.slice_sizes)
    elif op.name == "stablehlo.dynamic_update_slice":
        sizes = values[1].shape
    extents = values[0].shape if sizes else ()
    yield from ((size, extent, dim) for dim, (size, extent) in enumerate(zip(sizes, extents, strict=True)))


def _equal_sizes(function: FuncOp, same: Sequence[tuple[_Dim, _Dim]]) -> dict[_Dim, Var]:
    """A variable per dynamic extent of a parameter, shared by extents in `same`, or equated by shape assertions: JAX
    states at the start of a function that extents of one symbolic name are equal."""
    names: dict[SSAValue, _Dim] = {}
    sizes: dict[_Dim, Var] = {}
    for position, argument in enumerate(function.args):
        for dimension, extent in enumerate(cast("TensorType[Attribute]", argument.type).get_shape()):
            if extent == DYNAMIC_INDEX:
                sizes[position, dimension] = Var(f"n{len(sizes)}", "int64")
    for op in function.body.block.ops:
        if op.name == "stablehlo.get_dimension_size" and op.operands[0] in function.args:
            position = function.args.index(op.operands[0])
            names[op.results[0]] = position, cast("stablehlo.TensorOp", op).keyword("dim")[0]
        if not isinstance(op, stablehlo.CustomCallOp) or op.call_target_name.data != "shape_assertion":
            continue
        test = op.operands[0].owner
        if isinstance(test, CompareOp) and test.comparison_direction.data == "EQ":
            left, right = (names.get(operand) for operand in test.operands)
            if left in sizes and right in sizes:
                same = [*same, (left, right)]
    for left, right in same:
        kept, other = sizes[right], sizes[left]
        sizes = {key: kept if var is other else var for key, var in sizes.items()}
    return sizes


@dataclass(frozen=True)
class ConvertStablehloToTePass(ModulePass):
    """Convert functions of stablehlo and chlo, as printed by JAX, to functions of tensor expressions.

    Each op becomes a computation as in `te.ops`; callees are inlined, and private functions without remaining calls
    erased. JAX's assertions on symbolic dimensions become conditions of calls.

    Requires: functions of tensors of bool, signed integers and floats, without other ops and calls. A function with an
    unsupported op or form is unchanged, and gets a remark.

    Leaves: functions of tensor expressions of the same types and names.
    """

    name = "convert-stablehlo-to-te"
    fast_math = (FastMathFlag.REASSOC,)  # products and reductions; the specification does not state their order

    strict: bool = False
    """Whether it is an error, not a remark, if the pass finds nothing, or does not convert an operation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_stablehlo(op, strict=self.strict)
