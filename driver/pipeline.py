"""The state of a build: the program with its options, and the kernels of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from weft.dialects import sched
from weft.dialects.traversal import copy_of
from weft.driver.traces import name_function, parse_trace
from weft.runtime.compile_cache import CompileCache, CompiledKernel
from weft.runtime.kernel_report import ReportSource
from weft.support.build_options import DEFAULT_OPTIONS, BuildOptions
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target

_SYMBOL_LETTERS: Final = 20
"""Digits of a key in a symbol: 80 bits."""


@dataclass
class ModelKernel:
    """Equal functions of a module, compiled as one kernel."""

    key: str
    functions: list[FuncOp]
    """The functions, as they are in the program."""
    needed: list[Operation]
    """The globals and declarations that the first function refers to."""
    compiled: CompiledKernel | None = None
    declaration: FuncOp | None = None
    """The declaration at low level in the calling module."""

    @property
    def symbol(self) -> str:
        return f"kernel_{self.key[:_SYMBOL_LETTERS]}"

    def unit(self) -> ModuleOp:
        """A module with copies of the first function and of the operations that it needs."""
        return ModuleOp([copy_of(op) for op in (self.functions[0], *self.needed)])

    def traces(self) -> Iterator[sched.FuncOp]:
        for text in self.compiled.traces if self.compiled is not None else ():
            for function in self.functions:
                yield _trace_for(text, function.sym_name.data)


@dataclass(frozen=True)
class Pipeline:
    """A program and its options. A stage lowers its module in place, and returns it with its results."""

    module: ModuleOp
    target: Target
    options: BuildOptions = DEFAULT_OPTIONS
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    cache: CompileCache | None = None
    """The cache, which contains kernels that were compiled before."""
    kernels: Sequence[ModelKernel] = ()
    """The separately compiled kernels."""
    traces: Sequence[sched.FuncOp] = ()
    """The tuned and default schedules of the other functions."""
    report: ReportSource | None = None
    """Describes the kernels of a model."""


def _trace_for(text: str, name: str) -> sched.FuncOp:
    trace = parse_trace(text)
    origin = trace.sym_name.data.partition("_")[0]
    trace.sym_name = StringAttr(f"{origin}_{name}")
    name_function(trace, name)
    return trace
