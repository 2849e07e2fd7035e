"""`tvm.ir`: modules, operators by name, intrinsics with lowering rules, equality of programs."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.analysis.structural_equality import assert_structural_equal, structural_equal
from weft.analysis.structural_hash import structural_digest
from weft.support.user_functions import IntrinsicCall
from weft.texpr.expr import Expr as PrimExpr
from weft.tvm.absent import refuses
from weft.tvm.ir import transform
from weft.tvm.ir.module import GlobalVar, IRModule
from weft.tvm.ir.op import CallEffectKind, Op, register_intrin_lowering, register_op_attr

__all__ = [
    "CallEffectKind",
    "GlobalVar",
    "IRModule",
    "IntrinsicCall",
    "Op",
    "PrimExpr",
    "assert_structural_equal",
    "register_intrin_lowering",
    "register_op_attr",
    "structural_equal",
    "structural_hash",
    "transform",
]
__getattr__ = refuses(__name__)


def structural_hash(node: Operation) -> int:
    """A number that structurally equal programs share."""
    return int.from_bytes(structural_digest(node)[:8], "little")
