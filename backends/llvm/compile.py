"""From LLVM IR text to optimised text, assembly, object code, or code in this process.

The text is ours, so an error that LLVM finds in it is an `InternalError`. Nothing here looks at what the code
means. llvmlite is imported on first use: it takes 0.1 to 0.2 seconds.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from weft.backends.llvm.pass_selection import PassSelection, pass_selection_of
from weft.support.cpu_instructions import FEATURES, called_intrinsics, missing_for
from weft.support.errors import CompileError, InternalError
from weft.support.isolation import isolated
from weft.support.machine import base_features, host_triple, initialize_llvm
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
IMPORTED: Final = "!weft.imported"
"""Named metadata of modules with functions from elsewhere."""


def optimize_ir(
    text: str, target: Target, options: CodegenOptions = DEFAULT_OPTIONS, stopwatch: Stopwatch | None = None
) -> str:
    """The module after LLVM's optimiser, as text. Raises as `object_code` does."""
    return _made("ir", text, target, options, stopwatch).decode()


def assembly(
    text: str, target: Target, options: CodegenOptions = DEFAULT_OPTIONS, stopwatch: Stopwatch | None = None
) -> str:
    """Assembly for any triple LLVM knows. Raises as `object_code` does."""
    return _made("assembly", text, target, options, stopwatch).decode()


def object_code(
    text: str, target: Target, options: CodegenOptions = DEFAULT_OPTIONS, stopwatch: Stopwatch | None = None
) -> bytes:
    """A relocatable object file for any triple LLVM knows, fit for a shared library. `stopwatch` is told how long each
    stage takes.

    Raises `CompileError` when `text` calls an intrinsic that `target` lacks or LLVM cannot generate code for it, and
    `InternalError` when `text` is not valid LLVM IR.
    """
    return _made("object", text, target, options, stopwatch)


def _made(kind: str, text: str, target: Target, options: CodegenOptions, stopwatch: Stopwatch | None) -> bytes:
    """What LLVM makes of `text`. LLVM ends its process on what a back end cannot generate, so it runs in this one for
    the CPU of this process only, on text of weft's own that calls intrinsics whose features were checked."""
    stopwatch = stopwatch or Stopwatch()
    known = _check_intrinsics(text, target)
    if known and target.is_process and IMPORTED not in text:
        return _make(kind, text, *_machine_names(target, options), options, stopwatch)
    with stopwatch.measure(GENERATION):
        subject = f"code for {target.cpu} ({target.triple})"
        return isolated(subject, _make, kind, text, *_machine_names(target, options), options, Stopwatch())


def _make(
    kind: str,
    text: str,
    triple: str,
    cpu: str,
    features: str,
    level: int,
    options: CodegenOptions,
    stopwatch: Stopwatch,
) -> bytes:
    machine = _target_machine(triple, cpu, features, level)
    with optimized_module(text, triple, level, machine, options, stopwatch) as module:
        if kind == "ir":
            return str(module).encode()
        with stopwatch.measure(GENERATION):
            return machine.emit_assembly(module).encode() if kind == "assembly" else machine.emit_object(module)


def _check_intrinsics(text: str, target: Target) -> bool:
    """Whether the features that the intrinsics in `text` need are known. Raises `CompileError` for an intrinsic that
    `target` lacks."""
    called = called_intrinsics(text)
    for name in sorted(called):
        missing = missing_for(target, name)
        if missing:
            raise CompileError(f"the code calls llvm.{name}, which {target.cpu} ({target.triple}) lacks: it {missing}")
    return called <= FEATURES.keys()


def target_machine(target: Target) -> llvm.TargetMachine:
    """LLVM's machine for `target`."""
    return _target_machine(*_machine_names(target, DEFAULT_OPTIONS))


def _machine_names(target: Target, options: CodegenOptions) -> tuple[str, str, str, int]:
    """Triple, CPU, features and optimization level as LLVM takes them."""
    features = ",".join(filter(None, (base_features(target.triple, target.cpu), target.features)))
    return target.triple, target.cpu, features, min(target.opt_level, 1) if options.fast else target.opt_level


@lru_cache(maxsize=16)
def _target_machine(triple: str, cpu: str, features: str, level: int) -> llvm.TargetMachine:
    import llvmlite.binding as llvm

    initialize_llvm(triple != host_triple())
    # Position-independent code of the small model: calls to far functions go through the linker's stubs, and
    # constants are read relative to the program counter.
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small"
    )


@contextmanager
def optimized_module(
    text: str, triple: str, level: int, machine: llvm.TargetMachine, options: CodegenOptions, stopwatch: Stopwatch
) -> Generator[llvm.ModuleRef]:
    """`text` parsed, verified and optimised for `machine`; the module lives until the end of the `with` block.

    Each module has an LLVM context of its own, and both are closed here in the order that LLVM needs: left to Python's
    garbage collector, the context may go first. `stopwatch` is told how long it takes.
    """
    import llvmlite.binding as llvm

    lap = stopwatch.laps()
    context = llvm.create_context()
    module: llvm.ModuleRef | None = None
    try:
        # The code generator ends the process on invalid IR, which the vectorizers of LLVM have been seen to make.
        scalar = replace(options, slp_vectorization=False)
        for attempt in (options, scalar, replace(scalar, loop_vectorization=False)):
            if module is not None:
                module.close()
            module = parse_ir(text, context)
            lap("LLVM: parse")
            _verify(module)
            lap("LLVM: verify")
            _optimize(module, pass_selection_of(text), triple, level, machine, attempt)
            lap("LLVM: optimise")
            if _is_valid(module):
                break
        else:
            raise CompileError(f"LLVM's optimizer makes invalid code of this module at -opt-level={level}")
        yield module
    finally:
        if module is not None:
            module.close()
        context.close()


def _optimize(
    module: llvm.ModuleRef,
    pass_selection: PassSelection,
    triple: str,
    level: int,
    machine: llvm.TargetMachine,
    options: CodegenOptions,
) -> None:
    import llvmlite.binding as llvm

    module.triple = triple
    module.data_layout = str(machine.target_data)
    if level == 0:
        return
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_unrolling = options.loop_unrolling
    tuning.loop_interleaving = options.loop_vectorization
    tuning.loop_vectorization = options.loop_vectorization
    tuning.slp_vectorization = options.slp_vectorization
    builder = llvm.create_pass_builder(machine, tuning)
    if pass_selection is PassSelection.NOTHING:
        # Repeat the marked loops, turn local buffers into registers, compute equal addresses once.
        passes = llvm.create_new_module_pass_manager()
        passes.add_loop_unroll_pass()
        passes.add_sroa_pass()
        passes.add_new_gvn_pass()
        passes.run(module, builder)
    elif pass_selection is PassSelection.INVARIANTS:
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


def _is_valid(module: llvm.ModuleRef) -> bool:
    try:
        module.verify()
    except RuntimeError:
        return False
    return True


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
