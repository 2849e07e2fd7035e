"""Runs functions of a module on arrays: the reference semantics of programs.

    Interpreter(module).call("mm_relu", a, b, c)

Functions are compiled once to Python source, by `registry`. Memref parameters are written when the call ends; if it
fails, all arrays are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import LoadOp
from xdsl.dialects.vector import LoadOp as VectorLoadOp

from weft.dialects.low_kernel import KERNEL
from weft.dialects.strides import INTEGERS
from weft.dialects.tir_kinds import IN_STEP
from weft.interp.emitter import Emitter, Options
from weft.interp.errors import InterpreterError, IterationLimit
from weft.interp.registry import meaning_of
from weft.interp.signature import Binding, Place, call_signature, written_parameters
from weft.support.call_arguments import returned
from weft.support.errors import CompileError, InternalError, did_you_mean

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.interp.values import BufferStorage
    from weft.support.call_signature import Signature


_FILE_PREFIX = "<interpreted "


@dataclass(frozen=True)
class InterpretedSource:
    source: str
    lines: list[Operation | None]
    """The op of each line."""
    names: Mapping[SSAValue, str]
    """The Python expression of each value."""


class Functions(dict[str, Callable[..., tuple[Any, ...]]]):
    def __init__(self, find: Callable[[str], FuncOp], options: Options) -> None:
        super().__init__()
        self._find = find
        self._options = options

    def __missing__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        run = self[name] = compile_function(self._find(name), self._options, self)
        return run


def compile_function(function: FuncOp, options: Options, functions: Functions) -> Callable[..., tuple[Any, ...]]:
    """Compile to a Python function on run-time values. Raises `CompileError` for an op without semantics, and for a
    body of no or several blocks."""
    name = function.sym_name.data
    if function.is_declaration:
        meaning = meaning_of(function)
        if meaning is not None:
            return meaning
        raise CompileError.at(function, f"function @{name} has no body to interpret")
    if len(function.body.blocks) != 1:
        raise CompileError.at(function, f"the interpreter runs functions of one block, @{name} has several")
    emitter = Emitter(function, options, functions)
    parameters: list[str] = []
    extra: list[str] = []
    if KERNEL in function.attributes:
        from weft.interp.kernels import begin_kernel  # start-up: 58 ms

        extra = begin_kernel(emitter, function)
    elif IN_STEP in function.attributes:
        from weft.interp.kernels import refuse_threads_in_step  # start-up: 58 ms

        refuse_threads_in_step(function)
    for argument in function.body.block.args:
        if isinstance(argument.type, MemRefType):
            parameters.append(_bind_buffer_parameter(emitter, argument))
        else:
            parameters.append(emitter.define(argument))
    parameters.extend(extra)
    emitter.region(function.body.block)
    header = f"def function({', '.join(parameters)}):"
    body = emitter.source()
    source = "\n".join([header, *(text for text, _ in body), ""])
    lines: list[Operation | None] = [function, *(op for _, op in body)]
    try:
        code = compile(source, f"{_FILE_PREFIX}@{name}>", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        if not isinstance(error, SyntaxError) or "nested" in str(error):  # limits of Python
            raise CompileError.at(function, f"an expression of @{name} is nested too deeply to interpret") from error
        raise InternalError(f"the interpreter wrote wrong Python for @{name}: {error}\n{source}") from error
    environment = emitter.constants
    environment["_compiled"] = InterpretedSource(source, lines, emitter.names)
    exec(code, environment)
    return environment["function"]


def _bind_buffer_parameter(emitter: Emitter, argument: SSAValue) -> str:
    type_ = cast("MemRefType[Attribute]", argument.type)
    parameter = emitter.fresh(f"{argument.name_hint or 'argument'}_buffer")
    data = emitter.fresh(argument.name_hint or "argument")
    emitter.line(f"{data} = {parameter}.data")
    extents = emitter.read_extents(argument, f"{parameter}.shape")
    strides: list[str] | None = None
    offset = "0"
    if not isinstance(type_.layout, NoneAttr):
        # A view from an interpreted caller; the interpreter's callers pass copies.
        strides, offset = (
            [emitter.fresh(f"{data}_s{at}") for at in range(len(extents))],
            emitter.fresh(f"{data}_offset"),
        )
        given = "".join(f"{name}, " for name in (*strides, offset))
        emitter.line(f"{given}= {emitter.helper(places_of)}({parameter})")
    emitter.bind_buffer(argument, data, extents, strides, offset)
    return parameter


def places_of(buffer: BufferStorage) -> tuple[int, ...]:
    strides = INTEGERS.row_major(buffer.shape) if buffer.strides is None else buffer.strides
    return (*strides, buffer.offset)


def run_translated(run: Callable[..., tuple[Any, ...]], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Python errors become `InterpreterError` at the op of the line."""
    try:
        return run(*arguments)
    except (TypeError, ZeroDivisionError, IndexError, OverflowError, MemoryError, RecursionError) as error:
        raise _translated(error) from error


