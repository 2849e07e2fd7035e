"""The constructs of the script language: loops, blocks, axes, declarations, dtypes.

A call at run time raises CompileError.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from weft.dialects.element_types import TYPES
from weft.dialects.tir_kinds import REDUCE, SPATIAL
from weft.support.errors import CompileError, did_you_mean
from weft.texpr.expr import Const, Expr, as_expr, as_number, cast_to, error, number_as


@dataclass(frozen=True)
class Construct:
    """Alternative spellings share one object."""

    name: str
    usage: str

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise CompileError(f"T.{self.name} is read from the source of a function under @T.prim_func: `{self.usage}`")

    def __repr__(self) -> str:
        return f"T.{self.name}"


class IntrinsicWord(Construct):
    """A function of TVM without a meaning in weft: its calls are kept as text."""


class Annotation(Construct):
    """Calls and subscripts return the object itself, because Python evaluates annotations."""

    def __call__(self, *args: object, **kwargs: object) -> Annotation:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self

    def __getitem__(self, item: object) -> Annotation:
        return self


@dataclass(frozen=True)
class DType:
    """An element type: `T.float32` is a dtype, `T.float32(x)` a number or value of it.

    `T.float32("inf")`, `T.float32("-inf")` and `T.float32("nan")` are floats too; `T.int64()` is a symbolic extent.
    """

    name: str

    def __call__(self, value: object = None, is_size_var: bool = False) -> Expr:
        """Raises CompileError if a number does not fit."""
        if isinstance(value, str) and self.name.startswith(("float", "bfloat")):
            if value.lower() not in ("inf", "-inf", "nan"):
                raise error(f'{self.name} takes a number, "inf", "-inf" or "nan", got {value!r}')
            return Const(float(value), self.name)
        if isinstance(value, Expr):
            return cast_to(as_expr(value), self.name)
        number = as_number(value)
        if number is None:
            raise error(f"{self.name} takes a number or a value, got {value!r} of type {type(value).__name__}")
        if self.name == "bool":
            return Const(bool(number), "bool")
        return number_as(number, self.name)

    def __repr__(self) -> str:
        return f"T.{self.name}"


class Namespace:
    def __init__(self, name: str, **names: object) -> None:
        self._name = name
        self._names = names

    def __getattr__(self, name: str) -> object:
        names: dict[str, object] = self.__dict__["_names"]
        if name not in names:
            raise AttributeError(f"{self._name} has no '{name}'{did_you_mean(name, names)}")
        return names[name]

    def __repr__(self) -> str:
        return self._name


def module_attrs(attributes: dict[str, object]) -> None:
    """`I.module_attrs({"key": 1})`. A call at run time has no effect."""


def mlir(text: str) -> None:
    """`I.mlir("memref.global ...")`. A call at run time has no effect."""


IR = Namespace("I", mlir=mlir, module_attrs=module_attrs)
"""The namespace `I` of a script that is read as text."""
SPATIAL_AXIS = Construct("axis.spatial", "vi = T.axis.spatial(128, i)")
REDUCE_AXIS = Construct("axis.reduce", "vk = T.axis.reduce(128, k)")
REMAP_AXES = Construct("axis.remap", 'vi, vk = T.axis.remap("SR", [i, k])')
AXIS = Namespace(
    "T.axis",
    spatial=SPATIAL_AXIS,
    S=SPATIAL_AXIS,
    reduce=REDUCE_AXIS,
    R=REDUCE_AXIS,
    scan=SPATIAL_AXIS,
    opaque=SPATIAL_AXIS,
    remap=REMAP_AXES,
)
"""TVM's axes that keep their order, `scan` and `opaque`, are spatial: dependences determine the legal orders."""
AXES = {SPATIAL: ("S", SPATIAL_AXIS), REDUCE: ("R", REDUCE_AXIS)}
BUILTINS: Mapping[str, object] = {
    name: getattr(builtins, name)
    for name in ("abs", "bool", "divmod", "float", "int", "len", "list", "max", "min", "pow", "range", "round", "sum")
} | {"tuple": tuple}
DTYPES = {name: DType(name) for name in TYPES}
