"""Calls of functions of any level with arrays: signatures, and the run-time values of a call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ComplexType, MemRefType, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.utils.exceptions import VerifyException

from weft.dialects.aliasing import exposed_arguments
from weft.dialects.effects import effects_of, views_of
from weft.dialects.element_types import TYPES, parameter_types, result_types, value_type
from weft.dialects.graph_shapes import shape_of
from weft.dialects.low import PARAMS, verify_signature
from weft.dialects.low_kernel import LaunchOp
from weft.dialects.low_results import allocated_results
from weft.dialects.low_signature import allocated_spec, element_dtype, signature_of
from weft.interp.errors import InterpreterError
from weft.interp.scalar_functions import wrap
from weft.interp.shared_elements import SharedElements, copies_of_overlapping
from weft.interp.values import MAX_ELEMENTS, Array, BufferStorage, array_of, flat_list, narrow, places, widen
from weft.support.call_arguments import bind_arguments
from weft.support.call_signature import ArraySpec, ScalarSpec, Signature
from weft.support.errors import CompileError
from weft.support.names import free_name
from weft.support.narrow_floats import bits_to_float

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Use

Place: TypeAlias = tuple[FuncOp, int]
"""A function and a parameter's position."""


def call_signature(function: FuncOp, written: Set[Place] = frozenset()) -> Signature:
    """The signature of a function of any level: all arguments, except results that it allocates.

    Only low functions declare the parameters that are `written` (see `written_parameters`). Raises `CompileError`
    for a type without NumPy values, and for a written parameter declared read.
    """
    if PARAMS in function.attributes:
        try:
            verify_signature(function)
        except VerifyException as error:
            raise CompileError.at(function, str(error)) from None
        signature = signature_of(function)
        for position, spec in enumerate(signature.args):
            if (function, position) in written and not (isinstance(spec, ArraySpec) and spec.writes):
                raise CompileError.at(
                    function, f"parameter {spec.name} of @{signature.name} is declared read, but written"
                )
        return replace(signature, results=0)
    args: dict[str, ArraySpec | ScalarSpec] = {}
    exposed = {argument.index for argument in exposed_arguments(function)}
    described = allocated_results(function)
    for position, (hint, type_) in enumerate(zip(_name_hints(function), parameter_types(function), strict=True)):
        name = free_name(hint or f"arg{position}", args)
        if position in described:
            args[name] = allocated_spec(function, name, described[position])
        else:
            args[name] = _argument(function, name, type_, (function, position) in written, position in exposed)
    symbols = dict.fromkeys(symbol for arg in args.values() if isinstance(arg, ArraySpec) for symbol in arg.symbols)
    return Signature(function.sym_name.data, tuple(args.values()), tuple(symbols))


def _name_hints(function: FuncOp) -> Sequence[str | None]:
    if function.is_declaration:
        return [None] * len(function.function_type.inputs)
    return [argument.name_hint for argument in function.body.blocks[0].args]


def _argument(function: FuncOp, name: str, type_: Attribute, written: bool, is_exposed: bool) -> ArraySpec | ScalarSpec:
    """Unknown extents get unique names."""
    if not isinstance(type_, MemRefType | TensorType):
        return ScalarSpec(name, element_dtype(function, name, type_))
    element = type_.element_type
    is_complex = isinstance(element, ComplexType)
    dtype = element_dtype(function, name, element.element_type if is_complex else element)
    shape = shape_of(type_) if isinstance(type_, TensorType) else type_.get_shape()
    shape = (*shape, 2) if is_complex else shape  # real and imaginary parts
    extents = tuple(
        f"{name}.{axis}" if extent in (None, DYNAMIC_INDEX) else extent if isinstance(extent, int) else str(extent)
        for axis, extent in enumerate(shape)
    )
    return ArraySpec(name, dtype, extents, "readwrite" if written else "read", may_overlap=is_exposed)


def written_parameters(functions: Mapping[str, FuncOp]) -> Set[Place]:
    """Buffer parameters that functions may write, also through calls and launches: the least fixed point."""
    passed_by: dict[Place, list[Place]] = defaultdict(list)
    written: set[Place] = set()
    defined = [function for function in functions.values() if not function.is_declaration]
    places = [(f, at) for f in defined for at, argument in enumerate(f.args) if isinstance(argument.type, MemRefType)]
    for place in places:
        buffer = place[0].args[place[1]]
        for use in (use for name in (buffer, *views_of(buffer)) for use in name.uses):
            callee = _passed_to(use, functions)
            if callee is not None:
                passed_by[callee].append(place)
            elif _writes(use):
                written.add(place)
    pending = list(written)
    while pending:
        new = [place for place in passed_by[pending.pop()] if place not in written]
        written.update(new)
        pending += new
    return written


def _passed_to(use: Use, functions: Mapping[str, FuncOp]) -> Place | None:
    match use.operation:
        case CallOp() as op:
            callee, position = functions.get(op.callee.string_value()), use.index
        case LaunchOp() as op:
            callee, position = functions.get(op.kernel.string_value()), use.index - len(op.grid) - len(op.block)
        case _:
            return None
    return None if callee is None or callee.is_declaration else (callee, position)


def _writes(use: Use) -> bool:
    user = use.operation
    return isinstance(user, CallOp | LaunchOp) or user.operands[use.index] in effects_of(user).writes


