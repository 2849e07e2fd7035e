"""The statements of a script -> ops: loops, conditions, stores, local variables."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from weft.frontends.script import tir
from weft.frontends.script.attributes import to_attributes
from weft.frontends.script.blocks import BlockParser
from weft.frontends.script.calls import CallParser
from weft.frontends.script.conditions import ConditionParser
from weft.frontends.script.constructs import Construct, DType, IntrinsicWord
from weft.frontends.script.function import FunctionParser
from weft.frontends.script.loops import LoopParser
from weft.frontends.script.python_rules import shown
from weft.frontends.script.source import Positioned
from weft.frontends.script.values import Buffer, BufferLoad, Leaf, Opaque, Symbol, hint_of, is_scalar
from weft.support.errors import CompileError
from weft.texpr.expr import Compare, Const, Expr
from weft.texpr.facts import RELATIONS, TURNED
from weft.texpr.operators import as_number


class StatementParser:
    """Reads statements into the current region of a function."""

    def __init__(self, function: FunctionParser) -> None:
        self.function = function
        self.source = function.source
        self.evaluator = function.evaluator
        self.emitter = function.emitter
        self._blocks = BlockParser(function, self.body)
        self._calls_of = CallParser(function)
        self._loops = LoopParser(function, self.body)
        self._conditions = ConditionParser(function, self.body)

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Statements in order."""
        for position, statement in enumerate(statements):
            if (launch := self._launch(statement)) is not None:
                self.place(statement)
                self._launched(statement, launch, statements[position + 1 :])
                return
            with self.source.placing(statement):
                self.statement(statement)

    def place(self, node: ast.stmt) -> None:
        self.emitter.place = self.source.place(node)

    def error(self, node: Positioned, message: str) -> CompileError:
        return self.source.error(node, message)

    def statement(self, node: ast.stmt) -> None:
        self.place(node)
        if not self._is_declaration(node):
            self.function.flush()
        match node:
            case ast.Pass():
                pass
            case ast.Expr():
                self._expression(node.value)
            case ast.Assign() if len(node.targets) == 1:
                self._assign(node.targets[0], node.value)
            case ast.AnnAssign() if node.value is not None:
                self._assign(node.target, node.value, node.annotation)
            case ast.AugAssign():
                self._update(node)
            case ast.For() if not node.orelse:
                self._loops.parse(node)
            case ast.With() if len(node.items) == 1:
                self._with(node)
            case ast.If():
                self._conditions.parse(node)
            case _:
                word = type(node).__name__.lower()
                raise self.error(
                    node, f"`{word}` has no meaning here: scripts have for, with T.block, if and assignments"
                )

    def _is_declaration(self, node: ast.stmt) -> bool:
        """Whether `node` only declares: the extents that it gives are stated after the last declaration in a row."""
        if isinstance(node, ast.Pass):
            return True
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant) or self._calls(node.value, tir.func_attr)
        if isinstance(node, ast.Assign):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            return all(self._calls(value, tir.match_buffer) or self._is_symbol(value) for value in values)
        return False

    def _word(self, node: ast.expr) -> object:
        """What the function of a call is, if it is a name or below one."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
            return None
        if self.function.callee(node.func) is not None:
            return None
        return self.evaluator.evaluate(node.func)

    def _calls(self, node: ast.expr, word: Construct) -> bool:
        found = self._word(node)
        return isinstance(found, Construct) and found is word

    def _is_symbol(self, node: ast.expr) -> bool:
        """Whether `node` is a symbolic extent, `T.int64()`."""
        return isinstance(node, ast.Call) and not node.args and isinstance(self._word(node), DType)

    # Expressions as statements

    def _expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):  # a docstring, `...`
            return
        if not isinstance(node, ast.Call):
            raise self.error(node, "the value of this expression is not used: store it in a buffer")
        callee = self.function.callee(node.func)
        if callee is not None:
            self._calls_of.inside(node, callee)
            return
        word = self._word(node)
        if word is tir.evaluate and len(node.args) == 1 and not node.keywords:
            if isinstance(node.args[0], ast.Call) and isinstance(self._word(node.args[0]), Construct | None):
                self._expression(node.args[0])
            else:
                self.evaluator.expression(node.args[0])
        elif word is tir.assume:
            self._assume(node)
        elif word is tir.func_attr:
            self.function.func_attr(node)
        elif word is tir.attr and len(node.args) == 1 and not node.keywords:
            self._pragma(node)
        elif word is tir.op:
            self._calls_of.by_name(node)
        elif word in (tir.call_extern, tir.call_pure_extern):
            self._calls_of.outside(node, pure=word is tir.call_pure_extern)
        elif isinstance(word, IntrinsicWord):
            self._calls_of.intrinsic(node, None)
        elif isinstance(word, Construct):
            raise self.error(node, f"{word} does not stand here; it is used so: `{word.usage}`")
        else:
            raise self.error(node, "the value of this call is not used: store it in a buffer")

    def _pragma(self, node: ast.Call) -> None:
        """`T.attr({"pragma_unroll": 4})`: annotations of the loop or block around."""
        value = self.evaluator.evaluate(node.args[0])
        if not isinstance(value, dict):
            raise self.error(node, "T.attr takes a dict of annotations here")
        op = self.emitter.around
        if op is None:
            raise self.error(node, "T.attr stands in a loop or a block: annotate a function by T.func_attr")
        op.attributes.update(self.evaluator.apply(node, to_attributes, cast("dict[object, object]", value)))

    # Assignments

    def _assign(self, target: ast.expr, value: ast.expr, annotation: ast.expr | None = None) -> None:
        if isinstance(target, ast.Subscript):
            buffer = self._buffer(target)
            indices = self.evaluator.indices(target, buffer)
            self.store(buffer.stored, indices, self.evaluator.element(value, buffer.dtype, f"buffer {buffer.name}"))
            return
        word = self._word(value)
        if isinstance(word, Construct) and word not in (tir.attr, tir.Let):
            if isinstance(target, ast.Name) and isinstance(word, IntrinsicWord):
                op = self._calls_of.intrinsic(
                    cast("ast.Call", value), self._result_of(cast("ast.Call", value), annotation)
                )
                self._bind_result(target.id, op.results[0])
                return
            if isinstance(target, ast.Name):
                self._declare(target.id, cast("ast.Call", value), word)
                return
            if word is tir.op and isinstance(target, ast.Tuple):
                self._bind_results(target, self._calls_of.by_name(cast("ast.Call", value)))
                return
        if isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value)
        elif isinstance(target, ast.Name):
            dtype = None if annotation is None else self._declared_dtype(annotation)
            self.bind(target, self._evaluate(target, value), dtype)
        else:
            raise self.error(target, "a value is assigned to a name or to an element of a buffer")

    def _result_of(self, call: ast.Call, annotation: ast.expr | None) -> DType:
        """The dtype of what an intrinsic gives: that of the name, else the first argument."""
        if annotation is not None:
            dtype: object = self._declared_dtype(annotation)
        else:
            first = self.evaluator.evaluate(call.args[0]) if call.args else None
            dtype = tir.WORDS.get(first) if isinstance(first, str) else None
        if not isinstance(dtype, DType):
            raise self.error(call, "the dtype of this value is not known: x: T.float32 = ...")
        return dtype

    def _declared_dtype(self, annotation: ast.expr) -> DType | None:
        """The dtype in `x: T.int32 = ...` and `x: T.let[T.int32] = ...`."""
        found = self.evaluator.evaluate(annotation)
        if isinstance(found, Construct) and found is tir.let and isinstance(annotation, ast.Subscript):
            found = self.evaluator.evaluate(annotation.slice)
        return found if isinstance(found, DType) else None

    def _evaluate(self, target: ast.expr, value: ast.expr) -> object:
        if self._is_symbol(value) and isinstance(target, ast.Name):
            known = self.evaluator.known(target.id)
            if known is None:
                return self._symbol(value, target.id)
            if not isinstance(known, Symbol | Leaf) or not known.is_index:
                raise self.error(target, f"{target.id} is {shown(known)} already: a size has a name of its own")
            return known
        return self.evaluator.evaluate(value)

    def _symbol(self, node: ast.expr, name: str) -> Symbol:
        """`T.int64()`: an extent."""
        dtype = cast("DType", self._word(node)).name
        if dtype not in ("int32", "int64"):
            raise self.error(node, f"an extent is T.int64() or T.int32(), not {dtype}")
        return Symbol(name, dtype, place=self.source.place(node))

    def _unpack(self, target: ast.Tuple | ast.List, value: ast.expr) -> None:
        names = [self._plain_name(item) for item in target.elts]
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(names):
            values = [self._evaluate(name, item) for name, item in zip(names, value.elts, strict=True)]
        else:
            found = self.evaluator.evaluate(value)
            if not isinstance(found, tuple | list):
                raise self.error(value, f"{len(names)} names, and one value")
            values = list(cast("Sequence[object]", found))
            if len(values) != len(names):
                raise self.error(value, f"{len(names)} names, and {len(values)} values")
        for name, item in zip(names, values, strict=True):
            self.bind(name, item)

    def _plain_name(self, node: ast.expr) -> ast.Name:
        if not isinstance(node, ast.Name):
            raise self.error(node, "a name stands here")
        return node

    def bind(self, target: ast.Name, value: object, dtype: DType | None = None) -> None:
        """Give `value` a name. An element is computed now; an index expression only where `dtype` says so."""
        name = target.id
        number = as_number(value)
        if number is not None and dtype is not None:
            value = self.evaluator.apply(target, dtype, number)
        if isinstance(value, Expr) and not isinstance(value, Const | Leaf | Symbol):
            if dtype is not None and dtype.name != value.dtype and not (value.is_index and dtype.name == "int32"):
                raise self.error(target, f"{name} is {dtype.name}, and `{value}` is {value.dtype}: cast it")
            if not value.is_index:
                value = self._named(self.emitter.value(value), name)
            elif dtype is not None:
                value = self._named(self.emitter.index(value), name)
        self.evaluator.bind_checked(target, value)

    def _named(self, value: SSAValue, name: str) -> Leaf:
        value.name_hint = hint_of(name)
        return Leaf.of(value, name)

    def _declare(self, name: str, node: ast.Call, word: Construct) -> None:
        """`name = T.alloc_buffer(...)` and other words that give a name something to mean."""
        if word is tir.match_buffer:
            self.evaluator.bind(name, self.function.match_buffer(node, name))
        elif word is tir.alloc_buffer:
            self.evaluator.bind(name, self.function.alloc_buffer(node, name))
        elif word in (tir.Buffer, tir.decl_buffer):
            self.evaluator.bind(name, self.function.flat_view(node, name))
        elif word in (tir.op, tir.call_extern, tir.call_pure_extern):
            pure = word is tir.call_pure_extern
            op = self._calls_of.by_name(node) if word is tir.op else self._calls_of.outside(node, pure=pure)
            if len(op.results) != 1:
                raise self.error(node, f"{op.name} gives {len(op.results)} values")
            self._bind_result(name, op.results[0])
        else:
            raise self.error(node, f"{word} does not stand here; it is used so: `{word.usage}`")

    def _bind_results(self, target: ast.Tuple, op: Operation) -> None:
        if len(target.elts) != len(op.results):
            raise self.error(target, f"{len(target.elts)} names, and {op.name} gives {len(op.results)} values")
        for item, result in zip(target.elts, op.results, strict=True):
            self._bind_result(self._plain_name(item).id, result)

    def _bind_result(self, name: str, value: SSAValue) -> None:
        value.name_hint = hint_of(name)
        if isinstance(value.type, MemRefType):
            extents = tuple(None if extent < 0 else extent for extent in value.type.get_shape())
            self.evaluator.bind(name, Buffer(value, name, extents))
        elif is_scalar(value.type):
            self.evaluator.bind(name, Leaf.of(value, name))
        else:
            self.evaluator.bind(name, Opaque(value, name))

    def _assume(self, node: ast.Call) -> None:
        """`T.assume(n % 32 == 0)`: a fact about extents, at the top of a function."""
        if not node.args or node.keywords:
            raise self.error(node, f"T.assume takes comparisons of extents: `{tir.assume.usage}`")
        for argument in node.args:
            fact = self.evaluator.evaluate(argument)
            if not isinstance(fact, Compare) or fact.predicate not in RELATIONS:
                raise self.error(
                    argument, f"T.assume takes comparisons of extents by ==, <=, <, >= or >: `{tir.assume.usage}`"
                )
            left, right = (fact.right, fact.left) if fact.predicate in TURNED else (fact.left, fact.right)
            for side in (left, right):
                if not (side.is_index or isinstance(side, Const)):
                    raise self.error(argument, f"T.assume compares extents, `{side}` is {side.dtype}")
            self.emitter.assume(left, RELATIONS[fact.predicate], right)

    # Stores

    def _buffer(self, node: ast.Subscript) -> Buffer:
        found = self.evaluator.evaluate(node.value)
        if not isinstance(found, Buffer):
            raise self.error(node, f"elements of buffers are assigned to, {ast.unparse(node.value)} is none")
        return found

    def store(self, buffer: Buffer, indices: Sequence[Expr], value: Expr) -> None:
        self.emitter.store(buffer, indices, value)

    def _update(self, node: ast.AugAssign) -> None:
        """`A[i] += x` is `A[i] = A[i] + x`."""
        if not isinstance(node.target, ast.Subscript):
            raise self.error(node, "only elements of buffers are updated; give a new value a new name")
        buffer = self._buffer(node.target)
        indices = self.evaluator.indices(node.target, buffer)
        old = self.evaluator.note(node.target, BufferLoad(buffer.stored, indices, buffer.dtype))
        new = self.evaluator.operate(node, node.op, old, self.evaluator.evaluate(node.value))
        value = self.evaluator.scalar(node, new)
        expr = value if isinstance(value, Expr) else self.evaluator.expression(node.value)
        if expr.dtype != buffer.dtype:
            raise self.error(
                node, f"buffer {buffer.name} is {buffer.dtype}, and the new value is {expr.dtype}: cast it"
            )
        self.store(buffer.stored, indices, self.evaluator.note(node, expr))

    # Threads, blocks and conditions

    def _launch(self, node: ast.stmt) -> ast.Call | None:
        """The call in `i = T.launch_thread("threadIdx.x", 64)`."""
        found = isinstance(node, ast.Assign) and self._calls(node.value, tir.launch_thread)
        return cast("ast.Call", node.value) if found and isinstance(node, ast.Assign) else None

    def _launched(self, node: ast.stmt, call: ast.Call, statements: Sequence[ast.stmt]) -> None:
        """All that follows `T.launch_thread` runs in the loop over its threads."""
        self.function.flush()
        target = node.targets[0] if isinstance(node, ast.Assign) else call
        self._loops.over_threads(node, call, self._plain_name(target).id, statements)

    def _with(self, node: ast.With) -> None:
        item = node.items[0]
        call = item.context_expr
        word = self._word(call)
        if word is tir.block and item.optional_vars is None:
            self._blocks.parse(node, cast("ast.Call", call))
        elif word is tir.launch_thread and isinstance(item.optional_vars, ast.Name):
            self._loops.over_threads(node, cast("ast.Call", call), item.optional_vars.id, node.body)
        elif word is tir.init:
            raise self.error(node, "T.init() stands in a block, before what is computed")
        else:
            raise self.error(call, f"`with` opens a block: `{tir.block.usage}`")
