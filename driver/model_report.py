"""The work of a model's kernels before scheduling, for `lib.report()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.memref import AllocOp, CastOp, DimOp, GetGlobalOp, GlobalOp
from xdsl.ir import SSAValue

from weft.dialects.arena import ARENA_BYTES, arena_sizes, planned_bytes
from weft.dialects.element_types import bytes_of
from weft.dialects.graph_shapes import Extent, KnownExtent, ShapeError, add, choose, multiply, parse_extent, show_extent
from weft.dialects.low import params_of
from weft.dialects.low_access import AccessMode
from weft.dialects.low_registered import CallRegisteredOp
from weft.dialects.tir import BlockOp
from weft.dialects.traversal import copy_of, operations_in, operations_of
from weft.driver.kernel_functions import find_kernels
from weft.driver.peaks import quick_peaks
from weft.driver.pipeline import ModelKernel, Pipeline
from weft.driver.work_formulas import SymbolicFunction, number_of
from weft.passes.tir.flat_signature import ParameterAccesses
from weft.runtime.kernel_report import KernelRow, MachinePeaks
from weft.support.target import Target

Shapes: TypeAlias = "Mapping[str, Sequence[int] | int] | None"


@dataclass
class _Use:
    kernel: ModelKernel
    calls: int = 0
    flops: KnownExtent | None = 0
    moved: KnownExtent | None = 0
    constants: set[str] = field(default_factory=set[str])

    def add(self, times: KnownExtent, callee: SymbolicFunction) -> None:
        self.calls += number_of(times)
        try:
            self.flops = _sum(self.flops, callee.flops(), times)
            self.moved = _sum(self.moved, callee.moved_bytes(_read(self.kernel)), times)
        except ShapeError:
            self.flops = self.moved = None


def _sum(total: KnownExtent | None, one: KnownExtent | None, times: KnownExtent) -> KnownExtent | None:
    return None if total is None or one is None else add(total, multiply(one, times))


def report_of(pipeline: Pipeline) -> ModelReport | None:
    """None unless kernels of a model are compiled together with their callers."""
    kernels = find_kernels(pipeline)
    if not kernels:
        return None
    report = ModelReport(pipeline.module, pipeline.target)
    report.taken(
        [replace(kernel, functions=[copy_of(function) for function in kernel.functions]) for kernel in kernels]
    )
    return report


class ModelReport:
    """A `ReportSource`: the functions that call kernels, and the kernels at tir level."""

    def __init__(self, module: ModuleOp, target: Target) -> None:
        """Takes a model before its kernels are removed, which `taken` then records."""
        self._target = target
        globals_ = [op for op in module.ops if isinstance(op, GlobalOp)]
        self._sizes = {op.sym_name.data: _size(op.type) for op in globals_}
        self._callers = {
            op.sym_name.data: copy_of(op)
            for op in module.ops
            if isinstance(op, FuncOp) and bool(operations_of(op, CallOp))
        }
        self._kernels: dict[str, ModelKernel] = {}
        self._functions: dict[str, FuncOp] = {}
        self._versions: dict[str, set[str]] = {}
        """Symbols of the versions of a kernel, by its symbol."""

    def taken(self, kernels: Sequence[ModelKernel], versions: Mapping[str, str] | None = None) -> None:
        """Record which functions are kernels, and of which kernels `versions` are versions, by name."""
        for kernel in kernels:
            for function in kernel.functions:
                self._kernels[function.sym_name.data] = kernel
                self._functions[function.sym_name.data] = function
        for version, name in (versions or {}).items():
            if version in self._kernels and name in self._kernels:
                symbols = self._versions.setdefault(self._kernels[name].symbol, set())
                symbols.add(self._kernels[version].symbol)
            elif version in self._kernels:  # all calls have few iterations
                self._kernels[name], self._functions[name] = self._kernels[version], self._functions[version]

    def functions(self) -> Sequence[str]:
        """The functions that call kernels and are not called by others."""
        called = {
            op.callee.string_value()
            for function in self._callers.values()
            for op in operations_in(function)
            if isinstance(op, CallOp)
        }
        return [name for name in self._callers if name not in called]

    def rows(self, name: str, shapes: Shapes) -> Sequence[KernelRow]:
        uses: dict[str, _Use] = {}
        self._count(SymbolicFunction.of_entry(self._callers[name], shapes), 1, uses)
        found: list[KernelRow] = []
        for symbol, use in uses.items():
            names = tuple(function.sym_name.data for function in use.kernel.functions)
            size = sum(self._sizes.get(constant) or 0 for constant in use.constants)
            row = KernelRow(symbol, names, _labels(use.kernel.functions[0]), use.calls, size)
            row = replace(row, versions=tuple(self._versions.get(symbol, ())))
            found.append(_with_work(row, use.flops, use.moved))
        return found

    def temporary_formula(self, name: str) -> str:
        """The bytes of an arena in symbols of its function; empty if it has none."""
        return _sum_of_greatest(arena_sizes(self._callers[name]))

    def registered(self, name: str) -> Sequence[str]:
        """The registered functions that a function calls, each once."""
        called: dict[str, None] = {}
        pending, seen = [name], {name}
        while pending:
            for op in operations_in(self._callers[pending.pop()]):
                if isinstance(op, CallRegisteredOp):
                    called[op.callee.data] = None
                elif isinstance(op, CallOp) and (inner := op.callee.string_value()) in self._callers.keys() - seen:
                    pending.append(inner)
                    seen.add(inner)
        return list(called)

    def _count(self, caller: SymbolicFunction, times: KnownExtent, uses: dict[str, _Use]) -> None:
        for op, callee, count in caller.calls(self._find):
            kernel = self._kernels.get(op.callee.string_value())
            number = multiply(times, count)
            if kernel is None:
                self._count(callee, number, uses)
                continue
            use = uses.setdefault(kernel.symbol, _Use(kernel))
            use.add(number, callee)
            use.constants.update(filter(None, map(_constant, op.arguments)))

    def _find(self, name: str) -> FuncOp | None:
        return self._functions.get(name) or self._callers.get(name)

    def temporary_bytes(self, name: str, shapes: Shapes) -> int | None:
        """The bytes of the arena, else of all allocations; None if extents are unknown."""
        function = self._callers[name]
        symbolic = SymbolicFunction.of_entry(function, shapes)
        try:
            if ARENA_BYTES in function.attributes:
                dims = [op.result for op in operations_in(function) if isinstance(op, DimOp)]
                extents = {dim.name_hint: number for dim in dims if isinstance(number := symbolic.extent(dim), int)}
                return planned_bytes(function, {name: number for name, number in extents.items() if name})
            allocated = [op.memref for op in operations_in(function) if isinstance(op, AllocOp)]
            sizes = [_size(buffer.type, symbolic.shape(buffer) or ()) for buffer in allocated]
        except (KeyError, ShapeError):
            return None
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def peaks(self) -> MachinePeaks | None:
        """The peak rates of the machine, measured on first use; None for devices."""
        return None if self._target.has_kernels else quick_peaks(self._target)


def _size(type_: object, shape: Sequence[KnownExtent] | None = None) -> int | None:
    if not isinstance(type_, MemRefType):
        return None
    extents = [extent for extent in (type_.get_shape() if shape is None else shape) if isinstance(extent, int)]
    is_known = len(extents) == len(type_.get_shape()) and min(extents, default=0) >= 0
    return prod(extents) * bytes_of(type_.element_type) if is_known else None


def _sum_of_greatest(buffers: Sequence[Sequence[str]]) -> str:
    """The sum of the greatest extent of each list, not simplified if it has too many factors; empty for no lists."""
    total: Extent = 0
    try:
        for sizes in buffers:
            total = add(total, reduce(partial(choose, "max"), map(parse_extent, sizes)))
    except ShapeError:
        return " + ".join(f"max({', '.join(sizes)})" if len(sizes) > 1 else f"({sizes[0]})" for sizes in buffers)
    return show_extent(total) if buffers else ""


def _labels(function: FuncOp) -> tuple[str, ...]:
    blocks = (op.label for op in operations_in(function) if isinstance(op, BlockOp))
    return tuple(dict.fromkeys(blocks))


def _read(kernel: ModelKernel) -> set[int]:
    function = kernel.functions[0]
    params = () if kernel.declaration is None else params_of(kernel.declaration)
    if len(params) != len(function.args):
        return _read_parameters(function)
    return {at for at, param in enumerate(params) if param.access.data is not AccessMode.WRITE}


def _read_parameters(function: FuncOp) -> set[int]:
    known = ParameterAccesses()
    return {at for at in range(len(function.args)) if known.of(function, at) is not AccessMode.WRITE}


def function_row(function: FuncOp, shapes: Shapes = None) -> KernelRow:
    """A call of a tir function that calls no other, with arguments of these shapes."""
    name = function.sym_name.data
    row = KernelRow(name, (name,), _labels(function), 1, 0, None, None)
    symbolic = SymbolicFunction.of_entry(function, shapes)
    try:
        return _with_work(row, symbolic.flops(), symbolic.moved_bytes(_read_parameters(function)))
    except ShapeError:
        return row


def _with_work(row: KernelRow, flops: KnownExtent | None, moved: KnownExtent | None) -> KernelRow:
    numbers = [work if isinstance(work, int) else None for work in (flops, moved)]
    texts = ["" if work is None or isinstance(work, int) else show_extent(work) for work in (flops, moved)]
    return replace(row, flops=numbers[0], moved_bytes=numbers[1], flops_formula=texts[0], bytes_formula=texts[1])


def _constant(value: SSAValue) -> str | None:
    while isinstance(value.owner, CastOp):
        value = value.owner.source
    return value.owner.name_.string_value() if isinstance(value.owner, GetGlobalOp) else None
