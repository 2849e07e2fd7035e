"""Tensors: inputs, and computations of each element by an expression."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, ClassVar, NoReturn, ParamSpec, TypeVar, cast

from weft.dialects.element_types import STORED
from weft.support.argument_types import checked, shown
from weft.support.locations import SourceLocation
from weft.texpr.expr import (
    Compare,
    Const,
    Expr,
    ExprLike,
    IterVar,
    Var,
    as_expr,
    caller,
    checked_dtype,
    error,
    name_of,
    nested,
    subexpressions,
)
from weft.texpr.reductions import reductions_in
from weft.texpr.shapes import (
    Extent,
    Stride,
    as_index,
    assumptions,
    checked_name,
    checked_shape,
    checked_strides,
    items,
    shape_text,
)

if TYPE_CHECKING:
    from typing import Any

    from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute


P = ParamSpec("P")
R = TypeVar("R")


@dataclass(eq=False)
class Operation:
    """The definition of tensors. `name` is the user's."""

    name: str
    place: SourceLocation | None
    outputs: list[Tensor] = field(default_factory=list["Tensor"], init=False, repr=False)
    assumed: list[Compare] = field(default_factory=list["Compare"], init=False, repr=False)
    """Relations of extents that its outputs require; calls check them."""

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors read, each once, in the order of first use."""
        return ()

    def output(self, position: int) -> Tensor:
        return self.outputs[position]


@dataclass(eq=False)
class PlaceholderOp(Operation):
    """An input."""


@dataclass(eq=False)
class ConstantOp(Operation):
    elements: DenseIntOrFPElementsAttr[Any]


@dataclass(eq=False)
class ComputeOp(Operation):
    axis: tuple[IterVar, ...]
    body: tuple[Expr, ...]
    """The element of each result."""

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes of reductions, each once, in the order of first use."""
        return tuple(dict.fromkeys(axis for reduction in reductions_in(self.body) for axis in reduction.axes))

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(expr.tensor for expr in subexpressions(self.body) if isinstance(expr, Read)))


@dataclass(eq=False)
class InlinedOp(Operation):
    function: FuncOp
    arguments: tuple[Tensor, ...]

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(self.arguments))


@dataclass(eq=False, slots=True, repr=False)
class Read(Expr):
    tensor: Tensor
    indices: tuple[Expr, ...]
    dtype: str
    is_index: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.indices

    def text(self, depth: int) -> str:
        return f"{self.tensor.name}[{nested(depth, *self.indices)}]"


class Tensor:
    """`A[i, j]` and `A(i, j)` are elements, for `te.compute`."""

    __slots__ = ("dtype", "name", "op", "shape", "strides", "value_index")

    operators: ClassVar[Sequence[Callable[[], Collection[str]]]] = ()
    """Names of the operators on tensors, for messages: `weft.te` states them, because operators depend on this class.
    Functions, because the import of all operators takes long."""
    # Otherwise Python would iterate forever.
    __iter__ = None

    def __init__(self, shape: tuple[Extent, ...], dtype: str, name: str, op: Operation, value_index: int = 0) -> None:
        self.shape = shape
        self.dtype = dtype
        self.name = name
        self.op = op
        self.value_index = value_index
        self.strides: tuple[Stride, ...] | None = None
        """The strides of an input, in elements; None if dense."""

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape or not isinstance(self.shape[0], int):
            raise TypeError(f"tensor {self.name} has no fixed length")
        return self.shape[0]

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> Expr:
        return self._read(indices if isinstance(indices, tuple) else (indices,))

    def __call__(self, *indices: ExprLike) -> Expr:
        return self._read(indices)

    def _read(self, indices: tuple[object, ...]) -> Expr:
        for index in indices:
            if isinstance(index, slice) or index is Ellipsis or index is None:
                raise error(f"{self.name}[{_index_text(indices)}]: slices are not elements; give {self.ndim} indices")
        if len(indices) != self.ndim:
            raise error(
                f"{self.name} has rank {self.ndim} (shape {shape_text(self.shape)}) but is read with "
                f"{len(indices)} {'index' if len(indices) == 1 else 'indices'}, {self.name}[{_index_text(indices)}]"
            )
        exprs = tuple(as_index(index, f"index {d} of {self.name}") for d, index in enumerate(indices))
        for dimension, (expr, extent) in enumerate(zip(exprs, self.shape, strict=True)):
            if isinstance(expr, Const) and isinstance(extent, int) and not 0 <= expr.value < extent:
                raise error(
                    f"{self.name}[{_index_text(indices)}] reads out of bounds: index {dimension} is {expr.value}, "
                    f"its extent {extent}"
                )
        return Read(self, exprs, self.dtype)

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {shape_text(self.shape)}, {self.dtype})"

    def _refuse(self, *_: object) -> NoReturn:
        raise error(
            f"{self.name} is a tensor: operators work on its elements, as in "
            f"te.compute({self.name}.shape, lambda *i: {self.name}(*i) + 1)"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: object) -> NoReturn:
        name: str = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        known = any(name in names() for names in Tensor.operators)
        hint = f"write te.ops.{name}({self.name})" if known else "te.ops has the operators on tensors"
        raise TypeError(f"np.{name} computes on arrays, and {self.name} is a tensor of te: {hint}")

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError(f"{self.name} is a tensor of te, without elements until the program runs: no array of NumPy")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __neg__ = __abs__ = __invert__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse


