"""The words of command lines that say what happens on the way down: schedules, and passes of users."""

from __future__ import annotations

import argparse

from weft.driver.build import LoweringOptions
from weft.passes.insertion import parse_insertions


def add_lowering_arguments(parser: argparse.ArgumentParser) -> None:
    """`--insert`, `--no-schedule`, `--no-default-schedule` and `--checked`."""
    parser.add_argument(
        "--insert",
        metavar="POINT=PASSES",
        action="append",
        default=[],
        help='passes at a point of the lowering, as "before:vectorize=my-pass{x=1},other"',
    )
    parser.add_argument("--no-schedule", action="store_true", help="leave the schedules in the file out")
    parser.add_argument(
        "--no-default-schedule", action="store_true", help="take functions that have no schedule as they are written"
    )
    parser.add_argument(
        "--checked", action="store_true", help="an access outside of its array is an error that names block and index"
    )


def lowering_options(arguments: argparse.Namespace) -> LoweringOptions:
    """What the arguments ask for; without the schedules in the file there are no default ones either. Raises
    `CompileError`."""
    scheduled = not arguments.no_schedule
    defaults = scheduled and not arguments.no_default_schedule
    return LoweringOptions(scheduled, defaults, parse_insertions(arguments.insert), arguments.checked)
