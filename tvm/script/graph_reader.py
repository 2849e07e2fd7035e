"""Functions under `@R.function` -> functions of graphs.

Statements are read in order: what stands to the right of `=` is evaluated as Python, with the parameters and variables
as expressions, and bound in the function.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from weft.dialects.graph import CallDpsOp, CallTirOp
from weft.dialects.graph_shapes import symbol
from weft.frontends.graph_builder import Value
from weft.frontends.script.reader import Handler, Reader
from weft.frontends.script.source import Source
from weft.passes.module_functions import function_names, lookup
from weft.texpr.shapes import items
from weft.tvm.ir.module import IRModule
from weft.tvm.relax.block_builder import BlockBuilder
from weft.tvm.relax.expr import Call, GlobalVar, TensorStructInfo, Var
from weft.tvm.relax.function import Function


def read_function(source: Source, nodes: Sequence[ast.FunctionDef], names: Mapping[str, Any]) -> Function:
    """The function of a graph of a definition."""
    module = IRModule()
    read_graphs(source, nodes, names, module)
    return Function(lookup(module, nodes[0].name))


def read_graphs(source: Source, nodes: Sequence[ast.FunctionDef], names: Mapping[str, Any], module: IRModule) -> None:
    """Add the functions of graphs to a module of those that they call. Raises CompileError at the place of an error."""
    functions = {name: GlobalVar(name) for name in (*function_names(module), *(node.name for node in nodes))}
    for node in nodes:
        _GraphReader(source, node, {**names, **functions, "cls": SimpleNamespace(**functions)}, module).read()
    try:
        module.verify()
    except Exception as error:
        raise source.error(nodes[0], str(error)) from error


class _GraphReader(Reader):
    """Reads one function."""

    MEANINGLESS = "a function of a graph has assignments, `with R.dataflow():`, and returns"

    def __init__(self, source: Source, node: ast.FunctionDef, names: Mapping[str, Any], module: IRModule) -> None:
        super().__init__(source, names)
        self._node, self._module = node, module
        self._builder = BlockBuilder(module)
        self._attributes: dict[str, Any] = {}

    def read(self) -> None:
        node = self._node
        params: list[Var] = []
        for argument in node.args.args:
            info = None if argument.annotation is None else self._evaluate(argument.annotation)
            if not isinstance(info, TensorStructInfo):
                raise self.error(argument, f"parameter {argument.arg} is annotated with R.Tensor(shape, dtype)")
            params.append(Var(argument.arg, info))
            self.scope[argument.arg] = params[-1]
        words = [keyword for word in node.decorator_list if isinstance(word, ast.Call) for keyword in word.keywords]
        private = any(word.arg == "private" and self._evaluate(word.value) for word in words)
        with self._builder.function(node.name, params, None, private):
            self.body(node.body)
        if self._attributes:
            self._module[node.name] = Function(lookup(self._module, node.name)).with_attr(self._attributes)

    def _value(self, node: ast.Expr) -> None:
        match node.value:
            case ast.Constant():
                pass
            case ast.Call(ast.Attribute(attr="func_attr"), [given]):
                self._attributes.update(self._evaluate(given))
            case _:
                raise self.meaningless(node)

    def _assignment(self, node: ast.Assign | ast.AnnAssign) -> None:
        match node:
            case ast.Assign([ast.Name("cls")], _):
                pass
            case ast.Assign([target], value) if _declares_extents(value):
                for name in _texts(target):
                    self.scope[name] = symbol(name)
            case ast.Assign([target], value) | ast.AnnAssign(target, _, ast.expr() as value):
                self._bind(node, _texts(target), self._evaluate(value))
            case _:
                raise self.meaningless(node)

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            raise self.meaningless(node)
        results = [self._resolved(result) for result in items(self._evaluate(node.value))]
        self._run(node, self._builder.emit_func_output, results)

    def _with(self, node: ast.With) -> None:
        match node.items, node.body[-1]:
            case [ast.withitem(ast.Call(ast.Attribute(attr="dataflow")))], ast.Expr(
                ast.Call(ast.Attribute(attr="output"), outputs)
            ):
                with self._builder.dataflow():
                    self.body(node.body[:-1])
                    for output in outputs:
                        self._output(output)
            case [ast.withitem(ast.Call(ast.Attribute(attr="dataflow")))], _:
                raise self.error(node, "a dataflow region ends with R.output(...)")
            case _:
                raise self.meaningless(node)

    def _output(self, output: ast.expr) -> None:
        """Let a variable leave the region; one that stands for several results does so with all of them."""
        value = self._evaluate(output)
        if not isinstance(output, ast.Name) or not all(isinstance(one, Value) for one in items(value)):
            raise self.error(output, "R.output takes variables of the region")
        names = [output.id] if isinstance(value, Value) else [f"{output.id}{at}" for at in range(len(items(value)))]
        found = [
            self._run(output, self._builder.emit_output, one, name)
            for one, name in zip(items(value), names, strict=True)
        ]
        self.scope[output.id] = found[0] if isinstance(value, Value) else tuple(found)

    def _bind(self, statement: ast.stmt, names: Sequence[str], value: Any) -> None:
        values = items(value)
        if not all(isinstance(one, Value) for one in values) or len(names) not in (1, len(values)):
            raise self.error(statement, f"{', '.join(names)} is bound to calls of operators or functions")
        found = tuple(self._run(statement, self._builder.emit, self._resolved(one)) for one in values)
        for name, var in zip(names, found, strict=len(names) > 1):
            var.ssa._name = name
            self.scope[name] = var if len(names) == len(found) else found

    def _resolved(self, value: Any) -> Any:
        """A call of a function of the module, where its name is one of these."""
        owner = value.ssa.owner
        if isinstance(owner, CallDpsOp) and owner.parent is None and owner.callee.data in self._module:
            call = CallTirOp(owner.callee.data, owner.operands, owner.result_types)
            return Call.at(call.results[owner.results.index(value.ssa)])
        return value

    def _evaluate(self, node: ast.expr) -> Any:
        names = {**self.scope.outside, **self.scope.bound}
        return self._run(node, eval, compile(ast.Expression(node), self.source.file, "eval"), names)

    def _run(self, node: ast.stmt | ast.expr, action: Callable[..., Any], *args: Any) -> Any:
        """The result of an action, whose errors are reported at `node`."""
        try:
            with self.source.placing(node):
                return action(*args)
        except (AttributeError, NameError, TypeError, ValueError) as error:
            raise self.error(node, str(error)) from error

    STATEMENTS: Mapping[type[ast.stmt], Handler] = {
        ast.AnnAssign: _assignment,
        ast.Assign: _assignment,
        ast.Expr: _value,
        ast.Pass: Reader.nothing,
        ast.Return: _return,
        ast.With: _with,
    }


def _texts(target: ast.expr) -> list[str]:
    """The names that an assignment binds."""
    return [ast.unparse(one) for one in (target.elts if isinstance(target, ast.Tuple) else [target])]


def _declares_extents(value: ast.expr) -> bool:
    """Whether a value is `T.int64(), T.int64()`: names of extents."""
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(re.fullmatch(r"(\w+\.)?int(32|64)\(\)", ast.unparse(one)) for one in values)
