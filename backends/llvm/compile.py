"""From LLVM IR text to optimised text, assembly or object code.

weft generates the text, so an error that LLVM finds in it is an `InternalError`. llvmlite is imported on first use,
which takes 0.1 to 0.2 seconds.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

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
    """Transformations that LLVM may apply by its own cost model.

    Loops with explicit vectors are left unchanged; loops marked `llvm.loop.unroll.full` are always unrolled. LLVM may
    unroll scalar loops and vectorise straight-line code. Its loop vectoriser is off: `tir-vectorize-serial` does at
    least as well, and LLVM 22's miscompiles reductions by `llvm.maxnum` and `llvm.minnum` and can abort in assertions.
    It is on only for imported functions, in a worker process. `fast`, for code that runs a few times, such as tuning
    trials: passes and code generation at level 1.
    """

    loop_unrolling: bool = True
    loop_vectorization: bool = False
    slp_vectorization: bool = True
    fast: bool = False


DEFAULT_OPTIONS = CodegenOptions()
EMISSION: Final = "LLVM IR"
GENERATION: Final = "LLVM: code generation"
IMPORTED: Final = "!weft.imported"
"""Named metadata of modules with imported functions."""
_MISVECTORIZED: Final = re.compile(r"@llvm\.(?:max|min)num\.")
"""Calls that the loop vectoriser of LLVM 22 turns into wrong reductions."""


def optimize_ir(
    text: str, target: Target, options: CodegenOptions = DEFAULT_OPTIONS, stopwatch: Stopwatch | None = None
) -> str:
    """Raises as `object_code` does."""
    return _made("ir", text, target, options, stopwatch).decode()


def assembly(
    text: str, target: Target, options: CodegenOptions = DEFAULT_OPTIONS, stopwatch: Stopwatch | None = None
) -> str:
    """Raises as `object_code` does."""
    return _made("assembly", text, target, options, stopwatch).decode()


def object_code(
    text: str, target: Target, options: CodegenOptions = DEFAULT_OPTIONS, stopwatch: Stopwatch | None = None
) -> bytes:
    """A relocatable object, suitable for a shared library. Raises `CompileError` if `text` calls an intrinsic that
    `target` lacks or LLVM cannot select code for it, `InternalError` if `text` is not valid LLVM IR."""
    return _made("object", text, target, options, stopwatch)


def _made(kind: str, text: str, target: Target, options: CodegenOptions, stopwatch: Stopwatch | None) -> bytes:
    """LLVM aborts if it cannot select code, so it runs in a child process unless weft generated the code for this
    process's CPU and the features of its intrinsics were checked."""
    stopwatch = stopwatch or Stopwatch()
    options = _options_for(text, options)
    known = _check_intrinsics(text, target)
    if known and target.is_process and IMPORTED not in text:
        return _make(kind, text, *_machine_names(target, options), options, stopwatch)
    with stopwatch.measure(GENERATION):
        subject = f"code for {target.cpu} ({target.triple})"
        return isolated(subject, _make, kind, text, *_machine_names(target, options), options, Stopwatch())


def _options_for(text: str, options: CodegenOptions) -> CodegenOptions:
    """Imported functions get LLVM's loop vectoriser unless they contain calls that it miscompiles."""
    if IMPORTED not in text or _MISVECTORIZED.search(text):
        return options
    return replace(options, loop_vectorization=True)


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
    """Whether the features of all intrinsics are known. Raises `CompileError` for an intrinsic that `target` lacks."""
    called = called_intrinsics(text)
    for name in sorted(called):
        missing = missing_for(target, name)
        if missing:
            raise CompileError(f"the code calls llvm.{name}, which {target.cpu} ({target.triple}) lacks: it {missing}")
    return called <= FEATURES.keys()


def target_machine(target: Target) -> llvm.TargetMachine:
    return _target_machine(*_machine_names(target, DEFAULT_OPTIONS))


