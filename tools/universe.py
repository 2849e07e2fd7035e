"""What weft adds to xDSL's tools: found through the `xdsl.universe` entry point.

One table a kind, name -> "module:attribute"; what it names is imported when it is first used. To add a pass, a target
or a dialect, add its line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from xdsl.universe import Universe

DIALECTS: Mapping[str, str] = {
    "graph": "weft.dialects.graph:GRAPH",
    "low": "weft.dialects.low:LOW",
    "sched": "weft.dialects.sched:SCHED",
    "te": "weft.dialects.te:TE",
    "tir": "weft.dialects.tir:TIR",
}

PASSES: Mapping[str, str] = {
    "graph-bind-params": "weft.passes.graph.graph_bind_params:GraphBindParamsPass",
    "graph-infer-types": "weft.passes.graph.graph_infer_types:GraphInferTypesPass",
    "legalize-graph-to-te": "weft.passes.graph.legalize_graph_to_te:LegalizeGraphToTePass",
    "lower-graph-to-tir": "weft.passes.graph.lower_graph_to_tir:LowerGraphToTirPass",
    "tir-lower-blocks": "weft.passes.tir.tir_lower_blocks:LowerBlocksPass",
    "tir-lower-reductions": "weft.passes.tir.tir_lower_reductions:LowerReductionsPass",
    "tir-partition-loops": "weft.passes.tir.tir_partition_loops:PartitionLoopsPass",
}

TARGETS: Mapping[str, str] = {}


def load(place: str) -> Any:
    """The object that "module:attribute" names."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _factories(table: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    return {name: partial(load, place) for name, place in table.items()}


WEFT_UNIVERSE = Universe(
    all_dialects=_factories(DIALECTS),
    all_passes=_factories(PASSES),
    all_targets=_factories(TARGETS),
)
