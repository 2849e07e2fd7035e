"""Kernels and the limits of the machine: the roofline model (Williams, Waterman and Patterson, 2009)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from xdsl.dialects.builtin import MemRefType

from weft.driver.build import build_module
from weft.driver.model_report import function_row, report_of
from weft.driver.peaks import quick_peaks
from weft.driver.pipeline import Pipeline
from weft.driver.workloads import tasks_of
from weft.interp.arguments import needs_positive
from weft.passes.module_edits import entry_function, functions_of
from weft.support.errors import CompileError
from weft.tools.arrays import Request, make_arguments
from weft.tools.show.report import Roofline

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from weft.runtime.kernel_report import KernelRow
    from weft.support.build_options import BuildOptions
    from weft.support.target import Target

BYTES_NOTE: Final = "Bytes are those that a kernel reads and writes at least: each element of its arguments once."
_BUDGET: Final = 5.0
"""Seconds of measured runs, unless a single run takes longer."""
_RUNS: Final = 10
_REPEATS: Final = 5
_REPEAT_MS: Final = 20.0
"""Maximum number of runs of a model, and of repeats of a function, with the least milliseconds of a repeat."""
NO_KERNELS: Final = Roofline((), None, "The lowering ended before there were kernels.")


def roofline_of(
    module: ModuleOp, target: Target, options: BuildOptions, extent: int | None, *, with_peaks: bool
) -> Roofline:
    """Returns kernels without times. `extent` is that of dynamic dimensions of arguments."""
    source, entries = report_of(Pipeline(module, target, options)), functions_of(module)
    rows: list[KernelRow] = []
    if source is not None:
        for name in source.functions():
            rows.extend(source.rows(name, None if extent is None else _shapes(entries[name], extent)))
    in_models = {name for row in rows for name in row.names}
    alone = [task.function for task in tasks_of(module) if task.function.sym_name.data not in in_models]
    return with_limits([*rows, *map(function_row, alone)], target, measure=with_peaks)


def _shapes(function: FuncOp, extent: int) -> dict[str, Sequence[int]]:
    return {
        argument.name_hint: [extent if known < 0 else known for known in argument.type.get_shape()]
        for argument in function.body.block.args
        if argument.name_hint and isinstance(argument.type, MemRefType)
    }


def with_limits(rows: Iterable[KernelRow], target: Target, *, measure: bool) -> Roofline:
    """Measure the limits of this machine if it is the target."""
    if target.kind != "llvm" or target.obstacle:
        return Roofline(tuple(rows), None, f"{BYTES_NOTE} The limits of the target are not known.")
    if not measure:
        return Roofline(tuple(rows), None, BYTES_NOTE)
    threads = f"{target.num_threads} thread{'s' * (target.num_threads > 1)}"
    note = f"{BYTES_NOTE} The limits of this machine were measured when the page was made, with {threads}."
    return Roofline(tuple(rows), quick_peaks(target), note)


def measured(
    roofline: Roofline,
    program: ModuleOp,
    target: Target,
    options: BuildOptions,
    name: str | None,
) -> Roofline:
    """Add times of runs on random arguments, whose unspecified sizes are close to 1. Raises `CompileError`, also if the
    target is not this CPU."""
    if target.kind != "llvm" or target.obstacle:
        raise CompileError(f"--time measures programs for this CPU, got the target '{target}'")
    function = entry_function(program, name)
    symbol = function.sym_name.data
    library = build_module(program, target, options)
    signature = library[symbol].signature
    values = make_arguments(signature, Request({}, 0, needs_positive(program)))
    once = library.time_evaluator(symbol, number=1, repeat=1)(*values.values()).min
    if library.has_report:
        runs = max(1, min(_RUNS, int(_BUDGET / once)))
        rows = library.profile(symbol, *values.values(), runs=runs).rows
    else:
        repeat = max(1, min(_REPEATS, int(_BUDGET / max(once, _REPEAT_MS / 1e3))))
        seconds = library.time_evaluator(symbol, 1, repeat, _REPEAT_MS)(*values.values()).min
        rows = tuple(replace(row, seconds=seconds) if symbol in row.names else row for row in roofline.rows)
    return replace(roofline, rows=rows, note=f"{roofline.note} Times are of random arguments, with warm caches.")
