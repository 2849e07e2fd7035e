"""Packing, at build time, of constants that kernels read in another layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft.backends.llvm.compile import CodegenOptions
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.passes.tir.tir_fold_constant_calls import fold_constant_calls
from weft.passes.tir.tir_split_constant_packing import split_constant_packing
from weft.runtime.low_module import load_low_module
from weft.support.target import Target

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.passes.tir.tir_fold_constant_calls import Run


def pack_constants(module: ModuleOp) -> None:
    """Evaluate computations of the scheduled functions that depend only on constants, in place."""
    split_constant_packing(module)
    fold_constant_calls(module, _compiled)


def _compiled(module: ModuleOp) -> Run:
    """Compile tir functions for this CPU, whatever their target: each runs once."""
    target = Target.of_process(1)
    lower_tir_to_low(Context(), module, str(target), is_trusted=True)
    library = load_low_module(module, target, CodegenOptions(fast=True))

    def run(name: str, arrays: Sequence[NDArray[Any]]) -> None:
        library[name](*arrays)

    return run
