"""Recurrent networks: products of the data as a separate operator, and tiles of the weights of states."""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from weft.analysis.graph_patterns import arguments_of
from weft.dialects.element_types import bytes_of
from weft.dialects.graph_traits import Recurrent
from weft.passes.graph.operators import (
    dtype_of,
    made,
    name_of,
    operands_of,
    properties_of,
    reshaped,
    type_of,
    with_trait,
)
from weft.passes.graph.rewriting import Replacement, Rule
from weft.support.target import Target
from weft.texpr.graph_operators import Operator

_IN_REGISTERS: Final = 4
"""Sequences whose sums are in registers together. Their sums fill half of the registers, and the other half contains
weights and states."""
_SEQUENCES: Final = 8
"""Limit of sequences of a block, which read a tile of the weights in turn, from L1 or L2."""
_MOST_COLUMNS: Final = 32
"""Limit of gate elements of a tile: 48 are not faster on a Zen 4, but more are padding."""


def _product_of_data(op: Operation) -> Replacement:
    """`lstm(x, w, r)` is `lstm(dense(x, w), none, r)`, for float weights."""
    if not isinstance(op, Operator) or dtype_of(op.results[0]) not in ("float32", "float64"):
        return None
    given = operands_of(op)
    weight, data = given["weight"], op.operands[0]
    if weight is None or given["weight_scale"] is not None or dtype_of(weight) != dtype_of(op.results[0]):
        return None
    directions, rows, inputs = type_of(weight).get_shape()
    if DYNAMIC_INDEX in (directions, rows, inputs):
        return None
    matrix = reshaped(weight, (directions * rows, inputs))
    matrix.name_hint = weight.name_hint
    given |= {"data": made("dense", [data, matrix]).results[0], "weight": None}
    return made(name_of(op), list(given.values()), **properties_of(op))


def with_tile(op: Operation, target: Target) -> Replacement:
    if not isinstance(op, Operator) or "tile" in op.properties:
        return None
    batch = type_of(op.operands[0]).get_shape()[1]
    blocks = -(-target.num_threads // (2 if arguments_of(op)["direction"] == "bidirectional" else 1))
    sequences = -(-batch // blocks) if batch > 0 else max(_SEQUENCES // blocks, _IN_REGISTERS)
    lanes = max(target.vector_bytes // max(bytes_of(type_of(op.results[0]).element_type), 4), 1)
    vectors = max(target.vector_registers // 2 // _IN_REGISTERS, 1)
    tile = [max(min(sequences, _SEQUENCES), 1), min(lanes * vectors, _MOST_COLUMNS)]
    return made(name_of(op), list(operands_of(op).values()), **properties_of(op), tile=tile)


RECURRENT: Final = (Rule(with_trait(Recurrent), _product_of_data),)
