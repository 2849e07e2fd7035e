"""Random programs of `linalg.generic` on memrefs, and what NumPy computes for them.

Broadcasts, transposed maps, reductions, windows, scatters, updates in place, several outputs, indices of loops, extents
known at run time only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from programs import Array, Draw, Program, Run
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.passes.convert.convert_linalg_to_tir import ConvertLinalgToTirPass

Extent = int | str
"""A number, or the name of one that is known at run time only."""
MLIR_TYPES: Final = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}
LIMITS: Final = {"float32": 2**22, "float64": 2**50, "int32": 2**29, "int64": 2**60}
"""Values up to there are whole numbers that the type holds exactly, sums of two of them too."""
_FUNCTIONS: Final[Mapping[str, tuple[str, str, Any]]] = {
    "add": ("arith.addf", "arith.addi", np.add),
    "sub": ("arith.subf", "arith.subi", np.subtract),
    "mul": ("arith.mulf", "arith.muli", np.multiply),
    "max": ("arith.maximumf", "arith.maxsi", np.maximum),
    "min": ("arith.minimumf", "arith.minsi", np.minimum),
}
_COMBINERS: Final = ("add", "max", "min")


def fill_name(number: int) -> str:
    """The constant that buffers are filled with."""
    return f"%fill{number}".replace("-", "_")


@dataclass(frozen=True)
class Buffer:
    name: str
    shape: tuple[Extent, ...]

    def type(self, element: str, container: str = "memref") -> str:
        extents = "".join(f"{'?' if isinstance(extent, str) else extent}x" for extent in self.shape)
        return f"{container}<{extents}{element}>"


@dataclass(frozen=True)
class Subscripted:
    """A buffer, and for each dimension the loops that its subscript adds."""

    buffer: Buffer
    subscripts: tuple[tuple[int, ...], ...]

    def map(self, loops: int) -> str:
        names = ", ".join(f"d{loop}" for loop in range(loops))
        results = ", ".join(" + ".join(f"d{loop}" for loop in subscript) for subscript in self.subscripts)
        return f"affine_map<({names}) -> ({results})>"

    def loops(self) -> set[int]:
        return {loop for subscript in self.subscripts for loop in subscript}


@dataclass(frozen=True)
class Generic:
    """One op: a term of the elements of the inputs, which is stored or combined into each output."""

    loops: tuple[Extent, ...]
    inputs: tuple[Subscripted, ...]
    outputs: tuple[Subscripted, ...]
    functions: tuple[str, ...]
    """Combine the elements of the inputs, from the left."""
    index: int | None
    """A loop whose index is added to the term."""
    combiners: tuple[str | None, ...]
    """For each output; None where the term is stored."""
    fill: int | None
    """What the outputs are filled with before."""

    def text(self, dtype: str, values: dict[Buffer, str] | None = None) -> str:
        """The op on memrefs, or on tensors, where `values` has the present value of each."""
        element = MLIR_TYPES[dtype]
        operands = (*self.inputs, *self.outputs)
        container = "memref" if values is None else "tensor"
        names = {operand.buffer: operand.buffer.name for operand in operands} if values is None else values
        lines: list[str] = []
        if self.fill is not None:
            for output in self.outputs:
                of, old = output.buffer.type(element, container), names[output.buffer]
                result = ""
                if values is not None:
                    values[output.buffer] = f"{old}_f"
                    result = f"%{old}_f = "
                filled = f"ins({fill_name(self.fill)} : {element}) outs(%{old} : {of})"
                lines.append(f"{result}linalg.fill {filled}{f' -> {of}' if result else ''}")
        maps = ", ".join(operand.map(len(self.loops)) for operand in operands)
        indexing = set[int]().union(*(output.loops() for output in self.outputs))
        kinds = ", ".join('"parallel"' if at in indexing else '"reduction"' for at in range(len(self.loops)))
        results = "" if values is None else ", ".join(f"%{names[o.buffer]}_g" for o in self.outputs) + " = "
        lines.append(f"{results}linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}")
        for keyword, given in (("ins", self.inputs), ("outs", self.outputs)):
            shown = ", ".join(f"%{names[operand.buffer]}" for operand in given)
            types = ", ".join(operand.buffer.type(element, container) for operand in given)
            lines.append(f"  {keyword}({shown} : {types})")
        arguments = ", ".join(f"%x{at}: {element}" for at in range(len(operands)))
        lines += ["{", f"^bb0({arguments}):"]
        value = "%x0"
        for at, function in enumerate(self.functions):
            lines.append(f"  %t{at} = {self._op(function, dtype)} {value}, %x{at + 1} : {element}")
            value = f"%t{at}"
        if self.index is not None:
            convert = "arith.sitofp %w : i64 to" if dtype.startswith("f") else "arith.trunci %w : i64 to"
            lines += [f"  %i = linalg.index {self.index} : index", "  %w = arith.index_cast %i : index to i64"]
            lines += [] if dtype == "int64" else [f"  %j = {convert} {element}"]
            lines.append(f"  %u = {self._op('add', dtype)} {value}, {'%w' if dtype == 'int64' else '%j'} : {element}")
            value = "%u"
        yielded: list[str] = []
        for at, combiner in enumerate(self.combiners):
            yielded.append(value)
            if combiner is not None:
                old = f"%x{len(self.inputs) + at}"
                lines.append(f"  %y{at} = {self._op(combiner, dtype)} {old}, {value} : {element}")
                yielded[-1] = f"%y{at}"
        lines += [f"  linalg.yield {', '.join(yielded)} : {', '.join([element] * len(yielded))}"]
        types = ", ".join(output.buffer.type(element, container) for output in self.outputs)
        lines.append("}" if values is None else f"}} -> ({types})")
        if values is not None:
            values.update((output.buffer, f"{values[output.buffer]}_g") for output in self.outputs)
        return "\n".join(f"  {line}" for line in lines)

    def _op(self, function: str, dtype: str) -> str:
        return _FUNCTIONS[function][0 if dtype.startswith("f") else 1]

    def run(self, memory: dict[Buffer, Array], sizes: Mapping[str, int]) -> None:
        """Compute on NumPy arrays, iteration by iteration in order where iterations meet."""
        domain = tuple(sizes[extent] if isinstance(extent, str) else extent for extent in self.loops)
        grid = np.indices(domain)
        places = {operand: self._place(operand, grid) for operand in (*self.inputs, *self.outputs)}
        if self.fill is not None:
            for output in self.outputs:
                memory[output.buffer][...] = self.fill
        term = np.broadcast_to(memory[self.inputs[0].buffer][places[self.inputs[0]]], domain)
        for function, operand in zip(self.functions, self.inputs[1:], strict=True):
            term = _FUNCTIONS[function][2](term, memory[operand.buffer][places[operand]])
        if self.index is not None:
            term = term + grid[self.index].astype(term.dtype)
        for output, combiner in zip(self.outputs, self.combiners, strict=True):
            if combiner is None:
                for flat in range(int(np.prod(domain))):  # the last iteration stays
                    at = np.unravel_index(flat, domain)
                    memory[output.buffer][tuple(p[at] for p in places[output])] = term[at]
            else:
                _FUNCTIONS[combiner][2].at(memory[output.buffer], places[output], np.broadcast_to(term, domain))

    def _place(self, operand: Subscripted, grid: Array) -> tuple[Array, ...]:
        return tuple(sum(grid[loop] for loop in subscript) for subscript in operand.subscripts)


@dataclass
class Generator:
    """Draws a program of three ops."""

    draw: Draw
    dtype: str
    extents: list[Extent] = field(default_factory=list[Extent])
    inputs: list[Buffer] = field(default_factory=list[Buffer])
    written: list[Buffer] = field(default_factory=list[Buffer])
    ops: list[Generic] = field(default_factory=list[Generic])
    bounds: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    """How large the values of a buffer may be."""

    def run(self) -> None:
        self.extents = [self.draw.number(2, 6), self.draw.number(1, 5), self.draw.number(2, 7)]
        if self.draw.chance(0.5):
            symbols = ("n", "m")[: self.draw.number(1, 2)]
            self.extents += symbols
            for symbol in symbols:
                self.input((symbol,))
        while len(self.ops) < 3:
            self._op()

    def input(self, shape: tuple[Extent, ...]) -> Buffer:
        buffer = Buffer(f"A{len(self.inputs)}", shape)
        self.inputs.append(buffer)
        self.bounds[buffer] = 3
        return buffer

    def starts_filled(self, buffer: Buffer) -> bool:
        """Whether a fill comes first, and others read the buffer: it may be allocated in the function."""
        if any(isinstance(extent, str) for extent in buffer.shape):
            return False
        using = [op for op in self.ops if any(o.buffer == buffer for o in (*op.inputs, *op.outputs))]
        fills = using[0].fill is not None and any(o.buffer == buffer for o in using[0].outputs)
        return fills and len(using) > 1

    def _new_output(self, shape: tuple[Extent, ...]) -> Buffer:
        buffer = Buffer(f"B{len(self.written)}", shape)
        self.written.append(buffer)
        self.bounds[buffer] = 3
        return buffer

    def _op(self) -> None:
        draw = self.draw
        loops: list[Extent] = [draw.choose(self.extents) for _ in range(draw.number(1, 3))]
        written = list(self.written)
        inputs = [self._old_operand(loops) if draw.chance(0.6) else self._new_operand(loops)]
        while len(inputs) < 3 and draw.chance(0.5):
            inputs.append(self._old_operand(loops) if draw.chance(0.6) else self._new_operand(loops))
        outputs = [self._output(loops, [b for b in written if all(o.buffer != b for o in inputs)])]
        if draw.chance(0.15):
            loop = draw.number(0, len(loops) - 1)
            outputs.append(Subscripted(self._new_output((loops[loop],)), ((loop,),)))
        plain = {subscript for operand in (*inputs, *outputs) for subscript in operand.subscripts}
        missing = [at for at in range(len(loops)) if (at,) not in plain]  # each loop is the subscript of some operand
        inputs += [Subscripted(self.input((loops[at],)), ((at,),)) for at in missing]
        functions, bound = self._functions(inputs)
        index = draw.number(0, len(loops) - 1) if draw.chance(0.25) else None
        fresh = all(output.buffer not in written for output in outputs)
        fill = draw.choose((0, 0, 3, -100)) if draw.chance(0.7 if fresh else 0.3) else None
        bound += 7
        combiners: list[str | None] = []
        for output in outputs:
            meets = len(output.loops()) < len(loops) or any(len(subscript) > 1 for subscript in output.subscripts)
            combiner = None if draw.chance(0.1 if meets else 0.7) else draw.choose(_COMBINERS)
            most = self.bounds[output.buffer] + 100 + bound * (7 ** len(loops) if combiner == "add" else 1)
            if most > LIMITS[self.dtype]:
                combiner, most = "max", self.bounds[output.buffer] + 100 + bound
            combiners.append(combiner)
            self.bounds[output.buffer] = most
        op = Generic(tuple(loops), tuple(inputs), tuple(outputs), tuple(functions), index, tuple(combiners), fill)
        self.ops.append(op)

    def _functions(self, inputs: Sequence[Subscripted]) -> tuple[list[str], int]:
        """What combines the elements of the inputs, and how large the term may be."""
        functions: list[str] = []
        bound = self.bounds[inputs[0].buffer]
        for operand in inputs[1:]:
            function, other = self.draw.choose(tuple(_FUNCTIONS)), self.bounds[operand.buffer]
            if function == "mul" and bound * other > 2**9:
                function = "max"
            bound = bound * other if function == "mul" else bound + other
            functions.append(function)
        return functions, bound

    def _output(self, loops: Sequence[Extent], others: Sequence[Buffer]) -> Subscripted:
        """Some of the loops in any order, two of them added now and then; a buffer of `others` where one fits."""
        draw = self.draw
        kept = [at for at in self._permuted(len(loops)) if draw.chance(0.65)] or [0]
        subscripts = [(at,) for at in kept]
        shape = [loops[at] for at in kept]
        if len(kept) > 1 and draw.chance(0.15) and isinstance(shape[0], int) and isinstance(shape[1], int):
            subscripts[:2], shape[:2] = [(kept[0], kept[1])], [shape[0] + shape[1] - 1]
        fitting = [buffer for buffer in others if buffer.shape == tuple(shape)]
        buffer = draw.choose(fitting) if fitting and draw.chance(0.4) else self._new_output(tuple(shape))
        return Subscripted(buffer, tuple(subscripts))

    def _permuted(self, count: int) -> list[int]:
        return [int(at) for at in self.draw.random.permutation(count)]

    def _old_operand(self, loops: list[Extent]) -> Subscripted:
        """A buffer that there is, subscripted by loops of its extents; they are added where there are none."""
        known = [*self.inputs, *self.written, *self.written]
        buffer = self.draw.choose(known) if known else self.input((self.extents[0],))
        subscripts: list[tuple[int, ...]] = []
        for extent in buffer.shape:
            fitting = [at for at, loop in enumerate(loops) if loop == extent]
            if not fitting or (self.draw.chance(0.1) and len(loops) < 4):
                loops.append(extent)
                fitting = [len(loops) - 1]
            subscripts.append((self.draw.choose(fitting),))
        return Subscripted(buffer, tuple(subscripts))

    def _new_operand(self, loops: Sequence[Extent]) -> Subscripted:
        """A new input of some of the loops, in any order, or of a window over two of them."""
        static = [at for at in self._permuted(len(loops)) if isinstance(loops[at], int)]
        if len(static) > 1 and self.draw.chance(0.2):
            extent = sum(int(loops[at]) for at in static[:2]) - 1
            return Subscripted(self.input((extent,)), ((static[0], static[1]),))
        some = [at for at in self._permuted(len(loops)) if self.draw.chance(0.7)]
        return Subscripted(self.input(tuple(loops[at] for at in some)), tuple((at,) for at in some))


@dataclass(frozen=True)
class GenericProgram:
    """What a seed gives: the text for MLIR, and the program after convert-linalg-to-tir."""

    text: str
    """On memrefs."""
    as_written: Program
    """How the text is called, and what it gives."""
    program: Program


def generic_program(seed: int) -> GenericProgram:
    draw = Draw(seed)
    generator = Generator(draw, draw.choose(tuple(MLIR_TYPES)))
    generator.run()
    inner = [buffer for buffer in generator.written if generator.starts_filled(buffer) and draw.chance(0.5)]
    outer = [buffer for buffer in generator.written if buffer not in inner]
    if not outer:
        outer, inner = inner, []
    text = _text(generator, outer, inner)
    on_tensors = draw.chance(0.4)
    module = weft.parse(_tensor_text(generator, outer, inner) if on_tensors else text, f"generic_{seed}.mlir")
    promises = ("noalias", "contract", "reassoc") if draw.chance(0.8) else ()
    ConvertLinalgToTirPass(promises).apply(Context(), module)
    as_written = _program(seed, module, [_run(generator, outer, inner, draw) for _ in range(2)])
    program = as_written
    if on_tensors:
        runs = [Run((*run.inputs, *run.before()), run.expected) for run in as_written.runs()]  # pyright: ignore[reportArgumentType]
        program = _program(seed, module, runs)
    return GenericProgram(text, as_written, program)


def _program(seed: int, module: ModuleOp, runs: Sequence[Run]) -> Program:
    first, second = runs
    return Program(f"generic {seed}", module, first.inputs, first.expected, others=(second,), initial=first.initial)


def _text(generator: Generator, outer: Sequence[Buffer], inner: Sequence[Buffer]) -> str:
    element = MLIR_TYPES[generator.dtype]
    parameters = ", ".join(f"%{buffer.name}: {buffer.type(element)}" for buffer in (*generator.inputs, *outer))
    lines = [f"func.func @main({parameters}) {{", *_constants(generator)]
    lines += [f"  %{buffer.name} = memref.alloc() : {buffer.type(element)}" for buffer in inner]
    lines += [op.text(generator.dtype) for op in generator.ops]
    return "\n".join([*lines, "  return", "}"])


def _tensor_text(generator: Generator, outer: Sequence[Buffer], inner: Sequence[Buffer]) -> str:
    """The program on tensors: what buffers of callers hold before comes in as further arguments."""
    element = MLIR_TYPES[generator.dtype]
    values = {buffer: buffer.name for buffer in (*generator.inputs, *outer, *inner)}
    given = ", ".join(f"%{b.name}: {b.type(element, 'tensor')}" for b in (*generator.inputs, *outer))
    types = ", ".join(buffer.type(element, "tensor") for buffer in outer)
    lines = [f"func.func @main({given}) -> ({types}) {{", *_constants(generator)]
    lines += [f"  %{b.name} = tensor.empty() : {b.type(element, 'tensor')}" for b in inner]
    lines += [op.text(generator.dtype, values) for op in generator.ops]
    lines.append(f"  return {', '.join(f'%{values[buffer]}' for buffer in outer)} : {types}")
    return "\n".join([*lines, "}"])


def _constants(generator: Generator) -> list[str]:
    fills = sorted({op.fill for op in generator.ops if op.fill is not None})
    suffix = ".0" if generator.dtype.startswith("f") else ""
    return [f"  {fill_name(fill)} = arith.constant {fill}{suffix} : {MLIR_TYPES[generator.dtype]}" for fill in fills]


def _run(generator: Generator, outer: Sequence[Buffer], inner: Sequence[Buffer], draw: Draw) -> Run:
    sizes = {extent: draw.number(1, 7) for extent in generator.extents if isinstance(extent, str)}
    memory: dict[Buffer, Array] = {}
    for buffer in (*generator.inputs, *outer, *inner):
        shape = tuple(sizes[extent] if isinstance(extent, str) else extent for extent in buffer.shape)
        memory[buffer] = np.asarray(draw.array(shape, generator.dtype))
    inputs = tuple(memory[buffer].copy() for buffer in generator.inputs)
    initial = tuple(memory[buffer].copy() for buffer in outer)
    for op in generator.ops:
        op.run(memory, sizes)
    return Run(inputs, tuple(memory[buffer] for buffer in outer), initial)
