"""How a function of any level is called with arrays: its parameters, and the checks of a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerType, MemRefType, TensorType
from xdsl.dialects.func import CallOp, FuncOp

from weft.dialects.effects import effects_of, views_of
from weft.dialects.graph_shapes import DimsAttr, show_extent
from weft.dialects.low import PARAMS, params_of, preconditions_of, symbols_of
from weft.dialects.low_access import AccessMode
from weft.dialects.low_kernel import LaunchOp, argument_accesses
from weft.dialects.strides import choose_strides, dynamic_extents, strides_of
from weft.interp.errors import InterpreterError
from weft.interp.scalar_functions import wrap
from weft.interp.values import (
    MAX_ELEMENTS,
    Array,
    BufferStorage,
    array_dtype,
    array_of,
    finisher,
    flat_list,
    narrow,
    widen,
)
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Use

ShapedType: TypeAlias = "MemRefType[Attribute] | TensorType[Attribute]"
Place: TypeAlias = tuple[FuncOp, int]
"""A function and the position of one of its parameters."""


@dataclass(frozen=True)
class FunctionParameter:
    """A parameter as callers see it. `symbols` name the dynamic extents, where the function does so."""

    name: str
    type: Attribute
    written: bool = False
    poisoned: bool = False
    """What the caller put there does not matter: reading it before it is written is an error."""
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True)
class FunctionSignature:
    """What callers of a function pass and get.

    A low function takes flat buffers and, at the end, the extents named by `symbols`; callers pass shaped arrays only.
    """

    function: FuncOp
    parameters: tuple[FunctionParameter, ...]
    results: tuple[Attribute, ...]
    flat: bool
    symbols: tuple[str, ...] = ()

    @staticmethod
    def of(function: FuncOp, written: Set[Place] | None = None) -> FunctionSignature:
        """`written` are the parameters that `written_parameters` finds, for callers that ask for many functions."""
        flat = PARAMS in function.attributes
        written = written_parameters([function]) if written is None else written
        parameters = list(declared_parameters(function))
        for position, parameter in enumerate(parameters):
            if not flat:
                parameters[position] = replace(parameter, written=(function, position) in written)
            elif not parameter.written and (function, position) in written:
                raise CompileError.at(
                    function, f"parameter {parameter.name} of @{function.sym_name.data} is declared read, but written"
                )
        results = tuple(function.function_type.outputs)
        return FunctionSignature(function, tuple(parameters), results, flat, symbols_of(function) if flat else ())

    def __str__(self) -> str:
        parameters = ", ".join(f"{p.name}: {p.type}" for p in self.parameters)
        return f"@{self.function.sym_name.data}({parameters})"


def parameter_names(function: FuncOp) -> list[str]:
    """The names of a function's parameters: the hints of its arguments."""
    if function.is_declaration:
        return [f"arg{position}" for position in range(len(function.function_type.inputs))]
    return [a.name_hint or f"arg{a.index}" for a in function.body.blocks[0].args]


def _extent_names(name: str, type_: Attribute) -> tuple[str, ...]:
    """What the dynamic extents of a tensor of the graph level are called; an unknown one has a name of its own."""
    if not isinstance(type_, TensorType) or not isinstance(type_.encoding, DimsAttr):
        return ()
    dynamic = enumerate(type_.encoding.data)
    return tuple(f"{name}.{at}" if extent is None else show_extent(extent) for at, extent in dynamic)


def declared_parameters(function: FuncOp) -> tuple[FunctionParameter, ...]:
    """The parameters as the function declares them: which are written is declared at the low level only."""
    if PARAMS in function.attributes:
        return _low_parameters(function)
    names, types = parameter_names(function), function.function_type.inputs
    return tuple(
        FunctionParameter(name, type_, symbols=_extent_names(name, type_))
        for name, type_ in zip(names, types, strict=True)
    )


