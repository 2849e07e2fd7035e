"""The cost of a fallback: operators of an imported graph that another runtime computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation

from weft.dialects.element_types import bytes_of
from weft.dialects.graph import CallDpsOp, ConstantOp, MakeTupleOp, TupleGetOp
from weft.dialects.graph_shapes import ShapeError
from weft.support.columns import bytes_text
from weft.support.errors import CompileError

_NO_OPERATORS = (ConstantOp, MakeTupleOp, TupleGetOp)


def fallback_cost(imported: Callable[[], ModuleOp], library: str, runtime: str, option: str) -> list[str]:
    """Lines for the error of a refused model: the operators that `runtime` would compute, and their share of all
    operators and of the bytes read and written. Empty if the fallback is refused too.

    The fallback calls registered functions `<library>.<operator>.<number>`; `option` is its spelling for users.
    """
    try:
        module = imported()
    except (CompileError, ShapeError):
        return []
    operators = [op for op in module.walk() if op.name.startswith("graph.") and op.results and not op.regions]
    operators = [op for op in operators if not isinstance(op, _NO_OPERATORS)]
    left = [op for op in operators if isinstance(op, CallDpsOp) and op.callee.data.startswith(f"{library}.")]
    names = Counter(op.callee.data.split(".", 1)[1].rpartition(".")[0] for op in left)
    shown = [f"{name} {times} times" if times > 1 else name for name, times in names.most_common()]
    listed = ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")
    moved, total = (sum(map(_traffic, ops)) for ops in (left, operators))
    share = f"{bytes_text(moved)} of the {bytes_text(total)}" if total else "no bytes"
    unknown = ", symbolic extents counted as 1" if any(map(_is_symbolic, operators)) else ""
    return [
        f"{option} imports the model: {runtime} runs {len(left)} of {len(operators)} operators ({listed}). They read "
        f"and write {share} that operators do{unknown}. Each is a call of Python, nothing is fused across it, and the "
        "program cannot be exported"
    ]


def _traffic(op: Operation) -> int:
    return sum(map(_bytes, (*op.operand_types, *op.result_types)))


def _bytes(type_: Attribute) -> int:
    if not isinstance(type_, TensorType):
        return 0
    count = 1
    for extent in type_.get_shape():
        count *= 1 if extent == DYNAMIC_INDEX else extent
    return count * bytes_of(type_.element_type)


def _is_symbolic(op: Operation) -> bool:
    types = (*op.operand_types, *op.result_types)
    return any(DYNAMIC_INDEX in type_.get_shape() for type_ in types if isinstance(type_, TensorType))
