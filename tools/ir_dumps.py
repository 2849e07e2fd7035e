"""`--print-ir-before` and related flags: the IR around passes on standard error."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection
from difflib import unified_diff

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from weft.passes.nested import NestedPasses, symbol_text
from weft.passes.pass_sequence import PipelineStep
from weft.support.errors import CompileError, did_you_mean


def add_dump_arguments(parser: argparse.ArgumentParser) -> None:
    """The spellings of mlir-opt are aliases."""

    def add(name: str, text: str) -> None:
        parser.add_argument(f"--{name}", f"--mlir-{name}", action="store_true", help=text)

    def add_filter(name: str, text: str) -> None:
        flags = (f"--{name}", f"--mlir-{name}")
        parser.add_argument(*flags, action="append", default=[], metavar="PASS,...", help=text)

    add_filter("print-ir-before", "print the IR before each of these passes, on standard error")
    add_filter("print-ir-after", "print the IR after each of these passes")
    add("print-ir-before-all", "print the IR before every pass, and every step of passes that are several")
    add("print-ir-after-all", "print the IR after every pass")
    parser.add_argument(
        "--print-ir-after-change",
        "--mlir-print-ir-after-change",
        nargs="?",
        const="ir",
        choices=("ir", "diff"),
        help="print the IR after a pass only if it changed; alone, it applies to every pass; '=diff' prints the "
        "difference, in colours on a terminal",
    )
    add("print-ir-after-failure", "print the IR only after a pass that failed, as the pass left it")


class IRDumps:
    def __init__(self, args: argparse.Namespace, known: Collection[str], text: Callable[[Operation], str]) -> None:
        """`known` are the names of passes. Raises `CompileError` for an unknown pass."""
        self._text = text
        self._only_failures: bool = args.print_ir_after_failure
        self._only_changes: bool = args.print_ir_after_change is not None
        self._as_difference: bool = args.print_ir_after_change == "diff"
        self._before = _names(args.print_ir_before, known)
        self._after = _names(args.print_ir_after, known)
        self._before_all: bool = args.print_ir_before_all
        self._after_all: bool = args.print_ir_after_all or (self._only_changes and not self._after)
        self._unchanged: list[str] = []
        """The IR before each running pass, outermost first, if changes are printed."""
        self._failure: Exception | None = None

    def before(self, step: PipelineStep, module: ModuleOp) -> None:
        if isinstance(step.run, NestedPasses):
            return
        if self._before_all or step.run.name in self._before:
            self._print(f"Before {step.run.name}", step, module)
        if self._only_changes:
            self._unchanged.append(self._text(_part(step, module)))

    def after(self, step: PipelineStep, module: ModuleOp) -> None:
        if isinstance(step.run, NestedPasses):
            return
        before = self._unchanged.pop() if self._only_changes else None
        if self._only_failures or not (self._after_all or step.run.name in self._after):
            return
        if before is None or before != self._text(_part(step, module)):
            self._print(f"After {step.run.name}", step, module, before if self._as_difference else None)

    def failed(self, step: PipelineStep, module: ModuleOp, error: Exception) -> None:
        """Called for the innermost failed pass, then for the enclosing ones."""
        if isinstance(step.run, NestedPasses):
            return
        if self._only_changes:
            self._unchanged.pop()
        if self._only_failures and error is not self._failure:
            self._failure = error
            self._print(f"After {step.run.name} Failed", step, module)

    def _print(self, when: str, step: PipelineStep, module: ModuleOp, before: str | None = None) -> None:
        part = _part(step, module)
        text = self._text(part)
        if before is not None:
            text = difference(before, text, coloured=sys.stderr.isatty() and "NO_COLOR" not in os.environ)
        where = "" if step.operation is None else f" ('{part.name}' operation: {symbol_text(part)})"
        sys.stdout.flush()
        print(f"// -----// IR Dump {when}{where} //----- //\n{text}\n\n", file=sys.stderr, flush=True)


_COLOURS = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}


def difference(before: str, after: str, *, coloured: bool) -> str:
    lines = list(unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm=""))
    if coloured:
        lines = [f"{_COLOURS[line[0]]}{line}\033[0m" if line[:1] in _COLOURS else line for line in lines]
    return "\n".join(lines)


def _part(step: PipelineStep, module: ModuleOp) -> Operation:
    return module if step.operation is None or step.operation.parent is None else step.operation


def _names(given: list[str], known: Collection[str]) -> frozenset[str]:
    names = [name for names in given for name in names.split(",")]
    for name in names:
        if name not in known:
            raise CompileError(f"unknown pass '{name}'{did_you_mean(name, known)}")
    return frozenset(names)
