"""Whole programs as C: under sanitizers against the interpreter, and called from Python as a library."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from c_programs import Call, merged, needs_compiler, run_module
from recorded_ops import has_some_types, load_tests, parameters_of
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

import weft
from weft.dialects.low_signature import signature_of
from weft.driver.parsing import parse_text
from weft.interp.compare import Reference, outputs_equal
from weft.passes.low.low_legalize import LowLegalizePass
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.runtime.low_module import load_c_module
from weft.support.call_signature import ArraySpec
from weft.support.target import Target


def lowering_programs() -> list[tuple[str, str]]:
    """The programs of `test_lowering_programs.py` that have one function, each once."""
    tests = load_tests("test_lowering_programs")
    texts: dict[str, str] = {}
    current = ""

    def check_stages(text: str, **options: Any) -> ModuleOp:
        if text.count("func.func") == 1:
            texts.setdefault(text, current)
        raise StopIteration

    tests.check_stages = check_stages
    for name, test in vars(tests).items():
        if not name.startswith("test_"):
            continue
        for arguments in parameters_of(test):
            current = f"{name}[{', '.join(map(str, arguments.values()))}]"
            try:
                test(**arguments)
            except StopIteration:
                continue
    return [(name, text) for text, name in texts.items()]


def symbol_values(function: FuncOp, arguments: list[Any]) -> list[np.int64]:
    """The extents that a function takes behind its arguments."""
    signature = signature_of(function)
    found: dict[str, int] = {}
    for spec, argument in zip(signature.args, arguments, strict=True):
        if isinstance(spec, ArraySpec):
            for extent, size in zip(spec.shape, argument.shape, strict=True):
                if isinstance(extent, str):
                    found[extent] = size
    return [np.int64(found[symbol]) for symbol in signature.symbols]


@needs_compiler
def test_lowered_programs_compute_what_the_interpreter_computes() -> None:
    tests = load_tests("test_lowering_programs")
    modules: list[ModuleOp] = []
    cases: list[tuple[str, Any]] = []
    calls: list[Call] = []
    for name, text in lowering_programs():
        module = tests.parse(text)
        reference = Reference(module)
        LowerTirToLowPass().apply(tests.context(), module)
        (function,) = (op for op in module.ops if isinstance(op, FuncOp))
        function.properties["sym_name"] = StringAttr("f")
        for case in reference.cases:
            arguments = [
                a.copy() if isinstance(a, np.ndarray) else np.dtype(spec.dtype).type(a)
                for a, spec in zip(case.arguments, signature_of(function).args, strict=True)
            ]
            calls.append(Call(f"f{len(modules)}", [*arguments, *symbol_values(function, arguments)]))
            cases.append((name, case))
        modules.append(module)
    assert len(modules) > 40
    run_module(merged(modules), calls)
    for (name, case), call in zip(cases, calls, strict=True):
        for output, actual in zip(case.outcome.outputs, call.arguments, strict=False):
            if isinstance(actual, np.ndarray):
                if output.is_bfloat16:  # the bits, or of ml_dtypes where another test loads it
                    actual = (actual.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
                assert outputs_equal(output.value, actual, reduction_length=case.reduction_length), (
                    f"{name}: {output.name}"
                )


def kernel_cases() -> list[Any]:
    """The tests of `test_llvm_kernels.py` that do not look at LLVM's text, on a library in C."""
    tests = load_tests("test_llvm_kernels")

    def compile_text(text: str, target: Target | None = None) -> weft.Library:
        module = parse_text(tests.context(), text, "test.mlir")
        LowLegalizePass("c").apply(Context(), module)
        module.verify()
        return load_c_module(module, Target("c"))

    tests.compile_text = compile_text
    cases: list[Any] = []
    for name, test in vars(tests).items():
        if not name.startswith("test_") or "get_source" in test.__code__.co_names or "requires" in name:
            continue
        for arguments in parameters_of(test):
            if name == "test_scalar_parameters" and arguments["element"] == "f16":
                continue  # is passed as its bits
            label = "-".join([name.removeprefix("test_"), *map(str, arguments.values())])
            marks = () if has_some_types(arguments) else pytest.mark.slow
            cases.append(pytest.param(lambda test=test, arguments=arguments: test(**arguments), id=label, marks=marks))
    return cases


@needs_compiler
@pytest.mark.parametrize("case", kernel_cases())
def test_kernel(case: Callable[[], None]) -> None:
    case()


@needs_compiler
def test_parallel_loops_run_with_openmp() -> None:
    module = weft.parse("""
func.func @twice(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.for %i in %n parallel {
    tir.block "B" iters(%v: spatial<%n>) = [%i] {
      %a = memref.load %A[%v] : memref<?xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %B[%v] : memref<?xf32>
    } }
  func.return
}""")
    library = weft.build(module, target="c")
    assert "#pragma omp parallel for" in library.get_source("c")
    a = np.arange(1000, dtype=np.float32)
    b = np.zeros_like(a)
    library["twice"](a, b)
    np.testing.assert_array_equal(b, 2 * a)