class Binding:
    """Copies of arguments, with strides of the interpreter's choice unless the function states them. Raises
    `TypeError` and `ValueError` as `bind_arguments`."""

    def __init__(
        self, function: FuncOp, signature: Signature, arguments: Sequence[Any], by_name: Mapping[str, Any]
    ) -> None:
        bound = bind_arguments(signature, arguments, by_name, copied=True)
        self._function = function
        self._is_flat = PARAMS in function.attributes
        self._symbols = bound.symbols
        self._written: list[tuple[ArraySpec, Array, BufferStorage, Attribute]] = []
        """Written buffers, and their element types there."""
        overlapping = copies_of_overlapping(signature, bound.arrays)
        self._allocated: list[tuple[ArraySpec, BufferStorage]] = []
        """Results that the function allocates, and their descriptors."""
        values: list[Any] = []
        for position, (spec, type_) in enumerate(zip(signature.args, function.function_type.inputs, strict=False)):
            if isinstance(spec, ScalarSpec):
                values.append(_number(spec, bound.slots[position]))
                continue
            array = bound.arrays[position]
            if spec.is_allocated:
                values.append(BufferStorage([0] * array.size, array.shape, spec.name))
                self._allocated.append((spec, values[-1]))
                continue
            if isinstance(type_, TensorType):
                values.append(widen(array, type_.element_type))
                continue
            # A storage type is a byte if the function works on bytes.
            element_type = cast("MemRefType[Attribute]", type_).element_type
            if position in overlapping:
                buffer = self._shared_buffer(spec, overlapping[position], element_type)
            else:
                buffer = self._buffer(spec, array, element_type)
            values.append(buffer)
            if spec.writes:
                self._written.append((spec, array, buffer, element_type))
        if self._is_flat:
            values += (bound.symbols[name] for name in signature.symbols)
        self.values = tuple(values)

    def write_back(self) -> None:
        new = [self._elements(*written) for written in self._written]
        for (_, array, _, _), elements in zip(self._written, new, strict=True):
            array[...] = elements

    def outputs(self, results: Sequence[Any]) -> tuple[Any, ...]:
        types = result_types(self._function)
        found = tuple(
            narrow(value, type_.element_type) if isinstance(type_, TensorType) else value
            for value, type_ in zip(results, types, strict=True)
        )
        return found + tuple(self._new_array(*allocated) for allocated in self._allocated)

    def _new_array(self, spec: ArraySpec, descriptor: BufferStorage) -> Array:
        elements, *shape = cast("list[Any]", descriptor.data)
        if not isinstance(elements, list):
            raise InterpreterError(self._function, f"the function did not return its result {spec.name}")
        type_ = TYPES[spec.dtype]
        array = array_of(cast("list[Any]", elements), tuple(shape), value_type(type_))
        return narrow(widen(array, type_), type_)

    def _buffer(self, spec: ArraySpec, array: Array, element_type: Attribute) -> BufferStorage:
        """Elements that are only written, and gaps, are unwritten memory."""
        unwritten = spec.access == "write"
        data: list[Any] = [None] * array.size if unwritten else flat_list(widen(array, element_type))
        if spec.strides is None:
            return BufferStorage(data, (array.size,) if self._is_flat else array.shape, spec.name)
        places = self._places(spec, array)
        memory: list[Any] = [None] * (max(places) + 1 if places else 0)
        for place, element in zip(places, data, strict=True):
            memory[place] = element
        return BufferStorage(memory, (len(memory),), spec.name)

    def _shared_buffer(self, spec: ArraySpec, copy: Array, element_type: Attribute) -> BufferStorage:
        places = self._places(spec, copy)
        elements = SharedElements(copy, element_type, None if spec.strides is None else places)
        is_flat = self._is_flat or spec.strides is not None
        return BufferStorage(cast("list[Any]", elements), (len(elements),) if is_flat else copy.shape, spec.name)

    def _places(self, spec: ArraySpec, array: Array) -> Sequence[int]:
        if spec.strides is None:
            return range(array.size)
        strides = [self._symbols[stride] if isinstance(stride, str) else stride for stride in spec.strides]
        if any(stride < 0 for stride in strides):
            raise ValueError(f"argument {spec.name}: the interpreter takes no negative strides, got {strides}")
        span = 1 + sum((extent - 1) * stride for extent, stride in zip(array.shape, strides, strict=True))
        if span > MAX_ELEMENTS:
            raise ValueError(
                f"argument {spec.name} spans {span:,} elements, the interpreter takes at most {MAX_ELEMENTS:,}"
            )
        return places(array.shape, strides)

    def _elements(self, spec: ArraySpec, array: Array, buffer: BufferStorage, element_type: Attribute) -> Array:
        if array.size and not buffer.data:
            raise InterpreterError(
                self._function, f"the function deallocates its argument {spec.name}", buffer=spec.name
            )
        data: list[Any] = [buffer.data[place] for place in self._places(spec, array)]
        if None in data:
            if spec.access != "write":
                index = tuple(int(i) for i in np.unravel_index(data.index(None), array.shape))
                raise InterpreterError(
                    self._function,
                    f"{spec.name}[{', '.join(map(str, index))}] was given a value read from memory that was never "
                    "written",
                    buffer=spec.name,
                    index=index,
                    shape=array.shape,
                )
            old = flat_list(widen(array, element_type))
            data = [before if now is None else now for before, now in zip(old, data, strict=True)]
        return narrow(array_of(data, array.shape, element_type), element_type, array.dtype)


def _number(spec: ScalarSpec, bits: int) -> float | int | bool:
    if spec.element.kind == "float":
        return bits_to_float(wrap(bits, 8 * spec.element.bytes), spec.dtype)
    return bool(bits) if spec.element.kind == "bool" else wrap(bits, 8 * spec.element.bytes)