def _index_text(indices: tuple[object, ...]) -> str:
    return ", ".join(":" if isinstance(i, slice) else "..." if i is Ellipsis else _one_index_text(i) for i in indices)


def _one_index_text(index: object) -> str:
    return str(index) if isinstance(index, Expr) else shown(index)


def placeholder(shape: object, dtype: object = None, name: str | None = None, *, strides: object = None) -> Tensor:
    """An input of the program: `te.placeholder((m, n), "float32", name="A")`.

    `shape` contains integers, variables and expressions; `dtype` is float32 by default. With `strides` (integers,
    variables or None, in elements) calls accept views: `te.placeholder((m, n), strides=(s, 1))`. Raises CompileError
    for invalid shapes and unknown dtypes.
    """
    label = checked_name(name, "placeholder")
    extents = checked_shape(shape, f"placeholder {label}")
    op = PlaceholderOp(label, caller())
    tensor = Tensor(extents, checked_dtype("float32" if dtype is None else dtype), label, op)
    tensor.strides = checked_strides(strides, len(extents), f"placeholder {label}")
    op.outputs.append(tensor)
    return tensor


def constant(elements: DenseIntOrFPElementsAttr[Any], name: str) -> Tensor:
    op = ConstantOp(name, caller(), elements)
    type_ = cast("TensorType[Attribute]", elements.type)
    op.outputs.append(Tensor(tuple(type_.get_shape()), name_of(type_.element_type), name, op))
    return op.outputs[0]


def inlined(function: FuncOp, arguments: Sequence[Tensor], shapes: Sequence[tuple[Extent, ...]]) -> list[Tensor]:
    name = function.sym_name.data
    op = InlinedOp(name, caller(), function, tuple(arguments))
    types = cast("Sequence[TensorType[Attribute]]", function.function_type.outputs.data)
    for position, (shape, type_) in enumerate(zip(shapes, types, strict=True)):
        label = name if len(types) == 1 else f"{name}_v{position}"
        op.outputs.append(Tensor(shape, name_of(type_.element_type), label, op, position))
    return op.outputs


def var(name: str = "n", dtype: object = "int64") -> Var:
    """A scalar that calls bind: an argument's extent, or a parameter."""
    label, element = checked_name(name, "n"), checked_dtype(dtype)
    if element in STORED:
        raise error(f"variable {label}: elements of arrays alone are {element}, numbers are not")
    return Var(label, element)


size_var = var


@checked
def compute(
    shape: object,
    fcompute: Callable[..., ExprLike | Sequence[ExprLike]],
    name: str | None = None,
) -> Any:
    """New tensors, element by element: `te.compute((m, n), lambda i, j: A[i, j] + 1, name="B")`.

    `fcompute` takes an index per dimension (or `*i`) and returns the element; a tuple gives tensors computed together.
    Raises CompileError for a wrong number of indices and elements that are not expressions.
    """
    label = checked_name(name, "compute")
    extents = checked_shape(shape, f"compute {label}")
    return computed(extents, _index_names(fcompute, len(extents), label), fcompute, label)


def computed(
    extents: tuple[Extent, ...],
    index_names: Sequence[str],
    element: Callable[..., ExprLike | Sequence[ExprLike]],
    label: str,
) -> Any:
    axis = tuple(IterVar(name, 0, extent, False) for name, extent in zip(index_names, extents, strict=True))
    value = element(*axis)
    several = isinstance(value, list | tuple)
    body = tuple(map(as_expr, items(value)))
    if not body:
        raise error(f"compute {label} returns no element")
    op = ComputeOp(label, caller(), axis, body)
    for position, expr in enumerate(body):
        result_name = f"{label}_v{position}" if several else label
        op.outputs.append(Tensor(extents, expr.dtype, result_name, op, position))
    return tuple(op.outputs) if several else op.outputs[0]


def stating(operator: Callable[P, R]) -> Callable[P, R]:
    """State the relations of extents that `operator` requires (`shapes.agree`)."""

    @wraps(operator)
    def apply(*args: P.args, **options: P.kwargs) -> R:
        with assumptions() as found:
            results = operator(*args, **options)
        for tensor in cast("Sequence[Tensor]", items(results)) if found else ():
            tensor.op.assumed += found
        return results

    return apply


def _index_names(fcompute: Callable[..., object], rank: int, label: str) -> list[str]:
    try:
        parameters = list(inspect.signature(fcompute).parameters.values())
    except (TypeError, ValueError):
        return [f"i{d}" for d in range(rank)]
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}{d}" for d in range(len(names), rank)]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            if parameter.default is parameter.empty or len(names) < rank:
                names.append(parameter.name)
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            raise error(f"compute {label}: its function must take indices only, but needs {parameter.name}=")
    names = [name if name.isascii() else f"i{d}" for d, name in enumerate(names)]
    if len(names) != rank:
        raise error(f"compute {label}: the shape has rank {rank}, but its function takes {len(names)} indices")
    return names
