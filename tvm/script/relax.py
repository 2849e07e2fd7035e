"""`from tvm.script import relax as R`."""

from collections import abc
from collections.abc import Sequence
from functools import partial
from typing import Any

from weft.frontends import graph_builder
from weft.frontends.graph_builder import Value
from weft.frontends.graph_effects import assert_op, print_
from weft.frontends.in_place_functions import INPLACE
from weft.support.errors import CompileError
from weft.support.user_functions import get_func, set_func
from weft.texpr.shapes import items
from weft.tvm.relax import op
from weft.tvm.relax.expr import Call, GlobalVar, TensorStructInfo, TupleInfo, UnknownInfo, const
from weft.tvm.runtime import device
from weft.tvm.script.definitions import decorator
from weft.tvm.script.graph_reader import read_function


def Tensor(
    shape: Any = None, dtype: str | None = None, vdevice: object = None, ndim: int = -1
) -> TensorStructInfo | UnknownInfo:
    """`R.Tensor((1, "n"), "float32")`, or a rank, `ndim`."""
    if isinstance(shape, str):  # R.Tensor("float32", ndim=2)
        shape, dtype = None, shape
    if shape is None:
        return UnknownInfo("R.Tensor without a shape", dtype or "float32", ndim)
    return TensorStructInfo(shape, dtype or "float32")


def Tuple(*fields: Any) -> TupleInfo:
    """`R.Tuple(R.Tensor((1,)), R.Tensor((2,)))`"""
    return TupleInfo(items(fields[0]) if len(fields) == 1 else fields)


def _unknown(name: str) -> abc.Callable[..., UnknownInfo]:
    return lambda *_, **__: UnknownInfo(f"R.{name}")


Object, Any_, Shape, Prim, Callable_ = map(_unknown, ("Object", "Any", "Shape", "Prim", "Callable"))


def function(func: abc.Callable[..., Any] | None = None, *, private: bool = False, pure: bool = True) -> Any:
    """Read a function's source, in an `@ir_module` class as part of the module."""
    return decorator(func, read_function)


def _only_read(name: str, *_: Any, **__: Any) -> Any:
    raise CompileError(f"R.{name} is used in functions under @R.function, which are read, not executed")


dataflow, output, func_attr = (partial(_only_read, name) for name in ("dataflow", "output", "func_attr"))


def tuple_(*fields: Any) -> tuple[Any, ...]:
    return fields


def prim_value(value: Any) -> Any:
    return value


def shape(extents: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(extents)


def dtype(name: str) -> str:
    return name


def call_dps_packed(
    func: Any, args: Any, out_sinfo: Any = None, dtype: str | None = None, *, out_ty: Any = None, tir_vars: Any = None
) -> Any:
    """Call a function, registered or of the module, that writes results. Older TVM passes shape and dtype
    separately."""
    if tir_vars is not None:
        raise CompileError("tir_vars: functions take their extents from the shapes of buffers in weft")
    given = out_sinfo if out_ty is None else out_ty
    given = given.fields if isinstance(given, TupleInfo) else given
    infos = [TensorStructInfo(given, dtype)] if dtype is not None else list(items(given))
    shapes, dtypes = list[Any](), list[str]()
    for info in infos:
        if not isinstance(info, TensorStructInfo):
            raise CompileError("out_sinfo: a result is R.Tensor(shape, dtype), or its shape with a separate dtype")
        shapes.append(info.shape)
        dtypes.append(info.dtype)
    name = func.name_hint if isinstance(func, GlobalVar) else str(func)
    values = [value for value in items(args) if isinstance(value, Value)]
    if len(values) != len(items(args)):
        raise CompileError(f"{name}: arguments are tensors, got {[one for one in items(args) if one not in values]}")
    found = graph_builder.call_dps(name, values, shapes, dtypes)
    calls = tuple(Call.at(value.ssa) for value in found)
    return calls[0] if len(calls) == 1 else calls


call_tir = call_dps_packed


def call_pure_packed(func: Any, *args: Any, sinfo_args: Any = None, ty_args: Any = None, **attrs: object) -> Any:
    """The registered function returns a tensor, which `<name>.returned` copies."""
    return _call_returning(func, args, sinfo_args if ty_args is None else ty_args, ())


call_packed = call_pure_packed


def call_inplace_packed(
    func: Any, *args: Any, inplace_indices: Any, sinfo_args: Any = None, ty_args: Any = None
) -> Any:
    """`call_pure_packed` with copies at `inplace_indices`, which may be changed."""
    return _call_returning(func, args, sinfo_args if ty_args is None else ty_args, items(inplace_indices))


def _call_returning(func: Any, args: Sequence[Any], infos: Any, changed: Sequence[object]) -> Any:
    name = str(func)
    called = f"{name}.returned"

    def call(*given: Any) -> None:
        *operands, result = given
        found = get_func(name)(*(one.copy() if at in changed else one for at, one in enumerate(operands)))
        result[...] = found

    set_func(called, call, override=True)
    found = items(infos)
    return call_dps_packed(called, args, out_sinfo=found[0] if len(found) == 1 else found)


def call_tir_inplace(
    func: GlobalVar, args: Any, inplace_indices: Any, out_sinfo: Any = None, *, out_ty: Any = None
) -> Any:
    """Call a copy, which writes results, of a function that changes arguments; index -1 is a written result."""
    places = "_".join(str(place) for place in items(inplace_indices))
    return call_dps_packed(f"{func.name_hint}{INPLACE}{places}", args, out_sinfo, out_ty=out_ty)


_NAMES = {
    "tuple": tuple_, "str": str, "Any": Any_, "Callable": Callable_, "const": const, "Range": range, "print": print_,
    "assert_op": assert_op, "device": device,
    **{name: partial(device, name) for name in ("cpu", "cuda", "opencl", "metal")},
}  # fmt: skip
"""Shadow Python's names."""


def __getattr__(name: str) -> Any:
    return _NAMES[name] if name in _NAMES else getattr(op, name)
