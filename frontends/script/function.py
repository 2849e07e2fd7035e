"""One function of a script -> a `func.func` of block loops: parameters, declarations and calls.

`statements` reads the statements of the body, `blocks` the blocks among them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, IndexType, MemRefType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from weft.analysis.structural_equality import scalar_constant
from weft.dialects.tir_assume import Relation
from weft.frontends.script import tir
from weft.frontends.script.attributes import parse_attribute, to_attributes
from weft.frontends.script.constructs import DType, dtype_of
from weft.frontends.script.emit import ScriptEmitter, buffer_type
from weft.frontends.script.evaluate import Evaluator
from weft.frontends.script.python_rules import shown
from weft.frontends.script.regions import box_of
from weft.frontends.script.source import Positioned, Source, free_names
from weft.frontends.script.values import Buffer, Leaf, Opaque, Symbol, hint_of, is_scalar, static_extent
from weft.frontends.script.views import FlatView, RegionView, strides_in
from weft.support.errors import CompileError
from weft.support.locations import SourceLocation
from weft.texpr.dtypes import type_of
from weft.texpr.expr import Const, Expr
from weft.texpr.operators import as_number
from weft.texpr.shapes import items

NOALIAS = "tir.noalias"
SYMBOL = "global_symbol"


@dataclass
class Handle:
    """A parameter `a: T.handle`, which `T.match_buffer` gives a shape."""

    name: str
    node: ast.arg
    position: int
    buffer: Buffer | None = None

    def __repr__(self) -> str:
        return f"parameter {self.name}, a T.handle"


@dataclass
class Call:
    """A call, checked when all functions are read."""

    op: CallOp
    node: ast.Call
    callee: str
    outside: bool = False
    """Whether `callee` is the symbol of a function outside of the module; else it is a name in the class."""
    pure: bool = False
    """Whether that function is said to have no effects but on what its pointers give access to."""


@dataclass
class FunctionParser:
    """Reads one function. `module` and `siblings` are names of its class and of the functions in it."""

    source: Source
    node: ast.FunctionDef
    names: Mapping[str, object]
    siblings: Sequence[str] = ()
    module: str | None = None
    name: str = field(init=False)
    calls: list[Call] = field(default_factory=list[Call], init=False)

    def __post_init__(self) -> None:
        self.name = self.node.name
        self.entry = Block()
        self.emitter = ScriptEmitter(self.entry)
        self.evaluator = Evaluator(self.source, self.names, self.emitter)
        self._attributes: dict[str, Attribute] = {}
        self._positions: list[int] = []
        """The position in the Python function of each argument of the entry block."""
        self._declared: list[Buffer] = []
        """Buffers whose extents are not yet stated."""
        self._offsets: list[tuple[Expr, SourceLocation]] = []
        """Offsets of the first elements of buffers, and where they are declared."""
        self._handles: list[Handle] = []
        self.shifted: dict[int, tuple[Expr, Leaf, Expr]] = {}
        """By identity: loop variables that do not start at 0, the variables that do, and what is between them."""
        self.readable: frozenset[SSAValue] | None = None
        """The buffers that the block around the current statement says it reads, if it says so."""

    def parse(self, read_body: Callable[[Sequence[ast.stmt]], None]) -> FuncOp:
        """The function, whose statements `read_body` reads. Raises CompileError at the place of what is no program."""
        declaration = self._is_declaration()
        self._parameters(declaration)
        try:
            read_body(self.node.body[:-1] if declaration else self.node.body)
        except RecursionError:
            raise self.error(self.node, f"{self.name} is nested too deeply: name parts of it") from None
        self.flush()
        for handle in self._handles:
            if handle.buffer is None and not declaration:
                raise self.error(
                    handle.node, f"{handle.name} has no shape: give it one, X = T.match_buffer({handle.name}, (m, n))"
                )
        self.emitter.place = self.source.place(self.node)
        type = FunctionType.from_lists([argument.type for argument in self.entry.args], self._results(declaration))
        if declaration:
            region = Region()
        else:
            self.emitter.finish(ReturnOp())
            region = Region(self.entry)
        function = FuncOp(self.name, type, region, "private" if self._is_private() else None)
        function.attributes.update(self._attributes)
        function.location = self.emitter.place.attribute()
        return function

    def error(self, node: Positioned, message: str) -> CompileError:
        return self.source.error(node, message)

    def _is_declaration(self) -> bool:
        """Whether the body is `...`, at most with attributes before: the function is defined elsewhere."""
        *attributes, last = self.node.body
        if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is Ellipsis):
            return False
        for statement in attributes:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if not isinstance(call, ast.Call) or self.evaluator.evaluate(call.func) is not tir.func_attr:
                raise self.error(statement, f"{self.name} is defined elsewhere (`...`): it has T.func_attr alone")
        return True

    def _is_private(self) -> bool:
        for decorator in self.node.decorator_list:
            if isinstance(decorator, ast.Call):
                for keyword in decorator.keywords:
                    if keyword.arg == "private":
                        return bool(self.evaluator.evaluate(keyword.value))
        return False

    # Parameters

    def _results(self, declaration: bool) -> list[Attribute]:
        """The type that `-> T.int32` says; only functions that are defined elsewhere give something."""
        returns = self.node.returns
        if returns is None or (isinstance(returns, ast.Constant) and returns.value is None):
            return []
        value = self.evaluator.evaluate(returns.func if isinstance(returns, ast.Call) else returns)
        if not declaration:
            raise self.error(returns, f"{self.name} returns nothing: results are written to parameters")
        if isinstance(value, DType):
            return [type_of(value.name)]
        if value is tir.type and isinstance(returns, ast.Call) and len(returns.args) == 1:
            text = self.evaluator.string(returns.args[0], "T.type")
            return [self.evaluator.apply(returns, parse_attribute, text)]
        raise self.error(returns, "a result is a scalar, T.int32")

    def _parameters(self, declaration: bool) -> None:
        arguments = self.node.args
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                raise self.error(extra, f"parameter {extra.arg}: functions have a fixed number of parameters")
        for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)):
            raise self.error(default, "parameters have no defaults")
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        buffers: list[tuple[ast.arg, ast.Call | ast.Subscript, int]] = []
        for position, parameter in enumerate(parameters):
            if parameter.annotation is None:
                raise self.error(
                    parameter,
                    f'parameter {parameter.arg} has no type: write {parameter.arg}: T.Buffer((m, n), "float32")',
                )
            annotation = parameter.annotation
            self.emitter.place = self.source.place(parameter)
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
                annotation = self.source.quoted(annotation, annotation.value) or annotation
            with self.source.placing(parameter):
                kind, is_bare = self._kind(annotation)
                if kind is tir.Buffer and isinstance(annotation, ast.Call | ast.Subscript):
                    buffers.append((parameter, annotation, position))
                else:
                    self._parameter(parameter, annotation, kind, is_bare, position, declaration)
        # Scalars first: a size with the name of a scalar parameter is that parameter, wherever it stands.
        for parameter, annotation, position in buffers:
            self.emitter.place = self.source.place(parameter)
            with self.source.placing(parameter):
                buffer = self._buffer_parameter(annotation, parameter.arg, position)
            if self.evaluator.known(parameter.arg) is not None:
                raise self.error(parameter, f"{parameter.arg} names a buffer and a size: rename one of them")
            self.evaluator.bind(parameter.arg, buffer)
            self._declared.append(buffer)

    def _kind(self, annotation: ast.expr) -> tuple[object, bool]:
        """The word that an annotation is, or that it calls or indexes, and whether it is that word alone."""
        word = annotation
        while isinstance(word, ast.Call | ast.Subscript):
            word = word.func if isinstance(word, ast.Call) else word.value
        return self.evaluator.evaluate(word), word is annotation

    def _parameter(
        self, parameter: ast.arg, annotation: ast.expr, kind: object, is_bare: bool, position: int, declaration: bool
    ) -> None:
        name = parameter.arg
        if kind is tir.handle and declaration:
            self._argument(PtrType(), name, position)
        elif kind is tir.handle:
            handle = Handle(name, parameter, position)
            self._handles.append(handle)
            self.evaluator.bind(name, handle)
        elif kind is tir.type and isinstance(annotation, ast.Call) and len(annotation.args) == 1:
            self._typed_parameter(annotation, name, position)
        elif isinstance(kind, DType) and is_bare:
            type = IndexType() if kind.name in ("int32", "int64") else type_of(kind.name)
            self.evaluator.bind(name, Leaf.of(self._argument(type, name, position), name))
        else:
            raise self.error(
                annotation, f'parameter {name} is a T.Buffer((m, n), "float32"), a T.handle or a scalar, T.int64'
            )

    def _buffer_parameter(self, annotation: ast.Call | ast.Subscript, name: str, position: int) -> Buffer:
        if isinstance(annotation, ast.Call):
            args, keywords = annotation.args, annotation.keywords
        else:
            inner = annotation.slice
            args, keywords = (inner.elts if isinstance(inner, ast.Tuple) else [inner]), []
        return self._buffer(annotation, args, keywords, name, position)

    def _typed_parameter(self, annotation: ast.Call, name: str, position: int) -> None:
        text = self.evaluator.string(annotation.args[0], "T.type")
        type = self.evaluator.apply(annotation, parse_attribute, text)
        argument = self._argument(type, name, position)
        if isinstance(type, MemRefType):
            shape = [None if extent == DYNAMIC_INDEX else extent for extent in type.get_shape()]
            self.evaluator.bind(name, Buffer(argument, name, tuple(shape)))
        elif is_scalar(type):
            self.evaluator.bind(name, Leaf.of(argument, name))
        else:
            self.evaluator.bind(name, Opaque(argument, name))

    def _argument(self, type: Attribute, name: str, position: int) -> BlockArgument:
        """The argument for the Python parameter at `position`."""
        place = sum(known < position for known in self._positions)
        self._positions.insert(place, position)
        argument = self.entry.insert_arg(type, place)
        argument.name_hint = hint_of(name)
        return argument

    def _buffer(
        self,
        node: ast.Call | ast.Subscript,
        args: Sequence[ast.expr],
        keywords: Sequence[ast.keyword],
        name: str,
        position: int,
    ) -> Buffer:
        """A parameter from the arguments (shape, dtype, ...) of T.Buffer or T.match_buffer."""
        more = ("scope", "strides", "elem_offset")
        options = self.options(node, args, keywords, ("shape", "dtype"), MATCH_OPTIONS, more)
        if "shape" not in options:
            raise self.error(node, f"buffer {name} has no shape")
        shape = self._shape(options["shape"], name)
        dtype = self.dtype(options.get("dtype"))
        scope = self.scope(options.get("scope"))
        names, strides = self._strides(options["strides"], name, shape) if "strides" in options else ({}, None)
        buffer = Buffer(self._argument(buffer_type(shape, dtype, scope, strides), name, position), name, shape)
        buffer.strides.update(names)
        buffer.place = self.source.place(node)
        if "elem_offset" in options:
            self._offset(options["elem_offset"], name)
        return buffer

    def _offset(self, node: ast.expr, name: str) -> None:
        """`elem_offset=...` of a parameter: calls pass the first element, so what is not a number is 0 there."""
        value = self.evaluator.evaluate(node)
        offset = 0 if value is None else self._size(node, value, f"{name}: elem_offset")
        if isinstance(offset, Expr):
            self._offsets.append((offset, self.source.place(node)))
        elif offset:
            raise self.error(node, f"elem_offset of {name} is {offset}: buffers start at their first element")

    def _strides(
        self, node: ast.expr, name: str, shape: Sequence[int | Expr | None]
    ) -> tuple[dict[int, Expr], tuple[int | None, ...] | None]:
        """The expressions of strides by dimension, and the strides: numbers, and None for those that calls decide.

        A stride of -1 is that of a dense buffer.
        """
        values = items(self.evaluator.evaluate(node) or ())
        if values and len(values) != len(shape):
            raise self.error(node, f"{name} has {len(shape)} dimensions, and {len(values)} strides are given")
        names: dict[int, Expr] = {}
        strides: list[int | None] = [None] * len(values)
        dense: int | None = 1
        for dimension in reversed(range(len(values))):
            value, extent = values[dimension], shape[dimension]
            if as_number(value) == -1 and dense is not None:
                strides[dimension] = dense
            elif isinstance(value, str) and value.isidentifier() and self.evaluator.known(value) is None:
                names[dimension] = Symbol(value)  # TVM prints different strides under one name
            elif value is not None:
                size = self._size(node, value, f"{name}: stride {dimension}")
                if isinstance(size, Expr):
                    names[dimension] = size
                else:
                    strides[dimension] = size
            dense = dense * extent if dense is not None and isinstance(extent, int) else None
        return dict(sorted(names.items())), tuple(strides) if values else None

    def _shape(self, node: ast.expr, name: str) -> tuple[int | Expr | None, ...]:
        return tuple(
            None if value is None else self._size(node, value, f"{name}: extent {d}")
            for d, value in enumerate(items(self.evaluator.evaluate(node)))
        )

    def _size(self, node: ast.expr, value: object, what: str) -> int | Expr:
        """An extent or a stride: a number, an index expression, or the text of one, whose new names are symbols."""
        if isinstance(value, str):
            text = self.source.quoted(node, value)
            if text is None:
                raise self.error(node, f"{what} is a size as text, got {value!r}")
            for name in free_names(text):
                if self.evaluator.known(name) is None:
                    self.evaluator.bind(name, Symbol(name, place=self.source.place(node)))
            value = self.evaluator.evaluate(text)
        return self.evaluator.as_extent(node, value, what)

    # What declarations are made of

    def options(
        self,
        node: ast.Call | ast.Subscript,
        args: Sequence[ast.expr],
        keywords: Sequence[ast.keyword],
        positional: Sequence[str],
        ignored: Mapping[str, str],
        more: Sequence[str] = ("scope",),
    ) -> dict[str, ast.expr]:
        """The arguments of a declaration by name. `ignored` ones may only have values that change nothing."""
        if len(args) > len(positional):
            raise self.error(node, f"too many arguments: {', '.join(positional)} are given by position")
        options = dict(zip(positional, args, strict=False))
        for keyword in keywords:
            if keyword.arg in options:
                raise self.error(keyword, f"{keyword.arg} is given twice")
            if keyword.arg is None or keyword.arg not in (*positional, *more, *ignored):
                raise self.error(keyword, f"there is no option {keyword.arg}")
            if (
                keyword.arg in ignored
                and keyword.arg not in more
                and not self._changes_nothing(keyword.arg, keyword.value)
            ):
                raise self.error(keyword, f"{keyword.arg}: {ignored[keyword.arg]}")
            options[keyword.arg] = keyword.value
        return options

    def _changes_nothing(self, option: str, node: ast.expr) -> bool:
        value = self.evaluator.evaluate(node)
        if isinstance(value, Const):
            value = value.value
        if option in ("align", "offset_factor"):  # buffers start at their beginning, aligned
            return isinstance(value, int)
        if option == "buffer_type":
            return isinstance(value, str) and value in ("", "default", "auto")
        is_empty = isinstance(value, str | list | tuple) and not value
        return value is None or is_empty or (isinstance(value, int) and value == 0)

    def dtype(self, node: ast.expr | None) -> str:
        if node is None:
            return "float32"
        return self.evaluator.apply(node, dtype_of, self.evaluator.evaluate(node))

    def scope(self, node: ast.expr | None) -> str:
        return "global" if node is None else self.evaluator.string(node, "scope")

    # Declarations

    def match_buffer(self, node: ast.Call, name: str) -> Buffer:
        """`A = T.match_buffer(a, (m, n), "float32")`."""
        if not node.args:
            raise self.error(node, f"T.match_buffer names a parameter: `{tir.match_buffer.usage}`")
        whole = node.args[0].value if isinstance(node.args[0], ast.Subscript) else node.args[0]
        handle = self.evaluator.evaluate(whole)
        if isinstance(handle, Buffer):
            return self._region_view(node, handle, name)
        if not isinstance(handle, Handle):
            raise self.error(node.args[0], f"T.match_buffer takes a parameter that is a T.handle, got {shown(handle)}")
        if handle.buffer is not None:
            raise self.error(node.args[0], f"{handle.name} has a shape already, as {handle.buffer.name}")
        handle.buffer = self._buffer(node, node.args[1:], node.keywords, name, handle.position)
        self._declared.append(handle.buffer)
        return handle.buffer

    def _region_view(self, node: ast.Call, whole: Buffer, name: str) -> Buffer:
        """`X = T.match_buffer(A[vi * 16 : vi * 16 + 16, 0:8], (16, 8))`: a name for a region."""
        more = ("scope", "strides", "elem_offset")
        options = self.options(node, node.args[1:], node.keywords, ("shape", "dtype"), MATCH_OPTIONS, more)
        corner, sizes = box_of(self.evaluator, node.args[0], whole)
        shape = self._shape(options["shape"], name) if "shape" in options else sizes
        first = len(sizes) - len(shape)
        if first < 0 or tuple(sizes[first:]) != tuple(shape) or any(size != 1 for size in sizes[:first]):
            raise self.error(node, f"{name} has the shape of the region of {whole.name}, {sizes}, got {tuple(shape)}")
        for option, found, wanted in (
            ("dtype", self.dtype(options["dtype"]) if "dtype" in options else whole.dtype, whole.dtype),
            ("scope", self.scope(options["scope"]) if "scope" in options else whole.scope, whole.scope),
        ):
            if found != wanted:
                raise self.error(options[option], f"{name} is a part of {whole.name}, whose {option} is {wanted}")
        fixed = [self.emitter.fixed(low) for low in corner]  # elements that it depends on are read here
        view = RegionView(whole, name, tuple(fixed), tuple(sizes[first:]))
        if "strides" in options:
            strides = items(self.evaluator.evaluate(options["strides"]) or ())
            if strides and len(strides) != view.rank:
                raise self.error(
                    options["strides"], f"{name} has {view.rank} dimensions, and {len(strides)} strides are given"
                )
            own = strides_in(whole)[first:]
            for dimension, stride in enumerate(strides):
                what = f"stride {dimension} of {name}"
                self._same_as(options["strides"], stride, own[dimension], view.stride(dimension), what, whole)
        if "elem_offset" in options:
            value = self.evaluator.evaluate(options["elem_offset"])
            offset = view.offset
            number = offset.value if isinstance(offset, Const) else offset
            self._same_as(options["elem_offset"], value, number, offset, f"elem_offset of {name}", whole)
        return view

    def _same_as(self, node: ast.expr, value: object, known: object, expr: Expr, what: str, whole: Buffer) -> None:
        """A stride or offset of a region: a new name for it, or the same number."""
        name = value if isinstance(value, str) else value.name if isinstance(value, Symbol) else None
        if name is not None and name.isidentifier() and not isinstance(self.evaluator.known(name), Leaf):
            self.evaluator.bind(name, expr)
        elif value is not None and (as_number(value) is None or as_number(value) != known):
            raise self.error(
                node, f"{what} is that of its region in {whole.name}, which gives it: name it or leave it out"
            )

    def alloc_buffer(self, node: ast.Call, name: str) -> Buffer:
        """`Y = T.alloc_buffer((128, 128), "float32")`."""
        options = self.options(node, node.args, node.keywords, ("shape", "dtype"), MATCH_OPTIONS)
        if "shape" not in options:
            raise self.error(node, f"buffer {name} has no shape: `{tir.alloc_buffer.usage}`")
        shape = self._shape(options["shape"], name)
        if any(extent is None for extent in shape):
            raise self.error(options["shape"], f"{name}: the extents of a temporary are given")
        type = buffer_type(shape, self.dtype(options.get("dtype")), self.scope(options.get("scope")))
        dynamic = [extent for extent in shape if isinstance(extent, Expr) and static_extent(extent) is None]
        return Buffer(self.emitter.allocate(type, dynamic, name), name, shape)

    def flat_view(self, node: ast.Call, name: str) -> FlatView:
        """`A_2 = T.Buffer((A.strides[0] * m,), data=A.data)`: the memory of a parameter, element after element."""
        more = ("data", "scope")
        options = self.options(node, node.args, node.keywords, ("shape", "dtype"), MATCH_OPTIONS, more)
        whole = self.evaluator.evaluate(options["data"]) if "data" in options else None
        if not isinstance(whole, Buffer):
            raise self.error(node, f"a buffer that is declared here is another's memory: `{tir.decl_buffer.usage}`")
        shape = items(self.evaluator.evaluate(options["shape"])) if "shape" in options else ()
        if len(shape) != 1:
            raise self.error(node, f"{name} is the memory of {whole.name}: it has one dimension, got {len(shape)}")
        dtype = self.dtype(options.get("dtype"))
        if dtype != whole.dtype:
            raise self.error(node, f"{name} is {dtype}, and the memory of {whole.name} is {whole.dtype}")
        return FlatView(whole.stored, name, None)

    def flush(self) -> None:
        """State the extents of the buffers that were declared since the last time."""
        declared, self._declared = self._declared, []
        for buffer in declared:
            for dimension, stride in buffer.strides.items():
                known = self.evaluator.known(stride.name) if isinstance(stride, Symbol) else None
                if isinstance(known, Symbol | Leaf) and known.is_index:
                    buffer.strides[dimension] = known
        self.emitter.declare(declared)
        offsets, self._offsets = self._offsets, []
        for offset, place in offsets:
            value = offset.value if isinstance(offset, Symbol) else None
            if isinstance(offset, Symbol) and value is None:
                offset.value = self.emitter.constant(0, IndexType())
            elif value is None or scalar_constant(value) is None:
                self.emitter.place = place
                self.emitter.assume(offset, Relation.EQUAL, Const(0, "int64"))

    def func_attr(self, node: ast.Call) -> None:
        """`T.func_attr({...})`: the name of the function, and attributes; that buffers do not overlap always holds."""
        value = self.evaluator.evaluate(node.args[0]) if len(node.args) == 1 and not node.keywords else None
        if not isinstance(value, dict):
            raise self.error(node, f"T.func_attr takes a dict: `{tir.func_attr.usage}`")
        attributes = _plain(cast("dict[object, object]", value))
        symbol = attributes.pop(SYMBOL, self.name)
        if not isinstance(symbol, str) or not symbol:
            raise self.error(node, f"the name of a function is a word, got {symbol!r}")
        self.name = symbol
        if not all(attributes.pop(name, True) is True for name in (NOALIAS, "tirx.noalias")):
            raise self.error(node, f"{NOALIAS} is True: calls check that buffers do not overlap")
        self._attributes.update(self.evaluator.apply(node, to_attributes, attributes))

    # Calls

    def callee(self, node: ast.expr) -> str | None:
        """The function of the module that is called, if `node` names one: `f`, `Module.f` or `cls.f`."""
        if isinstance(node, ast.Name) and node.id in self.siblings and self.evaluator.known(node.id) is None:
            return node.id
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return None
        if node.value.id in (self.module, "cls", "self") and node.attr in self.siblings:
            return node.attr
        return None


MATCH_OPTIONS = {
    "align": "a number",
    "offset_factor": "a number",
    "buffer_type": "only default buffers are known",
    "data": "views of buffers cannot be declared",
    "strides": "temporaries are dense, row-major: give no strides",
    "elem_offset": "buffers start at their first element",
    "axis_separators": "buffers are flat in memory",
}
"""Options of TVM's declarations that are read when they change nothing -> what else would be wrong."""


def _plain(values: dict[object, object]) -> dict[object, object]:
    """`T.bool(True)` and its like as Python numbers."""
    return {key: getattr(value, "value", value) if isinstance(value, Expr) else value for key, value in values.items()}
