"""Convert an ONNX model to graph IR, which can be read, edited and passed to weft-opt.

  weft import model.onnx -o model.mlir                     # and the weights to model.safetensors
  weft import model.onnx -o model.mlir --shape input=nx3x224x224
  weft import model.onnx -o model.mlir --weights w.safetensors --bind axes=axes.npy
  weft import model.onnx --list-operators                  # which nodes can be imported, and why others cannot

--shape takes numbers, names and ranges (docs/dynamic-shapes.md), for a sequence the axes of its tensors, separated by
commas. --bind gives inputs whose values must be known, such as axes.
"""

from __future__ import annotations

import argparse
from io import StringIO
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft.driver.programs import onnx_module, onnx_operators
from weft.driver.weights import save_weights
from weft.support.array_files import read_npy
from weft.support.errors import CompileError
from weft.support.files import check_output, write_output
from weft.tools.arrays import assigned
from weft.tools.printing import ScopedMLIRTarget
from weft.tools.shapes import add_shape_argument, stated_shapes

_LEAST = 1 << 10
"""Minimum size, in bytes, of a constant that is stored in the file of weights."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the model, an .onnx file or a folder with one")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the IR to write (default: the name of the model with .mlir)"
    )
    parser.add_argument(
        "--weights", metavar="FILE", help="the file of weights to write (default: the name of the IR with .safetensors)"
    )
    parser.add_argument(
        "--list-operators", action="store_true", help="print the operators of the model and write nothing"
    )
    add_import_arguments(parser)


def add_import_arguments(parser: argparse.ArgumentParser) -> None:
    add_shape_argument(parser)
    parser.add_argument(
        "--bind",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="a constant value of an input, from an .npy file",
    )
    parser.add_argument(
        "--bind-weights",
        metavar="FILE",
        help="a .safetensors file with tensors for initializers and inputs of the same names",
    )
    parser.add_argument(
        "--fallback", action="store_true", help="run unsupported operators in ONNX's reference implementation"
    )


def _output_of(source: Path) -> Path:
    """The default output is in the folder of the input."""
    if not source.is_dir():
        return source.with_suffix(".mlir")
    folder = source.resolve()
    if not folder.name:
        raise CompileError(f"'{source}': give the file to write with -o")
    return folder.with_name(f"{folder.name}.mlir")


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError` and `OSError`."""
    source = Path(arguments.file)
    if source.suffix != ".onnx" and not source.is_dir():
        raise CompileError(f"'{source}': weft import reads .onnx files, and folders with one")
    if arguments.list_operators:
        return _list_operators(source, arguments)
    output = Path(arguments.output) if arguments.output else _output_of(source)
    weights = Path(arguments.weights or output.with_suffix(".safetensors"))
    for path in (output, weights):
        check_output(path, source)
        if arguments.bind_weights is not None:
            check_output(path, Path(arguments.bind_weights))
    if weights.resolve().parent != output.resolve().parent or weights.resolve() == output.resolve():
        raise CompileError(f"the weights '{weights}' must be another file in the folder of '{output}'")
    constants = {name: read_npy(path) for name, path in assigned(arguments.bind, "--bind").items()}
    module, _ = onnx_module(
        source, stated_shapes(arguments), constants, fallback=arguments.fallback, weights=arguments.bind_weights
    )
    save_program(module, output, weights)
    return 0


def save_program(module: ModuleOp, output: Path, weights: Path) -> None:
    """Write IR, and its large constants to another file."""
    save_weights(module, weights, _LEAST)
    text = StringIO()
    ScopedMLIRTarget().emit(Context(), module, text)
    write_output(output, text.getvalue())
    for path in (output, weights):
        print(f"saved     {path}")


def _list_operators(source: Path, arguments: argparse.Namespace) -> int:
    """Print numbers of nodes, reasons for those that cannot be imported, and the cost of a fallback. Returns 1 if there
    are any."""
    for option, value in (
        ("--output", arguments.output),
        ("--weights", arguments.weights),
        ("--bind-weights", arguments.bind_weights),
        ("--fallback", arguments.fallback),
    ):
        if value:
            raise CompileError(f"--list-operators writes no program: it takes --shape and --bind, not {option}")
    constants = {name: read_npy(path) for name, path in assigned(arguments.bind, "--bind").items()}
    outcomes, hint = onnx_operators(source, stated_shapes(arguments), constants)
    width = max(map(len, outcomes), default=8)
    print(f"{'operator':{width}}  nodes  imported")
    for label, outcome in sorted(outcomes.items()):
        print(f"{label:{width}}  {outcome.nodes:5}  {outcome.converted:8}")
        for problem in outcome.problems:
            more = f" and {len(problem.places) - 1} more" if len(problem.places) > 1 else ""
            print(f"{'':{width}}         refused: {problem.message}, at {problem.places[0]}{more}")
        refused = sum(len(problem.places) for problem in outcome.problems)
        if outcome.converted + refused < outcome.nodes:
            print(f"{'':{width}}         {outcome.nodes - outcome.converted - refused} follow nodes that are refused")
    print(*hint, sep="\n", end="\n" * bool(hint))
    return 0 if all(outcome.converted == outcome.nodes and not outcome.problems for outcome in outcomes.values()) else 1
