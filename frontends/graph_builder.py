"""Graph functions built in Python, operation by operation: behind `weft.graph`.

    bb = BlockBuilder()
    x, w = var("x", ("n", 784)), var("w", (784, 128))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            y = bb.emit_output(operator("relu")(operator("matmul")(x, w)))
        bb.emit_func_output(y)
    module = bb.get()

An operator applied to values is an op that stands nowhere yet; `emit` puts it, and what it uses, at the end of the
function. Shapes and dtypes are checked when the operator is applied.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from weft.dialects.attribute_values import attribute_of
from weft.dialects.element_types import element_name
from weft.dialects.graph import CallDpsOp, CallTirOp, ConstantOp, DataflowOp, OutputOp, Tensor
from weft.dialects.graph_shapes import DimsAttr, Extent, Shape, parse_extent, shape_of, show_shape, tensor_type
from weft.passes.graph.graph_bind_params import bind_params as bind_in_place
from weft.passes.graph.graph_bind_params import dense_attribute
from weft.passes.module_functions import named_ops
from weft.support.argument_types import shown
from weft.support.errors import CompileError, did_you_mean
from weft.support.names import free_name
from weft.texpr.expr import as_number, checked_dtype, type_of
from weft.texpr.graph_operators import OPERATORS, Operator, Placeholders
from weft.texpr.shapes import items

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from weft.texpr.expr import Number

Operand: TypeAlias = "Value | Number"
ExtentLike: TypeAlias = "int | str"
"""A number, or the text of an expression over names: `"n"`, `"2 * n + 1"`."""

_SHAPES = ("shape", "newshape")
"""Properties that hold extents."""
_BY_NAME = {operator.name.removeprefix("graph."): operator for operator in OPERATORS}


class Value:
    """A tensor of a graph: a parameter, or the result of an op."""

    def __init__(self, ssa: SSAValue) -> None:
        self.ssa = ssa
        """The value of the IR; that of the region's result once a dataflow region has ended."""

    @property
    def type(self) -> Tensor:
        return cast("Tensor", self.ssa.type)

    @property
    def shape(self) -> Shape:
        """Numbers, expressions over names, and None for extents that are not known."""
        return shape_of(self.type)

    @property
    def dtype(self) -> str:
        return element_name(self.type.element_type) or str(self.type.element_type)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> Value:
        return _call("transpose", self)

    def astype(self, dtype: str) -> Value:
        return _call("cast", self, dtype=dtype)

    def reshape(self, *shape: int | str) -> Value:
        return _call("reshape", self, newshape=shape)

    def __repr__(self) -> str:
        return f"Value({self.ssa.name_hint or '?'}: {show_shape(self.shape)} {self.dtype})"

    def __getitem__(self, places: object) -> Value:
        """Slices and integers, one for each of the first axes."""
        given = items(places)
        begin, end, step, single = list[object](), list[object](), list[object](), list[int]()
        for axis, place in enumerate(given):
            if isinstance(place, slice):
                begin.append(place.start)
                end.append(place.stop)
                step.append(1 if place.step is None else place.step)
            elif isinstance(place, int):
                single.append(axis)
                begin.append(place)
                end.append(None if place == -1 else place + 1)
                step.append(1)
            else:
                raise CompileError(f"values are indexed by integers and slices, got {shown(place)}")
        part = _call("strided_slice", self, begin=begin, end=end, strides=step)
        return _call("squeeze", part, axis=single) if single else part

    def __add__(self, other: Operand) -> Value:
        return _call("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return _call("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return _call("subtract", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return _call("subtract", other, self)

    def __mul__(self, other: Operand) -> Value:
        return _call("multiply", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return _call("multiply", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return _call("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return _call("divide", other, self)

    def __pow__(self, other: Operand) -> Value:
        return _call("power", self, other)

    def __matmul__(self, other: Value) -> Value:
        return _call("matmul", self, other)

    def __neg__(self) -> Value:
        return _call("negative", self)


def var(name: str, shape: Sequence[ExtentLike], dtype: str = "float32") -> Value:
    """A parameter of a function to be built. Raises `CompileError` for a wrong shape or dtype."""
    if not name.isidentifier():
        raise CompileError(f"var: a name is a word, got {shown(name)}")
    block = Block(arg_types=[tensor_type(_shape(shape, f"var {name}"), type_of(checked_dtype(dtype)))])
    block.args[0].name_hint = name
    return Value(block.args[0])


def const(array: ArrayLike, dtype: str | None = None) -> Value:
    """A constant of the elements of an array; Python floats are float32 unless `dtype` says otherwise."""
    import numpy as np

    if dtype is None and not hasattr(array, "dtype"):
        dtype = "float32" if np.asarray(array).dtype.kind == "f" else None
    data = np.asarray(array, dtype=dtype)
    return Value(ConstantOp(dense_attribute(data, type_of(checked_dtype(data.dtype.name)))).result)


def _shape(shape: Sequence[ExtentLike], what: str) -> list[Extent]:
    found: list[Extent] = []
    for extent in items(shape):
        if isinstance(extent, bool) or not isinstance(extent, int | str):
            raise CompileError(f"{what}: an extent is a number or text, got {shown(extent)}")
        if isinstance(extent, int) and extent < 0:
            raise CompileError(f"{what}: an extent is not negative, got {extent}")
        found.append(parse_extent(extent) if isinstance(extent, str) else extent)
    return found


def operator(name: str) -> Callable[..., Value | tuple[Value, ...]]:
    """The operator of that name, as a function of values. Raises `AttributeError` for an unknown one."""
    found = _BY_NAME.get(name)
    if found is None:
        raise AttributeError(f"there is no operator '{name}'{did_you_mean(name, _BY_NAME)}")

    def apply(*args: object, **options: object) -> Value | tuple[Value, ...]:
        return _apply(found, args, options)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = found.__doc__
    vars(apply)["__signature__"] = _without_name(found.SIGNATURE)
    return apply


def operator_names() -> list[str]:
    """The names of all operators."""
    return sorted(_BY_NAME)


def _without_name(signature: inspect.Signature) -> inspect.Signature:
    return signature.replace(parameters=[p for p in signature.parameters.values() if p.name != "name"])


def _call(name: str, *args: object, **options: object) -> Value:
    return cast("Value", _apply(_BY_NAME[name], args, options))


def _apply(kind: type[Operator], args: Sequence[object], options: Mapping[str, object]) -> Value | tuple[Value, ...]:
    label = kind.name.removeprefix("graph.")
    try:
        bound = _without_name(kind.SIGNATURE).bind(*args, **options)
    except TypeError as error:
        raise TypeError(f"{label}() {error}") from None
    given = bound.arguments
    values = [v for role in kind.ROLES for v in items(given.get(role.name)) if isinstance(v, Value)]
    groups: list[SSAValue | Sequence[SSAValue] | None] = []
    for role in kind.ROLES:
        value = given.get(role.name)
        if role.is_variadic:
            groups.append([_operand(label, role.name, item, values).ssa for item in items(value)])
        else:
            groups.append(None if value is None else _operand(label, role.name, value, values).ssa)
    roles = {role.name for role in kind.ROLES}
    properties = {n: _property(label, n, v) for n, v in given.items() if n not in roles and v is not None}
    op = kind.of(groups, properties)
    for result in op.results:
        result.name_hint = label
    found = tuple(map(Value, op.results))
    return found if kind.SIGNATURE.return_annotation != "Tensor" else found[0]


def _operand(label: str, role: str, value: object, values: Sequence[Value]) -> Value:
    """A value; a number becomes a constant of the dtype of the first value."""
    if isinstance(value, Value):
        return value
    number = as_number(value)
    if number is None or not values:
        raise CompileError(f"{label}: {role} must be a value of a graph, got {shown(value)}")
    return const(number, "bool" if values[0].dtype == "bool" else values[0].dtype)


def _property(label: str, name: str, value: object) -> Attribute:
    if name in _SHAPES:
        return DimsAttr(tuple(parse_extent(e) if isinstance(e, str) else cast("Extent", e) for e in items(value)))
    try:
        return attribute_of(value)
    except CompileError as error:
        raise CompileError(f"{label}: {name}: {error.message}") from None


class BlockBuilder:
    """Builds a module of graph functions. One function is open at a time, and in it one dataflow region."""

    def __init__(self, module: ModuleOp | None = None) -> None:
        """`module`, to which functions are added, or a new one."""
        self._module = ModuleOp([]) if module is None else module
        self._function: FuncOp | None = None
        self._block: Block | None = None
        self._outputs: list[Value] | None = None

    @contextmanager
    def function(
        self, name: str = "main", params: Sequence[Value] = (), attributes: Mapping[str, object] | None = None
    ) -> Generator[None]:
        """The body of a function; `emit_func_output` ends it. Raises `CompileError` for a taken name."""
        if self._function is not None:
            raise CompileError(f"function @{name} begins in @{self._function.sym_name.data}, which has not ended")
        if name in named_ops(self._module):
            raise CompileError(f"the module has a function @{name} already: remove or update it")
        names = [param.ssa.name_hint for param in params]
        for at, hint in enumerate(names):
            if hint in names[:at]:
                raise CompileError(f"function @{name}: two parameters are called '{hint}'")
        body = Block(arg_types=[param.ssa.type for param in params])
        for param, argument in zip(params, body.args, strict=True):
            argument.name_hint = param.ssa.name_hint
            param.ssa.replace_all_uses_with(argument)
            param.ssa = argument
        function = FuncOp(name, (list(body.arg_types), []), Region(body))
        for key, value in (attributes or {}).items():
            function.attributes[key] = attribute_of(value)
        self._function, self._block = function, body
        try:
            yield
            if not isinstance(body.last_op, ReturnOp):
                raise CompileError(f"function @{name} has no output: call emit_func_output")
        finally:
            self._function = self._block = None
        self._module.body.block.add_op(function)

    @contextmanager
    def dataflow(self) -> Generator[None]:
        """A region whose ops passes may reorder and merge; `emit_output` says which values leave it."""
        function, outer = self._open("dataflow")
        if self._outputs is not None:
            raise CompileError(f"function @{function.sym_name.data}: a dataflow region begins in another one")
        inner, outputs = Block(), list[Value]()
        self._block, self._outputs = inner, outputs
        try:
            yield
        finally:
            self._block, self._outputs = outer, None
        inner.add_op(OutputOp([output.ssa for output in outputs]))
        region = DataflowOp(Region(inner), [output.ssa.type for output in outputs])
        outer.add_op(region)
        for output, result in zip(outputs, region.results, strict=True):
            result.name_hint = output.ssa.name_hint
            output.ssa = result

    def emit(self, value: Value, name: str | None = None) -> Value:
        """Put the ops behind `value` that stand nowhere yet at the end of the function. Returns `value`."""
        _, block = self._open("emit")
        for op in _detached(value.ssa):
            block.add_op(op)
        if name is not None:
            value.ssa.name_hint = name
        return value

    def emit_te(self, function: Callable[..., object], *args: object, **options: object) -> Value | tuple[Value, ...]:
        """Call a function of tensor expressions on values: they are placeholders for it, of the same shapes.

        Raises `CompileError` where it does, and when it returns no tensor.
        """
        label = free_name(getattr(function, "__name__", "te").replace("<lambda>", "te"), self._taken())
        values = [arg for arg in args if isinstance(arg, Value)]
        inputs = Placeholders([value.type for value in values])
        names: list[str] = []
        for at, value in enumerate(values):
            names.append(free_name(value.ssa.name_hint or f"arg{at}", names))
        tensors = iter([inputs.tensor(v.type, name) for v, name in zip(values, names, strict=True)])
        result = function(*(next(tensors) if isinstance(arg, Value) else arg for arg in args), **options)
        applied = inputs.application(result)
        callee = applied.function(label)
        callee.sym_visibility = StringAttr("private")
        self._module.body.block.add_op(callee)
        found = self.call_tir(label, values, applied.types)
        for value, tensor in zip(items(found), applied.results, strict=True):
            cast("Value", value).ssa.name_hint = tensor.name
        return found

    def call_tir(self, callee: str, args: Sequence[Value], types: Sequence[Attribute]) -> Value | tuple[Value, ...]:
        """Call a function of the module on tensors, giving tensors of these types."""
        return self._call(CallTirOp(callee, [self.emit(arg).ssa for arg in args], types))

    def call_dps(
        self,
        callee: str,
        args: Sequence[Value],
        shape: Sequence[ExtentLike],
        dtype: str = "float32",
    ) -> Value:
        """Call a function registered under the name `callee`, which fills a tensor of that shape."""
        type_ = tensor_type(_shape(shape, f"call_dps {callee}"), type_of(checked_dtype(dtype)))
        return cast("Value", self._call(CallDpsOp(callee, [self.emit(arg).ssa for arg in args], [type_])))

    def _call(self, op: CallTirOp | CallDpsOp) -> Value | tuple[Value, ...]:
        _, block = self._open(op.name)
        block.add_op(op)
        found = tuple(map(Value, op.results))
        return found[0] if len(found) == 1 else found

    def emit_output(self, value: Value, name: str | None = None) -> Value:
        """Emit `value`, which leaves the dataflow region."""
        function, _ = self._open("emit_output")
        if self._outputs is None:
            raise CompileError(f"function @{function.sym_name.data}: emit_output stands in no dataflow region")
        self.emit(value, name)
        self._outputs.append(value)
        return value

    def emit_func_output(self, value: Value | Sequence[Value]) -> None:
        """End the function with its results."""
        function, block = self._open("emit_func_output")
        if self._outputs is not None:
            raise CompileError(f"function @{function.sym_name.data}: the dataflow region has not ended")
        values = [self.emit(item) for item in ([value] if isinstance(value, Value) else value)]
        for item in values:
            if isinstance(item.ssa, OpResult) and item.ssa.owner.parent_block() is not block:
                raise CompileError(f"{item!r} does not leave the dataflow region: give it to emit_output")
        block.add_op(ReturnOp(*(item.ssa for item in values)))
        function.update_function_type()

    def add_function(self, function: FuncOp) -> str:
        """Add a function, such as one over buffers, under a free name, which is returned."""
        function.sym_name = StringAttr(free_name(function.sym_name.data, self._taken()))
        self._module.body.block.add_op(function)
        return function.sym_name.data

    def get(self) -> ModuleOp:
        """The module, verified. Raises `CompileError` while a function is open."""
        if self._function is not None:
            raise CompileError(f"function @{self._function.sym_name.data} has not ended")
        self._module.verify()
        return self._module

    def _open(self, what: str) -> tuple[FuncOp, Block]:
        if self._function is None or self._block is None:
            raise CompileError(f"{what}: no function is open: use `with bb.function(...)`")
        return self._function, self._block

    def _taken(self) -> set[str]:
        own = {self._function.sym_name.data} if self._function is not None else set[str]()
        return {*named_ops(self._module), *own}


def _detached(value: SSAValue) -> list[Operation]:
    """The ops without a place that `value` needs, each after its operands."""
    order: dict[Operation, None] = {}
    pending = [(value, False)]
    while pending:
        current, is_ready = pending.pop()
        op = current.owner
        if not isinstance(op, Operation):
            if isinstance(op.parent_op(), FuncOp | DataflowOp):
                continue
            raise CompileError(f"variable '{current.name_hint}' is no parameter of the function")
        if op.parent is not None or op in order:
            continue
        if is_ready:
            order[op] = None
            continue
        pending.append((current, True))
        pending += [(operand, False) for operand in reversed(op.operands)]
    return list(order)


def bind_params(module: ModuleOp, function: str, values: Mapping[str, ArrayLike]) -> ModuleOp:
    """A copy of `module` in which parameters of a function are constants; see `graph_bind_params.bind_params`."""
    copy = module.clone()
    bind_in_place(copy, function, values)
    return copy
