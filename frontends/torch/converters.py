"""The table of converters: a function for each operator of ATen, by its name with overload, `aten.add.Tensor`.

A converter takes a `Conversion` and the arguments of the operator, including defaults: values for tensors, numbers,
extents for symbolic sizes, and names for element types. It returns a value, or a tuple of values.

    @register("aten.hardswish.default")
    def hardswish(cx: Conversion, x: Value) -> Value:
        return G.hardswish(x)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from weft.dialects.graph_shapes import Expression, Extent, KnownExtent, Shape, lone_name
from weft.frontends.data_sizes import DataSizes
from weft.frontends.graph_builder import BlockBuilder, Value, const, operator
from weft.support.errors import CompileError
from weft.support.float_to_integer import float_to_integer
from weft.support.narrow_floats import ROUNDINGS
from weft.texpr.tensor import compute

if TYPE_CHECKING:
    from weft.frontends.torch.symbols import TensorMeta

Converter: TypeAlias = Callable[..., Any]
Scalar: TypeAlias = "int | float | bool | Expression"
CONVERTERS: Final[dict[str, Converter]] = {}


def register(*names: str, override: bool = False) -> Callable[[Converter], Converter]:
    """Register the converter of operators, named as PyTorch prints them: "aten.foo.default".

        @weft.torch.register("mylib.scale.default")
        def scale(cx, x, factor):
            return G.multiply(x, factor)

    The converter takes a `Conversion` and the arguments of the operator, including defaults: keyword-only arguments by
    name, the others by position. Raises `CompileError` for a name that has a converter, unless `override` is given.
    """

    def keep(converter: Converter) -> Converter:
        for name in names:
            if name in CONVERTERS and not override:
                raise CompileError(f"'{name}' has a converter already; override=True replaces it")
            if len(name.split(".")) != 3:
                raise CompileError(f"an operator is named 'library.name.overload', got '{name}'")
            CONVERTERS[name] = converter
        return converter

    return keep


@dataclass
class Conversion:
    builder: BlockBuilder
    name: str
    """The name of the operator, with overload."""
    parameters: Sequence[str]
    """The names of the operator's arguments, in the order of its schema."""
    results: Sequence[TensorMeta]
    """The types of the results in PyTorch."""
    used: frozenset[int]
    """The indices of results with uses."""
    run_in_torch: Callable[[str], tuple[Value, ...]]
    """Emit a call of the operator in PyTorch, for a given reason."""
    numbers: Sequence[Extent] = ()
    """The result if it is a symbolic integer."""
    ranges: Mapping[str, tuple[int, int | None]] = field(default_factory=dict[str, "tuple[int, int | None]"])
    """Lower and upper bounds of symbolic sizes."""
    first: Any = None
    """The first argument as PyTorch's tensor without data, which has strides."""

    @property
    def shape(self) -> Shape:
        return self.results[0].shape

    @property
    def dtype(self) -> str:
        return self.results[0].dtype

    def sizes(self, extent: Extent, *, has_range: bool = True) -> DataSizes:
        """Operators whose next result has a data-dependent extent, with PyTorch's name, and bound unless `has_range` is
        false."""
        name = lone_name(extent)
        taken = name is None or name in self.builder.extent_names()
        most = self.ranges.get(name, (0, None))[1] if name is not None and has_range else None
        return DataSizes(self.builder, None if taken else name, most)

    def te(self, function: Callable[..., object], *args: object) -> Any:
        return self.builder.emit_te(function, *args)

    def number(self, number: Scalar, dtype: str) -> Value:
        if isinstance(number, Expression):
            return cast_to(size_value(self.builder, number), dtype)
        return const(as_element(number, dtype), dtype)

    def operand(self, value: Value | Scalar, dtype: str) -> Value:
        return cast_to(value, dtype) if isinstance(value, Value) else self.number(value, dtype)


def as_element(number: float, dtype: str) -> float:
    """Convert as PyTorch does: integers wrap, and floats are truncated to integers (`weft.support.float_to_integer`) or
    rounded to the nearest float, which may be infinite."""
    if dtype == "bool":
        return bool(number)
    if "int" not in dtype:
        return ROUNDINGS[dtype](float(number))
    bits, signed = int(dtype.lstrip("uint")), dtype[0] == "i"
    if isinstance(number, float):
        number = float_to_integer(number, bits, signed=signed, is_double=True)
    wrapped = int(number) & (1 << bits) - 1
    return wrapped - (1 << bits) if signed and wrapped >> bits - 1 else wrapped


def size_value(builder: BlockBuilder, size: Expression) -> Value:
    return cast("Value", builder.emit_te(_size, size))


def _size(size: Any) -> Any:
    return compute((), lambda: size + 0, name="size")


def cast_to(value: Value, dtype: str) -> Value:
    """Cast `value`. PyTorch saturates to the maximum of float8_e4m3fn, which has no infinity."""
    if dtype == "float8_e4m3fn" and value.dtype in ("float16", "bfloat16", "float32", "float64"):
        value = apply("clip", value, -448.0, 448.0)
    return value if value.dtype == dtype else value.astype(dtype)


def apply(name: str, *args: object, **options: object) -> Any:
    return operator(name)(*args, **options)


def indices_of(index: Value, x: Value, axis: int, *, wrap: bool = False) -> Value:
    """Indices for operators with the mode `fast`, because PyTorch rejects indices out of range. With `wrap`, indices
    from -extent to -1 count from the end."""
    return apply("bound_indices", index, known((x.shape[axis],)), wrap=wrap)


def extent_value(extent: KnownExtent, dtype: str) -> Value:
    if isinstance(extent, int):
        return const(extent, dtype)
    return cast_to(apply("reshape", apply("extents", (extent,), dtype="int64"), ()), dtype)


def known(shape: Shape) -> list[KnownExtent]:
    """Raises `UnsupportedError` for unknown extents."""
    from weft.frontends.torch.symbols import UnsupportedError  # needs torch

    if None in shape:
        raise UnsupportedError("a size that is not a polynomial of the sizes of the inputs")
    return cast("list[KnownExtent]", list(shape))
