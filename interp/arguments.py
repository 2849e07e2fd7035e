"""Arguments for trial runs: concrete shapes for dynamic extents, random values, and the work of a call."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ReducedPrecisionFloatType,
    TensorType,
    VectorType,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue

from weft.dialects.element_types import TYPES
from weft.dialects.graph import CallTirOp, elements_in, preconditions_of
from weft.dialects.graph_shapes import evaluate, names_in, shape_of, sum_text
from weft.dialects.integer_arith import DIVISIONS, SHIFTS, evaluated
from weft.dialects.low import PARAMS, ParallelForOp
from weft.dialects.low_kernel import LaunchOp
from weft.dialects.te import ComputeOp, ReduceOp
from weft.dialects.te_extern import ExternOp
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_assume import AssumeOp, Relation, assumptions_of
from weft.interp.signature import call_signature
from weft.interp.values import MAX_ELEMENTS, MAX_RANK, Array, carrier_dtype, narrow
from weft.support.call_preconditions import CallPrecondition, near_numbers
from weft.support.call_signature import ArraySpec
from weft.support.errors import CompileError
from weft.texpr.graph_operators import Operator

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Region

    from weft.interp.edge_values import Parameter, Planting
    from weft.support.call_signature import Signature


@dataclass(frozen=True)
class OperationCounts:
    operations: int = 0
    flops: int = 0
    is_exact: bool = True
    """The extents of all loops are known, disregarding guards and branches."""

    def __add__(self, other: OperationCounts) -> OperationCounts:
        exact = self.is_exact and other.is_exact
        return OperationCounts(self.operations + other.operations, self.flops + other.flops, exact)

    def times(self, count: int) -> OperationCounts:
        return OperationCounts(self.operations * count, self.flops * count, self.is_exact)


_FLOPS: Mapping[str, int] = {
    **{f"arith.{name}f": 1 for name in ("add", "sub", "mul", "div", "neg", "maximum", "minimum", "maxnum", "minnum")},
    "math.fma": 2,
}
"""Floating-point operations of an op; other functions of `math` count as one."""


def flops_of(operation: Operation) -> int:
    if not operation.results:
        return 0
    result = operation.results[0].type
    lanes = 1
    if isinstance(result, VectorType):
        lanes, result = prod(result.get_shape()), result.get_element_type()
    if operation.name in _FLOPS:
        return _FLOPS[operation.name] * lanes
    return lanes if operation.name.startswith("math.") and isinstance(result, AnyFloat) else 0


EXTENTS: Sequence[Sequence[int]] = ((5, 7, 3, 6, 9), (1, 2, 4, 3), (16, 11, 8, 13))
"""Extents for successive tries: odd extents that common factors do not divide, the smallest, and extents that some
factors divide."""


@dataclass
class ConcreteShapes:
    """Shapes of parameters, with a number for each dynamic extent and index parameter.

    `extents` are chosen cyclically. Extents that the program ties together (by names, `tir.assume_shape`,
    `te.assume_shape`, loops of linalg) agree. With `given` shapes and numbers by parameter name, extents that do not
    follow are unknown.
    """

    function: FuncOp
    extents: Sequence[int]
    given: Mapping[str, Sequence[int] | int] | None = None
    shapes: list[list[int] | None] = field(default_factory=list[list[int] | None], init=False)
    """One for each parameter that callers pass; None for scalars."""
    numbers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int], init=False)
    """Values of index arguments and index arithmetic on them."""
    elements: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int], init=False)
    """Elements of integer parameters that are extents, by the positions of the parameter and the element."""
    _is_guessed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._next: Iterator[int] = (self.extents[n % len(self.extents)] for n in count())
        if self.given is not None:
            self._take_given(self.given)
            return
        signature = call_signature(self.function)
        for spec in signature.args:
            extents = spec.shape if isinstance(spec, ArraySpec) and not spec.is_allocated else None
            shape = None if extents is None else [DYNAMIC_INDEX if isinstance(e, str) else e for e in extents]
            self.shapes.append(shape)
        if PARAMS in self.function.attributes:
            self._choose_symbols(signature)
            for argument in self.function.body.block.args:
                if isinstance(argument.type, IndexType):
                    self.numbers.setdefault(argument, 1)
            return
        for argument in self.function.body.block.args:
            if isinstance(argument.type, IndexType):
                self.numbers[argument] = next(self._next)
        self._choose_names()
        self._choose_assumed()
        for op in self.function.body.block.ops:
            if op.name in ("tir.assume_shape", "te.assume_shape"):
                self._tie(op.operands[0], op.operands[1:])
        if any(op.name.startswith("linalg.") for op in self.function.body.walk()):
            from weft.interp.linalg_shapes import LinalgShapes  # start-up: 46 ms

            LinalgShapes(self.function, self.numbers).complete(self.shapes, lambda: next(self._next))
        for shape in self.shapes:
            if shape is not None:
                shape[:] = [next(self._next) if e == DYNAMIC_INDEX else e for e in shape]

    def _take_given(self, given: Mapping[str, Sequence[int] | int]) -> None:
        for argument in self.function.body.block.args:
            type_, value = argument.type, given.get(argument.name_hint or "")
            shape = list(type_.get_shape()) if isinstance(type_, MemRefType | TensorType) else None
            if isinstance(value, int):
                self.numbers[argument] = value
            elif value is not None:
                shape = list(value)
            self.shapes.append(shape)

    def _choose_symbols(self, signature: Signature) -> None:
        names: Mapping[str, int] = {name: next(self._next) for name in signature.extent_symbols}
        facts = signature.facts
        free = [name for fact in facts if fact.defines is None for name in fact.names if name in names]
        defined = [fact for fact in facts if fact.defines in names]

        def completed(numbers: Mapping[str, int]) -> dict[str, int]:
            result = dict(numbers)
            for fact in defined:
                result[fact.defines or ""] = fact.defined(result) or 0
            return result

        def holds(numbers: Mapping[str, int]) -> bool:
            known = completed(numbers)
            return all(fact.holds(known) for fact in facts if all(name in known for name in fact.names))

        names = completed(near_numbers(names, list(dict.fromkeys(free)), holds))
        arguments = self.function.body.block.args
        for position, spec in enumerate(signature.args):
            if isinstance(spec, ArraySpec):
                if spec.is_allocated:
                    continue
                self.shapes[position] = [names[extent] if isinstance(extent, str) else extent for extent in spec.shape]
            elif spec.symbol in names:
                self.numbers[arguments[position]] = names[spec.symbol]
        for name, argument in zip(signature.symbols, arguments[len(signature.args) :], strict=True):
            self.numbers[argument] = names.get(name, 1)

    def _choose_assumed(self) -> None:
        assumed = assumptions_of(self.function)
        symbols = list(dict.fromkeys(leaf for op in assumed for value in op.symbols for leaf in _leaves(value)))
        if not symbols:
            return
        start = {symbol: self.numbers[symbol] if symbol in self.numbers else next(self._next) for symbol in symbols}

        def holds(numbers: Mapping[SSAValue, int]) -> bool:
            tried = replace_numbers(self, numbers)
            return all(_is_true(op, [tried.number(value) for value in op.symbols]) for op in assumed)

        for symbol, number in near_numbers(start, symbols, holds).items():
            self.numbers[symbol] = number
            op = symbol.owner
            if isinstance(op, Operation) and (shape := self._shape(op.operands[0])) is not None:
                axis = self.number(op.operands[1])
                if axis is not None and 0 <= axis < len(shape) and shape[axis] == DYNAMIC_INDEX:
                    shape[axis] = number

    def _choose_names(self) -> None:
        arguments = self.function.body.block.args
        types = [a.type for a in arguments if isinstance(a.type, TensorType)]
        names: dict[str, int] = {}
        for extent in (e for type_ in types for e in shape_of(type_)):
            for name in sorted(names_in(extent)):
                names.setdefault(name, next(self._next))
        elements = elements_in(self.function)
        for name in elements:
            names.setdefault(name, next(self._next))
        facts = [fact for fact in preconditions_of(self.function) if all(name in names for name in fact.names)]
        facts += _assumed(self.function, names)
        for searched in (*([name] for name in names), list({name: None for fact in facts for name in fact.names})):
            inside = [fact for fact in facts if set(fact.names) <= set(searched)]
            chosen = {name: names[name] for name in searched}
            names.update(near_numbers(chosen, searched, lambda numbers, inside=inside: _hold(inside, numbers)))
        self.elements = {place: names[name] for name, place in elements.items()}
        for argument, shape in zip(arguments, self.shapes, strict=True):
            if shape is not None and isinstance(argument.type, TensorType):
                for axis, extent in enumerate(shape_of(argument.type)):
                    if shape[axis] == DYNAMIC_INDEX and extent is not None:
                        shape[axis] = evaluate(extent, names)

    def _tie(self, buffer: SSAValue, values: Iterable[SSAValue]) -> None:
        shape = self._shape(buffer)
        if shape is None:
            return
        static = cast("MemRefType[Attribute]", buffer.type).get_shape()
        for axis, value in zip((a for a, e in enumerate(static) if e == DYNAMIC_INDEX), values, strict=True):
            number = self.number(value)
            if shape[axis] == DYNAMIC_INDEX and number is not None:
                shape[axis] = number

    def _shape(self, buffer: SSAValue) -> list[int] | None:
        arguments = list(self.function.body.block.args)
        return self.shapes[arguments.index(buffer)] if buffer in arguments else None  # pyright: ignore[reportArgumentType]

    def number(self, value: SSAValue) -> int | None:
        """The value of index arithmetic on extents, which are chosen when queried."""
        if value not in self.numbers:
            found = self._computed(value)
            if found is None:
                return None
            self.numbers[value] = found
        return self.numbers[value]

    def _computed(self, value: SSAValue) -> int | None:
        op = value.owner
        if not isinstance(op, Operation):
            return None
        if isinstance(op, arith.ConstantOp):
            return op.value.value.data if isinstance(op.value, IntegerAttr) else None
        if isinstance(op, memref.DimOp) or op.name == "tensor.dim":
            shape, axis = self._shape(op.operands[0]), self.number(op.operands[1])
            if shape is None or axis is None or not 0 <= axis < len(shape):
                return None
            if shape[axis] == DYNAMIC_INDEX and self.given is not None:
                return None
            if shape[axis] == DYNAMIC_INDEX:
                shape[axis] = next(self._next)
            return shape[axis]
        return evaluated(op, [self.number(operand) for operand in op.operands])

    def work(
        self, find: Callable[[str], FuncOp | None], known: dict[Hashable, OperationCounts] | None = None
    ) -> OperationCounts:
        """The work of a call; `find` returns callees, `known` the work of some.

        Loops of unknown extent count as 8 iterations; a missing lower bound is 0, a missing upper bound 8 more.
        Operators on tensors, run by NumPy, and recursive calls have no work. Of an `scf.if` the larger branch
        counts.
        """
        known = {} if known is None else known
        key = (self.function, *(None if shape is None else tuple(shape) for shape in self.shapes))
        if key not in known:
            known[key] = OperationCounts()
            work = self._work(self.function.body, find, known)
            known[key] = replace(work, is_exact=work.is_exact and not self._is_guessed)
        return known[key]

    def _work(
        self, region: Region, find: Callable[[str], FuncOp | None], known: dict[Hashable, OperationCounts]
    ) -> OperationCounts:
        total = OperationCounts()
        for op in (op for block in region.blocks for op in block.ops):
            if isinstance(op, CallOp | CallTirOp | LaunchOp):
                name = op.kernel if isinstance(op, LaunchOp) else op.callee
                callee = find(name.string_value())
                self._is_guessed = self._is_guessed or callee is None
                if callee is not None and len(callee.body.blocks) == 1:
                    given = None if self.given is None else self._given_to(callee, op)
                    total += ConcreteShapes(callee, self.extents, given).work(find, known).times(self.iterations(op))
            elif not op.regions:
                total += OperationCounts(1, flops_of(op))
            else:
                parts = [self._work(inner, find, known) for inner in op.regions]
                inner = (
                    max(parts, key=lambda w: w.operations)
                    if isinstance(op, scf.IfOp)
                    else sum(parts, OperationCounts())
                )
                flops = 0 if isinstance(op, InitOp) else inner.flops
                once = OperationCounts(max(inner.operations, 1), flops, inner.is_exact)
                total += OperationCounts(1) + once.times(self.iterations(op))
        return total

    def _given_to(self, callee: FuncOp, call: Operation) -> dict[str, Sequence[int]]:
        given: dict[str, Sequence[int]] = {}
        for parameter, value in zip(callee.body.block.args, call.operands, strict=False):
            shape = self.known_shape(value)
            if shape is not None and parameter.name_hint and DYNAMIC_INDEX not in shape:
                given[parameter.name_hint] = shape
        return given

    def known_shape(self, buffer: SSAValue) -> Sequence[int] | None:
        if not isinstance(buffer.type, MemRefType):
            return self._shape(buffer)
        op = buffer.owner
        if isinstance(op, memref.CastOp):
            return self.known_shape(op.source)
        if not isinstance(op, memref.AllocOp | memref.ReinterpretCastOp | memref.ViewOp):
            return self._shape(buffer) or buffer.type.get_shape()
        sizes = iter(op.dynamic_sizes if isinstance(op, memref.AllocOp) else op.sizes)
        numbers = [self.number(next(sizes)) if e == DYNAMIC_INDEX else e for e in buffer.type.get_shape()]
        return [DYNAMIC_INDEX if number is None else number for number in numbers]

    def iterations(self, op: Operation) -> int:
        match op:
            case ForOp():
                return self._extent(op.extent)
            case ParallelForOp():
                return self._extent(op.extent)
            case LaunchOp():
                return math.prod(self._extent(extent) for extent in (*op.grid, *op.block))
            case ComputeOp() | ReduceOp():
                return math.prod(self._extent(extent) for extent in op.extents)
            case ExternOp():
                return math.prod(self._extent(extent) for extent in op.domain)
            case scf.ForOp():
                low, high, step = (self.number(v) for v in (op.lb, op.ub, op.step))
                self._is_guessed = self._is_guessed or None in (low, high, step)
                low = 0 if low is None else low
                high = max(low, 0) + _UNKNOWN_EXTENT if high is None else high
                return max(0, -(-(high - low) // max(step or 1, 1)))
            case _:
                self._is_guessed = self._is_guessed or not isinstance(op, BlockOp | InitOp | scf.IfOp)
                return 1

    def _extent(self, extent: int | SSAValue) -> int:
        if isinstance(extent, int):
            return extent
        number = self.number(extent)
        self._is_guessed = self._is_guessed or number is None
        return _UNKNOWN_EXTENT if number is None else max(number, 0)


def _leaves(value: SSAValue) -> Iterator[SSAValue]:
    op = value.owner
    if not isinstance(op, Operation) or isinstance(op, memref.DimOp) or op.name == "tensor.dim":
        yield value
        return
    for operand in op.operands:
        yield from _leaves(operand)


def replace_numbers(shapes: ConcreteShapes, numbers: Mapping[SSAValue, int]) -> ConcreteShapes:
    tried = copy(shapes)
    tried.numbers = {**shapes.numbers, **numbers}
    return tried


def _is_true(op: AssumeOp, numbers: Sequence[int | None]) -> bool:
    known = [number for number in numbers if number is not None]
    if len(known) != len(numbers):
        return True
    left, right = op.left.eval(known, []), op.right.eval(known, [])
    return {Relation.EQUAL: left == right, Relation.AT_MOST: left <= right, Relation.LESS: left < right}[op.kind]


_UNKNOWN_EXTENT = 8


_POSITIVE_ONLY = frozenset(
    {
        *("math.log", "math.log2", "math.log10", "math.sqrt", "math.rsqrt", "math.powf", "math.acosh"),
        *("arith.divf", "graph.divide", *(op_class.name for op_class in (*DIVISIONS, *SHIFTS))),
        *("graph.floor_divide", "graph.floor_mod", "graph.trunc_divide", "graph.trunc_mod"),
        *("graph.left_shift", "graph.right_shift"),
    }
)
"""Ops that are undefined, or far from linear, on numbers that are not positive."""


def needs_positive(root: Operation) -> bool:
    return any(op.name in _POSITIVE_ONLY for op in root.walk())


def _hold(facts: Sequence[CallPrecondition], numbers: Mapping[str, int]) -> bool:
    return all(fact.holds(numbers) for fact in facts)


def random_arguments(function: FuncOp, seed: int = 0, *, extents: Sequence[int] = EXTENTS[0]) -> list[Any]:
    """Arguments for `Interpreter.call` or a compiled function, equal for equal seeds.

    Floats are small multiples of a power of two, so that sums of products are exact in any order. Integers are
    small, non-negative for indices, and positive if the function divides. Written buffers are filled, so that
    missing writes are detected. Raises `CompileError` for parameters without a value (tuples).
    """
    return argument_recipe(function, extents).draw(seed)


def argument_recipe(
    function: FuncOp, extents: Sequence[int] = EXTENTS[0], given: Mapping[str, Sequence[int] | int] | None = None
) -> ArgumentRecipe:
    """The recipe of `random_arguments`, with `given` shapes and numbers."""
    shapes = ConcreteShapes(function, extents, given)
    indexes = any(isinstance(op, arith.IndexCastOp) for op in function.walk())
    smallest = min((e for shape in shapes.shapes if shape is not None for e in shape), default=4)
    parameters: list[Parameter] = []
    for position, (parameter, shape) in enumerate(zip(call_signature(function).args, shapes.shapes, strict=True)):
        if isinstance(parameter, ArraySpec) and parameter.is_allocated:
            continue
        if carrier_dtype(TYPES[parameter.dtype]) is None:
            detail = f"arrays of {parameter.dtype} need the package ml_dtypes: pip install 'weft[types]'"
            raise CompileError.at(function, f"parameter {parameter.name}: {detail}")
        if shape is not None:
            if prod(shape) > MAX_ELEMENTS:
                raise CompileError.at(
                    function, f"parameter {parameter.name} has {prod(shape):,} elements, more than {MAX_ELEMENTS:,}"
                )
            if any(extent < 0 for extent in shape):
                raise CompileError.at(function, f"parameter {parameter.name} would have shape {tuple(shape)}")
            if len(shape) > MAX_RANK:
                detail = f"parameter {parameter.name} has {len(shape)} dimensions, NumPy has {MAX_RANK} at most"
                raise CompileError.at(function, detail)
            parameters.append((parameter.dtype, tuple(shape)))
        elif isinstance(function.function_type.inputs.data[position], IndexType):
            parameters.append((parameter.dtype, shapes.numbers[function.body.block.args[position]]))
        else:
            parameters.append((parameter.dtype, None))
    elements = tuple((*place, number) for place, number in shapes.elements.items())
    return ArgumentRecipe(tuple(parameters), needs_positive(function), indexes, max(smallest, 1), elements)


def _assumed(function: FuncOp, names: Collection[str]) -> list[CallPrecondition]:
    pairs = [pair for op in function.walk() if isinstance(op, Operator) for pair in op.assumed]
    return [
        CallPrecondition(f"{sum_text(left)} == {sum_text(right)}")
        for left, right in dict.fromkeys(pairs)
        if left is not None and right is not None and (names_in(left) | names_in(right)).issubset(names)
    ]


@dataclass(frozen=True)
class ArgumentRecipe:
    """Other processes draw the same arguments without the function's IR."""

    parameters: tuple[Parameter, ...]
    positive: bool
    indices: bool
    limit: int
    """One more than the largest index."""
    elements: tuple[tuple[int, int, int], ...] = ()
    """(position of an array, position of an element that is an extent, its value)."""

    def draw(self, seed: int = 0, edges: Planting | None = None) -> list[Any]:
        """A value per parameter; `edges` plants edge values."""
        generator = np.random.default_rng(seed)
        values = _Values(generator, self.positive, self.indices, self.limit)
        arguments: list[Any] = []
        for position, (dtype, given) in enumerate(self.parameters):
            if isinstance(given, int):
                arguments.append(given)
                continue
            element_type = TYPES[dtype]
            # of rank 0 it is a number too
            array = np.asarray(values.array(element_type, [1] if given is None else given))
            if edges is not None:
                edges.into(position, array, element_type, generator)
            for at, element, number in self.elements:
                if at == position:
                    array.flat[element] = number
            arguments.append(array.item() if given is None else np.asarray(narrow(array, element_type)))
        return arguments