def _innermost(traceback: TracebackType | None) -> tuple[FrameType, int] | None:
    found: tuple[FrameType, int] | None = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        # A comprehension's frame lacks the names of its function.
        if code.co_filename.startswith(_FILE_PREFIX) and not code.co_name.startswith("<"):
            found = traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def _translated(error: Exception) -> Exception:
    place = _innermost(error.__traceback__)
    if isinstance(error, MemoryError) and place is None:
        return CompileError("the interpreter needs more memory than there is")
    if place is None:
        return InternalError(f"the interpreter failed outside interpreted code: {error!r}")
    frame, line = place
    compiled = frame.f_globals["_compiled"]
    op = compiled.lines[line - 1] if isinstance(compiled, InterpretedSource) else None
    if not isinstance(compiled, InterpretedSource) or op is None:
        return InternalError(f"the interpreter failed in a line of its own: {error!r}")
    if isinstance(error, TypeError) and (found := _unwritten_read(op, compiled, frame)) is not None:
        return found
    if isinstance(error, TypeError) and "NoneType" in str(error):  # by the interpreter's helpers
        return InterpreterError(op, f"'{op.name}' reads memory that was never written")
    if isinstance(error, MemoryError) or (isinstance(error, OverflowError) and "index-sized" in str(error)):
        return InterpreterError(op, f"'{op.name}' needs more memory than there is")
    if isinstance(error, RecursionError):
        return InterpreterError(op, f"'{op.name}': calls nest too deeply")
    if isinstance(error, ZeroDivisionError):
        return InterpreterError(op, f"'{op.name}' divides by zero")
    if isinstance(error, IndexError):
        return InterpreterError(op, f"'{op.name}' accesses a buffer after its memref.dealloc")
    return InternalError(f"the interpreter failed in '{op.name}': {error!r}\n{compiled.source.splitlines()[line - 1]}")


def _unwritten_read(op: Operation, compiled: InterpretedSource, frame: FrameType) -> InterpreterError | None:
    for operand in op.operands:
        value = _value_in(frame, compiled, operand)
        if not (value is None or (isinstance(value, list) and None in cast("list[object]", value))):
            continue
        load = operand.owner
        if not isinstance(load, LoadOp | VectorLoadOp):
            return InterpreterError(op, f"'{op.name}' uses a value read from memory that was never written")
        base = load.memref if isinstance(load, LoadOp) else load.base
        index = [i for i in (_value_in(frame, compiled, i) for i in load.indices) if isinstance(i, int)]
        if isinstance(value, list):
            index[-1] += cast("list[object]", value).index(None)
        name = base.name_hint or "a buffer"
        text = ", ".join(map(str, index))
        return InterpreterError(load, f"reads {name}[{text}], which was never written", buffer=name, index=index)
    return None


def _value_in(frame: FrameType, compiled: InterpretedSource, value: SSAValue) -> object:
    name = compiled.names.get(value, "0")
    return frame.f_locals.get(name, 0) if name.isidentifier() else _literal_of(name)


def _literal_of(text: str) -> object:
    try:
        return int(text.strip("()"))
    except ValueError:
        return 0


class Interpreter:
    """A correct program computes the same in each `order` of loops (see `Options`). With `check_uninitialised`,
    reads of unwritten temporaries are errors, otherwise zero. `max_iterations` limits the iterations of all loops of
    a call."""

    def __init__(
        self,
        module: ModuleOp,
        *,
        order: str = "forward",
        seed: int = 0,
        check_uninitialised: bool = True,
        max_iterations: int | None = None,
    ) -> None:
        self.module = module
        limit = None if max_iterations is None else IterationLimit(max_iterations)
        self.options = Options(order, seed, check_uninitialised, limit)
        self._functions = Functions(self.find, self.options)

    @cached_property
    def _by_name(self) -> dict[str, FuncOp]:
        functions = {op.sym_name.data: op for op in self.module.body.block.ops if isinstance(op, FuncOp)}
        blocks = (block for function in functions.values() for block in function.body.blocks)
        if not any(op.name.startswith("stablehlo.") for block in blocks for op in block.ops):
            return functions
        from weft.texpr.stablehlo_quantized import on_integers  # start-up: 70 ms

        return dict(on_integers(functions))

    @cached_property
    def _written(self) -> Set[Place]:
        return written_parameters(self._by_name)

    def find(self, name: str) -> FuncOp:
        """Raises `CompileError` for an unknown function."""
        if name not in self._by_name:
            raise CompileError(f"the module has no function @{name}{did_you_mean(name, self._by_name)}")
        return self._by_name[name]

    def compiled(self, name: str) -> Callable[..., tuple[Any, ...]]:
        """Raises `CompileError`."""
        return self._functions[name]

    def signature(self, name: str) -> Signature:
        return call_signature(self.find(name), self._written)

    def call(self, name: str, *arguments: Any, **by_name: Any) -> Any:
        """Call @name with arrays and scalars, by position or parameter name.

        Returns None, the result, or a tuple of results. Raises `TypeError` or `ValueError` if arguments do not match
        the parameters (count, dtype, rank, shape, contradictory extents, a read-only array that is written,
        overlaps), `InterpreterError` for undefined behaviour, and `IterationLimitError` above `max_iterations`.
        """
        if self.options.limit is not None:
            self.options.limit.begin()
        binding = Binding(self.find(name), self.signature(name), arguments, by_name)
        results = run_translated(self.compiled(name), binding.values)
        binding.write_back()
        return returned(binding.outputs(results))
