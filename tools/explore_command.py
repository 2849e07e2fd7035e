"""Explore a program and its pipeline step by step: passes, schedule steps, more primitives, runs.

  weft explore examples/mm_relu.mlir                     a view in the terminal (pip install 'weft[tui]')
  weft explore model.onnx --repl                         one command a line, also from a pipe
  weft explore program.mlir -p 'cse,apply-schedule'      the passes of weft-opt -p instead of those of weft.build
  weft explore --mcp                                     a server of the Model Context Protocol (standard input, output)

docs/explore.md describes the commands.
"""

from __future__ import annotations

import argparse
import os
import sys

from weft.support.errors import CompileError
from weft.tools.explore.operations import OPERATIONS, Workbench
from weft.tools.shapes import add_shape_argument, stated_shapes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", help="an .mlir, .onnx or Python file (FILE.py:NAME)")
    parser.add_argument("--repl", action="store_true", help="read one command a line")
    parser.add_argument("--mcp", action="store_true", help="serve the Model Context Protocol")
    parser.add_argument("--target", default="llvm", help='such as "llvm -mcpu=haswell" (default: this machine)')
    parser.add_argument("-p", "--passes", metavar="PASSES", help="the pipeline, as weft-opt -p takes it")
    add_shape_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError` and `OSError`."""
    if arguments.repl and arguments.mcp:
        raise CompileError("--repl and --mcp exclude each other")
    if arguments.file is None and not arguments.mcp:
        raise CompileError("name a file to explore (or --mcp)")
    workbench = Workbench(arguments.target, arguments.passes, stated_shapes(arguments))
    if arguments.file is not None:
        OPERATIONS["load"].call(workbench, {"file": arguments.file})
    if arguments.mcp:
        from weft.tools.explore.mcp import serve  # start-up: 2 ms

        return serve(workbench, sys.stdin, sys.stdout)
    if arguments.repl:
        from weft.tools.explore.repl import run_repl  # start-up: 1 ms

        workbench.coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        return run_repl(workbench, sys.stdin, sys.stdout)
    try:
        from weft.tools.explore.app import ExploreApp  # needs textual
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise CompileError("the view needs the package textual: pip install 'weft[tui]', or --repl") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CompileError("the view needs a terminal as its input and output: use --repl")
    ExploreApp(workbench).run()
    return 0
