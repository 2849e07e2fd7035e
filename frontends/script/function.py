"""Read one function of a script as a `func.func` of block loops: parameters, declarations and calls."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from xdsl.dialects.builtin import FunctionType, IndexType, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from weft.analysis.structural_equality import scalar_constant
from weft.dialects.attribute_values import attribute_of
from weft.dialects.element_types import STORED, stated_elements
from weft.dialects.promises import PROMISES, Promise, promises_attribute, promises_in
from weft.dialects.tir import OPERAND, IntrinsicOp
from weft.dialects.tir_assume import Relation
from weft.dialects.tir_kinds import STORAGE_ALIGN
from weft.frontends.script import words
from weft.frontends.script.attributes import attribute_text, generic_op, parse_attribute, to_attribute
from weft.frontends.script.constructs import Construct, DType, IntrinsicWord, Namespace
from weft.frontends.script.emit import ScriptEmitter, buffer_type
from weft.frontends.script.evaluate import Evaluator, shown
from weft.frontends.script.source import Positioned, Source, free_names
from weft.frontends.script.text import number_text
from weft.frontends.script.values import (
    Buffer,
    FlatView,
    Leaf,
    Opaque,
    Pointer,
    RegionView,
    ReshapedView,
    Symbol,
    hint_of,
    named_value,
    static_extent,
    strides_in,
)
from weft.support.errors import CompileError
from weft.support.locations import SourceLocation
from weft.texpr.expr import Const, Expr, as_expr, as_number, checked_dtype, type_of, value_type_of
from weft.texpr.shapes import items

NOALIAS = "tir.noalias"
SYMBOL = "global_symbol"
_TRUE = to_attribute(True)
_OF_BLOCK = "block"
_MASKS = {"r": "read", "w": "w", "rw": "readwrite", 1: "read", 2: "w", 3: "readwrite"}
"""TVM's access masks. With "w" the pointer may also be read."""
_ACCESSES = ("read", "write", "readwrite")
_NOTHING = ("", "void", "handle")
_SHAPED = ("scope", "strides", "elem_offset")
"""Options of buffers in existing memory; temporaries accept only the scope."""
_NEUTRAL_OPTIONS = {
    "align": "a number",
    "offset_factor": "a number",
    "buffer_type": "only default buffers are known",
    "data": "views of buffers cannot be declared",
    "strides": "temporaries are dense, row-major: give no strides",
    "elem_offset": "buffers start at their first element",
    "axis_separators": "buffers are flat in memory",
}
"""Options of TVM's declarations accepted only with neutral values -> the reason."""


@dataclass
class HandleParameter:
    """A parameter `a: T.handle`; `T.match_buffer` gives it a shape."""

    name: str
    node: ast.arg
    position: int
    buffer: Buffer | None = None

    def __repr__(self) -> str:
        return f"parameter {self.name}, a T.handle"


@dataclass
class PendingCall:
    """A call, checked against its callee once all functions are parsed."""

    op: CallOp
    node: ast.Call
    callee: str
    outside: bool = False
    """`callee` is the symbol of an external function instead of a name in the class."""
    pure: bool = False
    """The external function has no effects except the accesses of its pointer arguments."""


