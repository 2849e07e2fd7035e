"""Conversion of StableHLO loops before lowering."""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import ModuleOp

from weft.dialects.traversal import operations_in

_LOOPS: Final = frozenset({"chlo.scan", "stablehlo.custom_call", "stablehlo.while"})


def import_stablehlo_loops(module: ModuleOp) -> None:
    """Convert StableHLO functions with loops to graph functions, in place (`convert-stablehlo-to-graph`). Raises
    `CompileError`."""
    if any(op.name in _LOOPS for op in operations_in(module)):
        from weft.frontends.convert_stablehlo_to_graph import convert_loops  # start-up: 154 ms

        convert_loops(module)
