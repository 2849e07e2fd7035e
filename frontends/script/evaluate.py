"""Evaluate the expressions of a script: to Python values if all operands are known, else to scalar expressions of one
dtype, which numbers adopt, without implicit conversions."""

from __future__ import annotations

import ast
import inspect
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, ClassVar, TypeVar, cast

from xdsl.ir import Attribute

from weft.frontends.script import words
from weft.frontends.script.attributes import AttributeText, to_attributes
from weft.frontends.script.constructs import BUILTINS, Construct, DType, IntrinsicWord, Namespace
from weft.frontends.script.limits import check_arguments, check_result, check_terms
from weft.frontends.script.reader import Handler, Reader
from weft.frontends.script.source import Positioned
from weft.frontends.script.values import Buffer, BufferLoad, Leaf, Scalar, Symbol, index_key, reads, walk
from weft.support.errors import did_you_mean
from weft.texpr.expr import (
    Binary,
    BinaryKind,
    Const,
    Expr,
    as_expr,
    as_number,
    binary,
    cast_to,
    checked_dtype,
    is_integer,
)
from weft.texpr.shapes import as_index, items

OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], object]] = {  # pyright: ignore[reportUnknownVariableType]
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
VECTOR = re.compile(r"(bool|u?int\d+|bfloat16|float\d+\w*?)x(\d+)")
OF_VALUES: Mapping[object, Callable[..., Expr]] = {
    max: words.max,
    min: words.min,
    abs: words.abs,
    pow: words.pow,
    round: words.round,
}
"""Builtins that also apply to values of the program."""


class Evaluator(Reader):
    """Evaluates expressions at module level; `StatementParser` evaluates expressions of a function."""

    lane: Expr | None = None
    names_are_sizes = False
    """Whether a type variable defined outside the script is a symbolic extent."""

    def bind_checked(self, node: ast.Name, value: object) -> None:
        """Raises CompileError for an index expression that is too long."""
        if isinstance(value, Expr) and value.is_index:
            self.apply(node, check_terms, value)
        self.scope[node.id] = value

    def _name(self, node: ast.Name) -> object:
        scope, name = self.scope, node.id
        if name in scope.bound:
            found = scope.bound[name]
            return found.load() if isinstance(found, Scalar) else found
        if name in scope.outside:
            value = scope.outside[name]
            if isinstance(value, TypeVar) and self.names_are_sizes:  # TVM declares extents as type variables
                return scope.bound.maps[-1].setdefault(name, Symbol(name, place=self.source.place(node)))
            if isinstance(value, Expr) and not isinstance(value, Const):
                message = f"{name} is an expression from outside the function: only numbers and tuples are"
                raise self.error(node, message)
            return value
        if name in BUILTINS:
            return BUILTINS[name]
        raise self.error(node, f"unknown name '{name}'{did_you_mean(name, scope.bound or scope.outside)}")

    def expression(self, node: ast.expr, dtype: str | None = None) -> Expr:
        """A number adopts `dtype`. Raises CompileError."""
        value = self.scalar(node, self.evaluate(node))
        return self.apply(node, as_expr, value, dtype)

    def element(self, node: ast.expr, dtype: str, what: str) -> Expr:
        """Raises CompileError for another dtype."""
        expr = self.expression(node, dtype)
        adapts = expr.is_index and dtype in ("int32", "int64")
        if expr.dtype != dtype and not adapts:
            raise self.error(node, f"{what} is {dtype}, and `{expr}` is {expr.dtype}: cast it, T.Cast({dtype!r}, ...)")
        return expr

    def index(self, node: ast.expr, what: str) -> Expr:
        return self.note(node, self.apply(node, as_index, self.scalar(node, self.evaluate(node)), what))

    def extent(self, node: ast.expr, what: str) -> int | Expr:
        return self.as_extent(node, self.evaluate(node), what)

    def as_extent(self, node: Positioned, value: object, what: str) -> int | Expr:
        number = as_number(value)
        if number is None:
            expr = self.apply(node, as_index, self.scalar(node, value), what)
            if not isinstance(expr, Const):
                return expr
            number = expr.value
        if isinstance(number, bool) or not isinstance(number, int):
            raise self.error(node, f"{what} must be an integer, got {number!r}")
        if not 0 <= number < 1 << 63:
            limit = "must not be negative" if number < 0 else "must fit 64 bits"
            raise self.error(node, f"{what} {limit}, got {number}")
        return number

    def scalar(self, node: Positioned, value: object) -> object:
        if isinstance(value, Buffer):
            indices = ", ".join(f"i{d}" for d in range(value.rank))
            raise self.error(node, f"{value.name} is a buffer: read an element of it, {value.name}[{indices}]")
        if isinstance(value, Expr) or as_number(value) is not None:
            return value
        raise self.error(node, f"expected a number or a value, got {shown(value)}")

    def string(self, node: ast.expr, what: str) -> str:
        value = self.evaluate(node)
        if not isinstance(value, str):
            raise self.error(node, f"{what} is a string, got {shown(value)}")
        return value

    def as_attributes(self, node: Positioned, value: object, message: str) -> dict[str, Attribute]:
        """Raises CompileError with `message` unless `value` is a dict."""
        if not isinstance(value, dict):
            raise self.error(node, message)
        return self.apply(node, to_attributes, cast("dict[object, object]", value))

    def note(self, node: Positioned, expr: Expr) -> Expr:
        del node
        return expr

    def evaluate(self, node: ast.expr) -> object:
        """A Python value, an expression, a buffer or a construct of the language."""
        try:
            handler = self.EXPRESSIONS.get(type(node))
            if handler is None:
                raise self.error(node, f"`{type(node).__name__.lower()}` has no meaning in a script")
            value = handler(self, node)
        except RecursionError:
            raise self.error(node, "this is nested too deeply: name parts of it") from None
        if isinstance(value, Expr):
            return self.note(node, value)
        if not isinstance(node, ast.Constant | ast.Name):
            self.apply(node, check_result, value)
        return value

    def _constant(self, node: ast.Constant) -> object:
        if isinstance(node.value, str) and any("\ud800" <= character <= "\udfff" for character in node.value):
            raise self.error(node, "text has half of a character, a lone surrogate")
        if self.lane is not None and isinstance(node.value, str) and (found := VECTOR.fullmatch(node.value)):
            return found[1]
        return node.value

    def _items(self, node: ast.Tuple | ast.List) -> list[object] | tuple[object, ...]:
        items = [self.evaluate(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)

    def _dict(self, node: ast.Dict) -> dict[object, object]:
        values: dict[object, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise self.error(value, "`**` has no meaning in a script")
            self.apply(key, values.__setitem__, self.evaluate(key), self.evaluate(value))
        return values

    def _binary(self, node: ast.BinOp) -> object:
        return self.operate(node, node.op, self.evaluate(node.left), self.evaluate(node.right))

    def operate(self, node: Positioned, kind: ast.operator, left: object, right: object) -> object:
        function = OPERATORS.get(type(kind))
        if function is None:
            raise self.error(node, f"the operator {type(kind).__name__} has no meaning in a script")
        if isinstance(left, Expr) or isinstance(right, Expr):
            left, right = adapted([self.scalar(node, left), self.scalar(node, right)])
        elif isinstance(left, Buffer) or isinstance(right, Buffer):
            self.scalar(node, left if isinstance(left, Buffer) else right)
        self.apply(node, check_arguments, function, (left, right))
        return self.apply(node, function, left, right)

    def _unary(self, node: ast.UnaryOp) -> object:
        value = self.evaluate(node.operand)
        if isinstance(value, Buffer):
            self.scalar(node.operand, value)
        if isinstance(node.op, ast.Not):
            return self.apply(node, words.Not, value) if isinstance(value, Expr) else not value
        if isinstance(node.op, ast.USub):
            if isinstance(value, Const) and not isinstance(value.value, bool):
                return Const(-value.value, value.dtype)
            return self.apply(node, operator.neg, value)
        return self.apply(node, operator.pos if isinstance(node.op, ast.UAdd) else operator.invert, value)

    def _logic(self, node: ast.BoolOp) -> object:
        kind = BinaryKind.AND if isinstance(node.op, ast.And) else BinaryKind.OR
        result = self.evaluate(node.values[0])
        for part in node.values[1:]:
            if not isinstance(result, Expr):
                if bool(result) == (kind is BinaryKind.OR):
                    return result
                result = self.evaluate(part)
                continue
            result = self.apply(node, both, kind, result, self.scalar(part, self.evaluate(part)))
        return result

    def _comparison(self, node: ast.Compare) -> object:
        result: object = True
        left = self.evaluate(node.left)
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            function = COMPARISONS.get(type(kind))
            if function is None:
                raise self.error(node, f"the comparison {type(kind).__name__} has no meaning in a script")
            if isinstance(left, Expr | Buffer) or isinstance(right, Expr | Buffer):
                left, right = self.scalar(node, left), self.scalar(node, right)
            holds = self.apply(node, function, *adapted([left, right]))
            if isinstance(result, Expr) and isinstance(holds, Expr):
                result = self.apply(node, both, BinaryKind.AND, result, holds)
            elif result is True or holds is False:
                result = holds
            left = right
        return result

    def _choice(self, node: ast.IfExp) -> object:
        test = self.evaluate(node.test)
        if not isinstance(test, Expr):
            return self.evaluate(node.body if test else node.orelse)
        branches = [self.scalar(part, self.evaluate(part)) for part in (node.body, node.orelse)]
        return self.apply(node, words.if_then_else, test, *branches)

    def _attribute(self, node: ast.Attribute) -> object:
        value = self.evaluate(node.value)
        match value:
            case ModuleType() if words.is_namespace(value):
                if node.attr in words.FUNCTIONS:
                    return words.FUNCTIONS[node.attr]
                if node.attr in words.WORDS:
                    return words.WORDS[node.attr]
                if (word := words.intrinsic(node.attr)) is not None:
                    return word
                known = [*words.FUNCTIONS, *words.WORDS]
                raise self.error(node, f"there is no T.{node.attr}{did_you_mean(node.attr, known)}")
            case IntrinsicWord():  # T.ptx_legacy.mma
                return IntrinsicWord(f"{value.name}.{node.attr}", value.usage)
            case Buffer():
                return self._of_buffer(node, value)
            case Expr() if node.attr in ("dtype", "astype"):
                return value.dtype if node.attr == "dtype" else value.astype
            case Expr():
                raise self.error(node, f"`{value}` has no '{node.attr}': it has dtype and astype")
            case _ if node.attr.startswith("__"):
                raise self.error(node, f"{node.attr} has no meaning in a script")
            case _:
                return self.apply(node, getattr, value, node.attr)

    def _of_buffer(self, node: ast.Attribute, buffer: Buffer) -> object:
        match node.attr:
            case "shape":
                if any(extent is None for extent in buffer.extents):
                    raise self.error(node, f"the extents of {buffer.name} are not stated: give them names")
                return buffer.extents
            case "dtype" | "scope":
                return buffer.dtype if node.attr == "dtype" else buffer.scope
            case "data":
                return buffer.stored
            case "elem_offset":
                return buffer.offset
            case "strides":
                return tuple(buffer.stride(d) for d in range(buffer.rank))
            case _:
                raise self.error(
                    node, f"buffer {buffer.name} has no '{node.attr}': it has shape, strides, dtype, scope and data"
                )

    def _subscript(self, node: ast.Subscript) -> object:
        value = self.evaluate(node.value)
        if isinstance(value, Buffer):
            return BufferLoad(value.stored, self.indices(node, value), value.dtype)
        if isinstance(value, Expr):
            raise self.error(node, f"`{value}` is a number and has no elements")
        if isinstance(node.slice, ast.Slice):
            bounds = (node.slice.lower, node.slice.upper, node.slice.step)
            key: object = slice(*(None if bound is None else self.evaluate(bound) for bound in bounds))
        else:
            key = self.evaluate(node.slice)
        if isinstance(key, Expr):
            raise self.error(node, f"`{key}` is not known at parse time: {shown(value)} is not a buffer")
        return self.apply(node, operator.getitem, value, key)

    def indices(self, node: ast.Subscript, buffer: Buffer) -> tuple[Expr, ...]:
        """Indices in the buffer that stores the element. Raises CompileError for slices and a wrong rank."""
        nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if self.lane is None and any(isinstance(part, ast.Slice) for part in nodes):
            raise self.error(node, f"elements of {buffer.name} are read one by one: give {buffer.rank} indices")
        values = [(part, value) for part in nodes for value in self._index_values(part)]
        if len(values) != buffer.rank:
            raise self.error(node, f"{buffer.name} has {buffer.rank} dimensions, and {len(values)} indices are given")
        indices = [
            self.note(part, self.apply(part, as_index, self.scalar(part, value), f"index {d} of {buffer.name}"))
            for d, (part, value) in enumerate(values)
        ]
        return self.stored_indices(node, buffer, indices)

    def _index_values(self, node: ast.expr) -> Sequence[object]:
        """One index, several for `*indices`, or the lane of a slice."""
        if isinstance(node, ast.Starred):
            return items(self.evaluate(node.value))
        if not isinstance(node, ast.Slice):
            return [self.evaluate(node)]
        low = as_expr(0) if node.lower is None else self.evaluate(node.lower)
        return [self._along(node, low, 1 if node.step is None else self.evaluate(node.step))]

    def _along(self, node: ast.expr, base: object, stride: object) -> Expr:
        step = stride.value if isinstance(stride, Const) else stride
        lane = self.lane if step == 1 else self.operate(node, ast.Mult(), self.lane, stride)
        return cast("Expr", self.operate(node, ast.Add(), base, lane))

    def _ramp(self, node: ast.Call) -> Expr:
        """`T.Ramp(base, stride, lanes)`: `base + stride * lane` in a vector store."""
        if self.lane is None or len(node.args) != 3:
            raise self.error(node, f"vectors are indices and values of stores: `{words.Ramp.usage}`")
        return self._along(node, self.evaluate(node.args[0]), self.evaluate(node.args[1]))

    def _broadcast(self, node: ast.Call) -> object:
        """`T.Broadcast(value, lanes)`: `value` in a vector store."""
        if self.lane is None or len(node.args) != 2:
            raise self.error(node, f"vectors are indices and values of stores: `{words.Broadcast.usage}`")
        return self.evaluate(node.args[0])

    def stored_indices(self, node: Positioned, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        found = self.apply(node, buffer.element, indices)
        if found is None:
            raise self.error(
                node,
                f"the element of {buffer.stored.name} cannot be determined: `{indices[0]}` is not a sum of its strides",
            )
        return found

    def box_of(self, node: ast.expr, buffer: Buffer) -> tuple[list[Expr], list[int]]:
        """Corner and sizes of an element, a slice, or the whole buffer. Raises CompileError."""
        corner, sizes = self._ranges(node, buffer)
        for dimension, size in enumerate(sizes):
            if size is None:
                raise self.error(
                    node, f"the region of {buffer.name} in dimension {dimension}: its size is a positive number"
                )
        return corner, [cast("int", size) for size in sizes]

    def stored_box(self, node: ast.expr, buffer: Buffer) -> tuple[list[Expr], list[int]]:
        corner, sizes = self.box_of(node, buffer)
        return list(self.stored_indices(node, buffer, corner)), list(buffer.box(sizes))

    def region_of(self, node: ast.expr, buffer: Buffer) -> tuple[list[Expr], list[int]] | None:
        """A bounding box in the buffer that stores a part; data-dependent dimensions are whole, and it is None if their
        extent is not a number."""
        low, sizes = self._ranges(node, buffer)
        corner = list(self.stored_indices(node, buffer, low))
        stored = list(buffer.box([size or 0 for size in sizes]))
        for dimension, extent in enumerate(buffer.stored.extents):
            if stored[dimension] < 1 or not all(map(_is_affine, walk(corner[dimension]))):
                if not isinstance(extent, int) or extent < 1:
                    return None
                corner[dimension], stored[dimension] = as_expr(0), extent
        return corner, stored

    def _ranges(self, node: ast.expr, buffer: Buffer) -> tuple[list[Expr], list[int | None]]:
        """Lower bounds and sizes; None for sizes that are not constant."""
        if not isinstance(node, ast.Subscript):
            if not all(isinstance(extent, int) for extent in buffer.extents):
                raise self.error(node, f"the extents of {buffer.name} are not numbers: give a region")
            return [as_expr(0)] * buffer.rank, [cast("int", extent) for extent in buffer.extents]
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(items) != buffer.rank:
            raise self.error(node, f"{buffer.name} has {buffer.rank} dimensions, and {len(items)} ranges are given")
        corner: list[Expr] = []
        sizes: list[int | None] = []
        for dimension, item in enumerate(items):
            what = f"the region of {buffer.name} in dimension {dimension}"
            size: int | None = 1
            if not isinstance(item, ast.Slice):
                low = self.index(item, what)
            elif item.step is not None:
                raise self.error(node, f"{what} has a step: regions are boxes")
            else:
                low = as_expr(0) if item.lower is None else self.index(item.lower, what)
                high = buffer.extents[dimension] if item.upper is None else self.index(item.upper, what)
                size = None if high is None else difference(as_expr(high), low)
                if size is not None and size < 1:
                    raise self.error(node, f"{what}: its size is a positive number, {ast.unparse(item)} has {size}")
            corner.append(low)
            sizes.append(size)
        return corner, sizes

    def _call(self, node: ast.Call) -> object:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "vload":  # A.vload([i, 0], "float32x4")
            return self.evaluate(vector_element(node, ast.Load()))
        function = self.evaluate(node.func)
        if isinstance(function, IntrinsicWord) and function.name == "call_intrin":
            function, node = self._intrinsic(node, function)
        if isinstance(function, IntrinsicWord):
            return self.intrinsic_value(node)
        if isinstance(function, Construct) and (special := self.VALUES.get(function)) is not None:
            return special(self, node)
        if isinstance(function, Construct):
            raise self.error(node, f"{function} gives no value here; it is used so: `{function.usage}`")
        args, kwargs = self.arguments(node)
        stated = self._of_dtype(node, function, kwargs)
        of_values = any(isinstance(value, Expr | Buffer) for value in (*args, *kwargs.values()))
        if of_values and isinstance(function, BuiltinFunctionType) and function in OF_VALUES:
            return self._of_values(node, function, args)
        if not may_call(function, of_values):
            raise self.error(
                node,
                f"{shown(function)} is not called from a script: T's functions are, and Python's "
                f"{', '.join(sorted(BUILTINS))} on numbers",
            )
        found = self.checked_call(node, cast("Callable[..., object]", function), args, kwargs)
        if stated is not None and isinstance(found, Expr) and found.dtype != stated:
            raise self.error(node, f"{ast.unparse(node.func)} gives {found.dtype} here, got dtype={stated!r}")
        return found

    def _of_dtype(self, node: ast.Call, function: object, kwargs: dict[str, object]) -> object:
        """Removes `dtype=` if the function has no such parameter."""
        if "dtype" not in kwargs or not isinstance(function, FunctionType):
            return None
        is_known = any(function is known for known in words.FUNCTIONS.values())
        if not is_known or "dtype" in inspect.signature(function).parameters:
            return None
        return self.apply(node, checked_dtype, kwargs.pop("dtype"))

    def intrinsic_value(self, node: ast.Call) -> object:
        raise self.error(node, f"{ast.unparse(node.func)} gives no value here")

    def _intrinsic(self, node: ast.Call, word: IntrinsicWord) -> tuple[object, ast.Call]:
        """`T.call_intrin("float32", "tir.exp", x)` is a call of `T.exp`; other intrinsics are unchanged."""
        name = self.evaluate(node.args[1]) if len(node.args) > 1 else None
        found = words.FUNCTIONS.get(name.rpartition(".")[2]) if isinstance(name, str) else None
        return (
            (word, node) if found is None else (found, ast.copy_location(ast.Call(node.func, node.args[2:], []), node))
        )

    def _attribute_text(self, node: ast.Call) -> object:
        return AttributeText(self.string(node.args[0], "T.attr") if len(node.args) == 1 else "")

    def _let(self, node: ast.Call) -> object:
        """`T.Let(body, where={x: value})`"""
        where = node.keywords[0].value if len(node.keywords) == 1 and node.keywords[0].arg == "where" else None
        if len(node.args) != 1 or not isinstance(where, ast.Dict):
            raise self.error(node, f"T.Let has an expression and values of names: `{words.Let.usage}`")
        with self.scope.nested():
            for key, value in zip(where.keys, where.values, strict=True):
                if not isinstance(key, ast.Name):
                    raise self.error(key or value, "a name is expected here")
                self.bind_checked(key, self.scalar(value, self.evaluate(value)))
            return self.evaluate(node.args[0])

    def arguments(self, node: ast.Call) -> tuple[list[object], dict[str, object]]:
        kwargs: dict[str, object] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.error(node, "`**` has no meaning in a script")
            kwargs[keyword.arg] = self.evaluate(keyword.value)
        return [self.evaluate(argument) for argument in node.args], kwargs

    def checked_call(
        self, node: ast.Call, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        if isinstance(function, DType) or not isinstance(function, BuiltinFunctionType | type):
            try:
                inspect.signature(function).bind(*args, **kwargs)
            except TypeError as failure:
                raise self.error(node, f"{ast.unparse(node.func)}: {failure}") from None
        for argument in args:
            if isinstance(argument, Buffer | Construct | Namespace | ModuleType):
                self.scalar(node, argument)
        self.apply(node, check_arguments, function, args)
        args = adapted(args)
        return self.apply(node, function, *args, **kwargs)

    def _of_values(self, node: ast.Call, function: BuiltinFunctionType, args: Sequence[object]) -> object:
        values = [self.scalar(node, argument) for argument in args]
        if function not in (max, min):
            return self.checked_call(node, OF_VALUES[function], values, {})
        result = values[0]
        for value in values[1:]:
            result = self.apply(node, OF_VALUES[function], result, value)
        return result

    EXPRESSIONS: ClassVar[Mapping[type[ast.expr], Handler]] = {
        ast.Attribute: _attribute,
        ast.BinOp: _binary,
        ast.BoolOp: _logic,
        ast.Call: _call,
        ast.Compare: _comparison,
        ast.Constant: _constant,
        ast.Dict: _dict,
        ast.IfExp: _choice,
        ast.List: _items,
        ast.Name: _name,
        ast.Subscript: _subscript,
        ast.Tuple: _items,
        ast.UnaryOp: _unary,
    }
    VALUES: ClassVar[Mapping[Construct, Handler]] = {
        words.Broadcast: _broadcast,
        words.Let: _let,
        words.Ramp: _ramp,
        words.attr: _attribute_text,
    }
    """Constructs whose calls are values, not statements."""


def vector_element(node: ast.Call, context: ast.expr_context) -> ast.Subscript:
    """`A[i, T.Ramp(0, 1, 4)]` for `A.vload([i, 0], "float32x4")`, and for `A.vstore([i, 0], value)`."""
    func, index = cast("ast.Attribute", node.func), node.args[0]
    indices = list(index.elts) if isinstance(index, ast.List | ast.Tuple) else [index]
    dtypes = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "dtype")]
    lanes = next(
        (int(found[2]) for part in dtypes if isinstance(part, ast.Constant) and isinstance(part.value, str)
         and (found := VECTOR.fullmatch(part.value))),
        None,
    )  # fmt: skip
    if lanes is not None and indices:
        low = indices[-1]
        indices[-1] = ast.Slice(low, ast.BinOp(low, ast.Add(), ast.Constant(lanes)))
    made = ast.Subscript(func.value, ast.Tuple(indices, ast.Load()), context)
    for part in ast.walk(made):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return made


def adapted(values: Sequence[object]) -> list[object]:
    """Index operands have the dtype of a narrower integer operand."""
    integers = [v for v in values if isinstance(v, Expr) and is_integer(v.dtype) and not isinstance(v, Const)]
    dtype = next((value.dtype for value in integers if not value.is_index), None)
    return [
        cast_to(v, dtype) if dtype is not None and isinstance(v, Expr) and v.is_index and v.dtype != dtype else v
        for v in values
    ]


def both(kind: BinaryKind, left: Expr, right: object) -> Expr:
    """Short-circuit only if the right side reads buffers, since a branch is more expensive."""
    other = as_expr(right)
    result = binary(kind, left, other)
    if not reads(other) or left.dtype != "bool":
        return result
    return words.if_then_else(left, *((other, False) if kind is BinaryKind.AND else (True, other)))


def may_call(function: object, of_values: bool) -> bool:
    """`of_values`: the arguments are values of the program."""
    if isinstance(function, DType) or getattr(function, "__name__", None) == "astype":
        return True
    if any(function is known for known in words.FUNCTIONS.values()) or isinstance(function, FunctionType):
        return True
    if of_values:
        return False
    if function is TypeVar:
        return True
    name = getattr(function, "__name__", "")
    return any(function is known for known in BUILTINS.values()) or getattr(math, name, None) is function


def shown(value: object) -> str:
    match value:
        case Construct() | DType() | Namespace() | Buffer() | Symbol() | Leaf():
            return str(value)
        case ModuleType():
            return "T" if words.is_namespace(value) else f"module {value.__name__}"
        case _:
            name = getattr(value, "__name__", None)
            return name if isinstance(name, str) else f"{value!r} of type {type(value).__name__}"


def _is_affine(expr: Expr) -> bool:
    """A leaf, or built by + and -, or by *, // and % with constants."""
    match expr:
        case Binary(kind=BinaryKind.ADD | BinaryKind.SUB):
            return True
        case Binary(kind=BinaryKind.MUL):
            return isinstance(expr.left, Const) or isinstance(expr.right, Const)
        case Binary(kind=BinaryKind.FLOORDIV | BinaryKind.FLOORMOD):
            return isinstance(expr.right, Const)
        case _:
            return isinstance(expr, Const) or (isinstance(expr, Leaf | Symbol) and expr.is_index)


def difference(left: Expr, right: Expr) -> int | None:
    terms: Counter[object] = Counter()
    _count_terms(left, 1, terms)
    _count_terms(right, -1, terms)
    constant = terms.pop(None, 0)
    return None if any(terms.values()) else constant


def _count_terms(expr: Expr, factor: int, terms: Counter[object]) -> None:
    match expr:
        case Const():
            terms[None] += int(expr.value) * factor
        case Binary(kind=BinaryKind.ADD | BinaryKind.SUB):
            _count_terms(expr.left, factor, terms)
            _count_terms(expr.right, factor if expr.kind is BinaryKind.ADD else -factor, terms)
        case Binary(kind=BinaryKind.MUL, right=Const() as number):
            _count_terms(expr.left, factor * int(number.value), terms)
        case Binary(kind=BinaryKind.MUL, left=Const() as number):
            _count_terms(expr.right, factor * int(number.value), terms)
        case _:
            terms[index_key(expr)] += factor