def _machine_names(target: Target, options: CodegenOptions) -> tuple[str, str, str, int]:
    features = ",".join(filter(None, (base_features(target.triple, target.cpu), target.features)))
    return target.triple, target.cpu, features, min(target.opt_level, 1) if options.fast else target.opt_level


@lru_cache(maxsize=16)
def _target_machine(triple: str, cpu: str, features: str, level: int) -> llvm.TargetMachine:
    import llvmlite.binding as llvm

    initialize_llvm(triple != host_triple())
    # Position-independent code of the small model: calls of distant functions use the linker's stubs, and constants are
    # addressed relative to the program counter.
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small"
    )


@contextmanager
def optimized_module(
    text: str, triple: str, level: int, machine: llvm.TargetMachine, options: CodegenOptions, stopwatch: Stopwatch
) -> Generator[llvm.ModuleRef]:
    """The module is valid until the end of the `with` block, which closes it and its own context in the order that LLVM
    requires: Python's garbage collector might close the context first."""
    import llvmlite.binding as llvm

    lap = stopwatch.laps()
    context = llvm.create_context()
    module: llvm.ModuleRef | None = None
    try:
        # LLVM's vectorisers occasionally generate invalid IR, on which the code generator aborts.
        scalar = replace(options, slp_vectorization=False)
        for attempt in (options, scalar, replace(scalar, loop_vectorization=False)):
            if module is not None:
                module.close()
            module = parse_ir(text, context)
            lap("LLVM: parse")
            if problem := _problem_of(module):
                raise InternalError(f"LLVM refuses the generated code: {problem}")
            lap("LLVM: verify")
            _optimize(module, pass_selection_of(text), triple, level, machine, attempt)
            lap("LLVM: optimise")
            if not _problem_of(module):
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
        # Unroll the marked loops, promote local buffers to registers, eliminate common addresses.
        passes = llvm.create_new_module_pass_manager()
        passes.add_loop_unroll_pass()
        passes.add_sroa_pass()
        passes.add_new_gvn_pass()
        with _freed(passes):
            passes.run(module, builder)
    elif pass_selection is PassSelection.INVARIANTS:
        # The passes that LLVM runs before vectorisation.
        with _freed(builder.getFunctionPassManager()) as simplification:
            for function in module.functions:
                if not function.is_declaration:
                    simplification.run(function, builder)
    else:
        with _freed(builder.getModulePassManager()) as passes:
            passes.run(module, builder)


PassManagerT = TypeVar("PassManagerT", "llvm.ModulePassManager", "llvm.FunctionPassManager")


@contextmanager
def _freed(passes: PassManagerT) -> Generator[PassManagerT]:
    """A pass manager's class inherits an empty `_dispose` first, which would leak 70 KiB per module."""
    from llvmlite.binding.newpassmanagers import NewPassManager

    try:
        yield passes
    finally:
        NewPassManager._dispose(passes)  # pyright: ignore[reportPrivateUsage]
        passes.detach()


def parse_ir(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    """Raises `InternalError` if `text` is not LLVM IR."""
    import llvmlite.binding as llvm

    try:
        return llvm.parse_assembly(text, context)
    except RuntimeError as error:
        raise InternalError(f"LLVM cannot parse the generated code: {located(str(error), text)}") from error


def _problem_of(module: llvm.ModuleRef) -> str:
    """The error of LLVM's verifier; "" for a valid module."""
    try:
        module.verify()
    except RuntimeError as error:
        return str(error).strip() or "invalid"
    return ""


def located(message: str, text: str) -> str:
    """LLVM's error with the surrounding lines, which often contain the cause."""
    _, _, place = message.partition("<string>:")
    number, _, rest = place.partition(":")
    if not number.isdigit():
        return message.strip()
    _, _, reason = rest.partition("error: ")
    line = int(number)
    lines = text.splitlines()
    shown = [f"  {i + 1:5}: {lines[i]}" for i in range(max(line - 2, 0), min(line + 1, len(lines)))]
    return f"line {line}: {reason.strip().splitlines()[0]}\n" + "\n".join(shown)
