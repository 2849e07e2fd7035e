"""Parse the statements of a script into ops."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, cast

from xdsl.dialects.scf import ConditionOp, WhileOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.analysis.block_scopes import ROOT
from weft.dialects.tir import AccessRegionOp, InitOp, ReadsOp, WritesOp
from weft.dialects.tir_assume import Relation
from weft.dialects.tir_kinds import LoopKind
from weft.frontends.script import words
from weft.frontends.script.constructs import (
    AXES,
    REMAP_AXES,
    Construct,
    DType,
    IntrinsicWord,
)
from weft.frontends.script.early_exit import exits, flag_is, set_flag, with_flag
from weft.frontends.script.emit import buffer_type
from weft.frontends.script.evaluate import VECTOR, both, difference, shown, vector_element
from weft.frontends.script.function import FunctionParser
from weft.frontends.script.macros import Macro, is_macro
from weft.frontends.script.reader import Handler, Reader, Scope
from weft.frontends.script.text import PythonNames
from weft.frontends.script.values import (
    BlockAxis,
    Buffer,
    BufferLoad,
    Guard,
    Leaf,
    Opaque,
    Scalar,
    Symbol,
    hint_of,
    index_key,
    named_value,
    static_extent,
    walk,
)
from weft.texpr.expr import (
    Binary,
    BinaryKind,
    Compare,
    Const,
    Expr,
    as_expr,
    as_number,
    binary,
    default_number,
    type_of,
)
from weft.texpr.function import relation_of
from weft.texpr.shapes import as_index

_LOOPS: Mapping[object, LoopKind] = {range: LoopKind.SERIAL, **{word: kind for kind, word in words.LOOPS.items()}}
_AXES = {word: kind for kind, (_, word) in AXES.items()}
_AXIS_LETTERS = {letter: kind for kind, (letter, _) in AXES.items()}


@dataclass(frozen=True)
class _Range:
    """start + step * i for 0 <= i < extent"""

    name: str
    start: Expr | int
    step: int
    extent: Expr | int


@dataclass
class _Head:
    """Axes are (name, kind, extent, binding)."""

    axes: list[BlockAxis] = field(default_factory=list[BlockAxis])
    starts: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """Starts of axes other than 0."""
    conditions: list[Expr] = field(default_factory=list[Expr])
    """Predicates that are not guards."""
    guards: list[Guard] = field(default_factory=list[Guard])
    annotations: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    regions: list[tuple[type[AccessRegionOp], ast.Call]] = field(
        default_factory=list[tuple[type[AccessRegionOp], ast.Call]]
    )
    views: list[ast.stmt] = field(default_factory=list[ast.stmt])
    init: ast.With | None = None


class StatementParser(FunctionParser):
    MEANINGLESS = "`{word}` has no meaning here: scripts have for, with T.block, if and assignments"

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for position, statement in enumerate(statements):
            if isinstance(statement, ast.Expr) and self._calls(statement.value, words.launch_thread):
                # `T.launch_thread(tx, 64)` with `tx = T.env_thread("threadIdx.x")`
                self.place(statement)
                self.flush()
                call = cast("ast.Call", statement.value)
                self._over_threads(statement, call, self._thread_variable(call), statements[position + 1 :])
                return
            if isinstance(statement, ast.Expr) and self._is_attribute(statement.value):
                # `T.attr(node, "key", value)`: later statements are its body
                rest = ast.copy_location(ast.With([], list(statements[position + 1 :])), statement)
                self._attribute_statement(rest, cast("ast.Call", statement.value))
                return
            if isinstance(statement, ast.Assign) and self._calls(statement.value, words.launch_thread):
                # `i = T.launch_thread("threadIdx.x", 64)`: later statements are its body
                self.place(statement)
                self.flush()
                name = self._plain_name(statement.targets[0]).id
                self._over_threads(statement, cast("ast.Call", statement.value), name, statements[position + 1 :])
                return
            super().body([statement])

    def statement(self, node: ast.stmt) -> None:
        self.place(node)
        if not self._is_declaration(node):
            self.flush()
        super().statement(node)

    def _is_declaration(self, node: ast.stmt) -> bool:
        """Extents are stated in IR after a run of declarations."""
        if isinstance(node, ast.Pass):
            return True
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant) or self._calls(node.value, words.func_attr)
        if isinstance(node, ast.Assign):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            return all(self._calls(value, words.match_buffer) or self._is_symbol(value) for value in values)
        return False

    def _word(self, node: ast.expr) -> object:
        """The callee, or None if it is a function of the module."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
            return None
        is_vector = isinstance(node.func, ast.Attribute) and node.func.attr in ("vload", "vstore")
        if is_vector or self.callee(node.func) is not None:
            return None
        return self.evaluate(node.func)

    def _is_attribute(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and len(node.args) == 3 and self._calls(node, words.attr)

    def _calls(self, node: ast.expr, word: Construct) -> bool:
        return self._word(node) is word

    def _is_symbol(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and not node.args and isinstance(self._word(node), DType)

    def _expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):  # a docstring, `...`
            return
        if not isinstance(node, ast.Call):
            raise self.error(node, "the value of this expression is not used: store it in a buffer")
        callee = self.callee(node.func)
        if callee is not None:
            self.call_inside(node, callee)
            return
        if isinstance(node.func, ast.Attribute) and node.func.attr == "vstore" and len(node.args) > 1:
            self._assign(self._vector_target(node), node.args[1])
            return
        word = self._word(node)
        if isinstance(word, Macro):
            self._expand(node, word)
            return
        if not isinstance(word, Construct):
            raise self.error(node, "the value of this call is not used: store it in a buffer")
        if isinstance(word, IntrinsicWord):
            self.call_intrinsic(node, None)
        elif word in self.CALLS and (word not in _OF_ONE or (len(node.args) == 1 and not node.keywords)):
            self.CALLS[word](self, node)
        else:
            self._operation(node, word)

    def _expand(self, node: ast.Call, macro: Macro) -> None:
        args, options = self.arguments(node)
        names = self.apply(node, macro.bound, args, options)
        source, scope = self.source, self.scope
        self._expansions += 1
        if self._expansions > _NESTED:
            raise self.error(node, f"{macro.node.name} expands itself")
        try:
            self.source = macro.source
            if macro.names is not None:
                self.scope = Scope(macro.names)
            with self.scope.nested(names):
                self.body(macro.node.body)
        finally:
            self.source, self.scope = source, scope
            self._expansions -= 1

    def _definition(self, node: ast.FunctionDef) -> None:
        """`@T.inline def f(i):` in a function: a macro that sees its names."""
        if not is_macro(node):
            raise self.meaningless(node)
        self.scope[node.name] = Macro(self.source, node, None)

    def _static_assert(self, node: ast.Call) -> None:
        value = self.evaluate(node.args[0])
        if isinstance(value, Expr) or not value:
            raise self.error(node, f"T.static_assert: {ast.unparse(node.args[0])} is not known to hold")

    def _operation(self, node: ast.Call, word: Construct) -> Operation:
        handler = self.OPERATIONS.get(word)
        if handler is None:
            raise self.error(node, f"{word} is not allowed here; its use is `{word.usage}`")
        return handler(self, node)

    def _once(self, node: ast.Call) -> None:
        """`T.evaluate(x)`: a value, or a call for its effects."""
        (value,) = node.args
        if (pointer := self.pointer(value)) is not None:
            self.emitter.pointer(pointer)
            return
        word = self._word(value)
        if isinstance(value, ast.Call) and word in (words.Ramp, words.Broadcast):
            return  # a vector without uses
        is_value = isinstance(word, Construct) and word in self.VALUES and word not in self.OPERATIONS
        if isinstance(value, ast.Call) and isinstance(word, Construct | None) and not is_value:
            self._expression(value)
        else:
            self.expression(value)

    def _pragma(self, node: ast.Call) -> None:
        """`T.attr({"pragma_unroll": 4})`: annotations of the enclosing loop or block."""
        annotations = self.as_attributes(node, self.evaluate(node.args[0]), "T.attr takes a dict of annotations here")
        op = self.emitter.around
        if op is None:
            raise self.error(node, "T.attr is used in a loop or a block: annotate a function by T.func_attr")
        op.attributes.update(annotations)

    def _assignment(self, node: ast.Assign | ast.AnnAssign) -> None:
        match node:
            case ast.Assign([target], value):
                self._assign(target, value)
            case ast.AnnAssign(target, annotation, ast.expr() as value):
                self._assign(target, value, annotation)
            case _:
                raise self.meaningless(node)

    def _assign(self, target: ast.expr, value: ast.expr, annotation: ast.expr | None = None) -> None:
        if isinstance(target, ast.Subscript):
            if (lanes := self._lanes(target)) is not None:
                self._store_vector(target, value, lanes)
                return
            buffer = self._target(target)
            indices = self.indices(target, buffer)
            self.emitter.store(buffer.stored, indices, self.element(value, buffer.dtype, f"buffer {buffer.name}"))
            return
        if isinstance(target, ast.Name) and self._assign_scalar(target, value, annotation):
            return
        word = self._word(value)
        if isinstance(word, Construct) and word not in self.VALUES and isinstance(value, ast.Call):
            if isinstance(target, ast.Name) and isinstance(word, IntrinsicWord):
                op = self.call_intrinsic(value, self._result_of(value, annotation))
                self.scope[target.id] = self._named(op.results[0], target.id)
                return
            if isinstance(target, ast.Name):
                self._declare(target.id, value, word)
                return
            if word is words.op and isinstance(target, ast.Tuple):
                self._bind_results(target, self.call_by_name(value))
                return
        if isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value)
        elif isinstance(target, ast.Name):
            dtype = None if annotation is None else self._declared_dtype(annotation)
            self._bind_name(target, self._value_of(target, value), dtype)
        else:
            raise self.error(target, "a value is assigned to a name or to an element of a buffer")

    def _assign_scalar(self, target: ast.Name, value: ast.expr, annotation: ast.expr | None) -> bool:
        """False unless the variable is in a buffer. `s: T.int32 = 0` declares one if the function assigns `s` again."""
        known = self.scope.known(target.id)
        if annotation is not None and target.id in self._reassigned:
            dtype = self.evaluate(annotation)
            if isinstance(dtype, DType):
                type = buffer_type((), dtype.name, "local", None)
                known = Scalar(Buffer(self.emitter.allocate(type, (), target.id), target.id, ()))
        if not isinstance(known, Scalar):
            return False
        stored = self.element(value, known.buffer.dtype, target.id)
        self.emitter.store(known.buffer, (), stored)
        self.scope[target.id] = known
        return True

    def _declared_scalar(self, node: ast.Call, name: str, scope: str) -> Scalar:
        dtype = self._dtype(node.args[0] if node.args else None)
        given = [word.value for word in node.keywords if word.arg == "scope"] + node.args[1:2]
        type = buffer_type((), dtype, self._memory_scope(given[0]) if given else scope, None)
        return Scalar(Buffer(self.emitter.allocate(type, (), name), name, ()))

    def _vector_target(self, node: ast.Call) -> ast.Subscript:
        word = next(
            (part for part in ast.walk(node.args[1]) if isinstance(part, ast.Call) and self._lane_count(part)), None
        )
        lanes = None if word is None else self._lane_count(word)
        dtype = [] if lanes is None else [ast.Constant(f"int32x{lanes}")]
        return vector_element(ast.copy_location(ast.Call(node.func, [node.args[0], *dtype], []), node), ast.Store())

    def _lane_count(self, node: ast.expr) -> int | None:
        """The lanes of `T.Ramp(...)`, `T.Broadcast(...)`, `A.vload(..., "float32x4")` or a slice."""
        match node:
            case ast.Slice(upper=ast.expr() as upper, lower=lower, step=step):
                low = as_expr(0) if lower is None else self.index(lower, "the start of a slice")
                size = difference(self.index(upper, "the end of a slice"), low)
                stride = 1 if step is None else as_number(self.evaluate(step))
                if size is None or not isinstance(stride, int) or stride < 1:
                    raise self.error(upper, "a vector has a number of lanes that is known")
                return -(-size // stride)
            case ast.Call(ast.Attribute(attr="Ramp" | "ramp" | "Broadcast" | "broadcast"), [*_, last]):
                lanes = self.evaluate(last)
                lanes = lanes.value if isinstance(lanes, Const) else lanes
                if not isinstance(lanes, int):
                    raise self.error(last, "a vector has a number of lanes that is known: weft has no vscale")
                return lanes
            case ast.Call(ast.Attribute(attr="vload")):
                texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                found = [VECTOR.fullmatch(text) for text in texts if isinstance(text, str)]
                return next((int(match[2]) for match in found if match), None)
            case _:
                return None

    def _lanes(self, target: ast.Subscript) -> int | None:
        if self.lane is not None:
            return None
        indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        return next((lanes for part in indices if (lanes := self._lane_count(part)) is not None), None)

    def _store_vector(self, target: ast.Subscript, value: ast.expr, lanes: int) -> None:
        """If `value` reads other elements of the buffer, all lanes are read before the first store."""
        buffer, name = self._target(target), PythonNames({*self.scope.bound, *self.scope.outside}).new("lane", "lane")
        element, place = self._in_lane(Symbol(name), target, value, buffer)
        keys = tuple(map(index_key, place))
        loads = [part for part in walk(element) if isinstance(part, BufferLoad) and part.buffer.value is buffer.value]
        copy: Buffer | None = None
        if any(tuple(map(index_key, load.indices)) != keys for load in loads):
            type = buffer_type((lanes,), buffer.dtype, "local")
            copy = Buffer(self.emitter.allocate(type, (), "lanes"), "lanes", (lanes,))
        for reads_copy in (False, True) if copy is not None else (False,):
            op = self.emitter.loop(lanes, name, LoopKind.VECTORIZED, None, {})
            leaf = Leaf.of(op.induction_variable, name, lanes)
            with self.emitter.body(op.body.block), self.scope.nested():
                element, place = self._in_lane(leaf, target, value, buffer)
                if copy is None:
                    self.emitter.store(buffer.stored, place, element)
                elif reads_copy:
                    self.emitter.store(buffer.stored, place, BufferLoad(copy, (leaf,), buffer.dtype))
                else:
                    self.emitter.store(copy, (leaf,), element)
            self.place(target)
            self.emitter.effect(op)

    def _in_lane(
        self, lane: Expr, target: ast.Subscript, value: ast.expr, buffer: Buffer
    ) -> tuple[Expr, tuple[Expr, ...]]:
        self.lane = lane
        try:
            return self.element(value, buffer.dtype, f"buffer {buffer.name}"), self.indices(target, buffer)
        finally:
            self.lane = None

    def _result_of(self, call: ast.Call, annotation: ast.expr | None) -> DType:
        if annotation is not None:
            dtype: object = self._declared_dtype(annotation)
        else:
            stated = [keyword.value for keyword in call.keywords if keyword.arg == "dtype"] + call.args[:1]
            if "shuffle" in ast.unparse(call.func) and len(call.args) > 1:  # the dtype of the exchanged value
                first: object = self.expression(call.args[1]).dtype
            else:
                first = self.evaluate(stated[0]) if stated and isinstance(stated[0], ast.Constant) else None
            dtype = words.WORDS.get(first) if isinstance(first, str) else None
        if not isinstance(dtype, DType):
            raise self.error(call, "the dtype of this value is not known: x: T.float32 = ...")
        return dtype

    def _declared_dtype(self, annotation: ast.expr) -> DType | None:
        found = self.evaluate(annotation)
        if isinstance(found, Construct) and found is words.let and isinstance(annotation, ast.Subscript):
            found = self.evaluate(annotation.slice)
        return found if isinstance(found, DType) else None

    def _value_of(self, target: ast.expr, value: ast.expr) -> object:
        if self._is_symbol(value) and isinstance(target, ast.Name):
            known = self.scope.known(target.id)
            if known is None:
                return self._symbol(value, target.id)
            if not isinstance(known, Symbol | Leaf) or not known.is_index:
                raise self.error(target, f"{target.id} is {shown(known)} already: a size has a name of its own")
            return known
        return self.evaluate(value)

    def _symbol(self, node: ast.expr, name: str) -> Symbol:
        dtype = cast("DType", self._word(node)).name
        return Symbol(name, dtype, dtype in ("int32", "int64"), place=self.source.place(node))

    def _unpack(self, target: ast.Tuple | ast.List, value: ast.expr) -> None:
        names = [self._plain_name(item) for item in target.elts]
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(names):
            values = [self._value_of(name, item) for name, item in zip(names, value.elts, strict=True)]
        else:
            found = self.evaluate(value)
            if not isinstance(found, tuple | list):
                raise self.error(value, f"{len(names)} names, and one value")
            values = list(cast("Sequence[object]", found))
            if len(values) != len(names):
                raise self.error(value, f"{len(names)} names, and {len(values)} values")
        for name, item in zip(names, values, strict=True):
            self._bind_name(name, item)

    def _plain_name(self, node: ast.expr, message: str = "a name is expected here") -> ast.Name:
        if not isinstance(node, ast.Name):
            raise self.error(node, message)
        return node

    def _bind_name(self, target: ast.Name, value: object, dtype: DType | None = None) -> None:
        """Elements are computed here, index expressions only with an annotation."""
        name = target.id
        number = as_number(value)
        if number is not None and dtype is not None:
            value = self.apply(target, dtype, number)
        if isinstance(value, Expr) and not isinstance(value, Const | Leaf | Symbol):
            if dtype is not None and dtype.name != value.dtype and not (value.is_index and dtype.name == "int32"):
                raise self.error(target, f"{name} is {dtype.name}, and `{value}` is {value.dtype}: cast it")
            if not value.is_index:
                value = self._named(self.emitter.value(value), name, type_of(value.dtype))
            elif dtype is not None:
                value = self._named(self.emitter.index(value), name)
        self.bind_checked(target, value)

    def _named(self, value: SSAValue, name: str, element: Attribute | None = None) -> Leaf | Buffer | Opaque:
        value.name_hint = hint_of(name)
        return named_value(value, name, element)

    def _declare(self, name: str, node: ast.Call, word: Construct) -> None:
        declared = self.DECLARATIONS.get(word)
        if declared is not None:
            self.scope[name] = declared(self, node, name)
            return
        op = self._operation(node, word)
        if len(op.results) != 1:
            raise self.error(node, f"{op.name} gives {len(op.results)} values")
        self.scope[name] = self._named(op.results[0], name)

    def _bind_results(self, target: ast.Tuple, op: Operation) -> None:
        if len(target.elts) != len(op.results):
            raise self.error(target, f"{len(target.elts)} names, and {op.name} gives {len(op.results)} values")
        for item, result in zip(target.elts, op.results, strict=True):
            name = self._plain_name(item).id
            self.scope[name] = self._named(result, name)

    def _assume(self, node: ast.Call) -> None:
        """`T.assume(n % 32 == 0)`, at the top of a function."""
        if not node.args or node.keywords:
            raise self.error(node, f"T.assume takes comparisons of extents: `{words.assume.usage}`")
        for argument in node.args:
            fact = self.evaluate(argument)
            if isinstance(fact, Expr) and any(isinstance(part, BufferLoad) for part in walk(fact)):
                continue  # assumptions on elements have no consequence
            relation = relation_of(fact) if isinstance(fact, Compare) else None
            if relation is None:
                raise self.error(
                    argument, f"T.assume takes comparisons of extents by ==, <=, <, >= or >: `{words.assume.usage}`"
                )
            left, comparison, right = relation
            for side in (left, right):
                if not (side.is_index or isinstance(side, Const)):
                    raise self.error(argument, f"T.assume compares extents, `{side}` is {side.dtype}")
            self.emitter.assume(left, comparison, right)

    def _assert(self, node: ast.Assert) -> None:
        value = self.evaluate(node.test)
        if value is True:
            return
        if not isinstance(value, Expr) or any(isinstance(part, BufferLoad) for part in walk(value)):
            raise self.error(node, "a script asserts comparisons of extents and scalar parameters, which calls check")
        self._assume(ast.copy_location(ast.Call(node.test, [node.test], []), node))

    def _buffer_store(self, node: ast.Call) -> None:
        if len(node.args) != 3 or node.keywords:
            raise self.error(node, f"a store has a buffer, a value and indices: `{words.buffer_store.usage}`")
        buffer, value, indices = node.args
        places = ast.Tuple(indices.elts, ast.Load()) if isinstance(indices, ast.List | ast.Tuple) else indices
        element = ast.Subscript(buffer, ast.copy_location(places, indices), ast.Store())
        self._assign(ast.copy_location(element, node), value)

    def _ret(self, node: ast.Call | ast.Return) -> None:
        """`T.ret(0)` or `return 0`, TVM's success, at the end."""
        last = self.node.body[-1]
        calls = [part for part in ast.walk(last) if part is node]
        if not calls or isinstance(last, ast.If | ast.For | ast.While | ast.With):
            raise self.error(node, "T.ret ends a function: results are written to parameters")
        value = node.value if isinstance(node, ast.Return) else node.args[0] if node.args else None
        status = None if value is None else self.evaluate(value)
        is_status = isinstance(node, ast.Return) or self.node.returns is not None
        if is_status and status is not None and as_number(status) != 0:
            raise self.error(node, f"{self.name} returns nothing but 0 for success: results are written to parameters")

    def _device_entry(self, node: ast.Call) -> None:
        raise self.error(
            node,
            "T.device_entry opens a tile program of TIRx, which weft does not read: kernels are loops that bind "
            "threads",
        )

    def _target(self, node: ast.Subscript) -> Buffer:
        found = self.evaluate(node.value)
        if not isinstance(found, Buffer):
            raise self.error(node, f"elements of buffers are assigned to, {ast.unparse(node.value)} is none")
        return found

    def _update(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and isinstance(self.scope.known(node.target.id), Scalar):
            load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            self._assign(node.target, ast.copy_location(ast.BinOp(load, node.op, node.value), node))
            return
        if not isinstance(node.target, ast.Subscript):
            raise self.error(node, "only elements of buffers are updated; give a new value a new name")
        if (lanes := self._lanes(node.target)) is not None:
            load = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target)
            self._store_vector(node.target, ast.copy_location(ast.BinOp(load, node.op, node.value), node), lanes)
            return
        buffer = self._target(node.target)
        indices = self.indices(node.target, buffer)
        old = self.note(node.target, BufferLoad(buffer.stored, indices, buffer.dtype))
        new = self.operate(node, node.op, old, self.evaluate(node.value))
        value = self.scalar(node, new)
        expr = value if isinstance(value, Expr) else self.expression(node.value)
        if expr.dtype != buffer.dtype:
            raise self.error(
                node, f"buffer {buffer.name} is {buffer.dtype}, and the new value is {expr.dtype}: cast it"
            )
        self.emitter.store(buffer.stored, indices, self.note(node, expr))

    def _with(self, node: ast.With) -> None:
        if len(node.items) != 1:
            raise self.meaningless(node)
        item = node.items[0]
        call, named = item.context_expr, item.optional_vars
        word = self._word(call)
        if word is words.block and named is None:
            self._block(node, cast("ast.Call", call))
        elif word is words.launch_thread:
            name = named.id if isinstance(named, ast.Name) else self._thread_variable(cast("ast.Call", call))
            self._over_threads(node, cast("ast.Call", call), name, node.body)
        elif word is words.allocate and isinstance(named, ast.Name):
            self.scope[named.id] = self.alloc_buffer(cast("ast.Call", call), named.id)
            self.body(node.body)
        elif word is words.LetStmt and isinstance(named, ast.Name) and len(cast("ast.Call", call).args) == 1:
            self._bind_name(named, self.evaluate(cast("ast.Call", call).args[0]))
            self.body(node.body)
        elif word is words.attr:
            self._attribute_statement(node, cast("ast.Call", call))
        elif word is words.init:
            raise self.error(node, "T.init() is used in a block, before the computation")
        else:
            raise self.error(call, f"`with` opens a block: `{words.block.usage}`")

    def _attribute_statement(self, node: ast.With, call: ast.Call) -> None:
        """`with T.attr(tx, "thread_extent", 64):` is a thread loop; hints for TVM's passes have no effect."""
        key = self.evaluate(call.args[1]) if len(call.args) == 3 and not call.keywords else None
        if not isinstance(key, str):
            raise self.error(
                call, 'an attribute has a node, a key and a value: `with T.attr(tx, "thread_extent", 64):`'
            )
        if key in ("thread_extent", "virtual_thread"):
            launch = ast.copy_location(ast.Call(call.func, [call.args[0], call.args[2]], []), call)
            self._over_threads(node, launch, self._thread_variable(call), node.body)
        elif key == "reduce_scope":
            raise self.error(call, "reductions over threads are blocks with T.init() in loops that bind threads")
        elif key in ("async_commit_queue_scope", "async_wait_queue_scope", "buffer_bind_scope", "extern_scope"):
            raise self.error(call, f"weft does not know the attribute '{key}' of statements")
        else:
            self.body(node.body)

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise self.meaningless(node)
        flag = self._flag(node) if exits(node.body) else None
        before, after = Block(), Block()
        with self.emitter.body(before):
            test = self.evaluate(node.test)
            if flag is not None:
                goes = self.evaluate(flag_is(flag, "!=", node))
                test = goes if test is True else self.apply(node, both, BinaryKind.AND, goes, self.scalar(node, test))
            if not isinstance(test, Expr) or test.dtype != "bool":
                raise self.error(node.test, f"a condition compares elements of buffers, got {shown(test)}")
            self.emitter.effect(ConditionOp(self.emitter.value(test)))
        with self.emitter.body(after), self.scope.nested():
            self.body(node.body if flag is None else [set_flag(flag, node), *with_flag(node.body, flag)])
            self.emitter.effect(YieldOp())
        self.place(node)
        self.emitter.effect(WhileOp([], [], Region(before), Region(after)))

    def _flag(self, node: ast.stmt) -> str:
        name = PythonNames({*self.scope.bound, *self.scope.outside}).new("stop", "stop")
        shape, options = ast.Tuple([ast.Constant(1)], ast.Load()), [ast.Constant("int32")]
        declared = ast.Call(ast.Name("T", ast.Load()), [shape, *options], [ast.keyword("scope", ast.Constant("local"))])
        for part in ast.walk(declared):
            ast.copy_location(part, node)
        self.scope[name] = self.alloc_buffer(declared, name)
        self.statement(set_flag(name, node))
        return name

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            raise self.meaningless(node)
        body: Sequence[ast.stmt] = node.body
        if exits(body):
            flag = self._flag(node)
            guarded = ast.If(flag_is(flag, "!=", node), [set_flag(flag, node), *with_flag(body, flag)], [])
            body = [ast.copy_location(guarded, node)]
        targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
        call = node.iter
        word = self.evaluate(call.func) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not (word is range or isinstance(word, Construct)):
            raise self.error(call, "a loop runs over range(n), T.grid(m, n), T.serial(n), T.parallel(n), ...")
        if word is words.grid:
            ranges = self._grid(call)
            names, packed = self._grid_names(call, targets, len(ranges))
            loops = [_Range(name, *bounds) for name, bounds in zip(names, ranges, strict=True)]
            self._around(loops, LoopKind.SERIAL, None, {}, node, [*packed, *body])
            return
        names = [self._plain_name(target, "a loop variable is a name").id for target in targets]
        kind = _LOOPS.get(word)
        last = call.args[-1] if len(call.args) > 1 and kind is LoopKind.THREAD_BINDING else None
        if isinstance(last, ast.Constant | ast.Name) and isinstance(self.evaluate(last), str):
            # T.thread_binding(64, "threadIdx.x")
            options = [*call.keywords, ast.keyword("thread", last)]
            call = ast.copy_location(ast.Call(call.func, call.args[:-1], options), call)
        if kind is None:
            raise self.error(call, f"{word} does not make a loop; it is used so: `{cast('Construct', word).usage}`")
        if len(names) != 1:
            raise self.error(node.target, f"one loop has one variable, got {len(names)}")
        thread, annotations = self._loop_options(call, kind)
        self._around([self._range(call, names[0])], kind, thread, annotations, node, body)

    def _grid_names(self, call: ast.Call, targets: Sequence[ast.expr], count: int) -> tuple[list[str], list[ast.stmt]]:
        """The names, and assignments of the tuples in `for i, *rest in T.grid(...)`."""
        single = len(targets) == 1 and count > 1
        names, packed = list[str](), list[ast.stmt]()
        for target in targets:
            star = target.value if isinstance(target, ast.Starred) else target if single else None
            if star is None:
                names.append(self._plain_name(target, "a loop variable is a name").id)
                continue
            name = self._plain_name(star, "a loop variable is a name").id
            parts = [f"{name}_{at}" for at in range(count - len(targets) + 1)]
            names += parts
            loads = ast.Tuple([ast.Name(part, ast.Load()) for part in parts], ast.Load())
            made = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], loads), target)
            packed.append(ast.fix_missing_locations(made))
        if len(names) != count:
            raise self.error(call, f"{len(names)} loop variables, and T.grid of {count} extents")
        return names, packed

    def _grid(self, call: ast.Call) -> list[tuple[Expr | int, int, Expr | int]]:
        given: list[tuple[ast.expr, object]] = []
        for argument in call.args:
            if isinstance(argument, ast.Starred):
                items = self.evaluate(argument.value)
                if not isinstance(items, tuple | list):
                    raise self.error(argument, f"`*` unpacks a tuple, and {ast.unparse(argument.value)} is not one")
                given += [(argument, item) for item in cast("Sequence[object]", items)]
            else:
                given.append((argument, self.evaluate(argument)))
        options = [keyword for keyword in call.keywords if keyword.arg != "dtype"]  # indices have 64 bits
        if options:
            raise self.error(options[0], f"T.grid has no option {options[0].arg}")
        found = list[tuple[Expr | int, int, Expr | int]]()
        for at, (node, value) in enumerate(given):
            start, extent = self._bounds(node, value, f"loop {at} of T.grid")
            first = static_extent(start)
            found.append((start if first is None else first, 1, extent))
        return found

    def _loop_options(self, call: ast.Call, kind: LoopKind) -> tuple[str | None, dict[str, Attribute]]:
        thread: str | None = None
        annotations: dict[str, Attribute] = {}
        for keyword in call.keywords:
            if keyword.arg == "thread" and kind is LoopKind.THREAD_BINDING:
                thread = self.string(keyword.value, "thread")
            elif keyword.arg == "annotations" and ast.unparse(call.func) != "range":
                value = self.evaluate(keyword.value)
                annotations = self.as_attributes(keyword, {} if value is None else value, "annotations are a dict")
            elif keyword.arg != "step" or ast.unparse(call.func) == "range":
                raise self.error(keyword, f"loops have no option {keyword.arg}")
        if kind is LoopKind.THREAD_BINDING and thread is None:
            raise self.error(call, f"the thread axis is missing: `{words.thread_binding.usage}`")
        return thread, annotations

    def _range(self, call: ast.Call, name: str) -> _Range:
        steps = [k.value for k in call.keywords if k.arg == "step"] + call.args[2:]
        if not 1 <= len(call.args) <= 3 or len(steps) > 1:
            raise self.error(call, "a loop has a stop, or a start and a stop, and a step")
        step = self.extent(steps[0], f"the step of {name}") if steps else 1
        if not isinstance(step, int) or step < 1:
            raise self.error(call, f"the step of {name} is a positive number, got {step}")
        what = f"the extent of {name}"
        if len(call.args) == 1 and step == 1:
            return _Range(name, 0, 1, self.extent(call.args[0], what))
        start = self.index(call.args[0], f"the start of {name}") if len(call.args) > 1 else as_expr(0)
        stop = self.index(call.args[min(1, len(call.args) - 1)], f"the stop of {name}")
        first = int(start.value) if isinstance(start, Const) else start
        if isinstance(first, int) and isinstance(stop, Const):
            number = Const(max(0, -((first - int(stop.value)) // step)), "int64")
            return _Range(name, first, step, self.as_extent(call, number, what))
        size = stop if isinstance(first, int) and first == 0 else self.apply(call, lambda: stop - start)
        return _Range(name, first, step, size if step == 1 else (size + (step - 1)) // step)

    def _around(
        self,
        variables: Sequence[_Range],
        kind: LoopKind,
        thread: str | None,
        annotations: Mapping[str, Attribute],
        node: ast.stmt,
        statements: Sequence[ast.stmt],
    ) -> None:
        """Extents precede the outermost loop."""
        if not variables:
            self.body(statements)
            return
        for variable in variables:
            if isinstance(variable.extent, Expr):
                self.emitter.index(variable.extent)
        first, *rest = variables
        op = self.emitter.loop(first.extent, first.name, kind, thread, annotations)
        value: Expr = Leaf.of(op.induction_variable, first.name, first.extent)
        if first.step != 1:
            value = self.apply(node, binary, BinaryKind.MUL, value, first.step)
        if isinstance(first.start, Expr) or first.start != 0:
            leaf, value = value, self.apply(node, binary, BinaryKind.ADD, value, first.start)
            if isinstance(leaf, Leaf):
                self._shifted[id(value)] = value, leaf, as_expr(first.start)
        with self.emitter.body(op.body.block), self.scope.nested({first.name: value}):
            self._around(rest, kind, thread, annotations, node, statements)
        self.place(node)
        self.emitter.effect(op)

    def _thread_variable(self, call: ast.Call) -> str:
        return self._plain_name(call.args[0] if call.args else call, "threads are declared: tx = T.env_thread(...)").id

    def _over_threads(self, node: ast.stmt, call: ast.Call, name: str, statements: Sequence[ast.stmt]) -> None:
        if len(call.args) != 2 or call.keywords:
            raise self.error(call, f"T.launch_thread takes a thread axis and an extent: `{words.launch_thread.usage}`")
        thread = self.string(call.args[0], "the thread axis")
        extent = self.extent(call.args[1], f"the extent of {name}")
        self._around([_Range(name, 0, 1, extent)], LoopKind.THREAD_BINDING, thread, {}, node, statements)

    def _if(self, node: ast.If) -> None:
        """A condition that is constant at parse time selects a branch.

        A name that both branches assign and later statements use becomes a result of the `scf.if`:

        ```python
        if vi < 4:
            x = A[vi]
        else:
            x = T.float32(0)
        B[vi] = x
        ```
        """
        test = self.evaluate(node.test)
        if not isinstance(test, Expr):
            if isinstance(test, Buffer):
                self.scalar(node.test, test)
            self.body(node.body if test else node.orelse)
            return
        if test.dtype != "bool":
            raise self.error(node.test, f"a condition is a bool, `{test}` is {test.dtype}: compare it")
        condition = self.emitter.value(test)
        branches: list[Block] = []
        bound: list[dict[str, object]] = []
        for statements in filter(None, (node.body, node.orelse)):
            branches.append(Block())
            with self.emitter.body(branches[-1]), self.scope.nested() as names:
                self.body(statements)
                bound.append(names)
        joined = self._joined(node, *bound) if len(bound) == 2 else []
        pairs = [self._unified(node, name, *(names[name] for names in bound)) for name in joined]
        are_indices = [all(_is_index(names[name]) for names in bound) for name in joined]
        for side, block in enumerate(branches if joined else ()):
            with self.emitter.inside(block):
                values = [
                    self.emitter.index(pair[side]) if is_index else self.emitter.value(pair[side], pair[0].dtype)
                    for pair, is_index in zip(pairs, are_indices, strict=True)
                ]
                self.emitter.finish(YieldOp(*values))
        self.place(node)
        op = self.emitter.conditional(condition, branches)
        self.emitter.effect(op)
        for name, result, pair in zip(joined, op.results, pairs, strict=True):
            self.scope[name] = self._named(result, name, type_of(pair[0].dtype))

    def _joined(self, node: ast.If, chosen: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
        end = node.end_lineno or node.lineno
        later = {
            use.id
            for use in ast.walk(self.node)
            if isinstance(use, ast.Name) and isinstance(use.ctx, ast.Load) and use.lineno > end
        }
        return [name for name in chosen if name in other and name in later]

    def _unified(self, node: ast.If, name: str, left: object, right: object) -> tuple[Expr, Expr]:
        a, b = as_number(left), as_number(right)
        if a is not None and b is not None:
            return default_number(a), default_number(b)
        pair = [self.scalar(node, side) for side in (left, right)]
        x, y = (side.dtype if isinstance(side, Expr) else None for side in pair)
        one, two = (side if isinstance(side, Expr) else self.apply(node, words.Cast, x or y, side) for side in pair)
        if one.dtype != two.dtype and not (one.is_index and two.is_index):
            raise self.error(node, f"{name} is {one.dtype} in one branch and {two.dtype} in the other: cast one")
        return one, two

    def _block(self, node: ast.With, call: ast.Call) -> None:
        if len(call.args) > 1 or call.keywords:
            raise self.error(call, f"a block has a name: `{words.block.usage}`")
        name = self.string(call.args[0], "the name of a block") if call.args else ""
        head, body = self._head(node.body)
        self.place(node)
        states = head.axes or head.guards or head.conditions or any(call.args for _, call in head.regions)
        if name == ROOT and self.node.body[-1] is node and not states:
            # TVM's root block: its annotations are those of the function
            self._attributes.update(head.annotations)
            self.body([*head.views, *body])
            return
        if not head.conditions:
            self._block_op(node, name, head, body)
            return
        condition = head.conditions[0]
        for other in head.conditions[1:]:
            condition = self.apply(call, both, BinaryKind.AND, condition, other)
        value = self.emitter.value(condition)
        then = Block()
        with self.emitter.body(then):
            self._block_op(node, name, head, body)
        self.place(node)
        self.emitter.effect(self.emitter.conditional(value, [then]))

    def _block_op(self, node: ast.With, name: str, head: _Head, body: Sequence[ast.stmt]) -> None:
        op = self.emitter.block(name, head.axes, head.guards, head.annotations)
        leaves: dict[str, object] = {}
        for (axis, *_), argument in zip(head.axes, op.iter_vars, strict=True):
            leaf = Leaf.of(argument, axis)
            start = head.starts.get(axis)
            leaves[axis] = leaf if start is None else self.apply(node, binary, BinaryKind.ADD, leaf, start)
        outer = self._readable, self._writable
        self._readable = self._writable = None
        with self.emitter.body(op.body.block), self.scope.nested(leaves):
            self.body(head.views)
            for kind, regions in head.regions:
                self._regions(kind, regions)
            if head.init is not None:
                self._init(head.init)
            self.body(body)
        self._readable, self._writable = outer
        self.place(node)
        self.emitter.effect(op)

    def _init(self, node: ast.With) -> None:
        self.place(node)
        op = InitOp(Region(Block()))
        with self.emitter.body(op.body.block), self.scope.nested():
            self.body(node.body)
        self.place(node)
        self.emitter.effect(op)

    def _head(self, statements: Sequence[ast.stmt]) -> tuple[_Head, list[ast.stmt]]:
        """Temporaries may precede the init."""
        head = _Head()
        rest: list[ast.stmt] = []
        declaring = True
        for node in statements:
            word = self._opening_word(node)
            may_open = head.init is None and all(self._opening_word(s) is words.alloc_buffer for s in rest)
            if isinstance(node, ast.With) and word is words.init:
                if not may_open:
                    raise self.error(node, "T.init() is used once in a block, before the computation")
                head.init = node
            elif may_open and (word is words.match_buffer or self._declares_size(node)):
                head.views.append(node)
                continue
            elif isinstance(word, Construct) and (word in self.HEADS or word in (*_AXES, REMAP_AXES)):
                if not declaring:
                    raise self.error(node, f"{word} is at the start of a block, before the computation")
                self._declaration(head, cast("ast.Expr | ast.Assign", node), word)
                continue
            elif not isinstance(node, ast.Pass):
                rest.append(node)
            opens = word is words.alloc_buffer or (isinstance(node, ast.Expr) and word is None)
            declaring = declaring and (isinstance(node, ast.Pass) or opens)
        return head, rest

    def _declares_size(self, node: ast.stmt) -> bool:
        return isinstance(node, ast.Assign) and self._is_symbol(node.value)

    def _opening_word(self, node: ast.stmt) -> object:
        call: ast.expr | None = None
        if isinstance(node, ast.With) and len(node.items) == 1:
            call = node.items[0].context_expr
        elif isinstance(node, ast.Expr | ast.Assign):
            call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        name = call.func.value
        while isinstance(name, ast.Attribute):
            name = name.value
        return self._word(call) if isinstance(name, ast.Name) else None

    def _declaration(self, head: _Head, node: ast.Expr | ast.Assign, word: Construct) -> None:
        call = cast("ast.Call", node.value)
        self.place(node)
        if (handler := self.HEADS.get(word)) is not None:
            handler(self, head, call)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._axes(head, node.targets[0], call, word)
        else:
            raise self.error(node, f"an axis has a name: `{word.usage}`")

    def _where(self, head: _Head, call: ast.Call) -> None:
        self._no_axes(head, call)
        for argument in call.args:
            self._guards(head, argument, self.evaluate(argument))

    def _block_attr(self, head: _Head, call: ast.Call) -> None:
        values = self.evaluate(call.args[0]) if len(call.args) == 1 else None
        head.annotations.update(
            self.as_attributes(call, values, f"T.block_attr takes a dict: `{words.block_attr.usage}`")
        )

    def _region(self, head: _Head, call: ast.Call, kind: type[AccessRegionOp]) -> None:
        head.regions.append((kind, call))

    def _no_axes(self, head: _Head, call: ast.Call) -> None:
        names = {name for name, *_ in head.axes}
        for node in ast.walk(call):
            if isinstance(node, ast.Name) and node.id in names:
                raise self.error(
                    node, f"{node.id} is an axis of the block: loops are what T.where and axes are made of"
                )

    def _axes(self, head: _Head, target: ast.expr, call: ast.Call, word: Construct) -> None:
        self._no_axes(head, call)
        targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        names: list[str] = []
        for item in targets:
            name = self._plain_name(item, "an axis has a name").id
            if name in names or any(name == axis for axis, *_ in head.axes):
                raise self.error(item, f"{name} is an axis already")
            names.append(name)
        if len(call.args) != 2 or any(word.arg != "dtype" for word in call.keywords):
            raise self.error(call, f"an axis has a kind, an extent and a binding: `{word.usage}`")
        if word is REMAP_AXES:
            self._remap(head, names, call)
            return
        if len(names) != 1:
            raise self.error(target, f"one axis, and {len(names)} names")
        (name,) = names
        start, extent = self._bounds(call.args[0], self.evaluate(call.args[0]), name)
        binding = self.index(call.args[1], f"the binding of {name}")
        self._start(head, call, name, start)
        if name in head.starts:  # the IR's axis counts from 0: the name is start + axis
            binding = self.apply(call, binary, BinaryKind.SUB, binding, start)
        head.axes.append((name, _AXES[word], extent, binding))

    def _start(self, head: _Head, node: ast.expr, name: str, start: Expr) -> None:
        if any(isinstance(p, BufferLoad) or (isinstance(p, Leaf) and p.extent is not None) for p in walk(start)):
            raise self.error(node, f"axis {name} starts at `{start}`: its start is a number or made of extents")
        if static_extent(start) != 0:
            head.starts[name] = start

    def _bounds(self, node: ast.expr, value: object, name: str) -> tuple[Expr, int | Expr]:
        bounds = cast("tuple[object, ...]", value) if isinstance(value, tuple) else ()
        if len(bounds) == 2:
            low, high = (self.apply(node, as_index, self.scalar(node, bound), f"a bound of {name}") for bound in bounds)
            if isinstance(low, Const) and isinstance(high, Const):
                size: Expr = Const(high.value - low.value, "int64")
            else:
                size = high if static_extent(low) == 0 else self.apply(node, binary, BinaryKind.SUB, high, low)
            return low, self.as_extent(node, size, f"the extent of {name}")
        return as_expr(0), self.as_extent(node, cast("object", value), f"the extent of {name}")

    def _remap(self, head: _Head, names: Sequence[str], call: ast.Call) -> None:
        kinds = self.string(call.args[0], "the kinds of axes")
        loops = self.evaluate(call.args[1])
        if not isinstance(loops, list | tuple):
            raise self.error(call.args[1], f"T.axis.remap takes a list of loop variables: `{REMAP_AXES.usage}`")
        variables = list(cast("Sequence[object]", loops))
        if not len(kinds) == len(variables) == len(names):
            raise self.error(
                call, f"{len(names)} axes, {len(kinds)} kinds and {len(variables)} loop variables: one each"
            )
        for name, kind, variable in zip(names, kinds, variables, strict=True):
            if kind not in _AXIS_LETTERS:
                raise self.error(call.args[0], f'the kind of an axis is "S" or "R", got "{kind}"')
            _, leaf, start = self._shifted.get(id(variable), (variable, variable, as_expr(0)))
            if not isinstance(leaf, Leaf) or leaf.extent is None:
                raise self.error(
                    call.args[1], f"{name}: T.axis.remap takes loop variables; write T.axis.spatial(extent, binding)"
                )
            self._start(head, call.args[1], name, start)
            head.axes.append((name, _AXIS_LETTERS[kind], leaf.extent, leaf))

    def _guards(self, head: _Head, node: ast.expr, condition: object) -> None:
        """Comparisons of indices are guards left < right; other conditions become an `scf.if` around the block."""
        if condition is True:
            return
        if isinstance(condition, Binary) and condition.kind is BinaryKind.AND and condition.dtype == "bool":
            self._guards(head, node, condition.left)
            self._guards(head, node, condition.right)
            return
        if not isinstance(condition, Expr) or condition.dtype != "bool":
            raise self.error(node, f"T.where takes conditions, got {shown(condition)}")
        relation = relation_of(condition) if isinstance(condition, Compare) else None
        if relation is None or not (relation[0].is_index and relation[2].is_index):
            head.conditions.append(condition)
            return
        left, comparison, right = relation
        head.guards.append((left, right if comparison is Relation.LESS else right + 1))
        if comparison is Relation.EQUAL:
            head.guards.append((right, left + 1))

    def _regions(self, kind: type[AccessRegionOp], call: ast.Call) -> None:
        if call.keywords:
            raise self.error(call, f"regions are elements or slices of buffers: `{words.reads.usage}`")
        nodes = [item for a in call.args for item in (a.elts if isinstance(a, ast.List | ast.Tuple) else [a])]
        buffers: list[Buffer] = []
        for node in nodes:
            buffer = self.evaluate(node.value if isinstance(node, ast.Subscript) else node)
            if not isinstance(buffer, Buffer):
                raise self.error(node, f"a region is an element or a slice of a buffer: `{words.reads.usage}`")
            buffers.append(buffer)
        if kind is ReadsOp:
            self._readable = frozenset({b.value for b in buffers} | (self._readable or frozenset()))
        else:
            self._writable = frozenset({b.value for b in buffers} | (self._writable or frozenset()))
        boxes = [self.region_of(node, buffer) for node, buffer in zip(nodes, buffers, strict=True)]
        if any(box is None for box in boxes):
            return  # without statements, regions are inferred
        for node, buffer, box in zip(nodes, buffers, boxes, strict=True):
            self.place(node)
            self.emitter.region(kind, buffer.stored, *cast("tuple[list[Expr], list[int]]", box))

    def _pure_call(self, node: ast.Call) -> Leaf | Buffer | Opaque:
        op = self.call_outside(node, pure=True)
        if len(op.results) != 1:
            raise self.error(node, "this call gives no value")
        return self._named(op.results[0], "value")

    def intrinsic_value(self, node: ast.Call) -> object:
        dtype = self._result_of(node, None)
        return self._named(self.call_intrinsic(node, dtype).results[0], "value", type_of(dtype.name))

    VALUES: ClassVar[Mapping[Construct, Handler]] = {**FunctionParser.VALUES, words.call_pure_extern: _pure_call}
    STATEMENTS: Mapping[type[ast.stmt], Handler] = {
        ast.AnnAssign: _assignment,
        ast.Assert: _assert,
        ast.Assign: _assignment,
        ast.AugAssign: _update,
        ast.Expr: lambda reader, node: reader._expression(node.value),
        ast.For: _for,
        ast.FunctionDef: _definition,
        ast.If: _if,
        ast.Pass: Reader.nothing,
        ast.Return: _ret,
        ast.While: _while,
        ast.With: _with,
    }
    OPERATIONS: ClassVar[Mapping[Construct, Callable[[Any, ast.Call], Operation]]] = {
        words.op: FunctionParser.call_by_name,
        words.call_extern: FunctionParser.call_outside,
        words.call_pure_extern: partial(FunctionParser.call_outside, pure=True),
    }
    """Constructs that emit an op."""
    CALLS: ClassVar[Mapping[Construct, Handler]] = {
        words.assume: _assume,
        words.attr: _pragma,
        words.evaluate: _once,
        words.buffer_store: _buffer_store,
        words.device_entry: _device_entry,
        words.func_attr: FunctionParser.func_attr,
        words.ret: _ret,
        words.static_assert: _static_assert,
        words.tvm_access_ptr: lambda reader, node: None,  # no uses
    }
    """Other constructs whose calls are statements."""
    DECLARATIONS: ClassVar[Mapping[Construct, Callable[[Any, ast.Call, str], object]]] = {
        words.alloc_buffer: FunctionParser.alloc_buffer,
        words.alloc_local: partial(FunctionParser.alloc_buffer, scope="local"),
        words.alloc_shared: partial(FunctionParser.alloc_buffer, scope="shared"),
        words.alloc_scalar: partial(_declared_scalar, scope="global"),
        words.allocate: FunctionParser.alloc_buffer,
        words.env_thread: lambda reader, node, name: reader.string(node.args[0], "the thread axis"),
        words.Buffer: FunctionParser.flat_view,
        words.decl_buffer: FunctionParser.flat_view,
        words.local_scalar: partial(_declared_scalar, scope="local"),
        words.match_buffer: FunctionParser.match_buffer,
        words.shared_scalar: partial(_declared_scalar, scope="shared"),
    }
    """Constructs that declare a name."""
    HEADS: ClassVar[Mapping[Construct, Callable[[Any, _Head, ast.Call], None]]] = {
        words.block_attr: _block_attr,
        words.reads: partial(_region, kind=ReadsOp),
        words.where: _where,
        words.writes: partial(_region, kind=WritesOp),
    }


_NESTED = 64
"""Maximum nesting of macros."""
_OF_ONE = (words.attr, words.evaluate)
"""Statements if they have one argument."""


def _is_index(value: object) -> bool:
    if isinstance(value, Expr):
        return value.is_index and not isinstance(value, Const)
    return isinstance(value, int) and not isinstance(value, bool)
