"""`graph-simplify`: apply identities of operators, merge equal ops, erase unused ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import Commutative, OpTrait

from weft.analysis.graph_patterns import number_of
from weft.dialects.graph import CallTirOp, ConstantOp, DataflowOp, MakeTupleOp, Tensor, TupleGetOp
from weft.dialects.graph_control import CONTROL
from weft.dialects.graph_shapes import DimsAttr, shape_of
from weft.dialects.graph_traits import Idempotent, Involution, Repeating, RightNeutral, ViewLike
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.operators import axes_of, dtype_of, made, name_of, source_of, with_trait
from weft.passes.graph.packing import has_full_tiles, packing_of
from weft.texpr.expr import holds_all, is_float
from weft.texpr.graph_operators import Operator

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

Rule: TypeAlias = "Callable[[Operator], SSAValue | Operator | None]"
"""Returns the value that an operator equals, or an operator on other operands, or None if it does not apply."""


_MERGED: Final = (Operator, CallTirOp, ConstantOp, MakeTupleOp, TupleGetOp, *CONTROL)
"""Pure ops."""


def simplify(function: FuncOp) -> int:
    """Apply identities until none applies. Returns their number."""
    count = _simplify_block(function.body.block, {})
    _erase_unused(function.body.block)
    return count


def _simplify_block(block: Block, outer: Mapping[Any, Operation]) -> int:
    """One walk in order suffices, because a rule sees simplified operands."""
    known, count = dict(outer), 0
    for op in list(block.ops):
        if isinstance(op, DataflowOp):
            count += _simplify_block(op.body.block, known)
            continue
        current: Operation = op
        while isinstance(current, Operator) and (found := identity(current)) is not None:
            count += 1
            if isinstance(found, SSAValue):
                current.results[0].replace_all_uses_with(found)
                Rewriter.erase_op(current)
                break
            found.location = current.location
            found.results[0].name_hint = current.results[0].name_hint
            Rewriter.replace_op(current, found)
            current = found
        else:
            if not isinstance(current, _MERGED):
                continue
            key = (current.name, tuple(current.operands), *map(_frozen, (current.properties, current.attributes)))
            key += (tuple(current.result_types),)
            same = known.setdefault(key, current)
            if same is not current:
                count += 1
                Rewriter.replace_op(current, [], list(same.results))
    return count


def _frozen(attributes: Mapping[str, Attribute]) -> frozenset[tuple[str, Attribute]]:
    return frozenset(attributes.items())


def _erase_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, DataflowOp):
            _erase_unused(op.body.block)
        elif isinstance(op, _MERGED) and not any(result.first_use for result in op.results):
            Rewriter.erase_op(op)


def identity(op: Operator) -> SSAValue | Operator | None:
    """Returns a simpler value that equals `op` exactly, also for NaN, infinities and signs of zeros, or None."""
    rule = IDENTITIES.get(name_of(op))
    found = None if rule is None else rule(op)
    if found is None:
        return None
    types = found.result_types if isinstance(found, Operator) else (found.type,)
    if tuple(types) == tuple(op.result_types):  # declared types may be less specific than inferred ones
        return found
    if isinstance(found, Operator):
        found.drop_all_references()
    return None


def _transpose(op: Operator) -> SSAValue | Operator | None:
    axes = axes_of(op)
    if axes == list(range(len(axes))):
        return op.operands[0]
    inner = source_of(op.operands[0], "transpose")
    if inner is None:
        return None
    first = axes_of(inner)
    return made("transpose", [inner.operands[0]], axes=[first[axis] for axis in axes])


def _view(op: Operator) -> SSAValue | Operator | None:
    source, result = op.operands[0], op.results[0]
    if source.type == result.type:
        return source
    inner = source_of(source, ViewLike)
    shape = shape_of(cast("Tensor", result.type))
    if inner is None or any(extent is None for extent in shape):
        return None
    return made("reshape", [inner.operands[0]], newshape=DimsAttr(shape))


def _pack(op: Operator) -> SSAValue | None:
    inner = source_of(op.operands[0], "unpack")
    is_same = inner is not None and packing_of(inner) == packing_of(op)
    return inner.operands[0] if inner is not None and is_same and has_full_tiles(op) else None


def _unpack(op: Operator) -> SSAValue | None:
    inner = source_of(op.operands[0], "pack")
    return inner.operands[0] if inner is not None and packing_of(inner) == packing_of(op) else None


def _keeps_type(op: Operator) -> SSAValue | None:
    return op.operands[0] if op.operands[0].type == op.results[0].type else None


def _cast(op: Operator) -> SSAValue | Operator | None:
    if op.operands[0].type == op.results[0].type:
        return op.operands[0]
    inner = source_of(op.operands[0], "cast")
    if inner is None:
        return None
    first, wide = (dtype_of(value) for value in (inner.operands[0], inner.results[0]))
    if not holds_all(wide, first):
        return None
    return made("cast", [inner.operands[0]], **op.properties)


def _neutral(op: Operator) -> SSAValue | None:
    """Apply x * 1, 1 * x, x / 1, x - 0; x + 0 only for integers, because it is not exact for -0."""
    trait, operands = cast("RightNeutral", op.get_trait(RightNeutral)), tuple(op.operands)
    for value, number in (operands, operands[::-1]) if op.has_trait(Commutative) else (operands,):
        is_exact = (trait.of_floats or _is_integral(value)) and _is_positive(number)
        if is_exact and number_of(number) == trait.number and value.type == op.results[0].type:
            return value
    return None


def _is_positive(value: SSAValue) -> bool:
    return str(number_of(value)) != "-0.0"


def _is_integral(value: SSAValue) -> bool:
    return not is_float(dtype_of(value))


def _idempotent(op: Operator) -> SSAValue | None:
    inner = source_of(op.operands[0], name_of(op))
    return op.operands[0] if inner is not None and inner.properties == op.properties else None


def _involution(op: Operator) -> SSAValue | None:
    inner = source_of(op.operands[0], name_of(op))
    return None if inner is None else inner.operands[0]


_OF_TRAITS: Final[Mapping[type[OpTrait], Rule]] = {
    ViewLike: _view,
    Repeating: _keeps_type,
    RightNeutral: _neutral,
    Idempotent: _idempotent,
    Involution: _involution,
}
IDENTITIES: Final[Mapping[str, Rule]] = {
    **{name: rule for trait, rule in _OF_TRAITS.items() for name in with_trait(trait)},
    "transpose": _transpose,
    "cast": _cast,
    "pack": _pack,
    "unpack": _unpack,
}


@dataclass(frozen=True)
class GraphSimplifyPass(ModulePass):
    """Apply identities of operators, compute equal ops once, erase unused ops.

    Requires: graph functions whose types are known (`graph-infer-types`).
    Leaves: no adjacent transposes or reshapes, packs of unpacks or unpacks of packs, neutral elements, or casts back to
    the original type.

    Identities are exact for all values: `x * 1`, `x / 1`, `x - 0`, `x + 0` of integers, `-(-x)`, `relu(relu(x))`, casts
    of losslessly widened values.
    ```mlir
    func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %a = graph.transpose %x : tensor<2x3xf32> -> tensor<3x2xf32>
      %b = graph.exp %a : tensor<3x2xf32> -> tensor<3x2xf32>
      %c = graph.transpose %a : tensor<3x2xf32> -> tensor<2x3xf32>
      func.return %c : tensor<2x3xf32>
    }
    // becomes
    func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      func.return %x : tensor<2x3xf32>
    }
    ```
    """

    name = "graph-simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(graph_functions(op)):
            simplify(function)
