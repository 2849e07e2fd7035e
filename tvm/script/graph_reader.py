"""Read functions under `@R.function` as graph functions.

The right side of `=` is Python on expressions, then bound.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block

from weft.dialects.graph import CallDpsOp, CallTirOp
from weft.dialects.graph_shapes import symbol
from weft.frontends.data_sizes import DataSizes
from weft.frontends.graph_builder import Value
from weft.frontends.graph_composites import Sized
from weft.frontends.graph_effects import Effect, after
from weft.frontends.in_place_functions import INPLACE, functional
from weft.frontends.script.reader import Handler, Reader
from weft.frontends.script.source import Source
from weft.passes.module_edits import function_names, lookup
from weft.texpr.shapes import items
from weft.tvm.ir.module import IRModule
from weft.tvm.relax.block_builder import BlockBuilder
from weft.tvm.relax.expr import Call, Constant, GlobalVar, TensorStructInfo, TupleInfo, UnknownInfo, Var, expr_of
from weft.tvm.relax.function import Function

_DEPTH = 64
"""Maximum nesting of calls of nested functions, which are inlined."""
_EXTENT = r"""(\w+\.)?(int(32|64)\((is_size_var=\w+)?\)|Var\(['"]\w+['"], ['"]int(32|64)['"]\))"""


def read_function(source: Source, nodes: Sequence[ast.FunctionDef], names: Mapping[str, Any]) -> Function:
    module = IRModule()
    read_graphs(source, nodes, names, module)
    return Function(lookup(module, nodes[0].name))


def read_graphs(
    source: Source, nodes: Sequence[ast.FunctionDef], names: Mapping[str, Any], module: IRModule, name: str = ""
) -> None:
    """Add graph functions to their callees' module. Raises CompileError."""
    functions = {name: GlobalVar(name) for name in (*function_names(module), *(node.name for node in nodes))}
    inside = SimpleNamespace(**functions)
    for node in _callees_first(nodes):
        _GraphReader(source, node, {**names, **functions, "cls": inside, name: inside}, module).read()
        functions[node.name] = GlobalVar.of(lookup(module, node.name))
        setattr(inside, node.name, functions[node.name])
    try:
        module.verify()
    except Exception as error:
        raise source.error(nodes[0], str(error)) from error


def _callees_first(nodes: Sequence[ast.FunctionDef]) -> list[ast.FunctionDef]:
    """Functions in topological order, as far as possible."""
    by_name, found = {node.name: node for node in nodes}, dict[str, ast.FunctionDef]()

    def add(node: ast.FunctionDef, around: Sequence[str]) -> None:
        for part in ast.walk(node):
            name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
            if name in by_name and name not in (*around, node.name) and name not in found:
                add(by_name[name], (*around, node.name))
        found.setdefault(node.name, node)

    for node in nodes:
        add(node, ())
    return list(found.values())


class _GraphReader(Reader):
    MEANINGLESS = "a function of a graph has assignments, `with R.dataflow():`, and returns"

    def __init__(self, source: Source, node: ast.FunctionDef, names: Mapping[str, Any], module: IRModule) -> None:
        super().__init__(source, names)
        self._node, self._module = node, module
        self._builder = BlockBuilder(module)
        self._attributes: dict[str, Any] = {}
        self._returned: list[Any] | None = None
        """The results of the branch or nested function that is read."""
        self._depth = 0
        self._calls: dict[CallDpsOp, CallTirOp] = {}
        """Calls of functions of the module, by those they replace."""
        self._token: Value | None = None
        """The last effect, on which the next one and the results depend."""

    def read(self) -> None:
        node = self._node
        params: list[Var] = []
        for argument in node.args.args:
            info = None if argument.annotation is None else self._evaluate(argument.annotation)
            self.scope[argument.arg] = self._parameter(argument, argument.arg, info, params)
        words = [keyword for word in node.decorator_list if isinstance(word, ast.Call) for keyword in word.keywords]
        private = any(word.arg == "private" and self._evaluate(word.value) for word in words)
        with self._builder.function(node.name, params, None, private):
            self.body(node.body)
        if self._attributes:
            self._module[node.name] = Function(lookup(self._module, node.name)).with_attr(self._attributes)

    def _parameter(self, node: ast.arg, name: str, info: Any, params: list[Var]) -> Any:
        if isinstance(info, TupleInfo):
            return tuple(self._parameter(node, f"{name}_{at}", part, params) for at, part in enumerate(info.fields))
        if isinstance(info, UnknownInfo) and info.ndim >= 0:
            info = TensorStructInfo([f"{name}_{at}" for at in range(info.ndim)], info.dtype)
        info = info() if callable(info) else info
        if not isinstance(info, TensorStructInfo):
            what = info.what if isinstance(info, UnknownInfo) else "no tensor"
            raise self.error(
                node,
                f"parameter {name} is {what}; in weft it is annotated with R.Tensor(shape, dtype), or with "
                "R.Tensor(ndim=...): weft knows the rank of each tensor, shapes are those of tensors, and functions "
                "are called by name",
            )
        params.append(Var(name, info))
        return params[-1]

    def _value(self, node: ast.Expr) -> None:
        match node.value:
            case ast.Constant():
                pass
            case ast.Call(ast.Attribute(attr="func_attr"), [given]):
                self._attributes.update(self._evaluate(given))
            case _:  # absent operators report the reason
                if isinstance(value := self._evaluate(node.value), Effect):
                    self._effect(node, value)
                elif value != ():
                    raise self.meaningless(node)

    def _effect(self, node: ast.stmt, effect: Effect) -> None:
        values = [*effect.values, *([] if self._token is None else [self._token])]
        self._token = self._run(node, self._builder.emit, effect.call(values))

    def _after(self, node: ast.stmt, results: list[Any]) -> list[Any]:
        """Results after the effects."""
        token, self._token = self._token, None
        if token is None:
            return results
        if not results:
            raise self.error(node, "a function with effects returns a tensor in weft, which depends on them")
        return [self._run(node, self._builder.emit, after(results[0], token)), *results[1:]]

    def _assignment(self, node: ast.Assign | ast.AnnAssign) -> None:
        match node:
            case ast.Assign([ast.Name("cls")], _):
                pass
            case ast.Assign([target], value) if _declares_extents(value):
                for name in _texts(target):
                    self.scope[name] = symbol(name)
            case ast.Assign([target], value) | ast.AnnAssign(target, _, ast.expr() as value):
                if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "match_cast":
                    self._match(value)
                    value = value.args[0]
                self._bind(node, _texts(target), self._evaluate(value))
            case _:
                raise self.meaningless(node)

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            raise self.meaningless(node)
        results = self._flat(node, self._evaluate(node.value))
        if self._returned is not None:
            self._returned.append(results if isinstance(node.value, ast.Tuple) or len(results) > 1 else results[0])
            return
        self._run(node, self._builder.emit_func_output, self._after(node, results))

    def _flat(self, node: ast.stmt, value: Any) -> list[Any]:
        if isinstance(value, tuple | list):
            return [one for part in cast("list[Any]", value) for one in self._flat(node, part)]
        if not isinstance(value, Value):
            raise self.error(node, f"a function of a graph returns tensors, got {value!r}")
        return [self._resolved(value)]

    def _match(self, call: ast.Call) -> None:
        """`R.match_cast(x, R.Tensor((n, m)))` binds names; given extents must be equal."""
        value, info = (self._evaluate(argument) for argument in call.args[:2])
        if not isinstance(info, TensorStructInfo):
            return
        if not isinstance(value, Value) or len(value.shape) != len(info.shape) or value.dtype != info.dtype:
            raise self.error(call, f"match_cast: {getattr(value, 'struct_info', value)!r} is no {info!r}")
        known = self._builder.extent_names()
        for wanted, extent in zip(info.shape, value.shape, strict=True):
            if isinstance(wanted, str) and wanted.isidentifier() and wanted not in known:
                self.scope[wanted] = extent
            elif str(wanted) != str(extent):
                raise self.error(call, f"match_cast: an extent is {extent}, and {wanted} is not known to be equal")

    def _if(self, node: ast.If) -> None:
        """Branches bind the same names, or return."""
        parts = ast.walk(ast.Module([*node.body, *node.orelse], []))
        used = {part.id for part in parts if isinstance(part, ast.Name)}
        names = [name for name in sorted(used) if isinstance(self.scope.known(name), Value)]
        last = node.body[-1]
        target = last.target if isinstance(last, ast.AnnAssign) else getattr(last, "targets", [None])[0]
        returns = isinstance(last, ast.Return)
        if not node.orelse or not (returns or isinstance(target, ast.Name)):
            raise self.error(node, "both branches of a condition bind one name last, or return")

        def branch(statements: Sequence[ast.stmt]) -> Callable[..., Any]:
            def run(*args: Value) -> Any:
                outer, self._returned = (self._returned, self._token), []
                self._token = None
                with self.scope.nested(dict(zip(names, (expr_of(arg.ssa) for arg in args), strict=True))):
                    self.body(statements)
                    found: Any = self._returned[0] if returns else self.scope.known(cast("ast.Name", target).id)
                    sealed = self._after(node, list(items(found)))
                self._returned, self._token = outer
                return sealed[0] if isinstance(found, Value) else sealed

            return run

        condition = self._evaluate(node.test)
        args = [self.scope.known(name) for name in names]
        found = self._run(node, self._builder.emit_if, condition, branch(node.body), branch(node.orelse), *args)
        seen = tuple(expr_of(one.ssa) for one in cast("tuple[Value, ...]", items(found)))
        result = seen if isinstance(found, tuple) else seen[0]
        if returns:
            self._run(node, self._builder.emit_func_output, list(items(result)))
        else:
            self.scope[cast("ast.Name", target).id] = result

    def _definition(self, node: ast.FunctionDef) -> None:
        """Calls are inlined."""

        def call(*args: Any) -> Any:
            names = [argument.arg for argument in node.args.args]
            if len(args) != len(names):
                raise self.error(node, f"{node.name} takes {len(names)} arguments, got {len(args)}")
            outer, self._returned = self._returned, []
            self._depth += 1
            if self._depth > _DEPTH:
                raise self.error(node, f"{node.name} calls itself: BlockBuilder.emit_loop makes loops of graphs")
            with self.scope.nested(dict(zip(names, args, strict=True))):
                self.body(node.body)
            found, self._returned = self._returned, outer
            self._depth -= 1
            return tuple(cast("Any", found[0])) if isinstance(found[0], list) else found[0]

        self.scope[node.name] = call

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
        value = self._evaluate(output)
        known = isinstance(output, ast.Name) or isinstance(value, Constant)
        if not known or not all(isinstance(one, Value) for one in items(value)):
            raise self.error(output, "R.output takes variables of the region")
        name = output.id if isinstance(output, ast.Name) else "gv"
        names = [name] if isinstance(value, Value) else [f"{name}{at}" for at in range(len(items(value)))]
        found = [
            self._run(output, self._builder.emit_output, one, name)
            for one, name in zip(items(value), names, strict=True)
        ]
        self.scope[name] = found[0] if isinstance(value, Value) else tuple(found)

    def _bind(self, statement: ast.stmt, names: Sequence[str], value: Any) -> None:
        if isinstance(value, Effect):
            self._effect(statement, value)
            value = ()
        values = items(value)
        if not values or not all(isinstance(one, Value) for one in values):
            for name, part in zip(names, [value] if len(names) == 1 else list(value), strict=True):
                self.scope[name] = part  # a tuple of tuples, a shape, a number
            return
        if len(names) not in (1, len(values)):
            raise self.error(statement, f"{', '.join(names)} is bound to calls of operators or functions")
        found = tuple(self._run(statement, self._builder.emit, self._resolved(one)) for one in values)
        for name, var in zip(names, found, strict=len(names) > 1):
            if not isinstance(var.ssa.owner, Block):  # parameters keep their names
                var.ssa._name = name
            self.scope[name] = var if len(names) == len(found) else found

    def _resolved(self, value: Any) -> Any:
        """A registered call becomes one of the module's function of that name, if any."""
        owner = value.ssa.owner
        if isinstance(owner, CallDpsOp) and owner.parent is None and INPLACE in owner.callee.data:
            owner.callee = StringAttr(functional(self._module, owner.callee.data, len(owner.operands)))
        if isinstance(owner, CallDpsOp) and owner.parent is None and owner.callee.data in self._module:
            call = self._calls.setdefault(owner, CallTirOp(owner.callee.data, owner.operands, owner.result_types))
            return Call.at(call.results[owner.results.index(value.ssa)])
        return value

    def _evaluate(self, node: ast.expr) -> Any:
        names = {**self.scope.outside, **self.scope.bound}
        found = self._run(node, eval, compile(ast.Expression(node), self.source.file, "eval"), names)
        return self._run(node, found.build, DataSizes(self._builder)) if isinstance(found, Sized) else found

    def _run(self, node: ast.stmt | ast.expr, action: Callable[..., Any], *args: Any) -> Any:
        try:
            with self.source.placing(node):
                return action(*args)
        except (AttributeError, NameError, TypeError, ValueError) as error:
            raise self.error(node, str(error)) from error

    STATEMENTS: Mapping[type[ast.stmt], Handler] = {
        ast.AnnAssign: _assignment,
        ast.Assign: _assignment,
        ast.Expr: _value,
        ast.FunctionDef: _definition,
        ast.If: _if,
        ast.Pass: Reader.nothing,
        ast.Return: _return,
        ast.With: _with,
    }


def _texts(target: ast.expr) -> list[str]:
    return [ast.unparse(one) for one in (target.elts if isinstance(target, ast.Tuple) else [target])]


def _declares_extents(value: ast.expr) -> bool:
    """`T.int64(), T.int64()` declares names of extents."""
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(re.fullmatch(_EXTENT, ast.unparse(one)) for one in values)