class FunctionParser(Evaluator):
    """`siblings` are the functions of the class `module`."""

    names_are_sizes = True

    def __init__(
        self,
        source: Source,
        node: ast.FunctionDef,
        names: Mapping[str, object],
        siblings: Sequence[str] = (),
        module: str | None = None,
    ) -> None:
        super().__init__(source, names)
        self.node = node
        self.name = node.name
        self.entry = Block()
        self.emitter = ScriptEmitter(self.entry)
        self.calls: list[PendingCall] = []
        self._siblings = siblings
        self._module = module
        self._attributes: dict[str, Attribute] = {}
        self._positions: list[int] = []
        self._elements: dict[BlockArgument, Attribute] = {}
        """Element types of parameters whose own types do not determine them."""
        self._declared: list[Buffer] = []
        """Buffers whose extents are not yet stated in IR."""
        self._offsets: list[tuple[Expr, SourceLocation]] = []
        """Offsets of first elements, with the places of the declarations."""
        self._handles: list[HandleParameter] = []
        self._shifted: dict[int, tuple[Expr, Leaf, Expr]] = {}
        """`id(expression)` -> (loop variable with a start, its zero-based variable, the start)."""
        self._expansions = 0
        assigned = [
            target
            for part in ast.walk(node)
            if isinstance(part, ast.AugAssign | ast.Assign)
            for target in ([part.target] if isinstance(part, ast.AugAssign) else part.targets)
        ]
        self._reassigned = {target.id for target in assigned if isinstance(target, ast.Name)}
        self._readable: frozenset[SSAValue] | None = None
        """The buffers in `T.reads` of the innermost block, None without `T.reads`."""
        self._writable: frozenset[SSAValue] | None = None
        """The buffers in `T.writes` of the innermost block, None without `T.writes`."""

    def note(self, node: Positioned, expr: Expr) -> Expr:
        return self.emitter.note(expr, self.source.place(node))

    def place(self, node: Positioned) -> None:
        self.emitter.place = self.source.place(node)

    def parse(self) -> FuncOp:
        """Raises CompileError."""
        declaration = self._is_external()
        self._parameters(declaration)
        try:
            self.body(self.node.body[:-1] if declaration else self.node.body)
        except RecursionError:
            raise self.error(self.node, f"{self.name} is nested too deeply: name parts of it") from None
        self.flush()
        for handle in self._handles:
            if handle.buffer is None and not declaration:
                raise self.error(
                    handle.node, f"{handle.name} has no shape: give it one, X = T.match_buffer({handle.name}, (m, n))"
                )
        self.place(self.node)
        type = FunctionType.from_lists([argument.type for argument in self.entry.args], self._results(declaration))
        if not declaration:
            self.emitter.finish(ReturnOp())
        region = Region() if declaration else Region(self.entry)
        function = FuncOp(self.name, type, region, "private" if self._is_private() else None)
        function.attributes.update(self._attributes)
        function.arg_attrs = stated_elements(self._elements.get(a, a.type) for a in self.entry.args)
        function.location = self.emitter.location
        return function

    def _is_external(self) -> bool:
        *attributes, last = self.node.body
        if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is Ellipsis):
            return False
        for statement in attributes:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if not isinstance(call, ast.Call) or self.evaluate(call.func) is not words.func_attr:
                raise self.error(statement, f"{self.name} is defined elsewhere (`...`): it has T.func_attr alone")
        return True

    def _is_private(self) -> bool:
        calls = [decorator for decorator in self.node.decorator_list if isinstance(decorator, ast.Call)]
        values = [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "private"]
        return any(bool(self.evaluate(value)) for value in values)

    def _results(self, declaration: bool) -> list[Attribute]:
        returns = self.node.returns
        if returns is None or (isinstance(returns, ast.Constant) and returns.value is None):
            return []
        value = self.evaluate(returns.func if isinstance(returns, ast.Call) else returns)
        if not declaration and not (isinstance(value, DType) and value.name == "int32"):
            raise self.error(returns, f"{self.name} returns nothing: results are written to parameters")
        if not declaration:  # a status, 0
            return []
        if isinstance(value, DType):
            return [value_type_of(value.name)]
        if value is words.type and isinstance(returns, ast.Call) and len(returns.args) == 1:
            return [self.apply(returns, parse_attribute, self.string(returns.args[0], "T.type"))]
        raise self.error(returns, "a result is a scalar, T.int32")

    def _parameters(self, declaration: bool) -> None:
        arguments = self.node.args
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                raise self.error(extra, f"parameter {extra.arg}: functions have a fixed number of parameters")
        for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)):
            raise self.error(default, "parameters have no defaults")
        buffers: list[tuple[ast.arg, ast.Call, int]] = []
        for position, parameter in enumerate([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]):
            if parameter.annotation is None:
                raise self.error(
                    parameter,
                    f'parameter {parameter.arg} has no type: write {parameter.arg}: T.Buffer((m, n), "float32")',
                )
            annotation = parameter.annotation
            self.place(parameter)
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
                annotation = self.source.quoted(annotation, annotation.value) or annotation
            with self.source.placing(parameter):
                if isinstance(annotation, ast.Subscript):  # T.Buffer[(m, n), "float32"]
                    inner = annotation.slice
                    args = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                    annotation = ast.copy_location(ast.Call(annotation.value, args, []), annotation)
                kind = self.evaluate(annotation.func if isinstance(annotation, ast.Call) else annotation)
                if kind is words.Buffer and isinstance(annotation, ast.Call):
                    buffers.append((parameter, annotation, position))
                else:
                    self._parameter(parameter, annotation, kind, position, declaration)
        # Scalars first: an extent may name a scalar parameter in any position.
        for parameter, annotation, position in buffers:
            self.place(parameter)
            with self.source.placing(parameter):
                buffer = self._buffer(annotation, 0, parameter.arg, position)
            if self.scope.known(parameter.arg) is not None:
                raise self.error(parameter, f"{parameter.arg} names a buffer and a size: rename one of them")
            self.scope[parameter.arg] = buffer

    def _parameter(
        self, parameter: ast.arg, annotation: ast.expr, kind: object, position: int, declaration: bool
    ) -> None:
        name = parameter.arg
        if kind is words.handle and declaration:
            self._argument(PtrType(), name, position)
        elif kind is words.handle:
            handle = HandleParameter(name, parameter, position)
            self._handles.append(handle)
            self.scope[name] = handle
        elif kind is words.type and isinstance(annotation, ast.Call) and len(annotation.args) == 1:
            type = self.apply(annotation, parse_attribute, self.string(annotation.args[0], "T.type"))
            self.scope[name] = named_value(self._argument(type, name, position), name)
        elif isinstance(kind, DType) and not isinstance(annotation, ast.Call):
            if kind.name in STORED:
                raise self.error(annotation, f"parameter {name}: elements of arrays alone are {kind.name}")
            type = IndexType() if kind.name in ("int32", "int64") else value_type_of(kind.name)
            argument = self._argument(type, name, position)
            self.scope[name] = named_value(argument, name, self._stated(argument, kind.name))
        else:
            raise self.error(
                annotation, f'parameter {name} is a T.Buffer((m, n), "float32"), a T.handle or a scalar, T.int64'
            )

    def _stated(self, argument: BlockArgument, dtype: str) -> Attribute | None:
        if type_of(dtype) == value_type_of(dtype):
            return None
        self._elements[argument] = type_of(dtype)
        return type_of(dtype)

    def _argument(self, type: Attribute, name: str, position: int) -> BlockArgument:
        place = sum(known < position for known in self._positions)
        self._positions.insert(place, position)
        argument = self.entry.insert_arg(type, place)
        argument.name_hint = hint_of(name)
        return argument

    def _buffer(self, node: ast.Call, skipped: int, name: str, position: int) -> Buffer:
        """The arguments (shape, dtype, ...) follow `skipped` others."""
        options = self._options(node, skipped, _SHAPED)
        if "shape" not in options:
            raise self.error(node, f"buffer {name} has no shape")
        shape = self._shape(options["shape"], name)
        dtype = self._dtype(options.get("dtype"))
        scope = self._memory_scope(options.get("scope"))
        names, strides = self._strides(options["strides"], name, shape) if "strides" in options else ({}, None)
        argument = self._argument(buffer_type(shape, dtype, scope, strides), name, position)
        buffer = Buffer(argument, name, shape)
        buffer.stated_element = self._stated(argument, dtype)
        buffer.strides.update(names)
        buffer.place = self.source.place(node)
        if "elem_offset" in options:
            self._offset(options["elem_offset"], name)
        self._declared.append(buffer)
        return buffer

    def _offset(self, node: ast.expr, name: str) -> None:
        value = self.evaluate(node)
        offset = 0 if value is None else self._size(node, value, f"{name}: elem_offset")
        if isinstance(offset, Expr):
            self._offsets.append((offset, self.source.place(node)))
        elif offset:
            raise self.error(node, f"elem_offset of {name} is {offset}: buffers start at their first element")

    def _strides(
        self, node: ast.expr, name: str, shape: Sequence[int | Expr | None]
    ) -> tuple[dict[int, Expr], tuple[int | None, ...] | None]:
        """Symbolic strides by dimension, and all strides, None for dynamic ones; -1 is the stride of a dense buffer."""
        values = items(self.evaluate(node) or ())
        if values and len(values) != len(shape):
            raise self.error(node, f"{name} has {len(shape)} dimensions, and {len(values)} strides are given")
        names: dict[int, Expr] = {}
        strides: list[int | None] = [None] * len(values)
        dense: int | None = 1
        for dimension in reversed(range(len(values))):
            value, extent = values[dimension], shape[dimension]
            if as_number(value) == -1 and dense is not None:
                strides[dimension] = dense
            elif isinstance(value, str) and value.isidentifier() and self.scope.known(value) is None:
                names[dimension] = Symbol(value)
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
            for d, value in enumerate(items(self.evaluate(node)))
        )

    def _size(self, node: ast.expr, value: object, what: str) -> int | Expr:
        """A number, an index expression, or its text. Unknown names become symbols."""
        if isinstance(value, str):
            text = self.source.quoted(node, value)
            if text is None:
                raise self.error(node, f"{what} is a size as text, got {value!r}")
            for name in free_names(text):
                if self.scope.known(name) is None:
                    self.scope[name] = Symbol(name, place=self.source.place(node))
            value = self.evaluate(text)
        return self.as_extent(node, value, what)

    def _options(self, node: ast.Call, skipped: int, more: Sequence[str]) -> dict[str, ast.expr]:
        args = node.args[skipped:]
        if len(args) > 2:
            raise self.error(node, "too many arguments: shape, dtype are given by position")
        options: dict[str, ast.expr] = dict(zip(("shape", "dtype"), args, strict=False))
        for keyword in node.keywords:
            name = keyword.arg
            if name in options:
                raise self.error(keyword, f"{name} is given twice")
            if name is None or name not in ("shape", "dtype", *more, *_NEUTRAL_OPTIONS):
                raise self.error(keyword, f"there is no option {name}")
            if name in _NEUTRAL_OPTIONS and name not in more and not self._changes_nothing(name, keyword.value):
                raise self.error(keyword, f"{name}: {_NEUTRAL_OPTIONS[name]}")
            options[name] = keyword.value
        return options

    def _changes_nothing(self, option: str, node: ast.expr) -> bool:
        value = self.evaluate(node)
        if isinstance(value, Const):
            value = value.value
        if option in ("align", "offset_factor"):  # a buffer starts at an aligned allocation
            return isinstance(value, int)
        if option == "buffer_type":
            return isinstance(value, str) and value in ("", "default", "auto")
        is_empty = isinstance(value, str | list | tuple) and not value
        return value is None or is_empty or (isinstance(value, int) and value == 0)

    def _dtype(self, node: ast.expr | None) -> str:
        return "float32" if node is None else self._named_dtype(node, self.evaluate(node))

    def _named_dtype(self, node: ast.expr, value: object) -> str:
        if isinstance(value, Construct | Namespace | ModuleType):
            raise self.error(node, f"a dtype is a name or T.float32, got a {type(value).__name__.lower()}")
        return self.apply(node, checked_dtype, value)

    def _memory_scope(self, node: ast.expr | None) -> str:
        return "global" if node is None else self.string(node, "scope")

    def match_buffer(self, node: ast.Call, name: str) -> Buffer:
        if not node.args:
            raise self.error(node, f"T.match_buffer names a parameter: `{words.match_buffer.usage}`")
        whole = node.args[0].value if isinstance(node.args[0], ast.Subscript) else node.args[0]
        handle = self.evaluate(whole)
        if isinstance(handle, Buffer):
            return self._region_view(node, handle, name)
        if not isinstance(handle, HandleParameter):
            raise self.error(node.args[0], f"T.match_buffer takes a parameter that is a T.handle, got {shown(handle)}")
        if handle.buffer is not None:
            raise self.error(node.args[0], f"{handle.name} has a shape already, as {handle.buffer.name}")
        handle.buffer = self._buffer(node, 1, name, handle.position)
        return handle.buffer

    def _region_view(self, node: ast.Call, whole: Buffer, name: str) -> Buffer:
        """`X = T.match_buffer(A[vi * 16 : vi * 16 + 16, 0:8], (16, 8))`"""
        options = self._options(node, 1, _SHAPED)
        corner, sizes = self.box_of(node.args[0], whole)
        shape = self._shape(options["shape"], name) if "shape" in options else sizes
        first = len(sizes) - len(shape)
        if first < 0 or tuple(sizes[first:]) != tuple(shape) or any(size != 1 for size in sizes[:first]):
            raise self.error(node, f"{name} has the shape of the region of {whole.name}, {sizes}, got {tuple(shape)}")
        for option, found, wanted in (
            ("dtype", self._dtype(options["dtype"]) if "dtype" in options else whole.dtype, whole.dtype),
            ("scope", self._memory_scope(options["scope"]) if "scope" in options else whole.scope, whole.scope),
        ):
            if found != wanted:
                raise self.error(options[option], f"{name} is a part of {whole.name}, whose {option} is {wanted}")
        fixed = [self.emitter.fixed(low) for low in corner]  # the corner depends on their values here
        view = RegionView(whole, name, tuple(fixed), tuple(sizes[first:]))
        if "strides" in options:
            strides = items(self.evaluate(options["strides"]) or ())
            if strides and len(strides) != view.rank:
                raise self.error(
                    options["strides"], f"{name} has {view.rank} dimensions, and {len(strides)} strides are given"
                )
            own = strides_in(whole)[first:]
            for dimension, stride in enumerate(strides):
                what = f"stride {dimension} of {name}"
                self._same_as(options["strides"], stride, own[dimension], view.stride(dimension), what, whole)
        if "elem_offset" in options:
            value, offset = self.evaluate(options["elem_offset"]), view.offset
            self._same_as(options["elem_offset"], value, offset, offset, f"elem_offset of {name}", whole)
        return view

    def _same_as(self, node: ast.expr, value: object, known: object, expr: Expr, what: str, whole: Buffer) -> None:
        """The stride or offset `value` is the number `known`, or a new name for `expr`."""
        name = value if isinstance(value, str) else value.name if isinstance(value, Symbol) else None
        if name is not None and name.isidentifier() and not isinstance(self.scope.known(name), Leaf):
            self.scope[name] = expr
        elif value is not None and (as_number(value) is None or as_number(value) != static_extent(known)):
            raise self.error(
                node, f"{what} is that of its region in {whole.name}, which gives it: name it or leave it out"
            )

    def alloc_buffer(self, node: ast.Call, name: str, scope: str = "global") -> Buffer:
        """`Y = T.alloc_buffer((128, 128), "float32")`"""
        if len(node.args) == 3:  # T.allocate([16], "float32", "global")
            stated = ast.keyword("scope", node.args[2])
            node = ast.copy_location(ast.Call(node.func, node.args[:2], [*node.keywords, stated]), node)
        options = self._options(node, 0, ("scope", "strides"))
        if "shape" not in options:
            raise self.error(node, f"buffer {name} has no shape: `{words.alloc_buffer.usage}`")
        shape = self._shape(options["shape"], name)
        if any(extent is None for extent in shape):
            raise self.error(options["shape"], f"{name}: the extents of a temporary are given")
        dtype = self._dtype(options.get("dtype"))
        stated = options.get("scope")
        type = buffer_type(shape, dtype, scope if stated is None else self._memory_scope(stated))
        dynamic = [extent for extent in shape if isinstance(extent, Expr) and static_extent(extent) is None]
        element = type_of(dtype) if type_of(dtype) != value_type_of(dtype) else None
        padding = self._row_padding(options["strides"], name, shape) if "strides" in options else []
        buffer = Buffer(self.emitter.allocate(type, dynamic, name, element), name, shape)
        buffer.stated_element = element
        if padding and isinstance(buffer.value.owner, Operation):
            buffer.value.owner.attributes[STORAGE_ALIGN] = attribute_of(padding)
        return buffer

    def _row_padding(self, node: ast.expr, name: str, shape: Sequence[object]) -> list[list[int]]:
        """The padding of rows, as `tir.storage_align`."""
        given = items(self.evaluate(node) or ())
        strides = [None if stride is None else static_extent(self._size(node, stride, "a stride")) for stride in given]
        padding: list[list[int]] = []
        least: int | None = 1
        for axis in reversed(range(len(shape))) if strides else ():
            stride, extent = strides[axis] if len(strides) == len(shape) else None, static_extent(shape[axis])
            if stride is None or least is None or stride < least or (axis == len(shape) - 1 and stride != 1):
                raise self.error(
                    node,
                    f"{name}: the strides of a temporary are numbers, row-major, 1 the last: rows may "
                    "be apart, no elements overlap; schedules lay buffers out with transform_layout",
                )
            if stride > least:
                padding.append([axis, stride, 0])
            least = None if extent is None else stride * extent
        return padding

    def flat_view(self, node: ast.Call, name: str) -> Buffer:
        """`A_2 = T.Buffer((A.strides[0] * m,), data=A.data)`: a flat or reshaped view of memory; without `data`, a
        temporary."""
        options = self._options(node, 0, ("data", *_SHAPED))
        if "data" not in options:
            return self.alloc_buffer(node, name)
        whole = self.evaluate(options["data"])
        if isinstance(whole, HandleParameter):
            if whole.buffer is None:  # the shape of a pointer `data: T.handle("float32")`
                rest = [word for word in node.keywords if word.arg != "data"]
                stated = ast.copy_location(ast.Call(node.func, node.args, rest), node)
                whole.buffer = self._buffer(stated, 0, name, whole.position)
                return whole.buffer
            whole = whole.buffer
        if not isinstance(whole, Buffer):
            raise self.error(node, f"a buffer that is declared here is another's memory: `{words.decl_buffer.usage}`")
        dtype = self._dtype(options.get("dtype"))
        if dtype != whole.dtype:
            raise self.error(node, f"{name} is {dtype}, and the memory of {whole.name} is {whole.dtype}")
        shape = self._shape(options["shape"], name) if "shape" in options else ()
        if any(not self._changes_nothing(key, options[key]) for key in ("strides", "elem_offset") if key in options):
            return self._strided_view(node, whole, name, shape, options)
        pairs = [
            (static_extent(one) or one, static_extent(other) or other)
            for one, other in zip(shape, whole.extents, strict=False)
        ]
        if len(shape) == whole.rank and all(
            one is other or (type(one) is int and one == other) for one, other in pairs
        ):
            return whole
        if len(shape) == 1:
            return FlatView(whole.stored, name)
        sizes = [[static_extent(extent) for extent in extents] for extents in (whole.extents, shape)]
        old, new = ([size for size in some if size is not None] for some in sizes)
        known = len(old) == whole.rank and len(new) == len(shape)
        if not known or math.prod(old) != math.prod(new) or whole.strides or type(whole) is not Buffer:
            raise self.error(
                node,
                f"{name} is the memory of {whole.name}: it has one dimension, or numbers of elements "
                f"of {whole.name} as its shape, got {len(shape)} dimensions",
            )
        return ReshapedView(whole, name, tuple(new))

    def _strided_view(
        self,
        node: ast.Call,
        whole: Buffer,
        name: str,
        shape: Sequence[int | Expr | None],
        options: Mapping[str, ast.expr],
    ) -> Buffer:
        given = items(self.evaluate(options["strides"]) or ()) if "strides" in options else ()
        sizes, steps = ([static_extent(extent) for extent in some] for some in (shape, given))
        known = [size for size in sizes if size is not None]
        strides = [step for step in steps if step is not None]
        whole_sizes = [static_extent(extent) for extent in whole.extents]
        is_constant = len(known) == len(sizes) and len(strides) == len(steps) and None not in whole_sizes
        if not is_constant or whole.strides or type(whole) is not Buffer:
            raise self.error(node, f"{name}: a view with strides or an offset has constant extents and strides")
        if given and len(given) != len(shape):
            raise self.error(node, f"{name} has {len(shape)} dimensions, and {len(given)} strides are given")
        offset = self.index(options["elem_offset"], "an offset") if "elem_offset" in options else as_expr(0)
        return ReshapedView(whole, name, tuple(known), strides, offset)

    def flush(self) -> None:
        declared, self._declared = self._declared, []
        for buffer in declared:
            for dimension, stride in buffer.strides.items():
                known = self.scope.known(stride.name) if isinstance(stride, Symbol) else None
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
        """`T.func_attr({...})`: the symbol of the function, and attributes."""
        value = self.evaluate(node.args[0]) if len(node.args) == 1 and not node.keywords else None
        attributes = self.as_attributes(node, value, f"T.func_attr takes a dict: `{words.func_attr.usage}`")
        symbol = attributes.pop(SYMBOL, StringAttr(self.name))
        if not isinstance(symbol, StringAttr) or not symbol.data:
            raise self.error(node, f"the name of a function is a word, got {attribute_text(symbol)}")
        self.name = symbol.data
        noalias = all(attributes.pop(name, _TRUE) == _TRUE for name in (NOALIAS, "tirx.noalias"))
        self._promise(node, attributes, noalias)
        self._attributes.update(attributes)

    def _promise(self, node: ast.Call, attributes: dict[str, Attribute], noalias: bool) -> None:
        """Check `tir.promises`, and add that of `tir.noalias`."""
        try:
            found = promises_in(attributes.get(PROMISES))
        except CompileError as error:
            raise self.error(node, error.message) from None
        if PROMISES in attributes and noalias != (Promise.NOALIAS in found):
            raise self.error(node, f"{NOALIAS} is {noalias}, and {PROMISES} is {attribute_text(attributes[PROMISES])}")
        if not noalias:
            attributes[PROMISES] = promises_attribute(found - {Promise.NOALIAS})

    def callee(self, node: ast.expr) -> str | None:
        """The function that `f`, `Module.f` or `cls.f` names, or None."""
        if isinstance(node, ast.Name) and node.id in self._siblings and self.scope.known(node.id) is None:
            return node.id
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            return None
        if node.value.id in (self._module, "cls", "self") and node.attr in self._siblings:
            return node.attr
        return None

    def call_inside(self, node: ast.Call, callee: str) -> None:
        if node.keywords:
            raise self.error(node.keywords[0], f"arguments of {callee} are given by position")
        arguments = [self._operand(argument) for argument in node.args]
        self.calls.append(PendingCall(self.emitter.call(callee, arguments), node, callee))

    def call_outside(self, node: ast.Call, *, pure: bool = False) -> CallOp:
        """`T.call_extern("kernel", C.access_ptr("w"), A.access_ptr("r"), n, dtype="int32")`, or TVM's newer order,
        dtype first.

        Symbols declared as T.int32() are passed as such, other indices as 64 bits. The function may have effects,
        except for `T.call_pure_extern` and in blocks with `T.reads` and `T.writes`.
        """
        name, dtype, arguments = self._outside_parts(node)
        results: list[Attribute] = []
        if dtype not in _NOTHING:
            named = self._named_dtype(node, dtype)
            if value_type_of(named) != type_of(named):
                raise self.error(
                    node, f"functions from outside give bools, signed numbers and floats, not {named}: cast"
                )
            results.append(value_type_of(named))
        operands = [self._outside_operand(argument) for argument in arguments]
        op = self.emitter.call(name, operands, results)
        accesses_stated = self._readable is not None and bool(self._writable)
        self.calls.append(PendingCall(op, node, name, outside=True, pure=pure or accesses_stated))
        return op

    def _outside_parts(self, node: ast.Call) -> tuple[str, object, Sequence[ast.expr]]:
        dtype: object = None
        for keyword in node.keywords:
            if keyword.arg != "dtype":
                raise self.error(keyword, f"T.call_extern has no option {keyword.arg}")
            dtype = self.evaluate(keyword.value)
        first = [self.evaluate(argument) for argument in node.args[:1]]
        arguments = node.args
        if dtype is None and len(arguments) > 1 and isinstance(arguments[1], ast.Constant):
            dtype, arguments = first[0], arguments[1:]
            first = [self.evaluate(arguments[0])]
        if not first or not isinstance(first[0], str) or dtype is None:
            raise self.error(node, f"T.call_extern names a function and its dtype: `{words.call_extern.usage}`")
        return first[0], dtype, arguments[1:]

    def call_by_name(self, node: ast.Call) -> Operation:
        if not node.args:
            raise self.error(node, f"T.op names an operation: `{words.op.usage}`")
        name = self.string(node.args[0], "the name of an operation")
        operands = [self._operand(argument) for argument in node.args[1:]]
        options = {k.arg: self.evaluate(k.value) for k in node.keywords if k.arg is not None}
        op = self.apply(node, generic_op, name, operands, **options)
        self.emitter.effect(op)
        return op

    def call_intrinsic(self, node: ast.Call, result: DType | None) -> Operation:
        """`T.call_packed("f", A.data, 4)`, kept as text."""
        operands: list[SSAValue] = []
        call = ast.unparse(self._kept(node, operands))
        op = IntrinsicOp(call, operands, [] if result is None else [value_type_of(result.name)])
        self.emitter.effect(op)
        return op

    def _kept(self, node: ast.expr, operands: list[SSAValue]) -> ast.expr:
        """Names in the text refer to `operands`, to which values of the program are appended."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
            return node
        pointer = self.pointer(node)
        if isinstance(node, ast.Call) and pointer is None:
            word = self.evaluate(node.func) if isinstance(node.func, ast.Attribute) else None
            if isinstance(word, IntrinsicWord) or word is words.type_annotation:
                if any(keyword.arg != "dtype" for keyword in node.keywords):  # the dtype is that of the op
                    raise self.error(node.keywords[0], f"arguments of {ast.unparse(node.func)} are given by position")
                args = [self._kept(argument, operands) for argument in node.args]
                name = word.name if isinstance(word, IntrinsicWord) else "type_annotation"
                return ast.Call(ast.Attribute(ast.Name("T"), name), args, [])
        value = pointer or self.evaluate(node)
        number = as_number(value)
        if isinstance(value, Const):
            return ast.parse(number_text(value.value, value.dtype), mode="eval").body
        if number is not None:
            return ast.Constant(number)
        if isinstance(value, str):
            return ast.Constant(value)
        if isinstance(value, Buffer):
            operands.append(self.emitter.pointer(self._start_of(value, _OF_BLOCK)))
        else:
            operands.append(self._operand(node))
        return ast.Name(f"{OPERAND}{len(operands) - 1}")

    def _operand(self, node: ast.expr) -> SSAValue:
        pointer = self.pointer(node)
        if pointer is not None:
            return self.emitter.pointer(pointer)
        value = self.evaluate(node)
        if isinstance(value, Buffer | Opaque):
            return value.value
        if isinstance(value, int) and not isinstance(value, bool):
            return self.emitter.constant(value, IndexType())
        return self.emitter.argument(self.expression(node))

    def _outside_operand(self, node: ast.expr) -> SSAValue:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            buffer = self.evaluate(node)
            if isinstance(buffer, Buffer):
                return self.emitter.pointer(self._start_of(buffer, _OF_BLOCK))
        if isinstance(node, ast.Name):
            value = self.evaluate(node)
            if isinstance(value, Symbol) and value.dtype == "int32":
                return self.emitter.value(value)
            if isinstance(value, Buffer):
                raise self.error(node, f'a function outside takes pointers: {value.name}.access_ptr("r")')
        return self._operand(node)

    def pointer(self, node: ast.expr) -> Pointer | None:
        """`A.access_ptr("r")`, `T.address_of(A[i, j])` or `T.access_ptr(A[i, 0:4], "read")`; None for other nodes."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr == "access_ptr" and isinstance(node.func.value, ast.Name):
            buffer = self.evaluate(node.func.value)
            if isinstance(buffer, Buffer):
                return self._whole(node, buffer)
        word = self.evaluate(node.func) if isinstance(node.func.value, ast.Name) else None
        if isinstance(word, Construct) and word is words.tvm_access_ptr:
            return self._flat(node)
        if not isinstance(word, Construct) or word not in (words.address_of, words.access_ptr):
            return None
        if not node.args or not isinstance(node.args[0], ast.Subscript):
            raise self.error(node, f"a pointer points to an element of a buffer: `{word.usage}`")
        return self._into(node, node.args[0], word)

    def _whole(self, node: ast.Call, buffer: Buffer) -> Pointer:
        mask = self.evaluate(node.args[0]) if len(node.args) == 1 else None
        for keyword in node.keywords:
            if keyword.arg != "extent":
                told = "pointers start at the first element: T.address_of(A[i, j]) is one to another"
                raise self.error(keyword, told)
        access = _MASKS.get(mask) if isinstance(mask, str | int) else None
        if access is None:
            raise self.error(node, f'access is "r", "w" or "rw": {buffer.name}.access_ptr("r")')
        extents = [as_number(self.evaluate(keyword.value)) for keyword in node.keywords]
        return self._from_start(buffer, access, *extents)

    def _from_start(self, buffer: Buffer, access: str, extent: object = None) -> Pointer:
        """A pointer to all of a buffer, or to `extent` elements in row-major order."""
        start = self._start_of(buffer, access)
        whole = extent is None or (start.sizes is not None and math.prod(start.sizes) == extent)
        return start if whole else replace(start, sizes=None)

    def _start_of(self, buffer: Buffer, access: str) -> Pointer:
        corner = buffer.element([as_expr(0)] * buffer.rank) or ()
        sizes = [extent for extent in buffer.extents if isinstance(extent, int)]
        is_box = len(sizes) == buffer.rank and buffer.rank and not isinstance(buffer, FlatView)
        return self._decided(Pointer(buffer.stored, corner, buffer.box(sizes) if is_box else None, access))

    def _flat(self, node: ast.Call) -> Pointer:
        """`T.tvm_access_ptr(T.type_annotation("float32"), A.data, offset, extent, mask)`: offset in elements."""
        if len(node.args) != 5 or any(keyword.arg != "dtype" for keyword in node.keywords):
            raise self.error(
                node, f"it has a dtype, a buffer, an offset, an extent and a mask: `{words.tvm_access_ptr.usage}`"
            )
        dtype, buffer, mask = (self.evaluate(node.args[position]) for position in (0, 1, 4))
        if not isinstance(buffer, Buffer):
            raise self.error(node.args[1], "a pointer points into a buffer, A.data")
        if not isinstance(dtype, DType) or dtype.name != buffer.dtype:
            raise self.error(node.args[0], f"{buffer.name} has elements of {buffer.dtype}, got {shown(dtype)}")
        access = _MASKS.get(mask) if isinstance(mask, int) else None
        if access is None:
            raise self.error(node.args[4], f"a mask is 1 for reading, 2 for writing, or 3, got {shown(mask)}")
        offset = self.index(node.args[2], "an offset")
        if static_extent(offset) == 0:
            return self._from_start(buffer, access, as_number(self.evaluate(node.args[3])))
        place = self.stored_indices(node.args[2], FlatView(buffer, buffer.name), [offset])
        return self._decided(Pointer(buffer, place, None, access))

    def _into(self, node: ast.Call, element: ast.Subscript, word: Construct) -> Pointer:
        buffer = self.evaluate(element.value)
        if not isinstance(buffer, Buffer):
            raise self.error(element, f"a pointer points to an element of a buffer: `{word.usage}`")
        items = element.slice.elts if isinstance(element.slice, ast.Tuple) else [element.slice]
        access = "readwrite"
        if word is words.access_ptr:
            access = self.string(node.args[1], "access") if len(node.args) == 2 else ""
            if access not in _ACCESSES:
                raise self.error(node, f"access is one of {', '.join(_ACCESSES)}: `{word.usage}`")
        if not any(isinstance(item, ast.Slice) for item in items):
            return Pointer(buffer.stored, self.indices(element, buffer), None, access)
        corner, sizes = self.stored_box(element, buffer)
        return Pointer(buffer.stored, tuple(corner), tuple(sizes), access)

    def _decided(self, pointer: Pointer) -> Pointer:
        """The function reads and writes ("w", `_OF_BLOCK`), unless `T.reads` or `T.writes` of the block omits the
        buffer. Their regions bound the accesses of `A.data`."""
        if pointer.access not in ("w", _OF_BLOCK):
            return pointer
        value, readable, writable = pointer.buffer.value, self._readable, self._writable
        reads = readable is None or value in readable
        if pointer.access == "w":
            return replace(pointer, access="readwrite" if reads else "write")
        if readable is None or writable is None:
            return replace(pointer, access="readwrite")
        one = "read" if reads else "write"
        return replace(pointer, access="readwrite" if reads == (value in writable) else one, sizes=None)
