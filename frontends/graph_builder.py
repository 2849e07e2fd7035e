"""Build graph functions in Python; the implementation of `weft.graph`.

    bb = BlockBuilder()
    x, w = var("x", ("n", 784)), var("w", (784, 128))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            y = bb.emit_output(operator("relu")(operator("matmul")(x, w)))
        bb.emit_func_output(y)
    module = bb.get()

An operator applied to values is a detached op; `emit` appends it and the ops that it uses to the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count as counter
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypeVar, cast, overload

from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from weft.analysis.structural_equality import structural_equal
from weft.dialects.attribute_values import attribute_of
from weft.dialects.constant_data import constant_elements, dense_attribute
from weft.dialects.element_types import element_name
from weft.dialects.graph import (
    PRECONDITIONS,
    CallDpsOp,
    CallTirOp,
    ConstantOp,
    DataflowOp,
    MatchShapeOp,
    OutputOp,
    Tensor,
    bound_in,
    preconditions_of,
)
from weft.dialects.graph_control import CONDITION, STEP, ControlOp, IfOp, LoopOp, WhileOp
from weft.dialects.graph_shapes import (
    DimsAttr,
    Expression,
    Extent,
    KnownExtent,
    Shape,
    choose,
    element_of_name,
    extent_attribute,
    is_not_negative,
    lone_name,
    names_in,
    parse_extent,
    shape_of,
    show_extent,
    show_shape,
    solutions,
    substitute,
    subtract,
    symbol,
    tensor_type,
)
from weft.passes.graph.graph_bind_params import bind_params as bind_in_place
from weft.passes.graph.operators import detached_ops
from weft.passes.module_edits import named_ops, remove_function, symbol_name, update_function
from weft.support.argument_types import shown
from weft.support.errors import CompileError, did_you_mean
from weft.support.names import free_name
from weft.texpr.expr import as_number, checked_dtype, type_of
from weft.texpr.graph_operators import OPERATORS, SHAPES, Operator, Placeholders
from weft.texpr.shapes import items, value_name, value_names

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from weft.texpr.expr import Number

Operand: TypeAlias = "Value | Number"
ExtentLike: TypeAlias = "int | str"
"""A number, or an expression over names: `"n"`, `"2 * n + 1"`."""

ModuleT = TypeVar("ModuleT", bound=ModuleOp)
_BY_NAME = {operator.name.removeprefix("graph."): operator for operator in OPERATORS}


_Method: TypeAlias = "Callable[[Value, Operand], Value]"


def _operator(name: str) -> tuple[_Method, _Method]:
    return lambda self, other: _call(name, self, other), lambda self, other: _call(name, other, self)


class Value:
    """A parameter of a graph, or the result of an op."""

    def __init__(self, ssa: SSAValue) -> None:
        self.ssa = ssa
        """The value in the IR; after a dataflow region, the region's result."""

    @property
    def type(self) -> Tensor:
        return cast("Tensor", self.ssa.type)

    @property
    def shape(self) -> Shape:
        """Numbers, expressions over names, or None if unknown."""
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
        """Slices and integers of the leading axes."""
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

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("subtract")
    __mul__, __rmul__ = _operator("multiply")
    __truediv__, __rtruediv__ = _operator("divide")
    __pow__ = _operator("power")[0]
    __matmul__ = _operator("matmul")[0]

    def __neg__(self) -> Value:
        return _call("negative", self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: object) -> Value:
        """NumPy scalars are Python numbers. Raises `TypeError` for arrays and NumPy's functions."""
        name: str = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        numbers = [value for value in inputs if not isinstance(value, Value)]
        if name in _BINARY and not options and all(map(_is_scalar, numbers)):
            return _call(name, *(value if isinstance(value, Value) else value.item() for value in inputs))
        hint = f"write G.{name}" if name in _BY_NAME else "use operators of weft.graph, and G.const for arrays"
        raise TypeError(f"np.{name} computes on arrays, and an operand is a value of a graph: {hint}")

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError(f"{self!r} is a value of a graph, without elements until it runs: no array of NumPy")


_BINARY: Final = frozenset(("add", "subtract", "multiply", "divide", "power"))


def _is_scalar(value: object) -> bool:
    return getattr(value, "shape", None) == ()


@dataclass(frozen=True)
class _Room:
    """Extents that both results fit in, and the axes that a branch may fill in part."""

    shape: Sequence[KnownExtent]
    axes: Sequence[int]


