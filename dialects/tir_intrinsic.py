"""Calls of functions that weft does not know, as programs of TVM have them: `T.call_packed("f", A.data, 4)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, var_operand_def, var_result_def
from xdsl.utils.exceptions import VerifyException

OPERAND = "_"
"""What the name of an operand starts with in the text of a call."""


@irdl_op_definition
class IntrinsicOp(IRDLOperation):
    """A call that is kept as it is: weft gives it no meaning, and it may read and write whatever it can reach.

    The text of the call has names `_0`, `_1`, ... for the operands. A pass of the user replaces it before tir is
    lowered.

    ```mlir
    tir.intrinsic "T.call_packed(\\"f\\", _0, 4)"(%p) : (!ptr_xdsl.ptr) -> ()
    ```
    """

    name = "tir.intrinsic"

    call = prop_def(StringAttr)
    arguments = var_operand_def()
    values = var_result_def()

    assembly_format = "$call `(` $arguments `)` attr-dict `:` functional-type($arguments, $values)"

    def __init__(self, call: str, arguments: Sequence[SSAValue], results: Sequence[Attribute] = ()) -> None:
        super().__init__(operands=[arguments], result_types=[results], properties={"call": StringAttr(call)})

    def verify_(self) -> None:
        try:
            parsed = ast.parse(self.call.data, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise VerifyException(f"{self.name}: `{self.call.data}` is no Python") from None
        names = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)} - {"T"}
        wanted = {f"{OPERAND}{position}" for position in range(len(self.arguments))}
        if names != wanted:
            raise VerifyException(
                f"{self.name} has {len(wanted)} operands, and its call names {', '.join(sorted(names)) or 'none'}: "
                f"`{self.call.data}`"
            )
        if not isinstance(parsed, ast.Call) or not all(isinstance(node, _PARTS) for node in ast.walk(parsed)):
            raise VerifyException(f"{self.name}: `{self.call.data}` is no call of values, numbers and texts")


_PARTS = (ast.Call, ast.Attribute, ast.Name, ast.Constant, ast.UnaryOp, ast.USub, ast.Load)
