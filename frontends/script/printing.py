"""Modules of block loops -> scripts that read back equal."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from weft.frontends.script.attributes import attributes_text, operations_text
from weft.frontends.script.function_printer import FunctionPrinter, Restart
from weft.frontends.script.names import identifier
from weft.support.errors import InternalError

_IMPORTS = "from weft.script import ir as I, tir as T"
_ROUNDS = 1000


def print_script(module: ModuleOp) -> str:
    """The Python script of a module's functions of block loops; `weft.script.parse` reads it back structurally equal.

    Every op has a form: expressions and statements where they compute the same ops in the same order, local variables
    where they would not, and `T.op("arith.divui", ...)` for what the language has no words for. What else the module
    holds (schedules, constants) is text of MLIR. Raises CompileError for functions that return values and for ops
    with regions that are no loops, blocks or conditions.

    ```python
    from weft.script import ir as I, tir as T


    @I.ir_module
    class Module:
        @T.prim_func
        def relu(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
            T.func_attr({"global_symbol": "relu", "tir.noalias": True})
            for i in range(128):
                with T.block("B"):
                    vi = T.axis.spatial(128, i)
                    B[vi] = T.max(A[vi], T.float32(0))
    ```
    """
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    words = _words(list(functions))
    lines = [_IMPORTS, "", "", "@I.ir_module", "class Module:"]
    if module.attributes:
        lines.append(f"    I.module_attrs({attributes_text(module.attributes)})")
    for position, op in enumerate(module.body.block.ops):
        if position:
            lines.append("")
        if isinstance(op, FuncOp):
            lines += [f"    {line}" if line else "" for line in _function_lines(op, functions, words)]
        else:
            lines += [f"    {line}" for line in operations_text(op)]
    if not functions:
        lines.append("    pass")
    return "\n".join(lines) + "\n"


def _words(symbols: list[str]) -> dict[str, str]:
    """A Python name for each function."""
    words: dict[str, str] = {}
    for symbol in symbols:
        word = identifier(symbol, "f")
        while word in words.values():
            word += "_"
        words[symbol] = word
    return words


def _function_lines(function: FuncOp, functions: dict[str, FuncOp], words: dict[str, str]) -> list[str]:
    """The lines of a function: printed again as long as values turn out to need names."""
    restart = Restart()
    for _ in range(_ROUNDS):
        try:
            return FunctionPrinter(function, functions, words, restart).lines()
        except Restart as wanted:
            if wanted.named <= restart.named and wanted.plain == restart.plain:
                raise InternalError(f"@{function.sym_name.data} has no script: {wanted.named}") from None
            restart = Restart(restart.named | wanted.named, restart.plain or wanted.plain)
    raise InternalError(f"@{function.sym_name.data} has no script after {_ROUNDS} rounds")
