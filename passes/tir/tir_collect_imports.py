"""tir-collect-imports: move imported sources to the module."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from weft.dialects.low import IMPORT_C, IMPORT_LLVM
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import operations_in
from weft.support.errors import CompileError

PRAGMAS = {"pragma_import_llvm": IMPORT_LLVM, "pragma_import_c": IMPORT_C}
"""Annotation of a loop or block -> attribute of the module."""


@dataclass(frozen=True)
class CollectImportsPass(ModulePass):
    """Move `pragma_import_llvm` (LLVM IR) and `pragma_import_c` (C source) from loops and blocks to the module, each
    text once.

    ```mlir
    tir.for %i in 64 attributes {pragma_import_c = "int tmm16(...) {...}"} {...}
    // becomes
    builtin.module attributes {low.import_c = ["int tmm16(...) {...}"]} { ... tir.for %i in 64 {...} }
    ```

    Requires: block loops.

    Leaves: block loops; imported sources are attributes of the module.
    """

    name = "tir-collect-imports"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found: dict[str, dict[Attribute, None]] = {}
        for inner in operations_in(op):
            if not isinstance(inner, ForOp | BlockOp):
                continue
            for pragma, attribute in PRAGMAS.items():
                text = inner.attributes.pop(pragma, None)
                if text is None:
                    continue
                if not isinstance(text, StringAttr):
                    raise CompileError.at(inner, f"{pragma} is the text of the code, got {text}")
                found.setdefault(attribute, {})[text] = None
        for attribute, texts in found.items():
            known = op.attributes.get(attribute)
            before: tuple[Attribute, ...] = known.data if isinstance(known, ArrayAttr) else ()
            op.attributes[attribute] = ArrayAttr(list(dict.fromkeys((*before, *texts))))
