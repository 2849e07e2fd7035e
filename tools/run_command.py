"""Compile a function of an .mlir or .onnx file and run it on arrays.

  weft run examples/mm_relu.mlir --check --time
  weft run examples/mm_relu.mlir --func mm_relu --input A=a.npy --input B=b.npy --output C=c.npy
  weft run dynamic.mlir --shape A=64x128 --target "llvm -mcpu=znver4" --threads 4
  weft run model.onnx --input x.npy --check --time      # also compared with onnxruntime, if installed

Schedules in the file are applied first. Arrays that are not given are random; outputs are allocated. The program is
specialised to the shapes of --shape. Other sizes, that is, extents and elements of integer arguments that are sizes,
are 1, or numbers close to 1 that satisfy the preconditions; a line shows them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils.fast_math import FastMathFlag

from weft.dialects.element_types import TYPES
from weft.driver.build import build, build_module
from weft.driver.model_report import function_row
from weft.driver.peaks import quick_peaks
from weft.driver.programs import parse_file
from weft.driver.stablehlo_loops import import_stablehlo_loops
from weft.interp.arguments import ArgumentRecipe, ConcreteShapes, OperationCounts, needs_positive
from weft.interp.compare import allowed_liberties, takes_edge_values
from weft.interp.edge_values import KINDS, Planting, plantings, restricted
from weft.interp.interpreter import Interpreter
from weft.interp.values import narrow, widen
from weft.passes.convert.returned_parameters import drop_returned_parameters
from weft.passes.graph.graph_precision import GraphPrecisionPass
from weft.passes.module_edits import entry_function, functions_of, schedules_of
from weft.passes.pass_sequence import epsilon_of
from weft.runtime.kernel_report import KernelRow, Report
from weft.support.call_signature import ArraySpec, ScalarSpec
from weft.support.errors import CompileError
from weft.support.files import check_output, write_output
from weft.support.target import Target
from weft.tools.arrays import (
    ArrayDifference,
    Request,
    array_of_result,
    assignments,
    compare,
    given_inputs,
    make_arguments,
    sizes_note,
    write_npy,
)
from weft.tools.build_command import add_lowering_arguments, lowering_options
from weft.tools.shapes import add_shape_argument, stated_shapes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xdsl.dialects.builtin import ModuleOp

    from weft.interp.edge_values import FastMath
    from weft.runtime.library import Function, Library
    from weft.runtime.timing import BenchmarkResult
    from weft.support.call_signature import Signature
    from weft.tools.arrays import Array, Value

INTERPRETED_PER_SECOND = 20_000_000
"""Approximate number of operations of a loop nest that the interpreter runs per second; used only to decide whether a
check would take too long."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the program: an .mlir file at any level, or an .onnx file")
    parser.add_argument("--func", metavar="NAME", help="the function to run, if the file has several")
    parser.add_argument(
        "--input",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an .npy file, or a number for a scalar; NAME= is optional for a file if there is one input",
    )
    parser.add_argument(
        "--output", metavar="NAME=FILE", action="append", default=[], help="save an output array as .npy"
    )
    add_shape_argument(parser)
    parser.add_argument("--seed", type=int, default=0, help="the seed of the random arrays (default 0)")
    parser.add_argument("--target", default="llvm", help='such as "llvm -mcpu=znver4" (default: this machine)')
    parser.add_argument(
        "--threads", type=int, metavar="N", help="the number of threads of parallel loops (default: all cores)"
    )
    add_lowering_arguments(parser)
    parser.add_argument("--check", action="store_true", help="compare with the interpreter on the unscheduled program")
    parser.add_argument(
        "--check-limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="compare with the unscheduled, unoptimised program if the interpreter would take longer (default 60)",
    )
    parser.add_argument("--time", action="store_true", help="measure the time of a call")
    parser.add_argument("--profile", action="store_true", help="measure the kernels of a model")
    parser.add_argument("--timing", action="store_true", help="print the time of each stage of the compilation")
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="also write a trace of the build and of three calls, for ui.perfetto.dev or chrome://tracing",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="also write the measurements as JSON; with '-' to standard output, and the text to standard error",
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=5,
        metavar="R",
        help="the number of measurements, each of at least 20 ms (default 5)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Returns 1 if `--check` finds a difference. Raises `CompileError` and `OSError`. With `--json -`, standard output
    is only the JSON."""
    if arguments.json != "-":
        return _run(arguments)[0]
    with redirect_stdout(sys.stderr):
        status, found = _run(arguments)
    print(json.dumps(found, indent=2))
    return status


def _run(arguments: argparse.Namespace) -> tuple[int, dict[str, object]]:
    from weft.passes.lower_to_tir import lower_to_tir  # start-up: 726 ms

    if arguments.seed < 0:
        raise CompileError(f"--seed must not be negative, got {arguments.seed}")
    if arguments.repeat < 1:
        raise CompileError(f"--repeat must be at least 1, got {arguments.repeat}")
    target = _target(arguments.target, arguments.threads)
    original = parse_file(arguments.file, stated_shapes(arguments), name=arguments.func)
    function = entry_function(original, arguments.func)
    name = function.sym_name.data

    json_file = None if arguments.json in (None, "-") else Path(arguments.json)
    for file in (arguments.json, arguments.trace):
        if file not in (None, "-"):
            check_output(Path(file), Path(arguments.file))
    start = time.perf_counter()
    options = lowering_options(arguments)
    library = build_module(original, target, options)
    device = _device_of(library)
    compiled = library[name]
    milliseconds = (time.perf_counter() - start) * 1e3
    signature = compiled.signature
    chosen: dict[str, int] = {}
    values = make_arguments(signature, _request(original, signature, arguments), chosen)
    files = assignments(arguments.output, "--output", _output_names(signature), "output")
    before = copied(values)

    print(signature)
    print(f"target    {target}")
    if device:
        print(f"device    {device}")
    if chosen:
        print(sizes_note(chosen))
    print(f"schedule  {_schedule_line(original, arguments.no_schedule, library)}")
    print(f"build     {milliseconds:.1f} ms")
    if arguments.timing:
        print(library.timing)
    call(compiled, values)
    loops = original.clone()
    import_stablehlo_loops(loops)
    lower_to_tir(loops)
    work = work_of(loops, name, before)
    status = 0
    if arguments.check:
        seconds = 0.0 if work is None else work.operations / INTERPRETED_PER_SECOND
        if options.precision:
            print(f"note      compared with the unscheduled program in precision {options.precision}")
            reference = unscheduled_outputs(original, name, signature, before, target, options.precision)
            status = _check(signature, values, reference, epsilon_of(GraphPrecisionPass(precision=options.precision)))
        elif seconds > arguments.check_limit:
            print(f"note      interpreting would take {seconds:.0f} s, --check-limit is {arguments.check_limit:g} s")
            reference = unscheduled_outputs(original, name, signature, before, target)
            status = _check(signature, values, reference)
        else:
            taken = original.clone()
            drop_returned_parameters(taken, functions_of(taken).values())
            interpreter, function = Interpreter(taken), functions_of(taken)[name]
            reference = interpreted(interpreter, function, signature, before)
            status = _check(signature, values, reference)
            if status == 0:
                edges = _EdgeComparison(compiled, interpreter, function, before, arguments.seed)
                status = edges.check(_liberties(loops, original, library), seconds)
        is_rounded = options.precision not in ("", "f32")
        peer = None if is_rounded else _onnxruntime(arguments.file, signature, before)
        status = max(status, 0 if peer is None else _check(signature, values, peer))
    for output, file in files.items():
        write_npy(file, cast("Array", values[output]))
        print(f"saved     {output} to {file}")
    found: dict[str, object] = {
        "function": name,
        "signature": str(signature),
        "target": str(target),
        "build_ms": milliseconds,
        "stages_ms": dict(library.timing.milliseconds),
        "symbols": chosen,
    }
    if arguments.check:
        found["check"] = "agrees" if status == 0 else "differs"
    if arguments.time:
        found["time"] = _time(compiled, before, arguments.repeat, work)
    if arguments.profile:
        report = _profile(library, compiled, before, loops)
        print(report)
        found["kernels"] = [_row_record(row, report.share_of_peak(row)) for row in report.rows]
        found["seconds_of_a_call"] = report.seconds
    if arguments.trace is not None:
        library.write_trace(arguments.trace, name, *before.values())
        print(f"trace     {arguments.trace}, for https://ui.perfetto.dev or chrome://tracing")
    if json_file is not None:
        write_output(json_file, json.dumps(found, indent=2) + "\n")
    return status, found


def _profile(library: Library, compiled: Function, before: Mapping[str, Value], loops: ModuleOp) -> Report:
    """Returns the kernels of a model, else the function itself, whose unscheduled loops are `loops`."""
    name = compiled.signature.name
    if library.has_report:
        return library.profile(name, *before.values())
    shapes = {given: value.shape for given, value in before.items() if isinstance(value, np.ndarray)}
    row = function_row(functions_of(loops)[name], shapes)
    seconds = compiled.time_evaluator(number=1, repeat=10, min_repeat_ms=1.0)(**before).median
    peaks = None if library.target.has_kernels else quick_peaks(library.target)
    report = Report(name, (row,), peaks=peaks)
    return report.timed({row.symbol: seconds}, {row.symbol: 1}, seconds)


def _row_record(row: KernelRow, share: float | None) -> dict[str, object]:
    return {**dataclasses.asdict(row), "title": row.title, "share_of_peak": share}


def _request(original: ModuleOp, signature: Signature, arguments: argparse.Namespace) -> Request:
    return Request(
        given_inputs(arguments.input, signature),
        arguments.seed,
        positive=needs_positive(original),
    )


def _target(text: str, threads: int | None) -> Target:
    target = Target.parse(text)
    if threads is None:
        return target
    if threads < 1:
        raise CompileError(f"--threads must be at least 1, got {threads}")
    return dataclasses.replace(target, num_threads=threads)


def _device_of(library: Library) -> str:
    """Empty for libraries without kernels. Raises `DeviceError` if there is none."""
    if not library.target.has_kernels:
        return ""
    from weft.runtime.gpu_library import GpuLibrary  # start-up: 121 ms

    return library.device if isinstance(library, GpuLibrary) else ""


def _schedule_line(module: ModuleOp, left_out: bool, library: Library) -> str:
    names = _names([schedule.sym_name.data for schedule in schedules_of(module)])
    defaults = _names([trace.sym_name.data for trace in library.traces])
    parts = [f"{names} left out" if left_out else f"{names} applied"] if names else ["none in the file"]
    return ", ".join([*parts, *([f"{defaults} by default"] if defaults else [])])


_NAMES_WIDTH = 36
"""Maximum number of characters of names of schedules in a line."""


def _names(symbols: Sequence[str]) -> str:
    names = ", ".join(f"@{symbol}" for symbol in symbols)
    return names if len(names) <= _NAMES_WIDTH or len(symbols) == 1 else f"{len(symbols)} schedules"


def call(compiled: Function, values: dict[str, Value]) -> None:
    """Add the results that the call allocates to the values."""
    allocated = [spec.name for spec in compiled.signature.arrays if spec.is_allocated]
    try:
        found = compiled(**{name: value for name, value in values.items() if name not in allocated})
    except (IndexError, TypeError, ValueError) as error:
        raise CompileError(str(error)) from error
    results = cast("tuple[Array, ...]", found if isinstance(found, tuple) else (found,))
    values.update(zip(allocated, results, strict=False))


@dataclass(frozen=True)
class ExpectedOutputs:
    name: str
    outputs: Mapping[str, Array]


def _check(signature: Signature, values: Mapping[str, Value], reference: ExpectedOutputs, epsilon: float = 0.0) -> int:
    """Returns the exit status. `epsilon` is that of the format of rounded factors."""
    status = 0
    for spec in signature.arrays:
        if not spec.writes:
            continue
        difference = _difference(spec, values, reference, epsilon)
        if isinstance(difference, ArrayDifference) and difference.agrees:
            how = f"within {difference.allowed:.1g} of" if difference.allowed else "equal to"
            print(f"check     {spec.name}: {how} {reference.name} ({difference})")
        else:
            _print_difference(spec, reference, difference)
            status = 1
    return status


def _difference(
    spec: ArraySpec, values: Mapping[str, Value], reference: ExpectedOutputs, epsilon: float = 0.0
) -> ArrayDifference | str:
    """Returns the reason if the output cannot be compared."""
    if spec.name not in reference.outputs:
        return "there is no such result"
    try:
        return compare(cast("Array", values[spec.name]), reference.outputs[spec.name], spec.dtype, epsilon)
    except CompileError as error:
        return error.message


def _print_difference(
    spec: ArraySpec, reference: ExpectedOutputs, difference: ArrayDifference | str, on: str = ""
) -> None:
    sys.stdout.flush()
    print(f"error: output '{spec.name}' differs from {reference.name}{on}: {difference}", file=sys.stderr)


def _liberties(loops: ModuleOp, original: ModuleOp, library: Library) -> FastMath:
    """Returns contraction, and reassociation of scheduled reductions. `loops` precede scheduling."""
    allowed = allowed_liberties(loops)
    taken = allowed.always | {FastMathFlag.ALLOW_CONTRACT}
    scheduled = library.traces or schedules_of(original) or library.target.reassociate or library.target.has_kernels
    return taken | {FastMathFlag.REASSOC} if allowed.reassociates and scheduled else taken


_SECONDS_OF_EDGES = 2.0
"""Approximate time limit, in seconds, of interpreting a program on edge values."""


@dataclass
class _EdgeComparison:
    compiled: Function
    interpreter: Interpreter
    function: FuncOp
    values: Mapping[str, Value]
    """Ordinary arguments."""
    seed: int

    def check(self, fast_math: FastMath, seconds: float) -> int:
        """Use the edge values on which the liberties have no effect. `seconds` is the time of one run of the
        interpreter. Returns the exit status."""
        recipe = self._recipe()
        kinds = [kind for kind in KINDS if kind.is_compared(fast_math)]
        planned = [planting for kind in kinds for planting in plantings(recipe.parameters, recipe.indices, kind)]
        if not takes_edge_values(self.interpreter.module):
            return 0
        compared: dict[str, None] = {}
        for planting in planned[: int(_SECONDS_OF_EDGES / max(seconds, 1e-3))]:
            made: dict[Planting, tuple[Mapping[str, Value], ExpectedOutputs]] = {}

            def has_meaning(tried: Planting, made: dict[Planting, Any] = made) -> bool:
                values = self._planted(tried)
                try:
                    reference = interpreted(self.interpreter, self.function, self.compiled.signature, values)
                except CompileError:
                    return False
                made[tried] = values, reference
                return True

            valid = restricted(planting, has_meaning)
            if valid is None:
                continue
            values, reference = made[valid]
            values = copied(values)
            call(self.compiled, values)
            names = [list(self.values)[at] for at in sorted(valid.parameters)]
            if not self._agree(values, reference, fast_math, f"{valid.kind.name} in {' and '.join(names)}"):
                return 1
            compared[valid.kind.name] = None
        if compared:
            print(f"check     agrees with the interpreter on {', '.join(compared)}")
        return 0

    def _agree(self, values: Mapping[str, Value], reference: ExpectedOutputs, fast_math: FastMath, on: str) -> bool:
        for spec in self.compiled.signature.arrays:
            if not spec.writes:
                continue
            expected = reference.outputs[spec.name]
            if FastMathFlag.REASSOC in fast_math and expected.dtype.kind == "f":
                got = cast("Array", values[spec.name])
                expected = np.where(np.isfinite(expected) | (got.shape != expected.shape), expected, got)
            difference = _difference(spec, values, ExpectedOutputs(reference.name, {spec.name: expected}))
            if isinstance(difference, str) or not difference.agrees:
                _print_difference(spec, reference, difference, f" on {on}")
                return False
        return True

    @property
    def _passed(self) -> list[ArraySpec | ScalarSpec]:
        return [spec for spec in self.compiled.signature.args if spec.name in self.values]

    def _recipe(self) -> ArgumentRecipe:
        parameters: list[tuple[str, tuple[int, ...] | int | None]] = []
        # Numbers in preconditions bind extents of the given arrays.
        signature = self.compiled.signature
        bound = {name for fact in signature.facts for name in fact.names}
        sizes = {signature.args[position].name for position, _ in signature.elements.values()}
        for spec in self._passed:
            value = self.values[spec.name]
            if isinstance(spec, ArraySpec):
                shape = cast("Array", value).shape
                parameters.append((spec.dtype, 0 if spec.access == "write" or spec.name in sizes else shape))
            else:
                parameters.append((spec.dtype, 0 if spec.symbol or spec.name in bound else None))
        operations = self.interpreter.module.walk()
        return ArgumentRecipe(tuple(parameters), False, any(isinstance(op, IndexCastOp) for op in operations), 1)

    def _planted(self, planting: Planting) -> dict[str, Value]:
        generator = np.random.default_rng(self.seed)
        planted: dict[str, Value] = {}
        for position, (spec, value) in enumerate(zip(self._passed, copied(self.values).values(), strict=True)):
            type_ = TYPES[spec.dtype]
            array = np.asarray(value)
            elements = widen(array, type_) if isinstance(spec, ArraySpec) else array.reshape(1).astype(array.dtype)
            if position in planting.parameters:
                planting.into(position, elements, type_, generator)
            if not isinstance(value, np.ndarray):
                planted[spec.name] = elements.item()
            else:
                value[...] = narrow(elements, type_, value.dtype) if elements.dtype != value.dtype else elements
                planted[spec.name] = value
        return planted


def copied(values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _output_names(signature: Signature) -> list[str]:
    return [spec.name for spec in signature.arrays if spec.writes]


def outputs_of(signature: Signature, values: Mapping[str, Value]) -> dict[str, Array]:
    return {name: cast("Array", values[name]) for name in _output_names(signature)}


def unscheduled_outputs(
    original: ModuleOp,
    name: str,
    signature: Signature,
    before: Mapping[str, Value],
    target: Target,
    precision: str = "",
) -> ExpectedOutputs:
    """Run the program as written, in a precision: neither scheduled nor optimised."""
    values = copied(before)
    plain = Target.of_process(0) if target.has_kernels else dataclasses.replace(target, opt_level=0)
    call(build(original, plain, scheduled=False, default_schedule=False, precision=precision)[name], values)
    return ExpectedOutputs("the unscheduled, unoptimised program", outputs_of(signature, values))


def interpreted(
    interpreter: Interpreter, function: FuncOp, signature: Signature, before: Mapping[str, Value]
) -> ExpectedOutputs:
    """Raises `CompileError`."""
    values = copied(before)
    results = len(function.function_type.outputs)
    # The results are the last arguments of the compiled function.
    given, names = [spec.name for spec in signature.args], list[str]()
    if results:
        given, names = given[:-results], given[-results:]
    elif signature.allocates:
        names = [spec.name for spec in signature.arrays if spec.is_allocated]
        results = len(names)
    try:
        returned = interpreter.call(function.sym_name.data, *(values[name] for name in given if name in values))
    except (TypeError, ValueError) as error:
        raise CompileError(f"the interpreter cannot run the program on these arguments: {error}") from error
    made = cast("tuple[Any, ...]", returned if isinstance(returned, tuple) else (returned,) if results else ())
    if len(made) != results:
        raise CompileError(f"the interpreter gives {len(made)} results, the compiled program {results}")
    specs = {spec.name: spec for spec in signature.arrays}
    values.update({name: array_of_result(value, specs[name]) for name, value in zip(names, made, strict=True)})
    return ExpectedOutputs("the interpreter", outputs_of(signature, values))


def _onnxruntime(file: str, signature: Signature, before: Mapping[str, Value]) -> ExpectedOutputs | None:
    """Returns None if onnxruntime is not installed or rejects the model."""
    if not file.endswith(".onnx") or find_spec("onnxruntime") is None:
        return None
    runtime: Any = import_module("onnxruntime")
    try:
        session: Any = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
        inputs = dict(zip([entry.name for entry in session.get_inputs()], before.values(), strict=False))
        found: list[Array] = session.run(None, inputs)
    except Exception as error:  # noqa: BLE001 - it has its own exception classes
        print(f"note      onnxruntime does not run the model: {str(error).splitlines()[0]}")
        return None
    written = [spec for spec in signature.arrays if spec.writes]
    if len(written) != len(found):
        raise CompileError(f"onnxruntime gives {len(found)} results, the compiled program {len(written)}")
    arrays = {spec.name: array_of_result(value, spec) for spec, value in zip(written, found, strict=True)}
    return ExpectedOutputs("onnxruntime", arrays)


def work_of(loops: ModuleOp, name: str, values: Mapping[str, Value]) -> OperationCounts | None:
    """Returns None if the arithmetic depends on data."""
    given = {
        known: value.shape if isinstance(value, np.ndarray) else value
        for known, value in values.items()
        if not isinstance(value, float)
    }
    functions = functions_of(loops)
    work = ConcreteShapes(functions[name], (), given).work(functions.get)
    return work if work.is_exact else None


def _time(
    compiled: Function, values: Mapping[str, Value], repeat: int, work: OperationCounts | None
) -> dict[str, object]:
    result, gflops = timed(compiled, values, repeat, work)
    times, speed = time_lines(result, gflops, repeat)
    print(f"time      {times}\nspeed     {speed}")
    return {
        "seconds": list(result.results),
        "mean": result.mean,
        "min": result.min,
        **_quantiles(result),
        "calls_per_second": 1.0 / result.median,
        "gflops": gflops,
    }


def timed(
    compiled: Function, values: Mapping[str, Value], repeat: int, work: OperationCounts | None
) -> tuple[BenchmarkResult, float | None]:
    """Each call takes at least 20 ms. Returns also the GFLOP/s of the median."""
    evaluator = compiled.time_evaluator(number=1, repeat=repeat, min_repeat_ms=20.0)
    result = evaluator(**values)
    return result, work.flops / result.median / 1e9 if work is not None and work.flops else None


def _quantiles(result: BenchmarkResult) -> dict[str, float]:
    return {name: float(np.quantile(result.results, q)) for name, q in (("median", 0.5), ("p90", 0.9), ("p99", 0.99))}


def time_lines(result: BenchmarkResult, gflops: float | None, repeat: int) -> tuple[str, str]:
    found = {**_quantiles(result), "min": result.min}
    numbers = ", ".join(f"{name} {seconds * 1e3:.4f}" for name, seconds in found.items())
    arithmetic = "" if gflops is None else f", {gflops:.2f} GFLOP/s"
    return f"{numbers} ms of {repeat} runs", f"{1.0 / result.median:.4g} calls/s{arithmetic} at the median"
