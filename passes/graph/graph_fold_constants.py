"""`graph-fold-constants`: evaluate ops whose operands are all constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, FixedBitwidthType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.constant_data import dense_attribute
from weft.dialects.graph import CallTirOp, ConstantOp, Tensor, callee_of
from weft.dialects.graph_shapes import Expression
from weft.interp.interpreter import Interpreter
from weft.passes.graph.functions import graph_functions
from weft.passes.index_builders import erase_dead
from weft.texpr.graph_operators import Operator

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALL_BYTES = 1 << 16
"""Bytes up to which results are always folded; larger ones only if not larger than the operands."""


def fold_constants(function: FuncOp, limit: int = SMALL_BYTES) -> int:
    """Evaluate ops of constant operands. Returns their number. Raises the `CompileError`s of the interpreter.

    Results of more than `limit` bytes are kept unless operands are as large: broadcasts would waste memory.
    """
    folded = 0
    for op in list(function.walk()):
        block = op.parent_block()
        if block is None or not isinstance(op, Operator | CallTirOp) or not _is_worth_folding(op, limit):
            continue
        for result, value in zip(list(op.results), _evaluated(op), strict=True):
            constant = ConstantOp(dense_attribute(value, cast("Tensor", result.type).element_type))
            constant.location = op.location
            constant.result.name_hint = result.name_hint
            block.insert_op_before(constant, op)
            result.replace_all_uses_with(constant.result)
        Rewriter.erase_op(op)
        folded += 1
    for block in {op.parent_block() for op in function.walk() if isinstance(op, ConstantOp)}:
        if block is not None:
            erase_dead(block)
    return folded


def _is_worth_folding(op: Operation, limit: int) -> bool:
    if not all(isinstance(operand.owner, ConstantOp) for operand in op.operands):
        return False
    if any(extent == DYNAMIC_INDEX for result in op.results for extent in cast("Tensor", result.type).get_shape()):
        return False
    if isinstance(op, CallTirOp) and callee_of(op).is_declaration:
        return False
    shapes = [op.passed_extents] if isinstance(op, CallTirOp) else op.shapes if isinstance(op, Operator) else []
    if any(isinstance(extent, Expression) for shape in shapes for extent in shape):
        return False
    size = sum(map(_bytes, op.results))
    return size <= max(limit, sum(map(_bytes, op.operands)))


def _bytes(value: SSAValue) -> int:
    type_ = cast("Tensor", value.type)
    element = type_.element_type
    return prod(type_.get_shape()) * (element.size if isinstance(element, FixedBitwidthType) else 8)


def _evaluated(op: Operator | CallTirOp) -> list[NDArray[Any]]:
    copies = {operand: operand.owner.clone() for operand in op.operands if isinstance(operand.owner, ConstantOp)}
    copy = op.clone({operand: constant.results[0] for operand, constant in copies.items()})
    body = Block([*copies.values(), copy, ReturnOp(*copy.results)])
    function = FuncOp("folded", ([], list(copy.result_types)), Region(body))
    callees = [callee_of(op).clone()] if isinstance(op, CallTirOp) else []
    found = Interpreter(ModuleOp([function, *callees])).call("folded")
    return list(cast("tuple[NDArray[Any], ...]", found)) if isinstance(found, tuple) else [found]


@dataclass(frozen=True)
class GraphFoldConstantsPass(ModulePass):
    """Evaluate operators, and calls of tensor functions, whose operands are constants.

    Requires: graph functions whose types are known (`graph-infer-types`).
    Leaves: constants in place of such ops; unused constants are erased.

    ```mlir
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %a = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %b = graph.exp2 %a : tensor<2xf32> -> tensor<2xf32>
      %c = graph.multiply %x, %b : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
      func.return %c : tensor<2xf32>
    }
    // becomes
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %b = graph.constant dense<[2.0, 4.0]> : tensor<2xf32>
      %c = graph.multiply %x, %b : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
      func.return %c : tensor<2xf32>
    }
    ```
    """

    name = "graph-fold-constants"

    limit: int = SMALL_BYTES
    """Maximum bytes of a result that is folded even if it is larger than its operands."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(graph_functions(op)):
            fold_constants(function, self.limit)
