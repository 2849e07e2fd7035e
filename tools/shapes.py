"""`--shape INPUT=AXES` of all commands that read a program."""

from __future__ import annotations

import argparse

from weft.tools.arrays import assigned


def add_shape_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--shape",
        metavar="INPUT=AXES",
        action="append",
        default=[],
        help="the axes of an input, to which the program is specialised: numbers, names or inclusive ranges, as 1x128, "
        "bxs or 'b:1..8 x s:1..512' (docs/dynamic-shapes.md)",
    )


def stated_shapes(arguments: argparse.Namespace) -> dict[str, str]:
    return assigned(arguments.shape, "--shape")
