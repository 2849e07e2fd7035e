"""Separate, concurrent compilation of a model's kernels, once for equal ones, unless they are in the compile cache.

    func.func @main(...)            { func.call @relu(...)  func.call @relu_1(...) }
    func.func private @relu(...)    { ... }
    func.func private @relu_1(...)  { the same }
    // becomes
    func.func @main(...)            { func.call @kernel_3f2a...(...)  func.call @kernel_3f2a...(...) }
    func.func private @kernel_3f2a...(...) attributes {low.params = ...}     // code in a separate object

Callers are compiled with the rest of the module.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Final

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import GlobalOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from weft.backends.llvm.compile import EMISSION, object_code
from weft.backends.llvm.emit import emit_module
from weft.backends.llvm.jit import link_objects
from weft.dialects.effects import is_pure_function
from weft.dialects.low import PURE
from weft.dialects.low_signature import signature_of
from weft.dialects.traversal import copy_of, operations_in
from weft.driver.kernel_functions import find_kernels
from weft.driver.parsing import parse_text
from weft.driver.pipeline import ModelKernel, Pipeline
from weft.driver.programs import context
from weft.driver.progress import Progress
from weft.driver.stages import schedule, to_low, to_tir
from weft.passes.module_edits import named_ops, symbol_uses
from weft.passes.tir.tir_fold_constant_calls import fold_constant_calls
from weft.runtime.call import Caller
from weft.runtime.compile_cache import CompiledKernel
from weft.runtime.native_runtime import runtime_symbols
from weft.support.build_options import BuildOptions
from weft.support.errors import InternalError
from weft.support.isolation import Worker
from weft.support.machine import host_cores
from weft.support.names import free_name
from weft.support.stopwatch import Span, Stopwatch
from weft.support.target import Target
from weft.support.user_functions import intrinsics, names_with_rules
from weft.texpr.graph_operators import Operator

if TYPE_CHECKING:
    from weft.passes.tir.tir_fold_constant_calls import Run

WORTH_A_PROCESS: Final = 1.5
"""Seconds of work per additional process, which takes at least half a second to import weft."""
_PER_OPERATOR: Final = 0.05
"""Seconds of work per operator of a graph; many share a kernel."""
_CALLER: Final = "_caller"
_PACKING: Final = "_packing"
"""Suffix of a kernel's symbol in the names of its caller, and of functions that pack constants for it."""


@contextmanager
def early_helper(pipeline: Pipeline) -> Generator[Worker | None]:
    """A process for `compile_kernels` that imports weft while this one lowers a graph; None for small programs."""
    is_worthwhile = (
        _processes() > 1
        and pipeline.options.can_compile_apart(pipeline.target)
        and sum(isinstance(op, Operator) for op in pipeline.module.walk()) * _PER_OPERATOR > WORTH_A_PROCESS
    )
    if not is_worthwhile:
        yield None
        return
    worker = Worker()
    try:
        worker.send(prepare, (), {})
        yield worker
    finally:
        worker.end()


def prepare() -> None:
    """The first call of a helper process, which imports this module."""


def compile_kernels(pipeline: Pipeline, helper: Worker | None = None) -> Pipeline:
    """Compile the kernels of a module of tir functions, and replace them by declarations at low level. `helper` is a
    process of `early_helper`; the stopwatch excludes its kernels. Raises `CompileError` and `ScheduleError` as `build`
    does."""
    module, stopwatch, cache = pipeline.module, pipeline.stopwatch, pipeline.cache
    with stopwatch.measure("kernels: structure"):
        kernels = find_kernels(pipeline)
    if not kernels:
        return pipeline
    if cache is not None and not _is_customised():
        with stopwatch.measure("compile cache"):
            for kernel in kernels:
                kernel.compiled = cache.load(kernel.key)
    missing = [kernel for kernel in kernels if kernel.compiled is None]
    found = len(kernels) - len(missing)
    progress = Progress("compiling kernels", len(missing), f", {found} in cache" if found else "")
    _Compilation(pipeline, missing, _processes(), progress).run(helper)
    if cache is not None and not _is_customised() and missing:
        with stopwatch.measure("compile cache"):
            if all(kernel.compiled is not None and cache.store(kernel.key, kernel.compiled) for kernel in missing):
                cache.evict()
    with stopwatch.measure("kernels: declarations"):
        _declare(module, kernels)
    with stopwatch.measure("constants"):
        _pack_constants(module, kernels, pipeline.target)
    return replace(pipeline, kernels=kernels)


def _is_customised() -> bool:
    """Whether users registered functions here, which workers lack, and whose semantics no key covers."""
    return bool(intrinsics() or names_with_rules())


def _processes() -> int:
    return 1 if _is_customised() else host_cores()