def written_parameters(functions: Iterable[FuncOp]) -> Set[Place]:
    """The buffer parameters that functions of one module, and those that they call, may write, themselves or through
    calls: the least fixed point over parameters, in which each use of a parameter is looked at once."""
    roots = [function for function in functions if not function.is_declaration]
    module = roots[0].parent_block() if roots else None
    by_name = {op.sym_name.data: op for op in (module.ops if module else ()) if isinstance(op, FuncOp)}
    found = [(root, n) for root in roots for n, a in enumerate(root.args) if isinstance(a.type, MemRefType)]
    passed_by: dict[Place, list[Place]] = {place: [] for place in found}
    written: set[Place] = set()
    for place in found:  # grows as calls are found
        buffer = place[0].args[place[1]]
        for use in (use for name in (buffer, *views_of(buffer)) for use in name.uses):
            callee = _passed_to(use, by_name)
            if callee is None:
                if _writes(use, by_name):
                    written.add(place)
                continue
            if callee not in passed_by:
                passed_by[callee] = []
                found.append(callee)
            passed_by[callee].append(place)
    pending = list(written)
    while pending:
        new = [place for place in passed_by[pending.pop()] if place not in written]
        written.update(new)
        pending += new
    return written


def _passed_to(use: Use, functions: Mapping[str, FuncOp]) -> Place | None:
    """The parameter that a use hands a buffer to, where the module has the function's body."""
    if not isinstance(use.operation, CallOp):
        return None
    callee = functions.get(use.operation.callee.string_value())
    return None if callee is None or callee.is_declaration else (callee, use.index)


def _writes(use: Use, functions: Mapping[str, FuncOp]) -> bool:
    """Whether an op may write a buffer that it takes, other than through a function of the module."""
    user = use.operation
    if isinstance(user, CallOp):
        return True
    if isinstance(user, LaunchOp):
        kernel = functions.get(user.kernel.string_value())
        position = use.index - len(user.grid) - len(user.block)
        return kernel is None or argument_accesses(kernel)[position] is not AccessMode.READ
    return user.operands[use.index] in effects_of(user).writes


def _low_parameters(function: FuncOp) -> tuple[FunctionParameter, ...]:
    params = params_of(function)
    inputs = len(function.function_type.inputs)
    if inputs != len(params) + len(symbols_of(function)):
        raise CompileError.at(
            function,
            f"function @{function.sym_name.data} has {inputs} arguments, but {len(params)} {PARAMS} and "
            f"{len(symbols_of(function))} symbols",
        )
    found: list[FunctionParameter] = []
    for param in params:
        access = param.access.data
        is_buffer = isinstance(param.type, MemRefType)
        found.append(
            FunctionParameter(
                param.label.data,
                param.type,
                is_buffer and access is not AccessMode.READ,
                is_buffer and access is AccessMode.WRITE,
                tuple(s.data for s in param.symbols),
            )
        )
    return tuple(found)


