"""Compiled programs: native functions that Python calls by name."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast

import numpy as np

from weft.backends.llvm.compile import DEFAULT_OPTIONS, CodegenOptions, assembly, optimize_ir
from weft.backends.llvm.jit import jit
from weft.backends.llvm.link import linked_ir
from weft.backends.names import CALL_REGISTERED, symbol_name
from weft.runtime.call import Caller
from weft.runtime.native_runtime import PARALLEL_FOR, runtime_symbols
from weft.runtime.timing import TimeEvaluator, native_runs
from weft.support.argument_types import checked_methods, shown
from weft.support.call_arguments import bind_arguments, memory_span, returned
from weft.support.call_signature import BAD_SIZE, BY_ZERO, Signature
from weft.support.columns import bytes_text
from weft.support.errors import CompileError, did_you_mean
from weft.support.files import write_output
from weft.support.shown import table_bundle
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from weft.dialects import sched
    from weft.runtime.compile_cache import CompiledKernel
    from weft.runtime.kernel_report import KernelRow, Report, ReportSource
    from weft.runtime.kernel_times import KernelTimes
    from weft.runtime.timing import SecondsOf
    from weft.support.call_arguments import Array, BoundArguments


class UnknownFunctionError(CompileError, KeyError):
    pass


@checked_methods
class Function:
    """A compiled function.

    Arguments are NumPy arrays, anything with DLPack or the buffer protocol, and numbers, by position or by name.
    Results (arrays that are only written, last in the signature) may be omitted and are then returned. Raises
    `TypeError` and `ValueError` that name the argument. Ctrl-C interrupts a long call (2^30 iterations or 512 MiB of
    arrays); native code continues in the background and still writes the arrays. A call that writes only empty arrays
    does nothing.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.signature: Signature = caller.signature

    @staticmethod
    def make(caller: Caller) -> Function:
        """Python looks `__call__` up in the class, so a class for each function halves the cost of a call."""
        if caller.signature.bounds_log:
            return CheckedFunction(caller)
        if not {arg.name for arg in caller.signature.result_specs}.issuperset(caller.signature.returned):
            return DonatingFunction(caller)
        kind: type[Function] = type("Function", (Function,), {"__call__": caller.call, "__doc__": Function.__doc__})
        return kind(caller)

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        return self._caller.call(*positional, **keywords)

    @property
    def name(self) -> str:
        return self.signature.name

    def time_evaluator(self, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0.0) -> TimeEvaluator:
        """See `TimeEvaluator`."""
        return TimeEvaluator(self.name, self.runs, number, repeat, min_repeat_ms)

    @contextmanager
    def runs(self, *positional: object, **keywords: object) -> Generator[SecondsOf]:
        """Yield times of runs on arguments that are checked once."""
        yield native_runs(self._caller, positional, keywords)

    def __repr__(self) -> str:
        return f"<weft function {self.signature}>"


class DonatingFunction(Function):
    """Calls return overwritten arguments together with the allocated results."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self._results = [arg.name for arg in self.signature.result_specs]
        self._places = {arg.name: at for at, arg in enumerate(self.signature.args)}

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        made = self._caller.call(*positional, **keywords)
        results = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else (made,)
        found = dict(zip(self._results, results, strict=False))
        if made is None and self._results:
            found = {name: self._given(name, positional, keywords) for name in self._results}
        names = self.signature.returned
        return returned(tuple(found[n] if n in found else self._given(n, positional, keywords) for n in names))

    def _given(self, name: str, positional: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return keywords[name] if name in keywords else positional[self._places[name]]


class CheckedFunction(Function):
    """A call that divides by zero or leaves bounds raises `ZeroDivisionError`, `IndexError` or `ValueError` at its end;
    it skips such accesses and clamps such sizes."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self._places = caller.signature.bounds_log
        self.signature = replace(caller.signature, args=caller.signature.args[1:], bounds_log=())

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        with self._log() as log:
            return self._caller.call(log, *positional, **keywords)

    @contextmanager
    def runs(self, *positional: object, **keywords: object) -> Generator[SecondsOf]:
        with self._log() as log:
            yield native_runs(self._caller, (log, *positional), keywords)

    @contextmanager
    def _log(self) -> Generator[Array]:
        log = np.zeros((len(self._places), 3), np.int64)
        yield log
        for text, (failed, index, extent) in zip(self._places, log.tolist(), strict=True):
            if failed == BY_ZERO:
                raise ZeroDivisionError(f"{self.name}: {text}")
            if failed == BAD_SIZE:
                raise ValueError(f"{self.name}: {text} is {index}, outside of 0 .. {extent}")
            if failed:
                raise IndexError(f"{self.name}: {text} is {index}, the extent is {extent}")