def compile_unit(pipeline: Pipeline, symbol: str) -> CompiledKernel:
    """Compile the first function of a module, lowered in place. Raises as `build` does."""
    unit = pipeline.module
    caller = _caller_in(unit)
    before = len(unit.ops)
    pipeline = schedule(to_tir(pipeline))
    called = _take_caller(unit, caller, symbol) if len(unit.ops) > before else ""
    if caller.parent is not None:
        Rewriter.erase_op(caller)
    to_low(pipeline)
    bodies = [op for op in unit.ops if isinstance(op, FuncOp) and not op.is_declaration]
    for function, name in zip(bodies, _names(symbol), strict=False):
        function.sym_name = StringAttr(name)
    with pipeline.stopwatch.measure(EMISSION):
        text = emit_module(unit, pipeline.target)
    code = object_code(text, pipeline.target, stopwatch=pipeline.stopwatch)
    declarations = "\n".join(str(_declaration(function)) for function in bodies)
    return CompiledKernel(declarations, called, tuple(map(str, pipeline.traces)), text, code)


def _caller_in(unit: ModuleOp) -> FuncOp:
    """A function that calls the kernel with its own parameters, to show how calls change."""
    kernel = next(iter(unit.ops))
    if not isinstance(kernel, FuncOp):
        raise InternalError(f"a unit begins with {kernel.name}")
    inputs = kernel.function_type.inputs.data
    caller = FuncOp(free_name("caller", named_ops(unit)), (inputs, ()))
    caller.body.block.add_ops([CallOp(kernel.sym_name.data, caller.body.block.args, ()), ReturnOp()])
    unit.body.block.add_op(caller)
    return caller


def _take_caller(unit: ModuleOp, caller: FuncOp, symbol: str) -> str:
    """Detach the caller, which packs constants for the kernel, as text that calls compiled functions."""
    caller.detach()
    bodies = [op for op in unit.ops if isinstance(op, FuncOp) and not op.is_declaration]
    names = {function.sym_name.data: name for function, name in zip(bodies, _names(symbol), strict=False)}
    caller.sym_name = StringAttr(f"{symbol}{_CALLER}")
    for op in operations_in(caller):
        if isinstance(op, CallOp):
            op.callee = SymbolRefAttr(names[op.callee.string_value()])
    return str(caller)


def _names(symbol: str) -> Iterator[str]:
    yield symbol
    yield from (f"{symbol}{_PACKING}{at}" for at in count())


def _declaration(function: FuncOp) -> FuncOp:
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    declaration = FuncOp.external(function.sym_name.data, inputs, outputs)
    declaration.attributes.update(function.attributes)
    if is_pure_function(function):
        declaration.attributes[PURE] = UnitAttr()
    return declaration


def compile_text(text: str, symbol: str, target: str, options: BuildOptions) -> tuple[CompiledKernel, Sequence[Span]]:
    """`compile_unit` in a helper process. Also returns the spans."""
    stopwatch = Stopwatch()
    with stopwatch.span(symbol):
        # Not verified, like units compiled in the other process.
        unit = parse_text(context(), text, symbol)
        compiled = compile_unit(Pipeline(unit, Target.parse(target), options, stopwatch), symbol)
    return compiled, stopwatch.spans


