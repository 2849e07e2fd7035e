"""Code actions: a schedule primitive on a loop, the run of a RUN line, new CHECK lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol.types import CodeAction, CodeActionKind, Command, Range, TextEdit
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from weft.analysis.block_scopes import (
    buffers_read,
    buffers_written,
    child_blocks,
    consumers_of,
    loops_around,
    producers_of,
)
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import ancestors, copy_of
from weft.driver.universe import pass_factories
from weft.passes.pipeline_text import parse_passes
from weft.support.errors import CompileError
from weft.support.packages import installed_universe
from weft.tools.lsp.run_lines import run_lines
from weft.tools.printing import ScopedMLIRTarget

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.tools.lsp.answers import Document

APPLY, RUN, UPDATE = "weft.applyPass", "weft.runLine", "weft.updateChecks"
"""The commands of the server."""


def code_actions(document: Document, within: Range) -> Iterator[CodeAction]:
    line = within.start.line
    for run in run_lines(document.text.content):
        if run.line <= line <= run.line + run.command.count("\\") and run.words is not None:
            yield _action("Run this line and show the difference", RUN, document.uri, run.line)
            for prefix in run.prefixes:
                yield _action(f"Write the {prefix} lines from its output", UPDATE, document.uri, run.line, prefix)
    op = _loop_or_block(document, line)
    if op is not None:
        for title, passes in primitives_for(op):
            yield apply_action(title, document.uri, line, passes)


def apply_action(title: str, uri: str, line: int, passes: str) -> CodeAction:
    return _action(title, APPLY, uri, line, passes, kind=CodeActionKind.RefactorRewrite)


def _action(title: str, command: str, *arguments: object, kind: CodeActionKind = CodeActionKind.Empty) -> CodeAction:
    return CodeAction(title, kind=kind, command=Command(title, command, arguments=list(arguments)))


def _loop_or_block(document: Document, line: int) -> ForOp | BlockOp | None:
    if document.index is None:
        return None
    place = document.to_index(document.text.starts[min(line, len(document.text.starts) - 1)])
    if place is None:
        return None
    chunk = document.index.chunk_at(place)
    number = document.index.text.position(place).line
    op = None if chunk is None else chunk.operation_on_line(document.index.text, number)
    return op if isinstance(op, ForOp | BlockOp) else None


def primitives_for(op: ForOp | BlockOp) -> Iterator[tuple[str, str]]:
    if isinstance(op, BlockOp):
        name = f'block="{op.label}"{_func(op)}'
        yield f'Inline block "{op.label}" into its readers', f"tir-compute-inline{{{name}}}"
        for other, step in (*((b, "") for b in consumers_of(op)), *((b, "reverse-") for b in producers_of(op))):
            for at, loop in enumerate(loops_around(other)):
                if loop not in loops_around(op):
                    place = f'at="{other.label}" loop={at}'
                    title = f'Compute "{op.label}" at {_variable(loop)} of "{other.label}"'
                    yield title, f"tir-{step}compute-at{{{name} {place}}}"
        for cache, buffers in (("read", buffers_read(op)), ("write", buffers_written(op))):
            for index, buffer in enumerate(buffers):
                for scope in ("global", "shared", "local"):
                    title = f'{cache.capitalize()} %{buffer.name_hint or "?"} of "{op.label}" through {scope} memory'
                    yield title, f"tir-cache-{cache}{{{name} index={index} scope={scope}}}"
        return
    block = next(iter(child_blocks(op)), None)
    if block is None:
        return
    loops = loops_around(block)
    if op not in loops:
        return
    at, name = loops.index(op), _variable(op)
    of = f'block="{block.label}"{_func(op)}'
    for factor in (4, 8, 16, 32):
        yield f"Split {name} by {factor}", f"tir-split{{{of} loop={at} factors=0,{factor}}}"
    for kind in ("vectorize", "parallel", "unroll"):
        yield f"{kind.capitalize()} {name}", f"tir-{kind}{{{of} loop={at}}}"
    if at + 1 < len(loops):
        inner = _variable(loops[at + 1])
        yield f"Interchange {name} and {inner}", f"tir-reorder{{{of} loops={at + 1},{at}}}"
        yield f"Fuse {name} and {inner}", f"tir-fuse{{{of} loops={at},{at + 1}}}"
    yield f'Decompose the reduction of "{block.label}" at {name}', f"tir-decompose-reduction{{{of} loop={at}}}"


def _variable(loop: ForOp) -> str:
    return f"%{loop.induction_variable.name_hint or '?'}"


def _func(op: Operation) -> str:
    function = next((around for around in ancestors(op) if isinstance(around, FuncOp)), None)
    return "" if function is None else f' func="{function.sym_name.data}"'


@dataclass(frozen=True)
class Rewritten:
    edit: TextEdit


def apply_passes(document: Document, line: int, passes: str) -> Rewritten:
    """Returns the function at a line after passes, without the comments inside. Raises `ScheduleError` and
    `CompileError`."""
    if document.index is None or document.change is not None:
        raise CompileError("the file does not parse as it is now")
    place = document.text.starts[line]
    chunk = document.index.chunk_at(place)
    if chunk is None:
        raise CompileError("there is no program on this line")
    end_of_line = place + len(document.text.line(line))
    around = [op for start, end, op in chunk.operations if start <= end_of_line and place <= end]
    function = next((op for op in around if isinstance(op, FuncOp)), None)
    if function is None:
        raise CompileError("there is no function on this line")
    changed = function_after(passes, chunk.module, function)
    start, end = chunk.places[function]
    column = document.text.position(start).character
    text = ScopedMLIRTarget().text(changed).strip().replace("\n", "\n" + " " * column)
    return Rewritten(TextEdit(document.text.range(start, end), text))


def function_after(passes: str, module: ModuleOp, function: FuncOp) -> FuncOp:
    """Raises `ScheduleError` and `CompileError`."""
    copy = copy_of(module)
    for module_pass in parse_passes(passes, pass_factories(installed_universe())):
        module_pass.apply(Context(), copy)
    return next(op for op in copy.walk() if isinstance(op, FuncOp) and op.sym_name == function.sym_name)
