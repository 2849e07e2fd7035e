"""Scripts -> modules: the text of a whole script, or one decorated definition."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import PURE
from weft.frontends.script import ir, tir
from weft.frontends.script.attributes import last_line, parse_operations
from weft.frontends.script.evaluate import Evaluator
from weft.frontends.script.function import PendingCall
from weft.frontends.script.source import Source
from weft.frontends.script.statements import StatementParser
from weft.passes.verify_level import verify_level
from weft.support.errors import CompileError
from weft.support.locations import remember_text


def parse(text: str, name: str = "<script>") -> ModuleOp:
    """The module of a script: the output of `print_script`, a Python file, or TVM's printed script.

    The text has one class under `@ir_module`, or functions under `@T.prim_func`; imports are not followed, and `T` and
    `I` mean the script's namespaces. Numbers and tuples that are assigned to names are constants of what comes after.
    Raises CompileError, which points into the text under `name`.
    """
    remember_text(name, text)
    source = Source(name, text)
    names: dict[str, object] = {"T": tir, "tir": tir, "tirx": tir, "TypeVar": TypeVar, "I": ir, "ir": ir}
    evaluator = Evaluator(source, names)
    functions: list[ast.FunctionDef] = []
    module: ModuleOp | None = None
    for node in source.parse().body:
        match node:
            case ast.Import() | ast.ImportFrom():
                _import(node, names)
            case ast.ClassDef() if module is None:
                module = read_class(source, node, names)
            case ast.ClassDef():
                raise source.error(node, "a script has one class")
            case ast.FunctionDef():
                functions.append(node)
            case _:
                _constant(source, evaluator, node, names)
    if module is not None and functions:
        raise source.error(functions[0], "a script has one class, or functions")
    if module is None and not functions:
        raise CompileError(f"{name} has neither a class under @ir_module nor a function under @T.prim_func")
    return module if module is not None else read_module(source, functions, names)


def read_class(source: Source, node: ast.ClassDef, names: Mapping[str, object]) -> ModuleOp:
    """The module of a class under `@ir_module`."""
    if not any(_last_name(decorator) == "ir_module" for decorator in node.decorator_list):
        raise source.error(node, f"class {node.name} is not under @ir_module")
    inner = dict(names)
    evaluator = Evaluator(source, inner)
    members: list[ast.FunctionDef | Operation] = []
    attributes: dict[str, Attribute] = {}
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            members.append(statement)
        elif not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            _constant(source, evaluator, statement, inner)
        else:
            call = statement.value
            word = _last_name(call)
            if word not in ("mlir", "module_attrs") or (word == "module_attrs" and len(call.args) != 1):
                raise source.error(call, "a module holds functions, constants, I.module_attrs({...}) and I.mlir(...)")
            value = evaluator.evaluate(call.args[0]) if len(call.args) == 1 else None
            if word == "module_attrs":
                attributes.update(evaluator.attributes(call, value, "I.module_attrs takes a dict"))
            elif isinstance(value, str):
                members += evaluator.apply(call, parse_operations, value)
            else:
                raise source.error(call, "I.mlir takes the text of operations")
    module = read_module(source, members, inner, node.name)
    module.attributes.update(attributes)
    return module


def _last_name(node: ast.expr) -> str | None:
    """`ir_module` of `ir_module`, `I.ir_module`, `tvm.script.ir_module` and calls of them."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _import(node: ast.Import | ast.ImportFrom, names: dict[str, object]) -> None:
    """Bind the script namespaces that an import names; other imports are ignored."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom) and alias.name in ("tir", "tirx", "ir"):
            names[alias.asname or alias.name] = ir if alias.name == "ir" else tir


def _constant(source: Source, evaluator: Evaluator, node: ast.stmt, names: dict[str, object]) -> None:
    """`N = 128` and `H, W = 8, 8` at the top of a script or in a class."""
    if isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        raise source.error(node, "outside of functions stand imports, and constants: N = 128")
    value = evaluator.evaluate(node.value)
    target = node.targets[0]
    if isinstance(target, ast.Name):
        names[target.id] = value
        return
    parts = cast("Sequence[object]", value) if isinstance(value, tuple | list) else ()
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(parts):
        raise source.error(target, "a constant has a name")
    for item, part in zip(target.elts, parts, strict=True):
        if not isinstance(item, ast.Name):
            raise source.error(item, "a constant has a name")
        names[item.id] = part


def read_module(
    source: Source,
    members: Sequence[ast.FunctionDef | Operation],
    names: Mapping[str, object],
    module: str | None = None,
) -> ModuleOp:
    """The module of functions and other ops, which `module` names in the script."""
    nodes = [member for member in members if isinstance(member, ast.FunctionDef)]
    for node in nodes:
        kinds = [_last_name(decorator) for decorator in node.decorator_list]
        if "prim_func" not in kinds:
            found = f"under @{kinds[0]}" if kinds else "not decorated"
            raise source.error(node, f"{node.name} is {found}: functions of a script are under @T.prim_func")
    siblings = [node.name for node in nodes]
    functions: dict[str, FuncOp] = {}
    symbols: dict[str, FuncOp] = {}
    calls: list[PendingCall] = []
    for node in nodes:
        parser = StatementParser(source, node, names, siblings, module)
        function = parser.parse()
        symbol = function.sym_name.data
        if symbol in symbols or node.name in functions:
            raise source.error(node, f"two functions are called '{symbol}'")
        functions[node.name] = symbols[symbol] = function
        calls += parser.calls
    for call in calls:
        if call.outside and call.callee not in symbols:
            symbols[call.callee] = _declaration(call, [other for other in calls if other.callee == call.callee])
        _resolve(source, call, symbols[call.callee] if call.outside else functions[call.callee])
    written = [functions[member.name] if isinstance(member, ast.FunctionDef) else member for member in members]
    op = ModuleOp([*written, *(f for f in symbols.values() if f not in written)])
    for inner in op.walk():
        try:
            inner.verify(verify_nested_ops=False)
        except VerifyException as failure:
            raise CompileError.at(inner, last_line(failure)) from None
    verify_level(op, "tir")
    return op


def _declaration(call: PendingCall, calls: Sequence[PendingCall]) -> FuncOp:
    """The declaration of an external function, from a call; pure if all `calls` of it are."""
    inputs = [argument.type for argument in call.op.arguments]
    function = FuncOp.external(call.callee, inputs, [result.type for result in call.op.results])
    function.location = call.op.location
    if all(other.pure for other in calls):
        function.attributes[PURE] = UnitAttr()
    return function


def _resolve(source: Source, call: PendingCall, function: FuncOp) -> None:
    """Check a call against its callee, and set the callee's symbol."""
    expected = list(function.function_type.inputs)
    found = [argument.type for argument in call.op.arguments]
    if len(expected) != len(found):
        raise source.error(call.node, f"{call.callee} takes {len(expected)} arguments, {len(found)} are given")
    skipped = len(call.node.args) - len(found)
    for position, (want, got) in enumerate(zip(expected, found, strict=True)):
        if want != got:
            raise source.error(
                call.node.args[position + skipped],
                f"argument {position} of {call.callee} is {want}, and {got} is given",
            )
    wanted = list(function.function_type.outputs)
    given = [result.type for result in call.op.results]
    if wanted != given:
        shown = ["nothing" if not types else str(types[0]) for types in (wanted, given)]
        raise source.error(call.node, f"{call.callee} gives {shown[0]}, and the call expects {shown[1]}")
    call.op.properties["callee"] = SymbolRefAttr(function.sym_name.data)