def _results_of(first: FuncOp, second: FuncOp) -> list[tuple[Tensor, Tensor]]:
    """Raises `CompileError` if ranks or element types differ."""
    groups = [cast("Sequence[Tensor]", function.function_type.outputs.data) for function in (first, second)]
    pairs = list(zip(*groups, strict=False))
    fits = len(groups[0]) == len(groups[1]) and all(
        one.element_type == other.element_type and one.get_num_dims() == other.get_num_dims() for one, other in pairs
    )
    if not fits:
        one, other = (", ".join(map(str, group)) for group in groups)
        raise CompileError(f"emit_if: one function gives ({one}), the other ({other})")
    return pairs


def _room(types: tuple[Tensor, Tensor], bound: tuple[Mapping[str, MatchShapeOp], Mapping[str, MatchShapeOp]]) -> _Room:
    """Extents in which results of both types fit; the functions bind some names."""
    shape, axes = list[KnownExtent](), list[int]()
    for axis, extents in enumerate(zip(*map(shape_of, types), strict=True)):
        rooms = [_greatest(extent, names) for extent, names in zip(extents, bound, strict=True)]
        one, other = rooms
        if one is None or other is None:
            raise CompileError(f"emit_if: one function gives {types[0]}, the other {types[1]}")
        is_ordered = is_not_negative(subtract(one, other))
        shape.append(one if is_ordered else choose("max", one, other))
        if extents[0] != extents[1] or extents[0] != rooms[0]:
            axes.append(axis)
    return _Room(shape, axes)


def _greatest(extent: Extent, bound: Mapping[str, MatchShapeOp]) -> Extent:
    """A maximum by the bounds of names, or None if unknown."""
    while isinstance(extent, Expression) and (names := names_in(extent) & bound.keys()):
        most = {name: bound[name].bounds[bound[name].bound_names.index(name)] for name in names}
        if None in most.values() or not _grows_with(extent, names):
            return None
        extent = substitute(extent, cast("Mapping[str, KnownExtent]", most))
    return extent


def _grows_with(extent: Expression, names: Collection[str]) -> bool:
    """Whether all terms with these names are products of names with a positive factor."""
    return all(
        names_in(Expression(((monomial, 1),))).isdisjoint(names)
        or (factor > 0 and all(isinstance(atom, str) for atom in monomial))
        for monomial, factor in extent.terms
    )


