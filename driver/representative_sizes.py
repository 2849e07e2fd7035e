"""The argument shapes of a program's calls, for representative sizes of its symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp

from weft.driver.work_formulas import SymbolicFunction, number_of
from weft.passes.module_edits import functions_of, symbol_uses
from weft.passes.tir.flat_signature import FlatSignature, Quantity, call_facts
from weft.passes.tir.tir_pass import tir_functions
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError, did_you_mean
from weft.support.sizes import Sizes, WeightedSizes, shown_sizes

Shapes: TypeAlias = tuple[tuple[int, ...] | int, ...]
"""The shape of each buffer parameter, and the value of each index parameter."""


@dataclass(frozen=True)
class WeightedShapes:
    """Argument shapes, and the number of calls with them in a run of the program."""

    shapes: Shapes
    calls: float

    def given(self, function: FuncOp) -> dict[str, Sequence[int] | int]:
        return {a.name_hint or "": shape for a, shape in zip(function.args, self.shapes, strict=True)}


def shapes_of_calls(module: ModuleOp, sizes: Sequence[WeightedSizes]) -> dict[str, list[WeightedShapes]]:
    """The argument shapes of the calls of each tir function in a run, weighted like the sizes. Raises `CompileError`
    for a symbol without a size, one that no function has, and sizes that violate preconditions."""
    functions = functions_of(module)
    used = {symbol for holder in module.ops for symbol, op in symbol_uses(holder) if op is not holder}
    found: dict[str, dict[Shapes, float]] = {}

    def count(caller: SymbolicFunction, times: float) -> None:
        name = caller.function.sym_name.data
        shapes = _known_shapes(caller)
        if shapes is not None:
            by_shapes = found.setdefault(name, {})
            by_shapes[shapes] = by_shapes.get(shapes, 0.0) + times
        for _, callee, number in caller.calls(functions.get):
            count(callee, times * number_of(number))

    entries = [function for name, function in functions.items() if name not in used]
    entries = [function for function in entries if function in set(tir_functions(module))]
    known: dict[str, None] = {}
    for function in entries:
        known.update(dict.fromkeys(FlatSignature.of(function).symbols))
    for entry in sizes:
        for symbol in entry.sizes:
            if symbol not in known:
                raise CompileError(f"sizes: no function has a symbol '{symbol}'{did_you_mean(symbol, known)}")
        for function in entries:
            count(SymbolicFunction.of_entry(function, _given(function, entry.sizes)), entry.weight)
    return {name: [WeightedShapes(*item) for item in by_shapes.items()] for name, by_shapes in found.items()}


def _given(function: FuncOp, sizes: Sizes) -> dict[str, Sequence[int] | int]:
    signature = FlatSignature.of(function)
    numbers = dict(sizes)
    facts = [CallPrecondition(text) for text in call_facts(function, signature)]
    for fact in facts:
        if fact.defines is not None and (number := fact.defined(numbers)) is not None:
            numbers.setdefault(fact.defines, number)
    given: dict[str, Sequence[int] | int] = {}
    for argument in function.args:
        if isinstance(argument.type, MemRefType):
            shape: list[int] = []
            for at, extent in enumerate(argument.type.get_shape()):
                symbol = signature.of_quantity.get(Quantity(argument.index, at), "")
                if extent == DYNAMIC_INDEX and symbol not in numbers:
                    raise CompileError(
                        f"sizes: '{symbol}' of @{function.sym_name.data} has no size: {shown_sizes(sizes)}"
                    )
                shape.append(numbers[symbol] if extent == DYNAMIC_INDEX else extent)
            given[argument.name_hint or ""] = shape
        elif argument.index in signature.of_scalar:
            given[argument.name_hint or ""] = numbers[signature.of_scalar[argument.index]]
    for fact in facts:
        if all(name in numbers for name in fact.names) and (problem := fact.problem(numbers)) is not None:
            raise CompileError(
                f"sizes: {shown_sizes(sizes)} violate a precondition of @{function.sym_name.data}: {problem}"
            )
    return given


def _known_shapes(caller: SymbolicFunction) -> Shapes | None:
    shapes: list[tuple[int, ...] | int] = []
    for argument, shape in zip(caller.function.args, caller.shapes, strict=True):
        extents = shape if isinstance(shape, tuple) else () if shape is None else (shape,)
        numbers = tuple(extent for extent in extents if isinstance(extent, int))
        is_buffer = isinstance(argument.type, MemRefType)
        if len(numbers) < len(extents) or (shape is None and (is_buffer or isinstance(argument.type, IndexType))):
            return None
        shapes.append(numbers[0] if isinstance(argument.type, IndexType) else numbers)
    return tuple(shapes)