Run: TypeAlias = "Callable[[Sequence[Array | int]], None]"
"""Runs a function, given its parameters at low level: each array as a flat array (writable if the function writes it),
the bits of each scalar, and then the symbols."""


class CallableFunction(Function):
    def __init__(self, signature: Signature, run: Run) -> None:
        self.signature = signature
        self._run = run

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        bound = bind_arguments(self.signature, positional, keywords)
        arrays = bound.arrays
        self._run([memory_span(arrays[at]) if at in arrays else slot for at, slot in enumerate(bound.slots)])
        return returned(bound.results)

    def time_evaluator(self, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0.0) -> NoReturn:
        raise CompileError(f"'{self.name}' is run by Python: its time is not that of the processor it is for")

    def __repr__(self) -> str:
        return f"<weft function {self.signature}, run by Python>"


class Sources:
    """Texts by kind, derived on first use; the first is the default."""

    def __init__(self, texts: Mapping[str, str | Callable[[], str]], unknown: str = "unknown kind of source") -> None:
        self._texts = dict(texts)
        self._unknown = unknown

    def get_source(self, kind: str = "") -> str:
        """Raises `CompileError` for an unknown kind."""
        kind = kind or next(iter(self._texts))
        if kind not in self._texts:
            raise CompileError(f"{self._unknown} '{kind}'{did_you_mean(kind, self._texts)}")
        text = self._texts[kind]
        if not isinstance(text, str):
            text = self._texts[kind] = text()
        return text