class Binding:
    """The arguments of one call, checked against a signature.

    Raises `TypeError` for a wrong count, name, dtype or kind of argument, `ValueError` for a wrong shape or value, a
    read-only array that is written, or one that overlaps another.
    """

    def __init__(self, signature: FunctionSignature, arguments: Sequence[Any], by_name: Mapping[str, Any]) -> None:
        self.signature = signature
        self._arguments = _in_order(signature, arguments, by_name)
        self._buffers: list[BufferStorage | None] = []
        self._symbols: dict[str, tuple[int, str]] = {}
        self._places: dict[str, Array] = {}
        for parameter, argument in zip(signature.parameters, self._arguments, strict=True):
            if isinstance(parameter.type, MemRefType | TensorType):
                self._check_array(parameter, argument)
        self._check_overlap()

    def values(self) -> tuple[Any, ...]:
        """The run-time values of the function's arguments."""
        values: list[Any] = []
        self._places = self._flat_places()
        for parameter, argument in zip(self.signature.parameters, self._arguments, strict=True):
            buffer: BufferStorage | None = None
            if isinstance(parameter.type, MemRefType):
                buffer = self._buffer(parameter, argument)
                values.append(buffer)
            elif isinstance(parameter.type, TensorType):
                values.append(widen(argument, cast("ShapedType", parameter.type).element_type))
            else:
                values.append(_scalar(parameter, argument))
            self._buffers.append(buffer)
        self._check_facts(values)
        for symbol in self.signature.symbols:
            if symbol not in self._symbols:
                raise CompileError.at(
                    self.signature.function, f"no parameter of {self.signature} has an extent named {symbol}"
                )
            values.append(self._symbols[symbol][0])
        return tuple(values)

    def _check_facts(self, values: Sequence[Any]) -> None:
        """What a low function assumes of its symbols and integer parameters."""
        if not self.signature.flat:
            return
        facts = preconditions_of(self.signature.function)
        numbers = {p.name: v for p, v in zip(self.signature.parameters, values, strict=True) if isinstance(v, int)}
        numbers.update((name, extent) for name, (extent, _) in self._symbols.items())
        for fact in facts:
            problem = fact.problem(numbers)
            if problem is not None:
                raise ValueError(f"@{self.signature.function.sym_name.data}: {problem}")

    def write_back(self) -> None:
        """Copy what the function wrote into the caller's arrays."""
        writes: list[tuple[Array, Array]] = []
        for parameter, argument, buffer in zip(self.signature.parameters, self._arguments, self._buffers, strict=True):
            if buffer is not None and parameter.written:
                writes.append((argument, self._written(parameter, argument, buffer)))
        for target, new in writes:
            target[...] = new

    def outputs(self, results: Sequence[Any]) -> tuple[Any, ...]:
        """The results as callers get them."""
        return tuple(
            narrow(value, type_.element_type) if isinstance(type_, TensorType) else value
            for value, type_ in zip(results, cast("Sequence[Attribute]", self.signature.results), strict=True)
        )

    def _check_array(self, parameter: FunctionParameter, argument: Any) -> None:
        type_ = cast("ShapedType", parameter.type)
        where = f"argument {parameter.name} of @{self.signature.function.sym_name.data}"
        dtype = array_dtype(type_.element_type)
        if dtype is None:
            raise TypeError(f"{where}: the interpreter has no arrays of {type_.element_type}")
        if not isinstance(argument, np.ndarray):
            raise TypeError(f"{where} must be a NumPy array of {dtype}, got {type(argument).__name__}")
        array = cast("Array", argument)
        is_bits = dtype.name == "bfloat16" and array.dtype == np.uint16
        if array.dtype != dtype and not is_bits:
            raise TypeError(f"{where} must have dtype {dtype}, got {array.dtype}")
        shape = tuple(type_.get_shape())
        expected = "x".join("?" if e == DYNAMIC_INDEX else str(e) for e in shape)
        if array.ndim != len(shape):
            raise ValueError(f"{where} must have {len(shape)} dimensions ({expected}), got {array.ndim}")
        if any(e not in (DYNAMIC_INDEX, actual) for e, actual in zip(shape, array.shape, strict=True)):
            raise ValueError(f"{where} must have shape {expected}, got {'x'.join(map(str, array.shape))}")
        if parameter.written and not array.flags.writeable:
            raise ValueError(f"{where} is written, but the array is read-only")
        dynamic = [actual for e, actual in zip(shape, array.shape, strict=True) if e == DYNAMIC_INDEX]
        for symbol, extent in zip(parameter.symbols, dynamic, strict=False):
            first, by = self._symbols.setdefault(symbol, (extent, parameter.name))
            if first != extent:
                raise ValueError(f"{where}: extent {symbol} is {extent}, but {first} in argument {by}")

    def _check_overlap(self) -> None:
        arrays = [
            (parameter, cast("Array", argument))
            for parameter, argument in zip(self.signature.parameters, self._arguments, strict=True)
            if isinstance(parameter.type, MemRefType)
        ]
        for position, (parameter, array) in enumerate(arrays):
            for other, second in arrays[:position]:
                if (parameter.written or other.written) and np.shares_memory(array, second):
                    raise ValueError(
                        f"arguments {other.name} and {parameter.name} of "
                        f"@{self.signature.function.sym_name.data} overlap, and one of them is written"
                    )

    def _flat_places(self) -> dict[str, Array]:
        """Parameter of a flat function that is no dense buffer -> the place of each element in memory.

        The interpreter copies arrays and so chooses strides of its own, where the function does not state them.
        """
        found: list[tuple[FunctionParameter, tuple[int, ...], list[int | str]]] = []
        for parameter, argument in zip(self.signature.parameters, self._arguments, strict=True):
            strides = strides_of(parameter.type) if self.signature.flat else None
            if strides is not None:
                names = iter(parameter.symbols[len(dynamic_extents(parameter.type)) :])
                steps = [next(names) if stride is None else stride for stride in strides]
                found.append((parameter, cast("Array", argument).shape, steps))
        known = {name: value for name, (value, _) in self._symbols.items()}
        chosen = choose_strides([(shape, steps) for _, shape, steps in found], known)
        for name, value in chosen.items():
            self._symbols[name] = (value, "")
        known.update(chosen)
        places: dict[str, Array] = {}
        for parameter, shape, steps in found:
            numbers = [known[step] if isinstance(step, str) else step for step in steps]
            if any(step < 0 for step in numbers):
                raise ValueError(f"argument {parameter.name}: the interpreter takes no negative strides, got {numbers}")
            span = 1 + sum((extent - 1) * step for extent, step in zip(shape, numbers, strict=True))
            if span > MAX_ELEMENTS:
                raise ValueError(
                    f"argument {parameter.name} spans {span:,} elements, the interpreter takes at most {MAX_ELEMENTS:,}"
                )
            indices = np.indices(shape, sparse=True)
            offsets = (index * step for index, step in zip(indices, numbers, strict=True))
            places[parameter.name] = np.broadcast_to(sum(offsets, np.zeros((), np.int64)), shape)
        return places

    def _buffer(self, parameter: FunctionParameter, argument: Array) -> BufferStorage:
        places = self._places.get(parameter.name)
        if places is not None:
            data: list[Any] = [None] * (int(places.max()) + 1 if places.size else 0)
            if not parameter.poisoned:
                element = cast("ShapedType", parameter.type).element_type
                for place, value in zip(places.reshape(-1).tolist(), flat_list(widen(argument, element)), strict=True):
                    data[place] = value
            return BufferStorage(data, (len(data),), parameter.name)
        shape = (argument.size,) if self.signature.flat else argument.shape
        if parameter.poisoned:
            return BufferStorage([None] * argument.size, shape, parameter.name)
        element_type = cast("ShapedType", parameter.type).element_type
        return BufferStorage(flat_list(widen(argument, element_type)), shape, parameter.name)

    def _written(self, parameter: FunctionParameter, argument: Array, buffer: BufferStorage) -> Array:
        type_ = cast("ShapedType", parameter.type)
        places = self._places.get(parameter.name)
        data: list[Any] = buffer.data
        if places is not None:
            data = [data[place] for place in places.reshape(-1).tolist()]
        if None in data:
            if not parameter.poisoned:
                position = np.unravel_index(data.index(None), argument.shape)
                index = tuple(int(i) for i in position)
                text = ", ".join(map(str, index))
                raise InterpreterError(
                    self.signature.function,
                    f"{parameter.name}[{text}] was given a value read from memory that was never written",
                    buffer=parameter.name,
                    index=index,
                    shape=argument.shape,
                )
            old = flat_list(widen(argument, type_.element_type))
            data = [before if now is None else now for before, now in zip(old, data, strict=True)]
        tensor = array_of(data, argument.shape, type_.element_type)
        return narrow(tensor, type_.element_type, argument.dtype)