class _Values:
    def __init__(self, generator: np.random.Generator, positive: bool, indices: bool, limit: int) -> None:
        self._generator = generator
        self._positive = positive
        self._indices = indices
        self._limit = limit

    def array(self, element_type: Attribute, shape: Sequence[int]) -> Array:
        dtype = carrier_dtype(element_type)
        match element_type:
            case IntegerType():
                return self._integers(shape, dtype == np.bool_).astype(dtype)
            case BFloat16Type() | ReducedPrecisionFloatType():
                return self._floats(shape, 2, 2).astype(dtype)
            case Float16Type():
                return self._floats(shape, 4, 4).astype(dtype)
            case _:
                return self._floats(shape, 16, 8 if isinstance(element_type, Float32Type) else 1024).astype(dtype)

    def _integers(self, shape: Sequence[int], truth: bool) -> Array:
        low, high = -8, 8
        if truth:
            low, high = 0, 1
        elif self._indices:
            low, high = 0, self._limit - 1
        if self._positive and not truth:
            low, high = 1, max(high, 1)
        return self._generator.integers(low, high, size=tuple(shape), endpoint=True)

    def _floats(self, shape: Sequence[int], steps: int, denominator: int) -> Array:
        span = max(steps, denominator)
        low = 1 if self._positive else -span
        return self._generator.integers(low, span, size=tuple(shape), endpoint=True) / denominator
