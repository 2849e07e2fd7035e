"""Shared steps of `convert-tir-to-scf` and `convert-tir-to-affine`: blocks become statements of their loops, and other
operations of weft's dialects become upstream's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, InitOp
from weft.dialects.tir_assume import AssumeOp, AssumeSizesOp, CheckSizeOp
from weft.dialects.tir_kinds import NONTEMPORAL, PREFETCH
from weft.dialects.traversal import operations_in
from weft.passes.convert.convert_low_to_upstream import WEFT_PREFIXES, convert_body
from weft.passes.index_builders import add_at_end, erase_unused_pointers
from weft.passes.low.low_legalize import UPSTREAM, legalize
from weft.passes.tir.tir_compact_buffers import CompactBuffersPass
from weft.passes.tir.tir_lower_blocks import LowerBlocksPass
from weft.passes.tir.tir_lower_reductions import LowerReductionsPass
from weft.passes.tir.tir_pass import tir_functions
from weft.passes.tir.tir_place_buffers import PlaceBuffersPass
from weft.support.errors import CompileError, remark

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

_STRUCTURE: Final = (ForOp, BlockOp, InitOp, AccessRegionOp)
_FACTS: Final = (AssumeOp, AssumeSizesOp, CheckSizeOp)
_ANNOTATIONS: Final = (PREFETCH, NONTEMPORAL)
"""Hints of blocks that affine and scf cannot represent."""


def convert_functions(module: ModuleOp, pass_name: str, convert: Callable[[FuncOp], None], *, strict: bool) -> None:
    """`convert` gives a function loops of upstream. Raises `CompileError`, and leaves the module as it was, if an
    operation has no form there."""
    functions = list(tir_functions(module))
    if not functions:
        remark(module, f"{pass_name}: the module has no function of block loops", strict=strict)
    converted: list[FuncOp] = []
    try:
        for function in functions:
            new = function.clone()
            module.body.block.insert_op_after(new, function)
            converted.append(new)
            _state_nothing(new, pass_name)  # checks all functions before any is converted
        for new in converted:
            for step in (PlaceBuffersPass(), LowerReductionsPass(), LowerBlocksPass(), CompactBuffersPass()):
                step.rewrite(new)
            convert(new)
            legalize(new, UPSTREAM)
            convert_body(new)
            _free_buffers(new)
            _require_upstream(new, pass_name)
    except CompileError:
        for new in converted:
            Rewriter.erase_op(new)
        raise
    for function in functions:
        Rewriter.erase_op(function)


def _state_nothing(function: FuncOp, pass_name: str) -> None:
    """Erase statements of sizes, and hints. Raises `CompileError` for other operations of weft."""
    for op in operations_in(function):
        if isinstance(op, _FACTS):
            operands = list(op.operands)
            Rewriter.erase_op(op)
            erase_unused_pointers(operands)
    for op in operations_in(function):
        if op.name.startswith(WEFT_PREFIXES) and not isinstance(op, _STRUCTURE):
            raise CompileError.at(op, f"{pass_name}: {op.name} has no upstream form")
        for name in _ANNOTATIONS if isinstance(op, BlockOp) else ():
            op.attributes.pop(name, None)


def _free_buffers(function: FuncOp) -> None:
    """In tir, the lowering does so."""
    for op in operations_in(function):
        if isinstance(op, memref.AllocOp) and op.parent is not None:
            add_at_end(op.parent, memref.DeallocOp.get(op.memref))


def _require_upstream(function: FuncOp, pass_name: str) -> None:
    """Drop the attributes of weft. Raises `CompileError` for its operations."""
    if function.arg_attrs is not None:
        left = [_upstream_attributes(entry.data) for entry in function.arg_attrs]
        function.arg_attrs = ArrayAttr([DictionaryAttr(entry) for entry in left]) if any(left) else None
    for op in operations_in(function):
        if op.name.startswith(WEFT_PREFIXES):
            raise CompileError.at(op, f"{pass_name}: {op.name} has no upstream form")
        op.attributes = _upstream_attributes(op.attributes)
    function.update_function_type()


def _upstream_attributes(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if not name.startswith(WEFT_PREFIXES)}
