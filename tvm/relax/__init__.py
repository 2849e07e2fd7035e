"""`tvm.relax`: functions of `weft.graph`, with expressions."""

from weft.tvm.absent import named

_NAMES = {
    "block_builder": ("BlockBuilder",),
    "expr": ("Call", "Constant", "DataflowVar", "Expr", "GlobalVar", "TensorStructInfo", "Var", "const"),
    "expr_functor": ("PyExprMutator",),
    "function": ("BindingBlock", "DataflowBlock", "Function", "SeqExpr", "VarBinding"),
    "vm_build": ("Executable", "VirtualMachine", "build", "get_pipeline"),
}
_PLACES = {
    **{name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names},
    **dict.fromkeys(("analysis", "dpl", "expr", "expr_functor", "frontend", "op", "transform"), ""),
}
__all__ = [*_PLACES]  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = named(__name__, _PLACES)
