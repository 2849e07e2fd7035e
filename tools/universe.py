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

PASSES: Mapping[str, str] = {}

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
