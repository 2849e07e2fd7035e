"""Parse scripts to modules: the text of a whole script, or one decorated definition."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import PURE
from weft.frontends.script import words
from weft.frontends.script.attributes import last_line, parse_operations
from weft.frontends.script.constructs import IR
from weft.frontends.script.evaluate import Evaluator
from weft.frontends.script.function import PendingCall
from weft.frontends.script.macros import Macro, is_macro
from weft.frontends.script.reader import Handler, Reader
from weft.frontends.script.source import Source
from weft.frontends.script.statements import StatementParser
from weft.passes.verify_level import verify_level
from weft.support.errors import CompileError
from weft.support.locations import remember_text


def parse(text: str, name: str = "<script>") -> ModuleOp:
    """Parse a script to a module: the output of `print_script`, a Python file, or a script that TVM printed.

    The text has one class under `@ir_module`, or functions under `@T.prim_func`. Imports are not followed: `T` and `I`
    are the script's namespaces. Numbers and tuples assigned to names are constants. Raises CompileError, with the place
    in the text under `name`.
    """
    remember_text(name, text)
    source = Source(name, text)
    names = {"T": words, "tir": words, "tirx": words, "TypeVar": TypeVar, "I": IR, "ir": IR}
    reader = _ModuleReader(source, names, _AT_TOP)
    for node in source.parse().body:
        reader.statement(node)
    functions, module = reader.members, reader.module
    if module is not None and functions:
        raise source.error(cast("ast.FunctionDef", functions[0]), "a script has one class, or functions")
    if module is None and not functions:
        raise CompileError(f"{name} has neither a class under @ir_module nor a function under @T.prim_func")
    return read_module(source, functions, reader.names) if module is None else module


def read_class(source: Source, node: ast.ClassDef, names: Mapping[str, object]) -> ModuleOp:
    if not any(_last_name(decorator) == "ir_module" for decorator in node.decorator_list):
        raise source.error(node, f"class {node.name} is not under @ir_module")
    reader = _ModuleReader(source, names, _IN_CLASS)
    for statement in node.body:
        reader.statement(statement)
    module = read_module(source, reader.members, reader.names, node.name)
    module.attributes.update(reader.attributes)
    return module


class _ModuleReader(Evaluator):
    """Reads the top of a script, or the body of a class under `@ir_module`."""

    MEANINGLESS = "outside of functions only imports and constants are allowed: N = 128"

    def __init__(self, source: Source, names: Mapping[str, object], handlers: Mapping[type[ast.stmt], Handler]) -> None:
        self.names = dict(names)
        super().__init__(source, self.names)
        self.STATEMENTS = handlers
        self.members: list[ast.FunctionDef | Operation] = []
        self.attributes: dict[str, Attribute] = {}
        self.module: ModuleOp | None = None

    def function(self, node: ast.FunctionDef) -> None:
        if is_macro(node):
            self.names[node.name] = Macro.read(self.source, [node], self.names)
        else:
            self.members.append(node)

    def definition(self, node: ast.ClassDef) -> None:
        if self.module is not None:
            raise self.error(node, "a script has one class")
        self.module = read_class(self.source, node, self.names)

    def import_from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name in ("tir", "tirx", "ir"):
                self.names[alias.asname or alias.name] = IR if alias.name == "ir" else words

    def constant(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.meaningless(node)
        value, target = self.evaluate(node.value), node.targets[0]
        if isinstance(target, ast.Name):
            self.names[target.id] = value
            return
        parts = cast("Sequence[object]", value) if isinstance(value, tuple | list) else ()
        if not isinstance(target, ast.Tuple) or len(target.elts) != len(parts):
            raise self.error(target, "a constant has a name")
        for item, part in zip(target.elts, parts, strict=True):
            if not isinstance(item, ast.Name):
                raise self.error(item, "a constant has a name")
            self.names[item.id] = part

    def text(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            raise self.meaningless(node)

    def word(self, node: ast.Expr) -> None:
        call = node.value
        if not isinstance(call, ast.Call):
            self.text(node)
            return
        word = _last_name(call)
        if word not in ("mlir", "module_attrs") or (word == "module_attrs" and len(call.args) != 1):
            raise self.error(call, "a module holds functions, constants, I.module_attrs({...}) and I.mlir(...)")
        value = self.evaluate(call.args[0]) if len(call.args) == 1 else None
        if word == "module_attrs":
            self.attributes.update(self.as_attributes(call, value, "I.module_attrs takes a dict"))
        elif isinstance(value, str):
            self.members += self.apply(call, parse_operations, value)
        else:
            raise self.error(call, "I.mlir takes the text of operations")


_IN_CLASS: Final[Mapping[type[ast.stmt], Handler]] = {
    ast.Assign: _ModuleReader.constant,
    ast.Expr: _ModuleReader.word,
    ast.FunctionDef: _ModuleReader.function,
    ast.Pass: Reader.nothing,
}
_AT_TOP: Final[Mapping[type[ast.stmt], Handler]] = {
    **_IN_CLASS,
    ast.ClassDef: _ModuleReader.definition,
    ast.Expr: _ModuleReader.text,
    ast.Import: Reader.nothing,
    ast.ImportFrom: _ModuleReader.import_from,
}


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def read_module(
    source: Source,
    members: Sequence[ast.FunctionDef | Operation],
    names: Mapping[str, object],
    module: str | None = None,
) -> ModuleOp:
    """`module` is its name in the script."""
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
    inputs = [argument.type for argument in call.op.arguments]
    function = FuncOp.external(call.callee, inputs, [result.type for result in call.op.results])
    function.location = call.op.location
    if all(other.pure for other in calls):
        function.attributes[PURE] = UnitAttr()
    return function


def _resolve(source: Source, call: PendingCall, function: FuncOp) -> None:
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