class _Compilation:
    def __init__(self, pipeline: Pipeline, missing: Sequence[ModelKernel], processes: int, progress: Progress) -> None:
        self._target, self._options = pipeline.target, pipeline.options.of_kernels()
        self._stopwatch = pipeline.stopwatch
        # The largest first: the last ones to end are then small.
        self._sizes = {kernel.key: _size(kernel) for kernel in missing}
        self._waiting = deque(sorted(missing, key=self._size, reverse=True))
        self._processes = processes
        self._failed: deque[ModelKernel] = deque()
        """Kernels that failed in another process: this one compiles them again, and raises their errors."""
        self._workers: list[Worker] = []
        self._is_over = False
        self._threads: list[threading.Thread] = []
        self._progress = progress

    def run(self, helper: Worker | None) -> None:
        start, done = perf_counter(), 0
        with self._progress:
            try:
                if helper is not None and len(self._waiting) > 1:
                    self._start_thread(helper)
                while self._waiting:
                    try:
                        kernel = self._waiting.popleft()
                    except IndexError:  # another process took the last one
                        break
                    self._compile(kernel)
                    done += self._size(kernel)
                    self._get_help((perf_counter() - start) / done * sum(map(self._size, tuple(self._waiting))))
                with self._stopwatch.measure("kernels: other processes"):
                    for thread in self._threads:
                        thread.join()
                for kernel in self._failed:
                    self._compile(kernel)
            finally:
                self._is_over = True
                for worker in self._workers:
                    worker.end()

    def _size(self, kernel: ModelKernel) -> int:
        return self._sizes[kernel.key]

    def _compile(self, kernel: ModelKernel) -> None:
        unit = Pipeline(kernel.unit(), self._target, self._options, self._stopwatch)
        with self._stopwatch.span(kernel.symbol):
            kernel.compiled = compile_unit(unit, kernel.symbol)
        self._progress.advance()

    def _get_help(self, seconds: float) -> None:
        for _ in range(min(self._processes - 1, int(seconds / WORTH_A_PROCESS)) - len(self._threads)):
            self._start_thread(None)

    def _start_thread(self, worker: Worker | None) -> None:
        thread = threading.Thread(target=self._help, args=(worker,), name="weft-compile", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _help(self, started: Worker | None) -> None:
        worker = started or Worker()
        self._workers.append(worker)
        if started is not None:
            try:
                worker.receive()
            except (OSError, EOFError, pickle.PickleError, ValueError):
                return
        number = self._workers.index(worker) + 1
        if self._is_over:  # an error or an interrupt while the process started
            worker.end()
        while self._waiting and not self._is_over:
            try:
                kernel = self._waiting.popleft()
            except IndexError:
                return
            try:
                arguments = (str(kernel.unit()), kernel.symbol, str(self._target), self._options)
                failure, result = worker.call(compile_text, arguments, {})
            except (OSError, EOFError, pickle.PickleError, ValueError):
                self._failed.append(kernel)
                return
            if failure is None:
                kernel.compiled, spans = result
                self._stopwatch.add_spans(spans, number)
                self._progress.advance()
            else:
                self._failed.append(kernel)


def _size(kernel: ModelKernel) -> int:
    return sum(1 for _ in operations_in(kernel.functions[0]))


# Functions that call kernels


def _declare(module: ModuleOp, kernels: Sequence[ModelKernel]) -> None:
    """Calls of kernels with packed constants are replaced by the bodies of their callers."""
    callers = _read(module, kernels)
    symbols = {function.sym_name.data: kernel.symbol for kernel in kernels for function in kernel.functions}
    for op in operations_in(module):
        if isinstance(op, CallOp) and (symbol := symbols.get(op.callee.string_value())) is not None:
            op.callee = SymbolRefAttr(symbol)
            if (caller := callers.get(f"{symbol}{_CALLER}")) is not None:
                _inline(caller, op)
    taken_along: set[str] = set()
    for kernel in kernels:
        for function in kernel.functions:
            taken_along.update(symbol for symbol, _ in symbol_uses(function))
            function.detach()
    used = {symbol for symbol, _ in symbol_uses(module)}
    for op in list(module.ops):
        if isinstance(op, GlobalOp) and op.sym_name.data in taken_along - used:
            Rewriter.erase_op(op)


def _read(module: ModuleOp, kernels: Sequence[ModelKernel]) -> dict[str, FuncOp]:
    compiled = [kernel.compiled for kernel in kernels if kernel.compiled is not None]
    texts = [text for kernel in compiled for text in (kernel.declarations, kernel.caller)]
    callers: dict[str, FuncOp] = {}
    by_symbol = {kernel.symbol: kernel for kernel in kernels}
    for op in list(parse_text(context(), "\n".join(texts), "<kernels>").ops):
        if not isinstance(op, FuncOp):
            continue
        op.detach()
        if not op.is_declaration:
            callers[op.sym_name.data] = op
            continue
        module.body.block.add_op(op)
        if (kernel := by_symbol.get(op.sym_name.data)) is not None:
            kernel.declaration = op
    return callers


def _inline(caller: FuncOp, call: CallOp) -> None:
    values: dict[SSAValue, SSAValue] = dict(zip(caller.args, call.arguments, strict=True))
    body = [copy_of(op, values) for op in caller.body.block.ops if not isinstance(op, ReturnOp)]
    for op in body:
        op.location = call.location
    Rewriter.replace_op(call, body, [])


def _pack_constants(module: ModuleOp, kernels: Sequence[ModelKernel], target: Target) -> None:
    """Let compiled kernels pack their constant operands; the results are constants of the module."""
    compiled = [kernel.compiled for kernel in kernels if kernel.compiled is not None and kernel.compiled.caller]

    def linked(functions: ModuleOp) -> Run:
        declared = [op for op in functions.ops if isinstance(op, FuncOp)]
        names = [function.sym_name.data for function in declared]
        symbols = runtime_symbols([kernel.ir for kernel in compiled], target)
        code = link_objects([kernel.code for kernel in compiled], names, symbols)
        callers = {
            name: Caller(signature_of(function), code.address(name), code, always_release_gil=True)
            for name, function in zip(names, declared, strict=True)
        }
        return lambda name, arrays: callers[name].call(*arrays)

    if compiled:
        fold_constant_calls(module, linked, declared=True)
