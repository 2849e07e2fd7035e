"""Compiled programs: a `Library` is a module of native functions that Python can call by name."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from weft.backends.llvm.compile import DEFAULT_OPTIONS, CodegenOptions, assembly, optimize_ir
from weft.backends.llvm.jit import jit
from weft.backends.names import symbol_name
from weft.runtime.call import Caller
from weft.runtime.native_runtime import PARALLEL_FOR, runtime_symbols
from weft.runtime.timing import TimeEvaluator, native_runs
from weft.support.argument_types import checked_methods, shown
from weft.support.call_arguments import bind_arguments, memory_span, returned
from weft.support.call_signature import Signature
from weft.support.errors import CompileError, did_you_mean
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from weft.dialects import sched
    from weft.runtime.timing import SecondsOf
    from weft.support.call_arguments import Array


class UnknownFunctionError(CompileError, KeyError):
    """The library has no function of that name."""


@checked_methods
class Function:
    """A compiled function.

    Call it with NumPy arrays, anything that offers DLPack or the buffer protocol, and numbers, in order or by
    name. Results (arrays that are only written, last in the signature) may be left out and are then returned.
    Raises `TypeError` and `ValueError` that name the argument. Ctrl-C leaves a call that takes long (2^30 iterations or
    64 MiB of arrays, and more) at once; native code cannot be stopped, so it goes on in the background, on the arrays.
    A call that writes only empty arrays does nothing.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.signature: Signature = caller.signature

    @staticmethod
    def make(caller: Caller) -> Function:
        """A function whose call goes straight to native code: Python looks `__call__` up in the class, so
        each function has a class of its own, which holds the native entry. It halves the cost of a call."""
        if caller.signature.bounds_log:
            return CheckedFunction(caller)
        kind: type[Function] = type("Function", (Function,), {"__call__": caller.call, "__doc__": Function.__doc__})
        return kind(caller)

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        return self._caller.call(*positional, **keywords)

    @property
    def name(self) -> str:
        return self.signature.name

    def time_evaluator(self, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0.0) -> TimeEvaluator:
        """Call the result with the function's arguments to measure it, see `TimeEvaluator`."""
        return TimeEvaluator(self.name, self._runs, number, repeat, min_repeat_ms)

    @contextmanager
    def _runs(self, *positional: object, **keywords: object) -> Generator[SecondsOf]:
        """Runs of the function on arguments that are checked once, and their times."""
        yield native_runs(self._caller, positional, keywords)

    def __repr__(self) -> str:
        return f"<weft function {self.signature}>"