@checked_methods
class Library:
    """Functions by name: `lib["f"](a, b)`. Given LLVM IR, they are compiled for this machine.

    `sources` maps kinds to texts for `get_source`; "ll" is the LLVM IR to compile. `symbols` are addresses of functions
    outside libm, libc and weft's runtime; exports compile in their `c_sources`. The code reads `constants` under
    external symbols, and calls `kernels`, precompiled functions without C sources. Raises `CompileError` if the code
    needs an unknown symbol or lacks a function of `signatures`.
    """

    timing: Stopwatch
    """Of each stage of the compilation: `print(lib.timing)`, `lib.timing.milliseconds`."""

    report_source: Callable[[], ReportSource | None] = staticmethod(lambda: None)
    """Source of reports, if the library is a model."""
    trace_source: Callable[[], tuple[sched.FuncOp, ...]] = tuple
    """Computes `traces` on first use."""

    target: Target
    _signatures: dict[str, Signature]
    _functions: dict[str, Function]
    """Libraries that load functions lazily override `_function`."""
    constants: Mapping[str, Array] = MappingProxyType({})
    """Large ones, read-only, by the symbols under which the code reads them."""
    _ir: str = ""
    """Exported together with the LLVM IR of the kernels."""
    _kernels: tuple[CompiledKernel, ...] = ()

    def __init__(
        self,
        sources: Mapping[str, str],
        signatures: Iterable[Signature],
        target: Target,
        symbols: Mapping[str, int] | None = None,
        options: CodegenOptions | None = None,
        stopwatch: Stopwatch | None = None,
        c_sources: Sequence[str] = (),
        constants: Mapping[str, Array] = MappingProxyType({}),
        kernels: Sequence[CompiledKernel] = (),
    ) -> None:
        if "ll" not in sources:
            raise CompileError(f"a library needs LLVM IR: a source 'll', got {sorted(sources)}")
        self._ir, self._c_sources, self._kernels = sources["ll"], tuple(c_sources), tuple(kernels)
        self._options = DEFAULT_OPTIONS if options is None else options
        derived = {
            **sources,
            "ll": self._linked_ir,
            "ll-opt": lambda: optimize_ir(self.get_source("ll"), target, self._options),
            "asm": lambda: assembly(self.get_source("ll"), target, self._options),
        }
        self._keep(target, signatures, derived, stopwatch)
        self.constants = MappingProxyType(dict(constants))
        self._symbols = {**(symbols or {}), **{name: array.ctypes.data for name, array in constants.items()}}
        self._load(self._symbols)

    def _keep(
        self,
        target: Target,
        signatures: Iterable[Signature],
        sources: Mapping[str, str | Callable[[], str]],
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self.target = target
        self.timing = stopwatch or Stopwatch()
        self._sources = Sources(sources)
        self._signatures = {signature.name: signature for signature in signatures}
        self._functions = {}
        self._reports: dict[str, Report] = {}
        """Reports with times."""

    def _load(self, symbols: Mapping[str, int]) -> None:
        with self.timing.measure("runtime"):
            texts = [self._ir, *(kernel.ir for kernel in self._kernels)]
            every_symbol = {**runtime_symbols(texts, self.target), **symbols}
        objects = [kernel.code for kernel in self._kernels]
        module = jit(self._ir, self.target, every_symbol, self._options, self.timing, objects)
        # Workers may need the interpreter while the caller waits for them.
        parallel, calls_registered = PARALLEL_FOR in every_symbol, CALL_REGISTERED in every_symbol
        with self.timing.measure("entries for Python"):
            for name, signature in self._signatures.items():
                address = module.address(symbol_name(name))
                caller = Caller(
                    signature,
                    address,
                    (module, self.constants),
                    always_release_gil=parallel,
                    calls_registered=calls_registered,
                )
                self._functions[name] = Function.make(caller)

    @property
    def own_ir(self) -> str | None:
        """Without kernels and constants; None for a library with C sources, or one without LLVM IR."""
        return self._ir if self._ir and not self._c_sources else None

    def _linked_ir(self) -> str:
        return linked_ir([self._ir, *(kernel.ir for kernel in self._kernels)])

    @cached_property
    def traces(self) -> tuple[sched.FuncOp, ...]:
        """The applied default schedules of functions and versions."""
        return self.trace_source()

    @property
    def trace(self) -> str:
        """Default schedules as IR, or "". Each replays on the original module, except those of versions for few
        iterations."""
        return "".join(str(trace) + "\n" for trace in self.traces)

    def __getitem__(self, name: str) -> Function:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a function is named by text, got {shown(name)}")
        if name not in self._signatures:
            raise UnknownFunctionError(f"the library has no function '{name}'{did_you_mean(name, self._signatures)}")
        return self._function(name)

    def _function(self, name: str) -> Function:
        return self._functions[name]

    def put_function(self, name: str, function: Function) -> None:
        """The signature must be the same."""
        self._functions[name] = function

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __contains__(self, name: object) -> bool:
        return name in self._signatures

    def time_evaluator(self, name: str, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0.0) -> TimeEvaluator:
        """Measure the function `name`: `lib.time_evaluator("f", number=10)(a, b).median` is in seconds."""
        return self[name].time_evaluator(number, repeat, min_repeat_ms)

    def report(self, name: str | None = None) -> Report:
        """Returns a table of the kernels of a function: operators, calls, bytes of constants, arithmetic, memory
        traffic, and after `profile` times.

            print(lib.report())

        Raises `CompileError` for a library without kernels, and if several functions call kernels and none is named.
        """
        from weft.runtime.kernel_report import report_from  # start-up: 8 ms

        source, name = self._reported(name)
        return self._reports.get(name) or report_from(source, name, None)

    def profile(self, name: str, *arguments: object, runs: int = 10, **keywords: object) -> Report:
        """Measure the kernels of a function in `runs` calls on arguments that are checked once. Later reports include
        the medians.

            print(lib.profile("main", x))

        Raises `CompileError` for a library without kernels, and as the call does.
        """
        from weft.runtime.kernel_report import report_from  # start-up: 8 ms

        if runs < 1:
            raise ValueError(f"profile: runs: expected at least 1, got {runs}")
        signature = self[name].signature
        source, name = self._reported(name)
        times, bound = self._kernel_times(signature, source.rows(name, None), (arguments, keywords), runs)
        shapes = {signature.args[at].name: array.shape for at, array in bound.arrays.items()}
        report = report_from(source, name, shapes)
        report = replace(report.timed(times.seconds, times.calls, times.total), peaks=source.peaks())
        self._reports[name] = report
        return report

    def write_trace(self, path: str | Path, name: str, *arguments: object, runs: int = 3, **keywords: object) -> None:
        """Write a trace of the build, and of `runs` calls, for Perfetto (ui.perfetto.dev) or chrome://tracing: stages
        and passes, kernels, and chunks of parallel loops by thread. Calls of devices and of C code are traced as a
        whole.

            lib.write_trace("trace.json", "main", x)

        Raises `OSError`, and as the call does.
        """
        from weft.runtime.kernel_times import kernel_times, timed_calls  # start-up: 6 ms
        from weft.runtime.trace_events import trace_events  # start-up: 1 ms

        if runs < 1:
            raise ValueError(f"write_trace: runs: expected at least 1, got {runs}")
        function, call = self[name], (arguments, keywords)
        source = self._report_source
        rows = source.rows(name, None) if source is not None and name in source.functions() else ()
        if self._ir:
            signature, options = function.signature, self._options
            texts = (self._ir, self._kernels, self.target, self._symbols, options)
            events = kernel_times(signature, *texts, call, runs, traced=True).runs
        else:
            events = timed_calls(name, function, call, runs)
        write_output(Path(path), json.dumps(trace_events(self.timing.spans, events, rows)) + "\n")

    def _kernel_times(
        self,
        signature: Signature,
        rows: Sequence[KernelRow],
        call: tuple[Sequence[object], Mapping[str, object]],
        runs: int,
    ) -> tuple[KernelTimes, BoundArguments]:
        from weft.runtime.kernel_times import kernel_times  # start-up: 6 ms

        times = kernel_times(signature, self._ir, self._kernels, self.target, self._symbols, self._options, call, runs)
        return times, bind_arguments(signature, *call)

    @cached_property
    def _report_source(self) -> ReportSource | None:
        return self.report_source()

    @property
    def has_report(self) -> bool:
        """Whether the library is a model, whose kernels `report` and `profile` cover."""
        return self._report_source is not None

    def _reported(self, name: str | None) -> tuple[ReportSource, str]:
        if self._report_source is None:
            raise CompileError(
                "reports are of models for llvm and GPUs, whose functions call private ones: time_evaluator measures "
                "functions"
            )
        names = self._report_source.functions()
        if name is None and len(names) != 1:
            raise CompileError(f"report: several functions call kernels, name one: {', '.join(names)}")
        if name is not None and name not in names:
            raise CompileError(f"report: @{name} calls no kernels{did_you_mean(name, names)}")
        return self._report_source, name or names[0]

    def get_source(self, kind: str = "") -> str:
        """Returns the program as text; the first kind is the default.

        For LLVM: "ll" (LLVM IR as emitted), "ll-opt" (after LLVM's optimiser), "asm"; for C: "c", "h" (its header); for
        kernels: "cuda", "opencl" or "metal", "host" (the LLVM IR that launches them), and "ptx" (NVRTC's output for the
        target's architecture); also the kinds of `sources`. Raises `CompileError` for an unknown kind, and for "ptx"
        without NVRTC.
        """
        return self._sources.get_source(kind)

    def export(
        self,
        path: str | Path,
        kind: str | None = None,
        *,
        compiler: str = "",
        weights: str | Path | None = None,
    ) -> Path:
        """Write the program for use without Python; returns the path.

            lib.export("mm.o")      an object: needs libc, libm, POSIX threads        kind "object"
            lib.export("libmm.so")  a shared library, which `weft.load` loads back    kind "shared"
            lib.export("libmm.a")   a static library                                  kind "archive"
            lib.export("mm.h")      the C header (`docs/c-abi.md` has the rules)      kind "header"
            lib.export("mm.ll"), lib.export("mm.s")                                   kinds "ll", "asm"

            lib.export("libmodel.so", weights="model.weights")  # large constants in a separate file

        The suffix determines the default kind. Programs with `weights` read the file before the first call
        (`weft_load_weights`, `weft.load(path, weights=...)`). `compiler`, by default the system's, links shared
        libraries. Raises `CompileError` for an unknown kind, a missing compiler or folder, and a failed link.
        """
        from weft.runtime.export.program import Program  # start-up: 200 ms

        if not self._ir:
            raise CompileError(f"a library for {self.target.kind} cannot be exported; one for llvm can")
        signatures = tuple(self._signatures.values())
        program = Program(
            self._ir, signatures, self.target, self._options, self._c_sources, self.constants, self._kernels
        )
        return program.export(path, kind, compiler=compiler, weights=weights)

    def export_library(self, path: str | Path, *, compiler: str = "") -> Path:
        return self.export(path, compiler=compiler)

    def __repr__(self) -> str:
        return f"<weft library for {self._place()}: {', '.join(map(str, self._signatures.values()))}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return table_bundle(f"weft library for {self._place()}", ("function", "arguments", "memory"), self._rows())

    def _rows(self) -> list[tuple[str, str, str]]:
        from weft.runtime.kernel_report import report_from  # start-up: 8 ms

        rows: list[tuple[str, str, str]] = []
        source = self._report_source
        reported = () if source is None else source.functions()
        for name, signature in self._signatures.items():
            memory = "-"
            if source is not None and name in reported:
                report = report_from(source, name, None)
                memory = f"constants {bytes_text(sum(row.constant_bytes for row in report.rows))}"
                if report.temporary_bytes is not None:
                    memory += f", temporaries {bytes_text(report.temporary_bytes)}"
                elif report.temporary_formula:
                    memory += f", temporaries {report.temporary_formula} B"
            rows.append((name, ", ".join(map(str, signature.args)), memory))
        return rows

    def _place(self) -> str:
        return str(self.target)


class ForeignLibrary(Library):
    """A library for a CPU with features that this one lacks: it can be exported, but requesting a function raises
    `CompileError`."""

    def _load(self, symbols: Mapping[str, int]) -> None:
        """Left to the export."""

    def _function(self, name: str) -> NoReturn:
        raise CompileError(f"'{name}': {self.target.obstacle}; export it")

    def _place(self) -> str:
        return f"{self.target}, to export"


class CallableLibrary(Library):
    """The library of a backend that runs its output, `sources` by kind; the first is the default."""

    def __init__(self, functions: Mapping[Signature, Run], sources: Mapping[str, str], target: Target) -> None:
        if not sources:
            raise CompileError(f"a library for {target.kind} holds what was emitted for it")
        self._keep(target, functions, sources)
        self._functions = {signature.name: CallableFunction(signature, run) for signature, run in functions.items()}

    def _place(self) -> str:
        return f"{self.target.kind}, run by Python"
