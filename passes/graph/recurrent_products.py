"""Rule that computes the products of the data and weights of a recurrent network by a separate operator."""

from __future__ import annotations

from typing import Final, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from weft.analysis.graph_patterns import array_of_constant
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_traits import Recurrent
from weft.passes.graph.operators import dtype_of, made, made_constant, name_of, properties_of, type_of, with_trait
from weft.passes.graph.rewriting import Replacement, Rule
from weft.texpr.graph_operators import Operator


def _product_of_data(op: Operation) -> Replacement:
    """`lstm(x, w, r)` is `lstm(dense(x, w), none, r)`, for weights that are floats."""
    if not isinstance(op, Operator) or dtype_of(op.results[0]) not in ("float32", "float64"):
        return None
    operands = cast("list[SSAValue | None]", op.grouped(op.operands, op.properties))
    given = dict(zip((role.name for role in op.ROLES), operands, strict=True))
    weight, data = given["weight"], op.operands[0]
    if weight is None or given["weight_scale"] is not None or dtype_of(weight) != dtype_of(op.results[0]):
        return None
    directions, rows, inputs = type_of(weight).get_shape()
    if DYNAMIC_INDEX in (directions, rows, inputs):
        return None
    shape = [directions * rows, inputs]
    if isinstance(weight.owner, ConstantOp):
        array = array_of_constant(weight.owner).reshape(shape)
        matrix = made_constant(array, type_of(weight).element_type).result
    else:
        matrix = made("reshape", [weight], newshape=shape).results[0]
    matrix.name_hint = weight.name_hint
    given |= {"data": made("dense", [data, matrix]).results[0], "weight": None}
    return made(name_of(op), list(given.values()), **properties_of(op))


RECURRENT: Final = (Rule(with_trait(Recurrent), _product_of_data),)
