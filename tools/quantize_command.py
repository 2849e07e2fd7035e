"""Write a model with weights, or weights and activations, of 4 or 8 bits as graph IR and a file of weights.

  weft quantize model.onnx --weights int4 --group 32 -o model-int4.mlir   # weights in model-int4.safetensors
  weft quantize model.onnx --weights int8 --group 0 --zero-points -o model-int8.mlir --check
  weft quantize model.onnx --weights int8 --activations int8 --calibrate FOLDER -o model-int8.mlir --check
  weft build model-int4.mlir -o libmodel.so

Constant weights of matrix products are quantized, and data stay floats. With --activations int8, products, convolutions
and recurrent networks are computed in integers. Their ranges are determined by calls on the data in a folder: .npz
files with an array for each input, or .npy files of the only input. The rounding errors of each layer are printed, and
with --check those of the results, on the calibration data or on random inputs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from weft.driver.build import build_module
from weft.driver.calibration import METHODS, CalibrationData
from weft.driver.programs import parse_file
from weft.driver.quantize import quantize
from weft.passes.module_edits import entry_function
from weft.support.build_options import BuildOptions
from weft.support.call_signature import ScalarSpec
from weft.support.errors import CompileError
from weft.support.files import check_output
from weft.support.target import Target
from weft.tools.arrays import Request, given_inputs, make_arguments
from weft.tools.import_command import save_program
from weft.tools.shapes import add_shape_argument, stated_shapes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdsl.dialects.builtin import ModuleOp

    from weft.runtime.library import Function
    from weft.tools.arrays import Array, Value

_METHOD, _PERCENTILE, _SCALES = "minmax", 99.99, "float32"
"""Defaults of options."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the model: an .onnx file, or an .mlir file of graph functions")
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the IR to write; weights are written to FILE.safetensors"
    )
    parser.add_argument(
        "--weights",
        choices=("int4", "int8"),
        help="the type of weights (default int4, and int8 with --activations)",
    )
    parser.add_argument(
        "--group",
        type=int,
        metavar="N",
        help="the number of weights that share a scale, 16 to 256 (default 32); 0: a scale per column",
    )
    zero = parser.add_mutually_exclusive_group()
    zero.add_argument("--symmetric", action="store_true", help="use no zero points (default)")
    zero.add_argument("--zero-points", action="store_true", help="use a zero point for each group")
    parser.add_argument(
        "--scales", choices=("float32", "float16", "bfloat16"), default=_SCALES, help="the type of scales"
    )
    parser.add_argument(
        "--skip", metavar="NAME", action="append", default=[], help="a weight or activation to keep in floats"
    )
    parser.add_argument(
        "--data", choices=("float", "int8"), default="float", help="the type in which products read data"
    )
    static = parser.add_argument_group("static quantization")
    static.add_argument(
        "--activations", choices=("float", "int8"), default="float", help="the type of activations (default float)"
    )
    static.add_argument("--calibrate", metavar="FOLDER", help="a folder of .npz or .npy files with the inputs of calls")
    static.add_argument(
        "--method", choices=METHODS, default=_METHOD, help="the method that determines ranges (default minmax)"
    )
    static.add_argument(
        "--percentile",
        type=float,
        default=_PERCENTILE,
        metavar="P",
        help="the percentage of numbers within a range (default 99.99)",
    )
    static.add_argument(
        "--max-error",
        type=float,
        metavar="E",
        help="the relative error above which a layer or activation stays in floats",
    )
    add_shape_argument(parser)
    parser.add_argument("--check", action="store_true", help="compare the results with those of the float model")
    parser.add_argument(
        "--input", metavar="NAME=FILE", action="append", default=[], help="an input of --check, an .npy file"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the random inputs of --check (default 0)")


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError` and `OSError`."""
    source, output = Path(arguments.file), Path(arguments.output)
    if output.suffix != ".mlir":
        raise CompileError(f"'{output}': weft quantize writes .mlir files")
    weights = output.with_suffix(".safetensors")
    for path in (output, weights):
        check_output(path, source)
    _check_options(arguments)
    module = parse_file(arguments.file, stated_shapes(arguments))
    quantized = quantize(
        module,
        arguments.weights or ("int8" if arguments.activations == "int8" else "int4"),
        arguments.group,
        not arguments.zero_points,
        scales=arguments.scales,
        skip=arguments.skip,
        data=arguments.data,
        activations=arguments.activations,
        calibrate=arguments.calibrate,
        method=arguments.method,
        percentile=arguments.percentile,
        max_error=arguments.max_error,
    )
    print(quantized)
    if arguments.check:
        _check(module, quantized.mod, arguments)
    save_program(quantized.mod, output, weights)
    return 0


def _check_options(arguments: argparse.Namespace) -> None:
    """Raises `CompileError` for exclusive options and numbers out of range."""
    static = {
        "--calibrate": arguments.calibrate is not None,
        "--max-error": arguments.max_error is not None,
        "--method": arguments.method != _METHOD,
        "--percentile": arguments.percentile != _PERCENTILE,
    }
    others = {
        "--group": arguments.group is not None,
        "--zero-points": arguments.zero_points,
        "--scales": arguments.scales != _SCALES,
        "--data": arguments.data != "float",
    }
    is_static = arguments.activations == "int8"
    given = ", ".join(name for name, is_given in (others if is_static else static).items() if is_given)
    if given and is_static:
        raise CompileError(
            f"--activations int8 excludes {given}: weights are symmetric, with a float32 scale for each channel"
        )
    if given:
        raise CompileError(f"--activations int8 is missing, to which {given} applies")
    if is_static and arguments.weights == "int4":
        raise CompileError("--activations int8 requires --weights int8, got --weights int4")
    if is_static and arguments.calibrate is None:
        raise CompileError("--activations int8 requires --calibrate FOLDER: its data have the ranges of activations")
    if arguments.max_error is not None and not arguments.max_error > 0.0:
        raise CompileError(f"--max-error is a relative error above 0, got {arguments.max_error:g}")
    if not 50.0 < arguments.percentile <= 100.0:
        raise CompileError(f"--percentile is above 50 and at most 100, got {arguments.percentile:g}")
    group = arguments.group or 0
    if group and (not 16 <= group <= 256 or group % 8):
        raise CompileError(f"--group is 16 to 256, a multiple of 8, or 0 for whole columns, got {group}")


def _check(original: ModuleOp, quantized: ModuleOp, arguments: argparse.Namespace) -> None:
    functions: list[Function] = []
    for module in (original, quantized):
        name = entry_function(module, None).sym_name.data
        functions.append(build_module(module, Target.parse("llvm"), BuildOptions())[name])
    sums: dict[str, Array] = {}
    for inputs in _inputs(functions[0], arguments):
        exact, found = (_results(function, inputs) for function in functions)
        for name, wanted in exact.items():
            difference = found[name] - wanted
            norms = np.array([np.sum(difference**2), np.sum(wanted**2), np.abs(difference).max(initial=0.0)])
            known = sums.get(name, np.zeros(3))
            sums[name] = np.array([*(known + norms)[:2], max(known[2], norms[2])])
    for name, (error, norm, largest) in sums.items():
        relative = float(np.sqrt(error / norm)) if norm else 0.0
        print(f"check     {name}: {relative:.2%} of the results' norm from float weights, largest {largest:.3g}")


def _inputs(function: Function, arguments: argparse.Namespace) -> Iterator[dict[str, Value]]:
    """Yields calibration data unless `--input` is given."""
    signature = function.signature
    names = [spec.name for spec in signature.args if isinstance(spec, ScalarSpec) or not spec.writes]
    if arguments.calibrate is not None and not arguments.input:
        for _, sample in CalibrationData.read(arguments.calibrate, names).samples:
            yield dict(cast("dict[str, Value]", sample))
        return
    given = given_inputs(arguments.input, signature)
    values = make_arguments(signature, Request(given, arguments.seed))
    yield {name: value for name, value in values.items() if name in names}


def _results(function: Function, inputs: dict[str, Value]) -> dict[str, Array]:
    result = function(**inputs)
    results = cast("tuple[Array, ...]", result if isinstance(result, tuple) else (result,))
    return {
        spec.name: np.asarray(array, np.float64)
        for spec, array in zip(function.signature.result_specs, results, strict=True)
    }
