"""From LLVM IR text to optimised text, assembly, object code, or code in this process.

The text is ours, so an error that LLVM finds in it is an `InternalError`. Nothing here looks at what the code
means. llvmlite is imported on first use: it takes 0.1 to 0.2 seconds.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from weft.backends.llvm.metadata import Leftover, leftover_of
from weft.support.errors import InternalError
from weft.support.machine import base_features, host_cpu, host_features, initialize_llvm
from weft.support.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Generator

    import llvmlite.binding as llvm

    from weft.support.target import Target


@dataclass(frozen=True)
class CodegenOptions:
    """What LLVM may do on its own.

    Loops that hold explicit vectors are left as they are (emission marks them), and loops marked
    `llvm.loop.unroll.full` are always unrolled. What a schedule leaves scalar, LLVM may unroll and vectorise: that made
    a tiled scalar matmul 2 to 10 times faster and costs 1 to 7 ms of compile time on small kernels. `fast` is for code
    that runs a few times, such as tuning trials: passes and code generation at level 1.
    """

    loop_unrolling: bool = True
    loop_vectorization: bool = True
    slp_vectorization: bool = True
    fast: bool = False


DEFAULT_OPTIONS = CodegenOptions()
EMISSION: Final = "LLVM IR"
GENERATION: Final = "LLVM: code generation"
"""Stages of a compilation, for stopwatches."""


def optimize_ir(
    text: str, target: Target, options: CodegenOptions = DEFAULT_OPTIONS, stopwatch: Stopwatch | None = None
) -> str:
    """The module after LLVM's optimiser, as text. Raises `InternalError` when `text` is not valid LLVM IR."""
    with optimized_module(text, target, target_machine(target, options), options, stopwatch) as module:
        return str(module)


def assembly(
    text: str, target: Target, options: CodegenOptions = DEFAULT_OPTIONS, stopwatch: Stopwatch | None = None
) -> str:
    """Assembly for any triple LLVM knows. `stopwatch` is told how long each stage takes.

    Raises `InternalError` when `text` is not valid LLVM IR.
    """
    machine = target_machine(target, options)
    stopwatch = stopwatch or Stopwatch()
    with optimized_module(text, target, machine, options, stopwatch) as module, stopwatch.measure(GENERATION):
        return machine.emit_assembly(module)


def object_code(
    text: str, target: Target, options: CodegenOptions = DEFAULT_OPTIONS, stopwatch: Stopwatch | None = None
) -> bytes:
    """A relocatable object file for any triple LLVM knows, fit for a shared library.

    Raises `InternalError` when `text` is not valid LLVM IR.
    """
    machine = target_machine(target, options)
    stopwatch = stopwatch or Stopwatch()
    with optimized_module(text, target, machine, options, stopwatch) as module, stopwatch.measure(GENERATION):
        return machine.emit_object(module)


def target_machine(
    target: Target, options: CodegenOptions = DEFAULT_OPTIONS, *, restrict_to_host: bool = False
) -> llvm.TargetMachine:
    """LLVM's machine for `target`. `restrict_to_host` switches off the features that this host lacks, so that
    code for another model of CPU can run here."""
    features = base_features(target.triple, target.cpu)
    if restrict_to_host and target.cpu != host_cpu():
        features = ",".join(f"-{name}" for name, present in host_features().items() if not present)
    features = ",".join(filter(None, (features, target.features)))
    level = min(target.opt_level, 1) if options.fast else target.opt_level
    return _target_machine(target.triple, target.cpu, features, level, not target.is_host)


@lru_cache(maxsize=16)
def _target_machine(triple: str, cpu: str, features: str, level: int, cross: bool) -> llvm.TargetMachine:
    import llvmlite.binding as llvm

    initialize_llvm(cross)
    # Position-independent code of the small model: calls to far functions go through the linker's stubs, and
    # constants are read relative to the program counter.
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small"
    )


@contextmanager
def optimized_module(
    text: str, target: Target, machine: llvm.TargetMachine, options: CodegenOptions, stopwatch: Stopwatch | None = None
) -> Generator[llvm.ModuleRef]:
    """`text` parsed, verified and optimised for `machine`; the module lives until the end of the `with` block.

    Each module has an LLVM context of its own, and both are closed here in the order that LLVM needs: left to Python's
    garbage collector, the context may go first. `stopwatch` is told how long it takes.
    """
    import llvmlite.binding as llvm

    lap = (stopwatch or Stopwatch()).laps()
    context = llvm.create_context()
    try:
        module = parse_ir(text, context)
        lap("LLVM: parse")
        try:
            _verify(module)
            lap("LLVM: verify")
            _optimize(module, leftover_of(text), target, machine, options)
            lap("LLVM: optimise")
            yield module
        finally:
            module.close()
    finally:
        context.close()


def _optimize(
    module: llvm.ModuleRef, leftover: Leftover, target: Target, machine: llvm.TargetMachine, options: CodegenOptions
) -> None:
    import llvmlite.binding as llvm

    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    level = min(target.opt_level, 1) if options.fast else target.opt_level
    if level == 0:
        return
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_unrolling = options.loop_unrolling
    tuning.loop_interleaving = options.loop_vectorization
    tuning.loop_vectorization = options.loop_vectorization
    tuning.slp_vectorization = options.slp_vectorization
    builder = llvm.create_pass_builder(machine, tuning)
    if leftover is Leftover.NOTHING:
        # Repeat the marked loops, turn local buffers into registers, compute equal addresses once.
        passes = llvm.create_new_module_pass_manager()
        passes.add_loop_unroll_pass()
        passes.add_sroa_pass()
        passes.add_new_gvn_pass()
        passes.run(module, builder)
    elif leftover is Leftover.INVARIANTS:
        # What LLVM does before it looks for vectors.
        simplification = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                simplification.run(function, builder)
    else:
        builder.getModulePassManager().run(module, builder)


def parse_ir(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    """`text` as a module of `context`. Raises `InternalError` when it is not LLVM IR."""
    import llvmlite.binding as llvm

    try:
        return llvm.parse_assembly(text, context)
    except RuntimeError as error:
        raise InternalError(f"LLVM cannot parse the generated code: {located(str(error), text)}") from error


def _verify(module: llvm.ModuleRef) -> None:
    try:
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the generated code: {str(error).strip()}") from error


def located(message: str, text: str) -> str:
    """LLVM's parse error with the line before and after, which often hold the cause."""
    _, _, place = message.partition("<string>:")
    number, _, rest = place.partition(":")
    if not number.isdigit():
        return message.strip()
    _, _, reason = rest.partition("error: ")
    line = int(number)
    lines = text.splitlines()
    shown = [f"  {i + 1:5}: {lines[i]}" for i in range(max(line - 2, 0), min(line + 1, len(lines)))]
    return f"line {line}: {reason.strip().splitlines()[0]}\n" + "\n".join(shown)