class CheckedFunction(Function):
    """A function whose accesses outside of their arrays are left out and logged: then its call raises `IndexError`."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self._places = caller.signature.bounds_log
        self.signature = replace(caller.signature, args=caller.signature.args[1:], bounds_log=())

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        with self._log() as log:
            return self._caller.call(log, *positional, **keywords)

    @contextmanager
    def _runs(self, *positional: object, **keywords: object) -> Generator[SecondsOf]:
        with self._log() as log:
            yield native_runs(self._caller, (log, *positional), keywords)

    @contextmanager
    def _log(self) -> Generator[Array]:
        """The log of the accesses of a call. Raises `IndexError` for the first one outside of its array."""
        log = np.zeros((len(self._places), 3), np.int64)
        yield log
        for text, (failed, index, extent) in zip(self._places, log.tolist(), strict=True):
            if failed:
                raise IndexError(f"{self.name}: {text} is {index}, the extent is {extent}")


Run: TypeAlias = "Callable[[Sequence[Array | int]], None]"
"""Runs a function. It gets the memory of each array as a flat array (writable where the function writes), the bits
of each scalar, and then the symbols: the parameters of the function at low level."""


class CallableFunction(Function):
    """A function that Python runs, on arguments that were checked as everywhere."""

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
    """Texts of a program by kind; the first is the default. Derived texts are computed on first use."""

    def __init__(self, texts: Mapping[str, str | Callable[[], str]], unknown: str = "unknown kind of source") -> None:
        self._texts = dict(texts)
        self._unknown = unknown

    def get_source(self, kind: str = "") -> str:
        """The text of a kind. Raises `CompileError` for an unknown one."""
        kind = kind or next(iter(self._texts))
        if kind not in self._texts:
            raise CompileError(f"{self._unknown} '{kind}'{did_you_mean(kind, self._texts)}")
        text = self._texts[kind]
        if not isinstance(text, str):
            text = self._texts[kind] = text()
        return text


@checked_methods
class Library:
    """Functions by name: `lib["f"](a, b)`. Made of LLVM IR, they are compiled for this machine.

    `sources` holds what was generated, by kind: "ll", the LLVM IR that is compiled, and any other text that
    `get_source` should give back. `symbols` are addresses of what the code calls beyond libm, libc and weft's
    own runtime. Raises `CompileError` when the code needs an unknown symbol or lacks a function of
    `signatures`. `c_sources` are C sources that `symbols` come from, which exports compile in.
    """

    timing: Stopwatch
    """The time of each stage of the compilation: `print(lib.timing)`, `lib.timing.milliseconds`."""

    traces: tuple[sched.FuncOp, ...] = ()
    """The default schedules that were applied, one for each function that got one."""

    target: Target
    _signatures: dict[str, Signature]
    _functions: dict[str, Function]
    """Those that are loaded; kinds of libraries that load them one by one override `_function`."""
    _ir: str = ""
    """The LLVM IR that is exported."""

    def __init__(
        self,
        sources: Mapping[str, str],
        signatures: Iterable[Signature],
        target: Target,
        symbols: Mapping[str, int] | None = None,
        options: CodegenOptions | None = None,
        stopwatch: Stopwatch | None = None,
        c_sources: Sequence[str] = (),
    ) -> None:
        if "ll" not in sources:
            raise CompileError(f"a library needs LLVM IR: a source 'll', got {sorted(sources)}")
        self._ir, self._c_sources = sources["ll"], tuple(c_sources)
        self._options = DEFAULT_OPTIONS if options is None else options
        derived = {
            "ll": self._ir,
            "ll-opt": lambda: optimize_ir(self._ir, target, self._options),
            "asm": lambda: assembly(self._ir, target, self._options),
        }
        self._keep(target, signatures, {**derived, **sources}, stopwatch)
        self._load(symbols or {})

    def _keep(
        self,
        target: Target,
        signatures: Iterable[Signature],
        sources: Mapping[str, str | Callable[[], str]],
        stopwatch: Stopwatch | None = None,
    ) -> None:
        """Initializes the fields of all kinds of libraries."""
        self.target = target
        self.timing = stopwatch or Stopwatch()
        self._sources = Sources(sources)
        self._signatures = {signature.name: signature for signature in signatures}
        self._functions = {}

    def _load(self, symbols: Mapping[str, int]) -> None:
        """Compile the functions into this process."""
        with self.timing.measure("runtime"):
            every_symbol = {**runtime_symbols(self._ir, self.target), **symbols}
        module = jit(self._ir, self.target, every_symbol, self._options, self.timing)
        # Workers may need the interpreter while the caller waits for them.
        parallel = PARALLEL_FOR in every_symbol
        with self.timing.measure("entries for Python"):
            for name, signature in self._signatures.items():
                address = module.address(symbol_name(name))
                self._functions[name] = Function.make(Caller(signature, address, module, always_release_gil=parallel))

    @property
    def trace(self) -> str:
        """The default schedules as IR; empty when there are none. Each replays on the original module."""
        return "".join(str(trace) + "\n" for trace in self.traces)

    def __getitem__(self, name: str) -> Function:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a function is named by text, got {shown(name)}")
        if name not in self._signatures:
            raise UnknownFunctionError(f"the library has no function '{name}'{did_you_mean(name, self._signatures)}")
        return self._function(name)

    def _function(self, name: str) -> Function:
        """A function that the library has."""
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __contains__(self, name: object) -> bool:
        return name in self._signatures

    def time_evaluator(self, name: str, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0.0) -> TimeEvaluator:
        """Measures the function `name`: `lib.time_evaluator("f", number=10)(a, b).median` is in seconds."""
        return self[name].time_evaluator(number, repeat, min_repeat_ms)

    def get_source(self, kind: str = "") -> str:
        """The program as text; what kinds there are depends on the target, the first is the default.

        Of LLVM: "ll" (LLVM IR as emitted), "ll-opt" (after LLVM's optimiser), "asm"; of C: "c", "h" (its header); of
        kernels: "cuda", "opencl" or "metal", "host" what launches them (LLVM IR), and "ptx" what NVRTC makes of CUDA
        for the target's architecture; besides, other kinds that the library was made with. Raises `CompileError` for
        an unknown kind, and for "ptx" when there is no NVRTC.
        """
        return self._sources.get_source(kind)

    def export(self, path: str | Path, kind: str | None = None, *, compiler: str = "") -> Path:
        """Write the program to a file, for use without Python; returns its path.

            lib.export("mm.o")      an object: needs libc, libm, POSIX threads        kind "object"
            lib.export("libmm.so")  a shared library, which `weft.load` loads back    kind "shared"
            lib.export("libmm.a")   a static library                                  kind "archive"
            lib.export("mm.h")      the C header (`docs/c-abi.md` has the rules)      kind "header"
            lib.export("mm.ll"), lib.export("mm.s")                                   kinds "ll", "asm"

        The suffix says the kind where none is given. `compiler` links shared libraries; it is the system's C compiler
        unless given. Raises `CompileError` for an unknown kind, a missing compiler or folder, or what cannot be linked.
        """
        from weft.runtime.export.program import Program

        if not self._ir:
            raise CompileError(f"a library for {self.target.kind} cannot be exported; one for llvm can")
        program = Program(self._ir, tuple(self._signatures.values()), self.target, self._options, self._c_sources)
        return program.export(path, kind, compiler=compiler)

    def export_library(self, path: str | Path, *, compiler: str = "") -> Path:
        """Another name of `export`."""
        return self.export(path, compiler=compiler)

    def __repr__(self) -> str:
        return f"<weft library for {self._place()}: {', '.join(map(str, self._signatures.values()))}>"

    def _place(self) -> str:
        """The target or device of the functions, for `repr`."""
        return str(self.target)


class ForeignLibrary(Library):
    """Functions for a CPU that has what this one lacks: compiled here, exported, and run there.

    All that a library has but calls: `get_source("asm")`, `export("f.o")`. Asking for a function raises `CompileError`.
    """

    def _load(self, symbols: Mapping[str, int]) -> None:
        """Nothing is compiled before it is exported."""

    def _function(self, name: str) -> NoReturn:
        raise CompileError(f"'{name}': {self.target.obstacle}; export it")

    def _place(self) -> str:
        return f"{self.target}, to export"


class CallableLibrary(Library):
    """Functions that Python runs: the library of a backend that has its own way to run what it emits.

    `sources` is what the backend emitted, by kind; the first is the default.
    """

    def __init__(self, functions: Mapping[Signature, Run], sources: Mapping[str, str], target: Target) -> None:
        if not sources:
            raise CompileError(f"a library for {target.kind} holds what was emitted for it")
        self._keep(target, functions, sources)
        self._functions = {signature.name: CallableFunction(signature, run) for signature, run in functions.items()}

    def _place(self) -> str:
        return f"{self.target.kind}, run by Python"