def var(name: str, shape: Sequence[ExtentLike], dtype: str = "float32") -> Value:
    """Returns a parameter. Raises `CompileError` for an invalid shape or dtype, and for a name that is no ASCII
    identifier."""
    if not (isinstance(name, str) and name.isidentifier() and name.isascii()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise CompileError(f"var: a name is a word, got {shown(name)}")
    block = Block(arg_types=[tensor_type(_shape(shape, f"var {name}"), type_of(checked_dtype(dtype)))])
    # The setter drops numbers after underscores; `function` distinguishes x_0 and x_1.
    block.args[0]._name = name  # pyright: ignore[reportPrivateUsage]
    return Value(block.args[0])


def const(array: ArrayLike, dtype: str | None = None) -> Value:
    """Returns a constant; Python floats are float32 by default. Raises `CompileError` for an unknown dtype, and for an
    integer that does not fit it."""
    import numpy as np

    if dtype is None and not hasattr(array, "dtype"):
        dtype = "float32" if np.asarray(array).dtype.kind == "f" else None
    data = np.asarray(array)
    element = checked_dtype(data.dtype.name if dtype is None else dtype)
    return Value(ConstantOp(dense_attribute(constant_elements(data, element), type_of(element))).result)


@overload
def call_dps(callee: str, args: Sequence[Value], shape: Sequence[ExtentLike], dtype: str = "float32") -> Value: ...
@overload
def call_dps(
    callee: str, args: Sequence[Value], shape: Sequence[Sequence[ExtentLike]], dtype: list[str] | tuple[str, ...]
) -> tuple[Value, ...]: ...
def call_dps(
    callee: str, args: Sequence[Value], shape: Sequence[Any], dtype: str | list[str] | tuple[str, ...] = "float32"
) -> Value | tuple[Value, ...]:
    """Call a registered function (`weft.register_func`) that writes a tensor, or several if `dtype` and `shape` are
    lists. Raises `CompileError` for an invalid shape or dtype, and for arguments that are not values."""
    several = not isinstance(dtype, str)
    shapes, dtypes = (list(shape), list(dtype)) if several else ([shape], [dtype])
    if len(shapes) != len(dtypes):
        raise CompileError(f"call_dps {callee}: {len(shapes)} shapes for {len(dtypes)} dtypes")
    for arg in args:
        if not isinstance(arg, Value):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise CompileError(f"call_dps {callee}: an argument must be a value of a graph, got {shown(arg)}")
    types = [
        tensor_type(_shape(one, f"call_dps {callee}"), type_of(checked_dtype(element)))
        for one, element in zip(shapes, dtypes, strict=True)
    ]
    found = tuple(map(Value, CallDpsOp(callee, [arg.ssa for arg in args], types).results))
    return found if several else found[0]


def _shape(shape: Sequence[ExtentLike], what: str) -> list[Extent]:
    found: list[Extent] = []
    for extent in items(shape):
        if isinstance(extent, bool) or not isinstance(extent, int | str):
            raise CompileError(f"{what}: an extent is a number or text, got {shown(extent)}")
        found.append(parse_extent(extent) if isinstance(extent, str) else extent)
        if isinstance(number := found[-1], int) and number < 0:
            raise CompileError(f"{what}: an extent is not negative, got {extent}")
    return found


def operator(name: str) -> Callable[..., Value | tuple[Value, ...]]:
    """An operator as a function of values. Raises `AttributeError` for an unknown one."""
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
    return sorted(_BY_NAME)


def operator_type(name: str) -> type[Operator]:
    return _BY_NAME[name]


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
            groups.append([_operand(kind, role.name, item, values).ssa for item in items(value)])
        else:
            groups.append(None if value is None else _operand(kind, role.name, value, values).ssa)
    roles = {role.name for role in kind.ROLES}
    properties = {n: _property(label, n, v) for n, v in given.items() if n not in roles and v is not None}
    op = kind.of(groups, properties)
    for result in op.results:
        result.name_hint = label
    found = tuple(map(Value, op.results))
    return found if kind.SIGNATURE.return_annotation != "Tensor" else found[0]


def _operand(kind: type[Operator], role: str, value: object, values: Sequence[Value]) -> Value:
    """A number becomes a constant: int64 if the role takes integers, else of the dtype of the first value other than a
    condition; if all are conditions, of its Python type."""
    if isinstance(value, Value):
        return value
    number = as_number(value)
    dtype = "int64" if kind.SIGNATURE.parameters[role].annotation == "Tensor | int" else None
    if number is None or not (values or dtype):
        label = kind.name.removeprefix("graph.")
        raise CompileError(f"{label}: {role} must be a value of a graph, got {shown(value)}")
    return const(number, dtype or next((v.dtype for v in values if v.dtype != "bool"), None))


def _property(label: str, name: str, value: object) -> Attribute:
    if name in SHAPES:
        return DimsAttr(tuple(parse_extent(e) if isinstance(e, str) else cast("Extent", e) for e in items(value)))
    try:
        return attribute_of(value, extent_attribute)
    except CompileError as error:
        raise CompileError(f"{label}: {name}: {error.message}") from None


class BlockBuilder:
    """Builds a module of graph functions, one at a time, with at most one open dataflow region."""

    def __init__(self, module: ModuleOp | None = None) -> None:
        self._module = ModuleOp([]) if module is None else module
        self._function: FuncOp | None = None
        self._block: Block | None = None
        self._outputs: list[Value] | None = None
        self._enclosing: list[FuncOp | None] = []
        """The enclosing functions of a branch or a loop."""
        self._passed: dict[FuncOp, list[SSAValue]] = {}
        """By function of a branch or loop: outer values of additional parameters, whose axes bind names."""
        self._made: list[FuncOp] = []
        self._around: list[str] = []
        self._names: set[str] = set()
        """Names up to the op `_last`, possibly of removed functions."""
        self._last: Operation | None = None

    @contextmanager
    def function(
        self, name: str = "main", params: Sequence[Value] = (), attributes: Mapping[str, object] | None = None
    ) -> Generator[None]:
        """Open the body of a function, which `emit_func_output` ends. Raises `CompileError` for a name in use.

        Parameters are named like their variables, but `x_0` becomes `x0`: name hints drop the number.
        """
        if self._function is not None:
            raise CompileError(f"function @{name} begins in @{self._function.sym_name.data}, which has not ended")
        if name in named_ops(self._module):
            raise CompileError(f"the module has a function @{name} already: remove or update it")
        for param in params:
            self._check_param(name, param)
        names = [param.ssa.name_hint for param in params]
        for at, hint in enumerate(names):
            if hint in names[:at]:
                raise CompileError(f"function @{name}: two parameters are called '{hint}'")
        body = Block(arg_types=[param.ssa.type for param in params])
        hints = value_names([name or "arg" for name in names])
        for param, argument, hint in zip(params, body.args, hints, strict=True):
            argument.name_hint = hint
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

    def state(self, preconditions: Iterable[str]) -> None:
        """Add call preconditions to the open function (`support.call_preconditions`)."""
        function, _ = self._open("state")
        stated = [fact.text for fact in preconditions_of(function)]
        found = list(dict.fromkeys([*stated, *preconditions]))
        if found:
            function.attributes[PRECONDITIONS] = attribute_of(found)

    def _check_param(self, name: str, param: object) -> None:
        if not isinstance(param, Value) or not isinstance(block := param.ssa.owner, Block):
            raise CompileError(f"function @{name}: a parameter is a variable (weft.graph.var), got {shown(param)}")
        if isinstance(owner := block.parent_op(), FuncOp):
            raise CompileError(
                f"function @{name}: '{param.ssa.name_hint}' is a parameter of @{owner.sym_name.data} already: each "
                "function takes separate variables"
            )

    @contextmanager
    def dataflow(self) -> Generator[None]:
        """Open a region whose ops may be reordered and merged; `emit_output` marks the values that leave it."""
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
        """Append `value` and the detached ops that it uses. Returns `value`."""
        _, block = self._open("emit")
        ops = detached_ops(value.ssa)
        made = {result for op in ops for result in op.results}
        for used in (value.ssa, *(operand for op in ops for operand in op.operands)):
            if used not in made:
                self._check_is_visible(used)
        for op in ops:
            block.add_op(op)
        if name is not None:
            value.ssa.name_hint = name
        return value

    def emit_te(self, function: Callable[..., object], *args: object, **options: object) -> Value | tuple[Value, ...]:
        """Call a function of tensor expressions on placeholders of the values' shapes, with a variable per extent.
        Equal functions are shared. Raises `CompileError` if the function does or returns other objects than tensors."""
        self._open("emit_te")
        wanted = getattr(function, "__name__", "te").replace("<lambda>", "te")
        values = [arg for arg in args if isinstance(arg, Value)]
        extents = tuple(arg for arg in args if isinstance(arg, Expression))
        inputs = Placeholders([value.type for value in values], [extents])
        unbound = inputs.extents.unbound
        names = value_names([*unbound, *(value.ssa.name_hint or f"arg{at}" for at, value in enumerate(values))])
        tensors = iter([inputs.tensor(v.type, name) for v, name in zip(values, names[len(unbound) :], strict=True)])

        def given(arg: object) -> object:
            if isinstance(arg, Value):
                return next(tensors)
            return inputs.extents.of_graph(arg) if isinstance(arg, Expression) else arg

        applied = inputs.application(function(*map(given, args), **options))
        taken = {value_name(tensor.name) for tensor in (*applied.results, *applied.inputs)}
        computed = {value_name(tensor.name) for tensor in applied.results}
        for tensor in applied.inputs:
            if value_name(tensor.name) in computed:
                tensor.name = tensor.op.name = free_name(f"{tensor.name}_in", taken)
                taken.add(tensor.name)
        callee = applied.function(wanted)
        callee.sym_visibility = StringAttr("private")
        operands, passed = [self.emit(value).ssa for value in values], [symbol(name) for name in applied.passed]
        found = self._call(CallTirOp(self._shared(callee), operands, applied.types, passed))
        for value, tensor in zip(items(found), applied.results, strict=True):
            cast("Value", value).ssa.name_hint = tensor.name
        return found

    def _shared(self, function: FuncOp) -> str:
        """Adds the function unless the module has an equal one. Returns the name."""
        name = function.sym_name.data
        for other in self._made:
            function.sym_name = other.sym_name
            if other.parent is self._module.body.block and structural_equal(function, other):
                function.erase()
                return other.sym_name.data
        function.sym_name = StringAttr(name)
        self._made.append(function)
        return self.add_function(function)

    def call_tir(self, callee: str, args: Sequence[Value], types: Sequence[Attribute]) -> Value | tuple[Value, ...]:
        """Call a function of the module on tensors. Raises `CompileError` if there is none."""
        known = {name for name, op in named_ops(self._module).items() if isinstance(op, FuncOp)}
        if callee not in known:
            raise CompileError(f"call_tir: the module has no function @{callee}{did_you_mean(callee, known)}")
        return self._call(CallTirOp(callee, [self.emit(arg).ssa for arg in args], types))

    def call_dps(
        self, callee: str, args: Sequence[Value], shape: Sequence[ExtentLike], dtype: str = "float32"
    ) -> Value:
        """See `weft.graph.call_dps`."""
        return self.emit(call_dps(callee, args, shape, dtype))

    def match_shape(
        self, sizes: Value, names: Sequence[str] = (), at_most: Sequence[ExtentLike | Expression | None] = ()
    ) -> tuple[Expression, ...]:
        """Bind names, by default `u0`, `u1`, ..., to the integers of `sizes`, a scalar or a vector, for later shapes;
        see `graph.match_shape`.

            places, count = G.nonzero(x)
            (k,) = bb.match_shape(count, ["k"], at_most=["n"])
            places = G.prefix(places, (1, k))

        Raises `CompileError` for sizes that are not integers, different numbers of names, bounds and sizes, and a name
        that the function has already.
        """
        function, block = self._open("match_shape")
        self.emit(sizes)
        count = sizes.shape[0] if sizes.shape else 1
        taken = self.extent_names()
        wanted = list(names)
        while not names and len(wanted) < (count if isinstance(count, int) else 0):
            wanted.append(next(name for number in counter() if (name := f"u{number}") not in taken))
            taken.add(wanted[-1])
        bounds = [
            None if e is None else e if isinstance(e, Expression) else _shape([e], "match_shape")[0] for e in at_most
        ]
        op = MatchShapeOp(sizes.ssa, wanted, bounds)
        block.add_op(op)
        try:
            for name in names:
                if name in taken:
                    raise VerifyException(f"function @{function.sym_name.data} has an extent '{name}' already")
            op.verify_()
        except VerifyException as error:
            op.detach()
            op.erase()
            raise CompileError(f"match_shape: {error}") from None
        return tuple(map(symbol, wanted))

    def extent_names(self) -> set[str]:
        function, _ = self._open("extent_names")
        shapes = [shape_of(a.type) for a in function.args if isinstance(a.type, TensorType)]
        block, found = self._block, {name for shape in shapes for extent in shape for name in names_in(extent)}
        for part in dict.fromkeys((function.body.block, block)):
            for op in () if part is None else part.walk():
                found.update(op.bound_names if isinstance(op, MatchShapeOp) else ())
        return found

    def emit_if(
        self,
        condition: Value,
        then: Callable[..., Value | Sequence[Value]],
        otherwise: Callable[..., Value | Sequence[Value]],
        *args: Value,
    ) -> Value | tuple[Value, ...]:
        """Returns the result of one of two functions on `args`, selected by a bool tensor of rank 0.

            y = bb.emit_if(G.greater(G.sum(x), 0.0), lambda a: G.relu(a), lambda a: a, x)

        Results have equal ranks and element types. If extents differ or depend on data, each function returns a tensor
        of the maximum extents and its extents, bound after the conditional. Raises `CompileError` for other results,
        for unbounded extents that depend on data, and if a function uses outer values.
        """
        given = [self.emit(value) for value in (condition, *args)]
        if given[0].shape != () or given[0].dtype != "bool":
            raise CompileError(f"emit_if: a condition is a bool tensor of shape (), got {given[0]!r}")
        types = [value.type for value in given[1:]]
        names = [value.ssa.name_hint for value in given[1:]]
        first, second = (
            self._traced(label, function, types, names, has_bounds=True)
            for label, function in (("then", then), ("else", otherwise))
        )
        same = self._bind_names([first, second], len(types))
        rooms = [_room(pair, (bound_in(first), bound_in(second))) for pair in _results_of(first, second)]
        for function in (first, second):
            self._fill(function, rooms)
        callees = first.sym_name.data, second.sym_name.data
        operands = [value.ssa for value in given]
        found = self._call(IfOp(operands[0], callees, [*operands[1:], *same], first.function_type.outputs.data))
        results = [found] if isinstance(found, Value) else list(found)
        sizes = iter(results[len(rooms) :])
        kept = [self._part(value, room, sizes) for value, room in zip(results, rooms, strict=False)]
        return kept[0] if len(kept) == 1 else tuple(kept)

    def _fill(self, function: FuncOp, rooms: Sequence[_Room]) -> None:
        """Pad results to the common extents, and append the extents that differ."""
        if not any(room.axes for room in rooms):
            return
        end = cast("ReturnOp", function.body.block.last_op)
        values = [Value(operand) for operand in end.operands]
        end.detach()
        end.erase()
        outer = self._function, self._block, self._outputs
        self._function, self._block, self._outputs = function, function.body.block, None
        try:
            wide: list[Value] = []
            for value, room in zip(values, rooms, strict=True):
                more = [subtract(room.shape[axis], extent) for axis, extent in enumerate(value.shape)]
                widths = [(0, cast("KnownExtent", extent)) for extent in more]
                filler: Number = False if value.dtype == "bool" else 0
                is_full = all(width == (0, 0) for width in widths)
                wide.append(value if is_full else _call("pad", value, widths, constant_values=filler))
            own = [[value.shape[axis] for axis in room.axes] for value, room in zip(values, rooms, strict=True)]
            self.emit_func_output([*wide, *(_call("extents", extents) for extents in own if extents)])
        finally:
            self._function, self._block, self._outputs = outer

    def _part(self, value: Value, room: _Room, sizes: Iterator[Value]) -> Value:
        if not room.axes:
            return value
        bound = self.match_shape(next(sizes), at_most=[room.shape[axis] for axis in room.axes])
        shape = list(room.shape)
        for axis, extent in zip(room.axes, bound, strict=True):
            shape[axis] = extent
        return self.emit(_call("prefix", value, shape))

    def emit_loop(
        self,
        body: Callable[..., Value | Sequence[Value]],
        steps: ExtentLike,
        carried: Sequence[Value] = (),
        scanned: Sequence[Value] = (),
        captured: Sequence[Value] = (),
    ) -> Value | tuple[Value, ...]:
        """Call `body` with the step number, the carried values, a row of each scanned tensor, and the captured values;
        it returns the next carried values and rows to be stacked.

            def step(t, h, x, w):
                h = G.tanh(G.add(G.matmul(h, w), x))
                return h, h

            last, all_states = bb.emit_loop(step, "t", carried=[h0], scanned=[xs], captured=[w])

        Raises `CompileError` if types do not fit, and if `body` uses outer values.
        """
        (count,) = _shape([steps], "emit_loop")
        groups = first, rows, same = [[self.emit(v).ssa for v in group] for group in (carried, scanned, captured)]
        if count is None:
            raise CompileError("emit_loop: the number of steps must be known")
        types: list[Attribute] = [STEP, *(value.type for value in first)]
        for value in scanned:
            if not value.shape or value.shape[0] != count:
                raise CompileError(
                    f"emit_loop: the first extent of a scanned tensor is the number of steps, {show_extent(count)}, "
                    f"got {value!r}"
                )
            types.append(tensor_type(value.shape[1:], value.type.element_type))
        types += [value.type for value in same]
        hints = ["step", *(value.name_hint for group in groups for value in group)]
        function = self._traced("loop", body, types, hints)
        outputs = list(cast("Sequence[Tensor]", function.function_type.outputs.data))
        number = len(first)
        if outputs[:number] != types[1 : 1 + number]:
            wanted, got = (", ".join(map(str, some)) for some in (types[1 : 1 + number], outputs[:number]))
            raise CompileError(f"emit_loop: the carried values are ({wanted}), but the body gives ({got})")
        same += self._bind_names([function], len(types))
        stacked = [tensor_type((count, *shape_of(t)), t.element_type) for t in outputs[number:]]
        return self._call(LoopOp(function.sym_name.data, count, first, rows, same, [*outputs[:number], *stacked]))

    def emit_while(
        self,
        test: Callable[..., Value],
        body: Callable[..., Value | Sequence[Value]],
        carried: Sequence[Value],
        captured: Sequence[Value] = (),
    ) -> Value | tuple[Value, ...]:
        """Call `body` with the carried and the captured values while `test` of them is true; `test` returns a bool of
        rank 0, and `body` the next carried values.

            x = bb.emit_while(lambda x, end: G.less(G.sum(x), end), lambda x, end: G.add(x, x), [x], [end])

        Raises `CompileError` if types do not fit, and if a function uses outer values.
        """
        first, same = ([self.emit(v).ssa for v in group] for group in (carried, captured))
        types, hints = [v.type for v in (*first, *same)], [v.name_hint for v in (*first, *same)]
        condition, step = (self._traced(label, f, types, hints) for label, f in (("test", test), ("body", body)))
        same += self._bind_names([condition, step], len(types))
        for function, wanted in ((condition, [CONDITION]), (step, types[: len(first)])):
            outputs = list(function.function_type.outputs.data)
            if outputs != wanted:
                one, other = (", ".join(map(str, some)) for some in (wanted, outputs))
                what = "the test gives" if function is condition else "the carried values are"
                raise CompileError(f"emit_while: {what} ({one}), but the function gives ({other})")
        return self._call(WhileOp(condition.sym_name.data, step.sym_name.data, first, same))

    def _traced(
        self,
        label: str,
        function: Callable[..., Value | Sequence[Value]],
        types: Sequence[Attribute],
        hints: Sequence[str | None],
        *,
        has_bounds: bool = False,
    ) -> FuncOp:
        """Trace `function` into a private function, open meanwhile, so that it may contain loops and branches. Raises
        `CompileError` for a result whose extent it binds, unless the caller `has_bounds` for it."""
        names = value_names([hint or f"arg{at}" for at, hint in enumerate(hints)])
        block = Block(arg_types=types)
        for argument, name in zip(block.args, names, strict=True):
            argument.name_hint = name
        name = free_name(getattr(function, "__name__", label).replace("<lambda>", label), self._taken())
        params = [Value(argument) for argument in block.args]
        outer = self._function, self._block, self._outputs
        self._enclosing.append(outer[0])
        self._function = self._block = self._outputs = None
        try:
            with self.function(name, params):
                self.emit_func_output(function(*params))
        finally:
            self._function, self._block, self._outputs = outer
            self._enclosing.pop()
        traced = cast("FuncOp", self._module.body.block.last_op)
        traced.sym_visibility = StringAttr("private")
        bound = bound_in(traced)
        for type_ in traced.function_type.outputs:
            names = {name for extent in shape_of(cast("Tensor", type_)) for name in names_in(extent)}
            for name in sorted(names & bound.keys()):
                if not has_bounds or bound[name].bounds[bound[name].bound_names.index(name)] is None:
                    raise CompileError.at(
                        bound[name],
                        f"the size '{name}' of a result of @{traced.sym_name.data} depends on data: loops give results "
                        "of the same size for all data, and branches need bounds of sizes",
                    )
        return traced

    def _bind_names(self, functions: Sequence[FuncOp], count: int) -> list[SSAValue]:
        """Add parameters to the functions, so that their axes bind all names in them. Returns the values to pass."""
        given = [self._passed.pop(function, []) for function in functions]
        found = [value for values in given for value in values]
        for own, function in enumerate(functions):
            place = count
            for other, values in enumerate(given):
                for at, value in enumerate(values if other != own else ()):
                    _add_parameter(function, place + at, value)
                place += len(values)
        function, block = self._open("bind names")
        for name in sorted(set[str]().union(*map(_unbound_names, functions))):
            value = self._with_axis(name, function, self._enclosing, block)
            if value is not None:
                found.append(value)
                for inner in functions:
                    _add_parameter(inner, len(inner.args), value)
        return found

    def _with_axis(
        self, name: str, function: FuncOp, enclosing: Sequence[FuncOp | None], *blocks: Block
    ) -> SSAValue | None:
        """A value with an axis called `name`; one of an enclosing function becomes a parameter."""
        results = [
            result
            for block in dict.fromkeys((function.body.block, *blocks))
            for op in block.ops
            for result in op.results
        ]
        for value in (*function.args, *results):
            if isinstance(value.type, TensorType) and name in map(lone_name, shape_of(value.type)):
                return value
        outer = enclosing[-1] if enclosing else None
        value = None if outer is None else self._with_axis(name, outer, enclosing[:-1])
        if value is None:
            return None
        self._passed.setdefault(function, []).append(value)
        return _add_parameter(function, len(function.args), value)

    def _call(self, op: CallTirOp | CallDpsOp | ControlOp) -> Value | tuple[Value, ...]:
        _, block = self._open(op.name)
        block.add_op(op)
        found = tuple(map(Value, op.results))
        return found[0] if len(found) == 1 else found

    def emit_output(self, value: Value, name: str | None = None) -> Value:
        function, _ = self._open("emit_output")
        if self._outputs is None:
            raise CompileError(f"function @{function.sym_name.data}: emit_output is outside a dataflow region")
        self.emit(value, name)
        self._outputs.append(value)
        return value

    def emit_func_output(self, value: Value | Sequence[Value]) -> None:
        function, block = self._open("emit_func_output")
        if self._outputs is not None:
            raise CompileError(f"function @{function.sym_name.data}: the dataflow region has not ended")
        values = [self.emit(item) for item in ([value] if isinstance(value, Value) else value)]
        block.add_op(ReturnOp(*(item.ssa for item in values)))
        function.update_function_type()

    def update_function(self, name: str, function: FuncOp | ModuleOp) -> None:
        update_function(self._module, name, function)

    def remove_function(self, name: str) -> None:
        remove_function(self._module, name)

    def add_function(self, function: FuncOp) -> str:
        """Add a function under a free name. Returns the name."""
        function.sym_name = StringAttr(free_name(function.sym_name.data, self._taken()))
        self._module.body.block.add_op(function)
        return function.sym_name.data

    def get(self) -> ModuleOp:
        """Returns the module, verified. Raises `CompileError` while a function is open."""
        if self._function is not None:
            raise CompileError(f"function @{self._function.sym_name.data} has not ended")
        self._module.verify()
        return self._module

    def _open(self, what: str) -> tuple[FuncOp, Block]:
        if self._function is None or self._block is None:
            raise CompileError(f"{what}: no function is open: use `with bb.function(...)`")
        return self._function, self._block

    def _check_is_visible(self, value: SSAValue) -> None:
        """Raises `CompileError` for a value of another function or of an ended dataflow region."""
        owner = value.owner
        block = owner.parent if isinstance(owner, Operation) else owner
        body = None if self._function is None else self._function.body.block
        if block is self._block or block is body:
            return
        what = f"variable '{value.name_hint}'" if isinstance(owner, Block) else repr(Value(value))
        if block is not None and isinstance(block.parent_op(), DataflowOp):
            raise CompileError(f"{what} does not leave the dataflow region: give it to emit_output")
        raise CompileError(f"{what} is no parameter or value of the function: pass it to the function")

    def _taken(self) -> set[str]:
        own = {function.sym_name.data for function in (self._function, *self._enclosing) if function is not None}
        block = self._module.body.block
        if self._last is None or self._last.parent is not block:
            self._names, self._last = set(named_ops(self._module)), block.last_op
        while self._last is not None and (added := self._last.next_op) is not None:
            self._last = added
            self._names |= {name for name in [symbol_name(added)] if name is not None}
        return self._names | own if own - self._names else self._names


def _unbound_names(function: FuncOp) -> set[str]:
    given = [e for argument in function.args if isinstance(argument.type, TensorType) for e in shape_of(argument.type)]
    used = {name for extent in given for name in names_in(extent)}
    for op in function.walk():
        shapes = [shape_of(result.type) for result in op.results if isinstance(result.type, TensorType)]
        if isinstance(op, Operator):
            shapes += op.shapes
        if isinstance(op, MatchShapeOp):
            shapes.append(op.bounds)
        if isinstance(op, LoopOp):
            shapes.append((op.count,))
        used.update(name for shape in shapes for extent in shape for name in names_in(extent))
    own = {argument.name_hint for argument in function.args}
    elements = {name for name in used if (element_of_name(name) or ("", 0))[0] in own}
    return used - {found.name for found in solutions(given)} - bound_in(function).keys() - elements


def _add_parameter(function: FuncOp, place: int, value: SSAValue) -> SSAValue:
    block = function.body.block
    argument = block.insert_arg(value.type, place)
    hints = [other.name_hint or "arg" for other in block.args if other is not argument]
    argument.name_hint = value_names([*hints, value.name_hint or "arg"])[-1]
    function.update_function_type()
    return argument


def bind_params(module: ModuleT, function: str, values: Mapping[str, ArrayLike]) -> ModuleT:
    """A copy with parameters of a function replaced by constants; see `graph_bind_params.bind_params`."""
    copy = module.clone()
    bind_in_place(copy, function, values)
    return copy
