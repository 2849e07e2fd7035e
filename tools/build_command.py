"""Compile an .mlir or .onnx file for use without Python.

  weft build examples/mm_relu.mlir -o mm_relu.o --header mm_relu.h
  weft build examples/mm_relu.mlir -o libmm_relu.so --target "llvm -mcpu=haswell"
  weft compile model.onnx -o libmodel.so --header model.h --weights model.weights
  weft build examples/mm_relu.mlir -o mm_relu.s -o mm_relu.ll --timing

The suffix of an output determines its form: .o is an object, .so a shared library, .a a static library, .h the C
header, .ll LLVM IR, and .s assembly. .c is C source; it selects the target "c". docs/c-abi.md describes how to call the
functions.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from weft.driver.programs import parse_file
from weft.passes.insertion import parse_insertions
from weft.support.build_options import BuildOptions
from weft.support.errors import CompileError
from weft.support.precision import parse_precision
from weft.support.sizes import Sizes, parse_sizes, versions_of
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target, registered_kind
from weft.tools.shapes import add_shape_argument, stated_shapes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the program: an .mlir file at any level, or an .onnx file")
    parser.add_argument(
        "-o", "--output", metavar="FILE", action="append", default=[], help="the file to write; may be repeated"
    )
    parser.add_argument("--header", metavar="FILE", help="also write the C header")
    parser.add_argument("--target", help='such as "llvm -mcpu=haswell -num-threads=4" (default: this machine)')
    parser.add_argument(
        "--compiler",
        metavar="CC",
        default="",
        help="the linker of shared libraries (default: the C compiler of the system)",
    )
    parser.add_argument(
        "--weights", metavar="FILE", help="write large constants to a file that the program loads (.o, .so, .a)"
    )
    add_shape_argument(parser)
    add_lowering_arguments(parser)
    parser.add_argument("--timing", action="store_true", help="print the time of each stage")


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError` and `OSError`."""
    outputs = [Path(file) for file in (*arguments.output, *([arguments.header] if arguments.header else []))]
    if not outputs:
        raise CompileError("name a file to write: -o FILE, whose suffix determines its form")
    in_c = any(path.suffix == ".c" for path in outputs)
    target = Target.parse(arguments.target or ("c" if in_c else "llvm"))
    if target.has_kernels:
        raise CompileError(f"weft build makes programs for CPUs, got the target '{target.kind}'")
    stopwatch = Stopwatch()
    with stopwatch.measure("read"):
        module = parse_file(arguments.file, stated_shapes(arguments))
    if registered_kind(target.kind) is not None:
        raise CompileError(f"weft build makes programs for CPUs by llvm and c; '{target.kind}' loads its own")
    from weft.driver.pipeline import Pipeline  # start-up: 199 ms
    from weft.driver.stages import lower  # start-up: 1203 ms
    from weft.runtime.export.program import program_of  # start-up: 85 ms
    from weft.runtime.low_module import load_c_module  # start-up: 88 ms

    lower(Pipeline(module, target, lowering_options(arguments), stopwatch))
    program = load_c_module(module, target) if target.kind == "c" else program_of(module, target, stopwatch)
    for path in outputs:
        program.export(path, compiler=arguments.compiler, stopwatch=stopwatch, weights=arguments.weights)
    for path in (*outputs, *([arguments.weights] if arguments.weights else [])):
        print(f"saved     {path}")
    if arguments.timing:
        print(stopwatch)
    return 0


def add_lowering_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--insert",
        metavar="POINT=PASSES",
        action="append",
        default=[],
        help='insert passes at a point of the lowering, as "before:vectorize=my-pass{x=1},other"',
    )
    parser.add_argument(
        "--no-schedule", action="store_true", help="apply neither the schedules in the file nor default ones"
    )
    parser.add_argument(
        "--no-default-schedule", action="store_true", help="do not schedule functions without a schedule"
    )
    parser.add_argument("--database", metavar="FILE", help="use the fastest schedules that weft tune recorded there")
    parser.add_argument(
        "--require-tuned", action="store_true", help="fail for functions without a schedule in the database"
    )
    parser.add_argument(
        "--checked", action="store_true", help="report accesses out of bounds at run time, with block and index"
    )
    parser.add_argument(
        "--specialize",
        metavar="SYMBOL=SIZES",
        action="append",
        default=[],
        help="add versions for these sizes, selected at the call: 's=1,128', 'b=1 s=1,128' (docs/dynamic-shapes.md)",
    )
    parser.add_argument(
        "--no-winograd", action="store_true", help="do not use Winograd convolutions, which have larger rounding errors"
    )
    add_precision_argument(parser)


def add_precision_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--precision",
        default="",
        metavar="f32|bf16|f16",
        help="the type of the factors of products, convolutions and attention; sums are float32 (docs/precision.md)",
    )


def lowering_options(arguments: argparse.Namespace) -> BuildOptions:
    """`--no-schedule` implies `--no-default-schedule`. Raises `CompileError`."""
    scheduled = not arguments.no_schedule
    defaults = scheduled and not arguments.no_default_schedule
    passes = parse_insertions(arguments.insert)
    if arguments.require_tuned and (arguments.database is None or not defaults):
        raise CompileError("--require-tuned is about the schedules of a --database, in the place of default ones")
    return BuildOptions(
        scheduled=scheduled,
        default_schedule=defaults,
        passes=passes,
        checked=arguments.checked,
        database=arguments.database,
        require_tuned=arguments.require_tuned,
        winograd=not arguments.no_winograd,
        precision=precision_of(arguments),
        specialize=_versions(arguments.specialize),
    )


def precision_of(arguments: argparse.Namespace) -> str:
    """Empty for the model's precision. Raises `CompileError` for an unknown one."""
    found = parse_precision(arguments.precision, "--precision")
    return "" if found is None else found.value


def _versions(words: Sequence[str]) -> Sequence[Sizes]:
    """Raises `CompileError`."""
    return versions_of([entry.sizes for word in words for entry in parse_sizes(word, "--specialize")], "--specialize")
