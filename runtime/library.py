"""Compiled programs: a `Library` is a module of native functions that Python can call by name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.runtime.call import Caller
from weft.runtime.signature import Signature
from weft.runtime.timing import BenchmarkResult, TimeEvaluator
from weft.support.argument_types import checked_argument, checked_methods, shown
from weft.support.errors import CompileError, did_you_mean
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from weft.backends.llvm.compile import CodegenOptions
    from weft.backends.llvm.jit import JitModule
    from weft.dialects import sched
    from weft.runtime.export.program import Program


class UnknownFunctionError(CompileError, KeyError):
    """A library was asked for a function that it does not have."""


@checked_methods()
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
    def signature(self) -> Signature:
        return self._caller.signature

    @property
    def name(self) -> str:
        return self.signature.name

    def time_evaluator(self, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0.0) -> TimeEvaluator:
        """Call the result with the function's arguments to measure it, see `TimeEvaluator`."""
        return TimeEvaluator(self._caller, number, repeat, min_repeat_ms)

    def __repr__(self) -> str:
        return f"<weft function {self.signature}>"


class CheckedFunction(Function):
    """A function whose accesses outside of their arrays are left out and logged: then its call raises `IndexError`."""

    @property
    def signature(self) -> Signature:
        with_log = self._caller.signature
        return replace(with_log, args=with_log.args[1:], bounds_log=())

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        log = self._new_log()
        results = self._caller.call(log, *positional, **keywords)
        self._raise_logged(log)
        return results

    def time_evaluator(self, number: int = 10, repeat: int = 3, min_repeat_ms: float = 0.0) -> TimeEvaluator:
        function, log = self, self._new_log()

        class CheckedEvaluator(TimeEvaluator):
            def __call__(self, *positional: object, **keywords: object) -> BenchmarkResult:
                log.fill(0)
                result = super().__call__(log, *positional, **keywords)
                function._raise_logged(log)
                return result

        return CheckedEvaluator(self._caller, number, repeat, min_repeat_ms)

    def _new_log(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        return np.zeros((len(self._caller.signature.bounds_log), 3), np.int64)

    def _raise_logged(self, log: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> None:
        for text, (failed, index, extent) in zip(self._caller.signature.bounds_log, log.tolist(), strict=True):
            if failed:
                raise IndexError(f"{self.name}: {text} is {index}, the extent is {extent}")


SOURCE_KINDS: Final = ("ll", "ll-opt", "asm")


@checked_methods()
class Library:
    """Functions compiled for this machine.

    `sources` holds what was generated, by kind: "ll", the LLVM IR that is compiled, and any other text that
    `get_source` should give back. `symbols` are addresses of what the code calls beyond libm, libc and weft's
    own runtime. Raises `CompileError` when the code needs an unknown symbol or lacks a function of
    `signatures`. `c_sources` are C sources that `symbols` come from, which exports compile in.
    """

    timing: Stopwatch
    """How long each stage of the compilation took: `print(lib.timing)`, `lib.timing.milliseconds`."""

    traces: tuple[sched.FuncOp, ...] = ()
    """The default schedules that were applied, one for each function that got one."""

    target: Target
    _signatures: dict[str, Signature]
    """The functions by name; kinds of libraries that get at them in other ways override `_function`."""

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
        from weft.backends.llvm.compile import DEFAULT_OPTIONS, CodegenOptions
        from weft.backends.llvm.jit import jit
        from weft.backends.names import symbol_name

        checked_argument(type(self).__name__, "options", CodegenOptions | None, options)
        if "ll" not in sources:
            raise CompileError(f"a library needs LLVM IR: a source 'll', got {sorted(sources)}")
        self.target = target
        self.timing = stopwatch or Stopwatch()
        self._sources = dict(sources)
        self._c_sources = tuple(c_sources)
        self._options = DEFAULT_OPTIONS if options is None else options
        self._signatures = {signature.name: signature for signature in signatures}
        text = self._sources["ll"]
        with self.timing.measure("runtime"):
            every_symbol = {**runtime_symbols(text, target), **(symbols or {})}
        self._module: JitModule = jit(text, target, every_symbol, self._options, self.timing)
        lap = self.timing.laps()
        parallel = "weft_parallel_for" in every_symbol
        self._functions = {
            name: Function.make(
                Caller(
                    signature,
                    self._module.address(symbol_name(name)),
                    self._module,
                    # Workers may need the interpreter while the caller waits for them.
                    always_release_gil=parallel,
                )
            )
            for name, signature in self._signatures.items()
        }
        lap("entries for Python")

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

    def get_source(self, kind: str = "ll") -> str:
        """The program as "ll" (LLVM IR as emitted), "ll-opt" (after LLVM's optimiser), "asm", or another kind
        that the library was made with. Raises `CompileError` for an unknown kind."""
        if kind not in self._sources:
            self._sources[kind] = self._derived_source(kind)
        return self._sources[kind]

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
        return self._exported().export(path, kind, compiler=compiler)

    def export_library(self, path: str | Path, *, compiler: str = "") -> Path:
        """Another name of `export`."""
        return self.export(path, compiler=compiler)

    def _exported(self) -> Program:
        from weft.runtime.export.program import Program

        if "ll" not in getattr(self, "_sources", {}):
            raise CompileError(f"a library for {self.target.kind} cannot be exported; one for llvm can")
        return Program(
            self._sources["ll"], tuple(self._signatures.values()), self.target, self._options, self._c_sources
        )

    def _derived_source(self, kind: str) -> str:
        from weft.backends.llvm.compile import assembly, optimize_ir

        if kind == "ll-opt":
            return optimize_ir(self._sources["ll"], self.target, self._options)
        if kind == "asm":
            return assembly(self._sources["ll"], self.target, self._options)
        raise CompileError(f"unknown kind of source '{kind}'{did_you_mean(kind, {*SOURCE_KINDS, *self._sources})}")

    def __repr__(self) -> str:
        return f"<weft library for {self._place()}: {', '.join(map(str, self._signatures.values()))}>"

    def _place(self) -> str:
        """What the functions are for, or where they run, for people."""
        return str(self.target)


def runtime_symbols(text: str, target: Target) -> dict[str, int]:
    """The addresses of those parts of weft's runtime that `text` declares; each part is compiled on first
    use."""
    from weft.runtime import memory, threads

    declared = set(re.findall(r"^\s*declare\b[^@\n]*@(weft_\w+)", text, re.MULTILINE))
    found: dict[str, int] = {}
    if declared & set(memory.SYMBOLS):
        found.update(memory.symbol_addresses())
    if threads.SYMBOL in declared:
        found[threads.SYMBOL] = threads.parallel_for_address(target.num_threads)
    return found
