"""Runs functions of a module on arrays: the reference for what programs mean.

    Interpreter(module).call("mm_relu", a, b, c)

Each function is compiled once to Python source (`compiler`), by the rules of `registry`. Memref parameters are written
in place when the call ends; when it fails, all arrays are as before.
"""

from __future__ import annotations

from collections.abc import Set
from functools import cached_property
from typing import TYPE_CHECKING, Any

from xdsl.dialects.func import FuncOp

from weft.interp.compiler import CompiledFunction, Functions, compile_function, run_translated
from weft.interp.signature import Binding, Place, Signature, written_parameters
from weft.interp.source import Options
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


class Interpreter:
    """Functions of `module`, callable by name.

    `order` ("forward", "reversed", "shuffled" with `seed`, "interleaved", ...: see `Options`) is how `parallel` and
    `vectorized` loops run: a program is right only when all orders give the same. `check_uninitialised` makes reads of
    temporaries that were never written an error; without it they read as zero.
    """

    def __init__(
        self,
        module: ModuleOp,
        *,
        order: str = "forward",
        seed: int = 0,
        check_uninitialised: bool = True,
    ) -> None:
        self.module = module
        self.options = Options(order, seed, check_uninitialised)
        self._compiled: dict[str, CompiledFunction] = {}
        self._functions = Functions(self.compiled)

    @cached_property
    def _by_name(self) -> dict[str, FuncOp]:
        return {op.sym_name.data: op for op in self.module.body.block.ops if isinstance(op, FuncOp)}

    @cached_property
    def _written(self) -> Set[Place]:
        return written_parameters(self._by_name.values())

    def find(self, name: str) -> FuncOp:
        """The function @name. Raises `CompileError` when the module has none."""
        if name not in self._by_name:
            raise CompileError(f"the module has no function @{name}{did_you_mean(name, self._by_name)}")
        return self._by_name[name]

    def compiled(self, name: str) -> CompiledFunction:
        """The function @name, compiled on first use. Raises `CompileError`."""
        found = self._compiled.get(name)
        if found is None:
            found = compile_function(self.find(name), self.options, self._functions)
            self._compiled[name] = found
        return found

    def signature(self, name: str) -> Signature:
        """How @name is called. Raises `CompileError`."""
        return Signature.of(self.find(name), self._written)

    def call(self, name: str, *arguments: Any, **by_name: Any) -> Any:
        """Call @name with arrays (scalars for scalar parameters), by position or by parameter name.

        Returns None, the result, or a tuple of results. Raises `TypeError` or `ValueError` when the arguments do not
        fit the parameters (count, dtype, rank, shape, extents that contradict each other, a read-only array that is
        written, arrays that overlap), `InterpreterError` when the program does something undefined.
        """
        binding = Binding(self.signature(name), arguments, by_name)
        results = run_translated(self.compiled(name).run, binding.values())
        binding.write_back()
        outputs = binding.outputs(results)
        if not outputs:
            return None
        return outputs[0] if len(outputs) == 1 else outputs
