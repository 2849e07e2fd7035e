"""The size of a function's arena for temporaries: attribute `tir.arena_bytes`, written by `plan-memory`.

    func.func @main(...) attributes {tir.arena_bytes = 4096 : i64}
    func.func @main(...) attributes {tir.arena_bytes = "max(128 * n, 64 * n + 4096)"}
    func.func @main(...) attributes {tir.arena_bytes = [4096 : i64, "128 * n"]}        // two slots

Extents have the function's names: of `memref.dim`, or of the symbol at low level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from weft.dialects.graph_shapes import KnownExtent, evaluate, parse_extent, show_extent
from weft.support.errors import InternalError

ARENA_BYTES: Final = "tir.arena_bytes"
"""Bytes of the buffer of a function's temporaries, or of each of several."""


def arena_attribute(sizes: Sequence[KnownExtent]) -> Attribute:
    if len(sizes) == 1 and isinstance(sizes[0], int):
        return IntegerAttr(sizes[0], i64)
    texts = [show_extent(size) for size in sizes]
    return StringAttr(texts[0] if len(texts) == 1 else f"max({', '.join(texts)})")


def arena_sizes(function: FuncOp) -> list[list[str]]:
    """Candidate sizes in bytes of each arena buffer, which has the greatest, in `show_extent` syntax."""
    stated = function.attributes.get(ARENA_BYTES)
    if stated is None:
        return []
    return [_sizes(size) for size in (stated if isinstance(stated, ArrayAttr) else [stated])]


def _sizes(size: Attribute) -> list[str]:
    match size:
        case IntegerAttr():
            return [str(size.value.data)]
        case StringAttr(data=text):
            return _operands_of_max(text)
        case _:
            raise InternalError(f"{ARENA_BYTES} is {size}")


def _operands_of_max(text: str) -> list[str]:
    depth, start, found = 0, len("max("), list[str]()
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and letter == ")" and at < len(text) - 1:
            return [text]  # as in `max(n, 4) + 1`
        if depth == 1 and letter == ",":
            found.append(text[start:at])
            start = at + len(", ")
    return [*found, text[start:-1]] if text.startswith("max(") else [text]


def planned_bytes(function: FuncOp, extents: Mapping[str, int]) -> int | None:
    """Bytes of a call's temporaries; None without a plan. Raises KeyError for a missing extent."""
    if ARENA_BYTES not in function.attributes:
        return None
    buffers = [[parse_extent(text) for text in sizes] for sizes in arena_sizes(function)]
    return sum(max(evaluate(size, extents) for size in sizes if size is not None) for sizes in buffers)
