"""Show the lowering of a program, or the results of a search.

  weft show examples/mm_relu.mlir                    trees of the loops before and after its schedule, passes, buffers
  weft show model.onnx --html report.html            one page: graph, schedules step by step, the IR after each pass
  weft show schedules.py:tiled --target cuda         a module or a schedule, or a function that returns one
  weft show tune.db --html report.html               convergence, the fastest schedules step by step, roofline
  weft show tune.db --program model.onnx             only the tasks of a program, weighted by its calls

The page is self-contained. docs/show.md describes its contents.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from weft.support.errors import CompileError
from weft.support.files import check_output, write_output
from weft.support.target import Target
from weft.tools.build_command import add_lowering_arguments, lowering_options
from weft.tools.shapes import add_shape_argument, stated_shapes
from weft.tools.show.html import html_page
from weft.tools.show.lowering import program_report
from weft.tools.show.programs import is_database, read_program
from weft.tools.show.report import ProgramReport, Report
from weft.tools.show.roofline import measured
from weft.tools.show.searches import search_report
from weft.tools.show.terminal import print_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="an .mlir, .onnx or Python file (FILE.py:NAME), or a database of weft tune")
    parser.add_argument("--html", metavar="FILE", help="write an HTML page instead of printing")
    parser.add_argument("--steps", action="store_true", help="print the loops after each step of the schedules")
    parser.add_argument("--func", metavar="NAME", help="the function to measure, or the task of a database")
    parser.add_argument("--target", default="llvm", help='such as "llvm -mcpu=haswell" (default: this machine)')
    parser.add_argument("--time", action="store_true", help="measure the kernels of the program on random arguments")
    parser.add_argument("--program", metavar="FILE", help="show only the tasks of this program of a database")
    add_shape_argument(parser)
    add_lowering_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Returns 1 if the lowering ended in an error. Raises `CompileError` and `OSError`."""
    if arguments.html is not None:
        check_output(Path(arguments.html))
    report = _report(arguments)
    if arguments.html is None:
        print_report(report, sys.stdout, steps=arguments.steps)
    else:
        write_output(Path(arguments.html), html_page(report))
        print(f"saved     {arguments.html}")
    failure = report.failure if isinstance(report, ProgramReport) else ""
    if failure:
        sys.stdout.flush()
        print(failure, file=sys.stderr)
    return 1 if failure else 0


def _report(arguments: argparse.Namespace) -> Report:
    has_page = arguments.html is not None
    if is_database(arguments.file):
        if arguments.time:
            raise CompileError("--time measures programs; a database holds the times of its records")
        if arguments.shape and arguments.program is None:
            raise CompileError("--shape is for programs; a database holds functions as they were tuned")
        shapes = stated_shapes(arguments)
        program = None if arguments.program is None else read_program(arguments.program, shapes)
        return search_report(arguments.file, program, arguments.func, with_peaks=has_page)
    if arguments.program is not None:
        raise CompileError(f"--program is for databases, and '{arguments.file}' is a program")
    target, options = Target.parse(arguments.target), lowering_options(arguments)
    program = read_program(arguments.file, stated_shapes(arguments))
    # ONNX models name the extent of their batch. Without times or charts, formulas with this name are shown.
    extent = 1 if arguments.file.endswith(".onnx") and (has_page or arguments.time) else None
    with_peaks = has_page or arguments.time
    report = program_report(program, arguments.file, target, options, extent=extent, with_peaks=with_peaks)
    if arguments.time and not report.failure:
        return replace(report, roofline=measured(report.roofline, program, target, options, arguments.func))
    return report
