"""The `weft` command: one module per subcommand, imported on use.

The module has `add_arguments(parser)` and `run(arguments) -> exit status`, and `expanded(words)` if words are optional.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from weft.support.errors import CompileError, did_you_mean
from weft.support.packages import installed_universe
from weft.tools.failures import ArgumentParser, print_warning, run_tool, shown_warnings, versions

COMMANDS: Mapping[str, tuple[str, str]] = {
    "bench": (
        "weft.tools.bench_command",
        "measure weft on this machine: schedules, operators and models against peers",
    ),
    "build": ("weft.tools.build_command", "compile a file to an object, a library or a header for C"),
    "cache": ("weft.tools.cache_command", "show or clear the cache of compiled kernels"),
    "completion": ("weft.tools.completion_command", "print shell completions for bash, zsh or fish"),
    "db": ("weft.tools.db_command", "inspect, merge, export or prune a tuning database"),
    "compile": ("weft.tools.build_command", "an alias of build"),
    "explain": ("weft.tools.explain_command", "explain an error by its code: meaning, example, fix"),
    "explore": ("weft.tools.explore_command", "step through the passes and schedule of a program, and change it"),
    "import": ("weft.tools.import_command", "convert an ONNX model to IR of the graph dialect and a file of weights"),
    "profile": ("weft.tools.profile_command", "measure the kernels of a model"),
    "quantize": (
        "weft.tools.quantize_command",
        "quantize the weights or all layers of a model to 4 or 8 bits",
    ),
    "run": ("weft.tools.run_command", "compile a function and run it on arrays"),
    "show": ("weft.tools.show_command", "show a program stage by stage, or the results of a search"),
    "tune": ("weft.tools.tune_command", "search for fast schedules by measuring them"),
}
"""Maps a subcommand to its module, and its summary."""
_OF_THE_SHELL = ("cache", "completion")
"""Commands that read no programs, so they work with a package that cannot be loaded."""


def execute(words: Sequence[str]) -> int:
    """Raises `CompileError` for an unknown subcommand."""
    name = words[0] if words else "--help"
    if name == "help" and len(words) > 1:
        return execute([words[1], "--help"])
    if name in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if name in ("-v", "-V", "--version"):
        print(versions())
        return 0
    if name not in COMMANDS:
        raise CompileError(f"unknown command '{name}'{did_you_mean(name, COMMANDS)}")
    if name not in _OF_THE_SHELL:
        installed_universe()  # registers targets, operations, primitives and functions
    module = import_module(COMMANDS[name][0])
    parser = ArgumentParser(
        prog=f"weft {name}", description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an internal error")
    module.add_arguments(parser)
    rest = words[1:]
    arguments = parser.parse_args(module.expanded(rest) if hasattr(module, "expanded") else rest)
    with shown_warnings(print_warning):
        return module.run(arguments)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = ["usage: weft COMMAND ...", "       weft --version", "", "commands:"]
    lines += [f"  {name:{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join([*lines, "", "weft COMMAND --help shows the options of a command; weft-opt runs single passes."])


def main() -> None:
    words = sys.argv[1:]
    sys.exit(run_tool(lambda: execute(words), debug="--debug" in words))


if __name__ == "__main__":
    main()
