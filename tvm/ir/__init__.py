"""`tvm.ir`: modules, operators by name, intrinsics with lowering rules, equality of programs."""

from weft.analysis.structural_equality import assert_structural_equal, structural_equal
from weft.texpr.expr import Expr as PrimExpr
from weft.tvm.absent import refuses
from weft.tvm.ir import transform
from weft.tvm.ir.module import GlobalVar, IRModule
from weft.tvm.ir.op import CallEffectKind, Op, register_intrin_lowering, register_op_attr

__all__ = [
    "CallEffectKind", "GlobalVar", "IRModule", "Op", "PrimExpr", "assert_structural_equal", "register_intrin_lowering",
    "register_op_attr", "structural_equal", "transform",
]  # fmt: skip
__getattr__ = refuses(__name__)
