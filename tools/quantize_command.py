"""Write a model with weights of 4 or 8 bits as graph IR and a file of weights.

  weft quantize model.onnx --weights int4 --group 32 -o model-int4.mlir   # weights in model-int4.safetensors
  weft quantize model.onnx --weights int8 --group 0 --zero-points -o model-int8.mlir --check
  weft build model-int4.mlir -o libmodel.so

Only constant weights of matrix products are quantized; data stay floats. The rounding errors of each layer are
printed, and with --check those of the results, on random inputs.
"""

from __future__ import annotations

import argparse
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.context import Context

from weft.driver.build import build_module
from weft.driver.programs import parse_file
from weft.driver.quantize import quantize
from weft.driver.weights import save_weights
from weft.passes.module_functions import entry_function
from weft.support.build_options import BuildOptions
from weft.support.errors import CompileError
from weft.support.files import check_output, write_output
from weft.support.target import Target
from weft.tools.arrays import Request, given_inputs, make_arguments
from weft.tools.printing import ScopedMLIRTarget
from weft.tools.shapes import add_shape_argument, stated_shapes

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.tools.arrays import Array, Value

_LEAST = 1 << 10
"""Bytes from which on a constant is stored in the file of weights."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the model: an .onnx file, or an .mlir file of graph functions")
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the text; weights go to FILE.safetensors"
    )
    parser.add_argument(
        "--weights", choices=("int4", "int8"), default="int4", help="the type of weights (default int4)"
    )
    parser.add_argument(
        "--group",
        type=int,
        default=32,
        metavar="N",
        help="weights that share a scale, 16 to 256; 0: a column",
    )
    zero = parser.add_mutually_exclusive_group()
    zero.add_argument("--symmetric", action="store_true", help="without zero points (default)")
    zero.add_argument("--zero-points", action="store_true", help="with a zero point for each group")
    parser.add_argument("--scales", choices=("float32", "float16", "bfloat16"), default="float32", help="their type")
    parser.add_argument("--skip", metavar="NAME", action="append", default=[], help="weights that stay floats")
    parser.add_argument("--data", choices=("float", "int8"), default="float", help="how products read data")
    add_shape_argument(parser)
    parser.add_argument("--check", action="store_true", help="compare the results with those of the float model")
    parser.add_argument("--input", metavar="NAME=FILE", action="append", default=[], help="an input of --check, a .npy")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs of --check (default 0)")


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError` and `OSError`."""
    source, output = Path(arguments.file), Path(arguments.output)
    if output.suffix != ".mlir":
        raise CompileError(f"'{output}': weft quantize writes .mlir files")
    weights = output.with_suffix(".safetensors")
    for path in (output, weights):
        check_output(path, source)
    module = parse_file(arguments.file, stated_shapes(arguments))
    quantized = quantize(
        module,
        arguments.weights,
        arguments.group,
        not arguments.zero_points,
        scales=arguments.scales,
        skip=arguments.skip,
        data=arguments.data,
    )
    print(quantized)
    if arguments.check:
        _check(module, quantized.mod, arguments)
    save_weights(quantized.mod, weights, _LEAST)
    text = StringIO()
    ScopedMLIRTarget().emit(Context(), quantized.mod, text)
    write_output(output, text.getvalue())
    for path in (output, weights):
        print(f"saved     {path}")
    return 0


def _check(original: ModuleOp, quantized: ModuleOp, arguments: argparse.Namespace) -> None:
    """Print how far the results of two models are apart, on the same inputs."""
    found: list[dict[str, Value]] = []
    for module in (original, quantized):
        name = entry_function(module, None).sym_name.data
        function = build_module(module, Target.parse("llvm"), BuildOptions())[name]
        signature = function.signature
        given = given_inputs(arguments.input, signature)
        values = make_arguments(signature, Request(given, arguments.seed))
        allocated = [spec.name for spec in signature.arrays if spec.is_allocated]
        result = function(**{name: value for name, value in values.items() if name not in allocated})
        results = cast("tuple[Array, ...]", result if isinstance(result, tuple) else (result,))
        values.update(zip(allocated, results, strict=False))
        found.append({spec.name: values[spec.name] for spec in signature.arrays if spec.writes})
    for name, exact in found[0].items():
        wanted = np.asarray(cast("Array", exact), np.float64)
        difference = np.asarray(cast("Array", found[1][name]), np.float64) - wanted
        norm, largest = float(np.linalg.norm(wanted)), float(np.abs(difference).max(initial=0.0))
        relative = float(np.linalg.norm(difference)) / norm if norm else 0.0
        print(f"check     {name}: {relative:.2%} of the results' norm from float weights, largest {largest:.3g}")
