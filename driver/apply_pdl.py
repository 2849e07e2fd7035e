"""`apply-pdl`: xDSL's pass of this name, with located errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xdsl.context import Context
from xdsl.dialects import pdl
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreters.pdl import PDLRewritePattern
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker
from xdsl.traits import ConstantLike
from xdsl.utils.exceptions import InterpretationError

from weft.dialects.graph import ConstantOp
from weft.driver.parsing import decode_text, parse_text
from weft.driver.verify import verify_module
from weft.support.errors import CompileError
from weft.support.locations import location_of, remember_text


def _is_constant(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, ConstantOp) or (isinstance(owner, Operation) and owner.has_trait(ConstantLike))


def _is_used_once(value: SSAValue) -> bool:
    return value.has_one_use()


CONSTRAINTS: Final[Mapping[str, Callable[[SSAValue], bool]]] = {
    "constant": _is_constant,
    "used_once": _is_used_once,
}
"""The constraints that `pdl.apply_native_constraint` may name."""


@dataclass(frozen=True)
class ApplyPdlPass(ModulePass):
    """Apply patterns of the dialect `pdl` until none matches.

    Patterns apply in the order of the file. `pdl.apply_native_constraint` supports `"constant"` and `"used_once"`.
    Raises `CompileError` for a file that is missing, does not parse or verify, or has no pattern.

    ```mlir
    pdl.pattern : benefit(1) {
      %type = pdl.type
      %x = pdl.operand
      %a = pdl.operation "graph.negative" (%x : !pdl.value) -> (%type : !pdl.type)
      %a0 = pdl.result 0 of %a
      %b = pdl.operation "graph.abs" (%a0 : !pdl.value) -> (%type : !pdl.type)
      pdl.rewrite %b {
        %c = pdl.operation "graph.abs" (%x : !pdl.value) -> (%type : !pdl.type)
        pdl.replace %b with %c
      }
    }
    ```
    """

    name = "apply-pdl"

    pdl_file: str | None = None
    """Path of the file, relative to the current folder or to that of the program; by default the program contains the
    patterns."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rules = op if self.pdl_file is None else _read(ctx, op, self.pdl_file)
        found = [inner for inner in rules.walk() if isinstance(inner, pdl.RewriteOp)]
        if not found:
            where = "the program" if self.pdl_file is None else f"'{self.pdl_file}'"
            raise CompileError(f"{where} has no pdl.pattern that rewrites")
        for rewrite in found:
            if rewrite.root is None or not rewrite.body.blocks:
                raise CompileError.at(rewrite, "pdl.rewrite needs the operation that it rewrites, and a body")
        patterns = [PDLRewritePattern(rewrite, ctx, None, dict(CONSTRAINTS)) for rewrite in found]
        try:
            PatternRewriteWalker(GreedyRewritePatternApplier(list(patterns))).rewrite_module(op)
        except InterpretationError as error:
            raise CompileError.at(found[0], f"{error}") from None


def _read(ctx: Context, program: ModuleOp, file: str) -> ModuleOp:
    folders = [Path()]
    if (place := next(filter(None, map(location_of, program.walk())), None)) is not None:
        folders.append(Path(place.file).parent)
    path = next((folder / file for folder in folders if (folder / file).is_file()), None)
    if path is None:
        raise CompileError(f"there is no file '{file}', neither in the current folder nor in that of the program")
    text = decode_text(path.read_bytes(), str(path))
    remember_text(str(path), text)
    module = parse_text(ctx, text, str(path))
    verify_module(module)
    return module
