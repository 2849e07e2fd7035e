"""Functions under `@R.function` -> functions of graphs.

Statements are read in order: what stands to the right of `=` is evaluated as Python, with the parameters and variables
as expressions, and bound in the function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, cast

from xdsl.dialects.func import FuncOp

from weft.dialects.graph import CallDpsOp, CallTirOp
from weft.dialects.graph_shapes import symbol
from weft.frontends.graph_builder import Value
from weft.frontends.script.source import Source, source_of
from weft.passes.module_functions import function_names, lookup
from weft.support.errors import CompileError
from weft.texpr.shapes import items
from weft.tvm.ir.module import GlobalVar, IRModule
from weft.tvm.relax.block_builder import BlockBuilder
from weft.tvm.relax.expr import Call, TensorStructInfo, Var
from weft.tvm.relax.function import Function
from weft.tvm.script.reader import names_in


def read_function(func: Callable[..., Any], frame: FrameType) -> Any:
    """The function of a graph of a definition; in a class, whose module is read as a whole, the definition."""
    if "__module__" in frame.f_locals and "__qualname__" in frame.f_locals:
        return func
    code: CodeType = func.__code__
    source, node = source_of(code.co_filename, code.co_firstlineno, func.__name__, ast.FunctionDef)
    module = IRModule()
    read_graphs(source, [node], names_in(frame), module)
    return Function(lookup(module, node.name))


def read_graphs(source: Source, nodes: Sequence[ast.FunctionDef], names: Mapping[str, Any], module: IRModule) -> None:
    """Add the functions of graphs to a module of those that they call. Raises CompileError at the place of an error."""
    functions = {name: GlobalVar(name) for name in (*function_names(module), *(node.name for node in nodes))}
    for node in nodes:
        _Reader(source, node, {**names, **functions, "cls": SimpleNamespace(**functions)}, module).read()
    try:
        module.verify()
    except Exception as error:
        raise source.error(nodes[0], str(error)) from error


class _Reader:
    """Reads one function."""

    def __init__(self, source: Source, node: ast.FunctionDef, names: dict[str, Any], module: IRModule) -> None:
        self._source, self._node, self._names, self._module = source, node, names, module
        self._builder = BlockBuilder(module)

    def read(self) -> None:
        node = self._node
        params: list[Var] = []
        attributes: dict[str, Any] = {}
        for argument in node.args.args:
            info = None if argument.annotation is None else self._evaluate(argument.annotation)
            if not isinstance(info, TensorStructInfo):
                raise self._source.error(argument, f"parameter {argument.arg} is annotated with R.Tensor(shape, dtype)")
            params.append(Var(argument.arg, info))
            self._names[argument.arg] = params[-1]
        decorators = [word for word in node.decorator_list if isinstance(word, ast.Call)]
        private = any(k.arg == "private" and self._evaluate(k.value) for word in decorators for k in word.keywords)
        with self._builder.function(node.name, params, None, private):
            self._statements(node.body, attributes)
        for key, value in attributes.items():
            Function(cast("FuncOp", self._module.body.block.last_op)).func_op.attributes.update(
                Function(lookup(self._module, node.name)).with_attr(key, value).func_op.attributes
            )

    def _statements(self, body: Sequence[ast.stmt], attributes: dict[str, Any]) -> None:
        for statement in body:
            match statement:
                case ast.Expr(ast.Constant()) | ast.Pass():
                    continue
                case ast.Expr(ast.Call(ast.Attribute(attr="func_attr"), [given])):
                    attributes.update(self._evaluate(given))
                case ast.Assign([target], value) if self._declares(target, value):
                    continue
                case ast.Assign([ast.Name("cls")], _):
                    continue
                case ast.Assign([target], value):
                    self._bind(statement, target, self._evaluate(value))
                case ast.AnnAssign(ast.Name() as target, _, ast.expr() as value):
                    self._bind(statement, target, self._evaluate(value))
                case ast.With([ast.withitem(ast.Call(ast.Attribute(attr="dataflow")))], inner):
                    self._dataflow(statement, inner)
                case ast.Return(ast.expr() as value):
                    results = [self._resolved(result) for result in items(self._evaluate(value))]
                    self._run(statement, lambda results=results: self._builder.emit_func_output(results))
                case _:
                    raise self._source.error(
                        statement, "a function of a graph has assignments, `with R.dataflow():`, and returns"
                    )

    def _dataflow(self, statement: ast.With, inner: Sequence[ast.stmt]) -> None:
        last = inner[-1].value if isinstance(inner[-1], ast.Expr) else None
        is_output = isinstance(last, ast.Call) and isinstance(last.func, ast.Attribute) and last.func.attr == "output"
        if not is_output or not isinstance(last, ast.Call):
            raise self._source.error(statement, "a dataflow region ends with R.output(...)")
        with self._builder.dataflow():
            self._statements(inner[:-1], {})
            outputs = {name: self._evaluate(node) for node in last.args if (name := ast.unparse(node))}
            for name, value in outputs.items():
                self._names[name] = self._run(statement, lambda v=value, n=name: self._builder.emit_output(v, n))

    def _declares(self, target: ast.expr, value: ast.expr) -> bool:
        """`m, n = T.int64(), T.int64()`: names of extents."""
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        for one in values:
            is_word = isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and not one.args
            if not is_word or cast("Any", one).func.attr not in ("int64", "int32"):
                return False
        for one in targets:
            name = ast.unparse(one)
            self._names[name] = symbol(name)
        return True

    def _bind(self, statement: ast.stmt, target: ast.expr, value: Any) -> None:
        names = [ast.unparse(one) for one in (target.elts if isinstance(target, ast.Tuple) else [target])]
        values = items(value)
        if not all(isinstance(one, Value) for one in values) or len(names) not in (1, len(values)):
            raise self._source.error(statement, f"{ast.unparse(target)} is bound to calls of operators or functions")
        found = [self._run(statement, lambda v=one: self._builder.emit(self._resolved(v))) for one in values]
        for name, var in zip(names, found, strict=len(names) > 1):
            var.ssa._name = name
        if len(names) == 1:
            self._names[names[0]] = found[0] if len(found) == 1 else tuple(found)
        else:
            self._names.update(zip(names, found, strict=True))

    def _resolved(self, value: Any) -> Any:
        """A call of a function of the module, where its name is one of these."""
        owner = value.ssa.owner
        if isinstance(owner, CallDpsOp) and owner.parent is None:
            callee = owner.callee.data
            if callee in function_names(self._module):
                call = CallTirOp(callee, owner.operands, owner.result_types)
                return Call.at(call.results[owner.results.index(value.ssa)])
        return value

    def _evaluate(self, node: ast.expr) -> Any:
        code = compile(ast.Expression(node), self._source.file, "eval")

        return self._run(node, partial(eval, code, self._names))

    def _run(self, node: ast.stmt | ast.expr, action: Callable[[], Any]) -> Any:
        """The result of an action, whose errors are reported at `node`."""
        try:
            return action()
        except CompileError as error:
            if error.location is not None:
                raise
            raise self._source.error(node, error.message) from error
        except (AttributeError, NameError, TypeError, ValueError) as error:
            raise self._source.error(node, str(error)) from error
