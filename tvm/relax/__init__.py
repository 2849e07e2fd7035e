"""`tvm.relax`: graphs. Functions of `weft.graph`, with expressions that call operators."""

from weft.tvm.absent import refuses
from weft.tvm.relax import analysis, expr, expr_functor, frontend, op, transform
from weft.tvm.relax.block_builder import BlockBuilder
from weft.tvm.relax.expr import Call, Constant, DataflowVar, Expr, TensorStructInfo, Var, const
from weft.tvm.relax.expr_functor import PyExprMutator
from weft.tvm.relax.function import BindingBlock, DataflowBlock, Function, SeqExpr, VarBinding
from weft.tvm.relax.vm_build import Executable, VirtualMachine, build

__all__ = [
    "BindingBlock", "BlockBuilder", "Call", "Constant", "DataflowBlock", "DataflowVar", "Executable", "Expr",
    "Function", "PyExprMutator", "SeqExpr", "TensorStructInfo", "Var", "VarBinding", "VirtualMachine",
    "analysis", "build", "const", "expr", "expr_functor", "frontend", "op", "transform",
]  # fmt: skip
__getattr__ = refuses(__name__)
