"""From a module at low level to functions that Python can call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.dialects.func import CallOp, FuncOp

from weft.dialects.element_types import element_name
from weft.dialects.low import ParallelForOp, bounds_log_of, facts_of, imported_c, params_of, symbols_of
from weft.dialects.low_access import Access as LowAccess
from weft.dialects.strides import dynamic_extents, dynamic_strides, layout_problem, strides_of
from weft.runtime.signature import Access, ArraySpec, ScalarSpec, Signature
from weft.support.errors import CompileError
from weft.support.stopwatch import Stopwatch
from weft.support.target_kinds import registered_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Region, SSAValue

    from weft.backends.llvm.compile import CodegenOptions
    from weft.dialects.low import ParamAttr
    from weft.runtime.c_library import CLibrary
    from weft.runtime.export.program import Program
    from weft.runtime.library import Library
    from weft.support.target import Target
    from weft.support.target_kinds import TargetKind

_ACCESSES: Final[dict[LowAccess, Access]] = {
    LowAccess.READ: "read",
    LowAccess.WRITE: "write",
    LowAccess.READWRITE: "readwrite",
}


def signature_of(function: FuncOp) -> Signature:
    """What callers of a low function pass, as its `low.params` and `low.symbols` say.

    Arrays that are only written, last among the arguments, may be left out of calls where the other arguments tell
    their shapes. Raises `CompileError` when a parameter has a type that callers have no value for.
    """
    args = tuple(_argument(function, param) for param in params_of(function))
    name, log = function.sym_name.data, bounds_log_of(function)
    calls_out = any(isinstance(op, CallOp) for op in function.walk())
    iterations = _iterations(function.body)
    results, facts = _count_results(args), facts_of(function)
    return Signature(name, args, symbols_of(function), results, facts, log, iterations, calls_out)


def _iterations(region: Region) -> int:
    """Iterations of the innermost loops of a region, as far as extents are known: others count as 1."""
    total = 1
    for op in (op for block in region.blocks for op in block.ops if op.regions):
        if isinstance(op, scf.ForOp):
            start, end, step = map(_constant, (op.lb, op.ub, op.step))
            trips = 1 if start is None or end is None or step is None else -((start - end) // max(step, 1))
        else:
            trips = _constant(op.extent) if isinstance(op, ParallelForOp) else 1
        total += max(trips or 1, 1) * sum(map(_iterations, op.regions))
    return total


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _count_results(args: Sequence[ArraySpec | ScalarSpec]) -> int:
    """How many of the last arguments a call can allocate."""
    for at in range(len(args)):
        rest = args[at:]
        known = {symbol for other in args[:at] if isinstance(other, ArraySpec) for symbol in other.symbols}
        if all(isinstance(a, ArraySpec) and a.access == "write" and a.strides is None for a in rest) and all(
            symbol in known for a in rest if isinstance(a, ArraySpec) for symbol in a.symbols
        ):
            return len(rest)
    return 0


def _argument(function: FuncOp, param: ParamAttr) -> ArraySpec | ScalarSpec:
    name, type_ = param.label.data, param.type
    if not isinstance(type_, MemRefType):
        return ScalarSpec(name, _dtype(function, name, type_), next((s.data for s in param.symbols), ""))
    symbols = [symbol.data for symbol in param.symbols]
    shape, strides = type_.get_shape(), strides_of(type_)
    if len(symbols) != len(dynamic_extents(type_)) + len(dynamic_strides(type_)):
        raise CompileError.at(function, f"parameter '{name}' is {type_}, but has {len(symbols)} symbols {symbols}")
    problem = layout_problem(type_)
    if problem is not None:
        raise CompileError.at(function, f"parameter '{name}': {problem}")
    remaining = iter(symbols)
    extents = tuple(next(remaining) if extent < 0 else extent for extent in shape)
    steps = None if strides is None else tuple(next(remaining) if stride is None else stride for stride in strides)
    dtype = _dtype(function, name, type_.element_type)
    return ArraySpec(name, dtype, extents, _ACCESSES[param.access.data], steps)


def _dtype(function: FuncOp, name: str, type_: Attribute) -> str:
    found = "int64" if isinstance(type_, IndexType) else element_name(type_)
    if found is not None:
        return found
    raise CompileError.at(
        function, f"parameter '{name}' of @{function.sym_name.data}: no array has elements of {type_}"
    )


def program_of(module: ModuleOp, target: Target, stopwatch: Stopwatch) -> Program:
    """A module at low level as a program to export, for any CPU. `stopwatch` is told how long emission takes.

    Raises `CompileError` when the LLVM backend lacks something that the module uses.
    """
    from weft.backends.llvm.compile import EMISSION
    from weft.backends.llvm.emit import emit_module
    from weft.runtime.export.program import Program

    with stopwatch.measure(EMISSION):
        text = emit_module(module, target)
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    signatures = tuple(signature_of(function) for function in functions)
    return Program(text, signatures, target, c_sources=tuple(imported_c(module)))


def load_c_module(module: ModuleOp, target: Target) -> CLibrary:
    """Print a module at low level, legalised for C, as C: a library that compiles it when it is called.

    Raises `CompileError` when C lacks something that the module uses.
    """
    from weft.backends.c.emit import emit_module
    from weft.runtime.c_library import CLibrary

    signatures = [signature_of(op) for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    source = emit_module(module, target)
    return CLibrary({"c": source.text, "h": source.header}, signatures, target, source.symbols, imported_c(module))


def load_low_module(
    module: ModuleOp, target: Target, options: CodegenOptions | None = None, stopwatch: Stopwatch | None = None
) -> Library:
    """Compile a module at low level for its target: a library of all its functions.

    For a CPU that has what this one lacks the library can be exported, not called. `stopwatch` is told how long each
    stage takes. Raises `CompileError` when the backend lacks something that the module uses.
    """
    if target.kind == "c":
        return load_c_module(module, target)
    registered = registered_kind(target.kind)
    if registered is not None:
        return _load_registered(registered, module, target)
    if target.has_kernels:
        from weft.runtime.gpu_build import load_gpu_module

        return load_gpu_module(module, target)
    from weft.backends.llvm.compile import EMISSION
    from weft.backends.llvm.emit import emit_module
    from weft.runtime.library import Library

    stopwatch = stopwatch or Stopwatch()
    signatures = [signature_of(op) for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    with stopwatch.measure(EMISSION):
        text = emit_module(module, target)
    sources = imported_c(module)
    if target.obstacle:
        from weft.runtime.export.foreign import ForeignLibrary

        return ForeignLibrary(text, signatures, target, sources, options)
    symbols: dict[str, int] = {}
    with stopwatch.measure("C sources"):
        for source in sources:
            from weft.runtime.c_sources import compiled_symbols

            symbols.update(compiled_symbols(source))
    return Library({"ll": text}, signatures, target, symbols, options, stopwatch, sources)


def _load_registered(kind: TargetKind, module: ModuleOp, target: Target) -> Library:
    """The library that a registered kind of target makes. Raises `CompileError` when it is none."""
    from weft.runtime.library import Library

    library = kind.load(module, target)
    if not isinstance(library, Library):
        raise CompileError(f"target kind '{kind.name}' must load a weft Library, got {type(library).__name__}")
    return library
