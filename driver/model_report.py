"""What the kernels of a model do, read from the program before it was scheduled: the source of `lib.report()`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
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
from weft.dialects.traversal import copy_of, operations_in
from weft.driver.kernel_functions import find_kernels
from weft.driver.peaks import quick_peaks
from weft.driver.pipeline import ModelKernel, Pipeline
from weft.driver.work_formulas import SymbolicFunction
from weft.interp.arguments import ConcreteShapes, Work
from weft.passes.tir.flat_signature import ParameterAccesses
from weft.runtime.kernel_report import KernelRow, MachinePeaks
from weft.support.target import Target

Shapes: TypeAlias = "Mapping[str, Sequence[int] | int] | None"


@dataclass
class _Use:
    """A kernel in one call of a function, while calls are counted."""

    kernel: ModelKernel
    calls: int = 0
    flops: int | None = 0
    moved: int | None = 0
    constants: set[str] = field(default_factory=set[str])

    def add(self, times: int, flops: int | None, moved: int | None) -> None:
        self.calls += times
        self.flops = None if flops is None or self.flops is None else self.flops + times * flops
        self.moved = None if moved is None or self.moved is None else self.moved + times * moved


def report_of(pipeline: Pipeline) -> ModelReport | None:
    """The report of a model whose kernels are compiled with the functions that call them; None for other programs."""
    kernels = find_kernels(pipeline)
    if not kernels:
        return None
    report = ModelReport(pipeline.module, pipeline.target)
    # What comes next lowers them in place.
    report.taken(
        [replace(kernel, functions=[copy_of(function) for function in kernel.functions]) for kernel in kernels]
    )
    return report


class ModelReport:
    """A `ReportSource`: the functions of a model that call kernels, and the kernels, as tir."""

    def __init__(self, module: ModuleOp, target: Target) -> None:
        """Of a model whose kernels are in their places; `taken` tells afterwards which functions these were."""
        self._target = target
        globals_ = [op for op in module.ops if isinstance(op, GlobalOp)]
        self._sizes = {op.sym_name.data: _size(op.type) for op in globals_}
        self._callers = {
            op.sym_name.data: copy_of(op)
            for op in module.ops
            if isinstance(op, FuncOp) and any(isinstance(inner, CallOp) for inner in operations_in(op))
        }
        self._kernels: dict[str, ModelKernel] = {}
        self._known: dict[Hashable, Work] = {}

    def taken(self, kernels: Sequence[ModelKernel]) -> None:
        """State which functions are kernels."""
        self._kernels = {function.sym_name.data: kernel for kernel in kernels for function in kernel.functions}

    def functions(self) -> Sequence[str]:
        """The functions that call kernels and are called by none of them."""
        called = {
            op.callee.string_value()
            for function in self._callers.values()
            for op in operations_in(function)
            if isinstance(op, CallOp)
        }
        return [name for name in self._callers if name not in called]

    def rows(self, name: str, shapes: Shapes) -> Sequence[KernelRow]:
        """The kernels in order of their first calls."""
        uses: dict[str, _Use] = {}
        self._count(ConcreteShapes(self._callers[name], (), shapes or {}), 1, uses)
        is_open = any(use.flops is None or use.moved is None for use in uses.values())
        formulas: Mapping[str, tuple[str, str]] = self._formulas(name) if is_open else {}
        return [
            KernelRow(
                symbol,
                tuple(function.sym_name.data for function in use.kernel.functions),
                _labels(use.kernel.functions[0]),
                use.calls,
                sum(self._sizes.get(constant) or 0 for constant in use.constants),
                use.flops,
                use.moved,
                flops_formula="" if use.flops is not None else formulas.get(symbol, ("", ""))[0],
                bytes_formula="" if use.moved is not None else formulas.get(symbol, ("", ""))[1],
            )
            for symbol, use in uses.items()
        ]

    def _formulas(self, name: str) -> Mapping[str, tuple[str, str]]:
        """The arithmetic and the bytes of kernels by symbol, in terms of the symbols of a function."""
        flops: dict[str, KnownExtent] = {}
        moved: dict[str, KnownExtent | None] = {}

        def count(caller: SymbolicFunction, times: KnownExtent) -> None:
            for op, callee, number in caller.calls(self._find):
                kernel = self._kernels.get(op.callee.string_value())
                number = multiply(times, number)
                if kernel is None:
                    count(callee, number)
                    continue
                own = callee.moved_bytes(_read(kernel))
                flops[kernel.symbol] = add(flops.get(kernel.symbol, 0), multiply(callee.flops(), number))
                known = moved.get(kernel.symbol, 0)
                moved[kernel.symbol] = None if own is None or known is None else add(known, multiply(own, number))

        try:
            count(SymbolicFunction.of_entry(self._callers[name]), 1)
        except ShapeError:
            return {}  # an extent has too many factors
        return {one: (show_extent(flops[one]), "" if moved[one] is None else show_extent(moved[one])) for one in flops}

    def temporary_formula(self, name: str) -> str:
        """The bytes of the arena of a function, in terms of its symbols; empty without one."""
        buffers = [[parse_extent(text) for text in sizes] for sizes in arena_sizes(self._callers[name])]
        total: Extent = 0
        for sizes in buffers:
            total = add(total, reduce(partial(choose, "max"), sizes))
        return show_extent(total) if buffers else ""

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

    def _count(self, caller: ConcreteShapes, times: int, uses: dict[str, _Use]) -> None:
        for op, callee, count in caller.calls(self._find):
            called = op.callee.string_value()
            kernel = self._kernels.get(called)
            if kernel is None:
                self._count(callee, times * count, uses)
                continue
            use = uses.setdefault(kernel.symbol, _Use(kernel))
            work = callee.work(self._find, self._known)
            use.add(times * count, work.flops if work.is_exact else None, callee.traffic(_read(kernel)))
            use.constants.update(filter(None, map(_constant, op.arguments)))

    def _find(self, name: str) -> FuncOp | None:
        kernel = self._kernels.get(name)
        if kernel is None:
            return self._callers.get(name)
        return next(function for function in kernel.functions if function.sym_name.data == name)

    def temporary_bytes(self, name: str, shapes: Shapes) -> int | None:
        """What the arena of a function takes; without one all that it allocates. None for what extents decide that are
        not known."""
        function = self._callers[name]
        concrete = ConcreteShapes(function, (), shapes or {})
        if ARENA_BYTES in function.attributes:
            dims = [op.result for op in operations_in(function) if isinstance(op, DimOp)]
            extents = {dim.name_hint: number for dim in dims if (number := concrete.number(dim)) is not None}
            try:
                return planned_bytes(function, {name: number for name, number in extents.items() if name})
            except KeyError:
                return None
        sizes = [
            None if (shape := concrete.known_shape(op.memref)) is None else _size(op.memref.type, shape)
            for op in operations_in(function)
            if isinstance(op, AllocOp)
        ]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def peaks(self) -> MachinePeaks | None:
        """The limits of the machine, measured when they are first asked for; None for devices."""
        return None if self._target.has_kernels else quick_peaks(self._target)


def _size(type_: object, shape: Sequence[int] | None = None) -> int | None:
    """The bytes of a buffer; None where an extent is not known."""
    if not isinstance(type_, MemRefType):
        return None
    extents = type_.get_shape() if shape is None else shape
    return None if any(extent < 0 for extent in extents) else prod(extents) * bytes_of(type_.element_type)


def _labels(function: FuncOp) -> tuple[str, ...]:
    blocks = (op.label for op in operations_in(function) if isinstance(op, BlockOp))
    return tuple(dict.fromkeys(blocks))


def _read(kernel: ModelKernel) -> set[int]:
    """The parameters of which a kernel reads what its caller passes."""
    function = kernel.functions[0]
    params = () if kernel.declaration is None else params_of(kernel.declaration)
    if len(params) != len(function.args):
        return _read_parameters(function)
    return {at for at, param in enumerate(params) if param.access.data is not AccessMode.WRITE}


def _read_parameters(function: FuncOp) -> set[int]:
    """The parameters of which a function reads what its caller passes."""
    known = ParameterAccesses()
    return {at for at in range(len(function.args)) if known.of(function, at) is not AccessMode.WRITE}


def function_row(function: FuncOp) -> KernelRow:
    """One call of a tir function that calls no other, as a row of a report."""
    shapes, name, read = ConcreteShapes(function, (), {}), function.sym_name.data, _read_parameters(function)
    work, moved = shapes.work(lambda _: None), shapes.traffic(read)
    row = KernelRow(name, (name,), _labels(function), 1, 0, work.flops if work.is_exact else None, moved)
    if row.flops is not None and moved is not None:
        return row
    try:
        symbolic = SymbolicFunction.of_entry(function)
        flops, size = symbolic.flops(), symbolic.moved_bytes(read)
    except ShapeError:
        return row  # an extent has too many factors
    flops_formula = "" if row.flops is not None else show_extent(flops)
    return replace(row, flops_formula=flops_formula, bytes_formula="" if size is None else show_extent(size))


def _constant(value: SSAValue) -> str | None:
    """The constant that a buffer is."""
    while isinstance(value.owner, CastOp):
        value = value.owner.source
    return value.owner.name_.string_value() if isinstance(value.owner, GetGlobalOp) else None
