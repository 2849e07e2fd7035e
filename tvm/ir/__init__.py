"""`tvm.ir`: modules, operators by name, intrinsics, equality."""

from weft.analysis.structural_equality import assert_structural_equal, structural_equal
from weft.texpr.expr import Expr as PrimExpr
from weft.tvm.absent import named
from weft.tvm.ir.op import CallEffectKind, Op, register_intrin_lowering, register_op_attr

_PLACES = {"GlobalVar": "weft.tvm.relax.expr", "IRModule": "weft.tvm.ir.module", "transform": ""}
__all__ = [
    "CallEffectKind", "Op", "PrimExpr", "assert_structural_equal", "register_intrin_lowering", "register_op_attr",
    "structural_equal", *_PLACES,
]  # fmt: skip  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = named(__name__, _PLACES)