def _in_order(signature: FunctionSignature, arguments: Sequence[Any], by_name: Mapping[str, Any]) -> list[Any]:
    """The arguments in the order of the parameters."""
    names = [p.name for p in signature.parameters]
    for name in by_name:
        if name not in names:
            raise TypeError(f"{signature} has no parameter {name}{did_you_mean(name, names)}")
        if name in names[: len(arguments)]:
            raise TypeError(f"{signature}: argument {name} is given twice")
    missing = [name for name in names[len(arguments) :] if name not in by_name]
    if len(arguments) > len(names) or missing:
        got = len(arguments) + len(by_name)
        lacks = f" (missing: {', '.join(missing)})" if missing else ""
        raise TypeError(f"{signature} takes {len(names)} arguments, got {got}{lacks}")
    return [*arguments, *(by_name[name] for name in names[len(arguments) :])]


def _scalar(parameter: FunctionParameter, argument: Any) -> float | int | bool:
    """The run-time value of a scalar argument."""
    value = argument.item() if isinstance(argument, np.generic) else argument
    type_ = parameter.type
    if isinstance(type_, IndexType | IntegerType):
        if not isinstance(value, int):
            raise TypeError(f"argument {parameter.name} must be an integer ({type_}), got {argument!r}")
        width = 64 if isinstance(type_, IndexType) else type_.width.data
        if width == 1:
            return bool(value)
        if wrap(value, width) != value:
            raise ValueError(f"argument {parameter.name} is {value}, which {type_} cannot hold")
        return int(value)
    if not isinstance(value, float | int):
        raise TypeError(f"argument {parameter.name} must be a number ({type_}), got {argument!r}")
    return finisher(type_)(value)
