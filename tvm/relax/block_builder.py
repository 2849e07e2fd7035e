"""`relax.BlockBuilder`, by `weft.graph.BlockBuilder`."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from weft.dialects.graph import ConstantOp, DataflowOp
from weft.dialects.traversal import copy_of
from weft.frontends import graph_builder
from weft.frontends.graph_builder import Value
from weft.passes.graph.operators import detached_ops
from weft.support.errors import CompileError
from weft.texpr.shapes import items, value_names
from weft.tvm.ir.module import IRModule
from weft.tvm.ir.scripted import function_in
from weft.tvm.relax.expr import DataflowVar, GlobalVar, Var, is_free


class BlockBuilder(graph_builder.BlockBuilder):
    __doc__ = graph_builder.BlockBuilder.__doc__

    def __init__(self, mod: ModuleOp | None = None) -> None:
        self._own = IRModule() if mod is None else IRModule.of(mod)
        self._late = False
        """`emit_func_output` provides the parameters."""
        super().__init__(self._own)

    @contextmanager
    def function(  # pyright: ignore[reportIncompatibleMethodOverride] (TVM's names)
        self,
        name: str = "main",
        params: Sequence[Value] | None = None,
        attrs: Mapping[str, object] | None = None,
        private: bool = False,
    ) -> Generator[None]:
        """Without `params`, `emit_func_output` takes them."""
        self._late = params is None
        with super().function(name, params or (), attrs):
            yield
        if private:
            function_in(self._own.body.block.last_op).sym_visibility = StringAttr("private")

    def _check_is_visible(self, value: SSAValue) -> None:
        if not (self._late and is_free(value)):  # a later parameter
            super()._check_is_visible(value)

    def _check_param(self, name: str, param: object) -> None:
        if not (isinstance(param, Value) and is_free(param.ssa)):
            super()._check_param(name, param)

    def emit(self, value: Value, name: str | None = None) -> Var:
        """Bind a call, and nested ones, to variables."""
        for op in detached_ops(value.ssa):
            for result in op.results if not isinstance(op, ConstantOp) else ():
                result.name_hint = "lv"
        return self._var(super().emit(value, name or None))

    def _var(self, value: Value) -> Var:
        owner = value.ssa.owner
        if isinstance(owner, ConstantOp):
            return cast("Var", value)
        inside = isinstance(owner, Operation) and isinstance(owner.parent_op(), DataflowOp)
        in_region = inside or (self._outputs is not None and isinstance(owner, Operation))
        return (DataflowVar if in_region else Var).at(value.ssa)

    def emit_te(self, func: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if (hint := options.pop("primfunc_name_hint", None)) is not None:
            func = partial(func)
            vars(func)["__name__"] = hint
        found = super().emit_te(func, *args, **options)
        made = tuple(self._var(cast("Value", value)) for value in items(found))
        for var in made:
            var.ssa.name_hint = "lv"
        return made if isinstance(found, tuple) else made[0]

    call_te = emit_te

    def emit_output(self, value: Value, name: str | None = None) -> Var:
        super().emit_output(var := Var.at(value.ssa))
        if name or var.ssa.name_hint == "lv":
            var.ssa.name_hint = name or "gv"
        return var

    def emit_func_output(self, value: Value | Sequence[Value], params: Sequence[Value] | None = None) -> None:
        """End the function, with its parameters unless `function` had them."""
        if params is not None and not self._late:
            raise CompileError("emit_func_output: the function has its parameters already")
        _, body = self._open("emit_func_output")
        for param in params or ():
            self._check_param("main", param)
        hints = value_names([value.name_hint or "arg" for value in (*body.args, *(p.ssa for p in params or ()))])
        for param, hint in zip(params or (), hints[len(body.args) :], strict=True):
            argument = body.insert_arg(param.ssa.type, len(body.args))
            argument.name_hint = hint
            param.ssa.replace_all_uses_with(argument)
            param.ssa = argument
        super().emit_func_output(value)

    def add_function(self, function: FuncOp) -> str:
        """A used name gets a number: `add`, `add1`."""
        wanted, taken = function.sym_name.data, self._taken()
        numbers = (str(number or "") for number in count())
        function.sym_name = StringAttr(next(name for n in numbers if (name := f"{wanted}{n}") not in taken))
        return super().add_function(function)

    def add_func(self, func: Any, func_name: str) -> GlobalVar:
        function = copy_of(function_in(func))
        function.sym_name = StringAttr(func_name)
        return GlobalVar(self.add_function(function), function.function_type.outputs.data)

    def update_func(self, gv: GlobalVar, updated_func: Any) -> None:
        self._own[gv] = updated_func

    def get(self) -> IRModule:
        """The verified module. Raises `CompileError` while a function is open."""
        super().get()
        return self._own

    finalize = get
